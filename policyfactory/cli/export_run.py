"""The work of ``policyfactory export``: make the files, write them, say what to do with them, show the preview."""

from __future__ import annotations

import dataclasses
import datetime as dt
import difflib
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import typer

from policyfactory.core.artefact import atomic_write, check_directory, check_output, dump_json, read_bytes, sha256_bytes
from policyfactory.core.errors import InputError, OutputError, UsageError
from policyfactory.core.units import DAY, format_duration
from policyfactory.core.version import __version__
from policyfactory.export.compressed import Made, make_with_few_ties
from policyfactory.export.expressible import left_out, prepare
from policyfactory.export.preview import Preview
from policyfactory.export.queue import Queue
from policyfactory.export.queue_file import LARGEST_FILE, read_queue
from policyfactory.export.sample import Sample, sample_of, wide_sample
from policyfactory.export.scale import LARGEST, MOST_TIES
from policyfactory.export.targets import TARGETS, Export, Site, Target, instructions
from policyfactory.policy.catalogue import ALIASES, CATALOGUE, resolve_model
from policyfactory.policy.policy import Policy
from policyfactory.policy.store import Model
from policyfactory.report.terminal import console, note, show_table, warn
from policyfactory.workload.accounting.times import shown
from policyfactory.workload.swf.header import counts_nodes, printable

if TYPE_CHECKING:
    from policyfactory.workload.swf.log import SwfLog

__all__ = ["Request", "carry_out"]

