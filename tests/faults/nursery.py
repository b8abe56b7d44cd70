"""Starts commands as processes of their own without the seconds that imports take: ``python nursery.py``.

It imports the package once and then makes a copy of itself (fork) for each command. Requests are lines of JSON on
stdin, answers lines on stdout.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import signal
import sys
from pathlib import Path
from typing import Any

# What changes files; each is seen before it is done.
_EVENTS = {
    "fcntl.flock", "open", "os.chmod", "os.link", "os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.truncate",
}  # fmt: skip


def warm() -> None:
    """Import what commands import when they need it."""
    import matplotlib.backends.backend_agg
    import matplotlib.figure  # noqa: F401
    import pandas as pd  # noqa: F401
    import rich.progress
    import rich.table  # noqa: F401
    import scipy.stats  # noqa: F401
    import sympy  # noqa: F401

    import policyfactory.cli.evaluate
    import policyfactory.engine.easy
    import policyfactory.engine.trials
    import policyfactory.evaluation.results_folder
    import policyfactory.evaluation.study
    import policyfactory.exports.export
    import policyfactory.fitting.fits
    import policyfactory.trials.files
    import policyfactory.workload.clean
    import policyfactory.workload.swf.scan  # noqa: F401
    from policyfactory.cli.main import build_app

    build_app()


def say(what: object) -> None:
    """Answer with a line."""
    sys.stdout.write(f"{what}\n")
    sys.stdout.flush()


def serve() -> dict[str, Any]:
    """Answer requests; return one in the process that is to carry it out."""
    for line in sys.stdin:
        request = json.loads(line)
        if "wait" in request:
            _, status = os.waitpid(request["wait"], 0)
            say(os.waitstatus_to_exitcode(status))
            continue
        child = os.fork()
        if not child:
            return dict(request)
        say(child)
    sys.exit()


def become(request: dict[str, Any]) -> None:
    """Make this process what the request asks for."""
    os.setsid()
    os.chdir(request["folder"])
    for number, name, flags in (
        (0, os.devnull, os.O_RDONLY),
        (1, request["out"], os.O_WRONLY),
        (2, request["err"], os.O_WRONLY),
    ):
        handle = os.open(name, flags | os.O_CREAT | os.O_TRUNC * bool(number), 0o600)
        os.dup2(handle, number)
        os.close(handle)
    os.environ.update(request["environment"])
    if (largest := request["largest_file"]) is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (largest, largest))
    if (fuse := request["fuse"]) is not None:
        light(fuse, request["folder"])
    sys.argv = ["policyfactory", *request["arguments"]]


def light(fuse: int, folder: str) -> None:
    """Kill this process when it is about to do the ``fuse``-th thing that changes files in its folder."""
    left = [fuse]

    def burn() -> None:
        left[0] -= 1
        if not left[0]:
            os.kill(os.getpid(), signal.SIGKILL)

    def watch(event: str, arguments: tuple[Any, ...]) -> None:
        if event not in _EVENTS:
            return
        if event == "open":
            path, _, flags = arguments
            if not isinstance(path, str | os.PathLike) or not flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
                return
            if not Path(os.path.abspath(path)).is_relative_to(folder):  # noqa: PTH100 (resolve() would follow links)
                return
        burn()

    fsync = os.fsync

    def watched(handle: int) -> None:
        burn()
        fsync(handle)

    os.fsync = watched
    sys.addaudithook(watch)


if __name__ == "__main__":
    from policyfactory.cli.main import run

    warm()
    # What is there is of no interest to the collector of the copies: they would copy all pages at their end.
    gc.freeze()
    say("ready")
    request = serve()
    become(request)
    if not request["brief"]:
        run()
        sys.exit()
    code: object = None
    try:
        run()
    except SystemExit as end:
        code = end.code
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code if isinstance(code, int) else 0)
