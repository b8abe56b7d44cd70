"""The same jobs under more load, or with better or worse requests: axes along which a result may change.

An axis changes one thing and leaves the rest. Load scaling divides the times between arrivals by a factor, the usual
way to vary load, which keeps sizes, run times and the order of jobs but makes days and weeks shorter too (a load of
1.1 has days of 21.8 h). Requests are those of the users, the run times themselves, run times with noise, or those
of the Tsafrir model.

Noise is that of the f-model, the classical one (A. W. Mu'alem and D. G. Feitelson, "Utilization, predictability,
workloads, and user runtime estimates in scheduling the IBM SP2 with backfilling", IEEE TPDS 12(6), 2001): a request
is uniform between the run time p and (1 + F) p. It never lies below the run time, as no request does that is a
limit; noise to both sides would have half of the jobs killed or outlive their reservations, which is another question.
"""

from __future__ import annotations

import dataclasses
import math
import re
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.errors import UsageError, WorkloadError
from policyfactory.core.random import generator
from policyfactory.workload.jobs import Workload, load_in_words

_PURPOSE = 1109  # our branch of the random streams
_LEAST, MOST_LOAD = 0.01, 100.0
_MOST_NOISE = 1_000_000.0
_NOISY = re.compile(r"noisy:(\d{1,7}(?:\.\d{1,9})?|\.\d{1,9})")
_PLAIN: tuple[Literal["user", "exact", "tsafrir"], ...] = ("user", "exact", "tsafrir")
_WORDS = "user, exact, noisy:F (for example noisy:0.2) or tsafrir"


@dataclasses.dataclass(frozen=True, slots=True)
class EstimateRule:
    """Where requested times come from.

    Parameters
    ----------
    kind : {"user", "exact", "noisy", "tsafrir"}
        As in the log; the run time; the run time and noise; the Tsafrir model.
    noise : float
        F of the f-model, for ``noisy`` only.
    """

    kind: Literal["user", "exact", "noisy", "tsafrir"] = "user"
    noise: float = 0.0

    def __str__(self) -> str:
        return f"noisy:{self.noise:g}" if self.kind == "noisy" else self.kind


def parse_estimates(text: str) -> EstimateRule:
    """Return the rule that ``text`` names: ``user``, ``exact``, ``noisy:0.2``, ``tsafrir``.

    Raises
    ------
    UsageError
        If it is none of these.
    """
    clean = text.strip().lower()
    for kind in _PLAIN:
        if clean == kind:
            return EstimateRule(kind)
    match = _NOISY.fullmatch(clean)
    if not match:
        raise UsageError(f"estimates {text!r}: no such rule; write {_WORDS}")
    noise = float(match.group(1))
    if noise > _MOST_NOISE:
        raise UsageError(f"estimates {text!r}: a factor of at most {_MOST_NOISE:,.0f}; users reach 10 to 1,000")
    return EstimateRule("noisy", noise)


def scale_load(workload: Workload, factor: float) -> Workload:
    """Return the jobs with the times between their arrivals divided by ``factor``.

    The first submission stays where it is; each other one is rounded to a whole tick by itself, so that rounding does
    not add up and no job overtakes another. Recorded starts belong to other arrivals and are dropped.

    Parameters
    ----------
    workload : Workload
        Jobs.
    factor : float
        0.01 to 100; 1 returns the workload itself.

    Raises
    ------
    UsageError
        If the factor is outside that range.
    WorkloadError
        If the arrivals would leave the range of the clock.
    """
    if not _LEAST <= factor <= MOST_LOAD:
        raise UsageError(f"load factor {factor:g} is outside {_LEAST:g} to {MOST_LOAD:g}; 1.1 brings 10 % more load")
    if factor == 1 or not len(workload):
        return workload
    first = workload.submit[0]
    after = np.rint((workload.submit - first) / factor)
    if after[-1] >= 2.0**53:
        raise WorkloadError(
            f"{workload.name}: a load factor of {factor:g} puts the last submission {after[-1]:.3g} ticks after the "
            "first, more than is counted exactly; use a larger factor"
        )
    submit = first + after.astype(np.int64)
    requests = None if workload.requests is None else workload.requests.shifted(submit - workload.submit)
    scaled = dataclasses.replace(workload, submit=submit, start=np.full(len(workload), -1), requests=requests)
    loads = load_in_words(workload.offered_load, 4)
    if math.isfinite(scaled.offered_load):
        loads += f" -> {scaled.offered_load:.4f}"
    return dataclasses.replace(
        scaled, origin=f"{workload.origin}; times between arrivals divided by {factor:g}, {loads}"
    )


