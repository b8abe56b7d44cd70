"""Learning for a cluster: candidates under its Slurm, and nothing recommended where its replay is far."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import json
import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from daily_log import daily
from policyfactory.core.errors import EvaluationError, UsageError, WorkloadError
from policyfactory.core.text import WEEK, format_duration
from policyfactory.evaluation.options import DEFAULT_METRICS
from policyfactory.learning import choice
from policyfactory.learning.choice import Size, replicas_of, size_of
from policyfactory.learning.comparing import Rival, judging_in_words
from policyfactory.learning.learned import Learned
from policyfactory.learning.options import LearnOptions
from policyfactory.learning.parts import LogParts
from policyfactory.learning.ranking import Progress
from policyfactory.learning.run import learn
from policyfactory.learning.steps import Steps
from policyfactory.policy.policy import Policy
from policyfactory.policy.store import CATALOGUE, Model, resolve_model
from policyfactory.simulation.metrics import PREEMPTION_METRICS
from policyfactory.simulation.rules import Backfill, Rules
from policyfactory.simulation.simulate import simulate
from policyfactory.simulation.slurm.run import run_slurm
from policyfactory.site.file import write_site
from policyfactory.site.model import NodeGroup, Partition, Preemption, Site
from policyfactory.workload.jobs import Requests, Workload
from policyfactory.workload.swf.log import log_of_workload

FEW: dict[str, Any] = {"tuples": 32, "trials": 320}
SITE = Site("small", (NodeGroup("n[1-4]"),), (Partition("all"),))


class Said(Progress):
    """Keeps the warnings."""

    def __init__(self) -> None:
        self.warnings: list[str] = []

    def warning(self, sentence: str) -> None:
        self.warnings.append(sentence)


@functools.cache
def log() -> Workload:
    """Return a log whose recorded starts are those of the site."""
    jobs = daily(8)
    return dataclasses.replace(jobs, start=run_slurm(jobs, SITE).start)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("sites") / "small.toml"
    write_site(SITE, path)
    return str(path)


@pytest.fixture(scope="module")
def learned(site: str) -> Learned:
    return learn(log(), site=site, **FEW)


def test_candidates_are_judged_under_the_site(learned: Learned) -> None:
    outcome = learned.test.outcome
    assert outcome.experiment.rules == Rules(backfill="slurm", site=SITE)
    # Those that change while jobs wait among them.
    assert {"FCFS", "SPF", "SAF", "F1", "WFP3", "UNICEF"} <= {rival.name for rival in learned.rivals}
    evaluation = outcome.evaluation
    lead_in = len(learned.source) - evaluation.cases[0].jobs
    direct = simulate(log(), "SAF", site=SITE).after(lead_in)
    place = evaluation.metrics.index("mean_wait"), evaluation.policies.index("SAF")
    assert evaluation.values[0, place[1], place[0]] == pytest.approx(direct.wait.mean())


def test_a_site_that_is_near_is_said_to_be(learned: Learned) -> None:
    assert learned.fidelity is not None
    assert learned.fidelity.trusted
    assert learned.verdict.title != "Not to be trusted here"
    assert "replayed on site small: near enough to the record" in learned.verdict.caveats[0]


@pytest.mark.usefixtures("blank_pictures")
def test_on_a_site_that_is_far_nothing_is_recommended(site: str, tmp_path: Path) -> None:
    delayed = dataclasses.replace(log(), start=log().start + 50_000)
    with pytest.raises(EvaluationError, match="go on all the same with --anyway"):
        learn(delayed, site=site, output=tmp_path / "learned", **FEW)
    found = learn(delayed, site=site, output=tmp_path / "learned", anyway=True, **FEW)
    assert found.fidelity is not None
    assert found.fidelity.light == "far"
    assert (found.verdict.light, found.verdict.title) == ("unsound", "Not to be trusted here")
    assert "No policy is recommended." in found.verdict.sentences
    page = (tmp_path / "learned" / "test" / "report.html").read_text()
    assert "Not to be trusted here" in page
    manifest = json.loads((tmp_path / "learned" / "policy.manifest.json").read_text())
    assert manifest["parameters"]["fidelity"] == "far"
    assert "small.toml" in manifest["inputs"]
    policy = json.loads((tmp_path / "learned" / "policy.json").read_text())
    assert policy["diagnostics"]["verdict"].startswith("Not to be trusted here. On site small")


def test_jobs_of_a_partition_that_the_site_lacks_are_left_out_of_it_all(site: str) -> None:
    jobs = log()
    partition = np.zeros(len(jobs), dtype=np.int64)
    partition[[5, 700]] = 1
    names = {"partition": ("all", "old")}
    asked = dataclasses.replace(Requests.unknown(len(jobs)), partition=partition, names=names)
    said = Said()
    found = learn(dataclasses.replace(jobs, requests=asked), site=site, progress=said, **FEW)
    left_out = "2 of 784 jobs of daily are left out: site small does not have their partition 'old' (jobs 6, 701)."
    assert said.warnings[0] == left_out
    assert left_out in found.verdict.caveats
    assert found.fidelity is not None
    assert found.fidelity.never == 2
    # The first quarter without one job is the lead-in, as in a log that never had them.
    assert found.choosing.outcome.evaluation.cases[0].jobs == 392 // 2
    assert found.test.outcome.evaluation.cases[0].jobs == 392 - 1


def test_another_cluster_is_refused_before_anything_is_learned(tmp_path: Path) -> None:
    tiny = Site("tiny", (NodeGroup("n1"),), (Partition("all", max_time=1.0),))
    write_site(tiny, tmp_path / "tiny.toml")
    with pytest.raises(EvaluationError, match="is this log of another cluster"):
        learn(log(), site=str(tmp_path / "tiny.toml"), output=tmp_path / "learned", **FEW)
    assert not (tmp_path / "learned" / "policy.json").exists()


@pytest.mark.slow
def test_without_a_site_slurms_rules_hold_on_one_that_is_assumed() -> None:
    found = learn(log(), backfill="slurm", **FEW)
    assert found.fidelity is None
    assert found.test.outcome.experiment.rules.backfill == "slurm"
    assert "WFP3" in {rival.name for rival in found.rivals}


def test_without_a_word_easy_chooses_and_slurms_rules_judge() -> None:
    found = learn(log(), **FEW)
    said = "judged on the second half under Slurm's own rules"
    assert found.choosing.outcome.experiment.rules.backfill == "easy"
    assert found.test.outcome.experiment.rules.backfill == "slurm"
    assert [text for text in found.verdict.caveats if said in text]
    # What leads under EASY, the choice has said.
    assert not any(section.name == "easy" for section in found.test.outcome.sections)
    # What the verdict compares are schedules under these rules, too.
    words = " ".join(found.verdict.sentences)
    assert format_duration(simulate(log(), "FCFS", backfill="slurm").after(len(log()) // 2).wait.max()) in words
    # Where all is under EASY there is nothing to say of it.
    easy = LearnOptions(backfill="easy")
    assert judging_in_words(easy.rules, easy.judging, screened=True) == ()


@pytest.mark.parametrize("backfill", ["easy", "slurm", None])
@pytest.mark.parametrize("part", ["choosing", "test"])
def test_the_schedules_of_a_verdict_are_those_that_were_compared(backfill: Backfill | None, part: str) -> None:
    options = LearnOptions(backfill=backfill)
    parts = LogParts(log_of_workload(log()), options, Steps(None, 1, Progress(), [1.0]))
    logs = parts.cut()
    guarded = Model(dataclasses.replace(CATALOGUE["SAF"], name="SAF-1h", threshold=3600.0))
    rivals = [Rival(resolve_model("FCFS"), "FCFS"), Rival(guarded, "SAF-1h")]
    again = [parts.schedule(rival, part, logs) for rival in rivals]
    parts.compare_on("", part, logs, rivals)
    for rival, expected in zip(rivals, again, strict=True):
        found = parts.schedule(rival, part, logs)
        for name in ("start", "end", "backfilled", "wait"):
            np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
        assert (found.rules, found.policy_name) == (expected.rules, expected.policy_name)
        assert found.workload.sha256() == expected.workload.sha256()


@pytest.mark.slow
def test_where_easy_is_asked_for_it_judges_too_and_nothing_is_said_of_it() -> None:
    found = learn(log(), backfill="easy", **FEW)
    assert found.choosing.outcome.experiment.rules == found.test.outcome.experiment.rules == Rules()
    assert not [text for text in found.verdict.caveats if "under Slurm's own rules" in text]


def parts_of(options: LearnOptions) -> Any:
    """Return what replicas are made of: twelve days, of which a quarter chooses and a quarter judges, on the site."""
    jobs, judging = daily(12), options.judging
    if options.judged_under_slurm:
        judging = dataclasses.replace(judging, site=SITE)
    steps, edges = Steps(None, 1, Progress(), [1.0]), (len(jobs) // 2, 3 * len(jobs) // 4)
    return SimpleNamespace(
        workload=jobs, options=options, edges=edges, steps=steps, rules=options.rules, judging=judging
    )


def replicas_by_options(parts: Any, part: str) -> Any:
    return replicas_of(parts, part, size_of(parts, part, predicted=True))


@pytest.mark.parametrize("part", ["choosing", "test"])
def test_the_largest_seed_has_replicas_too(part: str) -> None:
    assert replicas_by_options(parts_of(LearnOptions(replicas=6, seed=2**63 - 1)), part) is not None


@pytest.mark.parametrize("backfill", [None, "easy", "slurm"])
@pytest.mark.parametrize("part", ["choosing", "test"])
def test_more_minutes_are_more_jobs_and_then_more_replicas(backfill: Any, part: str) -> None:
    jobs = daily(240)
    edges = len(jobs) // 2, 3 * len(jobs) // 4
    bound = {"choosing": edges[1], "test": len(jobs)}[part]
    sizes = []
    for minutes in (0.1, 0.3, 1.0, 3.0, 10.0, 100.0):
        parts = parts_of(LearnOptions(minutes=minutes, backfill=backfill))
        parts.workload, parts.edges = jobs, edges
        sizes.append(size_of(parts, part, predicted=True))
    for before, after in itertools.pairwise(sizes):
        assert (before.part.first, -before.count) >= (after.part.first, -after.count)
        assert before.seconds <= after.seconds
    # What is cut are the first jobs; six weeks are left however little time there is, and some replicas.
    assert {size.part.last for size in sizes} == {bound}
    for size in sizes:
        weeks = (jobs.submit[bound - 1] - jobs.submit[size.part.first]) / WEEK
        assert weeks >= 6
        assert {"choosing": 6, "test": 8}[part] <= size.count <= 24
        assert ("last" in size.words) == (size.part.first > {"choosing": edges[0], "test": edges[1]}[part])
    assert sizes[0].part.first > sizes[-1].part.first
    assert sizes[-1].count == 24
    # By number they are of all jobs, whatever that takes.
    parts = parts_of(LearnOptions(replicas=50, minutes=0.1, backfill=backfill))
    asked = size_of(parts, part, predicted=False)
    assert (asked.count, asked.part.last - asked.part.first) == (50, len(parts.workload) // 4)


@pytest.mark.parametrize("part", ["choosing", "test"])
def test_the_baselines_long_queue_costs_no_replicas_of_others(part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    jobs = daily(240)
    parts = parts_of(LearnOptions(minutes=0.3))
    parts.workload, parts.edges = jobs, (len(jobs) // 2, 3 * len(jobs) // 4)

    def size(baseline_waits: float, **options: bool) -> Size:
        monkeypatch.setattr(choice, "_waiting", lambda _, policy: baseline_waits if policy == "FCFS" else 20.0)
        return size_of(parts, part, predicted=False, **options)

    assert size(1e4, baseline=False) == size(0.0, baseline=False)
    assert (size(1e4) == size(0.0)) == (part == "choosing")
    assert size(0.0).part.first >= size(0.0, baseline=False).part.first


# Where predictions change while a simulation runs the kernel is another, which takes half a minute to compile.
@pytest.mark.slow
def test_replicas_choose_under_easy_and_judge_under_slurm() -> None:
    parts = parts_of(LearnOptions(replicas=6))
    choosing, testing = (replicas_by_options(parts, part) for part in ("choosing", "test"))
    assert choosing is not None
    assert testing is not None
    assert (choosing.rules, testing.rules) == (Rules(), Rules(backfill="slurm", site=SITE))
    policy = Policy("E", "ln(e) + 0.3*ln(q)")
    assert testing.schedule(0, policy, learns=True).rules.backfill == "slurm"


@pytest.mark.parametrize("metric", ["mean_bsld", "mean_wait", "preempted"])
def test_whatever_chooses_what_the_site_stops_is_counted(metric: str, tmp_path: Path) -> None:
    for preemption, more in ((Preemption(), ()), (Preemption("partition_prio", "requeue"), PREEMPTION_METRICS)):
        write_site(dataclasses.replace(SITE, preemption=preemption), tmp_path / "site.toml")
        options = LearnOptions(metric=metric, site=str(tmp_path / "site.toml"))
        parts = LogParts(log_of_workload(log()), options, Steps(None, 1, Progress(), [1.0]))
        assert parts.metrics == tuple(dict.fromkeys((metric, *DEFAULT_METRICS, *more)))


def test_rules_that_contradict_each_other_are_refused() -> None:
    with pytest.raises(UsageError, match=r"--site x\.toml is simulated under Slurm's rules: leave out --backfill easy"):
        LearnOptions(site="x.toml", backfill="easy")
    with pytest.raises(UsageError, match="backfill"):
        LearnOptions(backfill="some")  # type: ignore[arg-type]
    assert LearnOptions(backfill="slurm").chooses_threshold
    assert (LearnOptions().rules, LearnOptions().judging) == (Rules(), Rules(backfill="slurm"))
    assert LearnOptions(backfill="easy").judging == Rules()
    assert LearnOptions(backfill="conservative").judging == Rules(backfill="conservative")
    assert LearnOptions(threshold="20h").rules == Rules(threshold=72_000.0)


def test_a_log_of_many_times_the_work_of_its_machine_is_refused_before_any(tmp_path: Path) -> None:
    # Its queues took years to be worked off, in every simulation.
    crowded = dataclasses.replace(log(), run_time=log().run_time * 60, requested_time=log().requested_time * 60)
    assert 10 < crowded.offered_load < math.inf
    with pytest.raises(WorkloadError, match=r"times the work that 4 processors do .* so nothing was learned"):
        learn(crowded, output=tmp_path / "learned", **FEW)
    assert not (tmp_path / "learned" / "scores.csv").exists()
