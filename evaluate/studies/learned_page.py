"""The tables and the picture of docs/learned.md, from what learned.py wrote.

    python evaluate/studies/learned_page.py docs/data --output docs/img

The tables are printed as Markdown; the picture shows, for each log, the ratio of the mean bounded slowdown under the
choice to that under the best published policy on replicas of the second half, with its interval.
"""  # noqa: INP001 (a script beside the package, not a part of it)

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from matplotlib.ticker import ScalarFormatter

from policyfactory.core.picture import COLOURS, keeps_settings, new_figure, save_picture
from policyfactory.report.terminal import console

__all__ = ["main", "tables"]

Study = dict[str, Any]
_RULES = {"easy": "EASY", "slurm": "Slurm's rules"}
_PRICE = ("p99_wait", "max_wait", "area_weighted_wait")


def tables(studies: Sequence[Study]) -> dict[str, str]:
    """Return the tables as Markdown, by name: ``easy``, ``slurm``, ``oracles`` and ``rolling``."""
    return {
        **{rules: _judged(studies, rules) for rules in _RULES},
        "oracles": _oracles([study for study in studies if "oracles" in study]),
        "rolling": _rolling([study for study in studies if "rolling" in study]),
    }


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(row)} |" for row in (heads, ["---"] * len(heads), *rows))


def _judged(studies: Sequence[Study], rules: str) -> str:
    heads = ("log", "published", "choice", "mean_bsld", *_PRICE, "by load", "verdict")
    rows, logs = [], []
    for study in studies:
        row = study[rules]
        if not row["ratio_text"]:  # replicas could not judge
            continue
        if not study["log"].startswith("Lublin"):
            logs.append(math.log(row["ratios"]["mean_bsld"]))
        price = [f"{row['ratios'][aim]:.2f}" for aim in _PRICE]
        by_load = ", ".join(f"{ratio:.2f}" for ratio in row["by_load"])
        taken = "" if row["recommended"] == row["chosen"] else f": {row['recommended']}"
        verdict = f"{row['verdict']}{taken}"
        rows.append((study["log"], row["peer"], row["chosen"], row["ratio_text"], *price, by_load, verdict))
    mean = f"{math.exp(sum(logs) / len(logs)):.2f}" if logs else "-"
    rows.append(("geometric mean of the real logs", "", "", mean, *[""] * (len(_PRICE) + 2)))
    return _table(heads, rows)


def _oracles(studies: Sequence[Study]) -> str:
    kinds = list(dict.fromkeys(kind for study in studies for kind in study["oracles"]))
    return _table(
        ("log", "choice", *kinds),
        [
            (study["log"], study["easy"]["chosen"], *(f"{study['oracles'][kind]:.2f}" for kind in kinds))
            for study in studies
        ],
    )


def _rolling(studies: Sequence[Study]) -> str:
    def cell(row: dict[str, Any]) -> str:
        return f"{row['chosen']} : {row['peer']} {row['ratio_text']}" if row["ratio_text"] else f"{row['chosen']}, -"

    origins = range(max((len(study["rolling"]) for study in studies), default=0))
    judged = [study for study in studies if any(row["ratio_text"] for row in study["rolling"])]
    return _table(
        ("log", *(f"origin {number + 1}" for number in origins)),
        [(study["log"], *(cell(row) for row in study["rolling"])) for study in judged],
    )


@keeps_settings
def _picture(studies: Sequence[Study], path: Path) -> None:
    shown = [study for study in studies if any(study[rules]["ratio_text"] for rules in _RULES)]
    figure = new_figure(7.0, 0.9 + 0.6 * len(shown))
    axes = figure.add_subplot()
    known: set[str] = set()
    for place, study in enumerate(reversed(shown)):
        for shift, (rules, label) in enumerate(_RULES.items()):
            row, height = study[rules], place + 0.12 - 0.24 * shift
            if not row["ratio_text"]:
                continue
            ratio = row["ratios"]["mean_bsld"]
            axes.plot(row["interval"] or (ratio, ratio), (height, height), color=COLOURS[shift], linewidth=2)
            axes.plot(ratio, height, "o", color=COLOURS[shift], markersize=5, label=None if label in known else label)
            known.add(label)
    axes.axvline(1.0, color="black", linewidth=1)
    axes.set_xscale("log")
    axes.set_xticks([0.1, 0.2, 0.5, 1.0, 2.0, 4.0])
    axes.xaxis.set_major_formatter(ScalarFormatter())
    axes.xaxis.set_minor_formatter("")
    names = [
        f"{study['log']}\n{' / '.join(dict.fromkeys(study[rules]['chosen'] for rules in _RULES))}" for study in shown
    ]
    axes.set_yticks(range(len(shown)), names[::-1])
    axes.set_xlabel("mean bounded slowdown, ratio to the best published policy (95 % intervals)")
    axes.legend(fontsize=8, loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=2)
    save_picture(figure, path)


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--output", type=Path, required=True)
    given = parser.parse_args()
    order = ("kth", "sdsc-blue", "hpc2n", "cea-curie", "unilu-gaia", "lublin-1", "lublin-2")
    files = [given.folder / f"learned-{name}.json" for name in order]
    studies = [json.loads(file.read_text(encoding="utf-8")) for file in files if file.exists()]
    for name, text in tables(studies).items():
        console().print(f"\n{name}\n\n{text}", markup=False, soft_wrap=True)
    _picture(studies, given.output / "learned.png")


if __name__ == "__main__":
    main()
