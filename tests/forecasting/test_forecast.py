"""The forecast of a queue: what is told of each job, of one that is not there yet, and of what cannot be told."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import pytest
from forecasting.queues_of import SITE, loop, recorded_log

from policyfactory.core.errors import PolicyfactoryError, SiteError, UsageError
from policyfactory.forecasting.forecast import Forecast, forecast
from policyfactory.forecasting.futures import Draws, _run_times
from policyfactory.forecasting.record import standing_of
from policyfactory.site.model import NodeGroup, NotModelled, Partition, Site
from policyfactory.site.submission import others, submitted
from policyfactory.statistics.calibration import Stretch
from policyfactory.workload.jobs import Workload
from policyfactory.workload.snapshot import QueuedJob, Snapshot
from refusals import refusal


@pytest.fixture(scope="module", params=[None, SITE], ids=["easy", "slurm"])
def case(request: pytest.FixtureRequest) -> tuple[Site | None, Snapshot, Workload]:
    """Return rules, the queue of an instant at which several jobs wait, and the log of its cluster."""
    site = request.param
    found, instants = loop(site)
    now = max(instants, key=lambda instant: len(found.record.waiting(instant)))
    return site, found.standing(now).snapshot, recorded_log(found)


def told(case: tuple[Site | None, Snapshot, Workload], snapshot: Snapshot | None = None, **more: Any) -> Forecast:
    site, queue, log = case
    return forecast(snapshot or queue, site, log, **{"futures": 40, "workers": 1, **more})


def with_job(snapshot: Snapshot, **changes: Any) -> tuple[Snapshot, str]:
    """Return a queue whose last waiting job is changed, and its name."""
    last = snapshot.of("waiting")[-1]
    jobs = tuple(dataclasses.replace(job, **changes) if job is last else job for job in snapshot.jobs)
    return dataclasses.replace(snapshot, jobs=jobs), last.name


def test_each_waiting_job_has_quantiles_in_order_and_chances_that_grow(
    case: tuple[Site | None, Snapshot, Workload],
) -> None:
    found = told(case)
    assert {job.job.name for job in found.jobs} == {job.name for job in case[1].of("waiting")}
    for job in found.jobs:
        finite = job.quantiles[np.isfinite(job.quantiles)]
        assert (np.diff(finite) >= 0).all()
        assert job.chance(600) <= job.chance(3600) <= job.chance(86_400)
        assert job.median == job.quantiles[2]
    table = found.frame()
    assert len(table) == len(found.jobs)
    assert {"job", "median", "within_hour", "today", "q0.05", "q0.95", "waits"} <= set(table.columns)
    assert found.as_dict()["jobs"][0]["job"] == found.jobs[0].job.name
    assert found.plot().axes[0].lines


def test_the_same_queue_and_seed_give_the_same_bytes_in_any_order_of_the_file(
    case: tuple[Site | None, Snapshot, Workload],
) -> None:
    queue = case[1]
    turned = dataclasses.replace(queue, jobs=queue.jobs[::-1])
    first, second = ({job.job.name: job.starts.tobytes() for job in told(case, its).jobs} for its in (queue, turned))
    assert first == second


def test_what_the_log_has_of_later_is_not_looked_at_and_that_is_told(
    case: tuple[Site | None, Snapshot, Workload],
) -> None:
    site, queue, log = case
    now = queue.taken - (log.unix_start or 0)
    cut = log.select(log.submit <= now)
    first, second = told(case), forecast(queue, site, cut, futures=40, workers=1)
    assert [job.starts.tobytes() for job in first.jobs] == [job.starts.tobytes() for job in second.jobs]
    assert any("not looked at" in text for text in first.assumed)
    assert not any("not looked at" in text for text in second.assumed)


def test_a_job_that_is_not_there_yet_stands_beside_what_else_could_be_asked_for(
    case: tuple[Site | None, Snapshot, Workload],
) -> None:
    found = told(case, submit="-n 4 -t 10:00:00", user="user 3")
    asked = found.find("new")
    assert asked.job.cores == 4
    assert asked.job.limit == 36_000
    words = [its.words for its in found.alternatives]
    assert len(words) == 2
    assert all(its.asked is asked for its in found.alternatives)
    # A shorter job of the same size can only be backfilled more easily.
    assert found.alternatives[0].earlier >= -600
    # Like jobs run within the limit that was asked for, and some of them not within half of it.
    assert asked.runs.max() <= 36_000
    long = told(case, submit="-n 4 -t 10:00:00", user="user 2")
    assert long.alternatives[0].killed == (long.find("new").runs > 18_000).mean() > 0
    assert found.alternatives[1].killed == 0
    # What others do does not hang on the new job's words: the others' draws are the same.
    other = told(case, submit="-n 4 -t 5:00:00", user="user 3")
    assert other.find("new").starts.tobytes() == found.alternatives[0].found.starts.tobytes()


def test_other_partitions_are_tried_that_can_take_the_job() -> None:
    found, instants = loop(SITE)
    snapshot = found.standing(instants[0]).snapshot
    # What changes no start is passed over; of several partitions the first that fits is taken.
    words = "-N 2-4 -t 1:00:00 -p all,short -J name --mail-type=END -o out.txt"
    asked = submitted(words, snapshot, SITE)
    assert (asked.nodes, asked.most_nodes, asked.partitions, asked.limit) == (2, 4, ("all", "short"), 3600)
    tried = forecast(snapshot, SITE, recorded_log(found), futures=10, submit="-N 2 -t 1:00:00", workers=1)
    assert any("partition short" in its.words for its in tried.alternatives)
    tried = forecast(snapshot, SITE, recorded_log(found), futures=10, submit="-N 2 -t 3:00:00", workers=1)
    assert not any("partition" in its.words for its in tried.alternatives)


@pytest.mark.parametrize(
    ("changes", "fact"),
    [
        ({"priority": 0, "reason": "JobHeldUser"}, "held"),
        ({"dependency": "afternotok:99:98", "reason": "Dependency"}, "depends"),
    ],
)
def test_a_job_that_takes_no_part_has_no_times_and_the_reason(
    case: tuple[Site | None, Snapshot, Workload], changes: dict[str, Any], fact: str
) -> None:
    queue, name = with_job(case[1], **changes)
    job = told(case, queue).find(name)
    assert fact in job.outside
    assert math.isinf(job.median)
    assert job.as_dict()["median"] is None


def test_a_job_does_not_start_before_its_begin_time(case: tuple[Site | None, Snapshot, Workload]) -> None:
    queue, name = with_job(case[1], eligible=case[1].taken + 7200, accrued=None)
    assert told(case, queue).find(name).starts.min() >= 7200


def test_a_job_that_can_never_start_says_why() -> None:
    found, instants = loop(SITE)
    queue, name = with_job(found.standing(instants[0]).snapshot, cores=99)
    assert "never" in forecast(queue, SITE, recorded_log(found), futures=10, workers=1).find(name).outside


def test_tasks_of_an_array_are_one_row_whose_first_task_is_forecast() -> None:
    found, instants = loop(SITE)
    queue, name = with_job(found.standing(instants[0]).snapshot, array=7, tasks=5, array_limit=2, name="7_[0-4%2]")
    job = forecast(queue, SITE, recorded_log(found), futures=10, workers=1).find("7_3")
    assert job.job.tasks == 5
    assert name


def test_a_user_sees_own_jobs_and_no_name_of_others(case: tuple[Site | None, Snapshot, Workload]) -> None:
    found = told(case)
    user = found.jobs[0].job.user
    mine = found.of_user(user).as_dict()
    others = {job.user for job in case[1].jobs} - {user}
    assert {job["user"] for job in mine["jobs"]} == {user}
    assert not any(repr(other) in repr(mine) for other in others)
    other = next(job.job.name for job in found.jobs if job.job.user != user)
    with refusal(UsageError, f"{other} squeue", cure=False):
        found.of_user(user).find(other)
    assert found.of_user("nobody").as_dict()["jobs"] == []


def test_a_stretch_widens_what_is_told(case: tuple[Site | None, Snapshot, Workload]) -> None:
    plain, wide = told(case), told(case, stretch=Stretch(0.0, (2.0, 2.0, 2.0, 2.0), 50))
    assert any("not calibrated" in text for text in plain.assumed)
    assert not any("not calibrated" in text for text in wide.assumed)
    for narrow, job in zip(plain.jobs, wide.jobs, strict=True):
        assert job.quantiles[4] >= narrow.quantiles[4]


def of_another_cluster(snapshot: Snapshot) -> Snapshot:
    return dataclasses.replace(snapshot, jobs=tuple(dataclasses.replace(job, cores=999) for job in snapshot.jobs))


def elsewhere(snapshot: Snapshot) -> Snapshot:
    return dataclasses.replace(
        snapshot, jobs=tuple(dataclasses.replace(its, partitions=("x",)) for its in snapshot.jobs)
    )


def test_wrong_queues_and_logs_are_refused(case: tuple[Site | None, Snapshot, Workload]) -> None:
    site, queue, log = case
    refused: list[tuple[type[PolicyfactoryError], str, Any]] = [
        (UsageError, "500 --taken", lambda: told(case, dataclasses.replace(queue, taken=1_000_100_000))),
        (UsageError, "UnixStartTime", lambda: forecast(queue, site, dataclasses.replace(log, unix_start=None))),
        (UsageError, "busy waits", lambda: forecast(queue, site, dataclasses.replace(log, start=0 * log.start - 1))),
        (UsageError, "8d 7", lambda: told(case, horizon="8d")),
        (UsageError, "futures 0", lambda: told(case, futures=0)),
        (UsageError, "--submit -x sbatch", lambda: told(case, submit="-x 3")),
        (UsageError, "--submit 999999999999T", lambda: told(case, submit="--mem 999999999999T")),
        (UsageError, "--submit soon", lambda: told(case, submit="-t soon")),
        (UsageError, "--submit 4-2", lambda: told(case, submit="-N 4-2")),
        (UsageError, "beyond", lambda: told(case, horizon="1h").jobs[0].chance(7200)),
    ]
    if site is None:
        refused.append((UsageError, "999 --processors --site", lambda: told(case, of_another_cluster(queue))))
    else:
        refused.append((SiteError, "made all short", lambda: told(case, elsewhere(queue))))
        refused.append((UsageError, "made nowhere", lambda: told(case, submit="-p nowhere")))
    for error, facts, call in refused:
        with refusal(error, facts):
            call()


def test_a_queue_without_any_job_has_no_forecasts_under_easy() -> None:
    found, instants = loop()
    queue = dataclasses.replace(found.standing(instants[0]).snapshot, jobs=())
    assert forecast(queue, None, recorded_log(found), futures=5).jobs == ()


def test_without_running_jobs_it_is_told_that_all_is_taken_for_free(
    case: tuple[Site | None, Snapshot, Workload],
) -> None:
    queue = dataclasses.replace(case[1], jobs=case[1].of("waiting"))
    assert any("no job runs" in text for text in told(case, queue).assumed)


def test_users_are_known_by_their_names_where_the_log_has_them() -> None:
    from policyfactory.forecasting.record import standing_of
    from policyfactory.workload.jobs import Requests

    found, instants = loop()
    log = recorded_log(found)
    names = tuple(f"u{number}" for number in range(12))
    requests = dataclasses.replace(Requests.unknown(len(log)), user_name=log.user, names={"user": names})
    snapshot = found.standing(instants[0]).snapshot
    jobs = tuple(dataclasses.replace(job, user=job.user.replace("user ", "u")) for job in snapshot.jobs)
    named = dataclasses.replace(snapshot, jobs=(*jobs, dataclasses.replace(jobs[-1], number=1 << 39, user="new")))
    standing, assumed = standing_of(named, None, dataclasses.replace(log, requests=requests))
    plain, _ = standing_of(snapshot, None, log)
    assert standing.record.jobs.user[standing.rows[:-1]].tolist() == plain.record.jobs.user[plain.rows].tolist()
    assert any("1 user of the queue not known" in text for text in assumed)


def test_a_queued_job_is_what_the_record_says() -> None:
    found, instants = loop(SITE)
    standing = found.standing(instants[0])
    for job, row in zip(standing.snapshot.jobs, standing.rows.tolist(), strict=True):
        assert isinstance(job, QueuedJob)
        assert job.cores == found.record.jobs.processors[row]
        assert (job.start is None) == (job.state == "waiting")
        assert len(job.node_cores) == (0 if job.state == "waiting" else job.cores)


def test_sureness_is_that_of_the_futures_whatever_they_are_stretched_by(
    case: tuple[Site | None, Snapshot, Workload],
) -> None:
    """What starts alike in a future is not made earlier, or later, by mending intervals."""
    plain = told(case, submit="-n 4 -t 10:00:00", user="user 3")
    narrow = Stretch(0.3, (0.6, 0.7, 0.8, 0.9), 50)
    mended = told(case, submit="-n 4 -t 10:00:00", user="user 3", stretch=narrow)
    assert mended.find("new").quantiles.tolist() != plain.find("new").quantiles.tolist()
    for first, second in zip(plain.alternatives, mended.alternatives, strict=True):
        assert (first.earlier, first.sure) == (second.earlier, second.sure)


def test_parts_of_a_heterogeneous_job_start_together() -> None:
    found, instants = loop(SITE)
    now = max(instants, key=lambda instant: len(found.record.waiting(instant)))
    snapshot = found.standing(now).snapshot
    waiting = snapshot.of("waiting")
    assert len(waiting) > 2
    parts = (waiting[0], waiting[-1])
    jobs = tuple(dataclasses.replace(job, het=7) if job in parts else job for job in snapshot.jobs)
    its = forecast(dataclasses.replace(snapshot, jobs=jobs), SITE, recorded_log(found), futures=10, workers=1)
    first, last = its.find(waiting[0].name), its.find(waiting[-1].name)
    assert first.starts.tolist() == last.starts.tolist()


@pytest.mark.parametrize("site", [None, SITE])
def test_a_queue_in_which_nobody_waits_has_no_forecasts_and_trains_nothing(site: Site | None) -> None:
    found, _ = loop()
    its = forecast(Snapshot("queue", 1, ()), site, recorded_log(found).select(slice(0, 3)), futures=10)
    assert (its.jobs, its.as_dict()["jobs"]) == ((), [])


@pytest.mark.parametrize("site", [None, SITE])
def test_arrivals_are_of_the_last_weeks_that_the_log_has(site: Site | None) -> None:
    found, instants = loop(site, 14)
    snapshot, log = found.standing(instants[-1]).snapshot, recorded_log(found)
    cut = snapshot.taken - (log.unix_start or 0) - 20 * 86_400
    old = log.select((log.start >= 0) & (log.start + log.run_time < cut))
    its = forecast(snapshot, site, old, futures=10, workers=1)
    assert any("arrivals are drawn from weeks" in text for text in its.assumed)
    known = standing_of(snapshot, site, old)[0]
    counts = [len(rows) for _, rows in known.record.weeks(known.now, 86_400)]
    assert len(counts) > 3
    assert min(counts) > 0


def test_tasks_of_an_array_run_each_for_a_time_of_its_own() -> None:
    found, instants = loop()
    standing = found.standing(instants[-1])
    jobs = tuple(dataclasses.replace(job, tasks=5) if job.state == "waiting" else job for job in standing.snapshot.jobs)
    several = dataclasses.replace(standing, snapshot=dataclasses.replace(standing.snapshot, jobs=jobs))
    one, runs = (_run_times(its, Draws(futures=400)) for its in (standing, several))
    assert runs.shape[1] == standing.running + 5 * (one.shape[1] - standing.running)
    # The first task is the job that it would be alone; the others are like it.
    tasks = runs[:, standing.running : standing.running + 5]
    assert (tasks[:, 0] == one[:, standing.running]).all()
    related = np.corrcoef(tasks.argsort(axis=0).argsort(axis=0).T)[0, 1:]
    assert (related > 0.35).all()
    assert (related < 0.8).all()


def test_under_easy_the_tasks_of_an_array_are_as_many_jobs() -> None:
    found, instants = loop()
    now = max(instants, key=lambda instant: len(found.record.waiting(instant)))
    snapshot, log = found.standing(now).snapshot, recorded_log(found)
    first = snapshot.of("waiting")[0]
    jobs = tuple(
        dataclasses.replace(job, tasks=40, cores=log.machine) if job is first else job for job in snapshot.jobs
    )
    behind = snapshot.of("waiting")[-1].name
    plain, several = (
        forecast(dataclasses.replace(snapshot, jobs=its), None, log, futures=20, workers=1, without=("arrivals",))
        for its in (snapshot.jobs, jobs)
    )
    assert several.find(behind).median > plain.find(behind).median


def test_what_no_rule_knows_is_said_without_a_site_too() -> None:
    found, instants = loop()
    snapshot = found.standing(instants[0]).snapshot
    odd = dataclasses.replace(snapshot.of("waiting")[0], reason="Licenses")
    its = forecast(dataclasses.replace(snapshot, jobs=(odd,)), None, recorded_log(found), futures=2, workers=1)
    assert any("(Licenses)" in text for text in its.assumed)


def test_running_jobs_beyond_the_logs_machine_are_of_another_cluster() -> None:
    found, instants = loop()
    snapshot, log = found.standing(instants[0]).snapshot, recorded_log(found)
    jobs = tuple(dataclasses.replace(job, cores=15) if job.state == "running" else job for job in snapshot.jobs)
    with refusal(UsageError, f"{log.machine} threads --site", cure=False):
        forecast(dataclasses.replace(snapshot, jobs=jobs + jobs[:1]), None, log, futures=5)


@pytest.mark.parametrize(
    ("options", "gpus"),
    [
        ("--gres=gpu:a100", 1), ("--gres=gpu", 1), ("--gres=gpu:2080ti:1", 1), ("--gres=gpu:1g.10gb:3", 3),
        ("-G nvidia_a100-sxm4-40gb:2", 2), ("--gres=gpu:a100:2,tmpfs:10", 2), ("-G 4", 4), ("--gres=tmpfs:10", 0),
        ("--gpus-per-node=a100:2", 4),
    ],
)  # fmt: skip
def test_gpus_are_asked_for_as_of_sbatch(options: str, gpus: int) -> None:
    nodes = " -N 2" if "per-node" in options else " -N 1"
    assert submitted(f"{options}{nodes} -n 2", Snapshot("queue", 1000, ()), None).gpus == gpus


def test_partitions_that_cannot_take_a_job_or_may_be_closed_to_it_are_no_alternatives() -> None:
    site = Site(
        "s",
        (NodeGroup("n[1-4]", 8, 1000, 0), NodeGroup("g[1-2]", 8, 1000, 4)),
        (
            Partition("g", "g1", default=True),
            Partition("all", "n[1-4]", min_nodes=2),
            Partition("g2", "g2"),
            Partition("ours", "g2"),
        ),
        not_modelled=(NotModelled("PartitionName=ours DenyAccounts", "phys", "slurm.conf:9", "would not start"),),
    )
    asked = submitted("-p g --gres=gpu:2 -n 4", Snapshot("queue", 1000, ()), site)
    assert [other.partitions for words, other in others(asked, site) if words.startswith("in partition")] == [("g2",)]
    plain = submitted("-p g -n 4 --mem=3000", Snapshot("queue", 1000, ()), site)
    assert [other.partitions for words, other in others(plain, site) if words.startswith("in partition")] == [("all",)]


def test_what_is_submitted_is_of_the_users_account_and_stays_out_of_what_is_closed_to_it() -> None:
    closed = Partition("lab", allowed_accounts=("lab",))
    site = dataclasses.replace(
        SITE, partitions=(*SITE.partitions, closed), nodes=(NodeGroup("n[1-16]", 1, memory=500),)
    )
    snapshot = Snapshot("queue", 1000, (QueuedJob("1", 1, "waiting", "ann", "physics", "", ("all",), 900),))
    asked = submitted("-N 2 -t 1:00:00", snapshot, site, "ann", "physics")
    assert asked.account == "physics"
    assert not any("lab" in words for words, _ in others(asked, site))
    let_in = submitted("-N 2 -t 1:00:00 -A lab", snapshot, site, "ann", "physics")
    assert any("lab" in words for words, _ in others(let_in, site))
    # All memory of its nodes.
    assert submitted("-N 2 -t 1:00:00 --mem=0", snapshot, site).memory == 1000
    assert submitted("-N 2 -t 1:00:00", snapshot, site).memory is None
