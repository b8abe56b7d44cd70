"""Small genuine inputs of every reader, from which the hostile ones are made."""

# ruff: noqa: E501 (lines of logs are as long as they are)

from __future__ import annotations

import gzip
import json

from policyfactory.prediction.features import NAMES

__all__ = [
    "FILETXT", "FORMS", "FORMULAS", "MANIFEST", "MODEL", "PACKED", "PBS", "PREDICTIONS", "PREDICTORS", "PROTOCOLS",
    "QUEUES", "SACCT", "SACCT_JSON", "SCORES", "SHADOW", "SWF", "TEXTS",
]  # fmt: skip

_ROW = "{id} {submit} {wait} {run} {q} -1 -1 {q} {request} -1 1 3 1 -1 1 -1 -1 -1\n"
_HEADER = (
    "; Version: 2.2\n; Computer: Ada\n; UnixStartTime: 1700000000\n; TimeZoneString: Europe/Berlin\n; MaxProcs: 64\n"
    "; MaxNodes: 64\n; Note: cleaned (3 jobs removed)\n;    and more\n"
)
_JOBS = [
    _ROW.format(id=number, submit=submit, wait=wait, run=run, q=q, request=request)
    for number, (submit, wait, run, q, request) in enumerate(
        [(0, 5, 100, 4, 200), (30, 0, 0, 64, 60), (30, 100, 3600, 1, 3600), (9000, 7, 50.25, 8, -1)], start=1
    )
]
_PARTS = "5 9100 1 10 2 -1 -1 2 60 -1 2 1 1 -1 1 -1 -1 -1\n6 9100 1 20 2 -1 -1 2 60 -1 3 1 1 -1 1 -1 -1 -1\n"
SWF = [
    (_HEADER + "".join(_JOBS)).encode(),
    (_HEADER + "".join(_JOBS) + "\n; a comment\n" + _PARTS).replace("\n", "\r\n").encode(),
    b"\xef\xbb\xbf" + "".join(_JOBS).encode(),
]

_COLUMNS = (
    "JobIDRaw|JobID|UID|GID|Account|Partition|QOS|State|Submit|Eligible|Start|End|ElapsedRaw|TimelimitRaw|ReqCPUS|"
    "AllocCPUS|ReqNodes|NNodes|AllocNodes|ReqTRES|Suspended|JobName|SubmitLine|Cluster"
)
_LINES = [
    (
        "11|11|1000|100|physics|batch|normal|COMPLETED|1700000000|1700000000|1700000020|1700000120|100|60|4|4|1|1|1|"
        "billing=4,cpu=4,mem=1000M,node=1|00:00:00|relax|sbatch -t 60 x.sh|one"
    ),
    "11.batch|11.batch||||||COMPLETED|1700000000|1700000000|1700000020|1700000120|100||4|4|1|1|1||00:00:00|batch||one",
    (
        "12_[1-9%2]|12_[1-9%2]|1001|100|chem|batch,long|normal|PENDING|1700000050|1700000050|Unknown|Unknown|0|UNLIMITED|"
        "2|2|1|1|0|cpu=2|00:00:00|an|array|sbatch --array=1-9%2|one"
    ),
    (
        "13+1|13+1|1002|100|chem|long|normal|CANCELLED by 0|2026-10-25T02:30:00|2026-10-25T02:30:00|2026-10-25T02:40:00|"
        "2026-10-25T03:10:00|1800|Partition_Limit|2K|2048|1|1|1|cpu=2048,node=1|00:10:00|het||one"
    ),
]
SACCT = ["\n".join([_COLUMNS, *_LINES, ""]).encode(), "\n".join([_COLUMNS, *_LINES]).replace("|", "\x1f").encode()]

_JOB = {
    "account": "physics", "allocation_nodes": 2, "association": {"user": "anna"}, "cluster": "one",
    "array": {"job_id": 12, "task": "1-3", "task_id": None}, "het": {"job_id": 0, "job_offset": None},
    "time": {"elapsed": 7, "eligible": 1_700_000_000, "end": 1_700_000_027, "start": 1_700_000_020,
             "submission": 1_700_000_000, "suspended": 0, "limit": {"set": True, "infinite": False, "number": 5}},
    "group": "users", "job_id": 11, "name": "a|b", "partition": "batch", "qos": "normal",
    "required": {"CPUs": 4, "memory": 0}, "state": {"current": ["COMPLETED"], "reason": "None"}, "steps": [{}],
    "submit_line": "sbatch -t 5 x",
    "tres": {"allocated": [{"type": "cpu", "count": 8}, {"type": "node", "count": 2}],
             "requested": [{"type": "cpu", "count": 4}, {"type": "node", "count": 1}]},
    "user": "anna",
}  # fmt: skip
SACCT_JSON = [json.dumps({"meta": {"a": [1, {}]}, "errors": [], "jobs": [_JOB, _JOB | {"job_id": 14}]}).encode()]

