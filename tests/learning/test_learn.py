"""Learning from Python: in memory, written afterwards, and the same as with a folder."""

from __future__ import annotations

import dataclasses
import html
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from daily_log import daily, recorded
from policyfactory.core.errors import OutputError, UsageError, WorkloadError
from policyfactory.core.text import HOUR
from policyfactory.exports.export import export
from policyfactory.learning.comparing import limits_in_words
from policyfactory.learning.learned import Learned
from policyfactory.learning.options import LearnOptions
from policyfactory.learning.ranking import Progress, Step
from policyfactory.learning.run import learn
from policyfactory.policy.policy import Policy
from policyfactory.policy.store import load_model
from policyfactory.workload.jobs import Workload
from policyfactory.workload.models.lublin import generate_lublin
from policyfactory.workload.models.tsafrir import tsafrir_estimates
from policyfactory.workload.swf.files import write_swf

FEW: dict[str, Any] = {"tuples": 32, "trials": 320}


class _Stopping(Progress):
    """Stops at a step as a user does."""

    def __init__(self, at: int | None) -> None:
        self.at = at
        self.titles: list[str] = []
        self.sentences: list[str] = []

    def begin(self, step: Step) -> None:
        self.titles.append(step.title)
        if step.number == self.at:
            raise KeyboardInterrupt

    def message(self, sentence: str) -> None:
        self.sentences.append(sentence)

    def warning(self, sentence: str) -> None:
        self.sentences.append(sentence)


@pytest.fixture(scope="module")
def workload() -> Workload:
    return tsafrir_estimates(generate_lublin(64, 900, seed=3), max_estimate=64_800, seed=3)


@pytest.fixture(scope="module")
def learned(workload: Workload) -> Learned:
    return learn(workload, **FEW, threshold=72_000)


def test_what_is_learned_in_memory_says_what_it_is_worth(learned: Learned) -> None:
    assert learned.policy.threshold == 72_000.0
    assert [len(learned.parts[part]) for part in ("training", "choosing", "test")] == [225, 450, 450]
    assert learned.policy.name in {rival.name for rival in learned.rivals}
    assert learned.verdict.light in {"better", "cannot tell", "worse", "unsound"}
    assert learned.verdict.sentences[0] in learned.summary()
    assert learned.summary().startswith(f"{learned.policy.name} was the best of {len(learned.rivals)} policies")
    assert set(learned.frame()["policy"]) >= {"FCFS", "SAF", "F1", learned.policy.name}
    assert learned.policy.formula in repr(learned)
    assert learned.policy.name in learned._repr_html_()
    assert learned.plot().axes


@pytest.mark.slow
@pytest.mark.usefixtures("blank_pictures")
def test_a_family_that_cannot_be_fitted_is_left_out_with_a_sentence(tmp_path: Path) -> None:
    # All jobs serial: p, 1 and q are no three terms.
    log = daily(4)
    serial = recorded(dataclasses.replace(log, processors=np.ones(len(log), dtype=np.int64), machine=2), "FCFS")
    watched = _Stopping(None)
    learned = learn(serial, output=tmp_path / "learned", progress=watched, **FEW)
    assert list(learned.fits) == ["forms"]
    assert any(text.startswith("the polynomials are left out: ") for text in watched.sentences)
    assert not (tmp_path / "learned" / "polynomials.json").exists()
    assert (tmp_path / "learned" / "policy.json").exists()
    learned.save(tmp_path / "saved")
    assert not (tmp_path / "saved" / "polynomials.json").exists()


def test_where_nobody_waits_nothing_is_the_best() -> None:
    idle = daily(4, machine=400)
    learned = learn(dataclasses.replace(idle, start=idle.submit), **FEW)
    assert learned.verdict.light == "cannot tell"
    assert learned.words[0].startswith("All 13 policies did the same on the second quarter of the jobs, so that none")


def test_a_threshold_is_chosen_like_the_formula_and_never_left_out_in_silence() -> None:
    learned = learn(recorded(daily(8), "FCFS"), **FEW)
    assert learned.thresholds is not None
    values = learned.thresholds.outcome.evaluation
    own = values.policies.index(learned.policy.name)
    without = values.policies.index(learned.formula_name)
    base, longest = values.values[0, 0, 0], values.longest_wait[0, without]
    assert 0 < learned.policy.threshold <= longest + HOUR
    # Nine tenths of the gain over the baseline are kept on the jobs by which it was chosen.
    assert values.values[0, own, 0] - base <= 0.9 * (values.values[0, without, 0] - base) < 0
    assert "go first: the lowest threshold of " in learned.words[0]


