"""Runs: the same bytes for any number of workers and after any interruption."""

from __future__ import annotations

import contextlib
import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from naive.trials import workload_of
from policyfactory.core.errors import OutputError, UsageError, WorkloadError
from policyfactory.core.files import exclusive
from policyfactory.core.journal import Journal, partial_path
from policyfactory.core.process import Follower, WorkCounter
from policyfactory.parallel.workers import Workers
from policyfactory.trials import files
from policyfactory.trials.files import followed, generate, write_scores
from policyfactory.trials.run import describe, finished_tuples, tuples_a_unit
from policyfactory.trials.table import GenerateOptions, read_score_table
from refusals import refusal, refused

WORKLOAD = workload_of(300)
OPTIONS = GenerateOptions(tuples=9, trials=500, state_size=4, queue_size=8, seed=5)


@pytest.fixture(scope="module")
def expected(tmp_path_factory) -> bytes:
    path = tmp_path_factory.mktemp("expected") / "t.csv"
    write_scores(WORKLOAD, OPTIONS, path)
    return path.read_bytes()


@pytest.mark.parametrize(
    "workers",
    [1, 4, Workers(2, "loky"), *(pytest.param(Workers(count, "loky"), marks=pytest.mark.slow) for count in (1, 3))],
    ids=str,
)
def test_the_table_does_not_depend_on_the_workers(tmp_path, workers, expected):
    output = tmp_path / "t.csv"
    reported: list[int] = []
    table = generate(WORKLOAD, OPTIONS, output=output, workers=workers, report=reported.append)
    assert output.read_bytes() == expected
    assert reported == list(range(10))
    assert (len(table), table.tuples) == (72, 9)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["t.csv", "t.manifest.json"]
    manifest = json.loads((tmp_path / "t.manifest.json").read_text())
    assert manifest["kind"] == "score-table"
    assert manifest["seed"] == 5
    assert manifest["inputs"] == {"random": WORKLOAD.sha256()}
    assert manifest["outputs"] == {"t.csv": table.sha256}
    assert manifest["parameters"]["trials_run"] == 512
    assert manifest["measured"]["workers"] == Workers.of(workers).count
    assert manifest["measured"]["backend"] == Workers.of(workers).backend
    assert manifest["measured"]["trials_per_second"] > 0


def test_a_table_in_memory_is_the_one_on_disk(tmp_path, expected):
    (tmp_path / "t.csv").write_bytes(expected)
    on_disk = read_score_table(tmp_path / "t.csv")
    reported: list[int] = []
    in_memory = generate(WORKLOAD, OPTIONS, workers=2, report=reported.append)
    assert reported == list(range(10))
    for column in ("p", "q", "r", "score", "stderr", "tuple_id"):
        assert_array_equal(getattr(in_memory, column), getattr(on_disk, column))


def test_the_scores_of_a_tuple_sum_to_one_and_more_tuples_keep_the_first(expected):
    table = generate(WORKLOAD, GenerateOptions(tuples=12, trials=500, state_size=4, queue_size=8, seed=5))
    assert_array_equal(np.bincount(table.tuple_id), np.full(12, 8))
    np.testing.assert_allclose(np.bincount(table.tuple_id, weights=table.score), 1.0, rtol=1e-12)
    first = "".join(line + "\n" for line in expected.decode().splitlines()[1:])
    again = dict(finished_tuples(WORKLOAD, OPTIONS, list(range(9))))
    assert "".join(again[number] for number in range(9)) == first
    assert_array_equal(table.score[:72], [float(line.split(",")[3]) for line in first.splitlines()])


def test_seed_and_estimator_change_the_table():
    scores = [
        generate(WORKLOAD, GenerateOptions(2, 500, 4, 8, estimator, seed)).score
        for estimator, seed in (("stratified", 1), ("stratified", 2), ("paper", 1))
    ]
    assert not any(np.array_equal(a, b) for a, b in zip(scores, scores[1:] + scores[:1], strict=True))


class Killed(BaseException):
    """Killed ends a run as a signal would: nothing catches it."""


