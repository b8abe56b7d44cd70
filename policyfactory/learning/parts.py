"""The parts of a log, first and second quarter and second half, and how policies do on each."""

from __future__ import annotations

import dataclasses
import math
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from policyfactory.core.errors import WorkloadError
from policyfactory.core.inputs import sha256_bytes
from policyfactory.core.options import Int64Array
from policyfactory.core.text import DAY, WEEK
from policyfactory.evaluation.experiment import default_metrics
from policyfactory.evaluation.words import windows_too_short
from policyfactory.exports.expressible import prepare
from policyfactory.learning.comparing import Compared, Rival, write_rivals
from policyfactory.learning.options import LearnOptions, as_typed
from policyfactory.learning.steps import Steps
from policyfactory.simulation.cases import Case
from policyfactory.simulation.on_site import unfit
from policyfactory.simulation.schedule import Schedule
from policyfactory.simulation.simulate import simulate
from policyfactory.simulation.slurm.jobs import without_misfits
from policyfactory.site.fits import site_of
from policyfactory.workload.clean import clean
from policyfactory.workload.jobs import Workload
from policyfactory.workload.resample import weeks_to_import
from policyfactory.workload.swf.files import format_swf, log_name, write_swf
from policyfactory.workload.swf.log import SwfLog
from policyfactory.workload.windows import cut, cut_between, in_order, parse_windows

# A tuple is 48 jobs, and a comparison of fewer jobs than a tuple has says nothing.
_FEWEST = 200
_TITLES = {
    "training": "The first quarter of the jobs, to learn from",
    "choosing": "What comes before the second half, to choose by its second quarter",
    "test": "The second half, to test the choice on",
}


class TimesKept(dict[str, Int64Array]):
    """Keeps start, end and whether it was backfilled of each job by policy, as a `ScheduleSink`."""

    def content(self, _: Case, schedule: Schedule) -> bytes:
        """Return the three rows as bytes."""
        return np.array([schedule.start, schedule.end, schedule.backfilled], dtype=np.int64).tobytes()

    def write(self, _: Case, policy: str, content: bytes) -> None:
        """Keep them."""
        self[policy] = np.frombuffer(content, dtype=np.int64).reshape(3, -1)

    def has(self, *_: object) -> bool:
        """Say that nothing is missing: what an earlier run has finished is simulated again if it is asked for."""
        return True


