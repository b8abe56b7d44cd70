"""The simulated half of distribution.py: curves to 1,000 workers from measured files, and the picture."""  # noqa: INP001 (beside the package, not a part of it)

from __future__ import annotations

import csv
import dataclasses
import statistics
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from distribution_model import Costs, simulate
from numpy.typing import NDArray

from policyfactory.core.files import atomic_write
from policyfactory.core.picture import COLOURS, new_figure, save_picture
from policyfactory.trials.run import tuples_a_unit

__all__ = ["simulate_all"]

WORKERS = (1, 2, 4, 8, 16, 32, 64, 125, 250, 500, 1000)
# A network as most clusters have at least: 1 Gbit/s at the scheduler, half a millisecond from process to process.
BANDWIDTH, LATENCY = 125e6, 0.0005
_TICKS = (1, 10, 100, 1000)
TRIALS = 256_000
_TUPLE = 6  # bytes of another tuple in a work unit: its number and its place, pickled
CASES = 60  # drawn logs of each of the three


@dataclasses.dataclass(frozen=True)
class Work:
    """What is shared out: its name, the seconds of each work unit, and what it costs to send."""

    name: str
    units: NDArray[np.float64]
    costs: Costs


def _rows(folder: Path, name: str) -> list[dict[str, str]]:
    with (folder / f"distribution-{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _median(rows: Iterable[dict[str, str]], column: str) -> float:
    return statistics.median(float(row[column]) for row in rows)


def measured_costs(folder: Path) -> Costs:
    """Return the costs of a work unit as measured, and the network as assumed."""
    empty = [row for row in _rows(folder, "overhead") if row["backend"] == "dask"]
    sizes = {row["what"]: float(row["bytes"]) for row in _rows(folder, "messages")}
    most = max(int(row["workers"]) for row in _rows(folder, "sleep"))
    busy = [row for row in _rows(folder, "sleep") if int(row["workers"]) == most and row["piece_s"] == "0.2"]
    warm = [row for row in _rows(folder, "start") if row["cache"] == "filled"]
    return Costs(
        command=_median(empty, "command_ms") / 1000,
        # With many workers it has more to do for a work unit than with two: their signs of life, for example.
        scheduler=max(_median(empty, "scheduler_ms"), _median(busy, "scheduler_ms")) / 1000,
        worker=_median(empty, "worker_ms") / 1000,
        latency=LATENCY,
        piece_bytes=sizes["out of the scheduler for a piece"],
        result_bytes=sizes["into the scheduler for a piece"],
        shared_bytes=sizes["shared pickled"],
        bandwidth=BANDWIDTH,
        start=_median(empty, "start_and_end_seconds"),
        first=_median(warm, "process_s"),
    )


def _works(folder: Path) -> list[Work]:
    """Return what is simulated: tuples one by one and in chunks, and an evaluation."""
    rng = np.random.default_rng(1)
    costs = measured_costs(folder)
    tuples = np.array([float(row["seconds"]) for row in _rows(folder, "tasks") if row["trials"] == str(TRIALS)])
    result = []
    for count in (441, 100_000):
        drawn = rng.choice(tuples, count)
        # One by one to compare with; then as generate sends them.
        for chunk in (1, tuples_a_unit("dask", TRIALS, count)):
            units = np.array([part.sum() for part in np.split(drawn, range(chunk, count, chunk))])
            more = dataclasses.replace(
                costs, piece_bytes=costs.piece_bytes + _TUPLE * (chunk - 1), result_bytes=costs.result_bytes * chunk
            )
            called = "one a piece" if chunk == 1 else f"{chunk} a piece"
            result.append(Work(f"{count:,} tuples, {called}", units, more))
    shared = float(
        next(row["bytes"] for row in _rows(folder, "messages") if row["what"] == "evaluation shared pickled")
    )
    costs = dataclasses.replace(costs, shared_bytes=shared)
    for shares, called in ((2, "as it is shared out"), (12, "a policy a piece")):
        units = _evaluation(_rows(folder, "evaluation"), shares, np.random.default_rng(2))
        result.append(Work(f"evaluate/tpds18.toml, {called}", units, costs))
    return result


def _evaluation(rows: list[dict[str, str]], shares: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Return the work units of 60 drawn logs of each log, case by case: all tuners, and the policies in some shares."""
    units: list[float] = []
    for log in dict.fromkeys(row["log"] for row in rows):
        of_log = [row for row in rows if row["log"] == log]
        numbers = sorted({row["case"] for row in of_log})
        for _ in range(CASES):
            number = rng.choice(numbers)
            case = [row for row in of_log if row["case"] == number]
            policies = [float(row["seconds"]) for row in case if row["piece"] != "tuners"]
            make = float(case[0]["make_s"])
            units.append(make + float(case[-1]["seconds"]))
            units += [make + sum(policies[share::shares]) for share in range(shares)]
    return np.array(units)


def _why(outcome: Any, units: NDArray[np.float64], workers: int, costs: Costs) -> str:
    """Return what keeps the run from being as many times faster as there are workers, by the largest share."""
    seconds, sending = outcome.seconds, workers * costs.shared_bytes / costs.bandwidth
    parts = {
        "little: the pieces themselves": outcome.work / workers,
        "the scheduler": outcome.scheduler * seconds - sending,
        "the command": outcome.command * seconds,
        "sending what is shared": sending,
        "each worker's first piece": costs.first + float(units.mean()),
        "the longest piece": float(units.max()),
    }
    return max(parts, key=lambda name: parts[name])


def simulate_all(output: Path) -> None:
    """Simulate all curves and the sleeping work units as they were measured; write CSV files and the picture."""
    data = output / "data"
    lines = ["work,workers,pieces,work_s,longest_s,seconds,speedup,efficiency,scheduler_busy,command_busy,last_s,limit"]
    curves: dict[str, list[tuple[int, float]]] = {}
    for work in _works(data):
        for workers in WORKERS:
            outcome = simulate(work.units.tolist(), workers, work.costs)
            speed = outcome.work / outcome.seconds
            curves.setdefault(work.name, []).append((workers, speed))
            numbers = f"{workers},{len(work.units)},{outcome.work:.3f},{work.units.max():.3f},{outcome.seconds:.3f}"
            shares = f"{speed:.2f},{speed / workers:.4f},{outcome.scheduler:.4f},{outcome.command:.4f}"
            limit = _why(outcome, work.units, workers, work.costs)
            lines.append(f'"{work.name}",{numbers},{shares},{outcome.last:.3f},{limit}')
    atomic_write(data / "distribution.csv", "\n".join(lines) + "\n")
    check = _validation(data)
    head = "workers,piece_s,pieces,measured_s,lowest_s,highest_s,simulated_s,measured_over_simulated"
    atomic_write(data / "distribution-validation.csv", "\n".join([head, *(",".join(row) for row in check)]) + "\n")
    _draw(curves, check, output / "img" / "distribution.svg")


def _validation(data: Path) -> list[tuple[str, ...]]:
    """Return the measured and the simulated seconds of sleeping work units."""
    rows = _rows(data, "sleep")
    costs = measured_costs(data)
    here = dataclasses.replace(costs, first=0.0, shared_bytes=0.0, bandwidth=float("inf"), worker=0.0)
    result = []
    for key in dict.fromkeys((row["workers"], row["piece_s"], row["pieces"]) for row in rows):
        own = [row for row in rows if (row["workers"], row["piece_s"], row["pieces"]) == key]
        seconds = [float(row["seconds"]) for row in own]
        middle = statistics.median(seconds)
        simulated = simulate([float(key[1])] * int(key[2]), int(key[0]), here).seconds
        numbers = (middle, min(seconds), max(seconds), simulated, middle / simulated)
        result.append((*key, *(f"{number:.3f}" for number in numbers)))
    return result


def _draw(curves: dict[str, list[tuple[int, float]]], check: list[tuple[str, ...]], path: Path) -> None:
    """Draw speed-up, efficiency, and how near the simulation is to what was measured."""
    figure = new_figure(11.0, 4.6)
    speed, share, near = figure.subplots(1, 3)
    for axis in (speed, share):
        axis.set_xscale("log")
        axis.set_xlabel("workers (1)")
        axis.set_xticks(_TICKS, _TICKS)
    speed.set_yscale("log")
    speed.set_yticks(_TICKS, _TICKS)
    speed.plot(WORKERS, WORKERS, color="0.6", linestyle=":", label="ideal")
    for colour, (name, points) in zip(COLOURS, curves.items(), strict=False):
        workers, speeds = np.array(points).T
        speed.plot(workers, speeds, "o-", markersize=3, color=colour, label=name)
        share.plot(workers, speeds / workers, "o-", markersize=3, color=colour)
    speed.set_ylabel("simulated speed-up over the work alone (1)")
    share.set_ylabel("simulated efficiency (1)")
    share.set_ylim(0, 1.03)
    for colour, length in zip(COLOURS, sorted({float(row[1]) for row in check}), strict=False):
        own = [row for row in check if float(row[1]) == length]
        workers = [int(row[0]) for row in own]
        ideal = [length * int(row[2]) / int(row[0]) for row in own]
        near.plot(
            workers, [i / float(row[3]) for i, row in zip(ideal, own, strict=True)], "o", color=colour,
            label=f"pieces of {length:g} s",
        )  # fmt: skip
        near.plot(workers, [i / float(row[6]) for i, row in zip(ideal, own, strict=True)], "-", color=colour)
    near.set_xscale("log")
    near.set_xticks((1, 4, 16, 64), (1, 4, 16, 64))
    near.set_xlabel("workers whose pieces sleep (1)")
    near.set_ylabel("efficiency (1), measured (dots), simulated")
    near.set_ylim(0, 1.03)
    near.legend(fontsize=8)
    figure.legend(*speed.get_legend_handles_labels(), loc="outside upper center", ncols=3, fontsize=8)
    path.parent.mkdir(parents=True, exist_ok=True)
    save_picture(figure, path)
