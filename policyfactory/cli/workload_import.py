"""``policyfactory workload import``: accounting logs and published tables of jobs as logs that can be simulated."""

from __future__ import annotations

import dataclasses
import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from policyfactory.cli.options import Json, Overwrite, refuse_idle, with_options
from policyfactory.core.errors import UsageError
from policyfactory.core.files import Manifest, check_directory, check_file, command_line, exclusive, together
from policyfactory.core.options import declared, options_of
from policyfactory.report.terminal import console, note, print_json, say, show_table, warn
from policyfactory.workload.accounting.options import ImportRules, Labels, parse_limits
from policyfactory.workload.accounting.sacct_columns import RECOMMENDED_LINES
from policyfactory.workload.header import ARCHIVE_URL, printable

if TYPE_CHECKING:
    from policyfactory.workload.accounting.importing import Imported
    from policyfactory.workload.accounting.table import ImportReport
    from policyfactory.workload.swf.download import KnownLog, Patience
    from policyfactory.workload.tables.mapping import PublishedTable, TableMapping

# A log of millions of jobs is packed in a third of the time that the highest level takes.
_PACKING = 6
_FORMATS = (
    "sacct, sacct-json, filetxt, pbs or gridengine (default: what the file's beginning shows); or a published table: "
    "kestrel, eagle, pm100, fugaku, ccin2p3, lassen, aurora, polaris, theta, supercloud, frontier, theta-swf, adastra."
)


