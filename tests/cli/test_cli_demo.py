"""The demonstration does what the README says, with few trials here."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from policyfactory.core.files import exclusive
from policyfactory.learning.demonstration import demonstrate
from policyfactory.learning.options import LearnOptions
from policyfactory.learning.ranking import Progress
from small_fits import few_fits


@pytest.mark.slow
@pytest.mark.usefixtures("blank_pictures")
def test_the_demo_goes_from_a_workload_to_an_exported_formula(run, tmp_path: Path) -> None:
    with few_fits():
        done = run("demo", "--tuples", 32, "--trials", 320, "--output", "my demo")
    folder = tmp_path / "my demo"
    content = json.loads((folder / "evaluation" / "evaluation.json").read_text(encoding="utf-8"))
    evaluation = content["experiments"]["evaluation"]
    # What is judged is what was chosen before, and what is exported.
    chosen = re.search(r"^NAME = '(.*)'$", (folder / "winner.py").read_text(encoding="utf-8"), re.MULTILINE)[1]
    assert evaluation["verdict"]["sentences"][0].startswith(f"{chosen} is ")
    assert f'"{chosen}"' in (folder / "winner.lua").read_text(encoding="utf-8")
    assert json.loads((folder / "thresholds" / f"{chosen}.json").read_text(encoding="utf-8"))["threshold_s"] > 0
    pictures = {path.relative_to(folder).as_posix() for path in folder.rglob("*.svg")}
    assert {path.removeprefix("evaluation/evaluation/") for path in pictures} == {
        "differences/mean-bsld-differences.svg",
        "differences/area-weighted-wait-differences.svg",
        "gantt/gantt.svg",
        "groups/differences.svg",
        "load/course.svg",
        "starvation/waits.svg",
        *(f"values/{metric}-boxes.svg" for metric in ("area-weighted-wait", "max-wait", "mean-bsld", "p99-wait")),
    }
    # One map of each of the best forms.
    maps = ["priority.png", *(f"priority-f{rank}.png" for rank in range(2, 6))]
    assert sorted(path.name for path in (folder / "pictures").iterdir()) == sorted([*maps, "ranking.png"])
    assert (folder / "evaluation" / "report.html").exists()
    # Each step is shown as the command that does it, and the end says it in words.
    for command in ("workload lublin", "generate", "fit", "evaluate", "export"):
        assert f"$ policyfactory {command}" in done.stdout
    assert "In words" in done.stdout
    end = done.stdout.split("In words")[1]
    assert f"{chosen} sorts the queue by " in end
    for limit in LearnOptions().limits:
        assert f"{limit.guard} {limit.times}" in end


@pytest.mark.slow
@pytest.mark.usefixtures("blank_pictures")
def test_where_nothing_keeps_the_price_nothing_is_chosen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Messages(Progress):
        def message(self, sentence: str) -> None:
            said.append(sentence)

    said: list[str] = []
    monkeypatch.setattr(LearnOptions, "limits", LearnOptions(max_p99="1s").limits)
    with few_fits():
        compared = demonstrate(tmp_path, tuples=32, trials=320, progress=Messages())
    assert [text.rpartition(": ")[2] for text in said if text.startswith("the best ")] == ["none", "none"]
    assert compared.chosen.name == "FCFS"
    assert compared.outcome.verdict is not None
    assert compared.outcome.verdict.light == "cannot tell"
    assert "leave the queue as it is" in compared.outcome.verdict.sentences[0]


def test_a_step_that_fails_ends_the_demo_with_its_message(run, tmp_path: Path) -> None:
    (tmp_path / "demo" / "forms.json").mkdir(parents=True)
    done = run("demo", "--tuples", 32, "--trials", 320, code=1)
    assert "step 4/8 could not be done:\nerror: demo/forms.json: is a directory" in done.stderr


def test_two_demos_do_not_write_one_folder(run, tmp_path: Path) -> None:
    (tmp_path / "demo").mkdir()
    kept = tmp_path / "demo" / "scores.csv"
    kept.write_text("of the first", encoding="utf-8")
    with exclusive(tmp_path / "demo" / "demo"):
        assert "another run is writing it" in run("demo", code=1).stderr
    assert kept.read_text(encoding="utf-8") == "of the first"


def test_a_demo_is_replaced_on_demand_only(run, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    (tmp_path / "demo").mkdir()
    kept = tmp_path / "demo" / "training.swf"
    kept.write_text("mine", encoding="utf-8")
    assert "training.swf: exists; add --overwrite to replace it" in run("demo", code=1).stderr
    assert kept.read_text(encoding="utf-8") == "mine"
