"""The command ``policyfactory learn``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from policyfactory.learn.words import record_in_words, verdict_in_words
from policyfactory.policy.store import load_model
from policyfactory.statistics.compare import Comparison
from policyfactory.statistics.intervals import Interval
from policyfactory.statistics.summary import Summary
from policyfactory.workload.swf.files import read_swf


def test_a_log_becomes_a_policy_tested_on_jobs_without_part_in_the_choice(run, tmp_path: Path) -> None:
    run("workload", "lublin", "--processors", 64, "--jobs", 1300, "--estimates", "tsafrir", "--output", "log.swf")
    few = ("--tuples", 32, "--trials", 3200, "--threshold", "20h")
    done = run("learn", "log.swf", "--output", "my folder", *few)
    folder = tmp_path / "my folder"
    # Three parts, in the log's order, that have no job in common.
    numbers = [read_swf(folder / f"log-{part}.swf").job_id.tolist() for part in ("training", "choosing", "test")]
    assert [len(part) for part in numbers] == [650, 325, 325]
    assert [job for part in numbers for job in part] == read_swf(tmp_path / "log.swf").job_id.tolist()
    # The choice is that of the second part; the evidence is from the third.
    chosen = load_model(folder / "policy.json").policy.name
    choosing, test = (json.loads((folder / part / "evaluation.json").read_text()) for part in ("choosing", "test"))
    assert choosing["experiments"]["evaluation"]["winner"] == chosen
    assert chosen in {row["policy"] for row in test["experiments"]["evaluation"]["summary"]}
    assert (folder / "test" / "report.html").exists()
    end = done.stdout.split("In words")[1]
    assert f"{chosen} was the best of 13 policies on the third quarter of the jobs." in end
    assert "On the last quarter, which had no part in the choice, it is not shown to be better" in end
    # One case has no interval, so nothing is shown, and nothing is to be installed.
    assert "one case, no interval" in end
    assert "next:" not in done.stderr
    # All tables are in a file, on the screen there are the commands only.
    assert "$ policyfactory fit" in done.stdout
    assert "MAE" in (folder / "steps.txt").read_text()
    assert "MAE" not in done.stdout
    assert load_model(folder / "policy.json").policy.threshold == 72_000.0
    manifest = json.loads((folder / "policy.manifest.json").read_text())
    assert manifest["parameters"]["chosen"] == chosen
    # It is not replaced by accident.
    assert "holds a learned policy" in run("learn", "log.swf", "--output", "my folder", *few, code=1).stderr


def test_a_log_too_short_to_learn_from_is_refused_before_any_work(run, tmp_path: Path) -> None:
    run("workload", "lublin", "--processors", 64, "--jobs", 150, "--output", "short.swf")
    done = run("learn", "short.swf", "--estimate-missing", "runtime", code=1)
    assert "150 jobs are left after cleaning, and 200 are the least" in done.stderr
    assert "have no requested time" in run("learn", "short.swf", code=1).stderr
    assert not (tmp_path / "learned").exists()


def test_options_are_checked_before_any_work(run, tmp_path: Path) -> None:
    run("workload", "lublin", "--processors", 64, "--jobs", 250, "--estimates", "tsafrir", "--output", "log.swf")
    for option, value, said in [
        ("--metric", "bsld", "unknown metric"),
        ("--threshold", "soon", "soon"),
        ("--windows", "many", "many"),
        ("--seed", "-1", "seed"),
        ("--output", "a,b", "without one"),
    ]:
        assert said in run("learn", "log.swf", option, value, code=2).stderr
        assert not (tmp_path / "learned").exists(), option


def _row(policy: str, metric: str, verdict: Any, difference: float, interval: tuple[float, float] | None) -> Comparison:
    unit = "s" if metric.endswith("wait") else "1"
    ends = None if interval is None else Interval(*interval)
    return Comparison(
        "log", metric, policy, "FCFS", "median", unit, 7, difference, ends, None, None, None, 6, 1, 0, verdict
    )


@pytest.mark.parametrize(
    ("verdict", "interval", "says"),
    [
        (
            "better",
            (-9.0, -2.5),
            "is better than FCFS in mean_bsld (-5.50, 95 % interval -9.00 to -2.50; better in 6 of 7 windows). It pays",
        ),
        (
            "worse",
            (-9.0, -2.5),
            "WORSE than FCFS in mean_bsld (-5.50, 95 % interval -9.00 to -2.50; better in 6 of 7 windows): do not",
        ),
        (
            "no difference",
            (-9.0, 2.5),
            "not shown to be better than FCFS in mean_bsld (-5.50, 95 % interval -9.00 to +2.50; better in 6 of 7",
        ),
        ("too few cases", None, "not shown to be better than FCFS in mean_bsld (-5.50, one case, no interval)"),
    ],
)
def test_the_verdict_is_that_of_the_last_quarter(verdict: str, interval: tuple[float, float], says: str) -> None:
    rows = [
        _row("SAF", "mean_bsld", "better", -7.0, (-8.0, -6.0)),
        _row("forms-f1", "mean_bsld", verdict, -5.5, interval),
        _row("forms-f1", "max_wait", "worse", 7200.0, (3600.0, 86_400.0)),
        _row("forms-f1", "mean_wait", "no difference", 1.0, (-3.0, 3.0)),
    ]
    words = verdict_in_words("forms-f1", "FCFS", rows, "mean_bsld")
    assert says in words
    assert (
        "It pays for that in max_wait (+2.00 h, 95 % interval +1.00 to +24.0; better in 6 of 7 windows)." in words
    ) == (verdict == "better")
    assert "No other metric" in verdict_in_words("SAF", "FCFS", rows, "mean_bsld")
    assert "leave the queue as it is" in verdict_in_words("FCFS", "FCFS", rows, "mean_bsld")
    assert "not shown" in verdict_in_words("forms-f1", "FCFS", [], "mean_bsld")


def _value(policy: str, value: float) -> Summary:
    numbers = (value, None, value, value, value, value, None, None, None, None, None, False)
    return Summary("log", "mean_wait", policy, "s", "median", 7, *numbers)


def test_the_record_stands_beside_the_simulated_baseline() -> None:
    simulated = [_value("FCFS", 3600.0), _value("SAF", 1800.0)]
    assert record_in_words([], simulated, "FCFS", "mean_wait") == ""
    words = record_in_words([_value("recorded", 7200.0)], simulated, "FCFS", "mean_wait")
    assert "as recorded, mean_wait was 2.00 h; under the simulated FCFS it is 1.00 h." in words


@pytest.mark.slow
def test_with_a_date_formulas_count_from_the_first_day_of_the_log(run, tmp_path: Path) -> None:
    day = 1_767_225_600
    rows = [
        f"{n} {3600 + 600 * n} 0 {60 * (1 + n % 9)} {1 + n % 4} -1 -1 {1 + n % 4} 900 -1 1 1 1 -1 1 -1 -1 -1"
        for n in range(1, 301)
    ]
    (tmp_path / "dated.swf").write_text("\n".join([f"; UnixStartTime: {day}", "; MaxProcs: 8", *rows]) + "\n")
    run("learn", "dated.swf", "--tuples", 32, "--trials", 256)
    dated = sorted((tmp_path / "learned" / "dated").iterdir())
    assert {path.stem for path in dated} >= {"FCFS", "F1"}
    assert {load_model(path).policy.epoch.unix_time for path in dated} == {day}
