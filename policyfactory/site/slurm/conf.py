"""slurm.conf read as Slurm reads it: comments, lines that go on, several settings on a line, files that are included.

The rules are those of Slurm 22.05.8: a ``#`` that no backslash escapes begins a comment; a backslash at the end joins a
line with the next; keys have no case; a key that comes again has its last value; an included file is looked for in the
folder of the file that includes it.
"""

from __future__ import annotations

import dataclasses
import math
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from policyfactory.core.errors import InputError, SiteError
from policyfactory.core.inputs import read_bytes, sha256_bytes
from policyfactory.core.text import shortened
from policyfactory.site.model import Limits, Setting
from policyfactory.site.values import LONGEST_TIME, parse_memory
from policyfactory.workload.accounting.times import duration

_MAX_BYTES = 1 << 26  # of each file
_MOST_FILES = 100
_DEEPEST = 10
_MOST_LINES = 2_000_000
_MOST_SETTINGS = 500_000  # of all lines together: each takes some hundred bytes
_PAIR = re.compile(r'\s*([A-Za-z0-9_.:/]+)\s*[-*+/]?=\s*(?:"([^"]*)"|(\S*))(?=\s|$)', re.ASCII)
_COMMENT = re.compile(r"(?<!\\)((?:\\\\)*)#.*")
_INCLUDE = re.compile(r"include\s+(\S+)\s*", re.IGNORECASE)
# Lines of other files of Slurm's, and where those are read.
_OF_SACCT, _OF_SACCTMGR = re.compile(r"[^|=]*(\|[^|=]*){3}"), re.compile(r"(Cluster|Parent|Account|User) - '")
_ELSEWHERE = (
    (_OF_SACCT, "it looks like the output of sacct, which policyfactory workload import reads"),
    (_OF_SACCTMGR, "it looks like sacctmgr dump: name that with --sacctmgr"),
)
# Keys that make a record of the rest of their line.
_RECORDS = frozenset(
    {"nodename", "partitionname", "nodeset", "downnodes", "frontendname", "slurmctldhost", "poweraction"}
)
# Where `scontrol show config` goes on with other files' settings: cgroup.conf, mpi.conf and the like.
_OTHERS = "Configuration:"
# What `scontrol show` writes behind numbers; Slurm reads the numbers in these units.
_UNIT = re.compile(r"(-?\d+) (?:sec|min|usec|nodes/min)", re.ASCII)


@dataclasses.dataclass(frozen=True, slots=True)
class ConfRecord:
    """A line that begins with NodeName, PartitionName and the like.

    Parameters
    ----------
    kind : str
        Its first key in lower case.
    name : str
        The value of that.
    location : str
        File and line.
    settings : mapping of str to Setting
        The others by their keys in lower case.
    """

    kind: str
    name: str
    location: str
    settings: Mapping[str, Setting]

    def setting(self, key: str) -> Setting:
        """Return its name as a setting of a key."""
        return Setting(key, self.name, self.location)


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
    records: list[ConfRecord] = dataclasses.field(default_factory=list)
    inputs: dict[str, str] = dataclasses.field(default_factory=dict)
    reported: bool = False
    reads: int = 0
    count: int = 0

    def counted(self, key: str, value: str, location: str) -> Setting:
        """Return a setting of this file.

        Raises
        ------
        SiteError
            If it is one too many.
        """
        self.count += 1
        if self.count > _MOST_SETTINGS:
            raise SiteError(f"{location}: more than {_MOST_SETTINGS:,} settings; is it a slurm.conf?")
        return Setting(key, value, location)

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
    if _REPORTED.search(text):
        conf.reported = True
        conf.inputs[path.name] = digest
        _add_report(conf, text, path.name)
    else:
        _add_file(conf, path, text, digest, ())
    return conf


def _add_file(conf: Conf, path: Path, text: str, digest: str, above: tuple[Path, ...]) -> None:
    conf.reads += 1
    conf.inputs[path.name if path.name not in conf.inputs else str(path)] = digest
    for number, line in _lines(text, path):
        location = f"{path.name}:{number}"
        include = _INCLUDE.match(line)
        if include:
            _include(conf, path, include[1], location, (*above, Path(os.path.realpath(path))))
        _add_line(conf, line[include.end() :] if include else line, location)


