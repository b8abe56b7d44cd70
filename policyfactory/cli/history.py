"""``policyfactory history``: what a scheduler knows of its users' recent jobs, for predictions at submission."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from policyfactory.report.terminal import note

__all__ = ["app"]

app = typer.Typer(
    help="Keep what a scheduler knows of its users' recent jobs, for an export that predicts.", no_args_is_help=True
)


@app.command()
def update(
    accounting: Annotated[
        Path,
        typer.Argument(metavar="SACCT", help="Output of sacct -P with the jobs since the last update; - is stdin."),
    ],
    output: Annotated[
        Path, typer.Option("--state", metavar="FILE", help="The history, made if there is none; beside it FILE.key.")
    ],
    at: Annotated[
        str | None,
        typer.Option(metavar="DATE", help="Up to when: what happened later waits. Without it a second ago."),
    ] = None,
    time_zone: Annotated[
        str | None,
        typer.Option(help="Zone of times that have none (default: this machine's): Europe/Berlin."),
    ] = None,
    users: Annotated[int, typer.Option(metavar="N", help="Keep this many users, those seen last.")] = 5_000,
    renew: Annotated[
        bool,
        typer.Option(
            "--renew",
            help="Print commands for sh that score the waiting jobs of users of whom a job has ended since.",
        ),
    ] = False,
    verbose: Annotated[bool, typer.Option("--verbose", help="Say what was done; cron mails what is said.")] = False,
) -> None:
    """Bring the history of the users' jobs up to date; for cron.

    Names are kept as hashes under the key in FILE.key. The file is replaced as a whole, so that a script may read it at
    any time; its size is bounded.
    """
    from policyfactory.core.outputs import check_file, exclusive
    from policyfactory.export.options import instant
    from policyfactory.predict.history import HistoryLimits
    from policyfactory.predict.history_file import hash_with, key_of, read_history, write_history
    from policyfactory.predict.history_update import read_jobs
    from policyfactory.predict.history_update import update as bring_up
    from policyfactory.workload.accounting.times import find_zone, machine_zone

    limits = HistoryLimits(users=users)
    zone = machine_zone()[0] if time_zone is None else find_zone(time_zone)
    until = instant("--at", at, zone)
    check_file(output, "its key")
    with exclusive(output):
        # Of the second in which sacct printed, more may come.
        now = int(time.time()) - 1 if until is None else until
        jobs = read_jobs(accounting, zone)
        hashed = hash_with(key_of(output))
        history = read_history(output, hashed)
        done = bring_up(history, jobs, now, hashed, limits)
        write_history(history, output, hashed)
    if renew:
        from policyfactory.export.slurm.renewal import renewal_commands

        for command in renewal_commands(done.changed):
            typer.echo(command)
    if verbose:
        users = len(history.users) + len(history.asleep)
        note(
            f"written: {output}, {users:,} users; {done.ended:,} jobs have ended since the last update, "
            f"{done.waiting:,} wait and {done.running:,} run"
        )
