"""Run the steps of a night, each to its end, whatever became of the others: .ci/steps.py [STEP ...].

What a step prints is kept in .night/STEP.log. At the end a table says what passed, what it took, and what it left out.
A night that was cut off, or in which a step failed, is gone on with by the same command: what passed for this commit,
with nothing uncommitted, is not run again. When all steps have passed, docs/trust.md gets its line.
"""

from __future__ import annotations

import dataclasses
import json
import os
import re
import resource
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from changed import write_green

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / ".night"
PYTHON = ".venv/bin/python"
# One worker more than processors: tests of Slurm, of killed processes and of other schedulers wait for those. A line
# for each test: the log of a night that was cut off names what failed until then.
WORKERS = os.environ.get("WORKERS", "3")
PYTEST = (PYTHON, "-m", "pytest", "-v", "--durations", "50", "-n", WORKERS, "--dist", "worksteal")
REPLAYS = "test_a_replay_repeats_its_record or test_a_modern_slurm"

# CPU seconds, where they were measured (2026-11-26, on a busy machine): lowest 840, benchmarks 150, release 80; faults
# 350 with the day's number of kills. Replays are an hour of waiting.
STEPS: dict[str, Sequence[str]] = {
    # With the share of the lines that they run; kernels run as machine code and are left out.
    "tests": (*PYTEST, "-m", "not (slurm or fault or slow)", "--cov=policyfactory"),
    "slow": (*PYTEST, "-m", "slow and not (slurm or fault)"),
    "faults": (*PYTEST, "-m", "fault"),
    "schedulers": (*PYTEST, "-m", "slurm", "-k", f"not ({REPLAYS})"),
    "replays": (*PYTEST, "tests/slurm/test_replay.py", "-k", REPLAYS),
    "mutants": ("make", "mutants", f"ARGS=--sample 200 --seed {time.strftime('%Y%m%d')}"),
    "audit": ("make", "audit"),
    "lowest": ("bash", ".ci/lowest"),
    "release": ("make", "release", "ARGS=--rehearsal"),
    # Once each, without timing: on a shared machine speeds, memory and scaling would say nothing; make bench has them.
    "benchmarks": (*PYTEST, "benchmarks", "--benchmark-disable", "-k", "not memory and not two_workers"),
}
# Steps whose tests are those of every change, with the same examples; of small workloads, mutants take more.
BY_DAY = {"mutants", "lowest", "benchmarks"}


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What became of a step: wall-clock and processor seconds, pytest's counts, what it left out."""

    passed: bool
    seconds: int
    cpu_seconds: int
    counts: str
    not_run: list[str]
    again: bool = False


def commit() -> str:
    """Return what is checked out; nothing if files of it are changed: results of those are not kept."""
    words = ("git", "status", "--porcelain", "--untracked-files=no")
    if subprocess.run(words, cwd=ROOT, capture_output=True, check=True).stdout:
        return ""
    words = ("git", "rev-parse", "HEAD")
    return subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


def counts(log: str) -> str:
    """Return pytest's last line, and the share of the lines that were run, where it was counted."""
    summary = re.findall(r"^=* ?(\d+ (?:passed|failed|skipped|error).*?) in \d", log, re.MULTILINE)
    covered = re.findall(r"^TOTAL .* (\d+)%$", log, re.MULTILINE)
    return ", ".join(summary[-1:] + [f"{share} % of the lines" for share in covered])


def not_run(log: str) -> list[str]:
    """Return what a step left out: skipped tests with their reasons, packages that nobody answered for."""
    skipped: Counter[str] = Counter()
    for count, reason in re.findall(r"^SKIPPED \[(\d+)\] [^ ]+: (.+)$", log, re.MULTILINE):
        if reason.endswith("make nightly"):  # of the day's tests: another step has it
            continue
        skipped[re.sub(r" \(.*\)$", "", reason)] += int(count)
    gaps = re.findall(r"^NOT CHECKED: ([^:\n]+)", log, re.MULTILINE)
    return [*(f"{count} tests: {reason}" for reason, count in skipped.items()), *dict.fromkeys(gaps)]


