"""The command ``policyfactory export``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from policyfactory.export import TARGETS
from policyfactory.policy.catalogue import CATALOGUE
from policyfactory.policy.policy import Epoch
from policyfactory.policy.store import load_model


@pytest.mark.parametrize("target", TARGETS)
def test_every_target_to_stdout_and_to_a_file(run, tmp_path: Path, target: str) -> None:
    shown = run("export", "F1", "--to", target, "--epoch", "2026-01-01")
    assert shown.stderr == ""
    assert "log10" in shown.stdout
    file = f"f1{TARGETS[target].suffix}"
    done = run("export", "f1", "--to", target.upper(), "-o", file, "--epoch", "1767225600")
    assert (tmp_path / file).read_text() == shown.stdout
    assert done.stdout == ""
    assert f"wrote {file}: F1 as" in done.stderr


def test_an_exported_model_is_read_again(run, tmp_path: Path) -> None:
    run("export", "WFP3", "--to", "json", "--output", "wfp3.json")
    assert load_model(tmp_path / "wfp3.json").policy == CATALOGUE["WFP3"]
    out = run("export", "wfp3.json", "--to", "lua").stdout
    assert "local value = -pf_powi(w / p, 3) * q" in out


def test_an_open_epoch_is_said(run) -> None:
    assert "fix it with --epoch" in run("export", "F1", "--to", "c").stderr
    assert run("export", "SAF", "--to", "c").stderr == ""
    assert run("export", "F1", "--to", "latex").stderr == ""


def test_epoch_and_processors(run, tmp_path: Path) -> None:
    for text, seconds in [
        ("2026-01-01", 1_767_225_600),
        ("2026-01-01T08:00+02:00", 1_767_247_200),
        ("1700000000", 1_700_000_000),
    ]:
        value = json.loads(run("export", "F1", "--to", "json", "--epoch", text).stdout)
        assert value["epoch"] == {"rule": "fixed", "unix_time": seconds}
    value["formula"], value["name"] = "q/m + p", "share"
    (tmp_path / "share.json").write_text(json.dumps(value))
    out = run("export", "share.json", "--to", "pbs", "--processors", "1024").stdout
    assert 'job_sort_formula = "-(ncpus/1024 + walltime)"' in out
    assert Epoch("fixed", 5).describe() in run("export", "F1", "--to", "python", "--epoch", "5").stdout


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["F1", "--to", "perl"], 2, "unknown target 'perl'; choose one of python:"),
        (["F9", "--to", "c"], 2, "unknown policy 'F9'; did you mean F"),
        (["F1", "--to", "pbs"], 1, "give the date from which it counts: --epoch 2026-01-01"),
        (["F1", "--to", "pbs", "--epoch", "soon"], 2, "epoch 'soon' is no date; write 2026-01-01"),
        (["F1", "--to", "c", "--processors", "0"], 2, "0 processors can not be meant"),
        (["F1", "--to", "c", "-o", "."], 1, "is a directory; name the file to write"),
        (["F1", "--to", "c", "-o", "none/f1.c"], 1, "the folder none does not exist; create it first"),
        (["F1"], 2, "--to"),
        (["none.json", "--to", "c"], 1, "no such file"),
    ],
)
def test_wrong_use(run, tmp_path: Path, arguments: list[str], code: int, says: str) -> None:
    done = run("export", *arguments, code=code)
    assert says in " ".join(done.stderr.split())
    assert done.stdout == ""
    assert list(tmp_path.iterdir()) == []
