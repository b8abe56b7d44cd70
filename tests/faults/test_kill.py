"""``kill -9`` at any moment: what is on the disk is old, new or can be gone on with, and the end has the same bytes."""

from __future__ import annotations

import contextlib
import logging
import os
import random
import shutil
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from faults.processes import Nursery, Run, hidden, results, tree, wait_until
from support import NIGHTLY

# Most of an evaluation's time goes into its report: in every run of the tests it is killed less often.
KILLS = {"generate": 100 if NIGHTLY else 20, "evaluate": 20 if NIGHTLY else 2, "loky": 20 if NIGHTLY else 1}
GENERATE = ("--tuples", "60", "--trials", "6400", "--output", "out/t.csv", "--workers", "2")
EVALUATE = ("--policies", "FCFS,SAF", "--estimate-missing", "runtime", "--windows", "6x100jobs", "--workers", "2")
EVALUATE += ("--output", "out")
COMMANDS = {"generate": GENERATE, "evaluate": EVALUATE}


def folders(top: Path) -> Iterator[Path]:
    """Give new folders in which outputs are made."""
    number = 0
    while True:
        number += 1
        folder = top / str(number)
        (folder / "out").mkdir(parents=True)
        yield folder


class Undisturbed:
    """What a command leaves that nobody disturbs, and how long it takes."""

    def __init__(self, nursery: Nursery, folder: Path, *words: object) -> None:
        (folder / "out").mkdir()
        begin = time.monotonic()
        run = nursery.start(folder, *words, brief=True)
        run.must_end()
        self.seconds = time.monotonic() - begin
        self.files = results(folder)
        assert hidden(folder) == []


@pytest.fixture(scope="module", params=COMMANDS)
def words(request: pytest.FixtureRequest, log: Path) -> tuple[object, ...]:
    return (request.param, log, *COMMANDS[request.param])


@pytest.fixture(scope="module")
def undisturbed(nursery: Nursery, tmp_path_factory: pytest.TempPathFactory, words: tuple[object, ...]) -> Undisturbed:
    return Undisturbed(nursery, tmp_path_factory.mktemp("undisturbed"), *words)


def kill_at_random(
    start: Callable[[Path], Run], top: Path, undisturbed: Undisturbed, victim: Callable[[Run], int], kills: int
) -> Counter[str]:
    """Kill runs at random moments until so many were met; whenever one comes to its end, compare and begin anew.

    Returns where the kills fell.
    """
    drawn = random.Random(kills)
    places = folders(top)
    folder = next(places)
    met: Counter[str] = Counter()
    while met.total() - met["after the work"] < kills:
        run = start(folder)
        end = time.monotonic() + drawn.uniform(0, undisturbed.seconds)
        wait_until(lambda run=run, end=end: time.monotonic() > end or not run.running(), "", 600)
        if run.running():
            os.kill(victim(run), signal.SIGKILL)
            files = [path.name for path in (folder / "out").rglob("*")]
            locked = any(name.endswith(".lock") for name in files)
            files = [name for name in files if not name.startswith(".")]
            work = "at work" if len(files) == 1 and files[0].endswith(".partial") else "in the last files"
            met[(work if files else "before work") if locked or not files else "after the work"] += 1
        if run.end() >= 0:
            # It is refused where the one before was killed when all was there.
            assert run.end() == 0 or "--overwrite" in run.stderr, run.stderr
            assert results(folder) == undisturbed.files
            assert hidden(folder) == []
            folder = next(places)
    start(folder).must_end()
    assert results(folder) == undisturbed.files
    assert hidden(folder) == []
    return met


def test_twenty_kills_of_the_main_process_end_in_the_same_bytes(
    nursery: Nursery, tmp_path: Path, words: tuple[object, ...], undisturbed: Undisturbed
) -> None:
    met = kill_at_random(
        lambda folder: nursery.start(folder, *words, brief=True),
        tmp_path,
        undisturbed,
        lambda run: run.pid,
        KILLS[str(words[0])],
    )
    logging.getLogger(__name__).info("%s was killed %s", words[0], dict(met))
    assert met.total() - met["after the work"] == KILLS[str(words[0])]


@pytest.mark.parametrize("victim", ["main process", "worker"])
def test_processes_that_are_killed_change_no_byte(nursery: Nursery, tmp_path: Path, log: Path, victim: str) -> None:
    """Of workers that are processes one may go, and all must go when the main process does."""
    words = ("generate", log, *GENERATE)
    (tmp_path / "whole").mkdir()
    whole = Undisturbed(nursery, tmp_path / "whole", *words)
    drawn = random.Random(victim)
    places = folders(tmp_path / "killed")
    for _ in range(KILLS["loky"]):
        folder = next(places)
        run = nursery.start(folder, *words, "--backend", "loky")
        wait_until(lambda run=run: len(run.workers()) >= 2 or not run.running(), "no workers")
        time.sleep(drawn.uniform(0, 2.0))
        workers = [pid for pid in run.workers() if "tracker" not in command(pid)]
        # Either may have ended by now.
        if victim == "worker":
            with contextlib.suppress(ProcessLookupError, IndexError):
                os.kill(drawn.choice(workers), signal.SIGKILL)
        elif run.running():
            run.kill()
        if run.end():
            assert run.end() == -signal.SIGKILL, run.stderr
            assert victim == "main process", run.stderr
            nursery.start(folder, *words, "--backend", "loky").must_end()
        assert results(folder) == whole.files
        assert hidden(folder) == []


