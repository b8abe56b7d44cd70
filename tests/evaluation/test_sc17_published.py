"""What the SC'17 programs printed, window by window, and table 4 of the paper, from evaluate/sc17.toml."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from policyfactory.evaluation.experiment import with_cases
from policyfactory.evaluation.logs import ReadLog, read_log
from policyfactory.evaluation.paper import PublishedValue, reference_values
from policyfactory.evaluation.protocol import Protocol, read_protocol
from policyfactory.evaluation.run import run_cases
from policyfactory.statistics.evaluation import Evaluation

MODES = ("actual", "estimates", "backfilling")
# Ours and the oracle's names.
LOGS = {"sdsc-blue": "sdscblue", "curie": "curie"}
CONFIGS = {"actual": "runtime", "estimates": "estimate", "backfilling": "backfilling"}
POLICIES = {"WFP": "WFP3", "UNI": "UNICEF", "SPT": "SPF"}


@pytest.fixture(scope="module")
def protocol(root: Path) -> Protocol:
    return read_protocol(root / "evaluate" / "sc17.toml")


@pytest.fixture(scope="module")
def logs(protocol: Protocol, shared: Callable[[str], Path]) -> dict[str, ReadLog]:
    return {name: read_log(name, source, [shared("traces")]) for name, source in protocol.logs.items()}


@pytest.fixture(scope="module")
def oracle(shared: Callable[[str], Path]) -> dict[str, Any]:
    result: dict[str, Any] = json.loads(shared("oracles/sc17_windows.json").read_text())
    return result


@pytest.fixture(scope="module")
def run(protocol: Protocol, logs: dict[str, ReadLog]) -> Callable[[str], Evaluation]:
    plans = {plan.name: plan for plan in protocol.experiments}

    def evaluated(name: str) -> Evaluation:
        experiment = with_cases(plans[name], logs)
        return run_cases(experiment)

    return evaluated


def check_windows(mode: str, evaluation: Evaluation, oracle: dict[str, Any]) -> int:
    """Compare every value that the oracle has; return how many there were."""
    compared = 0
    for log, theirs in LOGS.items():
        config = oracle["configs"][f"{theirs}_{CONFIGS[mode]}"]
        values = evaluation.matrix(log, "sc17_bsld")
        numbers = [case.number - 1 for case in evaluation.cases if case.log == log]
        jobs = {case.number - 1: case.jobs for case in evaluation.cases if case.log == log}
        assert len(numbers) == config["windows_total"] - len(config["skipped"])
        for window in config["windows"]:
            assert jobs[window["i"]] == window["n_jobs"]
            row = values[numbers.index(window["i"])]
            for name, wanted in window["avgbsld"].items():
                ours = row[evaluation.policies.index(POLICIES.get(name, name))]
                assert ours == pytest.approx(wanted, rel=5e-7), f"{mode} {log} {window['i']} {name}"
                # An independent program by the same rules, with more digits than the original prints.
                assert ours == pytest.approx(window["reimpl"][name], rel=1e-9), f"{mode} {log} {window['i']} {name}"
                compared += 1
        # The windows that the oracle does not list one by one are in these.
        for statistic, reduce in (("median", np.median), ("mean", np.mean), ("std", np.std)):
            for name, wanted in config[f"driver_{statistic}"].items():
                ours = reduce(values[:, evaluation.policies.index(POLICIES.get(name, name))])
                assert ours == pytest.approx(wanted, rel=5e-7), f"{mode} {log} {statistic} {name}"
    return compared


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_every_window_as_the_programs_printed_it(
    mode: str, run: Callable[[str], Evaluation], oracle: dict[str, Any]
) -> None:
    assert check_windows(mode, run(f"{mode}-all"), oracle) == 8 * (37 + 10)


def test_table_4_to_the_printed_digit(protocol: Protocol, run: Callable[[str], Evaluation]) -> None:
    plans = {plan.name: plan for plan in protocol.experiments}
    result: list[tuple[str, PublishedValue]] = []
    for mode in MODES:
        evaluation = run(mode)
        for reference in plans[mode].references:
            result += [(mode, row) for row in reference_values(evaluation, reference)]
    assert len(result) == 12 * 8
    assert [(mode, row) for mode, row in result if not row.met] == []


def test_the_protocol_has_the_papers_numbers(protocol: Protocol, oracle: dict[str, Any]) -> None:
    plans = {plan.name: plan for plan in protocol.experiments}
    for mode in MODES:
        real, _model = plans[mode].references
        for log, theirs in LOGS.items():
            published = oracle["table4"][f"{theirs}_{CONFIGS[mode]}"]
            for name, row in published.items():
                ours = POLICIES.get(name, name)
                assert real.values[log][ours] == row["paper"]
                assert real.drop.get(log, {}).get(ours, 0) in row["drop_that_matches"]


def test_the_clean_experiments_differ_in_the_simulator_alone(protocol: Protocol) -> None:
    plans = {plan.name: plan for plan in protocol.experiments}
    for mode in MODES:
        own, clean = plans[f"{mode}-all"], plans[f"{mode}-clean"]
        ours, theirs = own.rules, clean.rules
        assert (ours.backfill, ours.decide_by) == (theirs.backfill, theirs.decide_by)
        assert (ours.compatibility, theirs.compatibility) == ("sc17", "none")
        assert (own.table.windows, own.table.skip, own.policies, own.logs) == (
            clean.table.windows,
            clean.table.skip,
            clean.policies,
            clean.logs,
        )
        assert own.metrics[0] == clean.metrics[0] == "sc17_bsld"
