"""A real OAR plans and starts the jobs of a queue in the order of the formula that its scheduler was exported from.

Three minutes of waiting: only with POLICYFACTORY_NIGHTLY. It needs Debian's oar-server, oar-user, oar-server-pgsql,
oar-user-pgsql and postgresql.
"""

from __future__ import annotations

import dataclasses
import re
import time
from collections.abc import Iterator

import numpy as np
import pytest

from policyfactory.exports.content import Export
from policyfactory.exports.perl import oar as make
from policyfactory.exports.queue import Queue, start_order
from policyfactory.policy.policy import Epoch, Policy
from policyfactory.policy.store import CATALOGUE, Model
from schedulers.oar import Server
from schedulers.processes import short_directory, wait_for
from slurm.orders import MODELS, NAMES, Shape, mixed_shapes, model_of, usual_site
from support import NIGHTLY

pytestmark = pytest.mark.skipif(not NIGHTLY, reason="starts jobs for minutes: make nightly")
DAY = 86_400
STOCK = "oar_sched_gantt_with_timesharing_and_fairsharing_and_quotas"
PLAIN = "oar_sched_gantt_with_timesharing"
# Policies that no scheduler without a clock could have: waiting time, a threshold, the oldest waiting job.
POLICIES = {
    **{name: model_of(path, int(time.time()) - 2 * DAY).policy for name, path in zip(NAMES, MODELS, strict=True)},
    "WFP3": dataclasses.replace(CATALOGUE["WFP3"], threshold=DAY / 2.0),
    "oldest": Policy("Oldest", "log10(p)*q + 3*log10(r + 1)", epoch=Epoch("oldest-waiting"), threshold=DAY / 3.0),
}  # fmt: skip


@dataclasses.dataclass
class Waiting:
    """A machine of 16 resources that a blocker holds, and what waits behind it."""

    server: Server
    blocker: int
    jobs: list[int]
    shapes: list[Shape]


@pytest.fixture(scope="module")
def waiting() -> Iterator[Waiting]:
    with short_directory() as folder, Server(folder, nodes=4, resources=4) as server:
        blocker = server.hold_all()
        shapes = mixed_shapes(24, largest=16, seed=4)
        jobs = [server.submit(f"resource_id={shape.processors},walltime=0:{shape.minutes}:0") for shape in shapes]
        # As if they had been submitted within a day, the oldest not first.
        rng = np.random.default_rng(5)
        for job in jobs:
            server.sql(
                f"update jobs set submission_time = submission_time - {rng.integers(1, DAY)} where job_id = {job}"
            )
        yield Waiting(server, blocker, jobs, shapes)


def install(server: Server, export: Export, **changes: tuple[str, str]) -> None:
    """Put the scheduler into the folder and give it the queue, as the instructions say."""
    (file,) = export.files
    text = file.text
    for old, new in changes.values():
        assert old in text
        text = text.replace(old, new)
    path = server.folder / "oar/schedulers" / file.name
    path.write_text(text)
    path.chmod(0o755)
    assert "syntax OK" in server.run("perl", "-c", path, check=False)
    give_queue(server, export.install, file.name)


def give_queue(server: Server, texts: tuple[str, ...], scheduler: str) -> None:
    """Type the line of the instructions that gives the queue another scheduler."""
    (line,) = [text.removeprefix("$ ") for text in texts if text.startswith("$ oarnotify --remove-queue")]
    said = server.run("sh", "-c", line)
    assert said.endswith(f"\tscheduler = {scheduler}\n")
    assert "NO QUEUE" not in said
    assert server.sql("select scheduler_policy, state from queues where queue_name = 'default'") == [
        [scheduler, "Active"]
    ]


def next_pass(server: Server, count: int) -> tuple[int, list[int]]:
    """Return the Unix time of a pass that begins now, and the jobs in the order in which it plans them."""
    log = server.log / "oar.log"
    seen = log.stat().st_size
    server.run("perl", "/usr/lib/oar/oarnotify", "Scheduling")
    passes: list[tuple[int, list[int]]] = []

    def complete() -> bool:
        text = log.read_bytes()[seen:].decode(errors="replace")
        passes.clear()
        for part in re.split(r"Starting scheduler for queue default at time ", text)[1:]:
            begun = int(re.match(r"\d+", part)[0])  # type: ignore[index]
            passes.append((begun, [int(job) for job in re.findall(r"\[(\d+)\] start scheduling", part)]))
        return bool(passes) and len(passes[-1][1]) == count

    wait_for("a pass of the scheduler", complete, 60)
    return passes[-1]


def queue_of(waiting: Waiting, now: int) -> Queue:
    submitted = dict(map(tuple, waiting.server.sql("select job_id, submission_time from jobs")))
    return Queue(
        tuple(map(str, waiting.jobs)),
        ("",) * len(waiting.jobs),
        np.array([shape.minutes * 60 for shape in waiting.shapes]),
        np.array([shape.processors for shape in waiting.shapes]),
        np.array([int(submitted[str(job)]) for job in waiting.jobs]),
        None,
        now,
    )


