"""Fairness over users, by hand, and Jain's index as its authors define it."""

from __future__ import annotations

import numpy as np
import pytest
from hand_made import cells, conclude, schedule, table, workload
from hypothesis import given
from hypothesis import strategies as st

from policyfactory.core.errors import UsageError
from policyfactory.evaluation.analyses import make_analysis
from policyfactory.evaluation.analyses.fairness import Fairness, jain_index
from policyfactory.simulation.simulate import Schedule
from policyfactory.statistics.intervals import Interval
from refusals import refused
from snapshots import snapshot

# Users 1, 2, 3 with two, one and one jobs of 10 s; a job of nobody.
JOBS = workload([(0, 10, 10, 1, 1), (0, 10, 10, 1, 2), (0, 10, 10, 1, 1), (0, 10, 10, 1, 3), (0, 10, 10, 1, -1)])


def run(policy: str, *waits: int) -> Schedule:
    return schedule(JOBS, [*waits, 9000], policy)


def pair(extra: int = 0) -> list[Schedule]:
    """Means of users 1, 2, 3: 50, 100, 0 s under A; 50, 60 + extra, 0 s under B."""
    return [run("A", 0, 100, 100, 0), run("B", 40, 60 + extra, 60, 0)]


@pytest.mark.parametrize(
    ("values", "index"),
    [
        ([5, 5, 5, 5], 1),
        ([1, 0, 0, 0], 1 / 4),  # one of n has everything: 1/n
        ([1, 1, 0, 0, 0, 0, 0, 0, 0, 0], 2 / 10),  # k of n have all, equally: k/n, the index's meaning in the report
        ([50, 30, 50], 130**2 / (3 * (50**2 + 30**2 + 50**2))),
        ([0, 0], 1),
        ([7], 1),
        ([1e300, 1e300], 1),
    ],
)
def test_jains_index_by_hand(values: list[float], index: float) -> None:
    assert jain_index(np.array(values, dtype=np.float64)) == pytest.approx(index, rel=1e-15)


@given(st.lists(st.floats(0, 1e200), min_size=1, max_size=30), st.floats(1e-6, 1e6))
def test_jains_index_is_between_1_over_n_and_1_and_has_no_unit(values: list[float], factor: float) -> None:
    x = np.array(values)
    assert 1 / len(x) <= jain_index(x) <= 1
    assert jain_index(x * factor) == pytest.approx(jain_index(x), rel=1e-9)


def test_by_hand() -> None:
    section = conclude(Fairness(), [pair()] * 6)
    wait = cells(table(section, "wait"), policy="A")
    assert [wait[name].value for name in ("worst user", "p95 user", "median user")] == [100, 95, 50]
    wait = cells(table(section, "wait"), policy="B")
    assert [wait[name].value for name in ("worst user", "median user")] == [60, 50]
    assert wait["worst user, difference"].value == -40
    assert wait["worst user, difference"].mark == "better"
    assert wait["worst user, difference"].interval == Interval(-40, -40)
    # Bounded slowdowns (w + 10)/10: users 1, 2, 3 have 6, 11, 1 under A and 6, 7, 1 under B.
    slowdown = cells(table(section, "slowdown"), policy="A")
    assert [slowdown[name].value for name in ("worst user", "median user")] == [11, 6]
    assert slowdown["Jain's index"].value == pytest.approx(18**2 / (3 * (36 + 121 + 1)))
    slowdown = cells(table(section, "slowdown"), policy="B")
    assert slowdown["Jain's index"].value == pytest.approx(14**2 / (3 * (36 + 49 + 1)))
    assert slowdown["Jain's index, difference"].mark == "better"  # here higher is better


def test_the_words() -> None:
    section = conclude(Fairness(), [pair()] * 6)
    snapshot(section.paragraphs)


def test_no_difference_is_said() -> None:
    same = [run("A", 0, 100, 100, 0), run("B", 0, 100, 100, 0)]
    (text, _) = conclude(Fairness(), [same] * 6).paragraphs
    snapshot(text)


def test_one_case_and_one_policy() -> None:
    (text, _) = conclude(Fairness(), [pair()]).paragraphs
    snapshot(text)
    (text, _) = conclude(Fairness(), [pair()[:1]]).paragraphs
    assert "against" not in text
    assert "interval" not in text


def test_one_user_and_none() -> None:
    one = workload([(0, 10, 10, 1, 5), (0, 10, 10, 1, 5)])
    section = conclude(Fairness(), [[schedule(one, [5, 10], name) for name in "AB"]])
    snapshot(section.paragraphs, part="1")
    assert cells(table(section, "slowdown"), policy="B")["Jain's index"].value == 1
    nobody = workload([(0, 10, 10, 1, -1)])
    section = conclude(Fairness(), [[schedule(nobody, [5], name) for name in "AB"]])
    snapshot(section.paragraphs, part="2")
    assert not section.tables
    assert not section.pictures


def test_a_log_without_users_beside_one_with() -> None:
    nobody = workload([(0, 10, 10, 1, -1)])
    section = conclude(Fairness(), [[schedule(nobody, [5], name) for name in "AB"], pair()], logs=["silent", "kth"])
    snapshot(section.paragraphs[0])
    assert len(table(section, "wait").rows) == 2
    assert [each.title for each in section.pictures] == ["kth: how many users wait how long on average"]


def test_users_with_few_jobs_in_a_case_can_be_left_out() -> None:
    section = conclude(Fairness(min_jobs=2), [pair()] * 6)
    assert cells(table(section, "wait"), policy="A")["worst user"].value == 50
    snapshot(section.paragraphs[0], part="1")
    section = conclude(Fairness(min_jobs=3), [pair()] * 6)
    snapshot(section.paragraphs, part="2")


def test_a_case_without_such_users_has_no_value() -> None:
    alone = workload([(0, 10, 10, 1, 4)])
    section = conclude(Fairness(min_jobs=2), [*([pair()] * 6), [schedule(alone, [5], name) for name in "AB"]])
    assert cells(table(section, "wait"), policy="A")["worst user"].value == 50


def test_the_picture_counts_users() -> None:
    waits = [run("A", 0, 7200, 7200, 0), run("B", 0, 3600, 0, 0)]
    (axes,) = conclude(Fairness(), [waits] * 2).pictures[0].draw().axes
    curves = {tuple(line.get_xdata().tolist()): line.get_ydata().tolist() for line in axes.get_lines()}
    # A: user 3 below a minute, user 1 one hour, user 2 two; B: users 1 and 3 below a minute, user 2 one hour.
    thirds = pytest.approx([100 / 3, 200 / 3, 100])
    assert curves == {(60, 3600, 7200): thirds, (60, 60, 3600): thirds}
    assert axes.get_xscale() == "log"


def test_options_are_checked() -> None:
    refused(UsageError, "min_jobs 0 1 fairness", make_analysis, "fairness", min_jobs=0)
