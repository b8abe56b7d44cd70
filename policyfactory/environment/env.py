"""One scheduler's decisions as a Gymnasium environment: ``policyfactory/Scheduling-v0``.

docs/environment.md says what is observed, decided and rewarded.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.errors import UsageError
from policyfactory.environment.episodes import EpisodeOptions
from policyfactory.environment.look import picture_of
from policyfactory.environment.paper import PaperLog
from policyfactory.environment.spaces import Mode, Starts, any_episodes, observation_space, observe
from policyfactory.policy.catalogue import PolicyLike
from policyfactory.simulate.schedule import Schedule

# Behind what says how to install it.
import gymnasium  # isort: skip

__all__ = ["NAME", "SchedulingEnv"]

NAME = "policyfactory/Scheduling-v0"


class SchedulingEnv(gymnasium.Env[Any, Any]):
    """A window of a log, scheduled job by job.

    Parameters
    ----------
    workload : Workload or path of a log
        The log; in mode paper also as `policyfactory.environment.paper.PaperEpisodes` takes it.
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
        return observe(self.episodes, 0), self._info()

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
        return observe(self.episodes, 0), self.episodes.reward(0), over, False, info

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
            "now": self.episodes.now(0),
            "replaced": bool(self.episodes.replaced[0]),
        }


if NAME not in gymnasium.registry:
    gymnasium.register(
        NAME,
        entry_point=f"{__name__}:SchedulingEnv",
        vector_entry_point="policyfactory.environment.vector:SchedulingVectorEnv",
    )
