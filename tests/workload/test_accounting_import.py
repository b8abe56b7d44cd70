"""The whole import: genuine dumps of one Slurm in several forms, packed and piped files, what the new log says."""

from __future__ import annotations

import gzip
import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from accounting_logs import COLUMNS, T0, UTC, Cells, column, counts, imported, job, sacct_text
from commands import runner
from policyfactory.core.errors import InputError, TraceFormatError, UsageError
from policyfactory.core.inputs import sha256_file
from policyfactory.workload.accounting.importing import Imported, import_logs
from policyfactory.workload.accounting.options import ImportRules, Labels
from policyfactory.workload.accounting.source import _LONGEST_LINE, FORMATS, Source, detect, find_format
from policyfactory.workload.clean import read
from policyfactory.workload.describe import wait_tables
from policyfactory.workload.swf.files import format_swf, read_swf, write_swf
from refusals import refusal, refused

FIELDS = ("submit", "wait", "run_time", "allocated", "requested", "requested_time", "status", "user", "group", "queue")


@pytest.fixture
def dump(shared: Callable[[str], Path]) -> Callable[..., Imported]:
    """Give the import of one of the genuine dumps; they are of one cluster in November 2026, in UTC."""

    def call(name: str, **rules: object) -> Imported:
        return import_logs([shared(f"oracles/slurm/{name}")], rules=ImportRules(**rules), zone=UTC)

    return call


def test_the_genuine_dumps_of_all_runs_give_the_same_jobs(dump: Callable[..., Imported]) -> None:
    text = column(dump("sacct_sample.txt"), *FIELDS)
    assert len(text) == 45
    assert column(dump("sacct_sample.json"), *FIELDS) == text
    assert column(dump("jobcomp_filetxt_sample.txt"), *FIELDS) == text
    # Printed three minutes later and with five jobs more: job 52, the last of these, ran then.
    recommended = column(dump("sacct_recommended.txt", end=1795190842), *FIELDS)
    assert recommended[:-1] == text


def test_the_genuine_dumps_without_earlier_runs_give_the_same_but_for_the_requeued(
    dump: Callable[..., Imported],
) -> None:
    every = dump("sacct_sample.txt")
    without, lines = dump("sacct_sample_nodups.txt"), dump("sacct_sample_X.txt")
    assert column(without, *FIELDS) == column(lines, *FIELDS)
    # Only the requeue time of jobs 10, 25 and 35 is known: they come later and wait less.
    fields = tuple(name for name in FIELDS if name not in {"submit", "wait"})
    assert sorted(column(without, *fields)) == sorted(column(every, *fields))
    apart = set(column(every, "submit", "wait", "run_time")) ^ set(column(without, "submit", "wait", "run_time"))
    assert sorted(apart) == [(1, 149, 6), (1, 151, 83), (26, 126, 6), (29, 121, 6), (31, 121, 6), (31, 121, 83)]


def test_the_genuine_dump_has_all_cases_and_each_is_counted(dump: Callable[..., Imported]) -> None:
    done = dump("sacct_sample.txt")
    assert counts(done) == {
        "sacct.steps": 54,
        "rules.last_run": 3,
        "rules.waits": 1,
        "rules.runs": 1,
        "rules.cancelled": 1,
        "rules.het": 1,
        "sacct.mended": 1,
        "sacct.zoneless": 52,
        "rules.unlimited": 1,
        "rules.asked": 38,
        "rules.more_nodes": 6,
        "rules.more_than_asked": 1,
        "rules.overrun": 2,
        "rules.eligible": 4,
    }
    assert done.report.machine == 64
    each = dump("sacct_sample.txt", requeued="runs")
    assert counts(each)["rules.suspended"] == 1
    default = dump("sacct_sample.txt", default_limit={"batch": 3600})
    # Of the limits of one hour, which is the default of this partition, one was asked for (job 7 waits).
    assert counts(default)["rules.default_keep"] == 6