class Import(TyperCommand):
    """The command, whose help ends with lines to be copied: an epilog would put blanks behind their backslashes."""

    closing = ("The log of a Slurm cluster:", *RECOMMENDED_LINES)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Print the help, then the command for sacct as it stands."""
        super().format_help(ctx, formatter)
        typer.echo("\n".join(self.closing))


@with_options([*declared(ImportRules).values(), *declared(Labels).values()], defaults={"unit": None})
def import_log(
    inputs: Annotated[
        list[Path],
        typer.Argument(
            metavar="IN...",
            help="Accounting logs or tables, parts of one log in any order (.gz; tables also .zip); - is stdin.",
            show_default=False,
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="SWF file to write (.gz is packed); without it only the report."),
    ] = None,
    form: Annotated[str | None, typer.Option("--format", metavar="FORMAT", help=_FORMATS)] = None,
    mapping: Annotated[
        Path | None,
        typer.Option(help="What the columns of a table of your own mean (TOML), in place of --format."),
    ] = None,
    partition: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Keep the jobs of this partition or queue; can be given again."),
    ] = None,
    start: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="DATE",
            help="Keep jobs submitted from this date on: 2026-03-01, 2026-03-01T12:00 or Unix seconds.",
        ),
    ] = None,
    end: Annotated[
        str | None, typer.Option("--to", metavar="DATE", help="Keep jobs submitted before this date, written likewise.")
    ] = None,
    time_zone: Annotated[
        str | None,
        typer.Option(
            metavar="ZONE",
            help="Zone of times that have none, and of dates: Europe/Berlin (default: this machine's; a table's own).",
        ),
    ] = None,
    processors: Annotated[
        int | None,
        typer.Option(
            help="Processors of the machine, nodes with --unit nodes (default: what a table's mapping says, or the "
            "most in use at once).",
            min=1,
        ),
    ] = None,
    partition_limit: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=TIME", help="Requested time of jobs with their partition's limit: batch=24h."),
    ] = None,
    default_limit: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=TIME",
            help="Limit of a partition's jobs that ask for none (scontrol show partition): batch=1h.",
        ),
    ] = None,
    json: Json = False,
    overwrite: Overwrite = False,
    **options: Any,
) -> None:
    """Make a log (SWF) of a cluster's accounting (Slurm, PBS, TORQUE, Grid Engine) or of a table of jobs.

    Every record becomes a job, or is counted with the rule that took it away. The requested time is the job's limit,
    never its run time. The recorded starts are kept.

    Example: policyfactory workload import sacct.txt --output site.swf
    """
    from policyfactory.workload.accounting.importing import Zone, import_logs
    from policyfactory.workload.accounting.times import find_zone, parse_date
    from policyfactory.workload.swf.files import write_swf
    from policyfactory.workload.tables.reader import import_tables, zone_of

    refuse_idle(output, overwrite=overwrite)
    labels = options_of(Labels, options, command=command_line())
    table = _table(form, mapping)
    zone = Zone.of_machine() if table is None else zone_of(table)
    if time_zone is not None:
        zone = Zone(find_zone(time_zone), time_zone, "given by --time-zone")
    if table is not None:
        options["unit"] = options["unit"] or table.unit
    without_limits = options["assume_limit"] is not None
    rules = options_of(
        ImportRules,
        options,
        partitions=tuple(name for text in partition or [] for name in text.split(",") if name),
        begin=None if start is None else parse_date(start, zone.clock, "--from"),
        end=None if end is None else parse_date(end, zone.clock, "--to"),
        partition_limit=parse_limits(partition_limit or [], "--partition-limit"),
        default_limit=parse_limits(default_limit or [], "--default-limit"),
    )
    if rules.begin is not None and rules.end is not None and rules.begin >= rules.end:
        raise UsageError(f"--from {start} is not before --to {end}")
    if output is not None:
        check_file(output, "its manifest")
    with exclusive(output, overwrite=overwrite):
        how: dict[str, Any] = {"rules": rules, "labels": labels, "zone": zone, "processors": processors}
        if table is None:
            imported = import_logs(inputs, form=form, **how)
        else:
            imported = import_tables(inputs, table, without_limits=without_limits, **how)
        if output is not None:
            with together():
                write_swf(imported.log, output, level=_PACKING)
                _write_manifest(imported, output, labels.seed if labels.anonymous else None, table)
    _show(imported.report, json=json)
    if output is None:
        note("nothing was written; add --output OUT.swf.gz")
    else:
        note(f"written: {output}")


def _table(form: str | None, mapping: Path | None) -> TableMapping | None:
    """Return the mapping that was asked for, None if the inputs are accounting logs."""
    from policyfactory.workload.tables.mapping import find_mapping, read_mapping

    if mapping is not None and form is not None:
        raise UsageError("--format and --mapping both say what the inputs are: give one of them")
    if mapping is not None:
        return read_mapping(mapping)
    return None if form is None else find_mapping(form)


def _write_manifest(imported: Imported, output: Path, seed: int | None, table: TableMapping | None) -> None:
    """Write how the log was made; of an anonymous one the names of files and the command stay out."""
    report = imported.report
    anonymous = seed is not None
    inputs: dict[str, str] = {}
    for number, (path, _, digest) in enumerate(report.inputs, start=1):
        name = f"input {number}" if anonymous else Path(path).name
        # Files of one name in several folders.
        inputs[name if name not in inputs else f"{name} ({number})"] = digest
    if table is not None:
        inputs["mapping"] = table.sha256
    parameters = {
        "records": report.records,
        "jobs": report.jobs,
        "unit": report.unit,
        "machine": report.machine,
        "time_zone": report.time_zone,
        "steps": [{"action": step.action, "what": step.what, "count": step.count} for step in report.steps],
    }
    command = "policyfactory workload import --anonymize" if anonymous else ""
    Manifest.write_beside(output, "imported-log", seed, command=command, inputs=inputs, parameters=parameters)


def _show(report: ImportReport, *, json: bool) -> None:
    if json:
        print_json(report.as_dict())
    else:
        files = ", ".join(f"{Path(name).name} ({kind})" for name, kind, _ in report.inputs[:5])
        more = f" and {len(report.inputs) - 5} more" if len(report.inputs) > 5 else ""
        rows = report.rows() or [["", "every record is a job as it stands", "", "", ""]]
        columns = ["", "what", "why", "first of them", "count"]
        show_table(f"import of {printable(files + more, 300)}", columns, rows, left=(0, 1, 2, 3))
        show_table(
            "what the jobs of each partition request",
            ["partition", "jobs", "with a limit", "asked for", "commonest other", "share, %", "default given"],
            report.partition_rows(),
            caption="asked for: the submit line shows it (-t, --time; -: no line does, or the log has none); commonest "
            "other: the most frequent limit among the rest; share: its share of all limits of the partition",
        )
        say(report.totals())
    for text in report.lacking:
        note(text)
    for text in report.questions() + report.warnings():
        warn(text)


# ``policyfactory workload download`` ----------------------------------------------------------------------------------

# Logs of the Parallel Workloads Archive and published tables of jobs, by name.


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
    output: Annotated[Path, typer.Option("--output", "-o", metavar="DIR", help="Folder to write to.")] = Path(),
    base_url: Annotated[
        str,
        typer.Option(
            metavar="URL",
            help="Where the archive's folders are, or a mirror; a folder with the files of tables.",
            show_default="the archive's own",
        ),
    ] = ARCHIVE_URL,
    sha256: Annotated[
        str | None, typer.Option(metavar="DIGEST", help="Expected SHA-256, in place of the pinned one (one NAME).")
    ] = None,
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

    Example: policyfactory workload download kth
    """
    from policyfactory.workload.swf.download import Patience, find_log
    from policyfactory.workload.tables.mapping import find_published

    if listing:
        _list()
        return
    if not names:
        raise UsageError("name a log to download, for example kth; --list prints the names")
    if sha256 is not None and (len(names) > 1 or re.fullmatch(r"[0-9a-fA-F]{64}", sha256) is None):
        raise UsageError("--sha256 is the 64 hexadecimal digits of one log: give one NAME")
    found = dict.fromkeys(find_published(name) or find_log(name) for name in names)
    patience = Patience(tries=tries, timeout=timeout, max_time=max_time, speed_limit=speed_limit, speed_time=speed_time)
    check_directory(output)
    for published in found:
        expected = sha256.lower() if sha256 is not None else published.sha256
        _download_log(published, output / published.file, base_url, expected, patience)


def _list() -> None:
    from policyfactory.workload.swf.download import KNOWN_LOGS
    from policyfactory.workload.tables.mapping import PUBLISHED

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
            [log.name, log.form, f"{log.size / 1e6:,.0f}" if log.size else "-", "yes" if log.sha256 else "-"]
            for log in PUBLISHED.values()
        ],
        left=(0, 1, 3),
    )


def _download_log(
    log: KnownLog | PublishedTable, path: Path, base_url: str, sha256: str | None, patience: Patience
) -> None:
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    from policyfactory.workload.swf.download import download as fetch
    from policyfactory.workload.tables.mapping import PublishedTable

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
    say(f"{result.path}: {held}{what}")
    say(f"SHA-256 {result.sha256} ({trust})")
    if table is None:
        note(f"cite the archive and the site when you use it: {log.page}")
        return
    from policyfactory.workload.tables.mapping import stock_mapping

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
        from policyfactory.workload.tables.mapping import check_beginning

        check_beginning(path, table)
        return ""
    from policyfactory.workload.swf.files import read_swf

    return f"{len(read_swf(path)):,} jobs, "
