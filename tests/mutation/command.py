"""What ``python -m mutation`` does: choose the mutants, run them, tell what survived."""

from __future__ import annotations

import argparse
import math
import random
import sys
import time
import tomllib
from collections import Counter
from pathlib import Path

from mutation.changes import Target
from mutation.operators import Mutant, mutants
from mutation.results import (
    KILLED,
    OUT_OF_TIME,
    SURVIVED,
    Identity,
    Key,
    Result,
    append_record,
    count_fates,
    put_table,
    read_records,
    write_table,
)
from mutation.runner import PRELOADED, RunnerError, run_mutants

__all__ = ["main", "read_survivors", "read_targets"]

HERE = Path(__file__).resolve().parent


def read_targets(path: Path, root: Path) -> list[Target]:
    """Return the targets of a file."""
    return [
        Target(
            root,
            row["module"],
            tuple(row["tests"]),
            row.get("compiled", False),
            row.get("kernels", True),
            {name: reason for reason, names in row.get("left_out", {}).items() for name in names},
        )
        for row in tomllib.loads(path.read_text(encoding="utf-8")).get("target", [])
    ]


def read_survivors(path: Path) -> dict[Key, str]:
    """Return the reasons of the explained survivors; several changes of a statement can have the same."""
    rows = tomllib.loads(path.read_text(encoding="utf-8")).get("survivor", [])
    return {
        (row["module"], row["function"], row["before"], after): row["reason"]
        for row in rows
        for after in ([row["after"]] if isinstance(row["after"], str) else row["after"])
    }


def main(arguments: list[str]) -> int:
    """Run the command; return 0 if every survivor is explained, else 1."""
    parser = argparse.ArgumentParser(prog="python -m mutation", description=__doc__)
    parser.add_argument("modules", nargs="*", help="ends of the modules' paths; all targets without any")
    parser.add_argument("--targets", type=Path, default=HERE / "targets.toml")
    parser.add_argument("--survivors", type=Path, default=HERE / "survivors.toml")
    parser.add_argument("--root", type=Path, default=HERE.parent.parent)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--sample", type=int, help="so many mutants, chosen at random")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, help="where results are kept; default .mutants/results.jsonl")
    parser.add_argument("--budget", type=float, default=math.inf, help="begin no more mutants after so many seconds")
    parser.add_argument("--again", action="store_true", help="run once more what survived without an explanation")
    parser.add_argument("--join", type=Path, nargs="*", help="run nothing: join files of results, the last one counts")
    parser.add_argument("--table", type=Path, help="count the results per module in this file (CSV)")
    parser.add_argument("--page", type=Path, help="renew the table of a page, between its marks")
    parser.add_argument("--preload", default=" ".join(PRELOADED), help="libraries to import before the forks")
    options = parser.parse_args(arguments)
    targets = [
        target
        for target in read_targets(options.targets, options.root.resolve())
        if not options.modules or any(target.name.endswith(_dotted(name)) for name in options.modules)
    ]
    if not targets:
        sys.stderr.write(f"no target ends in any of {', '.join(options.modules)}\n")
        return 2
    reasons = read_survivors(options.survivors)
    options.output = options.output or options.root / ".mutants" / "results.jsonl"
    actual = {mutant.identity: mutant for target in targets for mutant in _mutants(target)}
    if options.join is not None:
        return _join(actual, options, reasons)
    failed = 0
    times: dict[str, float] = {}
    chosen, wanted = _choice(actual, _kept(options.output), reasons, options)
    deadline = time.monotonic() + options.budget
    for target in targets:
        of_target = {identity for identity in wanted if identity[0] == target.module}
        if not of_target or time.monotonic() > deadline:
            continue

        def output(result: Result) -> None:
            append_record(options.output, result)
            if result.fate == SURVIVED and result.mutant.key not in reasons:
                sys.stderr.write(_shown(result.mutant))
                sys.stderr.flush()

        try:
            times[target.module] = run_mutants(
                target, of_target, options.workers, output, options.preload.split(), deadline
            )
        except RunnerError as error:
            # The other modules go on.
            sys.stderr.write(f"{error}\n")
            failed = 2
    fates = _kept(options.output)
    results = [(actual[identity], fates[identity]) for identity in chosen if identity in fates]
    sys.stdout.write(report(results, len(chosen), reasons, times, sampled=options.sample is not None))
    _write_tables(options, count_fates(actual, fates, reasons))
    return failed or int(any(fate == SURVIVED and mutant.key not in reasons for mutant, fate in results))


def _kept(path: Path) -> dict[Identity, str]:
    return read_records([path] if path.exists() else [])


def _dotted(name: str) -> str:
    return name.removesuffix(".py").replace("/", ".")


