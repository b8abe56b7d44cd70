"""The rows that a fit works on: one job each, grouped by tuple, with the weight p*q.

Rule for zeros: a row with p = 0 or r = 0 is left out of every fit, so that all formulas are judged on the same
rows. There log10 and 1/x are not finite, and p = 0 has the weight 0 anyway. What is left out is counted.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.arrays import FloatArray
from policyfactory.core.errors import FitError
from policyfactory.engine.formula import evaluate
from policyfactory.policy.compile import compile_expression
from policyfactory.policy.expression import parse
from policyfactory.policy.nodes import Expression
from policyfactory.trials.table import ScoreTable

__all__ = ["Sample", "prepare"]


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """Jobs with their scores, sorted by tuple.

    Arrays are float64 of shape (n,) unless said otherwise.

    Parameters
    ----------
    p, q, r : array
        Seconds, processors, seconds since the start of the tuple; all above 0.
    score : array
        What a formula is fitted to (1).
    stderr : array
        Standard error of the score (1), NaN where unknown.
    weight : array
        p*q, which multiplies the residual (paper 004 equation 4, paper 002 equation 5), s processors.
    starts : int64 array (tuples,)
        First row of each tuple.
    tuple_of : int64 array
        Number of each row's tuple, 0 to tuples - 1.
    left_out : int
        Rows of the table with p = 0 or r = 0, in no fit.
    name, origin, sha256 : str
        What the table says about itself.
    """

    p: FloatArray
    q: FloatArray
    r: FloatArray
    score: FloatArray
    stderr: FloatArray
    weight: FloatArray
    starts: NDArray[np.int64]
    tuple_of: NDArray[np.int64]
    left_out: int
    name: str
    origin: str
    sha256: str

    def __len__(self) -> int:
        return len(self.p)

    @property
    def tuples(self) -> int:
        """Number of tuples."""
        return len(self.starts)

    @property
    def noise_mae(self) -> float | None:
        """MAE that a perfect formula would still show, from the scores' standard errors; None if unknown.

        The mean absolute value of a normal error is its standard deviation times sqrt(2/pi).
        """
        mean = float(self.stderr.mean())
        return None if math.isnan(mean) else math.sqrt(2 / math.pi) * mean

    @property
    def level_mae(self) -> float:
        """MAE of the trivial prediction: every job of a tuple of n has the score 1/n."""
        sizes = np.diff(np.append(self.starts, len(self)))
        return float(np.abs(self.score - 1.0 / sizes[self.tuple_of]).mean())

    @property
    def effective_tuples(self) -> float:
        """Number of tuples of equal weight that would determine a fit as well: (sum w)^2 / sum w^2.

        The weight w of a tuple is the sum of its rows' (p q)^2, which a few large jobs dominate.
        """
        weights = np.add.reduceat(self.weight**2, self.starts)
        return float(weights.sum() ** 2 / np.einsum("t,t", weights, weights))

    def values(self, formula: Expression | str) -> FloatArray:
        """Return the value of a formula of p, q and r for every row.

        Raises
        ------
        FitError
            If the formula has other variables (a score table knows neither waiting time nor machine).
        """
        expression = parse(formula) if isinstance(formula, str) else formula
        unknown = sorted(expression.variables - {"p", "q", "r"})
        if unknown:
            raise FitError(
                f"the formula {expression.text()} has {', '.join(unknown)}, which no score table has; use p, q and r"
            )
        program = compile_expression(expression)
        stack = np.empty((program.depth, len(self)))
        columns = np.array((self.p, self.q, self.r, self.r))
        evaluate(program.codes, program.operands, columns, len(self), 1.0, 0.0, stack)
        values: FloatArray = stack[0]
        return values

    def with_jobs(self, p: FloatArray, q: FloatArray, r: FloatArray) -> Sample:
        """Return a sample of other jobs, to evaluate formulas on; its scores are not theirs."""
        return dataclasses.replace(self, p=p, q=q, r=r)

    def first_tuples(self, count: int) -> Sample:
        """Return the sample of the first ``count`` tuples."""
        if count >= self.tuples:
            return self
        end = int(self.starts[count])
        rows = {name: getattr(self, name)[:end] for name in ("p", "q", "r", "score", "stderr", "weight", "tuple_of")}
        return dataclasses.replace(self, starts=self.starts[:count], **rows)


def prepare(table: ScoreTable) -> Sample:
    """Return the rows of ``table`` that every formula can be fitted to.

    Raises
    ------
    FitError
        If fewer than two tuples are left, so that nothing can be said about certainty.
    """
    keep = np.flatnonzero((table.p > 0) & (table.r > 0))
    order = keep[np.argsort(table.tuple_id[keep], kind="stable")]
    _, starts, tuple_of = np.unique(table.tuple_id[order], return_index=True, return_inverse=True)
    if len(starts) < 2:
        raise FitError(
            f"{table.name}: {len(starts)} tuples with p and r above 0 in {len(table)} rows, expected at least 2 (some "
            "hundred for a result); generate more tuples (policyfactory generate --tuples)"
        )
    p, q, r = table.p[order], table.q[order], table.r[order]
    return Sample(
        p=p,
        q=q,
        r=r,
        score=table.score[order],
        stderr=table.stderr[order],
        weight=p * q,
        starts=starts.astype(np.int64),
        tuple_of=tuple_of.astype(np.int64),
        left_out=len(table) - len(order),
        name=table.name,
        origin=table.origin,
        sha256=table.sha256,
    )
