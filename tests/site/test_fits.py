"""Which jobs a site could run, and why it could not run the others."""

from __future__ import annotations

import dataclasses

import numpy as np

from policyfactory.simulation.slurm.jobs import fit_to, partitions_of
from policyfactory.site.fits import PartitionFit, fit_jobs, without_strangers
from policyfactory.site.model import Association, Limits, NodeGroup, Partition, Qos, Scheduling, Site
from policyfactory.workload.jobs import Requests, Workload

SITE = Site(
    "here",
    (NodeGroup("a[1-4]", cores=8, memory=1000), NodeGroup("g[1-2]", cores=16, memory=4000, gpus=4)),
    (
        Partition("batch", "a[1-4]", default=True, max_time=3600.0),
        Partition("gpu", "g[1-2]", max_nodes=1, allowed_accounts=("phys",), allowed_qos=("high",)),
        Partition("big", "ALL", min_nodes=2),
    ),
    qos=(Qos("normal"), Qos("high", max_wall=600.0, per_job=Limits(gpus=2))),
    scheduling=Scheduling(select="cores+memory"),
)


def work(jobs: list[dict[str, int]], names: dict[str, tuple[str, ...]] | None = None) -> Workload:
    def column(name: str, default: int) -> np.ndarray:
        return np.array([job.get(name, default) for job in jobs], dtype=np.int64)

    n = len(jobs)
    requests = dataclasses.replace(
        Requests.unknown(n),
        names=names or {},
        **{name: column(name, -1) for name in ("nodes", "memory", "gpus", "partition", "partitions", "qos", "account")},
    )
    return Workload(
        "log", 10_000, np.arange(1, n + 1), np.arange(n), column("p", 60), column("p", 60), column("q", 1),
        np.zeros(n, dtype=np.int64), np.full(n, -1), requests=requests,
    )  # fmt: skip


NAMES = {"partition": ("gpu", "big", "lost"), "qos": ("normal", "HIGH", "gone"), "account": ("phys", "chem")}


def reason(**job: int) -> str | None:
    found = fit_jobs(SITE, work([job], NAMES))
    assert found.jobs == 1
    assert found.fitting == (0 if found.first else 1)
    return found.first[0][1] if found.first else None


def test_accounts_below_those_that_a_partition_names_may_use_it() -> None:
    known = Association("root"), Association("phys"), Association("chem", parent="phys")
    jobs = work([{"partition": 0, "account": account, "qos": 1} for account in (0, 1)], NAMES)
    for version, count in (("22.05", 1), ("24.11", 2)):
        site = dataclasses.replace(
            SITE, associations=known, scheduling=Scheduling(select="cores+memory", slurm_version=version)
        )
        assert fit_jobs(site, jobs).fitting == count


def test_each_limit_stops_the_job_that_is_beyond_it() -> None:
    assert reason() is None
    assert reason(q=32, nodes=4, memory=4000) is None
    assert reason(q=33) == "cores 33, and partition batch has 32"
    assert reason(nodes=5) == "nodes 5, and partition batch allows 4"
    assert reason(memory=4001) == "MB of memory 4,001, and partition batch has 4,000"
    assert reason(gpus=1) == "GPUs 1, and partition batch has 0"
    assert reason(p=3600) is None
    assert reason(p=3601) == "requested seconds 3,601, and partition batch allows 1h"
    assert reason(partition=2) == "partition lost is not there"
    assert reason(partition=1, nodes=1) == "nodes 1, and partition big asks for 2"
    assert reason(partition=0, nodes=2) == "nodes 2, and partition gpu allows 1"
    assert reason(partition=0, account=1) == "account chem may not use partition gpu"
    assert reason(partition=0, account=0, qos=0) == "qos normal may not use partition gpu"
    assert reason(partition=0, account=0, qos=1) is None
    assert reason(qos=1, p=601) == "requested seconds 601, and QOS high allows 10m"
    assert reason(partition=0, qos=1, gpus=3) == "gpus 3, and QOS high allows 2"
    assert reason(qos=2) == "QOS gone is not there"


