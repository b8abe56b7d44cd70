"""The Lua export for Slurm with predictions: the numbers of the engine, from the file of the users' jobs."""

from __future__ import annotations

import dataclasses
import importlib
import math
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from exports.test_slurm_lua import LUAS, NO_VAL, UNSET, Controller

import policyfactory as pf
from naive.site_history import described, foreseen
from policyfactory.core.errors import ExportError, UsageError
from policyfactory.engine.past import Forest
from policyfactory.exports.content import TARGETS, Export
from policyfactory.exports.export import export
from policyfactory.exports.foresight import SitePredictions
from policyfactory.exports.languages import lua_text
from policyfactory.exports.slurm.job_submit import renewal_commands
from policyfactory.policy.policy import Policy
from policyfactory.policy.scale import LARGEST
from policyfactory.policy.store import Model
from policyfactory.prediction.features import NAMES
from policyfactory.prediction.history_file import HEADER, LINE, hash_with, key_of, key_path, read_history
from policyfactory.prediction.training import Forests
from refusals import refused
from site_history import BEGIN, FIRST_GROUP, FIRST_USER, POLICY, QUEUES, make_site_past, name_of, small_forests
from sites import make_site
from support import cases

TARGET = TARGETS["slurm-site-factor-lua"]
# All five, and e90.
EVERY = Policy("EVERY", "-ln(s) + ln(e) + 0.1*ln(e90) + 0.4*ln(q) + 0.01*user_waiting + 0.02*user_running")
COUNTED = Policy("COUNTED", "ln(p) + 0.2*ln(q) + 0.3*ln(1 + user_running)")
PARTS = {
    "batch": {"default_time": NO_VAL, "max_time": NO_VAL, "flag_default": 1},
    "day": {"default_time": NO_VAL, "max_time": NO_VAL, "flag_default": 0},
}


@pytest.fixture(autouse=True)
def clock_in_utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Have Lua's clock of the day be that of the log."""
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def export_of(
    state: Path, policy: Policy = POLICY, forests: Forests | None = None, *, log_only: bool = False
) -> Export:
    foresight = SitePredictions(forests or make_site_past().forests, str(state), 3600.0, QUEUES)
    return TARGET.make(Model(policy), dataclasses.replace(make_site(), foresight=foresight, log_only=log_only))


class Predicting(Controller):
    """A controller that keeps the features of the last job."""

    def __init__(self, text: str, version: str = "lua51") -> None:
        mark = "  -- The request is that of the logarithm"
        assert text.count(mark) == 1
        super().__init__(text.replace(mark, f"  seen = f\n{mark}"), version)
        self.parts = self.table({name: self.table(part) for name, part in PARTS.items()})

    def submit_of(self, job: int, **more: Any) -> int:
        """Submit a job of the site's past at its time; return its number."""
        jobs = make_site_past().workload
        assert jobs.attributes is not None
        self.now = BEGIN + int(jobs.submit[job])
        fields = {
            "user_id": FIRST_USER + int(jobs.user[job]),
            "group_id": FIRST_GROUP + int(jobs.attributes.group[job]),
            "partition": list(QUEUES)[int(jobs.attributes.queue[job]) - 1],
            "time_limit": int(jobs.requested_time[job]) // 60,
            "min_cpus": int(jobs.processors[job]),
            "name": name_of(jobs, job),
        }
        return int(self.submit(**(fields | more)).site_factor)

    def features(self) -> list[float]:
        seen = self.lua.globals().seen
        return [seen[at] for at in range(57)]


def number_of(export: Export, policy: Policy, job: int) -> int:
    """The number that the engine's own predictions give."""
    site = make_site_past()
    jobs, predictions = site.workload, site.foreseen.predictions[:, job : job + 1]
    score = policy.scores(jobs.requested_time[[job]], jobs.processors[[job]], [1.0], predictions=predictions)
    assert export.scale is not None
    return int(export.scale.integers(score)[0])


def number_without(export: Export, policy: Policy, job: int) -> int:
    """The number of the formula without predictions."""
    jobs = make_site_past().workload
    p = float(jobs.requested_time[job])
    predictions = np.array([[p], [10.0 / max(p, 10.0)], [p], [0.0], [0.0]])
    score = policy.scores(jobs.requested_time[[job]], jobs.processors[[job]], [1.0], predictions=predictions)
    assert export.scale is not None
    return int(export.scale.integers(score)[0])


