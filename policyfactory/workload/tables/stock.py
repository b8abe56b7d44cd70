"""The mappings that come along, one for each published data set: the files ``*.toml`` beside this one."""

from __future__ import annotations

import difflib
import functools
from importlib.resources import files

from policyfactory.core.errors import UsageError
from policyfactory.workload.accounting.detect import FORMATS
from policyfactory.workload.header import printable
from policyfactory.workload.tables.mapping import TableMapping
from policyfactory.workload.tables.mapping_file import parse_mapping

__all__ = ["STOCK", "find_mapping", "stock_mapping"]

# In the order of the documentation.
STOCK = (
    "kestrel", "eagle", "pm100", "fugaku", "ccin2p3", "lassen", "aurora", "polaris", "theta", "supercloud", "frontier",
    "theta-swf", "adastra",
)  # fmt: skip


@functools.cache
def stock_mapping(name: str) -> TableMapping:
    """Return the mapping that comes along under a name of `STOCK`."""
    return parse_mapping(files(__package__).joinpath(f"{name}.toml").read_bytes(), f"{name}.toml", name)


def find_mapping(name: str) -> TableMapping | None:
    """Return the mapping called ``name``, None if it is a format of accounting logs.

    Raises
    ------
    UsageError
        If there is neither; all names are in the message.
    """
    if name in FORMATS:
        return None
    if name in STOCK:
        return stock_mapping(name)
    known = [*FORMATS, *STOCK]
    near = difflib.get_close_matches(name[:60].casefold(), known, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]}? " if near else ""
    raise UsageError(
        f"--format {printable(name, 40)!r}: no such format; {hint}accounting logs are {', '.join(FORMATS)}, published "
        f"tables {', '.join(STOCK)}; a table of your own needs --mapping FILE"
    )
