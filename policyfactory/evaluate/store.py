"""The results as files: a long CSV, one JSON with summary and protocol, a manifest.

``results.csv``, ``evaluation.json`` and the pictures are the same, byte for byte, whenever the same thing is
evaluated, for any number of workers; what differs from run to run (command line, speed) is in ``manifest.json`` alone.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from policyfactory.core.artefact import Manifest, atomic_write, sha256_file
from policyfactory.evaluate.compare import LEVEL, MIN_WINDOWS, RESAMPLES, Comparison
from policyfactory.evaluate.metrics import METRICS
from policyfactory.evaluate.summary import Summary, worst_off

if TYPE_CHECKING:
    from policyfactory.evaluate.run import Evaluation
    from policyfactory.evaluate.simulate import Rules
    from policyfactory.policy.policy import Policy

__all__ = [
    "EVALUATION_SCHEMA",
    "MANIFEST_NAME",
    "evaluation_json",
    "listed",
    "protocol",
    "remove",
    "results_csv",
    "save",
    "winners",
]

EVALUATION_SCHEMA = 1
MANIFEST_NAME = "manifest.json"
_KIND = "evaluation"


def _plain(value: Any) -> Any:
    """Return ``value`` as JSON values; what JSON has no word for (NaN, infinity) is null."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    return value


def results_csv(evaluation: Evaluation) -> str:
    """Return the long table as CSV: trace, window, policy, metric, value (full precision; NaN is empty).

    Parameters
    ----------
    evaluation : Evaluation
        The values.
    """
    text: str = evaluation.frame().to_csv(index=False, lineterminator="\n")
    return text


def _policy(policy: Policy) -> dict[str, Any]:
    return {
        "name": policy.name,
        "formula": policy.formula,
        "epoch": {"rule": policy.epoch.rule, "unix_time": policy.epoch.unix_time},
        "threshold_s": policy.threshold,
        "source": policy.source,
    }


def _rules(rules: Rules) -> dict[str, Any]:
    return {
        "backfill": rules.backfill,
        "decide_by": rules.decide_by,
        "threshold_s": rules.threshold,
        "ties": rules.ties,
        "overrun": rules.overrun,
        "backfill_order": None if rules.backfill_policy is None else _policy(rules.backfill_policy),
    }


def protocol(evaluation: Evaluation, *, seed: int, settings: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return everything that determines the numbers, as JSON values.

    Parameters
    ----------
    evaluation : Evaluation
        The values.
    seed : int
        Seed of the bootstrap.
    settings : mapping, optional
        What was done to the logs before (cleaning, windows), as JSON values.
    """
    content = {
        "settings": dict(settings or {}),
        "rules": _rules(evaluation.rules),
        "policies": [_policy(policy) for policy in evaluation.candidates],
        "baseline": evaluation.baseline,
        "metrics": [
            {"name": name, "unit": METRICS[name].unit, "lower_is_better": METRICS[name].lower_is_better}
            | {"description": METRICS[name].description}
            for name in evaluation.metrics
        ],
        "windows": [dataclasses.asdict(window) for window in evaluation.windows],
        "bootstrap": {
            "statistic": "median of the paired differences",
            "unit": "window",
            "level": LEVEL,
            "resamples": RESAMPLES,
            "seed": seed,
            "least_windows": MIN_WINDOWS,
        },
    }
    plain: dict[str, Any] = _plain(content)
    return plain


def winners(summaries: Sequence[Summary], metric: str) -> dict[str, str | None]:
    """Return the policy with the best median of ``metric`` on each trace (the first of equals).

    Parameters
    ----------
    summaries : sequence of Summary
        Of `summary.summarise`.
    metric : str
        The metric that decides.
    """
    found: dict[str, str | None] = {}
    for row in summaries:
        if row.metric == metric:
            found[row.trace] = found.get(row.trace) or (row.policy if row.best else None)
    return found


def evaluation_json(
    evaluation: Evaluation,
    summaries: Sequence[Summary],
    comparisons: Sequence[Comparison],
    words: Sequence[str],
    described: Mapping[str, Any],
) -> dict[str, Any]:
    """Return the whole result but the single windows, as JSON values.

    Parameters
    ----------
    evaluation, summaries, comparisons, words
        What was found (`run`, `summary`, `compare`, `words`).
    described : mapping
        Of `protocol`.

    Returns
    -------
    dict
        ``winner`` is the policy with the best median of the first metric, null where the traces do not agree.
    """
    by_trace = winners(summaries, evaluation.metrics[0])
    content = {
        "kind": _KIND,
        "schema_version": EVALUATION_SCHEMA,
        "winner": next(iter(by_trace.values())) if len(set(by_trace.values())) == 1 else None,
        "winners": by_trace,
        "words": list(words),
        "protocol": described,
        "summary": [dataclasses.asdict(row) for row in summaries],
        "differences": [dataclasses.asdict(row) for row in comparisons],
        "worst_off": {
            trace: [dataclasses.asdict(row) for row in worst_off(evaluation, trace)] for trace in evaluation.traces
        },
    }
    plain: dict[str, Any] = _plain(content)
    return plain


def listed(directory: Path) -> list[str]:
    """Return the files that an earlier evaluation wrote into ``directory``, by its manifest there.

    Parameters
    ----------
    directory : Path
        The folder of the results.
    """
    try:
        manifest = json.loads((directory / MANIFEST_NAME).read_text(encoding="utf-8"))
        return [str(name) for name in manifest["outputs"]] if manifest["kind"] == _KIND else []
    except (OSError, ValueError, KeyError, TypeError):
        return []


def remove(directory: Path, names: Iterable[str]) -> int:
    """Remove files below ``directory`` and the folders that are empty then; return how many files there were.

    Parameters
    ----------
    directory : Path
        The folder of the results; nothing outside it is touched, whatever the names say.
    names : iterable of str
        Paths relative to it.
    """
    top = directory.resolve()
    removed = 0
    for name in names:
        relative = PurePosixPath(name)
        path = directory / relative
        if relative.is_absolute() or ".." in relative.parts or path.is_symlink() or not path.is_file():
            continue
        if not path.resolve().is_relative_to(top):
            continue
        path.unlink()
        removed += 1
        for folder in path.parents:
            if folder == directory or any(folder.iterdir()):
                break
            folder.rmdir()
    return removed


def save(directory: Path, texts: Mapping[str, str], manifest: Manifest, others: Iterable[Path] = ()) -> list[Path]:
    """Write the texts, then the manifest with the digests of all outputs, and remove what an earlier run left.

    Parameters
    ----------
    directory : Path
        The folder of the results; exists.
    texts : mapping of str to str
        File name and content.
    manifest : Manifest
        Without outputs.
    others : iterable of Path
        Files below ``directory`` that are written already (pictures, starts).

    Returns
    -------
    list of Path
        The files of ``texts`` and the manifest.

    Raises
    ------
    OutputError
        If a file can not be written.
    """
    earlier = listed(directory)
    written = [directory / name for name in texts]
    for path, text in zip(written, texts.values(), strict=True):
        atomic_write(path, text)
    outputs = {path.relative_to(directory).as_posix(): sha256_file(path) for path in sorted([*written, *others])}
    dataclasses.replace(manifest, outputs=outputs).write(directory / MANIFEST_NAME)
    # Only now, so that a run that fails or is stopped leaves the earlier results; nothing of two runs is mixed.
    remove(directory, (name for name in earlier if name not in outputs))
    return [*written, directory / MANIFEST_NAME]
