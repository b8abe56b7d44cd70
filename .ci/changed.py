"""What must run besides, by what changed: .ci/changed.py.

An area is sources and the tests that take minutes for them. Prints a line for each area whose sources or tests are not
those of the last green night, whose digests are in docs/trust.md: its name, a colon, the arguments of pytest. A green
night writes its line by `write_green`.
"""

from __future__ import annotations

import hashlib
import re
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


def write_green(commit: str, what: str, not_run: Sequence[str]) -> None:
    """Write the line of a night that was green: of which commit, what was run, what was not, and the areas' digests."""
    parts = [f"{datetime.now(UTC):%Y-%m-%d}: green{' in part' * bool(not_run)}, `{commit[:10]}`: {what}"]
    parts += [f"not run: {', '.join(not_run)}"] if not_run else []
    parts += [", ".join(f"{area} `{digest(area)}`" for area in AREAS)]
    page = PAGE.read_text(encoding="utf-8")
    page = re.sub(re.escape(MARK) + ".*\n", lambda _: f"{MARK}{'; '.join(parts)}\n", page)
    PAGE.write_text(page, encoding="utf-8")


def main() -> None:
    """Print the areas that changed."""
    night = PAGE.read_text(encoding="utf-8").partition(MARK)[2].partition("\n")[0]
    for area in AREAS:
        if f"`{digest(area)}`" not in night:
            tests = (path for path in files(AREAS[area][1]) if path.name != "test_afternoon.py")  # make smoke has it
            print(f"{area}:", *(path.relative_to(ROOT).as_posix() for path in tests))


if __name__ == "__main__":
    main()
