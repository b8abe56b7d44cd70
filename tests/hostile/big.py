"""Files that are large, or unpack to more than there is, and numbers that are: read in a process of its own.

``python -m hostile.big FOLDER`` prints what each reader said, the seconds that it took and the peak of memory in MB, as
JSON; more than 1 GiB of memory is refused by the system (see `hostile.fuzz`).
"""

# ruff: noqa: T201, BLE001 (a program: it tells whatever it finds)

from __future__ import annotations

import contextlib
import gzip
import io
import json
import multiprocessing
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from hostile.fuzz import limit_memory, peak_memory
from hostile.seeds import FILETXT, PBS, PREDICTIONS, SACCT, SCORES, SWF
from hostile.targets import TARGETS
from policyfactory.cli.main import run
from policyfactory.core.errors import PolicyfactoryError
from support import NIGHTLY

__all__ = ["FIELD_VALUES", "LINES", "main"]

_LINE = 100_000_000
# All of it in the night; by day what differs most.
_ALL_LINES = {"digits": b"1", "numbers": b"1 ", "ends": b"\n", "points": b".", "nesting": b"[", "cells": b"1,"}
LINES = {name: unit for name, unit in _ALL_LINES.items() if NIGHTLY or name == "cells"}
READERS = ("swf", "sacct", "scores", "predictions", "model", "protocol", "queue", "journal")
BEGINNINGS = {
    "sacct": SACCT[0], "pbs": PBS[0], "filetxt": FILETXT[0], "sacct-json": b'{"jobs":[', "swf": SWF[0],
    "scores": SCORES[0], "predictions": PREDICTIONS[0],
}  # fmt: skip
# Of the kinds of accounting that go on as a bomb, those that are tried by day.
BOMBS = {("zeros", "pbs"), ("ends", "pbs"), ("jobs", "sacct"), ("zeros", "filetxt"), ("ends", "sacct-json")}
FIELD_VALUES = ["1e17", "1000000000", "1000000000000000000", "9" * 400, "1e400", "nan", "inf"][: None if NIGHTLY else 1]
# The fields of a job in which a number matters: submit, wait, run, processors, request, user.
FIELDS = (1, 2, 3, 4, 7, 8, 11) if NIGHTLY else (7,)


