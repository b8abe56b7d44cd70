"""The Pareto front: what is on it, its file, its picture, and that another member can be picked."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from habits import users_with_habits
from policyfactory.core.errors import InputError, ModelFileError, OutputError, UsageError
from policyfactory.policy.store import load_model
from policyfactory.search.formulas import FormulaSearch, Tried, Worth, front_with, spread
from policyfactory.search.judging import COSTS, non_dominated
from policyfactory.search.options import SearchOptions, TrainOptions
from policyfactory.search.run import front_json, pick, train
from refusals import refused


@given(st.lists(st.tuples(*[st.sampled_from([0.0, 1.0, 2.0, math.nan])] * 3), min_size=1, max_size=12))
def test_a_row_is_on_the_front_if_no_other_beats_it(rows: list[tuple[float, ...]]) -> None:
    def beats(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
        pairs = [*zip(one, other, strict=True)]
        return all(a <= b for a, b in pairs) and any(a < b for a, b in pairs)

    expected = [
        not any(map(math.isnan, row))
        and row not in rows[:at]
        and not any(beats(one, row) for one in rows if not any(map(math.isnan, one)))
        for at, row in enumerate(rows)
    ]
    assert non_dominated(np.array(rows)).tolist() == expected


def test_a_search_keeps_a_spread_of_its_front() -> None:
    front: list[Tried] = []
    for at in range(40):
        front = front_with(front, Tried((float(at),), Worth(0.0, float(at), (0, 0, 40.0 - at, 1.0, 1.0), "")))
    assert len(front) == 40
    front = front_with(front, Tried((99.0,), Worth(0.0, 50.0, (0, 0, 50.0, 2.0, 2.0), "")))
    assert len(front) == 40
    kept = [one.worth.gain for one in spread(front)]
    assert (len(kept), kept[0], kept[-1]) == (12, 0.0, 39.0)
    assert spread([]) == []


FEW = SearchOptions(families=("predicted", "predicted-log"), restarts=1, evaluations=16)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory):
    folder = tmp_path_factory.mktemp("front")
    options = TrainOptions(replicas=3, bands=(), max_p99="1.5x")
    log = users_with_habits(3, jobs=1_500, days=84)
    return folder, train(log, FormulaSearch.of(FEW), options, output=folder)


def test_what_is_on_the_front_nothing_else_beats_on_the_replicas_for_choosing(made) -> None:
    _, found = made
    assert len(found.members) == len(found.chosen.ranked)
    base = next(one for one in found.members if one.name == found.task.baseline.name)
    assert base.ratios == pytest.approx([1.0] * 4)
    assert 0 < len(found.front) <= len(found.members)
    for one in found.front:
        others = [other.ratios for other in found.members]
        assert not any(
            all(a <= b for a, b in zip(other, one.ratios, strict=True)) and other != one.ratios for other in others
        )
    ratios = [one.ratios[0] for one in found.front]
    assert ratios == sorted(ratios)
    # The best of all in the goal is on it.
    assert found.front[0] is found.chosen.ranked[0]
    origins = {one.candidate.origin.split(",")[0] for one in found.members}
    assert origins == {"predicted", "predicted-log", "published"}


def test_the_folder_has_the_front_as_file_and_picture(made) -> None:
    folder, found = made
    content = json.loads((folder / "front.json").read_text())
    assert [one["name"] for one in content["members"]] == [one.name for one in found.front]
    assert set(content["members"][0]["ratios"]) == {"mean_bsld", *COSTS}
    assert content["limits"] == [{"guard": "p99_wait", "times": 1.5, "seconds": None}]
    assert (folder / "front.png").read_bytes().startswith(b"\x89PNG")
    report = json.loads((folder / "report.json").read_text())
    assert [one["policy"] for one in report["front"]] == [one.name for one in found.front]
    assert content == json.loads(json.dumps(front_json(found)))


def test_another_member_can_be_picked_by_name_or_number(made, tmp_path: Path) -> None:
    folder, found = made
    (tmp_path / "front.json").write_bytes((folder / "front.json").read_bytes())
    last = found.front[-1]
    picked = pick(tmp_path, str(len(found.front)))
    assert picked.policy.formula == last.candidate.policy.formula
    model = load_model(tmp_path / "policy.json")
    assert model.policy == picked.policy
    assert "judged on nothing that is held out" in model.warnings[0]
    refused(OutputError, "policy.json --overwrite add", pick, tmp_path, found.front[0].name)
    assert pick(tmp_path, found.front[0].name, overwrite=True).policy.name == found.front[0].name
    refused(UsageError, "--pick 0 front.json 1", pick, tmp_path, "0")


@pytest.mark.parametrize(
    ("content", "error", "said"),
    [
        (None, InputError, "front.json no such file"),
        ("{", InputError, "front.json JSON Invalid 1"),
        ("[]", InputError, "front.json front"),
        ('{"kind": "pareto-front", "schema_version": 2}', InputError, "front.json schema_version 1"),
        ('{"kind": "pareto-front", "schema_version": 1, "members": []}', InputError, "front.json members 1"),
        (
            '{"kind": "pareto-front", "schema_version": 1, "members": [{"name": "a"}]}',
            InputError,
            "front.json members.0.model",
        ),
        (
            '{"kind": "pareto-front", "schema_version": 1, "members": [{"name": "a", "model": {"kind": 1}}]}',
            ModelFileError,
            "front.json a policyfactory-model",
        ),
    ],
)
def test_a_front_that_cannot_be_used_is_refused(tmp_path: Path, content: str | None, error, said: str) -> None:
    if content is not None:
        (tmp_path / "front.json").write_text(content)
    refused(error, said, pick, tmp_path, "1")
    assert not (tmp_path / "policy.json").exists()


def test_on_windows_there_is_no_front(tmp_path: Path) -> None:
    log = users_with_habits(3, jobs=900, days=20)
    options = TrainOptions(window_jobs=60, training_windows=3, choosing_windows=2, judged_windows=3, bands=())
    found = train(
        log, FormulaSearch.of(SearchOptions(("power",), restarts=1, evaluations=10)), options, output=tmp_path
    )
    assert found.front == ()
    assert not (tmp_path / "front.json").exists()
    assert len(found.learned.candidates) <= 8