_E = (
    'user=ada group=physics account="grant 7" jobname=relax queue=workq ctime=1772445600 qtime=1772445600 '
    "etime=1772445605 start=1772445630 exec_host=c1/0*8+c2/0*8 exec_vnode=(c1:ncpus=8:mem=4194304kb)+(c2:ncpus=8) "
    "Resource_List.ncpus=16 Resource_List.nodect=2 Resource_List.select=2:ncpus=8:mem=4gb "
    "Resource_List.walltime=01:00:00 session=4711 end=1772446230 Exit_status=0 resources_used.walltime=00:09:57"
)
_TORQUE = (
    "user=bela group=chem queue=batch ctime=1772445600 start=1772445700 exec_host=n11/0-15+n10/0-15 "
    "Resource_List.nodes=2:ppn=16 Resource_List.walltime=120:00:00 end=1772446000 Exit_status=271"
)
_AT = "03/02/2026 10:{}:00"
PBS = [
    "\n".join([
        f"{_AT.format('00')};Q;7.srv;queue=workq", f"{_AT.format('00')};Q;8[].srv;queue=workq array_indices=0-9:2",
        f"{_AT.format('01')};S;7.srv;{_E}", f"{_AT.format('02')};z;7.srv;requestor=x",
        f"{_AT.format('03')};r;7.srv;requestor=x", f"{_AT.format('10')};E;7.srv;{_E}",
        f"{_AT.format('11')};R;8[2].srv;{_E}", f"{_AT.format('11')};D;8[].srv;requestor=y",
        f"{_AT.format('12')};E;9.srv;{_TORQUE}", f"{_AT.format('13')};L;license;x", "",
    ]).encode()
]  # fmt: skip

FILETXT = [
    (
        b"JobId=17 UserId=ada(1000) GroupId=physics(100) Name=relax JobState=COMPLETED Partition=batch TimeLimit=90 "
        b"StartTime=2026-03-02T10:00:30 EndTime=2026-03-02T10:20:30 NodeList=n[1-2] NodeCnt=2 ProcCnt=32 WorkDir=/data/run "
        b"ReservationName= Tres=cpu=20,mem=4G,node=2,billing=20 Account=grant7 QOS=normal WcKey= Cluster=c "
        b"SubmitTime=2026-03-02T10:00:00 EligibleTime=2026-03-02T10:00:10 ArrayJobId=16 ArrayTaskId=1 DerivedExitCode=0:0\n"
    )
]

SCORES = [
    b"p,q,r,score,stderr,tuple\n10,1,0,0.5,0.01,0\n3600,64,12.5,0.5,nan,0\n1e5,2,7,1,0.001,1\n",
    b"10,1,0,0.25\n20,2,5,0.75\n5,1,0,1\n",
]

_MODEL = {
    "kind": "policyfactory-model", "schema_version": 1, "written_by": "policyfactory 0.1.0", "name": "F1",
    "formula": "log10(p)*q + 870*log10(r)", "latex": "x", "order": "lower runs first",
    "units": {"p": "s"}, "static": True, "description": "words", "source": "a paper",
    "epoch": {"rule": "fixed", "unix_time": 1_700_000_000}, "threshold_s": 3600.5,
    "coefficients": [{"name": "c1", "term": "log10(r)", "value": 870.0, "stderr": None, "unit": "1/s"}],
    "diagnostics": {"warnings": ["the fit is poor"]}, "provenance": {"command": "policyfactory fit", "seed": 1},
}  # fmt: skip
_NETWORK = {
    "kind": "policyfactory-network", "schema_version": 1, "written_by": "policyfactory 0.1.0", "name": "NET",
    "order": "the highest output runs first", "mode": "paper", "parameters": 13, "description": "words", "source": "here",
    "inputs": ["log10(w + 10) - 1", "min(1, max(0, f - q + 1))"],
    "layers": [
        {"weights": [[0.5, -1, 1e-3], [2, 0.25, -7.5]], "biases": [0, 0.1, -0.1]},
        {"weights": [[1], [-1], [3.0]], "biases": [0.5]},
    ],
    "diagnostics": {"warnings": ["stopped early"]}, "provenance": {"command": "policyfactory train", "seed": 1},
}  # fmt: skip
MODEL = [json.dumps(_MODEL).encode(), json.dumps(_MODEL, indent=1).encode(), json.dumps(_NETWORK).encode()]

