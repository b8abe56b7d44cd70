"""Every example runs, in its order, from the first line to the last."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from support import ROOT, extra_module

EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
# Needs an extra, and learns for a minute; not where it is tested.
LEARNS = {"06_environment"}


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
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


def test_the_examples_are_listed() -> None:
    listed = (ROOT / "examples" / "README.md").read_text(encoding="utf-8")
    assert len(EXAMPLES) == 6
    assert all(f"({path.name})" in listed for path in EXAMPLES)
