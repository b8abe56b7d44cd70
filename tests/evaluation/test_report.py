"""A study as files: which there are, what they say, that equal studies are equal bytes."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from policyfactory.core.files import Manifest, dump_json
from policyfactory.core.inputs import sha256_file
from policyfactory.evaluation.experiment import Experiment
from policyfactory.evaluation.precision import Precision
from policyfactory.evaluation.protocol import protocol_of
from policyfactory.evaluation.results_folder import Result, as_dict, listed, write_report
from policyfactory.evaluation.standings import winners
from policyfactory.evaluation.study import RunSettings, conclude, run_protocol, selected
from policyfactory.statistics.evaluation import Evaluation

Make = Callable[..., Evaluation]
COST = {"A": [4.0, 8.0, 2.0, 6.0, 10.0, 7.0], "B": [0.1 + 0.2, 9.0, 2.0, 5.0, 1.0, 1.5]}
MANIFEST = Manifest("evaluation", "policyfactory evaluate", 0)


def content(**changes: Any) -> dict[str, Any]:
    """Return a protocol of three experiments on small logs of a model."""
    experiments = [
        {
            "name": "windows",
            "title": "Windows <b>of</b> three days",
            "logs": ["small"],
            "windows": "6x3d",
            "policies": ["FCFS", "SPF", "SAF"],
            "metrics": ["mean_bsld", "max_wait"],
            "analyses": ["groups"],
        },
        {
            "name": "drawn",
            "resample": {"count": 6, "length": "2w"},
            "policies": ["FCFS", "SAF"],
            "tuners": [{"name": "week", "feedback": "random", "period": "1d"}],
            "metrics": ["mean_bsld"],
            "statistic": "ratio",
            "rules": {"threshold": "3x longest request"},
            "estimates": "noisy:0.5",
            "load": 1.25,
        },
    ]
    claims = [{"text": "SAF beats FCFS", "better": ["SAF"], "than": ["FCFS"], "metric": "mean_bsld"}]
    logs = {
        "small": {"lublin": {"processors": 32, "jobs": 2500, "seed": 1}},
        "other": {"lublin": {"processors": 64, "jobs": 2500, "seed": 2}},
    }
    result = {"schema_version": 1, "name": "tiny", "title": "Tiny", "seed": 5, "logs": logs}
    return {**result, "experiments": experiments, "claims": claims, **changes}


@pytest.fixture(scope="module")
def study() -> Result:
    return run_protocol(protocol_of(content()))


def of_values(evaluation: Evaluation) -> Result:
    """Return a study of values by hand."""
    plan = {"name": "hand", "policies": ["FCFS"], "metrics": ["mean_bsld"]}
    logs = {"log": {"lublin": {"processors": 4, "jobs": 1, "seed": 1}}}
    protocol = protocol_of({"schema_version": 1, "name": "hand", "logs": logs, "experiments": [plan]})
    experiment = Experiment("hand", (), evaluation.contenders, metrics=evaluation.metrics, seed=4)
    return Result(protocol, {}, (conclude(experiment, evaluation),), ())


def test_the_json_says_what_was_done_and_has_no_nan(by_hand: Make) -> None:
    delay = {"A": [math.nan] * 6, "B": [math.inf] * 6}
    result = json.loads(dump_json(as_dict(of_values(by_hand({"log": {"cost": COST, "delay": delay}})))))
    own, setting = result["experiments"]["hand"], result["protocol"]["experiments"][0]
    assert own["winner"] == "B"
    assert setting["baseline"] == "A"
    assert setting["rules"]["threshold_s"] is None
    assert setting["bootstrap"]["seed"] == 4
    assert setting["policies"][0]["formula"] == "p*q"
    assert [row["median"] for row in own["summary"]] == [6.5, 1.75, None, None]
    assert own["differences"][0]["interval"]["low"] <= own["differences"][0]["difference"]
    assert own["worst_off"]["log"][0]["policy"] == "A"
    assert own["words"][0].startswith("log: B has the lowest median cost")


def test_logs_that_do_not_agree_have_no_common_winner(by_hand: Make) -> None:
    swapped = {"A": COST["B"], "B": COST["A"]}
    result = of_values(by_hand({"one": {"cost": COST}, "two": {"cost": swapped}}))
    assert winners(result.outcomes[0].summaries, "cost") == {"one": "B", "two": "A"}
    assert as_dict(result)["experiments"]["hand"]["winner"] is None


def test_the_files_of_a_study_and_what_the_next_one_leaves_of_them(study: Result, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("stays")
    names = write_report(study, tmp_path, MANIFEST, "# the protocol\n")
    assert names == ["report.html", "results.csv", "evaluation.json", "protocol.toml", "manifest.json"]
    outputs = json.loads((tmp_path / "manifest.json").read_text())["outputs"]
    files = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()}
    assert files == {*outputs, "manifest.json", "mine.txt"}
    assert outputs == {name: sha256_file(tmp_path / name) for name in outputs}
    for name in ("windows/values/small.csv", "windows/groups/by-size.csv", "claims/claims/claims.csv"):
        assert name in outputs
    assert {"drawn/values/mean-bsld-boxes.svg", "drawn/ranks/ranks.svg", "drawn/wins/wins.svg"} < set(outputs)
    page = (tmp_path / "report.html").read_text()
    assert "Windows &lt;b&gt;of&lt;/b&gt; three days" in page
    assert "# the protocol" in page
    starts = tmp_path / "starts" / "A.csv"
    starts.parent.mkdir()
    starts.write_text("job_id\n")
    write_report(dataclass_without_claims(study), tmp_path, MANIFEST, "", [starts])
    assert "starts/A.csv" in listed(tmp_path)
    assert not (tmp_path / "claims").exists()
    assert (tmp_path / "mine.txt").read_text() == "stays"


def dataclass_without_claims(study: Result) -> Result:
    return Result(study.protocol, study.logs, study.outcomes, ())


@pytest.mark.slow
def test_equal_protocols_give_equal_bytes_for_any_number_of_workers(study: Result, tmp_path: Path) -> None:
    kept = []
    for workers in (1, 3):
        folder = tmp_path / str(workers)
        folder.mkdir()
        again = run_protocol(protocol_of(content()), settings=RunSettings(workers=workers))
        write_report(
            again, folder, Manifest("evaluation", f"--workers {workers}", 5, measured={"seconds": workers}), ""
        )
        paths = [path for path in folder.rglob("*") if path.is_file() and path.name != "manifest.json"]
        kept.append({path.relative_to(folder): path.read_bytes() for path in paths})
    assert kept[0] == kept[1]


def test_a_seed_changes_what_is_drawn_and_nothing_else(study: Result) -> None:
    other = run_protocol(protocol_of(content(seed=6)))
    first, second = (one.outcomes for one in (study, other))
    assert first[0].evaluation.values.tobytes() == second[0].evaluation.values.tobytes()
    assert (first[1].evaluation.values != second[1].evaluation.values).any()


def test_batches_of_a_precision_are_the_resamples_that_would_be_drawn_at_once(study: Result) -> None:
    drawn = content()["experiments"][1]
    wanted = protocol_of(content(experiments=[{**drawn, "resample": {"count": 15, "length": "2w"}}], claims=[]))
    at_once = run_protocol(wanted).outcomes[0]
    start = protocol_of(content(experiments=[{**drawn, "resample": {"count": 3, "length": "2w"}}], claims=[]))
    in_batches = run_protocol(start, settings=RunSettings(precision=Precision(1e-6, most=15), workers=2)).outcomes[0]
    assert in_batches.evaluation.cases == at_once.evaluation.cases
    assert in_batches.evaluation.values.tobytes() == at_once.evaluation.values.tobytes()
    assert [log in words for log, words in zip(("small", "other"), in_batches.precision, strict=True)] == [True] * 2
    assert all("(--max-resamples)" in words for words in in_batches.precision)


def test_a_precision_that_is_reached_stops_there(study: Result) -> None:
    drawn = content()["experiments"][1]
    few = protocol_of(content(experiments=[{**drawn, "resample": {"count": 6, "length": "2w"}}], claims=[]))
    outcome = run_protocol(few, settings=RunSettings(precision=Precision(0.9))).outcomes[0]
    assert len(outcome.evaluation.cases) == 12
    assert all("half-width of at most 90 %" in words for words in outcome.precision)


def test_windows_cannot_become_more_and_that_is_said(study: Result) -> None:
    windows = selected(study.protocol, ["windows"])
    outcome = run_protocol(windows, study.logs, RunSettings(precision=Precision(1e-6))).outcomes[0]
    assert outcome.evaluation.cases == study.outcomes[0].evaluation.cases
    assert "the log has no more" in outcome.precision[0]


def test_parts_of_a_protocol(study: Result) -> None:
    protocol = study.protocol
    assert [plan.name for plan in selected(protocol, ["drawn"]).experiments] == ["drawn"]
    only = selected(protocol, logs=["other"])
    assert [(plan.name, plan.log_names) for plan in only.experiments] == [("drawn", ("other",))]
    alone = run_protocol(only)
    whole = study.outcomes[1].evaluation
    # A log is the same, whatever is evaluated beside it.
    assert alone.outcomes[0].evaluation.values.tobytes() == whole.values[whole.rows("other")].tobytes()
    # The claim is judged where it still can be.
    assert "drawn, other" in alone.claims[1].paragraphs[0]


def test_a_threshold_by_the_longest_request_is_that_of_each_log(study: Result) -> None:
    setting = as_dict(study)["protocol"]["experiments"][1]
    longest = {name: log.longest_request_s for name, log in study.logs.items()}
    assert setting["log_thresholds_s"] == {name: math.floor(3 * longest[name]) for name in ("small", "other")}
    assert longest["small"] != longest["other"]
    assert (setting["load"], setting["estimates"]) == (1.25, "noisy:0.5")
    assert setting["policies"][2]["tuner"]["feedback"] == "random"
