"""``policyfactory site``: a cluster's own files as a site file; which jobs fit; how near a replay is; why jobs wait."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from policyfactory.cli.options import READING, EndOption, Json, Overwrite, leave, note_compiling, with_options
from policyfactory.cli.options import PastLog as Log
from policyfactory.cli.review import OutputOption, ZoneOption, refuse_to_replace, write
from policyfactory.cli.review import show as show_review
from policyfactory.core.files import Manifest, check_file, dump_json, exclusive, together
from policyfactory.core.text import format_duration
from policyfactory.evaluation.options import OPTIONS
from policyfactory.report.terminal import note, percent_bar, print_json, say, show_table, warn

if TYPE_CHECKING:
    from policyfactory.simulation.slurm.explanation import ExplainedJob, QueueExplanation
    from policyfactory.site.fits import SiteFit
    from policyfactory.site.model import Site
    from policyfactory.workload.jobs import Workload
    from policyfactory.workload.snapshot import Snapshot

SiteOption = Annotated[Path, typer.Argument(metavar="SITE", help="A site file (TOML).", show_default=False)]


@with_options(OPTIONS[name] for name in READING)
def replay(
    log: Annotated[
        Path,
        typer.Argument(metavar="LOG", help="The site's log, with its starts (SWF, also .gz).", show_default=False),
    ],
    path: SiteOption,
    output: OutputOption = None,
    start: Annotated[
        str | None,
        typer.Option(
            "--from", metavar="DATE", help="Only jobs from this time on: 30d after the first job, or a date 2026-05-01."
        ),
    ] = None,
    end: EndOption = None,
    json: Json = False,
    overwrite: Overwrite = False,
    **reading: Any,
) -> None:
    """Simulate the log's own jobs on its site, and say how near the waits are to the recorded ones.

    By partition and QOS, and with the cores in use over time. Where it is too far from the record, nothing that is
    simulated on this site is to be trusted, and what is probably missing is told. A replay whose queue runs away is
    stopped, and what holds its jobs is named.

    Example: policyfactory site replay site.swf.gz site.toml --output replayed
    """
    from policyfactory.evaluation.fidelity.compare import fidelity, sections_of, verdict_of
    from policyfactory.site.file import site_and_digest
    from policyfactory.workload.clean import read

    refuse_to_replace(output, overwrite=overwrite)
    site, digest = site_and_digest(path)
    workload = read(log, **reading).between(start, end)
    note_assumed(workload)
    with percent_bar("replayed twice, %", note_compiling) as follow:
        found = fidelity(workload, site, twice=True, progress=lambda done: follow(done / (2 * len(workload))))
    verdict, sections = verdict_of(found), sections_of(found)
    text = dump_json(found.as_dict())
    if json:
        typer.echo(text, nl=False)
    else:
        # The load over time is for the page, and the verdict says in words what is missing.
        show_review(verdict, [section for section in sections if section.name == "fidelity"])
    if output is not None:
        inputs = {str(log): workload.cleaning.sha256, str(path): digest}
        parameters = {"from": start, "to": end, **reading}
        title = f"{workload.name} on site {site.name}, under the site's priorities"
        write(output, title, verdict, sections, inputs, parameters, {"fidelity.json": text}, overwrite=overwrite)
    elif not json:
        note("add --output DIR for a page with pictures")
    leave(describes=found.light != "far")


def note_assumed(workload: Workload) -> None:
    """Say what was assumed of the jobs (``--assume``), and first if most of the log's were dropped."""
    if workload.cleaning.warning:
        warn(workload.cleaning.warning)
    for text in () if workload.requests is None else workload.requests.assumed:
        note(text)


# ``policyfactory site`` -----------------------------------------------------------------------------------------------


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
    time_zone: ZoneOption = None,
    slurm_version: Annotated[
        str | None,
        typer.Option(
            metavar="VERSION",
            help="Slurm's version, whose defaults hold for what slurm.conf does not say, and whose rules are simulated "
            "(default: what scontrol show config says, else 24.11): 22.05.",
            show_default=False,
        ),
    ] = None,
    overwrite: Overwrite = False,
) -> None:
    """Make a site file of a cluster's own files, and list every setting that matters and is not modelled.

    Example: policyfactory site import slurm.conf --sacctmgr dump.cfg --qos qos.txt --output site.toml
    """
    from policyfactory.site.file import write_site
    from policyfactory.site.slurm.site import Reports, import_slurm
    from policyfactory.workload.accounting.times import Clock, find_zone, machine_zone

    clock = Clock(machine_zone()[0] if time_zone is None else find_zone(time_zone))
    if output is not None:
        check_file(output, "its manifest")
    with exclusive(output, overwrite=overwrite):
        reports = Reports(sacctmgr, qos, events, reservations)
        site, inputs = import_slurm(configuration, reports, clock, slurm_version)
        if output is not None:
            with together():
                write_site(site, output)
                known = {"not_modelled": len(site.not_modelled), "remarks": list(site.remarks)}
                parameters = {"slurm_version": slurm_version, **known}
                Manifest.write_beside(output, "site", None, inputs=inputs, parameters=parameters)
    _show(site)
    note("nothing was written; add --output site.toml" if output is None else f"written: {output}")