@pytest.mark.parametrize(("name", "stock"), [*((name, STOCK) for name in POLICIES), ("F1", PLAIN)])
def test_a_pass_plans_the_jobs_in_the_order_of_the_formula(waiting: Waiting, name: str, stock: str) -> None:
    export = make(Model(POLICIES[name]), usual_site(16))
    install(waiting.server, export, stock=(f"'{STOCK}'", f"'{stock}'"))
    now, planned = next_pass(waiting.server, len(waiting.jobs))
    queue = queue_of(waiting, now)
    assert export.priorities is not None
    expected = [waiting.jobs[i] for i in start_order(export.priorities(queue), queue)]
    assert planned == expected
    assert planned != waiting.jobs
    assert f"[{stock}]" in "".join(waiting.server.log_lines(f"[{planned[0]}] start scheduling")[-1:])


def test_a_job_without_a_score_runs_last_and_the_queue_stays_at_work(waiting: Waiting) -> None:
    export = make(Model(POLICIES["SAF"]), usual_site(16))
    install(
        waiting.server, export, broken=("my ($p, $q, $r, $w) = @_;", "my ($p, $q, $r, $w) = @_; die 'no score today';")
    )
    now, planned = next_pass(waiting.server, len(waiting.jobs))
    submit = queue_of(waiting, now).submit
    assert planned == [waiting.jobs[i] for i in np.lexsort((waiting.jobs, submit))]
    assert waiting.server.log_lines("24 without a score run last")
    # One job that cannot be looked at, the first of the order.
    assert export.priorities is not None
    queue = queue_of(waiting, now)
    first = waiting.jobs[start_order(export.priorities(queue), queue)[0]]
    head = "sub score_of {\n    my ($base, $job, $r, $waited) = @_;"
    install(waiting.server, export, broken=(head, f"{head}\n    die 'no resources' if $job->{{job_id}} == {first};"))
    now, planned = next_pass(waiting.server, len(waiting.jobs))
    queue = queue_of(waiting, now)
    expected = [waiting.jobs[i] for i in start_order(export.priorities(queue), queue)]
    assert planned == [*expected[1:], first]
    assert waiting.server.log_lines(f"1 without a score run last: job {first}:")
    install(waiting.server, export, missing=(f"'{STOCK}'", "'oar_sched_of_no_site'"))
    waiting.server.run("perl", "/usr/lib/oar/oarnotify", "Scheduling")
    wait_for("the error", lambda: bool(waiting.server.log_lines("no scheduler oar_sched_of_no_site")), 30)
    assert waiting.server.sql("select state from queues where queue_name = 'default'") == [["Active"]]


def test_whole_nodes_and_all_of_them_count_their_resources(waiting: Waiting) -> None:
    """With SQF, the order shows the number of resources that the program found."""
    server = waiting.server
    requests = {
        "nodes=ALL": 16, "nodes=3": 12, "nodes=3/resource_id=3": 9, "nodes=BESTHALF": 8, "nodes=ALL/resource_id=1": 4,
        "{network_address like 'node%'}/nodes=1/resource_id=3+resource_id=3": 6, "resource_id=1": 1,
    }  # fmt: skip
    others = {job: shape.processors for job, shape in zip(waiting.jobs, waiting.shapes, strict=True)}
    jobs = {server.submit(f"{request},walltime=0:1:0"): size for request, size in requests.items()}
    install(server, make(Model(CATALOGUE["SQF"]), usual_site(16)))
    _, planned = next_pass(server, len(waiting.jobs) + len(jobs))
    sizes = [(others | jobs)[job] for job in planned]
    assert sizes == sorted(sizes)
    server.delete(*jobs)


def test_jobs_start_in_the_order_and_after_a_rollback_as_before(waiting: Waiting) -> None:
    server = waiting.server
    server.delete(*waiting.jobs)
    install(server, make(Model(POLICIES["SAF"]), usual_site(16)))
    seconds = [40, 10, 30, 20]
    jobs = [server.submit(f"resource_id=16,walltime=0:0:{length}") for length in seconds]
    server.delete(waiting.blocker)
    started: list[int] = []
    while len(started) < len(jobs):
        (job,) = wait_for_running(server, jobs, started)
        started.append(job)
        if len(started) == 2:
            # The two that still wait go back to the order of before: submit order, with one user.
            give_queue(server, make(Model(POLICIES["SAF"]), usual_site(16)).rollback, STOCK)
        server.delete(job)
    assert started == [jobs[1], jobs[3], jobs[0], jobs[2]]


def wait_for_running(server: Server, jobs: list[int], started: list[int]) -> list[int]:
    left = ",".join(str(job) for job in jobs if job not in started)
    query = f"select job_id from jobs where job_id in ({left}) and start_time > 0"
    wait_for("a start", lambda: bool(server.sql(query)), 60)
    return [int(row[0]) for row in server.sql(query)]
