"""``policyfactory judge``: the score of other people's formulas on training replicas of a log, as JSON."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from policyfactory.cli import learning_options as option
from policyfactory.cli.evaluate_options import with_options
from policyfactory.cli.workers_options import BackendOption, SchedulerOption, WorkersOption, workers_of
from policyfactory.evaluate.plain import OPTIONS
from policyfactory.report.terminal import note

__all__ = ["judge"]

_STDIN = Path("-")


@with_options(OPTIONS[name] for name in option.READING)
def judge(
    log: option.Log,
    formula: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="FORMULA",
            help="Candidates: 'ln(e) - ln(s) + 0.4*ln(q)'; behind -- where one begins with a minus sign.",
        ),
    ] = None,
    candidates: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help='More of them: a formula a line, or JSON lines {"name": ..., "formula": ...}; -: standard input.',
        ),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="JSON file (default: standard output).")
    ] = None,
    held_out: Annotated[
        bool, typer.Option("--held-out", help="Judge them on the last part of the log too; this is counted.")
    ] = False,
    ledger: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Where candidates and held-out verdicts are counted (default: judge-ledger.json beside the output).",
        ),
    ] = None,
    replicas: Annotated[int, typer.Option(help="Replicas of a part of the log.")] = 8,
    loads: option.Loads = "0.8,1.2",
    part: Annotated[int, typer.Option(help="Percent of the jobs, in time, to train on; the rest is held out.")] = 60,
    backfill: Annotated[str, typer.Option(help="Backfilling: easy, none, conservative.")] = "easy",
    threshold: Annotated[
        str, typer.Option(metavar="TIME", help="Jobs that have waited longer go first: 20h; inf: never.")
    ] = "inf",
    time_limit: Annotated[
        str, typer.Option(metavar="TIME", help="What a candidate has for all its replicas: 90s, 5m.")
    ] = "5m",
    seed: Annotated[int, typer.Option(help="Seed of the replicas.")] = 1,
    workers: WorkersOption = None,
    backend: BackendOption = None,
    scheduler: SchedulerOption = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an earlier output.")] = False,
    **reading: Any,
) -> None:
    """Score candidates, from whatever search they come, on replicas of the first part of a log.

    A score is the ratio of the mean bounded slowdown to that of the published policy that is best there, with its
    interval. A candidate that cannot be used has an error and stops no other. What is held out is asked on request
    only, and intervals of the answer are adjusted by the number of candidates that were ever tried on the log.
    """
    from policyfactory.cli.train_screen import TrainScreen
    from policyfactory.core.artefact import dump_json
    from policyfactory.core.files import atomic_write
    from policyfactory.core.outputs import exclusive, refuse_earlier
    from policyfactory.core.text import counted as words
    from policyfactory.core.units import parse_duration
    from policyfactory.search.arena import LEDGER, Arena, JudgeOptions

    given = [*(formula or []), *_lines(candidates)]
    options = JudgeOptions(
        replicas=replicas,
        part=part,
        loads=option.loads_of(loads),
        backfill=backfill,  # type: ignore[arg-type]  # its words are checked there
        threshold=parse_duration(threshold),
        time_limit=parse_duration(time_limit),
        seed=seed,
        **reading,
    )
    who = workers_of(workers, backend, scheduler)
    refuse_earlier(output, overwrite=overwrite)
    beside = LEDGER if output is None else output.parent / LEDGER
    with exclusive(output), TrainScreen() as screen:
        arena = Arena(log, options, ledger=ledger or beside, workers=who, follower=screen)
        found = arena.judge(given, held_out=held_out)
        text = dump_json(found.as_dict())
        if output is not None:
            atomic_write(output, text)
    if output is None:
        typer.echo(text, nl=False)
        return
    many = words(len(found.candidates), "candidate")
    note(
        f"{output}: {many} against {found.baseline.policy.name}, the published policy that is best there; "
        f"{words(found.counted.tried, 'candidate')} so far on this log"
    )


def _lines(path: Path | None) -> list[str]:
    """Return the lines of the file of candidates, or of standard input."""
    from policyfactory.core.errors import InputError
    from policyfactory.core.inputs import read_bytes
    from policyfactory.search.submitted import MOST_BYTES, lines_of

    if path is None:
        return []
    if path != _STDIN:
        return lines_of(read_bytes(path, limit=MOST_BYTES))
    data = sys.stdin.buffer.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise InputError(f"standard input: has more than the {MOST_BYTES:,} bytes that are read; split it")
    return lines_of(data)