def interrupt(output, after: int, options=OPTIONS) -> None:
    def report(done: int) -> None:
        if done == after:
            raise Killed

    with pytest.raises(Killed):
        write_scores(WORKLOAD, options, output, report=report)


@pytest.mark.parametrize("jobs", [1, 2, 4])
@pytest.mark.parametrize("after", [0, 1, 8, 9])
def test_an_interrupted_run_goes_on_and_ends_with_the_same_bytes(tmp_path, after, jobs, expected):
    output = tmp_path / "t.csv"
    interrupt(output, after)
    assert partial_path(output).exists()
    assert not output.exists()
    written = write_scores(WORKLOAD, OPTIONS, output, workers=jobs)
    assert (written.resumed, written.done) == (after, 9 - after)
    assert output.read_bytes() == expected
    assert not partial_path(output).exists()


def test_the_manifest_differs_in_what_was_measured_only(tmp_path):
    write_scores(WORKLOAD, OPTIONS, tmp_path / "t.csv")
    whole = json.loads((tmp_path / "t.manifest.json").read_text())
    write_scores(WORKLOAD, OPTIONS, tmp_path / "t.csv", overwrite=True)
    interrupt_free = json.loads((tmp_path / "t.manifest.json").read_text())
    (tmp_path / "t.csv").unlink()
    interrupt(tmp_path / "t.csv", 4)
    write_scores(WORKLOAD, OPTIONS, tmp_path / "t.csv", workers=2)
    resumed = json.loads((tmp_path / "t.manifest.json").read_text())
    assert resumed.pop("measured") != whole.pop("measured")
    interrupt_free.pop("measured")
    assert resumed == whole == interrupt_free


@pytest.mark.parametrize("cut", [1, 20, 300])
def test_a_torn_last_record_is_dropped_and_done_again(tmp_path, cut, expected):
    output = tmp_path / "t.csv"
    interrupt(output, 5)
    partial = partial_path(output)
    partial.write_bytes(partial.read_bytes()[:-cut])
    written = write_scores(WORKLOAD, OPTIONS, output)
    assert (written.resumed, written.done) == (4, 5)
    assert output.read_bytes() == expected


def test_a_partial_table_of_other_versions_is_another_run_and_a_whole_table_is_not(tmp_path, monkeypatch, expected):
    output = tmp_path / "t.csv"
    monkeypatch.setattr(
        files, "library_versions", lambda: {"numpy": "1.0", "numba": "0.1", "scikit-learn": "1.2", "scipy": "1.1"}
    )
    interrupt(output, 5)
    monkeypatch.undo()
    refused(OutputError, "t.csv.partial numba 0.1 1.0 1.2", write_scores, WORKLOAD, OPTIONS, output)
    monkeypatch.setattr(
        files, "library_versions", lambda: {"numpy": "1.0", "numba": "0.1", "scikit-learn": "1.2", "scipy": "1.1"}
    )
    write_scores(WORKLOAD, OPTIONS, output)
    monkeypatch.undo()
    assert write_scores(WORKLOAD, OPTIONS, output).done == 0
    assert output.read_bytes() == expected


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"seed": 6}, "t.csv.partial --seed 5 6"),
        ({"trials": 600}, "t.csv.partial --trials 500 600"),
        ({"estimator": "paper"}, "t.csv.partial --estimator stratified"),
        ({"tuples": 10, "queue_size": 7}, "t.csv.partial --queue-size 8 7 --tuples"),
    ],
)
def test_a_partial_table_of_another_run_is_not_touched(tmp_path, change, message):
    output = tmp_path / "t.csv"
    interrupt(output, 3)
    before = partial_path(output).read_bytes()
    other = GenerateOptions(**{**{name: getattr(OPTIONS, name) for name in OPTIONS.__slots__}, **change})
    refused(OutputError, f"--overwrite {message}", write_scores, WORKLOAD, other, output)
    assert partial_path(output).read_bytes() == before
    assert write_scores(WORKLOAD, other, output, overwrite=True).resumed == 0


