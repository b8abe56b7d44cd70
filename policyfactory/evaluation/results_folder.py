"""A study as files: results.csv, evaluation.json, report.html, every table and picture, the protocol, a manifest.

``results.csv``, ``evaluation.json``, the report and what it shows are the same, byte for byte, whenever the same thing
is evaluated, for any number of workers; what differs from run to run (command line, speed) is in ``manifest.json``.
"""

from __future__ import annotations

import contextlib
import dataclasses
import html
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

import numpy as np

from policyfactory.core.files import (
    Manifest,
    atomic_write,
    check_directory,
    digest_of,
    dump_json,
    exclusive,
    refuse_earlier,
    remove_file,
    replaced_whole,
    together,
)
from policyfactory.core.inputs import sha256_bytes
from policyfactory.core.picture import keeps_settings
from policyfactory.core.text import counted, csv_text, enumerated, format_duration, plain
from policyfactory.evaluation.experiment import Experiment, Outcome
from policyfactory.evaluation.logs import ReadLog
from policyfactory.evaluation.paper import PublishedValue, reference_values
from policyfactory.evaluation.picture import draw_boxes
from policyfactory.evaluation.protocol import Protocol
from policyfactory.evaluation.standings import boards_of, forests_of, winners
from policyfactory.evaluation.verdict import gates_as_dict
from policyfactory.evaluation.words import invented_share, period_in_words, rules_in_words
from policyfactory.policy.algebra import round_coefficients
from policyfactory.policy.policy import Policy
from policyfactory.report.files import Drawings, csv_of, save_sections
from policyfactory.report.page import BoardGroup, Card, Page, render
from policyfactory.simulation.metrics import METRICS
from policyfactory.site.file import dump_site
from policyfactory.site.fits import lay_out
from policyfactory.statistics.compare import Comparison
from policyfactory.statistics.intervals import LEVEL, MIN_CASES, RESAMPLES
from policyfactory.statistics.summary import worst_off

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from policyfactory.evaluation.options import ExperimentTable
    from policyfactory.report.sections import Section
    from policyfactory.simulation.cases import CaseFacts
    from policyfactory.simulation.rules import Rules
    from policyfactory.simulation.tuning.tuner import Contender
    from policyfactory.site.model import Site
    from policyfactory.statistics.evaluation import Evaluation
    from policyfactory.workload.jobs import Workload

CLAIMS_FOLDER = "claims"
_OURS = ("results.csv", "evaluation.json", "report.html")


