"""The way in from Python: a score table of a workload, in memory or on disk."""

from __future__ import annotations

from pathlib import Path

from policyfactory.parallel.pool import Tell, Workers
from policyfactory.trials.files import write_scores
from policyfactory.trials.run import GenerateOptions, Report, check_options, finished_tuples
from policyfactory.trials.table import ScoreTable, parse_rows, read_score_table
from policyfactory.workload.jobs import Workload

__all__ = ["generate_scores"]


def generate_scores(
    workload: Workload,
    options: GenerateOptions,
    *,
    output: Path | None = None,
    workers: Workers | int = 1,
    report: Report = lambda _: None,
    tell: Tell = lambda _: None,
) -> ScoreTable:
    """Return the scores of random tuples of ``workload``.

    Parameters
    ----------
    workload : Workload
        Where the tuples are cut from; run times, processors and submit times are used, requests are not.
    options : GenerateOptions
        The rest.
    output : Path, optional
        Write the table there, with its manifest; see `policyfactory.trials.files`. Else it is in memory only.
    workers : Workers or int
        Who does the work; a number means so many threads. The table does not depend on it.
    report : callable
        Called with the number of finished tuples after each.
    tell : callable
        Called with a sentence when a worker was lost, or workers are waited for; from any thread.

    Raises
    ------
    UsageError
        If an option cannot be meant.
    WorkloadError
        If the workload is shorter than a tuple.
    WorkersError
        If the workers cannot be reached, or are lost.
    """
    if output is not None:
        write_scores(workload, options, output, workers=workers, report=report, tell=tell)
        return read_score_table(output)
    check_options(workload, options)
    lines: dict[int, str] = {}
    for number, rows in finished_tuples(workload, options, list(range(options.tuples)), workers=workers, tell=tell):
        lines[number] = rows
        report(len(lines))
    text = "".join(lines[number] for number in range(options.tuples))
    return parse_rows(text, name=workload.name, origin=workload.origin)