def test_another_workload_is_another_run(tmp_path):
    interrupt(tmp_path / "t.csv", 3)
    with refusal(OutputError, "t.csv.partial workload"):
        write_scores(WORKLOAD.select(slice(0, 200)), OPTIONS, tmp_path / "t.csv")


def test_overwrite_can_be_interrupted_and_resumed_too(tmp_path, expected):
    output = tmp_path / "t.csv"
    output.write_text("an old table\n")

    def report(done: int) -> None:
        if done == 4:
            raise Killed

    with pytest.raises(Killed):
        write_scores(WORKLOAD, OPTIONS, output, overwrite=True, report=report)
    assert output.read_text() == "an old table\n"
    assert write_scores(WORKLOAD, OPTIONS, output, overwrite=True).resumed == 4
    assert output.read_bytes() == expected


class Counted(Follower, WorkCounter):
    """Notes what it is told."""

    def __init__(self) -> None:
        self.told: list[object] = []

    def counter(self, title: str, unit: str = "") -> WorkCounter:
        return self

    def expect(self, count: int) -> None:
        self.told.append(count)

    def resumed(self, count: int) -> None:
        self.told.append(f"{count} before")

    def done(self, amount: int) -> None:
        self.told.append(f"trials {amount}")

    def kept(self, stop: BaseException, what: str, partial: Path) -> None:
        self.told += [type(stop), what, partial.name]


def test_who_follows_is_told_of_each_tuple_and_of_what_is_kept(tmp_path):
    output = tmp_path / "t.csv"

    def told(until: int = 10) -> list[object]:
        counted = Counted()
        with contextlib.suppress(KeyboardInterrupt), followed(counted, WORKLOAD, OPTIONS, output) as report:
            if until < 0:
                raise KeyboardInterrupt

            def count(done: int) -> None:
                report(done)
                if done == until:
                    raise KeyboardInterrupt

            write_scores(WORKLOAD, OPTIONS, output, report=count)
        return counted.told

    one = "trials 512"  # whole blocks
    assert told(until=2) == [9, "0 before", one, one, KeyboardInterrupt, "2 of 9 tuples", "t.csv.partial"]
    assert told() == [9, "2 before", *[one] * 7]
    assert told() == [9, "9 before"]
    assert told(until=-1) == [9]  # nothing is there that could be kept


def test_a_finished_table_is_left_alone(tmp_path, expected):
    output = tmp_path / "t.csv"
    write_scores(WORKLOAD, OPTIONS, output)
    before = output.stat().st_mtime_ns
    written = write_scores(WORKLOAD, OPTIONS, output)
    assert (written.done, written.resumed) == (0, 9)
    assert np.isfinite(written.precision).all()
    assert output.stat().st_mtime_ns == before
    with refusal(OutputError, "t.csv --seed 5 6 --overwrite"):
        write_scores(WORKLOAD, GenerateOptions(9, 500, 4, 8, "stratified", 6), output)
    output.write_text("changed\n")
    refused(OutputError, "t.csv changed since", write_scores, WORKLOAD, OPTIONS, output)
    (tmp_path / "t.manifest.json").unlink()
    refused(OutputError, "t.csv manifest says", write_scores, WORKLOAD, OPTIONS, output)


def test_a_run_killed_between_table_and_manifest_is_completed(tmp_path, expected):
    output = tmp_path / "t.csv"
    interrupt(output, 9)
    output.write_bytes(expected)
    write_scores(WORKLOAD, OPTIONS, output)
    assert read_score_table(output).tuples == 9


def test_what_is_no_partial_table_is_not_overwritten(tmp_path):
    (tmp_path / "t.csv.partial").write_text("my notes\n")
    refused(OutputError, "t.csv.partial journal finished", write_scores, WORKLOAD, OPTIONS, tmp_path / "t.csv")
    assert (tmp_path / "t.csv.partial").read_text() == "my notes\n"


