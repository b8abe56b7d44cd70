"""From a protocol, or the options that make one, to the results on the terminal and in their folder."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from policyfactory.core.artefact import Manifest, check_directory, command_line, dump_json, exclusive, unchanged
from policyfactory.core.errors import OutputError, PolicyfactoryError, UsageError
from policyfactory.core.journal import partial_path
from policyfactory.evaluate.plain import of_logs, plain_content
from policyfactory.parallel.workers import Notify, Workers
from policyfactory.report.terminal import console, note, note_kept, progress, warn

if TYPE_CHECKING:
    from policyfactory.evaluate.experiment import Experiment, SimulationProgress
    from policyfactory.evaluate.logs import ReadLog
    from policyfactory.evaluate.protocol import Protocol
    from policyfactory.evaluate.starts import StartsWriter
    from policyfactory.evaluate.study import Study
    from policyfactory.evaluate.tally import Tally

__all__ = ["Request", "log_tables", "run_content", "run_options", "run_protocols"]

_RESULTS = "results"
_OURS = ("results.csv", "evaluation.json", "report.html")
_PARTIAL = "evaluation"


@dataclasses.dataclass(frozen=True, slots=True)
class Request:
    """The options that are about the run, not about what is run; ``options`` are those of `RUN_OPTIONS`."""

    output: Path | None
    overwrite: bool
    starts: str
    workers: Workers
    options: Mapping[str, Any]
    as_json: bool


def run_options(paths: Sequence[Path], options: dict[str, Any], request: Request) -> None:
    """Evaluate policies on plain logs."""
    if request.output is None and options["analyses"] is None:
        options["analyses"] = []
    run_content(plain_content(options, log_tables(paths), "command"), request)


def log_tables(paths: Sequence[Path]) -> dict[str, Mapping[str, Any]]:
    """Return the tables of the logs in files; without any, of the embedded workload."""
    from policyfactory.workload.swf.files import log_name

    if not paths:
        return {"lublin-256": {"embedded": True}}
    return of_logs((log_name(path), {"file": str(path)}) for path in paths)


def run_content(content: dict[str, Any], request: Request, *, shown: Sequence[str] = ()) -> None:
    """Run a protocol that was made from options; ``shown`` are analyses that are printed too."""
    from policyfactory.core.toml import dump_toml
    from policyfactory.evaluate.protocol import protocol_of

    protocol = protocol_of(content)
    text = _headed(dump_toml(content), _narrowing(request))
    _run(_Work(protocol, text, request.output, shown=tuple(shown)), request)


def run_protocols(
    paths: Sequence[Path],
    request: Request,
    only: tuple[Sequence[str], Sequence[str]],
    traces: Path | None,
    changes: Mapping[str, Any],
) -> None:
    """Run protocols one after the other.

    ``only`` are the experiments and the logs that are asked for, ``traces`` the folder of the logs, ``changes`` the
    seed and the number of resampled logs that are used in place of the protocol's own.
    """
    for path in paths:
        work = _of_protocol(path, request, only, changes)
        work = dataclasses.replace(work, folders=(traces or Path("traces"),))
        if len(paths) > 1:
            folder = _RESULTS if request.output is None else request.output
            work = dataclasses.replace(work, output=Path(folder) / work.protocol.name)
            _heading(f"{path}: {work.protocol.title}")
        _run(work, request)


def _of_protocol(
    path: Path, request: Request, only: tuple[Sequence[str], Sequence[str]], changes: Mapping[str, Any]
) -> _Work:
    from policyfactory.core.toml import dump_toml
    from policyfactory.evaluate.protocol import MAX_BYTES, protocol_of, read_content
    from policyfactory.evaluate.study import selected

    with unchanged(path, limit=MAX_BYTES):
        content = read_content(path)
        written = path.read_text(encoding="utf-8")
    changed = _changed(content, changes["seed"], changes["resamples"])
    protocol = selected(protocol_of(content, path), *only)
    if changes["resamples"] is not None and not any(plan.table.resample for plan in protocol.experiments):
        note(f"{path}: no experiment draws resampled logs, so --resamples changes nothing")
    text = dump_toml(content) if changed else written
    output = Path(_RESULTS) / protocol.name if request.output is None else request.output
    beside = [f"--only {name}" for name in only[0]] + [f"--log {name}" for name in only[1]]
    beside += [f"--{name} {changes[name]}" for name in ("seed", "resamples") if changes[name] is not None]
    return _Work(protocol, _headed(text, [*beside, *_narrowing(request)]), output)


def _narrowing(request: Request) -> list[str]:
    precision = request.options["precision"]
    if precision is None:
        return []
    return [f"--precision {precision.strip()}", f"--max-resamples {request.options['max_resamples']}"]


def _headed(text: str, beside: Sequence[str]) -> str:
    """Return a protocol with what was asked for beside it; not the whole command, which may differ in its folders."""
    from policyfactory.core.text import visible

    return f"# As run, with {visible(' '.join(beside))}\n{text}" if beside else text


def _changed(content: dict[str, Any], seed: int | None, resamples: int | None) -> bool:
    """Put what was asked for on the command line into a protocol; return whether that changed it."""
    changed = seed is not None and content.get("seed") != seed
    if seed is not None:
        content["seed"] = seed
    experiments = content.get("experiments")
    for table in experiments if resamples is not None and isinstance(experiments, list) else ():
        drawn = table.get("resample") if isinstance(table, dict) else None
        if isinstance(drawn, dict) and drawn.get("count") != resamples:
            drawn["count"] = resamples
            changed = True
    return changed


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class _Work:
    """A protocol, its text as it is run, the folder of the results, those of the logs, and analyses to be printed."""

    protocol: Protocol
    text: str
    output: Path | None
    folders: tuple[Path, ...] = ()
    shown: tuple[str, ...] = ()


def _run(work: _Work, request: Request) -> None:
    if work.output is None:
        if request.starts != "none":
            raise UsageError(f"--starts {request.starts} writes files; name their folder with --output DIR")
        study, manifest = _study(work, request, None)
        _show(study, manifest, work.shown, as_json=request.as_json)
        return
    _refuse_earlier(work.output, overwrite=request.overwrite)
    from policyfactory.evaluate.results_folder import write_report
    from policyfactory.report.page import caution_of

    with _folder(work.output), exclusive(work.output / "results.csv"):
        writer = _starts_writer(work, request)
        study, manifest = _study(work, request, writer)
        written = write_report(study, work.output, manifest, work.text, _start_files(study, writer))
        partial_path(work.output / _PARTIAL).unlink(missing_ok=True)
    _show(study, manifest, work.shown, as_json=request.as_json)
    if caution := caution_of(work.output / "report.html"):
        warn(caution)
    folders = [f"{outcome.experiment.name}/" for outcome in study.outcomes]
    folders += ["claims/"] * bool(study.claims) + ["starts/"] * (writer is not None)
    note(f"{work.output}/: {', '.join([*written, *folders])}")


@contextlib.contextmanager
def _folder(output: Path) -> Iterator[None]:
    """Make the folder of the results; a run that fails leaves none that is empty."""
    made = [folder for folder in (output, *output.parents) if not folder.exists()]
    check_directory(output)
    try:
        yield
    except BaseException:
        with contextlib.suppress(OSError):
            for folder in made:
                folder.rmdir()
        raise


def _refuse_earlier(output: Path, *, overwrite: bool) -> None:
    from policyfactory.evaluate.results_folder import listed

    if partial_path(output / _PARTIAL).exists():
        return  # a run that did not come to its end, maybe while it wrote: whose it is, is looked at later
    there = [name for name in _OURS if (output / name).exists()]
    if (there or listed(output)) and not overwrite:
        raise OutputError(
            f"{output}: holds an evaluation ({', '.join(there) or 'manifest.json'}); add --overwrite to replace it, or "
            "name another folder with --output"
        )


def _starts_writer(work: _Work, request: Request) -> StartsWriter | None:
    from policyfactory.evaluate.starts import StartsWriter, file_names

    if request.starts == "none" or work.output is None:
        return None
    plans = work.protocol.experiments
    if len(plans) > 1:
        raise UsageError(
            f"--starts writes the starts of one experiment, and there are {len(plans)}; name it with --only"
        )
    return StartsWriter(
        work.output / "starts",
        "batsim" if request.starts == "batsim" else "csv",
        file_names(plans[0].logs),
        file_names(plans[0].policies),
    )


def _start_files(study: Study, writer: StartsWriter | None) -> list[Path]:
    if writer is None:
        return []
    evaluations = [outcome.evaluation for outcome in study.outcomes]
    return [writer.path(case, name) for one in evaluations for case in one.cases for name in one.policies]


def _study(work: _Work, request: Request, writer: StartsWriter | None) -> tuple[Study, Manifest]:
    from policyfactory.evaluate.precision import Precision
    from policyfactory.evaluate.results_folder import protocol_dict
    from policyfactory.evaluate.study import RunSettings, read_logs, run_protocol
    from policyfactory.evaluate.tally import Tally
    from policyfactory.evaluate.words import rules_in_words

    precision = Precision.of(request.options, "command")
    tally = Tally(request.workers)
    partial = None if work.output is None else partial_path(work.output / _PARTIAL)
    try:
        logs = read_logs(work.protocol, work.folders, _note_cleaning)
        for plan in work.protocol.experiments:
            named = f"{plan.name}: " if len(work.protocol.experiments) > 1 else ""
            note(f"{named}{rules_in_words(plan.experiment.rules, plan.times_longest, plan.sensitivity)}")
        how = RunSettings(
            request.workers,
            precision,
            writer,
            partial=partial,
            overwrite=request.overwrite,
            beside={"starts": request.starts},
        )
        study = _with_progress(
            tally,
            lambda follow, notify: run_protocol(
                work.protocol, logs, dataclasses.replace(how, progress=follow, notify=notify)
            ),
        )
    except (KeyboardInterrupt, PolicyfactoryError) as stop:
        if tally.finished and partial is not None:
            note_kept(stop, f"{tally.finished:,} finished simulations", partial)
        elif isinstance(stop, KeyboardInterrupt):
            more = "" if partial is not None else "; with --output DIR the same command would go on from here"
            stop.add_note(f"no result was written{more}")
        raise
    hashes = {name: digest for log in logs.values() for name, digest in log.hashes.items()}
    hashes |= work.protocol.hashes
    parameters = protocol_dict(study)
    return study, Manifest("evaluation", command_line(), work.protocol.seed, hashes, parameters, tally.measured())


def _note_cleaning(log: ReadLog) -> None:
    for line in log.notes:
        note(line)


def _with_progress(tally: Tally, work: Callable[[Callable[[Experiment], SimulationProgress], Notify], Study]) -> Study:
    from rich.progress import TextColumn

    from policyfactory.cli.screen import CountBar

    with progress(TextColumn("{task.fields[speed]}")) as bar:
        # Through the bar's own console, which prints above it.
        return work(
            lambda experiment: tally.counting(CountBar(bar, f"{experiment.name}: simulations", "jobs/s")),
            lambda sentence: bar.console.print(sentence, markup=False, soft_wrap=True),
        )


def _heading(text: str) -> None:
    from rich.text import Text

    from policyfactory.core.text import visible

    console().rule(Text(visible(text)), align="left")


def _show(study: Study, manifest: Manifest, shown: Sequence[str], *, as_json: bool) -> None:
    from policyfactory.evaluate.described import section_dict
    from policyfactory.evaluate.results_folder import as_dict
    from policyfactory.report.terminal import show_sections, show_standings

    if as_json:
        printed = {
            section.name: section_dict(section)
            for outcome in study.outcomes
            for section in outcome.sections
            if section.name in shown
        }
        typer.echo(dump_json({**as_dict(study), **printed, "manifest": manifest.as_dict()}), nl=False)
        return
    several = len(study.outcomes) > 1
    for outcome in study.outcomes:
        if several:
            _heading(outcome.experiment.title)
        show_standings(outcome.sections)
        show_sections(outcome.sections, names=shown)
    if study.claims:
        _heading(study.claims[0].title)
        show_sections(study.claims, names=["claims"])
