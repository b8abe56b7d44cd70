"""The preview of a queue: places of today, places under an export, and what is said of them."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest

from policyfactory.core.errors import ExportError
from policyfactory.exports.content import TARGETS, Export, File
from policyfactory.exports.exported import preview
from policyfactory.exports.expressible import prepare, unexpressed
from policyfactory.exports.queue import Queue, policy_priorities, scaled_priorities, scores_of, start_order
from policyfactory.exports.sample import learn_scale
from policyfactory.policy.policy import Epoch, Policy
from policyfactory.policy.store import CATALOGUE, Model
from refusals import refused
from sites import make_queue, make_sample
from snapshots import snapshot

EXPORT = Export((File("x", ""),))

# Job   p    q  submit  today's priority
#  a   600   4     0     10
#  b   600   1    50     30
#  c    60   1    90     20
#  d   600   1    50     10
QUEUE = Queue(
    job=("a", "b", "c", "d"),
    user=("ann", "", "eve", "eve"),
    p=np.array([600, 600, 60, 600]),
    q=np.array([4, 1, 1, 1]),
    submit=np.array([0, 50, 90, 50]),
    priority=np.array([10.0, 30.0, 20.0, 10.0]),
    now=100,
)


def test_places_of_today_and_under_saf() -> None:
    result = preview(EXPORT, CATALOGUE["SAF"], QUEUE)
    # Today b c a d (a was submitted before d); by area c, then b and d (submitted together: as in the file), then a.
    assert result.today.tolist() == [3, 1, 2, 4]
    assert result.new.tolist() == [4, 2, 1, 3]
    assert result.scores.tolist() == [2400, 600, 60, 600]
    assert [QUEUE.job[i] for i in result.order] == ["c", "b", "d", "a"]
    rows = result.rows()
    assert [row["up"] for row in rows] == [1, -1, 1, -1]
    assert rows[0] == {
        "place": 1, "today": 2, "up": 1, "job": "c", "user": "eve", "p": 60, "q": 1, "waited": 10, "score": 60.0,
        "priority": 4.0, "overdue": False,
    }  # fmt: skip
    snapshot(result.summary())
    json.dumps(rows, allow_nan=False)


def test_no_change_is_said() -> None:
    queue = dataclasses.replace(QUEUE, priority=None)
    snapshot(preview(EXPORT, CATALOGUE["FCFS"], queue).summary())


def test_an_exports_own_numbers_decide() -> None:
    made = dataclasses.replace(EXPORT, priorities=lambda queue: queue.submit.astype(float))
    assert [QUEUE.job[i] for i in preview(made, CATALOGUE["SAF"], QUEUE).order] == ["c", "b", "d", "a"]
    assert preview(made, CATALOGUE["SAF"], QUEUE).new.tolist() == [4, 2, 1, 3]


def test_overdue_jobs_go_first_in_submit_order() -> None:
    policy = dataclasses.replace(CATALOGUE["SAF"], threshold=40.0)
    result = preview(EXPORT, policy, QUEUE)
    # Waited 100, 50, 10, 50 s: a, then b and d, then c.
    assert [QUEUE.job[i] for i in result.order] == ["a", "b", "d", "c"]
    snapshot(result.summary()[-1])
    # Longer is strict.
    assert not preview(EXPORT, dataclasses.replace(policy, threshold=100.0), QUEUE).late.any()


def test_from_when_r_counts() -> None:
    policy = Policy("x", "r")
    # From the oldest waiting job, whose r is 0 as in the simulator.
    assert scores_of(policy, QUEUE).tolist() == [0, 50, 90, 50]
    late = dataclasses.replace(QUEUE, submit=QUEUE.submit + 7)
    assert scores_of(policy, late).tolist() == [0, 50, 90, 50]
    # From a date r is at least 1 s.
    assert scores_of(dataclasses.replace(policy, epoch=Epoch("fixed", 0)), QUEUE).tolist() == [1, 50, 90, 50]
    assert scores_of(dataclasses.replace(policy, epoch=Epoch("fixed", 5)), late).tolist() == [2, 52, 92, 52]
    assert scores_of(Policy("x", "w"), QUEUE).tolist() == [100, 50, 10, 50]


def test_a_list_of_waiting_jobs_says_no_free_processors() -> None:
    refused(ExportError, "f list x", scores_of, Policy("x", "p + f*q"), QUEUE)


def test_a_list_of_waiting_jobs_says_no_predictions() -> None:
    message = "e s list x"
    refused(ExportError, message, scores_of, Policy("x", "ln(e) - ln(s)"), QUEUE)


def test_a_job_submitted_before_the_epoch_counts_as_submitted_at_it() -> None:
    policy = dataclasses.replace(CATALOGUE["F1"], epoch=Epoch("fixed", 60))
    scores = scores_of(policy, QUEUE)
    # a, b and d before it, c 30 s after: an r below 0 had no logarithm, and put them last.
    alike = [np.log10(600) * 4, np.log10(600), np.log10(60) + 870 * np.log10(30), np.log10(600)]
    assert scores.tolist() == pytest.approx(alike)
    result = preview(EXPORT, policy, QUEUE)
    assert [QUEUE.job[i] for i in result.order] == ["b", "d", "a", "c"]
    assert result.early == 3
    snapshot(result.summary())
    assert preview(EXPORT, dataclasses.replace(policy, formula="p"), QUEUE).early == 0
    assert preview(EXPORT, dataclasses.replace(policy, epoch=Epoch()), QUEUE).early == 0


def test_late_is_only_what_goes_first() -> None:
    policy = dataclasses.replace(CATALOGUE["SAF"], threshold=40.0)
    assert preview(EXPORT, policy, QUEUE).late.tolist() == [True, True, False, True]
    made = dataclasses.replace(EXPORT, limits=unexpressed(policy))
    result = preview(made, policy, QUEUE)
    assert not result.late.any()
    assert "threshold" not in " ".join(result.summary())


def test_what_the_number_is_that_jobs_are_compared_by() -> None:
    said = {name: preview(EXPORT, CATALOGUE["SAF"], QUEUE, target=name).compared for name in TARGETS}
    snapshot(said["slurm-nice"])
    others = {text for name, text in said.items() if name != "slurm-nice"}
    assert all("alone: the site's other factors (fair-share, QOS" in text for text in others)


def test_a_formula_with_m_needs_the_machine() -> None:
    policy = Policy("x", "q/m")
    assert scores_of(prepare(Model(policy), processors=4).policy, QUEUE).tolist() == [1, 0.25, 0.25, 0.25]
    refused(ExportError, "--processors", preview, EXPORT, policy, QUEUE)


def test_no_value_is_null_and_last() -> None:
    policy = Policy("x", "log10(p - 100)")
    rows = preview(EXPORT, policy, QUEUE).rows()
    assert rows[-1]["job"] == "c"
    assert rows[-1]["score"] is None


@pytest.mark.parametrize("name", ["SAF", "F1", "LIN-SYNTHETIC", "QDR-SYNTHETIC"])
def test_scaled_numbers_keep_the_policys_order(name: str) -> None:
    policy = dataclasses.replace(CATALOGUE[name], epoch=Epoch("fixed", 1_767_225_600))
    queue = make_queue(1000)
    numbers = scaled_priorities(policy, learn_scale(policy, make_sample()))(queue)
    wanted = start_order(policy_priorities(policy, queue), queue)
    result = start_order(numbers, queue)
    scores = scores_of(policy, queue)
    # Neighbours with one number may change places; their scores differ by less than the map can show.
    assert np.allclose(scores[result], scores[wanted], rtol=1e-6)
    assert (result == wanted).mean() > 0.99


@pytest.mark.parametrize(
    ("ids", "order"),
    [
        (("12", "9", "10"), ["9", "10", "12"]),
        (("7_10", "7_9", "6"), ["6", "7_9", "7_10"]),
        (("7[10].server2", "7[9].server2", "6.server2"), ["6.server2", "7[9].server2", "7[10].server2"]),
        # Ids that are no numbers: as they stand in the file.
        (("b", "7", "a"), ["b", "7", "a"]),
    ],
)
def test_ties_go_by_submit_time_and_number(ids: tuple[str, ...], order: list[str]) -> None:
    same = np.full(3, 60)
    queue = Queue(job=ids, user=("",) * 3, p=same, q=same, submit=same, priority=None, now=100)
    result = preview(EXPORT, CATALOGUE["SAF"], queue)
    assert [ids[row] for row in result.order] == order
    assert sorted(ids, key=lambda job: result.today[ids.index(job)]) == order
