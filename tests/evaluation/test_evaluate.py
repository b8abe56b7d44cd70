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
from refusals import refused


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
    refused(OutputError, "results.csv --overwrite overwrite=True", result.report, tmp_path / "report")


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
        ({"window": "10x15d"}, "window option did"),
        ({"windows": "ten"}, "ten windows"),
        ({"windows": 5}, "5 windows whole"),
        ({"load": 1000}, "1000 0.01 100"),
        ({"ties": "last"}, "last ties fifo"),
        ({"precision": "much"}, "much precision"),
        ({"resamples": 2, "windows": "5d"}, "windows resamples exclude"),
        ({"draw": "active"}, "length draw belong"),
        ({"metrics": "mean_wiat"}, "mean_wiat mean_wait metric"),
        ({"preset": "sc17"}, "policyfactory.read preset jobs"),
    ],
)
def test_an_error_names_the_wrong_option(jobs: pf.Workload, options: dict[str, Any], message: str) -> None:
    refused(PolicyfactoryError, message, pf.evaluate, jobs, ["FCFS", "SPF"], **options)


def test_two_logs_of_one_name_are_refused(jobs: pf.Workload) -> None:
    refused(UsageError, "logs called lublin-32", pf.evaluate, [jobs, jobs], ["FCFS"])
