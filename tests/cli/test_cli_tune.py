"""``policyfactory tune`` as a user types it."""

from __future__ import annotations

import csv
import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from naive.logs import text_of
from policyfactory.cli import main
from policyfactory.evaluation.protocol import read_protocol

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def log(shared: Callable[[str], Path]) -> Path:
    return shared("oracles/online/trace_kth5k.swf.gz")


def failing(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *arguments: object) -> str:
    """Return the message of a command that is refused, run in this process."""
    monkeypatch.setattr("sys.argv", ["policyfactory", "tune", *map(str, arguments)])
    with pytest.raises(SystemExit) as stopped:
        main.run()
    assert stopped.value.code == 2
    return " ".join(capsys.readouterr().err.split())


def test_policies_that_read_predictions_are_refused(capsys, monkeypatch, log: Path) -> None:
    given = ("--policies", "SPF,INDEX", "--formula", "INDEX=-ln(s) + ln(e) + 0.4*ln(q)")
    message = failing(capsys, monkeypatch, log, *given)
    assert "policy INDEX reads e, s, which a tuner (" in message
    assert "does not know: predictions are made while a log is simulated by our own rules" in message


@pytest.mark.usefixtures("blank_pictures")
def test_a_log_is_tuned_and_written(run: Run, log: Path, tmp_path: Path) -> None:
    chosen = (
        "--feedback",
        "simulate,bandit",
        "--period",
        "1w,1d",
        "--policies",
        "FCFS,SPF,SAF",
        "--formula",
        "MINE=p*q",
    )
    done = run("tune", log, *chosen, "--output", "results", "--noise", 0.5, "--epsilon", 0.1)
    assert "without effect: --noise, which is for --feedback noisy" in done.stderr
    assert "--epsilon" not in done.stderr
    # In words and tables: what was chosen over time, and the result beside fixed policies, hindsight and chance.
    assert "it is the best in hindsight. Of the tuners," in " ".join(done.stdout.split())
    assert "The policies that each tuner chose most, as time passes" in done.stdout
    names = [
        "FCFS",
        "SPF",
        "SAF",
        "MINE",
        "simulate 1w",
        "simulate 1d",
        "bandit 1w",
        "bandit 1d",
        "random 1w",
        "random 1d",
    ]
    with (tmp_path / "results" / "results.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert list(dict.fromkeys(row["policy"] for row in rows)) == names
    assert list(dict.fromkeys(row["metric"] for row in rows)) == ["total_wait", "mean_wait", "mean_bsld", "max_wait"]
    total = {row["policy"]: float(row["value"]) for row in rows if row["metric"] == "total_wait"}
    # EASY(P, 40 h) on this log; SAF and the formula are the same order.
    assert total["SAF"] == total["MINE"]
    for part in ("improvement/policies.svg", "improvement/tuners.svg", "choices/choices.svg", "choices/shares.csv"):
        assert (tmp_path / "results" / "tuning" / part).is_file()
    assert {"report.html", "evaluation.json", "manifest.json", "protocol.toml"} <= {
        path.name for path in (tmp_path / "results").iterdir()
    }
    # The protocol that was written is what was run.
    (plan,) = read_protocol(tmp_path / "results" / "protocol.toml").experiments
    assert list(plan.policies) == names
    assert plan.rules.threshold == 40 * 3600


def test_resamples_json_and_a_learned_model(run: Run, log: Path, root: Path, tmp_path: Path) -> None:
    model = min((root / "models").rglob("*.json"))
    arguments = (
        "--policies",
        f"FCFS,{model}",
        "--feedback",
        "thompson",
        "--period",
        "1d",
        "--resamples",
        6,
        "--seed",
        4,
    )
    one, two = (run("tune", log, *arguments, "--length", "3w", "--json", "--workers", jobs) for jobs in (1, 2))
    result = json.loads(one.stdout)
    other = json.loads(two.stdout)
    for content in (result, other):
        del content["manifest"]
    assert result == other
    assert [row["tuner"] for row in result["choices"]["tables"]["shares"]] == ["thompson 1d", "random 1d"]
    differences = result["experiments"]["tuning"]["differences"]
    tuned = next(row for row in differences if row["policy"] == "thompson 1d" and row["metric"] == "total_wait")
    assert tuned["interval"]["low"] <= tuned["difference"] <= tuned["interval"]["high"]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("blank_pictures")
def test_a_log_is_tuned_on_a_site(run: Run, tmp_path: Path) -> None:
    jobs: list[dict[str, object]] = [
        {"submit": 3600 * n, "allocated": 10, "run_time": 900 * (1 + n % 9), "requested_time": 9000} for n in range(60)
    ]
    (tmp_path / "log.swf").write_text(text_of(jobs))
    (tmp_path / "s.toml").write_text(
        'schema = 1\nnodes = [{names = "n[1-5]", cores = 2}]\npartitions = [{name = "all"}]\n'
    )
    words = ("tune", "log.swf", "--policies", "FCFS,SPF", "--period", "12h")
    done = run(*words, "--site", tmp_path / "s.toml", "--output", "on-site")
    assert "The same under EASY" in (tmp_path / "on-site" / "report.html").read_text()
    (plan,) = read_protocol(tmp_path / "on-site" / "protocol.toml").experiments
    assert plan.rules.site is not None
    assert (plan.rules.backfill, plan.rules.threshold) == ("slurm", 40 * 3600)
    assert list(plan.policies) == ["FCFS", "SPF", "simulate 12h", "random 12h"]
    assert "Of the tuners," in " ".join(done.stdout.split())
    assumed = run(*words, "--backfill", "slurm")
    assert "Nobody described the site" in assumed.stdout
    refused = run(*words, "--backfill", "slurm", "--formula", "FREE=p*q/f", code=2)
    assert "policy FREE has f, the processors that are free" in " ".join(refused.stderr.split())
    refused = run(*words, "--site", "s.toml", "--feedback", "bandit", code=2)
    assert "choose feedback simulate, noisy, random, or backfill easy" in " ".join(refused.stderr.split())
    refused = run(*words, "--site", "s.toml", "--backfill", "easy", code=2)
    assert "choose backfill slurm, or leave out the site" in " ".join(refused.stderr.split())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--feedback", "oracle"), "--feedback 'oracle': is none of simulate, noisy, bandit, random, thompson, ucb"),
        (("--feedback", " "), "--feedback is empty"),
        (("--period", "soon"), "--period 'soon': is not a duration"),
        (("--epsilon", "2"), "--epsilon 2.0: is out of range; write a number of 0 to 1"),
        (("--discount", "-1"), "--discount -1.0: is out of range; write a number of 0 to 1"),
        (("--backfill", "conservative"), "is not one of"),
        (("--policies", "FCFS,FCFS"), "two policies are called FCFS"),
        (("--policies", ""), "--policies: names no policy; write for example --policies FCFS,SPF,SAF"),
    ],
)
def test_wrong_options_are_refused(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    log: Path,
    arguments: tuple[str, ...],
    message: str,
) -> None:
    assert message in failing(capsys, monkeypatch, log, *arguments)
