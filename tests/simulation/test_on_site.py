"""A policy under Slurm's rules: it enters as its export would, on a site that is given or assumed."""

from __future__ import annotations

import dataclasses
import math
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from naive import slurm_kernels as plain
from naive.slurm_random import BEGIN, draw
from naive.slurm_workload import workload_of
from policyfactory.core.errors import EvaluationError, UsageError
from policyfactory.exports.content import ExportSite as Target
from policyfactory.exports.sample import ExportSample, learn_scale
from policyfactory.policy.policy import Epoch, Policy
from policyfactory.policy.scale import LARGEST, PriorityScale
from policyfactory.policy.store import CATALOGUE
from policyfactory.simulation.on_site import SiteFactors, simulate_timetable
from policyfactory.simulation.prepare import prepare
from policyfactory.simulation.rules import Rules
from policyfactory.simulation.simulate import simulate
from policyfactory.simulation.slurm.run import run_slurm
from policyfactory.simulation.tuning.tuner import SwitchingSimulation
from policyfactory.site.file import write_site
from policyfactory.site.fits import site_of
from policyfactory.site.model import NodeGroup, Partition, Priority, Scheduling, Site
from policyfactory.workload.jobs import Requests, Workload
from refusals import refusal, refused

POOL = Site("pool", (NodeGroup("n[1-4]"),), (Partition("batch", default=True),))
SAF = CATALOGUE["SAF"]
# The first job has the machine, the others wait: a long narrow one, a short wide one, a short narrow one.
QUEUE = [(0, 600, 4), (100, 900, 1), (101, 300, 4), (102, 60, 1)]


def work(jobs: list[tuple[int, int, int]], machine: int = 4, limits: list[int] | None = None, **more: Any) -> Workload:
    submit, run_time, processors = np.array(jobs, dtype=np.int64).T
    none = np.full(len(jobs), -1)
    requested = np.array(limits or run_time)
    return Workload(
        "log", machine, np.arange(1, len(jobs) + 1), submit, run_time, requested, processors, none, none, **more
    )


def order(workload: Workload, policy: Policy, site: Site | None = POOL) -> list[int]:
    return (np.argsort(simulate(workload, policy, site=site, backfill="slurm").start, kind="stable") + 1).tolist()


def test_the_queue_is_in_the_order_of_the_policy() -> None:
    assert order(work(QUEUE), CATALOGUE["FCFS"])[:2] == [1, 2]
    assert order(work(QUEUE), CATALOGUE["SPF"]) == [1, 4, 3, 2]
    assert order(work(QUEUE), CATALOGUE["LQF"])[:2] == [1, 3]


