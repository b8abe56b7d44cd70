"""A job that is not there yet, in the words of sbatch, and what else its user could ask for."""

from __future__ import annotations

import argparse
import dataclasses
import math
import re
import shlex
from collections.abc import Iterator
from typing import NoReturn

from policyfactory.core.errors import UsageError
from policyfactory.core.text import counted, did_you_mean, format_duration, shortened
from policyfactory.site.fits import lay_out
from policyfactory.site.model import Partition, Site
from policyfactory.workload.accounting.sacct import MB, gres_gpus
from policyfactory.workload.accounting.times import duration
from policyfactory.workload.snapshot import QueuedJob, Snapshot

NEW = "new"  # the name of the job
_PARTITIONS = 3  # other ones that are tried
_LARGEST = 1 << 40  # of any quantity: beyond all machines
_MOST = 10_000_000  # nodes, tasks, processors of a task
_SIZE = re.compile(r"(\d{1,12})([KMGT]?)B?", re.ASCII | re.IGNORECASE)
_GPUS = re.compile(r"(?:[\w.-]{1,80}:)?\d{1,6}|[A-Za-z][\w.-]{0,80}", re.ASCII)


class _Options(argparse.ArgumentParser):
    """Reads options of sbatch; says what is wrong without ending the command."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(
            f"--submit: {message.rstrip()}; give options of sbatch: -N 16 -t 12:00:00 -p batch (-N, -n, -c, -t, -p, "
            "-q, -A, --ntasks-per-node, --mem, --mem-per-cpu, --gres, -G, --gpus-per-node, --exclusive)"
        )


def _options() -> _Options:
    parser = _Options(prog="sbatch", add_help=False, allow_abbrev=False, exit_on_error=False)
    for flags in (("-n", "--ntasks"), ("-c", "--cpus-per-task"), ("--ntasks-per-node",)):
        parser.add_argument(*flags, type=int)
    parser.add_argument("-N", "--nodes", type=_node_counts, default=(0, 0))
    texts = ("-t", "--time"), ("-p", "--partition"), ("-q", "--qos"), ("-A", "--account"), ("--mem",)
    for flags in (*texts, ("--mem-per-cpu",), ("--gres",), ("-G", "--gpus"), ("--gpus-per-node",)):
        parser.add_argument(*flags)
    parser.add_argument("--exclusive", action="store_true")
    # What does not change when a job starts.
    for flags in (("-J", "--job-name"), ("-o", "--output"), ("-e", "--error"), ("-D", "--chdir"), ("--comment",)):
        parser.add_argument(*flags, dest="ignored")
    for flag in ("--mail-type", "--mail-user", "--export", "--requeue", "--no-requeue", "--parsable"):
        parser.add_argument(flag, dest="ignored", nargs="?")
    return parser


def _node_counts(text: str) -> tuple[int, int]:
    """Return the least and the most nodes of an option, at least 1: ``4``, ``2-4``."""
    low, _, high = text.partition("-")
    counts = [int(part) if part.isdecimal() and part.isascii() and len(part) < 9 else 0 for part in (low, high or low)]
    if not 1 <= counts[0] <= counts[1] <= _MOST:
        raise argparse.ArgumentTypeError(f"{shortened(text)!r} is no number of nodes; as sbatch has it: 4, 2-4")
    return counts[0], counts[1]


def submitted(text: str, snapshot: Snapshot, site: Site | None, user: str = "", account: str = "") -> QueuedJob:
    """Return the job that somebody would submit now.

    Parameters
    ----------
    text : str
        Options of sbatch: ``-N 16 -t 12:00:00 -p batch``.
    snapshot : Snapshot
    site : Site or None
        Whose default partition is taken where none is named.
    user : str
        Who submits it; empty: nobody knows.
    account : str
        Where none is named; empty: not known, and no limit of an account holds.

    Raises
    ------
    UsageError
        If an option is not known, or its value none.
    """
    try:
        words = shlex.split(text[:2000])
        given = _options().parse_args(words)
    except (argparse.ArgumentError, ValueError) as error:
        _options().error(shortened(str(error), 100))
    counts = (given.ntasks, given.cpus_per_task, given.ntasks_per_node)
    if not words or any(count is not None and not 1 <= count <= _MOST for count in counts):
        _options().error(f"{shortened(text)!r}: numbers of nodes, tasks and CPUs are at least 1")
    (nodes, most_nodes), partitions = given.nodes, _partitions(given.partition, site)
    if site is None and nodes and not given.ntasks:
        _options().error(f"{shortened(text)!r}: without --site nobody says what a node has; give -n, or --site")
    partition = partitions[0] if partitions else None
    _check_task(given.cpus_per_task or 1, partitions, site)
    tasks = given.ntasks or max(nodes, 1) * (given.ntasks_per_node or 1)
    cores = min(tasks * (given.cpus_per_task or 1), _LARGEST)
    limit = None if given.time is None else duration(given.time)
    if given.time is not None and not limit:
        _options().error(f"{shortened(given.time)!r} is no time; as sbatch has it: 30, 12:00:00, 2-0")
    if limit is None and partition is not None:
        usual = min(partition.default_time, partition.max_time)
        limit = round(usual) if math.isfinite(usual) else None
    memory = _memory(given.mem, max(nodes, 1)) if given.mem else _memory(given.mem_per_cpu, cores)
    if memory == 0 and given.mem and partition is not None:
        # All memory of its nodes.
        memory = max(nodes, 1) * _least_memory(partition, site)
    gpus = (gres_gpus(given.gres or "") or _gpus(given.gpus_per_node)) * max(nodes, 1) or _gpus(given.gpus)
    return QueuedJob(
        *(NEW, 1 + max((job.number for job in snapshot.jobs), default=0), "waiting", user, given.account or account),
        *(given.qos or "", tuple(its.name for its in partitions) or ("all",), snapshot.taken),
        eligible=snapshot.taken,
        limit=limit,
        nodes=nodes,
        most_nodes=most_nodes,
        cores=cores,
        memory=memory or None,
        gpus=gpus,
        exclusive=given.exclusive,
    )


def _partitions(names: str | None, site: Site | None) -> list[Partition]:
    """Return partitions of a site by their names, with commas between; without any the default one."""
    if site is None:
        return []
    known = {its.name: its for its in site.partitions}
    if names is None:
        return [next((its for its in site.partitions if its.default), site.partitions[0])]
    for name in names.split(","):
        if name not in known:
            near = did_you_mean(name, known)
            _options().error(f"site {site.name} has no partition {shortened(name)!r}; {near}".rstrip("; "))
    return [known[name] for name in dict.fromkeys(names.split(","))]


def _check_task(cores: int, partitions: list[Partition], site: Site | None) -> None:
    """Refuse a task that is larger than any node: its processors are on one."""
    if site is None:
        return
    layout, numbers = lay_out(site), {its.name: number for number, its in enumerate(site.partitions)}
    largest = max(int(layout.cores[layout.members[numbers[its.name]]].max(initial=0)) for its in partitions)
    if cores > largest:
        where = ",".join(its.name for its in partitions)
        _options().error(f"-c {cores:,}: the nodes of partition {where} have {largest:,} processors at most")


def _memory(text: str | None, many: int) -> float | None:
    if text is None:
        return None
    match = _SIZE.fullmatch(text)
    amount = float(match[1]) * MB[match[2].upper()] * many if match else math.inf
    if amount > _LARGEST:
        _options().error(f"{shortened(text)!r} is no memory; as sbatch has it: 4000, 16G")
    return amount


def _least_memory(partition: Partition, site: Site | None) -> float:
    """Return the least memory (MB) of a partition's nodes; 0 if it is not counted."""
    if site is None:
        return 0.0
    layout = lay_out(site)
    memory = layout.memory[layout.members[site.partitions.index(partition)]]
    return float(memory.min()) if len(memory) else 0.0