def _include(conf: Conf, path: Path, name: str, location: str, above: tuple[Path, ...]) -> None:
    if "%c" in name:
        name = name.replace("%c", conf.value("ClusterName").lower())
    wanted = Path(os.path.normpath(path.parent / name))
    if Path(name).is_absolute() and not os.path.exists(wanted):  # noqa: PTH110 - Path.exists fails for a very long name
        # Of files that were copied together from another machine.
        wanted = path.parent / wanted.name
    if Path(os.path.realpath(wanted)) in above:
        chain = " > ".join(file.name for file in (*above, wanted))
        raise SiteError(
            f"{location}: {shortened(name, 80)} includes itself ({shortened(chain, 300)}); take out one of the Include "
            "lines"
        )
    if len(above) >= _DEEPEST or conf.reads >= _MOST_FILES:
        raise SiteError(
            f"{location}: {shortened(name, 80)} is more than {_DEEPEST} files deep, or the {_MOST_FILES + 1}th; write "
            "the files into one"
        )
    try:
        # Who names a pipe on the command line waits for it; a file of others may not make them wait.
        if os.path.exists(wanted) and not os.path.isdir(wanted) and not os.path.isfile(wanted):  # noqa: PTH110,PTH112,PTH113 - as above
            raise InputError(f"{wanted}: is a pipe, a device or a socket, and no file")
        text, digest = read_text(wanted)
    except InputError as error:
        message, folder = shortened(str(error), 300), f"the folder of {path.name}"
        if os.path.isdir(wanted):  # noqa: PTH112 - Path.is_dir fails for a very long name
            cure = "name the files in it, each on an Include line of its own"
        elif os.path.exists(wanted):  # noqa: PTH110 - as above
            cure = "make it readable"
        elif Path(name).is_absolute():
            cure = f"it is neither there nor in {folder}: copy it into {folder}"
        else:
            cure = f"copy it there from the cluster: it is looked for from {folder}"
        raise InputError(f"{location}: includes {shortened(name, 80)}: {message}; {cure}") from None
    _add_file(conf, wanted, text, digest, above)


def _lines(text: str, path: Path) -> Iterator[tuple[int, str]]:
    """Give the lines, joined where one goes on, with the number of the first of each; comments are taken off."""
    lines = text.splitlines()
    if len(lines) > _MOST_LINES:
        raise SiteError(f"{path}: has {len(lines):,} lines, more than the {_MOST_LINES:,} that are read")
    begin, joined = 0, ""
    for number, raw in enumerate(lines, 1):
        begin = begin or number
        line = _COMMENT.sub(r"\1", raw).rstrip()
        slashes = len(line) - len(line.rstrip("\\"))
        joined += line[:-1] if slashes % 2 else line
        if slashes % 2 and number < len(lines):
            continue
        joined = re.sub(r"\\(.)", r"\1", joined).strip()
        if joined:
            yield begin, joined
        begin, joined = 0, ""


def _add_line(conf: Conf, line: str, location: str) -> None:
    begin = 0
    record: ConfRecord | None = None
    settings: dict[str, Setting] = {}
    while begin < len(line.rstrip()):
        match = _PAIR.match(line, begin)
        if match is None:
            cure = next((cure for pattern, cure in _ELSEWHERE if pattern.match(line)), "quote a value that has blanks")
            raise SiteError(f"{location}: {shortened(line[begin:].strip(), 60)!r} is not KEY=VALUE; {cure}")
        begin = match.end()
        key, value = match[1], match[2] if match[2] is not None else match[3]
        if record is None and key.lower() in _RECORDS:
            record = ConfRecord(key.lower(), value, location, settings)
        elif record is not None:
            settings[key.lower()] = conf.counted(key, value, location)
        else:
            conf.settings[key.lower()] = conf.counted(key, value, location)
    if record is not None:
        conf.records.append(record)


# What scontrol prints. -----------------------------------------------------------------------------------------------

# Of `scontrol show node` the keys that slurm.conf calls otherwise.
_RENAMED = {"cputot": "cpus", "availablefeatures": "features", "qos": "qos"}
_NONE = frozenset({"(null)", "n/a", ""})


