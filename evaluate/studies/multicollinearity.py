"""Make the numbers of docs/polynomials.md: ``python evaluate/studies/multicollinearity.py --output docs``.

It asks what makes large polynomials bad policies: that their terms are collinear, or what they say of jobs outside the
range they were fitted to, and that they fall where a job gets longer or wider. With the defaults it takes about four
minutes on one core, and needs the logs in traces/ (``--traces``). It writes ``data/collinearity-*.csv``; then
``python evaluate/studies/multicollinearity_page.py --output docs`` draws the pictures and prints the page's tables.
"""  # noqa: INP001 (a script beside the package, not a part of it)

from __future__ import annotations

import argparse
import dataclasses
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.files import atomic_write
from policyfactory.fitting.bootstrap import Refit, draw_counts, refit
from policyfactory.fitting.forms import fit_all_polynomials
from policyfactory.fitting.model import agreement
from policyfactory.fitting.regression import Fit, inflation
from policyfactory.fitting.sample import Sample, prepare
from policyfactory.policy.policy import Policy
from policyfactory.policy.store import resolve
from policyfactory.simulation.metrics import measure
from policyfactory.simulation.simulate import Rules, simulate
from policyfactory.trials.files import generate
from policyfactory.trials.table import GenerateOptions, read_score_table
from policyfactory.workload.clean import read
from policyfactory.workload.jobs import Workload
from policyfactory.workload.models.lublin import generate_lublin
from policyfactory.workload.windows import cut

__all__ = ["FAMILIES", "VARIANTS", "main"]

FloatArray = NDArray[np.float64]

FAMILIES = ("LIN", "QDR", "CUB", "QUA")
# How a fit becomes a policy. The columns, and with them the collinearity, are the same in all four.
VARIANTS = ("as fitted", "inside the range", "rising", "rising and inside")
REFERENCES = ("FCFS", "SPF", "SAF", "F2")
PUBLISHED = tuple(f"{family}-SYNTHETIC" for family in FAMILIES)
FILES = {"kth": "KTH-SP2-1996-2.1-cln.swf.gz", "sdsc-blue": "SDSC-BLUE-2000-4.2-cln.swf.gz"}
RULES = {"runtime": Rules(backfill="none", decide_by="runtime"), "easy": Rules(backfill="easy", decide_by="request")}
_FORTNIGHT = "15d"
_LUBLIN_SEED = 77  # not that of the log the scores are from


def main(arguments: list[str] | None = None) -> None:
    """Run all experiments and write their results."""
    given = _parser().parse_args(arguments)
    data = given.output / "data"
    data.mkdir(parents=True, exist_ok=True)
    samples = {"441": prepare(read_score_table(given.table)), str(given.tuples): _large(given)}
    counts = {name: draw_counts(sample.tuples, given.replicates, seed=1) for name, sample in samples.items()}
    families = {name: _families(sample) for name, sample in samples.items()}
    logs = _logs(given)
    _write(data / "collinearity-terms.csv", _terms(families["441"], counts["441"]))
    _write(data / "collinearity-bases.csv", _bases(families["441"], logs))
    _write(data / "collinearity-orders.csv", _orders(families, counts, logs))
    _write(data / "collinearity-schedules.csv", _schedules(families, counts, logs))
    _write(data / "collinearity-slices.csv", _slices(families["441"], counts["441"][:, :12]))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--table", type=Path, default=Path("training_data/lublin-256.csv"))
    parser.add_argument("--traces", type=Path, default=Path("traces"))
    parser.add_argument("--logs", nargs="*", default=list(FILES))
    parser.add_argument("--replicates", type=int, default=40)
    parser.add_argument("--windows", type=int, default=10)
    parser.add_argument("--tuples", type=int, default=6_000, help="of the large table")
    parser.add_argument("--trials", type=int, default=4_000, help="of the large table")
    parser.add_argument("--jobs-in-log", type=int, default=1_000_000, help="of the large table")
    return parser


