"""``policyfactory workload lublin`` and ``policyfactory workload estimates``: jobs and requests that models make."""

from __future__ import annotations

import math
import shlex
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from policyfactory.core.errors import UsageError
from policyfactory.core.outputs import exclusive, refuse_earlier
from policyfactory.core.units import parse_duration
from policyfactory.report.terminal import note, warn

if TYPE_CHECKING:
    from policyfactory.workload.models.lublin import PerClass
    from policyfactory.workload.models.tsafrir import UserBin

__all__ = ["estimates", "lublin", "register"]

_DEFAULT_MAX_ESTIMATE = "18h"


_SEED = Annotated[int, typer.Option(help="Seed of the random numbers: the same seed, the same jobs.")]
_OUTPUT = Annotated[
    Path | None, typer.Option("--output", "-o", help="SWF file to write (.gz is packed); without it stdout.")
]
_Stream = Literal["numpy", "drand48"]
_BINS = Annotated[
    list[str] | None,
    typer.Option(
        "--bin",
        help="Known requests of a site: TIME=JOBS or TIME=PERCENT%, for example 18h=9.7%; up to 20 times.",
        metavar="TIME=JOBS",
    ),
]


def register(app: typer.Typer) -> None:
    """Add the commands to ``policyfactory workload``."""
    app.command("lublin")(lublin)
    app.command("estimates")(estimates)


def lublin(
    processors: Annotated[int, typer.Option(help="Processors of the machine; any number.")] = 256,
    jobs: Annotated[int, typer.Option(help="Number of jobs.")] = 20_000,
    seed: _SEED = 1,
    stream: Annotated[
        _Stream, typer.Option(help="Random numbers: ours, or those of the archive's program, job for job.")
    ] = "numpy",
    typed: Annotated[
        bool, typer.Option("--typed/--typeless", help="Interactive and batch jobs apart, or one kind of job.")
    ] = False,
    uhi: Annotated[
        str | None,
        typer.Option(help="log2 of the largest job; with --typed also INTERACTIVE,BATCH. Default: log2(processors)."),
    ] = None,
    umed: Annotated[str | None, typer.Option(help="log2 of where large jobs begin. Default: UHI - 2.5.")] = None,
    ulow: Annotated[str | None, typer.Option(help="log2 of the smallest parallel job. Default: 0.8.")] = None,
    uprob: Annotated[str | None, typer.Option(help="Share of parallel jobs below UMED. Default: 0.86.")] = None,
    load: Annotated[
        float | None, typer.Option(help="Offered load to meet, for example 0.9; the gaps between arrivals are scaled.")
    ] = None,
    start_hour: Annotated[int, typer.Option(help="Hour of the day at time 0.")] = 0,
    requests: Annotated[
        Literal["none", "tsafrir"],
        typer.Option("--estimates", help="Requested times: none (-1), or of the Tsafrir model."),
    ] = "none",
    max_estimate: Annotated[
        str | None, typer.Option(help="Longest request of --estimates tsafrir. Default: 18h.")
    ] = None,
    bins: _BINS = None,
    output: _OUTPUT = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an earlier file.")] = False,
) -> None:
    """Make jobs with the Lublin-Feitelson model and write them as SWF.

    The offered load is the sum of run time times processors, over the machine's processors times the time from
    the first submission to the last.
    """
    from policyfactory.workload.models.lublin import LublinModel
    from policyfactory.workload.models.lublin_log import Recipe, make_log, write_log

    if requests == "none" and (max_estimate or bins):
        raise UsageError("--max-estimate and --bin belong to the estimate model; add --estimates tsafrir")
    model = LublinModel.for_machine(
        processors,
        typed=typed,
        start_hour=start_hour,
        uhi=_per_class("--uhi", uhi),
        umed=_per_class("--umed", umed),
        ulow=_per_class("--ulow", ulow),
        uprob=_per_class("--uprob", uprob),
    )
    longest = None if requests == "none" else _longest(max_estimate or _DEFAULT_MAX_ESTIMATE)
    recipe = Recipe(model, jobs, seed, stream, load, longest, tuple(_user_bins(bins or [], jobs)))
    with exclusive(output):
        refuse_earlier(output, overwrite=overwrite)
        log, notes = make_log(recipe, _command())
        write_log(log, output)
    _report(notes, output)


