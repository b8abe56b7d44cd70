"""A whole protocol: its logs read, its experiments run one after the other, its claims judged; and the verb."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from policyfactory.core.errors import PolicyfactoryError, UsageError
from policyfactory.core.files import dump_toml
from policyfactory.core.options import changed, plain_value
from policyfactory.core.process import WorkCounter
from policyfactory.core.text import distinct, enumerated
from policyfactory.evaluation import precision as narrowing
from policyfactory.evaluation.experiment import Experiment, Outcome, with_cases
from policyfactory.evaluation.fidelity.compare import Fidelity
from policyfactory.evaluation.logs import ReadLog, read_log
from policyfactory.evaluation.options import RUN_OPTIONS
from policyfactory.evaluation.paper import claim_sections
from policyfactory.evaluation.precision import Precision
from policyfactory.evaluation.protocol import Places, Protocol, protocol_of
from policyfactory.evaluation.protocol_content import of_logs, plain_content
from policyfactory.evaluation.results_folder import Result
from policyfactory.evaluation.run import Finished, ScheduleSink, SimulationJournal, description, join, run_cases
from policyfactory.evaluation.standings import sections_of, value_tables, winners
from policyfactory.evaluation.verdict import gate_sections, refuse_runaway, replay_logs, verdict_of
from policyfactory.evaluation.words import closing_words, units_of
from policyfactory.parallel.workers import Notify, Workers
from policyfactory.policy.store import PolicyLike, resolve
from policyfactory.report.sections import Section
from policyfactory.simulation.cases import Case, CaseFacts
from policyfactory.simulation.rules import Rules
from policyfactory.statistics.compare import compare, compare_recorded
from policyfactory.statistics.evaluation import Evaluation
from policyfactory.statistics.summary import summarise, summarise_recorded
from policyfactory.workload.jobs import Workload
from policyfactory.workload.swf.files import log_name

_OF_PARTIAL = ("partial", "overwrite", "beside")  # fields of `RunSettings`


def selected(protocol: Protocol, experiments: Sequence[str] = (), logs: Sequence[str] = ()) -> Protocol:
    """Return the protocol with some of its experiments and logs only.

    Parameters
    ----------
    protocol : Protocol
        The whole.
    experiments, logs : sequence of str
        Names that are kept; none: all. An experiment without a log that is kept is left out.

    Raises
    ------
    UsageError
        If there is no such experiment or log, or nothing is left.
    """
    _check("experiment", experiments, [experiment.name for experiment in protocol.experiments], protocol.name)
    _check("log", logs, list(protocol.logs), protocol.name)
    chosen = [experiment for experiment in protocol.experiments if not experiments or experiment.name in experiments]
    if logs:
        kept = [(experiment, tuple(log for log in experiment.log_names if log in logs)) for experiment in chosen]
        chosen = [dataclasses.replace(experiment, log_names=names) for experiment, names in kept if names]
    if not chosen:
        raise UsageError(f"protocol {protocol.name}: none of the experiments has one of the logs {', '.join(logs)}")
    return dataclasses.replace(protocol, experiments=tuple(chosen))


def _check(what: str, names: Sequence[str], known: Sequence[str], protocol: str) -> None:
    for name in names:
        if name not in known:
            raise UsageError(f"protocol {protocol} has no {what} {name!r}; it has {', '.join(known)}")


def read_logs(protocol: Protocol, folders: Sequence[Path] = (), notify: Notify = lambda _: None) -> dict[str, ReadLog]:
    """Read the logs that the experiments use, each once.

    Parameters
    ----------
    protocol : Protocol
        What is to be run.
    folders : sequence of Path
        Where files are looked for, in this order; the protocol's own folder is the last.
    notify : callable
        Called with what was dropped and changed in each log as it is read, a sentence at a time.

    Raises
    ------
    InputError, WorkloadError, UsageError
        If a log is not there, or cannot be read or used.
    """
    used = {name for experiment in protocol.experiments for name in experiment.log_names}
    logs = {}
    for name, source in protocol.logs.items():
        if name in used:
            logs[name] = read_log(name, source, [*folders, protocol.folder])
            for sentence in logs[name].notes:
                notify(sentence)
    return logs


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class RunSettings:
    """How a protocol is run, which changes nothing of the result but its precision.

    Parameters
    ----------
    workers : Workers or int
        Who simulates; a number means so many threads.
    precision : Precision or None
        Draw more resampled logs until the intervals are as narrow.
    sink : ScheduleSink or None
        Who keeps the schedules.
    progress : callable or None
        Called with an experiment; returns who counts its simulations. None: nobody does.
    replay : callable
        Returns who counts how far the replay of a log on its site is, in %.
    partial : Path or None
        File of the finished simulations: the same run goes on from it. Who has written the result removes it.
    overwrite : bool
        Drop the partial file of another run.
    beside : mapping of str to str
        What else must be equal for the same run to go on.
    anyway : bool
        Go on where the queue of a log's own jobs runs away on their site.
    notify : callable
        Called with a sentence of what an earlier run had finished, and when a worker was lost.
    easy_beside : bool
        Under Slurm's rules, simulate all under EASY too.
    """

    workers: Workers | int = 1
    precision: Precision | None = None
    sink: ScheduleSink | None = None
    progress: Callable[[Experiment], WorkCounter] | None = None
    replay: Callable[[], WorkCounter] = WorkCounter
    partial: Path | None = None
    overwrite: bool = False
    beside: Mapping[str, str] = dataclasses.field(default_factory=dict)
    notify: Notify = lambda _: None
    anyway: bool = False
    easy_beside: bool = True

    def counter(self, experiment: Experiment) -> WorkCounter:
        """Return who counts the simulations of an experiment."""
        return WorkCounter() if self.progress is None else self.progress(experiment)


def run_protocol(
    protocol: Protocol, logs: Mapping[str, ReadLog] | None = None, settings: RunSettings | None = None
) -> Result:
    """Run all experiments of a protocol and judge its claims.

    Parameters
    ----------
    protocol : Protocol
        What to run.
    logs : mapping of str to ReadLog, optional
        Of `read_logs`; without it they are read from the protocol's folder or the folder ``traces``.
    settings : RunSettings, optional
        How to run it.

    Raises
    ------
    InputError, WorkloadError, UsageError, EvaluationError
        If a log cannot be read, or an experiment not be run.
    WorkersError, OutputError
        If the workers are lost for good, or the partial file belongs to another run or cannot be written.
    """
    how = settings or RunSettings()
    known = read_logs(protocol, [Path("traces")]) if logs is None else logs
    # All are prepared first: what cannot be run is refused before hours of work.
    experiments = [with_cases(experiment, known) for experiment in protocol.experiments]
    for sentence in dict.fromkeys(sentence for experiment in experiments for sentence in experiment.warnings):
        how.notify(sentence)
    # A site that is far from its record spoils all: it is said before the hours of work too.
    gates = [
        replay_logs(experiment.rules, {name: known[name].workload for name in experiment.logs}, how.notify, how.replay)
        for experiment in experiments
    ]
    if not how.anyway:
        refuse_runaway(gates)
    if how.partial is None:
        outcomes = tuple(_outcomes(experiments, how, None))
    else:
        run = description(protocol.experiments, known, how.precision) | dict(how.beside)
        with SimulationJournal(how.partial, run, experiments, how.precision, overwrite=how.overwrite) as partial:
            if words := partial.in_words():
                how.notify(words)
            outcomes = tuple(_outcomes(experiments, how, partial))
    outcomes = tuple(_beside(outcome, found) for outcome, found in zip(outcomes, gates, strict=True))
    outcomes = tuple(dataclasses.replace(outcome, verdict=verdict_of(outcome)) for outcome in outcomes)
    return Result(protocol, known, outcomes, tuple(claim_sections(protocol.claims, outcomes)))


def _beside(outcome: Outcome, found: Mapping[str, Fidelity]) -> Outcome:
    """Return an outcome with how near its site is to the record, behind what is said in short."""
    first, *others = outcome.sections
    return dataclasses.replace(outcome, fidelity=found, sections=(first, *gate_sections(found), *others))


def _outcomes(
    experiments: Iterable[Experiment], how: RunSettings, partial: SimulationJournal | None
) -> Iterable[Outcome]:
    for experiment in experiments:
        finished = None if partial is None else partial.of(experiment.name)
        yield run_experiment(experiment, how, finished=finished)
        if finished is not None and finished.damaged:
            how.notify(f"{experiment.name}: {finished.damaged:,} records that could not be read were done again")


# One experiment. ------------------------------------------------------------------------------------------------------


def run_experiment(
    experiment: Experiment,
    settings: RunSettings | None = None,
    *,
    finished: Finished | None = None,
    **options: Any,
) -> Outcome:
    """Simulate all contenders on all cases, look at every schedule, and conclude.

    Parameters
    ----------
    experiment : Experiment
        What to simulate.
    settings : RunSettings, optional
        How to run it; ``finished`` stands for the partial file.
    finished : Finished, optional
        What an earlier run has finished, and where what is finished now is kept.
    **options
        Fields of `RunSettings`, in place of those of ``settings``: ``workers=2``. Those about the partial file are
        refused: it belongs to a protocol.

    Raises
    ------
    UsageError, EvaluationError, WorkloadError
        If the experiment cannot be run.
    WorkersError, OutputError
        If the workers are lost for good, or what is finished cannot be kept.
    """
    how = changed(settings or RunSettings(), options)
    misplaced = [name for name in _OF_PARTIAL if name in options]
    if misplaced or (how.partial is not None and finished is None):
        raise UsageError(
            f"experiment {experiment.name}: {', '.join(misplaced) or 'partial'} would be ignored, since only a "
            "protocol keeps a partial file; call run_protocol, or pass finished="
        )
    counter = how.counter(experiment)

    def simulated(cases: Sequence[Case]) -> Evaluation:
        return run_cases(
            dataclasses.replace(experiment, cases=tuple(cases)),
            workers=how.workers,
            sink=how.sink,
            counter=counter,
            finished=finished,
            notify=how.notify,
        )

    for analysis in experiment.analyses:
        analysis.check(experiment.cases, experiment.policies)
    evaluation = simulated(experiment.cases)
    sentences: tuple[str, ...] = ()
    if how.precision is not None:
        evaluation = _refine(experiment, how.precision, simulated, evaluation)
        sentences = narrowing.in_words(experiment, evaluation, how.precision)
    outcome = conclude(experiment, evaluation, sentences)
    if experiment.rules.backfill != "slurm" or not how.easy_beside:
        return outcome
    beside, leads = under_easy(experiment, evaluation, how.workers, how.notify)
    return dataclasses.replace(outcome, words=(*outcome.words, *leads), sections=(*outcome.sections, beside))


def conclude(experiment: Experiment, evaluation: Evaluation, sentences: tuple[str, ...] = ()) -> Outcome:
    """Return what the values mean.

    Parameters
    ----------
    experiment : Experiment
        What was simulated.
    evaluation : Evaluation
        The values, and what its analyses saw.
    sentences : tuple of str
        Whether the intervals are as narrow as was asked for.
    """
    how: dict[str, Any] = {"statistic": experiment.statistic, "seed": experiment.seed}
    rows, pairs = summarise(evaluation, **how), compare(evaluation, **how)
    words = (*closing_words(evaluation, rows, pairs, seed=experiment.seed), *sentences)
    outcome = Outcome(
        experiment=experiment,
        evaluation=evaluation,
        summaries=tuple(rows),
        comparisons=tuple(pairs),
        words=words,
        sections=(),
        precision=sentences,
        recorded_summaries=tuple(summarise_recorded(evaluation, **how)),
        recorded_comparisons=tuple(compare_recorded(evaluation, **how)),
    )
    seen = zip(experiment.observers, evaluation.observed, strict=True) if evaluation.observed else ()
    concluded = [analysis.conclude(evaluation, kept) for analysis, kept in seen]
    sections = [*sections_of(outcome), *concluded]
    # An analysis can be asked for twice.
    names = distinct(section.name for section in sections)
    named = (dataclasses.replace(section, name=name) for section, name in zip(sections, names, strict=True))
    # What analyses saw, all schedules perhaps, is concluded from now and need not stay.
    return dataclasses.replace(outcome, sections=tuple(named), evaluation=dataclasses.replace(evaluation, observed=[]))


def _refine(
    experiment: Experiment,
    precision: Precision,
    simulate: Callable[[Sequence[Case]], Evaluation],
    measured: Evaluation,
) -> Evaluation:
    """Add batches of resampled logs until the target is reached or cannot be."""
    counts = {log: max(case.number for case in experiment.cases if case.log == log) for log in experiment.more}
    while True:
        widths = narrowing.widest(experiment, measured)
        batch = narrowing.next_batch(experiment, widths, counts, precision)
        if not batch:
            return measured
        measured = join(
            measured, simulate([experiment.more[log](number) for log, numbers in batch.items() for number in numbers])
        )
        counts |= {log: numbers[-1] for log, numbers in batch.items()}


# What a run did and took ----------------------------------------------------------------------------------------------

# What a run did and took, for its manifest and for what is said when it does not come to its end.


class RunTally(WorkCounter):
    """Counts the simulations of all experiments of a run, from now on.

    Parameters
    ----------
    workers : Workers
        Who simulates.
    """

    def __init__(self, workers: Workers) -> None:
        self._done = self._resumed = self._jobs = 0
        self.kept = False
        self._workers = workers
        self._shown = WorkCounter()
        self._begin = time.perf_counter(), time.process_time()

    def run(
        self,
        protocol: Protocol,
        logs: Mapping[str, ReadLog],
        settings: RunSettings,
        kept: Callable[[BaseException, str, Path], None],
    ) -> Result:
        """Run a protocol, as `run_protocol` does.

        Parameters
        ----------
        protocol, logs, settings
            As for `run_protocol`.
        kept : callable
            Called if the run is interrupted: with the exception, what is kept, and in which file.
        """

        def counting(shown: WorkCounter) -> WorkCounter:
            self._shown = shown
            return self

        counted = dataclasses.replace(settings, progress=lambda experiment: counting(settings.counter(experiment)))
        try:
            return run_protocol(protocol, logs, counted)
        except (KeyboardInterrupt, PolicyfactoryError) as stop:
            if settings.partial is not None and (finished := self._done + self._resumed):
                self.kept = True
                kept(stop, f"{finished:,} finished simulations", settings.partial)
            raise

    def expect(self, count: int) -> None:
        """Show that more simulations are to be done."""
        self._shown.expect(count)

    def resumed(self, count: int) -> None:
        """Count simulations that an earlier run has finished."""
        self._resumed += count
        self._shown.resumed(count)

    def done(self, amount: int) -> None:
        """Count a simulation of so many jobs."""
        self._done += 1
        self._jobs += amount
        self._shown.done(amount)

    def measured(self) -> dict[str, Any]:
        """Return seconds and speeds until now, for the manifest."""
        seconds, cpu = time.perf_counter() - self._begin[0], time.process_time() - self._begin[1]
        who = self._workers
        measured: dict[str, Any] = {
            "seconds": round(seconds, 3),
            "jobs_simulated": self._jobs,
            "jobs_per_second": round(self._jobs / seconds),
            "backend": who.backend,
            # Of a cluster nobody knows how many: workers come and go.
            "workers": who.count if who.scheduler is None else None,
            "simulations_done": self._done,
            "simulations_resumed": self._resumed,
        }
        if who.backend == "threading":
            # Of other processes nothing is known.
            measured |= {"cpu_seconds": round(cpu, 3), "jobs_per_cpu_second": round(self._jobs / cpu)}
        return measured


# What the literature's scheduler --------------------------------------------------------------------------------------

# What the literature's scheduler, EASY, makes of the same policies and cases, beside a verdict under Slurm's rules.


NAME = "easy"
_EASY = (
    "Most of the literature simulates EASY on one pool of processors, and these are the policies' values under that "
    "(--backfill easy says more)."
)


def under_easy(
    experiment: Experiment, evaluation: Evaluation, workers: Workers | int, notify: Notify
) -> tuple[Section, Sequence[str]]:
    """Return the policies' values under EASY, and in words whether another one would lead.

    Parameters
    ----------
    experiment : Experiment
        Under Slurm's rules.
    evaluation : Evaluation
        Its values; its cases are simulated again.
    workers : Workers or int
        Who simulates.
    notify : callable
        Called with a sentence when a worker was lost.
    """
    easy = dataclasses.replace(
        experiment,
        cases=tuple(_easy_case(experiment, facts) for facts in evaluation.cases),
        rules=_as_easy(experiment.rules),
        analyses=(),
        recorded=False,
    )
    other = run_cases(easy, workers=workers, notify=notify)
    slurm, theirs = (
        tuple(summarise(run, statistic=experiment.statistic, seed=experiment.seed)) for run in (evaluation, other)
    )
    outcome = Outcome(easy, other, theirs)
    metric = evaluation.metrics[0]
    leads = _leads(metric, winners(slurm, metric), winners(theirs, metric))
    sites = dict.fromkeys(
        case.rules.site.assumed for case in experiment.cases if case.rules is not None and case.rules.site is not None
    )
    paragraphs = (
        *(text for text in sites if text),
        f"What is said above holds under Slurm's own rules. {_EASY}",
        *leads,
    )
    return Section(NAME, "The same under EASY", paragraphs, value_tables(outcome, units_of(theirs))), leads


def _easy_case(experiment: Experiment, facts: CaseFacts) -> Case:
    known = {(case.log, case.number): case for case in experiment.cases}
    case = known.get((facts.log, facts.number)) or experiment.more[facts.log](facts.number)
    return dataclasses.replace(case, rules=None if case.rules is None else _as_easy(case.rules))


def _as_easy(rules: Rules) -> Rules:
    return dataclasses.replace(rules, backfill="easy", site=None)


def _leads(metric: str, slurm: dict[str, str | None], theirs: dict[str, str | None]) -> Sequence[str]:
    """Return on which logs the same policy leads in the deciding metric, and on which another one does."""
    same = [log for log, name in slurm.items() if name is not None and theirs.get(log) == name]
    turned = [log for log, name in slurm.items() if name is not None and theirs.get(log) not in {None, name}]
    sentences = [
        f"{log}: {theirs[log]} leads in {metric} under EASY, {slurm[log]} under Slurm's rules." for log in turned
    ]
    if same:
        sentences.insert(0, f"On {enumerated(same)} the same policy leads in {metric} under EASY, too.")
    return [" ".join(sentences)] if sentences else []


# The verb: policies compared on logs, case by case, with what says how certain that is --------------------------------


Log = Workload | Path | str


def evaluate(
    logs: Log | Sequence[Log],
    policies: str | Sequence[PolicyLike],
    *,
    workers: Workers | int = 1,
    **options: Any,
) -> Result:
    """Simulate policies on logs and say which is better, by how much, and how certain that is.

    Parameters
    ----------
    logs : Workload, or path of a log, or sequence of these
        What the policies run on.
    policies : sequence of Policy, or name of one, or model, or its file, or fit
        With distinct names; the first is the baseline.
    workers : Workers or int
        Who simulates; a number means so many threads. The result does not depend on it.
    **options
        Those of ``policyfactory evaluate`` with ``_`` for ``-``, in the same words: ``windows="10x15d"``,
        ``threshold="20h"``, ``metrics=["mean_bsld"]``, ``precision="2%"``; docs/commands.md has them all.

    Raises
    ------
    UsageError
        If there is no such option, a value is not what it must be, or two exclude each other.
    InputError, WorkloadError, EvaluationError
        If a log cannot be read or used.
    """
    options = {name: plain_value(value) for name, value in options.items()}
    given = list(logs) if isinstance(logs, Sequence) and not isinstance(logs, str) else [logs]
    tables = of_logs(_named(log) for log in given)
    run = {name: options.pop(name, None) for name in RUN_OPTIONS}
    if isinstance(run["precision"], float):
        run["precision"] = str(run["precision"])
    names = policies.split(",") if isinstance(policies, str) else policies
    if not isinstance(names, Sequence):
        raise UsageError(f"{ascii(policies)[:60]} is no list of policies; give names, files or policies in a list")
    content = plain_content({"policies": [], **options}, tables, "call")
    _check_jobs(given, options)
    places = Places(Path())
    contenders = [places.policy(str(name)) if isinstance(name, str | Path) else resolve(name) for name in names]
    protocol = protocol_of(content, by="call", policies=contenders)
    protocol = dataclasses.replace(protocol, hashes={**protocol.hashes, **places.hashes})
    read = {
        name: ReadLog.of_jobs(name, source, log) if isinstance(log, Workload) else read_log(name, source, [Path()])
        for log, (name, source) in zip(given, protocol.logs.items(), strict=True)
    }
    result = run_protocol(protocol, read, RunSettings(workers, Precision.of(run, "call")))
    content["experiments"][0]["policies"] = [policy.name for policy in contenders]
    text = f"# As evaluated from Python, where jobs and policies may have been objects\n{dump_toml(content)}"
    return dataclasses.replace(result, text=text)


def _named(log: Log) -> tuple[str, Mapping[str, Any]]:
    if not isinstance(log, Workload | Path | str):
        raise UsageError(f"{ascii(log)[:60]} is no workload; a Workload or the path of a log is expected")
    return (log.name, {"file": log.name}) if isinstance(log, Workload) else (log_name(Path(log)), {"file": str(log)})


def _check_jobs(logs: Sequence[Log], options: Mapping[str, Any]) -> None:
    """Refuse options that say how a file is read where there is none."""
    reading = ("preset", "processors", "force_processors", "estimate_missing", "assume", "predictions")
    wrong = [name for name in reading if name in options]
    if wrong and any(isinstance(log, Workload) for log in logs):
        raise UsageError(
            f"{', '.join(wrong)}: the jobs are read already; say it to policyfactory.read, or give the path of the log"
        )
