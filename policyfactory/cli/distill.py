"""``policyfactory distill``: make a formula of a network, and say how far it is the same policy."""

from __future__ import annotations

import dataclasses
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from policyfactory.cli import options as option
from policyfactory.cli.options import with_options
from policyfactory.core.options import declared, options_of
from policyfactory.report.terminal import note
from policyfactory.search.options import DistillOptions, TrainOptions

# A network says by which rules it was trained.
_OF_WINDOWS = (
    *("goal", "backfill", "window_jobs", "training_windows", "choosing_windows", "judged_windows", "parts", "windows"),
    *("seed", *option.READING),
)
_MORE = {"backfill": "without it as the network was trained, if it says so, else easy"}


_PLAYED = {name: option for name, option in declared(TrainOptions).items() if name in _OF_WINDOWS}


@with_options([*declared(DistillOptions).values(), *_PLAYED.values()], defaults={"backfill": None}, more=_MORE)
def distill(
    network: Annotated[Path, typer.Argument(metavar="NETWORK", help="Network file (train makes one).")],
    log: option.PastLog,
    output: option.LearningOutput = Path("distilled"),
    overwrite: option.Overwrite = False,
    **options: Any,
) -> None:
    """Make a formula of a network: one that orders the queue as the network does, and can be exported.

    Formulas are fitted to the network's order of jobs that wait together, one is chosen by its agreement on later
    windows, and the last ones say how far the two agree and what the formula costs or gains in the simulator.

    Example: policyfactory distill net.json site.swf.gz --output distilled
    """
    from policyfactory.cli.screen import BarScreen
    from policyfactory.cli.screens import show_distilled
    from policyfactory.search.distill import distill as distill_network
    from policyfactory.search.distill import network_of, trained_with

    backfill = options.pop("backfill")
    windows = options_of(TrainOptions, options, bands=())
    begin = time.monotonic()
    given = network_of(network)
    windows = dataclasses.replace(windows, backfill=backfill or trained_with(given))
    how = options_of(DistillOptions, options, windows=windows)
    found = distill_network(given, log, how, output=output, overwrite=overwrite, follower=BarScreen())
    show_distilled(found)
    files = "policy.json, static.json, agreement.png, report.json"
    note(f"everything is in {output}/ ({time.monotonic() - begin:.0f} s): {files}")
