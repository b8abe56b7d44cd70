"""The header of a log in the Standard Workload Format: labels, repeated labels, continuation lines.

A header line is ``; Label: value``. A label can come more than once (Note, Queue), a line that begins with a
tab or with more than three blanks goes on with the value above it, and everything else is a plain comment.
The lines are kept as they are, so that a log is written with the header it was read with.
"""

from __future__ import annotations

import contextlib
import dataclasses
import datetime as dt
import re

# Where the Parallel Workloads Archive has the logs of this format.
ARCHIVE_URL = "https://www.cs.huji.ac.il/labs/parallel/workload/"
# How the Note of a log begins whose processors are whole nodes.
NODES_NOTE = "unit: nodes"
# And that of a log whose jobs asked for no time: {} is what an import assumed, in seconds.
ASSUMED_NOTE = "requested time assumed: {} s"

# The labels of the format's version 2.2; these are taken however far they are indented.
_STANDARD = frozenset({
    "version", "computer", "installation", "acknowledge", "information", "conversion", "maxjobs", "maxrecords",
    "preemption", "unixstarttime", "timezone", "timezonestring", "starttime", "endtime", "maxnodes", "maxprocs",
    "maxruntime", "maxmemory", "allowoveruse", "maxqueues", "queues", "queue", "maxpartitions", "partitions",
    "partition", "note",
})  # fmt: skip
_LABEL = re.compile(r";([ \t]*)([A-Za-z][A-Za-z0-9_/ ]{0,39}?)[ \t]*:(?!//)[ \t]*(.*)$", re.DOTALL)
_CONTINUATION = re.compile(r";(?: *\t| {4})\s*(\S.*)$")
# 93312 and 93,312, but neither the 1 of 1.5 nor that of 1,2.
_LEADING_INTEGER = re.compile(r"\s*([+-]?\d{1,3}(?:,\d{3})+|[+-]?\d{1,18})(?!,?\d|\.\d)")
_REMOVED = re.compile(r"\((\d{1,12}) jobs? removed\)")


def printable(text: str, limit: int = 100) -> str:
    """Return ``text`` of a stranger's file in one line that a terminal can show: nothing but printable characters.

    Bytes that are no UTF-8 are escaped, so that names stay apart.
    """
    text = text[: limit + 1].encode(errors="backslashreplace").decode()
    shown = "".join(c if c.isprintable() else "?" for c in text[: limit + 1])
    return shown if len(text) <= limit else shown[:limit] + "..."


