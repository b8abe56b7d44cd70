"""``policyfactory workload lublin`` and ``workload estimates`` as a user runs them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from policyfactory.workload.jobs import offered_load
from policyfactory.workload.swf.files import read_swf


def body(path: Path) -> list[str]:
    return [line for line in path.read_text().splitlines() if not line.startswith(";")]


def test_published_trace_by_its_command(run, shared, tmp_path: Path) -> None:
    run("workload", "lublin", "--processors", 256, "--jobs", 10_000, "--stream", "drand48", "--seed", 1487089399,
        "--output", "l.swf")  # fmt: skip
    # The published file has no leading blanks.
    assert [line.lstrip() for line in body(tmp_path / "l.swf")] == body(shared("traces/lublin_256.swf"))


def test_typed_published_trace_by_its_command(run, shared, tmp_path: Path) -> None:
    run("workload", "lublin", "--processors", 256, "--jobs", 10_000, "--stream", "drand48", "--seed", 1568124476,
        "--typed", "--umed", 5.6, "-o", "l.swf")  # fmt: skip
    assert body(tmp_path / "l.swf") == body(shared("traces/lublin_256_new2.swf"))


def test_stdout_is_the_log_and_stderr_the_story(run, tmp_path: Path) -> None:
    options = ("--processors", 100, "--jobs", 3000, "--seed", 5, "--load", 0.9, "--estimates", "tsafrir")
    done = run("workload", "lublin", *options, "--bin", "18h=9.7%", "--bin", "600=100")
    run("workload", "lublin", *options, "--bin", "18h=9.7%", "--bin", "600=100", "--output", "out.swf")
    assert (tmp_path / "out.swf").read_text() == done.stdout
    log = read_swf(tmp_path / "out.swf")
    assert offered_load(log.submit, log.run_time, log.allocated, 100) == pytest.approx(0.9, abs=1e-5)
    assert (log.requested_time == 64_800).sum() == 291
    assert (log.requested_time == 600).sum() == 100
    assert (log.requested_time >= log.run_time).all()
    for output in (
        "3,000 jobs; offered load 0.9000",
        "seed 5",
        "at most 18h",
        "drawn larger than the machine and drawn again",
    ):
        assert output in done.stderr
    assert "lublin --processors 100 --jobs 3000 --seed 5 --load 0.9 --estimates tsafrir" in log.header.text(
        "Conversion"
    )


def test_estimates_for_a_real_log(run, shared, tmp_path: Path) -> None:
    trace = shared("traces/KTH-SP2-1996-2.1-cln.swf.gz")
    done = run("workload", "estimates", trace, "--max-estimate", "60h", "--seed", 3, "--output", "kth.swf.gz")
    before, after = read_swf(trace), read_swf(tmp_path / "kth.swf.gz")
    assert len(after) == len(before) - 1
    assert "1 of 28,476 lines have no run time or no processors and were dropped" in done.stderr
    assert "1 longer run times were cut to that" in done.stderr
    assert (after.requested_time >= after.run_time).all()
    assert after.requested_time.max() == 216_000
    assert (after.user == before.user[np.isin(before.job_id, after.job_id)]).all()


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("lublin", "--processors", 256, "--uhi", 9), 2, "UHI 9 of all jobs is above log2(256) = 8"),
        (("lublin", "--umed", "five"), 2, "--umed 'five' is no number"),
        (("lublin", "--umed", "4,5"), 2, "the model is typeless; add --typed"),
        (("lublin", "--jobs", 100, "--estimates", "tsafrir"), 2, "100 jobs are too few"),
        (("lublin", "--max-estimate", "18h"), 2, "add --estimates tsafrir"),
        (("lublin", "--estimates", "tsafrir", "--max-estimate", "inf"), 2, "needs a longest request"),
        (("lublin", "--estimates", "tsafrir", "--bin", "18h"), 2, "is not TIME=JOBS or TIME=PERCENT%"),
        (("lublin", "--estimates", "tsafrir", "--bin", "18h=x%"), 2, "is not TIME=JOBS or TIME=PERCENT%"),
        (("lublin", "--output", "."), 1, ".: is a directory"),
        (("lublin", "--output", "none/l.swf"), 1, "does not exist; create it first"),
        (("estimates", "none.swf"), 1, "none.swf: no such file"),
        (("estimates", "short.swf"), 2, "1 jobs are too few"),
    ],
)
def test_wrong_use_is_reported_with_the_cure(run, tmp_path: Path, arguments, code: int, message: str) -> None:
    (tmp_path / "short.swf").write_text("1 0 0 10 1 -1 -1 1 20 -1 1 1 1 1 1 1 -1 -1\n")
    done = run("workload", *arguments, code=code)
    assert message in done.stderr
    assert done.stderr.startswith("error: ")
    assert not done.stdout
