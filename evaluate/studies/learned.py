"""What `policyfactory learn` is worth on real logs, by its own verdicts: the numbers of docs/learned.md.

    python evaluate/studies/learned.py --traces traces --output docs

Each log goes through `learn` whole, once under EASY and once as it does without a word: screened under EASY, chosen
from and judged under Slurm's own rules. The first half is the past, the second half judges; the best published policies
are those that replicas of the past chose. Rolling origin: four stretches of half a log, an eighth apart, each learned
from, under EASY. Oracles are the choice with perfect knowledge in the place of a prediction, on replicas of the second
half: s, e, both, or both for jobs under a minute only.

It writes ``data/learned-LOG.json``; an hour or two of two cores, ``--only KTH`` does one log. With ``--workers 1`` two
logs at a time take less long than one after the other.
"""  # noqa: INP001 (a script beside the package, not a part of it)

from __future__ import annotations

import argparse
import dataclasses
import math
import time
from pathlib import Path
from typing import Any

import numpy as np

from policyfactory.core.files import atomic_write, dump_json, package_versions
from policyfactory.core.options import FloatArray
from policyfactory.learning.comparing import CLASSICAL
from policyfactory.learning.learned import Learned
from policyfactory.learning.options import LearnOptions
from policyfactory.learning.run import learn
from policyfactory.policy.policy import Policy
from policyfactory.policy.store import CATALOGUE
from policyfactory.report.terminal import note
from policyfactory.search.replicated import AIMS, Part, Replicated, replicated, values_of
from policyfactory.simulation.metrics import measure
from policyfactory.simulation.rules import Rules
from policyfactory.workload.clean import clean
from policyfactory.workload.swf.files import read_swf
from policyfactory.workload.swf.log import SwfLog
from policyfactory.workload.windows import cut_between

__all__ = ["main", "study"]

# UniLu-Gaia had no part in the development; it was chosen before anything was run on it.
LOGS = {
    "KTH": "KTH-SP2-1996-2.1-cln.swf.gz",
    "SDSC-BLUE": "SDSC-BLUE-2000-4.2-cln.swf.gz",
    "HPC2N": "HPC2N-2002-2.1-cln.swf.gz",
    "CEA-Curie": "CEA-Curie-2011-2.1-cln.swf.gz",
    "UniLu-Gaia": "UniLu-Gaia-2014-2.swf",
    "Lublin-1": "lublin_256.swf",
    "Lublin-2": "lublin_256_new2.swf",
}
_ORIGINS, _ORACLE_REPLICAS, _PAST = 4, 8, 30_000
_ORACLES = ("as predicted", "e", "s", "s and e", "short jobs only")
_SHORT_S, _TAU_S = 60.0, 10.0


def study(name: str, path: Path, *, minutes: float, rolling: bool, workers: int) -> dict[str, Any]:
    """Return all numbers of one log."""
    synthetic = name.startswith("Lublin")
    log = read_swf(path)
    options = LearnOptions(minutes=minutes, estimate_missing="runtime" if synthetic else "error")
    found: dict[str, Any] = {"log": name, "jobs": len(log), "minutes": minutes}
    chosen: Policy | None = None
    for rules in ("easy", "slurm"):
        learned, found[rules] = _learned(
            log, dataclasses.replace(options, backfill="easy" if rules == "easy" else None), workers
        )
        note(f"{name}, {rules}: {found[rules]['chosen']}, {found[rules]['ratio_text']}, {found[rules]['verdict']}")
        if rules == "easy" and learned.replicas is not None and learned.tested is not None:
            chosen = learned.replicas.winner.model.policy
    if chosen is not None and chosen.needs_predictions:
        found["oracles"] = _oracles(log, options, chosen, found["easy"]["peer"])
    if rolling and not synthetic:
        size = len(log) // (2 * _ORIGINS)
        parts = [cut_between(log, skip=size * origin, jobs=size * _ORIGINS) for origin in range(1, _ORIGINS + 1)]
        easy = dataclasses.replace(options, backfill="easy")
        found["rolling"] = [_learned(part, easy, workers)[1] for part in parts]
    return found


def _learned(log: SwfLog, options: LearnOptions, workers: int) -> tuple[Learned, dict[str, Any]]:
    """Return what was learned, and its numbers: the choice against the best published policy on the second half."""
    began = time.monotonic(), time.process_time()
    learned = learn(log, options, workers=workers)
    row: dict[str, Any] = {
        "seconds": round(time.monotonic() - began[0]),
        "cpu_s": round(time.process_time() - began[1]),
        "verdict": learned.verdict.light,
        "recommended": learned.policy.name,
        "chosen": learned.policy.name,
        "peer": learned.policy.name,
        "ratio_text": "",
    }
    if learned.replicas is None or learned.tested is None:
        return learned, row
    ranking, tested, name = learned.replicas.ranking, learned.tested, learned.replicas.winner.name
    judged = tested.to_peer.row(name)
    return learned, {
        **row,
        "chosen": name,
        "peer": tested.to_peer.peer,
        "expected": None if math.isnan(ranking.expected) else ranking.expected,
        "replicas": [ranking.replicas, tested.to_peer.replicas],
        "parts": [ranking.part, tested.to_peer.part],
        "ratio_text": judged.ratio_text,
        "ratios": dict(zip(AIMS, judged.ratios, strict=True)),
        "interval": judged.interval,
        "out": judged.out,
        "loads": tested.to_peer.loads,
        "by_load": judged.by_load,
        "to_others": {other.peer: other.row(name).ratio_text for other in tested.to_peers[1:]},
        "to_fcfs": tested.to_baseline.row(name).ratio_text if tested.to_baseline and name != CLASSICAL[0] else "",
    }


def _oracles(log: SwfLog, options: LearnOptions, policy: Policy, peer: str) -> dict[str, float]:
    """Return the ratio to the best published policy of a choice that knows the truth in place of some predictions."""
    workload = clean(log, **options.reading)
    second = Part(len(workload) // 2, len(workload), _PAST)
    arena = replicated(workload, second, Rules(), count=_ORACLE_REPLICAS, seed=3)
    base = np.log(values_of(arena, [CATALOGUE[peer]])[:, 0, 0])
    return {kind: float(np.exp((np.log(_oracle(arena, policy, kind)) - base).mean())) for kind in _ORACLES}


def _oracle(arena: Replicated, policy: Policy, kind: str) -> FloatArray:
    """Return the mean bounded slowdown of each replica; predictions do not change after a submission."""
    values = []
    for replica in range(arena.whole):
        prepared, foreseen = arena.foreseen(replica, policy)
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
        values.append(measure(schedule, AIMS[:1])[AIMS[0]])
    return np.array(values)


def main() -> None:
    """Read the command line, and go through the logs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--traces", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--only", action="append", choices=list(LOGS))
    parser.add_argument("--minutes", type=float, default=LearnOptions.minutes)
    parser.add_argument("--no-rolling", action="store_true")
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
    folder = given.output / "data"
    folder.mkdir(parents=True, exist_ok=True)
    for name in given.only or LOGS:
        path = folder / f"learned-{name.lower()}.json"
        how: dict[str, Any] = {"minutes": given.minutes, "rolling": not given.no_rolling, "workers": given.workers}
        found = study(name, given.traces / LOGS[name], **how)
        atomic_write(path, dump_json({**found, "versions": package_versions()}))
        note(f"{path} is written")


if __name__ == "__main__":
    main()
