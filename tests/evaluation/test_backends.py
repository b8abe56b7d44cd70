"""Threads, processes and a Dask cluster: the same bytes; a worker that is killed costs its piece, no more."""

from __future__ import annotations

import functools
import pickle
from collections.abc import Iterator
from pathlib import Path

import pytest

from evaluations import run_cases
from policyfactory.core.process import WorkCounter
from policyfactory.evaluation.experiment import with_cases
from policyfactory.evaluation.protocol import Protocol
from policyfactory.evaluation.starts import StartsWriter
from policyfactory.evaluation.study import RunSettings, read_logs, run_protocol, selected
from policyfactory.parallel.workers import Workers
from policyfactory.policy.store import resolve
from policyfactory.simulation.cases import Case, case_of
from policyfactory.workload.jobs import Workload
from policyfactory.workload.models.lublin import generate_lublin
from small_protocol import make_or_die, report_text, run, small_protocol


@pytest.fixture(scope="module")
def protocol(tmp_path_factory: pytest.TempPathFactory) -> Protocol:
    return small_protocol(tmp_path_factory.mktemp("logs"))


@pytest.fixture(scope="module")
def alone(protocol: Protocol) -> str:
    """Give the report of one worker."""
    return report_text(run(protocol))


@pytest.fixture(scope="module")
def log() -> Workload:
    return generate_lublin(32, 800, seed=1)


@pytest.fixture(scope="module")
def scheduler() -> Iterator[str]:
    """Give the address of a Dask cluster of one process."""
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address="127.0.0.1:0") as cluster:
        yield cluster.scheduler_address


@pytest.mark.parametrize("count", [pytest.param(2, marks=pytest.mark.slow), 3])
def test_threads_give_the_same_as_one(count: int, protocol: Protocol, alone: str) -> None:
    assert report_text(run(protocol, workers=count)) == alone


@pytest.mark.slow
def test_processes_give_the_same_as_threads(protocol: Protocol) -> None:
    some = selected(protocol, ["windows", "drawn"])
    threads, processes = (
        report_text(run_protocol(some, settings=RunSettings(workers=workers))) for workers in (1, Workers(2, "loky"))
    )
    assert processes == threads


@pytest.mark.slow
def test_a_dask_cluster_gives_the_same_as_threads(protocol: Protocol, alone: str, scheduler: str) -> None:
    assert report_text(run(protocol, workers=Workers(1, "dask", scheduler))) == alone


@pytest.mark.slow
def test_starts_are_written_by_the_calling_process(log: Workload, scheduler: str, tmp_path: Path) -> None:
    cases = [case_of(log)]
    policies = [resolve("FCFS"), resolve("SPF")]
    names = {one.name: one.name for one in policies}
    written = []
    for number, workers in enumerate((Workers(2), Workers(1, "dask", scheduler))):
        keep = StartsWriter(tmp_path / str(number), "batsim", {log.name: "log"}, names)
        run_cases(cases, policies, sink=keep, workers=workers)
        paths = sorted(path for path in keep.directory.rglob("*") if path.is_file())
        assert all(keep.has(cases[0], one.name) for one in policies)
        written.append([path.read_bytes() for path in paths])
    assert len(written[0]) == 2
    assert written[0] == written[1]


class Simulated(WorkCounter):
    """Counts the simulations that are done."""

    simulations = 0

    def done(self, amount: int) -> None:
        self.simulations += 1


@pytest.mark.fault
def test_a_worker_that_is_killed_costs_its_work_unit(log: Workload, tmp_path: Path) -> None:
    mark = tmp_path / "killed"
    cases = [Case("log", number, "resample", functools.partial(make_or_die, str(mark), log)) for number in range(1, 5)]
    messages: list[str] = []
    policies = [resolve("FCFS"), resolve("SPF")]
    counter = Simulated()
    result = run_cases(cases, policies, workers=Workers(2, "loky"), notify=messages.append, counter=counter)
    assert mark.exists()
    assert len(messages) == 1
    assert "was lost (killed by signal 9); its work unit is computed again" in messages[0]
    assert counter.simulations == 8
    assert result.values.tobytes() == run_cases(cases, policies).values.tobytes()


def test_cases_of_every_kind_can_be_sent_to_another_process(protocol: Protocol) -> None:
    logs = read_logs(protocol)
    for plan in protocol.experiments:
        experiment = with_cases(plan, logs)
        cases = [*experiment.cases, *(make(4) for make in experiment.more.values())]
        data = pickle.dumps(tuple(cases))
        # A log is in it once, however many cases are made of it.
        assert len(data) < 3 * sum(7 * 8 * len(logs[name].workload) for name in plan.log_names)
        for case, again in zip(cases, pickle.loads(data), strict=True):
            jobs = again.make()
            assert jobs.sha256() == case.make().sha256()
            # Kernels are compiled for columns that cannot be written to, and would be again for others.
            assert not jobs.submit.flags.writeable
            assert not again.make().select(slice(0, 5)).submit.flags.writeable
