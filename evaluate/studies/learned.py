"""What `learn`'s way of choosing is worth on real logs, half by half: the numbers of docs/learned.md.

    python evaluate/studies/learned.py --traces traces --output docs

Of each log the first half is the past. The honest published policy is the published one that had the lowest mean
bounded slowdown on it. The choice is that of `policyfactory learn`: the best on 8 replicas of the second quarter, if it
is clearly ahead of the best published policy there, at a price of at most 1.1 times its ninety-ninth percentile of
waits. Both then run on 20 replicas of the second half, whose predictors learn anew in each, and on 20 half replicas,
which give the intervals; the last 30,000 jobs of the first half go ahead of them. What stands beside runs on the whole
replicas and has no intervals. Oracles are the choice with perfect knowledge in the place of a prediction: s, e, both,
or both for jobs under a minute only. Rolling origin: the log as it was, in eighths; before each of the last four the
published policy is chosen by all that was before.

It writes ``data/learned.json``; an hour or two of two cores, ``--only KTH`` does one log, and what is there is kept.
"""  # noqa: INP001 (a script beside the package, not a part of it)

from __future__ import annotations

import argparse
import dataclasses
import json
import time
from pathlib import Path
from typing import Any

import numpy as np

from policyfactory.core.files import atomic_write, dump_json, package_versions
from policyfactory.core.options import FloatArray
from policyfactory.learning.choice import FORMULAS, SOFTENED, why_not
from policyfactory.learning.comparing import PUBLISHED
from policyfactory.learning.ranking import rank, values_of
from policyfactory.policy.policy import Policy
from policyfactory.policy.store import CATALOGUE
from policyfactory.report.terminal import note
from policyfactory.search.replicated import AIMS, Part, Replicated, replicated
from policyfactory.simulation.metrics import measure
from policyfactory.simulation.rules import Rules
from policyfactory.simulation.simulate import simulate
from policyfactory.statistics.compare import compare_replicas
from policyfactory.workload.clean import read
from policyfactory.workload.jobs import Workload

__all__ = ["main", "study"]

LOGS = {
    "KTH": "KTH-SP2-1996-2.1-cln.swf.gz",
    "SDSC-BLUE": "SDSC-BLUE-2000-4.2-cln.swf.gz",
    "HPC2N": "HPC2N-2002-2.1-cln.swf.gz",
    "CEA-Curie": "CEA-Curie-2011-2.1-cln.swf.gz",
    "Lublin-1": "lublin_256.swf",
    "Lublin-2": "lublin_256_new2.swf",
}
CHOSEN_BY, JUDGED_BY = 8, 20
BESIDE = ("FCFS", "SPF", "SAF", "F1", "P-Q20", "E-S50-Q30")
ORACLES = ("s", "e", "s and e", "short jobs only")
_SHORT_S, _TAU_S = 60.0, 10.0


