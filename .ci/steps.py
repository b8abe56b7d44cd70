"""Run the steps of a night, each to its end, whatever became of the others: .ci/steps.py [STEP ...].

What a step prints is kept in .night/STEP.log. A step that passes gets its line in docs/trust.md: when, of which commit,
what it took, what it left out. Without names those steps run that have no line of these files, so that a night that was
cut off goes on by the same command, and its steps may run on several machines.
"""

from __future__ import annotations

import dataclasses
import os
import re
import resource
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from changed import PAGE, today, write_line

ROOT = Path(__file__).resolve().parent.parent
STEP = "- {}: green{} on {}, `{}`, {}\n"
OUTSIDE = (".", ":!docs/trust.md")  # what the page says of steps is no change of what they tell
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


def git(*words: str) -> subprocess.CompletedProcess[str]:
    """Return what git says of the checkout."""
    return subprocess.run(("git", *words), cwd=ROOT, capture_output=True, text=True, check=False)


def commit() -> str:
    """Return what is checked out; nothing if files of it are changed: of these a step tells nothing."""
    changed = git("status", "--porcelain", "--untracked-files=no", "--", *OUTSIDE).stdout
    return "" if changed else git("rev-parse", "HEAD").stdout.strip()[:10]


def is_green(name: str, head: str) -> bool:
    """Tell whether a step has passed with the files that are checked out."""
    line = re.search(f"(?m)^- {name}: green.*?`([0-9a-f]+)`", PAGE.read_text(encoding="utf-8"))
    return bool(head and line and git("diff", "--quiet", line[1], head, "--", *OUTSIDE).returncode == 0)


def counts(log: str) -> str:
    """Return pytest's last line, and the share of the lines that were run, where it was counted."""
    summary = re.findall(r"^=* ?(\d+ (?:passed|failed|skipped|error).*?) in \d", log, re.MULTILINE)
    covered = re.findall(r"^TOTAL .* (\d+)%$", log, re.MULTILINE)
    return ", ".join(summary[-1:] + [f"{share} % of the lines" for share in covered])


def not_run(log: str) -> list[str]:
    """Return what a step left out: skipped tests with their reasons, packages that nobody answered for."""
    skipped: Counter[str] = Counter()
    for count, reason in re.findall(r"^SKIPPED \[(\d+)\] [^ ]+: (.+)$", log, re.MULTILINE):
        # Another step has it, or, of times and speeds, make bench.
        if reason.endswith(("make nightly", "tests/cli has it")) or "--benchmark-enable" in reason:
            continue
        skipped[re.sub(r" \(.*\)$", "", reason)] += int(count)
    gaps = re.findall(r"^NOT CHECKED: ([^:\n]+)", log, re.MULTILINE)
    return [*(f"{count} tests: {reason}" for reason, count in skipped.items()), *dict.fromkeys(gaps)]


def run(name: str) -> Outcome:
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
    return Outcome(not code, round(seconds), round(cpu_seconds), counts(log), not_run(log))


def table(outcomes: dict[str, Outcome]) -> list[str]:
    """Return a line for each step that ran, and below it what it left out."""
    lines = [f"\n{'step':<10}  {'':<7} {'s':>6} {'CPU s':>6}"]
    for name, outcome in outcomes.items():
        fate = "FAILED" if not outcome.passed else "in part" if outcome.not_run else "passed"
        lines.append(f"{name:<10}  {fate:<7} {outcome.seconds:>6} {outcome.cpu_seconds:>6}  {outcome.counts}".rstrip())
        lines += [f"{'':<10}  not run: {reason}" for reason in outcome.not_run]
    return lines


def write_green(name: str, head: str, outcome: Outcome) -> None:
    """Write the line of a step that passed."""
    parts = [outcome.counts, f"{round(outcome.seconds / 60)} min", *(f"not run: {gap}" for gap in outcome.not_run)]
    in_part = " in part" * bool(outcome.not_run)
    write_line(name, STEP.format(name, in_part, today(), head, "; ".join(filter(None, parts))))


def main(chosen: Sequence[str]) -> int:
    """Run the steps; return 0 if all that were asked for have passed, else 1."""
    if strangers := set(chosen) - set(STEPS):
        print(f"no step is called {', '.join(sorted(strangers))}; there are {', '.join(STEPS)}")
        return 2
    FOLDER.mkdir(exist_ok=True)
    outcomes: dict[str, Outcome] = {}
    for name in chosen or [name for name in STEPS if not is_green(name, commit())]:
        head = commit()
        outcomes[name] = run(name)
        if not head or commit() != head:
            print(f"docs/trust.md gets no line of {name}: there are changes that are not committed (git status)")
        elif outcomes[name].passed:
            write_green(name, head, outcomes[name])
    print(*table(outcomes), sep="\n")
    return int(not all(outcome.passed for outcome in outcomes.values()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
