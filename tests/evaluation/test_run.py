"""Policies on windows: the same inputs for all, the same table for any number of workers."""

from __future__ import annotations

import dataclasses
import functools
import threading
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evaluations import run_cases
from policyfactory.core.errors import EvaluationError, UsageError
from policyfactory.core.process import WorkCounter
from policyfactory.evaluation.analyses.analysis import Analysis
from policyfactory.evaluation.options import DEFAULT_METRICS
from policyfactory.evaluation.run import join
from policyfactory.policy.policy import Policy
from policyfactory.policy.store import resolve
from policyfactory.report.sections import Section
from policyfactory.simulation.cases import Case, case_of
from policyfactory.simulation.metrics import METRICS, check_metrics, measure
from policyfactory.simulation.simulate import Rules, Schedule, simulate
from policyfactory.statistics.evaluation import Evaluation
from policyfactory.workload.clean import read
from policyfactory.workload.jobs import Workload
from policyfactory.workload.windows import cut, parse_windows
from refusals import refused


def three_jobs(name: str = "three") -> Workload:
    """One processor; A (10 s) runs at once, B (100 s) is submitted before C (1 s)."""
    columns = {
        "job_id": [1, 2, 3],
        "submit": [0, 1, 2],
        "run_time": [10, 100, 1],
        "requested_time": [10, 100, 1],
        "processors": [1, 1, 1],
        "user": [1, 2, 3],
        "start": [-1, -1, -1],
    }
    return Workload(name=name, machine=1, **{key: np.array(column) for key, column in columns.items()})


@pytest.fixture(scope="module")
def windows(shared: Callable[[str], Path]) -> list[Case]:
    """Seven windows of a week of the first 5,000 jobs of KTH."""
    log = read(shared("oracles/online/trace_kth5k.swf.gz"))
    return [case_of(part, n, log="kth", kind="window") for n, part in enumerate(cut(log, parse_windows("7x7d")), 1)]


def test_two_policies_by_hand() -> None:
    # FCFS: A 0-10, B 10-110, C 110-111: waits 0, 9, 108.  SPF: A 0-10, C 10-11, B 11-111: waits 0, 10, 8.
    result = run_cases([three_jobs()], [resolve("FCFS"), resolve("SPF")], metrics=["mean_wait", "max_wait"])
    assert result.values.tolist() == [[[39.0, 108.0], [6.0, 10.0]]]
    assert result.longest_wait.tolist() == [[108.0, 10.0]]
    assert result.longest_wait_job.tolist() == [[3, 2]]
    assert (result.policies, result.baseline, result.logs) == (("FCFS", "SPF"), "FCFS", ("three",))
    assert result.jobs_simulated == 6
    assert result.matrix("three", "max_wait").tolist() == [[108.0, 10.0]]
    facts = result.cases[0]
    assert (facts.jobs, facts.machine, facts.span_s, facts.sha256) == (3, 1, 2.0, three_jobs().sha256())


def test_the_longest_wait_is_in_seconds_also_where_a_simulator_has_a_finer_clock() -> None:
    rules = Rules(backfill="none", decide_by="runtime", compatibility="sc17")
    result = run_cases([three_jobs()], [resolve("FCFS")], rules=rules, metrics=["max_wait"])
    assert result.longest_wait.tolist() == [[result.values[0, 0, 0]]]
    assert 100 < result.longest_wait[0, 0] < 120


def test_the_long_table_repeats_the_block_in_order() -> None:
    metrics = ["max_wait", "mean_wait"]
    result = run_cases([three_jobs("one"), three_jobs("two")], [resolve("FCFS"), resolve("SPF")], metrics=metrics)
    frame = result.frame()
    assert list(frame.columns) == ["log", "case", "policy", "metric", "value"]
    assert len(frame) == 8
    for row in frame.itertuples(index=False):
        at = result.logs.index(row.log)
        assert row.value == result.values[at, result.policies.index(row.policy), result.metrics.index(row.metric)]


def test_every_cell_is_one_simulation_of_that_window_by_that_policy(windows: list[Case]) -> None:
    policies = [resolve("FCFS"), resolve("F1"), resolve("WFP3")]
    rules = Rules(backfill="none", threshold=72000)
    result = run_cases(windows[:3], policies, rules=rules)
    for at, window in enumerate(windows[:3]):
        for column, policy in enumerate(policies):
            expected = measure(simulate(window.make(), policy, rules), DEFAULT_METRICS)
            assert result.values[at, column].tolist() == [expected[name] for name in DEFAULT_METRICS]


