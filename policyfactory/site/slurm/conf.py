"""slurm.conf read as Slurm reads it: comments, lines that go on, several settings on a line, files that are included.

The rules are those of Slurm 22.05.8: a ``#`` that no backslash escapes begins a comment; a backslash at the end joins a
line with the next; keys have no case; a key that comes again has its last value; an included file is looked for in the
folder of the file that includes it.
"""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from policyfactory.core.errors import InputError, SiteError
from policyfactory.core.inputs import read_bytes, sha256_bytes
from policyfactory.core.text import shortened
from policyfactory.site.origin import Setting
from policyfactory.site.slurm.report import is_report, joined_lines, reported_pairs

__all__ = ["Conf", "Record", "read_conf", "read_text"]

_MAX_BYTES = 1 << 26  # of each file
_MOST_FILES = 100
_DEEPEST = 10
_MOST_LINES = 2_000_000
_MOST_SETTINGS = 500_000  # of all lines together: each takes some hundred bytes
_PAIR = re.compile(r'\s*([A-Za-z0-9_.:/]+)\s*[-*+/]?=\s*(?:"([^"]*)"|(\S*))(?=\s|$)', re.ASCII)
_COMMENT = re.compile(r"(?<!\\)(?:\\\\)*#")
_INCLUDE = re.compile(r"include\s+(\S+)\s*", re.IGNORECASE)
# Keys that make a record of the rest of their line.
_RECORDS = frozenset(
    {"nodename", "partitionname", "nodeset", "downnodes", "frontendname", "slurmctldhost", "poweraction"}
)
# Where `scontrol show config` goes on with other files' settings: cgroup.conf, mpi.conf and the like.
_OTHERS = "Configuration:"
# What `scontrol show` writes behind numbers; Slurm reads the numbers in these units.
_UNIT = re.compile(r"(-?\d+) (?:sec|min|usec|nodes/min)", re.ASCII)


@dataclasses.dataclass(frozen=True, slots=True)
class Record:
    """A line that begins with NodeName, PartitionName and the like.

    Parameters
    ----------
    kind : str
        Its first key in lower case.
    name : str
        The value of that.
    place : str
        File and line.
    settings : mapping of str to Setting
        The others by their keys in lower case.
    """

    kind: str
    name: str
    place: str
    settings: Mapping[str, Setting]


@dataclasses.dataclass(slots=True)
class Conf:
    """A slurm.conf with the files that it includes.

    Parameters
    ----------
    settings : dict of str to Setting
        By their keys in lower case; of one that comes again the last.
    records : list of Record
        In their order.
    inputs : dict of str to str
        Names of the files and the SHA-256 of each.
    reported : bool
        Whether it is what ``scontrol show`` prints of settings, nodes and partitions.
    reads : int
        How often a file was read.
    count : int
        How many settings were read, those that came again included.
    """

    settings: dict[str, Setting] = dataclasses.field(default_factory=dict)
    records: list[Record] = dataclasses.field(default_factory=list)
    inputs: dict[str, str] = dataclasses.field(default_factory=dict)
    reported: bool = False
    reads: int = 0
    count: int = 0

    def counted(self, key: str, value: str, place: str) -> Setting:
        """Return a setting of this file.

        Raises
        ------
        SiteError
            If it is one too many.
        """
        self.count += 1
        if self.count > _MOST_SETTINGS:
            raise SiteError(f"{place}: more than {_MOST_SETTINGS:,} settings; is it a slurm.conf?")
        return Setting(key, value, place)

    def value(self, key: str, default: str = "") -> str:
        """Return the value of a key, whatever its case."""
        setting = self.settings.get(key.lower())
        return default if setting is None else setting.value


def read_text(path: Path) -> tuple[str, str]:
    """Return the text of a file, without characters that cannot be printed, and the SHA-256 of its bytes.

    Raises
    ------
    InputError
        If it cannot be read or is too large.
    SiteError
        If it is no text.
    """
    data = read_bytes(path, limit=_MAX_BYTES)
    if b"\0" in data:
        raise SiteError(f"{path}: is no text; name the file itself, unpacked and in UTF-8")
    # Editors of other systems put a byte order mark in front.
    text = data.decode("utf-8-sig", errors="replace").replace("\r\n", "\n").replace("\t", " ")
    for character in set(text) - {"\n"}:
        # A site file has none of them, and a value should not hide anything.
        text = text if character.isprintable() else text.replace(character, "?")
    return text, sha256_bytes(data)


def read_conf(path: Path) -> Conf:
    """Read a slurm.conf and all that it includes, or what ``scontrol show config``, ``node`` and ``partition`` print.

    Parameters
    ----------
    path : Path
        The file; in messages and places it, and the others, go by their names without folders.

    Raises
    ------
    SiteError
        If a line cannot be read, or files include each other (names file and line).
    InputError
        If a file cannot be read.
    """
    conf = Conf()
    text, digest = read_text(path)
    if text.lstrip().startswith("{"):
        raise SiteError(f"{path}: is JSON; print it without --json")
    if is_report(text):
        conf.reported = True
        conf.inputs[path.name] = digest
        _take_report(conf, text, path.name)
    else:
        _take_file(conf, path, text, digest, ())
    return conf


