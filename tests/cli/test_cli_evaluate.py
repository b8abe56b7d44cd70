"""``policyfactory evaluate`` as a user types it, right and wrong."""

from __future__ import annotations

import csv
import gzip
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from policyfactory.cli import main
from policyfactory.core.files import exclusive
from policyfactory.report import terminal

Run = Callable[..., "subprocess.CompletedProcess[str]"]
FIRST = ["--policies", "FCFS,SPF,SAF"]


@pytest.fixture(scope="session")
def log(tmp_path_factory: pytest.TempPathFactory, shared: Callable[[str], Path]) -> Path:
    """Give the first 2,000 jobs of KTH as a plain file."""
    text = gzip.decompress(shared("oracles/online/trace_kth5k.swf.gz").read_bytes()).decode()
    lines = text.splitlines()
    header = [line for line in lines if line.startswith(";")]
    path = tmp_path_factory.mktemp("log") / "kth2k.swf"
    jobs = [line for line in lines if not line.startswith(";")][:2000]
    path.write_text("\n".join([*header, *jobs, ""]))
    return path


def swf(folder: Path, jobs: list[str], name: str = "small.swf", header: str = "; MaxProcs: 4\n") -> Path:
    path = folder / name
    path.write_text(header + "".join(f"{job}\n" for job in jobs))
    return path


def job(number: int, submit: int, run: int, processors: int, request: int) -> str:
    return f"{number} {submit} -1 {run} {processors} -1 -1 {processors} {request} -1 1 1 1 -1 -1 -1 -1 -1"


def findings(content: dict[str, Any]) -> dict[str, Any]:
    """Return what the one experiment of a plain evaluation found."""
    result: dict[str, Any] = content["experiments"]["evaluation"]
    return result


@pytest.mark.usefixtures("blank_pictures")
def test_a_formula_that_reads_predictions(run: Run, log: Path, tmp_path: Path) -> None:
    formula = ("--formula", "INDEX=-ln(s) + ln(e) + 0.4*ln(q)", "--windows", "2x3d", "--metric", "mean_bsld")
    for workers in ("1", "2"):
        chosen = ("--policies", "SPF,INDEX", *formula, "--workers", workers, "--output", f"out{workers}")
        assert "INDEX" in run("evaluate", log, *chosen).stdout
    assert (tmp_path / "out1/results.csv").read_bytes() == (tmp_path / "out2/results.csv").read_bytes()
    refused = run("evaluate", log, *formula, "--compatibility", "sc17", "--backfill", "none", code=2).stderr
    assert "policy INDEX reads e, s, which a simulation with compatibility sc17 does not know" in refused
    for formula in ("-ln(s)+p", "p*q/(1+w)"):
        assert "a formula is given a name, --formula" in run("evaluate", log, "--policies", formula, code=2).stderr


@pytest.mark.usefixtures("blank_pictures")
def test_tables_words_and_files(run: Run, log: Path, tmp_path: Path) -> None:
    done = run("evaluate", log, *FIRST, "--windows", "7x3d", "--output", "out", "--starts", "csv")
    assert "kth2k: median over 7 windows, with 95 % interval" in done.stdout
    assert "mean_bsld minus that of FCFS: median of the paired differences" in done.stdout
    assert "has the lowest median mean_bsld over 7 windows" in " ".join(done.stdout.split())
    assert "Worst off is job" in " ".join(done.stdout.split())
    assert "21/21" in done.stderr
    assert "jobs/s" in done.stderr
    out = tmp_path / "out"
    for name in ("report.html", "results.csv", "evaluation.json", "manifest.json", "protocol.toml"):
        assert (out / name).stat().st_size > 0
    rows = list(csv.DictReader((out / "results.csv").read_text().splitlines()))
    assert len(rows) == 7 * 3 * 5
    assert {row["policy"] for row in rows} == {"FCFS", "SPF", "SAF"}
    assert {row["experiment"] for row in rows} == {"evaluation"}
    starts = sorted(path.relative_to(out).as_posix() for path in (out / "starts").rglob("*.csv"))
    assert len(starts) == 21
    assert starts[0] == "starts/kth2k/window-001/FCFS.csv"
    manifest = json.loads((out / "manifest.json").read_text())
    assert manifest["kind"] == "evaluation"
    assert manifest["command"].startswith("policyfactory evaluate")
    assert set(starts) < set(manifest["outputs"])
    (experiment,) = manifest["parameters"]["experiments"]
    assert manifest["measured"]["jobs_simulated"] == sum(case["jobs"] for case in experiment["cases"]) * 3
    content = json.loads((out / "evaluation.json").read_text())
    assert content["protocol"] == manifest["parameters"]
    assert findings(content)["winner"] in {"FCFS", "SPF", "SAF"}
    for word in findings(content)["words"]:
        assert " ".join(word.split()) in " ".join(done.stdout.split())
    # What nobody asked for by name is in the report: who wins and who loses.
    for name in ("groups", "fairness", "starvation", "load", "gantt", "values", "differences", "ranks", "wins"):
        assert list((out / "evaluation" / name).iterdir()), name


