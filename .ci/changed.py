"""What must run besides, by what changed: .ci/changed.py [--run].

An area is sources and the tests that take minutes for them. Prints a line for each area whose sources or tests are not
those of its last green run, whose digest is in docs/trust.md: its name, a colon, the arguments of pytest. With --run
these tests are run, and an area that is green gets its line.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "trust.md"
AREA = "- {}: green on {}, sources `{}`\n"

# Globs below the top of the checkout.
AREAS: dict[str, tuple[Sequence[str], Sequence[str]]] = {
    "Slurm's rules": (
        (
            "policyfactory/engine/slurm/*",
            "policyfactory/simulation/slurm/*",
            "policyfactory/prediction/*",
            "policyfactory/site/*.py",
            "tests/naive/slurm*",
            "tests/schedulers/replay*",
        ),
        (
            "tests/simulation/test_slurm_*.py",
            "tests/simulation/test_replays.py",
            "tests/simulation/test_site_factors.py",
            "tests/simulation/test_stopped.py",
            "tests/simulation/test_closed_loop.py",
            "tests/simulation/test_queue_explained.py",
            "tests/evaluation/fidelity/test_*.py",
            "tests/site/test_users.py",
        ),
    ),
    "exports on a real Slurm": (
        ("policyfactory/exports/*.py", "policyfactory/exports/slurm/**/*", "tests/schedulers/slurm*.py"),
        ("tests/slurm/test_*.py",),
    ),
}


def files(globs: Sequence[str]) -> list[Path]:
    """Return what a pattern names, bytecode left out; a pattern that names nothing is a mistake of this file."""
    found = []
    for glob in globs:
        named = sorted(path for path in ROOT.glob(glob) if path.is_file() and "__pycache__" not in path.parts)
        if not named:
            raise SystemExit(f".ci/changed.py: there is nothing named {glob}")
        found += named
    return found


def digest(area: str) -> str:
    """Return what tells the sources and tests of an area from others."""
    sums = hashlib.sha256()
    for path in files([*AREAS[area][0], *AREAS[area][1]]):
        sums.update(path.relative_to(ROOT).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return sums.hexdigest()[:12]


def tests_of(area: str) -> list[str]:
    """Return the files of an area's tests, but that of make smoke."""
    named = (path.relative_to(ROOT).as_posix() for path in files(AREAS[area][1]))
    return [name for name in named if name != "tests/slurm/test_afternoon.py"]


def today() -> str:
    """Return the date, by which a line can be found again."""
    return f"{datetime.now(UTC):%Y-%m-%d}"


def write_line(name: str, line: str) -> None:
    """Write the line of the page that begins with a name anew."""
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(re.sub(f"(?m)^- {re.escape(name)}:.*\n", lambda _: line, page), encoding="utf-8")


def main(*, run: bool) -> int:
    """Print the areas that changed, or run their tests; return 1 if one fails."""
    page, failed = PAGE.read_text(encoding="utf-8"), False
    for area in AREAS:
        if f"`{digest(area)}`" in page:
            continue
        if not run:
            print(f"{area}:", *tests_of(area))
            continue
        words = [sys.executable, "-m", "pytest", "-q", "-n", "3", "--dist", "worksteal", *tests_of(area)]
        # Nothing is skipped for want of a program.
        done = subprocess.run(words, cwd=ROOT, env=os.environ | {"CI": "true"}, check=False)
        if done.returncode:
            failed = True
        else:
            write_line(area, AREA.format(area, today(), digest(area)))
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(run="--run" in sys.argv[1:]))