@dataclasses.dataclass(frozen=True, slots=True, eq=False, repr=False)
class Result:
    """The result of a protocol.

    Parameters
    ----------
    protocol : Protocol
        What was run.
    logs : dict of str to ReadLog
        Its logs.
    outcomes : tuple of Outcome
        Of each experiment.
    claims : tuple of Section
        Which of the paper's conclusions survive.
    text : str
        What was run, as the text of a protocol.
    """

    protocol: Protocol
    logs: Mapping[str, ReadLog]
    outcomes: tuple[Outcome, ...]
    claims: tuple[Section, ...] = ()
    text: str = ""

    @property
    def hashes(self) -> dict[str, str]:
        """SHA-256 of each file that was read, by its path."""
        read = {name: digest for log in self.logs.values() for name, digest in log.hashes.items()}
        return {**read, **self.protocol.hashes}

    @property
    def jobs_simulated(self) -> int:
        """Jobs of all simulations together."""
        return sum(outcome.evaluation.jobs_simulated for outcome in self.outcomes)

    @property
    def outcome(self) -> Outcome:
        """Values, summaries and comparisons of the first experiment, as all below."""
        return self.outcomes[0]

    @property
    def comparisons(self) -> tuple[Comparison, ...]:
        """Each policy against the first, by log and metric: difference, interval, verdict."""
        return self.outcome.comparisons

    @property
    def verdicts(self) -> dict[tuple[str, str, str], str]:
        """The verdict on each log, metric and policy: ``better``, ``worse``, ``no difference``, ``too few cases``."""
        return {(row.log, row.metric, row.policy): row.verdict for row in self.comparisons}

    def frame(self) -> pd.DataFrame:
        """Return the long table: log, case, policy, metric, value."""
        return self.outcome.evaluation.frame()

    def summary(self) -> str:
        """Return the conclusion, a paragraph for each log, and the verdict."""
        verdict = self.outcome.verdict
        parts = () if verdict is None else verdict.parts
        sentences = [text for part in parts for text in (f"{part.title}.", *part.sentences)]
        return "\n".join((*self.outcome.words, *sentences, *(verdict.caveats if verdict else ())))

    @keeps_settings
    def plot(self, metric: str | None = None) -> Figure:
        """Return the picture of a metric: a box of the cases for each policy, on each log.

        Parameters
        ----------
        metric : str, optional
            The metric that decides, without it.
        """
        return draw_boxes(self.outcome.evaluation, metric or self.outcome.evaluation.metrics[0])

    @keeps_settings
    def report(self, folder: Path | str, *, overwrite: bool = False) -> Path:
        """Write the report, the tables, the pictures and the protocol to a folder, as the command does.

        Parameters
        ----------
        folder : Path or str
            The folder; made if there is none.
        overwrite : bool
            Replace an earlier evaluation in it.

        Returns
        -------
        Path
            The page, ``report.html``.

        Raises
        ------
        OutputError
            If it holds an evaluation already, or cannot be written.
        """
        directory = Path(folder)
        about = ("evaluation", "policyfactory.evaluate", self.protocol.seed)
        manifest = Manifest(*about, self.hashes, protocol_dict(self), {})
        with room(directory, overwrite=overwrite) as work_folder:
            write_report(self, work_folder, manifest, self.text)
        return directory / "report.html"

    def __repr__(self) -> str:
        evaluation = self.outcome.evaluation
        logs = f"{len(evaluation.cases)} cases of {', '.join(evaluation.logs)}"
        return f"Result({', '.join(evaluation.policies)}; {logs}; {', '.join(evaluation.metrics)})"

    def _repr_html_(self) -> str:
        paragraphs = "".join(f"<p>{html.escape(text)}</p>" for text in self.outcome.words)
        return f"<div><strong>{html.escape(repr(self))}</strong>{paragraphs}</div>"


def protocol_dict(study: Result) -> dict[str, Any]:
    """Return everything that determines the numbers, as JSON values.

    Parameters
    ----------
    study : Result
        What was found.
    """
    protocol = study.protocol
    return {
        "name": protocol.name,
        "seed": protocol.seed,
        "logs": {name: log.account for name, log in study.logs.items()},
        "experiments": [setting(outcome.experiment, outcome.evaluation) for outcome in study.outcomes],
    }


def as_dict(study: Result) -> dict[str, Any]:
    """Return all of it but the values of single cases, as JSON values: the content of ``evaluation.json``.

    Parameters
    ----------
    study : Result
        What was found.
    """
    protocol = study.protocol
    as_json: dict[str, Any] = plain(
        {
            "kind": KIND,
            "schema_version": EVALUATION_SCHEMA,
            "title": protocol.title,
            "source": protocol.source,
            "about": protocol.about,
            "protocol": protocol_dict(study),
            "experiments": {outcome.experiment.name: finding(outcome) for outcome in study.outcomes},
            "claims": [{"title": section.title, "words": list(section.paragraphs)} for section in study.claims],
        }
    )
    return as_json


def write_report(
    study: Result, directory: Path, manifest: Manifest, protocol_text: str, others: Iterable[Path] = ()
) -> list[str]:
    """Write all files of a study; they replace those of an earlier one.

    Parameters
    ----------
    study : Result
        What was found.
    directory : Path
        An existing folder.
    manifest : Manifest
        Without outputs.
    protocol_text : str
        The protocol as it was run, TOML.
    others : iterable of Path
        Files below the folder that are written already and belong to the report.

    Returns
    -------
    list of str
        Names of the files in the folder itself.

    Raises
    ------
    OutputError
        If a file cannot be written.
    """
    drawings = Drawings()
    page = render(page_of(study, manifest, protocol_text), drawings)
    evaluations = {outcome.experiment.name: outcome.evaluation for outcome in study.outcomes}
    weeks = weeks_csv(evaluations)
    texts = {
        "report.html": page,
        "results.csv": results_csv(evaluations),
        **({"weeks.csv": weeks} if weeks else {}),
        "evaluation.json": dump_json(as_dict(study)),
        "protocol.toml": protocol_text,
    }
    with together():
        parts: list[Path] = []
        for outcome in study.outcomes:
            parts += save_sections(directory, outcome.experiment.name, outcome.sections, drawings)
        if study.claims:
            parts += save_sections(directory, CLAIMS_FOLDER, study.claims, drawings)
        return [path.name for path in save(directory, texts, manifest, [*parts, *others])]


