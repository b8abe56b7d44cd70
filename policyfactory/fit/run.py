"""The whole fit of a score table: families, ranking, resampling, diagnoses."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

from policyfactory.core.errors import FitError, UsageError
from policyfactory.fit.bootstrap import Bootstrap, Certainty, bootstrap, measure_certainty
from policyfactory.fit.forms import (
    FormsResult,
    fit_all_forms,
    fit_determined_polynomials,
    fit_mixture,
    fit_user_form,
    split_name,
)
from policyfactory.fit.model import Examined, examine
from policyfactory.fit.regression import Fit
from policyfactory.fit.sample import Sample, prepare
from policyfactory.trials.table import ScoreTable

__all__ = ["FAMILIES", "FitOptions", "FitResults", "Progress", "fit_table", "no_progress"]

FAMILIES = ("forms", "polynomials", "linear")

_BUDGET = 500_000_000  # residuals that the bootstrap may compute: a few seconds
_FEWEST_CANDIDATES = 12
_CERTAINTY_CANDIDATES = 12

Progress = Callable[[str, int], Callable[[], None]]


@dataclasses.dataclass(frozen=True, slots=True)
class FitOptions:
    """What to fit and how much to say about it.

    Parameters
    ----------
    families : tuple of str
        Of ``FAMILIES``.
    forms : tuple of str
        The user's forms, ``FORMULA`` or ``NAME=FORMULA``.
    top : int
        How many of the enumerated forms to examine in full.
    replicates : int
        Bootstrap replicates; 0 for none.
    seed : int
        Of bootstrap and starting points.
    certainty : bool
        Whether to measure how many tuples are needed.
    """

    families: tuple[str, ...] = ("forms",)
    forms: tuple[str, ...] = ()
    top: int = 1
    replicates: int = 200
    seed: int = 1
    certainty: bool = False

    def __post_init__(self) -> None:
        unknown = [family for family in self.families if family not in FAMILIES]
        if unknown:
            raise UsageError(f"unknown family {unknown[0]!r}; choose among {', '.join(FAMILIES)}")
        if not (self.families or self.forms):
            raise UsageError("nothing to fit; give a family or a form")
        if self.top < 1 or self.replicates < 0:
            raise UsageError(f"top {self.top} and bootstrap {self.replicates}: expected at least 1 and at least 0")


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class FitResults:
    """Everything that was found on one table.

    Parameters
    ----------
    sample : Sample
        The rows.
    options : FitOptions
        What was asked for.
    fits : tuple of Fit
        All fits, best mean absolute error first.
    enumerated : FormsResult or None
        The family of forms, if it was fitted.
    resampled : Bootstrap
        Ranks, coefficients and held-out errors of the candidates.
    examined : tuple of Examined
        The winner, the best ``top`` forms, and everything that has a name, in the order of ``fits``.
    certainty : Certainty or None
        How many tuples are needed, if it was asked for.
    failures : dict of str to str
        Polynomials and mixture that the table does not determine, and why.
    """

    sample: Sample
    options: FitOptions
    fits: tuple[Fit, ...]
    enumerated: FormsResult | None
    resampled: Bootstrap
    examined: tuple[Examined, ...]
    certainty: Certainty | None
    failures: dict[str, str] = dataclasses.field(default_factory=dict)

    @property
    def winner(self) -> Examined:
        """The fit with the smallest mean absolute error."""
        return self.examined[0]

    def rank(self, fit: Fit) -> int:
        """Return the rank of a fit by mean absolute error, from 1."""
        return next(place for place, other in enumerate(self.fits, start=1) if other is fit)


def no_progress(_title: str, _total: int) -> Callable[[], None]:
    """Show nothing."""
    return lambda: None


def fit_table(table: ScoreTable, options: FitOptions, *, progress: Progress = no_progress) -> FitResults:
    """Return all fits of ``table`` that ``options`` ask for.

    Parameters
    ----------
    table : ScoreTable
        The scores.
    options : FitOptions
        What to fit.
    progress : callable
        Called with the title and the number of steps of each longer stage; returns what to call after each step.

    Raises
    ------
    FitError
        If the table cannot determine what was asked for.
    FormulaError
        If a user's form is outside the grammar.
    """
    named_forms = _named(options.forms)
    sample = prepare(table)
    enumerated = fit_all_forms(sample) if "forms" in options.families else None
    fits = list(enumerated.fits) if enumerated else []
    failures: dict[str, str] = {}
    if "polynomials" in options.families:
        polynomials, failures = fit_determined_polynomials(sample)
        fits += polynomials
    if "linear" in options.families:
        try:
            fits.append(fit_mixture(sample))
        except FitError as error:
            failures["MIX"] = str(error)
    fits += [fit_user_form(sample, text, name=name, seed=options.seed) for name, text in named_forms]
    if not fits:
        name, reason = next(iter(failures.items()))
        raise FitError(f"{sample.name}: nothing could be fitted; {name}: {reason}")
    fits.sort(key=lambda fit: (fit.mae, fit.name))
    candidates = _candidates(fits, sample, options)
    resampled = bootstrap(
        candidates,
        sample,
        replicates=options.replicates,
        seed=options.seed,
        advance=progress("resampling tuples", len(candidates)),
    )
    shown = _shown(fits, options)
    advance = progress("diagnosing", len(shown))
    examined = []
    for fit in shown:
        examined.append(examine(fit, sample, resampled.of(fit)))
        advance()
    certainty = _certainty(fits, sample, options, progress) if options.certainty else None
    return FitResults(sample, options, tuple(fits), enumerated, resampled, tuple(examined), certainty, failures)


def _named(forms: Sequence[str]) -> list[tuple[str, str]]:
    named = [split_name(text, f"form{number}") for number, text in enumerate(forms, start=1)]
    taken = [name.lower() for name, _ in named]
    twice = sorted({name for name in taken if taken.count(name) > 1})
    if twice:
        raise UsageError(f"two forms have the name {twice[0]!r}; give each its own, NAME=FORMULA")
    return named


def _shown(fits: list[Fit], options: FitOptions) -> list[Fit]:
    forms = [fit for fit in fits if fit.family == "forms"][: options.top]
    return [fit for place, fit in enumerate(fits) if place == 0 or fit.family != "forms" or fit in forms]


def _candidates(fits: list[Fit], sample: Sample, options: FitOptions) -> list[Fit]:
    """Return what is resampled: everything with a name, and as many of the best forms as the budget allows."""
    allowed = max(_FEWEST_CANDIDATES, options.top, _BUDGET // (len(sample) * max(options.replicates, 5)))
    forms = {id(fit) for fit in [fit for fit in fits if fit.family == "forms"][:allowed]}
    return [fit for fit in fits if fit.family != "forms" or id(fit) in forms]


def _certainty(fits: list[Fit], sample: Sample, options: FitOptions, progress: Progress) -> Certainty:
    if options.replicates < 1:
        raise UsageError("certainty is measured by resampling; give --bootstrap 1 or more (200 is usual)")
    forms = {id(fit) for fit in [fit for fit in fits if fit.family == "forms"][:_CERTAINTY_CANDIDATES]}
    candidates = [fit for fit in fits if fit.family != "forms" or id(fit) in forms]
    advance = progress("tables of growing size", len(candidates))
    return measure_certainty(candidates, sample, replicates=options.replicates, seed=options.seed, advance=advance)
