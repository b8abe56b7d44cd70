"""Train networks in mode paper and test them on Table V's windows: ``python evaluate/studies/rlscheduler_networks.py``.

``LOG --output docs`` writes ``data/rlscheduler-networks.csv``: a row for each seed and way to decide. Each seed trains
the kernel network on windows of 256 jobs anywhere in the log, as the SC'20 paper does, without backfilling; takes the
candidate that is best on 48 other windows of 1,024 jobs; and plays the ten windows of Table V without and with
backfilling, by the most probable job and by drawn ones (5 draws). ``--training``, ``--network``, ``--rounds`` and
``--seeds`` change the training. About a minute of processor time a seed with ``--training ours``.
"""  # noqa: INP001 (a script beside the package, not a part of it)

from __future__ import annotations

import argparse
import csv
import io
import time
from pathlib import Path
from typing import Any

import numpy as np

from policyfactory.core.random import generator
from policyfactory.core.together import atomic_write
from policyfactory.search.reinforce.candidates import best_candidate, drawn_costs, first_costs
from policyfactory.search.reinforce.filtering import filtered_starts
from policyfactory.search.reinforce.options import PpoOptions, ppo_options
from policyfactory.search.reinforce.training import Training
from policyfactory.search.reinforce.worlds import PaperWorld
from policyfactory.simulate.rlscheduler import CommittedLog
from policyfactory.workload.swf.files import read_swf
from policyfactory.workload.windows import starts_rlscheduler

__all__ = ["main", "measured"]

JOBS, TESTED, CHOSEN_BY, DRAWS = 256, 1024, 48, 5
_PURPOSE = 78  # of the random stream; see core.random


def measured(log: CommittedLog, options: PpoOptions, seed: int, *, backfill: bool) -> list[dict[str, Any]]:
    """Train a network and return its rows.

    Parameters
    ----------
    log : CommittedLog
        The log.
    options : PpoOptions
        How it is trained.
    seed : int
        Its seed.
    backfill : bool
        Whether it is trained, and chosen, with backfilling.
    """
    begin = time.process_time()
    end = min(len(log), 10_000)
    starts = np.arange(end - JOBS + 1)
    world = PaperWorld(log, JOBS, options.windows * options.rollouts, backfill=backfill)
    phase_one = filtered_starts(world, starts, options.filtering) if options.filtered else None
    trained = Training(world, starts, options, seed, {"log": log.name}).train(filtered=phase_one)
    spent = time.process_time() - begin
    others = generator(0, _PURPOSE).integers(0, end - TESTED + 1, CHOSEN_BY)
    choosing = PaperWorld(log, TESTED, CHOSEN_BY, backfill=backfill)
    best = best_candidate(choosing, others, trained, options.network)
    numbers, iteration = trained.numbers[best], trained.iterations[best]
    tested = starts_rlscheduler(len(log), TESTED, 10, "1")
    rows = []
    for tried in (False, True):
        world = PaperWorld(log, TESTED, 10, backfill=tried)
        most_probable = float(first_costs(world, tested, numbers, options.network).mean())
        drawn = [float(drawn_costs(world, tested, numbers, draw, options.network).mean()) for draw in range(DRAWS)]
        rows.append(
            {
                "network": options.network,
                "training": options.preset,
                "trained_with_backfilling": backfill,
                "seed": seed,
                "decisions": trained.history[iteration - 1]["decisions"],
                "rounds": iteration,
                "of_rounds": len(trained.history),
                "backfilling": tried,
                "most_probable": round(most_probable, 2),
                "drawn_mean": round(float(np.mean(drawn)), 2),
                "drawn_least": round(min(drawn), 2),
                "drawn_most": round(max(drawn), 2),
                "cpu_s": round(spent, 1),
            }
        )
    return rows


def main() -> None:
    """Train, test and write."""
    parser = argparse.ArgumentParser(description="networks in mode paper on Table V's windows")
    parser.add_argument("log", type=Path, help="log in the Standard Workload Format")
    parser.add_argument("--output", type=Path, help="folder that gets data/rlscheduler-networks.csv")
    parser.add_argument("--training", default="ours", choices=["ours", "paper"])
    parser.add_argument("--network", default="kernel")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--backfill", action="store_true", help="train with backfilling")
    given = parser.parse_args()
    log = CommittedLog.of_swf(read_swf(given.log))
    options = ppo_options(given.training, network=given.network, iterations=given.rounds)
    rows = []
    for seed in map(int, given.seeds.split(",")):
        rows += measured(log, options, seed, backfill=given.backfill)
        for row in rows[-2:]:
            print(row, flush=True)  # noqa: T201 (a script)
    if given.output is not None:
        text = io.StringIO()
        writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        (given.output / "data").mkdir(parents=True, exist_ok=True)
        atomic_write(given.output / "data" / "rlscheduler-networks.csv", text.getvalue())


if __name__ == "__main__":
    main()
