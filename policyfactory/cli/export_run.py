"""The work of ``policyfactory export``: make the files, write them, say what to do with them, show the preview."""

from __future__ import annotations

import dataclasses
import datetime as dt
import sys
from pathlib import Path
from typing import Any, Literal

import typer

from policyfactory import __version__
from policyfactory.cli.console import console, note, show_table, warn
from policyfactory.core.artefact import atomic_write, check_directory, check_output, dump_json, read_bytes, sha256_bytes
from policyfactory.core.errors import OutputError, UsageError
from policyfactory.core.units import format_duration
from policyfactory.export import TARGETS, Export, Sample, Site, prepare
from policyfactory.export.compressed import Made, make
from policyfactory.export.preview import Preview
from policyfactory.export.queue import Queue
from policyfactory.export.queue_file import LARGEST_FILE, read_queue
from policyfactory.export.score_range import MOST_TIES, sample_of, wide_sample
from policyfactory.export.targets import instructions
from policyfactory.policy.catalogue import resolve_model
from policyfactory.policy.policy import Policy
from policyfactory.policy.store import Model
from policyfactory.workload.header import printable

__all__ = ["Request", "carry_out"]

_MOST_ROWS = 60


@dataclasses.dataclass(frozen=True, slots=True)
class Request:
    """What the command line asks for.

    Parameters
    ----------
    model : str
        Catalogue name or model file.
    target : str
        Name of the target.
    command : str
        For the header of the files.
    output : Path or None
        File or folder; None is stdout.
    overwrite : bool
        Whether earlier files may be replaced.
    epoch : int, "oldest-waiting" or None
        Unix time (s) from which r counts, or the rule.
    threshold : float or None
        Of the policy, s.
    begin, at : int or None
        Unix times, s.
    processors, nodes : int or None
        Size of the machine.
    workload : Path or None
        Log of the cluster.
    estimate_missing : {"error", "runtime", "drop"}
        Jobs of the log without a requested time.
    life : int
        Life of the policy, s.
    preview : str or None
        File with the queue; ``-`` is stdin.
    zone : tzinfo or None
        Of the queue's times.
    as_json : bool
        Whether the preview is JSON.
    """

    model: str
    target: str
    command: str
    output: Path | None
    overwrite: bool
    epoch: int | Literal["oldest-waiting"] | None
    threshold: float | None
    processors: int | None
    nodes: int | None
    workload: Path | None
    estimate_missing: str
    begin: int | None
    life: int
    preview: str | None
    at: int | None
    zone: dt.tzinfo | None
    as_json: bool


def carry_out(request: Request) -> None:
    """Make the export; write it, or print it where no output and no preview is asked for."""
    if request.target not in TARGETS:
        known = "; ".join(f"{name}: {one.description}" for name, one in TARGETS.items())
        raise UsageError(f"unknown target {request.target!a}; choose one of {known}")
    target = TARGETS[request.target]
    model = prepare(
        resolve_model(request.model),
        epoch=request.epoch,
        processors=request.processors,
        threshold=request.threshold,
    )
    queue = None if request.preview is None else _queue(request.preview, request)
    origin = _origin(request.model)
    site = Site(lambda: _sample(request, model.policy), request.processors, request.command, origin, request.nodes)
    done = make(target, model, site)
    made = done.export
    files = _places(request, made)
    for path, content, executable in files:
        atomic_write(path, content)
        if executable:
            path.chmod(path.stat().st_mode | 0o111)
        note(f"wrote {path}: {model.policy.name} as {target.description}")
    if not files and queue is None:
        typer.echo(made.text, nl=False)
    if queue is not None:
        _show(_preview(made, model, queue, request), model.policy, as_json=request.as_json)
    if files or queue is None:
        _advise(made)
    _tell_ties(done, model.policy, site)
    for text in model.warnings:
        warn(f"of the fit: {printable(text, 400)}")


def _origin(spec: str) -> str:
    """Return where the model is from, with the digest of its file."""
    path = Path(spec)
    if path.suffix.lower() == ".json" and path.is_file():
        return f"{path.name}, SHA-256 {sha256_bytes(read_bytes(path))}"
    return f"catalogue of policyfactory {__version__}"


def _sample(request: Request, policy: Policy) -> Sample:
    """Return the jobs over whose scores the whole numbers are spread; called by the targets that need them."""
    if request.workload is None:
        note("no --workload LOG: the range of scores is that of the model workload, spread over the policy's life")
        return wide_sample(policy, begin=request.begin, life=request.life)
    from policyfactory.workload.clean import load_workload

    workload, account = load_workload(
        request.workload, estimate_missing=request.estimate_missing, machine=request.processors
    )
    note(account.totals())
    return sample_of(workload, policy, begin=request.begin, life=request.life)