@pytest.mark.parametrize("workers", [2, 4])
def test_the_number_of_workers_changes_nothing(windows: list[Case], workers: int) -> None:
    policies = [resolve(name) for name in ("FCFS", "SAF", "F2", "LEXP")]
    alone = run_cases(windows, policies, metrics=METRICS)
    together = run_cases(windows, policies, metrics=METRICS, workers=workers)
    assert alone.values.tobytes() == together.values.tobytes()
    assert alone.longest_wait_job.tobytes() == together.longest_wait_job.tobytes()


class Keeper:
    """Keeps the digest of each schedule's jobs."""

    def __init__(self) -> None:
        self.kept: dict[tuple[int, str], str] = {}
        self.threads: set[int] = set()

    def content(self, case: Case, schedule: Schedule) -> bytes:
        assert (schedule.start >= case.make().submit).all()
        return schedule.workload.sha256().encode()

    def write(self, case: Case, policy: str, content: bytes) -> None:
        assert (case.number, policy) not in self.kept
        self.kept[case.number, policy] = content.decode()
        self.threads.add(threading.get_ident())

    def has(self, case: Case, policy: str) -> bool:
        return (case.number, policy) in self.kept


def test_all_policies_see_the_same_jobs(windows: list[Case]) -> None:
    """Pairs are pairs: each policy is given each window, whole, once."""
    keeper = Keeper()
    run_cases(windows, [resolve("FCFS"), resolve("SAF")], sink=keeper, workers=2)
    seen = keeper.kept
    assert len(seen) == 2 * len(windows)
    for window in windows:
        assert seen[window.number, "FCFS"] == seen[window.number, "SAF"] == window.make().sha256()
    assert keeper.threads == {threading.get_ident()}


def test_one_policy_is_not_changed_by_its_company(windows: list[Case]) -> None:
    alone = run_cases(windows, [resolve("SAF")])
    among = run_cases(windows, [resolve("FCFS"), resolve("WFP3"), resolve("SAF")])
    assert among.values[:, 2].tobytes() == alone.values[:, 0].tobytes()


def test_the_window_start_epoch_counts_from_each_window(windows: list[Case]) -> None:
    """A policy of r sees the window's own clock: it ranks a window as it ranks a copy that was always at time 0."""
    policy = Policy("step", "p + 1e6*log10(r + 1)")
    for window in windows[1:3]:
        assert window.make().submit[0] == 0
        copy = window.make().select(slice(None), rebase=True)
        assert (simulate(window.make(), policy).start == simulate(copy, policy).start).all()


def test_the_jobs_of_each_simulation_are_counted_in_the_calling_thread(windows: list[Case]) -> None:
    jobs: list[int] = []
    threads: set[int] = set()

    class Listening(WorkCounter):
        def done(self, amount: int) -> None:
            jobs.append(amount)
            threads.add(threading.get_ident())

    run_cases(windows, [resolve("FCFS"), resolve("SPF")], workers=2, counter=Listening())
    assert sorted(jobs) == sorted(len(window.make()) for window in windows for _ in range(2))
    assert threads == {threading.get_ident()}


def test_a_prediction_goes_along_with_its_window() -> None:
    jobs = three_jobs()
    exact = case_of(jobs, prediction=np.array([10, 1, 100]))
    # The prediction says that B is short: SPF takes B before C, as FCFS does.
    rules = Rules(decide_by="prediction")
    result = run_cases([exact], [resolve("SPF")], rules=rules, metrics=["max_wait"])
    assert result.values.tolist() == [[[108.0]]]


def nothing() -> Workload:
    return three_jobs().select(slice(0, 0))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: run_cases([], [resolve("FCFS")]), EvaluationError, "case"),
        (lambda: run_cases([nothing()], [resolve("FCFS")]), EvaluationError, "job"),
        (lambda: run_cases([three_jobs()], []), UsageError, "policy named --policies"),
        (
            lambda: run_cases([three_jobs()], [resolve("SPF"), resolve("spt")]),
            UsageError,
            "SPF policies name",
        ),
        (lambda: run_cases([three_jobs(), three_jobs()], [resolve("SPF")]), UsageError, "called three"),
        (lambda: run_cases([three_jobs()], [resolve("SPF")], workers=0), UsageError, "0 workers"),
        (lambda: check_metrics(["mean_wiat"]), UsageError, "mean_wait mean mean_wiat"),
        (lambda: check_metrics([" ", ""]), UsageError, "metric named"),
    ],
)
def test_wrong_use_is_refused(call: Callable[[], object], error: type[Exception], message: str) -> None:
    refused(error, message, call)


