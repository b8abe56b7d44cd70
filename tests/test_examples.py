"""Every example runs, in its order, from the first line to the last."""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from support import ROOT, extra_module

EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
# Needs an extra, and learns for a minute; not where it is tested.
LEARNS = {"06_environment"}
# And one that fits for seconds.
LONG = LEARNS | {"03_scores_and_fits"}


@pytest.mark.parametrize(
    "example",
    [pytest.param(path, id=path.stem, marks=pytest.mark.slow if path.stem in LONG else ()) for path in EXAMPLES],
)
def test_an_example_runs(
    example: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if example.stem in LEARNS:
        extra_module("sb3_contrib", "test-rl")
        monkeypatch.setenv("EXAMPLE_SECONDS", "2")
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(example))
    assert capsys.readouterr().out
    assert not list(tmp_path.iterdir()), "an example leaves nothing behind"


# What it imports first, and what only our own module does.
@pytest.mark.parametrize("absent", ["torch", "gymnasium"])
def test_without_its_extra_an_example_says_what_to_install(absent: str, tmp_path: Path) -> None:
    (example,) = (path for path in EXAMPLES if path.stem in LEARNS)
    code = f"import runpy, sys; sys.modules[{absent!r}] = None; runpy.run_path({str(example)!r})"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert "pip install 'policyfactory[test-rl]'" in done.stderr


def test_the_examples_are_listed() -> None:
    listed = (ROOT / "examples" / "README.md").read_text(encoding="utf-8")
    assert len(EXAMPLES) == 7
    assert all(f"({path.name})" in listed for path in EXAMPLES)