def test_a_qos_lifts_what_its_partition_allows() -> None:
    flags = ("PartitionTimeLimit", "PartitionMaxNodes", "PartitionMinNodes")
    free = dataclasses.replace(SITE, qos=(Qos("normal", flags=flags), Qos("high")))
    jobs = [{"p": 9999, "qos": 0}, {"p": 9999, "qos": 1}, {"p": 9999}, {"partition": 1, "nodes": 1, "qos": 0}]
    assert [number for number, _ in fit_jobs(free, work(jobs, NAMES)).first] == [2, 3]
    # But not more nodes than there are.
    assert fit_jobs(free, work([{"partition": 1, "nodes": 7, "q": 7, "qos": 0}], NAMES)).fitting == 0


def test_what_the_simulation_refuses_does_not_fit_either() -> None:
    limited = dataclasses.replace(
        SITE,
        qos=(Qos("normal"),),
        associations=(Association("root"), Association("phys", max_wall=900.0)),
        enforced=("associations", "limits"),
    )
    jobs = [{"account": 0}, {"account": 1}, {"account": 0, "p": 901}, {}, {"partition": 2}]
    found = fit_to(limited, work(jobs, NAMES))
    assert (found.jobs, found.fitting) == (5, 2)
    assert found.reasons == {"limits and rights": 2, "no such partition": 1}
    assert dict(found.first) == {
        2: "user (none) has no association with account chem",
        3: "its limit of 960 s is above MaxWall (900 s)",
        5: "partition lost is not there",
    }


def test_a_share_must_fit_on_enough_nodes() -> None:
    # The partition big has four nodes of 8 cores and two of 16 with GPUs.
    words = "and too few nodes of partition big have a job's share of cores, memory and GPUs"
    assert reason(partition=1, nodes=6, q=48) is None
    assert reason(partition=1, nodes=3, q=48) == f"nodes 3, {words}"
    assert reason(partition=1, nodes=2, q=32, gpus=8) is None
    assert reason(partition=1, nodes=3, q=3, gpus=3) == f"nodes 3, {words}"
    assert reason(partition=1, nodes=3, q=3, memory=3003) == f"nodes 3, {words}"
    assert reason(partition=1, nodes=3, q=3, memory=3000) is None


def test_memory_counts_only_where_it_is_consumed() -> None:
    cores = dataclasses.replace(SITE, scheduling=Scheduling())
    assert fit_jobs(cores, work([{"memory": 10**9}])).fitting == 1
    bare = dataclasses.replace(SITE, nodes=(NodeGroup("a[1-4]"), NodeGroup("g[1-2]")))
    assert fit_jobs(bare, work([{"memory": 10**9}])).fitting == 1


def test_jobs_are_counted_by_partition_and_by_reason() -> None:
    jobs = [{"q": 99}] * 3 + [{"partition": 2}] * 2 + [{"partition": 0}] + [{}] * 2 + [{"p": 9999}]
    found = fit_jobs(SITE, work(jobs, NAMES))
    assert (found.jobs, found.fitting) == (9, 3)
    assert found.other_cluster
    assert found.partitions == (PartitionFit("batch", 6, 2), PartitionFit("gpu", 1, 1), PartitionFit("lost", 2, 0))
    assert found.reasons == {"cores": 3, "no such partition": 2, "requested time": 1}
    assert [number for number, _ in found.first] == [1, 2, 3, 4, 5]


def test_partitions_that_have_numbers_only_are_not_known() -> None:
    found = fit_jobs(SITE, work([{"partition": 0}, {"partition": 1}], {"partition": ("1", "2")}))
    assert found.fitting == 2
    assert found.partitions == (PartitionFit("batch", 2, 2),)
    assert found.unknown[0] == "the log numbers its partitions and does not name them (; Partition: 1 batch)"
    found = fit_jobs(SITE, work([{"partition": 0}, {"partition": 1}], {"partition": ("1", "gpu")}))
    assert found.first == ((1, "partition 1 is not there"),)


