"""The PBS formula orders jobs as the policy does, in a re-implementation of PBS's evaluation."""

from __future__ import annotations

import dataclasses
import math
import os
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from naive import pbs as server
from naive.exports import POLICIES
from naive.formula import expressions, random_jobs
from policyfactory.core.errors import ExportError
from policyfactory.export import TARGETS, prepare
from policyfactory.export.pbs import RESOURCE, formula, needs_hook
from policyfactory.policy.catalogue import CATALOGUE
from policyfactory.policy.policy import Epoch, Policy
from policyfactory.policy.store import Model

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
    return {**dict.fromkeys(server.NUMERIC, 0), **resources, RESOURCE: int(job["r"])}


def exported(policy: Policy) -> Policy:
    return prepare(Model(dataclasses.replace(policy, epoch=EPOCH)), processors=1024).policy


JOBS = queue(1000, seed=21)
BASE = [policy for policy in POLICIES if policy.name not in {"All of it", "powers", "no value", "overflow"}]


@pytest.mark.parametrize("policy", BASE, ids=lambda policy: policy.name)
def test_a_thousand_jobs_in_the_policys_order(policy: Policy) -> None:
    policy = exported(policy)
    text = formula(policy)
    server.validate(text)
    p, q, r, w = (np.array([job[name] for job in JOBS]) for name in "pqrw")
    scores = policy.scores(p, q, r, w, 1024)
    values = [server.evaluate(text, in_pbs(job)) for job in JOBS]
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
        ("SPF", "-walltime"),
        ("LAF", "walltime*ncpus"),
        ("SRF", "-walltime/max(ncpus, 1)"),
        ("LEXP", "(eligible_time + walltime)/max(walltime, 1)"),
        ("WFP3", "(eligible_time/max(walltime, 1))**3*ncpus"),
        ("UNICEF", "(eligible_time + 1e-20)/(log2(max(ncpus, 1))*walltime or 1e-30)"),
        ("F1", "-(log10(max(walltime, 1))*ncpus + 870*log10(max(pf_submit, 1)))"),
        ("F2", "-(sqrt(walltime)*ncpus + 25600*log10(max(pf_submit, 1)))"),
        ("LIN-SYNTHETIC", "-(0.0324 + 1.15e-7*walltime + 2.61e-5*ncpus - 1.57e-7*(-eligible_time))"),
    ],
)
def test_golden_formulas(name: str, text: str) -> None:
    assert formula(dataclasses.replace(CATALOGUE[name], epoch=EPOCH)) == text


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


@settings(max_examples=150, deadline=None)
@given(expressions(depth=5))
def test_any_formula_is_safe_or_refused(tree) -> None:
    if not tree.variables - {"m"}:
        return
    policy = exported(Policy("any", tree.text()))
    try:
        text = formula(policy)
    except ExportError:
        with pytest.raises(ExportError, match=r"exponent|overflows|character"):
            formula(policy)
        return
    assert not set(text) & set("'\"\\\n;$`&|")
    server.validate(text)


@pytest.mark.parametrize(
    ("policy", "says"),
    [
        (CATALOGUE["F1"], "a scheduler in production does not have; give the date .*--epoch 2026-01-01"),
        (
            dataclasses.replace(CATALOGUE["F1"], epoch=Epoch("oldest-waiting")),
            "oldest waiting job, which PBS can not do",
        ),
        (Policy("share", "q/m + p"), "has m, which a PBS formula does not know; .*--processors N"),
        (Policy("x", "p**q"), "variable exponent"),
        (Policy("x", "(p**16)**16"), "overflows in PBS"),
    ],
)
def test_what_pbs_can_not_say_is_refused_with_a_cure(policy: Policy, says: str) -> None:
    with pytest.raises(ExportError, match=says):
        TARGETS["pbs"].render(Model(policy))


