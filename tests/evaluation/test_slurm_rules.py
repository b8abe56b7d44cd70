"""Evaluations under Slurm's rules: whose site, what is said of it, and EASY's values beside them."""

from __future__ import annotations

import dataclasses
import json
import pickle
from pathlib import Path

import numpy as np
import pytest

import policyfactory as pf
from daily_log import daily
from policyfactory.core.errors import InputError, PolicyfactoryError, UsageError
from policyfactory.core.inputs import sha256_bytes
from policyfactory.core.process import WorkCounter
from policyfactory.evaluation.protocol import read_protocol
from policyfactory.evaluation.run import description
from policyfactory.evaluation.starts import trace_json
from policyfactory.evaluation.study import RunSettings, read_logs, run_protocol
from policyfactory.evaluation.words import rules_in_words
from policyfactory.parallel.workers import Workers
from policyfactory.simulation.rules import Rules
from policyfactory.site.file import write_site
from policyfactory.site.fits import site_of
from policyfactory.site.model import NodeGroup, NotModelled, Partition, Scheduling, Site
from policyfactory.workload.jobs import Requests
from refusals import refused
from small_protocol import report_text

SITE = Site("small", (NodeGroup("n[1-4]"),), (Partition("all"),), scheduling=Scheduling(bf_interval=5.0))
METRICS = ["mean_wait", "utilisation"]
PROTOCOL = """
schema_version = 1
[logs.model]
lublin = { processors = 4, jobs = 60, seed = 1 }
[[experiments]]
name = "own"
policies = ["FCFS", "SAF"]
metrics = ["mean_wait"]
[experiments.rules]
site = "small.toml"
"""


@pytest.fixture
def site(tmp_path: Path) -> Path:
    path = tmp_path / "small.toml"
    write_site(SITE, path)
    return path


def test_windows_are_simulated_on_the_site_that_is_assumed_of_the_whole_log() -> None:
    log = daily(6)
    found = pf.evaluate(log, "FCFS,SAF", backfill="slurm", windows="3x2d", metrics=METRICS, analyses=[])
    rules = Rules(backfill="slurm", site=site_of(log))
    for case, own in enumerate(pf.cases_of(log, windows="3x2d")):
        for place, name in enumerate(("FCFS", "SAF")):
            expected = pf.measure(pf.simulate(own.make(), name, rules), METRICS)
            assert found.outcome.evaluation.values[case, place].tolist() == list(expected.values())
    assert found.outcome.verdict is not None
    assert any("Nobody described the site" in text and "--site" in text for text in found.outcome.verdict.caveats)


def test_the_values_under_easy_stand_beside_those_under_slurms_rules() -> None:
    log = daily(6)
    options = {"windows": "3x2d", "metrics": METRICS, "analyses": []}
    found = pf.evaluate(log, "FCFS,SAF", backfill="slurm", **options)
    section = found.outcome.sections[-1]
    assert (section.name, section.title) == ("easy", "The same under EASY")
    easy = pf.evaluate(log, "FCFS,SAF", **options)
    expected = next(one for one in easy.outcome.sections if one.name == "values")
    assert section.tables[0].rows == expected.tables[0].rows
    assert "easy" not in {one.name for one in easy.outcome.sections}
    assert "one partition of 4 nodes of 1 processor" in section.paragraphs[0]
    assert "the same policy leads in mean_wait under EASY, too" in section.paragraphs[-1]
    # What a terminal shows has it as well.
    assert found.outcome.words[-1] == section.paragraphs[-1]
    assert "EASY" not in " ".join(easy.outcome.words)


def test_a_verdict_under_easy_on_the_jobs_of_a_cluster_says_that_slurm_plans_otherwise() -> None:
    log = daily(6)
    options = {"windows": "3x2d", "metrics": METRICS, "analyses": []}
    n = len(log)
    asked = dataclasses.replace(Requests.unknown(n), account=np.zeros(n, dtype=np.int64), names={"account": ("lab",)})
    imported = dataclasses.replace(log, requests=asked)

    def said(log: object, **more: object) -> bool:
        verdict = pf.evaluate(log, "FCFS,SAF", **options, **more).outcome.verdict
        assert verdict is not None
        return any("Slurm by default plans otherwise" in text for text in verdict.caveats)

    assert said(imported)
    assert not said(log)
    assert not said(imported, backfill="slurm")
    assert not said(imported, backfill="conservative")


@pytest.mark.usefixtures("blank_pictures")
def test_a_site_file_means_slurms_rules_whoever_works(site: Path, tmp_path: Path) -> None:
    log = daily(6)
    pages = []
    for workers in (1, 2):
        options = {"windows": "3x2d", "metrics": METRICS, "analyses": ["groups"]}
        found = pf.evaluate(log, "FCFS,SAF", site=str(site), workers=workers, **options)
        page = found.report(tmp_path / f"of{workers}")
        pages.append([(page.parent / name).read_bytes() for name in ("report.html", "results.csv", "evaluation.json")])
    assert pages[0] == pages[1]
    assert found.protocol.hashes[str(site)] == sha256_bytes(site.read_bytes())
    assert 'backfill = "slurm"' in found.text
    content = json.loads(pages[0][2])["protocol"]["experiments"][0]
    assert content["rules"]["site"]["name"] == "small"
    assert content["rules"]["site"]["processors"] == 4
    assert "log_sites" not in content
    direct = pf.measure(pf.simulate(pf.cases_of(log, windows="3x2d")[0].make(), "SAF", site=site), METRICS)
    assert found.outcome.evaluation.values[0, 1].tolist() == list(direct.values())