# Files. ---------------------------------------------------------------------------------------------------------------


KIND = "evaluation"
MANIFEST_NAME = "manifest.json"


def results_csv(evaluations: Mapping[str, Evaluation]) -> str:
    """Return the long table as CSV: experiment, log, case, policy, metric, value (full precision; NaN is empty).

    Parameters
    ----------
    evaluations : mapping of str to Evaluation
        The values of each experiment.
    """
    tables = {name: evaluation.long_rows() for name, evaluation in evaluations.items()}
    return _long_csv(("log", "case", "policy", "metric", "value"), tables)


def weeks_csv(evaluations: Mapping[str, Evaluation]) -> str:
    """Return the values of whole logs by week: experiment, log, week, jobs, policy, metric, value; empty without weeks.

    Parameters
    ----------
    evaluations : mapping of str to Evaluation
        The values of each experiment.
    """
    tables = {name: evaluation.weekly_rows() for name, evaluation in evaluations.items() if evaluation.weekly}
    return _long_csv(("log", "week", "jobs", "policy", "metric", "value"), tables) if tables else ""


def _long_csv(headings: Sequence[str], tables: Mapping[str, Iterable[Sequence[str | float]]]) -> str:
    """Return the tables of several experiments as one in CSV; NaN is empty."""
    lines = [
        [csv_text(entry) if isinstance(entry, str) else "" if math.isnan(entry) else entry for entry in (name, *row)]
        for name, rows in tables.items()
        for row in rows
    ]
    return csv_of([("experiment", *headings), *lines])


def refuse_evaluation(directory: Path, *, overwrite: bool) -> None:
    """Refuse to replace an evaluation.

    Raises
    ------
    OutputError
        If the folder holds one, or files of its names, and ``overwrite`` is not given.
    """
    manifest = directory / MANIFEST_NAME if listed(directory) else None
    refuse_earlier(*(directory / name for name in _OURS), manifest, overwrite=overwrite)


@contextlib.contextmanager
def room(directory: Path, *, overwrite: bool, partial: Path | None = None) -> Iterator[Path]:
    """Give the folder in which to make an evaluation, alone; at the end it is that of the results.

    Parameters
    ----------
    directory : Path
        The folder of the results; made if there is none, and removed again if nothing gets into it.
    overwrite : bool
        Whether an earlier evaluation is replaced, as a whole and at the end.
    partial : Path, optional
        The journal of a run that did not come to its end: what is there is unfinished, and is gone on with.

    Raises
    ------
    OutputError
        If the folder holds an evaluation that is not to be replaced, or cannot be written.
    UsageError
        If the command reads a file of it.
    """
    unfinished = partial is not None and partial.exists()
    if not unfinished:
        refuse_evaluation(directory, overwrite=overwrite)
    created = [folder for folder in (directory, *directory.parents) if not folder.exists()]
    check_directory(directory)
    try:
        with exclusive(directory / _OURS[0]):
            earlier = [] if unfinished else earlier_files(directory)
            with replaced_whole(directory, earlier) as work_folder:
                yield work_folder
    except BaseException:
        with contextlib.suppress(OSError):
            for folder in created:
                folder.rmdir()
        raise


def earlier_files(directory: Path) -> list[str]:
    """Return the files of an evaluation in ``directory``, relative to it."""
    names = listed(directory)
    return [*names, *([MANIFEST_NAME] if names else []), *(name for name in _OURS if (directory / name).is_file())]


def listed(directory: Path) -> list[str]:
    """Return the files that an earlier evaluation wrote into ``directory``, by its manifest there.

    Parameters
    ----------
    directory : Path
        The folder of the results.
    """
    try:
        manifest = json.loads((directory / MANIFEST_NAME).read_text(encoding="utf-8"))
        return [str(name) for name in manifest["outputs"]] if manifest["kind"] == KIND else []
    except (OSError, ValueError, KeyError, TypeError):
        return []


