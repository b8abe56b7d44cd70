"""Names of files that are no UTF-8, as inputs and outputs of each command: used, shown escaped, never a traceback."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from accounting_logs import job, sacct_text
from commands import Run

pytestmark = pytest.mark.slow

ODD = os.fsdecode(b"a\xff")
MODEL = '{"kind": "policyfactory-model", "schema_version": 1, "name": "MINE", "formula": "p*q"}\n'
PROTOCOL = (
    'schema_version = 1\nname = "x"\n[logs.own]\nlublin = { processors = 16, jobs = 100, seed = 1 }\n'
    '[[experiments]]\nname = "a"\npolicies = ["FCFS", "SPF"]\n'
)
LOG = "; MaxProcs: 16\n" + "".join(
    f"{n} {60 * n} 3 {60 + 7 * (n % 90)} {1 + n % 4} -1 -1 {1 + n % 4} 900 -1 1 {n % 5} 1 -1 1 -1 -1 -1\n"
    for n in range(1, 200)
)


@pytest.fixture
def odd(tmp_path: Path) -> Path:
    """Return the folder with a log, a model and a protocol of such a name."""
    for ending, text in ((".swf", LOG), (".json", MODEL), (".toml", PROTOCOL)):
        (tmp_path / f"{ODD}{ending}").write_text(text)
    for name, begin in (("before", 0), ("after", 10**6)):
        text = sacct_text(*(job(n, begin + 600 * n) for n in range(1, 30)))
        (tmp_path / f"{name}{ODD}").write_text(text)
    return tmp_path


def manifest(path: Path) -> dict[str, dict[str, str]]:
    content: dict[str, dict[str, str]] = json.loads(path.read_text(encoding="utf-8"))
    return content


def test_generate(run: Run, odd: Path) -> None:
    words = ("generate", f"{ODD}.swf", "-o", f"{ODD}s.csv", "--tuples", 32, "--trials", 256)
    run(*words)
    made = manifest(odd / f"{ODD}s.manifest.json")
    assert f"{ODD}.swf" in made["inputs"]
    assert list(made["outputs"]) == [f"{ODD}s.csv"]
    # It is there: the manifest is read again, and is about this file.
    run(*words)


def test_evaluate(run: Run, odd: Path) -> None:
    run("evaluate", f"{ODD}.swf", "--policies", f"FCFS,{ODD}.json", "-o", f"{ODD}.out")
    assert set(manifest(odd / f"{ODD}.out" / "manifest.json")["inputs"]) == {f"{ODD}.swf", f"{ODD}.json"}
    text = (odd / f"{ODD}.out" / "protocol.toml").read_text(encoding="utf-8")
    assert [log["file"] for log in tomllib.loads(text)["logs"].values()] == [r"a\udcff.swf"]
    assert r"a\udcff" in (odd / f"{ODD}.out" / "report.html").read_text(encoding="utf-8")
    run("evaluate", f"{ODD}.toml", "-o", f"{ODD}.second")
    assert f"{ODD}.toml" in manifest(odd / f"{ODD}.second" / "manifest.json")["inputs"]


def test_others(run: Run, odd: Path) -> None:
    run("review", "--before", f"before{ODD}", "--after", f"after{ODD}", "-o", f"{ODD}.review")
    assert set(manifest(odd / f"{ODD}.review" / "manifest.json")["inputs"]) == {f"before{ODD}", f"after{ODD}"}
    run("workload", "import", f"before{ODD}", "-o", f"{ODD}i.swf")
    run("workload", "clean", f"{ODD}.swf", "-o", f"{ODD}c.swf.gz", "--report", f"{ODD}r.json")
    run("workload", "window", f"{ODD}.swf", "-o", f"{ODD}w.swf", "--jobs", 50)
    run("export", f"{ODD}.json", "--to", "python", "-o", f"{ODD}.py")
    run("fit", f"{ODD}.csv", code=1)


@pytest.mark.parametrize("environment", [{}, {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}])
@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["policy", "show", f"{ODD}.json"], 0),
        (["workload", "show", f"{ODD}.swf", "--json"], 0),
        (["workload", "show", f"{ODD}.none"], 1),
        ([f"wörk{ODD}"], 2),
    ],
)
def test_a_terminal_that_cannot_show_it(words: list[str], code: int, environment: dict[str, str], odd: Path) -> None:
    command = [sys.executable, "-m", "policyfactory", *words]
    done = subprocess.run(command, cwd=odd, env=os.environ | environment, capture_output=True, check=False)
    assert (done.returncode, b"Traceback" in done.stderr) == (code, False), done.stderr.decode(errors="replace")
