"""``policyfactory workload download``: logs of the Parallel Workloads Archive and published tables of jobs, by name."""

from __future__ import annotations

import dataclasses
import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from policyfactory.core.errors import UsageError
from policyfactory.core.outputs import check_directory
from policyfactory.report.terminal import console, note, show_table
from policyfactory.workload.swf.archive import ARCHIVE_URL

if TYPE_CHECKING:
    from policyfactory.workload.swf.archive import KnownLog
    from policyfactory.workload.swf.download import Patience
    from policyfactory.workload.tables.published import PublishedTable

__all__ = ["download", "register"]


def register(app: typer.Typer) -> None:
    """Add the command to ``policyfactory workload``."""
    app.command()(download)


def download(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME...",
            help="Logs of the Parallel Workloads Archive: kth, KTH-SP2-1996-2.1-cln, ...; published tables of jobs: "
            "kestrel, pm100, fugaku-2023-07, ...",
        ),
    ] = None,
    listing: Annotated[bool, typer.Option("--list", help="Print the names that are known.")] = False,
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder to write to.")] = Path(),
    base_url: Annotated[
        str, typer.Option(help="Where the archive's folders are, or a mirror; a folder with the files of tables.")
    ] = ARCHIVE_URL,
    sha256: Annotated[str | None, typer.Option(help="Expected SHA-256, in place of the pinned one (one NAME).")] = None,
    tries: Annotated[int, typer.Option(help="Attempts before a failing connection is given up.")] = 4,
    timeout: Annotated[float, typer.Option(help="Seconds without an answer before an attempt fails.")] = 30.0,
    max_time: Annotated[float, typer.Option(help="Seconds for a log, all attempts together.")] = 3600.0,
    speed_limit: Annotated[
        float, typer.Option(help="Bytes a second; an attempt that is slower for --speed-time fails.")
    ] = 1000.0,
    speed_time: Annotated[float, typer.Option(help="Seconds that an attempt may be slower.")] = 30.0,
) -> None:
    """Download logs of the Parallel Workloads Archive, and published tables of jobs, by name.

    An interrupted download goes on where it stopped.
    """
    from policyfactory.workload.swf.archive import find_log
    from policyfactory.workload.swf.download import Patience
    from policyfactory.workload.tables.published import find_published

    if listing:
        _list()
        return
    if not names:
        raise UsageError("name a log to download, for example kth; --list prints the names")
    if sha256 is not None and (len(names) > 1 or re.fullmatch(r"[0-9a-fA-F]{64}", sha256) is None):
        raise UsageError("--sha256 is the 64 hexadecimal digits of one log: give one NAME")
    found = [find_published(name) or find_log(name) for name in names]
    patience = Patience(tries=tries, timeout=timeout, max_time=max_time, speed_limit=speed_limit, speed_time=speed_time)
    check_directory(output)
    for one in found:
        expected = sha256.lower() if sha256 is not None else one.sha256
        _download_one(one, output / one.file, base_url, expected, patience)


def _list() -> None:
    from policyfactory.workload.swf.archive import KNOWN_LOGS
    from policyfactory.workload.tables.published import PUBLISHED

    show_table(
        "Logs of the Parallel Workloads Archive",
        ["name", "short name", "site", "SHA-256 pinned"],
        [[log.name, log.short, log.site, "yes" if log.sha256 else "-"] for log in KNOWN_LOGS.values()],
        left=(0, 1, 2, 3),
    )
    show_table(
        "Published tables of jobs, which workload import reads with --format",
        ["name", "format", "MB", "SHA-256 known"],
        [
            [one.name, one.form, f"{one.size / 1e6:,.0f}" if one.size else "-", "yes" if one.sha256 else "-"]
            for one in PUBLISHED.values()
        ],
        left=(0, 1, 3),
    )


def _download_one(
    log: KnownLog | PublishedTable, path: Path, base_url: str, sha256: str | None, patience: Patience
) -> None:
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    from policyfactory.core.artefact import Manifest, command_line
    from policyfactory.workload.swf.download import download as fetch
    from policyfactory.workload.tables.published import PublishedTable

    table = log if isinstance(log, PublishedTable) else None
    url = log.url(base_url) if table is None else table.url(None if base_url == ARCHIVE_URL else base_url)
    if table is not None:
        patience = dataclasses.replace(patience, largest=table.largest)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    holds: list[str] = []
    with Progress(*columns, console=console(stderr=True)) as bar:
        task = bar.add_task(log.file, total=None)
        result = fetch(
            url,
            path,
            sha256=sha256,
            check=lambda part: holds.append(_holds(part, table)),
            progress=lambda done, total: bar.update(task, completed=done, total=total),
            patience=patience,
        )
        bar.update(task, completed=result.size, total=result.size)
    if not result.present:
        manifest = Manifest(
            "log" if table is None else "table",
            command_line(),
            seed=None,
            parameters={"url": result.url, "page": log.page, "expected_sha256": sha256},
            outputs={result.path.name: result.sha256},
        )
        manifest.write(Manifest.path_for(result.path))
    went_on = f", went on after {result.resumed_from:,} bytes" if result.resumed_from else ""
    what = "was there already" if result.present else f"{result.size:,} bytes{went_on}"
    trust = (
        "as expected"
        if result.pinned
        else "not checked: no digest is known for this log; compare it with another copy's, and give it as --sha256"
    )
    held = holds[0] if holds else _holds(path, table)
    console().print(f"{result.path}: {held}{what}", markup=False, soft_wrap=True)
    console().print(f"SHA-256 {result.sha256} ({trust})", markup=False, soft_wrap=True)
    if table is None:
        note(f"cite the archive and the site when you use it: {log.page}")
        return
    from policyfactory.workload.tables.stock import stock_mapping

    mapping = stock_mapping(table.form)
    note(f"licence {mapping.licence}; cite {mapping.cite}, {mapping.page}")
    command = (
        f"policyfactory workload import {shlex.quote(str(path))} --format {table.form} --output {table.name}.swf.gz"
    )
    note(f"make a log of it: {command}")


def _holds(path: Path, table: PublishedTable | None) -> str:
    """Return how many jobs a log has; of a table only whether it can be one, as reading it takes a while.

    Raises
    ------
    InputError
        If it is none.
    """
    if table is not None:
        from policyfactory.workload.tables.published import check_beginning

        check_beginning(path, table)
        return ""
    from policyfactory.workload.swf.files import read_swf

    return f"{len(read_swf(path)):,} jobs, "
