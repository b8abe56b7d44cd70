"""What ``qmgr -c 'print server'`` and ``pbsnodes -av`` print: attributes of the server, of queues and of nodes."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from pathlib import Path

from policyfactory.core.errors import SiteError
from policyfactory.core.text import shortened
from policyfactory.site.origin import Setting
from policyfactory.site.slurm.conf import read_text

__all__ = ["Node", "Server", "read_nodes", "read_server"]

_MOST = 200_000
_SET = re.compile(r"set\s+(server|queue|sched|resource|node|hook)\s+(.*)", re.IGNORECASE)
_VALUE = re.compile(r"([A-Za-z_][\w.-]*)\s*(\+?=)\s*(.*)", re.ASCII)
_NODE = re.compile(r"[A-Za-z0-9][\w.\[\]-]{0,200}", re.ASCII)


@dataclasses.dataclass(slots=True)
class Server:
    """The attributes of a server and of its queues; a value that is added to (``+=``) is joined with a comma.

    Parameters
    ----------
    attributes : dict of str to Setting
        Of the server, by their names.
    queues : dict of str to dict of str to Setting
        Of each queue, in the order of the file.
    digest : str
        SHA-256 of the file.
    """

    attributes: dict[str, Setting] = dataclasses.field(default_factory=dict)
    queues: dict[str, dict[str, Setting]] = dataclasses.field(default_factory=dict)
    digest: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class Node:
    """A node (vnode) and its attributes, by their names."""

    name: str
    place: str
    attributes: Mapping[str, str]


def read_server(path: Path) -> Server:
    """Read what ``qmgr -c 'print server'`` prints.

    Raises
    ------
    SiteError
        If it is something else (names file and line).
    InputError
        If it cannot be read.
    """
    text, digest = read_text(path)
    server = Server(digest=digest)
    for number, line in enumerate(text.splitlines(), 1):
        place = f"{path.name}:{number}"
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        if words[0].lower() in {"create", "import"}:
            if len(words) > 2 and words[1].lower() == "queue":
                server.queues.setdefault(words[2], {})
            continue
        match = _SET.fullmatch(line.strip())
        if match is None:
            raise SiteError(
                f"{place}: {shortened(line, 60)!r} is no line of qmgr; give what qmgr -c 'print server' prints"
            )
        kind, rest = match[1].lower(), match[2]
        if kind == "queue":
            name, _, rest = rest.partition(" ")
            _take(server.queues.setdefault(name, {}), rest.strip(), place)
        elif kind == "server":
            # The server may be named.
            first, _, after = rest.partition(" ")
            named = "=" not in first and not after.lstrip().startswith(("=", "+="))
            _take(server.attributes, after.strip() if named else rest, place)
    if not server.queues:
        raise SiteError(f"{path}: names no queue; give what qmgr -c 'print server' prints")
    return server


def _take(attributes: dict[str, Setting], text: str, place: str) -> None:
    match = _VALUE.fullmatch(text)
    if match is None:
        raise SiteError(f"{place}: {shortened(text, 60)!r} is not ATTRIBUTE = VALUE; is the line cut off?")
    name, value = match[1], match[3].strip().strip('"')
    if match[2] == "+=" and name in attributes:
        value = f"{attributes[name].value},{value}"
    attributes[name] = Setting(name, value, place)


def read_nodes(path: Path) -> tuple[list[Node], str]:
    """Read what ``pbsnodes -av`` prints; return the nodes and the SHA-256 of the file.

    Raises
    ------
    SiteError
        If it is something else (names file and line).
    InputError
        If it cannot be read.
    """
    text, digest = read_text(path)
    nodes: list[Node] = []
    attributes: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        place = f"{path.name}:{number}"
        if not line.strip():
            continue
        name, mark, value = line.partition(" = ")
        if line[0].isspace() and mark and nodes:
            attributes[name.strip()] = value.strip()
        elif not line[0].isspace() and _NODE.fullmatch(line.strip()):
            if len(nodes) >= _MOST:
                raise SiteError(f"{place}: more than {_MOST:,} nodes; give those of one cluster")
            attributes = {}
            nodes.append(Node(line.strip(), place, attributes))
        elif not line[0].isspace() or not nodes:
            raise SiteError(f"{place}: {shortened(line, 60)!r} is no node; give what pbsnodes -av prints")
    if not nodes:
        raise SiteError(f"{path}: names no node; give what pbsnodes -av prints")
    return nodes, digest
