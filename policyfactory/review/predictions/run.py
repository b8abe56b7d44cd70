"""Predict the jobs of a log as a scheduler would have to, and say how good that is."""

from __future__ import annotations

import csv
import dataclasses
import io
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from policyfactory.core.errors import EvaluationError, UsageError
from policyfactory.core.files import Manifest, command_line, dump_json, package_versions, refuse_earlier, together
from policyfactory.core.inputs import sha256_file
from policyfactory.core.options import FloatArray, Int64Array, changed
from policyfactory.core.picture import keeps_settings
from policyfactory.core.text import DAY
from policyfactory.engine.metrics import FADING, LAST_TWO, MEDIAN, NEAREST, NINTH, EndedJobs, guesses
from policyfactory.evaluation.results_folder import KIND as FOLDER
from policyfactory.evaluation.results_folder import refuse_evaluation, room, save
from policyfactory.policy.store import PolicyLike, resolve
from policyfactory.prediction.features import NAMES, known_of, requests_of
from policyfactory.prediction.options import PredictorOptions
from policyfactory.prediction.store import digest_of_jobs, load_forests, save_forests
from policyfactory.prediction.training import Forests, Predictor
from policyfactory.report.files import Drawings, save_sections
from policyfactory.report.page import BoardGroup as Part
from policyfactory.report.page import Page, render
from policyfactory.review.predictions.compare import RULES, ComparedPredictors, Group
from policyfactory.review.predictions.words import draw_calibration, sections_of, sentences
from policyfactory.simulation.predicted import Foreseen, run_predicted
from policyfactory.simulation.prepare import Prepared, prepare
from policyfactory.simulation.rules import Rules
from policyfactory.workload.jobs import Attributes, Workload

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

_ROWS = (LAST_TWO, FADING, NEAREST, MEDIAN)
_READING = ("preset", "processors", "force_processors", "estimate_missing", "assume")


def predict(
    workload: Workload | Path | str,
    policy: PolicyLike = "FCFS",
    options: PredictorOptions | None = None,
    *,
    model: Forests | Path | str | None = None,
    leave_out: Sequence[str] = (),
    output: Path | str | None = None,
    overwrite: bool = False,
    progress: Callable[[float], object] = lambda _: None,
    **changes: Any,
) -> Predicted:
    """Predict each job when it is submitted, from the simulated past, and compare that with what it did.

    Parameters
    ----------
    workload : Workload, Path or str
        The jobs, or a file in the Standard Workload Format.
    policy : Policy, or name of one, or model, or its file
        The order of the queue in the simulation (EASY, decisions by requested time): what has ended when a job comes
        depends on it.
    options : PredictorOptions, optional
        How the predictor learns; ``renew_s`` is not used, for predictions are made once.
    model : Forests, Path or str, optional
        A trained model, or its file, to be used as it is: nothing is trained.
    leave_out : sequence of str
        What the predictor is not to look at, though the log has it: ``requested_memory``, ``group``, ``executable``,
        ``queue``, ``partition``. What a site's scheduler does not know at submission must not be learned from.
    output : Path or str, optional
        Folder for the page, the tables, the predictions and the last model.
    overwrite : bool
        Replace what an earlier run left in the folder.
    progress : callable
        Is told the part of the jobs that were submitted, from 0 to 1, at each training.
    **changes
        Fields of `PredictorOptions`, in place of ``options`` or on top of them; of a file, also the keywords of
        `policyfactory.read`.

    Raises
    ------
    InputError, ModelFileError
        If the log or the model cannot be read.
    UsageError
        If an option is out of range or contradicts another one.
    WorkloadError
        If the log has no job that can be used.
    EvaluationError
        If the log ends before anything could be trained, or requests were filled with run times.
    OutputError
        If the folder holds results, or cannot be written.
    """
    reading = {name: changes.pop(name) for name in _READING if name in changes}
    options = changed(options or PredictorOptions(), changes)
    folder = None if output is None else refuse_to_replace(Path(output), overwrite=overwrite)
    digests: dict[str, str] = {}
    forests = _given(model, options, digests)
    policy = resolve(policy)
    if not isinstance(workload, Workload):
        from policyfactory.workload.clean import read

        digests[str(workload)] = ""
        workload = read(Path(workload), **reading)
    elif reading:
        raise UsageError(f"{', '.join(reading)}: are about a log that is read from a file; give its path")
    workload = _without(workload, leave_out)
    options = dataclasses.replace(options, renew_s=0.0)
    prepared = prepare(workload, Rules())
    if forests is None:
        _check_length(prepared, options)
    foreseen = run_predicted(prepared, policy, Predictor(options, forests), tail=True, follow=progress)
    if forests is None and not foreseen.trainings:
        raise _too_short(prepared, foreseen.start, options)
    # What is in the model already is no prediction.
    seen = isinstance(model, Path | str) and digest_of_jobs(model) == workload.sha256()
    found = Predicted(prepared.workload, policy, options, **_beside(prepared, foreseen, forests), seen=seen)
    if folder is not None:
        digests = {name: digest or sha256_file(Path(name)) for name, digest in digests.items()}
        write_predicted(found, folder, digests or {workload.name: workload.sha256()}, overwrite=overwrite)
    return found