@pytest.mark.usefixtures("blank_pictures")
def test_the_options_make_a_protocol_that_gives_the_same(run: Run, log: Path, tmp_path: Path) -> None:
    words = ("--windows", "6x3d", "--formula", "MINE=p*q + 1", "--threshold", "2x longest request", "--load", "1.2")
    words = (*words, "--metric", "max_wait")
    run("evaluate", log, *FIRST, *words, "--estimates", "noisy:0.5", "--analyses", "none", "-o", "out", "--seed", 4)
    again = run("evaluate", "out/protocol.toml", "--traces", tmp_path, "--output", "again")
    assert "written: again/report.html" in again.stderr
    for name in ("results.csv", "evaluation.json", "protocol.toml"):
        assert (tmp_path / "out" / name).read_bytes() == (tmp_path / "again" / name).read_bytes(), name


def test_the_number_of_workers_changes_no_byte(run: Run, log: Path, tmp_path: Path) -> None:
    kept = []
    metrics = ("--metric", "mean_bsld")
    for jobs in (1, 4):
        words = ("--output", f"out{jobs}", "--workers", jobs, "--starts", "batsim", "--analyses", "none")
        run("evaluate", log, *FIRST, "--windows", "3x3d", *metrics, *words)
        files = {
            path.relative_to(tmp_path / f"out{jobs}").as_posix(): path.read_bytes()
            for path in (tmp_path / f"out{jobs}").rglob("*")
            if path.is_file() and path.name != "manifest.json"
        }
        assert {"report.html", "results.csv", "evaluation.json", "protocol.toml"} < set(files)
        assert sum(name.startswith("starts/") for name in files) == 9
        kept.append(files)
    assert kept[0] == kept[1]


def test_a_whole_log_of_few_weeks_says_why_it_has_no_interval(run: Run, log: Path) -> None:
    done = run("evaluate", log, *FIRST, "--metric", "mean_wait,utilisation")
    words = " ".join(done.stdout.split())
    assert (
        "There is no interval, since 3 weeks are too few: 6 are needed, since under FCFS the queue remembers" in words
    )
    assert "draw logs with --resamples" in words
    assert "no difference" not in done.stdout


def test_json_is_all_that_is_on_stdout(run: Run, log: Path) -> None:
    done = run("evaluate", log, *FIRST, "--windows", "2x3d", "--json", "--metric", "max_wait", "--seed", 5)
    content = json.loads(done.stdout)
    assert content["kind"] == "evaluation"
    assert content["protocol"]["experiments"][0]["bootstrap"]["seed"] == 5
    assert content["manifest"]["inputs"][str(log)]
    assert [row["interval"] for row in findings(content)["differences"]] == [None, None]
    assert {row["verdict"] for row in findings(content)["differences"]} == {"too few cases"}


