"""The PBS formula orders jobs as the policy does, in a re-implementation of PBS's evaluation."""

from __future__ import annotations

import dataclasses
import math
import os
import shlex
import subprocess
import sys
import time
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from naive import pbs as server
from naive.exports import POLICIES
from naive.formula import expressions, random_jobs
from policyfactory.core.errors import ExportError
from policyfactory.exports.content import TARGETS, Export, ExportSite
from policyfactory.exports.exported import preview
from policyfactory.exports.expressible import left_out, prepare
from policyfactory.exports.pbs import (
    NEVER_RUNS,
    RESOURCE,
    Evaluator,
    formula,
    misplaced,
    needs_hook,
    power_of_two,
)
from policyfactory.exports.queue import Queue
from policyfactory.policy.policy import Epoch, Policy
from policyfactory.policy.store import CATALOGUE, Model
from refusals import refused
from support import NIGHTLY, examples

EPOCH = Epoch("fixed", 1_767_225_600)
NOW = 20_000_000  # seconds since the epoch at which the queue is sorted


def queue(count: int, seed: int) -> list[dict[str, float]]:
    """Waiting jobs at NOW: what they waited follows from when they were submitted."""
    jobs = random_jobs(count, seed)
    for job in jobs:
        job["r"] = max(job["r"], 1.0)
        job["w"] = NOW - job["r"]
        job["m"] = 1024.0
    return jobs


def in_pbs(job: dict[str, float]) -> dict[str, float]:
    resources = {"walltime": int(job["p"]), "ncpus": int(job["q"]), "eligible_time": int(job["w"])}
    if "n" in job:  # PBS has memory in KB
        resources |= {"nodect": int(job["n"]), "mem": int(job["mem"]) * 1024, "ngpus": int(job["g"])}
    return {**dict.fromkeys(server.NUMERIC, 0), **resources, RESOURCE: int(job["r"])}


def exported(policy: Policy) -> Policy:
    return prepare(Model(dataclasses.replace(policy, epoch=EPOCH)), processors=1024).policy


def made(policy: Policy, processors: int | None = None) -> Export:
    return TARGETS["pbs"].make(Model(policy), ExportSite(processors=processors))


JOBS = queue(1000, seed=21)
BASE = [policy for policy in POLICIES if policy.name not in {"All of it", "powers", "no value", "overflow"}]
ASKING = [
    Policy("asks", "p*mem + 1e6*n + 1e7*g"),
    Policy("each", "log10(mem + 1)*q/n + sqrt(g)*w/1e3 - max(n, g, mem/2000)"),
    Policy("root", "n**0.5*mem**2*p - g*r"),
    Policy("memory", "p*mem/n"),
    Policy("hooked", "log10(r)*mem + log2(n)*1e4"),
]


@pytest.mark.parametrize("policy", [*BASE, *ASKING], ids=lambda policy: policy.name)
def test_jobs_in_the_policys_order(policy: Policy) -> None:
    jobs = JOBS if NIGHTLY else JOBS[::4]
    policy = exported(policy)
    text = formula(policy)
    server.validate(text)
    p, q, r, w = (np.array([job[name] for job in jobs]) for name in "pqrw")
    asked = [[job[name] for job in jobs] for name in ("n", "mem", "g")]
    scores = policy.scores(p, q, r, w, 1024, asked=asked)
    values = [server.evaluate(text, in_pbs(job)) for job in jobs]
    assert server.SILENT_ZERO not in values
    order = np.argsort(scores, kind="stable")
    ranked = np.array(values, dtype=float)[order]
    # -eligible_time stands for r = now - eligible_time: the constant in between takes last bits from sums.
    slack = 1e-12 * np.abs(ranked).max() if "r" in policy.variables and not needs_hook(policy) else 0.0
    falling = -np.diff(ranked)
    # Jobs that tie at minus infinity may come in any order.
    tied = np.isinf(scores[order][1:]) & (scores[order][1:] == scores[order][:-1])
    assert (falling[~tied] >= -slack).all()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("FCFS", "eligible_time"),
        ("LCFS", "-eligible_time"),
        ("SPF", "-(walltime or 31536000)"),
        ("LAF", "(walltime or 31536000)*ncpus"),
        ("SRF", "-(walltime or 31536000)/max(ncpus, 1)"),
        ("LEXP", "(eligible_time + (walltime or 31536000))/(walltime or 31536000)"),
        ("WFP3", "(eligible_time/(walltime or 31536000))**3*ncpus"),
        ("UNICEF", "(eligible_time + 1e-20)/(log2(max(ncpus, 1))*(walltime or 31536000) or 1e-30)"),
        ("F1", "-(log10(walltime or 31536000)*ncpus + 870*log10(max(pf_submit, 1))) if pf_submit > 0 else -2e9"),
        ("F2", "-(sqrt(walltime or 31536000)*ncpus + 25600*log10(max(pf_submit, 1))) if pf_submit > 0 else -2e9"),
        ("LIN-SYNTHETIC", "-(0.0324 + 1.15e-7*(walltime or 31536000) + 2.61e-5*ncpus - 1.57e-7*(-eligible_time))"),
    ],
)
def test_golden_formulas(name: str, text: str) -> None:
    assert formula(dataclasses.replace(CATALOGUE[name], epoch=EPOCH), 1024) == text