def remove(directory: Path, names: Iterable[str]) -> None:
    """Remove files below ``directory``, and the folders that are empty then.

    Parameters
    ----------
    directory : Path
        The folder of the results; nothing outside it is touched, whatever the names say.
    names : iterable of str
        Paths relative to it.
    """
    top = directory.resolve()
    for name in names:
        relative = PurePosixPath(name)
        path = directory / relative
        if relative.is_absolute() or ".." in relative.parts or path.is_symlink() or not path.is_file():
            continue
        if not path.resolve().is_relative_to(top):
            continue
        remove_file(path)


def save(directory: Path, texts: Mapping[str, str], manifest: Manifest, others: Iterable[Path] = ()) -> list[Path]:
    """Write the texts, then the manifest with the digests of all outputs, and remove what an earlier run left.

    Parameters
    ----------
    directory : Path
        The folder of the results; exists.
    texts : mapping of str to str
        File name and content.
    manifest : Manifest
        Without outputs.
    others : iterable of Path
        Files below ``directory`` that are written already (pictures, starts).

    Returns
    -------
    list of Path
        The files of ``texts`` and the manifest.

    Raises
    ------
    OutputError
        If a file cannot be written.
    """
    earlier = listed(directory)
    written = [directory / name for name in texts]
    with together():
        for path, text in zip(written, texts.values(), strict=True):
            atomic_write(path, text)
        outputs = {path.relative_to(directory).as_posix(): digest_of(path) for path in sorted([*written, *others])}
        dataclasses.replace(manifest, outputs=outputs).write(directory / MANIFEST_NAME)
        # Nothing of two runs is mixed.
        remove(directory, (name for name in earlier if name not in outputs))
    return [*written, directory / MANIFEST_NAME]


# What a study found, on one screen: published values that are met, and each claim in words ----------------------------


def score_of(outcomes: Sequence[Outcome]) -> str:
    """Return how many published values are met; nothing if there are none.

    Parameters
    ----------
    outcomes : sequence of Outcome
        All experiments of a protocol.
    """
    values = [value for group in _by_source(outcomes).values() for value in group]
    if not values:
        return ""
    met = sum(value.met for value in values)
    return f"{met:,} of {counted(len(values), 'published value')} met to the printed digit"


def in_brief(study: Result) -> list[str]:
    """Return what is to be said of a protocol: what is met and what is not, claims, or else each experiment's verdict.

    Parameters
    ----------
    study : Result
        What was found.
    """
    lines = [f"{score}." for score in [score_of(study.outcomes)] if score]
    lines += [f"  {source}: {_met(values)}." for source, values in _by_source(study.outcomes).items()]
    lines += study.claims[0].paragraphs[1:] if study.claims else ()
    if lines:
        return lines
    for outcome in study.outcomes:
        about = outcome.experiment.title or outcome.experiment.name
        sentences = outcome.words[:1]
        if outcome.verdict is not None:
            sentences = tuple(f"{part.title}. {' '.join(part.sentences[:1])}" for part in outcome.verdict.parts)
        lines.append(f"{about}. {' '.join(sentences)}")
    return lines


def _by_source(outcomes: Iterable[Outcome]) -> dict[str, list[PublishedValue]]:
    """Return the published values by where they are printed."""
    found: dict[str, list[PublishedValue]] = {}
    for outcome in outcomes:
        for reference in outcome.experiment.references:
            values = reference_values(outcome.evaluation, reference, seed=outcome.experiment.seed)
            if values:
                found.setdefault(reference.source, []).extend(values)
    return found


def _met(values: Sequence[PublishedValue]) -> str:
    """Return how many values of one source are met, and on which logs others are not, and how far they are."""
    met, missed = sum(value.met for value in values), [value for value in values if not value.met]
    text = f"{met:,} of {len(values):,}"
    if not missed:
        return text
    parts = []
    for log in dict.fromkeys(value.log for value in missed):
        deviations = [abs(value.deviation) for value in missed if value.log == log and value.deviation is not None]
        far = f", up to {max(deviations):.2g} % away" if deviations else ""
        parts.append(f"{sum(value.log == log for value in missed):,} of {log}{far}")
    return f"{text}; not met are {enumerated(parts)}"


