"""The export for OAR, without an OAR: the program runs with modules in OAR's place, and sorts their jobs."""

from __future__ import annotations

import dataclasses
import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import given

from naive.exports import POLICIES
from naive.hostile import PIECES, TEXTS, hostile_model
from naive.oar import STOCK, write_stand_in
from policyfactory.core.errors import ExportError
from policyfactory.core.text import DAY
from policyfactory.exports.content import ExportSite
from policyfactory.exports.expressible import prepare
from policyfactory.exports.perl import oar as make
from policyfactory.exports.queue import Queue, start_order
from policyfactory.policy.policy import Epoch, Policy
from policyfactory.policy.store import CATALOGUE, Model
from refusals import refused
from schedulers.processes import require
from sites import make_queue, make_site
from support import examples

EPOCH = 1_767_225_600 - 90 * DAY


@pytest.fixture(scope="module")
def stand_in(tmp_path_factory: pytest.TempPathFactory) -> Path:
    require("perl")
    return write_stand_in(tmp_path_factory.mktemp("oar"))


def run(folder: Path, text: str, jobs: list[tuple[int, int, str, int]], now: int) -> subprocess.CompletedProcess[str]:
    (folder / "jobs").write_text("".join(f"{' '.join(map(str, job))}\n" for job in jobs))
    (folder / "program").write_text(text)
    environment = {**os.environ, "PERL5LIB": str(folder), "OARDIR": str(folder), "JOBS": str(folder / "jobs")}
    return subprocess.run(
        ["perl", folder / "program", "default", str(now), "the same in words"],
        env=environment, capture_output=True, text=True, check=False, timeout=600,
    )  # fmt: skip


def planned(folder: Path, text: str, jobs: list[tuple[int, int, str, int]], now: int) -> list[int]:
    done = run(folder, text, jobs, now)
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    return [int(job) for job in done.stdout.splitlines()[0].split()]


def as_jobs(queue: Queue) -> list[tuple[int, int, str, int]]:
    rows = zip(queue.job, queue.p.tolist(), queue.q.tolist(), queue.submit.tolist(), strict=True)
    return [(int(job), p, f"resource_id={q}", submit) for job, p, q, submit in rows]


