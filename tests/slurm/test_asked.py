"""What jobs ask for by GPU, by task and by node: the exports count it as sacct's ReqTRES has it."""

from __future__ import annotations

import contextlib
import dataclasses
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from policyfactory.exports.content import TARGETS, Export, ExportSite
from policyfactory.exports.queue import QUEUE_COMMAND, read_queue
from policyfactory.policy.policy import Policy
from policyfactory.policy.store import Model
from schedulers.processes import short_directory, wait_for
from schedulers.slurm import Cluster
from schedulers.slurmdbd import Accounting
from slurm.orders import usual_site
from slurm.plugin import build, plugin_lines, slurm_source

Request = tuple[str, int, int, int]
# Whole numbers that a score of 53 bits keeps apart.
ASKS = Policy("asks", "q + 1000*g + 1000000*mem")
# What is asked for, and q, mem (MB) and g.
REQUESTS: list[Request] = [
    ("-n 4", 4, 80, 0),
    ("-n 2 --mem=70", 2, 70, 0),
    ("-N 2 --ntasks-per-node=4 -c 2", 16, 320, 0),
    ("-N 2-4 --ntasks-per-node=2", 4, 80, 0),
    ("-N 2 --gres=gpu:a100:2", 2, 40, 4),
    ("-n 4 --gpus-per-task=1", 4, 80, 4),
    ("-N 2 --gpus-per-socket=1 --sockets-per-node=2", 4, 80, 4),
    ("--gpus=4 --mem-per-gpu=100", 1, 400, 4),
    ("-N 2 --gpus-per-node=2 --mem-per-gpu=100", 2, 400, 4),
    ("-n 4 --gpus-per-task=1 --mem-per-gpu=100", 4, 400, 4),
    ("-n 4 -p nodes", 4, 60, 0),
    ("--gpus=4 -c 5 -p defaults --mem=50", 5, 50, 4),
]
# Before 24.05 ReqTRES has the processors that were asked for by GPU only when the job runs.
BY_GPU: list[Request] = [
    ("--gpus=4 --cpus-per-gpu=8", 32, 640, 4),
    ("--gres=gpu:2 --cpus-per-gpu=3", 6, 120, 2),
    ("-N 2 --gpus-per-node=2 --cpus-per-gpu=3", 12, 240, 4),
    ("-N 2-4 --gpus-per-node=1 --cpus-per-gpu=2", 4, 80, 2),
    ("-n 4 --gpus-per-task=1 --cpus-per-gpu=3", 12, 240, 4),
    ("--gpus=a100:2 --cpus-per-gpu=2 -n 8", 8, 160, 2),
    ("--gpus=4 --cpus-per-gpu=2 --mem-per-cpu=10", 8, 80, 4),
    ("--gpus=4 --cpus-per-gpu=1 --mem-per-gpu=7 -p defaults", 4, 28, 4),
]
# ReqTRES never has slurm.conf's defaults for a GPU; what runs does.
DEFAULTS: list[Request] = [
    ("--gpus=4 -p defaults", 12, 160, 4),
    ("-N 2 --gpus-per-node=2 -p defaults", 12, 160, 4),
    ("-n 4 --gpus-per-task=1 -p defaults", 12, 160, 4),
    ("-n 4 -p defaults", 4, 80, 0),
]
SHAPE = "CPUs=16 Sockets=2 CoresPerSocket=8 ThreadsPerCore=1"
PARTITIONS = (
    "PartitionName=batch Nodes=g[1-4] Default=YES MaxTime=INFINITE State=DOWN DefMemPerCPU=20",
    "PartitionName=nodes Nodes=g[1-4] MaxTime=INFINITE State=DOWN DefMemPerNode=60",
    "PartitionName=defaults Nodes=g[1-4] MaxTime=INFINITE State=DOWN DefMemPerCPU=20 DefCpuPerGPU=3 DefMemPerGPU=40",
    "PartitionName=up Nodes=ALLNODES State=UP",
)


@pytest.fixture
def start() -> Iterator[Callable[..., Cluster]]:
    """Give a function that starts a cluster with GPUs on nodes that nobody starts, and slurmdbd."""
    with contextlib.ExitStack() as stack:

        def begin(lines: Sequence[str], files: dict[str, str]) -> Cluster:
            accounting = stack.enter_context(Accounting(stack.enter_context(short_directory())))
            more = (
                *accounting.lines,
                "AccountingStorageTRES=gres/gpu",
                "SelectTypeParameters=CR_CPU_Memory",
                "GresTypes=gpu",
                f"NodeName=g[1-4] NodeAddr=127.0.0.1 {SHAPE} RealMemory=64000 Gres=gpu:a100:4 State=DOWN",
            )
            counts = {"gres.conf": "NodeName=g[1-4] Name=gpu Type=a100 Count=4\n"}
            folder = stack.enter_context(short_directory())
            cluster = Cluster(folder, nodes=1, lines=(*more, *lines), partitions=PARTITIONS, files=counts | files)
            return stack.enter_context(cluster)

        yield begin


