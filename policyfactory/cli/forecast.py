"""``policyfactory forecast``: when the jobs of a queue will start, and how often such forecasts were right."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from json import loads as json_of
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import typer

from policyfactory.cli.options import READING, Json, Overwrite, leave, note_compiling, with_options
from policyfactory.cli.review import OutputOption, ZoneOption, refuse_to_replace, write
from policyfactory.core.errors import InputError, UsageError
from policyfactory.core.files import command_line, digest_of, dump_json, package_versions
from policyfactory.core.text import format_duration, parse_duration
from policyfactory.evaluation.options import OPTIONS
from policyfactory.report.terminal import note, percent_bar, print_json, say, show_sections, show_verdict, warn

if TYPE_CHECKING:
    from policyfactory.forecasting.forecast import Forecast, JobForecast
    from policyfactory.report.sections import Section
    from policyfactory.report.verdict import Verdict
    from policyfactory.site.model import Site
    from policyfactory.statistics.calibration import Stretch
    from policyfactory.workload.jobs import Workload
    from policyfactory.workload.snapshot import Snapshot


RESULTS, _LARGEST = "backtest.json", 1_000_000  # bytes


@with_options(OPTIONS[name] for name in READING)
def forecast(
    past: Annotated[
        Path | None,
        typer.Argument(metavar="LOG", help="What ran on the cluster (SWF); as --log.", show_default=False),
    ] = None,
    site: Annotated[
        Path | None,
        typer.Option(help="The cluster's site file; without it EASY on the log's processors."),
    ] = None,
    queue: Annotated[
        Path | None,
        typer.Option(help="Its queue: what squeue --json or scontrol -o show job prints (docs/site.md); - is stdin."),
    ] = None,
    log: Annotated[Path | None, typer.Option(help="What ran on it up to now (SWF; workload import makes one).")] = None,
    job: Annotated[
        str | None, typer.Option(metavar="ID", help="Only this job, in full; several with commas between.")
    ] = None,
    submit: Annotated[
        str | None,
        typer.Option(
            metavar="OPTIONS", help='A job that is not there yet, as for sbatch: "-N 16 -t 12:00:00 -p batch".'
        ),
    ] = None,
    user: Annotated[
        str | None, typer.Option(help="Only this user's jobs, without other users' names; or who submits --submit.")
    ] = None,
    by: Annotated[
        str | None, typer.Option(metavar="TIME", help="The chance to start within this time from the snapshot on: 6h.")
    ] = None,
    backtest: Annotated[
        int | None,
        typer.Option(metavar="N", help="In place of a queue: forecast at N instants of the log, and compare."),
    ] = None,
    recorded: Annotated[
        bool, typer.Option("--recorded", help="With --backtest: by the starts in the log, not by a simulation of it.")
    ] = False,
    backfill: Annotated[
        Literal["easy", "slurm"] | None,
        typer.Option(help="Of a backtest without --site: EASY (easy), or Slurm's rules on an assumed site (slurm)."),
    ] = None,
    calibration: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Stretch intervals by the backtest in this folder.")
    ] = None,
    predictor: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A model.json of a backtest or of predict: nothing is trained.")
    ] = None,
    without: Annotated[
        list[str] | None,
        typer.Option(metavar="WHAT", help="What futures leave out: arrivals, cancellations, followers. Repeatable."),
    ] = None,
    futures: Annotated[int, typer.Option(metavar="N", help="Futures that are simulated.")] = 200,
    horizon: Annotated[str, typer.Option(metavar="TIME", help="How far they go, at most 7d.")] = "1d",
    seed: Annotated[int, typer.Option(help="Of all draws.")] = 1,
    taken: Annotated[
        str | None, typer.Option(metavar="TIME", help="When the queue was printed, if the file does not say it.")
    ] = None,
    time_zone: ZoneOption = None,
    output: OutputOption = None,
    json: Json = False,
    overwrite: Overwrite = False,
    **reading: Any,
) -> None:
    """Say when the jobs of a queue will start, with intervals.

    Run times are predicted as distributions from the log, arrivals drawn from its last weeks, and the queue is
    simulated by the site's rules into many futures. --submit forecasts a job that is not there yet, beside what else
    could be asked for. --backtest says how often the intervals were right on the log, and beside what else.

    Example: policyfactory forecast --site site.toml --queue queue.json --log cluster.swf
    """
    from policyfactory.cli.site import read_queue
    from policyfactory.forecasting.forecast import draws_of
    from policyfactory.simulation.slurm.queue import find_job
    from policyfactory.site.file import read_site
    from policyfactory.site.fits import site_of
    from policyfactory.site.submission import NEW
    from policyfactory.workload.clean import read_with_cancelled

    source = _only(past, log)
    of_queue: dict[str, Any] = {"--queue": queue, "--job": job, "--submit": submit, "--user": user}
    of_queue |= {"--by": by, "--taken": taken}
    of_queue |= {"--predictor": predictor, "--calibration": calibration, "--without": without}
    _check(of_queue, {"--recorded": recorded or None, "--backfill": backfill}, backtest, site)
    refuse_to_replace(output, overwrite=overwrite)
    workload, cancelled = read_with_cancelled(source, **reading)
    cluster = site_of(workload.select(cancelled < 0)) if backfill == "slurm" else None
    cluster = cluster if site is None else read_site(site)
    if workload.cleaning.warning:
        warn(workload.cleaning.warning)
    inputs = {str(source): workload.cleaning.sha256}
    inputs |= {str(file): digest_of(file) for file in (site, queue) if file is not None and str(file) != "-"}
    shared: dict[str, Any] = {"futures": futures, "seed": seed, "horizon": horizon}
    how = _Shown(
        output,
        inputs,
        {**shared, "backfill": backfill, "without": without or [], **reading},
        json=json,
        overwrite=overwrite,
    )
    shared["cancelled"] = cancelled
    if backtest is not None:
        _try(workload, cluster, backtest, shared, how, recorded=recorded)
        return
    if by is not None and not 0 < (seconds := parse_duration(by)) <= draws_of(futures, seed, horizon).horizon:
        raise UsageError(
            f"--by {by}: expected more than 0, and at most the horizon of {horizon} (--horizon, at most 7d)"
        )
    if time_zone is not None:
        workload = dataclasses.replace(workload, time_zone=time_zone)
    snapshot = read_queue(queue or Path("-"), site, time_zone, taken)
    names = [] if job is None else job.split(",")
    for name in names:
        if name != NEW:
            find_job(snapshot, name)
    given_too = {"submit": submit, "user": user, "calibration": calibration, "predictor": predictor}
    found = _foretell(snapshot, cluster, workload, {**shared, "without": without or ()}, given_too)
    how.show(found, [found.find(name) for name in names], None if by is None else int(seconds))


def _check(of_queue: dict[str, Any], of_backtest: dict[str, Any], backtest: int | None, site: Path | None) -> None:
    """Refuse options that do not go together."""
    given = [name for name, value in of_queue.items() if value is not None]
    if of_queue["--queue"] is None and backtest is None:
        raise UsageError("give --queue FILE, what squeue --json prints now, or --backtest 200, to try the log")
    if backtest is not None and given:
        raise UsageError(f"{given[0]} is of a queue, and --backtest makes its own; leave one of them out")
    if backtest is None and of_backtest["--recorded"]:
        raise UsageError("--recorded is for --backtest; leave it out")
    if of_backtest["--backfill"] is not None and (backtest is None or site is not None):
        raise UsageError("--backfill is for a --backtest without --site; leave it out")


def _only(past: Path | None, log: Path | None) -> Path:
    source = log or past
    if source is None or (past is not None and log is not None):
        raise UsageError("give the log of the cluster once: as LOG, or with --log")
    return source


class _Shown(NamedTuple):
    """How results are shown and written."""

    output: Path | None
    inputs: dict[str, str]
    parameters: dict[str, Any]
    json: bool
    overwrite: bool

    def write(
        self,
        title: str,
        sections: Sequence[Section],
        others: dict[str, str],
        more: dict[str, Any],
        verdict: Verdict | None = None,
    ) -> None:
        """Write everything into the folder, if there is to be one."""
        if self.output is not None:
            parameters = {**self.parameters, **more}
            write(self.output, title, verdict, sections, self.inputs, parameters, others, overwrite=self.overwrite)

    def show(self, found: Forecast, chosen: list[JobForecast], seconds: int | None) -> None:
        """Show a forecast, or those of some of its jobs, and write it."""
        from policyfactory.forecasting.views import sections_of

        sections = sections_of(found, seconds)
        if self.json:
            shown = [its.as_dict(seconds) for its in chosen] or [found.as_dict(seconds)]
            print_json(shown[0] if len(shown) == 1 else shown)
        elif chosen:
            for its in chosen:
                _show_job(found, its, seconds)
        elif found.jobs:
            show_sections(sections)
        else:
            note(f"no such job waits in {found.snapshot.source}: when a new one would start, --submit tells")
        for text in () if self.json or (found.jobs and not chosen) else found.assumed:
            note(f"assumed: {text}")
        title = f"When jobs will start on {'the cluster' if found.site is None else found.site.name}"
        others = {"forecast.json": dump_json(found.as_dict(seconds)), "jobs.csv": found.frame().to_csv(index=False)}
        self.write(title, sections, others, {"taken": found.snapshot.taken})


def _try(
    workload: Workload, site: Site | None, instants: int, shared: dict[str, Any], how: _Shown, *, recorded: bool
) -> None:
    """Make a backtest, show it, and write it; where a described site is simulated, say first how near that is."""
    from policyfactory.evaluation.fidelity.compare import fidelity, verdict_of
    from policyfactory.forecasting.backtest import backtest
    from policyfactory.forecasting.views import sections_of_backtest
    from policyfactory.prediction.store import forests_to_json

    near, ran = None, workload.select(shared["cancelled"] < 0)
    if site is not None and not site.assumed and not recorded and (workload.start >= 0).any():
        with percent_bar(f"{workload.name}: % of its replay on the site", note_compiling) as shown:
            near = fidelity(ran, site, progress=lambda done: shown(done / len(ran)))
    with percent_bar(f"{workload.name}: % of the backtest") as follow:
        tried = backtest(workload, site, instants, recorded=recorded, follow=follow, **shared)
    sections, verdict = sections_of_backtest(tried), None if near is None else verdict_of(near)
    content = {**tried.as_dict(), "fidelity": None if near is None else near.light}
    if how.json:
        print_json(content)
    else:
        if verdict is not None:
            show_verdict(verdict)
        if near is not None and near.light == "far":
            note("the simulation of its site is far from the record; make the backtest with --recorded")
        show_sections(sections)
    others = {RESULTS: dump_json(content)}
    if tried.loop.record.trainings:
        made_of = {"command": command_line(), "inputs": how.inputs, "versions": package_versions(), **how.parameters}
        others["model.json"] = dump_json(forests_to_json(tried.loop.record.trainings[-1].forests, made_of))
    more = {"backtest": instants, "recorded": recorded}
    how.write(sections[0].title, sections, others, more, verdict)
    if how.output is None and not how.json:
        note("add --output DIR to keep it: later forecasts take its --calibration, and its model.json as --predictor")
    leave(describes=near is None or near.light != "far")


def read_calibration(path: Path) -> Stretch:
    """Return the stretch of a backtest's folder or file.

    Raises
    ------
    InputError
        If there is none, or it is no such file.
    """
    from policyfactory.core.inputs import read_bytes
    from policyfactory.statistics.calibration import Stretch

    file = path / RESULTS if path.is_dir() else path
    cure = "give the folder of policyfactory forecast LOG --backtest 200 --output DIR"
    try:
        tried = json_of(read_bytes(file, limit=_LARGEST))
        is_far, stretch = tried.get("fidelity") == "far", Stretch.from_dict(tried["calibration"])
    except (InputError, ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise InputError(f"{file}: it is no calibration ({error}); {cure}") from error
    if is_far:
        raise InputError(f"{file}: the simulation of its site is far from the record; make it with --recorded")
    return stretch


def _foretell(
    snapshot: Snapshot, site: Site | None, workload: Workload, shared: dict[str, Any], given: dict[str, Any]
) -> Forecast:
    """Return the forecast of a queue, and only what a user may see if one is named."""
    from policyfactory.forecasting.forecast import forecast
    from policyfactory.prediction.store import load_forests
    from policyfactory.prediction.training import Predictor

    user, calibration, model = given["user"], given["calibration"], given["predictor"]
    stretch = None if calibration is None else read_calibration(calibration)
    predictor = None if model is None else Predictor(forests=load_forests(model))
    with percent_bar(f"{workload.name}: % of the log") as follow:
        found = forecast(
            *(snapshot, site, workload),
            submit=given["submit"],
            user=user or "",
            stretch=stretch,
            predictor=predictor,
            follow=follow,
            **shared,
        )
    return found if user is None else found.of_user(user)


def _show_job(whole: Forecast, found: JobForecast, seconds: float | None) -> None:
    import numpy as np

    from policyfactory.report.sections import span
    from policyfactory.workload.accounting.times import shown

    quantiles = found.quantiles
    beyond = f"more than {format_duration(found.horizon)}"
    say(f"job {found.job.name} of {found.job.user or '(no user)'}", style="bold")
    if found.outside:
        say(found.outside)
        return
    low, quarter, median, most, high = (beyond if end == float("inf") else span(end) for end in quantiles.tolist())
    what = "in half of the futures and more"
    if found.median < float("inf"):
        date = shown(whole.snapshot.taken + round(found.median), whole.zone)
        what = f"half of the futures have it by {date}"
    say(f"starts in {median}: {what}")
    say(f"50 % of the futures: {quarter} to {most}; 90 %: {low} to {high}")
    soon = seconds or min(3600, found.horizon)
    chance = f"{100 * found.chance(soon):.0f} % of the futures"
    say(f"job {found.job.name} starts within {format_duration(soon)} in {chance}")
    if found.midnight <= found.horizon:
        say(f"today: {100 * found.chance(found.midnight):.0f} %")
    short, usual, long = (span(run) for run in np.quantile(found.runs, (0.05, 0.5, 0.95)).tolist())
    say(f"like jobs ran {usual} ({short} to {long}, 90 %)")
    if found.plan is not None:
        say(f"a plan by limits, without arrivals: {span(found.plan)}")
    for wait in found.waits:
        say(f"- {wait.text}")