def _write(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    lines = [",".join(rows[0])]
    lines += [
        ",".join(f"{value:.5g}" if isinstance(value, float) else str(value) for value in row.values()) for row in rows
    ]
    atomic_write(path, "\n".join(lines) + "\n")


# What the fits are made of. ------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True, eq=False)
class Family:
    """One polynomial on one table of scores, and its refits to resamplings of the tuples."""

    fit: Fit
    sample: Sample
    prepared: Refit

    @property
    def terms(self) -> list[str]:
        return [term.text for term in self.fit.terms]

    def coefficients(self, counts: NDArray[np.int64], *, rising: bool) -> FloatArray:
        """Return the coefficients of each resampling, shape (replicates, terms)."""
        if not rising:
            return self.prepared.coefficients(self.prepared.solve(counts)).T
        return np.array([_rising(self.prepared, column) for column in counts.T])


def _large(given: argparse.Namespace) -> Sample:
    workload = generate_lublin(256, given.jobs_in_log, seed=3)
    return prepare(generate(workload, GenerateOptions(tuples=given.tuples, trials=given.trials, seed=1)))


def _families(sample: Sample) -> dict[str, Family]:
    fits = {fit.name: fit for fit in fit_all_polynomials(sample)[0]}
    return {name: Family(fits[name], sample, refit(fits[name], sample)) for name in FAMILIES}


def _rising(prepared: Refit, count: NDArray[np.int64]) -> FloatArray:
    """Return the best coefficients that are not negative (but for the constant): such a polynomial rises everywhere."""
    from scipy.optimize import lsq_linear

    inverse = np.linalg.inv(prepared.back)
    gram = inverse.T @ np.tensordot(count.astype(np.float64), prepared.gram, 1) @ inverse
    right = inverse.T @ (count.astype(np.float64) @ prepared.right)
    scale = 1 / np.sqrt(np.diag(gram))
    values, vectors = np.linalg.eigh(gram * scale[:, None] * scale)
    roots = np.sqrt(np.maximum(values, 1e-14 * values.max()))
    design = roots[:, None] * vectors.T
    target = (vectors.T @ (right * scale)) / roots
    least = np.zeros(len(values))
    least[0] = -np.inf  # the constant may have any sign
    actual = lsq_linear(design, target, bounds=(least, np.inf), method="bvls", tol=1e-14, max_iter=1_000).x
    result: FloatArray = actual * scale
    return result


def _policy(terms: Sequence[str], coefficients: FloatArray, limits: dict[str, float] | None = None) -> Policy:
    """Return the polynomial as a policy; with ``limits`` a job beyond the range counts as one at its edge."""
    parts = [
        repr(float(value)) + ("" if term == "1" else f"*{term}")
        for term, value in zip(terms, coefficients, strict=True)
    ]
    text = ("0*p + " + " + ".join(parts)).replace("+ -", "- ")
    return Policy(name="polynomial", formula=_kept_inside(text, limits))


def _kept_inside(formula: str, limits: dict[str, float] | None) -> str:
    for name, limit in (limits or {}).items():
        formula = re.sub(rf"\b{name}\b", f"min({name}, {limit!r})", formula)
    return formula


def _limits(sample: Sample) -> dict[str, float]:
    return {name: float(getattr(sample, name).max()) for name in "pqr"}


def _logs(given: argparse.Namespace) -> dict[str, list[Workload]]:
    """Return windows of 15 days: of a new log of the model that the scores are from, and of real logs."""
    actual = {"lublin": cut(generate_lublin(256, 2_000 * (given.windows + 1), seed=_LUBLIN_SEED), _FORTNIGHT)}
    for name in given.logs:
        actual[name] = cut(read(given.traces / FILES[name]), _FORTNIGHT)
    return {name: windows[: given.windows] for name, windows in actual.items()}


# Experiment 1: factors and signs. ------------------------------------------------------------------------------------


def _centred(sample: Sample) -> Sample:
    """Return the sample with p, q, r minus their means, over their standard deviations."""
    columns = [(values - values.mean()) / values.std() for values in (sample.p, sample.q, sample.r)]
    return sample.with_jobs(*columns)


def _terms(families: dict[str, Family], counts: NDArray[np.int64]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for name, family in families.items():
        design = family.fit.design(family.sample)[:, 1:]
        centred = _centred(family.sample)
        moved = np.column_stack([centred.values(term) for term in family.terms[1:]])
        drawn = family.coefficients(counts, rising=False)
        flips = np.mean(np.sign(drawn) != np.sign(family.fit.coefficients), axis=0)
        for at, (factor, least) in enumerate(zip(inflation(design), inflation(moved), strict=True), 1):
            actual = {"family": name, "term": family.terms[at], "vif": float(factor), "vif_centred": float(least)}
            rows.append({**actual, "other_sign": float(flips[at])})
    return rows


# Experiment 2: another basis of the same polynomials. ----------------------------------------------------------------


def _bases(families: dict[str, Family], logs: dict[str, list[Workload]]) -> list[dict[str, Any]]:
    """Fit centred terms and compare predictions and schedules with those of the plain terms."""
    rows: list[dict[str, Any]] = []
    for name, family in families.items():
        sample = family.sample
        centred = _centred(sample)
        design = np.column_stack([centred.values(term) for term in family.terms])
        weighted = design * sample.weight[:, None]
        scale = np.linalg.norm(weighted, axis=0)
        solution = np.linalg.lstsq(weighted / scale, sample.score * sample.weight, rcond=None)[0] / scale
        plain = sample.values(family.fit.expression)
        apart = float(np.abs(design @ solution - plain).max() / np.ptp(plain))
        basis = np.linalg.qr(family.fit.design(sample) / np.linalg.norm(family.fit.design(sample), axis=0))[0]
        other_fit = np.linalg.lstsq(basis * sample.weight[:, None], sample.score * sample.weight, rcond=None)[0]
        apart_orthogonal = float(np.abs(basis @ other_fit - plain).max() / np.ptp(plain))
        moved = {
            variable: f"(({variable} - {float(values.mean())!r})/{float(values.std())!r})"
            for variable, values in (("p", sample.p), ("q", sample.q), ("r", sample.r))
        }
        other = _policy(family.terms, solution)
        text = other.formula
        for variable, of_it in moved.items():
            text = re.sub(rf"\b{variable}\b", of_it.replace(variable, "@"), text).replace("@", variable)
        first, second = _policy(family.terms, family.fit.coefficients), dataclasses.replace(other, formula=text)
        same = [_same(window, first, second) for windows in logs.values() for window in windows]
        columns = {"": family.fit.design(sample), "_centred": design, "_orthogonal": basis}
        factors = {f"largest_vif{of}": float(inflation(values[:, 1:]).max()) for of, values in columns.items()}
        apart_by = {"centred_apart": apart, "orthogonal_apart": apart_orthogonal}
        rows.append({"family": name, **factors, **apart_by, "same_schedules": sum(same), "windows": len(same)})
    return rows


def _same(window: Workload, first: Policy, second: Policy) -> bool:
    starts = [simulate(window, policy, RULES["runtime"]).start for policy in (first, second)]
    return bool((starts[0] == starts[1]).all())


# Experiment 3: do two resamplings order jobs alike? ------------------------------------------------------------------


def _orders(
    families: dict[str, dict[str, Family]], counts: dict[str, NDArray[np.int64]], logs: dict[str, list[Workload]]
) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for table, own in families.items():
        limits = _limits(own["LIN"].sample)
        queues = {
            "training": own["LIN"].sample,
            **{log: _queues(own["LIN"].sample, windows) for log, windows in logs.items()},
        }
        for name, family in own.items():
            drawn = family.coefficients(counts[table], rising=False)
            for where, jobs in queues.items():
                for variant, edge in zip(VARIANTS[:2], (None, limits), strict=True):
                    keys = [jobs.values(_policy(family.terms, one, edge).expression) for one in drawn]
                    # Neighbours are independent resamplings: Kendall's rank correlation within queues of 32 jobs.
                    tau = [2 * agreement(a, b, jobs) - 1 for a, b in zip(keys[::2], keys[1::2], strict=False)]
                    low, middle, high = np.quantile(tau, [0.1, 0.5, 0.9]).tolist()
                    early = [2 * agreement(key, jobs.r, jobs) - 1 for key in keys]
                    actual = {"table": table, "family": name, "jobs": where, "variant": variant, "pairs": len(tau)}
                    actual |= {"tau": middle, "tau_10": low, "tau_90": high, "tau_submission": float(np.median(early))}
                    rows.append(actual)
    return rows


def _queues(sample: Sample, windows: list[Workload], size: int = 32) -> Sample:
    """Return the jobs of the windows in queues of 32 consecutive ones, for formulas to be evaluated on."""
    columns: list[FloatArray] = []
    for window in windows:
        end = len(window) // size * size
        r = (window.submit - window.submit[0]) / window.ticks
        columns.append(np.column_stack([window.run_time / window.ticks, window.processors, r])[:end])
    p, q, r = np.concatenate(columns).T
    rows = np.arange(len(p))
    jobs = sample.with_jobs(p.copy(), q.copy(), r.copy())
    return dataclasses.replace(jobs, starts=rows[::size], tuple_of=rows // size)


def _slices(families: dict[str, Family], counts: NDArray[np.int64]) -> list[dict[str, Any]]:
    """Return the score that resamplings predict for a job of an hour and 8 processors, by its submit time."""
    rows: list[dict[str, Any]] = []
    days = np.array([0.02, 0.1, *np.linspace(0.25, 15, 60)])
    for name, family in families.items():
        jobs = family.sample.with_jobs(np.full(len(days), 3600.0), np.full(len(days), 8.0), days * 86_400)
        for number, one in enumerate(family.coefficients(counts, rising=False), 1):
            scores = jobs.values(_policy(family.terms, one).expression).tolist()
            rows += [
                {"family": name, "resampling": number, "day": float(day), "score": score}
                for day, score in zip(days, scores, strict=True)
            ]
    return rows


# Experiment 4: the schedules. ----------------------------------------------------------------------------------------


def _schedules(
    families: dict[str, dict[str, Family]], counts: dict[str, NDArray[np.int64]], logs: dict[str, list[Workload]]
) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for rules in RULES:
        for log, windows in logs.items():
            limits = _limits(families["441"]["LIN"].sample)
            chosen = [(name, "", resolve(name)) for name in REFERENCES]
            for name in PUBLISHED:
                inside = Policy(name=name, formula=_kept_inside(resolve(name).formula, limits))
                chosen += [(name, VARIANTS[0], resolve(name)), (name, VARIANTS[1], inside)]
            for name, variant, policy in chosen:
                value = _slowdown(windows, policy, rules)
                actual = {"rules": rules, "log": log, "table": "", "family": name, "variant": variant, "replicates": 1}
                rows.append({**actual, "mean_bsld": value, "mean_bsld_10": value, "mean_bsld_90": value})
            for table, own in families.items():
                for name, family in own.items():
                    for variant in VARIANTS if table == "441" else VARIANTS[:1]:
                        values = _spread(family, counts[table], variant, (windows, rules))
                        low, middle, high = np.quantile(values, [0.1, 0.5, 0.9]).tolist()
                        actual = {"rules": rules, "log": log, "table": table, "family": name, "variant": variant}
                        actual |= {
                            "replicates": len(values),
                            "mean_bsld": middle,
                            "mean_bsld_10": low,
                            "mean_bsld_90": high,
                        }
                        rows.append(actual)
    return rows


def _spread(family: Family, counts: NDArray[np.int64], variant: str, where: tuple[list[Workload], str]) -> list[float]:
    limits = _limits(family.sample) if "inside" in variant else None
    drawn = family.coefficients(counts, rising="rising" in variant)
    return [_slowdown(where[0], _policy(family.terms, one, limits), where[1]) for one in drawn]


def _slowdown(windows: list[Workload], policy: Policy, rules: str) -> float:
    """Return the median over the windows of the mean bounded slowdown."""
    actual = [measure(simulate(window, policy, RULES[rules]), ["mean_bsld"])["mean_bsld"] for window in windows]
    return float(np.median(actual))


if __name__ == "__main__":
    main()