class LogParts:
    """The log of a run, cut in its parts, and how policies do on each.

    Parameters
    ----------
    log : SwfLog
        The whole log.
    options : LearnOptions
        How it is read, cut and simulated.
    steps : Steps
        Where the files go, who works and who follows.
    """

    def __init__(self, log: SwfLog, options: LearnOptions, steps: Steps) -> None:
        self.steps = steps
        self.log = log
        self.options = options
        self.rules, self.judging = options.rules, options.judging
        self._site = self.rules.site
        self.read = clean(log, **options.reading)
        # What is little of the whole log may be much of a part.
        self.reading = {**options.reading}
        if options.estimate_missing == "error":
            self.reading["estimate_missing"] = "drop"
        workload, self.left_out = self._on_site(self.read)
        if len(workload) < _FEWEST:
            raise WorkloadError(
                f"{log.path}: {len(workload):,} jobs are left after cleaning, and {_FEWEST} are the least to learn "
                "from, choose by and test on; import a longer time"
            )
        unix_start = workload.unix_start
        # The day (UTC) on which the log begins: r has in production the size that it has in the tests.
        self.epoch = None if unix_start is None else unix_start // DAY * DAY
        self.last = None if unix_start is None else unix_start + int(workload.submit[-1]) // workload.ticks
        self.windows = options.windows
        self.workload = workload
        if options.judged_under_slurm and self.judging.site is None:
            # Of the whole log, so that its parts have one.
            self.judging = dataclasses.replace(self.judging, site=site_of(workload))
            self.rules = self.judging if options.under_slurm else self.rules
        self._lead_in: dict[str, int] = {}
        self._times: dict[str, TimesKept] = defaultdict(TimesKept)  # by part
        self.edges = (0, 0)

    def possible(self, rivals: Sequence[Rival]) -> list[Rival]:
        """Return those that compete under the rules: under Slurm's own, those that are simulated under these."""
        if not self.options.judged_under_slurm:
            return list(rivals)
        return [rival for rival in rivals if not unfit(rival.model.policy, self.judging)]

    def schedule(self, rival: Rival, part: str, parts: dict[str, SwfLog]) -> Schedule:
        """Return the measured jobs of a part under a policy: as they were compared, if that was in one piece."""
        lead_in = 0 if self.windows else self._lead_in[part]
        log = self._measured(part, parts)
        jobs = self.workload if log is self.log else self.workload_of(log)
        rules, policy = self.judging if part == "test" else self.rules, rival.model.policy
        times = self._times[part].get(rival.name)
        if times is None:
            return simulate(jobs, policy, rules).after(lead_in)
        start, end, backfilled = times
        if math.isinf(rules.threshold):
            rules = dataclasses.replace(rules, threshold=policy.threshold)
        measured = jobs.select(slice(lead_in, None), rebase=True)
        return Schedule(start, end, backfilled > 0, measured, policy.name, rules)

    def workload_of(self, log: SwfLog) -> Workload:
        """Return the jobs of a part, cleaned, without those that could never start on the site."""
        return self._on_site(clean(log, **self.reading))[0]

    def _on_site(self, jobs: Workload) -> tuple[Workload, str]:
        return (jobs, "") if self._site is None else without_misfits(jobs, self._site)

    def _measured(self, part: str, parts: dict[str, SwfLog]) -> SwfLog:
        """Return the log that is simulated to measure a part: all that came before too, unless it is cut."""
        return self.log if part == "test" and not self.windows else parts[part]

    def cut(self) -> dict[str, SwfLog]:
        """Cut the log in three, by number of jobs."""
        log, dropped = in_order(self.log)
        if dropped:
            self.steps.progress.warning(f"{dropped:,} jobs without a submit time were left out")
        parts = {}
        for name, (skip, jobs) in self._bounds(log).items():
            path = self.steps.path_of(f"{self.log.name}-{name}.swf")
            words = [*(["--skip", str(skip)] if skip else []), *(["--jobs", str(jobs)] if jobs is not None else [])]
            self.steps.begin(
                _TITLES[name], "workload", "window", self.log.path, *words, "--output", path, "--overwrite"
            )
            part = cut_between(log, skip=skip, jobs=jobs)
            # Whoever reads the file that is written counts its lines.
            part = dataclasses.replace(part, line=len(part.header.lines) + 1 + np.arange(len(part)))
            digest = sha256_bytes(format_swf(part))
            parts[name] = dataclasses.replace(part, name=log_name(Path(path)), path=path, sha256=digest)
            if self.steps.folder is not None:
                write_swf(parts[name], self.steps.folder / Path(path).name)
            self.steps.progress.cut(parts[name])
        if not self.windows:
            # Of what is left after cleaning, the rows at which the second quarter and the second half begin.
            kept = [len(self.workload_of(parts[name])) for name in ("training", "choosing")]
            if kept[1] in (kept[0], len(self.workload)):
                half = "second quarter" if kept[1] == kept[0] else "second half"
                raise WorkloadError(
                    f"{self.log.path}: no job of its {half} is left after cleaning (policyfactory workload clean says "
                    "why), so nothing can be chosen and tested; import a longer time"
                )
            self.edges = kept[0], kept[1]
            self._lead_in = {"choosing": kept[0], "thresholds": kept[0], "test": kept[1]}
        return parts

    def _bounds(self, log: SwfLog) -> dict[str, tuple[int, int | None]]:
        """Return how many jobs of a log in order are before each part, and how many are in it (None: all others)."""
        half, quarter = len(log) // 2, len(log) // 4
        # Unless the parts are cut into windows, all that came before is simulated with them.
        before = quarter if self.windows else 0
        return {"training": (0, quarter), "choosing": (before, half - before), "test": (half, None)}

    def check_windows(self) -> None:
        """Refuse windows that the parts to choose by and to test on do not have, before any work.

        Raises
        ------
        WorkloadError
            If one of them is too short.
        """
        log, _ = in_order(self.log)
        for name, (skip, jobs) in self._bounds(log).items():
            if self.windows and name != "training":
                part = dataclasses.replace(cut_between(log, skip=skip, jobs=jobs), name=f"{log.name}-{name}")
                cut(self.workload_of(part), self.windows)

    def dated(self, rivals: list[Rival]) -> list[Rival]:
        """Let r count from the first day of the log in the rivals that have it.

        From the start of a window log10(r) is steep, a year after a fixed date it is flat: the same formula, another
        order.
        """
        if self.epoch is None:
            return rivals
        dated = [
            Rival(prepare(rival.model, epoch=self.epoch), self.steps.path_of(f"dated/{rival.name}.json"))
            if "r" in rival.model.policy.variables
            else rival
            for rival in rivals
        ]
        if self.steps.folder is not None:
            write_rivals(dated, self.steps.folder)
        return dated

    def compare_on(self, title: str, part: str, parts: dict[str, SwfLog], rivals: list[Rival]) -> Compared:
        """Return how rivals do on a part; a step of its own."""
        options = self.options
        log = {
            "choosing": parts["choosing"],
            "thresholds": parts["choosing"],
            "test": self._measured("test", parts),
        }[part]
        # How the log is cut, and what of it is measured.
        cases: dict[str, Any] = {"windows": self.windows} if self.windows else {}
        if lead_in := self._lead_in.get(part):
            cases = {"lead_in": f"{lead_in}jobs"}
        threshold = options.threshold_s
        judged = part == "test" and options.judged_under_slurm and not options.under_slurm
        evaluated = {
            **cases,
            "metrics": self.metrics,
            "threshold": None if threshold is None or math.isinf(threshold) else options.threshold_text,
            "backfill": "slurm" if judged else options.backfill,
            "site": options.site,
            **self.reading,
        }
        policies, output = ",".join(rival.source for rival in rivals), self.steps.path_of(part)
        words = ("--policies", policies, *as_typed(evaluated), "--output", output, "--overwrite")
        self.steps.begin(title, "evaluate", log.path, *words)
        sink = None if self.windows else self._times[part]
        compared = self.steps.compare(log, rivals, evaluated, part, sink)
        if part != "test":  # which is written with the verdict
            self.steps.write(compared, part)
        return compared

    @property
    def metrics(self) -> tuple[str, ...]:
        """What is measured: the metric that chooses, then the usual ones."""
        return tuple(dict.fromkeys((self.options.metric, *default_metrics(self.rules))))

    def windows_too_short(self, *, unsound: bool = False) -> tuple[str, ...]:
        """Return why windows say nothing; nothing if they do, or there are none."""
        if self.windows is None:
            return ()
        return windows_too_short(self.workload, parse_windows(self.windows), unsound=unsound)

    def too_short(self) -> str:
        """Return what to import so that the second half can tell anything; empty if it can."""
        submit, week = self.workload.submit, WEEK * self.workload.ticks
        whole = int(submit[-1] - submit[self.edges[1]]) // week
        return "" if self.windows else weeks_to_import(whole, "the second half", 2)

    def warn(self) -> None:
        """Say beforehand what weakens the result."""
        if self.read.cleaning.warning:
            self.steps.progress.warning(self.read.cleaning.warning)
        if self.left_out:
            self.steps.progress.warning(self.left_out)
        for sentence in self.windows_too_short():
            self.steps.progress.warning(sentence)
        if self.epoch is None:
            self.steps.progress.warning(
                "the log has no date (UnixStartTime): r counts from the start of each window, which production has not"
            )