def _add_report(conf: Conf, text: str, name: str) -> None:
    """Take the lines ``KEY = VALUE`` of ``show config``, and the records of ``show node`` and ``show partition``."""
    others = False
    for number, line in joined_lines(text):
        location = f"{name}:{number}"
        if line.startswith(("NodeName=", "PartitionName=")):
            first, *pairs = reported_pairs(line, location)
            settings = {}
            for pair in pairs:
                if pair.value.lower() not in _NONE:
                    slurm = _RENAMED.get(pair.key.lower(), pair.key.lower())
                    settings[slurm] = conf.counted(pair.key, pair.value, location)
            conf.records.append(ConfRecord(first.key.lower(), first.value, location, settings))
            continue
        key, mark, value = line.partition("=")
        key, value = key.strip().partition("[")[0], value.strip()
        if not mark:
            others = line.endswith(_OTHERS)
        elif not others and value.lower() not in _NONE and key and " " not in key:
            unit = _UNIT.fullmatch(value)
            conf.settings[key.lower()] = conf.counted(key, unit[1] if unit else value, location)


# Tables that sacctmgr prints with -P ----------------------------------------------------------------------------------

# Tables that sacctmgr prints with -P: ``A|B|C`` and rows of that many cells, one of which may hold the mark itself.


_MOST_CELLS = 3_000_000  # each takes some hundred bytes


def read_rows(path: Path, needed: tuple[str, ...], free: str, cure: str) -> tuple[list[dict[str, Setting]], str]:
    """Return the rows of a table by the names of their columns in lower case, and the SHA-256 of the file.

    Parameters
    ----------
    path : Path
        The file.
    needed : tuple of str
        Columns that must be there.
    free : str
        The column in which a ``|`` may stand.
    cure : str
        The command that prints such a table.

    Raises
    ------
    SiteError
        If a column is not there, or a row has fewer cells than the header (names file and line).
    InputError
        If the file cannot be read.
    """
    text, digest = read_text(path)
    rows, lines = [], text.splitlines()
    names = lines[0].strip().rstrip("|").split("|") if lines else []
    if len(lines) * len(names) > _MOST_CELLS:
        raise SiteError(
            f"{path}: has {len(lines):,} lines of {len(names):,} cells, and {_MOST_CELLS:,} cells are read; split the "
            "file"
        )
    columns = [name.lower() for name in names]
    missing = [name for name in needed if name.lower() not in columns]
    if missing:
        raise SiteError(f"{path}:1: has no column {missing[0]}; print it with: {cure}")
    for number, line in enumerate(lines[1:], 2):
        if not line.strip():
            continue
        cells = line.split("|")
        extra = len(cells) - len(columns)
        if extra == 1 and not cells[-1] and lines[0].rstrip().endswith("|"):
            cells, extra = cells[:-1], 0
        if extra > 0 and free.lower() in columns:
            column = columns.index(free.lower())
            cells[column : column + extra + 1] = ["|".join(cells[column : column + extra + 1])]
        if len(cells) != len(columns):
            raise SiteError(
                f"{path}:{number}: {shortened(line, 60)!r} has {len(cells)} cells, and there are {len(columns)} "
                f"columns; print it with: {cure}"
            )
        location = f"{path.name}:{number}"
        pairs = zip(names, cells, strict=True)
        rows.append({name.lower(): Setting(name, cell.strip(), location) for name, cell in pairs})
    return rows, digest


# Numbers as Slurm's files write them ----------------------------------------------------------------------------------

# Times, counts, resources by name (TRES), generic resources of nodes (Gres).


ENDLESS = frozenset({"infinite", "unlimited", "-1"})

_LARGEST = 2**53
_TRES = re.compile(r"[A-Za-z][A-Za-z0-9_/:.-]{0,79}", re.ASCII)
# Of a GPU: a100, 2080ti, 1g.5gb; 1.6T is a count that is none.
_TYPE = re.compile(r"(?!\d+\.\d+[KMGTP]?(?:i?B)?\Z)[A-Za-z0-9_.-]{1,80}", re.ASCII | re.IGNORECASE)
_UNSIGNED = re.compile(r"\+?(?:(0x[0-9a-f]{1,16})|(0[0-7]{0,22})|([1-9]\d{0,19}))(k?)", re.ASCII | re.IGNORECASE)
_LEADING = re.compile(r"\s*([+-]?\d{1,18})", re.ASCII)
_COUNT = re.compile(r"(\d{1,12})([KMGT]?)", re.ASCII | re.IGNORECASE)
_GRES = re.compile(r"(\d{1,12})([KMGTP]?)(?:i?B)?", re.ASCII | re.IGNORECASE)
_SIZES = {"": 1, "k": 1024, "m": 1024**2, "g": 1024**3, "t": 1024**4, "p": 1024**5}
# Of limits, which resources there are, by their names in TRES.
_FIELDS = {"cpu": "cores", "mem": "memory", "node": "nodes", "gres/gpu": "gpus"}


