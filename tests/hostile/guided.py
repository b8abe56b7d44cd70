"""Hunt in every reader, guided by coverage: run as ``make fuzz``, ten minutes.

atheris (libFuzzer) chooses which inputs are changed further: those that reach branches of the package which none before
reached. It changes their bytes, or lets `hostile.mutations` change them. What an input must not do is said and checked
in `hostile.fuzz`. Each reader has a process of its own, as libFuzzer ends the process that it runs in, and a corpus in
``FOLDER/READER/corpus``, from which the next night goes on.
"""

# ruff: noqa: T201 (a program: it tells what it finds)

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import traceback
import zlib
from pathlib import Path
from random import Random

import atheris

import policyfactory

__all__ = ["hunt", "main"]

_PACKAGE = Path(policyfactory.__file__).parent
# Instrumented bytecode is nothing that numba can compile.
_KERNELS = [
    ".".join(path.relative_to(_PACKAGE.parent).with_suffix("").parts)
    for path in _PACKAGE.rglob("*.py")
    if re.search(r"\n(from|import) (policyfactory\.core\.jit|numba|llvmlite)\b", path.read_text(encoding="utf-8"))
]
_LARGEST = 1 << 16


def _unpacked(data: bytes) -> bytes:
    try:
        return zlib.decompressobj(wbits=31).decompress(data, _LARGEST)
    except zlib.error:
        return b""


def hunt(name: str, where: str, seconds: int, seed: int) -> None:
    """Hunt in one reader; the process ends with it."""
    with atheris.instrument_imports(include=["policyfactory"], exclude=["policyfactory.core.jit", *_KERNELS]):
        from hostile.fuzz import Hunt, limit_memory
        from hostile.mutations import changed
        from hostile.targets import TARGETS
    target = TARGETS[name]
    folder = Path(where, name)
    for part in ("corpus", "seeds"):
        (folder / part).mkdir(parents=True, exist_ok=True)
    for number, data in enumerate(target.seeds):
        (folder / "seeds" / str(number)).write_bytes(data)
    limit_memory()  # before a library reserves a gigabyte for the first seed
    reader = Hunt(target, folder)

    def change(data: bytes, most: int, number: int) -> bytes:
        random = Random(number)
        text = (_unpacked(data) if target.packed else data) or random.choice(reader.corpus)
        text = changed(random, text, random.choice(reader.corpus)) if number % 2 else atheris.Mutate(text, most)
        return reader.packed(random, text)[:most]

    def call(data: bytes) -> None:
        reader.answer(data)

    # The limits of libFuzzer are behind ours: a hang inside C, where no signal of Python is heard.
    options = {"max_total_time": seconds, "max_len": _LARGEST, "timeout": 60, "rss_limit_mb": 0, "seed": seed}
    places = [f"-artifact_prefix={folder}/fault-{name}-", str(folder / "corpus"), str(folder / "seeds")]
    atheris.Setup(
        [sys.argv[0], *(f"-{option}={value}" for option, value in options.items()), *places],
        call,
        custom_mutator=change,
    )
    try:
        atheris.Fuzz()
    except BaseException:  # noqa: BLE001 (whatever it is, this process ends here)
        # Its own end waits for ever if the hunt did not begin.
        traceback.print_exc()
        os._exit(1)


def main(arguments: list[str] | None = None) -> int:
    """Hunt in each reader in turn; return 1 if one broke."""
    from hostile.targets import TARGETS

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=600, help="for all readers together")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", action="append", choices=list(TARGETS))
    parser.add_argument("--folder", type=Path, required=True)
    given = parser.parse_args(arguments)
    chosen = given.only or list(TARGETS)
    seconds = max(1, given.seconds // len(chosen))
    broken = 0
    for name in chosen:
        folder = given.folder / name
        before = set(folder.glob("fault-*"))
        call = f"from hostile.guided import hunt; hunt({name!r}, {str(given.folder)!r}, {seconds}, {given.seed})"
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", call], capture_output=True, text=True, errors="replace", check=False
        )
        faults = sorted(set(folder.glob("fault-*")) - before)
        ended = re.findall(r"\n#(\d+)\s+DONE\s+cov: (\d+)", done.stderr)
        print(done.stdout, end="")
        said = (
            f"{int(ended[-1][0]):,} inputs, {int(ended[-1][1]):,} branches"
            if ended
            else f"ended with {done.returncode}"
        )
        print(f"{name}: {said}, {len(faults)} faults", flush=True)
        if not ended:
            print(done.stderr[-3000:])
        for fault in faults:
            print(f"repeat: python -m hostile.fuzz --repeat {name} {fault}")
        broken += bool(faults) or not ended
    return int(broken > 0)


if __name__ == "__main__":
    sys.exit(main())