# The page of a study --------------------------------------------------------------------------------------------------

# The card of its logs, what decides, how the policies stand, and the evidence.


_CLAIMS = "claims"


def page_of(study: Result, manifest: Manifest, protocol_text: str) -> Page:
    """Return what the page of a study says.

    Parameters
    ----------
    study : Result
        What was found.
    manifest : Manifest
        How it was made.
    protocol_text : str
        The protocol as it was run, TOML.
    """
    protocol, outcomes = study.protocol, study.outcomes
    several = len(outcomes) > 1
    answers = list(study.claims[0].paragraphs[1:]) if study.claims else []
    groups = [BoardGroup("What the paper concludes", study.claims, _CLAIMS)] if study.claims else []
    forests = () if several or not outcomes else forests_of(outcomes[0])
    whole = {(board.log, board.metric, len(board.table.rows)) for board in forests}
    for outcome in outcomes:
        experiment = outcome.experiment
        if not several:
            answers += _in_short(outcome)
        elif not study.claims:
            answers += [f"{experiment.title}. {words}" for words in outcome.words]
        about = (_rules_line(experiment),) if several else ()
        heading = experiment.title or experiment.name
        # A table that stands in full at the head of the page is not shown again.
        boards = tuple(
            board for board in boards_of(outcome) if (board.log, board.metric, len(board.table.rows)) not in whole
        )
        groups.append(BoardGroup(heading, outcome.sections, experiment.name, about, boards))
    about_all = [paragraph.strip() for paragraph in protocol.about.split("\n\n") if paragraph.strip()]
    if not several:
        about_all += [_rules_line(outcome.experiment) for outcome in outcomes]
    return Page(
        title=protocol.title,
        about=tuple(about_all),
        source=protocol.source,
        answers=tuple(answers),
        groups=tuple(groups),
        protocol=protocol_text,
        # What differs between two runs of the same thing is in manifest.json: equal results are equal pages.
        manifest=dataclasses.replace(manifest, command="see manifest.json").as_dict(),
        verdict=None if several or not outcomes else outcomes[0].verdict,
        chosen="" if several or not outcomes else outcomes[0].chosen,
        choice="" if several or not outcomes else _choice(outcomes[0]),
        score=score_of(outcomes),
        cards=tuple(_card(log, study) for log in study.logs),
        forests=forests,
    )


def _in_short(outcome: Outcome) -> tuple[str, ...]:
    """Return what the analyses answer, then the closing words with what is said about their certainty."""
    answers = [answer for section in outcome.sections for answer in section.answers]
    in_short = [section.paragraphs for section in outcome.sections if section.name == "in-short"]
    return (*answers, *(in_short[0] if in_short else outcome.words))


def _choice(outcome: Outcome) -> str:
    """Return by what the chosen policy sorts the queue; nothing if none was chosen."""
    policy = next((contender for contender in outcome.evaluation.contenders if contender.name == outcome.chosen), None)
    if not isinstance(policy, Policy):
        return ""
    formula = round_coefficients(policy.expression).text() if policy.has_formula else policy.formula
    late = (
        "" if math.isinf(policy.threshold) else f"; jobs that have waited {format_duration(policy.threshold)} go first"
    )
    scan = f"; jobs are tried for backfilling by {policy.backfill_formula}" if policy.backfill_formula else ""
    return f"sorts the queue by {formula}, the lower value first{late}{scan}"


def _rules_line(experiment: Experiment) -> str:
    words = rules_in_words(experiment.rules, experiment.times_longest, experiment.sensitivity)
    return f"{words[0].upper()}{words[1:]}."


# The card of a log. ---------------------------------------------------------------------------------------------------


