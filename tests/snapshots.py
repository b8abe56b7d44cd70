"""Texts that tests keep, a file for each file of tests: `make snapshots` writes them anew, git diff tells the rest."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from pathlib import Path

from support import ROOT

FOLDER = Path(__file__).parent / "data" / "snapshots"
_HEAD = "=== "


def snapshot(*texts: str | Iterable[str], part: str = "") -> None:
    """Assert that texts are what the running test keeps; a test that keeps several names the parts."""
    file, test = os.environ["PYTEST_CURRENT_TEST"].removesuffix(" (call)").split("::", 1)
    path = FOLDER / Path(file).relative_to("tests").with_name(Path(file).stem.removeprefix("test_") + ".txt")
    name = f"{test} {part}".rstrip()
    found = "\n\n".join(text if isinstance(text, str) else "\n\n".join(text) for text in texts).strip("\n")
    assert not any(place in found for place in (str(ROOT), tempfile.gettempdir())), "paths of one machine are not kept"
    texts_of = read(path)
    if os.environ.get("POLICYFACTORY_SNAPSHOTS") == "rewrite":
        texts_of[name] = found
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(
            "\n\n".join(f"{_HEAD}{name}\n{texts_of[name]}" for name in sorted(texts_of)) + "\n", encoding="utf-8"
        )
    assert name in texts_of, f"{path.name} has no {name}; make snapshots writes it"
    assert found == texts_of[name], "if this is as it should be: make snapshots"


def read(path: Path) -> dict[str, str]:
    """Return the kept texts of a file by the names of their tests."""
    if not path.is_file():
        return {}
    blocks = f"\n{path.read_text(encoding='utf-8').rstrip()}".split(f"\n{_HEAD}")[1:]
    return {name: text.strip("\n") for name, text in (block.split("\n", 1) for block in blocks)}
