"""``policyfactory workload lublin`` and ``policyfactory workload estimates``: jobs and requests that models make."""

from __future__ import annotations

import dataclasses
import math
import shlex
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from policyfactory.cli import options as option
from policyfactory.core.errors import UsageError, WorkloadError
from policyfactory.core.files import Manifest, check_file, command_line, digest_of, exclusive, together
from policyfactory.core.text import parse_duration
from policyfactory.core.version import __version__
from policyfactory.evaluation.options import OPTIONS
from policyfactory.report.terminal import note, warn

if TYPE_CHECKING:
    from policyfactory.workload.jobs import Workload
    from policyfactory.workload.models.lublin import PerClass
    from policyfactory.workload.models.tsafrir import UserBin
    from policyfactory.workload.presets import CleaningReport
    from policyfactory.workload.resample import Resampling, UserWeeks
    from policyfactory.workload.sensitivity import Sensitivity
    from policyfactory.workload.swf.log import SwfLog

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
        typer.Option(
            metavar="NUMBER",
            help="log2 of the largest job; with --typed also INTERACTIVE,BATCH. Default: log2(processors).",
        ),
    ] = None,
    umed: Annotated[
        str | None, typer.Option(metavar="NUMBER", help="log2 of where large jobs begin. Default: UHI - 2.5.")
    ] = None,
    ulow: Annotated[
        str | None, typer.Option(metavar="NUMBER", help="log2 of the smallest parallel job. Default: 0.8.")
    ] = None,
    uprob: Annotated[
        str | None, typer.Option(metavar="NUMBER", help="Share of parallel jobs below UMED. Default: 0.86.")
    ] = None,
    load: Annotated[
        float | None, typer.Option(help="Offered load to meet, for example 0.9; the gaps between arrivals are scaled.")
    ] = None,
    start_hour: Annotated[int, typer.Option(help="Hour of the day at time 0.")] = 0,
    requests: Annotated[
        Literal["none", "tsafrir"],
        typer.Option("--estimates", help="Requested times: none (-1), or of the Tsafrir model."),
    ] = "none",
    max_estimate: Annotated[
        str | None, typer.Option(metavar="TIME", help="Longest request of --estimates tsafrir. Default: 18h.")
    ] = None,
    bins: _BINS = None,
    output: _OUTPUT = None,
    overwrite: option.Overwrite = False,
) -> None:
    """Make jobs with the Lublin-Feitelson model and write them as SWF.

    The offered load is the sum of run time times processors, over the machine's processors times the time from
    the first submission to the last.

    Example: policyfactory workload lublin --processors 256 --jobs 10000 --seed 1 --output lublin.swf
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
    recipe = Recipe(
        model=model,
        jobs=jobs,
        seed=seed,
        stream=stream,
        load=load,
        max_estimate=longest,
        user_bins=tuple(_user_bins(bins or [], jobs)),
    )
    with exclusive(output, overwrite=overwrite):
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
    trace: option.LogFile,
    max_estimate: Annotated[
        str, typer.Option(metavar="TIME", help="Longest request that is allowed.")
    ] = _DEFAULT_MAX_ESTIMATE,
    seed: _SEED = 1,
    stream: Annotated[
        _Stream, typer.Option(help="Random numbers: ours, or those of the model's original program.")
    ] = "numpy",
    bins: _BINS = None,
    output: _OUTPUT = None,
    overwrite: option.Overwrite = False,
) -> None:
    """Give the jobs of a log the requested times of the Tsafrir-Etsion-Feitelson model.

    All other fields stay. Run times above the longest request are cut to it; lines without run time or processors
    are dropped.

    Example: policyfactory workload estimates lublin.swf --seed 1 --output requests.swf
    """
    from policyfactory.workload.models.tsafrir import draw_estimates, replace_requests, usable_lines
    from policyfactory.workload.swf.files import read_swf, write_swf

    longest = _longest(max_estimate)
    with exclusive(output, overwrite=overwrite):
        log = read_swf(trace)
        pairs = _user_bins(bins or [], int(usable_lines(log).sum()))
        result, estimates = replace_requests(
            log, lambda run_time: draw_estimates(run_time, longest, seed=seed, user_bins=pairs, stream=stream)
        )
        write_swf(result, output)
    if len(log) > len(result):
        warn(f"{len(log) - len(result):,} of {len(log):,} lines have no run time or no processors and were dropped")
    _report([f"{len(result):,} jobs", estimates.note], output)


# ``policyfactory workload resample``: new logs from the weeks of each user of a real one ------------------------------


@option.with_options(OPTIONS[name] for name in option.READING if name != "assume")
def resample(
    trace: option.LogFile,
    weeks: Annotated[int | None, typer.Option(help="Length of the new log in weeks.")] = None,
    length: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Length in words: 2y (104 weeks), 26w, log (as the log, the default)."),
    ] = None,
    seed: _SEED = 1,
    number: Annotated[int, typer.Option(help="Which of the resamples of that seed, from 1.")] = 1,
    draw: Annotated[
        Literal["log", "active"],
        typer.Option(
            help="Draw from all weeks of the log (log, keeps its load), or from those of the user's jobs (active)."
        ),
    ] = "log",
    load: Annotated[
        float, typer.Option(help="Divide the times between arrivals by this: 1.1 is 10 % more load.")
    ] = 1.0,
    estimates: Annotated[
        str, typer.Option(help="Requested times: user, exact, noisy:F (up to 1 + F run times), tsafrir (a model).")
    ] = "user",
    output: _OUTPUT = None,
    overwrite: option.Overwrite = False,
    **reading: Any,
) -> None:
    """Make a new log: for every week and user, one week of that user's history, drawn at random.

    The log is cleaned first. Its week begins at its first submission; jobs keep their second of the week.
    Other arrivals and other requested times come with --load and --estimates.

    Example: policyfactory workload resample site.swf.gz --number 10 --output drawn
    """
    from policyfactory.workload.clean import read
    from policyfactory.workload.resample import Resampling, UserWeeks, parse_length
    from policyfactory.workload.sensitivity import Sensitivity, parse_estimates
    from policyfactory.workload.swf.files import write_swf

    if weeks is not None and length is not None:
        raise UsageError("--weeks and --length say the same thing; give one of them")
    how = Resampling(weeks if length is None else parse_length(length), draw)
    axes = Sensitivity(load, parse_estimates(estimates))
    if output is not None:
        check_file(output, "its manifest")
    with exclusive(output, overwrite=overwrite):
        log = read(trace, **reading)
        history = UserWeeks(log)
        longest = math.ceil(int(log.requested_time.max()) / log.ticks)
        drawn = history.sample(how.weeks, seed, number, how.draw)
        resampled = axes.apply(drawn, seed=seed, number=number, longest_s=longest)
        if not len(resampled):
            raise WorkloadError(
                f"{trace}: no user had a job in the week drawn for it; ask for more weeks or another --seed"
            )
        _report_resamples(history, how, resampled)
        with together():
            write_swf(_as_log(resampled), output)
            if output is not None:
                _manifest(output, log.cleaning, seed, {"number": number, **_parameters(history, how, axes)})
    if output is not None:
        note(f"written: {output}")


def _report_resamples(history: UserWeeks, how: Resampling, resampled: Workload) -> None:
    from policyfactory.workload.jobs import load_in_words

    log = history.workload
    note(log.cleaning.totals())
    rest = f"; {history.left_out:,} jobs after the last whole week are left out" if history.left_out else ""
    note(f"the log has {history.weeks} whole weeks of {history.users:,} users with {history.jobs:,} jobs{rest}")
    note(f"{len(resampled):,} jobs: {resampled.origin.removeprefix(f'{log.origin}; ')}")
    note(f"{load_in_words(resampled.offered_load, 4)}; that of the log is {log.offered_load:.4f}")
    if history.users == 1:
        warn("the log has one user only, so that whole weeks of it are drawn")
    if how.draw == "active":
        more = history.expected_work("active") / history.expected_work("log") if history.expected_work() else 1.0
        warn(f"every user is active every week: the expected work of a week is {more:.2f} times the log's")


def _as_log(workload: Workload) -> SwfLog:
    """Return the jobs as a log whose header has a note for each step that made them."""
    from policyfactory.workload.swf.log import log_of_workload

    log = log_of_workload(dataclasses.replace(workload, origin=""))
    header = log.header.replace({"Conversion": f"policyfactory {__version__}"}, tuple(workload.origin.split("; ")))
    return dataclasses.replace(log, header=header)


def _parameters(history: UserWeeks, how: Resampling, axes: Sensitivity) -> dict[str, object]:
    return {
        "weeks": how.weeks or history.weeks,
        "draw": how.draw,
        "load": axes.load,
        "estimates": str(axes.estimates),
        "log_weeks": history.weeks,
        "log_users": history.users,
        "left_out_jobs": history.left_out,
    }


def _manifest(output: Path, account: CleaningReport, seed: int, parameters: dict[str, object]) -> None:
    cleaning = {"preset": account.preset, "estimate_missing": account.estimate_missing, "machine": account.machine}
    Manifest(
        "resampled-log",
        command_line(),
        seed,
        inputs={Path(account.source).name: account.sha256},
        parameters={**parameters, **cleaning},
        outputs={output.name: digest_of(output)},
    ).write(Manifest.path_for(output))
