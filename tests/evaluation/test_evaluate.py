"""The verb: ``policyfactory.evaluate``, with jobs and policies that are there already."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import policyfactory as pf
from policyfactory.core.errors import OutputError, PolicyfactoryError, UsageError
from policyfactory.evaluation.protocol import read_file
from policyfactory.workload.models.lublin import generate_lublin
from policyfactory.workload.sensitivity import scale_load


@pytest.fixture(scope="module")
def jobs() -> pf.Workload:
    return generate_lublin(32, 1500, seed=1)


def test_names_and_objects_compete_in_the_given_order(jobs: pf.Workload, tmp_path: Path) -> None:
    mine = pf.Policy.from_function(lambda job: job.p * job.q, name="MINE")
    policies = ["FCFS", mine, pf.resolve("SAF")]
    result = pf.evaluate(jobs, policies, windows="6x2d", metrics=["mean_wait"], analyses=[])
    frame = result.frame()
    assert list(frame.columns) == ["log", "case", "policy", "metric", "value"]
    assert list(dict.fromkeys(frame["policy"])) == ["FCFS", "MINE", "SAF"]
    values = result.outcome.evaluation.values
    assert np.array_equal(values[:, 1], values[:, 2])
    assert set(result.verdicts) == {(jobs.name, "mean_wait", "MINE"), (jobs.name, "mean_wait", "SAF")}
    assert repr(result) == f"Result(FCFS, MINE, SAF; 6 cases of {jobs.name}; mean_wait)"
    assert "over 6 windows" in result.summary()
    assert "over 6 windows" in result._repr_html_()
    result.plot()
    page = result.report(tmp_path / "report")
    assert page.stat().st_size > 10_000
    assert read_file(tmp_path / "report" / "protocol.toml").content["name"] == "evaluation"
    with pytest.raises(
        OutputError, match=r"results\.csv: exists; add --overwrite to replace it \(in Python overwrite=True\)"
    ):
        result.report(tmp_path / "report")


def test_a_call_gives_the_numbers_of_its_parts(jobs: pf.Workload) -> None:
    result = pf.evaluate(jobs, "FCFS,SPF", threshold="2h", load=1.5, metrics="max_wait", analyses=[], recorded=False)
    dense = pf.cases_of(jobs)[0].make()
    expected = [
        pf.measure(pf.simulate(scale_load(dense, 1.5), name, threshold="2h"), ["max_wait"]) for name in ("FCFS", "SPF")
    ]
    assert result.outcome.evaluation.values[0, :, 0].tolist() == [one["max_wait"] for one in expected]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"window": "10x15d"}, "there is no option 'window'; did you mean windows?"),
        ({"windows": "ten"}, "windows 'ten': "),
        ({"windows": 5}, "windows 5: is a whole number; write a text in quotes"),
        ({"load": 1000}, "load 1000: is out of range; write a number of 0.01 to 100"),
        ({"ties": "last"}, "ties 'last': is none of fifo, lifo; write one of them"),
        ({"precision": "much"}, "precision 'much': "),
        ({"resamples": 2, "windows": "5d"}, "windows and resamples exclude each other; give one of them"),
        ({"draw": "active"}, "length and draw belong to resampled logs; add resamples N"),
        ({"metrics": "mean_wiat"}, "there is no metric 'mean_wiat'; did you mean mean_wait"),
        ({"preset": "sc17"}, "preset: the jobs are read already; say it to policyfactory.read"),
    ],
)
def test_an_error_names_the_wrong_option(jobs: pf.Workload, options: dict[str, Any], message: str) -> None:
    with pytest.raises(PolicyfactoryError) as error:
        pf.evaluate(jobs, ["FCFS", "SPF"], **options)
    assert str(error.value).startswith(message)


def test_two_logs_of_one_name_are_refused(jobs: pf.Workload) -> None:
    with pytest.raises(UsageError, match="two logs are called"):
        pf.evaluate([jobs, jobs], ["FCFS"])