@pytest.mark.parametrize(
    ("text", "exported_as"),
    [
        ("p*mem", "-(walltime or 31536000)*(mem/1024)/34359738368"),
        ("q/n", "-ncpus/max(nodect, 1)"),
        ("g", "-ngpus"),
        ("log2(n)", "-log2(max(nodect, 1))"),
        ("log10(mem)", "-log10(max(mem/1024, 1e-300))"),
        ("1/g", "-1/(ngpus or 1e-30)/1.1805916207174113e21"),
    ],
)
def test_golden_formulas_of_what_a_job_asks_for(text: str, exported_as: str) -> None:
    assert formula(Policy("asks", text), 1024) == exported_as


def test_a_job_that_asks_for_nothing_has_a_node_and_neither_memory_nor_gpus() -> None:
    export = made(Policy("asks", "p*mem + 1e6*n + 1e7*g"), 1024)
    text = formula(Policy("asks", "p*mem + 1e6*n + 1e7*g"), 1024)
    bare = {**dict.fromkeys(server.NUMERIC, 0), "walltime": 60, "ncpus": 2}
    assert server.evaluate(text, bare) == server.evaluate(text, {**bare, "nodect": 1}) != 0
    # A server without the resource refuses the formula, and the file says what to do.
    with pytest.raises(NameError, match="ngpus"):
        server.validate(text, server.NUMERIC - {"ngpus"})
    assert any("create resource ngpus type=long" in limit for limit in export.limits)
    assert export.priorities is None
    assert not any("place" in limit and "shapes of jobs" in limit for limit in export.limits)


def test_one_processor_goes_first_under_unicef() -> None:
    text = formula(CATALOGUE["UNICEF"])
    narrow, wide = ({"p": 10, "q": q, "r": 1, "w": w} for q, w in ((1, 0), (2, 10**7)))
    assert server.evaluate(text, in_pbs(narrow)) > server.evaluate(text, in_pbs(wide))


def test_a_job_without_walltime_does_not_become_zero_silently() -> None:
    for policy in BASE:
        text = formula(exported(policy))
        for job in (
            {"p": 0, "q": 0, "r": 0, "w": 0},
            {"p": 0, "q": 4, "r": 5, "w": 9},
            {"p": 9, "q": 1, "r": 1, "w": 0},
        ):
            assert server.evaluate(text, in_pbs(job)) != server.SILENT_ZERO, text
    # Without the guard it would be, and 0 is before every job of a negative scale.
    assert server.evaluate("-log10(walltime)*ncpus", in_pbs({"p": 0, "q": 4, "r": 5, "w": 9})) == server.SILENT_ZERO


@pytest.mark.parametrize("name", ["SPF", "SAF", "F1", "F2", "F3", "F4", "LIN-SYNTHETIC"])
def test_a_job_without_walltime_runs_after_those_that_say_when_they_end(name: str) -> None:
    text = formula(dataclasses.replace(CATALOGUE[name], epoch=EPOCH))
    short, long, none = (in_pbs({"p": p, "q": 4, "r": 1000, "w": 10}) for p in (60, 10**6, 0))
    assert server.start_order(text, [none, long, short]) == [2, 1, 0]