def test_a_kill_while_python_starts_and_imports_leaves_nothing(nursery: Nursery, tmp_path: Path, log: Path) -> None:
    for delay in (0.05, 0.2, 0.5):
        run = nursery.fresh(tmp_path, "generate", log, *GENERATE[:-4], "--output", "t.csv")
        time.sleep(delay)
        run.kill()
        run.end()
        assert {name for name in tree(tmp_path) if not name.startswith("t.csv")} <= {
            ".t.csv.lock",
            ".t.csv.partial.tmp",
        }


def command(pid: int) -> str:
    """Return the command line of a process, empty if it is gone."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def burn_each(nursery: Nursery, start: Callable[[Path, int | None], Run], top: Path, whole: Undisturbed) -> int:
    """Kill a command before every change of a file that it makes, each time in a new folder; run it again to its end.

    Returns how many changes there were, of which every third is met: by night from one that is drawn on.
    """
    first = random.randrange(1, 4) if NIGHTLY else 1
    for number, folder in enumerate(folders(top)):
        fuse = first + number * 3
        run = start(folder, fuse)
        code = run.end()
        if code == 0:
            return fuse - 3
        assert code == -signal.SIGKILL, run.stderr
        for name, content in results(folder).items():
            if not name.endswith((".partial", ".lock", ".tmp")):
                assert content == whole.files[name], f"{name} is neither absent nor whole before change {fuse}"
        was_whole = results(folder) == whole.files
        again = start(folder, None)
        if again.end():
            assert was_whole, again.stderr
            assert "exists; add --overwrite" in again.stderr
        assert results(folder) == whole.files, f"change {fuse}"
        assert hidden(folder) == [], f"change {fuse}"
    raise AssertionError


SMALL: dict[str, Sequence[str]] = {
    "lublin": ("workload", "lublin", "--jobs", "40", "--output", "out/m.swf"),
    "generate": ("generate", "LOG", "--tuples", "2", "--trials", "256", "--workers", "1", "--output", "out/t.csv"),
}


@pytest.mark.parametrize("name", SMALL)
def test_a_kill_before_any_change_of_a_file_costs_nothing(
    nursery: Nursery, tmp_path: Path, log: Path, name: str
) -> None:
    words = [str(log) if word == "LOG" else word for word in SMALL[name]]
    (tmp_path / "whole").mkdir()
    whole = Undisturbed(nursery, tmp_path / "whole", *words)
    changes = burn_each(
        nursery, lambda folder, fuse: nursery.start(folder, *words, fuse=fuse, brief=True), tmp_path / "killed", whole
    )
    assert changes >= 5


def test_a_file_that_is_replaced_is_the_old_or_the_new_one(nursery: Nursery, tmp_path: Path) -> None:
    made = {}
    words = ("workload", "lublin", "--jobs", "40", "-o", "m.swf", "--overwrite", "--seed")
    for seed in (1, 2):
        nursery.start(tmp_path, *words, seed).must_end()
        made[seed] = (tmp_path / "m.swf").read_bytes()
    assert made[1] != made[2]
    seen = set()
    for fuse in range(1, 100):
        (tmp_path / "m.swf").write_bytes(made[1])
        run = nursery.start(tmp_path, *words, 2, fuse=fuse)
        if run.end() == 0:
            break
        seen.add((tmp_path / "m.swf").read_bytes())
    assert seen == {made[1], made[2]}
    assert tree(tmp_path) == {"m.swf": made[2]}


def test_an_evaluation_that_is_replaced_is_the_old_or_the_new_one(nursery: Nursery, tmp_path: Path, log: Path) -> None:
    """Whatever is looked at: no file of the one lies beside a file of the other."""
    words = ("evaluate", log, "--estimate-missing", "runtime", "--windows", "2x100jobs", "--workers", "1")
    words += ("--output", "out", "--overwrite", "--policies")
    made = {}
    for policies in ("FCFS,SAF", "FCFS,SPF"):
        folder = tmp_path / policies
        folder.mkdir()
        (folder / "out").mkdir()
        (folder / "out" / "notes.txt").write_text("of the user", encoding="ascii")
        nursery.start(folder, *words, policies).must_end()
        made[policies] = results(folder)
    old, new = made.values()
    assert old["out/results.csv"] != new["out/results.csv"]
    seen = set()
    # By night every seventh change, from one that is drawn on: each costs two runs.
    first, step = (random.randrange(1, 8), 7) if NIGHTLY else (1, 67)
    for number in range(1000):
        folder = tmp_path / str(number)
        shutil.copytree(tmp_path / "FCFS,SAF", folder)
        fuse = first + number * step
        run = nursery.start(folder, *words, policies, fuse=fuse, brief=True)
        found = results(folder) if run.end() else new
        seen.add(found == old)
        if run.end() == 0:
            break
        if (folder / ".out.policyfactory-old").exists():
            # Between the two renames, or before all of the earlier one was gone.
            assert {name: found.get(name) for name in new} in (new, dict.fromkeys(new), new | {"out/notes.txt": None})
            failed = nursery.start(folder, *words, policies).must_end(1)
            assert ".out.policyfactory-old: is the earlier result of out" in failed.stderr
            continue
        assert found in (old, new), f"change {fuse}"
        nursery.start(folder, *words, policies).must_end()
        assert results(folder) == new, f"change {fuse}"
        assert hidden(folder) == [], f"change {fuse}"
    assert number >= 2
    assert True in seen
