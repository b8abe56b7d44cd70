"""One scheduler's decisions as a Gymnasium environment: ``policyfactory/Scheduling-v0``.

docs/environment.md says what is observed, decided and rewarded.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.errors import UsageError
from policyfactory.core.options import changed
from policyfactory.engine.episodes import FEATURES, MACHINE, RUNNING
from policyfactory.policy.network import Mode
from policyfactory.policy.store import PolicyLike
from policyfactory.search.environment.episodes import (
    EpisodeGroup,
    EpisodeOptions,
    Episodes,
    PaperEpisodes,
    PaperLog,
    picture_of,
)
from policyfactory.simulation.schedule import Schedule
from policyfactory.workload.clean import read
from policyfactory.workload.jobs import Workload
from policyfactory.workload.windows import random_rlscheduler

try:
    import gymnasium
    from gymnasium import spaces
    from gymnasium.utils import seeding
    from gymnasium.vector.utils import batch_space
except ImportError:
    raise UsageError(
        "the environment needs Gymnasium, which is not installed; install the extra rl: pip install 'policyfactory[rl]'"
    ) from None

NAME = "policyfactory/Scheduling-v0"


class SchedulingEnv(gymnasium.Env[Any, Any]):
    """A window of a log, scheduled job by job.

    Parameters
    ----------
    workload : Workload or path of a log
        The log; in mode paper also as `policyfactory.search.environment.episodes.PaperEpisodes` takes it.
    mode : {"standard", "paper"}
        This package's simulator, or the program of RLScheduler to the letter.
    options : EpisodeOptions, optional
        What an episode is.
    render_mode : {"rgb_array"}, optional
        Whether `render` returns pictures.
    **fields
        Fields of the options: ``jobs=64, goal="mean_wait"``.

    Raises
    ------
    UsageError
        If there is no such mode or field, or as `EpisodeOptions`.
    EvaluationError
        If a window is longer than the log, or the log cannot give the goal.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 4}  # noqa: RUF012 (as Gymnasium declares it)

    def __init__(
        self,
        workload: PaperLog,
        mode: Mode = "standard",
        options: EpisodeOptions | None = None,
        render_mode: str | None = None,
        **fields: Any,
    ) -> None:
        if render_mode not in {None, "rgb_array"}:
            raise UsageError(f"render_mode is {render_mode!r}; choose rgb_array or None")
        self.render_mode = render_mode
        self.episodes = any_episodes(workload, mode, options, fields)
        self.observation_space = observation_space(self.episodes)
        self.action_space = gymnasium.spaces.Discrete(self.episodes.slots)
        self._starts = Starts(self.episodes)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin a window: drawn, or that of ``options={"start": job}``.

        Raises
        ------
        UsageError
            If no window begins there, or there is another option.
        """
        super().reset(seed=seed)
        self._starts.seed(seed)
        self.episodes.begin(0, self._starts.draw(options))
        return self.episodes.seen(0), self._info()

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Take one decision.

        Parameters
        ----------
        action : int
            A slot; in place of one that the mask forbids, the first that it allows is taken.

        Returns
        -------
        tuple
            Observation, reward, whether all jobs are started, False, info: ``action_mask``, ``now`` (seconds since the
            window's beginning), ``replaced`` (the choice was forbidden); at the end also ``goal`` and ``guards``.

        Raises
        ------
        UsageError
            If the episode is over.
        """
        if self.episodes.done[0]:
            raise UsageError("the episode is over; reset begins the next")
        self.episodes.step(np.array([int(action)]))
        over = bool(self.episodes.done[0])
        info = self._info()
        if over:
            info.update(self.episodes.outcome(0))
        return self.episodes.seen(0), self.episodes.reward(0), over, False, info

    def action_masks(self) -> NDArray[np.bool_]:
        """Return which slots can be chosen now: bool array (slots,)."""
        mask: NDArray[np.bool_] = self.episodes.mask[0].copy()
        return mask

    def scores(self, policy: PolicyLike) -> NDArray[np.float64]:
        """Return a policy's score of the job in each slot, inf where none can be chosen; argmin is its choice."""
        return self.episodes.scores(policy, 0)

    def schedule(self) -> Schedule:
        """Return the schedule of an episode that is over."""
        return self.episodes.schedule(0)

    def render(self) -> Any:
        """Return the machine and the queue as a picture, uint8 array (400, 900, 3); None without a render mode."""
        if self.render_mode is None:
            return None
        return picture_of(self.episodes.look(0))

    def _info(self) -> dict[str, Any]:
        return {
            "action_mask": self.action_masks(),
            "now": float(self.episodes.times()[0]),
            "replaced": bool(self.episodes.replaced[0]),
        }


