"""Site files: a site as TOML. What is not written has the scheduler's default: a small site takes three lines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from policyfactory.core.errors import SiteError
from policyfactory.core.files import atomic_write, dump_toml
from policyfactory.core.inputs import read_toml, sha256_bytes
from policyfactory.core.text import shortened
from policyfactory.site.consistent import check_site
from policyfactory.site.model import Site
from policyfactory.workload.declared import TableReading, written_table
from policyfactory.workload.header import printable

SITE_SCHEMA = 1

_MAX_BYTES = 1 << 26
_PAGE = "docs/site.md"


def site_and_digest(path: Path | str) -> tuple[Site, str]:
    """Return the site of a file, and the SHA-256 of the bytes that it was read from; errors as for `read_site`."""
    path = Path(path)
    data, content = read_toml(path, limit=_MAX_BYTES, page=_PAGE)
    return _site_of(content, path), sha256_bytes(data)


def read_site(path: Path | str) -> Site:
    """Read a site file.

    Parameters
    ----------
    path : Path or str
        TOML, of schema 1.

    Returns
    -------
    Site
        Which contradicts itself nowhere; a site without a name gets the file's.

    Raises
    ------
    SiteError
        If it is of a newer schema, has an unknown key, a value of another kind, or contradicts itself.
    InputError
        If it cannot be read or is no TOML.
    """
    return site_and_digest(path)[0]


def _site_of(content: dict[str, Any], path: Path) -> Site:
    schema = content.pop("schema", None)
    if schema is None:
        raise SiteError(f"{path}: has no schema; begin the file with: schema = {SITE_SCHEMA}")
    if isinstance(schema, bool) or not isinstance(schema, int) or schema < 1:
        raise SiteError(f"{path}: schema is {shortened(repr(schema))}; begin the file with: schema = {SITE_SCHEMA}")
    if schema > SITE_SCHEMA:
        raise SiteError(
            f"{path}: is a site file of schema {shortened(str(schema))}, and this policyfactory reads up to "
            f"{SITE_SCHEMA}; update policyfactory, or make the file again with policyfactory site import"
        )
    # There were sites of PBS once; those of Slurm said so.
    if content.pop("scheduler", "slurm") != "slurm":
        raise SiteError(
            f"{path}: scheduler: only sites of Slurm are read; for OpenPBS see policyfactory export --to pbs"
        )
    reading = TableReading(SiteError, f"{_PAGE} shows the layout")
    site = reading.table(Site, {"name": printable(path.stem, 200), **content}, str(path))
    check_site(site, str(path))
    return site


def dump_site(site: Site) -> str:
    """Return a site as TOML, which `read_site` reads as an equal one; defaults are left out."""
    return dump_toml({"schema": SITE_SCHEMA, **written_table(site)})


def write_site(site: Site, path: Path) -> None:
    """Write a site file.

    Raises
    ------
    SiteError
        If it is larger than what would be read again.
    OutputError
        If it cannot be written.
    """
    text = dump_site(site)
    if len(text) > _MAX_BYTES:
        raise SiteError(
            f"{path}: has {len(text):,} characters, more than the {_MAX_BYTES:,} that are read again; leave out old "
            "reservations and outages"
        )
    atomic_write(path, text)
