"""``policyfactory distill``: make a formula of a network, and say how far it is the same policy."""

from __future__ import annotations

import dataclasses
import time
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from policyfactory.cli import options as option
from policyfactory.cli.options import with_options
from policyfactory.evaluate.options import OPTIONS
from policyfactory.report.terminal import note

__all__ = ["distill"]


@with_options(OPTIONS[name] for name in option.READING)
def distill(
    network: Annotated[Path, typer.Argument(metavar="NETWORK", help="Network file (train makes one).")],
    log: option.PastLog,
    output: option.LearningOutput = Path("distilled"),
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
    goal: option.Goal = "mean_bsld",
    backfill: Annotated[
        Literal["easy", "none"] | None,
        typer.Option(help="Backfilling: easy, none (default: as the network was trained, if it says so, else easy)."),
    ] = None,
    window_jobs: option.WindowJobs = 256,
    training_windows: option.TrainingWindows = 40,
    choosing_windows: option.ChoosingWindows = 40,
    judged_windows: option.JudgedWindows = 100,
    parts: option.Parts = "40,20,40",
    windows: option.Windows = None,
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
    overwrite: option.LearningOverwrite = False,
    **reading: Any,
) -> None:
    """Make a formula of a network: one that orders the queue as the network does, and can be exported.

    The network plays windows of a log by the rules that it was trained for. Formulas are fitted to its order of jobs
    that wait together, one is chosen by its agreement on later windows, and the last ones say how far the two agree
    and what the formula costs or gains in the simulator.
    """
    from policyfactory.cli.screens import DistillScreen, show_distilled
    from policyfactory.search.distill import DistillOptions, network_of, trained_with
    from policyfactory.search.distill import distill as distill_network
    from policyfactory.search.options import TrainOptions

    own = TrainOptions(
        goal=goal,
        window_jobs=window_jobs,
        training_windows=training_windows,
        choosing_windows=choosing_windows,
        judged_windows=judged_windows,
        parts=option.parts_of(parts),
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
