"""The script that orders a user's own jobs: run by a real shell and awk, on commands of Slurm that only write down."""

from __future__ import annotations

import dataclasses
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from naive.hostile import PIECES, TEXTS, hostile_model
from policyfactory.core.errors import ExportError
from policyfactory.exports.content import TARGETS, ExportSite
from policyfactory.exports.languages import awk_functions
from policyfactory.exports.queue import Queue
from policyfactory.exports.slurm.multifactor import GAP, MOST_NICE, nice_priorities
from policyfactory.policy.policy import Epoch, Policy
from policyfactory.policy.store import CATALOGUE, Model, resolve_model
from refusals import refused
from sites import make_queue, make_sample
from snapshots import snapshot
from support import examples

NOW = 1_767_225_600 + 30 * 86_400
EPOCH = Epoch("fixed", 1_767_225_600)
AWKS = [name for name in ("mawk", "gawk", "original-awk") if shutil.which(name)] or ["awk"]

# Stand-ins: squeue lists a file (and the environment that it sees), the others note their arguments.
PROGRAMS = {
    "date": f"echo {NOW}",
    "squeue": 'env | grep "^SQUEUE_" >>environment; printf "%s\\n" "$@" >>arguments; cat queue',
    "scontrol": 'shift; echo "$@" >>updates; case "$*" in *JobId=130013\\ *) echo refused >&2; exit 1;; esac',
    "sbatch": 'for word; do printf "<%s>" "$word"; done >submitted; echo Submitted batch job 1; exit $(cat code)',
}

Here = Callable[..., "subprocess.CompletedProcess[str]"]


EXPORT = TARGETS["slurm-nice"]


