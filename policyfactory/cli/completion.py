"""What a shell offers where a value is typed: ``policyfactory --install-completion``."""

from __future__ import annotations

from collections.abc import Callable, Iterable

__all__ = ["COMPLETERS", "complete_metrics", "complete_policies", "complete_targets"]


def _last_of(incomplete: str, names: Iterable[str]) -> list[str]:
    """Return what the last of several values, separated by commas, may become; none is offered twice."""
    before, comma, last = incomplete.rpartition(",")
    given = set(before.split(","))
    return [
        f"{before}{comma}{name}" for name in names if name.casefold().startswith(last.casefold()) and name not in given
    ]


def complete_metrics(incomplete: str) -> list[str]:
    """Return the metrics that begin so."""
    from policyfactory.simulate.metrics import METRICS

    return _last_of(incomplete, [*METRICS, "all"])


def complete_policies(incomplete: str) -> list[str]:
    """Return the policies of the catalogue that begin so."""
    from policyfactory.policy.catalogue import CATALOGUE

    return _last_of(incomplete, CATALOGUE)


def complete_targets(incomplete: str) -> list[str]:
    """Return the targets of an export that begin so."""
    from policyfactory.export.targets import TARGETS

    return [name for name in TARGETS if name.startswith(incomplete)]


# By the options that are declared for an evaluation.
COMPLETERS: dict[str, Callable[[str], list[str]]] = {"metrics": complete_metrics, "policies": complete_policies}
