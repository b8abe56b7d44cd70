"""What a script in Lua needs to predict a job at its submission: the forests, and where the history of the users is.

The forests are numbers in a text that the script takes apart: constants of a function in Lua are limited in number, and
nothing of a model is ever run as code.
"""

from __future__ import annotations

import math

from policyfactory.core.errors import ExportError
from policyfactory.core.units import format_duration
from policyfactory.engine.forest import Forest
from policyfactory.engine.past import FEATURES
from policyfactory.export.foresight import SitePredictions
from policyfactory.export.scripts import filled
from policyfactory.policy.nodes import PREDICTIONS
from policyfactory.policy.policy import Policy
from policyfactory.predict.features import FEATURE_SET
from policyfactory.predict.history_file import HEADER, HISTORY_SCHEMA, LINE

__all__ = ["FORESEEN", "MORE", "lua_string", "prediction_lines", "prediction_script"]

# The further arguments of score(): their names, and where they are from.
MORE = ", ".join(["", *PREDICTIONS])
FORESEEN = ", foresee(job, record, partitions or {}, submitted, p, q)"


def prediction_lines(given: SitePredictions) -> list[str]:
    """Return what a reader of the script must know of its predictions, as lines for its head."""
    forests = given.forests
    trees = sum(len(one.roots) for one in (forests.shortness, forests.share, forests.tail))
    age, known = (
        format_duration(given.stale_s),
        ", ".join(sorted(given.queues)) or "none (the header of --workload LOG may name them)",
    )
    return [
        f"Predictor: {given.origin or 'made in a program'}, {trees:,} trees, trained on {forests.jobs:,} jobs.",
        f"History: {given.state}, set {FEATURE_SET} of the features; not used when older than {age}.",
        f"Partitions with a number of their own: {known}.",
    ]


def prediction_script(policy: Policy, given: SitePredictions) -> str:
    """Return the part of the script that predicts."""
    forests = given.forests
    queues = ", ".join(f"[{lua_string(name)}] = {int(number)}" for name, number in sorted(given.queues.items()))
    none = 'forest(0.0, "", "")'
    values = {
        "STATE": lua_string(given.state),
        "STALE": repr(float(given.stale_s)),
        "LAYOUT": f"{HEADER}, {LINE}, {HISTORY_SCHEMA}, {FEATURE_SET}, {FEATURES}",
        "QUEUES": queues,
        "SHORTNESS": _forest(forests.shortness),
        "SHARE": _forest(forests.share),
        "TAIL": _forest(forests.tail) if "e90" in policy.variables else none,
    }
    return filled("predictions.lua", values)


def lua_string(text: str) -> str:
    """Return a string of Lua; every byte but letters, digits and a few marks is written as its number."""
    plain = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 _-./+:"
    data = text.encode("utf-8", "surrogateescape")
    inside = "".join(chr(byte) if byte in plain else f"\\{byte:03}" for byte in data)
    return f'"{inside}"'


def _forest(forest: Forest) -> str:
    """Return the call that makes a forest of its numbers."""
    columns = zip(
        forest.feature.tolist(), forest.threshold.tolist(), forest.left.tolist(), forest.right.tolist(), strict=True
    )
    nodes = []
    for feature, threshold, left, right in columns:
        if not math.isfinite(threshold):
            raise ExportError(f"the predictor has the threshold {threshold}, which is no finite number; train it again")
        nodes.append(f"{int(feature)} {float(threshold)!r} {int(left)} {int(right)}\n")
    roots = " ".join(str(int(root)) for root in forest.roots)
    return f'forest({float(forest.base)!r}, "{roots}", [[\n{"".join(nodes)}]])'
