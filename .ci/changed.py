"""What must run besides, by what changed: .ci/changed.py, or .ci/changed.py --green after a green night.

An area is sources and the tests that take minutes for them. Prints a line for each area whose sources or tests are not
those of the last green night, whose digests are in docs/trust.md: its name, a colon, the arguments of pytest.
"""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "trust.md"
MARK = "<!-- nights: written by .ci/night -->\n"

# Globs below the top of the checkout.
AREAS: dict[str, tuple[Sequence[str], Sequence[str]]] = {
    "Slurm's rules": (
        (
            "policyfactory/engine/slurm/*",
            "policyfactory/simulation/slurm/*",
            "policyfactory/site/*.py",
            "tests/naive/slurm*",
            "tests/schedulers/replay*",
        ),
        (
            "tests/simulation/test_slurm_*.py",
            "tests/simulation/test_replays.py",
            "tests/simulation/test_site_factors.py",
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


def main(words: Sequence[str]) -> None:
    """Print the areas that changed, or write the line of a night that was green."""
    digests = {area: digest(area) for area in AREAS}
    page = PAGE.read_text(encoding="utf-8")
    if list(words) == ["--green"]:
        line = f"{datetime.now(UTC):%Y-%m-%d}: green; " + ", ".join(f"{area} `{own}`" for area, own in digests.items())
        PAGE.write_text(re.sub(re.escape(MARK) + ".*\n", lambda _: f"{MARK}{line}\n", page), encoding="utf-8")
        return
    night = page.partition(MARK)[2].partition("\n")[0]
    for area, own in digests.items():
        if f"`{own}`" not in night:
            tests = (path for path in files(AREAS[area][1]) if path.name != "test_afternoon.py")  # make smoke has it
            print(f"{area}:", *(path.relative_to(ROOT).as_posix() for path in tests))


if __name__ == "__main__":
    main(sys.argv[1:])
