"""Published tables of jobs by name: where those are that can be downloaded without a form.

``published.csv`` has their addresses, and the sizes and digests of files as other users of them have published these
(NREL's hpc-oda project), where one has; a file whose digest is not known is checked by its beginning alone.
"""

from __future__ import annotations

import csv
import dataclasses
import difflib
from importlib.resources import files
from pathlib import Path

from policyfactory.core.errors import InputError, UsageError
from policyfactory.workload.header import printable
from policyfactory.workload.tables.stock import stock_mapping

__all__ = ["BEHIND_FORMS", "PUBLISHED", "PublishedTable", "check_beginning", "find_published"]

# Formats whose tables have no open address, and why.
BEHIND_FORMS = {
    "aurora": "behind a form (name and address)",
    "polaris": "behind a form (name and address)",
    "theta": "behind a form (name and address)",
    "theta-swf": "not at one address",
    "frontier": "at no open address that is known",
}
_LARGEST = 8 << 30  # bytes; of a file whose size is not known
_BEGINNINGS = {".parquet": b"PAR1", ".zip": b"PK\x03\x04", ".gz": b"\x1f\x8b"}


@dataclasses.dataclass(frozen=True, slots=True)
class PublishedTable:
    """One file of a published data set.

    Parameters
    ----------
    name : str
        What ``workload download`` calls it.
    form : str
        The format that reads it, of ``workload import``.
    file : str
        What it is called here.
    address : str
        Where it is.
    size : int or None
        Its bytes.
    sha256 : str or None
        Its digest.
    """

    name: str
    form: str
    file: str
    address: str
    size: int | None = None
    sha256: str | None = None

    @property
    def page(self) -> str:
        """Where the data set is described."""
        return stock_mapping(self.form).page

    @property
    def largest(self) -> int:
        """Bytes beyond which it is another file."""
        return self.size or _LARGEST

    def url(self, base: str | None = None) -> str:
        """Return where the file is, at its own address or in the folder of a mirror."""
        return self.address if base is None else f"{base.rstrip('/')}/{self.file}"


def _read_table() -> dict[str, PublishedTable]:
    lines = files(__package__).joinpath("published.csv").read_text(encoding="utf-8").splitlines()
    return {
        row["name"]: PublishedTable(
            row["name"], row["form"], row["file"], row["address"],
            int(row["size"]) if row["size"] else None, row["sha256"] or None,
        )
        for row in csv.DictReader(lines)
    }  # fmt: skip


PUBLISHED = _read_table()


def find_published(name: str) -> PublishedTable | None:
    """Return the table called ``name``, None if nothing among the tables is called like it.

    Raises
    ------
    UsageError
        If it is a data set of several files, or one that cannot be downloaded, or nearly the name of a table.
    """
    wanted = name[:60].casefold()
    if wanted in PUBLISHED:
        return PUBLISHED[wanted]
    if wanted in BEHIND_FORMS:
        page = stock_mapping(wanted).page
        raise UsageError(
            f"{wanted}: its tables are {BEHIND_FORMS[wanted]}{f'; see {page}' if page else ''}; once you have them: "
            f"policyfactory workload import FILE... --format {wanted}"
        )
    parts = [one.name for one in PUBLISHED.values() if one.form == wanted]
    if parts:
        raise UsageError(f"{wanted}: a data set of {len(parts)} files; name some of {parts[0]} to {parts[-1]}")
    near = difflib.get_close_matches(wanted, PUBLISHED, n=2, cutoff=0.8)
    if near:
        raise UsageError(f"no table is called {printable(name, 60)!r}; near are {', '.join(near)}")
    return None


def check_beginning(path: Path, table: PublishedTable) -> None:
    """Check that a file begins as its kind does.

    Raises
    ------
    InputError
        If it does not: a page that says why there is no file, perhaps.
    """
    with path.open("rb") as file:
        begin = file.read(512)
    expected = next((mark for suffix, mark in _BEGINNINGS.items() if table.file.endswith(suffix)), None)
    page = begin.lstrip()[:1] == b"<"
    if not begin or page or (expected is not None and not begin.startswith(expected)):
        raise InputError(
            f"begins with {printable(begin[:20].decode('utf-8', 'replace'), 40)!r}, and is no {table.file}"
        )