def study(name: str, path: Path, *, judged_by: int = JUDGED_BY) -> dict[str, Any]:
    """Return all numbers of one log."""
    began = time.process_time()
    synthetic = name.startswith("Lublin")
    workload = read(path, estimate_missing="runtime" if synthetic else "error")
    half, rules = len(workload) // 2, Rules(threshold=3 * float(workload.requested_time.max()) / workload.ticks)
    honest = _best_published(workload.select(slice(half)), rules)
    offered = [*SOFTENED, *([] if why_not(workload) else FORMULAS)]
    policies = {one: CATALOGUE[one] for one in PUBLISHED}
    policies |= {one: Policy(one, (SOFTENED | FORMULAS)[one]) for one in offered}
    found: dict[str, Any] = {"log": name, "jobs": len(workload), "published": honest}
    past = replicated(workload, Part(half // 2, half), rules, count=CHOSEN_BY, seed=2)
    ranking = rank(values_of(past, list(policies.values())), list(policies), PUBLISHED, AIMS)
    found["chosen"], found["choosing"] = ranking.chosen, ranking.as_dict()
    note(f"{name}: {ranking.chosen} chosen, {honest} published, {time.process_time() - began:.0f} s")
    arena = replicated(workload, Part(half, len(workload)), rules, count=judged_by, seed=3, halves=True)
    chosen = policies[ranking.chosen]
    own = arena.teaching_values(chosen) if chosen.needs_predictions else arena.values(chosen)
    base = arena.values(CATALOGUE[honest])
    whole = arena.whole
    found["judged"] = _against(own, base, whole)
    found["replicas"] = {"whole": whole, "own": own.tolist(), "published": base.tolist()}
    note(f"{name}: {json.dumps(found['judged'])}, {time.process_time() - began:.0f} s")
    beside = [name for name in BESIDE if name in policies]
    found["others"] = {one: _against(_whole(arena, policies[one]), base[:whole]) for one in beside}
    if chosen.needs_predictions:
        kinds = ("as predicted", *ORACLES)
        found["oracles"] = {kind: _against(_oracle(arena, chosen, kind), base[:whole]) for kind in kinds}
    found["rolling"] = _rolling(workload, rules, policies, chosen)
    found["cpu_s"] = round(time.process_time() - began)
    return found


def _best_published(workload: Workload, rules: Rules) -> str:
    values = {name: float(measure(simulate(workload, CATALOGUE[name], rules), AIMS)[AIMS[0]]) for name in PUBLISHED}
    return min(values, key=lambda name: values[name])


def _whole(arena: Replicated, policy: Policy) -> FloatArray:
    """Return the aims on the whole replicas alone."""
    return np.array([arena.aims(at, policy) for at in range(arena.whole)])


def _against(own: FloatArray, base: FloatArray, whole: int | None = None) -> dict[str, Any]:
    """Return the geometric mean of the ratios of each aim over the replicas, and intervals where halves follow them."""
    count = len(own) if whole is None else whole
    with np.errstate(all="ignore"):
        logs = np.log(own + 1e-9), np.log(base + 1e-9)
    result: dict[str, Any] = {"replicas": count}
    for column, aim in enumerate(AIMS):
        pair = compare_replicas(logs[0][:, column], logs[1][:, column], count)
        interval = pair.estimate.interval
        ends = None if interval is None else [float(np.exp(interval.low)), float(np.exp(interval.high))]
        result[aim] = {"ratio": float(np.exp(pair.estimate.value)), "interval": ends, "verdict": pair.verdict}
    result["mean_of_ratios"] = float((own[:count, 0] / base[:count, 0]).mean())
    return result


def _oracle(arena: Replicated, policy: Policy, kind: str) -> FloatArray:
    """Return the aims under the policy with the truth in the place of some predictions, which do not change."""
    rows = []
    for at in range(arena.whole):
        prepared, foreseen = arena.foreseen(at, policy)
        predictions, run = foreseen.predictions.copy(), np.maximum(prepared.run_time / prepared.workload.ticks, 1.0)
        shortness, is_short = _TAU_S / np.maximum(run, _TAU_S), run < _SHORT_S
        if kind in ("e", "s and e"):
            predictions[0] = run
        if kind in ("s", "s and e"):
            predictions[1] = shortness
        if kind == "short jobs only":
            predictions[0] = np.where(is_short, run, predictions[0])
            predictions[1] = np.where(is_short, shortness, np.minimum(predictions[1], _TAU_S / _SHORT_S))
        schedule = arena.given(dataclasses.replace(prepared, predictions=predictions), policy)
        measured = measure(schedule, AIMS)
        rows.append([measured[name] for name in AIMS])
    return np.array(rows)


def _rolling(workload: Workload, rules: Rules, policies: dict[str, Policy], chosen: Policy) -> list[dict[str, Any]]:
    """Return the ratio on each of the last four eighths of the log as it was, and the published policy before it."""
    edges = [len(workload) * part // 8 for part in range(9)]
    bounded = {name: simulate(workload, policies[name], rules).bounded_slowdown for name in PUBLISHED}
    own = simulate(workload, chosen, rules).bounded_slowdown
    rows = []
    for part in range(4, 8):
        first, last = edges[part], edges[part + 1]
        published = min(PUBLISHED, key=lambda name: float(bounded[name][:first].mean()))
        values = float(own[first:last].mean()), float(bounded[published][first:last].mean())
        rows.append({"eighth": part + 1, "published": published, "own": values[0], "theirs": values[1]})
    return rows


def main() -> None:
    """Read the command line, and go through the logs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--traces", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--only", action="append", choices=list(LOGS))
    parser.add_argument("--replicas", type=int, default=JUDGED_BY)
    given = parser.parse_args()
    folder = given.output / "data"
    folder.mkdir(parents=True, exist_ok=True)
    for name in given.only or LOGS:
        path = folder / f"learned-{name.lower()}.json"
        found = study(name, given.traces / LOGS[name], judged_by=given.replicas)
        atomic_write(path, dump_json({**found, "versions": package_versions()}))
        note(f"{path} is written")


if __name__ == "__main__":
    main()
