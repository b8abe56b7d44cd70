"""What ``python -m mutation`` does: choose the mutants, run them, tell what survived."""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import sys
import tomllib
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from mutation.changes import Target
from mutation.operators import Mutant, mutants
from mutation.results import (
    KILLED,
    OUT_OF_TIME,
    SURVIVED,
    Key,
    Result,
    count_fates,
    join_records,
    put_table,
    write_records,
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
    """Return the reasons of the explained survivors."""
    rows = tomllib.loads(path.read_text(encoding="utf-8")).get("survivor", [])
    return {(row["module"], row["function"], row["before"], row["after"]): row["reason"] for row in rows}


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
    parser.add_argument("--output", type=Path, help="keep every result, a line of JSON each")
    parser.add_argument("--again", type=Path, help="only what survived in such a file")
    parser.add_argument("--rest", type=Path, nargs="+", help="only what is in none of such files")
    parser.add_argument("--join", type=Path, nargs="+", help="run nothing: join files of results, the last one counts")
    parser.add_argument("--table", type=Path, help="count the results per module in this file (CSV)")
    parser.add_argument("--page", type=Path, help="renew the table of a page, between its marks")
    parser.add_argument("--preload", default=" ".join(PRELOADED), help="libraries to import before the forks")
    options = parser.parse_args(arguments)
    os.nice(19)
    targets = [
        target
        for target in read_targets(options.targets, options.root.resolve())
        if not options.modules or any(target.name.endswith(_dotted(name)) for name in options.modules)
    ]
    if not targets:
        sys.stderr.write(f"no target ends in any of {', '.join(options.modules)}\n")
        return 2
    reasons = read_survivors(options.survivors)
    if options.join:
        return _join(targets, options, reasons)
    chosen = _choice(targets, options)
    everything: list[Result] = []
    times: dict[str, float] = {}
    heard: list[Result] = []

    def output(result: Result) -> None:
        _tell(result, reasons)
        heard.append(result)
        if options.output:
            write_records(options.output, heard)

    for target in targets:
        wanted = chosen.get(target.module)
        if wanted is not None and not wanted:
            continue
        try:
            seconds, results = run_mutants(
                target,
                lambda actual, wanted=wanted: actual if wanted is None else [actual[at] for at in wanted],
                options.workers,
                output,
                options.preload.split(),
            )
        except RunnerError as error:
            sys.stderr.write(f"{error}\n")
            return 2
        times[target.module] = seconds
        everything += results
    sys.stdout.write(report(everything, reasons, times, sampled=options.sample is not None))
    if options.table or options.page:
        fates: dict[Key, list[str]] = {}
        for result in everything:
            fates.setdefault(result.mutant.key, []).append(result.fate)
        _write_tables(options, count_fates(_all_mutants(targets), fates, reasons))
    open_ = [result for result in everything if result.fate == SURVIVED and result.mutant.key not in reasons]
    return 1 if open_ else 0


def _dotted(name: str) -> str:
    return name.removesuffix(".py").replace("/", ".")


def _join(targets: list[Target], options: argparse.Namespace, reasons: dict[Key, str]) -> int:
    actual = _all_mutants(targets)
    fates = join_records(options.join)
    rows = count_fates(actual, fates, reasons)
    _write_tables(options, rows)
    keys = {mutant.key for all_ in actual.values() for mutant in all_}
    gone = sum(len(of_key) for key, of_key in fates.items() if key not in keys)
    whole = sum(rows.values(), Counter())
    sys.stdout.write(f"{whole['run']} of {whole['mutants']} mutants; {gone} results of changed sources left out\n")
    for key, of_key in fates.items():
        if key in keys and SURVIVED in of_key and key not in reasons:
            sys.stdout.write(f"{key[0]} in {key[1] or 'the module'}\n  - {key[2]}\n  + {key[3]}\n")
    return 1 if whole["unexplained"] else 0


def _write_tables(options: argparse.Namespace, rows: dict[str, Counter[str]]) -> None:
    if options.table:
        write_table(options.table, rows)
    if options.page:
        options.page.write_text(put_table(options.page.read_text(encoding="utf-8"), rows), encoding="utf-8")


def _all_mutants(targets: list[Target]) -> dict[str, list[Mutant]]:
    """Return the mutants of each module but those left out."""
    actual = {}
    for target in targets:
        all_ = mutants(target.module, (target.root / target.module).read_text(encoding="utf-8"))[1]
        actual[target.module] = [mutant for mutant in all_ if mutant.function.split(".")[0] not in target.left_out]
    return actual


def _choice(targets: list[Target], options: argparse.Namespace) -> dict[str, list[int]]:
    """Return which mutants of each module are wanted (by number among those not left out); nothing: all."""
    if options.sample is None and options.again is None and options.rest is None:
        return {}
    actual = _all_mutants(targets)
    if options.again is not None:
        records = [json.loads(line) for line in options.again.read_text(encoding="utf-8").splitlines()]
        keys = {
            (record["module"], record["function"], record["before"], record["after"])
            for record in records
            if record["fate"] == SURVIVED
        }
        return {module: [at for at, one in enumerate(all_) if one.key in keys] for module, all_ in actual.items()}
    if options.rest is not None:
        done = join_records(options.rest)
        return {module: [at for at, one in enumerate(all_) if one.key not in done] for module, all_ in actual.items()}
    places = [(module, at) for module, all_ in actual.items() for at in range(len(all_))]
    drawn = sorted(random.Random(options.seed).sample(places, min(options.sample, len(places))))
    return {module: [at for name, at in drawn if name == module] for module in actual}


def _tell(result: Result, reasons: dict[Key, str]) -> None:
    if result.fate == SURVIVED and result.mutant.key not in reasons:
        sys.stderr.write(_shown(result))
        sys.stderr.flush()


def _shown(result: Result) -> str:
    mutant = result.mutant
    place = f"{mutant.module}:{mutant.line} in {mutant.function or 'the module'} ({mutant.operator})"
    return f"{place}\n  - {mutant.before}\n  + {mutant.after}\n"


def interval(killed: int, all_: int) -> tuple[float, float]:
    """Return Wilson's interval of 95 % for a share."""
    z = 1.959964
    share, spread = killed / all_, z / all_ * math.sqrt(killed * (all_ - killed) / all_ + z * z / 4)
    middle, whole = share + z * z / (2 * all_), 1 + z * z / all_
    return (middle - spread) / whole, (middle + spread) / whole


def report(results: Iterable[Result], reasons: dict[Key, str], times: dict[str, float], sampled: bool) -> str:
    """Return the table, then the survivors: those to be explained, and those that are."""
    rows: dict[str, Counter[str]] = {}
    survivors: dict[bool, list[Result]] = {False: [], True: []}
    for result in results:
        row = rows.setdefault(result.mutant.module, Counter())
        row[result.fate] += 1
        if result.fate == SURVIVED:
            explained = result.mutant.key in reasons
            row["explained"] += explained
            survivors[explained].append(result)
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
    for explained, title in ((False, "Survivors without an explanation"), (True, "Survivors that are explained")):
        if survivors[explained]:
            text += f"\n{title}\n\n"
            for result in survivors[explained]:
                text += _shown(result) + (f"  {reasons[result.mutant.key]}\n" if explained else "")
    return text
