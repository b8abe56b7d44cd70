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
from policyfactory.learn.comparing import Compared, Rival
from policyfactory.learn.files import POLICY, check_folder, make_room, write_dated
from policyfactory.learn.learned import Learned
from policyfactory.learn.options import LearnOptions
from policyfactory.learn.progress import Progress
from policyfactory.learn.stages import Stages
from policyfactory.parallel.workers import Workers
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
        Who follows how far the work is.
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
    work = _Learning(_swf(log), chosen, None if output is None else Path(output), workers, progress or Progress())
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


class _Learning(Stages):
    """One run: the log and the options."""

    def __init__(
        self, log: SwfLog, options: LearnOptions, folder: Path | None, workers: Workers | int, progress: Progress
    ) -> None:
        super().__init__(folder, workers, progress, _STEPS)
        self.log = log
        self.options = options
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
        self.windows = options.windows or _windows(workload)

    def run(self) -> Learned:
        """Take all steps."""
        self._warn()
        options, parts = self.options, self._parts()
        scores = self.score(
            parts["training"],
            GenerateOptions(options.tuples, options.trials, seed=options.seed),
            *self._reading(),
            preset=options.preset,
            processors=options.processors,
        )
        forms, polynomials = self.fit(scores)
        rivals = self._dated(self.rivals(forms, polynomials))
        choosing = self._compare("The formulas against the classical policies", "choosing", parts, rivals)
        winner = choosing.winner
        # The baseline, and two that are hard to beat, stand beside the choice.
        named = {rival.name: rival for rival in rivals}
        beside = [named[name] for name in dict.fromkeys(("FCFS", "SAF", "F1", winner.name))]
        test = self._compare(
            f"The choice, {winner.name}, on jobs that had no part in the choice", "test", parts, beside
        )
        threshold = options.threshold_text
        learned = Learned(
            prepare(winner.model, threshold=parse_duration(threshold, unit=True)),
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
        self.begin(
            "The policy as a file",
            *("export", winner.source, "--to", "json", "--threshold", threshold, "--output", self.place(POLICY)),
        )
        if self.folder is not None:
            self.progress.wrote([learned.write_policy(self.folder)])
        return learned

    def _warn(self) -> None:
        if self.windows is None:
            self.progress.warning(
                "the log is too short for several windows: each comparison is one case, without an interval"
            )
        if self.epoch is None:
            self.progress.warning(
                "the log has no date (UnixStartTime): r counts from the start of each window, which production has not"
            )

    def _reading(self) -> tuple[str, ...]:
        machine = self.options.processors
        return ("--preset", self.options.preset, *(("--processors", str(machine)) if machine else ()))

    def _parts(self) -> dict[str, SwfLog]:
        """Cut the log in three, by number of jobs."""
        log, dropped = in_order(self.log)
        if dropped:
            self.progress.warning(f"{dropped:,} jobs without a submit time were left out")
        half, quarter = len(log) // 2, len(log) // 4
        bounds = {"training": (0, half), "choosing": (half, quarter), "test": (half + quarter, None)}
        parts = {}
        for name, (skip, jobs) in bounds.items():
            path = self.place(f"{self.log.name}-{name}.swf")
            words = [*(["--skip", str(skip)] if skip else []), *(["--jobs", str(jobs)] if jobs is not None else [])]
            self.begin(_TITLES[name], "workload", "window", self.log.path, path, *words)
            part = cut_between(log, skip=skip, jobs=jobs)
            digest = sha256_bytes(format_swf(part))
            parts[name] = dataclasses.replace(part, name=log_name(Path(path)), path=path, sha256=digest)
            if self.folder is not None:
                write_swf(parts[name], path)
            self.progress.cut(parts[name])
        return parts

    def _dated(self, rivals: list[Rival]) -> list[Rival]:
        """Let r count from the first day of the log in the rivals that have it.

        From the start of a window log10(r) is steep, a year after a fixed date it is flat: the same formula, another
        order.
        """
        if self.epoch is None:
            return rivals
        dated = [
            Rival(prepare(rival.model, epoch=self.epoch), self.place(f"dated/{rival.name}.json"))
            if "r" in rival.model.policy.variables
            else rival
            for rival in rivals
        ]
        if self.folder is not None:
            write_dated(dated, self.folder)
        return dated

    def _compare(self, title: str, part: str, parts: dict[str, SwfLog], rivals: list[Rival]) -> Compared:
        options, log = self.options, parts[part]
        threshold = options.threshold_text
        words = (*self._reading(), "--estimate-missing", options.estimate_missing, "--threshold", threshold)
        words += ("--metrics", ",".join(options.metrics), *(("--windows", self.windows) if self.windows else ()))
        policies = ",".join(rival.source for rival in rivals)
        output = self.place(part)
        self.begin(title, "evaluate", log.path, "--policies", policies, *words, "--output", output, "--overwrite")
        never = threshold.strip().lower() in {"inf", "none"}
        evaluated = {
            "windows": self.windows,
            "metrics": options.metrics,
            "threshold": None if never else threshold,
            "preset": options.preset,
            "processors": options.processors,
            "estimate_missing": options.estimate_missing,
        }
        return self.compare(log, rivals, evaluated, part)


def _windows(workload: Workload) -> str | None:
    """Return windows of which a quarter of the jobs has several."""
    quarter = workload.submit[3 * len(workload) // 4 :]
    lasts = int(quarter[-1] - quarter[0]) // workload.ticks
    for days in _LENGTHS:
        if lasts >= _WINDOWS * days * DAY:
            return f"{days}d"
    jobs = len(quarter) // _WINDOWS
    return f"{_WINDOWS}x{jobs}jobs" if jobs >= _FEWEST // 2 else None