@pytest.mark.parametrize("policy", [POLICY, EVERY], ids=lambda policy: policy.name)
@pytest.mark.parametrize("version", LUAS)
def test_jobs_get_the_numbers_of_the_engine(tmp_path: Path, version: str, policy: Policy) -> None:
    site, state = make_site_past(), tmp_path / "history"
    export = export_of(state, policy)
    controller = Predicting(export.text, version)
    count = len(cases(30, 100)) if version == "lua51" else 10
    chosen = np.random.default_rng(1).permutation(site.comparable())[:count]
    assert len(chosen) == count
    numbers = []
    for job in sorted(chosen.tolist()):
        site.bring_up(state, int(site.workload.submit[job]) - 1)
        numbers.append(controller.submit_of(job))
        np.testing.assert_allclose(controller.features(), site.foreseen.features[job], rtol=1e-9, atol=1e-9)
        assert numbers[-1] == pytest.approx(number_of(export, policy, job), abs=1)
    assert not controller.errors
    assert not controller.logged
    assert len(set(numbers)) > 0.8 * len(numbers)
    assert controller.names - {"seen"} == {"policyfactory", "slurm_job_submit", "slurm_job_modify"}


@pytest.mark.parametrize("version", LUAS)
def test_what_counts_the_users_jobs_counts_them_in_slurmctld(version: str) -> None:
    """At each submission slurmctld knows the jobs of the simulation that wait, run, or have ended not long ago."""
    site = make_site_past()
    jobs, start = site.workload, site.foreseen.start
    policy = Policy("BOTH", "ln(p) + 0.2*ln(q) + 0.3*ln(1 + user_running) - 0.1*ln(1 + user_waiting)")
    export = TARGET.make(Model(policy), make_site())
    controller = Controller(export.text, version)
    chosen = [job for job in site.comparable() if site.foreseen.predictions[3:, job].all()][:20]
    assert len(chosen) > 5
    for job in chosen:
        now = int(jobs.submit[job])
        known = np.flatnonzero((jobs.submit < now) & (start + jobs.run_time > now - 300))
        states = np.where(start[known] > now, 0, np.where(start[known] + jobs.run_time[known] > now, 1, 3))
        records = [
            {"job_id": number, "user_id": FIRST_USER + int(jobs.user[number]), "job_state": int(state) + 0x4000}
            for number, state in zip(known.tolist(), states, strict=True)
        ]
        slurmctld(controller, *records)
        asked = {"time_limit": int(jobs.requested_time[job]) // 60, "min_cpus": int(jobs.processors[job])}
        found = controller.submit(user_id=FIRST_USER + int(jobs.user[job]), **asked).site_factor
        assert found == pytest.approx(number_of(export, policy, job), abs=1)
    assert not controller.errors
    assert not controller.logged


def slurmctld(controller: Controller, *records: dict[str, int]) -> None:
    """Let slurmctld know some jobs."""
    known = {str(record["job_id"]): controller.table(record) for record in records}
    controller.lua.globals().slurm.jobs = controller.table(known)


def test_tasks_of_an_array_count_each_and_a_job_that_is_changed_not_itself() -> None:
    site = dataclasses.replace(make_site(), log_only=True)
    controller = Controller(TARGET.make(Model(Policy("W", "user_waiting + 100*user_running")), site).text)
    one = {"user_id": 7, "job_state": 0}
    jobs = [one | {"job_id": 1}, one | {"job_id": 2, "array_task_cnt": 30}, one | {"job_id": 3, "job_state": 2}]
    slurmctld(controller, *jobs, {"job_id": 4, "user_id": 8, "job_state": 1})

    def score() -> float:
        return float(controller.logged[-1].partition(" score=")[2].split()[0])

    controller.submit(user_id=7)
    assert score() == 131
    # What is changed has the counts of its submission, or, where nobody knows these any more, those of now.
    slurmctld(controller, *jobs[:1])
    controller.modify({"job_id": 5, "user_id": 7}, nice=0, user_id=0)
    assert score() == 131
    controller.modify({"job_id": 5, "user_id": 7, "submit_time": controller.now + 1}, nice=0, user_id=0)
    assert score() == 131
    slurmctld(controller, *jobs)
    controller.modify({"job_id": 1, "user_id": 7, "submit_time": controller.now - 9}, nice=0, user_id=0)
    assert score() == 130
    # One that runs counts itself as that, an array that waits all of its tasks.
    for job, count in ((jobs[2], 31), (jobs[1], 101)):
        controller.modify({**job, "submit_time": controller.now - 9}, nice=0, user_id=0)
        assert score() == count
    controller.submit(user_id=9)
    assert score() == 0
    # A table is counted once, when it is new: records of jobs that have gone since are in it, and must not be read.
    table = controller.lua.globals().slurm.jobs
    for number in list(table):
        table[number] = None
    controller.submit(user_id=7)
    assert score() == 131
    # What cannot be counted is said, and the job has its number.
    controller.lua.globals().slurm.jobs = None
    controller.submit(user_id=7)
    assert score() == 0
    assert "not counted" in controller.logged[-2]
    assert not controller.errors


def test_a_renewal_keeps_the_counts_of_the_submission(tmp_path: Path) -> None:
    site, state = make_site_past(), tmp_path / "history"
    policy = Policy("W", "0*s + user_waiting + 100*user_running")
    foresight = SitePredictions(site.forests, str(state), 1e9, QUEUES)
    export = TARGET.make(Model(policy), dataclasses.replace(make_site(), foresight=foresight, log_only=True))
    controller, waits = Predicting(export.text), site.foreseen.predictions[3]
    job = next(one for one in site.comparable() if waits[one] > 1)
    site.bring_up(state, int(site.workload.submit[job]) - 1)
    controller.submit_of(job)
    first = controller.logged[-1].partition(" score=")[2].split()[0]
    assert float(first) == site.foreseen.predictions[3, job] + 100 * site.foreseen.predictions[4, job]
    site.bring_up(state, int(site.workload.submit[job]) + 3 * 3600)
    record = {"user_id": FIRST_USER + int(site.workload.user[job]), "time_limit": 60, "min_cpus": 1}
    for later, same in ((0, True), (3600, False)):
        controller.modify(record | {"submit_time": controller.now + later}, nice=0, user_id=0)
        assert (controller.logged[-1].partition(" score=")[2].split()[0] == first) == same
    # What could not be counted at the submission stays none.
    kept = state.read_bytes()
    state.unlink()
    controller.now += 7
    controller.submit_of(job)
    submitted = controller.now
    state.write_bytes(kept)
    controller.modify(record | {"submit_time": submitted}, nice=0, user_id=0)
    assert float(controller.logged[-1].partition(" score=")[2].split()[0]) == 0


def test_what_counts_needs_neither_model_nor_history(tmp_path: Path) -> None:
    state = tmp_path / "history"
    done = pf.export(Model(COUNTED), TARGET.name, state=str(state))
    assert str(state) not in done.files[0].text
    assert any("without effect" in note and "--state" in note for note in done.notes)


def test_the_engine_and_a_plain_reading_of_the_file_see_the_same(tmp_path: Path) -> None:
    site, state = make_site_past(), tmp_path / "history"
    jobs = site.workload
    assert jobs.attributes is not None
    for job in site.comparable()[::9]:
        submit = int(jobs.submit[job])
        site.bring_up(state, submit - 1)
        hashed = hash_with(key_of(state))
        user, group = FIRST_USER + int(jobs.user[job]), FIRST_GROUP + int(jobs.attributes.group[job])
        shape = int(jobs.requested_time[job]), int(jobs.processors[job]), int(jobs.attributes.queue[job])
        features = described(
            read_history(state, hashed), hashed, user, group, *shape, BEGIN + submit, name_of(jobs, job)
        )
        np.testing.assert_allclose(features, site.foreseen.features[job], rtol=1e-9, atol=1e-9)
        predictions = foreseen(site.forests, features, shape[0])
        np.testing.assert_allclose(predictions, site.foreseen.predictions[:, job], rtol=1e-9)


@pytest.fixture
def at_work(tmp_path: Path) -> tuple[Path, Export, Predicting, int]:
    """Give a history, an export that reads it, who runs it, and a job whose submission it is just before."""
    site, state = make_site_past(), tmp_path / "history"
    job = site.comparable()[-1]
    site.bring_up(state, int(site.workload.submit[job]) - 1)
    export = export_of(state)
    return state, export, Predicting(export.text), job


def test_an_update_between_two_submissions_changes_the_number(at_work: tuple[Path, Export, Predicting, int]) -> None:
    state, export, controller, job = at_work
    site = make_site_past()
    earlier = next(one for one in site.comparable() if site.workload.user[one] == site.workload.user[job])
    state.unlink()
    site.bring_up(state, int(site.workload.submit[earlier]) - 1)
    controller.lua.execute("local now = os.time; os.time = function() return now() end")
    first = Predicting(export.text.replace("local STALE = 3600.0", "local STALE = 1e9")).submit_of(job)
    site.bring_up(state, int(site.workload.submit[job]) - 1)
    assert controller.submit_of(job) == pytest.approx(number_of(export, POLICY, job), abs=1)
    assert controller.submit_of(job) != first


def damaged(data: bytes, how: str) -> bytes:
    match how:
        case "cut off":
            return data[:-7]
        case "empty":
            return b""
        case "garbage":
            return b"\xff" * len(data)
        case "a newer version":
            return data.replace(b"policyfactory-history 1", b"policyfactory-history 2")
        case "other features":
            return data.replace(b"features 1", b"features 2")
        case "a changed part":
            return b"".join(
                line.replace(b"1", b"2") if line.startswith((b"J ", b"U ")) else line
                for line in data.splitlines(keepends=True)
            )
        case "a changed index":
            end = HEADER + LINE * int(data.partition(b"entries ")[2][:9].split()[0])
            return data[:HEADER] + data[HEADER:end].replace(b" ", b"x") + data[end:]
    raise AssertionError(how)


WORDS = {
    "cut off": "is damaged",
    "empty": "is damaged",
    "garbage": "is damaged",
    "a newer version": "has version 2 of the format",
    "other features": "has set 2 of the features",
    "a changed part": "is damaged",
    "a changed index": "is damaged",
}


@pytest.mark.parametrize("how", WORDS)
def test_a_damaged_file_means_the_formula_without_predictions(
    at_work: tuple[Path, Export, Predicting, int], how: str
) -> None:
    state, export, controller, job = at_work
    state.write_bytes(damaged(state.read_bytes(), how))
    assert controller.submit_of(job) == pytest.approx(number_without(export, POLICY, job), abs=1)
    assert not controller.errors
    (line,) = controller.logged
    assert line.startswith("policyfactory: no prediction, the request is taken: ")
    assert WORDS[how] in line


def test_any_damage_leaves_a_number_and_no_error(at_work: tuple[Path, Export, Predicting, int]) -> None:
    state, _, controller, job = at_work
    whole, rng = state.read_bytes(), np.random.default_rng(1)
    for _ in range(150):
        data = bytearray(whole)
        for _ in range(int(rng.integers(1, 4))):
            begin = int(rng.integers(0, min(len(data), 4000)))
            data[begin : begin + int(rng.integers(0, 9))] = rng.bytes(int(rng.integers(0, 9)))
        state.write_bytes(data)
        assert 1 <= controller.submit_of(job) <= LARGEST
    assert not controller.errors
    assert len(controller.logged) > 100


def test_a_missing_or_stale_file_or_key_and_a_new_user_are_said(at_work: tuple[Path, Export, Predicting, int]) -> None:
    state, export, controller, job = at_work
    without = pytest.approx(number_without(export, POLICY, job), abs=1)

    def said() -> str:
        (line,) = controller.logged
        controller.logged.clear()
        return line

    assert controller.submit_of(job, user_id=77) == without
    assert "user 77 has no job that has ended" in said()
    assert controller.submit_of(job, user_id=NO_VAL) == without
    assert "its user is not known" in said()
    assert controller.submit_of(job, group_id=NO_VAL) != without
    assert not controller.logged

    stale = Predicting(export.text.replace("local STALE = 3600.0", "local STALE = 0.5"))
    assert stale.submit_of(job) == without
    assert "is stale, of 20" in stale.logged[0]
    key = key_path(state).read_text()
    for content, words in (("", "key is damaged"), ("0" * 64, "made with another key")):
        key_path(state).write_text(content)
        assert controller.submit_of(job) == without
        assert words in said()
    key_path(state).write_text(key)
    assert controller.submit_of(job) != without
    assert not controller.logged
    key_path(state).unlink()
    assert controller.submit_of(job) == without
    assert f"no file {key_path(state)}" in said()
    state.unlink()
    assert controller.submit_of(job) == without
    assert f"no file {state}" in said()
    assert not controller.errors


def test_root_is_a_user_and_a_change_scores_the_owners_job(at_work: tuple[Path, Export, Predicting, int]) -> None:
    _, export, controller, job = at_work
    number = controller.submit_of(job)
    jobs = make_site_past().workload
    assert jobs.attributes is not None
    record = {
        "user_id": FIRST_USER + int(jobs.user[job]),
        "group_id": FIRST_GROUP + int(jobs.attributes.group[job]),
        "partition": list(QUEUES)[int(jobs.attributes.queue[job]) - 1],
        "time_limit": int(jobs.requested_time[job]) // 60,
        "min_cpus": int(jobs.processors[job]),
        "name": name_of(jobs, job),
        "submit_time": BEGIN + int(jobs.submit[job]),
    }
    assert controller.modify(record, nice=0, user_id=0).site_factor == number
    assert controller.submit_of(job, user_id=0) == pytest.approx(number_without(export, POLICY, job), abs=1)
    assert "user 0 has no job" in controller.logged[0]


def test_log_only_predicts_and_sets_nothing(tmp_path: Path) -> None:
    site, state = make_site_past(), tmp_path / "history"
    job = site.comparable()[-1]
    site.bring_up(state, int(site.workload.submit[job]) - 1)
    export = export_of(state, log_only=True)
    controller = Predicting(export.text)
    assert controller.submit_of(job) == NO_VAL
    (line,) = controller.logged
    assert f" number={number_of(export_of(state), POLICY, job)} " in line


def test_what_is_needed_is_asked_for(tmp_path: Path) -> None:
    refused(ExportError, "--predictor model.json --state", TARGET.make, Model(POLICY), make_site())
    refused(ExportError, "trees PREDICTED", export_of, tmp_path, forests=Forests())
    only = dataclasses.replace(small_forests(), tail=Forests().tail)
    refused(ExportError, "e90 predictor EVERY", export_of, tmp_path, EVERY, only)
    one = small_forests()
    feature = one.share.feature.copy()
    feature[one.share.roots[0]] = NAMES.index("memory")
    remembers = dataclasses.replace(one, share=one.share._replace(feature=feature))
    refused(ExportError, "requested_memory --leave-out", export_of, tmp_path, forests=remembers)
    refused(UsageError, "absolute path history --state", SitePredictions, small_forests(), "history")
    refused(UsageError, "0 above --stale", SitePredictions, small_forests(), "/history", math.inf)
    refused(
        ExportError,
        "target slurm-site-factor-lua PREDICTED",
        TARGETS["slurm-priority-lua"].make,
        Model(POLICY),
        make_site(),
    )
    good = small_forests()
    endless = good.share._replace(threshold=np.where(good.share.feature < 0, math.inf, good.share.threshold))
    refused(ExportError, "finite number", export_of, tmp_path, forests=dataclasses.replace(good, share=endless))


HOSTILE = "\"]] os.exit(1) --\n\\'\0é\udcff%s@STATE@"


@pytest.mark.parametrize("version", LUAS)
def test_names_of_strangers_are_texts_and_nothing_else(version: str) -> None:
    lua = importlib.import_module(f"lupa.{version}").LuaRuntime(encoding=None)
    written = lua_text(HOSTILE)
    assert written.isascii()
    assert lua.execute(f"return {written}".encode()) == HOSTILE.encode("utf-8", "surrogateescape")
    state = f"/{HOSTILE.replace(chr(0), '').replace(chr(0xDCFF), '')}"
    foresight = SitePredictions(small_forests(), state, 1.0, {HOSTILE: 1}, HOSTILE)
    text = TARGET.make(Model(POLICY), dataclasses.replace(make_site(), foresight=foresight)).text
    controller = Controller(text, version)
    assert controller.submit(user_id=5, time_limit=60, min_cpus=2).site_factor >= 1
    assert "no file /" in controller.logged[0]
    assert all(line.startswith("--") for line in text.partition("\nlocal EPOCH")[0].splitlines() if line)


def test_a_large_forest_is_read(tmp_path: Path) -> None:
    # More numbers than a function of Lua may have constants.
    trees = 30_000
    one = Forest(
        np.tile([0, -1, -1], trees), np.arange(3.0 * trees) / 1e9, np.repeat(np.arange(trees) * 3 + 1, 3),
        np.repeat(np.arange(trees) * 3 + 2, 3), np.arange(trees) * 3, 0.5,
    )  # fmt: skip
    export = export_of(tmp_path / "history", forests=Forests(one, one, one, 1))
    assert Controller(export.text).submit(user_id=5).site_factor != UNSET["site_factor"]


def test_commands_that_renew_name_users_by_number_only() -> None:
    users = [*map(str, range(450)), "1; rm -rf x", "", "²"]
    commands = list(renewal_commands(users))
    assert [command.partition(" -o ")[0].count(",") for command in commands] == [199, 199, 49]
    assert not any("rm" in command.partition(" -o ")[0] or "\n" in command for command in commands)
    assert list(renewal_commands([])) == []


def test_the_verb_takes_the_model_and_says_what_must_be_done(tmp_path: Path) -> None:
    forests = small_forests()
    exported = export(POLICY, predictor=forests, state="/var/spool/it's here", stale="2h")
    assert "policyfactory history update - --state '/var/spool/it'\"'\"'s here'" in exported.text
    assert "local STALE = 7200.0" in exported.text
    assert "Gaming: what its user's jobs did before decides" in exported.text
    assert any("history update --renew prints" in text for text in exported.export.limits)
    idle = export("SAF", predictor=forests, state="/x")
    assert any("without effect" in text and "--state" in text for text in idle.notes)
    assert "foresee" not in idle.text
    assert not list(tmp_path.iterdir())
