"""The files: long CSV, what an earlier run left, starts, Batsim's columns."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from policyfactory.core.errors import EvaluationError
from policyfactory.core.files import Manifest
from policyfactory.evaluation.results_folder import listed, remove, results_csv
from policyfactory.evaluation.starts import (
    StartsWriter,
    allocated_resources,
    batsim_frame,
    file_names,
    starts_frame,
)
from policyfactory.simulation.cases import case_of
from policyfactory.simulation.simulate import Rules, Schedule
from policyfactory.statistics.evaluation import Evaluation
from policyfactory.workload.jobs import Workload
from refusals import refused

Make = Callable[..., Evaluation]
COST = {"A": [4.0, 8.0, 2.0, 6.0, 10.0, 7.0], "B": [0.1 + 0.2, 9.0, 2.0, 5.0, 1.0, 1.5]}
MANIFEST = Manifest("evaluation", "policyfactory evaluate", 0)


def schedule(**changes: object) -> Schedule:
    """Four jobs on 4 processors, one killed at its request, one of no length.

    ::

        3 |. A A A A C C
        2 |. A A A A C C    job 7 (A): 2 processors, 1 to 5; submitted at 0
        1 |. B B .          job 3 (B): 2 processors, 1 to 3, killed (would run 9)
        0 |. B B .          job 9 (C): 2 processors, 5 to 7; job 4: 0 s at 3
          0 1 2 3 4 5 6 7
    """
    columns = {
        "job_id": [7, 3, 4, 9],
        "submit": [0, 1, 2, 2],
        "run_time": [4, 9, 0, 2],
        "requested_time": [5, 2, 1, 2],
        "processors": [2, 2, 1, 2],
        "user": [1, 1, 1, 1],
        "start": [-1, -1, -1, -1],
    }
    arrays = {name: np.array(column, dtype=np.int64) for name, column in columns.items()}
    jobs = Workload(name="four", machine=4, **arrays, **changes)  # type: ignore[arg-type]
    return Schedule(
        start=np.array([1, 1, 3, 5], dtype=np.int64),
        end=np.array([5, 3, 3, 7], dtype=np.int64),
        backfilled=np.array([False, False, True, False]),
        workload=jobs,
        policy_name="A/B",
        rules=Rules(overrun="kill"),
    )


def test_the_long_table_has_one_row_a_value_at_full_precision(by_hand: Make) -> None:
    gain = {"A": [1.0] * 6, "B": [math.nan] * 6}
    evaluation = by_hand({"one": {"cost": COST, "yield": gain}, "two": {"cost": COST, "yield": COST}})
    rows = list(csv.DictReader(io.StringIO(results_csv({"mine": evaluation}))))
    assert len(rows) == 2 * 6 * 2 * 2
    assert list(rows[0]) == ["experiment", "log", "case", "policy", "metric", "value"]
    result = {(row["log"], int(row["case"]), row["policy"], row["metric"]): row["value"] for row in rows}
    assert float(result["one", 1, "B", "cost"]) == 0.1 + 0.2
    assert result["one", 3, "B", "yield"] == ""
    assert result["two", 5, "A", "cost"] == "10.0"


@pytest.mark.parametrize(
    "outputs",
    ['{"../outside.txt": ""}', '{"sub/../../outside.txt": ""}', '{"ABSOLUTE": ""}', '{"link.txt": ""}', '["a"', "7"],
)
def test_a_strange_manifest_removes_nothing_outside(outputs: str, tmp_path: Path) -> None:
    outside = tmp_path / "outside.txt"
    outside.write_text("stays")
    folder = tmp_path / "results"
    (folder / "sub").mkdir(parents=True)
    (folder / "link.txt").symlink_to(outside)
    text = outputs.replace("ABSOLUTE", str(outside))
    (folder / "manifest.json").write_text(f'{{"kind": "evaluation", "outputs": {text}}}')
    remove(folder, listed(folder))
    assert outside.read_text() == "stays"
    assert (folder / "link.txt").is_symlink()


def test_starts_in_our_columns() -> None:
    frame = starts_frame(schedule())
    assert frame.to_csv(index=False).splitlines() == [
        "job_id,submit,start,end,requested_time,processors,backfilled",
        "7,0,1,5,5,2,0",
        "3,1,1,3,2,2,0",
        "4,2,3,3,1,1,1",
        "9,2,5,7,2,2,0",
    ]


def test_a_clock_of_microseconds_is_written_in_seconds() -> None:
    frame = starts_frame(schedule(ticks=1_000_000))
    assert frame["end"].tolist() == [5e-6, 3e-6, 3e-6, 7e-6]


def test_batsim_columns_by_hand() -> None:
    frame = batsim_frame(schedule(), "four")
    lines = frame.to_csv(index=False).splitlines()
    assert lines[0] == (
        "job_id,workload_name,profile,submission_time,requested_number_of_resources,requested_time,success,final_state,"
        "starting_time,execution_time,finish_time,waiting_time,turnaround_time,stretch,allocated_resources,"
        "consumed_energy,metadata"
    )
    assert lines[1] == "7,four,4,0,2,5,1,COMPLETED_SUCCESSFULLY,1,4,5,1,5,1.25,0-1,-1,"
    assert lines[2] == "3,four,9,1,2,2,0,COMPLETED_WALLTIME_REACHED,1,2,3,0,2,1.0,2-3,-1,"
    assert lines[3] == "4,four,0,2,1,1,1,COMPLETED_SUCCESSFULLY,3,0,3,1,1,,2,-1,"
    assert lines[4] == "9,four,2,2,2,2,1,COMPLETED_SUCCESSFULLY,5,2,7,3,5,2.5,0-1,-1,"


def test_what_is_no_schedule_gets_no_processors() -> None:
    four = schedule()
    crowded = Schedule(
        start=np.array([1, 1, 1, 1]), end=np.array([5, 3, 1, 3]), backfilled=four.backfilled,
        workload=four.workload, policy_name="A", rules=Rules(),
    )  # fmt: skip
    refused(EvaluationError, "9 2 4", allocated_resources, crowded)


def test_names_become_distinct_file_names_that_stay_in_the_folder() -> None:
    result = file_names(["FCFS", "a/b", "a_b", "../../x", "fcfs", "é", "\x00", "..", "n" * 300])
    assert list(result.values())[:7] == ["FCFS", "a_b", "a_b-2", "_.._x", "fcfs-2", "_", "_-2"]
    assert len({name.casefold() for name in result.values()}) == len(result)
    assert all("/" not in name and name not in {"", ".", ".."} and len(name) < 120 for name in result.values())


def test_a_file_a_simulation(tmp_path: Path) -> None:
    four = schedule()
    writer = StartsWriter(tmp_path, "batsim", {"my log": "my_log"}, {"A/B": "A_B"})
    case = case_of(four.workload, 3, log="my log", kind="window")
    assert not writer.has(case, "A/B")
    writer.write(case, "A/B", writer.content(case, four))
    assert writer.has(case, "A/B")
    written = pd.read_csv(tmp_path / "my_log" / "window-003" / "A_B.csv")
    assert written["workload_name"].tolist() == ["my log"] * 4
    assert written["allocated_resources"].tolist() == ["0-1", "2-3", "2", "0-1"]