def test_a_job_that_the_hook_did_not_see_runs_last() -> None:
    """Its missing resource is 0, and log10 of that as 0 would have been first."""
    hooked = [policy for policy in map(exported, BASE) if needs_hook(policy)]
    assert len(hooked) > 5
    jobs = [in_pbs(job) for job in JOBS[:300]]
    largest = {"p": 366 * 86_400, "q": 10**7, "r": 10**9, "w": 0}
    unseen = {**jobs[0], RESOURCE: 0}
    for policy in hooked:
        text = formula(policy)
        order = server.start_order(text, [unseen, *jobs, in_pbs(largest)])
        assert (len(order), order[-1]) == (302, 0), policy.name
        late = formula(dataclasses.replace(policy, threshold=3600.0))
        values = [server.evaluate(late, {**unseen, "eligible_time": waited}) for waited in (3600, 3601)]
        assert values[0] == -2e9, policy.name
        assert values[1] > max(server.evaluate(text, job) for job in jobs), f"{policy.name}: overdue all the same"


def test_jobs_submitted_before_the_epoch_count_as_submitted_at_it() -> None:
    policy = dataclasses.replace(CATALOGUE["F1"], epoch=EPOCH)
    submit = np.array([0, EPOCH.unix_time - 5, EPOCH.unix_time, EPOCH.unix_time + 1, EPOCH.unix_time + 2])
    same = np.full(5, 60)
    waiting = Queue(tuple("abcde"), ("",) * 5, same, same, submit, None, EPOCH.unix_time + NOW)
    export = made(policy, 1024)
    assert export.priorities is not None
    result = export.priorities(waiting)
    assert len(set(result[:4])) == 1
    assert result[4] < result[3]
    assert result[:4].tolist() == pytest.approx((-policy.scores(60, 60, np.ones(4))).tolist(), rel=1e-14)


def test_no_job_falls_to_where_pbs_never_runs_it() -> None:
    """Where the site sets no threshold it is -2**31: under SAF, 1,000 processors for 25 days would wait for ever."""
    job = in_pbs({"p": 25 * 86_400, "q": 1000, "r": 1, "w": 0})
    assert server.start_order("-walltime*ncpus", [job]) == []
    biggest = in_pbs({"p": 366 * 86_400, "q": 10**7, "r": 10**9, "w": 10**8})
    for policy in BASE:
        text = formula(exported(policy))
        assert server.start_order(text, [job, biggest]) != [], text
        assert len(server.start_order(text, [job, biggest])) == 2, text
    assert formula(CATALOGUE["SAF"], 1024) == "-(walltime or 31536000)*ncpus/32"
    assert formula(CATALOGUE["SAF"]) == "-(walltime or 31536000)*ncpus/524288"
    assert [power_of_two(lowest) for lowest in (0.0, -1e9, -(2.0**30), -(2.0**30) - 1, -1e12)] == [1, 1, 1, 2, 1024]
    assert NEVER_RUNS == server.THRESHOLD


def test_what_stands_elsewhere_is_said() -> None:
    """A policy without a value for some jobs: PBS is given a number."""
    none = Policy("no value", "log10(w - p)*q")
    text = formula(none)
    wrong, tried = misplaced(none, text)
    assert 0 < wrong < tried
    (said,) = [limit for limit in made(none).limits if "stand elsewhere" in limit]
    assert left_out(none, [said]) == (said,)  # the command warns
    for policy in BASE:
        wrong, tried = misplaced(exported(policy), formula(exported(policy)))
        # 0/0 at 60 s and 2 processors (12 shapes), and at 1 processor without a wait (14): last under the policy.
        assert wrong == (26 if policy.name == "division" else 0), policy.name
        assert tried == 504
    assert not any("stand elsewhere" in limit for limit in made(CATALOGUE["SAF"]).limits)


