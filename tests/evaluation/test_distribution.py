"""The simulation of a cluster does what can be worked out by hand; the page says what the measurements say."""

from __future__ import annotations

import csv
import math
import pickle
import re
import runpy
from typing import Any

import pytest

from policyfactory.trials.run import TupleBatch, tuples_a_unit
from support import ROOT

DATA = ROOT / "docs" / "data"
PAGE = (ROOT / "docs" / "clusters.md").read_text(encoding="utf-8")
MODEL: dict[str, Any] = runpy.run_path(str(ROOT / "evaluate" / "studies" / "distribution_model.py"))
# What the page calls "as they are sent" is what is sent.
SENT = {tuples: tuples_a_unit("dask", 256_000, tuples) for tuples in (441, 100_000)}
Costs, simulate = MODEL["Costs"], MODEL["simulate"]


@pytest.mark.parametrize("workers", [1, 2, 7, 100, 441, 1000])
def test_without_costs_equal_pieces_go_in_full_rounds(workers: int) -> None:
    outcome = simulate([2.0] * 441, workers, Costs())
    assert outcome.seconds == 2.0 * math.ceil(441 / workers)
    assert outcome.work == 882.0


@pytest.mark.parametrize(("cost", "workers"), [(0.001, 64), (0.004, 64), (0.0001, 8)])
def test_a_busy_scheduler_is_the_limit(cost: float, workers: int) -> None:
    # 0.02 s a piece: the scheduler keeps at most 0.02 / cost workers busy.
    outcome = simulate([0.02] * 20_000, workers, Costs(scheduler=cost))
    speed = outcome.work / outcome.seconds
    assert speed == pytest.approx(min(workers, 0.02 / cost), rel=0.01)
    assert outcome.scheduler == pytest.approx(min(1.0, workers * cost / 0.02), rel=0.01)


def test_a_busy_command_is_a_limit_too() -> None:
    outcome = simulate([0.02] * 20_000, 64, Costs(command=0.002, scheduler=0.0001))
    assert outcome.work / outcome.seconds == pytest.approx(10, rel=0.01)
    assert outcome.command == pytest.approx(1.0, rel=0.01)


def test_the_link_is_a_limit_too() -> None:
    costs = Costs(piece_bytes=1e5, result_bytes=9e5, bandwidth=1e8)
    assert simulate([0.1] * 2_000, 1_000, costs).seconds == pytest.approx(2_000 * 1e6 / 1e8, rel=0.02)


def test_one_piece_takes_its_messages_and_what_each_process_adds() -> None:
    costs = Costs(command=0.2, scheduler=0.4, worker=0.05, latency=0.01, first=3.0, start=10.0)
    # The worker is there last: command and scheduler have done their first halves long before.
    to_the_worker, there, back = 10 + 2 * 0.01, 0.05 + 3 + 1, 0.01 + 0.2 + 0.01 + 0.1
    assert simulate([1.0], 1, costs).seconds == pytest.approx(to_the_worker + there + back, abs=1e-9)


def test_a_worker_that_holds_a_second_piece_does_not_wait_for_messages() -> None:
    costs = Costs(latency=0.1)
    assert simulate([1.0] * 50, 1, costs).seconds == pytest.approx(50 + 0.4, abs=1e-9)
    assert simulate([1.0] * 50, 1, costs, held=1).seconds > 59


def test_the_longest_piece_at_the_end_is_waited_for() -> None:
    first, last = simulate([50.0] + [1.0] * 450, 10, Costs()), simulate([1.0] * 450 + [50.0], 10, Costs())
    assert first.seconds == 50.0
    assert last.seconds == 95.0
    assert last.last >= 45.0


def test_an_idle_worker_takes_what_lies_beside_another() -> None:
    # Four pieces, two workers, two pieces held by each: the long one must not keep the fourth.
    assert simulate([10.0, 1.0, 1.0, 1.0], 2, Costs()).seconds == 10.0


def test_workers_that_start_late_are_waited_for() -> None:
    # Worker i is there at second i: by t seconds 0 + 1 + ... + t pieces of one second are done.
    assert simulate([1.0] * 10, 100, Costs(start_each=1.0)).seconds == 4.0


def table(name: str) -> list[dict[str, str]]:
    with (DATA / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize(
    ("work", "begin"),
    [
        (f"441 tuples, {SENT[441]} a piece", f"441 tuples of 256,000 trials, {SENT[441]} a unit, as they are sent"),
        (f"100,000 tuples, {SENT[100_000]} a piece", f"100,000 tuples, {SENT[100_000]} a unit, as they are sent"),
        ("evaluate/tpds18.toml, as it is shared out", "`evaluate/tpds18.toml`, 180 cases"),
    ],
)
def test_the_page_tells_where_the_curves_bend(work: str, begin: str) -> None:
    (line,) = re.findall(rf"^\| {re.escape(begin)}.*$", PAGE, re.MULTILINE)
    _, best, at_best, at_most, _ = [cell.strip() for cell in line.strip("|").split("|")]
    speed = {int(row["workers"]): float(row["speedup"]) for row in table("distribution") if row["work"] == work}
    assert speed[int(best)] > 0.99 * max(speed.values())
    assert float(at_best) == pytest.approx(speed[int(best)], rel=0.02)
    assert float(at_most) == pytest.approx(speed[1000], rel=0.03)


def test_the_simulation_is_as_near_to_the_measurements_as_the_page_says() -> None:
    result = {
        (int(row["workers"]), float(row["piece_s"])): float(row["measured_over_simulated"])
        for row in table("distribution-validation")
    }
    beyond = {key for key, ratio in result.items() if not 0.96 <= ratio <= 1.04}
    assert beyond == {(32, 0.05), (64, 0.05), (64, 0.2), (64, 1.0)}
    assert result[64, 1.0] < 1.08
    assert max(result.values()) < 2.0


def test_the_page_tells_how_many_tuples_are_sent_at_once() -> None:
    text = " ".join(PAGE.split())
    assert f"Of 441 tuples of 256,000 trials {SENT[441]} are a unit, of 100,000 tuples {SENT[100_000]}." in text
    one = len(pickle.dumps(TupleBatch((440,), (9_000,))))
    assert {row["what"]: int(row["bytes"]) for row in table("distribution-messages")}["piece pickled"] == one
