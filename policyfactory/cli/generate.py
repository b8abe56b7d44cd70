"""``policyfactory generate``: from a workload to the scores of its jobs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from policyfactory.cli.options import WORKERS, options_given, with_options, workers_of
from policyfactory.core.errors import UsageError
from policyfactory.core.files import Manifest, atomic_write, check_directory, check_output, refuse_earlier, together
from policyfactory.core.options import declared, options_of
from policyfactory.core.text import format_duration
from policyfactory.evaluation.options import OPTIONS
from policyfactory.report.terminal import BarScreen, note, progress, rate_text, show_table, warn
from policyfactory.trials.table import GenerateOptions

if TYPE_CHECKING:
    from policyfactory.trials.files import Written
    from policyfactory.trials.run import EstimatorPrecision
    from policyfactory.workload.jobs import Workload

_FOLDER = "training_data"
_PICTURES = (".svg", ".png", ".pdf")
_CONVERGENCE_TUPLES = 4
_READING = ("preset", "processors", "force_processors")  # trials know the run times


@with_options(
    [*declared(GenerateOptions).values(), *(OPTIONS[name] for name in _READING), *WORKERS],
    defaults={"tuples": None},
    more={"processors": "without a log, of the model (256)", "tuples": "441, with --convergence 4"},
)
def generate(
    context: typer.Context,
    trace: Annotated[
        Path | None,
        typer.Argument(
            metavar="LOG",
            help="Log in the Standard Workload Format (.swf, .swf.gz); without it, the embedded Lublin workload.",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="NAME.csv",
            help=f"Score table to write (default: {_FOLDER}/NAME.csv); with --convergence the picture "
            "(default: convergence.svg), its numbers go beside it.",
        ),
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace a table, or the unfinished table of another run.")
    ] = False,
    convergence: Annotated[
        bool, typer.Option("--convergence", help="Measure instead how precise the scores of both estimators are.")
    ] = False,
    repeats: Annotated[int, typer.Option(help="Repetitions of each measurement of --convergence.")] = 10,
    **options: Any,
) -> None:
    """Score jobs by simulating random orders of a queue; an interrupted run goes on with the same command.

    Example: policyfactory generate site.swf.gz --tuples 1000 --output scores.csv
    """
    from policyfactory.engine.trials import VARIANTS
    from policyfactory.trials.files import followed, write_scores
    from policyfactory.trials.run import check_options

    elsewhere = options["backend"] is not None or options["scheduler"] is not None
    who = workers_of(options)
    if convergence and elsewhere:
        raise UsageError(
            "--convergence measures what one worker does, in this process; leave out --backend and --scheduler"
        )
    if not convergence and options_given(context, {"repeats"}):
        raise UsageError("--repeats is for --convergence, which is not given; leave it out, or add --convergence")
    _check(output, convergence=convergence)
    if convergence and options["tuples"] is None:
        options["tuples"] = _CONVERGENCE_TUPLES
    how = options_of(GenerateOptions, options)
    how.check()
    workload, inputs = _workload(trace, **options)
    places = check_options(workload, how)
    if convergence:
        _converge(workload, how, repeats, output or Path("convergence.svg"), overwrite=overwrite)
        return
    if how.tuples > places:
        note(f"{how.tuples:,} tuples from {places:,} places of {workload.name}: places are used more than once")
    if how.trials_each != how.trials:
        block = f"whole blocks of {VARIANTS * how.queue_size} (4 x --queue-size)"
        note(f"--trials {how.trials:,} becomes {how.trials_each:,}: the stratified estimator runs {block}")
    if output is None:
        output = check_directory(Path(_FOLDER)) / f"{workload.name}.csv"
    with BarScreen() as screen, followed(screen, workload, how, output) as report:
        written = write_scores(
            workload,
            how,
            output,
            workers=who,
            overwrite=overwrite,
            inputs=inputs,
            report=report,
            notify=screen.message,
        )
    show_scores(written, how)


def _check(output: Path | None, *, convergence: bool) -> None:
    """Refuse what could not be written before any work."""
    if output is None:
        return
    check_output(output)
    if convergence and output.suffix not in _PICTURES:
        raise UsageError(f"--output {output}: with --convergence name a picture ({', '.join(_PICTURES)})")
    if not convergence and output.suffix != ".csv":
        raise UsageError(f"--output {output}: a score table is a CSV file; name it {output.with_suffix('.csv').name}")


def _workload(
    trace: Path | None, *, preset: str, processors: int | None, force_processors: bool
) -> tuple[Workload, dict[str, str]]:
    """Return the workload, and the name and SHA-256 of the file that it is from."""
    from policyfactory.workload.models.lublin import DEFAULT_JOBS, DEFAULT_SEED, default_workload, generate_lublin

    if trace is None:
        if force_processors:
            raise UsageError("--force-processors belongs to a log, and none is given; name the LOG")
        if processors is None:
            workload = default_workload()
        else:
            workload = generate_lublin(processors, DEFAULT_JOBS, seed=DEFAULT_SEED)
        note(f"no log given: {workload.origin}")
        return workload, {}

    from policyfactory.workload.clean import read

    # Trials know the run times: requests are not read, and may be missing.
    workload = read(
        trace, preset=preset, processors=processors, force_processors=force_processors, estimate_missing="runtime"
    )
    note(workload.cleaning.summary())
    return workload, {trace.name: workload.cleaning.sha256}


def show_scores(written: Written, options: GenerateOptions) -> None:
    """Say what was written and how precise it is."""
    if not written.done:
        note(f"{written.output} is complete; nothing was left to do")
    if written.resumed and written.done:
        note(f"{written.resumed:,} tuples were finished by an earlier run")
    low, middle, high = written.precision
    rows = [
        ["tuples", f"{options.tuples:,}"],
        ["jobs scored", f"{options.tuples * options.queue_size:,}"],
        ["trials of a tuple", f"{written.trials_each:,}"],
        ["standard error of a score", f"{middle:.3g} % of the mean score (median tuple; {low:.3g} to {high:.3g} %)"],
    ]
    if written.idle:
        rows.append(["tuples in which no order matters", f"{written.idle:,} (nobody waits, or all jobs are alike)"])
    if written.done:
        rows.append(["time", format_duration(written.seconds) if written.seconds >= 1 else f"{written.seconds:.2f}s"])
        rows.append(["trials per second", rate_text(written.trials / written.seconds)])
    if 2 * written.idle > options.tuples:
        warn(
            "in most tuples no order matters (nobody waits, or all jobs are alike), so there is nothing to learn from "
            "them: take a smaller machine (--processors) or a workload whose jobs differ"
        )
    show_table("Scores", rows[0], rows[1:], left=(0, 1))
    if written.done:
        note(f"written: {written.output}, {Manifest.path_for(written.output)}")


def _converge(workload: Workload, options: GenerateOptions, repeats: int, picture: Path, *, overwrite: bool) -> None:
    from policyfactory.trials.run import convergence_csv, draw_convergence, measure_convergence

    numbers = picture.with_suffix(".csv")
    check_output(picture)
    check_output(numbers)
    refuse_earlier(picture, numbers, overwrite=overwrite)
    with progress() as bar:
        task = bar.add_task(f"{workload.name}: thousands of trials", total=None)
        measured = measure_convergence(
            workload,
            options,
            repeats,
            report=lambda done, total: bar.update(task, completed=done // 1000, total=total // 1000),
        )
    plural = "s" if options.tuples > 1 else ""
    title = f"{workload.name}: {options.tuples} tuple{plural} of {options.state_size} + {options.queue_size} jobs"
    with together():
        draw_convergence(measured, picture, f"{title}, {repeats} repetitions")
        atomic_write(numbers, convergence_csv(measured))
    _show_convergence(measured, title, repeats)
    note(f"picture: {picture}; numbers: {numbers}")


def _show_convergence(measured: list[EstimatorPrecision], title: str, repeats: int) -> None:
    """Print both estimators side by side."""
    rows = []
    by_estimator = {name: [row for row in measured if row.estimator == name] for name in ("paper", "stratified")}
    for paper, stratified in zip(*by_estimator.values(), strict=True):
        gain = paper.stated**2 * paper.trials / (stratified.stated**2 * stratified.trials)
        shares = (paper.spread, paper.stated, stratified.spread, stratified.stated)
        rows.append([f"{paper.trials:,}", *(f"{100 * share:.3g}" for share in shares), f"{gain:,.0f}"])
    columns = ["trials", "paper %", "stated %", "stratified %", "stated %", "gain"]
    caption = (
        f"Standard deviation of a score over {repeats} repetitions, and what the standard errors state, in % of the "
        "mean score. Gain: how many times fewer trials the stratified estimator needs."
    )
    show_table(f"Precision of the scores, {title}", columns, rows, caption=caption)
