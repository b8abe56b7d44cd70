"""Evaluations that are interrupted anywhere go on, and end in the same bytes."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from policyfactory.core.errors import OutputError
from policyfactory.core.process import WorkCounter
from policyfactory.evaluation.experiment import Experiment, with_cases
from policyfactory.evaluation.precision import Precision
from policyfactory.evaluation.protocol import Protocol
from policyfactory.evaluation.run import SimulationJournal, SimulationResult, decode, encode, work_units
from policyfactory.evaluation.study import RunSettings, RunTally, read_logs, run_protocol
from policyfactory.parallel.workers import Workers
from policyfactory.policy.store import resolve
from refusals import refused
from small_protocol import SIMULATIONS, report_text, run, small_protocol
from support import run_of, some_by_day


class StoppedError(Exception):
    """StoppedError is what an interrupted run ends with here."""


class Watch:
    """Counts simulations, and stops the run after so many."""

    def __init__(self, most: int = 10**9) -> None:
        self.left = most
        self.expected = self.resumed_count = self.made = 0

    def __call__(self, experiment: Experiment) -> Watch:
        return self

    def expect(self, simulations: int) -> None:
        self.expected += simulations

    def resumed(self, simulations: int) -> None:
        self.resumed_count += simulations

    def done(self, jobs: int) -> None:
        self.made += 1
        if self.made >= self.left:
            raise StoppedError


@pytest.fixture(scope="module")
def protocol(tmp_path_factory: pytest.TempPathFactory) -> Protocol:
    return small_protocol(tmp_path_factory.mktemp("logs"))


@pytest.fixture(scope="module")
def expected(protocol: Protocol) -> str:
    """What a run tells that nobody interrupts and nobody keeps records of."""
    return report_text(run(protocol))


def interrupted(protocol: Protocol, partial: Path, most: int, **settings: Any) -> Watch:
    """Run until so many simulations are done."""
    watch = Watch(most)
    with pytest.raises(StoppedError):
        run(protocol, partial=partial, progress=watch, **settings)
    return watch


@pytest.fixture
def partial(tmp_path: Path) -> Path:
    return tmp_path / "evaluation.partial"


@pytest.mark.parametrize("seed", some_by_day([1, 2, 3], 1))
def test_a_run_that_is_stopped_again_and_again_ends_in_the_same_bytes(
    seed: int, protocol: Protocol, expected: str, partial: Path, tmp_path: Path
) -> None:
    chance = random.Random(seed)
    kept = 0
    for _ in range(100):
        watch = Watch(chance.randint(1, 8))
        try:
            study = run(protocol, partial=partial, progress=watch, workers=chance.randint(1, 3))
        except StoppedError:
            # Nothing that was done is done again; simulations that are done but were not taken yet may be.
            kept += watch.made
            assert sum(line[16:17] == b" " for line in partial.read_bytes().splitlines()[1:]) == kept
            continue
        break
    assert watch.expected == SIMULATIONS
    assert (watch.resumed_count, watch.made) == (kept, SIMULATIONS - kept)
    assert kept > SIMULATIONS / 3
    assert report_text(study) == expected


class Interrupted(WorkCounter):
    """Interrupts the run as soon as something is expected, or done."""

    def __init__(self, at: str) -> None:
        self.at = at

    def expect(self, count: int) -> None:
        if self.at == "expect":
            raise KeyboardInterrupt

    def done(self, amount: int) -> None:
        raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("at", "journal", "kept"), [("expect", True, False), ("done", False, False), ("done", True, True)]
)
def test_a_tally_knows_whether_something_of_an_interrupted_run_is_kept(
    at: str, journal: bool, kept: bool, protocol: Protocol, partial: Path
) -> None:
    said: list[tuple[str, Path]] = []
    tally = RunTally(Workers(1))
    settings = RunSettings(progress=lambda _: Interrupted(at), partial=partial if journal else None)
    with pytest.raises(KeyboardInterrupt):
        tally.run(protocol, read_logs(protocol), settings, lambda _, what, file: said.append((what, file)))
    assert tally.kept == kept
    assert said == ([("1 finished simulations", partial)] if kept else [])


def test_what_was_finished_is_said_and_a_whole_run_is_only_read(
    protocol: Protocol, expected: str, partial: Path, tmp_path: Path
) -> None:
    said: list[str] = []
    run(protocol, partial=partial, notify=said.append)
    assert not said
    watch = Watch()
    study = run(protocol, partial=partial, progress=watch, notify=said.append)
    assert said == [f"{SIMULATIONS} simulations were finished by an earlier run"]
    assert (watch.resumed_count, watch.made) == (SIMULATIONS, 0)
    assert report_text(study) == expected


def test_words_can_be_changed_on_the_way(protocol: Protocol, partial: Path, tmp_path: Path) -> None:
    """Titles, claims and what stands for a policy change no simulation."""
    interrupted(protocol, partial, 7)
    claims = [{"text": "?", "better": ["SPF"], "than": ["FCFS"], "metric": "mean_bsld", "experiments": ["windows"]}]
    watch = Watch()
    run(small_protocol(tmp_path, title="Other", claims=claims, logs=_logs(protocol)), partial=partial, progress=watch)
    assert watch.resumed_count == 7


def _logs(protocol: Protocol) -> dict[str, Any]:
    own = protocol.logs["own"]
    return {
        "own": {"file": own.file, "predictions": own.predictions},
        "model": {"lublin": {"processors": 32, "jobs": 1500, "seed": 1}},
    }


def test_a_torn_file_costs_the_simulation_that_was_torn(protocol: Protocol, expected: str, partial: Path) -> None:
    interrupted(protocol, partial, 7)
    partial.write_bytes(partial.read_bytes()[:-5])
    said: list[str] = []
    study = run(protocol, partial=partial, notify=said.append)
    assert said[0] == "6 of 23 simulations were finished by an earlier run"
    assert report_text(study) == expected


@pytest.mark.parametrize(
    "content", [b"nonsense", b'{"run":[null,null,null,null,null,null]}', b'{"tuple":[1]}', b"1"], ids=str
)
def test_a_record_with_a_checksum_and_without_sense_is_done_again(
    content: bytes, protocol: Protocol, expected: str, partial: Path, tmp_path: Path
) -> None:
    from policyfactory.core.journal import Journal

    interrupted(protocol, partial, 2)
    head = run_of(partial)
    with Journal(partial, head, 31) as journal:
        journal.append(0, content)
    said: list[str] = []
    study = run(protocol, partial=partial, notify=said.append)
    assert said[-1] == "windows: 1 records that could not be read were done again"
    assert report_text(study) == expected


def _with(value: Any, **changes: Any) -> Any:
    return dataclasses.replace(value, **changes)


# What is made of the record of FCFS on the first window; `seen` begins with the replay, and the groups.
WRONG: dict[str, Callable[[SimulationResult], Any]] = {
    "seen of nothing": lambda run: _with(run, seen=[None] * len(run.seen)),
    "seen in another order": lambda run: _with(run, seen=run.seen[::-1]),
    "seen too little": lambda run: _with(run, seen=run.seen[:-1]),
    "text in what was seen": lambda run: _with(run, seen=[_with(run.seen[0], distance="0"), *run.seen[1:]]),
    "whole numbers for floats": lambda run: _with(
        run, seen=[run.seen[0], tuple(_with(one, wait=one.jobs) for one in run.seen[1]), *run.seen[2:]]
    ),
    "no record": lambda run: _with(run, recorded=None),
    "text in the record": lambda run: _with(run, recorded=["1", "2"]),
    "too long a record": lambda run: _with(run, recorded=[*run.recorded, 1.0]),
    "truth for a metric": lambda run: _with(run, values=[True, 1.0]),
    "a number that goes into no array": lambda run: _with(run, longest_wait_job=10**30),
    "a span of none": lambda run: _with(run, facts=_with(run.facts, span_s=None)),
    "a digest of none": lambda run: _with(run, facts=_with(run.facts, sha256=None)),
    "truth for a machine": lambda run: _with(run, facts=_with(run.facts, machine=True)),
    "text for a time": lambda run: _with(run, facts=_with(run.facts, unix_start="yesterday")),
}


@pytest.fixture(scope="module")
def one_record(protocol: Protocol, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """Make a file with one record."""
    path = tmp_path_factory.mktemp("one") / "evaluation.partial"
    interrupted(protocol, path, 1)
    return path.read_bytes()


@pytest.mark.parametrize("name", WRONG)
def test_a_record_that_no_analysis_could_use_is_damaged(
    name: str, one_record: bytes, protocol: Protocol, partial: Path
) -> None:
    from policyfactory.core.journal import Journal

    partial.write_bytes(one_record)
    head = run_of(partial)
    own = next(plan for plan in protocol.experiments if plan.name == "windows")
    experiment = with_cases(own, read_logs(protocol))
    case = experiment.cases[0]
    with Journal(partial, head, 31) as journal:
        ((number, text),) = journal.records()
        good = decode(text, experiment.observers, case.make)
        journal.append(number, encode(WRONG[name](good)))
    with SimulationJournal(partial, head, [experiment]) as kept:
        finished = kept.of("windows")
        assert finished.result_of(case, 0, experiment, case.make) is None
        assert finished.damaged == 1
        kept.journal.append(number, text)
        result = finished.result_of(case, 0, experiment, case.make)
        assert result is not None
        assert encode(result) == text


def test_a_record_of_another_case_is_done_again(
    protocol: Protocol, expected: str, partial: Path, tmp_path: Path
) -> None:
    from policyfactory.core.journal import Journal

    interrupted(protocol, partial, 1)
    head = run_of(partial)
    with Journal(partial, head, 31) as journal:
        ((_, text),) = journal.records()
        journal.append(8, text)
    said: list[str] = []
    study = run(protocol, partial=partial, notify=said.append)
    assert "1 records that could not be read" in said[-1]
    assert report_text(study) == expected


OTHERS: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    ({"seed": 6}, {}, "experiments drawn predicted windows evaluation.partial"),
    ({}, {"beside": {"starts": "csv"}}, "--starts none csv"),
    ({}, {"precision": Precision(1e-6, most=9)}, "--max-resamples 5 9"),
]


@pytest.mark.parametrize(("changes", "settings", "words"), OTHERS, ids=["seed", "starts", "precision"])
def test_the_records_of_another_run_are_left_alone_unless_they_are_dropped(
    changes: dict[str, Any], settings: dict[str, Any], words: str, protocol: Protocol, partial: Path, tmp_path: Path
) -> None:
    settings = {"beside": {"starts": "none"}, **settings}
    interrupted(protocol, partial, 3, beside={"starts": "none"})
    before = partial.read_bytes()
    other = small_protocol(tmp_path, logs=_logs(protocol), **changes)
    how = {"precision": Precision(1e-6, most=5), "partial": partial, **settings}
    refused(OutputError, words, run_protocol, other, settings=RunSettings(**how))
    assert partial.read_bytes() == before
    watch = Watch(2)
    with pytest.raises(StoppedError):
        run_protocol(other, settings=RunSettings(**how, overwrite=True, progress=watch))
    assert watch.resumed_count == 0
    assert partial.read_bytes() != before


def test_a_run_under_other_versions_of_the_libraries_is_another(
    protocol: Protocol, partial: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from policyfactory.evaluation import run as finished

    monkeypatch.setattr(
        finished, "library_versions", lambda: {"numpy": "1.0", "numba": "0.1", "scikit-learn": "1.2", "scipy": "1.1"}
    )
    interrupted(protocol, partial, 1)
    monkeypatch.undo()
    refused(OutputError, "evaluation.partial numba 0.1 1.0 1.2", run, protocol, partial=partial)


def test_records_are_read_when_they_are_taken(protocol: Protocol, partial: Path, monkeypatch) -> None:
    from policyfactory.core.journal import Journal

    run(protocol, partial=partial)
    read = []
    whole = Journal.read
    monkeypatch.setattr(Journal, "read", lambda self, number: read.append(number) or whole(self, number))
    monkeypatch.setattr(Journal, "records", lambda self: pytest.fail("all records at once"))
    run(protocol, partial=partial)
    assert sorted(read) == sorted(set(read))
    assert len(read) == SIMULATIONS


def test_another_log_is_another_run(protocol: Protocol, partial: Path, tmp_path: Path) -> None:
    interrupted(protocol, partial, 3)
    logs = _logs(protocol)
    logs["model"]["lublin"]["seed"] = 2
    refused(OutputError, "evaluation.partial logs model", run, small_protocol(tmp_path, logs=logs), partial=partial)


def test_a_run_that_finishes_nothing_leaves_no_file(protocol: Protocol, partial: Path, tmp_path: Path) -> None:
    class Refuse(Watch):
        def expect(self, simulations: int) -> None:
            raise StoppedError

    with pytest.raises(StoppedError):
        run(protocol, partial=partial, progress=Refuse())
    assert not partial.exists()


def test_what_is_left_of_a_case_is_shared_out_among_the_workers() -> None:
    contenders = [resolve("FCFS"), resolve("SPF"), resolve("SAF")]
    assert work_units({}, contenders, 4) == []
    assert work_units({2: [0, 2]}, contenders, 1) == [(2, (0, 2))]
    assert work_units({2: [0, 2]}, contenders, 4) == [(2, (0,)), (2, (2,))]