def test_a_dump_without_times_is_refused_with_the_command(shared: Callable[[str], Path]) -> None:
    with refusal(TraceFormatError, "sacct_sample_default.txt:1 SLURM_TIME_FORMAT=%s column"):
        import_logs([shared("oracles/slurm/sacct_sample_default.txt")], zone=UTC)


def test_the_new_log_is_read_back_with_its_starts(dump: Callable[..., Imported], tmp_path: Path) -> None:
    done = dump("sacct_recommended.txt")
    path = tmp_path / "cluster.swf.gz"
    write_swf(done.log, path)
    log = read_swf(path)
    assert column(SimpleNamespace(log=log), *FIELDS) == column(done, *FIELDS)  # type: ignore[arg-type]
    write_swf(done.log, tmp_path / "plain.swf")
    assert (tmp_path / "plain.swf").read_bytes() == gzip.decompress(path.read_bytes()) == format_swf(done.log)
    assert log.header.unix_start == 1795190789
    workload = read(path, estimate_missing="drop")
    assert workload.machine == 64
    assert (workload.start >= workload.submit).all()
    assert np.flatnonzero(log.requested_time < 0).tolist() != []


def test_the_header_says_what_was_done(tmp_path: Path) -> None:
    labels = Labels("a machine", "a site", 9, "policyfactory workload import log.txt")
    done = imported(tmp_path, job(1), job(2, Partition="gpu"), labels=labels)
    head = "\n".join(done.log.header.lines)
    for line in (
        "; Computer: a machine", "; Installation: a site", "; MaxNodes: 9", "; MaxProcs: 8", "; MaxQueues: 2",
        "; Queue: 1 batch", "; Queue: 2 gpu", "; TimeZoneString: UTC", f"; UnixStartTime: {T0}",
        "; StartTime: Tue Nov 14 22:13:20 UTC 2023", "; Note: time zone: only that of the dates above; ",
    ):  # fmt: skip
        assert line in head
    assert "a lower bound; --processors says the true number" in head
    assert done.log.queue.tolist() == [1, 2]


def test_job_names_and_qualities_of_service_are_numbers(tmp_path: Path) -> None:
    names = ["relax_1", "relax_2", "", "md", "relax_17", "17"]
    qualities = ["normal", "high", "", "normal", "normal", "high"]
    jobs = [
        job(number, number, JobName=name, QOS=quality)
        for number, (name, quality) in enumerate(zip(names, qualities, strict=True))
    ]
    path = tmp_path / "named.txt"
    path.write_text(sacct_text(*jobs, columns=[*COLUMNS, "JobName"]))
    done = import_logs([path], zone=UTC)
    # Names that differ in their digits only are one; no name is -1.
    assert done.log.executable.tolist() == [1, 1, -1, 2, 1, 3]
    assert done.log.partition.tolist() == [1, 2, -1, 1, 1, 2]
    text = format_swf(done.log).decode()
    assert "relax" not in text
    assert "; QOS: 1 normal\n; QOS: 2 high\n; Account: 1 physics\n" in text
    (tmp_path / "site.swf").write_text(text)
    attributes = read(tmp_path / "site.swf").attributes
    assert attributes is not None
    assert attributes.executable.tolist() == [1, 1, -1, 2, 1, 3]
    assert attributes.partition.tolist() == [1, 2, -1, 1, 1, 2]
    assert imported(tmp_path, *jobs).log.executable.tolist() == [-1] * 6


def secrets() -> list[Cells]:
    who = {"UID": "anna", "GID": "chemists", "Account": "secret", "Partition": "hidden"}
    return [
        job(f"90017{n}", n, UID=f"user{n % 7}", GID=f"group{n % 3}", Partition=f"part{n % 2}") for n in range(30)
    ] + [job("900999", 40, **(who | {"Partition": "hidden"}))]


