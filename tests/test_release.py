"""The release script refuses what is no release; the look-up of vulnerabilities fails on findings, and names gaps."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support import ROOT

NUMPY = {"name": "numpy", "version": "1.0", "vulns": []}
HOLE = {"name": "pillow", "version": "1.0", "vulns": [{"id": "PYSEC-1", "fix_versions": ["1.1"]}]}


def look_up(tmp_path: Path, answer: str) -> tuple[int, str]:
    """Run the look-up with a tool that gives one answer to each question."""
    (tmp_path / "answer").write_text(answer, encoding="utf-8")
    tool = tmp_path / "pip-audit"
    tool.write_text(f'#!/bin/sh\ncat "{tmp_path}/answer"\necho no route >&2\n', encoding="utf-8")
    tool.chmod(0o700)
    command = [sys.executable, str(ROOT / ".ci" / "audit.py"), sys.executable, str(tool)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert not done.stderr
    return done.returncode, done.stdout


def test_a_published_vulnerability_fails(tmp_path: Path) -> None:
    code, said = look_up(tmp_path, json.dumps({"dependencies": [NUMPY, HOLE]}))
    assert code == 1
    assert "VULNERABLE: pillow 1.0: PYSEC-1, fixed in 1.1\n2 of 2 packages looked up, 1 published vuln" in said
    assert "NOT CHECKED" not in said


def test_what_no_service_answers_for_is_named_and_passes(tmp_path: Path) -> None:
    skipped = {"name": "pillow", "skip_reason": "not found on PyPI"}
    code, said = look_up(tmp_path, json.dumps({"dependencies": [NUMPY, skipped]}))
    assert code == 0
    assert "1 of 2 packages looked up" in said
    gap = "NOT CHECKED: vulnerabilities of 1 of 2 packages, no service answered: pillow\n"
    assert gap in said
    code, said = look_up(tmp_path, "")
    assert code == 0
    assert "osv could not be asked: no route\npypi could not be asked: no route" in said
    assert "NOT CHECKED: vulnerabilities of any package" in said


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({}, "there are changes that are not committed"),
        ({"CHANGELOG.md": "# Changes\n\n## 1.1 (2026-01-01)\n"}, "version.py says 1.0, CHANGELOG.md begins with 1.1"),
        ({"CITATION.cff": "version: 0.9\n"}, "CITATION.cff has another version than 1.0"),
        ({"CHANGELOG.md": "# Changes\n\n## 1.0 (unreleased)\n"}, "no date: '(unreleased)', expected (YYYY-MM-DD)"),
    ],
)
def test_what_is_no_release_is_refused(change: dict[str, str], said: str, tmp_path: Path) -> None:
    files = {
        "policyfactory/core/version.py": '__version__ = "1.0"\n',
        "CHANGELOG.md": "# Changes\n\n## 1.0 (2026-01-01)\n",
        "CITATION.cff": "version: 1.0\n",
    }
    for name, text in (files | change).items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / ".ci").mkdir()
    shutil.copy(ROOT / ".ci" / "release", tmp_path / ".ci")
    names = {f"GIT_{who}_{what}": "x" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    environment = os.environ | names | {"GIT_CONFIG_GLOBAL": os.devnull}
    for command in (["init", "--quiet"], ["add", "."], ["commit", "--quiet", "--message", "x"]):
        subprocess.run(["git", *command], cwd=tmp_path, env=environment, check=True)
    if not change:
        (tmp_path / "stray").touch()
    command = ["bash", str(tmp_path / ".ci" / "release")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("no release: ")
    assert said in done.stderr
    assert not (tmp_path / "dist").exists()
