"""What an export consists of: files, lines for the scheduler's configuration, and what an administrator must know."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from policyfactory.export.queue import Queue
    from policyfactory.export.scale import Scale

__all__ = ["Export", "File"]


@dataclasses.dataclass(frozen=True, slots=True)
class File:
    """One file of an export.

    Parameters
    ----------
    name : str
        As the scheduler wants it to be called: ``job_submit.lua``.
    text : str
        Its content.
    executable : bool
        Whether it is a program.
    """

    name: str
    text: str
    executable: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class Export:
    """A policy in the form that a program or a scheduler takes.

    Parameters
    ----------
    files : tuple of File
        The main one first.
    settings : tuple of str
        Lines for the scheduler's configuration (slurm.conf), in order; empty if it needs none.
    install : tuple of str
        How to put it in place, a sentence or a command each.
    rollback : tuple of str
        How to go back to the order of before, likewise.
    limits : tuple of str
        What this target cannot express of the policy, and what else must be known before it is trusted; sentences.
        Those of `unexpressed`, and those that begin with ``NOT``, are printed as warnings.
    priorities : function of Queue to float64 array (n,), optional
        What the scheduler will sort the waiting jobs by, computed as it will: HIGHER runs first, ties by submit time.
        None: the policy's own order.
    scale : Scale, optional
        The map from scores to whole numbers, if the target has one: the command measures its ties.
    """

    files: tuple[File, ...]
    settings: tuple[str, ...] = ()
    install: tuple[str, ...] = ()
    rollback: tuple[str, ...] = ()
    limits: tuple[str, ...] = ()
    priorities: Callable[[Queue], NDArray[np.float64]] | None = None
    scale: Scale | None = None

    @property
    def text(self) -> str:
        """Content of the main file."""
        return self.files[0].text