def run(name: str, *, again: bool) -> Outcome:
    """Run a step to its end."""
    path = FOLDER / f"{name}.log"
    print(f"== {name}: {' '.join(STEPS[name])}", flush=True)
    environment = os.environ if name in BY_DAY else os.environ | {"POLICYFACTORY_NIGHTLY": "1"}
    begin, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    with path.open("wb") as file:
        code = subprocess.run(
            STEPS[name], cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, stdout=file, stderr=file, check=False
        ).returncode
    seconds, after = time.monotonic() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    log = path.read_text(encoding="utf-8", errors="replace")
    if code:
        print(*log.splitlines()[-120:], sep="\n")
    return Outcome(not code, round(seconds), round(cpu_seconds), counts(log), not_run(log), again)


def kept(head: str) -> dict[str, Outcome]:
    """Return what became of the steps that were run for a commit: a file each, as they may run beside each other."""
    found = {}
    for path in FOLDER.glob("*.json") if head else ():
        of, row = json.loads(path.read_text(encoding="utf-8"))
        if of == head:
            found[path.stem] = Outcome(**row)
    return found


def keep(head: str, name: str, outcome: Outcome) -> None:
    """Write what became of a step, for a night that goes on with this one."""
    written = FOLDER / f"{name}.tmp"
    written.write_text(json.dumps([head, dataclasses.asdict(outcome)], indent=1), encoding="utf-8")
    written.replace(FOLDER / f"{name}.json")


def table(outcomes: dict[str, Outcome]) -> list[str]:
    """Return a line for each step, and below it what it left out."""
    lines = [f"\n{'step':<10}  {'':<7} {'s':>6} {'CPU s':>6}"]
    for name in STEPS:
        if name not in outcomes:
            lines.append(f"{name:<10}  not run")
            continue
        outcome = outcomes[name]
        fate = "FAILED" if not outcome.passed else "in part" if outcome.not_run else "passed"
        counted = f"{outcome.counts}{' (not the first run)' if outcome.again else ''}"
        lines.append(f"{name:<10}  {fate:<7} {outcome.seconds:>6} {outcome.cpu_seconds:>6}  {counted}".rstrip())
        lines += [f"{'':<10}  not run: {reason}" for reason in outcome.not_run]
    return lines


def main(chosen: Sequence[str]) -> int:
    """Run the steps; return 0 if all steps of the night have passed, else 1."""
    if strangers := set(chosen) - set(STEPS):
        print(f"no step is called {', '.join(sorted(strangers))}; there are {', '.join(STEPS)}")
        return 2
    FOLDER.mkdir(exist_ok=True)
    head = commit()
    outcomes = kept(head)
    for name in chosen or [name for name in STEPS if name not in outcomes or not outcomes[name].passed]:
        outcomes[name] = run(name, again=name in outcomes)
        keep(head, name, outcomes[name])
    outcomes |= kept(head)
    print(*table(outcomes), sep="\n")
    if not all(name in outcomes and outcomes[name].passed for name in STEPS):
        return 1
    if not head or commit() != head:
        print("docs/trust.md gets no line: there are changes that are not committed (git status)")
        return 0
    minutes = round(sum(outcome.seconds for outcome in outcomes.values()) / 60)
    again = [name for name, outcome in outcomes.items() if outcome.again]
    what = f"{', '.join(STEPS)} in {minutes} min" + (f" (not in the first run: {', '.join(again)})" if again else "")
    gaps = dict.fromkeys(gap for outcome in outcomes.values() for gap in outcome.not_run)
    write_green(head, what, list(gaps))
    for name in STEPS:
        (FOLDER / f"{name}.json").unlink(missing_ok=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
