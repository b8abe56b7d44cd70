"""From a log to a workload: what cannot be simulated is dropped or repaired, and all of it is counted.

The presets say which rule holds where the literature differs; see `policyfactory.workload.presets`.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np

from policyfactory.core.errors import UsageError, WorkloadError
from policyfactory.core.options import Int64Array, Mask
from policyfactory.core.text import format_duration
from policyfactory.workload.header import assumed_request, printable
from policyfactory.workload.jobs import Attributes, Requests, Workload
from policyfactory.workload.machine import assumed, join_parts, machine_of
from policyfactory.workload.presets import (
    ESTIMATE_MISSING,
    FEW_MISSING,
    CleaningReport,
    CleaningStep,
    Preset,
    find_preset,
)
from policyfactory.workload.swf.files import read_swf
from policyfactory.workload.swf.log import SwfLog, requests_of
from policyfactory.workload.windows import derive, whole

_CANCELLED = 5  # status


def read(
    path: Path | str,
    *,
    preset: str | Preset = "default",
    processors: int | None = None,
    force_processors: bool = False,
    estimate_missing: str = "error",
    assume: str | None = None,
) -> Workload:
    """Read and clean a log; times count from the first job kept, and ``.cleaning`` has what was dropped and changed.

    Parameters
    ----------
    path : Path or str
        A file in the Standard Workload Format, plain or packed with gzip.
    preset : str or Preset
        The filter.
    processors : int, optional
        Processors of the machine, where the file does not say.
    force_processors : bool
        Use ``processors`` also where the file's header has another number (MaxProcs).
    estimate_missing : str
        Jobs without a requested time: ``"error"`` (fewer than 1 % are dropped), ``"runtime"`` (perfect estimates),
        ``"model"`` (the user's nearest request, else the queue's most usual, else Tsafrir's model), ``"drop"``.
    assume : str, optional
        Nodes, memory and GPUs of jobs of which the log does not say them: ``"n=q/32,mem=2000*q,g=0"``.

    Raises
    ------
    InputError
        If the file cannot be read.
    UsageError
        If ``processors`` contradicts the header and is not forced, or ``assume`` is no assumption.
    WorkloadError
        If no job can be used, the machine is unknown, or requests are missing and that is an error.
    """
    return clean(
        read_swf(path),
        preset=preset,
        processors=processors,
        force_processors=force_processors,
        estimate_missing=estimate_missing,
        assume=assume,
    )


def read_with_cancelled(
    path: Path | str,
    *,
    preset: str | Preset = "default",
    processors: int | None = None,
    force_processors: bool = False,
    estimate_missing: str = "error",
    assume: str | None = None,
) -> tuple[Workload, Int64Array]:
    """Read and clean a log, and keep the jobs that were cancelled before they started; as `read` otherwise.

    Returns
    -------
    workload : Workload
        The start of those jobs is -1; their run time is how long they waited, at most what they asked for: so long they
        are taken to run where they start earlier.
    cancelled : int64 array (n,), s
        When each of those jobs was cancelled, on the workload's clock; -1 for the others.
    """
    log = read_swf(path)
    cleaning = _Cleaning(log, preset, processors, estimate_missing, force=force_processors, keep_cancelled=True)
    workload = assumed(cleaning.workload(), assume)
    patience = np.maximum(whole(cleaning.log.wait), 1)[cleaning.rows]
    return workload, np.where(cleaning.cancelled[cleaning.rows], workload.submit + patience, -1)


def clean(
    log: SwfLog,
    *,
    preset: str | Preset = "default",
    processors: int | None = None,
    force_processors: bool = False,
    estimate_missing: str = "error",
    assume: str | None = None,
) -> Workload:
    """Return the workload that a log holds; parameters, result and errors are those of `read`."""
    cleaning = _Cleaning(log, preset, processors, estimate_missing, force=force_processors)
    return assumed(cleaning.workload(), assume)


def clean_log(
    log: SwfLog,
    *,
    preset: str | Preset = "default",
    processors: int | None = None,
    force_processors: bool = False,
    estimate_missing: str = "error",
) -> tuple[SwfLog, CleaningReport]:
    """Return the cleaned log with all its fields, and the account.

    Both fields of processors hold the number that was used, so that any preset reads the file the same way.
    Parameters and errors are those of `read`.
    """
    return _Cleaning(log, preset, processors, estimate_missing, force=force_processors).log_again()


def _machine_of(log: SwfLog, processors: int | None, estimate_missing: str, *, force: bool) -> tuple[int, str]:
    """Return the machine; where it is unknown, say with that what else the log does not have."""
    try:
        return machine_of(log, processors, force=force)
    except WorkloadError as error:
        missing = int(np.count_nonzero(log.requested_time <= 0))
        if estimate_missing != "error" or missing < max(FEW_MISSING * len(log), 1):
            raise
        also = f"{missing:,} of its {len(log):,} jobs have no requested time: say with --estimate-missing what to do"
        raise WorkloadError(f"{error}; and {also}") from None


class _Cleaning:
    """The state of one cleaning: which rows are left, with which values, and what has been done."""

    def __init__(
        self,
        log: SwfLog,
        preset: str | Preset,
        processors: int | None,
        estimate_missing: str,
        *,
        force: bool,
        keep_cancelled: bool = False,
    ) -> None:
        self.machine, self.machine_source = _machine_of(log, processors, estimate_missing, force=force)
        self.preset = find_preset(preset)
        if estimate_missing not in ESTIMATE_MISSING:
            raise UsageError(f"--estimate-missing {estimate_missing!r}: write one of {', '.join(ESTIMATE_MISSING)}")
        self.log = log
        self.estimate_missing = estimate_missing
        self.steps: list[CleaningStep] = []
        self.left: Mask = np.ones(len(log), dtype=np.bool_)
        self.later: list[tuple[str, Mask, str, str]] = []
        self._parts()
        log = self.log
        never_ran = (log.status == _CANCELLED) & (log.run_time <= 0) & (log.allocated <= 0)
        self.cancelled = keep_cancelled & never_ran & (log.wait >= 0)
        self._times()
        self._sizes()
        self._requests()
        if not self.left.any():
            raise WorkloadError(self._nothing_left())
        self.rows, self.shift = self._order()
        self.job_id = self._numbers()
        for action, jobs, what, why in self.later:
            self.count(action, jobs & self.left, what, why)

    def drop(self, broken: Mask, what: str, why: str) -> None:
        """Drop the jobs ``broken`` and count those that were still left."""
        broken = broken & self.left
        if self.preset.strict and broken.any():
            first = int(np.argmax(broken))
            raise WorkloadError(
                f"{self.log.location(first)}: job {self.log.job_id[first]}: {what} ({int(broken.sum()):,} such jobs); "
                f"preset {self.preset.name} drops nothing: use another one (--preset default), or mend the log"
            )
        self.count("dropped", broken, what, why)
        self.left &= ~broken

    def note(self, action: str, jobs: Mask, what: str, why: str) -> None:
        """Remember what was done to ``jobs``; those that are kept in the end will be counted."""
        self.later.append((action, jobs, what, why))

    def count(self, action: str, jobs: Mask, what: str, why: str) -> None:
        """Put a step into the account, if it concerns any job."""
        number = int(np.count_nonzero(jobs))
        if number:
            first = int(np.argmax(jobs))
            log = self.log
            self.steps.append(CleaningStep(action, number, what, why, int(log.job_id[first]), int(log.line[first])))

    def _parts(self) -> None:
        joined = join_parts(self.log)
        self.log = joined.log
        self.drop(
            joined.summed_up, "part (status 2, 3, 4) of a job that has a line of its own", "the job would count twice"
        )
        self.drop(joined.merged_away, "later part (status 2, 3, 4) of a job", "its time is added to the first part's")
        why = "run time is the sum of the parts, without the gaps: the record can use more than the machine has"
        self.note("changed", joined.merged, "written in parts only, joined", why)

    def _times(self) -> None:
        log = self.log
        self.drop(log.submit < 0, "no submit time", "it cannot be put into the queue")
        cancelled = self.cancelled
        unknown, zero = (log.run_time < 0) & ~cancelled, (log.run_time == 0) & ~cancelled
        self.note("kept", cancelled, "cancelled before it started", "until then it was in the queue")
        if self.preset.negative_run is None:
            self.drop(unknown, "no run time", "it never ran, or its end is unknown")
        else:
            self.note("changed", unknown, f"no run time, {self.preset.negative_run} s taken", "as the program does")
        if self.preset.zero_run == "drop":
            self.drop(zero, "run time 0", "it was cancelled before it ran, or took less than half a second")
        elif self.preset.zero_run == "one":
            self.note("changed", zero, "run time 0, 1 s taken", "a run takes time")
        else:
            self.note("kept", zero, "run time 0", "it takes no machine time")
        self.submit = whole(log.submit)
        self.run_time = whole(log.run_time)
        least = np.where(zero & (self.preset.zero_run != "one"), 0, 1)
        self.run_time = np.maximum(np.where(cancelled, whole(log.wait), self.run_time), least)
        self.run_time[unknown] = self.preset.negative_run or 1

    def _sizes(self) -> None:
        log, preset = self.log, self.preset
        names = {"allocated": log.allocated, "requested": log.requested}
        other_name = "requested" if preset.size == "allocated" else "allocated"
        size, other = names.get(preset.size, np.maximum(log.allocated, log.requested)), names[other_name]
        if preset.size == "larger":
            self.drop(size <= 0, "no number of processors", "neither allocated nor requested is known")
        elif preset.other_size:
            self.drop((size <= 0) & (other <= 0), "no number of processors", "neither allocated nor requested is known")
            filled = (size <= 0) & (other > 0)
            what = f"no {preset.size} processors, the {other_name} ones taken"
            self.note("changed", filled, what, "the only number there is")
            size = np.where(filled, other, size)
        else:
            self.drop(size <= 0, f"no {preset.size} processors", f"preset {preset.name} uses no other number")
        large = size > self.machine
        if preset.large == "either":
            large = large | (other > self.machine)
        self.drop(large, f"more processors than the machine's {self.machine:,}", "it could never start")
        self.processors = size

    def _requests(self) -> None:
        log, preset = self.log, self.preset
        missing = log.requested_time <= 0
        self.requested_time = np.maximum(whole(log.requested_time), 1)
        asked = np.where(missing, self.run_time, self.requested_time)
        self.run_time = np.where(self.cancelled, np.minimum(self.run_time, asked), self.run_time)
        concerned = missing & self.left
        few = np.count_nonzero(concerned) < FEW_MISSING * np.count_nonzero(self.left) and not preset.strict
        if self.estimate_missing == "drop" or preset.drop_missing_request:
            self.drop(missing, "no requested time", "the scheduler would not know when it ends")
        elif self.estimate_missing == "runtime":
            why = "as if the user knew it exactly: results are better than any scheduler's could be"
            self.note("changed", missing, "no requested time, the run time taken", why)
            self.requested_time[missing] = np.maximum(self.run_time[missing], 1)
        elif self.estimate_missing == "model":
            self._fill(concerned)
        elif few:
            self.drop(missing, "no requested time", f"fewer than {FEW_MISSING:.0%} of the usable jobs")
        elif concerned.any():
            raise WorkloadError(self._requests_missing(concerned))
        assumed = assumed_request(log.header)
        if assumed is not None:
            # What an import was told to assume is no user's request, however often it was written since.
            what = f"no requested time, {assumed:,} s assumed at the import: EASY backfilling on them is an assumption"
            self.note("changed", log.requested_time == assumed, what, "nobody asked for this time")
        if preset.longest_request is not None:
            absurd = self.requested_time > preset.longest_request
            self.note(
                "changed", absurd, f"more than {preset.longest_request:,} s requested, cut to that", "as asked for"
            )
            self.requested_time = np.minimum(self.requested_time, preset.longest_request)
        self._overruns()

    def _fill(self, missing: Mask) -> None:
        """Give the jobs ``missing`` the requests that their users, their queues or the model would have."""
        if not missing.any():
            return
        # Loaded here: only who asks for the model pays for it.
        from policyfactory.workload.models.tsafrir import FILL_SEED, fill_requests

        filled = fill_requests(self.log, missing, self.run_time)
        self.requested_time[missing] = filled.requested_time[missing]
        none, guess = "no requested time", "a guess from the log itself"
        model = f"Tsafrir's model drawn from (seed {FILL_SEED}, at most {format_duration(filled.longest)})"
        self.note("changed", filled.of_user, f"{none}, the user's own nearest request taken", guess)
        self.note("changed", filled.of_queue, f"{none}, the queue's most usual request taken", guess)
        self.note("changed", filled.of_model, f"{none}, {model}", "neither user nor queue has a request that fits")

    def _overruns(self) -> None:
        over = self.run_time > self.requested_time
        if self.preset.overrun == "drop":
            self.drop(over, "run longer than requested", "as asked for: their request was no limit")
        elif self.preset.overrun == "cut":
            self.note("changed", over, "run longer than requested, run cut", "as if the limit were enforced")
            self.run_time = np.minimum(self.run_time, self.requested_time)
        elif self.preset.overrun == "raise":
            self.note("changed", over, "run longer than requested, request raised", "as if the user had known")
            self.requested_time = np.maximum(self.run_time, self.requested_time)
        else:
            self.note("kept", over, "run longer than requested", "the site's limit had some grace, or was not enforced")

    def _requests_missing(self, missing: Mask) -> str:
        first = int(np.argmax(missing))
        jobs, usable = int(missing.sum()), int(self.left.sum())
        # Where no job has one there is nothing to go by, and to drop them leaves none.
        model, drop = "those of a model of users", ""
        if jobs < usable:
            model, drop = "the user's own requests, the queue's, or a model's", ", or drop"
        return (
            f"{printable(self.log.path, 300)}: {jobs:,} of {usable:,} usable jobs have no requested time (field 9), "
            f"the first is job {self.log.job_id[first]} (line {self.log.line[first]}); choose --estimate-missing model "
            f"({model}), runtime (as if users knew their run times){drop}; fewer than {FEW_MISSING:.0%} are left out "
            "without being asked for"
        )

    def _nothing_left(self) -> str:
        reasons = "; ".join(f"{step.what}: {step.jobs:,}" for step in self.steps if step.action == "dropped")
        return (
            f"{printable(self.log.path, 300)}: none of the {len(self.log):,} jobs can be used: {reasons}; see "
            "policyfactory workload show, and choose another --preset, --processors or --estimate-missing"
        )

    def _order(self) -> tuple[Int64Array, int]:
        """Return the rows that are left in submit order (ties as in the file), and the first submit time."""
        log = self.log
        decimals = np.zeros(len(log), dtype=np.bool_)
        for column in (log.submit, log.run_time, log.requested_time):
            if column.dtype != np.int64:
                decimals |= column != np.floor(column)
        self.note("changed", decimals, "times with decimals, rounded to seconds", "halves up; a run is at least 1 s")
        rows = np.flatnonzero(self.left)
        submit = self.submit[rows]
        early = np.zeros(len(log), dtype=np.bool_)
        early[rows[1:]] = submit[1:] < np.maximum.accumulate(submit)[:-1]
        self.note("changed", early, "out of submit order, sorted", "the queue is in submit order")
        if early.any():
            rows = rows[np.argsort(submit, kind="stable")]
        return rows, 0 if self.preset.keep_clock else int(self.submit[rows[0]])

    def _numbers(self) -> Int64Array:
        """Return the job numbers; one that was used before is replaced by a new one."""
        numbers = self.log.job_id[self.rows].copy()
        _, first = np.unique(numbers, return_index=True)
        if len(first) == len(numbers):
            return numbers
        again = np.ones(len(numbers), dtype=np.bool_)
        again[first] = False
        marked = np.zeros(len(self.log), dtype=np.bool_)
        marked[self.rows[again]] = True
        self.note("changed", marked, "job number used before, a new one given", "numbers break ties, so are unique")
        numbers[again] = max(0, int(numbers.max())) + 1 + np.arange(int(again.sum()))
        return numbers

    def report(self) -> CleaningReport:
        """Return the account."""
        return CleaningReport(
            source=self.log.path,
            sha256=self.log.sha256,
            preset=self.preset.name,
            description=self.preset.description,
            estimate_missing=self.estimate_missing,
            machine=self.machine,
            machine_source=self.machine_source,
            read=len(self.log),
            kept=len(self.rows),
            steps=tuple(self.steps),
            shift=self.shift,
        )

    def workload(self) -> Workload:
        """Return the jobs as a workload."""
        log, rows = self.log, self.rows
        submit = self.submit[rows] - self.shift
        wait = whole(log.wait)[rows]
        unix_start = log.header.unix_start
        report = self.report()
        return Workload(
            name=log.name,
            machine=self.machine,
            job_id=self.job_id,
            submit=submit,
            run_time=self.run_time[rows],
            requested_time=self.requested_time[rows],
            processors=self.processors[rows],
            user=log.user[rows],
            start=np.where((wait >= 0) & ~self.cancelled[rows], submit + wait, -1),
            unix_start=None if unix_start is None else unix_start + self.shift,
            time_zone=log.header.time_zone,
            origin=f"{log.name}, preset {self.preset.name}: {report.kept:,} of {report.read:,} jobs",
            cleaning=report,
            attributes=self._attributes(),
            requests=self._requests_of(submit),
        )

    def _attributes(self) -> Attributes | None:
        """Return what the log says besides, None if that is nothing."""
        columns = {
            field.name: whole(getattr(self.log, field.name))[self.rows] for field in dataclasses.fields(Attributes)
        }
        # A status alone says nothing of a job that is submitted.
        known = any((column >= 0).any() for name, column in columns.items() if name != "status")
        return Attributes(**columns) if known else None

    def _requests_of(self, submit: Int64Array) -> Requests | None:
        """Return what the jobs ask for besides processors and time, None if the log does not say."""
        log, rows = self.log, self.rows
        names = ("requested_memory", "preceding", "user", "queue", "partition")
        columns = {name: getattr(log, name) for name in names} | dict(log.extra)
        columns = {name: whole(column)[rows] for name, column in columns.items()}
        return requests_of(log.header, columns, processors=self.processors[rows], submit=submit, shift=self.shift)

    def log_again(self) -> tuple[SwfLog, CleaningReport]:
        """Return the jobs as a log."""
        report = self.report()
        kept = derive(
            self.log, self.rows, shift=self.shift, note=f"cleaned by policyfactory, preset {self.preset.name}"
        )
        kept = dataclasses.replace(
            kept,
            header=kept.header.replace({"MaxProcs": str(self.machine)}),
            job_id=self.job_id,
            submit=self.submit[self.rows] - self.shift,
            wait=whole(kept.wait),
            run_time=self.run_time[self.rows],
            requested_time=self.requested_time[self.rows],
            allocated=self.processors[self.rows],
            requested=self.processors[self.rows],
        )
        return kept, report
