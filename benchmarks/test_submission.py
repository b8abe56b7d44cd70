"""CPU seconds of Slurm's script at a submission, where it predicts: Lua 5.1, as slurmctld runs it.

    pytest benchmarks/test_submission.py --benchmark-enable

2,000 users with 80 past jobs each, forests of 80 trees of 15 leaves; each submission is another user's. And what an
update of their history takes, of which a hundred jobs have ended.
"""

from __future__ import annotations

import dataclasses
import importlib
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from floors import record
from policyfactory.engine.past import FEATURES
from policyfactory.exports.content import TARGETS
from policyfactory.exports.foresight import SitePredictions
from policyfactory.policy.policy import Policy
from policyfactory.policy.store import Model
from policyfactory.prediction.features import NAMES
from policyfactory.prediction.history import History, HistoryLimits
from policyfactory.prediction.history_file import SiteJob, hash_with, key_of, read_history, update, write_history
from policyfactory.prediction.options import PredictorOptions
from policyfactory.prediction.training import Forests, train_forests
from policyfactory.workload.accounting.record import State
from sites import make_site

POLICY = Policy("PREDICTED", "-ln(s) + ln(e) + 0.4*ln(q)")
USERS, JOBS, SUBMISSIONS = 2_000, 80, 1_000
NOW = 1_800_000_000
CEILING_S = 0.005


def ended(number: int, user: int, rng: np.random.Generator, now: int) -> SiteJob:
    submit, request = now - int(rng.integers(1_000, 90_000)), 60 * int(rng.choice([10, 60, 240, 720, 1440]))
    run = int(rng.integers(1, 900))
    times = (submit, submit + 5, submit + 5 + run, run)
    return SiteJob(str(number), str(1000 + user), "100", *times, request, int(rng.integers(1, 65)), State.completed, 1)


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path, rng, history = tmp_path_factory.mktemp("site") / "history", np.random.default_rng(1), History()
    hashed = hash_with(key_of(path))
    jobs = [ended(number, number // JOBS, rng, NOW) for number in range(USERS * JOBS)]
    update(history, jobs, NOW, hashed, HistoryLimits())
    write_history(history, path, hashed)
    return path


def forests() -> Forests:
    rng = np.random.default_rng(2)
    features = rng.uniform(-1, 12, (20_000, FEATURES))
    features[:, [NAMES.index("memory"), NAMES.index("partition")]] = -1  # the script does not know them
    outcome = np.clip(rng.random((20_000, 4)) * features[:, :1] / 12, 0.01, 1)
    return train_forests(features, outcome, PredictorOptions(), tail=False)


@pytest.mark.benchmark(group="Slurm's script at a submission", timer=time.process_time)
def test_submission(benchmark: Any, state: Path) -> None:
    foresight = SitePredictions(forests(), str(state), 3600.0, {"batch": 1})
    text = (
        TARGETS["slurm-site-factor-lua"].make(Model(POLICY), dataclasses.replace(make_site(), foresight=foresight)).text
    )
    lua = importlib.import_module("lupa.lua51").LuaRuntime(register_eval=False)
    logged: list[str] = []
    lua.globals().slurm = lua.table_from({"SUCCESS": 0, "log_info": lambda *words: logged.append(str(words))})
    lua.globals().os.time = lambda: NOW + 10
    lua.execute(text)
    submit = lua.eval(
        "function(user) return slurm_job_submit({user_id = user, group_id = 100, time_limit = 60, min_cpus = 8}, "
        "{batch = {flag_default = 1}}, user) end"
    )
    count = SUBMISSIONS if benchmark.enabled else 10

    def work() -> None:
        for user in range(1000, 1000 + count):
            submit(user)

    benchmark.pedantic(work, rounds=3)
    assert not logged
    if benchmark.enabled:
        seconds = benchmark.stats.stats.min / count
        record("Slurm's script", "a submission, 80 past jobs", seconds, "CPU s", ceiling=CEILING_S)


@pytest.mark.benchmark(group="history update", timer=time.process_time)
def test_update(benchmark: Any, state: Path) -> None:
    hashed, rng = hash_with(key_of(state)), np.random.default_rng(3)
    jobs = [ended(10**7 + number, number, rng, NOW + 300) for number in range(100)]
    jobs = [job._replace(end=NOW + 200) for job in jobs]

    def work() -> None:
        history = read_history(state, hashed)
        assert update(history, jobs, NOW + 300, hashed, HistoryLimits()).ended == 100
        write_history(history, state.with_name("next"), hashed)

    benchmark.pedantic(work, rounds=3)
    if benchmark.enabled:
        record("Slurm's script", "an update of 2,000 users' history", benchmark.stats.stats.min, "CPU s")