def counted(cluster: Cluster, name: str) -> list[tuple[int, int, int]]:
    """Return q, mem and g of each line that the export logged."""
    scores = re.findall(rf"policyfactory-shadow: policy={name} .* score=(\d+)", log_of(cluster))
    return [(int(score) % 1000, int(score) // 1_000_000, int(score) // 1000 % 1000) for score in scores]


def log_of(cluster: Cluster) -> str:
    return (cluster.log / "slurmctld.log").read_text(errors="replace")


def recorded(cluster: Cluster, jobs: Sequence[int]) -> list[tuple[int, int, int]]:
    """Return q, mem and g of sacct's ReqTRES, once the jobs are cancelled."""
    cluster.run("scancel", *jobs)

    def rows() -> dict[str, str]:
        out = cluster.run("sacct", "-a", "-X", "-n", "-P", "-S", "now-1hours", "-o", "JobID,ReqTRES,State")
        split = (line.split("|") for line in out.splitlines())
        return {job: tres for job, tres, state in split if state.startswith("CANCELLED")}

    wait_for("the records of sacct", lambda: len(rows()) == len(jobs), 90)
    found = rows()
    return [tuple(_count(found[str(job)], name) for name in ("cpu", "mem", "gres/gpu")) for job in jobs]  # type: ignore[misc]


def _count(tres: str, name: str) -> int:
    found = re.search(rf"(?:^|,){name}=(\d+)", tres)
    return int(found[1]) if found else 0


def prove(cluster: Cluster, name: str) -> None:
    """Assert that the export counts each request as it is meant, and as Slurm records it; a change too."""
    requests = [*REQUESTS, *BY_GPU, *DEFAULTS]
    jobs = [
        int(cluster.run("sbatch", "--parsable", "-o", "/dev/null", "-t", 10, *words.split(), "--wrap", "true"))
        for words, *_ in requests
    ]
    expected = [tuple(asked) for _, *asked in requests]
    assert dict(zip(requests, counted(cluster, name), strict=True)) == dict(zip(requests, expected, strict=True))
    by_squeue(cluster, requests[: -len(DEFAULTS)], jobs)
    # An update that changes nothing: what is known now is the same.
    for job in jobs:
        cluster.run("scontrol", "update", f"JobId={job}", "Nice=0")
    again = counted(cluster, name)[len(jobs) :]
    assert dict(zip(requests, again, strict=True)) == dict(zip(requests, expected, strict=True))
    known = len(REQUESTS) + (len(BY_GPU) if cluster.version >= (24, 5) else 0)
    found = dict(zip(requests[:known], recorded(cluster, jobs)[:known], strict=True))
    assert found == dict(zip(requests[:known], expected[:known], strict=True))


def by_squeue(cluster: Cluster, requests: Sequence[Request], jobs: Sequence[int]) -> None:
    """Assert that a preview and the script of a user count processors so, too."""
    queue, _ = read_queue(cluster.run("sh", "-c", QUEUE_COMMAND).encode(), "squeue")
    found = dict(zip(queue.job, queue.q.tolist(), strict=True))
    expected = {str(job): request[1] for job, request in zip(jobs, requests, strict=False)}
    assert {job: found[job] for job in expected} == expected
    script = cluster.folder / "nice_jobs.sh"
    script.write_text(TARGETS["slurm-nice"].make(Model(Policy("q", "q")), usual_site()).files[0].text)
    lines = re.findall(r" job=(\d+) .* processors=(\d+) ", cluster.run("sh", script, "log"))
    found = {job: int(processors) for job, processors in lines}
    assert {job: found[job] for job in expected} == expected


def log_only() -> ExportSite:
    return dataclasses.replace(usual_site(), log_only=True)


def test_the_script_counts_what_slurm_records(start: Callable[..., Cluster]) -> None:
    export: Export = TARGETS["slurm-site-factor-lua"].make(Model(ASKS), log_only())
    # What Slurm does not tell Lua an administrator fills in.
    empty, filled = "CPUS_PER_GPU, MB_PER_GPU = {}, {}", "CPUS_PER_GPU, MB_PER_GPU = {defaults = 3}, {defaults = 40}"
    text = export.text.replace(empty, filled)
    assert text != export.text
    prove(start(["JobSubmitPlugins=lua"], {"job_submit.lua": text}), "asks")


def test_the_plugin_counts_what_slurm_records(start: Callable[..., Cluster], tmp_path: Path) -> None:
    slurm_source()
    build(tmp_path, Model(ASKS), log_only())
    prove(start(plugin_lines(tmp_path), {}), "asks")
