"""``policyfactory predict`` as a user types it, and as it should not be typed."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from habits import log_text, users_with_habits, write_log
from policyfactory.evaluation.logs import read_predictions
from policyfactory.prediction.store import load_forests
from policyfactory.workload.clean import read

Run = Callable[..., "subprocess.CompletedProcess[str]"]
SMALL = ("--least", 60, "--first-days", 1, "--every-days", 1, "--trees", 10, "--leaves", 5)


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_log(tmp_path_factory.mktemp("log") / "habits.swf", users_with_habits(1))


@pytest.fixture
def first(output_of: Callable[..., Path], log: Path) -> Path:
    """Give a folder of predictions of the log."""
    return output_of("first", "predict", log, *SMALL)


def test_everything_is_said_and_written_and_the_same_again_is_the_same_bytes(
    run: Run, log: Path, tmp_path: Path
) -> None:
    done = run("predict", log, "--output", "predicted", *SMALL)
    for words in (
        "trained 5 times, on 80 to",
        "All jobs that the model predicted",
        "nearest neighbours",
        "By how many jobs of the user had ended",
        "days 1 to 30",
        "Shortness, by tenths of what was predicted",
        "The log does not say: group, executable, queue, requested memory.",
    ):
        assert words in done.stdout, done.stdout
    assert "all measures" not in done.stdout
    folder = tmp_path / "predicted"
    report = json.loads((folder / "accuracy.json").read_text())
    assert report["kind"] == "prediction-accuracy"
    assert report["trained_on"][0] == 80
    assert (
        report["overall"]["by"]["model"]["jobs"]
        == report["jobs"] - report["before_first_training"]["by"]["model"]["jobs"]
    )
    manifest = json.loads((folder / "manifest.json").read_text())
    assert list(manifest["inputs"]) == [str(log)]
    assert {"report.html", "accuracy.json", "predictions.csv", "model.json", "months-in-full/all.csv"} <= set(
        manifest["outputs"]
    )
    assert "calibration/calibration.svg" in manifest["outputs"]
    # What was predicted can be evaluated as any other predictions.
    made, _ = read_predictions(folder / "predictions.csv", read(log))
    assert len(made) == 600
    assert load_forests(folder / "model.json").jobs == report["trained_on"][-1]
    provenance = json.loads((folder / "model.json").read_text())["provenance"]
    assert provenance["inputs"] == manifest["inputs"]
    run("predict", log, "--output", "again", *SMALL)
    for name in ("accuracy.json", "predictions.csv", "calibration/calibration.svg"):
        assert (folder / name).read_bytes() == (tmp_path / "again" / name).read_bytes()
    one, two = (json.loads((at / "model.json").read_text())["forests"] for at in (folder, tmp_path / "again"))
    assert one == two


@pytest.mark.usefixtures("blank_pictures")
def test_results_are_not_replaced_unasked(run: Run, log: Path, first: Path) -> None:
    refused = run("predict", log, "--output", "first", *SMALL, code=1)
    assert "--overwrite" in refused.stderr
    run("predict", log, "--output", "first", "--overwrite", "--model", first / "model.json", code=2)
    run("predict", log, "--output", "first", "--overwrite", *SMALL)


@pytest.mark.parametrize("name", ["model.json", "predictions.csv", "accuracy.json"])
@pytest.mark.usefixtures("blank_pictures")
def test_a_file_of_another_command_is_not_replaced_unasked(run: Run, log: Path, tmp_path: Path, name: str) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / name).write_text("mine")
    assert f"mine/{name}: exists; add --overwrite" in run("predict", log, "--output", "mine", *SMALL, code=1).stderr
    assert (tmp_path / "mine" / name).read_text() == "mine"


@pytest.mark.usefixtures("blank_pictures")
def test_a_kept_model_predicts_another_log(run: Run, log: Path, first: Path, tmp_path: Path) -> None:
    other = write_log(tmp_path / "other.swf", users_with_habits(2))
    model = first / "model.json"
    done = run("predict", other, "--model", model, "--json", "--output", "second")
    report = json.loads(done.stdout)
    assert report["trained_on"] == []
    assert report["model_jobs"] == load_forests(model).jobs
    assert report["before_first_training"] is None
    assert report["overall"]["by"]["model"]["jobs"] == 600
    manifest = json.loads((tmp_path / "second" / "manifest.json").read_text())
    assert sorted(manifest["inputs"]) == sorted([str(other), str(model)])
    assert not (tmp_path / "second" / "model.json").exists()
    assert not report["model_has_seen_the_jobs"]
    seen = run("predict", log, "--model", model)
    assert f"warning: {model}: it was trained on these very jobs, and has seen what it is to predict" in seen.stderr
    assert "It was trained on these very jobs" in " ".join(seen.stdout.split())
    refused = run("predict", other, "--model", model, "--trees", 10, code=2)
    assert "trees is about training, and a model that is given is not trained; leave it out" in refused.stderr


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"feature_set": 2}, "was trained on feature set 2 of 57 features"),
        ({"schema_version": 9}, "has predictor schema 9"),
        ({"kind": "policyfactory-model"}, "field kind: expected 'policyfactory-predictor'"),
        ({"forests": []}, "field forests: expected an object"),
    ],
)
@pytest.mark.usefixtures("blank_pictures")
def test_another_model_is_refused(run: Run, log: Path, first: Path, change: dict[str, object], says: str) -> None:
    model = first / "model.json"
    model.write_text(json.dumps(json.loads(model.read_text()) | change))
    refused = run("predict", log, "--model", model, code=1)
    assert f"{model}: {says}" in refused.stderr


@pytest.mark.usefixtures("blank_pictures")
def test_a_log_without_users(run: Run, tmp_path: Path) -> None:
    jobs = users_with_habits(3)
    unknown = log_text(jobs).splitlines()
    lines = [unknown[0], *(" ".join([*line.split()[:11], "-1", *line.split()[12:]]) for line in unknown[1:])]
    (tmp_path / "anonymous.swf").write_text("\n".join(lines) + "\n")
    done = run("predict", "anonymous.swf", *SMALL)
    assert "warning: anonymous.swf does not say its users: nothing is left but requests, processors and" in done.stderr
    assert "user unknown" in done.stdout


@pytest.mark.parametrize(("least", "days"), [(500, 7), (600, 1)])
@pytest.mark.usefixtures("blank_pictures")
def test_a_log_that_is_too_short(run: Run, tmp_path: Path, least: int, days: int) -> None:
    log = write_log(tmp_path / "habits.swf", users_with_habits(4, days=2))
    refused = run("predict", log, "--least", least, "--first-days", days, code=1).stderr
    assert "habits: nothing could be trained: when its last job is submitted, after 2.0 days," in refused
    assert f"the first training takes {least} after {days} days; give a longer log, lower --least" in refused


@pytest.mark.parametrize(
    ("option", "value", "says"),
    [
        ("--window", 5, "--window 5: expected a whole number, 100 to 1,000,000"),
        ("--least", 0, "--least 0: expected a whole number, 50 to 1,000,000"),
        ("--trees", 100_000, "--trees 100000: expected a whole number, 1 to 2,000"),
        ("--leaves", 1, "--leaves 1: expected a whole number, 2 to 255"),
        ("--every-days", "nan", "--every-days nan: expected a number, 0.1 to 3,650"),
        ("--first-days", "inf", "--first-days inf: expected a number, 0.1 to 3,650"),
        ("--policy", "NONE", "NONE"),
    ],
)
def test_options_out_of_range(run: Run, log: Path, option: str, value: object, says: str) -> None:
    assert says in run("predict", log, option, value, code=2).stderr


@pytest.mark.usefixtures("blank_pictures")
def test_requests_that_are_missing(run: Run, tmp_path: Path) -> None:
    lines = log_text(users_with_habits(5)).splitlines()
    gone = [
        " ".join([*line.split()[:8], "-1", *line.split()[9:]]) if at % 3 == 1 else line for at, line in enumerate(lines)
    ]
    (tmp_path / "holes.swf").write_text("\n".join(gone) + "\n")
    refused = run("predict", "holes.swf", *SMALL, code=1)
    assert "--estimate-missing" in refused.stderr
    refused = run("predict", "holes.swf", *SMALL, "--estimate-missing", "runtime", code=1)
    assert "200 jobs have no requested time and were given their run time, which is what is to be predicted" in (
        refused.stderr
    )
    assert (
        "All jobs that the model predicted" in run("predict", "holes.swf", *SMALL, "--estimate-missing", "drop").stdout
    )


@pytest.mark.usefixtures("blank_pictures")
def test_a_clock_that_goes_backwards(run: Run, tmp_path: Path) -> None:
    workload = users_with_habits(6)
    order = np.random.default_rng(1).permutation(len(workload))
    write_log(tmp_path / "straight.swf", workload)
    write_log(tmp_path / "back.swf", workload, order=order)
    tables = [json.loads(run("predict", f"{name}.swf", *SMALL, "--json").stdout) for name in ("straight", "back")]
    for table in tables:
        for words in ("log", "words"):
            del table[words]
    assert tables[0] == tables[1]


@pytest.mark.usefixtures("blank_pictures", "first")
def test_a_user_who_floods(run: Run, log: Path, tmp_path: Path) -> None:
    flood = [
        f"{10_000 + job} {200_000 + job // 200} -1 {1 + job % 7} 1 -1 -1 1 3600 -1 1 99 -1 -1 -1 -1 -1 -1"
        for job in range(10_000)
    ]
    (tmp_path / "flood.swf").write_text(log.read_text() + "\n".join(flood) + "\n")
    begin = time.process_time()
    report = json.loads(run("predict", "flood.swf", "--model", "first/model.json", "--json").stdout)
    assert time.process_time() - begin < 20, "the queue is long, and seconds are enough"
    assert report["overall"]["by"]["model"]["jobs"] == 10_600
    known = {group["jobs_of"]: group["by"]["model"]["jobs"] for group in report["by_history"]}
    assert sum(known.values()) == 10_600
