"""A replay beside its record: what passes, what does not, and what is said to lack."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest

from policyfactory.core.errors import EvaluationError, UsageError
from policyfactory.evaluation.fidelity.compare import HEADINGS, Fidelity, fidelity, sections_of, verdict_of
from policyfactory.simulation.slurm.run import run_slurm
from policyfactory.site.model import NodeGroup, NotModelled, Partition, Priority, Site
from recorded_sites import DOWN, JOBS, LIMITED, SITE, recorded, recorded_on, submitted, with_strangers
from refusals import refused
from snapshots import snapshot
from support import OTHER_KERNEL


def names_of(found: Fidelity) -> set[str]:
    return {reason.name for reason in found.reasons}


def test_the_record_of_the_site_itself_is_near() -> None:
    found = fidelity(recorded(), SITE)
    assert found.light == "near"
    assert found.trusted
    assert found.reasons == found.beyond == ()
    assert [(one.kind, one.name) for one in found.groups] == [
        ("all", "all"), ("partition", "batch"), ("partition", "short"), ("QOS", "normal"), ("QOS", "high"),
    ]  # fmt: skip
    for one in found.groups:
        assert one.distance == 0
        assert one.observed == one.simulated
        assert one.order == pytest.approx(1)
    assert found.groups[0].jobs == JOBS - found.lead_in == 540
    assert sum(one.jobs for one in found.groups[1:3]) == 540
    waits = recorded().start[60:] - recorded().submit[60:]
    own = found.groups[0].observed
    assert own is not None
    assert (own.median, own.p90) == (np.median(waits), np.percentile(waits, 90))
    assert own.median > 0
    assert found.course is not None
    assert found.course.difference == 0
    verdict = verdict_of(found)
    assert (verdict.light, verdict.title) == ("better", HEADINGS["near"])


def test_a_scheduler_that_is_a_second_slower_is_near_as_well() -> None:
    found = fidelity(recorded(), SITE, run_slurm(recorded(), SITE, turn_round=1))
    assert found.light == "near"
    assert found.groups[0].distance > 0


def test_what_chance_alone_makes_is_said_beside_it() -> None:
    found = fidelity(recorded(), SITE, twice=True)
    again = run_slurm(recorded(), SITE, turn_round=1).start - recorded().submit
    assert found.itself is not None
    assert found.itself.simulated is not None
    assert found.itself.simulated.mean == again[60:].mean()
    assert found.itself.observed == found.groups[0].simulated
    assert any(one.startswith("chance: simulated again") for one in verdict_of(found).caveats)
    assert not any(one.startswith("chance") for one in verdict_of(fidelity(recorded(), SITE)).caveats)


def test_a_site_file_with_half_of_the_nodes_is_too_small() -> None:
    half = dataclasses.replace(
        SITE,
        nodes=(NodeGroup("n[01-08]", cores=8),),
        partitions=(Partition("batch", nodes="n[01-06]", default=True), Partition("short", nodes="n[07-08]")),
    )
    found = fidelity(recorded(), half)
    assert found.light == "far"
    assert "small" in names_of(found)
    texts = " ".join(verdict_of(found).sentences)
    snapshot(texts)
    peak = next(reason.value for reason in found.reasons if reason.name == "small")
    assert 1.5 < peak <= 2


def test_limits_that_the_site_file_lacks_are_seen_by_jobs_that_wait_beside_idle_cores() -> None:
    log = recorded_on("limited")
    assert fidelity(log, LIMITED).light == "near"
    found = fidelity(log, SITE)
    assert found.light == "far"
    assert "idle" in names_of(found)
    idle = next(reason for reason in found.reasons if reason.name == "idle")
    assert idle.value > 0.4
    snapshot(idle.text, verdict_of(found).title)


@OTHER_KERNEL
def test_nodes_that_were_down_are_seen_by_cores_that_are_never_used() -> None:
    log = recorded_on("down")
    assert fidelity(log, DOWN).light == "near"
    found = fidelity(log, SITE)
    assert found.light == "far"
    assert "away" in names_of(found)
    away = next(reason for reason in found.reasons if reason.name == "away")
    snapshot(away.text)


def test_waits_of_other_jobs_are_not_near_though_their_distribution_is() -> None:
    log = recorded()
    waits = np.random.default_rng(1).permutation(log.start - log.submit)
    found = fidelity(dataclasses.replace(log, start=log.submit + waits), SITE)
    assert found.groups[0].distance < 0.1
    assert found.light == "far"
    snapshot(found.beyond)


def test_where_next_to_nobody_waits_in_the_simulation_it_cannot_be_told() -> None:
    # Nobody waits on a site so large; in the record a few wait for hours, which the distribution hides.
    large = dataclasses.replace(SITE, nodes=(NodeGroup("n[01-16]", cores=800),))
    log = run_slurm(submitted(), large)
    start = log.start.copy()
    start[3::20] += 4 * 3600
    found = fidelity(dataclasses.replace(submitted(), start=start), large)
    assert (found.light, found.beyond, found.groups[0].light) == ("cannot tell", (), "near")
    assert not found.trusted
    said = verdict_of(found)
    assert said.light == "cannot tell"
    snapshot(said.sentences[0])
    # Where nobody waits in the record either, they agree.
    assert fidelity(dataclasses.replace(submitted(), start=log.start), large).light == "near"


def test_the_log_of_another_cluster_is_refused_before_anything_runs() -> None:
    other = Site("tiny", (NodeGroup("n1", cores=2),), (Partition("batch", default=True), Partition("short")))
    refused(EvaluationError, "600 cluster", fidelity, recorded(), other)


def test_jobs_that_never_start_on_the_site_are_counted() -> None:
    closed = dataclasses.replace(
        SITE, partitions=(SITE.partitions[0], dataclasses.replace(SITE.partitions[1], max_time=1800.0))
    )
    found = fidelity(recorded(), closed)
    assert found.light == "far"
    snapshot(found.beyond, part="1")
    never = next(reason for reason in found.reasons if reason.name == "never")
    assert never.value == found.never / JOBS > 0.05
    snapshot(never.text, part="2")


def test_jobs_of_partitions_that_the_site_lacks_never_start_and_are_named() -> None:
    found = fidelity(with_strangers(3), SITE)
    assert (found.jobs, found.never, found.lead_in) == (600, 3, 59)
    said = "3 of 600 jobs of log are left out: site small does not have their partition 'old' (jobs 10, 20, 30)."
    assert found.left_out == found.as_dict()["left_out"] == said
    # Where the replay is far, the reasons name them.
    caveats = verdict_of(dataclasses.replace(found, light="near")).caveats
    assert caveats[1:3] == ("3 jobs of the record never start on this site", said[:-1])
    many = fidelity(with_strangers(60), SITE)
    snapshot(many.beyond, part="1")
    never = next(reason for reason in many.reasons if reason.name == "never")
    assert never.value == 0.1
    snapshot(never.text, part="2")


def test_users_who_wait_for_their_own_jobs_are_seen() -> None:
    # Each user submits when the job before has ended: a record that depends on its own waits.
    log = recorded_on("limited")
    submit, start = log.submit.copy(), log.start.copy()
    for user in range(12):
        rows = np.flatnonzero(log.user == user)
        for before, row in itertools.pairwise(rows.tolist()):
            submit[row] = start[before] + log.run_time[before] + 5
            start[row] = submit[row] + 4000
    order = np.argsort(submit, kind="stable")
    closed = dataclasses.replace(log, submit=submit[order], start=start[order], **{
        name: getattr(log, name)[order] for name in ("job_id", "run_time", "requested_time", "processors", "user")
    }, requests=log.requests.select(order) if log.requests else None)  # fmt: skip
    found = fidelity(closed, SITE)
    assert "closed loop" in names_of(found)
    assert "closed loop" not in names_of(fidelity(log, SITE))
    loop = next(reason for reason in found.reasons if reason.name == "closed loop")
    assert loop.value > 0.9
    snapshot(loop.text)


@OTHER_KERNEL
def test_what_the_site_and_the_log_do_not_say_is_told() -> None:
    log = dataclasses.replace(recorded_on("limited"), requests=None)
    site = dataclasses.replace(
        SITE,
        partitions=SITE.partitions[:1],
        priority=Priority(fair_share=1000),
        not_modelled=(NotModelled("PreemptType", "preempt/qos", "slurm.conf:7", "jobs may be stopped"),),
    )
    found = fidelity(log, site)
    assert found.light == "far"
    assert {"requests", "not modelled", "earlier usage"} <= names_of(found)
    texts = {reason.name: reason.text for reason in found.reasons}
    snapshot(texts["requests"])
    assert "PreemptType" in texts["not modelled"]
    assert "halves in 7d" in texts["earlier usage"]


def test_few_jobs_tell_nothing() -> None:
    for count in (1, 60):
        found = fidelity(recorded().select(slice(0, count)), SITE)
        assert found.light == "cannot tell"
        assert not found.trusted
        assert verdict_of(found).title == HEADINGS["cannot tell"]
        assert sections_of(found)
        found.as_dict()
    assert fidelity(recorded().select(slice(0, 1)), SITE).course is None


def test_a_log_without_starts_or_jobs_cannot_be_compared() -> None:
    refused(UsageError, "600 1", fidelity, submitted(), SITE)
    refused(UsageError, "simulation compared log", fidelity, recorded().select(slice(0, 0)), SITE)


def test_a_few_jobs_without_a_start_are_left_out() -> None:
    start = recorded().start.copy()
    start[100:110] = -1
    found = fidelity(dataclasses.replace(recorded(), start=start), SITE)
    assert found.unrecorded == 10
    assert found.groups[0].jobs == 530
    assert found.light == "near"
    assert any("10 jobs without a recorded start" in one for one in verdict_of(found).caveats)


def test_partitions_that_a_log_numbers_are_the_default_one() -> None:
    log = recorded()
    assert log.requests is not None
    named = dataclasses.replace(log.requests, names={**log.requests.names, "partition": ("1", "2")})
    one = dataclasses.replace(SITE, partitions=SITE.partitions[:1])
    plain = dataclasses.replace(log, requests=dataclasses.replace(named, partition=np.full(JOBS, -1)))
    assert fidelity(dataclasses.replace(log, requests=named), one).groups == fidelity(plain, one).groups


def test_a_partition_that_is_far_counts_where_it_has_enough_jobs() -> None:
    log = recorded()
    assert log.requests is not None
    start = np.where(log.requests.partition == 1, log.start + 20_000, log.start)
    found = fidelity(dataclasses.replace(log, start=start), SITE)
    lights = {one.name: one.light for one in found.groups if one.kind == "partition"}
    assert lights == {"batch": "near", "short": "far"}
    snapshot(found.beyond)


def test_sections_have_the_numbers_and_pictures() -> None:
    found = fidelity(recorded_on("limited"), SITE)
    waits, utilisation, lacking = sections_of(found)
    assert [one.name for one in (waits, utilisation, lacking)] == ["fidelity", "cores-in-use", "lacking"]
    assert [table.name for table in waits.tables] == ["groups", "means"]
    assert len(waits.tables[0].rows) == len(found.groups)
    for section in (waits, utilisation):
        for picture in section.pictures:
            assert picture.draw().axes
    assert found.course is not None
    assert len(utilisation.tables[0].rows) == len(found.course.observed) <= 100
    assert found.as_dict()["light"] == "far"