def models() -> list[Model]:
    """Every policy, with a fixed epoch; and each rule of the epoch and a threshold."""
    result = [prepare(Model(policy), epoch=EPOCH, processors=64) for policy in POLICIES]
    late = Policy("late", "log10(p)*q + 30*log10(r) - w", epoch=Epoch("oldest-waiting"), threshold=float(DAY // 2))
    return [*result, Model(late), Model(dataclasses.replace(CATALOGUE["WFP3"], threshold=float(DAY // 3)))]


@pytest.mark.parametrize("model", models(), ids=lambda model: model.policy.name)
def test_jobs_are_planned_in_the_order_of_the_formula(stand_in: Path, model: Model) -> None:
    queue = make_queue(60)
    export = make(model, ExportSite(processors=64))
    assert export.priorities is not None
    expected = [int(queue.job[i]) for i in start_order(export.priorities(queue), queue)]
    assert planned(stand_in, export.text, as_jobs(queue), queue.now) == expected


def test_ties_go_by_submit_time_and_job_id(stand_in: Path) -> None:
    jobs = [(5, 60, "resource_id=2", 1000), (4, 60, "resource_id=2", 1000), (9, 60, "resource_id=2", 900)]
    assert planned(stand_in, make(Model(CATALOGUE["SAF"]), ExportSite()).text, jobs, 2000) == [9, 4, 5]


def test_overdue_jobs_go_first_in_submit_order(stand_in: Path) -> None:
    policy = dataclasses.replace(CATALOGUE["SAF"], threshold=500.0)
    jobs = [
        (1, 60, "resource_id=1", 1999),
        (2, 9, "resource_id=9", 1499),
        (3, 6, "resource_id=9", 1498),
        (4, 6, "resource_id=1", 1500),
    ]
    # Job 4 has waited exactly as long as the threshold: that is not longer.
    assert planned(stand_in, make(Model(policy), ExportSite()).text, jobs, 2000) == [3, 2, 4, 1]


def test_nodes_count_with_their_resources(stand_in: Path) -> None:
    """Of 4 nodes with 4 resources each."""
    sizes = {
        "network_address=3": 12, "network_address=1/resource_id=3": 3, "network_address=-1": 16,
        "network_address=-3": 8,
        "network_address=-2/resource_id=1": 4.0, "resource_id=7": 7, "network_address=1/resource_id=-1": 4.5,
    }  # fmt: skip
    # The last has 4 resources too, but comes later.
    jobs = [(i, 60, request, i) for i, request in enumerate(sizes)]
    expected = sorted(range(len(sizes)), key=list(sizes.values()).__getitem__)
    assert planned(stand_in, make(Model(CATALOGUE["SQF"]), ExportSite()).text, jobs, 100) == expected


def test_fair_sharing_is_without_effect_and_other_settings_are_as_they_were(stand_in: Path) -> None:
    done = run(stand_in, make(Model(CATALOGUE["SAF"]), ExportSite()).text, [(1, 60, "resource_id=1", 5)], 10)
    assert done.stdout.splitlines()[1:] == [
        "SCHEDULER_FAIRSHARING_COEF_USER 1 0",
        "SCHEDULER_FAIRSHARING_COEF_PROJECT 1 0",
        "KNOWN 1 value of KNOWN",
        "OTHER 0 value of OTHER",
    ]


def test_a_job_without_a_score_runs_last_and_the_others_keep_their_order(stand_in: Path) -> None:
    text = make(Model(CATALOGUE["SAF"]), ExportSite()).text
    # What is no name of a property never gets into a query; and minutes that nobody can count.
    jobs = [
        (1, 60, "resource_id=9", 5),
        (2, 60, "a,(select=1", 6),
        (3, 60, "resource_id=1", 7),
        (4, 60, "b;c=1", 4),
        (5, 60, "resource_id=3", 8),
    ]
    done = run(stand_in, text, jobs, 10)
    assert done.returncode == 0
    assert "3 5 1 4 2" in done.stdout.splitlines()
    assert (
        "warning: [PolicyFactory] queue default: 2 without a score run last: job 2: the property a,(select is no"
        in (done.stdout)
    )
    # One that has waited longer than the threshold goes first all the same: that needs no score.
    late = make(Model(dataclasses.replace(CATALOGUE["SAF"], threshold=5.0)), ExportSite()).text
    assert "4 3 5 1 2" in run(stand_in, late, jobs, 10).stdout.splitlines()
    broken = text.replace("sub pf_score {", "sub pf_score {\n    die qq(no\\nscore\\n);")
    done = run(stand_in, broken, jobs[::2], 10)
    assert done.returncode == 0
    assert "3 without a score run last: job 1: no score" in done.stdout
    assert "1 3 5" in done.stdout.splitlines(), "submit order, where none has a score"
    missing = run(stand_in, text.replace(STOCK, "oar_sched_of_no_site"), jobs, 10)
    # 1 is the number with which OAR does not disable the queue.
    assert missing.returncode == 1
    assert "no scheduler oar_sched_of_no_site" in missing.stdout


@pytest.mark.parametrize("epoch", [EPOCH + 1000 * DAY, 1_767_225_600 + 29 * DAY + 40_000], ids=["all", "some"])
def test_jobs_submitted_before_the_epoch_count_as_submitted_at_it(stand_in: Path, epoch: int) -> None:
    queue = make_queue(40)
    export = make(prepare(Model(CATALOGUE["F1"]), epoch=epoch), ExportSite())
    assert (queue.submit < epoch).any()
    assert export.priorities is not None
    expected = [int(queue.job[i]) for i in start_order(export.priorities(queue), queue)]
    assert planned(stand_in, export.text, as_jobs(queue), queue.now) == expected


_NOTIFY = """#!/bin/sh
echo "$*" >> calls
case $1 in
--remove-queue) echo none > queue ;;
--add-queue) [ -e broken ] || echo "${2##*,}" > queue ;;
--list-queues)
  printf 'admin\\n\\tpriority = 10\\n\\tscheduler = other\\n\\tstate = Active\\n'
  scheduler=$(cat queue)
  [ "$scheduler" = none ] ||
    printf 'default\\n\\tpriority = 2\\n\\tscheduler = %s\\n\\tstate = Active\\n' "$scheduler" ;;
esac
"""


@pytest.mark.parametrize("part", ["install", "rollback"])
def test_the_command_that_changes_the_queue_says_if_there_is_none(tmp_path: Path, part: str) -> None:
    export = make(Model(CATALOGUE["SAF"]), ExportSite())
    (line,) = [text[2:] for text in getattr(export, part) if text.startswith("$ oarnotify --remove-queue")]
    scheduler = {"install": export.files[0].name, "rollback": STOCK}[part]
    (tmp_path / "oarnotify").write_text(_NOTIFY)
    (tmp_path / "oarnotify").chmod(0o755)

    def typed() -> str:
        environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
        return subprocess.run(
            ["sh", "-c", line], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
        ).stdout

    assert typed() == f"\tscheduler = {scheduler}\n"
    assert (tmp_path / "calls").read_text().splitlines() == [
        "--remove-queue default",
        f"--add-queue default,2,{scheduler}",
        "--list-queues",
    ]
    (tmp_path / "broken").touch()
    assert "NO QUEUE default" in typed()


def test_the_first_thousand_of_the_order_are_planned(stand_in: Path) -> None:
    jobs = [(i, 60 * (3000 - i), "resource_id=1", 5) for i in range(1, 1502)]
    result = planned(stand_in, make(Model(CATALOGUE["SAF"]), ExportSite()).text, jobs, 10)
    assert result == list(range(1501, 501, -1))


def test_what_oar_cannot_do_is_refused_with_the_cure() -> None:
    refused(ExportError, "--epoch", make, Model(CATALOGUE["F1"]), ExportSite())
    refused(ExportError, "--processors", make, Model(Policy("m", "p*q/m")), ExportSite())


def code_of(words: str) -> list[str]:
    """Return the lines of the program that are no comment, where every text of the model is ``words``."""
    (file,) = make(hostile_model(CATALOGUE["SAF"], words), ExportSite(command=words, model=words)).files
    assert file.name.isascii()
    assert file.name.replace("_", "").isalnum()
    assert file.text.isascii()
    return [line for line in file.text.split("\n") if not line.startswith("#")]


@examples(100)
@given(TEXTS)
def test_texts_of_a_stranger_stay_in_the_comment(words: str) -> None:
    assert code_of(words) == code_of("x")


def test_the_worst_texts_run_nothing(stand_in: Path) -> None:
    worst = "".join(PIECES)
    export = make(hostile_model(CATALOGUE["SAF"], worst), ExportSite(command=worst, model=worst))
    for commands in (export.install, export.rollback):
        assert all(text.isascii() and text.isprintable() and "touch" not in text for text in commands)
    (stand_in / "program").write_text(export.text)
    environment = {**os.environ, "PERL5LIB": str(stand_in)}
    check = subprocess.run(
        ["perl", "-c", "program"],
        cwd=stand_in,
        env={**environment, "JOBS": os.devnull},
        capture_output=True,
        check=False,
    )
    assert check.returncode == 0, check.stderr
    before = {path.name for path in Path.cwd().iterdir()}
    jobs = [(1, 60, "resource_id=9", 5), (2, 60, "resource_id=2", 6)]
    assert planned(stand_in, export.text, jobs, 10) == [2, 1]
    assert {path.name for path in Path.cwd().iterdir()} == before
    assert not (stand_in / "broken_out").exists()


def test_what_the_export_leaves_out_is_said_in_the_file() -> None:
    export = make(Model(CATALOGUE["WFP3"]), make_site(500))
    head = " ".join(" ".join(line.strip("# ") for line in export.text.splitlines()).split())
    for sentence in (*export.limits, *export.install, *export.rollback):
        assert " ".join(sentence.split()) in head
    assert not any("threshold" in sentence for sentence in export.limits)
    assert export.text == make(Model(CATALOGUE["WFP3"]), make_site(500)).text