QUT = (
    "(48 * fairshare_factor) + ((6 * fairshare_factor) * ((mem/1048576/8) + ncpus + (ngpus*32))) + "
    "(0.000278 * eligible_time) + (4 * log(max(fairshare_factor, 1e-7)))"
)
ALCF = (
    "base_score + score_boost + enable_wfp * wfp_factor * (eligible_time**2 / min(max(walltime, 21600), 43200)**3 "
    "* project_priority * nodect / total_cpus) + enable_backfill * min(backfill_max, eligible_time / backfill_factor) "
    "+ enable_fifo * eligible_time / fifo_factor"
)
ALCF_NAMES = {
    "base_score", "score_boost", "enable_wfp", "wfp_factor", "project_priority", "total_cpus", "enable_backfill",
    "backfill_max", "backfill_factor", "enable_fifo", "fifo_factor",
}  # fmt: skip


def test_the_formula_of_qut_aqua() -> None:
    """As its users read it from the server in 2026: 12 cores, 64 GiB, a GPU, ten hours, half the fair share."""
    server.validate(QUT)
    job = dict.fromkeys(server.NUMERIC, 0) | {
        "mem": 64 * 1024**2, "ncpus": 12, "ngpus": 1, "eligible_time": 36_000, "fairshare_factor": 0.5,
    }  # fmt: skip
    by_hand = 48 * 0.5 + 6 * 0.5 * (8 + 12 + 32) + 0.000278 * 36_000 + 4 * math.log(0.5)
    assert server.evaluate(QUT, job) == pytest.approx(by_hand, rel=1e-14)
    assert Evaluator(QUT).value(job) == server.evaluate(QUT, job)
    # Its guard works: somebody without any share left is last, and not at a silent zero.
    assert server.evaluate(QUT, {**job, "fairshare_factor": 0.0}) == pytest.approx(4 * math.log(1e-7) + 10.008)


def test_the_formula_of_alcf() -> None:
    """Leadership jobs gain with the square of their waiting time, at most twelve hours count as walltime."""
    with pytest.raises(NameError):
        server.validate(ALCF)
    server.validate(ALCF, server.NUMERIC | ALCF_NAMES)
    job = dict.fromkeys({*server.NUMERIC, *ALCF_NAMES}, 0) | {
        "base_score": 51, "enable_wfp": 1, "wfp_factor": 100_000, "project_priority": 25, "nodect": 128,
        "total_cpus": 560, "walltime": 21_600, "eligible_time": 7200, "backfill_factor": 84_600, "fifo_factor": 1800,
    }  # fmt: skip
    value = server.evaluate(ALCF, job)
    assert value == pytest.approx(51 + 100_000 * 7200**2 / 21_600**3 * 25 * 128 / 560, rel=1e-14)
    assert Evaluator(ALCF).value(job) == value
    slow = server.evaluate(ALCF, {**job, "walltime": 86_400})
    assert slow - 51 == pytest.approx((value - 51) / 8)
    # A site that forgets a default divides by zero: silently the base score and all else is 0.
    assert server.evaluate(ALCF, {**job, "fifo_factor": 0}) == server.SILENT_ZERO
    assert Evaluator(ALCF).value({**job, "fifo_factor": 0}) is None


def test_a_resource_that_is_no_number_is_refused() -> None:
    with pytest.raises(TypeError):
        server.validate("select + 1")
    with pytest.raises(SyntaxError):
        server.validate("walltime +")


@examples(60)
@given(expressions(depth=5, variables="pqrwm"))
def test_any_formula_is_safe_or_refused(tree) -> None:
    if not tree.variables - {"m"}:
        return
    policy = exported(Policy("any", tree.text()))
    try:
        text = formula(policy)
    except ExportError:
        refused(ExportError, "any", formula, policy)
        return
    assert not set(text) & set("'\"\\\n;$`&|")
    server.validate(text)
    evaluator = Evaluator(text)
    for job in JOBS[:30]:
        value = server.evaluate(text, in_pbs(job))
        assert value == evaluator.value(in_pbs(job)) or math.isnan(value)


@pytest.mark.parametrize(
    ("policy", "says"),
    [
        (CATALOGUE["F1"], "--epoch 2026-01-01"),
        (
            dataclasses.replace(CATALOGUE["F1"], epoch=Epoch("oldest-waiting")),
            "PBS waiting --epoch",
        ),
        (Policy("share", "q/m + p"), "PBS --processors"),
        (Policy("x", "p**q"), "variable exponent x"),
        (Policy("x", "(p**16)**16"), "PBS overflows 16"),
    ],
)
def test_what_pbs_cannot_say_is_refused_with_a_cure(policy: Policy, says: str) -> None:
    refused(ExportError, says, made, policy)