@pytest.mark.parametrize("seed", range(4))
def test_drawn_sites_are_scheduled_as_by_the_plain_slurm(seed: int) -> None:
    rng = random.Random(seed)
    site, jobs = draw(seed, 40, *rng.sample(["cores", "partitions", "age", "plan", "eligible"], 3))
    zero = min(BEGIN, *(job.submit for job in jobs))
    log = workload_of(site, jobs, zero)
    log = log.select(run_slurm(log, site).start >= 0)
    site = dataclasses.replace(site, priority=dataclasses.replace(site.priority, kind="multifactor"))
    schedule = simulate(log, SAF, site=site, overrun="kill")
    limits = -(-log.requested_time // 60) * 60
    area = (limits * log.processors).astype(np.float64)
    low, high = np.quantile(area, [0.001, 0.999])
    factor = dict(zip(log.job_id.tolist(), PriorityScale(low, high).integers(area).tolist(), strict=True))
    own = [dataclasses.replace(job, site_factor=factor[job.id]) for job in jobs if job.id in factor]
    expected = plain.slurm(site, own, zero + int(log.submit[0]), 0)
    for row, id_ in enumerate(log.job_id.tolist()):
        one = expected[id_]
        assert (schedule.start[row] + zero, schedule.end[row] + zero) == (one.start, one.end)
        assert schedule.backfilled[row] == (one.by == "backfill")


def test_each_job_gets_the_number_of_the_export() -> None:
    rng = np.random.default_rng(1)
    log = work([(0, int(p), int(q)) for p, q in rng.integers([1, 1], [10**5, 5], (500, 2))])
    limits = (-(-log.requested_time // 60) * 60).astype(np.float64)
    zeros = np.zeros(len(log))
    sample = ExportSample(limits, log.processors.astype(np.float64), zeros, zeros, "the same jobs")
    scale = learn_scale(SAF, sample, largest=Target(lambda: sample).weight)
    expected = scale.integers(limits * log.processors)
    assert SiteFactors(log, SAF, Rules(backfill="slurm"), POOL).first.tolist() == expected.tolist()
    # Where all scores are one, jobs keep the order of their submissions.
    same = Policy("same", "q")
    factors = SiteFactors(work([(0, 60, 1), (1, 90, 1)]), same, Rules(backfill="slurm"), POOL).first
    assert len(set(factors.tolist())) == 1
    assert 1 < factors[0] < LARGEST
    none = SiteFactors(work([(0, 60, 1), (1, 90, 2)]), Policy("root", "sqrt(-q)"), Rules(backfill="slurm"), POOL)
    assert none.first.tolist() == [1, 1]


def test_a_site_of_first_come_first_served_is_given_multifactor_priorities() -> None:
    basic = dataclasses.replace(POOL, priority=Priority("basic", age=1000))
    assert order(work(QUEUE), CATALOGUE["SPF"], basic) == [1, 4, 3, 2]


def test_jobs_run_on_as_the_log_says_or_are_killed() -> None:
    log = work([(0, 4000, 1), (1, 10**7, 1)], limits=[600, 600])
    on = simulate(log, SAF, site=POOL)
    assert (on.end - on.start).tolist() == log.run_time.tolist()
    killed = simulate(log, SAF, site=POOL, overrun="kill")
    assert ((killed.end - killed.start) < 800).all()
    late = dataclasses.replace(POOL, scheduling=Scheduling(kill_overrun=1200.0))
    longer = simulate(log, SAF, site=late, overrun="kill")
    assert ((longer.end - longer.start) >= 1800).all()
    refused(EvaluationError, "1 600 log", simulate, work([(0, 10**8, 1)], limits=[600]), SAF, site=POOL)


def test_jobs_that_never_start_are_named_with_why_and_the_cure() -> None:
    short = dataclasses.replace(POOL, partitions=(Partition("batch", max_time=600.0),))
    jobs = [(0, 60, 1), *((at, 900, 1) for at in range(1, 8))]
    with refusal(EvaluationError, "7 8 2 3 4 log") as e:
        simulate(work(jobs), SAF, site=short)
    assert "policyfactory site check LOG SITE" in str(e.value)


def test_a_few_jobs_that_never_start_are_left_out_and_named() -> None:
    short = dataclasses.replace(POOL, partitions=(Partition("batch", max_time=600.0),))
    jobs = [(0, 60, 1), (1, 900, 1), *((at, 300, 1) for at in range(2, 8))]
    schedule = simulate(work(jobs), SAF, site=short)
    assert schedule.workload.job_id.tolist() == [1, 3, 4, 5, 6, 7, 8]
    assert schedule.left_out.startswith("1 of 8 jobs of")
    assert "is left out: it could never start on site pool: job 2 (its limit of 900 s" in schedule.left_out
    # The others start as if it had not been there.
    alone = simulate(work(jobs).select(np.array([0, 2, 3, 4, 5, 6, 7])), SAF, site=short)
    assert schedule.start.tolist() == alone.start.tolist()
    assert alone.left_out == ""


def test_without_a_site_one_is_assumed_of_the_log() -> None:
    requests = dataclasses.replace(
        Requests.unknown(4), partition=np.zeros(4), gpus=np.ones(4), names={"partition": ("long",)}
    )
    log = work(QUEUE, requests=requests)
    schedule = simulate(log, SAF, backfill="slurm")
    assert schedule.rules.site is not None
    assert "one partition of 4 nodes of 1 processor" in schedule.rules.site.assumed
    assert schedule.start.tolist() == simulate(work(QUEUE), SAF, site=POOL).start.tolist()
    assert schedule.rules.site == site_of(log)


def test_partitions_that_a_log_only_numbers_are_the_default_one() -> None:
    def log(name: str) -> Workload:
        names = {"partition": (name,)}
        return work(QUEUE, requests=dataclasses.replace(Requests.unknown(4), partition=np.zeros(4), names=names))

    assert simulate(log("1"), SAF, site=POOL).start.tolist() == simulate(work(QUEUE), SAF, site=POOL).start.tolist()
    refused(EvaluationError, "long partition log", simulate, log("long"), SAF, site=POOL)


def test_a_job_of_a_partition_that_the_site_lacks_is_left_out_and_said() -> None:
    names = {"partition": ("batch", "long")}
    asked = dataclasses.replace(Requests.unknown(4), partition=np.array([0, 0, 1, 0]), names=names)
    schedule = simulate(work(QUEUE, requests=asked), SAF, site=POOL)
    assert schedule.workload.job_id.tolist() == [1, 2, 4]
    three = [QUEUE[row] for row in (0, 1, 3)]
    assert schedule.start.tolist() == simulate(work(three), SAF, site=POOL).start.tolist()
    said = "1 of 4 jobs of log is left out: site pool does not have its partition 'long' (job 3)."
    assert schedule.left_out == said
    assert said in schedule.summary()
    assert simulate(work(QUEUE), SAF, site=POOL).left_out == ""
    # On a site that is assumed partitions do not count.
    assert len(simulate(work(QUEUE, requests=asked), SAF, backfill="slurm")) == 4


def test_a_site_file_will_do_and_means_the_rules_of_slurm(tmp_path: Path) -> None:
    path = tmp_path / "pool.toml"
    write_site(POOL, path)
    of_file = simulate(work(QUEUE), SAF, site=path)
    assert of_file.rules == Rules(backfill="slurm", site=POOL)
    assert of_file.start.tolist() == simulate(work(QUEUE), SAF, site=str(path)).start.tolist()
    # Another rule takes the site away again.
    assert simulate(work(QUEUE), SAF, of_file.rules, backfill="easy").rules == Rules()


def test_utilisation_is_a_part_of_the_site() -> None:
    wide = dataclasses.replace(POOL, nodes=(NodeGroup("n[1-8]"),))
    assert simulate(work(QUEUE), SAF, site=wide).workload.machine == 8


@pytest.mark.parametrize(
    ("policy", "why"),
    [
        (Policy("free", "p*q/f"), "f free without"),
        (dataclasses.replace(CATALOGUE["F1"], epoch=Epoch("oldest-waiting")), "r waited F1"),
        (Policy("short", "e*q", threshold=3600.0), "3,600 predictions"),
    ],
)
def test_policies_that_no_export_could_follow_are_refused(policy: Policy, why: str) -> None:
    refused(UsageError, why, simulate, work(QUEUE), policy, site=POOL)


def test_scores_that_change_while_jobs_wait_are_renewed_where_slurm_calculates_priorities() -> None:
    # Job 1 has the pool; job 2 is shorter, job 3 longer and submitted a little before. Their order is that of p until
    # the wait counts for more.
    jobs = [(0, 2000, 4), (10, 900, 4), (20, 600, 4)]
    by_request, ages = Policy("p", "p"), Policy("ages", "p - 100*w")
    assert simulate(work(jobs), by_request, site=POOL).start.argsort().tolist() == [0, 2, 1]
    assert simulate(work(jobs), ages, site=POOL).start.argsort().tolist() == [0, 1, 2]
    # Where nothing is calculated before job 1 ends, the numbers of the submissions stand.
    seldom = dataclasses.replace(POOL, priority=Priority(kind="multifactor", calculation_period=86400))
    assert simulate(work(jobs), ages, site=seldom).start.argsort().tolist() == [0, 2, 1]


@pytest.mark.parametrize(("switch", "order"), [(1000, [0, 2, 1]), (1950, [0, 1, 2]), (5, [0, 2, 1])])
def test_a_policy_that_takes_over_orders_the_queue_from_the_next_calculation_of_priorities_on(
    switch: int, order: list[int]
) -> None:
    # Job 1 has the pool until 2000, and priorities are calculated every 300 s: at 1800 the last time before its end.
    log = work([(0, 2000, 4), (10, 900, 4), (20, 600, 4)])
    both = [CATALOGUE["FCFS"], CATALOGUE["SPF"]]
    rules = Rules(backfill="slurm", site=POOL)
    schedule = simulate_timetable(log, both, rules, np.array([0, 1]), np.array([0, switch, 3000]))
    assert schedule.start.argsort().tolist() == order
    assert schedule.policy_name == "switching"


def test_a_job_has_the_number_of_the_policy_under_which_it_is_submitted() -> None:
    # After 1800 nothing is calculated before job 1 ends. 2 and 3 came under LPF: the long one has the higher number.
    log = work([(0, 2000, 4), (1900, 60, 4), (1910, 900, 4)])
    rules = Rules(backfill="slurm", site=POOL)
    policies = [CATALOGUE["SPF"], CATALOGUE["LPF"]]

    def starts(*edges: int) -> list[int]:
        schedule = simulate_timetable(log, policies, rules, np.array([0, 1]), np.array([0, *edges]))
        return schedule.start.argsort().tolist()

    assert starts(1850, 4000) == [0, 2, 1]
    assert starts(3000, 4000) == [0, 1, 2]


@pytest.mark.parametrize("policy", [SAF, Policy("ages", "p - 100*w")])
def test_a_timetable_of_one_policy_is_that_policy(policy: Policy) -> None:
    site, jobs = draw(3, 40, "cores", "partitions", "age")
    log = workload_of(site, jobs, min(BEGIN, *(job.submit for job in jobs)))
    log = log.select(run_slurm(log, site).start >= 0)
    alone = simulate(log, policy, site=site)
    edges = np.linspace(0, int(log.submit[-1]), 4).astype(np.int64)
    timetable = simulate_timetable(log, [SAF, policy], alone.rules, np.array([1, 1, 1]), edges)
    assert (timetable.start == alone.start).all()
    assert timetable.policy_name == policy.name


def test_a_job_beyond_the_threshold_goes_first_from_the_next_calculation_on() -> None:
    # Job 1 has the pool for an hour; job 2 is long and wide, those after it are short.
    jobs = [(0, 3600, 4), (10, 1800, 4), *((at, 600, 4) for at in (20, 30))]
    assert order(work(jobs), SAF) == [1, 3, 4, 2]
    late = dataclasses.replace(SAF, threshold=1800.0)
    assert order(work(jobs), late) == [1, 2, 3, 4]
    ruled = simulate(work(jobs), SAF, site=POOL, threshold="30m")
    assert ruled.start.tolist() == simulate(work(jobs), late, site=POOL).start.tolist()
    assert (ruled.rules.threshold, simulate(work(jobs), late, site=POOL).rules.threshold) == (1800.0, 1800.0)
    # Priorities are calculated at 3,300 s and at 3,600 s: jobs that are late in between are late at the second.
    barely = simulate(work(jobs), SAF, site=POOL, threshold=3291.0)
    assert barely.start.argsort().tolist() == [0, 1, 2, 3]
    assert simulate(work(jobs), SAF, site=POOL, threshold=7200.0).start.argsort().tolist() == [0, 2, 3, 1]


@pytest.mark.parametrize(
    ("rule", "why"),
    [
        ({"decide_by": "runtime"}, "decide_by runtime"),
        ({"ties": "lifo"}, "ties lifo"),
        ({"compatibility": "sc17"}, "compatibility sc17"),
        ({"backfill_policy": SAF}, "easy slurm"),
    ],
)
def test_rules_that_slurm_does_not_have_are_refused(rule: dict[str, Any], why: str) -> None:
    refused(UsageError, why, Rules, backfill="slurm", **rule)


def test_a_site_belongs_to_the_rules_of_slurm() -> None:
    refused(UsageError, "site Site file", simulate, work(QUEUE), SAF, site=5)  # type: ignore[typeddict-item]
    refused(UsageError, "slurm site pool", Rules, site=POOL)


def test_what_slurm_has_no_part_in_is_refused() -> None:
    rules = Rules(backfill="slurm", site=POOL)
    refused(UsageError, "backfill simulate", prepare, work(QUEUE), rules)
    refused(UsageError, "under backfill", SwitchingSimulation, work(QUEUE), [SAF], rules)
    refused(EvaluationError, "counts seconds 1,000", simulate, work(QUEUE, ticks=1000), SAF, rules)


def test_no_job_has_no_schedule() -> None:
    log = work(QUEUE).select(slice(0, 0))
    assert len(simulate(log, SAF, site=POOL)) == 0
    assert len(simulate(log, SAF, backfill="slurm")) == 0
    assert math.isinf(simulate(log, SAF, site=POOL).rules.threshold)
