"""RLScheduler's own environment, episode by episode, and the figures of its paper that formulas have made."""

from __future__ import annotations

import functools
import gzip
import json
from decimal import ROUND_DOWN, ROUND_HALF_UP, Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from policyfactory.policy.policy import Policy
from policyfactory.search.environment.episodes import EpisodeOptions, PaperEpisodes
from policyfactory.simulation.compat import CommittedLog, starts_by_formula
from policyfactory.simulation.rules import Rules
from policyfactory.workload.swf.files import read_swf
from policyfactory.workload.windows import starts_rlscheduler
from support import shared_path

LUBLIN_1, LUBLIN_2, HPC2N = "lublin_256.swf", "lublin_256_new2.swf", "HPC2N-2002-2.1-cln.swf"
LOGS = (LUBLIN_1, LUBLIN_2, HPC2N)
# As the program has them: both take the wait of a job to be -1 - submit.
FAULTY = {"WFP3": "((r + 1)/p)**3*q", "UNICEP": "(r + 1 - 1e-15)/(log2(q + 1e-15)*p)"}
HEURISTICS = {"FCFS": "r", **FAULTY, "SJF": "p", "F1": "log10(p)*q + 870*log10(r)"}


@functools.cache
def oracle() -> dict[str, Any]:
    with gzip.open(shared_path("oracles/rlscheduler_env.json.gz")) as file:
        known: dict[str, Any] = json.load(file)
    return known


@functools.cache
def log_of(name: str) -> CommittedLog:
    suffix = ".gz" if name == HPC2N else ""
    return CommittedLog.of_swf(read_swf(Path(shared_path(f"traces/{name}{suffix}"))))


def slowdowns(log: CommittedLog, start: np.ndarray, first: int) -> np.ndarray:
    rows = slice(first, first + len(start))
    run_time = log.jobs.run_time[rows]
    return np.maximum((start - log.jobs.submit[rows] + run_time) / np.maximum(run_time, 10), 1.0)


def played(name: str, formula: str, first: np.ndarray, jobs: int, *, backfill: bool) -> np.ndarray:
    log = log_of(name)
    r = log.jobs.submit.astype(float)
    return starts_by_formula(log, Policy("P", formula), first, jobs, backfill=backfill, r=r)[0]


@pytest.mark.parametrize("name", LOGS)
def test_episodes_are_those_of_the_program(name: str) -> None:
    known, log = oracle()["logs"][name], log_of(name)
    assert (len(log), log.machine, log.nodes) == (known["jobs_kept"], known["max_procs"], known["max_nodes"])
    assert log.longest_run == known["max_exec_time"]
    for episode in known["episodes"]:
        n, first = episode["n_jobs"], episode["start_index"]
        rules = Rules(backfill="easy" if episode["backfill"] else "none")
        played = PaperEpisodes(log, EpisodeOptions(n, rules=rules))
        played.begin(0, first)
        seen = {one["step"]: one for one in episode["observations"]}
        for step, place in enumerate(episode["slots"]):
            assert played.shown[0] == episode["visible_counts"][step]
            assert played.clock[0] == episode["decision_times"][step]
            job = first + played.batch.shown[0, place]
            assert log.job_id[job] == episode["chosen_job_ids"][step]
            if step in seen:
                rows = np.array(seen[step]["rows"], dtype=np.float32)
                assert (played.jobs[0, : len(rows)] == rows).all()
                shown = log.job_id[first + played.batch.shown[0, : len(rows)]]
                assert shown.tolist() == seen[step]["visible_job_ids"]
            played.step(np.array([place]))
        assert played.done[0]
        assert played.clock[0] == episode["end_time_of_episode"]
        assert played.batch.start[0].tolist() == episode["start_times"]
        check_metrics(log, played.batch.start[0], first, episode["metrics"])


def check_metrics(log: CommittedLog, start: np.ndarray, first: int, known: dict[str, float]) -> None:
    rows = slice(first, first + len(start))
    run_time, wait = log.jobs.run_time[rows], start - log.jobs.submit[rows]
    slowdown = slowdowns(log, start, first)
    work = (run_time * log.processors[rows]).sum() / (log.machine * (start.max() - log.jobs.submit[first]))
    measured = {
        "avg_bounded_slowdown": slowdown.mean(),
        "avg_wait": wait.mean(),
        "avg_turnaround": (wait + run_time).mean(),
        "utilization_raw": -work,
        "avg_slowdown": ((wait + run_time) / run_time).mean(),
    }
    if "user_mean_bsld" in known:
        user = log.user[rows]
        of_users = [slowdown[user == one].mean() for one in np.unique(user)]
        measured |= {
            "user_mean_bsld": np.mean(of_users),
            "user_max_bsld": max(of_users),
            "user_min_bsld": min(of_users),
        }
    assert measured == pytest.approx(known, rel=1e-9)