def _given(model: Forests | Path | str | None, options: PredictorOptions, digests: dict[str, str]) -> Forests | None:
    """Return the model that was given, and note that its file is an input."""
    if model is None:
        return None
    default = PredictorOptions(renew_s=options.renew_s)
    for field in dataclasses.fields(options):
        if getattr(options, field.name) != getattr(default, field.name):
            raise UsageError(f"{field.name} is about training, and a model that is given is not trained; leave it out")
    if isinstance(model, Forests):
        return model
    digests[str(model)] = ""
    return load_forests(model)


def _without(workload: Workload, names: Sequence[str]) -> Workload:
    attributes = workload.attributes or Attributes.unknown(len(workload))
    return dataclasses.replace(workload, attributes=attributes.without(names)) if names else workload


def _check_length(prepared: Prepared, options: PredictorOptions) -> None:
    """Refuse, before it is simulated, a log that is too short even if no job waits."""
    submit = prepared.workload.submit
    if not len(submit):
        return
    ended = int((submit + prepared.run_time <= submit[-1]).sum())
    if ended < options.least or submit[-1] - submit[0] < options.first_days * DAY * prepared.workload.ticks:
        raise _too_short(prepared, submit, options)


def _too_short(prepared: Prepared, start: Int64Array, options: PredictorOptions) -> EvaluationError:
    workload = prepared.workload
    last = int(workload.submit[-1])
    ended = int((start + prepared.run_time <= last).sum())
    days = (last - int(workload.submit[0])) / workload.ticks / DAY
    return EvaluationError(
        f"{workload.name}: nothing could be trained: when its last job is submitted, after {days:.1f} days, at most "
        f"{ended:,} of its {len(workload):,} jobs have ended, and the first training takes {options.least:,} after "
        f"{options.first_days:g} days; give a longer log, lower --least or --first-days, or a model (--model)"
    )


def _beside(prepared: Prepared, foreseen: Foreseen, forests: Forests | None) -> dict[str, Any]:
    """Return what was predicted, and what the rules make of the same schedule."""
    e, s, e90 = foreseen.predictions[:3]
    history = foreseen.features[:, NAMES.index("ended")].astype(np.int64)
    request = requests_of(prepared.workload)
    made = guesses(*_ended(prepared, foreseen.start, request))
    rules = dict(zip(RULES, (request, *(made[row] for row in _ROWS)), strict=True))
    return {
        "model": forests or foreseen.trainings[-1].forests,
        "trained": tuple(one.forests.jobs for one in foreseen.trainings),
        "model_of": foreseen.model_of if forests is None else np.zeros_like(foreseen.model_of),
        "mean": e,
        "shortness": s,
        "tail": e90,
        "rules": rules | {"ninth decile": made[NINTH]},
        "history": history,
    }


def _ended(prepared: Prepared, start: Int64Array, request: FloatArray) -> tuple[EndedJobs, int]:
    """Return the jobs of the schedule as rules look at them, and the number of users."""
    workload, user = prepared.workload, known_of(prepared.workload).user
    # A job without run time has not ended when it is submitted.
    end = start + np.maximum(prepared.run_time, 1)
    order = np.lexsort((np.arange(len(end)), end)).astype(np.int64)
    run = np.maximum(workload.run_time / workload.ticks, 1.0)
    jobs = EndedJobs(
        submit=workload.submit,
        end=end,
        order=order,
        user=user,
        request=request,
        run=run,
        processors=workload.processors.astype(np.float64),
    )
    return jobs, int(user.max(initial=-1)) + 1


# The result of `policyfactory.predict`, and how to look at it ---------------------------------------------------------


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Predicted(ComparedPredictors):
    """Predictions of the jobs of a log, and how good they are; parameters as of `ComparedPredictors`."""

    def frame(self) -> pd.DataFrame:
        """Return one row a job: the workload's columns, e, s, e90, what the rules say, history, training."""
        made: dict[str, Any] = {"e": self.mean, "s": self.shortness, "e90": self.tail}
        made |= {name.replace(" ", "_"): values for name, values in self.rules.items() if name != "request"}
        return self.workload.frame().assign(**made, user_ended=self.history, training=self.model_of)

    def summary(self) -> str:
        """Return what was found, in sentences."""
        return "\n".join(sentences(self))

    @keeps_settings
    def plot(self) -> Figure:
        """Return the calibration as a picture: predicted and actual, tenth by tenth."""
        return draw_calibration(self)


