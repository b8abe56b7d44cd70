"""The licence of every file is stated: Apache-2.0, but for the plugin that includes headers of Slurm."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from support import ROOT

GPL, APACHE = "GPL-2.0-or-later", "Apache-2.0"
PLUGIN = Path("policyfactory/exports/slurm/plugin")
_SPDX = re.compile(r"SPDX-License-Identifier: (.+)")


def stated(path: Path) -> str:
    """Return the expression in the first lines of a file, or nothing."""
    found = _SPDX.search("\n".join(path.read_text(encoding="utf-8").splitlines()[:8]))
    return found.group(1) if found else ""


def test_the_plugin_is_gpl_and_nothing_else_of_the_package() -> None:
    files = [path for path in (ROOT / "policyfactory").rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    found = {str(path.relative_to(ROOT)): stated(path) for path in files}
    assert {name: text for name, text in found.items() if text} == {
        f"{PLUGIN}/site_factor_policyfactory.c": GPL,
        f"{PLUGIN}/Makefile": GPL,
        "policyfactory/exports/scripts/policy.h": f"{APACHE} OR {GPL}",
    }
    assert {name for name in found if name.startswith(str(PLUGIN))} <= {name for name in found if found[name]}
    # What includes another program's headers is a work based on it.
    for path in files:
        includes = re.findall(r'^#include "(.+)"', path.read_text(encoding="utf-8"), flags=re.MULTILINE)
        assert not any("slurm" in name for name in includes) or stated(path) == GPL, path


def test_metadata_and_texts_agree() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["license"] == f"{APACHE} AND {GPL}"
    assert project["license-files"] == ["LICENSE", "LICENSES/*"]
    assert "Apache License" in (ROOT / "LICENSE").read_text(encoding="utf-8")[:200]
    gpl = (ROOT / "LICENSES" / f"{GPL}.txt").read_text(encoding="utf-8")
    assert "GNU GENERAL PUBLIC LICENSE\n                       Version 2, June 1991" in gpl
    assert f"\nlicense: {APACHE}" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    for page in ("README.md", "LICENSES/README.md", "docs/export.md"):
        assert GPL in (ROOT / page).read_text(encoding="utf-8"), page