def test_metric_names_are_read_as_people_write_them() -> None:
    assert check_metrics([" Mean-Wait", "max_wait", "mean_wait"]) == ("mean_wait", "max_wait")
    assert set(DEFAULT_METRICS) <= set(METRICS)


@pytest.mark.parametrize("step", ["content", "write"])
def test_a_failure_in_a_worker_reaches_the_caller(step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> bytes:
        raise EvaluationError("stop here")

    keeper = Keeper()
    monkeypatch.setattr(keeper, step, fail)
    with pytest.raises(EvaluationError, match="stop"):
        run_cases([three_jobs()], [resolve("FCFS"), resolve("SPF")], sink=keeper, workers=2)


def test_a_bare_workload_is_the_one_case_of_its_log() -> None:
    (facts,) = run_cases([three_jobs()], [resolve("FCFS")]).cases
    assert (facts.log, facts.number, facts.kind) == ("three", 1, "log")


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_a_case_is_made_once_and_forgotten(workers: int) -> None:
    """Memory does not grow with the number of cases: the jobs of a case are gone when the last policy is done."""
    made: list[weakref.ref[Any]] = []
    alive: list[int] = []

    def make() -> Workload:
        jobs = three_jobs()
        made.append(weakref.ref(jobs.submit))
        alive.append(sum(one() is not None for one in made))
        return jobs

    cases = [Case("log", number, "resample", make) for number in range(1, 31)]
    run_cases(cases, [resolve(name) for name in ("FCFS", "SPF", "SAF")], metrics=["max_wait"], workers=workers)
    assert len(made) == 30
    assert max(alive) <= workers + 1
    assert not any(one() is not None for one in made)


def test_what_analyses_keep_is_in_the_place_of_its_case_and_policy(windows: list[Case]) -> None:
    @dataclasses.dataclass(frozen=True, slots=True)
    class Names(Analysis):
        name = "names"

        def observe(self, case: Case, schedule: Schedule) -> tuple[int, str, int]:
            return case.number, schedule.policy_name, len(schedule)

        def conclude(self, evaluation: Evaluation, seen: list[list[Any]]) -> Section:
            return Section("names", "Names")

    analyses = (Names(), Names())
    result = run_cases(windows, [resolve("FCFS"), resolve("SPF"), resolve("SAF")], analyses=analyses, workers=2)
    for seen in result.observed:
        assert seen == [[(case.number, policy, case.jobs) for policy in result.policies] for case in result.cases]
    assert len(result.observed) == 2


def test_the_rules_of_a_case_come_before_those_of_the_experiment() -> None:
    strict = dataclasses.replace(case_of(three_jobs()), rules=Rules(threshold=0))
    loose = dataclasses.replace(case_of(three_jobs(), 2), rules=None)
    result = run_cases([strict, loose], [resolve("SPF")], metrics=["max_wait"])
    # Threshold 0: whoever waits at all goes first, in submit order, as FCFS.
    assert result.values.ravel().tolist() == [108.0, 10.0]


def test_two_batches_are_one_evaluation(windows: list[Case]) -> None:
    policies = [resolve("FCFS"), resolve("SAF")]
    other = [dataclasses.replace(case, log="other") for case in windows]
    whole = run_cases([*windows, *other], policies)
    first, second = (run_cases([*windows[part], *other[part]], policies) for part in (slice(0, 3), slice(3, None)))
    joined = join(first, second)
    assert joined.cases == whole.cases
    assert joined.values.tobytes() == whole.values.tobytes()
    assert joined.longest_wait_job.tobytes() == whole.longest_wait_job.tobytes()


def test_what_has_not_begun_is_not_begun_when_nobody_listens_any_more() -> None:
    """Ctrl-C in the calling thread: nothing of the rest is begun."""
    made: list[int] = []

    def make(number: int) -> Workload:
        made.append(number)
        return three_jobs()

    class Stopping(WorkCounter):
        def done(self, amount: int) -> None:
            raise KeyboardInterrupt

    cases = [Case("log", number, "resample", functools.partial(make, number)) for number in range(1, 200)]
    with pytest.raises(KeyboardInterrupt):
        run_cases(cases, [resolve("FCFS")], metrics=["max_wait"], workers=2, counter=Stopping())
    assert len(made) < 100
