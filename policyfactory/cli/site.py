"""``policyfactory site``: a cluster's own files as a site file; what it has; which jobs fit; how near a replay is."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from policyfactory.cli import site_replay
from policyfactory.cli.evaluate_options import with_options
from policyfactory.cli.exits import leave
from policyfactory.cli.learning_options import READING, Log
from policyfactory.cli.site_replay import JsonOption, SiteOption, note_assumed
from policyfactory.core.artefact import Manifest, command_line, dump_json
from policyfactory.core.files import digest_of, together
from policyfactory.core.outputs import check_file, exclusive, refuse_earlier
from policyfactory.evaluate.plain import OPTIONS
from policyfactory.report.terminal import console, note, show_table, warn

if TYPE_CHECKING:
    from policyfactory.site.fits import Fit
    from policyfactory.site.model import Site

__all__ = ["app"]

app = typer.Typer(
    help="The cluster itself: its partitions, nodes, limits and scheduler settings as a site file.",
    no_args_is_help=True,
)


@app.command("import")
def import_site(
    configuration: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="slurm.conf with the files that it includes, or what scontrol show config, show node and show "
            "partition print.",
            show_default=False,
        ),
    ],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Site file to write; without it only the account.")
    ] = None,
    sacctmgr: Annotated[
        Path | None, typer.Option(help="Accounts, shares, limits: the file of sacctmgr dump CLUSTER.")
    ] = None,
    qos: Annotated[Path | None, typer.Option(help="QOS: what sacctmgr -P show qos prints.")] = None,
    events: Annotated[
        Path | None, typer.Option(help="Nodes that were away: what sacctmgr -P show event prints.")
    ] = None,
    reservations: Annotated[
        Path | None, typer.Option(help="Reservations: what scontrol -o show reservation prints.")
    ] = None,
    time_zone: Annotated[
        str | None,
        typer.Option(help="Zone of the times of events and reservations (default: this machine's): Europe/Berlin."),
    ] = None,
    slurm_version: Annotated[
        str | None,
        typer.Option(
            help="Of Slurm, whose defaults hold for what slurm.conf does not say (default: what scontrol show config "
            "says, else the newest that is known): 24.11.",
            show_default=False,
        ),
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an earlier file.")] = False,
) -> None:
    """Make a site file of a cluster's own files, and list every setting that matters and is not modelled."""
    from policyfactory.site.file import write_site
    from policyfactory.site.slurm.site import Reports, import_slurm
    from policyfactory.workload.accounting.times import Clock, find_zone, machine_zone

    clock = Clock(machine_zone()[0] if time_zone is None else find_zone(time_zone))
    if output is not None:
        check_file(output, "its manifest")
    with exclusive(output):
        refuse_earlier(output, overwrite=overwrite)
        reports = Reports(sacctmgr, qos, events, reservations)
        site, inputs = import_slurm(configuration, reports, clock, slurm_version)
        if output is not None:
            with together():
                write_site(site, output)
                Manifest(
                    "site",
                    command_line(),
                    None,
                    inputs=inputs,
                    parameters={
                        "slurm_version": slurm_version,
                        "not_modelled": len(site.not_modelled),
                        "remarks": list(site.remarks),
                    },
                    outputs={output.name: digest_of(output)},
                ).write(Manifest.path_for(output))
    _show(site)
    note("nothing was written; add --output site.toml" if output is None else f"written: {output}")


app.command("replay")(site_replay.replay)


@app.command()
def show(path: SiteOption, json: JsonOption = False) -> None:
    """Show a site: partitions, settings that are not the defaults, limits, and what is not modelled."""
    from policyfactory.site.file import read_site
    from policyfactory.site.show import not_modelled_rows, partition_rows, setting_rows

    site = read_site(path)
    if not json:
        _show(site)
        return
    rows = {"partitions": partition_rows, "settings": setting_rows, "not_modelled": not_modelled_rows}
    shown = {name: make(site) for name, make in rows.items()}
    console().file.write(dump_json({"schema_version": 1, "name": site.name, **shown, "remarks": list(site.remarks)}))


def _show(site: Site) -> None:
    from policyfactory.site.show import (
        NOT_MODELLED,
        PARTITIONS,
        limit_rows,
        not_modelled_rows,
        partition_rows,
        setting_rows,
        summary,
    )

    show_table(summary(site), PARTITIONS, partition_rows(site), left=(0, 8))
    for title, columns, rows in (
        ("settings that are not the defaults", ["setting", "value", "default"], setting_rows(site)),
        ("limits", ["of", "limits"], limit_rows(site)),
        ("there, and not modelled", NOT_MODELLED, not_modelled_rows(site)),
    ):
        if rows:
            show_table(title, columns, rows, left=tuple(range(len(columns))))
    if not site.not_modelled:
        console().print("nothing that is known to matter was left out", markup=False)
    for remark in site.remarks:
        console().print(remark, markup=False, soft_wrap=True)


@app.command()
@with_options(OPTIONS[name] for name in READING)
def check(
    log: Log,
    path: SiteOption,
    json: JsonOption = False,
    **reading: Any,
) -> None:
    """Say how many jobs of a log a site could run, by partition, and why it could not run the others."""
    from policyfactory.simulate.slurm.jobs import fit_to
    from policyfactory.site.file import read_site
    from policyfactory.workload.clean import read

    site = read_site(path)
    workload = read(log, **reading)
    note_assumed(workload)
    fit = fit_to(site, workload)
    if json:
        console().file.write(dump_json(fit.as_dict()))
    else:
        _show_fit(fit, site.name)
    if fit.other_cluster:
        warn(
            f"most jobs do not fit ({fit.jobs - fit.fitting:,} of {fit.jobs:,}): is this log of another cluster than "
            f"{site.name}?"
        )
    leave(describes=not fit.other_cluster)


def _show_fit(fit: Fit, name: str) -> None:
    rows = [[one.name, f"{one.jobs:,}", f"{one.fitting:,}", _percent(one.fitting, one.jobs)] for one in fit.partitions]
    rows.append(["all", f"{fit.jobs:,}", f"{fit.fitting:,}", _percent(fit.fitting, fit.jobs)])
    show_table(f"jobs that {name} could run", ["partition", "jobs", "fit", "%"], rows)
    if fit.reasons:
        show_table("why others do not fit", ["beyond", "jobs"], [[why, f"{n:,}"] for why, n in fit.reasons.items()])
        show_table("the first of them", ["job", "why"], [[str(job), why] for job, why in fit.first], left=(1,))
    out = console()
    for text in fit.unknown:
        out.print(f"- {text}", markup=False, soft_wrap=True)


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f}" if whole else "-"