def test_an_anonymous_log_has_no_names_and_the_same_jobs(tmp_path: Path) -> None:
    labels = Labels(command="policyfactory workload import secret-place.txt", anonymous=True, seed=3)
    plain = imported(tmp_path, *secrets())
    anonymous = imported(tmp_path, *secrets(), labels=labels)
    numbers = ("submit", "wait", "run_time", "allocated", "requested", "requested_time", "status")
    assert column(anonymous, *numbers) == column(plain, *numbers)
    for name in ("user", "group", "queue"):
        pairs = set(zip(getattr(plain.log, name).tolist(), getattr(anonymous.log, name).tolist(), strict=True))
        one, other = zip(*sorted(pairs), strict=True)
        assert sorted(set(other)) == list(one), "another number for each, none left out"
    assert anonymous.log.user.tolist() != plain.log.user.tolist()
    text = format_swf(anonymous.log).decode()
    for word in ("user", "group3", "part0", "hidden", "anna", "chemists", "secret", "9001", "900999", "log.txt"):
        ours = "users, groups, accounts, job names, queues and partitions are numbered"
        assert word not in text.replace(ours, "").replace("MaxQueues", "")
    again = imported(tmp_path, *secrets(), labels=labels)
    assert format_swf(again.log) == format_swf(anonymous.log)
    other_seed = imported(tmp_path, *secrets(), labels=Labels(anonymous=True, seed=4))
    assert other_seed.log.user.tolist() != anonymous.log.user.tolist()


def test_groups_are_accounts_where_the_log_has_no_groups(tmp_path: Path) -> None:
    done = imported(tmp_path, job(1, GID="", Account="a"), job(2, GID="", Account="b"), job(3, GID="", Account="a"))
    assert done.log.group.tolist() == [1, 2, 1]
    unknown = imported(tmp_path, job(1, GID="", Account="", UID=""))
    assert (unknown.log.group.tolist(), unknown.log.user.tolist()) == ([-1], [-1])


def test_packed_piped_and_odd_texts_are_the_same_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = sacct_text(job(1), job(2, 5)).encode()
    half = text.index(b"\n", 200) + 1
    forms = {
        "plain": text,
        "packed.gz": gzip.compress(text),
        "members": gzip.compress(text[:half]) + gzip.compress(text[half:]) + b"\0" * 100,
        "windows": b"\xef\xbb\xbf" + text.replace(b"\n", b"\r\n"),
        "no end": text[:-1],
        "blank lines": b"\n\n" + text + b"\n\n",
        "not UTF-8": text.replace(b"physics", b"ph\xffsics"),
    }
    for name, data in forms.items():
        (tmp_path / name).write_bytes(data)
        done = import_logs([tmp_path / name], zone=UTC)
        assert column(done, "submit", "run_time") == [(0, 100), (5, 100)], name
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(text)))
    assert import_logs(["-"], zone=UTC).report.inputs[0][0] == "stdin"
    refused(UsageError, "stdin read", import_logs, ["-", "-"], zone=UTC)


def test_names_that_are_no_utf_8_stay_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    names = [b"ren\xe9", b"ren\xe8", "ren\u00e9".encode()]
    marks = [f"name{number}" for number in range(3)]
    jobs = (job(n, n, User=name, Partition=name) for n, name in enumerate(marks))
    text = sacct_text(*jobs, columns=[name for name in COLUMNS if name != "UID"]).encode()
    for mark, name in zip(marks, names, strict=True):
        text = text.replace(mark.encode(), name)
    (tmp_path / "log").write_bytes(text)
    for few in (0, 1000):
        monkeypatch.setattr("policyfactory.workload.accounting.sacct._FEW_LINES", few)
        done = import_logs([tmp_path / "log"], zone=UTC, labels=Labels(users=True))
        assert done.log.user.tolist() == done.log.queue.tolist() == [1, 2, 3]
        assert [name.encode("utf-8", "surrogateescape") for name in done.partition] == names
        shown = ["ren\\udce9", "ren\\udce8", "ren\u00e9"]
        assert done.log.header.values("User") == tuple(f"{n} {name}" for n, name in enumerate(shown, start=1))
        write_swf(done.log, tmp_path / "log.swf")
        assert [row["group"] for row in wait_tables(read_swf(tmp_path / "log.swf"))[1].rows] == [
            f"partition {name}" for name in shown
        ]
    run = runner(tmp_path, monkeypatch, capfd)
    assert "ren\\udce9" in run("workload", "import", tmp_path / "log").stdout
    json.loads(run("workload", "import", tmp_path / "log", "--json").stdout)


