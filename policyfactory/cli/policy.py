"""``policyfactory policy``: the catalogue, and one policy in full."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from policyfactory.cli import options as option
from policyfactory.core.errors import UsageError
from policyfactory.core.files import exclusive
from policyfactory.core.options import check_values, declared, options_of
from policyfactory.core.options import option as declared_option
from policyfactory.core.text import cut
from policyfactory.report.terminal import note, percent_bar, print_json, say, show_table
from policyfactory.workload.presets import MISSING_HELP, EstimateMissing

if TYPE_CHECKING:
    from policyfactory.policy.explain import Explanation, NetworkEffects
    from policyfactory.policy.network import Network
    from policyfactory.policy.policy import Policy
    from policyfactory.policy.store import Model
    from policyfactory.prediction.explained import Submitter

_MOST_JOBS = 1000


@dataclasses.dataclass(frozen=True, slots=True)
class _AskedPolicy:
    """What was asked for: jobs, a job of a log, or what a network does."""

    jobs: tuple[str, ...]
    workload: Path | None = declared_option(
        None,
        "log (SWF) of --job-id; of a network: over the jobs that wait when it orders this log",
        metavar="LOG",
    )
    job_id: int | None = declared_option(
        None, "a job of the log, as it was submitted: the log is simulated up to then", metavar="N"
    )
    history: Path | None = declared_option(
        None, "predict --job from this file of policyfactory history update", metavar="FILE"
    )
    user: int | None = declared_option(None, "number of the user who submits --job", metavar="UID", limits=(0, None))
    group: int | None = declared_option(None, "number of the user's Unix group", metavar="GID", limits=(0, None))
    moment: str | None = declared_option(
        None, "when --job is submitted, on this machine's clock; default: now", flags=("--at",), metavar="DATE"
    )
    predictor: Path | None = declared_option(
        None, "a model.json of policyfactory predict; of a log: nothing is trained", metavar="FILE"
    )
    estimate_missing: EstimateMissing = declared_option("error", MISSING_HELP, "workloads.md")
    processors: int | None = declared_option(
        None, "processors of the log's machine, if its header does not say", metavar="N", limits=(1, None)
    )
    output: Path | None = declared_option(
        None, "of a network: draw its inputs (.svg, .png, .pdf)", flags=("--output", "-o"), metavar="PICTURE"
    )

    def check(self) -> None:
        """Refuse what is no value, and options that do not go together."""
        check_values(self)
        log, history = "--workload LOG --job-id N", "--history FILE --job 'p=1h q=4'"
        if self.job_id is not None:
            if self.jobs:
                raise UsageError(f"--job-id {self.job_id}: is a job of a log, --job one of your own; leave one out")
            if self.workload is None:
                raise UsageError(f"--job-id {self.job_id}: of which log? Give --workload LOG")
        whose = "one of your own" if self.jobs else "a job of a log"
        refused = (
            (
                "--workload",
                self.workload,
                bool(self.jobs),
                "is for a job of it (--job-id) or for a network; leave out --job",
            ),
            (
                "--output",
                self.output,
                bool(self.jobs) or self.job_id is not None,
                f"is for what the inputs of a network do, and this is {whose}",
            ),
            ("--processors", self.processors, self.workload is None, "is for a log; give --workload LOG"),
            ("--history", self.history, not self.jobs, "is for a job that you describe; add --job 'p=1h q=4'"),
            ("--user", self.user, self.history is None, f"is for a history; give {history}"),
            ("--group", self.group, self.user is None, f"is for a user of a history; give {history} --user N"),
            ("--at", self.moment, self.history is None, f"is for a history; give {history}"),
            ("--predictor", self.predictor, self.history is None and self.job_id is None, f"give {log}, or {history}"),
        )
        for flag, value, is_wrong, words in refused:
            if value is not None and is_wrong:
                raise UsageError(f"{flag} {value}: {words}")
        if self.history is not None and self.predictor is None:
            raise UsageError(
                f"--history {self.history}: what predicts? Give --predictor model.json (policyfactory predict)"
            )
        if len(self.jobs) > _MOST_JOBS:
            raise UsageError(f"{len(self.jobs)} jobs were given; at most {_MOST_JOBS} are ranked")


app = typer.Typer(help="List, show and explain policies.", no_args_is_help=True)

PolicyArgument = Annotated[str, typer.Argument(metavar="NAME", help="A catalogue name (any case) or a model file.")]


@option.with_options(declared(_AskedPolicy).values())
def explain_policy(
    name: PolicyArgument,
    job: Annotated[
        list[str] | None,
        typer.Option("--job", metavar="'p=1h q=64 r=2d'", help="A job; several are ranked against each other."),
    ] = None,
    *,
    overwrite: option.Overwrite = False,
    as_json: option.Json = False,
    **options: Any,
) -> None:
    """Explain the score of a job, term by term; several --job are ranked. Of a network, what each input does.

    A job of a log (--job-id) is explained by its user's past and its place in the queue when it was submitted; a job
    that is about to be submitted by a history of the site.

    Example: policyfactory policy explain F1 --job p=3600,q=16,r=86400
    """
    from policyfactory.policy.store import resolve

    policy = resolve(name)
    asked = options_of(_AskedPolicy, options, jobs=tuple(job or ()))
    asked.check()
    if not asked.jobs and asked.job_id is None:
        if policy.network is None:
            raise UsageError(f"policy {policy.name} is a formula; give a job: --job 'p=1h q=64 r=2d'")
        with exclusive(asked.output, overwrite=overwrite):
            _explain_network(policy, asked, as_json=as_json)
        return
    explanations = _of_jobs(policy, asked) if asked.job_id is None else [_of_log(policy, asked)]
    _show(explanations, as_json=as_json)


def _of_log(policy: Policy, asked: _AskedPolicy) -> Explanation:
    """Explain a job of a log."""
    from policyfactory.prediction.store import load_forests
    from policyfactory.prediction.training import Predictor
    from policyfactory.simulation.explained import explain_job

    if asked.workload is None or asked.job_id is None:
        raise AssertionError("a job of no log")
    predictor = None if asked.predictor is None else Predictor(forests=load_forests(asked.predictor))
    with percent_bar(f"{asked.workload.name}: % of the jobs") as progress:
        return explain_job(
            *(policy, asked.workload, asked.job_id, predictor),
            estimate_missing=asked.estimate_missing,
            processors=asked.processors,
            progress=progress,
        )


def _of_jobs(policy: Policy, asked: _AskedPolicy) -> list[Explanation]:
    """Explain jobs that were described, predicted from a history if there is one."""
    from policyfactory.policy.explain import explain, parse_job

    jobs = [parse_job(text) for text in asked.jobs]
    if asked.history is None or asked.predictor is None:
        return [explain(policy, job) for job in jobs]
    from policyfactory.prediction.explained import explain_submission

    submitter = _submitter(asked, asked.history, asked.predictor)
    return [explain_submission(policy, job, submitter) for job in jobs]


def _submitter(asked: _AskedPolicy, history: Path, predictor: Path) -> Submitter:
    """Return who submits, when, and what predicts."""
    import datetime as dt
    import time

    from policyfactory.exports.options import instant
    from policyfactory.prediction.explained import Submitter
    from policyfactory.prediction.history_file import open_history
    from policyfactory.prediction.store import load_forests
    from policyfactory.workload.accounting.times import machine_zone

    zone = machine_zone()[0]
    until = instant("--at", asked.moment, zone)
    when = dt.datetime.fromtimestamp(int(time.time()) if until is None else until, zone)
    return Submitter(open_history(history), load_forests(predictor), when, asked.user, asked.group)


def _show(explanations: list[Explanation], *, as_json: bool) -> None:
    from policyfactory.policy.explain import rank_jobs

    order = rank_jobs(explanations)
    if as_json:
        print_json({"jobs": [job.as_dict() for job in explanations], "order": [number + 1 for number in order]})
        return
    for number, explanation in enumerate(explanations, start=1):
        _show_explanation(explanation, number if len(explanations) > 1 else None)
    if len(explanations) > 1:
        _show_order(explanations, order)


def _explain_network(policy: Policy, asked: _AskedPolicy, *, as_json: bool) -> None:
    """Print, and draw, what the inputs of a network do."""
    from policyfactory.simulation.explained import explain_network

    how: dict[str, Any] = {"estimate_missing": asked.estimate_missing, "processors": asked.processors}
    effects, output = explain_network(policy, asked.workload, **how), asked.output
    if output is not None:
        from policyfactory.core.picture import save_picture
        from policyfactory.policy.explain import draw_effects

        save_picture(draw_effects(effects), output)
    if as_json:
        print_json(effects.as_dict())
    else:
        _show_effects(effects)
    note("the picture of the inputs: --output net.svg" if output is None else f"written: {output}")


def _show_effects(effects: NetworkEffects) -> None:
    rows = [
        [str(node.number), node.formula, node.label, f"{node.swing:.3g}", f"{100 * node.share:.1f}", node.words]
        for node in sorted(effects.live, key=lambda node: -node.swing)
    ]
    rows += [[str(node.number), node.formula, node.label, "0", "0", f"dead: {node.why_dead}"] for node in effects.dead]
    show_table(
        f"What the inputs of {effects.network.name} do to {effects.jobs.about}",
        ["input", "formula", "what it is", "moves a score by", "share (%)", "what more of it does"],
        rows,
        left=(0, 1, 2, 5),
    )


def _show_explanation(explanation: Explanation, number: int | None) -> None:
    title = f"Job {number}: " if number else "Job: "
    rows = [[term.text, f"{term.value:.6g}", term.words] for term in explanation.terms]
    last = "the sum" if len(explanation.terms) > 1 else ""
    if explanation.policy.network is not None:
        last = "minus the network's output"
    rows.append(["score (lower runs first)", f"{explanation.score:.6g}", last])
    show_table(
        f"{title}{explanation.job.describe()}, policy {explanation.policy.name}",
        ["term", "value", "what moves the job"],
        rows,
        left=(0, 2),
    )
    for sentence in (*explanation.seen, *explanation.changes):
        say(f"  {sentence}")


def _show_order(explanations: list[Explanation], order: list[int]) -> None:
    rows = []
    for position, index in enumerate(order, start=1):
        explanation = explanations[index]
        rows.append([str(position), str(index + 1), f"{explanation.score:.6g}", explanation.job.describe()])
    show_table("Order (ties by submit time)", ["place", "job", "score", "its values"], rows, left=(0, 1, 3))


# ``policyfactory policy``: the catalogue, and one policy in full ------------------------------------------------------


@app.command("list")
def list_policies(*, as_json: option.Json = False) -> None:
    """List the known policies; the queue is sorted by the formula, lower runs first.

    Example: policyfactory policy list
    """
    from policyfactory.policy.store import ALIASES, CATALOGUE

    if as_json:
        from policyfactory.policy.store import model_to_json, published_model

        print_json([model_to_json(published_model(policy)) for policy in CATALOGUE.values()])
        return
    rows = [
        [policy.name, cut(policy.formula, 45), "yes" if policy.is_static else "no", policy.description]
        for policy in CATALOGUE.values()
    ]
    show_table("Policies (lower runs first)", ["name", "formula", "static", "what it does"], rows, left=(0, 1, 2, 3))
    aliases = ", ".join(f"{alias} = {name}" for alias, name in ALIASES.items())
    note(f"Also known as: {aliases}.\nIn full: policyfactory policy show NAME")


@app.command("show")
def show_policy(name: PolicyArgument, *, as_json: option.Json = False) -> None:
    """Show a policy: formula, LaTeX, units, epoch, source, and the shortest formula of the same order.

    Example: policyfactory policy show SAF
    """
    from policyfactory.policy.store import model_to_json, resolve_model

    model = resolve_model(name)
    if as_json:
        print_json(model_to_json(model))
        return
    from policyfactory.policy.algebra import SHOWN_DIGITS

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
    from policyfactory.core.text import format_duration
    from policyfactory.policy.algebra import shorter_formula
    from policyfactory.policy.expression import VARIABLES, to_latex

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
    if policy.backfill_formula:
        facts.append(("backfilling", f"jobs behind the first are tried by {policy.backfill_formula}, lower ones first"))
    facts += [("what it does", policy.description), ("source", policy.source)]
    return [(key, value) for key, value in facts if value]


def _network_facts(network: Network) -> list[tuple[str, str]]:
    from policyfactory.policy.policy import Policy

    facts = [(f"input {number}", formula) for number, formula in enumerate(network.inputs, start=1)]
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
