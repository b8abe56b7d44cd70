"""From a fit to a model file: the sort key, its coefficients with errors, diagnostics and origin."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np

from policyfactory.core.artefact import command_line, package_versions
from policyfactory.fit.bootstrap import Candidate, interval
from policyfactory.fit.diagnostics import Diagnosis, diagnose
from policyfactory.fit.inference import Inference, infer
from policyfactory.fit.result import Fit, Term
from policyfactory.fit.sample import Sample
from policyfactory.policy.expression import parse
from policyfactory.policy.policy import Epoch, Policy
from policyfactory.policy.simplify import round_coefficients, shorter_formula, simplify_order
from policyfactory.policy.store import FittedNumber, Model

__all__ = ["Examined", "build_model", "examine", "shown_term", "sort_key"]


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Examined:
    """A fit with everything that is known about it.

    Parameters
    ----------
    fit : Fit
        The fit.
    inference : Inference
        Standard errors and inflation factors.
    diagnosis : Diagnosis
        What speaks against it.
    candidate : Candidate or None
        What resampling found, None if it was not resampled.
    """

    fit: Fit
    inference: Inference
    diagnosis: Diagnosis
    candidate: Candidate | None


def examine(fit: Fit, sample: Sample, candidate: Candidate | None = None) -> Examined:
    """Return ``fit`` with its inference and diagnosis."""
    inference = infer(fit, sample)
    unstable = candidate.other_sign() if candidate is not None else None
    return Examined(fit, inference, diagnose(fit, sample, inference, unstable), candidate)


def sort_key(fit: Fit, *, digits: int | None = None) -> str:
    """Return the shortest formula that orders jobs as ``fit`` does; rounded for display if ``digits`` is given."""
    key = simplify_order(fit.expression)
    return (key if digits is None else round_coefficients(key, digits, exponents=True)).text()


def shown_term(term: Term) -> str:
    """Return what a coefficient multiplies, its numbers rounded for display."""
    return round_coefficients(parse(term.text), exponents=True).text() if term.linear else term.text


def build_model(examined: Examined, sample: Sample, *, name: str, seed: int | None = None) -> Model:
    """Return the model: r counts from the start of the window, as in a tuple."""
    fit, inference = examined.fit, examined.inference
    policy = Policy(
        name=name,
        formula=sort_key(fit),
        description=f"fitted to the scores of {sample.tuples:,} tuples: {_shortened(fit.name)} ({fit.family})",
        source=f"policyfactory fit, score table {_printable(sample.name)}",
        epoch=Epoch("window-start"),
    )
    coefficients = tuple(
        FittedNumber(term.coefficient, _shortened(term.text), float(value), float(error), term.unit)
        for term, value, error in zip(fit.terms, fit.coefficients, inference.stderr, strict=True)
    )
    return Model(policy, coefficients, _diagnostics(examined, sample), _provenance(sample, seed))


def _diagnostics(examined: Examined, sample: Sample) -> dict[str, Any]:
    fit, inference, diagnosis = examined.fit, examined.inference, examined.diagnosis
    names = [term.coefficient for term in fit.terms]

    def by_name(values: Any) -> dict[str, float | None]:
        return {name: _finite(value) for name, value in zip(names, np.asarray(values).tolist(), strict=True)}

    facts: dict[str, Any] = {
        "family": fit.family,
        "form": fit.source,
        "score_formula": fit.text,
        "aliases": list(fit.aliases),
        "method": fit.method,
        "converged": fit.converged,
        "weight": "p*q, inside the square",
        "rows": len(sample),
        "tuples": sample.tuples,
        "rows_left_out": sample.left_out,
        "mae": _finite(fit.mae),
        "mae_of_noise_alone": sample.noise_mae,
        "mae_of_the_level": sample.level_mae,
        "effective_tuples": sample.effective_tuples,
        "weighted_sse": _finite(fit.sse),
        "condition_number": _finite(fit.condition),
        "t": by_name(inference.t),
        "stderr_kind": "cluster-robust, the tuple is the unit",
        "stderr_classical": by_name(inference.stderr_classical),
        "vif": by_name(inference.vif),
        "vif_weighted": by_name(inference.vif_weighted),
        "falls_along": diagnosis.slopes,
        "one_term_orders_as_all": dict(diagnosis.dominance),
        "pairs_ordered_as_scores": _finite(diagnosis.order),
        "data_range": {
            "p_s": [float(sample.p.min()), float(sample.p.max())],
            "q_processors": [float(sample.q.min()), float(sample.q.max())],
            "r_s": [float(sample.r.min()), float(sample.r.max())],
        },
        "warnings": list(diagnosis.warnings),
    }
    if reason := shorter_formula(fit.expression).why_not:
        facts["formula_as_fitted"] = f"a shorter one: {reason}"
    if examined.candidate is not None:
        facts["mae_held_out"] = _finite(examined.candidate.held_out)
        facts["bootstrap"] = _resampled(examined.candidate, names)
    return facts


def _resampled(candidate: Candidate, names: list[str]) -> dict[str, Any] | None:
    if not len(candidate.mae):
        return None
    return {
        "unit": "tuple",
        "replicates": len(candidate.mae),
        "mae_95": list(interval(candidate.mae)),
        "rank_95": list(interval(candidate.rank.astype(np.float64))),
        "share_first": candidate.first,
        "coefficients_95": {
            name: list(interval(values)) for name, values in zip(names, candidate.coefficients, strict=True)
        },
    }


def _provenance(sample: Sample, seed: int | None) -> dict[str, Any]:
    return {
        "command": command_line(),
        "seed": seed,
        "inputs": {sample.name: sample.sha256},
        "origin_of_scores": sample.origin,
        "versions": package_versions(),
    }


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def _shortened(text: str, longest: int = 200) -> str:
    return text if len(text) <= longest else text[: longest - 3] + "..."


def _printable(text: str) -> str:
    return "".join(character if character.isprintable() else "?" for character in text)[:200]
