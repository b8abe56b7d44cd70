"""What is refused leaves no folder behind."""

from __future__ import annotations

from pathlib import Path

import pytest

from commands import Run
from naive.logs import text_of


@pytest.mark.parametrize(
    "words",
    [
        ("learn", "one.swf", "--output", "new/out"),
        ("predict", "one.swf", "--output", "new/out"),
        ("train", "one.swf", "--output", "new/out"),
        ("distill", "F1", "one.swf", "--output", "new/out"),
        ("evaluate", "one.swf", "--windows", "4x9d", "--output", "new/out"),
        ("workload", "resample", "one.swf", "--number", "2", "--output", "new/out"),
        ("workload", "window", "one.swf", "--windows", "4x9d", "--output", "new/out"),
    ],
    ids=" ".join,
)
def test_what_is_refused_leaves_no_folder(run: Run, tmp_path: Path, words: tuple[str, ...]) -> None:
    (tmp_path / "one.swf").write_text(text_of([{"submit": 1, "run_time": 30, "requested_time": 60, "allocated": 2}]))
    done = run(*words, code=1)
    assert "error: " in done.stderr
    assert not (tmp_path / "new").exists()
