"""The horrors by name: bombs, lines of 100 MB, numbers beyond all bounds, deep nesting, tricks of Unicode."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from hostile.fuzz import MEMORY, check_message
from hostile.seeds import FILETXT, MODEL, PBS, PREDICTIONS, PROTOCOLS, QUEUES, SACCT, SACCT_JSON, SCORES, SWF
from hostile.targets import TARGETS
from policyfactory.core.errors import PolicyfactoryError, WorkloadError
from policyfactory.workload.clean import read
from refusals import refused
from support import NIGHTLY, ROOT

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, object]]:
    """What readers and commands said about large files and numbers, in a process with 1 GiB of memory."""
    folder = tmp_path_factory.mktemp("big")
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "hostile.big", str(folder)],
        env=os.environ | {"PYTHONPATH": str(ROOT / "tests")}, capture_output=True, text=True, timeout=900, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    output = json.loads(done.stdout)
    assert output["peak"] * (1 << 20) <= MEMORY + (200 << 20)  # with the pages of the libraries' files
    return output["output"]


def test_large_inputs_and_numbers_are_answered_in_time_and_memory(measured: dict[str, dict[str, object]]) -> None:
    assert len(measured) > 30
    for name, one in measured.items():
        said = str(one["said"])
        assert "FAULT" not in said, f"{name}: {said}"
        assert "not enough memory" not in said, f"{name}: {said}"
        assert float(str(one["seconds"])) < 20, f"{name}: {one}"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("swf bomb of zeros", "unpacks to a line of more than 1,048,576 characters; is this a log?"),
        (
            "swf bomb of jobs",
            "unpacks to more than 50 times its size, which no log does; if it is one, unpack it first",
        ),
        ("pbs that goes on as a bomb of zeros", "a line of more than 1,048,576 characters; is this an accounting log?"),
        ("pbs that goes on as a bomb of ends", "unpacks to more than 50 times its size"),
        ("sacct nested", "is not recognised as an accounting log"),
        ("swf line of cells", "a number is expected"),
        ("scores line of cells", "characters, expected 4 numbers"),
        ("predictions line of cells", "has a line of more than 100,000 characters"),
        ("model line of cells", "more than the 8,388,608 that are read"),
        ("workload show mild.swf.gz", "mild.swf.gz: unpacks to more than 50 times its size"),
        ("workload import mild.txt.gz", "mild.txt.gz: unpacks to more than 50 times its size"),
        ("workload show z.swf", "z.swf: is a device or a socket; name a file"),
        ("workload import z.txt", "z.txt: is a device or a socket; name a file"),
        ("evaluate z.toml", "z.toml: is a device or a socket; name a file"),
        (
            "evaluate small.swf --policies FCFS,./z.json --estimate-missing runtime",
            "z.json: is a device or a socket; name a file",
        ),
        ("policy show ./z.json", "z.json: is a device or a socket; name a file"),
        ("fit z.csv", "z.csv: is a device or a socket; name a file"),
        ("export ./z.json --to c", "z.json: is a device or a socket; name a file"),
    ],
)
def test_what_is_said_about_them(name: str, said: str, measured: dict[str, dict[str, object]]) -> None:
    assert said in str(measured[name]["said"])


def answer(name: str, folder: Path, data: bytes) -> str:
    """What a reader says about one input."""
    target = TARGETS[name]
    path = folder / (target.file or "text")
    path.write_bytes(data)
    try:
        return target.call(path)
    except PolicyfactoryError as error:
        check_message(error, target.file)
        return str(error)


# Reader -> its input with %s in the place of one number after the other.
PLACES = {
    "swf": [SWF[0].replace(old, b"%s", 1) for old in (b"64", b"1700000000", b"100 4", b"3600", b"9000", b"50.25")],
    "sacct": [
        SACCT[0].replace(old, b"%s", 1) for old in (b"1700000000", b"|100|60", b"|60|", b"cpu=4", b"00:00:00", b"1-9")
    ],
    "sacct-json": [SACCT_JSON[0].replace(old, b"%s", 1) for old in (b"7,", b"1700000027", b"11", b"5}", b": 4", b"8}")],
    "pbs": [PBS[0].replace(old, b"%s") for old in (b"1772445600", b"16", b"0*8", b"01:00:00", b"2:ncpus", b"0-9:2")],
    "filetxt": [FILETXT[0].replace(old, b"%s") for old in (b"17", b"90", b"32", b"cpu=20", b"NodeCnt=2")],
    "scores": [SCORES[0].replace(old, b"%s", 1) for old in (b"10", b"3600", b"12.5", b"0.5", b"0.01", b"1\n")],
    "model": [MODEL[0].replace(old, b"%s", 1) for old in (b"1700000000", b"3600.5", b"870.0", b"null", b'": 1')],
    "protocol": [PROTOCOLS[0].replace(old, b"%s", 1) for old in (b"= 1", b"= 7", b"64", b"= 100", b"18h", b"20h")],
    "predictions": [PREDICTIONS[0].replace(old, b"%s", 1) for old in (b"1,", b"100", b"3000.5")],
    "queue": [QUEUES[0].replace(old, b"%s", 1) for old in (b"9", b",1,", b"1795294232", b"1:00:00", b"0-3")],
    "formula": [b"p*%s", b"p**%s", b"p + %s*q", b"%s", b"min(p, %s)"],
    "options": [b"%s", b"%sh", b"p=%s", b"q=%s", b"batch=%s", b"2026-%s-01"],
}
NUMBERS = [
    *(b"1000000000", b"1000000000000000000", b"1" + b"0" * 400, b"9" * 5000, b"-1", b"-1000000000", b"-" + b"9" * 400),
    *(
        b"nan",
        b"inf",
        b"-inf",
        b"Infinity",
        b"1e9",
        b"1e308",
        b"1e309",
        b"1e-400",
        b"1e999999999",
        b"-1e400",
        b"0x" + b"f" * 5000,
    ),
    *(
        "１２３".encode(),
        "٣".encode(),
        "²".encode(),
        "1\u00a0".encode(),
        "\u202e1".encode(),
        b"1\x00",
        b"\xff",
        b"1_000",
        b"",
    ),
]


# By day one of each kind.
if not NIGHTLY:
    NUMBERS = [b"1000000000", b"9" * 5000, b"-1", b"nan", b"-inf", b"1e309", b"1e999999999", "²".encode(), b"\xff", b""]


@pytest.mark.parametrize("name", PLACES)
def test_any_number_in_any_field_is_read_or_refused(name: str, tmp_path: Path) -> None:
    for place in PLACES[name]:
        assert b"%s" in place
        for number in NUMBERS:
            assert answer(name, tmp_path, place.replace(b"%s", number))


NESTS = {
    "sacct-json": [b'{"jobs":' + b"[" * 100_000, b'{"jobs":[' + b'{"a":' * 100_000, b'{"a":' * 100_000],
    "model": [b"[" * 100_000, b'{"a":' * 100_000, MODEL[0].replace(b"{}", b"[" * 50_000 + b"]" * 50_000)],
    "manifest": [b"[" * 100_000, b'{"outputs":' * 90_000],
    "journal": [b"[" * 10_000 + b"\n", b'{"mark":' * 5_000 + b"\n"],
    "protocol": [
        b"a = " + b"[" * 100_000, b"a = " + b"{a=" * 90_000, b"seed" + b".a" * 20_000 + b" = 1",
        b"[" + b"a." * 900 + b"a]",
        b"schema_version" + b".a" * 900 + b" = 1",
    ],
    "formula": [
        b"-" * 100_000 + b"p", b"(" * 100_000, b"-" * 3_999 + b"p", b"(" * 1_999 + b"p" + b")" * 1_999,
        b"p**" * 1_333 + b"p",
        b"sqrt(" * 700 + b"p", b"p" + b"+p" * 1_999, b"p" + b"/p" * 1_999,
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", NESTS)
def test_deep_nesting_is_refused(name: str, tmp_path: Path) -> None:
    for data in NESTS[name]:
        said = answer(name, tmp_path, data)
        assert len(said) > 40, f"{data[:40]!r} was read: {said}"


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("model", MODEL[0].replace(b'"name"', b'"formula": "p", "name"'), "a field is given twice"),
        ("protocol", PROTOCOLS[0].replace(b"seed = 7", b"seed = 7\nseed = 8"), "is no TOML: Cannot overwrite a value"),
        ("sacct", SACCT[0].replace(b"|QOS|", b"|UID|"), "two columns are called UID; ask for it once"),
        ("queue", QUEUES[0].replace(b"USER", b"CPUS"), "two columns are the processors; keep one"),
        ("predictions", PREDICTIONS[0].replace(b"2,0", b"1,0"), "job 1 has more than one prediction"),
    ],
)
def test_what_is_said_twice_is_refused(name: str, data: bytes, said: str, tmp_path: Path) -> None:
    assert said in answer(name, tmp_path, data)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-32", "cp500"])
@pytest.mark.parametrize("name", ["swf", "sacct", "pbs", "scores", "model", "protocol", "queue", "predictions"])
def test_other_encodings_are_reported(name: str, encoding: str, tmp_path: Path) -> None:
    text = TARGETS[name].seeds[0].decode().encode(encoding)
    assert TARGETS[name].file in answer(name, tmp_path, text)


def test_sums_of_the_largest_times_are_reported_or_handled(tmp_path: Path) -> None:
    """18 digits are read; what would not fit into 64 bits when it is added up is refused."""
    row = "{} 0 0 {t} 1000000000 -1 -1 1000000000 {t} -1 1 1 1 -1 1 -1 -1 -1\n"
    path = tmp_path / "large.swf"
    path.write_text("; MaxProcs: 1000000000\n" + "".join(row.format(n, t="9" * 18) for n in range(1, 30)))
    refused(WorkloadError, "64 bits", read, path)
    path.write_text("; MaxProcs: 1000000000\n" + row.format(1, t="9" * 17))
    assert read(path).run_time.tolist() == [10**17 - 1]


def test_a_full_disk_behind_standard_output_is_reported_as_such() -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "policyfactory", "policy", "list"],
            stdout=full, stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr.startswith("error: standard output: No space left on device; make room where it is written to")
