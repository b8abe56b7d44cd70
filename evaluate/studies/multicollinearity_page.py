"""Draw the pictures of docs/polynomials.md and print its tables, from the CSV files of multicollinearity.py.

``python evaluate/studies/multicollinearity_page.py --output docs`` takes seconds. With ``--results
results/polynomials``, the folder that ``policyfactory evaluate evaluate/polynomials.toml`` wrote, it first takes over
the values and the claims of that run (``data/polynomials-*.csv``).
"""  # noqa: INP001 (a script beside the package, not a part of it)

from __future__ import annotations

import argparse
import csv
from pathlib import Path
from typing import Any

import numpy as np

from policyfactory.core.files import atomic_write
from policyfactory.core.picture import COLOURS, new_figure, save_picture

__all__ = ["main", "tables"]

FAMILIES = ("LIN", "QDR", "CUB", "QUA")
VARIANTS = ("as fitted", "inside the range", "rising", "rising and inside")
RIVALS = ("FCFS", "SAF", "LIN-SYNTHETIC", "OURS-lin")
LATEST_DAYS = 306_107 / 86_400  # the latest submit time in training_data/lublin-256.csv


def main(arguments: list[str] | None = None) -> None:
    """Draw all pictures and print all tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--results", type=Path)
    given = parser.parse_args(arguments)
    data, pictures = given.output / "data", given.output / "img"
    pictures.mkdir(parents=True, exist_ok=True)
    if given.results is not None:
        take_over(given.results, data)
    for draw in (draw_terms, draw_slices, draw_schedules):
        draw(data, pictures)
    for name, text in tables(data).items():
        print(f"{name}\n\n{text}\n")  # noqa: T201 (what the script is for)


def take_over(results: Path, data: Path) -> None:
    """Write the claims of a run, and the mean bounded slowdowns with their intervals, into ``data``."""
    claims = (results / "claims" / "claims" / "claims.csv").read_text(encoding="utf-8")
    atomic_write(data / "polynomials-claims.csv", claims)
    lines, wins = ["experiment,log,policy,mean_bsld,low,high"], ["experiment,log,policy,than,wins"]
    for experiment, log in dict.fromkeys((row["experiment"], row["log"]) for row in _rows(claims)):
        for row in _read(results / experiment / "wins" / f"{log}.csv"):
            rivals = [name for name in RIVALS if name in row and name != row["policy"]]
            wins += [",".join([experiment, log, row["policy"], name, row[name]]) for name in rivals]
        for row in _read(results / experiment / "values" / f"{log}.csv"):
            numbers = [f"{float(row[key]):.6g}" for key in ("mean_bsld", "mean_bsld low", "mean_bsld high")]
            lines.append(",".join([experiment, log, row["policy"], *numbers]))
    atomic_write(data / "polynomials-values.csv", "\n".join(lines) + "\n")
    atomic_write(data / "polynomials-wins.csv", "\n".join(wins) + "\n")


def _rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(text.splitlines()))


def _read(path: Path) -> list[dict[str, str]]:
    return _rows(path.read_text(encoding="utf-8"))


# Pictures. -----------------------------------------------------------------------------------------------------------


def draw_terms(data: Path, pictures: Path) -> None:
    """Draw variance inflation and sign flips of each term, a colour a family."""
    figure = new_figure(7.0, 4.0)
    axis = figure.subplots()
    rows = _read(data / "collinearity-terms.csv")
    for colour, name in zip(COLOURS, FAMILIES, strict=False):
        own = [row for row in rows if row["family"] == name]
        shares = [100 * float(row["other_sign"]) for row in own]
        axis.plot(
            [float(row["vif"]) for row in own], shares, "o", color=colour, alpha=0.85, label=f"{name}, {len(own)} terms"
        )
    axis.axvline(10, color="0.5", linestyle=":", label="the usual limit, 10")
    axis.set_xscale("log")
    axis.set_xlabel("variance inflation factor of the term (1)")
    axis.set_ylabel("resamplings with the other sign (%)")
    axis.set_ylim(bottom=-2)
    _plain(axis.xaxis)
    figure.legend(loc="outside upper center", ncols=3, fontsize=9)
    save_picture(figure, pictures / "collinearity-terms.png")


def draw_slices(data: Path, pictures: Path) -> None:
    """Draw the score that resamplings predict for one job, by its submit time: where scores were, and a window."""
    rows = _read(data / "collinearity-slices.csv")
    figure = new_figure(7.0, 5.0)
    panels = figure.subplots(2, 2, sharex=True).ravel()
    for axis, name in zip(panels, FAMILIES, strict=True):
        own = [row for row in rows if row["family"] == name]
        for number in dict.fromkeys(row["resampling"] for row in own):
            days, scores = np.array(
                [(float(row["day"]), float(row["score"])) for row in own if row["resampling"] == number]
            ).T
            axis.plot(days, scores, color=COLOURS[0], linewidth=0.8, alpha=0.7)
        axis.axvspan(0, LATEST_DAYS, color=COLOURS[4], alpha=0.3, linewidth=0)
        if name != "LIN":
            axis.set_yscale("symlog", linthresh=0.1)
        _plain(axis.yaxis)
        axis.set_title(name, loc="left", fontsize=10)
    figure.supxlabel("submit time of the job in the window (d); orange: the range of the scores", fontsize=10)
    figure.supylabel("predicted score (1); beyond 0.1 logarithmic", fontsize=10)
    save_picture(figure, pictures / "collinearity-slices.png")


def draw_schedules(data: Path, pictures: Path) -> None:
    """Draw the slowdown of the schedules: a panel a log, four variants a family, FCFS and SAF as lines."""
    rows = [row for row in _read(data / "collinearity-schedules.csv") if row["rules"] == "runtime"]
    logs = list(dict.fromkeys(row["log"] for row in rows))
    figure = new_figure(7.0, 2.1 * len(logs) + 0.6)
    panels = figure.subplots(len(logs), 1, sharex=True, squeeze=False).ravel()
    for axis, log in zip(panels, logs, strict=True):
        own = [row for row in rows if row["log"] == log]
        for name, style in (("FCFS", "--"), ("SAF", ":")):
            value = next(float(row["mean_bsld"]) for row in own if row["family"] == name)
            axis.axhline(value, color="black", linestyle=style, linewidth=1, label=name)
        for at, variant in enumerate(VARIANTS):
            chosen = [row for row in own if row["table"] == "441" and row["variant"] == variant]
            places = np.arange(len(chosen)) + 0.18 * (at - 1.5)
            low, middle, high = (
                np.array([float(row[key]) for row in chosen]) for key in ("mean_bsld_10", "mean_bsld", "mean_bsld_90")
            )
            axis.vlines(places, low, high, color=COLOURS[at], linewidth=5, alpha=0.4)
            axis.plot(places, middle, "o", color=COLOURS[at], label=variant)
        axis.set_yscale("log")
        _plain(axis.yaxis)
        axis.set_title(log, loc="left", fontsize=10)
        axis.set_xticks(range(len(FAMILIES)), FAMILIES)
    panels[len(panels) // 2].set_ylabel("mean bounded slowdown (1)")
    handles, names = panels[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=3, fontsize=9)
    save_picture(figure, pictures / "collinearity-schedules.png")


def _plain(axis: Any) -> None:
    """Show 1,000 instead of a power of ten."""
    from matplotlib.ticker import FuncFormatter, NullFormatter

    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.6g}"))
    axis.set_minor_formatter(NullFormatter())


# The tables of the page. ---------------------------------------------------------------------------------------------


def tables(data: Path) -> dict[str, str]:
    """Return the tables of docs/polynomials.md, in Markdown, from the CSV files in ``data``."""
    terms, bases, orders, schedules = (
        _read(data / f"collinearity-{name}.csv") for name in ("terms", "bases", "orders", "schedules")
    )
    return {
        "claims": _claim_table(_read(data / "polynomials-claims.csv")),
        "terms": _markdown(
            ["family", "terms", "VIF, largest", "centred", "orthogonal", "above 10", "sign uncertain"],
            [_term_row(terms, bases, name) for name in FAMILIES],
        ),
        "orders": _order_table(orders),
        "schedules": _schedule_table([row for row in schedules if row["rules"] == "runtime" and row["table"]]),
    }


def _claim_table(rows: list[dict[str, str]]) -> str:
    """Return the logs on which a claim holds, is not shown and does not hold, by experiment."""
    answers = ("holds", "not shown", "does not hold")
    lines = []
    for claim in list(rows[0])[2:]:
        for experiment in dict.fromkeys(row["experiment"] for row in rows if row[claim]):
            own = {row["log"]: row[claim] for row in rows if row["experiment"] == experiment}
            logs = [", ".join(log for log, text in own.items() if text.startswith(answer)) for answer in answers]
            lines.append([claim.removeprefix("claim "), experiment, *logs])
    return _markdown(["claim", "experiment", *answers], lines)


def _term_row(rows: list[dict[str, str]], bases: list[dict[str, str]], name: str) -> list[str]:
    own = [row for row in rows if row["family"] == name]
    factors, flips = [float(row["vif"]) for row in own], [float(row["other_sign"]) for row in own]
    (basis,) = (row for row in bases if row["family"] == name)
    return [
        name,
        str(len(own)),
        _short(max(factors)),
        *(_short(basis[f"largest_vif_{of}"]) for of in ("centred", "orthogonal")),
        str(sum(value > 10 for value in factors)),
        str(sum(value > 0.025 for value in flips)),
    ]


def _order_table(rows: list[dict[str, str]]) -> str:
    shown = {
        (row["table"], row["family"], row["jobs"]): row
        for row in rows
        if row["variant"] == "as fitted" and row["jobs"] in {"training", "lublin"}
    }
    sizes = list(dict.fromkeys(row["table"] for row in rows))
    lines = [
        [
            name,
            *(f"{float(shown[size, name, 'training']['tau']):.2f}" for size in sizes),
            f"{float(shown[sizes[0], name, 'lublin']['tau']):.2f}",
            f"{float(shown[sizes[0], name, 'lublin']['tau_submission']):+.2f}",
        ]
        for name in FAMILIES
    ]
    heading = [*(f"{int(size):,} tuples" for size in sizes), "in windows", "in windows, with submission"]
    return _markdown(["family", *heading], lines)


def _schedule_table(rows: list[dict[str, str]]) -> str:
    own = {
        (row["variant"], row["family"]): row
        for row in rows
        if (row["log"], row["table"]) == ("lublin", rows[0]["table"])
    }
    lines = [[variant, *(_spread_text(own[variant, name]) for name in FAMILIES)] for variant in VARIANTS]
    return _markdown(["variant", *FAMILIES], lines)


def _spread_text(row: dict[str, str]) -> str:
    return f"{_short(row['mean_bsld'])} ({_short(row['mean_bsld_10'])} to {_short(row['mean_bsld_90'])})"


def _short(value: str | float) -> str:
    number = float(value)
    return f"{number:,.0f}" if number >= 100 else f"{number:.1f}"


def _markdown(heading: list[str], rows: list[list[str]]) -> str:
    lines = [heading, ["---"] * len(heading), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


if __name__ == "__main__":
    main()
