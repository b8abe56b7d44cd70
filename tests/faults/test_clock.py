"""The clock jumps by a year while a run is at work: the same bytes, no negative durations, no message of nonsense."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from faults.processes import EVALUATE, Nursery, hidden, results
from schedulers.processes import require
from support import NIGHTLY

# The wall clock as the C library tells it; other clocks, as that of durations, are left alone.
SOURCE = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>

static long jump(void) {
  static long calls;
  const char *step = getenv("JUMP");
  /* A year at a time, there and back: every third look at the clock is another year. */
  return (__sync_fetch_and_add(&calls, 1) / 3 % 2) * (step ? atol(step) : 0);
}

int clock_gettime(clockid_t clock, struct timespec *now) {
  static int (*real)(clockid_t, struct timespec *);
  if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
  int done = real(clock, now);
  if (!done && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) now->tv_sec += jump();
  return done;
}

int gettimeofday(struct timeval *now, void *zone) {
  struct timespec found;
  int done = clock_gettime(CLOCK_REALTIME, &found);
  (void)zone;
  now->tv_sec = found.tv_sec;
  now->tv_usec = found.tv_nsec / 1000;
  return done;
}

time_t time(time_t *where) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (where) *where = now.tv_sec;
  return now.tv_sec;
}
"""
YEAR = 366 * 86400
COMMANDS: dict[str, tuple[str, ...]] = {
    "generate": ("generate", "LOG", "--tuples", "40", "--trials", "2560", "--workers", "2", "--output", "t.csv"),
}
if NIGHTLY:
    COMMANDS |= {
        "evaluate": ((*EVALUATE, "e")),
        "learn": (
            "learn",
            "LOG",
            "--estimate-missing",
            "runtime",
            "--tuples",
            "64",
            "--trials",
            "256",
            "--output",
            "l",
        ),
        "import": ("workload", "lublin", "--jobs", "1000", "--output", "m.swf"),
    }


@pytest.fixture(scope="module")
def clock(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a library whose wall clock jumps."""
    require("gcc")
    folder = tmp_path_factory.mktemp("clock")
    (folder / "clock.c").write_text(SOURCE, encoding="ascii")
    words = ["gcc", "-O1", "-Wall", "-Werror", "-shared", "-fPIC", "-o", "clock.so", "clock.c", "-ldl"]
    subprocess.run(words, cwd=folder, check=True)
    return folder / "clock.so"


def test_the_clock_of_a_run_does_jump(clock: Path) -> None:
    code = "import time; print(*(round((time.time() - 1.7e9) / 3.16e7) for _ in range(12)))"
    environment = {"LD_PRELOAD": str(clock), "JUMP": str(10 * YEAR)}
    done = subprocess.run(["python3", "-c", code], capture_output=True, text=True, check=True, env=environment)
    years = set(map(int, done.stdout.split()))
    assert max(years) - min(years) == 10


def numbers(value: object) -> list[float]:
    """Return all numbers in JSON values."""
    if isinstance(value, dict | list):
        return [one for entry in (value.values() if isinstance(value, dict) else value) for one in numbers(entry)]
    return [value] if isinstance(value, int | float) else []


@pytest.mark.parametrize("step", [YEAR, -YEAR])
@pytest.mark.parametrize("name", COMMANDS)
def test_a_jump_of_the_clock_changes_nothing(
    nursery: Nursery, tmp_path: Path, log: Path, clock: Path, name: str, step: int
) -> None:
    words = [str(log) if word == "LOG" else word for word in COMMANDS[name]]
    folders = tmp_path / "true", tmp_path / "jumping"
    for folder in folders:
        folder.mkdir()
    nursery.start(folders[0], *words).must_end()
    run = nursery.fresh(folders[1], *words, LD_PRELOAD=str(clock), JUMP=str(step)).must_end()
    expected, result = (results(folder) for folder in folders)
    # Tables for the terminal tell durations.
    for files in (expected, result):
        files.pop("l/steps.txt", None)
    assert result == expected
    assert hidden(folders[1]) == []
    for path in folders[1].rglob("*manifest.json"):
        measured = numbers(json.loads(path.read_text(encoding="utf-8"))["measured"])
        assert all(0 <= number < 1e9 for number in measured), path
    for output in (run.stderr, run.printed):
        assert " -0:" not in output
        assert "day" not in output
