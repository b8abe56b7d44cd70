"""``policyfactory forecast`` as a user types it, and as it should not be typed."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import numpy as np
import pytest
from forecasting.queues_of import SITE, loop, recorded_log

from policyfactory.site.file import write_site
from policyfactory.workload.snapshot import QueuedJob, Snapshot
from policyfactory.workload.swf.files import format_swf, read_swf, write_swf
from refusals import tell

Run = Callable[..., "CompletedProcess[str]"]


def squeue(snapshot: Snapshot) -> str:
    """Return what squeue --json would print of a queue."""

    def number(value: float | None) -> dict[str, Any]:
        return {"set": value is not None, "infinite": False, "number": int(value or 0)}

    def entry(job: QueuedJob) -> dict[str, Any]:
        return {
            "job_id": job.number,
            "job_state": ["RUNNING" if job.state == "running" else "PENDING"],
            "user_name": job.user,
            "partition": job.partitions[0],
            "submit_time": number(job.submit),
            "start_time": number(job.start),
            "time_limit": number((job.limit or 0) // 60),
            "cpus": number(job.cores),
            "nodes": job.node_list,
            "node_count": number(len(job.node_cores)),
        }

    return json.dumps(
        {"jobs": [entry(job) for job in snapshot.jobs], "last_update": number(snapshot.taken), "meta": {}}
    )


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Give the files of a cluster: site, queue, log."""
    folder = tmp_path_factory.mktemp("cluster")
    found, instants = loop(SITE)
    now = max(instants, key=lambda instant: len(found.record.waiting(instant)))
    paths = {name: folder / name for name in ("site.toml", "queue.json", "log.swf")}
    write_site(SITE, paths["site.toml"])
    paths["queue.json"].write_text(squeue(found.standing(now).snapshot))
    write_swf(recorded_log(found), paths["log.swf"])
    return paths


@pytest.fixture
def words(files: dict[str, Path]) -> tuple[object, ...]:
    queue = ("--queue", files["queue.json"], "--log", files["log.swf"])
    return ("forecast", "--site", files["site.toml"], *queue, "--futures", 30)


