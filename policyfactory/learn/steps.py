"""The stages of learning: the scores of a log's jobs, the formulas fitted to them, and how these do as policies."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from policyfactory.core.errors import FitError, OutputError, WorkersError, WorkloadError
from policyfactory.core.files import check_directory, exclusive
from policyfactory.core.inputs import sha256_bytes
from policyfactory.core.journal import partial_path
from policyfactory.core.text import DAY, WEEK
from policyfactory.evaluate.fidelity.compare import Fidelity
from policyfactory.evaluate.logs import cleaned_log
from policyfactory.evaluate.options import PLAIN_NAME
from policyfactory.evaluate.study import RunSettings, RunTally
from policyfactory.evaluate.words import rules_in_words, windows_too_short
from policyfactory.export.expressible import prepare
from policyfactory.fit.fits import Fits, fit, models_of
from policyfactory.learn.comparing import CLASSICAL, SCORES, Compared, Rival, comparison_protocol, write_rivals
from policyfactory.learn.options import LearnOptions
from policyfactory.learn.ranking import Progress, Step
from policyfactory.parallel.workers import Workers
from policyfactory.policy.store import resolve_model
from policyfactory.report.page import caution_of
from policyfactory.simulate.on_site import unfit
from policyfactory.simulate.schedule import Schedule
from policyfactory.simulate.simulate import simulate
from policyfactory.simulate.slurm.jobs import without_misfits
from policyfactory.site.fits import site_of
from policyfactory.trials.files import generate, write_scores
from policyfactory.trials.run import GenerateOptions
from policyfactory.trials.table import ScoreTable, read_score_table
from policyfactory.workload.clean import clean
from policyfactory.workload.jobs import Workload
from policyfactory.workload.resample import weeks_to_import
from policyfactory.workload.swf.files import format_swf, log_name, write_swf
from policyfactory.workload.swf.log import SwfLog
from policyfactory.workload.windows import cut, cut_between, in_order, parse_windows

__all__ = ["Quarters", "Stages"]

# By error alone five forms are about equally good (docs/how-certain.md): the evaluation decides between them.
_FORMS = 5


class Stages:
    """The stages of one run; each is a step, or several, and resumes what an interrupted run has left of it.

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

    def work_in(self, place: Path) -> None:
        """Write below ``place`` what is named after the folder, which it becomes at the end."""
        self.folder = place
        self.progress.works_in(place)

    def wrote(self, paths: Sequence[Path]) -> None:
        """Name files by where they are at the end."""
        if self.folder is not None and self._named is not None:
            self.progress.wrote([self._named / path.relative_to(self.folder) for path in paths])

    def begin(self, title: str, *command: str) -> None:
        """Begin a step, of which ``command`` does the same; the last one may have several parts."""
        total, again = sum(self._seconds), self._begun == len(self._seconds)
        before, own = sum(self._seconds[: self._begun]), 0.0 if again else self._seconds[self._begun]
        self._begun += not again
        self.progress.begin(Step(self._begun, len(self._seconds), title, command, before / total, own / total))

    def place(self, name: str) -> str:
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
            *("generate", log.path, *numbers, "--output", self.place(SCORES), *words),
        )
        progress = self.progress
        # Trials know the run times: requests are not read, and may be missing.
        workload = clean(log, **{**(reading or {}), "estimate_missing": "runtime"})
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

        how: dict[str, Any] = {"workers": self.workers, "report": report, "notify": progress.message}
        if self.folder is None:
            report(0)
            return generate(workload, options, **how)
        output = self.folder / SCORES
        try:
            how["inputs"] = {Path(log.path).name: log.sha256}
            try:
                written = write_scores(workload, options, output, **how)
            except OutputError:
                if not self._overwrite:
                    raise
                written = write_scores(workload, options, output, overwrite=True, **how)
        except (KeyboardInterrupt, WorkersError) as stop:
            if kept is not None and partial_path(output).exists():
                progress.kept(stop, f"{kept:,} of {options.tuples:,} tuples", partial_path(output))
            raise
        if kept is None:
            counter.resumed(options.tuples)
        progress.scored(dataclasses.replace(written, output=Path(self.place(SCORES))), options)
        return read_score_table(output)

    def fit(self, table: ScoreTable) -> dict[str, Fits]:
        """Return the fits to the scores by family, and write models, reports and pictures.

        A family that cannot be fitted to them is left out with a warning: without a job of several processors the terms
        of the polynomials are the same.
        """
        scores = self.place(SCORES)
        self.begin(
            "The 576 enumerated forms, fitted to the scores",
            *("fit", scores, "--family", "forms", "--top", str(_FORMS), "--output", self.place("forms.json")),
            *("--report", self.place("forms.md"), "--figures", self.place("pictures"), "--overwrite"),
        )
        fits = self._fit(table, "forms")
        self.begin(
            "The polynomials, Lin to sextic",
            *("fit", scores, "--family", "polynomials", "--output", self.place("polynomials.json")),
            *("--report", self.place("polynomials.md"), "--overwrite"),
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
        models = {name: model for family, own in fits.items() for name, model in models_of(own.results, family).items()}
        lin = "polynomials-lin" if "polynomials-lin" in models else "polynomials"
        names = [*(f"forms-f{rank}" for rank in range(1, _FORMS + 1)), lin]
        learned = [Rival(models[name], self.place(f"{name}.json")) for name in names if name in models]
        return [*(Rival(resolve_model(name), name) for name in CLASSICAL), *learned]

    def compare(self, log: SwfLog, rivals: Sequence[Rival], options: Mapping[str, Any], name: str) -> Compared:
        """Return how policies do on a log; the report goes to a folder and replaces that of an earlier comparison.

        Parameters
        ----------
        log : SwfLog
            The log.
        rivals : sequence of Rival
            The policies; the first is the baseline.
        options : mapping
            Options of the evaluation.
        name : str
            Of the folder.
        """
        progress = self.progress
        protocol, _ = comparison_protocol(log, rivals, options)
        read = cleaned_log(log.name, protocol.logs[log.name], log)
        for sentence in read.notes:
            progress.message(sentence)
        for plan in protocol.experiments:
            progress.message(rules_in_words(plan.experiment.rules, plan.times_longest, plan.sensitivity))
        output = None if self.folder is None else check_directory(self.folder / name)
        partial = None if output is None else partial_path(output / PLAIN_NAME)
        counter = progress.counter(f"{PLAIN_NAME}: simulations", "jobs/s")
        settings = RunSettings(
            self.workers,
            progress=lambda _: counter,
            partial=partial,
            overwrite=True,
            beside={"starts": "none"},
            notify=progress.message,
            anyway=True,  # of the whole log it has been asked
        )
        tally = RunTally(self.workers)
        files: list[Path] = []
        with exclusive(None if output is None else output / "results.csv"):
            study = tally.run(protocol, {log.name: read}, settings, progress.kept)
            compared = Compared(study, log, tuple(rivals), options, tally.measured())
            if output is not None and partial is not None:
                files = compared.write(output)
                partial.unlink(missing_ok=True)
        progress.compared(study)
        if output is not None:
            self.wrote(files)
            if caution := caution_of(output / "report.html"):
                progress.warning(caution)
        return compared


# The parts of a log, first and second quarter and second half, and how rivals do on each ------------------------------


# A tuple is 48 jobs, and a comparison of fewer jobs than a tuple has says nothing.
_FEWEST = 200
_TITLES = {
    "training": "The first quarter of the jobs, to learn from",
    "choosing": "What comes before the second half, to choose by its second quarter",
    "test": "The second half, to test the choice on",
}


class Quarters(Stages):
    """One run's log, its parts and its options."""

    def __init__(
        self,
        log: SwfLog,
        options: LearnOptions,
        folder: Path | None,
        workers: Workers | int,
        progress: Progress,
        seconds: list[float],
        *,
        overwrite: bool,
    ) -> None:
        super().__init__(folder, workers, progress, seconds, overwrite=overwrite)
        self.log = log
        self.options = options
        self.rules, self.judging = options.rules, options.judging
        self._site = self.rules.site
        self.read = clean(log, **options.reading)
        workload, self.left_out = self._on_site(self.read)
        if len(workload) < _FEWEST:
            raise WorkloadError(
                f"{log.path}: {len(workload):,} jobs are left after cleaning, and {_FEWEST} are the least to learn "
                "from, choose by and test on; import a longer time"
            )
        unix_start = workload.unix_start
        # The day (UTC) on which the log begins: r has in production the size that it has in the tests.
        self.epoch = None if unix_start is None else unix_start // DAY * DAY
        self.last = None if unix_start is None else unix_start + int(workload.submit[-1]) // workload.ticks
        self.windows = options.windows
        self.workload = workload
        if options.judged_under_slurm and self.judging.site is None:
            # Of the whole log, so that its parts have one.
            self.judging = dataclasses.replace(self.judging, site=site_of(workload))
            self.rules = self.judging if options.under_slurm else self.rules
        self.gate: Fidelity | None = None
        self._lead_in: dict[str, int] = {}
        self.edges = (0, 0)

    def rivals(self, fits: Mapping[str, Fits]) -> list[Rival]:
        """Return the classical policies and what was fitted, as far as the rules let them order the queue."""
        return self.possible(super().rivals(fits))

    def possible(self, rivals: Sequence[Rival]) -> list[Rival]:
        """Return those that compete under the rules: under Slurm's own, those that are simulated under these."""
        if not self.options.judged_under_slurm:
            return list(rivals)
        return [rival for rival in rivals if not unfit(rival.model.policy, self.judging)]

    def schedule(self, rival: Rival, part: str, parts: dict[str, SwfLog]) -> Schedule:
        """Return the measured jobs of a part under a policy."""
        lead_in = 0 if self.windows else self._lead_in[part]
        log = self._measured(part, parts)
        jobs = self.workload if log is self.log else self.workload_of(log)
        rules = self.judging if part == "test" else self.rules
        return simulate(jobs, rival.model.policy, rules).after(lead_in)

    def workload_of(self, log: SwfLog) -> Workload:
        """Return the jobs of a part, cleaned, without those that could never start on the site."""
        return self._on_site(clean(log, **self.options.reading))[0]

    def _on_site(self, jobs: Workload) -> tuple[Workload, str]:
        return (jobs, "") if self._site is None else without_misfits(jobs, self._site)

    def _measured(self, part: str, parts: dict[str, SwfLog]) -> SwfLog:
        """Return the log that is simulated to measure a part: all that came before too, unless it is cut."""
        return self.log if part == "test" and not self.windows else parts[part]

    def cut(self) -> dict[str, SwfLog]:
        """Cut the log in three, by number of jobs."""
        log, dropped = in_order(self.log)
        if dropped:
            self.progress.warning(f"{dropped:,} jobs without a submit time were left out")
        parts = {}
        for name, (skip, jobs) in self._bounds(log).items():
            path = self.place(f"{self.log.name}-{name}.swf")
            words = [*(["--skip", str(skip)] if skip else []), *(["--jobs", str(jobs)] if jobs is not None else [])]
            self.begin(_TITLES[name], "workload", "window", self.log.path, *words, "--output", path, "--overwrite")
            part = cut_between(log, skip=skip, jobs=jobs)
            digest = sha256_bytes(format_swf(part))
            parts[name] = dataclasses.replace(part, name=log_name(Path(path)), path=path, sha256=digest)
            if self.folder is not None:
                write_swf(parts[name], self.folder / Path(path).name)
            self.progress.cut(parts[name])
        if not self.windows:
            # Of what is left after cleaning, the rows at which the second quarter and the second half begin.
            kept = [len(self.workload_of(parts[name])) for name in ("training", "choosing")]
            self.edges = kept[0], kept[1]
            self._lead_in = {"choosing": kept[0], "thresholds": kept[0], "test": kept[1]}
        return parts

    def _bounds(self, log: SwfLog) -> dict[str, tuple[int, int | None]]:
        """Return how many jobs of a log in order are before each part, and how many are in it (None: all others)."""
        half, quarter = len(log) // 2, len(log) // 4
        # Unless the parts are cut into windows, all that came before is simulated with them.
        before = quarter if self.windows else 0
        return {"training": (0, quarter), "choosing": (before, half - before), "test": (half, None)}

    def check_windows(self) -> None:
        """Refuse windows that the parts to choose by and to test on do not have, before any work.

        Raises
        ------
        WorkloadError
            If one of them is too short.
        """
        log, _ = in_order(self.log)
        for name, (skip, jobs) in self._bounds(log).items():
            if self.windows and name != "training":
                part = dataclasses.replace(cut_between(log, skip=skip, jobs=jobs), name=f"{log.name}-{name}")
                cut(self.workload_of(part), self.windows)

    def dated(self, rivals: list[Rival]) -> list[Rival]:
        """Let r count from the first day of the log in the rivals that have it.

        From the start of a window log10(r) is steep, a year after a fixed date it is flat: the same formula, another
        order.
        """
        if self.epoch is None:
            return rivals
        dated = [
            Rival(prepare(rival.model, epoch=self.epoch), self.place(f"dated/{rival.name}.json"))
            if "r" in rival.model.policy.variables
            else rival
            for rival in rivals
        ]
        if self.folder is not None:
            write_rivals(dated, self.folder)
        return dated

    def compare_on(self, title: str, part: str, parts: dict[str, SwfLog], rivals: list[Rival]) -> Compared:
        """Return how rivals do on a part; a step of its own."""
        options = self.options
        log = {
            "choosing": parts["choosing"],
            "thresholds": parts["choosing"],
            "test": self._measured("test", parts),
        }[part]
        # How the log is cut, and what of it is measured.
        cases: dict[str, Any] = {"windows": self.windows} if self.windows else {}
        if lead_in := self._lead_in.get(part):
            cases = {"lead_in": f"{lead_in}jobs"}
        threshold = options.threshold_s
        own = threshold is None or math.isinf(threshold)
        words = self.reading_in_full()
        words += [] if own else ["--threshold", options.threshold_text]
        judged = part == "test" and options.judged_under_slurm and not options.under_slurm
        words += ("--backfill", "slurm") if judged else options.rule_words
        words += ["--metric", ",".join(options.metrics)]
        words += [text for key, value in cases.items() for text in (f"--{key.replace('_', '-')}", str(value))]
        policies = ",".join(rival.source for rival in rivals)
        output = self.place(part)
        self.begin(title, "evaluate", log.path, "--policies", policies, *words, "--output", output, "--overwrite")
        evaluated = {
            **cases,
            "metrics": options.metrics,
            "threshold": None if own else options.threshold_text,
            "backfill": "slurm" if judged else options.backfill,
            "site": options.site,
            **options.reading,
        }
        return self.compare(log, rivals, evaluated, part)

    def reading_words(self) -> tuple[str, ...]:
        """Return how the log is read, as it is typed."""
        return ("--preset", self.options.preset, *self.options.machine_words)

    def reading_in_full(self) -> list[str]:
        """Return the same with what is made of requests that are missing, and what is assumed of the jobs."""
        assumed = [] if self.options.assume is None else ["--assume", self.options.assume]
        return [*self.reading_words(), "--estimate-missing", self.options.estimate_missing, *assumed]

    def windows_too_short(self, *, unsound: bool = False) -> tuple[str, ...]:
        """Return why windows say nothing; nothing if they do, or there are none."""
        if self.windows is None:
            return ()
        return windows_too_short(self.workload, parse_windows(self.windows), unsound=unsound)

    def too_short(self) -> str:
        """Return what to import so that the second half can tell anything; empty if it can."""
        submit, week = self.workload.submit, WEEK * self.workload.ticks
        whole = int(submit[-1] - submit[self.edges[1]]) // week
        return "" if self.windows else weeks_to_import(whole, "the second half", 2)

    def warn(self) -> None:
        """Say beforehand what weakens the result."""
        if self.read.cleaning.warning:
            self.progress.warning(self.read.cleaning.warning)
        if self.left_out:
            self.progress.warning(self.left_out)
        for sentence in self.windows_too_short():
            self.progress.warning(sentence)
        if self.epoch is None:
            self.progress.warning(
                "the log has no date (UnixStartTime): r counts from the start of each window, which production has not"
            )
