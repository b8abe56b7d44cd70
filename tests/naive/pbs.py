"""How OpenPBS checks and evaluates a job_sort_formula and sorts by it, written again from its sources (none of theirs).

The server runs the formula twice as Python: with every resource set to 1 it refuses syntax errors and unknown names,
with the numeric ones only it refuses the others. The scheduler evaluates it for every job with the names of math, and
any exception makes the value 0. Jobs whose value is not above the threshold never run; where none is set it is -2**31.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

SILENT_ZERO = "exception"
THRESHOLD = -(2**31)
SPECIAL = {
    "eligible_time", "queue_priority", "job_priority", "fairshare_perc", "fairshare_tree_usage", "fairshare_factor",
    "accrue_type",
}  # fmt: skip
NUMERIC = {"walltime", "ncpus", "mem", "nodect", "ngpus", "pf_submit", *SPECIAL}
OTHER = {"select", "place", "host"}
MATH = {name: value for name, value in vars(math).items() if not name.startswith("_")}


def validate(formula: str, numeric: set[str] | frozenset[str] = frozenset(NUMERIC)) -> None:
    """Raise SyntaxError, NameError or TypeError where ``qmgr`` would refuse the formula."""
    assert not set(formula) & set("'\"\\\n"), "these end the text into which the server puts the formula"
    for names in ({*numeric, *OTHER}, set(numeric)):
        try:
            eval(formula, {**MATH, **dict.fromkeys(names, 1)})
        except SyntaxError:
            raise
        except NameError as error:
            if names == set(numeric):
                raise TypeError(str(error)) from None
            raise
        except Exception:  # noqa: BLE001
            pass


def evaluate(formula: str, job: Mapping[str, float]) -> float | str:
    """Return the value for a job; `SILENT_ZERO` where PBS would make it 0 without a word."""
    try:
        return float(eval(formula, {**MATH, **job}))
    except Exception:  # noqa: BLE001
        return SILENT_ZERO


def start_order(formula: str, jobs: Sequence[Mapping[str, float]]) -> list[int]:
    """Return the jobs in the order in which the scheduler looks at them; those that never run are left out.

    Jobs are given in the order in which they were queued, which decides among equal values.
    """
    values: list[Any] = [evaluate(formula, job) for job in jobs]
    values = [0.0 if value == SILENT_ZERO else value for value in values]
    may_run = [place for place, value in enumerate(values) if value > THRESHOLD]
    return sorted(may_run, key=lambda place: -values[place])