def test_the_queue_is_a_table_of_80_columns_and_a_page(
    run: Run, words: tuple[object, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    done = run(*words, "--output", "told")
    assert "median" in done.stdout
    assert "continued" not in done.stdout
    assert max(len(line) for line in done.stdout.splitlines() if not line.startswith("Assumed")) <= 80
    assert "Assumed: intervals are not calibrated" in done.stdout
    names = {path.name for path in (tmp_path / "told").iterdir()}
    assert {"report.html", "forecast.json", "manifest.json", "queue"} <= names
    first = json.loads((tmp_path / "told" / "forecast.json").read_text())
    assert json.loads(run(*words, "--json").stdout) == first
    assert "report.html: exists; add --overwrite" in run(*words, "--output", "told", code=1).stderr
    run(*words, "--output", "told", "--overwrite")
    assert json.loads((tmp_path / "told" / "forecast.json").read_text()) == first


def test_a_job_in_full_with_the_chance_by_a_time(run: Run, words: tuple[object, ...], files: dict[str, Path]) -> None:
    queue = json.loads(files["queue.json"].read_text())
    name = next(job["job_id"] for job in queue["jobs"] if job["job_state"] == ["PENDING"])
    done = run(*words, "--job", name, "--by", "6h")
    assert "within 6h" in done.stdout
    told = json.loads(run(*words, "--job", name, "--by", "6h", "--json").stdout)
    assert told["job"] == str(name)
    assert 0 <= told["within_hour"] <= told["within_asked"] <= told["within_horizon"] <= 1
    # Of several jobs each one, in the order in which they are named.
    names = [str(job["job_id"]) for job in queue["jobs"] if job["job_state"] == ["PENDING"]][:2][::-1]
    both = json.loads(run(*words, "--job", ",".join(names), "--json").stdout)
    assert [its["job"] for its in both] == names
    running = next(job["job_id"] for job in queue["jobs"] if job["job_state"] == ["RUNNING"])
    tell(run(*words, "--job", running, code=2).stderr, f"{running} squeue", cure=False)


def test_a_job_that_is_not_there_yet_and_only_ones_own(run: Run, words: tuple[object, ...]) -> None:
    done = run(*words, "--submit", "-n 4 -t 10:00:00 -p all", "--user", "user 3")
    assert "instead of 10h" in done.stdout
    shown = json.loads(run(*words, "--submit", "-n 4 -t 10:00:00", "--user", "user 3", "--json").stdout)
    assert {job["user"] for job in shown["jobs"]} == {"user 3"}
    assert "user 1" not in json.dumps(shown)


def test_a_backtest_calibrates_later_forecasts(run: Run, words: tuple[object, ...], files: dict[str, Path]) -> None:
    done = run("forecast", files["log.swf"], "--backtest", 40, "--futures", 10, "--output", "tried")
    assert "boosting" in done.stdout
    done = run(*words, "--calibration", "tried", "--predictor", "tried/model.json")
    assert "not calibrated" not in done.stdout
    # It is of EASY on the log's processors, and these are the rules of a site.
    assert "by the rules of EASY" in done.stdout
    assert run("forecast", files["log.swf"], "--backtest", 10, "--futures", 5, "--recorded", "--json").stdout


def test_a_backtest_that_was_wrong_is_named_with_the_forecast(
    run: Run, words: tuple[object, ...], tmp_path: Path
) -> None:
    stretch = {"shift": 0, "factors": [1, 1, 1, 1], "instants": 50, "log": "log", "rules": "made", "inside": 0.51}
    (tmp_path / "bad.json").write_text(json.dumps({"calibration": stretch}))
    done = run(*words, "--calibration", "bad.json")
    assert "not to be trusted" in done.stdout
    assert "51 %" in done.stdout
    (tmp_path / "good.json").write_text(json.dumps({"calibration": stretch | {"inside": 0.9}}))
    assert "not to be trusted" not in run(*words, "--calibration", "good.json").stdout


def test_without_a_site_a_job_that_is_too_large_is_told_and_the_others_forecast(
    run: Run, files: dict[str, Path], tmp_path: Path
) -> None:
    queue = json.loads(files["queue.json"].read_text())
    large = next(job for job in queue["jobs"] if job["job_state"] == ["PENDING"])
    large["cpus"]["number"] = 17
    (tmp_path / "large.json").write_text(json.dumps(queue))
    told = json.loads(
        run("forecast", "--queue", "large.json", "--log", files["log.swf"], "--futures", 5, "--json").stdout
    )
    outside = {job["job"]: job["outside"] for job in told["jobs"] if job["outside"]}
    assert outside.keys() == {str(large["job_id"])}
    assert "17 processors, and there are 16" in outside[str(large["job_id"])]


def test_today_ends_where_the_user_says(run: Run, words: tuple[object, ...]) -> None:
    def today(zone: str) -> list[float]:
        return [job["today"] for job in json.loads(run(*words, "--time-zone", zone, "--json").stdout)["jobs"]]

    assert today("Asia/Tokyo") != today("America/Los_Angeles")


@pytest.mark.slow
def test_a_described_site_is_replayed_first_and_what_is_far_calibrates_nothing(
    run: Run, words: tuple[object, ...], files: dict[str, Path], tmp_path: Path
) -> None:
    tried = ("forecast", files["log.swf"], "--site", files["site.toml"], "--backtest", 40, "--futures", 5)
    assert "record" in run(*tried, "--output", "near").stdout
    content = json.loads((tmp_path / "near" / "backtest.json").read_text())
    assert content["fidelity"] == "near"
    (tmp_path / "far.json").write_text(json.dumps(content | {"fidelity": "far"}))
    tell(run(*words, "--calibration", "far.json", code=1).stderr, "far.json --recorded")


def test_who_gives_up_is_learned_from_the_log_or_left_out(
    run: Run, words: tuple[object, ...], files: dict[str, Path], tmp_path: Path
) -> None:
    assert "nobody cancels" in run(*words).stdout
    log = read_swf(files["log.swf"])
    gone = (np.arange(len(log)) % 4 == 0) & (log.submit < 0.7 * log.submit.max())
    wait, run_time, allocated = (np.where(gone, value, column) for value, column in
                                 ((3600, log.wait), (-1, log.run_time), (-1, log.allocated)))  # fmt: skip
    status = np.where(gone, 5, log.status)
    changed = dataclasses.replace(log, wait=wait, run_time=run_time, allocated=allocated, status=status)
    (tmp_path / "gone.swf").write_bytes(format_swf(changed))
    queue = ("forecast", "--site", files["site.toml"], "--queue", files["queue.json"], "--log", "gone.swf")
    told = run(*queue, "--futures", 30)
    assert "nobody cancels" not in told.stdout
    others = run(*queue, "--futures", 30, "--without", "cancellations", "--without", "arrivals")
    assert others.stdout != told.stdout
    tell(run(*queue, "--without", "users", code=2).stderr, "'users' arrivals cancellations")
    tried = json.loads(run("forecast", "gone.swf", "--backtest", 10, "--futures", 5, "--recorded", "--json").stdout)
    assert "without cancellations" in tried["methods"]
    assert tried["cancelled"] >= 0


@pytest.mark.parametrize(
    ("more", "facts"),
    [
        (["--backtest", "20"], "--queue --backtest"),
        (["--recorded"], "--recorded --backtest"),
        (["--submit", "-Q"], "--submit -Q sbatch"),
        (["--horizon", "30d"], "30d 7"),
        (["--by", "3d"], "3d 1d --horizon"),
        (["--calibration", "nowhere"], "nowhere --output"),
        (["--by", "inf"], "inf 1d --horizon"),
        (["--by", "0"], "0 1d"),
        (["--submit", ""], "sbatch -N"),
        (["--submit", "-n 1 -c 8 -t 30"], "-c 8 1"),
        (["--submit", "-n 1 -p nowhere"], "'nowhere' made"),
        (["--job", "999999999"], "999999999"),
        (["--taken", "1990-01-01"], "500 1990-01-01"),
    ],
)
def test_what_cannot_be_is_refused(run: Run, words: tuple[object, ...], more: list[str], facts: str) -> None:
    code = 1 if "--calibration" in more else 2
    tell(run(*words, *more, code=code).stderr, facts)


def test_the_log_is_given_once_and_the_queue_too(run: Run, words: tuple[object, ...], files: dict[str, Path]) -> None:
    tell(run(*words, files["log.swf"], code=2).stderr, "--log")
    tell(run("forecast", files["log.swf"], code=2).stderr, "--queue --backtest")


def test_an_empty_queue_is_told_and_no_error(run: Run, files: dict[str, Path], tmp_path: Path) -> None:
    queue = json.loads(files["queue.json"].read_text())
    queue["jobs"] = [job for job in queue["jobs"] if job["job_state"] == ["RUNNING"]]
    (tmp_path / "empty.json").write_text(json.dumps(queue))
    done = run("forecast", "--queue", "empty.json", "--log", files["log.swf"], "--futures", 5)
    assert "no such job waits" in done.stderr
    assert (
        json.loads(
            run("forecast", "--queue", "empty.json", "--log", files["log.swf"], "--user", "nobody", "--json").stdout
        )["jobs"]
        == []
    )
