"""``policyfactory predict``: predict the jobs of a log from what has ended before, and say how good that is."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import typer

from policyfactory.cli import options as option
from policyfactory.cli.options import with_options
from policyfactory.cli.review import ZoneOption
from policyfactory.core.options import declared, options_of
from policyfactory.evaluation.options import OPTIONS
from policyfactory.prediction.options import PredictorOptions
from policyfactory.report.terminal import note, percent_bar, print_json, show_sections, warn

_USERS = "users"


@with_options([*declared(PredictorOptions).values(), *(OPTIONS[name] for name in option.READING)])
def predict(
    log: option.PastLog,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="DIR", help="Folder for page, tables, predictions (CSV) and the last model."
        ),
    ] = None,
    policy: Annotated[
        str, typer.Option(metavar="NAME|FILE", help="Order of the queue in the simulation that is the past.")
    ] = "FCFS",
    model: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A model.json of an earlier run, used as it is: nothing is trained."),
    ] = None,
    leave_out: Annotated[
        list[str] | None,
        typer.Option(
            "--leave-out",
            metavar="NAME",
            help="What is not looked at, though the log has it: requested_memory, group, executable, queue, partition; "
            "can be repeated.",
        ),
    ] = None,
    as_json: option.Json = False,
    overwrite: option.Overwrite = False,
    **options: Any,
) -> None:
    """Predict each job's run time when it is submitted, and say how good that is.

    The log is simulated, and a model is trained again and again on what has ended by then. Beside it are the requests
    and simple rules from the same past.

    Example: policyfactory predict site.swf.gz --output predicted
    """
    from policyfactory.review.predictions import IN_FULL, SEEN, as_dict, sections_of
    from policyfactory.review.predictions import predict as predict_jobs

    how = options_of(PredictorOptions, options)
    with percent_bar(f"{log.name}: % of the jobs") as progress:
        found = predict_jobs(
            *(log, policy, how),
            model=model,
            leave_out=leave_out or (),
            progress=progress,
            output=output,
            overwrite=overwrite,
            **options,
        )
    if as_json:
        print_json(as_dict(found))
    else:
        show_sections([section for section in sections_of(found) if section.name != IN_FULL])
    if found.seen:
        warn(f"{model}: {SEEN[0].lower()}{SEEN[1:]}")
    if found.workload.cleaning.warning:
        warn(found.workload.cleaning.warning)
    for text in found.missing:
        if text.startswith(_USERS):
            warn(f"{log} does not say its {text}")
    if output is not None:
        files = "report.html, accuracy.json, predictions.csv" + (", model.json" if found.trained else "")
        note(f"everything is in {output}/: {files}, and a CSV file of each table")


# ``policyfactory history`` --------------------------------------------------------------------------------------------

# What a scheduler knows of its users' recent jobs, for predictions at submission.


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
    moment: Annotated[
        str | None,
        typer.Option("--at", metavar="DATE", help="Up to when: what happened later waits. Without it a second ago."),
    ] = None,
    time_zone: ZoneOption = None,
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

    Example: policyfactory history update sacct.txt --state history
    """
    from policyfactory.core.files import check_file, exclusive
    from policyfactory.exports.options import instant
    from policyfactory.prediction.history import HistoryLimits
    from policyfactory.prediction.history_file import hash_with, key_of, read_history, read_jobs, write_history
    from policyfactory.prediction.history_file import update as bring_up
    from policyfactory.workload.accounting.times import find_zone, machine_zone

    limits = HistoryLimits(users=users)
    zone = machine_zone()[0] if time_zone is None else find_zone(time_zone)
    until = instant("--at", moment, zone)
    check_file(output, "its key")
    with exclusive(output):
        # Of the second in which sacct printed, more may come.
        now = int(time.time()) - 1 if until is None else until
        jobs = read_jobs(accounting, zone, warn)
        hashed = hash_with(key_of(output))
        history = read_history(output, hashed)
        done = bring_up(history, jobs, now, hashed, limits)
        write_history(history, output, hashed)
    if renew:
        from policyfactory.exports.slurm.job_submit import renewal_commands

        for command in renewal_commands(done.changed):
            typer.echo(command)
    if verbose:
        users = len(history.users) + len(history.asleep)
        note(
            f"written: {output}, {users:,} users; {done.ended:,} jobs have ended since the last update, "
            f"{done.waiting:,} wait and {done.running:,} run"
        )
