"""The tables and the picture of docs/learned.md, from what learned.py wrote.

    python evaluate/studies/learned_page.py docs/data --output docs/img

The tables are printed as Markdown; the picture shows, for each log, the ratio of the mean bounded slowdown under the
choice to that under the published policy that was best on the past, with its interval over the replicas.
"""  # noqa: INP001 (a script beside the package, not a part of it)

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from matplotlib.ticker import ScalarFormatter

from policyfactory.core.picture import COLOURS, keeps_settings, new_figure, save_picture
from policyfactory.report.terminal import console

__all__ = ["main", "tables"]

Study = dict[str, Any]
_AIMS = ("mean_bsld", "p99_wait", "max_wait", "area_weighted_wait")


def tables(studies: Sequence[Study]) -> dict[str, str]:
    """Return the tables as Markdown, by name: ``ratios``, ``others``, ``oracles`` and ``rolling``."""
    return {
        "ratios": _ratios(studies),
        "others": _by_policy(studies, "others"),
        "oracles": _by_policy([one for one in studies if "oracles" in one], "oracles"),
        "rolling": _rolling(studies),
    }


def _cell(found: dict[str, Any]) -> str:
    if found["interval"] is None:
        return f"{found['ratio']:.2f}"
    low, high = found["interval"]
    return f"{found['ratio']:.2f} [{low:.2f}, {high:.2f}]"


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(row)} |" for row in (heads, ["---"] * len(heads), *rows))


def _ratios(studies: Sequence[Study]) -> str:
    heads = ("log", "published, by the past", "choice, by the past", *_AIMS)
    rows = [
        (one["log"], one["published"], one["chosen"], *(_cell(one["judged"][aim]) for aim in _AIMS)) for one in studies
    ]
    return _table(heads, rows)


def _by_policy(studies: Sequence[Study], key: str) -> str:
    names = list(dict.fromkeys(name for one in studies for name in one[key]))
    rows = [
        (one["log"], *(_cell(one[key][name]["mean_bsld"]) if name in one[key] else "-" for name in names))
        for one in studies
    ]
    return _table(("log", *names), rows)


def _rolling(studies: Sequence[Study]) -> str:
    heads = ("log", *(f"eighth {row['eighth']}" for row in studies[0]["rolling"]))
    rows = [
        (
            one["log"],
            *(f"{row['own'] / row['theirs']:.2f} ({row['own']:.3g} : {row['published']} {row['theirs']:.3g})"
              for row in one["rolling"]),
        )
        for one in studies
    ]  # fmt: skip
    return _table(heads, rows)


@keeps_settings
def _picture(studies: Sequence[Study], path: Path) -> None:
    figure = new_figure(7.0, 0.9 + 0.55 * len(studies))
    axes = figure.add_subplot()
    for place, one in enumerate(reversed(studies)):
        for shift, (kind, found) in enumerate(_points(one)):
            height, aim = place - 0.16 * shift, found["mean_bsld"]
            low, high = aim["interval"] or (aim["ratio"], aim["ratio"])
            axes.plot((low, high), (height, height), color=COLOURS[shift], linewidth=2)
            label = kind if place == len(studies) - 1 else None
            axes.plot(aim["ratio"], height, "o", color=COLOURS[shift], markersize=5, label=label)
    axes.axvline(1.0, color="black", linewidth=1)
    axes.set_xscale("log")
    axes.set_xticks([0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.4])
    axes.xaxis.set_major_formatter(ScalarFormatter())
    axes.xaxis.set_minor_formatter("")
    axes.set_yticks(
        range(len(studies)), [f"{one['log']}\n{one['chosen']} : {one['published']}" for one in studies[::-1]]
    )
    axes.set_xlabel("mean bounded slowdown, ratio to the published policy (95 % intervals)")
    axes.legend(fontsize=8, loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=3)
    save_picture(figure, path)


def _points(one: Study) -> list[tuple[str, dict[str, Any]]]:
    points = [("the choice", one["judged"])]
    if "oracles" in one:
        known = {"short jobs only": "with short jobs known", "s and e": "with s and e known"}
        points += [(label, one["oracles"][kind]) for kind, label in known.items()]
    return points


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--output", type=Path, required=True)
    given = parser.parse_args()
    order = ("kth", "sdsc-blue", "hpc2n", "cea-curie", "lublin-1", "lublin-2")
    files = [given.folder / f"learned-{name}.json" for name in order]
    studies = [json.loads(file.read_text(encoding="utf-8")) for file in files if file.exists()]
    for name, text in tables(studies).items():
        console().print(f"\n{name}\n\n{text}", markup=False, soft_wrap=True)
    _picture(studies, given.output / "learned.png")


if __name__ == "__main__":
    main()
