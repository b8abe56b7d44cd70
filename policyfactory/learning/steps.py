"""The steps of a run: the scores of a log's jobs, the formulas fitted to them, and how these do as policies."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from policyfactory.core.errors import FitError, OutputError
from policyfactory.core.files import check_directory, exclusive
from policyfactory.core.journal import partial_path
from policyfactory.evaluation.logs import cleaned_log
from policyfactory.evaluation.options import PLAIN_NAME
from policyfactory.evaluation.run import ScheduleSink
from policyfactory.evaluation.study import RunSettings, RunTally
from policyfactory.evaluation.words import rules_in_words
from policyfactory.fitting.fits import Fits, fit
from policyfactory.learning.comparing import CLASSICAL, SCORES, Compared, Rival, comparison_protocol
from policyfactory.learning.ranking import Progress, Step
from policyfactory.parallel.workers import Workers
from policyfactory.policy.store import resolve_model
from policyfactory.report.page import caution_of
from policyfactory.trials.files import followed, generate, write_scores
from policyfactory.trials.table import GenerateOptions, ScoreTable, read_score_table
from policyfactory.workload.clean import clean
from policyfactory.workload.swf.log import SwfLog

# By error alone five forms are about equally good (docs/how-certain.md): the evaluation decides between them.
_FORMS = 5


class Steps:
    """The steps of one run; each is shown, and resumes what an interrupted run has left of it.

    Parameters
    ----------
    folder : Path or None
        Where everything goes; without it all is in memory.
    workers : Workers or int
        Who works; a number means so many threads.
    progress : Progress
        Who follows how far the work is.
    seconds : sequence of float
        About how long each step takes, for the time left.
    overwrite : bool
        Replace a score table of other options; one of the same is used again.
    """

    def __init__(
        self,
        folder: Path | None,
        workers: Workers | int,
        progress: Progress,
        seconds: Sequence[float],
        *,
        overwrite: bool = False,
    ) -> None:
        self.folder = self._named = folder
        self.progress = progress
        self.workers = Workers.of(workers)
        self._seconds = tuple(seconds)
        self._overwrite = overwrite
        self._begun = 0

    def work_in(self, folder: Path) -> None:
        """Write below ``folder`` what is named after the folder, which it becomes at the end."""
        self.folder = folder
        self.progress.works_in(folder)

    def wrote(self, paths: Sequence[Path]) -> None:
        """Name files by where they are at the end."""
        if self.folder is not None and self._named is not None:
            self.progress.wrote([self._named / path.relative_to(self.folder) for path in paths])

    def begin(self, title: str, *command: str) -> None:
        """Begin a step, of which ``command`` does the same; the last one may have several parts."""
        total, again = sum(self._seconds), self._begun == len(self._seconds)
        before, duration = sum(self._seconds[: self._begun]), 0.0 if again else self._seconds[self._begun]
        self._begun += not again
        self.progress.begin(Step(self._begun, len(self._seconds), title, command, before / total, duration / total))

    def path_of(self, name: str) -> str:
        """Return a file of the folder as it is typed once all is done; without a folder its name."""
        return name if self._named is None else f"{self._named}/{name}"

    def score(
        self,
        log: SwfLog,
        options: GenerateOptions,
        *words: str,
        reading: Mapping[str, Any] | None = None,
    ) -> ScoreTable:
        """Return the scores of a log's jobs; those without a requested time are used too.

        Parameters
        ----------
        log : SwfLog
            What to learn from.
        options : GenerateOptions
            Tuples, trials, seed.
        words : str
            Further options of the command.
        reading : mapping of str to object, optional
            How the log is read: keywords of `policyfactory.workload.clean.clean`.
        """
        numbers = ("--tuples", str(options.tuples), "--trials", str(options.trials), "--seed", str(options.seed))
        self.begin(
            "Random orders of the queue, and the score of running each job first",
            *("generate", log.path, *numbers, "--output", self.path_of(SCORES), *words),
        )
        progress = self.progress
        # Trials know the run times: requests are not read, and may be missing.
        workload = clean(log, **{**(reading or {}), "estimate_missing": "runtime"})
        progress.message(workload.cleaning.summary())
        how: dict[str, Any] = {"workers": self.workers, "notify": progress.message}
        if self.folder is None:
            with followed(progress, workload, options) as report:
                return generate(workload, options, report=report, **how)
        output = self.folder / SCORES
        how["inputs"] = {Path(log.path).name: log.sha256}
        with followed(progress, workload, options, output) as report:
            try:
                written = write_scores(workload, options, output, report=report, **how)
            except OutputError:
                if not self._overwrite:
                    raise
                written = write_scores(workload, options, output, report=report, overwrite=True, **how)
        progress.scored(dataclasses.replace(written, output=Path(self.path_of(SCORES))), options)
        return read_score_table(output)

    def fit(self, table: ScoreTable) -> dict[str, Fits]:
        """Return the fits to the scores by family, and write models, reports and pictures.

        A family that cannot be fitted to them is left out with a warning: without a job of several processors the terms
        of the polynomials are the same.
        """
        scores = self.path_of(SCORES)
        self.begin(
            "The 576 enumerated forms, fitted to the scores",
            *("fit", scores, "--family", "forms", "--top", str(_FORMS), "--output", self.path_of("forms.json")),
            *("--report", self.path_of("forms.md"), "--figures", self.path_of("pictures"), "--overwrite"),
        )
        fits = self._fit(table, "forms")
        self.begin(
            "The polynomials, Lin to sextic",
            *("fit", scores, "--family", "polynomials", "--output", self.path_of("polynomials.json")),
            *("--report", self.path_of("polynomials.md"), "--overwrite"),
        )
        return fits | self._fit(table, "polynomials")

    def _fit(self, table: ScoreTable, family: str) -> dict[str, Fits]:
        def counted(title: str, total: int) -> Callable[[], None]:
            counter = self.progress.counter(title)
            counter.expect(total)
            return lambda: counter.done(0)

        best = family == "forms"  # several of them compete, and are drawn
        try:
            fits = fit(table, family, top=_FORMS if best else 1, progress=counted)
        except FitError as error:
            self.progress.warning(f"the {family} are left out: {error}")
            return {}
        self.progress.fitted(fits)
        if self.folder is not None:
            figures = check_directory(self.folder / "pictures") if best else None
            models, report = self.folder / f"{family}.json", self.folder / f"{family}.md"
            with exclusive(models, report, None if figures is None else figures / "pictures"):
                self.wrote(fits.save(models, report=report, figures=figures, overwrite=True))
        return {family: fits}

    def rivals(self, fits: Mapping[str, Fits]) -> list[Rival]:
        """Return the classical policies, then the best forms, and LIN or what else could be fitted."""
        models = {name: model for family, fit in fits.items() for name, model in fit.models(family).items()}
        lin = "polynomials-lin" if "polynomials-lin" in models else "polynomials"
        names = [*(f"forms-f{rank}" for rank in range(1, _FORMS + 1)), lin]
        learned = [Rival(models[name], self.path_of(f"{name}.json")) for name in names if name in models]
        return [*(Rival(resolve_model(name), name) for name in CLASSICAL), *learned]

    def compare(
        self,
        log: SwfLog,
        rivals: Sequence[Rival],
        options: Mapping[str, Any],
        name: str,
        sink: ScheduleSink | None = None,
    ) -> Compared:
        """Return how policies do on a log.

        Parameters
        ----------
        log : SwfLog
            The log.
        rivals : sequence of Rival
            The policies; the first is the baseline.
        options : mapping
            Options of the evaluation.
        name : str
            Of the folder to which `write` will write it.
        sink : ScheduleSink, optional
            Who keeps the schedules.
        """
        progress = self.progress
        protocol, _ = comparison_protocol(log, rivals, options)
        read = cleaned_log(log.name, protocol.logs[log.name], log)
        for sentence in read.notes:
            progress.message(sentence)
        for experiment in protocol.experiments:
            progress.message(rules_in_words(experiment.rules, experiment.times_longest, experiment.sensitivity))
        output = None if self.folder is None else check_directory(self.folder / name)
        partial = None if output is None else partial_path(output / PLAIN_NAME)
        counter = progress.counter(f"{PLAIN_NAME}: simulations", "jobs/s")
        settings = RunSettings(
            self.workers,
            sink=sink,
            progress=lambda _: counter,
            partial=partial,
            overwrite=True,
            beside={"starts": "none"},
            notify=progress.message,
            anyway=True,  # of the whole log it has been asked
            easy_beside=False,  # which policies lead under EASY, replicas say
        )
        tally = RunTally(self.workers)
        with exclusive(None if output is None else output / "results.csv"):
            study = tally.run(protocol, {log.name: read}, settings, progress.kept)
        progress.compared(study)
        return Compared(study, log, tuple(rivals), options, tally.measured())

    def write(self, compared: Compared, name: str) -> None:
        """Write the report of a comparison to its folder, in place of that of an earlier one; none is in memory."""
        if self.folder is None:
            return
        output = self.folder / name
        with exclusive(output / "results.csv"):
            files = compared.write(output)
            partial_path(output / PLAIN_NAME).unlink(missing_ok=True)
        self.wrote(files)
        if caution := caution_of(output / "report.html"):
            self.progress.warning(caution)