def _card(name: str, study: Result) -> Card:
    log = study.logs[name]
    cases = [case for outcome in study.outcomes for case in outcome.evaluation.cases if case.log == name]
    report, jobs = log.workload.cleaning, log.workload
    lasts, days = period_in_words(jobs)
    facts = {
        "machine": f"{jobs.machine:,} processors",
        "jobs": f"{len(jobs):,}" + (f" of {report.read:,} in the log" if report.dropped else ""),
        "measured": _measured(cases),
        "period": days or lasts,
        "offered load": f"{jobs.offered_load:.2f}, of the whole log" if math.isfinite(jobs.offered_load) else "",
        "recorded wait": _recorded_wait(jobs),
        "requests": _requests(log),
        "left out": f"{_share(report.dropped, report.read)} of the jobs" if report.source else "",
    }
    return Card(name, tuple((key, value) for key, value in facts.items() if value))


def _measured(cases: Sequence[CaseFacts]) -> str:
    if not cases:
        return ""
    kinds = {"window": "window", "resample": "resampled log", "log": "simulation"}
    each = [case.jobs for case in cases]
    jobs = f"{min(each):,} to {max(each):,} jobs each" if min(each) < max(each) else counted(each[0], "job")
    return f"{counted(len(cases), kinds[cases[0].kind])}, {jobs}"


def _recorded_wait(jobs: Workload) -> str:
    known = jobs.start >= jobs.submit
    if not known.any():
        return "not in the log"
    wait = (jobs.start - jobs.submit)[known] / jobs.ticks
    return (
        f"{format_duration(float(wait.mean()))} on average, half of the jobs {format_duration(float(np.median(wait)))}"
    )


def _requests(log: ReadLog) -> str:
    """Return what share of the requested times is not the log's; whose those are, a log does not say."""
    report = log.workload.cleaning
    if log.source.tsafrir is not None or (log.source.file is None and log.source.lublin is not None):
        return "made by a model"
    if not report.source:
        return ""
    share = invented_share(report)
    return f"{100 * share:.2g} % invented" if share else "as in the log"


def _share(part: int, of: int) -> str:
    return "none" if not part else f"{100 * part / max(of, 1):.2g} %"


# What was run and what was found, as JSON values: the content of ``evaluation.json`` ----------------------------------


EVALUATION_SCHEMA = 2


def _policy(policy: Policy) -> dict[str, Any]:
    return {
        "name": policy.name,
        "formula": policy.formula,
        "epoch": {"rule": policy.epoch.rule, "unix_time": policy.epoch.unix_time},
        "threshold_s": policy.threshold,
        **({"backfill_formula": policy.backfill_formula} if policy.backfill_formula else {}),
        "source": policy.source,
    }


def _contender(contender: Contender) -> dict[str, Any]:
    if isinstance(contender, Policy):
        return _policy(contender)
    fields = {field.name: getattr(contender, field.name) for field in dataclasses.fields(contender)}
    arms = [arm.name for arm in contender.arms]
    return {"name": contender.name, "tuner": {key: fields[key] for key in fields if key not in ("name", "arms")}} | {
        "arms": arms
    }


def _rules(rules: Rules) -> dict[str, Any]:
    site = {"site": None if rules.site is None else _site(rules.site)} if rules.backfill == "slurm" else {}
    return {
        "backfill": rules.backfill,
        "decide_by": rules.decide_by,
        "threshold_s": rules.threshold,
        "ties": rules.ties,
        "overrun": rules.overrun,
        "backfill_policy": None if rules.backfill_policy is None else _policy(rules.backfill_policy),
        "compatibility": rules.compatibility,
        **site,
    }


def _site(site: Site) -> dict[str, Any]:
    described = {
        "name": site.name,
        "sha256": sha256_bytes(dump_site(site).encode()),
        "nodes": len(site.node_names),
        "processors": int(lay_out(site).cores.sum()),
    }
    return described | ({"assumed": site.assumed} if site.assumed else {})


