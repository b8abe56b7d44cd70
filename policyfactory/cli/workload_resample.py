"""``policyfactory workload resample``: new logs from the weeks of each user of a real one."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from policyfactory.core.artefact import Manifest, command_line
from policyfactory.core.errors import UsageError, WorkloadError
from policyfactory.core.files import digest_of, together
from policyfactory.core.outputs import check_file, exclusive, refuse_earlier
from policyfactory.core.version import __version__
from policyfactory.report.terminal import note, warn
from policyfactory.workload.presets import MISSING_HELP, EstimateMissing

if TYPE_CHECKING:
    from policyfactory.workload.cleaning_report import CleaningReport
    from policyfactory.workload.jobs import Workload
    from policyfactory.workload.resample import History, Resampling
    from policyfactory.workload.sensitivity import Sensitivity
    from policyfactory.workload.swf.log import SwfLog

__all__ = ["register", "resample"]


def register(app: typer.Typer) -> None:
    """Add the command to ``policyfactory workload``."""
    app.command("resample")(resample)


def resample(
    trace: Annotated[Path, typer.Argument(metavar="LOG", help="A log (SWF, also .gz).", show_default=False)],
    weeks: Annotated[int | None, typer.Option(help="Length of the new log in weeks.")] = None,
    length: Annotated[
        str | None, typer.Option(help="Length in words: 2y (104 weeks), 26w, log (as the log, the default).")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the random numbers: the same seed, the same jobs.")] = 1,
    number: Annotated[int, typer.Option(help="Which of the resamples of that seed, from 1.")] = 1,
    draw: Annotated[
        Literal["log", "active"],
        typer.Option(
            help="Draw from all weeks of the log (keeps its load), or from those in which the user was active."
        ),
    ] = "log",
    load: Annotated[
        float, typer.Option(help="Divide the times between arrivals by this: 1.1 is 10 % more load.")
    ] = 1.0,
    estimates: Annotated[
        str, typer.Option(help="Requested times: user, exact, noisy:F (up to 1 + F run times), tsafrir (a model).")
    ] = "user",
    preset: Annotated[str, typer.Option(help="Filter of the log, as for workload clean.")] = "default",
    estimate_missing: Annotated[EstimateMissing, typer.Option(help=MISSING_HELP)] = "error",
    processors: Annotated[int | None, typer.Option(help="Processors, where the header does not say.", min=1)] = None,
    force_processors: Annotated[
        bool, typer.Option("--force-processors", help="Use that size also where the header has another one.")
    ] = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="SWF file to write (.gz is packed); without it stdout.")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an earlier file.")] = False,
) -> None:
    """Make a new log: for every week and user, one week of that user's history, drawn at random.

    The log is cleaned first. Its week begins at its first submission; jobs keep their second of the week.
    Other arrivals and other requested times come with --load and --estimates.
    """
    from policyfactory.workload.clean import read
    from policyfactory.workload.resample import History, Resampling, parse_length
    from policyfactory.workload.sensitivity import Sensitivity, parse_estimates
    from policyfactory.workload.swf.files import write_swf

    if weeks is not None and length is not None:
        raise UsageError("--weeks and --length say the same thing; give one of them")
    how = Resampling(weeks if length is None else parse_length(length), draw)
    axes = Sensitivity(load, parse_estimates(estimates))
    if output is not None:
        check_file(output, "its manifest")
    with exclusive(output):
        refuse_earlier(output, overwrite=overwrite)
        log = read(
            trace,
            preset=preset,
            processors=processors,
            force_processors=force_processors,
            estimate_missing=estimate_missing,
        )
        history = History(log)
        longest = math.ceil(int(log.requested_time.max()) / log.ticks)
        drawn = history.sample(how.weeks, seed, number, how.draw)
        made = axes.apply(drawn, seed=seed, number=number, longest_s=longest)
        if not len(made):
            raise WorkloadError(
                f"{trace}: no user had a job in the week drawn for it; ask for more weeks or another --seed"
            )
        _report(history, how, made)
        with together():
            write_swf(_as_log(made), output)
            if output is not None:
                _manifest(output, log.cleaning, seed, {"number": number, **_parameters(history, how, axes)})
    if output is not None:
        note(f"written: {output}")


def _report(history: History, how: Resampling, made: Workload) -> None:
    from policyfactory.workload.jobs import load_in_words

    log = history.workload
    note(log.cleaning.totals())
    rest = f"; {history.left_out:,} jobs after the last whole week are left out" if history.left_out else ""
    note(f"the log has {history.weeks} whole weeks of {history.users:,} users with {history.jobs:,} jobs{rest}")
    note(f"{len(made):,} jobs: {made.origin.removeprefix(f'{log.origin}; ')}")
    note(f"{load_in_words(made.offered_load, 4)}; that of the log is {log.offered_load:.4f}")
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


def _parameters(history: History, how: Resampling, axes: Sensitivity) -> dict[str, object]:
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
