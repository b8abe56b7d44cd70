"""The C plugin as an administrator builds it: with its own Makefile, against the source of the Slurm that runs."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from policyfactory.exports.content import Export, ExportSite
from policyfactory.exports.slurm.site_factor_c import make
from policyfactory.policy.store import Model
from schedulers.processes import require

LINES = ("PrioritySiteFactorPlugin=site_factor/policyfactory",)


def slurm_source() -> Path:
    """Return the source of the Slurm that is installed; skip without it, except in CI, which fetches it."""
    require("slurmctld", "make", "cc")
    result = os.environ.get("POLICYFACTORY_SLURM_SOURCE")
    if result and Path(result, "META").is_file():
        return Path(result)
    reason = "POLICYFACTORY_SLURM_SOURCE names no source of Slurm (.ci/slurm-source FOLDER fetches Debian's)"
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


def plugin_lines(folder: Path) -> tuple[str, ...]:
    """Return slurm.conf's lines for a plugin in ``folder``; Slurm's own plugins stay where they are."""
    (own,) = Path("/usr/lib").glob("*/slurm-wlm")
    return (f"PluginDir={folder}:{own}", *LINES)


def build(folder: Path, model: Model, site: ExportSite) -> Export:
    """Build the plugin in ``folder``, warnings being errors, and return the export."""
    source = slurm_source()
    export = make(model, site)
    folder.mkdir(exist_ok=True)
    for file in export.files:
        (folder / file.name).write_text(file.text)
    # A folder as it is unpacked, whatever was in it before.
    for command in (["make", "clean"], ["make", f"SLURM_SOURCE={source}", "CFLAGS=-O2 -Werror"]):
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    return export