@pytest.mark.parametrize("name", LOGS)
def test_heuristics_are_those_of_the_program(name: str) -> None:
    names = {"fcfs": "FCFS", "sjf": "SJF", "f1": "F1", "wfp": "WFP3", "uni": "UNICEP"}
    formulas = {key: HEURISTICS[name] for key, name in names.items()} | {"smallest": "q"}
    for episode in oracle()["logs"][name]["episodes"]:
        first, known = episode["start_index"], episode["heuristics_avg_bounded_slowdown"]
        for key, formula in formulas.items():
            backfill = bool(episode["backfill"])
            start = played(name, formula, np.array([first]), episode["n_jobs"], backfill=backfill)[0]
            assert slowdowns(log_of(name), start, first).mean() == pytest.approx(known[key], rel=1e-9), (key, episode)


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("name", [LUBLIN_1, HPC2N])
def test_training_windows_are_drawn_as_by_the_program(name: str, seed: int) -> None:
    known, log = oracle()["training_resets"][name][f"seed{seed}"], log_of(name)
    first = starts_rlscheduler(len(log), 256, 20, str(seed))
    assert first.tolist() == known["start_indices"]
    for formula, key in (("SJF", "sjf_avg_bsld"), ("F1", "f1_avg_bsld")):
        start = played(name, HEURISTICS[formula], first, 256, backfill=False)
        values = [slowdowns(log, start[at], one).mean() for at, one in enumerate(first)]
        assert values == pytest.approx(known[key], rel=1e-9)


@pytest.mark.parametrize("name", LOGS)
def test_filter_statistics_are_those_of_all_windows(name: str) -> None:
    known, log = oracle()["sjf_filter"][name], log_of(name)
    # The log ends for the filter with its first 10,000 jobs.
    first = np.arange(1, 10_000 - 256 + 1)
    start = played(name, "p", first, 256, backfill=False)
    values = np.array([slowdowns(log, start[at], one).mean() for at, one in enumerate(first)])
    for at, value in known["every_50th_start"].items():
        assert values[int(at) - 1] == pytest.approx(value, rel=1e-9)
    summary = known["summary"]
    assert (len(values), float(np.median(values)), values.mean()) == pytest.approx(
        (summary["n_starts"], summary["median"], summary["mean"]), rel=1e-9
    )
    inside = ((values > 10) & (values < 150)).mean()
    assert inside == pytest.approx(summary["share_in_10_150"], abs=1e-9)


# The seed of each table's windows, found by trying, and its metric.
TABLES = {"V": ("1", "bsld"), "VI": ("1", "utilisation"), "X": ("2", "slowdown"), "XI": ("20", "wait")}


@pytest.mark.parametrize("backfill", [False, True])
@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("name", [LUBLIN_1, LUBLIN_2])
def test_tables_of_the_paper_to_the_printed_digit(name: str, table: str, backfill: bool) -> None:
    log, (seed, metric) = log_of(name), TABLES[table]
    first = starts_rlscheduler(len(log), 1024, 10, seed)
    label = "Lublin-1" if name == LUBLIN_1 else "Lublin-2"
    printed = oracle()["paper_tables"][table]["backfill" if backfill else "no_backfill"][label]
    for formula, expected in zip(HEURISTICS.values(), printed[:5], strict=True):
        start = played(name, formula, first, 1024, backfill=backfill)
        value = float(np.mean([measure(log, start[at], one, metric) for at, one in enumerate(first)]))
        assert is_printed_as(value, expected, table), (formula, value, expected)


def measure(log: CommittedLog, start: np.ndarray, first: int, metric: str) -> float:
    rows = slice(first, first + len(start))
    run_time, wait = log.jobs.run_time[rows], start - log.jobs.submit[rows]
    if metric == "utilisation":
        work = (run_time * log.processors[rows]).sum()
        return float(work / (log.machine * (start.max() - log.jobs.submit[first])))
    values = {"bsld": slowdowns(log, start, first), "slowdown": (wait + run_time) / run_time, "wait": wait}
    return float(values[metric].mean())


def is_printed_as(value: float, printed: float, table: str) -> bool:
    decimals = 3 if table == "VI" else len(repr(printed).partition(".")[2].rstrip("0"))
    digits = Decimal(value)
    if table == "X":
        # Rounded to two decimals and then once more: 397.2482 is printed as 397.3.
        digits = digits.quantize(Decimal("0.01"), ROUND_HALF_UP)
    unit = Decimal(1).scaleb(-decimals)
    return float(digits.quantize(unit, ROUND_DOWN if table == "XI" else ROUND_HALF_UP)) == printed
