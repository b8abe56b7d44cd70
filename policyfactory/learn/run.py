"""Learn a policy from a log: the first half teaches, the third quarter chooses, the last quarter tests."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import Any

import numpy as np

from policyfactory.core.artefact import sha256_bytes
from policyfactory.core.claims import exclusive, refuse_earlier
from policyfactory.core.errors import WorkloadError
from policyfactory.core.options import changed
from policyfactory.core.units import DAY, HOUR
from policyfactory.core.whole_folder import replaced_whole
from policyfactory.evaluate.basis import basis_in_words, windows_too_short
from policyfactory.export.advice import gaming
from policyfactory.export.expressible import prepare
from policyfactory.learn.comparing import CLASSICAL, Compared, Rival
from policyfactory.learn.files import KEPT, POLICY, check_folder, earlier_files, write_rivals
from policyfactory.learn.learned import Learned
from policyfactory.learn.options import LearnOptions
from policyfactory.learn.progress import Progress
from policyfactory.learn.stages import Stages
from policyfactory.learn.verdict import Evidence, judge
from policyfactory.learn.words import hours_text, limits_in_words, whole_hours
from policyfactory.parallel.workers import Workers
from policyfactory.policy.store import Model
from policyfactory.report.verdict import LIGHTS, Verdict
from policyfactory.simulate.metrics import METRICS
from policyfactory.simulate.rules import Rules
from policyfactory.simulate.schedule import Schedule
from policyfactory.simulate.simulate import simulate
from policyfactory.statistics.compare import compare_policies
from policyfactory.trials.run import GenerateOptions
from policyfactory.workload.clean import clean
from policyfactory.workload.cutting import cut_between, in_order
from policyfactory.workload.jobs import Workload
from policyfactory.workload.resample import History
from policyfactory.workload.swf.files import format_swf, log_name, read_swf, write_swf
from policyfactory.workload.swf.log import SwfLog, log_of_workload
from policyfactory.workload.windows import parse_windows

__all__ = ["learn"]

# A tuple is 48 jobs, and a comparison of fewer jobs than a tuple has says nothing.
_FEWEST = 200
BESIDE = ("FCFS", "SAF", "F1")
# Of the waits under the chosen formula, as thresholds: the last one changes nothing there, and bounds what comes later;
# and the share of its gain that a threshold must keep.
_QUANTILES = (0.9, 0.95, 0.99, 0.999, 1.0)
_KEPT = 0.9
_RESAMPLES = 40
_TITLES = {
    "training": "The first half of the jobs, to learn from",
    "choosing": "What comes before the last quarter, to choose by its third quarter",
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
    folder = None if output is None else Path(output)
    work = _Learning(_swf(log), chosen, folder, workers, progress or Progress(), overwrite=overwrite)
    if work.folder is None:
        return work.run()
    check_folder(work.folder)
    with exclusive(work.folder / "learn"):  # not of the policy itself: the step that writes it holds that
        refuse_earlier(work.folder / POLICY, overwrite=overwrite)
        earlier = earlier_files(work.folder, work.log.name)
        with replaced_whole(work.folder, earlier, kept=KEPT, in_place=False) as place:
            work.work_in(place)
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
        self,
        log: SwfLog,
        options: LearnOptions,
        folder: Path | None,
        workers: Workers | int,
        progress: Progress,
        *,
        overwrite: bool,
    ) -> None:
        super().__init__(folder, workers, progress, _seconds(len(log), options), overwrite=overwrite)
        self.log = log
        self.options = options
        workload = clean(log, **options.reading)
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
        self._lead_in: dict[str, int] = {}

    def run(self) -> Learned:
        """Take all steps."""
        self._warn()
        options, parts = self.options, self._parts()
        scores = self.score(
            parts["training"],
            GenerateOptions(options.tuples, options.trials, seed=options.seed),
            *self._reading(),
            reading=options.reading,
        )
        fits = self.fit(scores)
        rivals = self._dated(self.rivals(fits))
        choosing = self._compare("The formulas against the classical policies", "choosing", parts, rivals)
        winner, thresholds = self._with_threshold(choosing, parts)
        # The baseline, and two that are hard to beat, stand beside the choice.
        named = {rival.name: rival for rival in (*rivals, winner)}
        beside = [named[name] for name in dict.fromkeys((*BESIDE, winner.name))]
        test = self._compare(
            f"The choice, {winner.name}, on jobs that had no part in the choice", "test", parts, beside
        )
        resampled = self._resampled(test, winner, parts, beside)
        verdict = self._verdict(test, winner, parts, resampled)
        # Written before, so that a run that is stopped leaves it; now with what follows from it.
        test = test.judged(verdict, winner.name)
        if self.folder is not None:
            test.write(self.folder / "test")
        chosen = prepare(winner.model, threshold=options.threshold_s)
        said = f"{LIGHTS[verdict.light]}. {verdict.sentences[0]}"
        learned = Learned(
            dataclasses.replace(chosen, diagnostics={**chosen.diagnostics, "verdict": said}),
            options,
            parts,
            scores,
            fits,
            tuple(rivals),
            choosing,
            thresholds,
            test,
            verdict,
            resampled,
            self.epoch,
            self.last,
            self.log,
        )
        held = learned.policy.threshold
        self.begin(
            "The policy as a file",
            *("export", winner.source, "--to", "json", "--threshold", f"{held:.0f}s" if held < math.inf else "inf"),
            *("--output", self.place(POLICY), "--overwrite"),
        )
        if self.folder is not None:
            self.wrote([learned.write_policy(self.folder)])
        return learned

    # What is chosen, and what it is worth. ----------------------------------------------------------------------------

    def _schedule(self, rival: Rival, part: str, parts: dict[str, SwfLog]) -> Schedule:
        """Return the measured jobs of a part under a policy."""
        lead_in = 0 if self.windows else self._lead_in[part]
        log = self._measured(part, parts)
        jobs = self.workload if log is self.log else self._workload(log)
        threshold = self.options.threshold_s
        rules = Rules() if threshold is None else Rules(threshold=threshold)
        return simulate(jobs, rival.model.policy, rules).after(lead_in)

    def _workload(self, log: SwfLog) -> Workload:
        return clean(log, **self.options.reading)

    def _measured(self, part: str, parts: dict[str, SwfLog]) -> SwfLog:
        """Return the log that is simulated to measure a part: all that came before too, unless it is cut."""
        return self.log if part == "test" and not self.windows else parts[part]

    def _with_threshold(self, choosing: Compared, parts: dict[str, SwfLog]) -> tuple[Rival, Compared | None]:
        """Return the winner of the third quarter with the lowest threshold that is sure to keep its gain there."""
        winner = choosing.winner
        if not self.options.chooses_threshold or winner.name == CLASSICAL[0]:
            return winner, None
        waits = self._schedule(winner, "choosing", parts).wait
        hours = sorted({whole_hours(float(np.quantile(waits, share)) / HOUR) for share in _QUANTILES} - {0})
        candidates = [
            Rival(
                _named(prepare(winner.model, threshold=float(count * HOUR)), f"{winner.name}-{hours_text(count)}"), ""
            )
            for count in hours
        ]
        if not candidates:
            return winner, None
        candidates = [dataclasses.replace(one, source=self.place(f"thresholds/{one.name}.json")) for one in candidates]
        if self.folder is not None:
            write_rivals(candidates, self.folder)
        title = f"A longest wait for {winner.name}: quantiles of its waits as thresholds"
        baseline = next(rival for rival in choosing.rivals if rival.name == CLASSICAL[0])
        compared = self._compare(title, "thresholds", parts, [baseline, winner, *candidates])
        values = {row.policy: row.value for row in compared.outcome.summaries if row.metric == self.options.metric}
        gain = values[winner.name] - values[baseline.name]
        for one in candidates:
            if self._loss(compared, one.name, winner.name) <= (1 - _KEPT) * abs(gain):
                return one, compared
        return winner, compared

    def _loss(self, compared: Compared, name: str, without: str) -> float:
        """Return how much worse a policy may be with its threshold than without: by the interval, if there is one."""
        metric, evaluation = self.options.metric, compared.outcome.evaluation
        pair = compare_policies(evaluation, evaluation.logs[0], metric, name, without, statistic="mean")
        lower = METRICS[metric].lower_is_better
        estimate = pair.estimate
        low, high = (estimate.interval.low, estimate.interval.high) if estimate.interval else [estimate.value] * 2
        return high if lower else -low

    def _resampled(
        self, test: Compared, winner: Rival, parts: dict[str, SwfLog], beside: list[Rival]
    ) -> Compared | None:
        """Return the comparison on logs drawn from the last quarter, if its own weeks give no interval."""
        evaluation, metric = test.outcome.evaluation, self.options.metric
        weeks = evaluation.weekly.get(evaluation.logs[0])
        by_weeks = weeks is not None and weeks.enough
        by_weeks = by_weeks and evaluation.weekly_column(evaluation.logs[0], metric, winner.name) is not None
        if self.windows or by_weeks or winner.name == CLASSICAL[0]:
            return None
        few = [rival for rival in beside if rival.name in {CLASSICAL[0], winner.name}]
        try:
            History(self._workload(parts["test"]))
        except WorkloadError as error:
            self.progress.warning(f"no logs can be drawn from the last quarter: {error}")
            return None
        return self._compare("The last quarter drawn anew, since its weeks are too few", "resampled", parts, few)

    def _verdict(self, test: Compared, winner: Rival, parts: dict[str, SwfLog], resampled: Compared | None) -> Verdict:
        baseline = next(rival for rival in test.rivals if rival.name == CLASSICAL[0])
        base, own = (self._schedule(rival, "test", parts) for rival in (baseline, winner))
        verdict = judge(Evidence(test, self.options.metric, winner.name, base, own, resampled))
        if short := self._windows_too_short(unsound=True):
            verdict = Verdict("unsound", (*short, *verdict.sentences))
        measured = dataclasses.replace(base.workload, cleaning=self.workload.cleaning)
        policy = prepare(winner.model, threshold=self.options.threshold_s).policy
        # What a site would have to live with; of what is there already, nothing.
        more = () if winner.name == baseline.name else (*limits_in_words(policy), gaming(policy, measured.machine))
        return dataclasses.replace(verdict, caveats=(*basis_in_words(measured), *more))

    def _windows_too_short(self, *, unsound: bool = False) -> tuple[str, ...]:
        if self.windows is None:
            return ()
        return windows_too_short(self.workload, parse_windows(self.windows), unsound=unsound)

    def _warn(self) -> None:
        for sentence in self._windows_too_short():
            self.progress.warning(sentence)
        if self.epoch is None:
            self.progress.warning(
                "the log has no date (UnixStartTime): r counts from the start of each window, which production has not"
            )

    def _reading(self) -> tuple[str, ...]:
        return ("--preset", self.options.preset, *self.options.machine_words)

    def _parts(self) -> dict[str, SwfLog]:
        """Cut the log in three, by number of jobs."""
        log, dropped = in_order(self.log)
        if dropped:
            self.progress.warning(f"{dropped:,} jobs without a submit time were left out")
        half, quarter = len(log) // 2, len(log) // 4
        # Unless the quarters are cut into windows, all that came before is simulated with them.
        before = half if self.windows else 0
        choosing = (before, half + quarter - before)
        bounds = {"training": (0, half), "choosing": choosing, "test": (half + quarter, None)}
        parts = {}
        for name, (skip, jobs) in bounds.items():
            path = self.place(f"{self.log.name}-{name}.swf")
            words = [*(["--skip", str(skip)] if skip else []), *(["--jobs", str(jobs)] if jobs is not None else [])]
            self.begin(_TITLES[name], "workload", "window", self.log.path, *words, "--output", path, "--overwrite")
            part = cut_between(log, skip=skip, jobs=jobs)
            digest = sha256_bytes(format_swf(part))
            parts[name] = dataclasses.replace(part, name=log_name(Path(path)), path=path, sha256=digest)
            if self.folder is not None:
                write_swf(parts[name], self.folder / Path(path).name)
            self.progress.cut(parts[name])
        if not self.windows:
            kept = [len(self._workload(parts[name])) for name in ("training", "choosing")]
            self._lead_in = {"choosing": kept[0], "thresholds": kept[0], "test": kept[1], "resampled": 0}
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
            write_rivals(dated, self.folder)
        return dated

    def _compare(self, title: str, part: str, parts: dict[str, SwfLog], rivals: list[Rival]) -> Compared:
        options = self.options
        log = {
            "choosing": parts["choosing"],
            "thresholds": parts["choosing"],
            "test": self._measured("test", parts),
            "resampled": parts["test"],
        }[part]
        # How the log is cut, and what of it is measured.
        cases: dict[str, Any] = {"windows": self.windows} if self.windows else {}
        if part == "resampled":
            cases = {"resamples": _RESAMPLES}
        elif lead_in := self._lead_in.get(part):
            cases = {"lead_in": f"{lead_in}jobs"}
        threshold = options.threshold_s
        own = threshold is None or math.isinf(threshold)
        words = [*self._reading(), "--estimate-missing", options.estimate_missing]
        words += [] if own else ["--threshold", options.threshold_text]
        words += ["--metric", ",".join(options.metrics)]
        words += [text for key, value in cases.items() for text in (f"--{key.replace('_', '-')}", str(value))]
        policies = ",".join(rival.source for rival in rivals)
        output = self.place(part)
        self.begin(title, "evaluate", log.path, "--policies", policies, *words, "--output", output, "--overwrite")
        evaluated = {
            **cases,
            "metrics": options.metrics,
            "threshold": None if own else options.threshold_text,
            **options.reading,
        }
        return self.compare(log, rivals, evaluated, part)


def _seconds(jobs: int, options: LearnOptions) -> list[float]:
    """Return about how long each step takes, as measured on one machine of two cores; only their ratios matter."""
    simulated, page = jobs / 500_000, 2.0
    cuts = 3 * [jobs / 400_000]
    scores = options.tuples * options.trials / 500_000
    thresholds = [7 * simulated + page] * options.chooses_threshold
    return [*cuts, scores, 8.0, 3.0, 13 * simulated + page, *thresholds, 4 * simulated + 2 * page, 0.1]


def _named(model: Model, name: str) -> Model:
    return dataclasses.replace(model, policy=dataclasses.replace(model.policy, name=name))
