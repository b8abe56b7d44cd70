"""How a log is read, alike by every command that reads one: the size of its machine, requests that are missing."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import policyfactory as pf
from naive.logs import text_of
from policyfactory.core.errors import UsageError

Run = Callable[..., Any]
SMALL = ("--tuples", 32, "--trials", 512, "--state-size", 2, "--queue-size", 4)
READERS = {
    "show": ("workload", "show", "site.swf"),
    "clean": ("workload", "clean", "site.swf", "--output", "out.swf"),
    "resample": ("workload", "resample", "site.swf", "--output", "out.swf"),
    "generate": ("generate", "site.swf", *SMALL, "--output", "out.csv"),
    "evaluate": ("evaluate", "site.swf", "--policies", "FCFS,SAF"),
    "tune": ("tune", "site.swf", "--policies", "FCFS,SAF"),
    "export": ("export", "SAF", "--to", "slurm-site-factor-lua", "--workload", "site.swf", "--output", "out.lua"),
}


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A log of four weeks on a machine of 10, in which one job in three has no requested time."""
    jobs: list[dict[str, object]] = [
        {"submit": 3600 * n, "user": n % 5, "allocated": n % 4 + 1, "run_time": 1800 + n % 7, "requested_time": 7200}
        for n in range(672)
    ]
    for job in jobs[::3]:
        job["requested_time"] = -1
    path = tmp_path / "site.swf"
    path.write_text(text_of(jobs))
    return path


@pytest.mark.parametrize("command", [*READERS, "learn"])
@pytest.mark.usefixtures("site")
def test_a_machine_size_that_contradicts_the_header_is_refused(run: Run, command: str, tmp_path: Path) -> None:
    words = READERS.get(command, ("learn", "site.swf"))
    done = run(*words, "--processors", 3, code=2)
    assert "--processors 3: site.swf says MaxProcs 10 in its header, and 168 of its 672 jobs" in done.stderr
    assert "add --force-processors" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["site.swf"]


@pytest.mark.parametrize("command", READERS)
@pytest.mark.usefixtures("site")
def test_a_size_that_is_forced_and_requests_of_the_model_are_used(run: Run, command: str) -> None:
    reading = () if command in {"show", "generate"} else ("--estimate-missing", "model")
    done = run(*READERS[command], "--processors", 3, "--force-processors", *reading)
    said = done.stdout + done.stderr
    if command in {"clean", "resample", "generate", "evaluate", "tune", "export"}:
        assert "672 jobs" in said
        assert "504" in said
    if command == "show":
        assert "168 jobs (25.00 % of all) larger than the machine's 3 processors" in said


def test_show_judges_first_and_has_the_evidence_after_it(run: Run, site: Path, tmp_path: Path) -> None:
    said = run("workload", "show", site).stdout
    places = [
        said.index(words)
        for words in (
            "site: what it is good for",
            "  no      testing an order: a load of 12.5 %: hardly anybody waits",
            "Nobody waited in the record: 100 %",
            "What the logs hold",
            "site: waits in the record, by week of submission",
            "site: what to know",
        )
    ]
    assert places == sorted(places)
    value = json.loads(run("workload", "show", site, "--json").stdout)["logs"][0]
    assert value["uses"][1]["grade"] == "no"
    assert value["findings"][0].startswith("Nobody waited in the record")
    assert [row["jobs"] for row in value["waits"][0]["rows"]] == [168] * 4
    # What a header says is shown as text only.
    (tmp_path / "evil.swf").write_text(text_of([{}], "; Computer: \x1b[2J[red] many  sites many sites\n"))
    said = run("workload", "show", "evil.swf").stdout
    assert "speaks of 'many sites'" in said
    assert "\x1b" not in said


def test_show_loads_nothing_that_it_does_not_need(site: Path) -> None:
    command = (
        f"import sys; sys.argv = ['policyfactory', 'workload', 'show', {str(site)!r}]\n"
        "from policyfactory.cli.main import run\n"
        "try:\n    run()\nexcept SystemExit:\n    pass\n"
        "print(sorted({'matplotlib', 'pandas', 'sympy', 'statsmodels', 'sklearn', 'dask'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", command], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_python_refuses_and_forces_it_too(site: Path) -> None:
    for verb in (pf.read, lambda log, **how: pf.evaluate(log, "FCFS,SAF", **how), pf.learn):
        with pytest.raises(UsageError, match=r"--processors 3: .*site\.swf says MaxProcs 10"):
            verb(site, processors=3, estimate_missing="model")
    done = pf.evaluate(site, "FCFS,SAF", processors=3, force_processors=True, estimate_missing="model")
    assert done.logs["site"].workload.machine == 3
    assert "force_machine = true" in done.text
