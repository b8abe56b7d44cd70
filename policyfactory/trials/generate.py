"""The way in from Python: a score table of a workload, in memory or on disk."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TypedDict, Unpack

from policyfactory.core.options import changed
from policyfactory.parallel.workers import Notify, Workers
from policyfactory.trials.estimators import Estimator
from policyfactory.trials.files import write_scores
from policyfactory.trials.run import GenerateOptions, Report, check_options, finished_tuples
from policyfactory.trials.table import ScoreTable, parse_rows, read_score_table
from policyfactory.workload.clean import read
from policyfactory.workload.jobs import Workload

__all__ = ["GenerateSettings", "generate"]


class GenerateSettings(TypedDict, total=False):
    """The fields of `GenerateOptions` as keywords."""

    tuples: int
    trials: int
    state_size: int
    queue_size: int
    estimator: Estimator
    seed: int


def generate(
    workload: Workload | Path | str,
    options: GenerateOptions | None = None,
    *,
    output: Path | str | None = None,
    workers: Workers | int = 1,
    report: Report = lambda _: None,
    notify: Notify = lambda _: None,
    **settings: Unpack[GenerateSettings],
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
        Called with the number of finished tuples after each.
    notify : callable
        Called with a sentence when a worker was lost, or workers are waited for; from any thread.
    **settings
        The fields of `GenerateOptions`, in place of those of ``options``: ``tuples=200, trials=16_000``.

    Raises
    ------
    UsageError
        If an option is out of range, or ``workload`` is neither jobs nor a path.
    WorkloadError
        If the workload is shorter than a tuple.
    WorkersError
        If the workers cannot be reached, or are lost.
    """
    options = changed(options or GenerateOptions(), settings)
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
    lines: dict[int, str] = {}
    numbers = list(range(options.tuples))
    with contextlib.closing(finished_tuples(workload, options, numbers, workers=workers, notify=notify)) as finished:
        for number, rows in finished:
            lines[number] = rows
            report(len(lines))
    text = "".join(lines[number] for number in range(options.tuples))
    return parse_rows(text, name=workload.name, origin=workload.origin)