def _per_class(option: str, text: str | None) -> PerClass | None:
    """Return the number, or the pair of numbers, of an option."""
    if text is None:
        return None
    try:
        numbers = [float(part) for part in text.split(",")]
    except ValueError:
        numbers = []
    if len(numbers) == 1:
        return numbers[0]
    if len(numbers) == 2:
        return numbers[0], numbers[1]
    raise UsageError(
        f"{option} {text!r} is no number; write for example {option} 5.5, or INTERACTIVE,BATCH with --typed"
    )


def _longest(text: str) -> int:
    seconds = parse_duration(text)
    if math.isinf(seconds):
        raise UsageError(f"--max-estimate {text}: the model needs a longest request; give for example 18h")
    return int(seconds)


def _user_bins(texts: list[str], jobs: int) -> list[UserBin]:
    """Return estimate (s) and jobs of each ``TIME=JOBS`` or ``TIME=PERCENT%``."""
    pairs = []
    for text in texts:
        time, equals, count = text.partition("=")
        try:
            number = float(count.removesuffix("%")) if equals else math.nan
        except ValueError:
            number = math.nan
        if count.endswith("%"):
            number = float(round(number / 100 * jobs)) if math.isfinite(number) else math.nan
        seconds = parse_duration(time)
        if not (math.isfinite(number) and number == int(number) and math.isfinite(seconds)):
            raise UsageError(f"--bin {text!r} is not TIME=JOBS or TIME=PERCENT%; write for example 18h=970 or 18h=9.7%")
        pairs.append((int(seconds), int(number)))
    return pairs


def _command() -> str:
    """Return the command without the name of its output: the same jobs, the same bytes."""
    words = sys.argv[1:]
    kept = [
        word
        for word, before in zip(words, ["", *words], strict=False)
        if not word.startswith(("-o", "--output", "--overwrite")) and before not in ("-o", "--output")
    ]
    return shlex.join(["policyfactory", *kept])


def _report(notes: Iterable[str], output: Path | None) -> None:
    for line in notes:
        note(line)
    if output is not None:
        note(f"written: {output}")


def estimates(
    trace: Annotated[Path, typer.Argument(metavar="LOG", help="A log (SWF, also .gz).", show_default=False)],
    max_estimate: Annotated[str, typer.Option(help="Longest request that is allowed.")] = _DEFAULT_MAX_ESTIMATE,
    seed: _SEED = 1,
    stream: Annotated[
        _Stream, typer.Option(help="Random numbers: ours, or those of the model's original program.")
    ] = "numpy",
    bins: _BINS = None,
    output: _OUTPUT = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an earlier file.")] = False,
) -> None:
    """Give the jobs of a log the requested times of the Tsafrir-Etsion-Feitelson model.

    All other fields stay. Run times above the longest request are cut to it; lines without run time or processors
    are dropped.
    """
    from policyfactory.workload.models.tsafrir import draw_estimates, replace_requests, usable_lines
    from policyfactory.workload.swf.files import read_swf, write_swf

    longest = _longest(max_estimate)
    with exclusive(output):
        refuse_earlier(output, overwrite=overwrite)
        log = read_swf(trace)
        pairs = _user_bins(bins or [], int(usable_lines(log).sum()))
        result, made = replace_requests(
            log, lambda run_time: draw_estimates(run_time, longest, seed=seed, user_bins=pairs, stream=stream)
        )
        write_swf(result, output)
    if len(log) > len(result):
        warn(f"{len(log) - len(result):,} of {len(log):,} lines have no run time or no processors and were dropped")
    _report([f"{len(result):,} jobs", made.note], output)
