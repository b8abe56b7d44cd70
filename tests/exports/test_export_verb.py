"""`policyfactory.export` from Python: what the command gives, of policies that are in memory."""

from __future__ import annotations

import functools
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import policyfactory as pf
from policyfactory.core.errors import ExportError, OutputError, UsageError
from policyfactory.exports.options import ExportOptions
from refusals import refused
from sites import make_queue


@functools.cache
def requests_of_a_model() -> pf.Workload:
    return pf.tsafrir_estimates(pf.generate_lublin(64, 500, seed=2), max_estimate=64_800, seed=2)


def test_the_text_is_that_of_the_command(tmp_path: Path) -> None:
    exported = pf.export("F1", "python", epoch="2026-01-01")
    words = ["-m", "policyfactory", "export", "F1", "--to", "python", "--epoch", "2026-01-01"]
    assert subprocess.run([sys.executable, *words], capture_output=True, text=True, check=True).stdout == exported.text
    # A date is also a number of seconds.
    assert pf.export("F1", "python", epoch=1_767_225_600).export.limits == exported.export.limits
    assert (exported.paths, exported.ties, exported.scale) == ((), None, None)
    assert "f1.py" in repr(exported)
    assert "f1.py" in exported._repr_html_()


def test_the_path_of_a_model_file_is_one_however_it_is_given(tmp_path: Path) -> None:
    path = tmp_path / "own.json"
    path.write_text(pf.export("SAF", "json").text, encoding="utf-8")
    exported = pf.export(path, "python")
    assert "own.json, SHA-256 " in exported.text
    assert exported.text == pf.export(str(path), "python").text


def test_a_policy_in_memory_is_exported_with_what_is_known_of_it(tmp_path: Path) -> None:
    model = pf.Model(pf.Policy("own", "p*q"), diagnostics={"warnings": ["too good"]})
    exported = pf.export(model, output=tmp_path / "job_submit.lua", weight=50_000)
    assert (tmp_path / "job_submit.lua").read_text() == exported.text
    assert "Command:" not in exported.text
    assert exported.warnings == ("of the fit: too good",)
    assert exported.scale is not None
    assert exported.scale.largest == 50_000
    assert exported.ties is not None
    assert f"ties: {100 * exported.ties:.3g} % of neighbouring" in exported.summary()
    assert pf.export(model.policy, "c").text.count("own") > 1
    refused(OutputError, "job_submit.lua --overwrite add", exported.save, tmp_path / "job_submit.lua")
    assert exported.save(tmp_path / "job_submit.lua", overwrite=True) == [
        tmp_path / "job_submit.lua",
        tmp_path / "job_submit.uninstall.sh",
    ]


def test_the_jobs_of_a_workload_in_memory_make_the_range() -> None:
    log = requests_of_a_model()
    assert f"Range learnt from: {log.name}, 500 jobs" in pf.export("SAF", workload=log).text


def test_the_preview_is_that_of_the_scheduler() -> None:
    queue = make_queue(30)
    preview = pf.export("SAF", weight=1000).preview(queue)
    assert sorted(preview.new.tolist()) == list(range(1, 31))
    assert np.all(np.diff(preview.priorities[preview.order]) <= 0)


def test_what_cannot_be_exported_is_refused() -> None:
    refused(UsageError, "mean python pyhton", pf.export, "F1", "pyhton")
    refused(ExportError, "date --epoch", pf.export, "F1")
    for to in ("c", "slurm-site-factor-lua", "pbs"):
        refused(UsageError, "function without FUNCTION", pf.export, pf.Policy.from_function(lambda job: job.p), to)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"weight": "zz"}, "weight zz"),
        ({"weight": 2.5}, "weight 2.5"),
        ({"weight": True}, "weight True"),
        ({"processors": "8"}, "processors 8"),
        ({"nodes": 1.0}, "nodes 1.0"),
        ({"threshold": [20]}, "threshold 20"),
        ({"life": None}, "life None 20h"),
        ({"workload": 5}, "workload 5"),
        ({"estimate_missing": "guess"}, "estimate-missing guess"),
        ({"to": None}, "to None slurm-site-factor-lua"),
    ],
)
def test_an_option_of_another_type_is_named_with_what_is_expected(options: dict[str, Any], says: str) -> None:
    refused(UsageError, says, pf.export, "SAF", **{"to": "python"} | options)


def test_whole_numbers_of_numpy_are_whole_numbers() -> None:
    assert pf.export("SAF", "python", processors=np.int64(8)).text == pf.export("SAF", "python", processors=8).text


def test_ties_of_a_small_weight_are_a_note_and_those_of_a_formula_a_warning() -> None:
    log = requests_of_a_model()
    chosen = pf.export("SAF", workload=log, weight=2)
    assert "ties: 100 % of" in chosen.notes[1]
    assert chosen.notes[2].startswith("these ties are made by --weight 2: of jobs with one number the earlier")
    assert chosen.warnings == ()
    # Jobs of one size differ by less than a number, however many there are: no weight would help.
    close = pf.export(pf.Policy("close", "p*1e-6 + 1e6*q**9"), workload=log, weight=100_000)
    assert close.warnings == ("more than 1 % ties",)


def test_options_are_typed_as_they_are_given() -> None:
    options = ExportOptions(epoch="2026-01-01", weight=9, life="30d", workload="a.swf", estimate_missing="drop")
    assert options.given() == {
        "--epoch": "2026-01-01",
        "--weight": "9",
        "--workload": "a.swf",
        "--estimate-missing": "drop",
        "--life": "30d",
    }
    assert options.life_s == 30 * 86_400
    assert ExportOptions(threshold=60.5).threshold_s == 60.5
    assert ExportOptions().given() == {}


def test_importing_the_packages_is_light() -> None:
    code = (
        "import sys, policyfactory.exports, policyfactory.learning\n"
        "assert not {'numpy', 'numba', 'policyfactory.exports.content'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