@pytest.mark.usefixtures("blank_pictures")
def test_formulas_models_rules_and_predictions(run: Run, log: Path, tmp_path: Path) -> None:
    model = {"kind": "policyfactory-model", "schema_version": 1, "name": "mine", "formula": "p*q + 870*log10(r + 1)"}
    (tmp_path / "mine.json").write_text(json.dumps(model))
    rows = [line.split() for line in log.read_text().splitlines() if not line.startswith(";")]
    (tmp_path / "p.csv").write_text("job_id,prediction\n" + "".join(f"{row[0]},{row[3]}\n" for row in rows))
    common = (
        "evaluate",
        log,
        "--policies",
        "FCFS,mine.json",
        "--formula",
        "NARROW=q",
        "--metric",
        "mean_wait",
        "--analyses",
        "none",
        "--json",
    )
    by_prediction = json.loads(run(*common, "--decide-by", "prediction", "--predictions", "p.csv").stdout)
    by_runtime = json.loads(run(*common, "--decide-by", "runtime").stdout)
    # A perfect prediction is the run time.
    assert findings(by_prediction)["summary"] == findings(by_runtime)["summary"]
    assert [row["policy"] for row in findings(by_runtime)["summary"]] == ["FCFS", "mine", "NARROW"]
    assert set(by_prediction["manifest"]["inputs"]) == {str(log), "mine.json", "p.csv"}
    strict = json.loads(
        run(*common, "--backfill", "none", "--ties", "lifo", "--overrun", "kill", "--threshold", "20h").stdout
    )
    assert strict["protocol"]["experiments"][0]["rules"] == {
        "backfill": "none", "decide_by": "request", "threshold_s": 72000, "ties": "lifo", "overrun": "kill",
        "backfill_policy": None, "compatibility": "none",
    }  # fmt: skip
    assert findings(strict)["summary"] != findings(by_runtime)["summary"]
    ordered = json.loads(run(*common, "--backfill-order", "SPF").stdout)
    assert ordered["protocol"]["experiments"][0]["rules"]["backfill_policy"]["name"] == "SPF"
    run(*common, "--backfill", "conservative")


def test_without_a_log_the_embedded_workload_is_used(run: Run) -> None:
    done = run("evaluate", "--policies", "FCFS,SAF", "--windows", "6x5d", "--metric", "mean_bsld")
    assert "no log given, so the embedded workload" in done.stderr
    assert "over 6 windows" in done.stdout