def _bombs(folder: Path) -> Iterator[tuple[str, str, Path]]:
    """Give packed files of some hundred kilobytes that unpack to ten gigabytes."""
    job = b"1 0 0 1 1 0 0 1 1 0 1 1 1 1 1 1 -1 -1\n"
    for name, text in {"zeros": b"\0", "ends": b"\n", "blanks": b" \n", "jobs": job, "comments": b";\n"}.items():
        if not NIGHTLY and name in {"blanks", "comments"}:
            continue
        member = gzip.compress(text * ((8 << 20) // len(text)), mtime=0) * 1200
        path = folder / f"bomb-{name}.gz"
        path.write_bytes(member)
        for reader in ("swf", "sacct"):
            yield f"{reader} bomb of {name}", reader, path
        for reader, begin in (
            ("sacct", SACCT[0]),
            ("pbs", PBS[0]),
            ("filetxt", FILETXT[0]),
            ("sacct-json", b'{"jobs":['),
        ):
            if not NIGHTLY and (name, reader) not in BOMBS:
                continue
            path.write_bytes(gzip.compress(begin) + member)
            yield f"{reader} that goes on as a bomb of {name}", reader, path
    nested = gzip.compress(gzip.compress(gzip.compress(SWF[0])))
    (folder / "nested.gz").write_bytes(nested)
    for reader in ("swf", "sacct"):
        yield f"{reader} nested", reader, folder / "nested.gz"


def _lines(folder: Path) -> Iterator[tuple[str, str, Path]]:
    """Give files that are one line of 100 MB; one of each kind for all readers."""
    for name, unit in LINES.items():
        path = folder / f"line-of-{name}"
        with path.open("wb") as file:
            for _ in range(100):
                file.write(unit * (_LINE // 100 // len(unit)))
        for reader in READERS:
            yield f"{reader} line of {name}", reader, path
        for reader, begin in BEGINNINGS.items():
            with path.open("r+b") as file:
                file.write(begin)
            yield f"{reader} that goes on as a line of {name}", reader, path
        path.unlink()


def _logs(folder: Path) -> Iterator[tuple[str, list[str]]]:
    """Give commands on logs in which one field of one job is as large as a number can be."""
    path = folder / "large.swf"
    head, *jobs = SWF[0].decode().rpartition("; Note")[0], *SWF[0].decode().split("\n")[8:11]
    for place in FIELDS:
        for value in FIELD_VALUES:
            cells = jobs[1].split()
            cells[place] = value
            for machine in ([], ["--processors", "1000000000"]):
                if bool(machine) != (place in {4, 7}) and not NIGHTLY:
                    continue
                text = head.replace("; MaxProcs: 64\n", "").replace("; MaxNodes: 64\n", "") if machine else head
                path.write_text("\n".join([text.rstrip("\n"), jobs[0], " ".join(cells), jobs[2], ""]))
                options = ["--estimate-missing", "runtime", *machine]
                for command in (
                    ["workload", "show", str(path)],
                    [
                        "evaluate",
                        str(path),
                        "--policies",
                        "FCFS,SAF",
                        "--output",
                        str(folder / "out"),
                        "--overwrite",
                        *options,
                    ],
                ):
                    yield f"{' '.join(command[:2])}, field {place} = {value[:20]} {' '.join(machine)}", command


def _endless(folder: Path) -> Iterator[tuple[str, list[str]]]:
    """Give commands on logs that unpack to 250 times their size, and on endless devices."""
    columns, job, *_ = SACCT[0].decode().split("\n")
    for name, begin, row in (
        ("mild.swf.gz", "; MaxProcs: 64", "{} 0 0 1 1 0 0 1 1 0 1 1 1 1 1 1 -1 -1\n"),
        ("mild.txt.gz", columns, "{}" + job.removeprefix("11") + "\n"),
    ):
        rows = "".join(row.format(n) + row.format(7) * 400 for n in range(900_000, 900_280))
        (folder / name).write_bytes(gzip.compress(f"{begin}\n".encode()) + gzip.compress(rows.encode(), 9) * 190)
    for kind in ("toml", "json", "csv", "swf", "txt"):
        (folder / f"z.{kind}").symlink_to("/dev/zero")
    log = folder / "small.swf"
    log.write_bytes(SWF[0])
    for words in (
        ("workload", "show", "mild.swf.gz"),
        ("workload", "import", "mild.txt.gz"),
        ("workload", "show", "z.swf"),
        ("workload", "import", "z.txt"),
        ("evaluate", "z.toml"),
        ("evaluate", "small.swf", "--policies", "FCFS,./z.json", "--estimate-missing", "runtime"),
        ("policy", "show", "./z.json"),
        ("fit", "z.csv"),
        ("export", "./z.json", "--to", "c"),
    ):
        yield f"{' '.join(words)}", list(words)


def _measured(name: str, call: Callable[[], str]) -> dict[str, object]:
    print(name, end=": ", file=sys.stderr, flush=True)
    began = time.process_time()
    try:
        said = call()
    except PolicyfactoryError as error:
        said = str(error)
    except Exception as error:
        said = f"FAULT {type(error).__name__}: {error}"
    print(f"{time.process_time() - began:.1f} s: {said[:100]!r}", file=sys.stderr, flush=True)
    return {"said": said[:500], "seconds": round(time.process_time() - began, 2)}


def _command(arguments: list[str]) -> str:
    sys.argv = ["policyfactory", *arguments]
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            run()
        except SystemExit as stop:
            return f"exit {stop.code or 0} {err.getvalue()}"
    return "exit 0"


def _compile(folder: Path) -> None:
    """Run the commands that need compiled kernels, once, with all the memory that there is."""
    for _, arguments in _logs(folder):
        with contextlib.suppress(PolicyfactoryError):
            _command(arguments)


def main(folder: Path) -> None:
    """Try all of them and print what came of it."""
    # The compiler takes some hundred megabytes where the cache is cold; what is measured is what the input takes.
    first = multiprocessing.get_context("spawn").Process(target=_compile, args=(folder,))
    first.start()
    first.join()
    limit_memory()
    output: dict[str, dict[str, object]] = {}
    for makes in (_bombs, _lines):
        for name, reader, path in makes(folder):
            target = TARGETS[reader]
            place = folder / reader / target.file
            place.parent.mkdir(exist_ok=True)
            place.unlink(missing_ok=True)
            place.hardlink_to(path)
            output[name] = _measured(name, lambda target=target, place=place: target.call(place))  # type: ignore[misc]
            place.unlink()
    # Before the evaluations, whose libraries no command that reads so much has loaded.
    started = Path.cwd()
    os.chdir(folder)
    for name, arguments in _endless(folder):
        output[name] = _measured(name, lambda arguments=arguments: _command(arguments))  # type: ignore[misc]
    os.chdir(started)
    for name, arguments in _logs(folder):
        output[name] = _measured(name, lambda arguments=arguments: _command(arguments))  # type: ignore[misc]
    print(json.dumps({"peak": round(peak_memory()), "output": output}, indent=1))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
