"""``policyfactory workload``: the real command on real logs."""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from naive.logs import HEADER, line, text_of
from naive.serving import Server, serving
from policyfactory.workload.clean import read
from policyfactory.workload.swf.download import KNOWN_LOGS
from policyfactory.workload.swf.files import read_swf

Run = Callable[..., Any]
KTH = "traces/KTH-SP2-1996-2.1-cln.swf.gz"


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A log of one site: ten days, a job every hour, one job that never ran."""
    jobs: list[dict[str, object]] = [{"submit": 3600 * n, "user": n % 3} for n in range(240)]
    jobs[7] |= {"run_time": -1, "status": 5}
    path = tmp_path / "site.swf"
    path.write_text(text_of(jobs))
    return path


def test_the_help_names_what_can_be_done_with_logs(run: Run) -> None:
    words = " ".join(run("--help").stdout.replace("│", " ").split())
    assert "show, clean, cut, import, download, resample, make." in words


def test_show_prints_the_table_and_the_quirks(run: Run, shared: Callable[[str], Path]) -> None:
    done = run("workload", "show", shared(KTH), shared("traces/lublin_256.swf"))
    rows = {
        " ".join(text.split()[:-2]): text.split()[-2:] for text in done.stdout.splitlines() if len(text.split()) > 2
    }
    assert rows["utilisation (first start to last end), %"] == ["70.12", "105.69"]
    assert rows["jobs"] == ["28,476", "10,000"]
    assert rows["mean request, s"] == ["13,663", "-"]
    assert rows["status 0 (failed)"] == ["7,946", "0"]
    assert "KTH-SP2-1996-2.1-cln: what to know" in done.stdout
    assert (
        "  - 475 jobs (1.67 % of those with a run time and a request) with a run longer than requested" in done.stdout
    )
    assert "  - no job has a requested time" in done.stdout
    assert done.stderr == ""


def test_show_prints_json(run: Run, shared: Callable[[str], Path]) -> None:
    values = json.loads(run("workload", "show", "--json", shared(KTH), shared("traces/lublin_256.swf")).stdout)
    assert values["schema_version"] == 1
    assert [log["jobs"] for log in values["logs"]] == [28_476, 10_000]
    assert round(values["logs"][0]["utilisation"], 4) == 0.7012
    assert values["logs"][1]["mean_accuracy"] is None
    assert any("475 jobs" in quirk for quirk in values["logs"][0]["quirks"])


def test_show_draws_pictures(run: Run, site: Path, tmp_path: Path) -> None:
    done = run("workload", "show", site, "--output", "pictures")
    names = sorted(path.name for path in (tmp_path / "pictures").iterdir())
    assert names == [f"site-{what}.png" for what in ("accuracy", "arrivals", "run-times", "sizes")]
    assert done.stderr.count("written: pictures/site-") == 4


def test_show_of_a_log_without_header(run: Run, tmp_path: Path) -> None:
    (tmp_path / "bare.swf").write_text(f"{line(allocated=6)}\n")
    done = run("workload", "show", "bare.swf")
    assert "no header: the machine, the date and the time zone are unknown; give --processors" in done.stdout
    assert _shown(done.stdout, "utilisation") == "-"
    done = run("workload", "show", "bare.swf", "--processors", 10)
    assert _shown(done.stdout, "utilisation") == "60.00"


def _shown(table: str, label: str) -> str:
    """Return the last cell of the row whose label begins so."""
    return next(row.split()[-1] for row in table.splitlines() if row.strip().startswith(label))


def test_words_of_strangers_do_not_reach_the_terminal(run: Run, tmp_path: Path) -> None:
    (tmp_path / "evil\x1b[2J.swf").write_text(f"; TimeZoneString: \x1b]0;x\x07\n; Computer: [red]\x1b[31m\n{line()}\n")
    done = run("workload", "show", "evil\x1b[2J.swf")
    assert "\x1b" not in done.stdout + done.stderr
    assert "\x07" not in done.stdout + done.stderr
    done = run("workload", "clean", "evil\x1b[2J.swf", "--output", "out.swf", code=1)
    assert "\x1b" not in done.stdout + done.stderr


def test_clean_writes_the_log_and_tells_what_it_did(run: Run, site: Path, tmp_path: Path) -> None:
    done = run("workload", "clean", site, "--output", "out.swf.gz", "--report", "report.json")
    assert "no run time" in done.stdout
    assert "240 jobs read, 1 dropped, 239 kept; machine of 10 processors (MaxProcs of the header)" in done.stdout
    assert done.stderr == "written: out.swf.gz\n"
    report = json.loads((tmp_path / "report.json").read_text())
    assert (report["read"], report["kept"]) == (240, 239)
    assert report["steps"][0] == {
        "action": "dropped", "first_job": 8, "first_line": 14, "jobs": 1, "what": "no run time",
        "why": "it never ran, or its end is unknown",
    }  # fmt: skip
    cleaned = read(tmp_path / "out.swf.gz", preset="none")
    assert cleaned.sha256() == read(site).sha256()


def test_clean_with_other_rules(run: Run, tmp_path: Path) -> None:
    (tmp_path / "log.swf").write_text(text_of([{"run_time": 30}, {"run_time": 0}, {"requested_time": 9_000_000}]))
    options = ["--overrun", "raise", "--zero-run", "one", "--longest-request", "1d"]
    done = run("workload", "clean", "log.swf", "--output", "out.swf", *options)
    log = read_swf(tmp_path / "out.swf")
    assert log.run_time.tolist() == [30, 1, 10]
    assert log.requested_time.tolist() == [30, 20, 86_400]
    assert "preset default with overrun raise, zero_run one, longest_request 86400" in done.stdout


def test_clean_and_missing_requests(run: Run, tmp_path: Path, shared: Callable[[str], Path]) -> None:
    done = run("workload", "clean", shared("traces/lublin_256.swf"), "--output", "out.swf", code=1)
    assert "10,000 of 10,000 usable jobs have no requested time (field 9), the first is job 1 (line 8)" in done.stderr
    assert not (tmp_path / "out.swf").exists()
    done = run(
        "workload",
        "clean",
        shared("traces/lublin_256.swf"),
        "--output",
        "out.swf",
        "--estimate-missing",
        "runtime",
        "--json",
    )
    report = json.loads(done.stdout)
    assert (report["preset"], report["estimate_missing"], report["dropped"]) == ("default", "runtime", 0)
    assert report["steps"][0]["what"] == "no requested time, the run time taken"
    log = read_swf(tmp_path / "out.swf")
    assert (log.requested_time == log.run_time).all()


def test_clean_writes_assumptions_and_says_for_how_many_jobs(run: Run, site: Path, tmp_path: Path) -> None:
    done = run("workload", "clean", site, "--assume", "mem=2000*q,g=0", "-o", "filled.swf")
    said = " ".join(done.stderr.split())
    assert "assumed mem=2000*q for" in said
    assert "assumed g=0 for" in said
    text = (tmp_path / "filled.swf").read_text()
    assert "; ExtraFields: memory_mb gpus\n" in text
    assert "; Note: assumed g=0 for" in text
    again = run("workload", "clean", "filled.swf", "--assume", "g=0")
    assert "the log says all that --assume g=0 names" in " ".join(again.stderr.split())
    wrong = run("workload", "clean", site, "--assume", "mem=lots", code=2)
    assert "write for example n=q/32,mem=2000*q,g=0" in " ".join(wrong.stderr.split())


def test_clean_warns_when_little_is_left(run: Run, tmp_path: Path) -> None:
    (tmp_path / "log.swf").write_text(text_of([{}, {"run_time": 0}, {"run_time": 0}]))
    done = run("workload", "clean", "log.swf", "--output", "out.swf")
    assert "warning: more than half of the jobs were dropped (2 of 3): is the preset right?" in done.stderr


def test_window_cuts_by_time(run: Run, site: Path, tmp_path: Path) -> None:
    done = run("workload", "window", site, "--output", "cut.swf", "--from", "1d", "--to", "3d")
    log = read_swf(tmp_path / "cut.swf")
    assert (len(log), int(log.submit[0]), log.header.unix_start) == (48, 0, 1_000_086_400)
    assert "Mon Sep 10 03:46:40 CEST 2001" in done.stdout


def test_window_cuts_by_date(run: Run, site: Path, tmp_path: Path) -> None:
    # The first job comes on 2001-09-09 at 03:46:40 at the site.
    run("workload", "window", site, "--output", "cut.swf", "--from", "2001-09-10", "--jobs", "5")
    log = read_swf(tmp_path / "cut.swf")
    assert log.job_id.tolist() == [22, 23, 24, 25, 26]


def test_window_writes_a_folder_of_windows(run: Run, site: Path, tmp_path: Path) -> None:
    done = run("workload", "window", site, "--output", "cut", "--windows", "4x2d")
    names = [f"site-w{number:02}.swf.gz" for number in (1, 2, 3, 4)]
    assert sorted(path.name for path in (tmp_path / "cut").iterdir()) == names
    assert [len(read_swf(tmp_path / "cut" / name)) for name in names] == [48] * 4
    assert "cut/site-w04.swf.gz" in done.stdout
    fewer = run("workload", "window", site, "--output", "cut", "--windows", "3x2d", "--overwrite")
    assert "cut has windows of an earlier cut as well, which stay: site-w04.swf.gz" in " ".join(fewer.stderr.split())


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        ([], 2, "say what to cut: --windows 10x15d, --from 30d --to 60d, or --jobs 5000"),
        (["--windows", "4x2d", "--jobs", "5"], 2, "--windows cuts the whole log"),
        (["--windows", "40x2d"], 1, "40 x 2d asked for, the log has 4 such windows (240 jobs in 9d 23h)"),
        (["--windows", "4xlong"], 2, "write for example 10x15d"),
        (["--from", "5d", "--to", "2d"], 2, "--from 5d is not before --to 2d"),
        (["--from", "soon"], 2, "write a time after the first job (30d, 12h) or a date"),
    ],
)  # fmt: skip
def test_window_used_wrongly(options: list[str], code: int, message: str, run: Run, site: Path) -> None:
    done = run("workload", "window", site, "--output", "out", *options, code=code)
    assert done.stderr.startswith("error: ")
    assert message in done.stderr


def test_wrong_input_is_explained(run: Run, tmp_path: Path) -> None:
    # One file of each kind of error; the others are tested where they are raised.
    (tmp_path / "cut.swf.gz").write_bytes(gzip.compress(text_of([{}] * 50).encode())[:60])
    (tmp_path / "bad.swf").write_text(f"{HEADER}{line()}\n{line(run_time='long')}\n")
    (tmp_path / "bare.swf").write_text(f"{line()}\n")
    messages = {
        "missing.swf": "no such file; check the name",
        "cut.swf.gz": "ends in the middle of its packed data",
        "bad.swf": "bad.swf:8: field 4 (run time) is 'long', a number is expected; mend or delete this line",
        "bare.swf": "say how many processors it has with --processors",
    }
    for name, message in messages.items():
        done = run("workload", "clean", name, "--output", "out.swf", code=1)
        assert message in done.stderr
        assert done.stderr.startswith("error: ")
        assert done.stderr.count("\n") == 1
        assert not (tmp_path / "out.swf").exists()


def test_wrong_output_is_found_before_the_work(run: Run, site: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    # The input is missing too: the output is looked at first.
    assert "is a directory" in run("workload", "clean", "missing.swf", "--output", ".", code=1).stderr
    assert (
        "does not exist; create it first"
        in run("workload", "clean", "missing.swf", "--output", "no/out.swf", code=1).stderr
    )
    assert "is a file; name a folder" in run("workload", "show", "missing.swf", "-o", "file", code=1).stderr
    assert "is an input of this command" in run("workload", "clean", site, "--output", site, code=2).stderr
    assert (
        "is an input of this command" in run("workload", "window", site, "--output", site, "--jobs", 5, code=2).stderr
    )
    assert (
        "is a file; name a folder"
        in run("workload", "window", site, "--output", "file", "--windows", "2d", code=1).stderr
    )
    assert (tmp_path / "file").read_text() == "x"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--preset", "sc18"], "no cleaning preset is called 'sc18'; did you mean sc17?"),
        (["--longest-request", "0"], "a cap is at least 1 s"),
        (["--longest-request", "soon"], "'soon' is not a duration"),
    ],
)
def test_wrong_options_are_explained(options: list[str], message: str, run: Run, site: Path) -> None:
    assert message in run("workload", "clean", site, "--output", "out.swf", *options, code=2).stderr


def test_overwrite_without_an_output_is_refused(run: Run, site: Path) -> None:
    for words in (
        ["show", site],
        ["clean", site],
        ["import", site],
        ["lublin"],
        ["resample", site],
        ["estimates", site],
    ):
        done = run("workload", *words, "--overwrite", code=2)
        assert "--overwrite is for a file to be written" in " ".join(done.stderr.split())


@pytest.fixture
def archive() -> Iterator[Server]:
    content = gzip.compress(text_of([{"submit": n} for n in range(3000)]).encode(), mtime=0)
    with serving(Server(content, path="/pwa/l_ctc_sp2/CTC-SP2-1996-3.1-cln.swf.gz")) as server:
        yield server


def base(server: Server) -> str:
    return server.url.removesuffix("/l_ctc_sp2/CTC-SP2-1996-3.1-cln.swf.gz")


def test_download_by_name(run: Run, archive: Server, tmp_path: Path) -> None:
    archive.cut_after = [len(archive.content) // 2]
    # A log that is named twice, in two ways, is one.
    done = run("workload", "download", "ctc", "CTC-SP2-1996-3.1-cln", "--base-url", base(archive), "-o", "logs")
    digest = hashlib.sha256(archive.content).hexdigest()
    assert "logs/CTC-SP2-1996-3.1-cln.swf.gz: 3,000 jobs" in done.stdout
    assert f"SHA-256 {digest} (not checked: no digest is known for this log" in done.stdout
    assert "https://www.cs.huji.ac.il/labs/parallel/workload/l_ctc_sp2/index.html" in done.stderr
    assert len(archive.requests) == 2
    manifest = json.loads((tmp_path / "logs" / "CTC-SP2-1996-3.1-cln.swf.manifest.json").read_text())
    assert manifest["outputs"] == {"CTC-SP2-1996-3.1-cln.swf.gz": digest}
    assert manifest["parameters"]["url"] == archive.url
    assert manifest["parameters"]["expected_sha256"] is None
    again = run("workload", "download", "ctc", "--base-url", base(archive), "-o", "logs", "--sha256", digest.upper())
    assert "was there already" in again.stdout
    assert "(as expected)" in again.stdout
    assert len(archive.requests) == 2


def test_a_download_that_fails_is_explained_and_gone_on_with(run: Run, archive: Server, tmp_path: Path) -> None:
    archive.cut_after = [1000]
    options = ["--base-url", base(archive)]
    done = run("workload", "download", "ctc", *options, "--tries", 1, code=1)
    assert "1,000 bytes are kept, the same command goes on from there" in done.stderr
    assert "went on after 1,000 bytes" in run("workload", "download", "ctc", *options).stdout
    assert (tmp_path / "CTC-SP2-1996-3.1-cln.swf.gz").read_bytes() == archive.content


def test_downloads_of_the_wrong_thing(run: Run, archive: Server, tmp_path: Path) -> None:
    options = ["--base-url", base(archive), "-o", tmp_path / "logs"]
    assert "the server has no such file (404)" in run("workload", "download", "kth", *options, code=1).stderr
    wrong = run("workload", "download", "ctc", "--sha256", "0" * 64, *options, code=1)
    assert f"expected {'0' * 64}" in wrong.stderr
    # A page in place of a log, as a captive portal sends it.
    archive.content = b"<html>please log in</html>"
    page = run("workload", "download", "ctc", *options, code=1)
    assert "what the server sent is not what it should be" in page.stderr
    assert "field 1 (job number) is '<html>please', a number is expected" in page.stderr
    assert not (tmp_path / "logs").exists(), "nothing was written"


def test_download_used_wrongly(run: Run) -> None:
    assert "name a log to download" in run("workload", "download", code=2).stderr
    assert "no log is called 'curry'; did you mean" in run("workload", "download", "curry", code=2).stderr
    assert "give one NAME" in run("workload", "download", "kth", "ctc", "--sha256", "0" * 64, code=2).stderr
    assert "only http and https" in run("workload", "download", "kth", "--base-url", "ftp://a/b", code=2).stderr
    for option in ("--tries", "--timeout", "--max-time", "--speed-limit", "--speed-time"):
        for value in ("-1", "9" * 30, "nan", "inf"):
            run("workload", "download", "kth", option, value, code=2)


def test_the_known_names_are_listed(run: Run) -> None:
    printed = run("workload", "download", "--list").stdout
    for log in KNOWN_LOGS.values():
        assert log.name in printed
        assert log.short in printed
