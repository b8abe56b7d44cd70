"""Learn a policy from a log: the first half teaches, the third quarter chooses, the last quarter tests."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

from policyfactory.core.artefact import exclusive, sha256_bytes
from policyfactory.core.errors import WorkloadError
from policyfactory.core.options import changed
from policyfactory.core.units import DAY, parse_duration
from policyfactory.export.expressible import prepare
from policyfactory.learn.comparing import Compared, Comparing, Rival, compare_policies
from policyfactory.learn.files import POLICY, SCORES, check_folder, make_room, write_dated, write_policy
from policyfactory.learn.learned import Learned
from policyfactory.learn.options import LearnOptions
from policyfactory.learn.progress import Progress, Step
from policyfactory.learn.stages import fit_steps, fitted, place, rivals_of, score_jobs
from policyfactory.parallel.workers import Workers
from policyfactory.policy.store import Model
from policyfactory.trials.run import GenerateOptions
from policyfactory.workload.clean import clean
from policyfactory.workload.cutting import cut_between, in_order
from policyfactory.workload.jobs import Workload
from policyfactory.workload.swf.files import format_swf, log_name, read_swf, write_swf
from policyfactory.workload.swf.log import SwfLog, log_of_workload

__all__ = ["learn"]

# A tuple is 48 jobs, and a comparison of fewer jobs than a tuple has says nothing.
_FEWEST = 200
_STEPS = 9
_WINDOWS = 10
_LENGTHS = (15, 7, 3, 1)
_TITLES = {
    "training": "The first half of the jobs, to learn from",
    "choosing": "The third quarter, to choose by",
    "test": "The last quarter, to test the choice on",
}


def learn(
    log: Workload | SwfLog | Path | str,
    options: LearnOptions | None = None,
    *,
    output: Path | str | None = None,
    overwrite: bool = False,
    workers: Workers | int = 1,
    progress: Progress | None = None,
    **changes: Any,
) -> Learned:
    """Learn a policy from a log and test it on jobs that nothing has seen.

    Formulas are fitted to the scores of the first half of the jobs; on the third quarter they compete with the
    classical policies, and the best is chosen; the last quarter says what the choice is worth.

    Parameters
    ----------
    log : Workload, SwfLog, Path or str
        The jobs, or a file in the Standard Workload Format.
    options : LearnOptions, optional
        How to learn.
    output : Path or str, optional
        Folder for everything; an interrupted run is resumed by the same call. Without it all is in memory, and
        `Learned.save` writes it.
    overwrite : bool
        Replace what an earlier run left in the folder.
    workers : Workers or int
        Who works; a number means so many threads. The result does not depend on it.
    progress : Progress, optional
        Who hears how far the work is.
    **changes
        Fields of `LearnOptions`, in place of ``options`` or on top of them: ``tuples``, ``metric``, ``windows``, ...

    Raises
    ------
    UsageError
        If an option is outside its limits.
    WorkloadError
        If the log is too short, or cannot be used.
    OutputError
        If the folder holds a learned policy, or cannot be written.
    """
    chosen = changed(options or LearnOptions(), changes)
    work = _Work(_swf(log), chosen, None if output is None else Path(output), workers, progress or Progress())
    if work.folder is None:
        return work.run()
    check_folder(work.folder)
    # Not of the policy itself: the step that writes it holds that.
    with exclusive(work.folder / "learn"):
        make_room(work.folder, overwrite=overwrite)
        return work.run()


def _swf(log: Workload | SwfLog | Path | str) -> SwfLog:
    if isinstance(log, SwfLog):
        return log
    if not isinstance(log, Workload):
        return read_swf(log)
    if log.ticks != 1:
        raise WorkloadError(f"{log.name}: times in 1/{log.ticks} s; learn from a workload in seconds")
    return log_of_workload(log)


class _Work:
    """One run: the log, the options, and the steps that were begun."""

    def __init__(
        self, log: SwfLog, options: LearnOptions, folder: Path | None, workers: Workers | int, progress: Progress
    ) -> None:
        self.log = log
        self.options = options
        self.folder = folder
        self.workers = workers
        self.progress = progress
        self.begun = 0
        workload = clean(
            log, preset=options.preset, estimate_missing=options.estimate_missing, processors=options.processors
        )
        if len(workload) < _FEWEST:
            raise WorkloadError(
                f"{log.path}: {len(workload):,} jobs are left after cleaning, and {_FEWEST} are the least to learn "
                "from, choose by and test on; import a longer time"
            )
        unix_start = workload.unix_start
        # The day (UTC) on which the log begins: r has in production the size that it has in the tests.
        self.epoch = None if unix_start is None else unix_start // DAY * DAY
        self.last = None if unix_start is None else unix_start + int(workload.submit[-1]) // workload.ticks
        self.how = Comparing(
            options.metrics,
            options.windows or _windows(workload),
            options.threshold,
            options.preset,
            options.estimate_missing,
            options.processors,
        )

    def run(self) -> Learned:
        """Take all steps."""
        self._warn()
        options, progress = self.options, self.progress
        parts = self._parts()
        training = parts["training"].path
        numbers = ("--tuples", str(options.tuples), "--trials", str(options.trials), "--seed", str(options.seed))
        self._begin(
            "Random orders of the queue, and the score of running each job first",
            "generate", training, *numbers, "--output", self._place(SCORES), *self._reading(),
        )  # fmt: skip
        scores = score_jobs(
            parts["training"],
            GenerateOptions(options.tuples, options.trials, seed=options.seed),
            None if self.folder is None else self.folder / SCORES,
            preset=options.preset,
            processors=options.processors,
            workers=self.workers,
            progress=progress,
        )
        forms, polynomials = fit_steps(scores, self.folder, self._begin, progress)
        rivals = self._dated(rivals_of(fitted(forms, polynomials), self.folder))
        choosing = self._compare("The formulas against the classical policies", "choosing", parts, rivals)
        winner = choosing.winner
        # The baseline, and two that are hard to beat, stand beside the choice.
        named = {rival.name: rival for rival in rivals}
        beside = [named[name] for name in dict.fromkeys(("FCFS", "SAF", "F1", winner.name))]
        test = self._compare(
            f"The choice, {winner.name}, on jobs that had no part in the choice", "test", parts, beside
        )
        model = prepare(winner.model, threshold=parse_duration(options.threshold, unit=True))
        self._write(winner, model)
        return Learned(
            model,
            options,
            parts,
            scores,
            forms,
            polynomials,
            tuple(rivals),
            choosing,
            test,
            self.epoch,
            self.last,
            self.log,
        )

    def _warn(self) -> None:
        if self.how.windows is None:
            self.progress.warning(
                "the log is too short for several windows: each comparison is one case, without an interval"
            )
        if self.epoch is None:
            self.progress.warning(
                "the log has no date (UnixStartTime): r counts from the start of each window, which production has not"
            )

    def _begin(self, title: str, *command: str) -> None:
        self.begun += 1
        self.progress.begin(Step(self.begun, _STEPS, title, command))

    def _place(self, name: str) -> str:
        return place(self.folder, name)

    def _reading(self) -> tuple[str, ...]:
        machine = self.options.processors
        return ("--preset", self.options.preset, *(("--processors", str(machine)) if machine else ()))

    def _parts(self) -> dict[str, SwfLog]:
        """Cut the log in three, by number of jobs."""
        log, dropped = in_order(self.log)
        if dropped:
            self.progress.warning(f"{dropped:,} jobs without a submit time were left out")
        half, quarter = len(log) // 2, len(log) // 4
        skipped = {"training": 0, "choosing": half, "test": half + quarter}
        kept = {"training": half, "choosing": quarter, "test": None}
        parts = {}
        for part, title in _TITLES.items():
            path = self._place(f"{self.log.name}-{part}.swf")
            skip, jobs = skipped[part], kept[part]
            words = [*(["--skip", str(skip)] if skip else []), *(["--jobs", str(jobs)] if jobs is not None else [])]
            self._begin(title, "workload", "window", self.log.path, path, *words)
            piece = cut_between(log, skip=skip, jobs=jobs)
            digest = sha256_bytes(format_swf(piece))
            parts[part] = dataclasses.replace(piece, name=log_name(Path(path)), path=path, sha256=digest)
            if self.folder is not None:
                write_swf(parts[part], path)
            self.progress.cut(parts[part])
        return parts

    def _dated(self, rivals: list[Rival]) -> list[Rival]:
        """Let r count from the first day of the log in the rivals that have it.

        From the start of a window log10(r) is steep, a year after a fixed date it is flat: the same formula, another
        order.
        """
        if self.epoch is None:
            return rivals
        dated = [
            Rival(prepare(rival.model, epoch=self.epoch), self._place(f"dated/{rival.name}.json"))
            if "r" in rival.model.policy.variables
            else rival
            for rival in rivals
        ]
        if self.folder is not None:
            write_dated(dated, self.folder)
        return dated

    def _compare(self, title: str, part: str, parts: dict[str, SwfLog], rivals: list[Rival]) -> Compared:
        how, folder = self.how, self._place(part)
        words = (*self._reading(), "--estimate-missing", how.estimate_missing, "--threshold", how.threshold)
        words += ("--metrics", ",".join(how.metrics), *(("--windows", how.windows) if how.windows else ()))
        policies = ",".join(rival.source for rival in rivals)
        words += ("--output", folder, "--overwrite")
        self._begin(title, "evaluate", parts[part].path, "--policies", policies, *words)
        output = None if self.folder is None else Path(folder)
        return compare_policies(parts[part], rivals, how, output, workers=self.workers, progress=self.progress)

    def _write(self, winner: Rival, model: Model) -> None:
        options = self.options
        self._begin(
            "The policy as a file",
            "export", winner.source, "--to", "json", "--threshold", options.threshold, "--output", self._place(POLICY),
        )  # fmt: skip
        if self.folder is not None:
            inputs = {Path(self.log.path).name: self.log.sha256}
            path = write_policy(model, self.folder, options, inputs, self.how.windows, self.epoch)
            self.progress.wrote([path])


def _windows(workload: Workload) -> str | None:
    """Return windows of which a quarter of the jobs has several."""
    quarter = workload.submit[3 * len(workload) // 4 :]
    lasts = int(quarter[-1] - quarter[0]) // workload.ticks
    for days in _LENGTHS:
        if lasts >= _WINDOWS * days * DAY:
            return f"{days}d"
    jobs = len(quarter) // _WINDOWS
    return f"{_WINDOWS}x{jobs}jobs" if jobs >= _FEWEST // 2 else None