def refused(setting: Setting, expected: str) -> SiteError:
    """Return the error of a value that is not what it should be."""
    return SiteError(f"{setting.location}: {setting.key} is {shortened(setting.value, 60)!r}; expected {expected}")


def seconds(setting: Setting) -> float:
    """Return the seconds of a time in minutes, or ``days-hours:minutes:seconds``; whole minutes, as Slurm rounds them.

    Raises
    ------
    SiteError
        If it is none.
    """
    if setting.value.lower() in ENDLESS:
        return math.inf
    # Days alone, with their dash, are a time as well.
    known = duration(setting.value.removesuffix("-") + ("-0" if setting.value.endswith("-") else ""))
    rounded = math.inf if known is None else 60.0 * math.ceil(known / 60)
    if rounded > LONGEST_TIME:
        raise refused(
            setting,
            f"minutes, or a time such as 1-12:00:00, or UNLIMITED; at most {LONGEST_TIME // 60:,} minutes",
        )
    return rounded


def whole(setting: Setting, low: int = 0, high: int = _LARGEST) -> int:
    """Return a whole number from ``low`` to ``high``.

    Raises
    ------
    SiteError
        If it is none.
    """
    text = setting.value.strip()
    if not re.fullmatch(r"-?\d{1,16}", text, re.ASCII) or not low <= int(text) <= high:
        raise refused(setting, f"a whole number from {low:,} to {high:,}")
    return int(text)


def unsigned(setting: Setting, bits: int) -> int:
    """Return a number of slurm.conf, as C reads it: 0x10 and 010 are 16 and 8, K is 1024; UNLIMITED is the largest.

    Parameters
    ----------
    setting : Setting
        Of a key that Slurm keeps in so many bits.
    bits : {16, 32, 64}
        A number of 16 bits has no K.

    Raises
    ------
    SiteError
        If it is none that slurmctld would take (parse_value.c).
    """
    largest = (1 << bits) - 1
    text = setting.value.strip().lower()
    match = _UNSIGNED.fullmatch(text)
    number = largest if text in {"unlimited", "infinite"} else -1
    if match and not (match[4] and bits == 16):
        sixteens, eights, tens = match.group(1, 2, 3)
        number = int(sixteens, 16) if sixteens else int(eights, 8) if eights else int(tens)
        number *= 1024 if match[4] else 1
    if not 0 <= number <= largest:
        raise refused(setting, f"a whole number from 0 to {largest:,}")
    return min(number, _LARGEST)


def leading(text: str) -> int:
    """Return the number that a text begins with, 0 if with none: so Slurm reads numbers in lists of parameters."""
    match = _LEADING.match(text)
    return int(match[1]) if match else 0


def hosts(text: str) -> str:
    """Return a host list without the blanks, and the commas too many, that Slurm passes over."""
    return re.sub(r"[\s,]+", ",", text).strip(",")


def yes(setting: Setting) -> bool:
    """Return whether it is YES, UP, TRUE or 1, and not NO, DOWN, FALSE or 0.

    Raises
    ------
    SiteError
        If it is none of them.
    """
    word = setting.value.lower()
    if word in {"yes", "up", "true", "1"}:
        return True
    if word in {"no", "down", "false", "0"}:
        return False
    raise refused(setting, "YES or NO")


def words_of(setting: Setting) -> list[Setting]:
    """Return the words of a list, each as a setting that is on."""
    return [Setting(word, "yes", setting.location) for word in listed(setting.value)]


def parts_of(setting: Setting) -> list[Setting]:
    """Return the words ``name=value`` of a list, each as a setting."""
    words = (word.partition("=") for word in listed(setting.value))
    return [Setting(name.strip(), value.strip(), setting.location) for name, _, value in words]


def listed(text: str) -> tuple[str, ...]:
    """Return the names of a list with commas; none for an empty one."""
    return tuple(name.strip() for name in text.split(",") if name.strip())