app.command("replay")(replay)


@app.command()
def show(path: SiteOption, json: Json = False) -> None:
    """Show a site: partitions, settings that are not the defaults, limits, and what is not modelled.

    Example: policyfactory site show site.toml
    """
    from policyfactory.site.file import read_site
    from policyfactory.site.show import not_modelled_rows, partition_rows, setting_rows

    site = read_site(path)
    if not json:
        _show(site)
        return
    rows = {"partitions": partition_rows, "settings": setting_rows, "not_modelled": not_modelled_rows}
    shown = {name: make(site) for name, make in rows.items()}
    passes = site.scheduling
    rules = {"slurm_version": passes.slurm_version, "simulated": passes.rules_version, "said": passes.rules_in_words}
    content = {"schema_version": 1, "name": site.name, **shown, "rules": rules, "remarks": list(site.remarks)}
    print_json(content)


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
        say("nothing that is known to matter was left out")
    for remark in (site.scheduling.rules_in_words, *site.remarks):
        say(remark)


@app.command()
@with_options(OPTIONS[name] for name in READING)
def check(
    log: Log,
    path: SiteOption,
    json: Json = False,
    **reading: Any,
) -> None:
    """Say how many jobs of a log a site could run, by partition, and why it could not run the others.

    Example: policyfactory site check site.swf.gz site.toml
    """
    from policyfactory.simulation.slurm.jobs import fit_to
    from policyfactory.site.file import read_site
    from policyfactory.workload.clean import read

    site = read_site(path)
    workload = read(log, **reading)
    note_assumed(workload)
    fit = fit_to(site, workload)
    if json:
        print_json(fit.as_dict())
    else:
        _show_fit(fit, site.name)
    if fit.other_cluster:
        warn(
            f"most jobs do not fit ({fit.jobs - fit.fitting:,} of {fit.jobs:,}): is this log of another cluster than "
            f"{site.name}?"
        )
    leave(describes=not fit.other_cluster)


def _show_fit(fit: SiteFit, name: str) -> None:
    rows = [
        [partition.name, f"{partition.jobs:,}", f"{partition.fitting:,}", _percent(partition.fitting, partition.jobs)]
        for partition in fit.partitions
    ]
    rows.append(["all", f"{fit.jobs:,}", f"{fit.fitting:,}", _percent(fit.fitting, fit.jobs)])
    show_table(f"jobs that {name} could run", ["partition", "jobs", "fit", "%"], rows)
    if fit.reasons:
        show_table("why others do not fit", ["beyond", "jobs"], [[why, f"{n:,}"] for why, n in fit.reasons.items()])
        show_table("the first of them", ["job", "why"], [[str(job), why] for job, why in fit.first], left=(1,))
    for text in fit.unknown:
        say(f"- {text}")


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f}" if whole else "-"


# Why jobs wait --------------------------------------------------------------------------------------------------------