_MOST_ROWS = 60
# Of a folder, and of a file, that are looked at for an earlier export.
_MOST_FILES = 1000
_HEAD = 4096


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
    given : frozenset of str
        Options that were given, of those that can change the files.
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
    weight : int or None
        Largest whole number of a score.
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
    verbose : bool
        Whether all that stands in the head of the files is printed.
    """

    model: str
    target: str
    command: str
    given: frozenset[str]
    output: Path | None
    overwrite: bool
    epoch: int | Literal["oldest-waiting"] | None
    threshold: float | None
    processors: int | None
    nodes: int | None
    weight: int | None
    workload: Path | None
    estimate_missing: str
    begin: int | None
    life: int
    preview: str | None
    at: int | None
    zone: dt.tzinfo | None
    as_json: bool
    verbose: bool


def carry_out(request: Request) -> None:
    """Make the export; write it, or print it where no output and no preview is asked for."""
    target = _target(request.target)
    origin = _origin(request.model)
    model = prepare(
        _model(request.model),
        epoch=request.epoch,
        processors=request.processors,
        threshold=request.threshold,
    )
    if _origin(request.model) != origin:
        raise InputError(f"{request.model}: was changed while it was read; run the command again")
    _check_epoch(model.policy, request)
    if request.weight is not None and not 2 <= request.weight <= LARGEST:
        raise UsageError(f"--weight {request.weight}: give a whole number from 2 to {LARGEST:,}")
    queue = None if request.preview is None else _queue(request.preview, request)
    site = Site(
        lambda: _sample(request, model.policy),
        request.processors,
        request.command,
        origin,
        request.nodes,
        request.weight or LARGEST,
    )
    done = make_with_few_ties(target, model, site)
    made = done.export
    if request.weight is not None and made.scale is None:
        raise UsageError(f"--weight: {target.name} makes no whole numbers of the scores of {model.policy.name}")
    if request.workload is not None and made.install and not _drawn(site):
        from policyfactory.workload.swf.files import read_swf

        _tell_unit(read_swf(request.workload))
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
    else:
        _advise(made, [path for path, _, _ in files], verbose=request.verbose)
    _tell_stale(request, [path for path, _, _ in files])
    _tell_sample(request, made, model.policy, site)
    _tell_ties(done, model.policy, site, request)
    for text in left_out(model.policy, made.limits):
        warn(text)
    for text in model.warnings:
        warn(f"of the fit: {printable(text, 400)}")


def _target(name: str) -> Target:
    if name in TARGETS:
        return TARGETS[name]
    # slurm-lua means those that have both words.
    near = [one for one in TARGETS if set(name.split("-")) <= set(one.split("-"))]
    near = near or difflib.get_close_matches(name[:60], TARGETS, n=2, cutoff=0.5)
    hint = f"did you mean {' or '.join(near)}? The targets are" if 0 < len(near) <= 3 else "the targets are"
    known = "".join(f"\n  {one}" for one in TARGETS)
    raise UsageError(f"unknown target {name[:60]!a}; {hint}{known}")


def _model(spec: str) -> Model:
    """Return the model; a folder is no model, but what `learn` makes has one in it."""
    folder = Path(spec)
    name = spec.strip().upper()
    if ALIASES.get(name, name) not in CATALOGUE and len(spec) <= 1000 and spec.isprintable() and folder.is_dir():
        inside = folder / "policy.json"
        hint = f"did you mean {inside}?" if inside.is_file() else "name a model file in it"
        raise UsageError(f"{printable(spec, 300)}: that is a folder; {hint}")
    return resolve_model(spec)


def _now() -> int:
    """Return the present Unix time: for messages, never for files."""
    return int(time.time())


def _check_epoch(policy: Policy, request: Request) -> None:
    """Refuse to count from a day that has not come: r would stay at its least value until then."""
    epoch = policy.epoch.unix_time
    if "r" in policy.variables and epoch is not None and epoch > _now() + DAY:
        whose = "--epoch" if request.epoch is not None else f"the epoch of {printable(policy.name)}"
        raise UsageError(
            f"{whose} {shown(epoch, dt.UTC)} is in the future, so that all jobs until then would count as submitted at "
            "once; give a day that has come (a later first day of use is --begin DATE)"
        )


def _origin(spec: str) -> str:
    """Return where the model is from, with the digest of its file."""
    path = Path(spec)
    if path.suffix.lower() == ".json" and path.is_file():
        return f"{path.name}, SHA-256 {sha256_bytes(read_bytes(path))}"
    return f"catalogue of policyfactory {__version__}"


def _sample(request: Request, policy: Policy) -> Sample:
    """Return the jobs over whose scores the whole numbers are spread; called by the targets that need them."""
    if request.workload is None:
        return wide_sample(policy, begin=request.begin, life=request.life)
    from policyfactory.workload.clean import clean
    from policyfactory.workload.swf.files import read_swf

    log = read_swf(request.workload)
    workload = clean(log, estimate_missing=request.estimate_missing, processors=request.processors)
    note(workload.cleaning.totals())
    _tell_unit(log)
    return sample_of(workload, policy, begin=request.begin, life=request.life)


def _drawn(site: Site) -> bool:
    """Tell whether the target looked at jobs; `Site.sample` is kept once it was asked for."""
    return "sample" in vars(site)


def _tell_unit(log: SwfLog) -> None:
    if counts_nodes(log.header):
        warn(
            f"{printable(log.path, 300)} counts whole nodes, and the scheduler's script counts processors as q: import "
            "the log with --unit cpus, and learn the formula from that"
        )


def _tell_sample(request: Request, made: Export, policy: Policy, site: Site) -> None:
    """Say which jobs the export was measured on, for how long it holds, and which options changed nothing."""
    drawn = _drawn(site)
    moves = "r" in policy.variables
    if drawn and request.workload is None:
        what = "the range of scores is that of" if made.scale is not None else "it was measured on jobs of"
        spread = ", spread over the policy's life" if moves else ""
        note(f"no --workload LOG: {what} the model workload{spread}")
    unused = [] if moves else [name for name in ("--epoch", "--begin", "--life") if name in request.given]
    if unused:
        note(f"without effect, as the formula of {printable(policy.name)} has no r: {', '.join(unused)}")
    elsewhere = [("--workload", drawn), ("--nodes", request.target == "slurm-weights")]
    if idle := [name for name, used in elsewhere if name in request.given and not used]:
        note(f"without effect for {request.target}: {', '.join(idle)}")
    epoch = policy.epoch.unix_time
    if made.scale is not None and moves and epoch is not None:
        begin = epoch if request.begin is None else request.begin
        end = begin + request.life
        if end < _now():
            warn(
                f"the range of scores was learnt for submissions from {shown(begin, dt.UTC)} to {shown(end, dt.UTC)}, "
                "which is over; give the day from which it is used (--begin DATE) or a longer --life"
            )


def _tell_stale(request: Request, written: list[Path]) -> None:
    """Name files of earlier exports that stay beside the new ones: they are not removed, as they may be in use."""
    if not written or not request.overwrite or request.output is None or not request.output.is_dir():
        return
    stale = []
    for path in sorted(request.output.iterdir())[:_MOST_FILES]:
        if path in written or not path.is_file():
            continue
        try:
            with path.open("rb") as file:
                ours = b"policyfactory" in file.read(_HEAD)
        except OSError:
            continue
        if ours:
            stale.append(printable(path.name))
    if stale:
        warn(
            f"{printable(str(request.output), 300)} has files of another export as well, which stay: {', '.join(stale)}"
        )


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


def _advise(made: Export, written: list[Path], *, verbose: bool) -> None:
    """Say what must be done with the files and what they cannot do; all of it stands in their heads."""
    if verbose:
        lines = instructions(made.settings, made.install, made.rollback, made.limits)
    else:
        lines = instructions(made.settings)
        if made.install:
            at = next((i for i, file in enumerate(made.files) if "oll back" in file.text), 0)
            head = str(written[at]) if written else "the file"
            lines += [
                "",
                f"How to install it, how to roll back, and its limits: see the head of {head} (or --verbose).",
            ]
    if lines:
        note("\n".join([*lines, ""]).lstrip("\n"))


def _tell_ties(done: Made, policy: Policy, site: Site, request: Request) -> None:
    """Say how well whole numbers keep the scores apart."""
    scale = done.export.scale
    if scale is None or done.ties is None:
        return
    how = "" if done.policy is policy else " on a scale of logarithms, which keeps more of them apart in the same order"
    note(f"scores {scale.low:g} to {scale.high:g} are spread over the whole numbers to {scale.largest:,}{how}")
    said = f"of neighbouring scores of {len(site.sample):,} jobs share a whole number, where submit time decides"
    note(f"ties: {100 * done.ties:.2g} % {said}")
    if done.ties > MOST_TIES:
        cures = [] if request.weight is None or request.weight == LARGEST else ["a larger --weight"]
        cures += [] if request.workload is not None else ["the cluster's own jobs (--workload LOG)"]
        cures += ["a shorter --life", "the day from which it is used (--begin DATE)"] if "r" in policy.variables else []
        warn("more than 1 % ties" + (f": give {' or '.join(cures)}" if cures else ""))


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
    return preview(made, policy, queue, request.processors, target=request.target)


def _show(found: Preview, policy: Policy, *, as_json: bool) -> None:
    rows = found.rows()
    if as_json:
        content: dict[str, Any] = {"policy": policy.name, "at": found.queue.now, "summary": found.summary()}
        content["compared"] = found.compared
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
    console().print(found.compared, markup=False, soft_wrap=True)


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