def test_a_changed_record_is_named_with_its_line(tmp_path, expected):
    output = tmp_path / "t.csv"
    interrupt(output, 5)
    partial = partial_path(output)
    lines = partial.read_bytes().split(b"\n")
    lines[2] = lines[2].replace(b"1", b"2", 1)
    partial.write_bytes(b"\n".join(lines))
    refused(OutputError, "t.csv.partial:3 damaged remove", write_scores, WORKLOAD, OPTIONS, output)
    partial.write_bytes(b"\n".join(lines[:2]) + b"\n")  # head -n 2
    assert write_scores(WORKLOAD, OPTIONS, output).resumed == 1
    assert output.read_bytes() == expected


def test_two_runs_on_one_output(tmp_path):
    with exclusive(tmp_path / "t.csv"), refusal(OutputError, "t.csv another run"):
        write_scores(WORKLOAD, OPTIONS, tmp_path / "t.csv")


@pytest.mark.parametrize("jobs", [1, 3])
def test_a_full_disk_keeps_what_is_there(tmp_path, monkeypatch, expected, jobs):
    output = tmp_path / "t.csv"
    append = Journal.append
    calls = []

    def fail(self, number, rows):
        calls.append(number)
        if len(calls) == 4:
            # What the system does: a part is written, the rest is not.
            self._file.seek(self._end)
            self._file.write(b"0123")
            raise OutputError("full")
        append(self, number, rows)

    monkeypatch.setattr(Journal, "append", fail)
    with pytest.raises(OutputError, match="full"):
        write_scores(WORKLOAD, OPTIONS, output, workers=jobs)
    monkeypatch.setattr(Journal, "append", append)
    written = write_scores(WORKLOAD, OPTIONS, output, workers=jobs)
    assert written.resumed == 3
    assert output.read_bytes() == expected


def test_tuples_in_which_nobody_waits_are_counted(tmp_path):
    # All jobs arrive at once and fit side by side.
    roomy = dataclasses.replace(WORKLOAD, machine=10_000, submit=np.zeros(300, dtype=np.int64))
    assert write_scores(WORKLOAD, OPTIONS, tmp_path / "busy.csv").idle == 0
    assert write_scores(roomy, OPTIONS, tmp_path / "idle.csv").idle == 9
    assert write_scores(roomy, OPTIONS, tmp_path / "idle.csv").idle == 9


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"tuples": 0}, UsageError, "--tuples 0 1"),
        ({"trials": 10}, UsageError, "64 needs"),
        ({"estimator": "exact"}, UsageError, "--estimator exact"),
        ({"seed": -1}, UsageError, "seed -1"),
        ({"state_size": 300}, WorkloadError, "needs 300 8 308"),
    ],
)
def test_options_that_are_out_of_range(tmp_path, change, error, message):
    options = GenerateOptions(**{**{name: getattr(OPTIONS, name) for name in OPTIONS.__slots__}, **change})
    refused(error, message, write_scores, WORKLOAD, options, tmp_path / "t.csv")
    assert not list(tmp_path.iterdir())


def test_the_description_of_a_run_is_plain_json():
    run = describe(WORKLOAD, OPTIONS)
    assert json.loads(json.dumps(run)) == run
    assert run["workload_sha256"] == WORKLOAD.sha256()


@pytest.mark.parametrize(
    ("backend", "trials", "tuples", "size"),
    [
        ("threading", 256, 10**6, 1),
        ("loky", 256, 10**6, 1),
        ("dask", 256_000, 441, 6),
        ("dask", 256_000, 100_000, 50),
        ("dask", 256, 100_000, 64),
        ("dask", 10**9, 100_000, 1),
        ("dask", 256, 63, 1),
    ],
)
def test_pieces_are_about_a_second_of_work_where_a_piece_costs(backend, trials, tuples, size):
    assert tuples_a_unit(backend, trials, tuples) == size


@pytest.mark.parametrize("size", [1, 3, 8, 100])
def test_the_table_does_not_depend_on_how_many_tuples_are_sent_at_once(tmp_path, monkeypatch, size, expected):
    monkeypatch.setattr("policyfactory.trials.run.tuples_a_unit", lambda *_: size)
    output = tmp_path / "t.csv"
    write_scores(WORKLOAD, OPTIONS, output, workers=2)
    assert output.read_bytes() == expected