def test_what_the_log_does_not_say_is_said() -> None:
    found = fit_jobs(SITE, dataclasses.replace(work([{}, {}]), requests=None))
    assert found.fitting == 2
    assert [text.partition(" do not say ")[2].split(",")[0].split(":")[0] for text in found.unknown] == [
        "their partition", "", "their GPUs", "their nodes", "their QOS",
    ]  # fmt: skip
    assert found.unknown[1].startswith("no job says its memory, so that it holds none")
    some = fit_jobs(SITE, work([{}, {"memory": 10}]))
    assert any(text.startswith("1 of 2 jobs do not say their memory") for text in some.unknown)
    assert found.unknown[0].startswith("2 of 2 jobs")
    simple = Site("s", (NodeGroup("n[1-4]"),), (Partition("p"),))
    assert fit_jobs(simple, work([{}])).unknown == ()


def test_a_few_jobs_of_partitions_that_are_not_there_are_left_out() -> None:
    names = {"partition": ("big", "lost", "gone\u202e")}
    jobs = work([{"partition": 0}] * 8 + [{"partition": 1}] * 6 + [{"partition": 2}], names)
    left, sentence = without_strangers(jobs, SITE)
    assert left.job_id.tolist() == list(range(1, 9))
    assert sentence == (
        "7 of 15 jobs of log are left out: site here does not have their partition 'lost' and 'gone\\u202e' "
        "(jobs 9, 10, 11, 12, 13, ...)."
    )
    one, sentence = without_strangers(jobs.select(slice(7, 9)), SITE)
    assert one.submit.tolist() == [7]
    assert sentence == "1 of 2 jobs of log is left out: site here does not have its partition 'lost' (job 9)."


def test_of_the_log_of_another_cluster_nothing_is_left_out() -> None:
    jobs = work([{"partition": 0}] * 2 + [{"partition": 1}] * 3, {"partition": ("big", "lost")})
    assert without_strangers(jobs, SITE) == (jobs, "")
    assert fit_jobs(SITE, jobs).other_cluster
    kept = work([{"partition": 0}], {"partition": ("big",)})
    assert without_strangers(kept, SITE) == (kept, "")
    numbered = work([{"partition": 0}, {"partition": 1}], {"partition": ("1", "2")})
    assert without_strangers(numbered, SITE) == (numbered, "")
    bare = dataclasses.replace(kept, requests=None)
    assert without_strangers(bare, SITE) == (bare, "")


def test_a_job_of_several_partitions_fits_if_it_fits_in_one() -> None:
    names = {
        "partition": ("batch", "gpu", "lost"),
        "partitions": ("batch,big", "batch,gpu,gone", "lost,batch", "lost,gone"),
    }
    jobs = [
        {"partition": 0, "q": 40},
        {"partition": 0, "partitions": 0, "q": 40, "nodes": 6},
        {"partition": 0, "partitions": 1, "q": 40},
        {"partition": 2, "partitions": 2},
        {"partition": 2, "partitions": 3},
    ]
    found = fit_jobs(SITE, work(jobs, names))
    stopped = "cores 40, and partition batch has 32"
    assert found.first == ((1, stopped), (3, stopped), (5, "partition lost is not there"))
    assert found.partitions == (PartitionFit("batch", 4, 2), PartitionFit("lost", 1, 0))


def test_a_job_stays_whose_list_has_a_partition_that_is_there() -> None:
    names = {"partition": ("lost", "batch"), "partitions": ("lost,gone,big,batch", "lost,gone")}
    jobs = work([{"partition": 0, "partitions": 0}, {"partition": 1}, {"partition": 0, "partitions": 1}], names)
    left, sentence = without_strangers(jobs, SITE)
    assert left.job_id.tolist() == [1, 2]
    assert "'lost' (job 3)" in sentence
    assert left.requests is not None
    assert partitions_of(left, left.requests, SITE).tolist() == [2, 0]