def setting(experiment: Experiment, evaluation: Evaluation) -> dict[str, Any]:
    """Return everything that determines an experiment's numbers, as JSON values.

    Parameters
    ----------
    experiment : Experiment
        What was simulated.
    evaluation : Evaluation
        The values.
    """
    ruled = {case.log: case.rules for case in experiment.cases if case.rules is not None}
    shared = experiment.rules
    thresholds = {log: rules.threshold for log, rules in ruled.items() if rules.threshold != shared.threshold}
    sites = {log: _site(rules.site) for log, rules in ruled.items() if rules.site is not None and shared.site is None}
    content = {
        "name": experiment.name,
        "title": experiment.title,
        **_axes(experiment.table),
        "rules": _rules(experiment.rules),
        "log_thresholds_s": thresholds,
        **({"log_sites": sites} if sites else {}),
        "policies": [_contender(contender) for contender in experiment.contenders],
        "baseline": evaluation.baseline,
        "metrics": [
            {"name": name, "unit": METRICS[name].unit, "lower_is_better": METRICS[name].lower_is_better}
            | {"description": METRICS[name].description}
            for name in evaluation.metrics
        ],
        "statistic": experiment.statistic,
        "analyses": [{"name": analysis.name} | _options(analysis) for analysis in experiment.analyses],
        "cases": [dataclasses.asdict(case) for case in evaluation.cases],
        "bootstrap": {
            "unit": "case",
            "level": LEVEL,
            "resamples": RESAMPLES,
            "seed": experiment.seed,
            "least_cases": MIN_CASES,
        },
    }
    # Only where they are: what is evaluated without them is described as ever.
    more = {"recorded": experiment.recorded, "left_out": experiment.left_out, "unscored": experiment.unscored}
    as_json: dict[str, Any] = plain(content | {name: value for name, value in more.items() if value})
    return as_json


def _axes(table: ExperimentTable) -> dict[str, Any]:
    drawn = table.resample
    return {
        "windows": None if table.windows is None else str(table.windows),
        "lead_in": None if table.lead_in is None else str(table.lead_in),
        "resample": None if drawn is None else {"weeks": drawn.length, "draw": drawn.draw},
        "skip": {log: list(numbers) for log, numbers in table.skip.items()},
        "load": table.load,
        "estimates": str(table.estimates),
    }


def _options(analysis: Any) -> dict[str, Any]:
    return dataclasses.asdict(analysis) if dataclasses.is_dataclass(analysis) else {}  # type: ignore[arg-type]


def finding(outcome: Outcome) -> dict[str, Any]:
    """Return what an experiment found but the values of single cases, as JSON values.

    Parameters
    ----------
    outcome : Outcome
        What was found.

    Returns
    -------
    dict
        ``winner`` is the policy that is best in the first metric, null where the logs do not agree or several are
        equally good; ``chosen`` the one that the verdict is on, if it was chosen before; ``recorded`` is there if the
        recorded schedule is shown.
    """
    evaluation = outcome.evaluation
    by_log = winners(outcome.summaries, evaluation.metrics[0])
    content = {
        "winner": next(iter(by_log.values())) if len(set(by_log.values())) == 1 else None,
        "winners": by_log,
        **({"chosen": outcome.chosen} if outcome.chosen else {}),
        "words": list(outcome.words),
        "verdict": None if outcome.verdict is None else dataclasses.asdict(outcome.verdict),
        "precision": list(outcome.precision),
        "summary": [dataclasses.asdict(row) for row in outcome.summaries],
        "differences": [dataclasses.asdict(row) for row in outcome.comparisons],
        "worst_off": {log: [dataclasses.asdict(row) for row in worst_off(evaluation, log)] for log in evaluation.logs},
    }
    as_json: dict[str, Any] = plain(content | _recorded(outcome) | gates_as_dict(outcome.fidelity))
    return as_json


def _recorded(outcome: Outcome) -> dict[str, Any]:
    """Return what was found of the recorded schedule; nothing if it is not shown."""
    if not outcome.recorded_summaries:
        return {}
    content: dict[str, Any] = {
        "summary": [dataclasses.asdict(row) for row in outcome.recorded_summaries],
        "differences": [dataclasses.asdict(row) for row in outcome.recorded_comparisons],
    }
    parts = {section.name: section_dict(section) for section in outcome.sections}
    return {"recorded": content | {name: parts[name] for name in ("replay",) if name in parts}}


def section_dict(section: Section) -> dict[str, Any]:
    """Return the words and the tables of a section as JSON values, a table as one object a row."""
    tables = {
        table.name: [
            {column.title: cell.value for column, cell in zip(table.columns, row, strict=True)} for row in table.rows
        ]
        for table in section.tables
    }
    as_json: dict[str, Any] = plain({"words": list(section.paragraphs), "tables": tables})
    return as_json
