"""``policyfactory policy``: the catalogue, and one policy in full."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from policyfactory.cli.explain import explain_policy
from policyfactory.core.artefact import dump_json

if TYPE_CHECKING:
    from policyfactory.policy.network import Network
    from policyfactory.policy.policy import Policy
    from policyfactory.policy.store import Model

__all__ = ["app"]

app = typer.Typer(help="List, show and explain policies.", no_args_is_help=True)

PolicyArgument = Annotated[str, typer.Argument(metavar="NAME", help="A catalogue name (any case) or a model file.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]


@app.command("list")
def list_policies(*, as_json: JsonOption = False) -> None:
    """List the known policies; the queue is sorted by the formula, lower runs first."""
    from policyfactory.policy.catalogue import ALIASES, CATALOGUE

    if as_json:
        from policyfactory.policy.catalogue import published_model
        from policyfactory.policy.store import model_to_json

        _print_json([model_to_json(published_model(policy)) for policy in CATALOGUE.values()])
        return
    from policyfactory.report.terminal import note, show_table

    rows = [
        [policy.name, _short(policy.formula), "yes" if policy.is_static else "no", policy.description]
        for policy in CATALOGUE.values()
    ]
    show_table("Policies (lower runs first)", ["name", "formula", "static", "what it does"], rows, left=(0, 1, 2, 3))
    aliases = ", ".join(f"{alias} = {name}" for alias, name in ALIASES.items())
    note(f"Also known as: {aliases}.\nIn full: policyfactory policy show NAME")


@app.command("show")
def show_policy(name: PolicyArgument, *, as_json: JsonOption = False) -> None:
    """Show a policy: formula, LaTeX, units, epoch, source, and the shortest formula of the same order."""
    from policyfactory.policy.catalogue import resolve_model
    from policyfactory.policy.store import model_to_json

    model = resolve_model(name)
    if as_json:
        _print_json(model_to_json(model))
        return
    from policyfactory.policy.simplify import SHOWN_DIGITS
    from policyfactory.report.terminal import note, show_table

    if (network := model.policy.network) is not None:
        show_table(
            f"Network {network.name}", ["", "value"], [list(row) for row in _network_facts(network)], left=(0, 1)
        )
        note(f"what each input does to a job: policyfactory policy explain {name}")
        return
    show_table(f"Policy {model.policy.name}", ["", "value"], [list(row) for row in _facts(model)], left=(0, 1))
    if model.coefficients:
        rows = [[c.name, c.term, f"{c.value:.{SHOWN_DIGITS}g}", f"{c.stderr:.2g}", c.unit] for c in model.coefficients]
        show_table("Coefficients", ["name", "term", "value", "std. error", "unit"], rows)


app.command("explain")(explain_policy)


def _facts(model: Model) -> list[tuple[str, str]]:
    from policyfactory.core.units import format_duration
    from policyfactory.policy.latex import to_latex
    from policyfactory.policy.nodes import VARIABLES
    from policyfactory.policy.simplify import shorter_formula

    policy = model.policy
    shorter = shorter_formula(policy.expression)
    facts = [("formula", policy.formula), ("LaTeX", to_latex(policy.expression))]
    if shorter.why_not or shorter.expression != policy.expression:
        facts.append(("same order, shorter", shorter.why_not or shorter.expression.text()))
    facts += [(name, VARIABLES[name]) for name in VARIABLES if name in policy.variables]
    facts.append(("sorted by", "the formula, lower runs first; ties by submit time, then job id"))
    facts.append(("static", _static_words(policy)))
    if "r" in policy.variables:
        facts.append(("epoch", policy.epoch.describe()))
    facts.append(("threshold", f"jobs that waited longer than this go first: {format_duration(policy.threshold)}"))
    facts += [("what it does", policy.description), ("source", policy.source)]
    return [(key, value) for key, value in facts if value]


def _network_facts(network: Network) -> list[tuple[str, str]]:
    from policyfactory.policy.policy import Policy

    facts = [(f"input {place}", formula) for place, formula in enumerate(network.inputs, start=1)]
    facts.append(("layers", f"{'-'.join(map(str, network.widths))}, {network.parameters:,} numbers"))
    facts.append(("sorted by", "the output, highest runs first; ties by submit time, then job id"))
    facts.append(("static", _static_words(Policy.from_network(network))))
    facts += [("mode", network.mode), ("digest", network.digest), ("what it does", network.description)]
    return [(key, value) for key, value in (*facts, ("source", network.source)) if value]


def _static_words(policy: Policy) -> str:
    if not policy.is_static:
        return "no: scores change while jobs wait"
    if not policy.needs_predictions:
        return "yes: a job's score never changes"
    return "yes: a job's score changes only if it is predicted anew, once a job of its user has ended"


def _short(formula: str) -> str:
    return formula if len(formula) <= 45 else formula[:42] + "..."


def _print_json(value: Any) -> None:
    typer.echo(dump_json(value), nl=False)