# The folder of predictions --------------------------------------------------------------------------------------------

# The page, the tables, what was predicted of each job, the last model.


MODEL_FILE = "model.json"
_PAGE, _REPORT, _JOBS = "report.html", "accuracy.json", "predictions.csv"
_KIND, _SCHEMA = "prediction-accuracy", 1


def refuse_to_replace(folder: Path, *, overwrite: bool) -> Path:
    """Return the folder, if what is in it may be replaced; call it before minutes of work.

    Raises
    ------
    OutputError
        If it has results that are not to be replaced.
    """
    refuse_evaluation(folder, overwrite=overwrite)
    refuse_earlier(*(folder / name for name in (MODEL_FILE, _REPORT, _JOBS)), overwrite=overwrite)
    return folder


def as_dict(predicted: ComparedPredictors) -> dict[str, Any]:
    """Return what was found as JSON values; null where nothing could be measured."""
    before = predicted.before
    report = {
        "kind": _KIND,
        "schema_version": _SCHEMA,
        "log": predicted.workload.name,
        "workload_sha256": predicted.workload.sha256(),
        "jobs": len(predicted),
        "policy": {"name": predicted.policy.name, "formula": predicted.policy.formula},
        "options": dataclasses.asdict(predicted.options),
        "trained_on": list(predicted.trained),
        "model_jobs": predicted.model.jobs,
        "model_has_seen_the_jobs": predicted.seen,
        "requests": dataclasses.asdict(predicted.requests),
        "missing": list(predicted.missing),
        "overall": _group(predicted.overall),
        "by_history": [_group(group) for group in predicted.by_history],
        "by_month": [_group(group) for group in predicted.by_month],
        "before_first_training": None if before is None else _group(before),
        "coverage": predicted.coverage(),
        "shortness_by_tenth": predicted.calibration(),
        "run_time_by_tenth": predicted.times(),
        "words": sentences(predicted),
    }
    return {name: _plain(value) for name, value in report.items()}


def _group(group: Group) -> dict[str, Any]:
    return {"jobs_of": group.name, "by": {name: dataclasses.asdict(found) for name, found in group.measures.items()}}


def _plain(value: Any) -> Any:
    """Return JSON values with null in place of numbers that are not finite."""
    if isinstance(value, dict):
        return {name: _plain(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_plain(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def write_predicted(
    predicted: ComparedPredictors, folder: Path, inputs: Mapping[str, str], *, overwrite: bool
) -> list[Path]:
    """Write everything together, with a manifest, and return the files.

    Parameters
    ----------
    predicted : Compared
        What was found.
    folder : Path
        Where to.
    inputs : mapping of str to str
        Digests of what was read, by name.
    overwrite : bool
        Whether earlier results in the folder are replaced.

    Raises
    ------
    OutputError
        If there are results that are not to be replaced, or a file cannot be written.
    """
    parameters = {"policy": predicted.policy.name, **dataclasses.asdict(predicted.options)}
    manifest = Manifest(FOLDER, command_line(), None, dict(inputs), parameters)
    drawings, sections = Drawings(), sections_of(predicted)
    title = f"Predictions of the jobs of {predicted.workload.name}"
    page = Page(title, groups=(Part(title, sections),), manifest=manifest.as_dict())
    with room(folder, overwrite=overwrite) as place, together():
        parts = save_sections(place, "", sections, drawings)
        if predicted.trained:
            # A model that was given stays where it is.
            made_of = {"inputs": dict(inputs), "workload_sha256": predicted.workload.sha256()}
            provenance = {"command": command_line(), **made_of, "versions": package_versions(), **parameters}
            save_forests(predicted.model, place / MODEL_FILE, provenance=provenance)
            parts.append(place / MODEL_FILE)
        texts = {
            _PAGE: render(page, drawings),
            _REPORT: dump_json(as_dict(predicted)),
            _JOBS: _jobs_csv(predicted),
        }
        return [*save(place, texts, manifest, parts), *parts]


def _jobs_csv(predicted: ComparedPredictors) -> str:
    """Return what was predicted of each job, as ``policyfactory evaluate --predictions`` reads it."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(("job_id", "prediction", "s", "e90", "user_ended", "training"))
    columns = (predicted.workload.job_id, predicted.mean, predicted.shortness, predicted.tail)
    rows = (column.tolist() for column in (*columns, predicted.history, predicted.model_of))
    writer.writerows(zip(*rows, strict=True))
    return file.getvalue()
