"""The protocol of paper CCGrid'19, on one of its logs and in small."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import pytest

from policyfactory.evaluation.experiment import with_cases
from policyfactory.evaluation.options import ResampleTable
from policyfactory.evaluation.protocol import Protocol, read_protocol
from policyfactory.evaluation.study import read_logs, run_experiment, selected
from policyfactory.workload.resample import resample


@pytest.fixture(scope="module")
def protocol(root: Path) -> Protocol:
    return read_protocol(root / "evaluate" / "ccgrid19.toml")


def test_what_the_paper_says_is_in_the_protocol(protocol: Protocol) -> None:
    easy = protocol.experiments[0]
    assert easy.policies == ("FCFS", "SPF", "SQF", "SAF")
    assert (easy.times_longest, easy.rules.backfill, easy.rules.overrun) == (3.0, "easy", "kill")
    assert easy.table.resample == ResampleTable(count=10)
    published = next(analysis for analysis in easy.analyses if analysis.name == "premature").published  # type: ignore[attr-defined]
    # Tables III and IV.
    assert {log: values["share"] for log, values in published.items()} == {
        "kth": 12.4,
        "sdsc-blue": 30.2,
        "hpc2n": 17.4,
    }
    assert published["hpc2n"] == {"share": 17.4, "FCFS": 17.84, "SPF": 17.29, "SQF": 14.02, "SAF": 17.88}


def test_the_protocol_in_small(protocol: Protocol, shared: Callable[[str], Path]) -> None:
    folder = shared("traces/KTH-SP2-1996-2.1-cln.swf.gz").parent
    small = selected(protocol, ["easy"], ["kth"])
    logs = read_logs(small, [folder])
    plan = small.experiments[0]
    drawn = plan.table.model_copy(update={"resample": ResampleTable(count=6, length="13w")})
    plan = dataclasses.replace(plan, table=drawn)
    experiment = with_cases(plan, logs)
    case = experiment.cases[2]
    assert case.rules is not None
    assert case.rules.threshold == 3 * 60 * 3600
    # The same jobs as the command makes of this seed and number.
    made = resample(logs["kth"].workload, weeks=13, seed=protocol.seed, number=3)
    assert case.make().sha256() == made.sha256()
    outcome = run_experiment(experiment)
    names = [section.name for section in outcome.sections]
    assert [name for name in names if name in {"weekly", "delayed", "slowdown-classes", "backfilled", "premature"}] == [
        "weekly",
        "delayed",
        "slowdown-classes",
        "backfilled",
        "premature",
    ]
    means = outcome.evaluation.matrix("kth", "mean_bsld").mean(axis=0)
    assert means[3] < means[2] < means[0]
