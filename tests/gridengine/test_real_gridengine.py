"""A real Grid Engine into which an export was loaded by its own script starts jobs in the order of the formula.

Four minutes of waiting: only with POLICYFACTORY_NIGHTLY. It needs Debian's gridengine-master, gridengine-exec and
gridengine-client.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from policyfactory.exports.content import Export
from policyfactory.exports.perl import gridengine as make
from policyfactory.exports.queue import Queue
from policyfactory.policy.policy import Policy
from policyfactory.policy.scale import LARGEST
from policyfactory.policy.store import Model
from schedulers.gridengine import Cell
from schedulers.processes import short_directory, wait_for
from slurm.orders import MODELS, Shape, at_submission, mixed_shapes, model_of, order_of, recent_epoch, usual_site
from support import NIGHTLY

pytestmark = pytest.mark.skipif(not NIGHTLY, reason="starts jobs for minutes: make nightly")
# Computed by Grid Engine itself; with r, and with factors of very different size.
OWN = Policy("own", "2e-5*p*q - 0.35*q + 0.7*r")


@pytest.fixture(scope="module")
def cell() -> Iterator[Cell]:
    with short_directory() as folder, Cell(folder) as started:
        (started.common / "sge_request").write_text("-l h_rt=24:00:00\n")
        yield started


def load(cell: Cell, export: Export, name: str) -> Path:
    """Put the files into a folder and run apply.sh, as its instructions say."""
    folder = cell.common / name
    folder.mkdir(exist_ok=True)
    for file in export.files:
        (folder / file.name).write_text(file.text)
        (folder / file.name).chmod(0o755 if file.executable else 0o644)
    assert "applied" in cell.run(folder / "apply.sh")
    return folder


def roll_back(cell: Cell, folder: Path) -> None:
    assert "rolled back" in cell.run(folder / "rollback.sh")


def configuration(cell: Cell) -> list[list[str]]:
    shown = [("-ssconf",), ("-sc",), ("-sconf", "global"), ("-se", "global")]
    # Of the last, what hosts report changes by itself.
    text = "\n".join(cell.run("qconf", *option) for option in shown)
    return [line.split() for line in text.splitlines() if not line.startswith(("#", "load_values"))]


def queue_of(cell: Cell, jobs: list[int], shapes: list[Shape]) -> tuple[Queue, list[dict[str, float]]]:
    known = [cell.requests(job) for job in jobs]
    assert [result["slots"] for result in known] == [shape.processors for shape in shapes]
    assert [result["h_rt"] for result in known] == [shape.minutes * 60 for shape in shapes]
    return Queue(
        tuple(map(str, jobs)),
        ("",) * len(jobs),
        np.array([shape.minutes * 60 for shape in shapes]),
        np.array([shape.processors for shape in shapes]),
        np.array([int(result["submit"]) for result in known]),
        None,
        int(time.time()),
    ), known


def model(name: str) -> Model:
    return Model(OWN) if name == "own" else model_of(name, recent_epoch())


@pytest.mark.parametrize("name", [*MODELS, "own"], ids=["F1", "SAF", "Lin", "own"])
def test_jobs_start_in_the_order_of_the_formula(cell: Cell, name: str) -> None:
    known = model(name)
    export = make(known, usual_site(cell.slots))
    before = configuration(cell)
    folder = load(cell, export, known.policy.name)
    blocker = cell.hold_all()
    shapes = mixed_shapes(16, seed=3)
    jobs = [cell.submit(shape.processors, shape.minutes * 60) for shape in shapes]
    queue, requests = queue_of(cell, jobs, shapes)
    scripted = "policyfactory_jsv.pl" in {file.name for file in export.files}
    assert scripted == (name not in {"SAF", "own"})
    assert export.priorities is not None
    if scripted:
        scores = np.array([result["pf_score"] * result["slots"] for result in requests])
        assert ((scores >= 1) & (scores <= LARGEST)).all()
        queue = at_submission(dataclasses.replace(queue, priority=scores), export.priorities)
    expected = order_of(known.policy, queue)
    assert expected != jobs
    wait_for("the scheduler's order", lambda: cell.order() == expected, 20)
    cell.run("qdel", blocker)
    wait_for("the jobs", lambda: not cell.states("p") | cell.states("r"), 120)
    assert [job for job in cell.started() if job in jobs] == expected
    roll_back(cell, folder)
    assert configuration(cell) == before


def test_a_job_keeps_its_place_in_its_life(cell: Cell) -> None:
    known = model("F1")
    folder = load(cell, make(known, usual_site(cell.slots)), "life")
    blocker = cell.hold_all()
    long, short = cell.submit(8, 36_000), cell.submit(1, 60)
    greedy = cell.submit(16, 72_000, "-l", "pf_score=1e18")
    default = cell.submit(1, None)
    order = [short, default, long, greedy]
    wait_for("the order", lambda: cell.order() == order, 20)
    # Nobody gives a job another limit or score than it was submitted with.
    assert "jsv_allowed_mod" in cell.run("qalter", "-l", "h_rt=60", long, check=False)
    cell.run("qhold", short)
    wait_for("the held job behind", lambda: cell.order()[0] == default, 20)
    cell.run("qrls", short)
    wait_for("the released job in its place", lambda: cell.order() == order, 20)
    verifier = folder / "policyfactory_jsv.pl"
    text = verifier.read_text()
    time.sleep(1.1)  # a change is noticed by whole seconds
    verifier.write_text(text.replace("sub pf_priority {", "sub pf_priority {\n    die 'x';"))
    broken = cell.submit(1, 60)
    wait_for("the job without a score, last", lambda: cell.order() == [*order, broken], 20)
    time.sleep(1.1)
    verifier.write_text(text)
    # With jobs that ask for a score, a rollback leaves the resource until they are gone.
    assert "jobs still ask for pf_score" in cell.run(folder / "rollback.sh")
    cell.run("qdel", blocker)
    wait_for("the jobs", lambda: not cell.states("p") | cell.states("r"), 60)
    assert sorted(cell.started()[-6:]) == sorted([blocker, *order, broken])


def test_apply_refuses_what_would_go_wrong(cell: Cell) -> None:
    requests = cell.common / "sge_request"
    default = requests.read_text()
    requests.write_text("# -l h_rt=1:0:0 is only a comment\n")
    try:
        with pytest.raises(RuntimeError, match="jobs without a limit would run as if they took 0 s"):
            load(cell, make(model("SAF"), usual_site()), "refused")
    finally:
        requests.write_text(default)
    first = load(cell, make(model("F1"), usual_site()), "first")
    before = configuration(cell)
    with pytest.raises(RuntimeError, match=r"jsv_url is script:.*first.* already"):
        load(cell, make(model("F1"), usual_site()), "second")
    assert configuration(cell) == before
    # Again, after a new fit: what was before the first time stays.
    load(cell, make(model(MODELS[2]), usual_site()), "first")
    roll_back(cell, first)
    with pytest.raises(RuntimeError, match="rolled back already"):
        roll_back(cell, first)
