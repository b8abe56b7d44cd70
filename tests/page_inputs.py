"""What a reader of a page has before its first command: the files of a cluster, as the page says how to print them."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from policyfactory.workload.swf.files import read_swf

__all__ = ["INPUTS"]


def _sacct() -> None:
    header = (
        "JobIDRaw|JobID|UID|User|GID|Account|Partition|QOS|State|Submit|Eligible|Start|End|ElapsedRaw|TimelimitRaw|"
        "ReqCPUS|AllocCPUS|ReqNodes|NNodes|AllocNodes|ReqTRES|Suspended|Flags"
    )
    lines = [header]
    for job in range(1, 61):
        submit = 1772323200 + 600 * job
        start, run, size = submit + 37 * (job % 11), 300 + 97 * (job % 13), 4 * (1 + job % 4)
        state = "CANCELLED by 1003" if job % 20 == 7 else "COMPLETED"
        limit = 60 if job % 3 else 240
        lines.append(
            f"{job}|{job}|{1000 + job % 5}|user{job % 5}|100|physics|batch|normal|{state}|{submit}|{submit}|{start}|"
            f"{start + run}|{run}|{limit}|{size}|{size}|1|1|1|billing={size},cpu={size},node=1|00:00:00|SchedMain"
        )
    Path("sacct.txt").write_text("\n".join(lines) + "\n")


def _table_of_gpu_jobs() -> None:
    rows = ["id,submitted,began,ended,gpus"]
    for job in range(1, 61):
        submit = 1772323200 + 600 * job
        start = submit + 37 * (job % 11)
        rows.append(f"{job},{submit},{start},{start + 300 + 97 * (job % 13)},{1 + job % 8}")
    Path("gpus.csv").write_text("\n".join(rows) + "\n")


def _accounting() -> None:
    _sacct()
    _table_of_gpu_jobs()


def _site() -> None:
    Path("slurm.conf").write_text("""
ClusterName=small
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
PriorityType=priority/multifactor
PriorityWeightAge=1000
PriorityWeightFairshare=10000
AccountingStorageEnforce=associations,limits,qos
SchedulerParameters=bf_window=2880,bf_continue,defer
Licenses=matlab:10
NodeName=DEFAULT CPUs=48 RealMemory=192000
NodeName=cn[01-16]
NodeName=gpu[1-2] Gres=gpu:a100:4 Weight=10
PartitionName=DEFAULT MaxTime=2-00:00:00 DefaultTime=60
PartitionName=batch Nodes=cn[01-16] Default=YES
PartitionName=gpu Nodes=gpu[1-2] PriorityTier=10
PartitionName=debug Nodes=cn[01-02] MaxTime=30 DefaultTime=30 PriorityTier=100
""")
    Path("qos.txt").write_text("""Name|Priority|GrpTRES|MaxTRESPU|MaxJobsPU|MaxWall
normal|0||||
long|0|cpu=384||2|7-00:00:00
""")
    Path("dump.cfg").write_text("""Cluster - 'small':Fairshare=1:QOS='normal'
Parent - 'root'
Account - 'physics':Fairshare=60
Account - 'biology':Fairshare=40:GrpTRES=cpu=384
Parent - 'physics'
User - 'ada':Fairshare=1:QOS='+long'
""")
    jobs = (
        f"{n} {n * 60} 0 600 {1 << n % 7} -1 -1 {1 << n % 7} 3600 -1 1 {n % 5} 1 -1 1 1 -1 -1\n" for n in range(1, 101)
    )
    Path("log.swf").write_text("; MaxProcs: 864\n" + "".join(jobs))


def _pbs() -> None:
    log = read_swf("traces/KTH-SP2-1996-2.1-cln.swf.gz")
    lines = []
    for n in range(4000):
        submit = 1_767_225_600 + int(log.submit[n])
        start = submit + int(log.wait[n])
        end = start + int(log.run_time[n])
        p, q = int(log.requested_time[n]), int(log.requested[n])
        job = (
            f"user=u{log.user[n]} group=kth project=_pbs_project_default jobname=run queue=workq "
            f"ctime={submit} qtime={submit} etime={submit} start={start} "
            f"exec_host=n1/0*{q} exec_vnode=(n1:ncpus={q}) "
            f"Resource_List.ncpus={q} Resource_List.select=1:ncpus={q} "
            f"Resource_List.walltime={p // 3600:02}:{p // 60 % 60:02}:{p % 60:02}"
        )
        lines += [
            (submit, "Q", n, "queue=workq"),
            (start, "S", n, job),
            (end, "E", n, f"{job} session=1 end={end} Exit_status=0 run_count=1"),
        ]
    lines.sort(key=lambda line: line[0])
    Path("accounting").mkdir()
    for name, part in [("20260101", lines[:6000]), ("20260201", lines[6000:])]:
        with Path("accounting", name).open("w") as file:
            for when, kind, n, text in part:
                stamp = time.strftime("%m/%d/%Y %H:%M:%S", time.gmtime(when))
                file.write(f"{stamp};{kind};{n}.server;{text}\n")
    Path("qstat.json").write_text("""{"Jobs": {
  "901.server": {"Job_Owner": "ada@login", "job_state": "Q", "ctime": "Mon Mar  2 10:00:00 2026",
                 "Resource_List": {"ncpus": 64, "walltime": "24:00:00"}},
  "902.server": {"Job_Owner": "bela@login", "job_state": "Q", "ctime": "Mon Mar  2 11:30:00 2026",
                 "Resource_List": {"ncpus": 1, "walltime": "00:30:00"}}
}}""")


def _queue() -> None:
    Path("queue.csv").write_text("""JOBID,PRIORITY,SUBMIT_TIME,TIME_LIMIT,CPUS,USER
1207,40,1769990400,2-00:00:00,64,ann
1213,30,1769994000,1:00:00,1,bob
1214,20,1769994060,10:00,16,eve
1215_[0-3],10,1769997600,5:00,2,ann
1220,0,1769997600,5:00,2,ann
""")


# By the name of the page; each writes into the current folder.
INPUTS: dict[str, Callable[[], None]] = {"import": _accounting, "site": _site, "schedulers": _pbs, "export": _queue}