@pytest.mark.usefixtures("blank_pictures")
def test_two_logs_side_by_side(run: Run, log: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.swf"
    other.write_text(log.read_text())
    content = json.loads(
        run("evaluate", log, other, *FIRST, "--windows", "2x3d", "--analyses", "none", "--json").stdout
    )
    winners = findings(content)["winners"]
    assert set(winners) == {"kth2k", "other"}
    assert winners["kth2k"] == winners["other"] == findings(content)["winner"]


@pytest.mark.usefixtures("blank_pictures")
def test_a_second_evaluation_replaces_the_first_only_if_asked_to(run: Run, log: Path, tmp_path: Path) -> None:
    first = ("--windows", "6x3d", "--metric", "mean_wait", "--analyses", "none", "--starts", "csv")
    run("evaluate", log, *FIRST, *first, "--output", "out")
    (tmp_path / "out" / "notes.txt").write_text("mine")
    second = ("evaluate", log, *FIRST, "--metric", "max_wait", "--analyses", "none", "--output", "out")
    before = {path: path.read_bytes() for path in (tmp_path / "out").rglob("*") if path.is_file()}
    done = run(*second, code=1)
    assert "out/results.csv: exists; add --overwrite" in done.stderr
    assert "--overwrite" in done.stderr
    assert before == {path: path.read_bytes() for path in (tmp_path / "out").rglob("*") if path.is_file()}
    run(*second, "--overwrite")
    files = sorted(path.relative_to(tmp_path / "out").as_posix() for path in (tmp_path / "out").rglob("*.*"))
    assert [name for name in files if "/" not in name] == [
        "evaluation.json", "manifest.json", "notes.txt", "protocol.toml", "report.html", "results.csv",
        "weeks.csv",
    ]  # fmt: skip
    # One case: values and differences, but no ranks and wins; no starts any more.
    assert {name.rpartition("/")[0] for name in files} == {"", "evaluation/differences", "evaluation/values"}


def test_two_runs_do_not_write_one_folder(run: Run, log: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    with exclusive(out / "results.csv"):
        done = run("evaluate", log, *FIRST, "--output", "out", code=1)
        assert "another run is writing it" in done.stderr
        assert not (out / "manifest.json").exists()
    run("evaluate", log, *FIRST, "--output", "out", "--metric", "max_wait", "--analyses", "none")


WRONG: list[tuple[list[str], int, str]] = [
    (["missing.swf"], 1, "missing.swf: no such file"),
    (["LOG", "--policies", "FCFS,SFP"], 2, "unknown policy 'SFP'; did you mean"),
    (["LOG", "--policies", "missing.json"], 1, "missing.json: no such file"),
    (["LOG", "--policies", ""], 2, "--policies: names no policy; write for example --policies FCFS,SPF,SAF"),
    (["LOG", "--metric", "mean_bdsl"], 2, "there is no metric 'mean_bdsl'; did you mean mean_bsld"),
    (["LOG", "--metric", ","], 2, "no metric was named"),
    (["LOG", "--windows", "400d"], 1, "the log has 0 such windows"),
    (["LOG", "--windows", "1000x1d"], 1, "such windows (2,000 jobs in"),
    (["LOG", "--windows", "0x1d"], 2, "0 windows"),
    (["LOG", "--windows", "ten"], 2, "--windows 'ten': is not a length; write for example 10x15d"),
    (["LOG", "--threshold", "soon"], 2, "'soon': is not a duration"),
    (["LOG", "--formula", "p*q"], 2, "write NAME=EXPR"),
    (["LOG", "--formula", "X=p*"], 1, "at character"),
    (["LOG", "--formula", "FCFS=p", "--policies", "FCFS"], 2, "two policies are called FCFS"),
    (["LOG", "--decide-by", "prediction"], 2, "belong together"),
    (["LOG", "--decide-by", "prediction", "--predictions", "p.csv"], 1, "p.csv: no such file"),
    (["LOG", "LOG"], 2, "two logs are called kth2k"),
    (["LOG", "--seed", "-1"], 2, "--seed -1: is out of range; write a whole number of 0"),
    (["LOG", "--starts", "csv"], 2, "name their folder with --output DIR"),
    (["LOG", "--clean", "defualt"], 2, "default"),
    (["LOG", "--backfill", "none", "--backfill-order", "SPF"], 2, "needs backfill easy"),
    (["LOG", "--processors", "0"], 2, "--processors 0: is out of range; write a whole number of 1"),
    (["--processors", "5"], 2, "belong to a log"),
    (["FOLDER"], 1, "is a directory"),
    (["LOG", "--output", "LOG"], 2, "is an input of this command; name another output"),
    (["LOG", "--output", "LOG/results"], 1, "cannot be created"),
    (["LOG", "--output", "/proc/results"], 1, "cannot be created"),
]


@pytest.fixture
def run_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Give ``run_here(*arguments, code=...)``: the command in this process (a second cheaper); returns stderr."""

    def call(*arguments: object, code: int) -> str:
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(sys, "argv", ["policyfactory", *map(str, arguments)])
        with pytest.raises(SystemExit) as end:
            main.run()
        output = capsys.readouterr()
        assert end.value.code == code, output.err
        assert output.out == ""
        return output.err

    return call


@pytest.mark.parametrize(("arguments", "code", "message"), WRONG, ids=lambda value: str(value)[:60])
def test_wrong_use_is_refused(
    arguments: list[str], code: int, message: str, run_here: Callable[..., str], log: Path, tmp_path: Path
) -> None:
    words = [argument.replace("LOG", str(log)).replace("FOLDER", str(tmp_path)) for argument in arguments]
    output = run_here("evaluate", *words, code=code)
    assert message in output
    # One message in plain words.
    assert output.splitlines()[-1].startswith("error: ") or "character" in output


@pytest.mark.parametrize(
    ("jobs", "options", "message"),
    [
        ([], [], "no job"),
        ([job(1, 0, 10, 8, 10)], [], "none of the 1 jobs can be used"),
        ([job(1, 0, 10, 1, -1)], [], "have no requested time"),
        ([job(1, 0, 10, 1, 10)], ["--windows", "1d"], "the log has 0 such windows"),
    ],
)
def test_a_log_that_cannot_be_used_is_refused(
    jobs: list[str], options: list[str], message: str, run_here: Callable[..., str], tmp_path: Path
) -> None:
    assert message in run_here("evaluate", swf(tmp_path, jobs), *options, code=1)


def test_missing_requests_are_used_as_asked_and_said(run: Run, tmp_path: Path) -> None:
    path = swf(tmp_path, [job(1, 0, 10, 1, -1), job(2, 1, 20, 4, 30), job(3, 2, 5, 1, 5)])
    done = run("evaluate", path, *FIRST, "--estimate-missing", "runtime")
    assert "the run time taken: 1 (" in done.stderr
    done = run("evaluate", path, *FIRST, "--estimate-missing", "drop", "--json")
    assert json.loads(done.stdout)["protocol"]["experiments"][0]["cases"][0]["jobs"] == 2


def test_a_truncated_gz_is_refused(run_here: Callable[..., str], log: Path, tmp_path: Path) -> None:
    whole = gzip.compress(log.read_bytes())
    (tmp_path / "cut.swf.gz").write_bytes(whole[: len(whole) // 2])
    output = run_here("evaluate", "cut.swf.gz", code=1)
    assert "cut.swf.gz" in output
    assert "truncated" in output or "damaged" in output or "ends" in output


def test_a_model_of_a_newer_schema_is_refused(run_here: Callable[..., str], log: Path, tmp_path: Path) -> None:
    (tmp_path / "new.json").write_text(
        json.dumps({"kind": "policyfactory-model", "schema_version": 99, "name": "n", "formula": "p"})
    )
    output = run_here("evaluate", log, "--policies", "FCFS,new.json", code=1)
    assert "99" in output
    assert "newer" in output


@pytest.mark.usefixtures("blank_pictures")
def test_names_from_files_stay_in_the_folder_and_are_no_markup(run: Run, tmp_path: Path) -> None:
    path = swf(tmp_path, [job(n, n, 10 + n, 1 + n % 4, 20 + n) for n in range(1, 30)], name="[red]$x$.swf")
    model = {"kind": "policyfactory-model", "schema_version": 1, "name": "../[bold]$y_1$", "formula": "p"}
    (tmp_path / "odd.json").write_text(json.dumps(model))
    common = ("--policies", "FCFS,odd.json", "--metric", "mean_wait")
    done = run("evaluate", path, *common, "--output", "out", "--starts", "batsim")
    assert "[red]$x$" in done.stdout
    assert "../[bold]$y_1$" in done.stdout
    assert sorted(p.name for p in tmp_path.iterdir()) == ["[red]$x$.swf", "odd.json", "out"]
    assert len(list((tmp_path / "out" / "starts").rglob("*.csv"))) == 2


@pytest.mark.fault
def test_a_run_that_is_stopped_and_killed_goes_on_and_ends_in_the_same_bytes(
    run: Run, shared: Callable[[str], Path], tmp_path: Path
) -> None:
    log = shared("oracles/online/trace_kth5k.swf.gz")
    # Seconds of simulations: the signals find it at work on any machine.
    words = ["evaluate", str(log), "--policies", "FCFS,WFP3", "--backfill", "conservative"]
    words += ["--resamples", "40", "--length", "4w", "--analyses", "none", "--metric", "mean_wait"]
    words += ["--starts", "csv", "--workers", "2"]
    out = tmp_path / "out"
    partial = out / "evaluation.partial"
    for number in (signal.SIGINT, signal.SIGKILL):
        before = partial.stat().st_size if partial.exists() else 0
        command = [sys.executable, "-m", "policyfactory", *words, "--output", "out"]
        with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as work:
            while not partial.exists() or partial.stat().st_size < before + 4000:
                assert work.poll() is None
                time.sleep(0.01)
            work.send_signal(number)
            _, output = work.communicate(timeout=600)
        assert "Traceback" not in output
        assert "Warning" not in output
        if number == signal.SIGINT:
            assert work.returncode == 130, output
            kept = re.search(
                r"stopped by SIGINT: (\d+) finished simulations are kept in out/evaluation.partial", output
            )
            assert kept, output
            assert "the same command goes on from there" in output
            assert not (out / "report.html").exists()
    other = run(*words, "--seed", 1, "--output", "out", code=1).stderr
    assert "holds finished simulations of a run with other experiments (evaluation)" in other
    # A file of starts that is gone is made again with its simulation.
    next((out / "starts").rglob("FCFS.csv")).unlink()
    done = run(*words, "--output", "out")
    resumed = re.search(r"(\d+) of 80 simulations were finished by an earlier run", done.stderr)
    assert resumed
    assert int(resumed[1]) > int(kept[1])
    measured = json.loads((out / "manifest.json").read_text())["measured"]
    assert measured["simulations_done"] + measured["simulations_resumed"] == 80
    assert 0 < measured["simulations_resumed"] < int(resumed[1])
    assert (measured["backend"], measured["workers"]) == ("threading", 2)
    assert not partial.exists()
    run(*words, "--output", "at-once")
    names = sorted(path.relative_to(out) for path in out.rglob("*") if path.is_file())
    assert Path("evaluation/ranks/ranks.svg") in names
    assert names == sorted(path.relative_to(tmp_path / "at-once") for path in (tmp_path / "at-once").rglob("*.*"))
    for name in names:
        if name.name != "manifest.json":
            assert (out / name).read_bytes() == (tmp_path / "at-once" / name).read_bytes(), name


def test_ctrl_c_without_a_folder_says_how_it_could_have_gone_on(
    run: Run, log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: object) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(10)

    monkeypatch.setattr(terminal.CountBar, "expect", stop)
    words = ("evaluate", log, *FIRST, "--windows", "2x2d", "--analyses", "none")
    output = run(*words, code=130).stderr.splitlines()[-1]
    assert output.endswith("no result was written; with --output DIR the same command would go on from here")
    output = run(*words, "--output", "out", code=130).stderr.splitlines()[-1]
    assert output.endswith(": no result was written")
    assert not (tmp_path / "out").exists()


@pytest.mark.usefixtures("blank_pictures")
def test_the_backend_changes_nothing_and_a_wrong_one_is_refused(run: Run, log: Path, tmp_path: Path) -> None:
    words = (
        "evaluate",
        log,
        "--policies",
        "FCFS,SPF",
        "--windows",
        "2x3d",
        "--analyses",
        "none",
        "--metric",
        "mean_wait",
    )
    result = []
    for backend, jobs in (("threading", 1), ("loky", 1)):
        run(*words, "--backend", backend, "--workers", jobs, "--output", backend)
        names = [name for name in (tmp_path / backend).rglob("*.*") if name.name != "manifest.json"]
        result.append({name.relative_to(tmp_path / backend): name.read_bytes() for name in names})
        measured = json.loads((tmp_path / backend / "manifest.json").read_text())["measured"]
        assert (measured["backend"], measured["workers"]) == (backend, jobs)
        assert ("jobs_per_cpu_second" in measured) == (backend == "threading")
    assert result[0] == result[1]
    assert "--scheduler" in run(*words, "--backend", "loky", "--scheduler", "tcp://here:1", code=2).stderr


@pytest.mark.usefixtures("blank_pictures")
def test_policies_run_under_slurms_own_rules(run: Run, tmp_path: Path) -> None:
    rows = [job(n, 40 * n, 30 + 17 * (n % 9), 1 + n % 4, 300) for n in range(1, 60)]
    log = swf(tmp_path, rows)
    site = tmp_path / "here.toml"
    site.write_text('schema = 1\n[[nodes]]\nnames = "n[1-4]"\n[[partitions]]\nname = "all"\n')
    common = ("evaluate", log, "--analyses", "none", "--metric", "mean_wait", "--json")
    assumed = run(*common, "--backfill", "slurm")
    assert "rules: Slurm's own passes on a site that is assumed of each log" in assumed.stderr
    content = json.loads(assumed.stdout)
    names = [policy["name"] for policy in content["protocol"]["experiments"][0]["policies"]]
    assert names == ["FCFS", "SPF", "SAF", "WFP3", "UNICEF", "F1"]
    assert content["protocol"]["experiments"][0]["log_sites"]["small"]["processors"] == 4
    described = json.loads(run(*common, "--site", site).stdout)
    assert described["protocol"]["experiments"][0]["rules"]["site"]["name"] == "here"
    assert str(site) in described["manifest"]["inputs"]
    assert findings(described)["summary"] == findings(content)["summary"]
    run(*common[:4], "--site", site, "--output", "out")
    assert (tmp_path / "out/evaluation/easy").is_dir()
    assert "SAF" in run(*common[:4], "--site", site, "--threshold", "1h").stdout
    for wrong, code, why in (
        (("--site", site, "--backfill", "easy"), 2, "choose backfill slurm, or leave out the site"),
        (("--site", tmp_path / "none.toml"), 1, "none.toml"),
        (("--site", site, "--formula", "FREE=p*q/f"), 2, "policy FREE has f"),
        (("--backfill", "slurm", "--decide-by", "runtime"), 2, "decide_by is runtime"),
    ):
        assert why in run("evaluate", log, *wrong, code=code).stderr
