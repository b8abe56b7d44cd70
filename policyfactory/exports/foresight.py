"""What predicts the jobs of a site at their submission."""

from __future__ import annotations

import dataclasses
import math
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from policyfactory.core.errors import ExportError, UsageError
from policyfactory.core.inputs import sha256_file
from policyfactory.exports.options import ExportOptions
from policyfactory.policy.expression import PREDICTIONS
from policyfactory.policy.policy import Policy

if TYPE_CHECKING:
    from policyfactory.prediction.training import Forests

_LONGEST_PATH = 4096
_MOST_QUEUES = 10_000
# Features that a log may have and a submission script does not, and the attributes that they are made of.
UNKNOWN = {"memory": "requested_memory", "partition": "partition"}
# As `policyfactory workload import` writes them: number and name.
_QUEUE = re.compile(r"(\d{1,9}) (\S.{0,99})$")


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class SitePredictions:
    """How jobs are predicted on a site.

    Parameters
    ----------
    forests : Forests
        The model.
    state : str
        The file of `policyfactory.prediction.history_file`, an absolute path on the host of the scheduler.
    stale_s : float
        It is not used when it is older (s).
    queues : mapping of str to int
        The numbers of the partitions in the log that the forests were trained on.
    origin : str
        Where the forests are from, in words.

    Raises
    ------
    UsageError
        If the path is not absolute or too long, or the age is no positive time.
    """

    forests: Forests
    state: str
    stale_s: float = 6 * 3600.0
    queues: Mapping[str, int] = dataclasses.field(default_factory=dict)
    origin: str = ""

    def __post_init__(self) -> None:
        if not self.state.startswith("/") or len(self.state) > _LONGEST_PATH or "\0" in self.state:
            raise UsageError(
                f"--state {self.state[:60]!a}: give an absolute path, that of the file on the host of the scheduler"
            )
        if not (self.stale_s > 0 and math.isfinite(self.stale_s)):
            raise UsageError(f"--stale {self.stale_s:g}: give a time above 0, for example 6h")
        if len(self.queues) > _MOST_QUEUES:
            raise UsageError(f"the log has {len(self.queues):,} queues; {_MOST_QUEUES:,} can be written down")


def site_predictions(options: ExportOptions) -> SitePredictions | None:
    """Return what the options say of predictions; None where they name no history, or no model.

    The numbers of partitions are those in the header of the site's own log.

    Raises
    ------
    UsageError
        If an option cannot be used.
    ModelFileError
        If the model is malformed.
    """
    given = options.predictor
    if options.state is None or given is None:
        return None
    from policyfactory.prediction.training import Forests

    if isinstance(given, Forests):
        forests, origin = given, ""
    else:
        from policyfactory.prediction.store import load_forests

        forests = load_forests(given)
        origin = f"{Path(given).name}, SHA-256 {sha256_file(Path(given))}"
    queues = {}
    if isinstance(options.workload, str | os.PathLike):
        from policyfactory.workload.swf.files import read_swf

        found = (_QUEUE.match(value) for value in read_swf(options.workload).header.values("Queue"))
        queues = {match[2]: int(match[1]) for match in found if match}
    return SitePredictions(forests, os.fspath(options.state), options.stale_s, queues, origin)


def foresight_of(policy: Policy, given: SitePredictions | None, target: str) -> SitePredictions | None:
    """Return what predicts for a policy, None for one for which no model is needed.

    Raises
    ------
    ExportError
        If the policy reads predictions and nothing predicts, or not what it reads.
    """
    if not policy.needs_model:
        return None
    read = ", ".join(name for name in PREDICTIONS if name in policy.variables)
    if given is None:
        raise ExportError(
            f"policy {policy.name} reads {read}, which {target} predicts from a trained model and a history of the "
            "users' jobs; give both: --predictor model.json --state /var/spool/policyfactory/history"
        )
    if not len(given.forests.shortness.roots) or not len(given.forests.share.roots):
        raise ExportError(f"the predictor of policy {policy.name} was not trained: it has no trees; give another")
    if "e90" in policy.variables and not len(given.forests.tail.roots):
        raise ExportError(
            f"policy {policy.name} reads e90, and the predictor has no trees for it; train one for a policy with e90"
        )
    _refuse_unknown(given.forests, target)
    return given


def _refuse_unknown(forests: Forests, target: str) -> None:
    """Refuse a model that looks at what is known of no job at submission: it would see -1 where it learned numbers."""
    from policyfactory.prediction.features import NAMES

    looked_at = {number for forest in (forests.shortness, forests.share, forests.tail) for number in forest.feature}
    unknown = [option for name, option in UNKNOWN.items() if NAMES.index(name) in looked_at]
    if unknown:
        raise ExportError(
            f"the predictor looks at {' and '.join(unknown)}, which the script of {target} does not know; train one "
            f"with policyfactory predict {' '.join(f'--leave-out {name}' for name in unknown)}"
        )