def test_r_alone_needs_neither_hook_nor_epoch() -> None:
    for rule in ("window-start", "oldest-waiting"):
        policy = dataclasses.replace(CATALOGUE["LIN-SDSC-BLUE"], epoch=Epoch(rule))
        text = made(policy).text
        assert "hook" not in text
        assert "qmgr -c 'set server eligible_time_enable = True'" in text
    assert "set server eligible_time_enable" not in made(CATALOGUE["SAF"]).text
    assert not needs_hook(Policy("x", "3*(r + p)/2 - q*p"))
    for text in ("p*r", "r**2", "min(r, 5)", "log10(r) + r", "r/p", "abs(r)", "sqrt(r)"):
        assert needs_hook(Policy("x", text)), text


def test_overdue_jobs_go_first_in_submit_order() -> None:
    policy = Policy("SAF20h", "p*q", threshold=72_000.0)
    text = formula(policy, 10_000)
    server.validate(text)
    jobs = [{"p": 1, "q": 1, "r": 1, "w": w} for w in (0, 72_000)] + [
        {"p": 10**6, "q": 10**4, "r": 1, "w": w} for w in (72_001, 72_002, 10**7, 10**7 + 1)
    ]
    values = [server.evaluate(text, in_pbs(job)) for job in jobs]
    assert values[0] == values[1] == -1 / 512
    assert values[1] < values[2] < values[3] < values[4] < values[5]
    assert all(math.isfinite(value) for value in values)
    assert not any("threshold is left out" in limit for limit in made(policy).limits)


@pytest.mark.parametrize("policy", [*BASE, Policy("SAF20h", "p*q", threshold=72_000.0)], ids=lambda policy: policy.name)
def test_a_preview_sorts_as_the_scheduler_does(policy: Policy) -> None:
    """The numbers of the preview, and the order in which the re-implementation starts the jobs."""
    policy = exported(policy)
    jobs = sorted(JOBS[:200], key=lambda job: job["r"])
    now = EPOCH.unix_time + NOW
    waiting = Queue(
        job=tuple(f"{n}.srv" for n in range(len(jobs))),
        user=("ada",) * len(jobs),
        p=np.array([int(job["p"]) for job in jobs]),
        q=np.array([int(job["q"]) for job in jobs]),
        submit=np.array([EPOCH.unix_time + int(job["r"]) for job in jobs]),
        priority=None,
        now=now,
    )
    export = made(policy, 1024)
    assert export.priorities is not None
    result = export.priorities(waiting)
    text = formula(policy, 1024)
    assert result.tolist() == [server.evaluate(text, in_pbs(job)) for job in jobs]
    shown = preview(export, policy, waiting)
    assert shown.order.tolist() == server.start_order(text, [in_pbs(job) for job in jobs])


FAKE_QMGR = """#!{python}
import re, shutil, sys
from pathlib import Path
log, state, hook = (Path({folder!r}) / name for name in ("log", "state", "hook.py"))
def done(command):
    with log.open("a") as file:
        print(command, file=file)
    lines = [line for line in state.read_text().splitlines() if line]
    words = command.split(" ", 3)
    if words[0] == "print":
        kind = "set sched" if words[1] == "sched" else "set server"
        print(*[line for line in lines if line.startswith(kind)], sep=chr(10))
        return 0
    if words[0] == "list":
        return 0 if any(line.startswith("create " + words[1] + " " + words[2]) for line in lines) else 1
    if words[0] == "import":
        shutil.copy(command.rsplit(" ", 1)[1], hook)
        return 0
    gone = dict(set=" ".join(words[:3]) + " ", unset="set server " + words[2] + " ", delete="create hook " + words[2])
    lines = [line for line in lines if not line.startswith(gone.get(words[0], "-"))]
    if words[0] in ("set", "create"):
        lines.append(command)
    state.write_text(chr(10).join(lines) + chr(10))
    return 0
commands = sys.argv[2:] if len(sys.argv) > 1 else sys.stdin.read().splitlines()
sys.exit(max([done(command) for command in commands], default=0))
"""


