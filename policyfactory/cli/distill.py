"""``policyfactory distill``: make a formula of a network, and say how far it is the same policy."""

from __future__ import annotations

import dataclasses
import time
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from policyfactory.cli.evaluate_options import with_options
from policyfactory.core.errors import UsageError
from policyfactory.evaluate.plain import OPTIONS
from policyfactory.report.terminal import note

__all__ = ["distill"]

_READING = ("processors", "force_processors", "estimate_missing", "preset")  # how a log is read, as for an evaluation


@with_options(OPTIONS[name] for name in _READING)
def distill(
    network: Annotated[Path, typer.Argument(metavar="NETWORK", help="Network file (train makes one).")],
    log: Annotated[
        Path, typer.Argument(metavar="LOG", help="Log in the Standard Workload Format (workload import makes one).")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="DIR", help="Folder for everything.")] = Path(
        "distilled"
    ),
    family: Annotated[
        list[str] | None,
        typer.Option(
            "--family",
            metavar="NAME|FORMULA",
            help="A family of formulas (power, curved, linear, stretch, ageing, fits, products), or a formula with "
            "named coefficients; can be repeated (default: all, and the second degree in p, q and w). The forms of "
            "fit and the published policies are always tried.",
        ),
    ] = None,
    goal: Annotated[
        str,
        typer.Option(
            help="What the formula is compared in: mean_bsld, mean_wait, mean_turnaround, utilisation, mean_slowdown, "
            "user_mean_bsld, user_max_bsld."
        ),
    ] = "mean_bsld",
    backfill: Annotated[
        Literal["easy", "none"] | None,
        typer.Option(help="Backfilling: easy, none (default: as the network was trained, if it says so, else easy)."),
    ] = None,
    window_jobs: Annotated[int, typer.Option(help="Jobs of a window.")] = 256,
    training_windows: Annotated[int, typer.Option(help="Windows to fit on.")] = 40,
    choosing_windows: Annotated[int, typer.Option(help="Windows to choose by.")] = 40,
    judged_windows: Annotated[int, typer.Option(help="Windows to judge on: at most so many, side by side.")] = 100,
    parts: Annotated[
        str,
        typer.Option(
            metavar="N,N,N", help="Percent of the jobs, in time, to draw windows from: to fit, to choose, to judge."
        ),
    ] = "40,20,40",
    windows: Annotated[
        str | None,
        typer.Option(metavar="NxLENGTH", help="Fit, choose and judge on these very windows: nothing is held out."),
    ] = None,
    decisions: Annotated[int, typer.Option(help="Decisions of a window that are looked at, at most.")] = 40,
    pairs: Annotated[int, typer.Option(help="Pairs of a decision that are looked at, at most.")] = 100,
    margin: Annotated[
        float,
        typer.Option(
            help="What the wait, or the free processors, must add to the share of pairs ordered alike to be taken into "
            "the formula."
        ),
    ] = 0.01,
    seed: Annotated[int, typer.Option(help="Seed of windows, decisions and pairs.")] = 1,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace what an earlier run left in DIR.")] = False,
    **reading: Any,
) -> None:
    """Make a formula of a network: one that orders the queue as the network does, and can be exported.

    The network plays windows of a log by the rules that it was trained for. Formulas are fitted to its order of jobs
    that wait together, one is chosen by its agreement on later windows, and the last ones say how far the two agree
    and what the formula costs or gains in the simulator.
    """
    from policyfactory.cli.distill_screen import DistillScreen, show_distilled
    from policyfactory.search.distill import distill as distill_network
    from policyfactory.search.distill import network_of, trained_with
    from policyfactory.search.distill_options import DistillOptions
    from policyfactory.search.options import TrainOptions

    own = TrainOptions(
        goal=goal,
        window_jobs=window_jobs,
        training_windows=training_windows,
        choosing_windows=choosing_windows,
        judged_windows=judged_windows,
        parts=_percentages(parts),
        windows=windows,
        bands=(),
        seed=seed,
        **reading,
    )
    families = tuple(family) if family else DistillOptions.families
    begin = time.monotonic()
    given = network_of(network)
    rules = dataclasses.replace(own, backfill=backfill or trained_with(given))
    options = DistillOptions(rules, families, decisions, pairs, margin)
    found = distill_network(given, log, options, output=output, overwrite=overwrite, follower=DistillScreen())
    show_distilled(found)
    files = "policy.json, static.json, agreement.png, report.json"
    note(f"everything is in {output}/ ({time.monotonic() - begin:.0f} s): {files}")


def _percentages(text: str) -> tuple[int, int, int]:
    parts = [part.strip() for part in text.split(",")]
    if len(parts) != 3 or not all(part.isdecimal() and len(part) <= 3 for part in parts):
        raise UsageError(f"--parts {text[:60]!a}: write three whole percentages separated by commas: 40,20,40")
    first, second, third = map(int, parts)
    return first, second, third
