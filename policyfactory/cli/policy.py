"""``policyfactory policy``: the catalogue, one policy in full, and why a job is where it is."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from policyfactory.core.artefact import dump_json
from policyfactory.core.claims import exclusive, refuse_earlier
from policyfactory.core.errors import UsageError
from policyfactory.workload.presets import MISSING_HELP, EstimateMissing

if TYPE_CHECKING:
    from policyfactory.policy.effects import NetworkEffects
    from policyfactory.policy.explain import Explanation
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


@app.command("explain")
def explain_policy(
    name: PolicyArgument,
    job: Annotated[
        list[str] | None,
        typer.Option("--job", metavar="'p=1h q=64 r=2d'", help="A job; several are ranked against each other."),
    ] = None,
    workload: Annotated[
        Path | None,
        typer.Option(metavar="LOG", help="Of a network: over the jobs that wait when it orders this log (SWF)."),
    ] = None,
    estimate_missing: Annotated[EstimateMissing, typer.Option(help=MISSING_HELP)] = "error",
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="PICTURE", help="Of a network: draw its inputs (.svg, .png, .pdf)."),
    ] = None,
    *,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an earlier picture.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Explain the score of a job, term by term; several --job are ranked. Of a network, what each input does."""
    from policyfactory.policy.catalogue import resolve
    from policyfactory.policy.explain import explain, parse_job, rank_jobs

    policy = resolve(name)
    if not job:
        if policy.network is None:
            raise UsageError(f"policy {policy.name} is a formula; give a job: --job 'p=1h q=64 r=2d'")
        with exclusive(output):
            refuse_earlier(output, overwrite=overwrite)
            _explain_network(policy, workload, estimate_missing, output, as_json=as_json)
        return
    for option, value in (("--workload", workload), ("--output", output)):
        if value is not None:
            raise UsageError(f"{option} {value}: is for what the inputs of a network do; leave out --job, or {option}")
    if len(job) > 1000:
        raise UsageError(f"{len(job)} jobs were given; at most 1000 are ranked")
    explanations = [explain(policy, parse_job(text)) for text in job]
    order = rank_jobs(explanations)
    if as_json:
        _print_json({"jobs": [one.as_dict() for one in explanations], "order": [number + 1 for number in order]})
        return
    for number, one in enumerate(explanations, start=1):
        _show_explanation(one, number if len(explanations) > 1 else None)
    if len(explanations) > 1:
        _show_order(explanations, order)


def _explain_network(
    policy: Policy, workload: Path | None, estimate_missing: EstimateMissing, output: Path | None, *, as_json: bool
) -> None:
    """Print, and draw, what the inputs of a network do."""
    from policyfactory.report.terminal import note
    from policyfactory.simulate.queued import explain_network

    effects = explain_network(policy, workload, estimate_missing=estimate_missing)
    if output is not None:
        from policyfactory.core.picture import save_picture
        from policyfactory.policy.effects_picture import draw_effects

        save_picture(draw_effects(effects), output)
    if as_json:
        _print_json(effects.as_dict())
    else:
        _show_effects(effects)
    note("the picture of the inputs: --output net.svg" if output is None else f"written: {output}")


def _show_effects(effects: NetworkEffects) -> None:
    from policyfactory.report.terminal import show_table

    rows = [
        [str(one.place), one.formula, one.label, f"{one.swing:.3g}", f"{100 * one.share:.1f}", one.words]
        for one in sorted(effects.live, key=lambda one: -one.swing)
    ]
    rows += [[str(one.place), one.formula, one.label, "0", "0", f"dead: {one.why_dead}"] for one in effects.dead]
    show_table(
        f"What the inputs of {effects.network.name} do to {effects.jobs.about}",
        ["input", "formula", "what it is", "moves a score by", "share (%)", "what more of it does"],
        rows,
        left=(0, 1, 2, 5),
    )


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


def _show_explanation(one: Explanation, number: int | None) -> None:
    from policyfactory.report.terminal import console, show_table

    title = f"Job {number}: " if number else "Job: "
    rows = [[term.text, f"{term.value:.6g}", term.words] for term in one.terms]
    last = "minus the network's output" if one.policy.network is not None else "the sum" if len(one.terms) > 1 else ""
    rows.append(["score (lower runs first)", f"{one.score:.6g}", last])
    show_table(
        f"{title}{one.job.describe()}, policy {one.policy.name}",
        ["term", "value", "what moves the job"],
        rows,
        left=(0, 2),
    )
    for sentence in one.changes:
        console().print(f"  {sentence}", markup=False, soft_wrap=True)


def _show_order(explanations: list[Explanation], order: list[int]) -> None:
    from policyfactory.report.terminal import show_table

    rows = []
    for place, index in enumerate(order, start=1):
        one = explanations[index]
        rows.append([str(place), str(index + 1), f"{one.score:.6g}", one.job.describe()])
    show_table("Order (ties by submit time)", ["place", "job", "score", "its values"], rows, left=(0, 1, 3))


def _short(formula: str) -> str:
    return formula if len(formula) <= 45 else formula[:42] + "..."


def _print_json(value: Any) -> None:
    typer.echo(dump_json(value), nl=False)
