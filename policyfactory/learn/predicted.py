"""The formulas with predictions that compete, and why they may have to stay away."""

from __future__ import annotations

from policyfactory.learn.comparing import Rival
from policyfactory.policy.policy import Policy
from policyfactory.policy.store import Model
from policyfactory.predict.features import missing
from policyfactory.simulate.predicted import filled_requests
from policyfactory.workload.jobs import Workload

__all__ = ["FORMULAS", "SOFTENED", "predicted_rivals", "softened_rivals", "why_not"]

# E[p] over a power of E[10/p], the order that is best for jobs of one processor and known distributions, with the
# exponents of the shortness and of q softened: a small one errs least when long jobs are taken for short ones, 1 gains
# most when they are not. The last two also hold back users who run much and let the later jobs of a burst, of which
# more is known, go first.
FORMULAS = {
    "E": "e",
    "E-S20": "ln(e) - 0.2*ln(s)",
    "E-S25-Q30": "ln(e) - 0.25*ln(s) + 0.3*ln(q)",
    "E-S50-Q30": "ln(e) - 0.5*ln(s) + 0.3*ln(q)",
    "E-S50-Q70": "ln(e) - 0.5*ln(s) + 0.7*ln(q)",
    "E-S100-Q30": "ln(e) - ln(s) + 0.3*ln(q)",
    "PE-S50-Q60": "ln(p) + ln(e) - 0.5*ln(s) + 0.6*ln(q)",
    "E-WAITING": "ln(e) + 0.3*ln(p) - 0.4*ln(s) + 0.2*ln(q) - 0.4*ln(1 + user_waiting)",
    "E-USERS": "ln(e) - 0.5*ln(s) + 0.3*ln(q) - 0.4*ln(1 + user_waiting) + 0.3*ln(1 + user_running)",
}
# What needs no predictions: between the shortest job and the smallest area.
SOFTENED = {"P-Q20": "ln(p) + 0.2*ln(q)", "P-Q50": "ln(p) + 0.5*ln(q)"}
_WHAT = "e and s are predicted from what the user's jobs did before"
_SOFT = "between SPF and SAF"


def softened_rivals(place: str) -> list[Rival]:
    """Return the formulas of p and q between the published ones; ``place`` as for `predicted_rivals`."""
    return _rivals(SOFTENED, place, _SOFT)


def predicted_rivals(place: str) -> list[Rival]:
    """Return the formulas with predictions; ``place``: the folder that their files are written to."""
    return _rivals(FORMULAS, place, _WHAT)


def _rivals(formulas: dict[str, str], place: str, what: str) -> list[Rival]:
    return [
        Rival(Model(Policy(name, formula, description=what)), f"{place}/{name}.json")
        for name, formula in formulas.items()
    ]


def why_not(workload: Workload) -> str:
    """Return why nothing is predicted of the jobs of a log, or empty."""
    if filled := filled_requests(workload):
        return f"{filled:,} jobs have their run time for a request, which is what would have to be predicted"
    if not (workload.user >= 0).any():
        return f"the log does not say whose jobs they are ({missing(workload)[0]})"
    return ""