@dataclasses.dataclass(frozen=True, slots=True)
class Header:
    """What a log says about itself.

    Parameters
    ----------
    lines : tuple of str
        The comment lines before the first job, as they are in the file, without line ends.
    entries : tuple of (str, str)
        Label and value of each labelled line, in order; continuation lines are joined to the value with a newline.
    """

    lines: tuple[str, ...] = ()
    entries: tuple[tuple[str, str], ...] = ()

    def values(self, label: str) -> tuple[str, ...]:
        """Return all values of ``label`` (any case), in file order."""
        wanted = label.casefold()
        return tuple(value for name, value in self.entries if name.casefold() == wanted)

    def text(self, label: str) -> str | None:
        """Return the first value of ``label`` that is not empty, or None."""
        return next((value for value in self.values(label) if value), None)

    def integer(self, label: str) -> int | None:
        """Return the whole number that the value of ``label`` begins with (text may follow it), or None."""
        for value in self.values(label):
            match = _LEADING_INTEGER.match(value)
            if match:
                return int(match.group(1).replace(",", ""))
        return None

    def positive(self, label: str) -> int | None:
        """Return the number of ``label`` if it is at least 1, or None: -1 and 0 stand for unknown."""
        number = self.integer(label)
        return number if number is not None and number > 0 else None

    @property
    def processors(self) -> int | None:
        """MaxProcs, the processors of the machine."""
        return self.positive("MaxProcs")

    @property
    def no_processors(self) -> str:
        """In words what stands for `processors` where they are not known."""
        text = self.text("MaxProcs")
        return "no MaxProcs" if text is None else f"MaxProcs {printable(text, 40)!r}, which is no number of processors"

    @property
    def nodes(self) -> int | None:
        """MaxNodes, the nodes of the machine (a node can have several processors)."""
        return self.positive("MaxNodes")

    @property
    def unix_start(self) -> int | None:
        """UnixStartTime: the Unix time of the log's second 0."""
        start = self.integer("UnixStartTime")
        # 0 is what programs write that do not know; no log is that old.
        return start if start is not None and 0 < start < 1 << 40 else None

    @property
    def time_zone(self) -> str | None:
        """TimeZoneString, if it can be a zone name."""
        zone = self.text("TimeZoneString")
        return zone if zone is not None and re.fullmatch(r"[A-Za-z][A-Za-z0-9_+/-]{0,63}", zone) else None

    @property
    def utc_offset(self) -> int | None:
        """TimeZone, the deprecated offset of the site's winter time from UTC in seconds."""
        offset = self.integer("TimeZone")
        return offset if offset is not None and abs(offset) <= 86400 else None

    @property
    def removed(self) -> int | None:
        """Jobs that the notes say a cleaning removed, or None if they mention no cleaning."""
        counts = [int(number) for value in self.values("Note") for number in _REMOVED.findall(value)]
        return sum(counts) if counts else None

    def replace(self, values: dict[str, str], notes: tuple[str, ...] = ()) -> Header:
        """Return a header with the first line of each label set to a new value, and notes added at its end.

        Parameters
        ----------
        values : dict of str to str
            Label and new value; a label that is not there yet is added.
        notes : tuple of str
            One-line texts, each added as a Note.
        """
        left = {label.casefold(): (label, value) for label, value in values.items()}
        lines: list[str] = []
        for line in self.lines:
            labelled = _label_of(line)
            if labelled and labelled[0].casefold() in left:
                label, value = left.pop(labelled[0].casefold())
                lines.append(f"; {label}: {printable(value)}")
            else:
                lines.append(line)
        lines += [f"; {label}: {printable(value)}" for label, value in left.values()]
        lines += [f"; Note: {printable(note, 400)}" for note in notes]
        return parse_header(lines)


def counts_nodes(header: Header) -> bool:
    """Tell whether the log says that its processors are whole nodes (``workload import --unit nodes``)."""
    return any(re.match(rf"{NODES_NOTE}\b", note.strip(), re.IGNORECASE) for note in header.values("Note"))


def assumed_request(header: Header) -> int | None:
    """Return the requested time in seconds that an import gave jobs that asked for none, None if it gave none."""
    mark = re.compile(ASSUMED_NOTE.format(r"(\d{1,12})") + r"\b", re.IGNORECASE)
    found = (mark.match(note.strip()) for note in header.values("Note"))
    return next((int(match[1]) for match in found if match), None)


def dates_of(unix: dict[str, int], clock: dt.tzinfo) -> dict[str, str]:
    """Return times by label as the headers of the archive have them; a time beyond all calendars is left out."""
    dates = {}
    for label, seconds in unix.items():
        with contextlib.suppress(ValueError, OverflowError, OSError):
            dates[label] = f"{dt.datetime.fromtimestamp(seconds, clock):%a %b %d %H:%M:%S %Z %Y}"
    return dates


def _label_of(line: str) -> tuple[str, str] | None:
    """Return label and value of a header line, or None for a comment or a continuation."""
    match = _LABEL.match(line)
    if not match:
        return None
    blanks, label, value = match.groups()
    if label.casefold() not in _STANDARD and ("\t" in blanks or len(blanks) > 3):
        return None
    return label, value.rstrip()


def parse_header(lines: list[str]) -> Header:
    """Return the header that comment lines make.

    Parameters
    ----------
    lines : list of str
        Lines that begin with ``;``, without line ends.
    """
    entries: list[tuple[str, str]] = []
    open_value = False
    for line in lines:
        labelled = _label_of(line)
        continued = None if labelled else _CONTINUATION.match(line)
        if labelled:
            entries.append(labelled)
        elif continued and open_value:
            label, value = entries[-1]
            entries[-1] = (label, f"{value}\n{continued.group(1).rstrip()}")
        open_value = labelled is not None or (open_value and continued is not None)
    return Header(tuple(lines), tuple(entries))
