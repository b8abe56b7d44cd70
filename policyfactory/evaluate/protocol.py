"""Protocols: what is evaluated, as data. A TOML file in evaluate/ is one; so are the options of the command line.

docs/protocols.md has every key. A protocol is refused before anything is simulated if a key, a name or a value in it
cannot be meant; the message names the file, the table, the key, the value and the cure.
"""

from __future__ import annotations

import dataclasses
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from policyfactory.core.artefact import read_bytes, sha256_bytes
from policyfactory.core.errors import InputError
from policyfactory.core.random import check_seed
from policyfactory.core.units import parse_duration
from policyfactory.evaluate.claims import Claim
from policyfactory.evaluate.inputs import Cleaning
from policyfactory.evaluate.logs import LogSource, LublinSource, TsafrirSource
from policyfactory.evaluate.plan import Places, Plan, read_plan
from policyfactory.evaluate.reader import Reader
from policyfactory.workload.presets import ESTIMATE_MISSING, find_preset
from policyfactory.workload.swf.header import printable

__all__ = ["MAX_BYTES", "PROTOCOL_SCHEMA", "Protocol", "protocol_of", "read_content", "read_protocol"]

PROTOCOL_SCHEMA = 1
MAX_BYTES = 1_000_000
_STEM = re.compile(r"[a-z0-9][a-z0-9_-]{0,59}")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_LONGEST_NAME = 100
_MOST_POINTS = 500  # of a line


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
    logs : tuple of LogSource
        The logs.
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
    logs: tuple[LogSource, ...]
    experiments: tuple[Plan, ...]
    claims: tuple[Claim, ...] = ()
    folder: Path = Path()
    hashes: Mapping[str, str] = dataclasses.field(default_factory=dict)


