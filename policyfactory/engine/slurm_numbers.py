"""A run under Slurm's rules whose jobs get their numbers, ``site_factor``, as it goes on, as an export gives them.

A formula with predictions is worked out when jobs are submitted, and for those that are predicted anew when priorities
are calculated; one with the wait, or with a threshold, for all waiting jobs when priorities are calculated.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from policyfactory.core.arrays import FloatArray, Int64Array
from policyfactory.core.jit import inlined, kernel, step
from policyfactory.engine.formula import ASKED, COLUMNS, PREDICTIONS, evaluate
from policyfactory.engine.past import DESCRIBED, Past
from policyfactory.engine.predicted import Foresight
from policyfactory.engine.slurm import AT_CALCULATION, AT_SUBMISSION, slurm
from policyfactory.engine.slurm_jobs import Jobs, Machine, Settings
from policyfactory.engine.slurm_predicted import Followed, foretell_submitted, foretell_waiting
from policyfactory.engine.slurm_priority import Shares, Weights
from policyfactory.engine.slurm_state import NOW, STOPPED, WAITING, Run

__all__ = ["ROWS", "Numbering", "slurm_numbered"]

# Of `Numbering.columns`.
ROWS = COLUMNS + PREDICTIONS + ASKED
_W = 3


class Numbering(NamedTuple):
    """What makes numbers of n jobs, in the order of their submission.

    Parameters
    ----------
    codes : int64 array (k,)
        The formula (`policyfactory.engine.formula.evaluate`).
    operands : float64 array (at least k,)
        Of its instructions.
    columns : float64 array (ROWS, n)
        p, q, r, a row for w, the five predictions, n, mem, g; of those that the formula does not read, anything.
    work : float64 array (ROWS + depth of the formula, n)
        Work space.
    processors : float
        Of the machine.
    low, high, largest : float
        As of `policyfactory.policy.scale.Scale`.
    highest : float
        The most that a number can be: those of jobs beyond the threshold are above ``largest``.
    threshold : int
        Seconds.
    changes : bool
        Whether numbers change with the wait.
    others : float64 array (n,)
        The parts of the jobs' priorities that nothing changes, without their numbers.
    """

    codes: Int64Array
    operands: FloatArray
    columns: FloatArray
    work: FloatArray
    processors: float
    low: float
    high: float
    largest: float
    highest: float
    threshold: int
    changes: bool
    others: FloatArray


@kernel
def slurm_numbered(
    jobs: Jobs,
    machine: Machine,
    run: Run,
    settings: Settings,
    weights: Weights,
    shares: Shares,
    numbering: Numbering,
    followed: Followed,
    past: Past,
    sight: Foresight,
    until: int,
) -> bool:
    """Run all jobs and number them, or up to where the predictor is to learn.

    Parameters
    ----------
    jobs : Jobs
        ``fixed`` is changed.
    machine : Machine
    run : Run
    settings : Settings
        Which has the run stop where it should.
    weights : Weights
    shares : Shares
        The same as of `policyfactory.engine.slurm.slurm`.
    numbering : Numbering
    followed : Followed
        Of this run.
    past : Past
    sight : Foresight
        Its predictions are rows of ``numbering.columns``.
    until : int
        Seconds, on the run's clock. The first stop from then on is left for the next call.

    Returns
    -------
    bool
        Whether it is to be called again.
    """
    while True:
        stop, now = run.state[STOPPED], run.state[NOW]
        if stop in (AT_SUBMISSION, AT_CALCULATION):
            if now >= until:
                return True
            if stop == AT_SUBMISSION:
                first = past.place[DESCRIBED]
                foretell_submitted(followed, past, sight, now)
                for job in range(first, past.place[DESCRIBED]):
                    sight.renewed[job - first] = job
                _number(jobs, numbering, sight.renewed, past.place[DESCRIBED] - first, now)
            else:
                if settings.foretells:
                    # Those that are not ready are predicted anew as well.
                    count = foretell_waiting(followed, past, sight, now)
                    _number(jobs, numbering, sight.renewed, count, now)
                if numbering.changes:
                    _number(jobs, numbering, run.waiting, run.state[WAITING], now)
        if not slurm(jobs, machine, run, settings, weights, shares):
            return False


@step
def _number(jobs: Jobs, numbering: Numbering, which: Int64Array, count: int, now: int) -> None:
    """Give the first ``count`` jobs of a list their numbers, as the formula has them now."""
    work, columns = numbering.work, numbering.columns
    for at in range(count):
        job = which[at]
        for row in range(ROWS):
            work[row, at] = columns[row, job]
        work[_W, at] = float(now - jobs.submit[job])
    evaluate(numbering.codes, numbering.operands, work, count, numbering.processors, numbering.processors, work[ROWS:])
    for at in range(count):
        job, waited = which[at], now - jobs.submit[which[at]]
        number = _whole(numbering, work[ROWS, at])
        if waited > numbering.threshold:
            # Overdue: above all others, in the order of submission.
            number = min(numbering.largest + waited, numbering.highest)
        jobs.fixed[job] = numbering.others[job] + number


@inlined
def _whole(numbering: Numbering, score: float) -> float:
    """Return the number of a score, as `policyfactory.policy.scale.Scale` has it."""
    if math.isnan(score):
        return 1.0
    part = (score - numbering.low) / (numbering.high - numbering.low)
    if part < 0.0:
        place = 0.125 / (1.0 - 6.0 * part)
    elif part > 1.0:
        place = 1.0 - 0.125 / (1.0 + 6.0 * (part - 1.0))
    else:
        place = 0.125 + 0.75 * part
    return min(max(math.floor(numbering.largest - place * (numbering.largest - 1.0)), 1.0), numbering.largest)
