"""Predictions from a file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from policyfactory.core.errors import InputError
from policyfactory.evaluation.logs import read_predictions
from policyfactory.workload.jobs import Workload
from refusals import refused


def log(ticks: int = 1) -> Workload:
    n = 8
    count = np.arange(n)
    return Workload(
        name="log", machine=4, job_id=100 - count, submit=count * 60 * ticks, run_time=count + 1,
        requested_time=count + 1, processors=np.ones(n), user=count, start=-np.ones(n), ticks=ticks,
    )  # fmt: skip


def write(folder: Path, text: str) -> Path:
    path = folder / "predictions.csv"
    path.write_text(text)
    return path


def test_predictions_are_matched_by_job_number_in_any_order(tmp_path: Path) -> None:
    lines = "".join(f"{job},x,{job / 2}\n" for job in range(90, 110))
    result, _ = read_predictions(write(tmp_path, f"job_id,note,prediction\n{lines}"), log())
    assert result.tolist() == [50, 50, 49, 48, 48, 48, 47, 46]  # halves to even


def test_predictions_are_seconds_whatever_the_clock(tmp_path: Path) -> None:
    lines = "".join(f"{job},0.5\n" for job in range(93, 101))
    assert read_predictions(write(tmp_path, f"job_id,prediction\n{lines}"), log(1_000_000))[0].tolist() == [500_000] * 8


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "predictions.csv table"),
        ("job,prediction\n1,2\n", "predictions.csv job_id column job"),
        ("a;b\n1;2\n", "predictions.csv job_id prediction"),
        ("job_id,prediction\n100,soon\n", "predictions.csv:2 job_id 100 soon"),
        ("job_id,prediction\n100,\n", "predictions.csv:2 integer number"),
        ("job_id,prediction\n1.5,3\n", "predictions.csv:2 integer number"),
        ("job_id,prediction\n", "predictions.csv 8 prediction"),
        ("job_id,prediction\n100,5\n99,5\n", "predictions.csv 6 8 98"),
        ("job_id,prediction\n100,5\n100,6\n", "predictions.csv 100 prediction"),
        ("job_id,prediction\n" + "".join(f"{job},-1\n" for job in range(93, 101)), "predictions.csv 100 -1.0"),
        ("job_id,prediction\n" + "".join(f"{job},1e300\n" for job in range(93, 101)), "predictions.csv 0 seconds"),
        ('job_id,prediction\n"1,2\n3,4,5,6\n', "predictions.csv table"),
    ],
)
def test_a_file_that_is_no_prediction_is_refused(text: str, message: str, tmp_path: Path) -> None:
    refused(InputError, message, read_predictions, write(tmp_path, text), log())
