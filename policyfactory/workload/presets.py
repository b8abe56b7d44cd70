"""Named filters: which jobs of a log are used, and how its gaps are filled. ``presets.toml`` has them."""

from __future__ import annotations

import dataclasses
import tomllib
from importlib.resources import files
from typing import Literal, get_args

from policyfactory.core.errors import UsageError
from policyfactory.core.text import DAY, did_you_mean

EstimateMissing = Literal["error", "runtime", "model", "drop"]
Overrun = Literal["keep", "cut", "raise", "drop"]
ZeroRun = Literal["drop", "keep", "one"]
ASSUME_HELP = "Nodes, memory (MB) and GPUs of jobs of which the log does not say them: n=q/32,mem=2000*q,g=0."
MISSING_HELP = (
    "jobs without a requested time: error (fewer than 1 % are left out), their run time as if known (runtime), a guess "
    "from their user's other requests, their queue's, or a model (model), or left out (drop)"
)
ESTIMATE_MISSING: tuple[EstimateMissing, ...] = get_args(EstimateMissing)
# Below this share of the usable jobs those without a requested time are left out even where that is an error.
FEW_MISSING = 0.01
# Longer requests are taken for entries by mistake, or for "no limit".
ABSURD_REQUEST = 90 * DAY


@dataclasses.dataclass(frozen=True, slots=True)
class Preset:
    """What a filter does; every preset sorts by submit time.

    Parameters
    ----------
    name : str
        Its name on the command line.
    description : str
        What it does and whose it is, in a sentence.
    size : str
        Which number of processors is a job's q: ``"allocated"``, ``"requested"``, or the ``"larger"`` of them.
    other_size : bool
        Take the other number where the one of ``size`` is missing.
    large : str
        Drop jobs larger than the machine by their q (``"used"``), or by any of the two numbers (``"either"``).
    zero_run : str
        Jobs with run time 0: ``"drop"``, ``"keep"``, or ``"one"`` (1 s).
    overrun : str
        Jobs that ran longer than they requested: ``"keep"``, ``"cut"`` the run to the request, ``"raise"`` the
        request to the run, ``"drop"``.
    drop_missing_request : bool
        Drop jobs without a requested time, whatever is asked for with ``--estimate-missing``.
    strict : bool
        Drop and repair nothing: a job that cannot be used is an error.
    longest_request : int or None
        Cap for requested times in seconds.
    negative_run : int or None
        What a negative run time becomes, in seconds; None drops the job.
    keep_clock : bool
        Times stay those of the log.
    """

    name: str
    description: str
    size: Literal["allocated", "requested", "larger"] = "allocated"
    other_size: bool = True
    large: Literal["used", "either"] = "used"
    zero_run: ZeroRun = "drop"
    overrun: Overrun = "keep"
    drop_missing_request: bool = False
    strict: bool = False
    longest_request: int | None = None
    negative_run: int | None = None
    keep_clock: bool = False


def _read_presets() -> dict[str, Preset]:
    text = files(__package__).joinpath("presets.toml").read_text(encoding="utf-8")
    return {name: Preset(name, **rules) for name, rules in tomllib.loads(text).items()}


PRESETS = _read_presets()


def find_preset(name: str | Preset) -> Preset:
    """Return the preset called ``name``.

    Raises
    ------
    UsageError
        If there is none, with those there are.
    """
    if isinstance(name, Preset):
        return name
    if name in PRESETS:
        return PRESETS[name]
    hint = did_you_mean(name, PRESETS)
    raise UsageError(f"no cleaning preset is called {name!r}; {hint}there are {', '.join(PRESETS)}")