@app.command()
def explain(
    path: Annotated[Path, typer.Option("--site", help="The cluster's site file.", show_default=False)],
    queue: Annotated[
        Path,
        typer.Option(
            help="Its queue: what squeue --json or scontrol -o show job prints (docs/site.md); - is stdin.",
            show_default=False,
        ),
    ],
    job: Annotated[str | None, typer.Option(metavar="ID", help="Explain this job.")] = None,
    before: Annotated[
        str | None, typer.Option(metavar="ID", help="With --job: why that job is before this one, or after it.")
    ] = None,
    sshare: Annotated[
        Path | None, typer.Option(help="Fair share of users: what sshare -a -l -P printed then.", show_default=False)
    ] = None,
    taken: Annotated[
        str | None, typer.Option(metavar="TIME", help="When the queue was printed, if the file does not say it.")
    ] = None,
    time_zone: ZoneOption = None,
    json: Json = False,
) -> None:
    """Say what the jobs of a queue wait for, why one is before another, and when each would start.

    By the site's rules: limits, nodes, reservations, the queue's order and the backfilling pass. A priority is told
    term by term, as sprio has it. Jobs would start so if all ran to their limits and nobody submitted any more.

    Example: policyfactory site explain --site site.toml --queue queue.json --job 4711 --before 4712
    """
    from policyfactory.core.errors import UsageError
    from policyfactory.simulation.slurm.explanation import explain_queue
    from policyfactory.site.file import read_site
    from policyfactory.site.slurm.accounts import read_fair_shares

    if before is not None and job is None:
        raise UsageError("--before needs --job: the job that is to be before or after it")
    site = read_site(path)
    snapshot = read_queue(queue, path, time_zone, taken)
    note_compiling()
    found = explain_queue(snapshot, site, None if sshare is None else read_fair_shares(sshare))
    if job is None:
        if json:
            print_json(found.as_dict())
        else:
            _show_queue(found)
        return
    explained, other = found.find(job), None if before is None else found.find(before)
    if explained is None or (before is not None and other is None):
        running = job if explained is None else before
        raise UsageError(f"job {running} runs, and waits for nothing; squeue -t PENDING lists those that wait")
    order = None if other is None else found.order(explained, other)
    alone = found.alone(explained)
    if json:
        more = {} if order is None else {"order": dataclasses.asdict(order)}
        shown = {"schema_version": 1, **explained.as_dict(), "alone": alone, **more, "assumed": list(found.assumed)}
        print_json(shown)
        return
    _show_job(explained, alone, snapshot.taken)
    if order is None:
        rows = [[name, f"{value:,.0f}"] for name, value in explained.terms.items()]
        if rows:
            show_table("its priority, by the columns of sprio", ["term", "value"], rows)
    else:
        rows = [[name, *(f"{v:,.0f}" for v in (*both, both[0] - both[1]))] for name, both in order.terms.items()]
        show_table(f"job {order.first} is before job {order.second}", ["term", order.first, order.second, "more"], rows)
        say(order.why)
    _show_assumed(found)


_SAME_TIME = 60  # seconds between two files that are written one after the other


def read_queue(queue: Path, site: Path | None, time_zone: str | None, taken: str | None) -> Snapshot:
    """Return the queue; warn if it is older than the site."""
    from policyfactory.workload.accounting.times import Clock, find_zone, machine_zone, parse_date
    from policyfactory.workload.snapshot import read_snapshot

    zone = machine_zone()[0] if time_zone is None else find_zone(time_zone)
    snapshot = read_snapshot(queue, Clock(zone), None if taken is None else parse_date(taken, zone, "--taken"))
    if site is not None and str(queue) != "-" and site.stat().st_mtime > snapshot.taken + _SAME_TIME:
        warn(
            f"the queue in {queue} is older than the site file {site}: limits and nodes may have been others; "
            "take the snapshot again"
        )
    return snapshot


def _show_queue(found: QueueExplanation) -> None:
    taken = found.queue.snapshot.taken
    tiers = {partition.name: partition.tier for partition in found.queue.site.partitions}
    several = len({*tiers.values()}) > 1
    heads = ["job", "user", *["tier"] * several, "partition", "priority", "waits for", "starts in"]
    rows = []
    for explained in found.jobs:
        priority = "-" if explained.job.priority is None else f"{explained.job.priority:,}"
        waits = f"never: {explained.waits[0].short}" if explained.waits[0].kind == "never" else explained.waits[0].short
        where = [*[f"{tiers[explained.partition]}"] * several, explained.partition]
        start = _in_time(explained.start, taken)
        rows.append([explained.job.name, explained.job.user, *where, priority, waits, start])
    title = f"{len(found.jobs):,} waiting jobs on {found.queue.site.name}, in the order of the queue"
    if rows:
        show_table(title, heads, rows, left=(0, 1, 2 + several, 4 + several))
    else:
        say(f"no job waits on {found.queue.site.name}")
    _show_assumed(found)


def _show_job(explained: ExplainedJob, alone: int | None, taken: int) -> None:
    job = explained.job
    position = f"number {explained.position:,} of the queue" if explained.position else "not in the queue"
    why = f"; Slurm says {job.reason}" if job.reason else ""
    text = f"job {job.name} of {job.user or '(no user)'} in partition {explained.partition}: {position}{why}"
    say(text, style="bold")
    for wait in explained.waits:
        say(f"- {wait.text}")
    start, by_itself = _in_time(explained.start, taken), _in_time(alone, taken)
    told = "would never start" if explained.waits[0].kind == "never" else "when it would start cannot be told"
    say(f"would start in {start} if all ran to their limits" if explained.start else told)
    if alone is not None and alone != explained.start:
        say(f"would start in {by_itself} if no other job waited")


def _show_assumed(found: QueueExplanation) -> None:
    for text in found.assumed:
        note(f"assumed: {text}")


def _in_time(start: int | None, taken: int) -> str:
    return "-" if start is None else format_duration(max(start - taken, 0))
