"""Why a job is where it is in the queue: its score, term by term, in words for the user who waits."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from policyfactory.core.errors import UsageError
from policyfactory.core.options import FloatArray
from policyfactory.core.picture import BLUE, keeps_settings, new_figure, plain_numbers
from policyfactory.core.text import HOUR, counted, cut, format_duration, parse_duration
from policyfactory.policy.compile import compile_expression, value_at
from policyfactory.policy.expression import (
    ALIASES,
    ASKED,
    PREDICTIONS,
    VARIABLES,
    Binary,
    Expression,
    Negative,
    Variable,
    opposite,
    parse,
    replace_variables,
)
from policyfactory.policy.network import Network
from policyfactory.policy.policy import Policy

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PAST = "By the past of its user"
_TIMES = frozenset(("p", "r", "w", "e", "e90"))
_LARGEST = 1e15
_LONGEST_JOB = 300  # characters
_SHORT = 10.0  # s: what is shorter is not told from it
_MIXED = 3.0
_MORE = {
    "p": "a longer request",
    "q": "more processors",
    "r": "a later submission",
    "w": "a longer wait",
    "m": "a larger machine",
    "f": "more free processors",
    "e": "a longer predicted run time",
    "s": "a job that is more likely to be short",
    "e90": "a longer run time that it may reach",
    "user_waiting": "more waiting jobs of the same user",
    "user_running": "more running jobs of the same user",
    "n": "more nodes",
    "mem": "more memory",
    "g": "more GPUs",
}


@dataclasses.dataclass(frozen=True, slots=True)
class Job:
    """A job as a scheduler sees it.

    Parameters
    ----------
    p, q, r, w, m, f : float
        Requested seconds, processors, submit seconds since the epoch, seconds waited, processors of the machine, free
        processors of it.
    e, s, e90, user_waiting, user_running : float
        Predicted mean run time (s), shortness, run time exceeded once in ten (s); jobs of the same user that wait, run.
    n, mem, g : float
        Requested nodes, memory in MB, GPUs.
    given : frozenset of str
        Which of them were given; the others are placeholders.
    """

    p: float = 1.0
    q: float = 1.0
    r: float = 0.0
    w: float = 0.0
    m: float = 1.0
    f: float = 1.0
    e: float = 1.0
    s: float = 1.0
    e90: float = 1.0
    user_waiting: float = 0.0
    user_running: float = 0.0
    n: float = 1.0
    mem: float = 0.0
    g: float = 0.0
    given: frozenset[str] = frozenset()

    def describe(self) -> str:
        """Return the values that were given, durations in words."""
        shown = []
        for name in VARIABLES:
            if name in self.given:
                value: float = getattr(self, name)
                shown.append(f"{name} = {value:g}" + (f" s ({format_duration(value)})" if name in _TIMES else ""))
        return ", ".join(shown)


@dataclasses.dataclass(frozen=True, slots=True)
class TermValue:
    """One term of a formula at a job: its text, its value, and what it does."""

    text: str
    value: float
    words: str


@dataclasses.dataclass(frozen=True, slots=True)
class Explanation:
    """A job's score under a policy.

    Parameters
    ----------
    policy : Policy
        What orders the queue.
    job : Job
        A job with all that the policy reads.
    score : float
        Lower runs first.
    terms : tuple of TermValue
        What the score is the sum of; of a network, its inputs.
    changes : tuple of str
        What was predicted, and what would change the score, as sentences.
    seen : tuple of str
        What that rests on, as sentences.
    """

    policy: Policy
    job: Job
    score: float
    terms: tuple[TermValue, ...]
    changes: tuple[str, ...]
    seen: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON values; what is not finite is text (``"-inf"``)."""
        return {
            **({"seen": list(self.seen)} if self.seen else {}),
            "policy": self.policy.name,
            "formula": self.policy.formula,
            "job": {name: getattr(self.job, name) for name in VARIABLES if name in self.job.given},
            "score": _number(self.score),
            "terms": [{"term": t.text, "value": _number(t.value), "words": t.words} for t in self.terms],
            "changes": list(self.changes),
        }


