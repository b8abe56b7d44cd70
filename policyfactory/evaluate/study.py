"""A whole protocol: its logs read, its experiments run one after the other, its claims judged."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from policyfactory.core.errors import UsageError
from policyfactory.evaluate.cases import from_plan
from policyfactory.evaluate.claims import claim_sections
from policyfactory.evaluate.experiment import Experiment, Outcome, Watch
from policyfactory.evaluate.experiments import run_experiment
from policyfactory.evaluate.logs import ReadLog, read_log
from policyfactory.evaluate.precision import Precision
from policyfactory.evaluate.protocol import Protocol
from policyfactory.evaluate.resume import SimulationJournal, description
from policyfactory.evaluate.work import ScheduleSink
from policyfactory.parallel.workers import Notify, Workers
from policyfactory.report.sections import Section

__all__ = ["RunSettings", "Study", "read_logs", "run_protocol", "selected"]


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Study:
    """What a protocol found.

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
    """

    protocol: Protocol
    logs: Mapping[str, ReadLog]
    outcomes: tuple[Outcome, ...]
    claims: tuple[Section, ...]

    @property
    def jobs_simulated(self) -> int:
        """Jobs of all simulations together."""
        return sum(outcome.evaluation.jobs_simulated for outcome in self.outcomes)


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
    _check("experiment", experiments, [plan.name for plan in protocol.experiments], protocol.name)
    _check("log", logs, list(protocol.logs), protocol.name)
    plans = [plan for plan in protocol.experiments if not experiments or plan.name in experiments]
    if logs:
        kept = [(plan, tuple(log for log in plan.logs if log in logs)) for plan in plans]
        plans = [dataclasses.replace(plan, logs=own) for plan, own in kept if own]
    if not plans:
        raise UsageError(f"protocol {protocol.name}: none of the experiments has one of the logs {', '.join(logs)}")
    return dataclasses.replace(protocol, experiments=tuple(plans))


def _check(what: str, names: Sequence[str], known: Sequence[str], protocol: str) -> None:
    for name in names:
        if name not in known:
            raise UsageError(f"protocol {protocol} has no {what} {name!r}; it has {', '.join(known)}")


def read_logs(
    protocol: Protocol, folders: Sequence[Path] = (), notify: Callable[[ReadLog], None] | None = None
) -> dict[str, ReadLog]:
    """Read the logs that the experiments use, each once.

    Parameters
    ----------
    protocol : Protocol
        What is to be run.
    folders : sequence of Path
        Where files are looked for, in this order; the protocol's own folder is the last.
    notify : callable, optional
        Called with each log as it is read.

    Raises
    ------
    InputError, WorkloadError, UsageError
        If a log cannot be found, read or used.
    """
    used = {name for plan in protocol.experiments for name in plan.logs}
    logs = {}
    for name, source in protocol.logs.items():
        if name in used:
            logs[name] = read_log(name, source, [*folders, protocol.folder])
            if notify is not None:
                notify(logs[name])
    return logs


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class RunSettings:
    """How a protocol is run, which changes nothing of what is found but its precision.

    Parameters
    ----------
    workers : Workers or int
        Who simulates; a number means so many threads.
    precision : Precision or None
        Draw more resampled logs until the intervals are as narrow.
    keep : ScheduleSink or None
        Who keeps the schedules.
    watch : callable or None
        Returns who counts the progress of an experiment.
    partial : Path or None
        File of the finished simulations: the same run goes on from it. Who has written the result removes it.
    overwrite : bool
        Drop the partial file of another run.
    beside : mapping of str to str
        What else must be equal for the same run to go on.
    notify : callable
        Called with a sentence of what an earlier run had finished, and when a worker was lost.
    """

    workers: Workers | int = 1
    precision: Precision | None = None
    keep: ScheduleSink | None = None
    watch: Callable[[Experiment], Watch] | None = None
    partial: Path | None = None
    overwrite: bool = False
    beside: Mapping[str, str] = dataclasses.field(default_factory=dict)
    notify: Notify = lambda _: None


def run_protocol(
    protocol: Protocol, logs: Mapping[str, ReadLog] | None = None, settings: RunSettings | None = None
) -> Study:
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
    # All are prepared first: what cannot be run is reported before hours of work.
    experiments = [from_plan(plan, known) for plan in protocol.experiments]
    if how.partial is None:
        outcomes = tuple(_outcomes(experiments, how, None))
    else:
        run = description(protocol.experiments, known, how.precision) | dict(how.beside)
        with SimulationJournal(how.partial, run, experiments, how.precision, overwrite=how.overwrite) as partial:
            if resumed := partial.in_words():
                how.notify(resumed)
            outcomes = tuple(_outcomes(experiments, how, partial))
    return Study(protocol, known, outcomes, tuple(claim_sections(protocol.claims, outcomes)))


def _outcomes(
    experiments: Iterable[Experiment], how: RunSettings, partial: SimulationJournal | None
) -> Iterable[Outcome]:
    for experiment in experiments:
        finished = None if partial is None else partial.of(experiment.name)
        yield run_experiment(
            experiment,
            workers=how.workers,
            precision=how.precision,
            keep=how.keep,
            watch=None if how.watch is None else how.watch(experiment),
            finished=finished,
            notify=how.notify,
        )
        if finished is not None and finished.damaged:
            how.notify(f"{experiment.name}: {finished.damaged:,} records that could not be read were done again")
