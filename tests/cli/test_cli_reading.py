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
from policyfactory.learning.options import LearnOptions

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


ASSUMING = {
    "evaluate": ("--formula", "LESS=p*mem", "--policies", "SAF", "--json"),
    "judge": ("p*mem", "--replicas", 2, "--output", "judged.json"),
    "train": (
        *("--family", "log10(p) + a*log10(mem)", "--restarts", 1, "--evaluations", 10, "--window-jobs", 64),
        *("--training-windows", 2, "--choosing-windows", 2, "--judged-windows", 2),
    ),
}


@pytest.mark.parametrize("command", ASSUMING)
@pytest.mark.usefixtures("site")
def test_what_the_log_does_not_say_is_assumed(run: Run, command: str, tmp_path: Path) -> None:
    words = (command, "site.swf", "--estimate-missing", "model", *ASSUMING[command])
    refused = run(*words, code=0 if command == "judge" else 2)
    said = (tmp_path / "judged.json").read_text() if command == "judge" else refused.stderr
    assert "does not say of" in said
    assert "--assume mem=2000*q" in said
    done = run(*words, "--assume", " mem=2000*q,g=0", "--overwrite")
    if command == "evaluate":
        said = " ".join(done.stderr.split())
        assert "assumed mem=2000*q for 672 of 672 jobs, of which the log does not say it" in said
    if command == "judge":
        # The order by memory is the order by processors.
        done = run("judge", "site.swf", "--estimate-missing", "model", "p*q", "--replicas", 2)
        first, second = json.loads((tmp_path / "judged.json").read_text()), json.loads(done.stdout)
        assert first["candidates"][0]["aims"] == second["candidates"][0]["aims"]
    wrong = run(*words, "--assume", "mem=lots", "--overwrite", code=2)
    assert "'mem=lots' cannot be read; write for example n=q/32,mem=2000*q,g=0" in " ".join(wrong.stderr.split())


def test_learn_assumes_and_refuses_what_is_no_assumption() -> None:
    assert LearnOptions(assume="mem=2000*q").reading["assume"] == "mem=2000*q"
    with pytest.raises(UsageError, match="the assumption 'mem=' cannot be read"):
        LearnOptions(assume="mem=")
    with pytest.raises(UsageError, match="assume 3: expected "):
        LearnOptions(assume=3)  # type: ignore[arg-type]


def test_a_library_call_assumes(site: Path) -> None:
    jobs = pf.read(site, estimate_missing="model", assume="mem=2000*q")
    assert jobs.requests is not None
    assert jobs.requests.memory.tolist() == (2000 * jobs.processors).tolist()
    done = pf.evaluate(site, ["SAF", pf.Policy("LESS", "p*mem")], estimate_missing="model", assume="mem=2000*q")
    first, second = done.outcome.evaluation.matrix("site", "mean_bsld").T
    assert first.tolist() == second.tolist()
    with pytest.raises(UsageError, match="assume: the jobs are read already"):
        pf.evaluate(jobs, "SAF", assume="g=0")


def test_the_jobs_of_a_model_say_as_little(run: Run) -> None:
    words = ("evaluate", "--policies", "SAF", "--formula", "LESS=p*mem", "--windows", "2x100jobs")
    assert "does not say of 20,000 of 20,000 jobs" in " ".join(run(*words, code=2).stderr.split())
    assert "assumed mem=2000*q for 20,000 of" in " ".join(run(*words, "--assume", "mem=2000*q").stderr.split())


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
