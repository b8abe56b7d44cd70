"""Many environments on one kernel: a Gymnasium vector environment.

It gives what Gymnasium's own, made of as many single environments, gives, many times faster. An episode that is over
begins anew with the next step (`gymnasium.vector.AutoresetMode.NEXT_STEP`), whose action is not looked at.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.errors import UsageError
from policyfactory.environment.episodes import EpisodeOptions
from policyfactory.environment.look import picture_of
from policyfactory.environment.paper import PaperLog
from policyfactory.environment.spaces import Mode, Starts, any_episodes, observation_space, observe

# Behind what says how to install it.
import gymnasium  # isort: skip
from gymnasium.vector.utils import batch_space  # isort: skip

__all__ = ["SchedulingVectorEnv"]


class SchedulingVectorEnv(gymnasium.vector.VectorEnv[Any, Any, Any]):
    """Windows of one log side by side.

    Parameters
    ----------
    workload : Workload or path of a log
        As for `policyfactory.environment.env.SchedulingEnv`, like the next two.
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
        for at in np.flatnonzero(which).tolist():
            self._starts[at].seed(seeds[at])
            self.episodes.begin(at, self._starts[at].draw(asked))
        self._over[which] = False
        return observe(self.episodes, slice(None)), self._info(which)

    def _seeds(self, seed: int | Sequence[int | None] | None) -> list[int | None]:
        if seed is None:
            return [None] * self.num_envs
        if isinstance(seed, int | np.integer):
            return [int(seed) + at for at in range(self.num_envs)]
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
        for at in np.flatnonzero(again).tolist():
            self._starts[at].seed(None)
            self.episodes.begin(at, self._starts[at].draw(None))
        rewards, over = self.episodes.rewards(), self.episodes.done.copy()
        rewards[again] = 0.0
        info = self._info(np.ones(self.num_envs, dtype=np.bool_))
        for at in np.flatnonzero(over).tolist():
            info = self._add_info(info, self.episodes.outcome(at), at)
        self._over = over
        return observe(self.episodes, slice(None)), rewards, over.copy(), np.zeros_like(over), info

    def action_masks(self) -> NDArray[np.bool_]:
        """Return which slots can be chosen in each: bool array (num_envs, slots)."""
        mask: NDArray[np.bool_] = self.episodes.mask.copy()
        return mask

    def render(self) -> tuple[Any, ...] | None:
        """Return a picture of each; None without a render mode."""
        if self.render_mode is None:
            return None
        return tuple(picture_of(self.episodes.look(at)) for at in range(self.num_envs))

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
