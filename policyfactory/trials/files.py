"""Score tables on disk: begun, interrupted, continued, finished.

A run may find four things where it is to write:

- nothing: it begins;
- the journal of an interrupted run: it goes on from there (with ``overwrite`` too: that is how an interrupted
  ``overwrite`` is continued);
- the journal of another run, or a table: an error, unless ``overwrite`` is given;
- the finished table of the same run: nothing is left to do.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import math
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.errors import InputError, OutputError, PolicyfactoryError, WorkersError
from policyfactory.core.files import Manifest, atomic_write, check_file, command_line, digest_of, exclusive, together
from policyfactory.core.inputs import read_bytes, sha256_file
from policyfactory.core.journal import Journal, claim, library_versions, partial_path
from policyfactory.core.options import changed
from policyfactory.core.process import Follower
from policyfactory.parallel.workers import Notify, Workers
from policyfactory.trials.run import Report, check_options, describe, finished_tuples
from policyfactory.trials.table import HEADER, SAME_SCORE, GenerateOptions, ScoreTable, parse_rows, read_score_table
from policyfactory.workload.clean import read
from policyfactory.workload.jobs import Workload

KIND = "score-table"
# A line break inside a record; the numbers of a table have none of it.
_BREAK = "|"


@dataclasses.dataclass(frozen=True, slots=True)
class Written:
    """What a run did.

    Parameters
    ----------
    output : Path
        The table.
    resumed : int
        Tuples that an earlier run had finished.
    done : int
        Tuples finished by this run.
    seconds : float
        How long they took.
    trials_each : int
        Trials of a tuple.
    precision : tuple of float
        Standard error of a score in percent of the mean score: of the best tuple, the median, and the worst.
    idle : int
        Tuples in which all orders have the same value, so that all scores are equal.
    """

    output: Path
    resumed: int
    done: int
    seconds: float
    trials_each: int
    precision: tuple[float, float, float]
    idle: int

    @property
    def trials(self) -> int:
        """Trials run by this run."""
        return self.done * self.trials_each


def write_scores(
    workload: Workload,
    options: GenerateOptions,
    output: Path,
    *,
    workers: Workers | int = 1,
    overwrite: bool = False,
    inputs: Mapping[str, str] | None = None,
    report: Report = lambda _: None,
    notify: Notify = lambda _: None,
) -> Written:
    """Write the score table of a workload to ``output`` and its manifest beside it.

    Parameters
    ----------
    workload, options, workers, report, notify
        As in `policyfactory.trials.files.generate`.
    output : Path
        The table, ``NAME.csv``.
    overwrite : bool
        Replace a finished table, or the journal of another run.
    inputs : mapping of str to str, optional
        Further inputs for the manifest: name and SHA-256.

    Raises
    ------
    OutputError
        If the output cannot be written, belongs to another run, or is being written by one.
    WorkersError
        If the workers cannot be reached or are lost; the finished tuples are kept.
    UsageError, WorkloadError
        As in `policyfactory.trials.run.check_options`.
    """
    check_options(workload, options)
    run = describe(workload, options)
    check_file(output, "its manifest")
    with exclusive(output):
        partial = partial_path(output)
        if not overwrite and not partial.exists() and output.exists():
            return Written(output, options.tuples, 0, 0.0, options.trials_each, *_finished(output, run))
        # Not in the manifest's description: a table that is whole is right, whatever version it was made with.
        head = run | library_versions()
        claim(partial, head, "tuples", _difference, overwrite=overwrite)
        who = Workers.of(workers)
        with Journal(partial, head, options.tuples) as journal:
            resumed = len(journal)
            seconds = _fill(journal, workload, options, who, report, notify)
            errors, spreads = np.empty((2, options.tuples))
            with together():
                atomic_write(output, _table(journal, errors, spreads))
                low, middle, high = np.quantile(100 * options.queue_size * errors, [0.0, 0.5, 1.0]).tolist()
                written = Written(
                    output=output,
                    resumed=resumed,
                    done=len(journal) - resumed,
                    seconds=seconds,
                    trials_each=options.trials_each,
                    precision=(low, middle, high),
                    idle=int((spreads < SAME_SCORE).sum()),
                )
                manifest = Manifest(
                    kind=KIND,
                    command=command_line(),
                    seed=options.seed,
                    inputs={workload.name: workload.sha256(), **(inputs or {})},
                    parameters={
                        **run,
                        "idle_tuples": written.idle,
                        "origin": workload.origin,
                        "standard_error_percent": list(written.precision),
                        "trials_run": written.trials_each,
                    },
                    measured=_measured(written, who),
                    outputs={output.name: digest_of(output)},
                )
                manifest.write(Manifest.path_for(output))
        partial.unlink()
    return written


def _fill(
    journal: Journal, workload: Workload, options: GenerateOptions, workers: Workers, report: Report, notify: Notify
) -> float:
    """Finish the journal, and return how many seconds that took."""
    report(len(journal))
    begin, missing = time.monotonic(), journal.missing()
    try:
        with contextlib.closing(
            finished_tuples(workload, options, missing, workers=workers, notify=notify)
        ) as finished:
            for count, (number, rows) in enumerate(finished, len(journal) + 1):
                journal.append(number, _record(rows))
                report(count)
    except PolicyfactoryError:
        # A scheduler that was never reached leaves nothing in the way of other options.
        if not len(journal):
            journal.path.unlink()
        raise
    return time.monotonic() - begin


@contextlib.contextmanager
def followed(
    follower: Follower, workload: Workload, options: GenerateOptions, output: Path | None = None
) -> Iterator[Report]:
    """Count the tuples of a run as it reports them; if it does not come to its end, say what of them is kept.

    Parameters
    ----------
    follower : Follower
        Who shows it.
    workload, options
        As in `policyfactory.trials.files.generate`.
    output : Path, optional
        The table that is written.

    Yields
    ------
    callable
        For ``report``.
    """
    counter = follower.counter(f"{workload.name}: tuples", "trials/s")
    counter.expect(options.tuples)
    kept: int | None = None  # nobody knows yet

    def report(finished: int) -> None:
        nonlocal kept
        if kept is None:
            counter.resumed(finished)
        else:
            counter.done(options.trials_each)
        kept = finished

    try:
        yield report
    except (KeyboardInterrupt, WorkersError) as stop:
        if kept is not None and output is not None and (partial := partial_path(output)).exists():
            follower.kept(stop, f"{kept:,} of {options.tuples:,} tuples", partial)
        raise
    if kept is None:
        counter.resumed(options.tuples)


def _record(rows: str) -> bytes:
    """Return the lines of a tuple as one line."""
    return rows.removesuffix("\n").replace("\n", _BREAK).encode("ascii")


def _table(journal: Journal, errors: NDArray[np.float64], spreads: NDArray[np.float64]) -> Iterator[bytes]:
    """Give the table in parts; note for each tuple the typical standard error and the range of the scores."""
    yield HEADER.encode() + b"\n"
    for number, record in journal.records():
        # Its checksum is right, so `_record` made it.
        lines = record.decode("ascii").split(_BREAK)
        *_, scores, stderr, _ = np.array([line.split(",") for line in lines], dtype=np.float64).T
        errors[number] = np.sqrt(np.mean(stderr**2))
        spreads[number] = np.ptp(scores)
        yield record.replace(_BREAK.encode(), b"\n") + b"\n"


def _measured(written: Written, workers: Workers) -> dict[str, Any]:
    speed = round(written.trials / written.seconds) if written.seconds > 0 and written.trials else None
    return {
        "seconds": round(written.seconds, 3),
        "trials_per_second": speed,
        "tuples_done": written.done,
        "tuples_resumed": written.resumed,
        "backend": workers.backend,
        # Of a cluster nobody knows how many: workers come and go.
        "workers": workers.count if workers.scheduler is None else None,
    }


def _finished(output: Path, run: dict[str, Any]) -> tuple[tuple[float, float, float], int]:
    """Return what the manifest of a finished table says about its precision and its idle tuples.

    Raises
    ------
    OutputError
        If the table is not the one that this run would write.
    """
    try:
        content = json.loads(read_bytes(Manifest.path_for(output), limit=1 << 20, replaceable=True))
        parameters = content["parameters"]
        there = {key: parameters.get(key) for key in run}
        same = content["outputs"][output.name] == sha256_file(output)
    except (ValueError, KeyError, AttributeError, TypeError, InputError, RecursionError):
        raise OutputError(
            f"{output}: exists, and has no manifest that says how it was made; --overwrite replaces it, "
            "or name another output"
        ) from None
    if there != run:
        raise OutputError(
            f"{output}: exists and was made with {_difference(there, run)}; --overwrite replaces it, "
            "or name another output"
        )
    if not same:
        raise OutputError(
            f"{output}: was changed since it was made; --overwrite makes it again, or name another output"
        )
    try:
        low, middle, high = map(float, parameters["standard_error_percent"])
        return (low, middle, high), int(parameters["idle_tuples"])
    except (KeyError, TypeError, ValueError):
        return (math.nan, math.nan, math.nan), 0


def _difference(there: Mapping[str, Any], here: Mapping[str, Any]) -> str:
    """Return in words in what two runs differ."""
    words = {
        "machine": "--processors",
        "method": "an older or newer method",
        "workload_sha256": "another workload",
        "policyfactory": "policyfactory version",
        **{name: name for name in library_versions()},
    }
    differences = []
    for key in sorted(set(there) | set(here)):
        if there.get(key) != here.get(key):
            name = words.get(key, "--" + key.replace("_", "-"))
            values = "" if key in {"method", "workload_sha256"} else f" {there.get(key)} (now {here.get(key)})"
            differences.append(name + values)
    return ", ".join(differences) or "other options"


# The way in from Python: a score table of a workload, in memory or on disk --------------------------------------------


def generate(
    workload: Workload | Path | str,
    options: GenerateOptions | None = None,
    *,
    output: Path | str | None = None,
    workers: Workers | int = 1,
    report: Report = lambda _: None,
    notify: Notify = lambda _: None,
    **changes: Any,
) -> ScoreTable:
    """Return the scores of random tuples of ``workload``.

    Parameters
    ----------
    workload : Workload, or path of a log
        Where the tuples are cut from; run times, processors and submit times are used, requests are not.
    options : GenerateOptions, optional
        What determines the scores; default: 441 tuples of 256,000 trials.
    output : Path or str, optional
        Write the table there, with its manifest. What an interrupted run left there is continued, and a finished
        table of the same run is read. Else the table is in memory only.
    workers : Workers or int
        Who does the work; a number means so many threads. The table does not depend on it.
    report : callable
        Called with the number of finished tuples: first with those that an earlier run left on disk, then after each.
    notify : callable
        Called with a sentence when a worker was lost, or workers are waited for; from any thread.
    **changes
        The fields of `GenerateOptions`, in place of those of ``options``: ``tuples=200, trials=16_000``.

    Raises
    ------
    UsageError
        If an option is out of range, or ``workload`` is neither jobs nor a path.
    WorkloadError
        If the workload is shorter than a tuple.
    WorkersError
        If the workers cannot be reached, or are lost.

    Examples
    --------
    >>> import policyfactory as pf
    >>> pf.generate(pf.generate_lublin(256, 500, seed=1), tuples=2, trials=3200)
    <ScoreTable lublin-256: 64 jobs in 2 tuples>
    """
    options = changed(options or GenerateOptions(), changes)
    inputs: dict[str, str] = {}
    if not isinstance(workload, Workload):
        # Trials know the run times: requests are not read, and may be missing.
        path, workload = workload, read(workload, estimate_missing="runtime")
        inputs = {Path(path).name: workload.cleaning.sha256}
    if output is not None:
        output = Path(output)
        write_scores(workload, options, output, workers=workers, report=report, notify=notify, inputs=inputs)
        return read_score_table(output)
    check_options(workload, options)
    report(0)
    lines: dict[int, str] = {}
    numbers = list(range(options.tuples))
    with contextlib.closing(finished_tuples(workload, options, numbers, workers=workers, notify=notify)) as finished:
        for number, rows in finished:
            lines[number] = rows
            report(len(lines))
    text = "".join(lines[number] for number in range(options.tuples))
    return parse_rows(text, name=workload.name, origin=workload.origin)
