"""Looks at schedules beyond the metrics; each is named in a protocol's ``analyses``."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from policyfactory.core.errors import UsageError
from policyfactory.core.text import did_you_mean

if TYPE_CHECKING:
    from policyfactory.evaluation.analyses.analysis import Analysis

# name -> module below this one and class; loaded on first use.
ANALYSES: dict[str, tuple[str, str]] = {
    "groups": ("groups", "Groups"),
    "fairness": ("fairness", "Fairness"),
    "starvation": ("starvation", "Starvation"),
    "load": ("load", "Load"),
    "gantt": ("gantt", "Gantt"),
    "weekly": ("weekly", "Weekly"),
    "delayed": ("slowdowns", "Delayed"),
    "slowdown-classes": ("slowdowns", "SlowdownClasses"),
    "backfilled": ("slowdowns", "Backfilled"),
    "premature": ("slowdowns", "Premature"),
    "improvement": ("tuning", "Improvement"),
    "choices": ("tuning", "Choices"),
}


def make_analysis(name: str, **options: Any) -> Analysis:
    """Return the analysis called ``name`` with its options.

    Raises
    ------
    UsageError
        If there is none of that name, or it has no such option.
    """
    if name not in ANALYSES:
        hint = did_you_mean(name, ANALYSES)
        raise UsageError(f"no analysis is called {name!r}; {hint}there are {', '.join(ANALYSES)}")
    module, cls = ANALYSES[name]
    analysis: Analysis = getattr(import_module(f"{__name__}.{module}"), cls).with_options(options)
    return analysis
