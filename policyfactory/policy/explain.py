"""Why a job is where it is in the queue: its score, term by term, in words for the user who waits."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Iterator
from typing import Any

import numpy as np

from policyfactory.core.errors import UsageError
from policyfactory.core.text import counted
from policyfactory.core.units import format_duration, parse_duration
from policyfactory.policy.compile import value_at
from policyfactory.policy.effects import outputs
from policyfactory.policy.expression import parse
from policyfactory.policy.network import Network
from policyfactory.policy.nodes import ALIASES, ASKED, PREDICTIONS, VARIABLES, Binary, Expression, Negative, opposite
from policyfactory.policy.policy import Policy

__all__ = [
    "PAST", "Explanation", "Job", "TermValue", "additive_terms", "explain", "parse_job", "rank_jobs", "score_of",
]  # fmt: skip

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
    job : Job
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
        If a part is no NAME=VALUE of `policyfactory.policy.nodes.VARIABLES`, is given twice, or out of range.
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
    job : Job
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
        raise UsageError(f"policy {policy.name} is {_short(policy.formula)}; the job lacks {lacks}: add {cure}")
    if policy.network is not None:
        terms = tuple(_inputs(policy.network, job))
    else:
        terms = tuple(
            TermValue(term.text(), _at(term, job), _words(term, job)) for term in additive_terms(policy.expression)
        )
    sentences = (*_foreseen(policy, job, basis), *_changes(policy, job))
    return Explanation(policy, job, score_of(policy, job), terms, sentences, seen)


def _inputs(network: Network, job: Job) -> Iterator[TermValue]:
    """Give the inputs of a network, which are no terms of a sum, and what a little more of each does."""
    expressions = [parse(formula) for formula in network.inputs]
    here = np.array([[_at(expression, job) for expression in expressions]])
    for place, expression in enumerate(expressions):
        more = here.copy()
        more[0, place] += 0.01 * max(1.0, abs(here[0, place]))
        gain = float(outputs(network, more)[0] - outputs(network, here)[0])
        words = f"more: {'sooner' if gain > 0 else 'later'}" if gain else "does not change near this job"
        value = float(here[0, place])
        yield TermValue(expression.text(), value, words if expression.variables - {"m"} else "the same for all jobs")


def rank_jobs(explanations: list[Explanation]) -> list[int]:
    """Return the indices in the order in which the jobs would run: by score, then submit time, then as given."""
    return sorted(range(len(explanations)), key=lambda i: (explanations[i].score, explanations[i].job.r, i))


def score_of(policy: Policy, job: Job) -> float:
    """Return the score of a job that has all that the policy reads."""
    predictions = [[getattr(job, name)] for name in PREDICTIONS] if policy.needs_predictions else None
    asked = [[getattr(job, name)] for name in ASKED] if policy.asked else None
    return float(policy.scores(job.p, job.q, job.r, job.w, job.m, job.f, predictions, asked)[0])


def _at(term: Expression, job: Job) -> float:
    return value_at(term, {name: getattr(job, name) for name in VARIABLES})


def _words(term: Expression, job: Job) -> str:
    """Return which changes of the job push it back (a larger term) and which bring it forward."""
    if not term.variables - {"m", "f"}:
        return "the same for all jobs"
    here = _at(term, job)
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
            there = _at(term, dataclasses.replace(job, **more))
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


def _short(formula: str) -> str:
    return formula if len(formula) <= 80 else formula[:77] + "..."


def _number(value: float) -> float | str:
    return value if math.isfinite(value) else str(value)