if NAME not in gymnasium.registry:
    gymnasium.register(
        NAME,
        entry_point=f"{__name__}:SchedulingEnv",
        vector_entry_point="policyfactory.search.environment.env:SchedulingVectorEnv",
    )


# Many environments on one kernel: a Gymnasium vector environment ------------------------------------------------------

# It gives what Gymnasium's own, made of as many single environments, gives, many times faster. An episode that is over
# begins anew with the next step (`gymnasium.vector.AutoresetMode.NEXT_STEP`), whose action is not looked at.


class SchedulingVectorEnv(gymnasium.vector.VectorEnv[Any, Any, Any]):
    """Windows of one log side by side.

    Parameters
    ----------
    workload : Workload or path of a log
        As for `policyfactory.search.environment.env.SchedulingEnv`, like the next two.
    mode : {"standard", "paper"}
        Which simulator.
    options : EpisodeOptions, optional
        What an episode is.
    num_envs : int
        How many.
    render_mode : {"rgb_array"}, optional
        Whether `render` returns pictures.
    **fields
        Fields of the options.
    """

    metadata = {  # noqa: RUF012 (as Gymnasium declares it)
        "render_modes": ["rgb_array"],
        "render_fps": 4,
        "autoreset_mode": gymnasium.vector.AutoresetMode.NEXT_STEP,
    }

    def __init__(
        self,
        workload: PaperLog,
        mode: Mode = "standard",
        options: EpisodeOptions | None = None,
        num_envs: int = 1,
        render_mode: str | None = None,
        **fields: Any,
    ) -> None:
        if isinstance(num_envs, bool) or not isinstance(num_envs, int | np.integer) or num_envs < 1:
            raise UsageError(f"num_envs is {num_envs!r}; give a whole number from 1")
        if render_mode not in {None, "rgb_array"}:
            raise UsageError(f"render_mode is {render_mode!r}; choose rgb_array or None")
        self.num_envs, self.render_mode = int(num_envs), render_mode
        self.episodes = any_episodes(workload, mode, options, fields, self.num_envs)
        self.single_observation_space = observation_space(self.episodes)
        self.single_action_space = gymnasium.spaces.Discrete(self.episodes.slots)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self._starts = [Starts(self.episodes) for _ in range(self.num_envs)]
        self._over = np.zeros(self.num_envs, dtype=np.bool_)

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin all windows.

        Parameters
        ----------
        seed : int or sequence, optional
            Of the first; the next ones have the numbers that follow. Or one for each.
        options : dict, optional
            ``start``: the first job of all windows; ``reset_mask``, bool array: which of them begin.

        Raises
        ------
        UsageError
            If there are more or fewer seeds than windows, or as for the single environment.
        """
        seeds = self._seeds(seed)
        asked = dict(options or {})
        which = np.asarray(asked.pop("reset_mask", np.ones(self.num_envs, dtype=np.bool_)), dtype=np.bool_)
        if which.shape != (self.num_envs,) or not which.any():
            raise UsageError(f"reset_mask has shape {which.shape}; give {self.num_envs} truth values, one of them True")
        for number in np.flatnonzero(which).tolist():
            self._starts[number].seed(seeds[number])
            self.episodes.begin(number, self._starts[number].draw(asked))
        self._over[which] = False
        return self.episodes.seen(slice(None)), self._info(which)

    def _seeds(self, seed: int | Sequence[int | None] | None) -> list[int | None]:
        if seed is None:
            return [None] * self.num_envs
        if isinstance(seed, int | np.integer):
            return [int(seed) + number for number in range(self.num_envs)]
        if len(seed) != self.num_envs:
            raise UsageError(f"{len(seed)} seeds for {self.num_envs} environments; give one for each, or a single one")
        return list(seed)

    def step(
        self, actions: NDArray[np.integer[Any]]
    ) -> tuple[Any, NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]:
        """Take one decision in each; those that are over begin anew instead.

        Parameters
        ----------
        actions : int array (num_envs,)
            The slot that each chooses.

        Raises
        ------
        UsageError
            If there are more or fewer actions than environments.
        """
        chosen = np.asarray(actions)
        if chosen.shape != (self.num_envs,):
            raise UsageError(
                f"actions have shape {chosen.shape}; give one slot for each of {self.num_envs} environments"
            )
        again = self._over
        self.episodes.step(chosen)
        for number in np.flatnonzero(again).tolist():
            self._starts[number].seed(None)
            self.episodes.begin(number, self._starts[number].draw(None))
        rewards, over = self.episodes.rewards(), self.episodes.done.copy()
        rewards[again] = 0.0
        info = self._info(np.ones(self.num_envs, dtype=np.bool_))
        for number in np.flatnonzero(over).tolist():
            info = self._add_info(info, self.episodes.outcome(number), number)
        self._over = over
        return self.episodes.seen(slice(None)), rewards, over.copy(), np.zeros_like(over), info

    def action_masks(self) -> NDArray[np.bool_]:
        """Return which slots can be chosen in each: bool array (num_envs, slots)."""
        mask: NDArray[np.bool_] = self.episodes.mask.copy()
        return mask

    def render(self) -> tuple[Any, ...] | None:
        """Return a picture of each; None without a render mode."""
        if self.render_mode is None:
            return None
        return tuple(picture_of(self.episodes.look(number)) for number in range(self.num_envs))

    def _info(self, which: NDArray[np.bool_]) -> dict[str, Any]:
        facts = {
            "action_mask": self.action_masks(),
            "now": self.episodes.times(),
            "replaced": self.episodes.replaced.copy(),
        }
        info: dict[str, Any] = {}
        for name, values in facts.items():
            values[~which] = 0
            info[name], info[f"_{name}"] = values, which.copy()
        return info


# What the environments share ------------------------------------------------------------------------------------------

# How episodes are made of what the user gives, spaces, and where windows begin.


# log10 of the longest wait that a clock has room for is below this.
_MOST = 20.0
# As many as the program's rule takes from anywhere.
_SEEDS = 10**9


def any_episodes(
    workload: PaperLog, mode: Mode, options: EpisodeOptions | None, fields: dict[str, Any], count: int = 1
) -> EpisodeGroup:
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
    options = changed(options or EpisodeOptions(), fields)
    if mode == "paper":
        return PaperEpisodes(workload, options, count)
    if isinstance(workload, Path | str):
        workload = read(workload)
    if not isinstance(workload, Workload):
        raise UsageError(f"mode standard takes a Workload or the path of a log, not a {type(workload).__name__}")
    return Episodes(workload, options, count)


def observation_space(episodes: EpisodeGroup) -> spaces.Space[Any]:
    """Return the space of what one episode shows."""
    if episodes.mode == "paper":
        return spaces.Box(0.0, 1.0, (episodes.jobs[0].size,), np.float32)
    shapes = {
        "jobs": (episodes.slots, FEATURES),
        "machine": (MACHINE,),
        "running": (episodes.options.running, RUNNING),
    }
    return spaces.Dict({name: spaces.Box(-_MOST, _MOST, shape, np.float32) for name, shape in shapes.items()})


class Starts:
    """Where the windows of one environment begin: drawn evenly, in mode paper by the generator of its program.

    Parameters
    ----------
    episodes : Episodes or PaperEpisodes
        Which windows there are.
    """

    def __init__(self, episodes: EpisodeGroup) -> None:
        self.episodes = episodes
        self._random: np.random.Generator | np.random.RandomState
        self._seeded = False

    def seed(self, seed: int | None) -> None:
        """Begin a sequence anew: None goes on with the one there is, or begins one that nobody knows."""
        if seed is None and self._seeded:
            return
        generator, known = seeding.np_random(seed)
        paper = self.episodes.mode == "paper"
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