def parse_job(text: str) -> Job:
    """Return the job of a text such as ``"p=1h q=64 r=2d w=30m"``.

    Raises
    ------
    UsageError
        If a part is no NAME=VALUE of `policyfactory.policy.expression.VARIABLES`, is given twice, or out of range.
    """
    if len(text) > _LONGEST_JOB:
        raise UsageError(f"job {text[:60]!r}...: has {len(text):,} characters; write for example 'p=1h q=64 r=2d'")
    values: dict[str, float] = {}
    for part in re.split(r"[\s,;]+", text.strip()):
        name, equals, value = part.partition("=")
        if not equals or name not in {*VARIABLES, *ALIASES}:
            known = "; ".join(f"{name}: {words}" for name, words in VARIABLES.items())
            raise UsageError(
                f"job {text!r}: {part[:60]!r} is not NAME=VALUE; write for example 'p=1h q=64 r=2d' ({known})"
            )
        name = ALIASES.get(name, name)
        if name in values:
            raise UsageError(f"job {text!r}: {name} is given twice; keep one")
        values[name] = _value(name, value, text)
    for name in ("q", "f"):
        if values.get(name, 1) > values.get("m", math.inf):
            raise UsageError(
                f"job {text!r}: {name}={values[name]:g} is more than the m={values['m']:g} processors of the machine"
            )
    return Job(**values, given=frozenset(values))


def _value(name: str, value: str, text: str) -> float:
    decimal = re.fullmatch(r"[0-9]{1,15}(\.[0-9]{1,9})?", value)
    try:
        number = float(value) if decimal else float(parse_duration(value) if name in _TIMES else math.inf)
    except UsageError as error:
        raise UsageError(f"job {text!r}: {name}: {error}") from None
    if name == "s":
        if not 0 < number <= 1:
            raise UsageError(f"job {text!r}: s={value!r}: expected a number above 0, at most 1 (a job of 10 s or less)")
        return number
    least = 1 if name in {"p", "q", "m", "n"} else 0
    if not least <= number <= _LARGEST or (name not in _TIMES and number != int(number)):
        kind = "a time (1h, 30m, 3600)" if name in _TIMES else "a whole number"
        raise UsageError(f"job {text!r}: {name}={value!r}: expected {kind} from {least}")
    return number


def additive_terms(expression: Expression) -> list[Expression]:
    """Return the terms whose sum the formula is, signs included, in the order in which they are written."""
    match expression:
        case Binary("+", left, right):
            return additive_terms(left) + additive_terms(right)
        case Binary("-", left, right):
            return additive_terms(left) + [opposite(term) for term in additive_terms(right)]
        case Negative(Binary("+" | "-") as part):
            return [opposite(term) for term in additive_terms(part)]
        case _:
            return [expression]


def explain(policy: Policy, job: Job, *, basis: str = PAST, seen: tuple[str, ...] = ()) -> Explanation:
    """Return the score of ``job`` under ``policy``, term by term.

    Parameters
    ----------
    policy : Policy
        What orders the queue.
    job : Job
        A job with all that the policy reads.
    basis : str
        What the job is predicted by, as the beginning of a sentence.
    seen : tuple of str
        As of `Explanation`.

    Raises
    ------
    UsageError
        If the formula needs a value that the job does not give.
    """
    missing = [name for name in VARIABLES if name in policy.variables and name not in job.given]
    if missing:
        lacks = " and ".join(part for part in (", ".join(missing[:-1]), missing[-1]) if part)
        cure = " ".join(f"{name}=..." for name in missing)
        raise UsageError(f"policy {policy.name} is {cut(policy.formula, 80)}; the job lacks {lacks}: add {cure}")
    if policy.network is not None:
        terms = tuple(_inputs(policy.network, job))
    else:
        terms = tuple(
            TermValue(term.text(), _value_at(term, job), _words(term, job))
            for term in additive_terms(policy.expression)
        )
    sentences = (*_foreseen(policy, job, basis), *_changes(policy, job))
    return Explanation(policy, job, score_of(policy, job), terms, sentences, seen)