@pytest.mark.slow
def test_what_is_saved_later_is_what_a_run_with_a_folder_writes(
    learned: Learned, workload: Workload, tmp_path: Path
) -> None:
    saved, folder = tmp_path / "saved", tmp_path / "folder"
    learned.save(saved)
    write_swf(workload, tmp_path / f"{workload.name}.swf")
    learn(tmp_path / f"{workload.name}.swf", output=folder, **FEW, threshold=72_000)
    names = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
    assert sorted(str(path.relative_to(saved)) for path in saved.rglob("*") if path.is_file()) == names
    same = [name for name in names if name.endswith((".csv", ".swf", ".svg"))]
    assert [name for name in same if (saved / name).read_bytes() != (folder / name).read_bytes()] == []
    for name in (name for name in names if name.startswith(("forms", "dated", "policy.json")) and "json" in name):
        assert load_model(saved / name).policy.formula == load_model(folder / name).policy.formula
    manifest = json.loads((folder / "policy.manifest.json").read_text())
    assert manifest["parameters"]["chosen"] == learned.policy.name
    with pytest.raises(OutputError, match=r"policy\.json: exists; add --overwrite"):
        learned.save(saved)


@pytest.mark.slow
def test_an_interrupted_run_is_resumed(workload: Workload, learned: Learned, tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        learn(workload, output=tmp_path, progress=_Stopping(5), **FEW, threshold=72_000)
    scores = (tmp_path / "scores.csv").read_bytes(), (tmp_path / "scores.csv").stat().st_mtime_ns
    watched = _Stopping(None)
    again = learn(workload, output=tmp_path, progress=watched, **FEW, threshold=72_000)
    assert scores == ((tmp_path / "scores.csv").read_bytes(), (tmp_path / "scores.csv").stat().st_mtime_ns)
    assert again.policy == learned.policy
    assert len(watched.titles) == 9
    # A finished one is replaced on demand only, and its score table is used again as long as it is of the same options.
    with pytest.raises(OutputError, match="exists; add --overwrite"):
        learn(workload, output=tmp_path, **FEW, threshold=72_000)
    learn(workload, output=tmp_path, overwrite=True, **FEW, threshold=72_000, metric="mean_wait")
    assert scores == ((tmp_path / "scores.csv").read_bytes(), (tmp_path / "scores.csv").stat().st_mtime_ns)
    learn(workload, output=tmp_path, overwrite=True, **FEW, threshold=72_000, seed=2)
    assert (tmp_path / "scores.csv").read_bytes() != scores[0]


def test_what_cannot_be_learned_from_is_refused(workload: Workload) -> None:
    with pytest.raises(UsageError, match="there is no metric"):
        learn(workload, metric="bsld")
    with pytest.raises(UsageError, match=r"--tuples 1: .*at least 32"):
        learn(workload, tuples=1)
    with pytest.raises(WorkloadError, match="150 jobs are left"):
        learn(workload.select(slice(0, 150)))


def test_what_is_much_of_a_part_and_little_of_the_whole_is_left_out_and_a_part_without_jobs_refused(
    tmp_path: Path,
) -> None:
    write_swf(recorded(daily(13), "FCFS"), tmp_path / "whole.swf")
    head = [line for line in (tmp_path / "whole.swf").read_text().splitlines() if line.startswith(";")]
    jobs = [line.split() for line in (tmp_path / "whole.swf").read_text().splitlines() if not line.startswith(";")]

    def log(changed: slice, field: int) -> Path:
        lines = [list(job) for job in jobs]
        for job in lines[changed]:
            job[field - 1] = "-1"
        (tmp_path / "log.swf").write_text("\n".join([*head, *map(" ".join, lines)]) + "\n")
        return tmp_path / "log.swf"

    few = int(0.007 * len(jobs))
    learned = learn(log(slice(few), 9), **FEW, replicas=0)
    assert sum(len(part) for part in learned.parts.values()) >= len(jobs)
    with pytest.raises(WorkloadError, match="no job of its second half is left"):
        learn(log(slice(len(jobs) // 2, None), 4), **FEW, replicas=0)


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        ("tuples", "many", "'many': expected a whole number, at least 32"),
        ("trials", 1e4, "10000.0: expected a whole number, at least 256"),
        ("metric", None, "None: expected a text"),
        ("threshold", [7200], r"\[7200\]: expected a duration"),
        ("threshold", -5, "-5: expected whole seconds"),
        ("windows", 3, "3: expected a text"),
        ("processors", "x", "'x': expected a whole number, or None"),
        ("estimate_missing", True, "True: expected one of error, runtime, model, drop"),
        ("preset", None, "None: expected a text"),
        ("seed", 0.5, "0.5: expected a whole number"),
    ],
)
def test_a_value_of_a_wrong_type_is_refused_by_name(field: str, value: object, expected: str) -> None:
    with pytest.raises(UsageError, match=f"^(--)?{field.replace('_', '-')} {expected}"):
        LearnOptions(**{field: value})  # type: ignore[arg-type]


def test_a_threshold_may_be_seconds_and_numbers_those_of_numpy() -> None:
    assert [LearnOptions(threshold=seconds).threshold_text for seconds in (7200, float("inf"))] == ["7200s", "inf"]
    options = LearnOptions(tuples=np.int64(40), threshold=np.int64(7200))  # type: ignore[arg-type]
    assert (options, type(options.tuples)) == (LearnOptions(tuples=40, threshold=7200), int)


@pytest.mark.usefixtures("blank_pictures")
def test_the_evidence_opens_with_what_was_chosen_in_the_words_of_the_verdict(learned: Learned, tmp_path: Path) -> None:
    learned.test.write(tmp_path)
    page = html.unescape((tmp_path / "report.html").read_text())
    name, sentences = learned.policy.name, learned.verdict.sentences
    choice = f"<strong>{name}</strong> sorts the queue by "
    places = [page.index(text) for text in (choice, *sentences, '<section class="forest"')]
    assert places == sorted(places)
    forest = page[places[-1] :]
    # The choice is the first row of the first table, whoever has the lowest mean; the baseline can be the choice.
    assert name in forest[forest.index("<tbody>") : forest.index("</tr>", forest.index("<tbody>"))]
    assert page.index("In short") > places[-1]
    assert "only the plugin in C (slurm-site-factor-c) can express its threshold" in page


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, []),
        ({"backfill": "easy"}, ["--backfill", "easy"]),
        ({"backfill": "slurm"}, ["--backfill", "slurm"]),
        ({"backfill": "conservative"}, []),  # export simulates under EASY or Slurm's rules only
        ({"site": "a site.toml"}, ["--site", "a site.toml"]),
        ({"assume": "n=1"}, []),  # export has no such option
    ],
)
def test_the_export_is_under_the_rules_that_the_policy_was_learned_under(
    options: dict[str, Any], words: list[str]
) -> None:
    found = SimpleNamespace(options=LearnOptions(**options), policy=Policy("SAF", "p*q"), last=None)
    command = Learned.export_command(found, "policy.json", "log.swf")  # type: ignore[arg-type]
    before = ["policyfactory", "export", "policy.json", "--workload", "log.swf"]
    assert command == [*before, *words, "--output", "job_submit.lua"]


