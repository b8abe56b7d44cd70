"""Every reader answers whatever it is given; `hostile.fuzz` looks for what it does not answer."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from hostile.fuzz import check_message, main
from hostile.mutations import changed
from hostile.targets import TARGETS
from policyfactory.core.errors import InputError, PolicyfactoryError
from support import NIGHTLY, ROOT

pytestmark = pytest.mark.slow


def hunted(program: str, folder: Path, *options: str) -> list[str]:
    """Hunt in a process of its own, which has its memory limited and can be killed; return its lines."""
    done = subprocess.run(
        [sys.executable, "-m", program, "--folder", str(folder), *options],
        cwd=ROOT / "tests",
        env=os.environ | {"PYTHONPATH": str(ROOT / "tests")},
        capture_output=True,
        text=True,
        check=False,
        timeout=1800,
    )
    assert done.returncode == 0, f"the inputs are kept in {folder}\n{done.stdout}\n{done.stderr}"
    return done.stdout.splitlines()


def test_no_reader_breaks(tmp_path: Path) -> None:
    output = hunted("hostile.fuzz", tmp_path)
    assert [line.partition(":")[0] for line in output] == list(TARGETS)
    for target, line in zip(TARGETS.values(), output, strict=True):
        assert f"{target.examples:,} inputs" in line
        assert " 0 faults, " in line


@pytest.mark.skipif(not NIGHTLY, reason="ten minutes: make nightly, make fuzz")
def test_no_reader_breaks_where_coverage_leads() -> None:
    pytest.importorskip("atheris")
    # The corpus of the last night is used, and what is found stays.
    output = hunted("hostile.guided", ROOT / ".fuzz", "--seed", str(int.from_bytes(os.urandom(3), "big")))
    assert [line.partition(":")[0] for line in output] == list(TARGETS)
    assert all(line.endswith(" 0 faults") for line in output)


PLANTED = """
import os
import sys
import atheris
from hostile import targets
from hostile.guided import hunt

@atheris.instrument_func
def planted(path):
    if any(path.parent.glob("fault-*")):  # found, or ten minutes are over
        sys.stdout.flush()
        os._exit(0)
    data = path.read_bytes()
    if data[:1] == b"#":
        if data[1:2] == b"7":
            if data[2:3] == b"&":
                if data[3:4] == b"~":
                    raise ValueError("found")
    return "nothing"

targets.TARGETS = {"planted": targets.Target("planted", [b"; MaxProcs: 64"], planted, "log.swf")}
hunt("planted", sys.argv[1], 600, 7)
"""


def test_coverage_leads_to_what_chance_does_not_find(tmp_path: Path) -> None:
    pytest.importorskip("atheris")
    done = subprocess.run(
        [sys.executable, "-c", PLANTED, str(tmp_path)],
        env=os.environ | {"PYTHONPATH": str(ROOT / "tests")}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "planted: ValueError at " in done.stdout, done.stderr
    (kept,) = (tmp_path / "planted").glob("fault-planted-*")
    assert kept.read_bytes()[:4] == b"#7&~"


@pytest.mark.parametrize("name", TARGETS)
def test_the_genuine_inputs_are_read(name: str, tmp_path: Path) -> None:
    target = TARGETS[name]
    if name == "detection":
        return
    path = tmp_path / (target.file or "text")
    read = 0
    for seed in target.seeds:
        path.write_bytes(seed)
        try:
            target.call(path)
        except PolicyfactoryError:
            continue
        else:
            read += 1
    assert read >= len(target.seeds) - (name in {"swf", "formula"})


def test_changes_are_many_and_the_same_for_the_same_seed() -> None:
    seed = b"; MaxProcs: 64\n1 0 5 100 4 -1 -1 4 200 -1 1 3 1 -1 1 -1 -1 -1\n"
    once = [changed(Random(number), seed, b"other\nlines\n") for number in range(300)]
    assert once == [changed(Random(number), seed, b"other\nlines\n") for number in range(300)]
    assert len(set(once)) > 250


@pytest.mark.parametrize(
    ("said", "fault"),
    [
        ("log.swf:1: \x1b[2J", "raw '\\x1b'"),
        ("log.swf: " + "x" * 5000, "a message of 5,009 characters"),
        ("something is wrong", "does not name the file"),
        ("", "a message of 0 characters"),
    ],
)
def test_a_message_that_cannot_be_shown_is_a_fault(said: str, fault: str) -> None:
    with pytest.raises(AssertionError) as caught:
        check_message(InputError(said), "log.swf")
    assert fault in str(caught.value)


BROKEN = """
import dataclasses, sys
import numpy as np
from hostile import fuzz
from policyfactory.core.errors import InputError

def broken(path):
    data = path.read_bytes()
    if b"64" not in data:
        match len(data) % 5:
            case 0: raise ValueError("no")
            case 1:
                while True: pass
            case 2: np.empty(1 << 28)
            case 3: raise InputError("no")
            case 4: np.int64(2**62) * 4
    raise InputError(path.name)

fuzz._CPU_SECONDS = 0.1
fuzz.TARGETS = {"swf": dataclasses.replace(fuzz.TARGETS["swf"], call=broken, examples=150)}
sys.exit(fuzz.main(["--folder", sys.argv[1]]))
"""


def test_the_hunt_finds_what_is_broken(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", BROKEN, str(tmp_path)],
        env=os.environ | {"PYTHONPATH": str(ROOT / "tests")}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1, done.stdout + done.stderr
    for fault in ("ValueError", "HangError", "MemoryError", "RuntimeWarning", "AssertionError"):
        assert f"swf: {fault} at" in done.stdout
    assert "the message does not name the file log.swf" in done.stdout
    assert len(list((tmp_path / "swf").glob("fault-swf-*"))) == 5
    assert done.stdout.count("repeat: python -m hostile.fuzz --repeat swf ") == 5


def test_a_kept_input_is_read_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kept = tmp_path / "fault-queue-1"
    kept.write_bytes(b"JOBID\n1\n")
    assert main.__module__ == "hostile.fuzz"
    from hostile.fuzz import repeat

    assert repeat("queue", kept) == 0
    assert "no column SUBMIT_TIME" in capsys.readouterr().out