def test_a_protocol_names_a_site_beside_it(site: Path, tmp_path: Path) -> None:
    path = tmp_path / "own.toml"
    path.write_text(PROTOCOL)
    protocol = read_protocol(path)
    assert protocol.experiments[0].rules == Rules(backfill="slurm", site=SITE)
    assert protocol.hashes[str(site)] == sha256_bytes(site.read_bytes())
    before = description(protocol.experiments, read_logs(protocol), None)
    # A run does not go on from that of another site.
    write_site(dataclasses.replace(SITE, scheduling=Scheduling()), site)
    other = read_protocol(path)
    assert description(other.experiments, read_logs(other), None)["experiments"] != before["experiments"]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"SAF"]', '"SAF"]\nformulas = { FREE = "p*q/f" }', "FREE f"),
        ('site = "small.toml"', 'site = "large.toml"', "site large.toml"),
        ('site = "small.toml"', 'site = "small.toml"\nbackfill = "easy"', "backfill slurm site"),
        ('site = "small.toml"', 'site = "newer.toml"', "newer.toml 9"),
        ('site = "small.toml"', 'backfill = "slurm"\nties = "lifo"', "ties lifo Slurm"),
        (
            'metrics = ["mean_wait"]',
            'metrics = ["mean_wait"]\ntuners = [{ feedback = "ucb", period = "1d" }]',
            "feedback simulate noisy random",
        ),
    ],
)
def test_what_slurm_cannot_do_is_refused_before_anything_runs(
    old: str, new: str, message: str, site: Path, tmp_path: Path
) -> None:
    (tmp_path / "newer.toml").write_text("schema = 9\n")
    path = tmp_path / "own.toml"
    assert old in PROTOCOL
    path.write_text(PROTOCOL.replace(old, new))
    assert str(path) in refused(InputError, message, read_protocol, path)


def test_a_log_that_the_site_cannot_run_stops_the_evaluation(site: Path) -> None:
    wide = dataclasses.replace(daily(2), machine=8, processors=np.full(196, 5))
    refused(PolicyfactoryError, "196 1 2 3 4 daily", pf.evaluate, wide, "FCFS,SAF", site=str(site), analyses=[])
    refused(UsageError, "slurm site small", pf.evaluate, wide, "FCFS,SAF", site=str(site), backfill="conservative")


def test_a_trace_names_the_rules() -> None:
    log = daily(1)
    slurm, easy = (trace_json(pf.simulate(log, "SAF", **rule), "log") for rule in ({"backfill": "slurm"}, {}))
    assert "log, SAF under Slurm's rules: 4 processors" in slurm
    assert "log, SAF: 4 processors" in easy


def test_rules_in_words() -> None:
    assert "Slurm's own passes on a site that is assumed of each log" in rules_in_words(Rules(backfill="slurm"))
    assert "passes on site small (4 nodes)" in rules_in_words(Rules(backfill="slurm", site=SITE))


def test_settings_that_are_not_modelled_are_said_beside_the_verdict(tmp_path: Path) -> None:
    lacking = dataclasses.replace(SITE, not_modelled=(NotModelled("Licenses", "matlab:10", "slurm.conf:9", "waits"),))
    write_site(lacking, tmp_path / "lacking.toml")
    verdict = pf.evaluate(daily(3), "FCFS,SAF", site=str(tmp_path / "lacking.toml"), analyses=[]).outcome.verdict
    assert verdict is not None
    assert any("small has 1 setting that matters and is not modelled" in text for text in verdict.caveats)


class _Once(WorkCounter):
    """Interrupts a run after its first simulation."""

    def done(self, amount: int) -> None:
        raise KeyboardInterrupt


def test_an_experiment_with_a_site_can_be_sent_to_another_process(site: Path, tmp_path: Path) -> None:
    path = tmp_path / "own.toml"
    path.write_text(PROTOCOL)
    (experiment,) = read_protocol(path).experiments
    again = pickle.loads(pickle.dumps(experiment))
    for field in dataclasses.fields(experiment):
        assert getattr(again, field.name) == getattr(experiment, field.name)
    assert again.rules.site == SITE


@pytest.mark.parametrize("workers", [Workers(2), pytest.param(Workers(2, "loky"), marks=pytest.mark.slow)], ids=str)
@pytest.mark.usefixtures("blank_pictures")
def test_an_interrupted_run_goes_on_to_the_same_bytes(workers: Workers, site: Path, tmp_path: Path) -> None:
    path = tmp_path / "own.toml"
    path.write_text(PROTOCOL)
    protocol, partial = read_protocol(path), tmp_path / "evaluation.partial"
    expected = report_text(run_protocol(protocol))
    with pytest.raises(KeyboardInterrupt):
        run_protocol(protocol, settings=RunSettings(partial=partial, progress=lambda _: _Once()))
    said: list[str] = []
    study = run_protocol(protocol, settings=RunSettings(workers, partial=partial, notify=said.append))
    assert report_text(study) == expected
    assert any("1 of 2" in sentence for sentence in said)


def test_the_protocol_of_the_comparison_differs_in_backfilling_alone(root: Path) -> None:
    plans = read_protocol(root / "evaluate/slurm.toml").experiments
    # The fixed orders, then those that count the wait.
    for three in (plans[:3], plans[3:]):
        assert [plan.rules for plan in three] == [
            Rules(),
            Rules(backfill="conservative"),
            Rules(backfill="slurm"),
        ]
        same = {(plan.policies, plan.log_names, str(plan.table.windows), plan.metrics) for plan in three}
        assert len(same) == 1