def read_content(path: Path) -> dict[str, Any]:
    """Return a protocol file as `tomllib` reads it.

    Raises
    ------
    InputError
        If it cannot be read, is larger than `MAX_BYTES`, or is no TOML.
    """
    data = read_bytes(path, limit=MAX_BYTES)
    for number, line in enumerate(data.splitlines(), 1):
        # Names inside names: reading one takes the square of their number.
        if line.count(b".") > _MOST_POINTS:
            raise InputError(f"{path}:{number}: has more than {_MOST_POINTS} points; break the line")
    try:
        return tomllib.loads(data.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: is no UTF-8 text at byte {error.start}; save it as UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{path}: is no TOML: {error}; docs/protocols.md shows the layout") from None
    except RecursionError:
        raise InputError(f"{path}: lists or tables are nested too deeply; docs/protocols.md shows the layout") from None
    except ValueError as error:
        # What Python itself refuses: a date that is none, a number of thousands of digits.
        raise InputError(
            f"{path}: has a number or a date that cannot be read ({printable(str(error), 60)}); docs/protocols.md "
            "shows the layout"
        ) from None


def read_protocol(path: Path | str) -> Protocol:
    """Read a protocol.

    Parameters
    ----------
    path : Path or str
        A TOML file; docs/protocols.md has its keys.

    Raises
    ------
    InputError
        If it cannot be read or a key, a name or a value in it cannot be meant.
    """
    path = Path(path)
    return protocol_of(read_content(path), path)


def protocol_of(content: Mapping[str, Any], path: Path | None = None) -> Protocol:
    """Return the protocol that ``content`` describes.

    Parameters
    ----------
    content : mapping
        As `tomllib` reads it.
    path : Path, optional
        The file, for messages and relative paths; without it the content was made from options.

    Raises
    ------
    InputError
        If a key, a name or a value cannot be meant; of a content made from options, also UsageError and others.
    """
    top = Reader(content, "" if path is None else str(path), "")
    version = top.integer("schema_version")
    if version != PROTOCOL_SCHEMA:
        raise top.error("schema_version", f"this version of policyfactory reads {PROTOCOL_SCHEMA}")
    name = top.text("name", None if path is None else path.stem)
    if not _STEM.fullmatch(name):
        raise top.error("name", "is no stem of files; use at most 60 lower-case letters, digits, - and _")
    seed = top.integer("seed", 0)
    with top.about("seed"):
        check_seed(seed)
    places = Places(Path() if path is None else path.parent)
    logs = tuple(_log(key, reader) for key, reader in top.named_tables("logs").items())
    if not logs:
        raise top.error("logs", 'names no log; write for example [logs.kth] with file = "KTH-SP2-1996-2.1-cln.swf.gz"')
    title = top.text("title", name)
    texts = top.text("source", ""), top.text("about", "")
    plans = tuple(read_plan(reader, [log.name for log in logs], seed, places) for reader in top.tables("experiments"))
    _check_experiments(top, plans)
    claims = tuple(_claim(reader, plans) for reader in top.tables("claims", name="text"))
    top.finish()
    hashes = dict(places.hashes)
    if path is not None:
        hashes[str(path)] = sha256_bytes(read_bytes(path, limit=MAX_BYTES))
    return Protocol(name, title, *texts, seed, logs, plans, claims, places.folder, hashes)


_TAKEN = ("claims", "starts")  # folders of a report beside those of its experiments


def _check_experiments(top: Reader, plans: tuple[Plan, ...]) -> None:
    if not plans:
        raise top.error("experiments", "names no experiment; write at least one [[experiments]]")
    seen: set[str] = set()
    for plan in plans:
        if not _STEM.fullmatch(plan.name):
            raise top.error(
                "experiments",
                f"{plan.name[:60]!a} is no name of a folder; use at most 60 lower-case letters, digits, - and _",
            )
        if plan.name in _TAKEN:
            raise top.error("experiments", f"{plan.name} is a folder of every report; choose another name")
        if plan.name in seen:
            raise top.error("experiments", f"two are called {plan.name}; give each a name of its own")
        seen.add(plan.name)


# A log. ---------------------------------------------------------------------------------------------------------------


def _log(name: str, reader: Reader) -> LogSource:
    if not name.strip() or len(name) > _LONGEST_NAME or not name.isprintable():
        raise reader.error("name", f"a log's name has 1 to {_LONGEST_NAME} printable characters")
    file = reader.text("file", None)
    embedded = reader.flag("embedded", False)
    lublin = _lublin(reader.table("lublin")) if reader.has("lublin") else None
    if (file is not None) + (lublin is not None) + embedded != 1:
        raise reader.error("file", 'write one of file = "LOG.swf.gz", lublin = { ... } and embedded = true')
    tsafrir = _tsafrir(reader.table("tsafrir")) if reader.has("tsafrir") else None
    sha256 = reader.text("sha256", None)
    if sha256 is not None and not _SHA256.fullmatch(sha256):
        raise reader.error("sha256", "is no SHA-256; write its 64 hexadecimal digits in lower case")
    preset = reader.text("preset", "default")
    with reader.about("preset"):
        find_preset(preset)
    cleaning = Cleaning(
        preset,
        reader.choice("estimate_missing", ESTIMATE_MISSING, "error"),
        reader.integer("machine", None, least=1, most=2**31),
    )
    predictions = reader.text("predictions", None)
    own = [key for key in ("sha256", "preset", "estimate_missing", "machine", "predictions") if reader.has(key)]
    if file is None and own:
        raise reader.error(own[0], "belongs to a log that is read from a file; leave it out, or name the file")
    reader.finish()
    return LogSource(name, file, sha256, cleaning, lublin, tsafrir, predictions)


def _lublin(reader: Reader) -> LublinSource:
    sizes = {key: reader.number(key) for key in ("load", "uhi", "umed", "ulow", "uprob") if reader.has(key)}
    found = LublinSource(
        processors=reader.integer("processors", least=1, most=2**30),
        jobs=reader.integer("jobs", least=1, most=10_000_000),
        seed=reader.integer("seed"),
        options={
            "stream": reader.choice("stream", ("numpy", "drand48"), "numpy"),
            "typed": reader.flag("typed", False),
            **sizes,
        },
    )
    reader.finish()
    return found


def _tsafrir(reader: Reader) -> TsafrirSource:
    text = reader.text("max_estimate", "18h", expected='a duration, for example "18h"')
    with reader.about("max_estimate"):
        longest = parse_duration(text)
    if longest == float("inf"):
        raise reader.error("max_estimate", 'the model needs a longest request; write for example "18h"')
    found = TsafrirSource(int(longest), reader.integer("seed"), reader.choice("stream", ("numpy", "drand48"), "numpy"))
    reader.finish()
    return found


# A claim. -------------------------------------------------------------------------------------------------------------


def _claim(reader: Reader, plans: tuple[Plan, ...]) -> Claim:
    text = reader.text("text")
    known = {plan.name: plan for plan in plans}
    names = reader.texts("experiments", ())
    for name in names:
        if name not in known:
            raise reader.error("experiments", f"there is no experiment {name!r}; there are {', '.join(known)}")
    metric = reader.text("metric")
    judged = [known[name] for name in names or known]
    for plan in judged:
        if metric not in plan.metrics:
            raise reader.error("metric", f"experiment {plan.name} does not measure it; add it to its metrics")
    sides = reader.texts("better"), reader.texts("than")
    for key, side in zip(("better", "than"), sides, strict=True):
        for policy in side:
            lacking = [plan.name for plan in judged if policy not in plan.policies]
            if lacking:
                raise reader.error(key, f"experiment {lacking[0]} has no policy {policy!r}; add it, or name another")
    logs = reader.texts("logs", ())
    for log in logs:
        if not any(log in plan.logs for plan in judged):
            raise reader.error("logs", f"no experiment of this claim has a log {log!r}")
    with reader.about("text"):
        claim = Claim(text, *sides, metric, names, logs)
    reader.finish()
    return claim
