"""The logs of the Parallel Workloads Archive by name (https://www.cs.huji.ac.il/labs/parallel/workload/).

``archive.csv`` has the names, folders and versions of the archive's list of logs. A SHA-256 is pinned for the files
that this project was tested with, as they were when it was tested; for the others the digest is printed and written
down when they are downloaded. Whoever uses a log cites the archive (Feitelson, Tsafrir and Krakov, Experience with
using the Parallel Workloads Archive, JPDC 74, 2014) and the site that gave it.
"""

from __future__ import annotations

import csv
import dataclasses
import difflib
from importlib.resources import files

from policyfactory.core.errors import UsageError

__all__ = ["ARCHIVE_URL", "KNOWN_LOGS", "KnownLog", "find_log"]

ARCHIVE_URL = "https://www.cs.huji.ac.il/labs/parallel/workload/"


@dataclasses.dataclass(frozen=True, slots=True)
class KnownLog:
    """One file of the archive.

    Parameters
    ----------
    name : str
        Its name without ``.swf.gz``.
    folder : str
        The archive's folder of the machine.
    site : str
        Whose machine it was.
    short : str
        A name that is easier to type.
    sha256 : str or None
        Digest of the file that this project was tested with.
    """

    name: str
    folder: str
    site: str
    short: str = ""
    sha256: str | None = None

    @property
    def file(self) -> str:
        """The file's name."""
        return f"{self.name}.swf.gz"

    @property
    def page(self) -> str:
        """The archive's page about the log: how it was made, what is known of it, whom to thank."""
        return f"{ARCHIVE_URL}{self.folder}/index.html"

    def url(self, base: str = ARCHIVE_URL) -> str:
        """Return where the file is, at the archive or at a mirror with the same folders."""
        return f"{base.rstrip('/')}/{self.folder}/{self.file}"


def _read_table() -> dict[str, KnownLog]:
    lines = files(__package__).joinpath("archive.csv").read_text(encoding="utf-8").splitlines()
    logs = (KnownLog(**{field: value for field, value in row.items() if value}) for row in csv.DictReader(lines))
    return {log.name: log for log in logs}


KNOWN_LOGS = _read_table()


def find_log(name: str) -> KnownLog:
    """Return the log called ``name``: its file's name with or without suffix, or its short name, in any case.

    Raises
    ------
    UsageError
        If none is called so, with those whose names are near.
    """
    wanted = name.casefold().removesuffix(".gz").removesuffix(".swf")
    names = {name: log for log in KNOWN_LOGS.values() for name in (log.name.casefold(), log.short)}
    if wanted in names:
        return names[wanted]
    near = difflib.get_close_matches(wanted, names, n=3, cutoff=0.5)
    hint = f"near are {', '.join(names[n].name for n in near)}; " if near else ""
    raise UsageError(
        f"no log is called {name!r}; {hint}policyfactory workload download --list prints all {len(KNOWN_LOGS)}"
    )
