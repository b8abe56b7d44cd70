"""Two times compared: made logs whose truth is known."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from policyfactory.core.errors import WorkloadError
from policyfactory.core.text import WEEK
from policyfactory.review.review import Review, review, sections_of, verdict_of
from policyfactory.review.times import (
    Reading,
    Weeks,
    by_regression,
    difference_of,
    in_words,
    match_weeks,
    of_matched,
    read_accounting,
)
from policyfactory.simulation.simulate import simulate
from policyfactory.statistics.intervals import Estimate, Interval
from policyfactory.workload.header import parse_header
from policyfactory.workload.jobs import Workload
from policyfactory.workload.swf.files import write_swf
from policyfactory.workload.swf.log import log_of_workload
from support import seeds

BEGIN = 1_600_000_000
MACHINE = 64


def jobs_of(seed: int, *, weeks: int = 30, load: float = 0.9, machine: int = MACHINE, begin: int = BEGIN) -> Workload:
    """Jobs of ten users whose weeks differ in load; half an hour on average, so that the queue forgets in hours."""
    random = np.random.default_rng(seed)
    submit, count = [], []
    mean_work = 1800.0 * 8
    for week in range(weeks):
        here = load + random.uniform(-0.15, 0.1)
        number = int(here * machine * WEEK / mean_work)
        submit.append(week * WEEK + np.sort(random.integers(0, WEEK, number)))
        count.append(number)
    when = np.concatenate(submit)
    n = len(when)
    size = random.integers(1, 16, n)
    run = np.maximum(random.exponential(1800, n), 1).astype(np.int64)
    unknown = np.full(n, -1, dtype=np.int64)
    return Workload(
        "made", machine, np.arange(1, n + 1), when.astype(np.int64), run, run * 2 + 60, size.astype(np.int64),
        random.integers(1, 11, n), unknown, unix_start=begin,
    )  # fmt: skip


def recorded(path: Path, jobs: Workload, policy: str) -> Path:
    """Write a log whose starts are those of a simulation."""
    start = jobs.submit if policy == "at once" else simulate(jobs, policy).start
    write_swf(log_of_workload(dataclasses.replace(jobs, start=start)), path)
    return path


def reviewed(tmp_path: Path, before: Workload, after: Workload, first: str, second: str) -> Review:
    after = dataclasses.replace(after, unix_start=BEGIN + 60 * WEEK)
    files = [recorded(tmp_path / "before.swf", before, first), recorded(tmp_path / "after.swf", after, second)]
    return review(files[:1], files[1:], second if second != "at once" else None)


@pytest.fixture(scope="module")
def helped(tmp_path_factory: pytest.TempPathFactory) -> Review:
    return reviewed(tmp_path_factory.mktemp("helped"), jobs_of(1), jobs_of(2), "FCFS", "SAF")


def test_a_policy_that_helps_is_said_to_and_who_lost_is_named(helped: Review) -> None:
    assert helped.verdict.light == "better", helped.verdict.sentences
    assert "It helped" in helped.verdict.sentences[0]
    assert helped.gains["after"].value < 0
    text = " ".join(helped.verdict.sentences)
    assert "Who gained" in text
    # SAF starts small jobs first: those of one processor gain.
    ones = next(group for group in helped.groups if group.kind == "processors" and group.name == "1")
    assert ones.wait[1].value < ones.wait[0].value
    assert len(helped.pairs) >= 20


def test_a_mean_wait_that_is_worse_is_not_hidden(helped: Review) -> None:
    worse = Estimate(60.0, Interval(30.0, 90.0), None, 30)
    matched, regression, simulated = helped.ways
    named = verdict_of(
        dataclasses.replace(helped, ways=(matched, dataclasses.replace(regression, wait=worse), simulated))
    )
    assert named.light == "better"
    assert "; but the mean wait is higher by regression on the load." in named.sentences[0]
    told = verdict_of(
        dataclasses.replace(helped, ways=(matched, regression, dataclasses.replace(simulated, wait=worse)))
    )
    assert told.light == "cannot tell"
    assert "higher by none; but the mean wait is higher by record less simulated FCFS." in told.sentences[0]
    none = verdict_of(helped)
    assert "but the mean wait" not in none.sentences[0]


def test_caveats_have_no_internals_and_units_are_not_doubled(helped: Review) -> None:
    caveats = " ".join(helped.verdict.caveats)
    assert "after the file's 0" not in caveats
    assert "jobs read" not in caveats
    columns = [column for section in sections_of(helped) for table in section.tables for column in table.columns]
    assert not any(column.unit == "jobs" for column in columns)
    said = [text for section in sections_of(helped) for text in section.paragraphs]
    assert not set(said) & set(helped.verdict.sentences)


def test_too_few_weeks_say_how_many_are_needed() -> None:
    twelve = dataclasses.replace(weeks([0.7] * 12, [1.0, 2.0] * 6), block=3)
    few = of_matched(twelve, twelve, [(at, at) for at in range(12)], "bsld")
    assert in_words(few).endswith("(no interval: 12 weeks, 18 are needed)")
    both = difference_of(few, dataclasses.replace(few, needed=24))
    assert (both.interval, both.needed) == (None, 24)
    unknown = dataclasses.replace(few, needed=None)
    assert difference_of(few, unknown).needed is None
    assert in_words(unknown).endswith("(no interval: its queue remembers longer than 12 weeks can tell)")
    loads = np.linspace(0.5, 0.9, 12).tolist()
    slopes = [dataclasses.replace(weeks(loads, [1.0 + at, 2.0] * 6), block=3) for at in range(2)]
    assert (by_regression(slopes[0], slopes[1], "bsld").cases, by_regression(*slopes, "bsld").needed) == (12, 18)


def test_the_reverse_is_worse(tmp_path: Path) -> None:
    found = reviewed(tmp_path, jobs_of(1), jobs_of(2), "SAF", "FCFS")
    assert found.verdict.light == "worse", found.verdict.sentences


@pytest.mark.parametrize("seed", seeds((7,), 4, 10))
def test_no_change_is_no_verdict(seed: int, tmp_path: Path) -> None:
    found = reviewed(tmp_path, jobs_of(seed), jobs_of(seed + 100), "FCFS", "FCFS")
    assert found.verdict.light == "cannot tell", found.verdict.sentences


def test_a_busier_time_is_not_a_worse_policy(tmp_path: Path) -> None:
    # A quarter more load after the change, which hides in the raw means that the order is better.
    found = reviewed(tmp_path, jobs_of(1, load=0.85), jobs_of(2, load=0.95), "FCFS", "SAF")
    assert found.verdict.light != "worse", found.verdict.sentences
    assert found.ways[2].bsld.value < 0


def test_what_weeks_find_waiting_from_the_weeks_before_is_no_change_of_the_order(helped: Review) -> None:
    nothing = Estimate(0.0, Interval(-1.0, 1.0), None, 30)
    weekly, regression, simulated = helped.ways
    unchanged = dataclasses.replace(simulated, bsld=nothing)
    for ways in ((weekly, regression, unchanged), (weekly, regression)):
        verdict = verdict_of(dataclasses.replace(helped, ways=ways))
        assert verdict.light == "cannot tell"
        assert "no simulation shows it" in verdict.sentences[0]
    # With the simulation, one of the others is enough.
    assert verdict_of(dataclasses.replace(helped, ways=(weekly, simulated))).light == "better"


@pytest.mark.parametrize(
    ("before", "after", "first", "words"),
    [
        pytest.param({"weeks": 4}, {}, "FCFS", "too few", id="few"),
        pytest.param({"load": 0.4}, {"load": 1.0}, "FCFS", "not comparable", id="load"),
        pytest.param(
            {},
            {"machine": 80},
            "FCFS",
            "the machine had 64 processors before and 80 after",
            id="machine",
            marks=pytest.mark.slow,
        ),
        pytest.param({}, {}, "at once", "nobody waits", id="nobody", marks=pytest.mark.slow),
    ],
)
def test_what_cannot_be_compared_cannot_be_told(
    before: dict[str, float], after: dict[str, float], first: str, words: str, tmp_path: Path
) -> None:
    found = reviewed(tmp_path, jobs_of(1, **before), jobs_of(2, **after), first, first)
    assert found.verdict.light == "cannot tell"
    assert words in found.verdict.sentences[0]


def test_a_simulation_with_invented_requests_has_no_vote(tmp_path: Path) -> None:
    files = []
    for name, begin, weeks_ in (("before", BEGIN, 12), ("after", BEGIN + 60 * WEEK, 12)):
        jobs = jobs_of(1, weeks=weeks_, begin=begin)
        log = log_of_workload(dataclasses.replace(jobs, start=simulate(jobs, "FCFS").start))
        files.append(tmp_path / f"{name}.swf")
        write_swf(dataclasses.replace(log, requested_time=np.full(len(log), -1)), files[-1])
    found = review(files[:1], files[1:], reading=Reading(estimate_missing="runtime"))
    assert [way.name for way in found.ways] == ["weeks of like load", "regression on the load"]
    assert "before: 100 % of the jobs have no requested time" in found.verdict.caveats[0]


def accounting(jobs: Workload, policy: str, begin: int, *, held: int = 0, eligible: bool = True) -> list[str]:
    """Lines of sacct; every twentieth job was submitted ``held`` s before it could run."""
    count, start, ready = len(jobs), simulate(jobs, policy).start + begin, jobs.submit + begin
    number = np.arange(count)
    columns = {
        "JobID": number + 1, "UID": [1000] * count, "State": ["COMPLETED"] * count,
        "Submit": ready - held * (number % 20 == 0), "Eligible": ready, "Start": start, "End": start + jobs.run_time,
        "ElapsedRaw": jobs.run_time, "TimelimitRaw": -(-jobs.requested_time // 60), "ReqCPUS": jobs.processors,
        "AllocCPUS": jobs.processors, "Partition": ["batch"] * count,
    }  # fmt: skip
    if not eligible:
        del columns["Eligible"]
    return ["|".join(map(str, row)) for row in [tuple(columns), *zip(*columns.values(), strict=True)]]


def written(path: Path, rows: list[str]) -> Path:
    path.write_text("\n".join(rows) + "\n")
    return path


@pytest.mark.parametrize(("waiting", "too_many"), [(0.02, True), (0.005, False)])
def test_jobs_that_still_wait_are_missing_from_the_means(waiting: float, too_many: bool, tmp_path: Path) -> None:
    files = []
    for name, seed, policy, begin in (("before", 1, "FCFS", BEGIN), ("after", 2, "SAF", BEGIN + 60 * WEEK)):
        jobs = jobs_of(seed, weeks=8)
        rows = accounting(jobs, policy, begin)
        if name == "after":
            still, last = range(len(jobs) + 1, len(jobs) + 1 + int(waiting * len(jobs))), jobs.submit[-1] + begin
            rows += [f"{job}|1000|PENDING|{last}|{last}|Unknown|Unknown|0|60|16|0|batch" for job in still]
        files.append(written(tmp_path / f"{name}.txt", rows))
    found = review(files[:1], files[1:], reading=Reading(processors=MACHINE))
    assert ("of the time after still waited" in found.verdict.sentences[0]) == too_many
    assert found.verdict.light == ("cannot tell" if too_many else "better")
    assert f"{found.after.accounting.waiting:,} more jobs still waited" in found.verdict.caveats[1]
    assert found.after.accounting.waiting > 0


def test_a_job_waits_from_when_it_could_run(tmp_path: Path) -> None:
    times = [(jobs_of(1, weeks=7), BEGIN), (jobs_of(2, weeks=7), BEGIN + 60 * WEEK)]
    before, after = (written(tmp_path / f"{at}.txt", accounting(jobs, "FCFS", at)) for jobs, at in times)
    held = written(tmp_path / "held.txt", accounting(*times[1][:1], "FCFS", times[1][1], held=86400))
    reading = Reading(processors=MACHINE)
    plain, moved = (review([before], [file], reading=reading) for file in (after, held))
    assert moved.ways[:2] == plain.ways[:2]
    # Jobs submitted in one second are in another order: a day earlier they had lower numbers.
    assert moved.ways[2].wait.value == pytest.approx(plain.ways[2].wait.value, rel=0.01)
    assert moved.verdict.light == "cannot tell"
    assert (plain.after.accounting.late, moved.after.accounting.late) == (0, -(-len(times[1][0]) // 20))
    assert "could run" in moved.verdict.caveats[1]
    # Where one time does not say it, nothing is concluded; where none does, that is said.
    unsaid = [
        written(tmp_path / f"unsaid-{at}.txt", accounting(jobs, "FCFS", at, held=86400, eligible=False))
        for jobs, at in times
    ]
    found = review([unsaid[0]], [held], reading=reading).verdict
    assert found.light == "cannot tell"
    assert "of the time before" in found.sentences[0]
    assert any("Eligible" in caveat for caveat in review(unsaid[:1], unsaid[1:], reading=reading).verdict.caveats)


def test_what_ran_or_waited_at_the_change_is_left_out_of_the_time_after(tmp_path: Path) -> None:
    jobs = jobs_of(1, weeks=4)
    rows = accounting(jobs, "FCFS", BEGIN)
    end = np.array([int(row.split("|")[6]) for row in rows[1:]])
    change = BEGIN + 2 * WEEK
    parts = [[rows[0], *np.array(rows[1:])[mask]] for mask in (end < change, end >= change)]
    files = [written(tmp_path / f"{number}.txt", lines) for number, lines in enumerate(parts)]
    found = review(files[:1], files[1:], reading=Reading(processors=MACHINE))
    last = jobs.submit[end < change].max()
    assert found.after.accounting.early == int(((end >= change) & (jobs.submit < last)).sum()) > 0
    assert len(found.after.schedule) == int((jobs.submit >= last)[end >= change].sum())
    assert f"{found.after.accounting.early} jobs left out" in found.verdict.caveats[1]


def test_times_that_overlap_are_refused(tmp_path: Path) -> None:
    jobs = jobs_of(1, weeks=3)
    file = recorded(tmp_path / "one.swf", jobs, "FCFS")
    with pytest.raises(WorkloadError, match=r"one\.swf: 7,\d+ jobs .* give times that follow each other"):
        review([file], [file])


@pytest.mark.parametrize(("named", "compared"), [((True, True), True), ((True, False), False), ((False, False), True)])
def test_users_are_compared_by_name_or_it_is_said(named: tuple[bool, bool], compared: bool, tmp_path: Path) -> None:
    files = []
    for number, (has_names, begin) in enumerate(zip(named, (BEGIN, BEGIN + 60 * WEEK), strict=True)):
        jobs = jobs_of(number, weeks=6)
        log = log_of_workload(dataclasses.replace(jobs, start=simulate(jobs, "FCFS").start, unix_start=begin))
        # Of the second log the numbers are the other way round.
        lines = [f"; User: {user} u{11 - user if number else user}" for user in range(1, 11)] if has_names else []
        header = parse_header([*log.header.lines, *lines])
        files.append(tmp_path / f"{number}.swf")
        write_swf(dataclasses.replace(log, header=header), files[-1])
    found = review(files[:1], files[1:])
    users = {group.name: group.jobs for group in found.groups if group.kind == "user"}
    assert bool(users) == compared
    if all(named):
        rows = [np.isin(period.weeks.week, weeks) for (_, period), weeks in zip(
            found.times, zip(*found.pairs, strict=True), strict=True)]  # fmt: skip
        user = [period.schedule.workload.user for _, period in found.times]
        wanted = int(((user[0] == 3) & rows[0]).sum()), int(((user[1] == 8) & rows[1]).sum())
        assert users["u3"] == wanted
    else:
        assert any("names of its users" in text or "by number" in text for text in found.verdict.caveats)


def test_job_numbers_that_were_used_before_find_their_own_jobs(tmp_path: Path) -> None:
    jobs = jobs_of(1, weeks=2)
    unique = log_of_workload(dataclasses.replace(jobs, start=jobs.submit))
    write_swf(dataclasses.replace(unique, job_id=np.arange(len(jobs)) % 100 + 1), tmp_path / "again.swf")
    found = read_accounting([tmp_path / "again.swf"])
    assert found.log.user[found.rows].tolist() == jobs.user.tolist()


def weeks(load: list[float], bsld: list[float]) -> Weeks:
    count = np.full(len(load), 10.0)
    sums = {"bsld": np.array(bsld) * 10, "wait": np.array(bsld) * 100}
    return Weeks(np.arange(len(load)), np.array(load), count, sums, 1)


def test_weeks_are_matched_by_hand_and_a_regression_finds_what_was_put_in() -> None:
    before = weeks([0.50, 0.70, 0.90, 0.30], [1, 2, 3, 9])
    after = weeks([0.91, 0.52, 0.10, 0.69], [2, 1, 5, 1])
    pairs = match_weeks(before, after)
    assert pairs == [(2, 0), (0, 1), (1, 3)]
    assert of_matched(before, after, pairs, "bsld").value == pytest.approx(-2 / 3)
    random = np.random.default_rng(1)
    loads = [random.uniform(0.5, 0.9, 40), random.uniform(0.6, 1.0, 40)]
    noise = [random.normal(0, 0.1, 40) for _ in loads]
    made = [weeks(load.tolist(), (2 + 5 * load - 1.5 * at + noise[at]).tolist()) for at, load in enumerate(loads)]
    found = by_regression(*made, "bsld")
    assert found.interval is not None
    assert found.interval.low < -1.5 < found.interval.high < -1
    load, mean, of_after = [np.concatenate(both) for both in zip(*(
        (week.load, week.mean("bsld"), np.full(40, float(at))) for at, week in enumerate(made)
    ), strict=True)]  # fmt: skip
    near = (load >= loads[1].min() - 0.05) & (load <= loads[0].max() + 0.05)
    columns = np.column_stack([np.ones_like(load), load, of_after])[near]
    assert found.value == pytest.approx(np.linalg.lstsq(columns, mean[near], rcond=None)[0][2], rel=1e-9)


def test_weeks_of_one_load_do_not_determine_a_regression_and_decide_nothing() -> None:
    same = [0.7] * 12
    found = by_regression(weeks(same, [2.0] * 12), weeks(same, [1.0] * 12), "bsld")
    assert np.isnan(found.value)
    assert found.interval is None
    assert in_words(found, "s") == "an amount that cannot be told"