def _places(request: Request, made: Export) -> list[tuple[Path, str, bool]]:
    """Return path, content and kind of every file to write; nothing is written yet."""
    output = request.output
    if output is None:
        if len(made.files) > 1 and request.preview is None:
            names = ", ".join(file.name for file in made.files)
            raise UsageError(f"{request.target} has {len(made.files)} files ({names}); name a folder: --output FOLDER")
        return []
    if len(made.files) > 1 or output.is_dir():
        if output.exists() and not output.is_dir():
            raise OutputError(f"{output}: is a file, and {request.target} has {len(made.files)} files; name a folder")
        paths = [output / file.name for file in made.files]
    else:
        paths = [output]
    present = [path for path in paths if path.exists()]
    if present and not request.overwrite:
        raise OutputError(f"{present[0]}: exists; add --overwrite to replace it, or name another output")
    if len(made.files) > 1:
        check_directory(output)
    for path in paths:
        check_output(path)
    return [(path, file.text, file.executable) for path, file in zip(paths, made.files, strict=True)]


def _advise(made: Export) -> None:
    """Say what must be done with the files and what they can not do; the same stands in their headers."""
    lines = instructions(made.settings, made.install, made.rollback, made.limits)
    if lines:
        note("\n".join([*lines, ""]).lstrip("\n"))


def _tell_ties(done: Made, policy: Policy, site: Site) -> None:
    """Say how well whole numbers keep the scores apart."""
    scale = done.export.scale
    if scale is None or done.ties is None:
        return
    how = "" if done.policy is policy else " on a scale of logarithms, which keeps more of them apart in the same order"
    note(f"scores {scale.low:g} to {scale.high:g} are spread over the whole numbers{how}")
    said = f"of neighbouring scores of {len(site.sample):,} jobs share a whole number, where submit time decides"
    note(f"ties: {100 * done.ties:.2g} % {said}")
    if done.ties > MOST_TIES:
        warn(
            "more than 1 % ties: give the cluster's own jobs (--workload LOG), a shorter --life, or the day from which "
            "it is used (--begin DATE)"
        )


def _queue(name: str, request: Request) -> Queue:
    """Read the queue, and say what was taken for granted."""
    place = "stdin" if name == "-" else name
    data = sys.stdin.buffer.read(LARGEST_FILE + 1) if name == "-" else read_bytes(Path(name), limit=LARGEST_FILE)
    queue, notes = read_queue(data, place, at=request.at, zone=request.zone)
    for line in notes:
        note(line)
    return queue


def _preview(made: Export, model: Model, queue: Queue, request: Request) -> Preview:
    from policyfactory.export.preview import preview

    policy = model.policy
    if "r" in policy.variables and policy.epoch.rule == "window-start":
        note("preview: r counts from the job that has waited longest, as the policy has no date (--epoch)")
    return preview(made, policy, queue, request.processors)


def _show(found: Preview, policy: Policy, *, as_json: bool) -> None:
    rows = found.rows()
    if as_json:
        content: dict[str, Any] = {"policy": policy.name, "at": found.queue.now, "summary": found.summary()}
        typer.echo(dump_json({**content, "jobs": rows}), nl=False)
        return
    columns = ["place", "today", "moves", "job", "user", "limit", "q", "waited", "score", "priority"]
    more = len(rows) - _MOST_ROWS
    today = "its priorities" if found.queue.priority is not None else "submit time"
    show_table(
        f"The queue by {printable(policy.name)}; today it is sorted by {today}",
        columns,
        [_cells(row, score) for row, score in zip(rows[:_MOST_ROWS], found.scores[found.order].tolist(), strict=False)],
        caption=f"and {more:,} more; --json has all" if more > 0 else None,
        left=(3, 4),
    )
    for line in found.summary():
        console().print(printable(line, 400), markup=False, soft_wrap=True)
    console().print("Backfilling may start a job before those ahead of it.", markup=False)


def _cells(row: dict[str, Any], score: float) -> list[str]:
    up = row["up"]
    return [
        str(row["place"]),
        str(row["today"]),
        "=" if up == 0 else f"{'up' if up > 0 else 'down'} {abs(up)}",
        printable(row["job"], 40),
        printable(row["user"], 20),
        format_duration(row["p"]),
        str(row["q"]),
        format_duration(row["waited"]) + (" late" if row["overdue"] else ""),
        f"{score:.6g}",
        f"{row['priority']:.10g}",
    ]
