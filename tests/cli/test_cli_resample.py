"""``policyfactory workload resample`` as a user runs it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from policyfactory.core.inputs import sha256_file
from policyfactory.workload.clean import read
from policyfactory.workload.resample import resample
from policyfactory.workload.sensitivity import Sensitivity, parse_estimates

KTH = "traces/KTH-SP2-1996-2.1-cln.swf.gz"


def test_a_resampled_log_is_written_says_how_and_is_read_again(
    run: Callable[..., Any], shared: Callable[[str], Path], tmp_path: Path
) -> None:
    options = ("--length", "1y", "--seed", 3, "--number", 2, "--load", 1.1, "--estimates", "noisy:0.2")
    done = run("workload", "resample", shared(KTH), *options, "-o", "new.swf.gz")
    assert done.stdout == ""
    assert "370 jobs after the last whole week are left out" in done.stderr
    new = tmp_path / "new.swf.gz"
    made = read(new, preset="none")
    log = read(shared(KTH))
    axes = Sensitivity(1.1, parse_estimates("noisy:0.2"))
    expected = axes.apply(resample(log, weeks=52, seed=3, number=2), seed=3, number=2)
    assert made.select(slice(None), rebase=True).sha256() == expected.select(slice(None), rebase=True).sha256()
    assert made.unix_start == expected.unix_start + expected.submit[0]
    manifest = json.loads((tmp_path / "new.swf.manifest.json").read_text())
    assert manifest["outputs"] == {"new.swf.gz": sha256_file(new)}
    assert manifest["seed"] == 3
    assert manifest["parameters"].items() >= {"weeks": 52, "draw": "log", "load": 1.1, "estimates": "noisy:0.2"}.items()
    refused = run("workload", "resample", shared(KTH), "--weeks", 2, "-o", "new.swf.gz", code=1)
    assert "new.swf.gz: exists; add --overwrite to replace it" in refused.stderr
    run("workload", "resample", shared(KTH), *options, "-o", "again.swf.gz")
    assert (tmp_path / "again.swf.gz").read_bytes() == new.read_bytes()


def test_without_a_name_the_log_goes_to_stdout_and_its_header_tells_the_steps(
    run: Callable[..., Any], shared: Callable[[str], Path]
) -> None:
    done = run("workload", "resample", shared(KTH), "--weeks", 2, "--draw", "active")
    head = [line for line in done.stdout.splitlines() if line.startswith(";")]
    assert any("resampled: 2 weeks, for each of 205 users" in line for line in head)
    assert "; MaxProcs: 100" in head
    assert len(done.stdout.splitlines()) - len(head) > 3_000
    assert "times the log's" in done.stderr


def test_what_is_out_of_range_ends_with_the_cure(run: Callable[..., Any], shared: Callable[[str], Path]) -> None:
    done = run("workload", "resample", shared(KTH), "--weeks", 2, "--length", "2w", code=2)
    assert "give one of them" in done.stderr


def test_one_whole_week_is_not_resampled(
    run: Callable[..., Any], shared: Callable[[str], Path], tmp_path: Path
) -> None:
    run("workload", "window", shared(KTH), "--to", "10d", "-o", "short.swf")
    done = run("workload", "resample", "short.swf", "--weeks", 2, "-o", "new.swf", code=1)
    assert "are only one whole week, so that every week drawn from it would be the same" in done.stderr
    assert not (tmp_path / "new.swf").exists()
    done = run("evaluate", "short.swf", "--policies", "FCFS,F1", "--resamples", 10, code=1)
    assert "give a log of at least two whole weeks" in done.stderr