def apply_estimates(
    workload: Workload, rule: EstimateRule | str, *, seed: int, number: int = 1, longest_s: int | None = None
) -> Workload:
    """Return the jobs with the requested times that ``rule`` gives them.

    Parameters
    ----------
    workload : Workload
        Jobs.
    rule : EstimateRule or str
        As `parse_estimates` reads it.
    seed : int
        Seed of the random numbers.
    number : int
        Which of the cases of that seed, from 1; each has random numbers of its own.
    longest_s : int, optional
        Longest request of the Tsafrir model in seconds; the longest request of ``workload`` if not given.

    Returns
    -------
    Workload
        ``exact`` and ``noisy`` leave run times alone; ``tsafrir`` cuts those above the longest request (counted in
        ``origin``).

    Raises
    ------
    UsageError
        If the rule is not known, or the Tsafrir model cannot be used (fewer than 227 jobs, requests below 5701 s).
    WorkloadError
        If the Tsafrir model's requests cannot cover the run times.
    """
    rule = parse_estimates(rule) if isinstance(rule, str) else rule
    random = generator(seed, _PURPOSE, number)
    if rule.kind == "user" or not len(workload):
        return workload
    if rule.kind == "tsafrir":
        from policyfactory.workload.models.tsafrir import tsafrir_estimates

        longest = longest_s if longest_s is not None else -(-int(workload.requested_time.max()) // workload.ticks)
        try:
            return tsafrir_estimates(workload, max_estimate=longest, seed=int(random.integers(2**62)))
        except UsageError as error:
            raise UsageError(f"{workload.name}, estimates tsafrir: {error}; take longer windows, or noisy:F") from None
    requested, recipe = workload.run_time, "requested time = run time"
    if rule.kind == "noisy":
        requested = _noisy(workload, rule.noise, random)
        recipe = f"requested time uniform in 1 to {1 + rule.noise:g} run times, seed {seed}, number {number}"
    return dataclasses.replace(workload, requested_time=np.maximum(requested, 1), origin=f"{workload.origin}; {recipe}")


def _noisy(workload: Workload, noise: float, random: np.random.Generator) -> NDArray[np.int64]:
    """Return ceil(run time (1 + F u)), u uniform in [0, 1)."""
    uniform = random.random(len(workload))
    longest = float(workload.run_time.max()) * (1 + noise)
    if longest >= 2.0**53:
        raise WorkloadError(
            f"{workload.name}: a noise of {noise:g} makes requests of {longest:.3g} ticks, more than is "
            "counted exactly; use a smaller factor"
        )
    # The product is added to the whole run time, so that no rounding can bring a request below it.
    return workload.run_time + np.ceil(workload.run_time * (noise * uniform)).astype(np.int64)


@dataclasses.dataclass(frozen=True, slots=True)
class Sensitivity:
    """Where on the axes a case lies; the default changes nothing.

    Parameters
    ----------
    load : float
        For `scale_load`.
    estimates : EstimateRule
        For `apply_estimates`.
    """

    load: float = 1.0
    estimates: EstimateRule = EstimateRule()

    def apply(self, workload: Workload, *, seed: int, number: int = 1, longest_s: int | None = None) -> Workload:
        """Return the jobs with both applied, load first; the other arguments are those of `apply_estimates`.

        Raises
        ------
        UsageError, WorkloadError
            As the two functions.
        """
        return apply_estimates(
            scale_load(workload, self.load), self.estimates, seed=seed, number=number, longest_s=longest_s
        )
