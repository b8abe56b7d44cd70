"""The constants of the Lublin-Feitelson model.

U. Lublin and D. G. Feitelson, "The workload on parallel supercomputers: modeling the characteristics of rigid
jobs", Journal of Parallel and Distributed Computing 63 (2003), https://doi.org/10.1016/S0743-7315(03)00108-4,
with the values of the program that the Parallel Workloads Archive distributes (128 processors).
"""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "BATCH",
    "BUCKET",
    "BUCKETS",
    "INTERACTIVE",
    "MAX_LN_GAP",
    "MAX_LN_RUN",
    "TYPELESS",
    "JobClass",
    "daily_weights",
]

MAX_LN_RUN = 12.0  # a run time above e^12 s = 162,754 s is drawn again
MAX_LN_GAP = 13.0  # so is a gap between arrivals above e^13 weighted seconds
BUCKETS = 48
BUCKET = 1800  # s; the daily cycle has 48 buckets of half an hour
_FIRST_BUCKET = 11  # the cycle's gamma distribution is read from here, in half hours


@dataclasses.dataclass(frozen=True, slots=True)
class JobClass:
    """The parameters of one class of jobs; every gamma distribution is given by shape and scale.

    Parameters
    ----------
    name : str
        ``"all"``, ``"interactive"`` or ``"batch"``.
    serial : float
        Probability of one processor.
    pow2 : float
        Probability (of all jobs) of a size whose logarithm is rounded to a whole number.
    ulow, umed, uhi : float
        log2 of the processors of a parallel job is uniform on (ulow, umed) with probability ``uprob``, else on
        (umed, uhi).
    uprob : float
        See above.
    a1, b1, a2, b2 : float
        Gamma distributions of the natural logarithm of short and of long run times (s).
    pa, pb : float
        A job of n processors is short with probability pa * n + pb, held within 0 and 1.
    aarr, barr, arar : float
        Gamma distribution (shape aarr * arar, scale barr) of the natural logarithm of the gap between two
        arrivals, in weighted seconds.
    anum, bnum : float
        Gamma distribution over the half hours of the day: how many jobs arrive when.
    """

    name: str
    serial: float
    pow2: float
    ulow: float
    umed: float
    uhi: float
    uprob: float
    a1: float
    b1: float
    a2: float
    b2: float
    pa: float
    pb: float
    aarr: float
    barr: float
    arar: float
    anum: float
    bnum: float

    def numbers(self) -> NDArray[np.float64]:
        """Return the parameters in the order of the fields, the name left out: float64 array (17,)."""
        return np.array([getattr(self, field.name) for field in dataclasses.fields(self)[1:]], dtype=np.float64)


TYPELESS = JobClass(
    "all", 0.244, 0.576, 0.8, 4.5, 7.0, 0.86, 4.2, 0.94, 312.0, 0.03, -0.0054, 0.78,
    10.2303, 0.4871, 1.0225, 8.1737, 3.9631,
)  # fmt: skip
INTERACTIVE = JobClass(
    "interactive", 0.1541, 0.625, 1.0, 3.0, 5.5, 0.705, 3.8351, 0.6605, 7.073, 0.6856, -0.0118, 0.9156,
    6.5510, 0.6621, 0.9797, 8.9186, 3.6680,
)  # fmt: skip
BATCH = JobClass(
    "batch", 0.2927, 0.6686, 1.2, 5.0, 7.0, 0.875, 6.57, 0.823, 639.1, 0.0156, -0.003, 0.6986,
    6.0415, 0.8531, 1.0519, 6.1271, 5.2740,
)  # fmt: skip


def daily_weights(job_class: JobClass) -> NDArray[np.float64]:
    """Return the arrival rate of each half hour of the day, relative to the mean.

    Parameters
    ----------
    job_class : JobClass
        The class of jobs.

    Returns
    -------
    float64 array (48,)
        Weight of the half hour that begins at 00:00, 00:30, ...; they average 1.
    """
    from scipy.special import gammainc

    # The distribution's unit is the half hour; bucket i of it is i - 1 half hours after midnight.
    bucket = np.arange(_FIRST_BUCKET, _FIRST_BUCKET + BUCKETS)
    mass = gammainc(job_class.anum, (bucket + 0.5) / job_class.bnum) - gammainc(
        job_class.anum, (bucket - 0.5) / job_class.bnum
    )
    weights = np.empty(BUCKETS)
    weights[(bucket - 1) % BUCKETS] = mass
    return np.asarray(weights / weights.mean())
