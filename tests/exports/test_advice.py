"""What the head of an export says of its end, of the longest wait, and of who can cheat."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import policyfactory as pf
from policyfactory.core.errors import UsageError
from policyfactory.core.text import format_duration
from policyfactory.exports.advice import gaming, renewal, starvation
from policyfactory.policy.policy import Epoch, Policy
from policyfactory.policy.scale import LARGEST, PriorityScale
from policyfactory.policy.store import CATALOGUE
from policyfactory.simulation.rules import Rules
from policyfactory.simulation.simulate import simulate
from policyfactory.site.file import read_site
from policyfactory.workload.models.lublin import default_workload
from refusals import refused
from snapshots import snapshot

EPOCH = 1_767_225_600  # 2026-01-01
DAY = 86_400
FIXED = Epoch("fixed", EPOCH)


def test_the_life_of_the_range_ends_at_a_date() -> None:
    policy = dataclasses.replace(CATALOGUE["F1"], epoch=FIXED)
    scale = PriorityScale(3900.0, 6900.0, LARGEST)
    snapshot(renewal(policy, scale, None, 365 * DAY))
    assert "2026-04-11" in renewal(policy, scale, EPOCH + 90 * DAY, 10 * DAY)
    # Without r, or without a date, nothing ends.
    assert renewal(CATALOGUE["SAF"], scale, None, DAY) == ""
    assert renewal(CATALOGUE["F1"], scale, None, DAY) == ""
    # Doubles keep minutes of log10(r) apart for a century.
    assert renewal(policy, None, None, DAY) == ""


def test_a_scale_that_loses_minutes_ends_earlier() -> None:
    # 1000 log10(r) over 10,000 numbers of 5000: a number is about 0.67 wide, and a minute is less than that from
    # 1000/ln(10) 60/r < 0.67, r > 39,000 s, on: half a day.
    policy = Policy("LOGR", "1000*log10(r)", epoch=FIXED)
    said = renewal(policy, PriorityScale(0.0, 5000.0, 10_000), None, 365 * DAY)
    snapshot(said)
    assert "2026-01-01" in said or "2026-01-02" in said
    # One that never kept minutes apart loses nothing later.
    assert "--life" in renewal(policy, PriorityScale(0.0, 5000.0, 10), None, 365 * DAY)


@pytest.mark.parametrize(
    ("formula", "words"),
    [
        ("p*q", ["half the time puts every job further ahead", "half the processors puts every job further ahead"]),
        ("r", ["asking for less or more time changes no", "asking for less or more processors changes no"]),
        ("-p", ["asking for MORE time than needed pays", "asking for less or more processors changes no"]),
        (
            "ln(p) + ln(1 + user_running)",
            ["half the time puts every job further ahead", "user wait or run decides too"],
        ),
        ("ln(e)", ["its user's jobs did before decides"]),
        ("abs(p - 3600) + q", ["% of the shapes of jobs further ahead and", "processors puts every job further ahead"]),
    ],
)
def test_who_gains_by_asking_for_less(formula: str, words: list[str]) -> None:
    said = gaming(Policy("X", formula), 64)
    assert all(word in said for word in words), said


def test_the_longest_wait_is_that_of_a_simulation_with_what_the_target_keeps() -> None:
    jobs = default_workload().select(np.arange(2000))
    policy = dataclasses.replace(CATALOGUE["SAF"], threshold=36_000.0)
    free, bound = (starvation(policy, jobs, keeps_threshold=keeps) for keeps in (False, True))
    snapshot(free, bound, part="1")
    longest = simulate(jobs, dataclasses.replace(policy, threshold=math.inf)).wait.max()
    assert format_duration(float(longest)) in free
    snapshot(starvation(policy, None, keeps_threshold=False), part="2")


def test_the_head_of_a_file_and_the_notes_say_it() -> None:
    jobs = default_workload().select(np.arange(500))
    for to in ("slurm-site-factor-lua", "slurm-nice", "slurm-site-factor-c", "oar"):
        made = pf.export("F1", to, epoch="2026-01-01", workload=jobs)
        texts = "\n".join(file.text for file in made.files)
        for word in ("Starvation: the longest wait in a simulation of 500 jobs", "Gaming: half the time"):
            assert word in texts
            assert any(note.startswith(word) for note in made.notes)
        assert ("Renew before" in texts) == (made.scale is not None)
        assert "Starvation" in made._repr_html_()
    # Weights can make another order than the policy: what is said is of that one.
    made = pf.export("SAF", "slurm-weights", workload=jobs)
    formula = made.text.partition("LOWER first, for policyfactory evaluate: ")[2].partition("\n")[0]
    said = gaming(Policy("weights", formula), None)
    assert said != gaming(CATALOGUE["SAF"], None)
    assert said in made.notes
    # A program orders no queue.
    assert "Gaming" not in pf.export("F1", "python", epoch="2026-01-01").text


def test_the_longest_wait_under_slurms_own_rules_stands_beside_that_under_easy(tmp_path: Path) -> None:
    jobs = default_workload().select(np.arange(300))
    assumed = starvation(CATALOGUE["SAF"], jobs, keeps_threshold=False, rules=Rules(backfill="slurm"))
    for backfill in ("slurm", "easy"):
        for name in ("SAF", "FCFS"):
            wait = float(simulate(jobs, name, Rules(backfill=backfill)).wait.max())  # type: ignore[arg-type]
            assert format_duration(wait) in assumed
    assert f"300 jobs of {jobs.name} under Slurm's own rules on an assumed site is" in assumed
    path = tmp_path / "here.toml"
    path.write_text('schema = 1\nnodes = [{names = "n[1-256]"}]\npartitions = [{name = "all"}]\n')
    text = pf.export("SAF", workload=jobs, site=path).text
    assert assumed.replace("an assumed site", "site here").split(";")[0] in text
    assert f"--site {path}" in text
    assert "--site '<Site here>'" in pf.export("SAF", workload=jobs, site=read_site(path)).text
    assert (
        "changes while a job waits" in pf.export("WFP3", "slurm-site-factor-c", workload=jobs, site=path).files[1].text
    )


def test_what_is_meant_for_slurm_is_simulated_under_its_rules_unless_easy_is_asked_for() -> None:
    jobs = default_workload().select(np.arange(300))
    slurm, easy = f"{jobs.name} under Slurm's own rules on an assumed site is", f"{jobs.name} with EASY backfilling is"
    text = pf.export("SAF", workload=jobs).text
    assert slurm in text
    assert "(with EASY backfilling " in text
    assert "--backfill" not in text
    alone = pf.export("SAF", workload=jobs, backfill="easy").text
    assert easy in alone
    assert slurm not in alone
    assert "--backfill easy" in alone
    assert easy in pf.export("SAF", "oar", workload=jobs).text
    # What is not simulated under Slurm's rules, and yet can be exported.
    oldest = pf.export("F1", "slurm-site-factor-c", epoch="oldest-waiting", workload=jobs)
    assert any(easy in note for note in oldest.notes)


@pytest.mark.parametrize(
    ("to", "options", "message"),
    [
        ("slurm-nice", {"site": "here.toml", "backfill": "easy"}, "--backfill leave"),
        ("oar", {"backfill": "slurm"}, "oar Slurm --backfill"),
        ("slurm-nice", {"backfill": "none"}, "slurm none"),
        ("slurm-nice", {"site": 5}, "site path 5"),
        ("slurm-nice", {"site": "here.toml", "workload": None}, "--workload LOG"),
    ],
)
def test_slurms_rules_are_for_slurm(to: str, options: dict[str, Any], message: str) -> None:
    jobs = default_workload().select(np.arange(100))
    refused(UsageError, message, pf.export, "SAF", to, **{"workload": jobs, **options})


def test_log_only_is_for_slurm() -> None:
    for to in ("oar", "pbs", "python"):
        refused(UsageError, "without acting --log-only", pf.export, "SAF", to, log_only=True)
    refused(UsageError, "log-only yes", pf.export, "SAF", log_only="yes")
