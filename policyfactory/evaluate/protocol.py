"""Protocols: what is evaluated, as data. A TOML file in evaluate/ is one; so are the options of the command line.

docs/protocols.md has every key. A protocol is refused before anything is simulated if a key, a name or a value in it
is wrong; the message names the file, the table, the key, the value and the cure.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from policyfactory.core.inputs import sha256_bytes
from policyfactory.core.toml import read_toml
from policyfactory.evaluate.checking import WrittenOptions
from policyfactory.evaluate.claims import Claim
from policyfactory.evaluate.options import ClaimTable, LogTable, ProtocolTable
from policyfactory.evaluate.plan import Places, Plan, Planner
from policyfactory.policy.policy import Policy

__all__ = [
    "MAX_BYTES",
    "PROTOCOL_SCHEMA",
    "Protocol",
    "ProtocolFile",
    "planned",
    "protocol_of",
    "read_content",
    "read_file",
    "read_protocol",
]

PROTOCOL_SCHEMA = 1
MAX_BYTES = 1_000_000
_STEM = re.compile(r"[a-z0-9][a-z0-9_-]{0,59}")
_LONGEST_NAME = 100
_TAKEN = ("claims", "starts")  # folders of a report beside those of its experiments
_OF_A_FILE = ("sha256", "preset", "estimate_missing", "machine", "force_machine", "predictions")


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Protocol:
    """What is evaluated, and what a paper says about it.

    Parameters
    ----------
    name : str
        Stem of files.
    title : str
        What it is.
    source : str
        The paper, as a citation; empty if there is none.
    about : str
        What is done.
    seed : int
        Seed of everything random.
    logs : mapping of str to LogTable
        The logs by their names.
    experiments : tuple of Plan
        The experiments.
    claims : tuple of Claim
        What the paper concludes.
    folder : Path
        Where files are looked for.
    hashes : dict of str to str
        SHA-256 of the protocol and of the model files it names, by their paths.
    """

    name: str
    title: str
    source: str
    about: str
    seed: int
    logs: Mapping[str, LogTable]
    experiments: tuple[Plan, ...]
    claims: tuple[Claim, ...] = ()
    folder: Path = Path()
    hashes: Mapping[str, str] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True, slots=True)
class ProtocolFile:
    """A protocol file: read once, so that its digest is that of what is run.

    Parameters
    ----------
    path : Path
        The file.
    data : bytes
        What is in it.
    content : dict
        The same as `tomllib` reads it.
    """

    path: Path
    data: bytes
    content: dict[str, Any]


def read_content(path: Path) -> dict[str, Any]:
    """Return a protocol file as `tomllib` reads it; errors as for `read_file`."""
    return read_file(path).content


def read_file(path: Path) -> ProtocolFile:
    """Return a protocol file.

    Raises
    ------
    InputError
        If it cannot be read, is larger than `MAX_BYTES`, or is no TOML.
    """
    data, content = read_toml(path, limit=MAX_BYTES, page="docs/protocols.md")
    return ProtocolFile(path, data, content)


def read_protocol(path: Path | str) -> Protocol:
    """Read a protocol.

    Parameters
    ----------
    path : Path or str
        A TOML file; docs/protocols.md has its keys.

    Raises
    ------
    InputError
        If it cannot be read, or a key, a name or a value in it is wrong.
    """
    file = read_file(Path(path))
    return protocol_of(file.content, file)


def protocol_of(content: Mapping[str, Any], file: ProtocolFile | None = None) -> Protocol:
    """Return the protocol that ``content`` describes.

    Parameters
    ----------
    content : mapping
        As `tomllib` reads it.
    file : ProtocolFile, optional
        Where it is from, for messages, relative paths and the digest; without it the content was made from options of a
        command.

    Raises
    ------
    InputError
        If a key, a name or a value cannot be used; of a content made from options, also UsageError and others.
    """
    if file is None:
        return planned(content, by="command")
    protocol = planned(content, file.path)
    hashes = {**protocol.hashes, str(file.path): sha256_bytes(file.data)}
    return dataclasses.replace(protocol, hashes=hashes)


def planned(
    content: Mapping[str, Any],
    path: Path | None = None,
    *,
    by: Literal["file", "command", "call"] = "file",
    policies: Sequence[Policy] = (),
) -> Protocol:
    """Return the protocol of a content: its tables checked, and what their names stand for.

    Parameters
    ----------
    content : mapping
        As `tomllib` reads it.
    path : Path, optional
        Its file.
    by : {"file", "command", "call"}
        Who wrote it; see `WrittenOptions`.
    policies : sequence of Policy
        Policies of every experiment that are there already.

    Raises
    ------
    InputError, UsageError
        If a key, a name or a value cannot be used.
    """
    written = WrittenOptions(ProtocolTable, content, "" if path is None else str(path), by)
    table = written.checked()
    if table.schema_version != PROTOCOL_SCHEMA:
        raise written.error(("schema_version",), f"this version of policyfactory reads {PROTOCOL_SCHEMA}")
    name = table.name or ("" if path is None else path.stem)
    if not _STEM.fullmatch(name):
        reason = "is no stem of files; use at most 60 lower-case letters, digits, - and _"
        raise written.error(("name",), reason)
    _check_logs(written, table)
    places = Places(Path() if path is None else path.parent)
    logs = tuple(table.logs)
    plans = tuple(
        Planner(written, at, logs, table.seed, places).plan(experiment, policies)
        for at, experiment in enumerate(table.experiments)
    )
    _check_experiments(written, plans)
    claims = tuple(_claim(written, at, claim, plans) for at, claim in enumerate(table.claims))
    return Protocol(
        name=name,
        title=table.title or name,
        source=table.source,
        about=table.about,
        seed=table.seed,
        logs=table.logs,
        experiments=plans,
        claims=claims,
        folder=places.folder,
        hashes=places.hashes,
    )


def _check_logs(written: WrittenOptions[ProtocolTable], table: ProtocolTable) -> None:
    if not table.logs:
        example = '[logs.kth] with file = "KTH-SP2-1996-2.1-cln.swf.gz"'
        raise written.error(("logs",), f"names no log; write for example {example}")
    for name, log in table.logs.items():
        if not name.strip() or len(name) > _LONGEST_NAME or not name.isprintable():
            reason = f"a log's name has 1 to {_LONGEST_NAME} printable characters"
            raise written.error(("logs", name, "name"), reason)
        if (log.file is not None) + (log.lublin is not None) + log.embedded != 1:
            reason = 'write one of file = "LOG.swf.gz", lublin = { ... } and embedded = true'
            raise written.error(("logs", name, "file"), reason)
        own = [key for key in _OF_A_FILE if key in log.model_fields_set]
        if log.file is None and own:
            reason = "belongs to a log that is read from a file; leave it out, or name the file"
            raise written.error(("logs", name, own[0]), reason)


def _check_experiments(written: WrittenOptions[ProtocolTable], plans: Sequence[Plan]) -> None:
    if not plans:
        raise written.error(("experiments",), "names no experiment; write at least one [[experiments]]")
    seen: set[str] = set()
    for at, plan in enumerate(plans):
        reason = ""
        if not _STEM.fullmatch(plan.name):
            reason = "is no name of a folder; use at most 60 lower-case letters, digits, - and _"
        elif plan.name in _TAKEN:
            reason = f"{plan.name} is a folder of every report; choose another name"
        elif plan.name in seen:
            reason = f"two are called {plan.name}; give each a name of its own"
        if reason:
            raise written.error(("experiments", at, "name"), reason)
        seen.add(plan.name)


def _claim(written: WrittenOptions[ProtocolTable], at: int, table: ClaimTable, plans: Sequence[Plan]) -> Claim:
    where = ("claims", at)
    known = {plan.name: plan for plan in plans}
    for name in table.experiments:
        if name not in known:
            reason = f"there is no experiment {name!r}; there are {', '.join(known)}"
            raise written.error((*where, "experiments"), reason)
    judged = [known[name] for name in table.experiments or known]
    for plan in judged:
        if table.metric not in plan.experiment.metrics:
            reason = f"experiment {plan.name} does not measure it; add it to its metrics"
            raise written.error((*where, "metric"), reason)
    for key, side in (("better", table.better), ("than", table.than)):
        for policy in side:
            lacking = [plan.name for plan in judged if policy not in plan.policies]
            if lacking:
                reason = f"experiment {lacking[0]} has no policy {policy!r}; add it, or name another"
                raise written.error((*where, key), reason)
    for log in table.logs:
        if not any(log in plan.logs for plan in judged):
            raise written.error((*where, "logs"), f"no experiment of this claim has a log {log!r}")
    with written.about(*where, "text"):
        return Claim(**dict(table))
