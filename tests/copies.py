"""Processes that use kernels, without the second that importing numba takes: copies of one that has it imported.

To what is kept of machine code, and to what they import, they are processes like any other.
"""

from __future__ import annotations

import atexit
import functools
import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from support import ROOT

__all__ = ["run_code"]


@functools.cache
def _server() -> subprocess.Popen[str]:
    words = [sys.executable, str(Path(__file__)), str(ROOT)]
    server = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    atexit.register(server.communicate)  # the end of its input ends it
    return server


def run_code(
    code: str, folder: Path, environment: Mapping[str, str], places: Sequence[Path] = ()
) -> subprocess.CompletedProcess[str]:
    """Run code in a folder, in a process that has this environment; nothing that it imports is kept as bytecode.

    ``places`` are where it looks for modules first.
    """
    server = _server()
    assert server.stdin is not None
    assert server.stdout is not None
    with tempfile.TemporaryDirectory() as streams:
        out, err = Path(streams, "out"), Path(streams, "err")
        request = {"code": code, "folder": str(folder), "environment": dict(environment), "out": str(out)}
        request |= {"err": str(err), "places": list(map(str, places))}
        server.stdin.write(json.dumps(request) + "\n")
        server.stdin.flush()
        ended = int(server.stdout.readline())
        return subprocess.CompletedProcess(code, ended, out.read_text(), err.read_text())


def _serve() -> None:
    import os

    import numba

    import policyfactory.core.jit  # noqa: F401

    numba.njit(lambda n: n + 1.0)(1)  # what numba does at its first function takes as long as its import
    for line in sys.stdin:
        request = json.loads(line)
        child = os.fork()
        if child:
            sys.stdout.write(f"{os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])}\n")
            sys.stdout.flush()
            continue
        for number, name in enumerate((os.devnull, request["out"], request["err"])):
            os.dup2(os.open(name, os.O_RDWR | os.O_CREAT, 0o600), number)
        os.chdir(request["folder"])
        os.environ.clear()
        os.environ.update(request["environment"])
        sys.path[:0] = request["places"]
        sys.dont_write_bytecode = True
        exec(compile(request["code"], "<code>", "exec"), {"__name__": "__main__"})
        return


if __name__ == "__main__":
    sys.path[0] = sys.argv[1]  # instead of the folder of this file
    _serve()
