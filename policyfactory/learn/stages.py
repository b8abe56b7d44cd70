"""The scores of a log's jobs, and the formulas fitted to them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from policyfactory.core.artefact import check_directory, exclusive
from policyfactory.core.errors import WorkersError
from policyfactory.core.journal import partial_path
from policyfactory.fit.files import models_of
from policyfactory.fit.fits import Fits, fit
from policyfactory.learn.comparing import CLASSICAL, Rival
from policyfactory.learn.progress import Progress
from policyfactory.parallel.workers import Workers
from policyfactory.policy.catalogue import resolve_model
from policyfactory.policy.store import Model
from policyfactory.trials.files import write_scores
from policyfactory.trials.generate import generate
from policyfactory.trials.run import GenerateOptions
from policyfactory.trials.table import ScoreTable, read_score_table
from policyfactory.workload.clean import clean
from policyfactory.workload.swf.log import SwfLog

__all__ = ["fit_family", "fit_steps", "fitted", "place", "rivals_of", "score_jobs"]

# By error alone five forms are about equally good (docs/how-certain.md): the evaluation decides between them.
_FORMS = 5


def score_jobs(
    log: SwfLog,
    options: GenerateOptions,
    output: Path | None,
    *,
    preset: str = "default",
    processors: int | None = None,
    workers: Workers | int = 1,
    progress: Progress,
) -> ScoreTable:
    """Return the scores of a log's jobs, written to ``output`` if there is one: an interrupted run is resumed.

    Parameters
    ----------
    log : SwfLog
        What to learn from; jobs without a requested time are used too.
    options : GenerateOptions
        Tuples, trials, seed.
    output : Path or None
        The table, ``NAME.csv``.
    preset, processors
        How the log is read.
    workers, progress
        Who works, and who hears how far it is.
    """
    # Trials know the run times: requests are not read, and may be missing.
    workload = clean(log, preset=preset, estimate_missing="runtime", processors=processors)
    progress.message(workload.cleaning.summary())
    counter = progress.counter(f"{workload.name}: tuples", "trials/s")
    counter.expect(options.tuples)
    kept: int | None = None  # of no tuple is it known yet whether it is finished

    def report(finished: int) -> None:
        nonlocal kept
        if kept is None:
            counter.resumed(finished)
        else:
            counter.done(options.trials)
        kept = finished

    if output is None:
        report(0)
        return generate(workload, options, workers=workers, report=report, notify=progress.message)
    try:
        written = write_scores(
            workload,
            options,
            output,
            workers=workers,
            inputs={Path(log.path).name: log.sha256},
            report=report,
            notify=progress.message,
        )
    except (KeyboardInterrupt, WorkersError) as stop:
        if kept is not None and partial_path(output).exists():
            progress.kept(stop, f"{kept:,} of {options.tuples:,} tuples", partial_path(output))
        raise
    if kept is None:
        counter.resumed(options.tuples)
    progress.scored(written, options)
    return read_score_table(output)


def fit_family(
    table: ScoreTable, family: str, folder: Path | None, *, pictures: bool = False, progress: Progress
) -> Fits:
    """Return the fits of a family to a table; with a folder, write the models, the report and the pictures there.

    Parameters
    ----------
    table : ScoreTable
        The scores.
    family : {"forms", "polynomials"}
        What to fit.
    folder : Path or None
        Where the files go.
    pictures : bool
        Whether pictures are drawn.
    progress : Progress
        Who hears how far it is.
    """

    def stage(title: str, total: int) -> Callable[[], None]:
        counter = progress.counter(title)
        counter.expect(total)
        return lambda: counter.done(0)

    fits = fit(table, family, top=_FORMS if family == "forms" else 1, progress=stage)
    progress.fitted(fits)
    if folder is not None:
        figures = check_directory(folder / "pictures") if pictures else None
        models, report = folder / f"{family}.json", folder / f"{family}.md"
        with exclusive(models, report, None if figures is None else figures / "pictures"):
            progress.wrote(fits.save(models, report=report, figures=figures))
    return fits


def fit_steps(
    table: ScoreTable, folder: Path | None, begin: Callable[..., None], progress: Progress
) -> tuple[Fits, Fits]:
    """Return the fits of forms and of polynomials, a step each.

    Parameters
    ----------
    table : ScoreTable
        The scores.
    folder : Path or None
        Where the files go.
    begin : callable
        Called with title and command of each step.
    progress : Progress
        Who hears how far it is.
    """
    scores, models = place(folder, "scores.csv"), [place(folder, f"{name}.json") for name in ("forms", "polynomials")]
    begin(
        "The 576 enumerated forms, fitted to the scores",
        *("fit", scores, "--family", "forms", "--top", str(_FORMS), "--output", models[0]),
        *("--report", place(folder, "forms.md"), "--figures", place(folder, "pictures")),
    )
    forms = fit_family(table, "forms", folder, pictures=True, progress=progress)
    begin(
        "The polynomials, Lin to sextic",
        *("fit", scores, "--family", "polynomials", "--output", models[1]),
        *("--report", place(folder, "polynomials.md")),
    )
    return forms, fit_family(table, "polynomials", folder, progress=progress)


def fitted(forms: Fits, polynomials: Fits) -> dict[str, Model]:
    """Return the formulas that compete, by name: the best forms, and LIN or what else could be fitted."""
    models = models_of(forms.results, "forms") | models_of(polynomials.results, "polynomials")
    lin = "polynomials-lin" if "polynomials-lin" in models else "polynomials"
    names = [*(f"forms-f{rank}" for rank in range(1, _FORMS + 1)), lin]
    return {name: models[name] for name in names if name in models}


def rivals_of(models: Mapping[str, Model], folder: Path | None) -> list[Rival]:
    """Return the classical policies and those of ``models``, whose files are in ``folder``."""
    classical = [Rival(resolve_model(name), name) for name in CLASSICAL]
    return classical + [Rival(model, place(folder, f"{name}.json")) for name, model in models.items()]


def place(folder: Path | None, name: str) -> str:
    """Return a file of the folder as it is typed; without a folder its name."""
    return name if folder is None else f"{folder}/{name}"
