"""What the environments share: how episodes are made of what the user gives, spaces, and where windows begin."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np

from policyfactory.core.errors import UsageError
from policyfactory.engine.observed import FEATURES, MACHINE, RUNNING
from policyfactory.environment.episodes import EpisodeOptions, Episodes
from policyfactory.environment.paper import PaperEpisodes, PaperLog
from policyfactory.workload.clean import read
from policyfactory.workload.jobs import Workload
from policyfactory.workload.windows import random_rlscheduler

try:
    from gymnasium import spaces
    from gymnasium.utils import seeding
except ImportError:
    raise UsageError(
        "the environment needs Gymnasium, which is not installed; install the extra rl: pip install 'policyfactory[rl]'"
    ) from None

__all__ = ["Mode", "Starts", "any_episodes", "observation_space", "observe"]

Mode = Literal["standard", "paper"]
AnyEpisodes: TypeAlias = Episodes | PaperEpisodes
# log10 of the longest wait that a clock has room for is below this.
_MOST = 20.0
# As many as the program's rule takes from anywhere.
_SEEDS = 10**9


def any_episodes(
    workload: PaperLog, mode: Mode, options: EpisodeOptions | None, fields: dict[str, Any], count: int = 1
) -> AnyEpisodes:
    """Return the episodes of a mode.

    Parameters
    ----------
    workload : Workload or path of a log; in mode paper also SwfLog or CommittedLog
        The log.
    mode : {"standard", "paper"}
        The simulator of this package, or the program of RLScheduler.
    options : EpisodeOptions or None
        What an episode is.
    fields : dict
        Fields of it in place of those of ``options``.
    count : int
        How many stand side by side.

    Raises
    ------
    UsageError
        If there is no such mode or field, or as `EpisodeOptions`.
    """
    if mode not in {"standard", "paper"}:
        raise UsageError(f"mode is {mode!r}; choose standard or paper")
    known = [field.name for field in dataclasses.fields(EpisodeOptions)]
    unknown = sorted(set(fields) - set(known))
    if unknown:
        raise UsageError(f"an episode has no {unknown[0]!r}; it has {', '.join(known)}")
    options = dataclasses.replace(options or EpisodeOptions(), **fields)
    if mode == "paper":
        return PaperEpisodes(workload, options, count)
    if isinstance(workload, Path | str):
        workload = read(workload)
    if not isinstance(workload, Workload):
        raise UsageError(f"mode standard takes a Workload or the path of a log, not a {type(workload).__name__}")
    return Episodes(workload, options, count)


def observation_space(episodes: AnyEpisodes) -> spaces.Space[Any]:
    """Return the space of what one episode shows."""
    if isinstance(episodes, PaperEpisodes):
        return spaces.Box(0.0, 1.0, (episodes.observation[0].size,), np.float32)
    shapes = {
        "jobs": (episodes.slots, FEATURES),
        "machine": (MACHINE,),
        "running": (episodes.options.running, RUNNING),
    }
    return spaces.Dict({name: spaces.Box(-_MOST, _MOST, shape, np.float32) for name, shape in shapes.items()})


def observe(episodes: AnyEpisodes, at: int | slice) -> Any:
    """Return a copy of what one episode, or all, show."""
    if isinstance(episodes, PaperEpisodes):
        shown = episodes.observation[at]
        return shown.reshape(*shown.shape[:-2], -1).copy()
    view = episodes.view
    return {"jobs": view.jobs[at].copy(), "machine": view.machine[at].copy(), "running": view.running[at].copy()}


class Starts:
    """Where the windows of one environment begin: drawn evenly, in mode paper by the generator of its program.

    Parameters
    ----------
    episodes : Episodes or PaperEpisodes
        Which windows there are.
    """

    def __init__(self, episodes: AnyEpisodes) -> None:
        self.episodes = episodes
        self._random: np.random.Generator | np.random.RandomState
        self._seeded = False

    def seed(self, seed: int | None) -> None:
        """Begin a sequence anew: None goes on with the one there is, or begins one that nobody knows."""
        if seed is None and self._seeded:
            return
        generator, known = seeding.np_random(seed)
        paper = isinstance(self.episodes, PaperEpisodes)
        self._random = random_rlscheduler(str(known % _SEEDS)) if paper else generator
        self._seeded = True

    def draw(self, options: dict[str, Any] | None) -> int:
        """Return the first job of the next window: ``options["start"]``, or drawn.

        Raises
        ------
        UsageError
            If the options have anything else.
        """
        asked = dict(options or {})
        start = asked.pop("start", None)
        if asked:
            raise UsageError(f"reset has no option {min(asked)!r}; give start, the first job of the window")
        if start is not None:
            if isinstance(start, bool) or not isinstance(start, int | np.integer):
                raise UsageError(f"start is {start!r}; give the number of the first job of the window")
            return int(start)
        low, high = self.episodes.first, self.episodes.last + 1
        if isinstance(self._random, np.random.RandomState):
            return int(self._random.randint(low, high))
        return int(self._random.integers(low, high))
