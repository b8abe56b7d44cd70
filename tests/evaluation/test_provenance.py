"""The digest of an input is that of the bytes that were used: every input is read once, also from a pipe.

A pipe gives its bytes to the first who reads, and none to the second: who reads twice is found out.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hand_made import workload

import policyfactory
from accounting_logs import job, sacct_text
from commands import runner
from policyfactory.evaluation.logs import read_predictions
from policyfactory.evaluation.protocol import Places, read_protocol
from policyfactory.evaluation.study import evaluate
from policyfactory.exports.export import export
from policyfactory.policy.store import load_model
from policyfactory.review.shadow import read_shadow
from policyfactory.review.times import read_accounting
from policyfactory.trials.table import HEADER, read_score_table
from policyfactory.workload.clean import read

Pipe = Callable[[bytes], str]
MODEL = b'{"kind": "policyfactory-model", "schema_version": 1, "name": "MINE", "formula": "p*q"}\n'
LOG = b"; MaxProcs: 4\n" + b"".join(
    b"%d %d 0 60 1 -1 -1 1 90 -1 1 %d 1 -1 -1 -1 -1 -1\n" % (n, 10 * n, n % 3) for n in range(1, 40)
)
SHADOW = (
    b"[2026-01-01T00:00:00.000] policyfactory-shadow: policy=saf at=10 job=7 user=1000 submit=10 time=60 processors=2 "
    b"score=1 number=5 present=- us=3\n"
)


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    """Return the path of a pipe that holds some bytes; whoever reads them again finds it empty."""
    ends: list[int] = []

    def make(content: bytes) -> str:
        out, into = os.pipe()
        ends.append(out)
        os.write(into, content)
        os.close(into)
        return f"/dev/fd/{out}"

    yield make
    for end in ends:
        os.close(end)


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def protocol_text(folder: Path, policy: str) -> bytes:
    return (
        f'schema_version = 1\nname = "one"\n[logs.own]\nfile = "{folder / "own.swf"}"\nestimate_missing = "runtime"\n'
        f'[[experiments]]\nname = "a"\npolicies = ["FCFS", "{policy}"]\nanalyses = []\n'
        f'[[experiments]]\nname = "b"\npolicies = ["FCFS", "{policy}"]\nanalyses = []\n'
    ).encode()


def test_a_protocol_and_its_models_are_read_once(pipe: Pipe, tmp_path: Path) -> None:
    model = pipe(MODEL)
    text = protocol_text(tmp_path, model)
    protocol = read_protocol(place := pipe(text))
    assert protocol.hashes == {place: sha256(text), model: sha256(MODEL)}
    assert [plan.policies for plan in protocol.experiments] == [("FCFS", "MINE")] * 2


def test_a_model_is_read_once(pipe: Pipe) -> None:
    assert load_model(Path(pipe(MODEL))).sha256 == sha256(MODEL)
    places = Places(Path())
    assert places.policy(place := pipe(MODEL)).name == "MINE"
    assert places.hashes == {place: sha256(MODEL)}


@pytest.mark.parametrize("name", ["model.json", "model", "SAF", "model.txt"])
def test_a_model_is_never_called_one_of_the_catalogue(name: str, tmp_path: Path, pipe: Pipe) -> None:
    (tmp_path / name).write_bytes(MODEL)
    for path, called in ((str(tmp_path / name), name), (place := pipe(MODEL), Path(place).name)):
        (file,) = export(path, "python").export.files
        assert f"{called}, SHA-256 {sha256(MODEL)}" in file.text
        assert "catalogue" not in file.text
    (file,) = export("SAF", "python").export.files
    assert "catalogue of policyfactory" in file.text


def test_predictions_and_scores_are_read_once(pipe: Pipe) -> None:
    jobs = workload([(0, 5, 5, 1, 1), (1, 5, 5, 1, 1)])
    text = b"job_id,prediction\n1,3\n2,4\n"
    ticks, digest = read_predictions(Path(pipe(text)), jobs)
    assert (ticks.tolist(), digest) == ([3, 4], sha256(text))
    text = f"{HEADER}\n60,1,0,0.5,0.1,1\n70,2,5,0.5,0.1,1\n".encode()
    assert read_score_table(pipe(text)).sha256 == sha256(text)


@pytest.mark.parametrize("packed", [False, True])
def test_logs_are_read_once(pipe: Pipe, packed: bool) -> None:
    def content(text: bytes) -> bytes:
        return gzip.compress(text) if packed else text

    log, shadow, sacct = content(LOG), content(SHADOW), content(sacct_text(job(1), job(2, 5)).encode())
    assert read(pipe(log), estimate_missing="runtime").cleaning.sha256 == sha256(log)
    assert read_shadow(pipe(shadow)).sha256 == sha256(shadow)
    assert read_accounting([place := pipe(sacct)]).hashes == {place: sha256(sacct)}


@pytest.mark.usefixtures("blank_pictures")
def test_a_model_that_is_evaluated_from_python_is_named_with_its_digest(tmp_path: Path) -> None:
    (tmp_path / "mine.json").write_bytes(MODEL)
    (tmp_path / "own.swf").write_bytes(LOG)
    result = evaluate(tmp_path / "own.swf", ["FCFS", tmp_path / "mine.json"], metrics=["mean_wait"], analyses=[])
    result.report(tmp_path / "out")
    inputs = json.loads((tmp_path / "out" / "manifest.json").read_text())["inputs"]
    assert inputs == {str(tmp_path / "own.swf"): sha256(LOG), str(tmp_path / "mine.json"): sha256(MODEL)}


@pytest.mark.usefixtures("blank_pictures")
def test_the_command_takes_protocol_log_and_models_from_pipes(
    pipe: Pipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    run = runner(tmp_path, monkeypatch, capfd)
    (tmp_path / "own.swf").write_bytes(LOG)
    text = protocol_text(tmp_path, pipe(MODEL))
    (tmp_path / "p.toml").symlink_to(pipe(text))
    run("evaluate", "p.toml", "-o", "out")
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert manifest["inputs"]["p.toml"] == sha256(text)
    assert (tmp_path / "out" / "protocol.toml").read_bytes().endswith(text)
    other = MODEL.replace(b"MINE", b"OTHER")
    run("evaluate", log := pipe(LOG), "--policies", f"FCFS,{pipe(MODEL)},{(model := pipe(other))}", "-o", "two",
        "--estimate-missing", "runtime", "--analyses", "none")  # fmt: skip
    inputs = json.loads((tmp_path / "two" / "manifest.json").read_text())["inputs"]
    assert (inputs[log], inputs[model]) == (sha256(LOG), sha256(other))
    assert "catalogue" not in run("export", pipe(MODEL), "--to", "python").stdout
    assert "MINE" in run("policy", "show", pipe(MODEL)).stdout


def test_the_review_names_what_it_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    run = runner(tmp_path, monkeypatch, capfd)
    texts = [sacct_text(*(job(n, begin + 600 * n) for n in range(1, 30))).encode() for begin in (0, 10**6)]
    for name, text in zip(("before", "after"), texts, strict=True):
        (tmp_path / name).write_bytes(text)
    (tmp_path / "mine.json").write_bytes(MODEL)
    reader = policyfactory.workload.accounting.importing.Source.chunks

    def replaced(self: object) -> Iterator[str]:
        yield from reader(self)
        (tmp_path / "before").write_bytes(b"other")

    monkeypatch.setattr("policyfactory.workload.accounting.source.Source.chunks", replaced)
    run("review", "--before", "before", "--after", "after", "--policy", "mine.json", "-o", "out")
    inputs = json.loads((tmp_path / "out" / "manifest.json").read_text())["inputs"]
    assert inputs == {"before": sha256(texts[0]), "after": sha256(texts[1]), "mine.json": sha256(MODEL)}