def _gpus(text: str | None) -> int:
    """Return the GPUs of ``2``, ``a100:2`` or several of these."""
    parts = [] if text is None else text.split(",")
    if not all(_GPUS.fullmatch(part) for part in parts):
        _options().error(f"{shortened(text or '')!r} is no number of GPUs; as sbatch has it: 2, a100:2")
    return sum(gres_gpus(f"gpu:{part}") or 0 for part in parts)


def others(job: QueuedJob, site: Site | None) -> Iterator[tuple[str, QueuedJob]]:
    """Give what else a user could ask for, in words: half the time, half the size, other partitions that let it in.

    Parameters
    ----------
    job : QueuedJob
    site : Site or None
    """
    if job.limit and job.limit >= 120:
        half = job.limit // 2 // 60 * 60
        words = f"with {format_duration(half)} instead of {format_duration(job.limit)}"
        yield words, dataclasses.replace(job, limit=half)
    if job.nodes > 1 or (not job.nodes and job.cores > 1):
        nodes = job.nodes // 2
        cores = max(job.cores * nodes // job.nodes, 1) if job.nodes else job.cores // 2
        memory = None if job.memory is None else job.memory * cores / job.cores
        what = f"{counted(cores, 'core')} instead of {job.cores:,}"
        what = f"{counted(nodes, 'node')} instead of {job.nodes:,}" if nodes else what
        gpus = job.gpus * nodes // job.nodes if nodes else job.gpus
        changed = dataclasses.replace(job, nodes=nodes, most_nodes=nodes, cores=cores, memory=memory, gpus=gpus)
        yield f"with {what}", changed
    if site is not None:
        layout = lay_out(site)
        closed = {
            noted.name.split(" ")[0]
            for noted in site.not_modelled
            if noted.name.endswith((" AllowGroups", " DenyAccounts", " DenyQos"))
        }
        fitting = [
            its.name
            for its, members in zip(site.partitions, layout.members, strict=True)
            if its.up
            and its.name not in job.partitions
            and site.lets_in(its, job.account)
            and (not its.allowed_qos or not job.qos or job.qos in its.allowed_qos)
            and (job.limit or 0) <= its.max_time
            and not 0 < job.nodes < its.min_nodes
            and job.nodes <= min(its.max_nodes, int(members.sum()))
            and job.cores <= int(layout.cores[members].sum())
            and job.gpus <= int(layout.gpus[members].sum())
            # Where memory is counted.
            and (not (memory := layout.memory[members]).all() or (job.memory or 0.0) <= memory.sum())
            and f"PartitionName={its.name[:40]}" not in closed
        ]
        for name in fitting[:_PARTITIONS]:
            yield f"in partition {name}", dataclasses.replace(job, partitions=(name,))