_TREES = {
    "feature": [0, -1, -1, 2, 1, -1, -1, -1], "threshold": [0.5, 1, 2.0, -0.001, 0.25, -1.0, 0.1, 3],
    "left": [1, 0, 0, 4, 5, 0, 0, 0], "right": [2, 0, 0, 7, 6, 0, 0, 0], "roots": [0, 3], "base": -0.5,
}  # fmt: skip
_PREDICTOR = {
    "kind": "policyfactory-predictor", "schema_version": 1, "written_by": "policyfactory 0.1.0", "feature_set": 1,
    "features": list(NAMES), "predicts": {"shortness": "words"}, "jobs": 500, "provenance": {"seed": None},
    "forests": {"shortness": _TREES, "share": _TREES, "tail": {name: [] for name in _TREES} | {"base": 0}},
}  # fmt: skip
PREDICTORS = [json.dumps(_PREDICTOR).encode(), json.dumps(_PREDICTOR, indent=2, sort_keys=True).encode()]

PROTOCOLS = [
    b"""schema_version = 1
name = "small"
title = "A title"
source = \"\"\"two
lines\"\"\"
about = "words"
seed = 7
[logs.model]
lublin = { processors = 64, jobs = 100, seed = 1 }
tsafrir = { max_estimate = "18h", seed = 2 }
[logs.file]
file = "LOG.swf.gz"
preset = "default"
estimate_missing = "runtime"
machine = 64
[[experiments]]
name = "one"
policies = ["FCFS", "SPF", "MINE"]
formulas = { MINE = "log10(p)*q + 870*log10(r)" }
metrics = ["mean_bsld", "max_wait"]
logs = ["model"]
windows = "sc17:10x15d"
load = 1.1
estimates = "noisy:0.2"
analyses = ["groups"]
[experiments.rules]
backfill = "easy"
decide_by = "request"
threshold = "20h"
overrun = "kill"
[[claims]]
text = "SPF is better than FCFS"
better = ["SPF"]
than = ["FCFS"]
metric = "mean_bsld"
"""
]

QUEUES = [
    (
        b"JOBID,PRIORITY,SUBMIT_TIME,TIME_LIMIT,CPUS,USER\n9,1,1795294232,UNLIMITED,1,ann\n8,4,1795294231,1:00:00,1,bob\n"
        b"7_[0-3,7%2],3,1795294232,5:00,2,ann\n6,2,1795294230,2-02:00:00,17,eve\n10,0,1795294232,3:00,1,ann\n"
    ),
    b'User;limit;job;Processors;submit\r\n"an;n";2h30m;a 1;64;2026-01-31T08:00:00Z\r\n\r\nbob;90;b;1;5\r\n',
]

FORMULAS = [
    b"log10(p)*q + 870*log10(r)", b"-(w/p)**3*q", b"p/sqrt(q) - max(min(p, 3600), q, exp(-r))/abs(m)",
    b"a*p**b*q + c*log10(r)", b"8e-6*log10(p)*q + 0.007*log10(r) + 0.02", b"-2**-p**2 - -q*(p + 1)**2*(p + q)**0.5",
    b"-ln(s) + ln(e) + 0.4*ln(q)", b"e90*(1 + user_waiting)/(1 + user_running) - 1e3*s",
]  # fmt: skip
FORMS = [
    b"a*p**b*q + c*log10(r)",
    b"a*log10(p)*q + b*r",
    b"(a + b*p)**2",
    b"a*sqrt(p*q)/(b*q)",
    b"c1*p - c2*-q*3e2",
    b"e*p**s + c*q",
]
TEXTS = [
    *(
        b"2h30m",
        b"1-00:00:00",
        b"90",
        b"18h",
        b"batch=24h,long=7d",
        b"p=1h q=64 r=2d w=30m m=128",
        b"e=2h s=0.5 e90=9 user_waiting=3",
        b"inf",
        b"PT1H",
    ),
    *(b"2026-03-01T12:00:00", b"2026-03-01", b"Europe/Berlin", b"1700000000", b"2K", b"cpu=4,mem=1000M,node=1"),
]
PREDICTIONS = [
    b"job_id,prediction\n1,100\n2,0\n3,3000.5\n4,1e3\n",
    b"job_id, user, prediction\n4,a,1\n3,b,2\n2,,3\n1,x,4\n",
]
MANIFEST = [b'{"outputs": {"table.csv": "0123"}, "parameters": {"origin": "words"}, "kind": "score-table"}']
PACKED = [gzip.compress(SWF[0], mtime=0), gzip.compress(SWF[0], mtime=0) + gzip.compress(SWF[1], mtime=0) + b"\0" * 9]

SHADOW = [
    (
        b"[2026-01-01T00:00:00.000] sched: other\n[2026-01-01T00:00:00.100] lua: policyfactory-shadow: policy=f1 at=1767225600 "
        b"job=- user=1000 submit=1767225600 time=3600 processors=4 score=12.5 number=1999 present=- us=3\n"
        b"policyfactory-shadow: policy=- at=1767225660 job=12_3 user=- submit=1767225600 time=-1 processors=4 score=inf "
        b"number=-inf present=4294901759 us=-\n"
    )
]