def test_a_file_called_stdin_is_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(sacct_text(job(1)).encode())))
    Path("stdin").write_text(sacct_text(job(1), job(2, 5)), encoding="utf-8")
    assert column(import_logs(["stdin"], zone=UTC), "submit", "run_time") == [(0, 100), (5, 100)]


def test_lines_are_the_same_however_the_blocks_fall(tmp_path: Path) -> None:
    lines = [f"line {number} " + "\u00e9" * (number % 50) for number in range(40_000)]
    path = tmp_path / "long"
    path.write_bytes("\r\n".join(lines).encode())
    assert list(Source(path).lines()) == lines
    packed = tmp_path / "packed"
    packed.write_bytes(gzip.compress("\n".join(lines).encode(), 1))
    source = Source(packed)
    assert "".join(source.chunks()) == "\n".join(lines)
    assert source.sha256 == sha256_file(packed)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "log empty"), (b"BZh91AY", "log bzip2 written"), (b"\xff\xfeJ\0", "log UTF-16"),
        (b"\x1f\x8b" + b"x" * 50, "log damaged -3"), (b"hello world\n", "log:1 hello world"),
        (b"1|1|blocker|0|0|root\n", "log:1 header line 1|1|blocker|0|0|root"),
        (b"; Version: 2.2\n", "log Standard Workload"),
        (b"1 0 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17\n", "log Standard Workload"),
        (gzip.compress(sacct_text(*[job(n) for n in range(3000)]).encode(), mtime=0)[:-40], "log ends middle"),
        (b"JobID|State|" + b"x" * (_LONGEST_LINE + 5), "log:1 1,048,576 characters"),
    ],
)  # fmt: skip
def test_what_is_no_accounting_log_is_refused(tmp_path: Path, data: bytes, message: str) -> None:
    path = tmp_path / "log"
    path.write_bytes(data)
    refused(InputError, message, import_logs, [path], zone=UTC)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    refused(InputError, "none file", import_logs, [tmp_path / "none"], zone=UTC)
    refused(InputError, f"{tmp_path} directory", import_logs, [tmp_path], zone=UTC)


def test_a_format_is_known_by_the_first_lines_or_by_name() -> None:
    heads = {
        "sacct": "\nJobIDRaw|State|Submit\n1|", "sacct-json": '{\n "meta": {', "filetxt": "JobId=5 UserId=root(0)",
        "pbs": "06/06/2005 14:07:17;E;407.host;user=guest",
        "gridengine": "# Version: 8.1\n" + ":".join(str(at) for at in range(36)),
    }  # fmt: skip
    assert {name: detect(head, "log").name for name, head in heads.items()} == {name: name for name in FORMATS}
    assert detect("JobID\x1fState\n", "log").name == "sacct"
    refused(UsageError, "swf sacct-json --format", find_format, "swf")


def test_what_a_stranger_wrote_cannot_command_the_terminal(tmp_path: Path) -> None:
    evil = "\x1b[2J;\u202e"
    done = imported(tmp_path, job(1, Partition=evil, UID=evil), job(f"2{evil}", State="PENDING"))
    shown = repr(done.report.rows()) + repr(done.report.partition_rows()) + format_swf(done.log).decode()
    assert "\x1b" not in shown.replace("\\x1b", "")
    assert "\x1b" not in "".join(cell for row in done.report.rows() + done.report.partition_rows() for cell in row)
    assert "\u202e" not in format_swf(done.log).decode()