# Jobs that wait are files of the folder jobs: their ctime. A job called refused cannot be altered.
FAKES = {
    "qselect": 'echo "$*" >> selected; [ ! -d jobs ] || ls jobs',
    "qstat": 'echo "Job Id: $2"; echo "    Job_Name = ctime = x"; sed "s/^/    ctime = /" "jobs/$2"',
    "qalter": 'case $3 in refused) exit 1;; esac; echo "$*" >> altered',
}


class Server:
    """A qmgr that remembers what it is asked, in a folder."""

    def __init__(self, folder: Path, *state: str) -> None:
        self.folder = folder
        (folder / "bin").mkdir()
        (folder / "log").touch()
        (folder / "state").write_text("\n".join(state) + "\n")
        qmgr = folder / "bin" / "qmgr"
        qmgr.write_text(FAKE_QMGR.format(python=sys.executable, folder=str(folder)))
        for name, text in FAKES.items():
            (folder / "bin" / name).write_text(f"#!/bin/sh\ncd {shlex.quote(str(folder))}\n{text}\n")
        for program in (folder / "bin").iterdir():
            program.chmod(0o755)

    def run(self, export: Export, *arguments: str, code: int = 0) -> str:
        script = self.folder / "set.sh"
        script.write_text(export.text)
        done = subprocess.run(
            ["/bin/sh", script, *arguments],
            cwd=self.folder,
            env={"PATH": f"{self.folder}/bin:{os.environ['PATH']}", "TMPDIR": str(self.folder)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == code, done.stderr
        return done.stderr

    @property
    def state(self) -> list[str]:
        return (self.folder / "state").read_text().split("\n")[:-1]

    @property
    def changes(self) -> list[str]:
        commands = (self.folder / "log").read_text().splitlines()
        return [command for command in commands if command.split()[0] not in {"print", "list"}]


def test_the_script_sets_the_formula_and_takes_it_back(tmp_path: Path) -> None:
    before = ['set server job_sort_formula = "ncpus + 1"', "set server eligible_time_enable = False"]
    pbs = Server(tmp_path, *before, "set server scheduling = True")
    policy = dataclasses.replace(CATALOGUE["F1"], epoch=EPOCH)
    export = made(policy)
    pbs.run(export)
    assert pbs.changes[:2] == [
        "create resource pf_submit type=float",
        'create hook pf_submit event="queuejob,modifyjob"',
    ]
    assert pbs.changes[2].startswith("import hook pf_submit application/x-python default ")
    assert pbs.changes[3] == f'set server job_sort_formula = "{formula(policy)}"'
    first = len(pbs.changes)
    pbs.run(export)  # again after a new fit: what is there is not made again, and the settings of before are kept
    assert [command.split()[0] for command in pbs.changes[first:]] == ["import", "set"]
    assert (tmp_path / "pbs_before_policyfactory").read_text().splitlines() == before
    assert not list(tmp_path.glob("pf_submit.*"))
    _check_hook((tmp_path / "hook.py").read_text())
    assert set((tmp_path / "selected").read_text().splitlines()) == {"-s BHQTW"}
    pbs.run(export, "remove")
    assert sorted(pbs.state) == sorted(
        [*before, "set server scheduling = True", "create resource pf_submit type=float"]
    )
    assert not (tmp_path / "pbs_before_policyfactory").exists()


def test_jobs_that_wait_at_the_installation_get_their_submit_time(tmp_path: Path) -> None:
    pbs = Server(tmp_path)
    (tmp_path / "jobs").mkdir()
    for job, created in {
        "901.server": "Thu Jan  8 10:00:07 2026",
        "902[].server": "Mon Dec  1 00:00:00 2025",
        "903.server": "no date",
        "904.server": "",
        "refused": "Thu Jan  8 10:00:07 2026",
    }.items():
        (tmp_path / "jobs" / job).write_text(f"{created}\n" if created else "")
    said = pbs.run(made(dataclasses.replace(CATALOGUE["F1"], epoch=EPOCH)))
    midnight = time.mktime((2026, 1, 8, 0, 0, 0, 0, 0, -1))
    since = int(midnight) + 36_007 - EPOCH.unix_time
    assert (tmp_path / "altered").read_text().splitlines() == [
        f"-l pf_submit={since} 901.server",
        "-l pf_submit=1 902[].server",
    ]
    assert "3 waiting jobs could not be given pf_submit" in said
    for job in ("903.server", "904.server", "refused"):
        assert f"{job} has no value and will run last" in said
    # The formula is set after that, and in spite of it.
    assert pbs.changes[-1].startswith("set server job_sort_formula")


def test_a_server_without_a_formula_has_none_again(tmp_path: Path) -> None:
    pbs = Server(tmp_path)
    export = made(CATALOGUE["LIN-SYNTHETIC"])
    pbs.run(export)
    assert pbs.changes == [
        "set server eligible_time_enable = True",
        f'set server job_sort_formula = "{formula(CATALOGUE["LIN-SYNTHETIC"])}"',
    ]
    pbs.run(export, "remove")
    assert [line for line in pbs.state if line] == []


@pytest.mark.parametrize(
    "line",
    [
        "set sched default job_sort_formula_threshold = 10",
        'set sched gpu job_sort_formula = "ncpus"',
        "set server job_sort_formula_threshold = 0",
    ],
)
def test_a_threshold_or_a_schedulers_own_formula_stops_the_script(tmp_path: Path, line: str) -> None:
    """Jobs below a threshold never run, and exported values are negative; the server refuses a second formula."""
    pbs = Server(tmp_path, line)
    said = pbs.run(made(CATALOGUE["SAF"]), code=1)
    assert line in said
    assert "must be unset first" in said
    assert pbs.changes == []


def test_what_an_administrator_is_shown() -> None:
    export = made(dataclasses.replace(CATALOGUE["F1"], epoch=EPOCH), 1024)
    (file,) = export.files
    assert (file.name, file.executable) == ("f1.sh", True)
    assert "strict_ordering: true all" in export.settings
    assert "by_queue: false all" in export.settings
    assert "$ sh THIS_FILE remove" in export.rollback
    assert any("resource pf_submit when a job is queued" in limit for limit in export.limits)
    comment = " ".join(line.removeprefix("#").strip() for line in file.text.splitlines() if line.startswith("#"))
    for text in (*export.settings, *export.install, *export.rollback, *export.limits):
        assert " ".join(text.split()) in comment
    assert any("jobs of a year on 1,024 processors" in limit for limit in export.limits)
    waits = made(CATALOGUE["WFP3"])
    assert any("counts only the time in which the job could have run" in limit for limit in waits.limits)


class _Event(types.SimpleNamespace):
    def reject(self, words: str) -> None:
        self.rejected = words
        raise SystemExit


def _check_hook(source: str) -> None:
    said: list[str] = []

    def run(event: _Event | None) -> Any:
        module: Any = types.ModuleType("pbs")
        module.QUEUEJOB, module.MODIFYJOB, module.event = 1, 2, lambda: event
        module.LOG_WARNING, module.logmsg = 4, lambda _, words: said.append(words)
        sys.modules["pbs"] = module
        try:
            exec(compile(source, "hook", "exec"), {})
        except SystemExit:
            assert event is not None
            assert event.rejected
        finally:
            del sys.modules["pbs"]
        return event

    def job(**resources: float) -> types.SimpleNamespace:
        return types.SimpleNamespace(Resource_List={RESOURCE: None, **resources})

    before = max(0, int(time.time()) - 1_767_225_600)
    queued = run(_Event(type=1, job=job(pf_submit=3.0), rejected=None))
    assert before <= queued.job.Resource_List[RESOURCE] <= max(0, time.time() - 1_767_225_600)
    assert run(_Event(type=2, job=job(), rejected=None)).rejected is None
    own = run(_Event(type=2, job=job(pf_submit=3.0), rejected=None, requestor="ada"))
    assert "set by the server" in own.rejected
    assert run(_Event(type=2, job=job(pf_submit=3.0), rejected=None, requestor="root")).rejected is None
    early = source.replace("EPOCH = 1767225600", f"EPOCH = {int(time.time()) + 86_400}")
    assert early != source
    source = early
    assert run(_Event(type=1, job=job(), rejected=None)).job.Resource_List[RESOURCE] == 1.0
    assert said == []
    # Whatever goes wrong in the hook, the job is accepted.
    run(None)
    assert said == [f"{RESOURCE}: 'NoneType' object has no attribute 'type'"]
