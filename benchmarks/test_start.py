"""Start-up of each command, and CPU seconds and memory of its smallest real run, each in a process of its own.

    pytest benchmarks/test_start.py --benchmark-enable -s

CPU seconds, the best of three; the byte code and the kernels are compiled before.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from floors import record

SHARED = Path(os.environ.get("POLICYFACTORY_SHARED", Path(__file__).resolve().parents[2] / "shared"))
TABLE = Path(__file__).resolve().parents[1] / "training_data" / "lublin-256.csv"

# Runs the command as the console script does, then says what it took.
CODE = """
import atexit, json, os, sys
def told():
    status = open('/proc/self/status').read().splitlines()
    peak = next(int(line.split()[1]) for line in status if line.startswith('VmHWM'))
    own, children = os.times()[:2], os.times()[2:4]
    open(sys.argv.pop(), 'w').write(json.dumps([sum(own) + sum(children), peak * 1024]))
path = sys.argv.pop(1)
def write():
    sys.argv.append(path)
    told()
atexit.register(write)
from policyfactory.cli.main import run
run()
"""

COMMANDS = ("generate", "fit", "evaluate", "tune", "learn", "export", "demo", "workload", "policy")
SMALLEST = {
    "workload lublin": ["workload", "lublin", "--jobs", "1000", "--processors", "64", "--output", "{tmp}/w.swf"],
    "workload show": ["workload", "show", "{log}"],
    "policy show F1": ["policy", "show", "F1"],
    "generate, 2 tuples": ["generate", "--tuples", "2", "--trials", "1000", "--output", "{tmp}/t.csv"],
    "fit": ["fit", "{table}", "--output", "{tmp}/fit.json"],
    "evaluate, 100 jobs": [
        "evaluate",
        "{log}",
        "--policies",
        "FCFS,SAF",
        "--estimate-missing",
        "runtime",
        "--output",
        "{tmp}/e",
    ],
    "export to Lua": ["export", "SAF", "--to", "lua", "--output", "{tmp}/saf.lua"],
}


def cost(arguments: list[str], folder: Path, limit: float = 120) -> tuple[float, int]:
    """Return CPU seconds and the largest memory of a command in bytes; skip what takes over ``limit`` seconds."""
    output = folder / "told.json"
    command = [sys.executable, "-c", CODE, str(output), *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder, timeout=limit)
    except subprocess.TimeoutExpired:
        pytest.skip(f"not measured, over {limit:g} s: policyfactory {' '.join(arguments)}")
    assert done.returncode == 0, done.stderr
    seconds, peak = json.loads(output.read_text())
    return seconds, peak


@pytest.mark.parametrize(
    "arguments", [["--version"], ["--help"], *([name, "--help"] for name in COMMANDS)], ids=" ".join
)
def test_start(benchmark: Any, tmp_path: Path, arguments: list[str]) -> None:
    if not benchmark.enabled:
        pytest.skip("tests/cli has it")
    benchmark.pedantic(lambda: None, rounds=1)
    runs = [cost(arguments, tmp_path) for _ in range(4)][1:]
    least = 0.2 if arguments == ["--version"] else 1.0
    record("start-up", " ".join(arguments), min(runs)[0], "CPU s", ceiling=least)


@pytest.mark.parametrize("name", SMALLEST)
def test_smallest_run(benchmark: Any, tmp_path: Path, name: str) -> None:
    if not benchmark.enabled:
        pytest.skip("tests/cli has it")
    benchmark.pedantic(lambda: None, rounds=1)
    log = tmp_path / "log.swf"
    cost(["workload", "lublin", "--jobs", "100", "--processors", "64", "--output", str(log)], tmp_path)
    runs = []
    for number in range(4):
        folder = tmp_path / str(number)
        folder.mkdir()
        places = {"tmp": folder, "log": log, "table": TABLE}
        runs.append(cost([argument.format(**places) for argument in SMALLEST[name]], folder))
    record("smallest real run", name, min(runs[1:])[0], "CPU s")
    record("peak memory", f"{name} (smallest run)", min(run[1] for run in runs) / 1e6, "MB")