def _inputs(network: Network, job: Job) -> Iterator[TermValue]:
    """Give the inputs of a network, which are no terms of a sum, and what a little more of each does."""
    expressions = [parse(formula) for formula in network.inputs]
    here = np.array([[_value_at(expression, job) for expression in expressions]])
    for column, expression in enumerate(expressions):
        more = here.copy()
        more[0, column] += 0.01 * max(1.0, abs(here[0, column]))
        gain = float(outputs(network, more)[0] - outputs(network, here)[0])
        words = f"more: {'sooner' if gain > 0 else 'later'}" if gain else "does not change near this job"
        value = float(here[0, column])
        yield TermValue(expression.text(), value, words if expression.variables - {"m"} else "the same for all jobs")


def rank_jobs(explanations: list[Explanation]) -> list[int]:
    """Return the indices in the order in which the jobs would run: by score, then submit time, then as given."""
    return sorted(range(len(explanations)), key=lambda i: (explanations[i].score, explanations[i].job.r, i))


def score_of(policy: Policy, job: Job) -> float:
    """Return the score of a job that has all that the policy reads."""
    predictions = [[getattr(job, name)] for name in PREDICTIONS] if policy.needs_predictions else None
    asked = [[getattr(job, name)] for name in ASKED] if policy.asked else None
    return float(policy.scores(job.p, job.q, job.r, job.w, job.m, job.f, predictions, asked)[0])


def _value_at(term: Expression, job: Job) -> float:
    return value_at(term, {name: getattr(job, name) for name in VARIABLES})


def _words(term: Expression, job: Job) -> str:
    """Return which changes of the job push it back (a larger term) and which bring it forward."""
    if not term.variables - {"m", "f"}:
        return "the same for all jobs"
    here = _value_at(term, job)
    if math.isinf(here):
        return "ahead of all jobs without it" if here < 0 else "behind all jobs without it"
    if math.isnan(here):
        return "has no value here: the job runs last"
    back: list[str] = []
    forward: list[str] = []
    for name in VARIABLES:
        if name in term.variables - {"m"}:
            value: float = getattr(job, name)
            more: dict[str, Any] = {name: value * 1.01 if value and name != "f" else value + 1.0}
            there = _value_at(term, dataclasses.replace(job, **more))
            if there != here:
                (back if there > here else forward).append(_MORE[name])
    parts = []
    if back:
        parts.append(f"{' or '.join(back)}: later")
    if forward:
        parts.append(f"{' or '.join(forward)}: sooner")
    return "; ".join(parts) or "does not change near this job"


def _foreseen(policy: Policy, job: Job, basis: str) -> Iterator[str]:
    """Give in sentences what the predictions say of the job that the policy reads."""
    names = policy.variables
    if "e" in names:
        percent = 100 * job.e / job.p
        shown = f"{percent:.0f}" if percent >= 10 else f"{percent:.2g}"
        of_request = f", {shown} % of its request" if "p" in job.given else ""
        yield f"{basis} it is expected to run {format_duration(round(job.e))} on average{of_request}."
    if "s" in names:
        # Of jobs that all ran so long the shortness is the same.
        alike = _SHORT / job.s
        words = (
            f"that of jobs of {format_duration(round(alike))}" if alike > _SHORT else "it is sure to end within 10 s"
        )
        if "e" in names and job.e > _MIXED * alike:
            words += "; so it may be far shorter than that average, and a short job suffers most from waiting"
        yield f"Its shortness is {job.s:.3g}: {words}."
    if "e90" in names:
        yield f"One such job in ten is expected to run longer than {format_duration(round(job.e90))}."
    for name, does in (("user_waiting", "waited"), ("user_running", "ran")):
        if name in names:
            count = int(getattr(job, name))
            yield f"When it was submitted {counted(count, 'other job')} of its user {does}."


