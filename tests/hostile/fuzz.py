"""Change genuine inputs until a reader breaks: some hundred of each, always the same (`hostile.guided` has no end).

Each input must be read, or refused by a PolicyfactoryError whose message is one bounded, printable text that names the
file; within ten seconds of CPU time and with at most 1 GiB of memory. An input whose answer is new is kept and
changed further.

Memory is bounded by RLIMIT_DATA: it counts what a process can write to, whether it did or not, so that an array whose
size is taken from a number in the file fails at once. RLIMIT_AS would count the gigabytes of addresses that the
compiler and the thread pools reserve and never use; a watched peak of the resident memory misses what is not touched.
"""

# ruff: noqa: T201, BLE001 (a program: it tells whatever it finds)

from __future__ import annotations

import argparse
import contextlib
import faulthandler
import gzip
import hashlib
import re
import resource
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Iterator
from pathlib import Path
from random import Random

from hostile.mutations import changed
from hostile.targets import TARGETS, Target
from policyfactory.core.errors import PolicyfactoryError

__all__ = ["MEMORY", "Hunt", "check_message", "limit_memory", "main"]

MEMORY = 1 << 30
_CPU_SECONDS = 10
_LONGEST_MESSAGE = 3000
_VARIABLE = re.compile(r"'[^']*'|\"[^\"]*\"|[\d.,]+")


class HangError(BaseException):
    """The time for one input is over."""


def check_message(error: PolicyfactoryError, file: str) -> None:
    """Assert that an error can be shown to people."""
    message = str(error)
    assert 0 < len(message) <= _LONGEST_MESSAGE, f"a message of {len(message):,} characters: {message[:200]!r}"
    raw = [c for c in message if not c.isprintable() and c != "\n"]
    assert not raw, f"raw {raw[0]!r} in the message {message!r}"
    assert file in message, f"the message does not name the file {file}: {message!r}"


def peak_memory() -> float:
    """Return the most memory that this process has had, in MB.

    What the kernel says of a process's resources has the memory of the one that started it, from before it became a
    program of its own: of tests that have loaded much, more than they are allowed here.
    """
    status = Path("/proc/self/status")
    if status.exists():
        (line,) = (line for line in status.read_text(encoding="ascii").splitlines() if line.startswith("VmHWM:"))
        return int(line.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def limit_memory(most: int = MEMORY) -> None:
    """Refuse this process more than ``most`` bytes of memory that it can write to."""
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))


@contextlib.contextmanager
def limited_time() -> Iterator[None]:
    """End what takes too much CPU time."""

    def stop(*_: object) -> None:
        raise HangError(f"more than {_CPU_SECONDS} s of CPU time")

    signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, _CPU_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


class Hunt:
    """The inputs of one reader, and what became of them."""

    def __init__(self, target: Target, folder: Path) -> None:
        self.target = target
        self.folder = folder
        self.random = Random(f"{target.name} 1")
        self.corpus = [gzip.decompress(data) if target.packed else data for data in target.seeds]
        self.heard: set[str] = set()
        self.runs = 0
        self.faults: dict[str, Path] = {}
        self.path = folder / (target.file or "text")
        for data in target.seeds:
            self.answer(data)

    def step(self) -> None:
        """Make and try one input."""
        corpus, random = self.corpus, self.random
        # The latest finds more often.
        at = len(corpus) - 1 - int(len(corpus) * random.random() ** 2)
        data = changed(random, corpus[at], random.choice(corpus))
        if self.answer(self.packed(random, data)) and len(data) < 1 << 16:
            corpus.append(data)

    def packed(self, random: Random, data: bytes) -> bytes:
        """Return ``data`` as the reader gets it; where that is packed, now and then damaged."""
        if not self.target.packed:
            return data
        packed = gzip.compress(data, mtime=0)
        if random.randrange(4) == 0:
            return changed(random, packed, self.target.seeds[0])
        if random.randrange(4) == 0:
            packed += random.choice([b"\0" * 100, packed, b"\x1f\x8b", gzip.compress(packed, mtime=0), b"x"])
        return packed

    def answer(self, data: bytes) -> bool:
        """Return whether the answer to ``data`` is a new one."""
        self.runs += 1
        self.path.write_bytes(data)
        try:
            with limited_time():
                answer = self.target.call(self.path)
        except PolicyfactoryError as error:
            answer = _VARIABLE.sub("", str(error)).partition("\n")[0][:300]
            try:
                check_message(error, self.target.file)
            except AssertionError as fault:
                self._fault(data, fault)
        except (Exception, HangError) as fault:
            answer = type(fault).__name__
            self._fault(data, fault)
        new = answer not in self.heard and len(self.heard) < 5000
        self.heard.add(answer)
        return new

    def _fault(self, data: bytes, fault: BaseException) -> None:
        """Keep the first input of each fault."""
        frames = [f for f in traceback.extract_tb(fault.__traceback__) if "/hostile/fuzz" not in f.filename]
        where = (
            f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else _VARIABLE.sub("", str(fault))[:80]
        )
        key = f"{type(fault).__name__} at {where}"
        if key in self.faults:
            return
        digest = hashlib.sha256(data).hexdigest()[:12]
        kept = self.folder / f"fault-{self.target.name}-{digest}"
        kept.write_bytes(data)
        self.faults[key] = kept
        shown = "".join(traceback.format_exception(fault)[-6:])
        print(
            f"\n{self.target.name}: {key}\n{shown}\nrepeat: python -m hostile.fuzz --repeat {self.target.name} {kept}"
        )


def repeat(name: str, file: Path) -> int:
    """Read one kept input again; errors other than ours are shown whole."""
    target = TARGETS[name]
    path = file.with_name(target.file or "text")
    path.write_bytes(file.read_bytes())
    try:
        with limited_time():
            print(target.call(path))
    except PolicyfactoryError as error:
        print(error)
        check_message(error, target.file)
    return 0


def main(arguments: list[str] | None = None) -> int:
    """Hunt in each reader; return 1 if one broke."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", choices=list(TARGETS))
    parser.add_argument("--folder", type=Path, required="--repeat" not in (arguments or sys.argv))
    parser.add_argument("--repeat", nargs=2, metavar=("READER", "FILE"))
    given = parser.parse_args(arguments)
    faulthandler.enable()
    warnings.simplefilter("error")
    if given.repeat:
        limit_memory()
        return repeat(given.repeat[0], Path(given.repeat[1]))
    given.folder.mkdir(parents=True, exist_ok=True)
    names = given.only or list(TARGETS)
    result = 0
    limited = False
    for name in names:
        folder = given.folder / name
        folder.mkdir(exist_ok=True)
        hunt = Hunt(TARGETS[name], folder)
        if not limited:
            limit_memory()
            limited = True
        began = time.process_time()
        while hunt.runs < TARGETS[name].examples:
            hunt.step()
        took = time.process_time() - began
        print(
            f"{name}: {hunt.runs:,} inputs, {hunt.runs / took:,.0f} a CPU second ({took:.1f} s), {len(hunt.heard):,} "
            f"answers, {len(hunt.faults)} faults, peak {peak_memory():,.0f} MB",
            flush=True,
        )
        result += len(hunt.faults)
    return 1 if result else 0


if __name__ == "__main__":
    sys.exit(main())