@pytest.fixture(params=AWKS)
def here(request: pytest.FixtureRequest, tmp_path: Path) -> Here:
    """Give ``here(policy, rows, *arguments)``: run the script of a policy where squeue lists ``rows``."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, body in PROGRAMS.items():
        (programs / name).write_text(f"#!/bin/sh\n{body}\n")
        (programs / name).chmod(0o755)
    (programs / "awk").symlink_to(shutil.which(request.param) or "awk")
    (tmp_path / "code").write_text("0")

    def run(  # type: ignore[no-untyped-def]
        policy: Policy, rows: list[str], *arguments: str, processors: int | None = None, text: str | None = None
    ):
        (tmp_path / "queue").write_text("".join(f"{row}\n" for row in rows))
        (tmp_path / "updates").write_text("")
        (tmp_path / "nice.sh").write_text(text or EXPORT.make(Model(policy), ExportSite(processors=processors)).text)
        environment = os.environ | {
            "PATH": f"{programs}:{os.environ['PATH']}",
            "SQUEUE_PARTITION": "other",
            "LC_NUMERIC": "de_DE.UTF-8",
        }
        return subprocess.run(
            ["sh", "nice.sh", *arguments], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )

    return run


def clock(seconds: int) -> str:
    """Return a time limit as squeue prints it."""
    days, rest = divmod(seconds, 86_400)
    hours, minutes = rest // 3600, rest % 3600 // 60
    return f"{days}-{hours:02}:{minutes:02}:00" if days else f"{hours}:{minutes:02}:00" if hours else f"{minutes}:00"


def listed(queue: Queue, priority: float = 1e6) -> list[str]:
    """Return a queue as squeue lists it to the script."""
    today = np.full(len(queue), priority) if queue.priority is None else queue.priority
    columns = zip(queue.job, today, queue.submit, queue.p, queue.q, strict=True)
    return [f"{job}|{job}|{p:.0f}|0|{submit}|{clock(limit)}|{q}|Priority|batch" for job, p, submit, limit, q in columns]


def updates(folder: Path) -> dict[str, int]:
    result = (line.split() for line in (folder / "updates").read_text().splitlines())
    return {job.removeprefix("JobId="): int(nice.removeprefix("Nice=")) for job, nice in result}


def one_user(queue: Queue, **changed: object) -> Queue:
    return dataclasses.replace(queue, user=("me",) * len(queue), **changed)  # type: ignore[arg-type]


POLICIES = [
    Policy("F1", "log10(p)*q + 870*log10(r)", epoch=EPOCH),
    Policy("SAF", "p*q"),
    Policy("WFP3", "-(w/p)**3*q", threshold=40_000.0),
    Policy("Lin", "1e-7*p + 3e-5*q - 1.5e-7*r"),
    Policy("oldest", "sqrt(p)*q + 1e4*log10(r)", epoch=Epoch("oldest-waiting")),
]


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.name)
def test_the_nice_values_make_the_priorities_of_the_python_map(here: Here, tmp_path: Path, policy: Policy) -> None:
    priority = np.random.default_rng(1).integers(1_000_000, 1_000_300, 100).astype(float)
    queue = one_user(make_queue(100, now=NOW), priority=priority)
    done = here(policy, listed(queue), "set")
    assert done.returncode == 0, done.stderr
    nice = updates(tmp_path)
    lowered = priority - [nice.get(job, 0) for job in queue.job]
    assert list(lowered) == list(nice_priorities(policy, queue))


CELLS = st.tuples(st.integers(1, 40), st.integers(1, 8), st.integers(0, 50), st.integers(1, 400), st.sampled_from("ab"))


@given(st.lists(CELLS, max_size=30))
def test_nobody_is_lowered_more_than_the_order_needs(cells: list[tuple[int, int, int, int, str]]) -> None:
    columns = list(zip(*cells, strict=True)) or [(), (), (), (), ()]
    minutes, size, age, priority = (np.array(column, dtype=np.int64) for column in columns[:4])
    jobs_of = tuple(map(str, range(len(cells))))
    queue = Queue(jobs_of, tuple(columns[4]), 60 * minutes, size, NOW - age, priority.astype(float), NOW)
    policy = CATALOGUE["SAF"]
    result = nice_priorities(policy, queue)
    scores = policy.scores(queue.p, queue.q, 0.0)
    assert len(result) == len(cells)
    for user in set(queue.user):
        jobs = [i for i in range(len(queue)) if queue.user[i] == user]
        jobs.sort(key=lambda i: (scores[i], queue.submit[i], i))
        # Plainly: each job as high as it was, or just below the one before it, or at the bottom.
        above = float("inf")
        for job in jobs:
            above = min(float(priority[job]), above - GAP)
            assert result[job] == max(above, 1.0)


def test_a_nice_value_is_never_beyond_what_slurm_takes() -> None:
    queue = one_user(make_queue(2, now=NOW), priority=np.array([4e9, 4e9]), submit=np.array([NOW, NOW]))
    queue = dataclasses.replace(queue, p=np.array([1, 2]), q=np.array([1, 1]), priority=np.array([10.0, 4e9]))
    assert list(nice_priorities(CATALOGUE["SAF"], queue)) == [10.0, 4e9 - MOST_NICE]


@pytest.mark.parametrize("awk", AWKS)
def test_awk_computes_the_scores_of_python(awk: str) -> None:
    sample = make_sample(60)
    rows = np.column_stack([sample.p, sample.q, sample.r, sample.w])
    rows[:6] = [[1, 1, 0, 0], [60, 1, 0, 5], [1, 64, 1, 0], [3600, 2, 10, 1e9], [1e7, 1000, 1e9, 0], [10, 10, 10, 10]]
    given_rows = "".join(" ".join(f"{value:.17g}" for value in row) + "\n" for row in rows)
    formulas = {name: policy.formula for name, policy in CATALOGUE.items()} | {
        "edges": "max(p, q)/(q - 1) + min(r, w)*exp(-p/100)",
        "powers": "abs(q - 20)**1.5 + p**0.3/(w - 5) + ln(r) + (q - 2)**0.5",
        "no value": "sqrt(q - 30) + max(0, (q - 1)/(q - 1))",
    }
    for name, formula in formulas.items():
        policy = Policy("x", formula)
        program = f"""BEGIN {{ INF = 1e300 * 1e300; NAN = INF - INF; m = 1 }}
{awk_functions(policy.expression)}
{{ p = $1; q = $2; r = $3; w = $4; value = score()
   print (value == INF ? "inf" : (value == -INF ? "-inf" : sprintf("%.17g", value))) }}"""
        done = subprocess.run([awk, program], input=given_rows, capture_output=True, text=True, check=False)
        assert done.returncode == 0, (name, done.stderr)
        result = np.array([float(line) for line in done.stdout.split()])
        np.testing.assert_allclose(result, policy.scores(*rows.T), rtol=1e-11, atol=1e-14, err_msg=name)


def test_rows_that_are_no_plain_job_are_left_alone_and_counted(here: Here, tmp_path: Path) -> None:
    def row(
        job: str, limit: str = "10:00", reason: str = "None", priority: int = 500, nice: int = 0, q: int = 9
    ) -> str:
        return f"{job}|{job.partition('_')[0]}|{priority}|{nice}|{NOW - 60}|{limit}|{q}|{reason}|batch"

    rows = [
        row("1", limit="1-00:00:00"),
        row("2", limit="INVALID"),
        row("3", limit="UNLIMITED"),
        row("4+1"),
        row("5", priority=0, reason="JobHeldUser"),
        row("6", reason="Dependency"),
        row("7", reason="BeginTime"),
        row("8_0", q=1),
        row("8_12", q=1, nice=3, priority=497),
        row("9; rm -r x"),
        "a line of another form",
        row("130013"),
    ]
    done = here(CATALOGUE["SAF"], rows, "set")
    # The task of the array whose nice value differs gets that of the others.
    assert updates(tmp_path) == {"8_[0,12]": 0, "130013": 2, "1": 4, "3": 6, "2": 8}
    assert done.returncode == 1
    assert "refused" in done.stderr
    snapshot(done.stderr)
    # The stand-in changes nothing, so the order is what it was, and the script says so.
    assert not (tmp_path / "environment").exists() or not (tmp_path / "environment").read_text()


def test_waiting_tasks_are_named_and_scored_by_what_they_ask_for(here: Here, tmp_path: Path) -> None:
    """The number of an array alone would mean its running tasks too, which squeue does not list here."""
    limits = {3: "10:00", 4: "10:00", 5: "1:00:00", 6: "10:00", 7: "1:00:00", 9: "10:00", 10: "10:00", 11: "5:00"}
    rows = [f"57_{task}|57|500|0|{NOW}|{limit}|2|None|batch" for task, limit in limits.items()]
    rows.insert(3, f"60|60|500|0|{NOW}|20:00|2|None|batch")
    done = here(CATALOGUE["SAF"], rows, "set")
    assert done.returncode == 0
    assert updates(tmp_path) == {"57_[3-4,6,9-10]": 2, "60": 4, "57_[5,7]": 6}
    snapshot(done.stderr, part="1")
    shown = here(CATALOGUE["SAF"], rows).stdout.splitlines()
    assert [line.split()[1] for line in shown[1:]] == ["57_[11]", "57_[3-4,6,9-10]", "60", "57_[5,7]"]
    given = [row.replace("|500|0|", "|494|6|") if "1:00:00" in row else row for row in rows]
    assert here(CATALOGUE["SAF"], given, "reset").returncode == 0
    assert updates(tmp_path) == {"57_[5,7]": 0}
    refused = [f"{job}|{job}|90|5|{NOW}|10:00|1|None|batch" for job in (12, 130013)]
    done = here(CATALOGUE["SAF"], refused, "reset")
    assert done.returncode == 1
    snapshot(done.stderr, part="2")


@pytest.mark.parametrize("epoch", [NOW + 5000, NOW - 40], ids=["all before it", "some before it"])
def test_jobs_submitted_before_the_epoch_count_as_submitted_at_it(here: Here, tmp_path: Path, epoch: int) -> None:
    policy = Policy("F1", "log10(p)*q + 870*log10(r)", epoch=Epoch("fixed", epoch))
    queue = one_user(make_queue(40, now=NOW), submit=NOW - np.arange(40) * 2, priority=np.full(40, 1e6))
    assert here(policy, listed(queue), "set").returncode == 0
    nice = updates(tmp_path)
    lowered = 1e6 - np.array([nice.get(job, 0) for job in queue.job])
    assert list(lowered) == list(nice_priorities(policy, queue))
    # By r alone: those at the epoch tie, and ties go by submit time.
    first = queue.submit <= epoch + 1
    plain = dataclasses.replace(queue, q=np.zeros(40, dtype=np.int64))
    by_r = nice_priorities(policy, plain)
    assert (np.diff(by_r[first]) > 0).all()


def test_partitions_are_ordered_by_themselves_and_small_priorities_are_said(here: Here, tmp_path: Path) -> None:
    rows = [f"{job}|{job}|3|0|{NOW}|10:00|{job}|None|{'ab'[job % 2]}" for job in range(1, 9)]
    done = here(CATALOGUE["SAF"], rows, "set")
    assert updates(tmp_path) == {"3": 2, "5": 2, "7": 2, "4": 2, "6": 2, "8": 2}
    snapshot(done.stderr)


def test_show_changes_nothing_and_reset_takes_back(here: Here, tmp_path: Path) -> None:
    rows = [f"{job}|{job}|90|{job % 2 * 5}|{NOW}|10:00|{9 - job}|None|batch" for job in range(1, 5)]
    rows.append(f"9_1|9|0|5|{NOW}|10:00|1|JobHeldUser|batch")
    done = here(CATALOGUE["SAF"], rows)
    places = [line.split()[:2] for line in done.stdout.splitlines()[1:]]
    assert places == [["1", "4"], ["2", "3"], ["3", "2"], ["4", "1"]]
    assert not updates(tmp_path)
    assert here(CATALOGUE["SAF"], rows, "reset").returncode == 0
    assert updates(tmp_path) == {"1": 0, "3": 0, "9_[1]": 0}
    assert here(CATALOGUE["SAF"], rows, "list").returncode == 2
    assert here(CATALOGUE["SAF"], [], "set").returncode == 0


def test_every_argument_reaches_sbatch_as_it_is(here: Here, tmp_path: Path) -> None:
    words = ["--wrap", "echo 'a b'  \"$HOME\" `id` \\ *", "", "-J", "é\n|x", "--comment=$(id); rm x", "%s\\n"]
    done = here(CATALOGUE["SAF"], [f"1|1|9|4|{NOW}|10:00|1|None|batch"], "sbatch", *words)
    assert done.returncode == 0
    snapshot(done.stdout)
    assert (tmp_path / "submitted").read_text() == "".join(f"<{word}>" for word in words)
    assert updates(tmp_path) == {"1": 0}
    (tmp_path / "code").write_text("7")
    assert here(CATALOGUE["SAF"], [], "sbatch").returncode == 7


def test_a_submission_counts_even_where_squeue_fails(here: Here, tmp_path: Path) -> None:
    (tmp_path / "bin/squeue").write_text("#!/bin/sh\nexit 1\n")
    done = here(CATALOGUE["SAF"], [], "sbatch", "x")
    assert done.returncode == 0
    snapshot(done.stderr)
    assert here(CATALOGUE["SAF"], [], "set").returncode == 1


def test_the_machine_and_the_epoch_must_be_known_where_they_count(here: Here, tmp_path: Path) -> None:
    refused(ExportError, "--processors", EXPORT.make, Model(Policy("x", "p*q/m + q")), ExportSite())
    refused(ExportError, "--epoch", EXPORT.make, resolve_model("F1"), ExportSite())
    EXPORT.make(resolve_model("LIN-SYNTHETIC"), ExportSite())
    rows = [f"{job}|{job}|90|0|{NOW}|10:00|{job}|None|batch" for job in (3, 70)]
    here(Policy("x", "abs(q - m)"), rows, "set", processors=64)
    assert updates(tmp_path) == {"3": 2}


def code_of(words: str) -> list[str]:
    """Return the lines of the script that are no comment, where every text of the model is ``words``."""
    text = EXPORT.make(hostile_model(POLICIES[0], words), ExportSite(command=words)).text
    assert text.isascii()
    return [line for line in text.split("\n") if not line.startswith("#")]


@examples(100)
@given(TEXTS)
def test_texts_of_a_stranger_stay_in_comments(words: str) -> None:
    assert code_of(words) == code_of("x")


def test_the_worst_texts_run_nothing(here: Here, tmp_path: Path) -> None:
    worst = "".join(PIECES)
    text = EXPORT.make(hostile_model(POLICIES[0], worst), ExportSite(command=worst)).text
    (tmp_path / "worst.sh").write_text(text)
    assert subprocess.run(["sh", "-n", "worst.sh"], cwd=tmp_path, check=False).returncode == 0
    row = f"1|1|9|4|{NOW}|10:00|1|None|batch"
    plain = here(POLICIES[0], [row], "set")
    wanted = updates(tmp_path)
    before = {path.name for path in tmp_path.iterdir()}
    hostile = here(POLICIES[0], [row], "set", text=text)
    assert updates(tmp_path) == wanted
    assert (hostile.returncode, hostile.stdout, hostile.stderr) == (plain.returncode, plain.stdout, plain.stderr)
    assert {path.name for path in tmp_path.iterdir()} == before


def test_processors_by_gpu_are_counted(here: Here) -> None:
    """squeue of Slurm before 24.05 does not count them of a waiting job."""
    rows = [
        f"{job}|{job}|100|0|5|10:00|{cpus}|Priority|batch|cpu=1,mem=9G,node={nodes},billing=1|{tasks}|{tres}|"
        for job, cpus, nodes, tasks, tres in (
            (1, 1, 1, 1, "gres:gpu:8|gres:gpu:4|N/A|N/A|N/A"),
            (2, 32, 1, 1, "gres/gpu:8|gres/gpu:4|N/A|N/A|N/A"),
            (3, 2, 2, 2, "gres:gpu:3|N/A|gres:gpu:a100:2,gres:gputype:9|N/A|N/A"),
            (4, 4, 1, 4, "gres:gpu:3|N/A|N/A|N/A|gres/gpu=1"),
            (5, 4, 1, 4, "gpu:3|N/A|gres:gpu|gres:gpu:1|N/A"),
            (6, 5, 1, 5, "N/A|gres:gpu:4|N/A|N/A|N/A"),
        )
    ]
    done = here(Policy("q", "q"), rows, "log")
    assert done.returncode == 0, done.stderr
    sizes = re.findall(r" job=(\d) .* processors=(\d+) ", done.stdout)
    assert {int(job): int(size) for job, size in sizes} == {1: 32, 2: 32, 3: 12, 4: 12, 5: 4, 6: 5}
