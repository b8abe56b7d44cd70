"""Predict the jobs of a log as a scheduler would have to, and say how good that is."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from policyfactory.accuracy.compared import RULES
from policyfactory.accuracy.files import refuse_to_replace, write_predicted
from policyfactory.accuracy.predicted import Predicted
from policyfactory.core.arrays import FloatArray, Int64Array
from policyfactory.core.errors import EvaluationError, UsageError
from policyfactory.core.inputs import sha256_file
from policyfactory.core.options import changed
from policyfactory.core.units import DAY
from policyfactory.engine.guesses import FADING, LAST_TWO, MEDIAN, NEAREST, NINTH, Ended, guesses
from policyfactory.policy.catalogue import PolicyLike, resolve
from policyfactory.predict.features import NAMES, known_of, requests_of
from policyfactory.predict.options import PredictorOptions
from policyfactory.predict.predictor import Forests, Predictor
from policyfactory.predict.store import digest_of_jobs, load_forests
from policyfactory.simulate.predicted import Foreseen, run_predicted
from policyfactory.simulate.prepare import Prepared, prepare
from policyfactory.simulate.rules import Rules
from policyfactory.workload.attributes import Attributes
from policyfactory.workload.jobs import Workload

__all__ = ["predict"]

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


def _ended(prepared: Prepared, start: Int64Array, request: FloatArray) -> tuple[Ended, int]:
    """Return the jobs of the schedule as rules look at them, and the number of users."""
    workload, user = prepared.workload, known_of(prepared.workload).user
    # A job without run time has not ended when it is submitted.
    end = start + np.maximum(prepared.run_time, 1)
    order = np.lexsort((np.arange(len(end)), end)).astype(np.int64)
    run = np.maximum(workload.run_time / workload.ticks, 1.0)
    jobs = Ended(workload.submit, end, order, user, request, run, workload.processors.astype(np.float64))
    return jobs, int(user.max(initial=-1)) + 1
