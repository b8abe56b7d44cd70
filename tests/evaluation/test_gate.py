"""An evaluation on a site is as good as the replay of the log on it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from policyfactory.core.errors import EvaluationError
from policyfactory.evaluation.fidelity.compare import Fidelity, fidelity
from policyfactory.evaluation.study import evaluate
from policyfactory.evaluation.verdict import gate_sections, gated, gates_as_dict, headed, replay_logs
from policyfactory.report.verdict import Verdict
from policyfactory.simulation.rules import Rules
from policyfactory.site.file import write_site
from policyfactory.site.fits import site_of
from policyfactory.site.model import NodeGroup, Partition, Site
from policyfactory.workload.jobs import Workload
from recorded_sites import SITE, recorded, recorded_on, submitted, with_strangers
from refusals import refused


def replayed(site: Site | None = SITE, /, **logs: Workload) -> tuple[dict[str, Fidelity], list[str]]:
    said: list[str] = []
    rules = Rules(backfill="slurm", site=site)
    return replay_logs(rules, logs, said.append), said


def test_each_log_is_replayed_and_said_to_be_near_or_far() -> None:
    found, said = replayed(good=recorded(), bad=recorded_on("limited"))
    assert {log: one.light for log, one in found.items()} == {"good": "near", "bad": "far"}
    assert said[0] == "good, its own jobs replayed on small: near enough to the record to be trusted"
    assert said[1].startswith("bad, its own jobs replayed on small: not to be trusted here (")
    names = [section.name for section in gate_sections(found)]
    assert names == ["fidelity-good", "cores-in-use-good", "fidelity-bad", "cores-in-use-bad", "lacking-bad"]
    assert set(gates_as_dict(found)["fidelity"]) == {"good", "bad"}


def test_a_site_that_is_assumed_and_a_log_without_starts_are_not_replayed() -> None:
    assert replayed(None, log=recorded()) == ({}, [])
    assert replayed(site_of(recorded()), log=recorded()) == ({}, [])
    found, said = replayed(log=submitted())
    assert found == {}
    assert said == ["log: no recorded starts, so that nothing shows how near the simulation of small is"]
    assert gates_as_dict(found) == {}
    assert gate_sections(found) == ()


def test_the_log_of_another_cluster_stops_it_all() -> None:
    tiny = Site("tiny", (NodeGroup("n1", cores=2),), (Partition("batch", default=True), Partition("short")))
    refused(EvaluationError, "log cluster", replayed, tiny, log=recorded())


def test_far_is_unsound_and_cannot_tell_is_no_better() -> None:
    near, far = fidelity(recorded(), SITE), fidelity(recorded_on("limited"), SITE)
    few = fidelity(recorded().select(slice(0, 50)), SITE)
    for found in (near, None):
        assert gated("better", ("why",), found) == ("better", ("why",))
    light, words = gated("better", ("why",), far)
    assert light == "unsound"
    assert words[0].startswith("On site small the simulation is too far from the record in")
    assert any("idle cores" in one and "nodes that were down" in one for one in words)
    assert words[-1] == "No policy is recommended."
    light, words = gated("better", ("why",), few)
    assert light == "cannot tell"
    assert "Only 45 jobs can be compared" in words[0]
    assert words[1] == "why"
    assert gated("worse", ("why",), few) == ("worse", ("why",))
    verdict = Verdict("unsound", ("why",))
    assert headed(verdict, [far, far]).title == "Not to be trusted here"
    assert headed(verdict, [far, near]).title == headed(verdict, []).title == verdict.title


def site_file(folder: Path, site: Site = SITE) -> str:
    write_site(site, folder / "small.toml")
    return str(folder / "small.toml")


OPTIONS: dict[str, Any] = {"metrics": ["mean_wait"], "analyses": []}


@pytest.mark.usefixtures("blank_pictures")
def test_what_is_evaluated_on_a_site_that_is_far_is_not_to_be_trusted(tmp_path: Path) -> None:
    path = site_file(tmp_path)
    found = evaluate(recorded_on("limited"), "FCFS,SPF", site=path, **OPTIONS)
    verdict = found.outcome.verdict
    assert verdict is not None
    assert verdict.site is not None
    assert (verdict.site.light, verdict.site.title) == ("unsound", "For the site: not to be trusted here")
    assert "No policy is recommended." in verdict.site.sentences
    assert "the log's own jobs, replayed on site small: not to be trusted here" in verdict.caveats[0]
    page = found.report(tmp_path / "out")
    assert "For the site: not to be trusted here" in page.read_text()
    assert {file.name for file in (tmp_path / "out").rglob("*.svg")} >= {"waits.svg", "utilisation.svg"}
    content = json.loads((tmp_path / "out" / "evaluation.json").read_text())["experiments"]["evaluation"]
    assert content["fidelity"]["log"]["light"] == "far"
    assert content["verdict"]["site"]["heading"] == "For the site: not to be trusted here"


def test_on_a_site_that_is_near_the_policies_decide(tmp_path: Path) -> None:
    found = evaluate(recorded(), "FCFS,SPF", site=site_file(tmp_path), **OPTIONS)
    verdict = found.outcome.verdict
    assert verdict is not None
    assert verdict.site is not None
    assert "not to be trusted" not in verdict.site.title
    assert "replayed on site small: near enough to the record to be trusted" in verdict.caveats[0]
    names = [section.name for section in found.outcome.sections]
    assert names[:3] == ["in-short", "fidelity", "cores-in-use"]
    assert found.outcome.fidelity["log"].trusted


@pytest.mark.usefixtures("blank_pictures")
def test_jobs_of_a_partition_that_the_site_lacks_are_left_out_and_named_wherever_one_looks(tmp_path: Path) -> None:
    said = "2 of 600 jobs of log are left out: site small does not have their partition 'old' (jobs 10, 20)."
    site = site_file(tmp_path)
    found = evaluate(with_strangers(2), "FCFS,SPF", site=site, lead_in="100jobs", **OPTIONS)
    outcome = found.outcome
    assert outcome.evaluation.cases[0].jobs == 498
    assert outcome.verdict is not None
    assert said in outcome.verdict.caveats
    assert any("rests on 498 jobs" in text for text in outcome.verdict.caveats)
    assert next(one for one in outcome.sections if one.name == "values").paragraphs[-1] == said
    assert outcome.fidelity["log"].never == 2
    found.report(tmp_path / "out")
    protocol = json.loads((tmp_path / "out" / "evaluation.json").read_text())["protocol"]
    assert protocol["experiments"][0]["left_out"] == [said]
    kept = np.ones(600, dtype=np.bool_)
    kept[[9, 19]] = False
    alone = evaluate(with_strangers(2).select(kept), "FCFS,SPF", site=site, lead_in="100jobs", **OPTIONS).outcome
    assert alone.evaluation.values.tolist() == outcome.evaluation.values.tolist()
    assert alone.experiment.left_out == ()


def test_without_a_site_nothing_is_replayed() -> None:
    found = evaluate(recorded(), "FCFS,SPF", **OPTIONS)
    assert found.outcome.fidelity == {}
    assert "fidelity" not in {section.name for section in found.outcome.sections}