def _changes(policy: Policy, job: Job) -> list[str]:
    """Return sentences on what the user could do, and on what waiting does."""
    here = score_of(policy, job)
    tries: list[tuple[str, Job]] = []
    if "p" in policy.variables and job.p >= 2:
        half = job.p // 2
        tries.append((f"Half the requested run time ({format_duration(half)})", dataclasses.replace(job, p=half)))
    if "q" in policy.variables and job.q >= 2:
        tries.append((f"Half the processors ({job.q // 2:g})", dataclasses.replace(job, q=job.q // 2)))
    if "w" in policy.variables:
        tries.append(("One more hour of waiting", dataclasses.replace(job, w=job.w + 3600)))
    if "f" in policy.variables and job.f < job.q:
        tries.append((f"Enough free processors ({job.q:g})", dataclasses.replace(job, f=job.q)))
    sentences = [f"{words} {_effect(here, score_of(policy, changed))}" for words, changed in tries]
    if policy.is_static and policy.needs_predictions:
        sentences.append(
            "Waiting alone does not change this score; once a job of the same user has ended it is predicted anew."
        )
    elif policy.is_static:
        sentences.append("Waiting does not change this score; the job moves up as jobs with lower scores start.")
    if math.isfinite(policy.threshold):
        sentences.append(
            f"Once it has waited more than {format_duration(policy.threshold)} it goes before all scored jobs."
        )
    return sentences


def _effect(here: float, there: float) -> str:
    if there == here:
        return f"leaves the score at {here:.6g}."
    return f"changes the score from {here:.6g} to {there:.6g}: {'sooner' if there < here else 'later'}."


def _number(value: float) -> float | str:
    return value if math.isfinite(value) else str(value)


# What each input of a network does to the score of a job --------------------------------------------------------------

# What each input of a network does to the score of a job, over jobs as they wait in a queue.
#
# The partial dependence of Friedman, "Greedy function approximation: a gradient boosting machine", Annals of Statistics
# 29(5), 2001, section 8.2: one input takes the values of its range in turn, while the others keep those of the jobs,
# and the scores are averaged. What single jobs do around that average is kept beside it.


_GRID = 41  # values of an input
_RANGE = (1.0, 99.0)  # percent of the jobs between whose values the range of an input lies
_BAND = (10.0, 90.0)  # percent of the jobs
_NOTHING = 1e-9  # of the spread of scores: rounding
_LITTLE = 0.05  # of the way down: rising less than that is falling all the same
_MIXED_EFFECT = 0.2  # of the swing: less on average means that jobs go either way
_WIDE = 400  # jobs of a sample that is no log's
FITS, CONSTANT = "fits now", "constant"
_WORDS = {
    frozenset("w"): "wait",
    frozenset("p"): "request",
    frozenset("q"): "processors",
    frozenset("qm"): "processors (share)",
    frozenset("qf"): FITS,
    frozenset("f"): "free processors",
    frozenset("fm"): "free processors (share)",
}


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class JobSample:
    """Jobs as they wait in queues.

    Parameters
    ----------
    p, q, w, f : float64 array (n,)
        Requested seconds, processors, seconds waited, processors free when the queue is sorted.
    m : float
        Processors of the machine.
    about : str
        Where they are from, in words.
    """

    p: FloatArray
    q: FloatArray
    w: FloatArray
    f: FloatArray
    m: float
    about: str

    def __post_init__(self) -> None:
        """Refuse a sample without jobs."""
        if not len(self.p):
            raise UsageError(f"{self.about}: there is no job, so there is nothing to explain; give a log with jobs")

    def __len__(self) -> int:
        return len(self.p)


def _nothing() -> FloatArray:
    return np.empty(0)


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class InputEffect:
    """What one input does.

    Parameters
    ----------
    number : int
        Its place among the inputs, from 1.
    formula, label : str
        What it is, and in words.
    why_dead : str
        Why it does nothing; empty for a live input.
    variable : str
        What the axis counts: ``w``, ``p``, ``q`` or ``f``; empty where it is the input itself.
    axis : float64 array (k,)
        Its values, ascending.
    mean, low, high : float64 array (k,)
        How far the score is from each job's own mean over the axis: the mean over the jobs, and between what 80 % of
        them lie. Lower runs first.
    swing : float
        How far apart an input's least and greatest score are for a job, on average.
    share : float
        Of the sum of all swings.
    words : str
        What more of it does.
    """

    number: int
    formula: str
    label: str
    why_dead: str = ""
    variable: str = ""
    axis: FloatArray = dataclasses.field(default_factory=_nothing)
    mean: FloatArray = dataclasses.field(default_factory=_nothing)
    low: FloatArray = dataclasses.field(default_factory=_nothing)
    high: FloatArray = dataclasses.field(default_factory=_nothing)
    swing: float = 0.0
    share: float = 0.0
    words: str = ""

    @property
    def is_live(self) -> bool:
        """Whether it changes any score."""
        return not self.why_dead

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        values = {name: getattr(self, name) for name in ("formula", "label", "swing", "share", "words", "why_dead")}
        curve = {name: getattr(self, name).tolist() for name in ("axis", "mean", "low", "high")}
        return {"input": self.number, **values, "variable": self.variable, **curve}


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class NetworkEffects:
    """What all inputs of a network do to these jobs."""

    network: Network
    jobs: JobSample
    inputs: tuple[InputEffect, ...]

    @property
    def live(self) -> tuple[InputEffect, ...]:
        """The inputs that change a score."""
        return tuple(effect for effect in self.inputs if effect.is_live)

    @property
    def dead(self) -> tuple[InputEffect, ...]:
        """The inputs that do not."""
        return tuple(effect for effect in self.inputs if not effect.is_live)

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {
            "policy": self.network.name,
            "digest": self.network.digest,
            "jobs": self.jobs.about,
            "inputs": [effect.as_dict() for effect in self.inputs],
        }


def wide_jobs(processors: int = 256) -> JobSample:
    """Return jobs of all sizes for a machine: requests of a minute to two days, waits up to three, evenly spread.

    No draw but a rank-one lattice, which fills the space more evenly than draws do.
    """
    # The generalised golden ratio of four dimensions: the root of x**5 = x + 1.
    ratio = 1.1673039782614187
    step = (1 / ratio) ** np.arange(1, 5)
    shares = np.mod(0.5 + np.outer(np.arange(_WIDE), step), 1.0)
    p, q, w, f = shares.T
    return JobSample(
        np.round(60.0 * 2880.0**p),
        np.round(float(processors) ** q),
        np.where(w < 0.1, 0.0, np.round(10.0 * 25_920.0**w)),
        np.floor(f * (processors + 1)),
        float(processors),
        f"jobs of all sizes on {processors:,} processors",
    )


def input_values(formula: str | Expression, jobs: JobSample) -> FloatArray:
    """Return the value of an input for each job; unlike a policy's formula, f may differ from job to job."""
    expression = parse(formula) if isinstance(formula, str) else formula
    # An input has no r, so that r can stand for f.
    program = compile_expression(replace_variables(expression, {"f": Variable("r")}))
    return program.values(np.array((jobs.p, jobs.q, jobs.f, jobs.w), dtype=np.float64), jobs.m, 0.0)


def outputs(network: Network, values: FloatArray) -> FloatArray:
    """Return the network's preference for each row of inputs, highest first, up to the rounding of sums."""
    for number, layer in enumerate(network.layers, start=1):
        # As in the array machine, what is infinite or no number is no error.
        with np.errstate(all="ignore"):
            values = values @ layer.weights.astype(np.float64) + layer.biases
        if number < len(network.layers):
            values = np.where(values < 0.0, 0.0, values)
    column: FloatArray = values[:, 0]
    return column


def network_effects(network: Network, jobs: JobSample | None = None) -> NetworkEffects:
    """Return what each input of a network does to the scores of jobs.

    Parameters
    ----------
    network : Network
        The network.
    jobs : JobSample, optional
        The jobs; without them `wide_jobs`. `policyfactory.simulation.explained` has those of a log's queues.
    """
    jobs = wide_jobs() if jobs is None else jobs
    table = np.column_stack([input_values(formula, jobs) for formula in network.inputs])
    # A job with an input that has no value runs last whatever the others are.
    rows = np.isfinite(table).all(axis=1)
    if not rows.any():
        raise UsageError(f"network {network.name}: no job of {jobs.about} has a value in all inputs; give other jobs")
    kept = JobSample(jobs.p[rows], jobs.q[rows], jobs.w[rows], jobs.f[rows], jobs.m, jobs.about)
    table = table[rows]
    spread = float(np.ptp(outputs(network, table)))
    effects = [_effect_of(network, kept, table, column, spread) for column in range(len(network.inputs))]
    total = sum(effect.swing for effect in effects)
    shared = [dataclasses.replace(effect, share=effect.swing / total if total else 0.0) for effect in effects]
    return NetworkEffects(network, kept, tuple(shared))


def _effect_of(network: Network, jobs: JobSample, table: FloatArray, column: int, spread: float) -> InputEffect:
    formula = network.inputs[column]
    expression = parse(formula)
    label = _WORDS.get(expression.variables, formula)
    plain = InputEffect(column + 1, formula, label)
    if not expression.variables - {"m"}:
        return dataclasses.replace(plain, label=CONSTANT, why_dead="constant")
    if not np.ptp(table[:, column]):
        return dataclasses.replace(plain, why_dead=f"constant for {jobs.about}")
    variable, axis, values = _axis(expression, jobs, table[:, column])
    curves = np.empty((len(axis), len(jobs)))
    changed = table.copy()
    for row, value in enumerate(values):
        changed[:, column] = value
        curves[row] = -outputs(network, changed)
    curves -= curves.mean(axis=0)
    swing = float(np.ptp(curves, axis=0).mean())
    if swing <= _NOTHING * spread or swing == 0.0:
        return dataclasses.replace(plain, why_dead="no effect on any score")
    mean = curves.mean(axis=1)
    low, high = np.percentile(curves, _BAND, axis=1)
    words = _effect_words(expression, variable, axis, mean, swing)
    return dataclasses.replace(
        plain, variable=variable, axis=axis, mean=mean, low=low, high=high, swing=swing, words=words
    )


def _axis(expression: Expression, jobs: JobSample, values: FloatArray) -> tuple[str, FloatArray, FloatArray]:
    """Return which variable the axis counts, its values, and the input at each of them."""
    names = expression.variables - {"m"}
    if len(names) > 1:
        levels = np.unique(values)
        if len(levels) > 2:
            least, greatest = np.percentile(values, _RANGE)
            levels = np.linspace(least, greatest, _GRID)
        return "", levels, levels
    (name,) = names
    column: FloatArray = getattr(jobs, name)
    least, greatest = map(float, np.percentile(column, _RANGE))
    if name == "f":
        axis = np.linspace(least, greatest, _GRID)
    else:
        # Times and sizes are spread over orders of magnitude.
        first = max(least, 10.0 if name == "w" else 1.0)
        axis = np.geomspace(first, max(greatest, 2 * first), _GRID)
    fixed = {other: np.ones(_GRID) for other in "pqwf"} | {name: axis}
    curve = input_values(expression, JobSample(**fixed, m=jobs.m, about=""))
    known = np.isfinite(curve)
    return name, axis[known], curve[known]


def _effect_words(expression: Expression, variable: str, axis: FloatArray, mean: FloatArray, swing: float) -> str:
    """Return what more of an input does to the job, on average."""
    # How far the curve ever rises, and falls.
    rise = float((mean - np.minimum.accumulate(mean)).max())
    fall = float((np.maximum.accumulate(mean) - mean).max())
    if float(np.ptp(mean)) < _MIXED_EFFECT * swing:
        words = "sooner or later, as the other inputs are"
    elif rise <= _LITTLE * fall:
        words = "more: sooner"
    elif fall <= _LITTLE * rise:
        words = "more: later"
    else:
        turn = int(np.argmin(mean) if 0 < np.argmin(mean) < len(mean) - 1 else np.argmax(mean))
        first, then = ("sooner", "later") if np.argmin(mean) == turn else ("later", "sooner")
        words = f"{first} up to {_shown(axis[turn], variable)}, then {then}"
    if not expression.variables - {"f", "m"}:
        # One number for the whole queue moves jobs past each other only through the other inputs.
        words += "; the same for all jobs of a pass"
    return words


def _shown(value: float, variable: str) -> str:
    if variable in ("w", "p"):
        return format_duration(float(f"{value:.2g}") if value < 1e15 else math.inf)
    return f"{value:.3g}"


# The picture of what each live input of a network does to a job's score -----------------------------------------------


_ACROSS = 3  # panels beside each other, 2 where there are 4
_UNITS = {
    "w": ("wait (h)", HOUR),
    "p": ("requested run time (h)", HOUR),
    "q": ("processors", 1),
    "f": ("free processors", 1),
}


@keeps_settings
def draw_effects(effects: NetworkEffects) -> Figure:
    """Draw a panel for each live input, on one scale of scores: the mean over the jobs, and where 80 % of them lie."""
    live = effects.live
    across = 2 if len(live) in (2, 4) else min(max(len(live), 1), _ACROSS)
    down = max(-(-len(live) // across), 1)
    figure = new_figure(3.4 * across + 0.8, 2.7 * down + 1.0)
    panels = figure.subplots(down, across, sharey=True, squeeze=False).ravel()
    for axes, effect in zip(panels, live, strict=False):
        _draw(axes, effect)
    for axes in panels[len(live) :]:
        axes.set_visible(False)
    for axes in panels[: len(live) : across]:
        axes.set_ylabel("change of the score\n(lower runs first)")
    dead = ", ".join(f"{effect.formula} ({effect.why_dead})" for effect in effects.dead if effect.label != CONSTANT)
    constants = sum(effect.label == CONSTANT for effect in effects.dead)
    if constants:
        dead += f"{', ' if dead else ''}{constants} constant{'s' if constants > 1 else ''}"
    below = "line: mean over the jobs, band: 80 % of them" + (f"; dead: {dead}" if dead else "")
    figure.suptitle(f"{effects.network.name}: what each input does, {effects.jobs.about}", fontsize=11)
    figure.supxlabel(below if len(below) <= 110 else below[:107] + "...", fontsize=8)
    return figure


def _draw(axes: Axes, effect: InputEffect) -> None:
    label, unit = _UNITS.get(effect.variable, (effect.formula, 1))
    x = effect.axis / unit
    if len(x) == 2:
        error = np.array([effect.mean - effect.low, effect.high - effect.mean])
        axes.bar([0, 1], effect.mean, width=0.5, color=BLUE, alpha=0.6, yerr=np.maximum(error, 0.0), capsize=3)
        fits = effect.label == FITS
        axes.set_xticks([0, 1], ["no", "yes"] if fits else [f"{value:g}" for value in x])
        label = "" if fits else label
    else:
        axes.fill_between(x, effect.low, effect.high, color=BLUE, alpha=0.2, linewidth=0)
        axes.plot(x, effect.mean, color=BLUE)
        if effect.variable in ("w", "p", "q"):
            axes.set_xscale("log")
            plain_numbers(axes.xaxis, minor=False)
    axes.axhline(0.0, color="0.6", linewidth=0.8)
    axes.set_title(f"{effect.label} ({100 * effect.share:.0f} %)", fontsize=10)
    axes.set_xlabel(label if len(label) <= 40 else label[:37] + "...", fontsize=9)
