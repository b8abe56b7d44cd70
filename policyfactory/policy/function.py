"""Policies that are functions of Python: what they see of the jobs, and estimators of scikit-learn as such."""

from __future__ import annotations

import dataclasses
import marshal
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from policyfactory.core.errors import UsageError
from policyfactory.core.inputs import sha256_bytes

__all__ = ["JobColumns", "digest_of", "estimated"]


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class JobColumns:
    """Jobs as a policy's function sees them.

    Parameters
    ----------
    p, q, r : float64 array (n,)
        Requested seconds, processors, submit seconds since the epoch.
    m : float
        Processors of the machine.
    """

    p: NDArray[np.float64]
    q: NDArray[np.float64]
    r: NDArray[np.float64]
    m: float

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("_"):
            raise AttributeError(name)
        raise UsageError(
            f"a policy's function was asked for {name!r} of the jobs, and sees p, q, r and m; what changes while jobs "
            "wait (w, f) or is predicted (e, s) needs a formula: Policy('NAME', 'p*q / (1 + w)')"
        )


def digest_of(function: Any) -> str:
    """Return some letters that differ if the code of a function, or the state of an estimator, does."""
    code = getattr(function, "__code__", None)
    if code is not None:
        values = [cell.cell_contents for cell in function.__closure__ or ()]
        return sha256_bytes(marshal.dumps(code) + repr((values, function.__defaults__)).encode())[:8]
    import joblib

    return str(joblib.hash(function))[:8]


def estimated(estimator: Any, features: tuple[str, ...], jobs: JobColumns) -> ArrayLike:
    """Return the predictions of an estimator; one that was fitted to a table of pandas gets its column names."""
    columns = {name: np.broadcast_to(getattr(jobs, name), jobs.p.shape) for name in features}
    names = getattr(estimator, "feature_names_in_", None)
    if names is None:
        table: Any = np.column_stack(list(columns.values()))
    else:
        import pandas as pd

        table = pd.DataFrame(dict(zip(names, columns.values(), strict=True)))
    predictions: ArrayLike = estimator.predict(table) if jobs.p.size else np.empty(0)
    return predictions