def tres(setting: Setting) -> dict[str, float]:
    """Return the amounts of resources by their names in lower case: ``cpu=16,mem=1G,gres/gpu=2``; memory in MB.

    Raises
    ------
    SiteError
        If it is no such list.
    """
    amounts: dict[str, float] = {}
    for entry in listed(setting.value):
        name, _, value = entry.partition("=")
        amount = parse_memory(value) if name.lower() in {"mem", "vmem"} else _number(value)
        if not _TRES.fullmatch(name) or amount is None:
            raise refused(setting, "resources such as cpu=16,mem=64G,gres/gpu=2")
        # -1 takes a limit away.
        if amount >= 0:
            amounts[name.lower()] = amount
    return amounts


def _number(text: str) -> float | None:
    if text.strip() == "-1":
        return -1.0
    match = _COUNT.fullmatch(text.strip())
    if match:
        count = int(match[1]) * _SIZES[match[2].lower()]
        return float(count) if count <= _LARGEST else None
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0 <= value <= _LARGEST else None


def limits(
    amounts: Mapping[str, float], jobs: float = math.inf, submitted: float = math.inf
) -> tuple[Limits, dict[str, float]]:
    """Return the limits of amounts by TRES, and what of them a site does not have."""
    known = {_FIELDS[name]: amount for name, amount in amounts.items() if name in _FIELDS}
    return Limits(jobs, submitted, **known), {name: amount for name, amount in amounts.items() if name not in _FIELDS}


def gres(setting: Setting) -> tuple[dict[str, int], list[str]]:
    """Return the counts of generic resources, ``gpu`` or with its type ``gpu:a100``, of a node's Gres.

    Returns
    -------
    counts : dict of str to int
        By name.
    bad : list of str
        Those whose count is none: Slurm says so in its log, and goes on (gres.c).
    """
    counts: dict[str, int] = {}
    bad = []
    for entry in listed(re.sub(r"\([^()]*\)", "", setting.value)):
        words = [word for word in entry.split(":") if word.lower() != "no_consume"]
        match = _GRES.fullmatch(words[-1]) if len(words) > 1 else None
        names = words[:-1] if match else words
        if not _TRES.fullmatch(names[0]) or not all(_TYPE.fullmatch(word) for word in names[1:]):
            bad.append(entry)
            continue
        name = ":".join(names).lower()
        counts[name] = counts.get(name, 0) + (int(match[1]) * _SIZES[match[2].lower()] if match else 1)
    return counts, bad


def gpus(counts: Mapping[str, int]) -> int:
    """Return how many GPUs there are, of whatever types."""
    return sum(count for name, count in counts.items() if name.partition(":")[0] == "gpu")


# What scontrol prints: KEY=VALUE pairs, on one line each (-o) or on several, of which all but the first are indented --


_REPORTED_KEY = re.compile(r"(?:^|(?<=\s))([A-Za-z][\w:/]*)=", re.ASCII)
# What no slurm.conf has: `show config` begins so, and nodes and partitions are told by what slurmctld has counted.
_REPORTED = re.compile(
    r"^(?:Configuration data as of|[^#\n]*?\b(?:CPUTot|TotalCPUs|SLURM_VERSION|BOOT_TIME)\s{0,40}=)",
    re.ASCII | re.MULTILINE,
)


def joined_lines(text: str) -> Iterator[tuple[int, str]]:
    """Give the lines that are not empty, those that are indented behind the one above, with the number of the first."""
    begin, parts = 0, list[str]()
    for number, line in enumerate(text.splitlines(), 1):
        if parts and line.startswith(" ") and line.strip():
            parts.append(line.strip())
            continue
        if parts:
            yield begin, " ".join(parts)
        begin, parts = number, [line.strip()] if line.strip() else []
    if parts:
        yield begin, " ".join(parts)


def reported_pairs(line: str, location: str) -> list[Setting]:
    """Return the pairs of a line; a value goes on to the next key, blanks included."""
    keys = list(_REPORTED_KEY.finditer(line))
    ends = [*(key.start() for key in keys[1:]), len(line)]
    # Without a key there is an end and no pair.
    return [Setting(key[1], line[key.end() : end].strip(), location) for key, end in zip(keys, ends, strict=False)]