def _join(actual: dict[Identity, Mutant], options: argparse.Namespace, reasons: dict[Key, str]) -> int:
    fates = read_records(options.join or [options.output])
    rows = count_fates(actual, fates, reasons)
    _write_tables(options, rows)
    whole = sum(rows.values(), Counter())
    gone = len(fates.keys() - actual.keys())
    sys.stdout.write(f"{whole['run']} of {whole['mutants']} mutants; {gone} results of changed sources left out\n")
    alive = {mutant.key for identity, mutant in actual.items() if fates.get(identity, SURVIVED) == SURVIVED}
    for identity, mutant in actual.items():
        fate = fates.get(identity, SURVIVED)
        if mutant.key in reasons and mutant.key not in alive:
            sys.stdout.write(f"explained, but killed: {_shown(mutant)}")
        if fate == SURVIVED and identity in fates and mutant.key not in reasons:
            sys.stdout.write(_shown(mutant))
    return 1 if whole["unexplained"] else 0


def _write_tables(options: argparse.Namespace, rows: dict[str, Counter[str]]) -> None:
    if options.table:
        write_table(options.table, rows)
    if options.page:
        options.page.write_text(put_table(options.page.read_text(encoding="utf-8"), rows), encoding="utf-8")


def _mutants(target: Target) -> list[Mutant]:
    """Return the mutants of a module but those left out."""
    all_ = mutants(target.module, (target.root / target.module).read_text(encoding="utf-8"))[1]
    return [mutant for mutant in all_ if mutant.function.split(".")[0] not in target.left_out]


def _choice(
    actual: dict[Identity, Mutant], fates: dict[Identity, str], reasons: dict[Key, str], options: argparse.Namespace
) -> tuple[list[Identity], set[Identity]]:
    """Return the mutants that are asked for, and those of them to be run now."""
    if options.again:
        again = [one for one, mutant in actual.items() if fates.get(one) == SURVIVED and mutant.key not in reasons]
        return again, set(again)
    chosen = list(actual)
    if options.sample is not None:
        chosen = random.Random(options.seed).sample(chosen, min(options.sample, len(chosen)))
    return chosen, {identity for identity in chosen if identity not in fates}


def _shown(mutant: Mutant) -> str:
    place = f"{mutant.module}:{mutant.line} in {mutant.function or 'the module'} ({mutant.operator})"
    return f"{place}\n  - {mutant.before}\n  + {mutant.after}\n"


def interval(killed: int, all_: int) -> tuple[float, float]:
    """Return Wilson's interval of 95 % for a share."""
    z = 1.959964
    share, spread = killed / all_, z / all_ * math.sqrt(killed * (all_ - killed) / all_ + z * z / 4)
    middle, whole = share + z * z / (2 * all_), 1 + z * z / all_
    return (middle - spread) / whole, (middle + spread) / whole


def report(
    results: list[tuple[Mutant, str]], asked: int, reasons: dict[Key, str], times: dict[str, float], *, sampled: bool
) -> str:
    """Return the table, then the survivors: those to be explained, and those that are."""
    rows: dict[str, Counter[str]] = {}
    survivors: dict[bool, list[Mutant]] = {False: [], True: []}
    for mutant, fate in results:
        row = rows.setdefault(mutant.module, Counter())
        row[fate] += 1
        if fate == SURVIVED:
            explained = mutant.key in reasons
            row["explained"] += explained
            survivors[explained].append(mutant)
    rows["all"] = sum(rows.values(), Counter())
    lines = [
        "| module | mutants | killed | out of time | survived | of these explained | killed % | clean run, s |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for module, row in rows.items():
        dead = row[KILLED] + row[OUT_OF_TIME]
        count = dead + row[SURVIVED]
        percent = f"{100 * dead / count:.1f}" if count else "-"
        if sampled and module == "all" and count:
            low, high = interval(dead, count)
            percent += f" ({100 * low:.1f} to {100 * high:.1f})"
        clean = f"{times[module]:.1f}" if module in times else ""
        lines.append(
            f"| {module} | {count} | {row[KILLED]} | {row[OUT_OF_TIME]} | {row[SURVIVED]} | {row['explained']} "
            f"| {percent} | {clean} |"
        )
    text = "\n".join(lines) + "\n"
    if asked > len(results):
        text += f"\n{asked - len(results)} mutants are still to be run: the same command goes on with them.\n"
    for explained, title in ((False, "Survivors without an explanation"), (True, "Survivors that are explained")):
        if survivors[explained]:
            text += f"\n{title}\n\n"
            for mutant in survivors[explained]:
                text += _shown(mutant) + (f"  {reasons[mutant.key]}\n" if explained else "")
    return text