def _take_file(conf: Conf, path: Path, text: str, digest: str, above: tuple[Path, ...]) -> None:
    conf.reads += 1
    conf.inputs[path.name if path.name not in conf.inputs else str(path)] = digest
    for number, line in _lines(text, path):
        place = f"{path.name}:{number}"
        include = _INCLUDE.match(line)
        if include:
            _include(conf, path, include[1], place, (*above, Path(os.path.realpath(path))))
        _take_line(conf, line[include.end() :] if include else line, place)


def _include(conf: Conf, path: Path, name: str, place: str, above: tuple[Path, ...]) -> None:
    if "%c" in name:
        name = name.replace("%c", conf.value("ClusterName").lower())
    wanted = Path(os.path.normpath(path.parent / name))
    if Path(name).is_absolute() and not os.path.exists(wanted):  # noqa: PTH110 - Path.exists fails for a very long name
        # Of files that were copied together from another machine.
        wanted = path.parent / wanted.name
    if Path(os.path.realpath(wanted)) in above:
        chain = " > ".join(one.name for one in (*above, wanted))
        raise SiteError(
            f"{place}: {shortened(name, 80)} includes itself ({shortened(chain, 300)}); take out one of the Include "
            "lines"
        )
    if len(above) >= _DEEPEST or conf.reads >= _MOST_FILES:
        raise SiteError(
            f"{place}: {shortened(name, 80)} is more than {_DEEPEST} files deep, or the {_MOST_FILES + 1}th; write the "
            "files into one"
        )
    try:
        # Who names a pipe on the command line waits for it; a file of others may not make them wait.
        if os.path.exists(wanted) and not os.path.isdir(wanted) and not os.path.isfile(wanted):  # noqa: PTH110,PTH112,PTH113 - as above
            raise InputError(f"{wanted}: is a pipe, a device or a socket, and no file")
        text, digest = read_text(wanted)
    except InputError as error:
        said, folder = shortened(str(error), 300), f"the folder of {path.name}"
        if os.path.isdir(wanted):  # noqa: PTH112 - Path.is_dir fails for a very long name
            cure = "name the files in it, each on an Include line of its own"
        elif os.path.exists(wanted):  # noqa: PTH110 - as above
            cure = "make it readable"
        elif Path(name).is_absolute():
            cure = f"it is neither there nor in {folder}: copy it into {folder}"
        else:
            cure = f"copy it there from the cluster: it is looked for from {folder}"
        raise InputError(f"{place}: includes {shortened(name, 80)}: {said}; {cure}") from None
    _take_file(conf, wanted, text, digest, above)


def _lines(text: str, path: Path) -> Iterator[tuple[int, str]]:
    """Give the lines, joined where one goes on, with the number of the first of each; comments are taken off."""
    lines = text.splitlines()
    if len(lines) > _MOST_LINES:
        raise SiteError(f"{path}: has {len(lines):,} lines, more than the {_MOST_LINES:,} that are read")
    begin, joined = 0, ""
    for number, raw in enumerate(lines, 1):
        begin = begin or number
        line = _without_comment(raw).rstrip()
        slashes = len(line) - len(line.rstrip("\\"))
        joined += line[:-1] if slashes % 2 else line
        if slashes % 2 and number < len(lines):
            continue
        joined = re.sub(r"\\(.)", r"\1", joined).strip()
        if joined:
            yield begin, joined
        begin, joined = 0, ""


def _without_comment(line: str) -> str:
    match = _COMMENT.search(line)
    return line if match is None else line[: match.end() - 1]


def _take_line(conf: Conf, line: str, place: str) -> None:
    at = 0
    record: Record | None = None
    settings: dict[str, Setting] = {}
    while at < len(line.rstrip()):
        match = _PAIR.match(line, at)
        if match is None:
            raise SiteError(
                f"{place}: {shortened(line[at:].strip(), 60)!r} is not KEY=VALUE; quote a value that has blanks"
            )
        at = match.end()
        key, value = match[1], match[2] if match[2] is not None else match[3]
        if record is None and key.lower() in _RECORDS:
            record = Record(key.lower(), value, place, settings)
        elif record is not None:
            settings[key.lower()] = conf.counted(key, value, place)
        else:
            conf.settings[key.lower()] = conf.counted(key, value, place)
    if record is not None:
        conf.records.append(record)


# What scontrol prints. -----------------------------------------------------------------------------------------------

# Of `scontrol show node` the keys that slurm.conf calls otherwise.
_RENAMED = {"cputot": "cpus", "availablefeatures": "features", "qos": "qos"}
_NONE = frozenset({"(null)", "n/a", ""})


def _take_report(conf: Conf, text: str, name: str) -> None:
    """Take the lines ``KEY = VALUE`` of ``show config``, and the records of ``show node`` and ``show partition``."""
    others = False
    for number, line in joined_lines(text):
        place = f"{name}:{number}"
        if line.startswith(("NodeName=", "PartitionName=")):
            first, *pairs = reported_pairs(line, place)
            settings = {}
            for pair in pairs:
                if pair.value.lower() not in _NONE:
                    slurm = _RENAMED.get(pair.key.lower(), pair.key.lower())
                    settings[slurm] = conf.counted(pair.key, pair.value, place)
            conf.records.append(Record(first.key.lower(), first.value, place, settings))
            continue
        key, mark, value = line.partition("=")
        key, value = key.strip().partition("[")[0], value.strip()
        if not mark:
            others = line.endswith(_OTHERS)
        elif not others and value.lower() not in _NONE and key and " " not in key:
            unit = _UNIT.fullmatch(value)
            conf.settings[key.lower()] = conf.counted(key, unit[1] if unit else value, place)