@pytest.mark.usefixtures("blank_pictures")
def test_what_is_not_recommended_says_so_when_it_is_exported(learned: Learned, tmp_path: Path) -> None:
    assert learned.verdict.light != "better"
    learned.save(tmp_path)
    kept = load_model(tmp_path / "policy.json")
    assert kept.verdict.startswith(("Cannot tell. ", "Worse: do not use it. ", "Unsound: no conclusion. "))
    exported = export(kept, "slurm-site-factor-lua", epoch="2024-01-01")
    assert exported.warnings[0].startswith(f"it is not recommended: {kept.verdict[:60]}")
    assert "Verdict: " in exported.text
    good = dataclasses.replace(kept, diagnostics={"verdict": "Shown to be better. SAF is better than the record."})
    assert not any("recommended" in text for text in export(good, "slurm-site-factor-lua", epoch="2024-01-01").warnings)


def test_what_has_two_orders_is_told_to_be_for_simulation(learned: Learned) -> None:
    policy = dataclasses.replace(learned.policy, backfill_formula="p")
    paired = dataclasses.replace(learned, model=dataclasses.replace(learned.model, policy=policy))
    assert paired.export_command("policy.json", "log.swf")[3:5] == ["--to", "json"]
    (sentence,) = limits_in_words(policy)
    assert "No route into a scheduler carries an order of its own for backfilling" in sentence