def test_r_alone_needs_neither_hook_nor_epoch() -> None:
    for rule in ("window-start", "oldest-waiting"):
        policy = dataclasses.replace(CATALOGUE["LIN-SDSC-BLUE"], epoch=Epoch(rule))
        text = TARGETS["pbs"].render(Model(policy))
        assert "hook" not in text
        assert "qmgr -c 'set server eligible_time_enable = True'" in text
    assert "eligible_time" not in TARGETS["pbs"].render(Model(CATALOGUE["SAF"]))
    assert not needs_hook(Policy("x", "3*(r + p)/2 - q*p"))
    for text in ("p*r", "r**2", "min(r, 5)", "log10(r) + r", "r/p", "abs(r)", "sqrt(r)"):
        assert needs_hook(Policy("x", text)), text


def test_overdue_jobs_go_first_in_submit_order() -> None:
    policy = Policy("SAF20h", "p*q", threshold=72_000.0)
    text = formula(policy)
    server.validate(text)
    jobs = [{"p": 1, "q": 1, "r": 1, "w": w} for w in (0, 72_000)] + [
        {"p": 10**6, "q": 10**4, "r": 1, "w": w} for w in (72_001, 72_002, 10**7, 10**7 + 1)
    ]
    values = [server.evaluate(text, in_pbs(job)) for job in jobs]
    assert values[0] == values[1] == -1
    assert values[1] < values[2] < values[3] < values[4] < values[5]
    assert all(math.isfinite(value) for value in values)


def test_the_script_and_its_hook_run(tmp_path: Path) -> None:
    """With a qmgr that writes down what it is asked, and a pbs module of our own."""
    script = tmp_path / "set.sh"
    script.write_text(TARGETS["pbs"].render(Model(dataclasses.replace(CATALOGUE["F1"], epoch=EPOCH))))
    bin_folder = tmp_path / "bin"
    bin_folder.mkdir()
    log = tmp_path / "log"
    qmgr = bin_folder / "qmgr"
    qmgr.write_text(
        f'#!/bin/sh\nname=$(echo "$2" | cut -d " " -f 3)\ncase "$2" in\n'
        f'list*) grep -q "^create.* $name " {log}; exit $?;;\n'
        f'import*) cp "${{2##* }}" {tmp_path}/hook.py;;\nesac\nprintf "%s\\n" "$2" >> {log}\n'
    )
    log.touch()
    qmgr.chmod(0o755)
    environment = {"PATH": f"{bin_folder}:{os.environ['PATH']}", "TMPDIR": str(tmp_path)}
    for _ in range(2):  # again after a new fit: what is there is not made again
        subprocess.run(["/bin/sh", script], check=True, env=environment)
    commands = log.read_text().splitlines()
    assert commands[0] == "create resource pf_submit type=float"
    assert commands[1] == 'create hook pf_f1 event="queuejob,modifyjob"'
    assert commands[2].startswith("import hook pf_f1 application/x-python default ")
    assert (
        commands[3] == f'set server job_sort_formula = "{formula(dataclasses.replace(CATALOGUE["F1"], epoch=EPOCH))}"'
    )
    assert [command.split()[0] for command in commands[4:]] == ["import", "set"]
    assert not list(tmp_path.glob("pf_f1.*"))
    _check_hook((tmp_path / "hook.py").read_text())


class _Event(types.SimpleNamespace):
    def reject(self, words: str) -> None:
        self.rejected = words


def _check_hook(source: str) -> None:
    import time

    def run(event: _Event) -> _Event:
        module: Any = types.ModuleType("pbs")
        module.QUEUEJOB, module.MODIFYJOB, module.event = 1, 2, lambda: event
        sys.modules["pbs"] = module
        try:
            exec(compile(source, "hook", "exec"), {})
        finally:
            del sys.modules["pbs"]
        return event

    def job(**resources: float) -> types.SimpleNamespace:
        return types.SimpleNamespace(Resource_List={RESOURCE: None, **resources})

    queued = run(_Event(type=1, job=job(pf_submit=3.0), rejected=None))
    wanted = int(time.time()) - 1_767_225_600
    assert abs(queued.job.Resource_List[RESOURCE] - max(0, wanted)) <= 5
    assert run(_Event(type=2, job=job(), rejected=None)).rejected is None
    assert "set by the server" in run(_Event(type=2, job=job(pf_submit=3.0), rejected=None)).rejected
