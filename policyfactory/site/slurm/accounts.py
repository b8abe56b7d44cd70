"""Associations, as ``sacctmgr dump CLUSTER`` writes them: accounts, users, shares and limits.

A line is ``Cluster - 'name':Key=value:Key='value'`` and so on; ``Parent - 'account'`` says below which account the next
ones are; since 26.05 lines ``QOS - 'name'`` stand in front. A value in quotes may hold colons, and so may the name of a
resource with its type, ``gres/gpu:h100=3``.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from policyfactory.core.errors import SiteError
from policyfactory.core.text import shortened
from policyfactory.site.file import MOST_OF_A_KIND, known_settings
from policyfactory.site.model import Association, Limits, Origin, Qos, Setting
from policyfactory.site.slurm.conf import limits, listed, read_rows, read_text, refused, seconds, tres, whole, words_of
from policyfactory.site.slurm.preemption import qos_preemption

_MOST = MOST_OF_A_KIND["associations"]
# Keys that nobody knows, and names of QOS that associations have from those above them and change.
_MOST_UNKNOWN, _MOST_QOS = 200_000, 20_000_000
_PARENT_SHARES = 2**31 - 1  # how Slurm writes Fairshare=parent as a number
_LINE = re.compile(r"(Cluster|Machine|Parent|Account|Project|User|Coordinator|QOS)\s*-\s*(.*)", re.IGNORECASE)
_OLDER_LINES = {"machine": "cluster", "project": "account"}
_VALUE = re.compile(r"('(?:[^']*)'|\"(?:[^\"]*)\"|[^:'\"]*)(?::|$)")
_KEY = re.compile(r":*([A-Za-z]+)\s*[+-]?=\s*", re.ASCII)
_PART = re.compile(r"'[^']*'(?=:|$)|\"[^\"]*\"(?=:|$)|[^:]*")
_TYPED = re.compile(r"(?:.*[,=])?[a-z]+/[^=:,/]+", re.ASCII)  # a resource whose type is still to come
_OLDER = {"cpus": "cpu", "nodes": "node", "memory": "mem"}


@dataclasses.dataclass(slots=True)
class Accounts:
    """What a dump says.

    Parameters
    ----------
    cluster : str
        Its name.
    associations : list of Association
        Accounts, and users in accounts.
    qos : list of dict of str to Setting
        Rows of QOS, as of their table.
    digest : str
        SHA-256 of the file.
    unknown, inherited : int
        Keys that nobody knows, and names of QOS that came from above, so far.
    """

    cluster: str = ""
    associations: list[Association] = dataclasses.field(default_factory=list)
    qos: list[dict[str, Setting]] = dataclasses.field(default_factory=list)
    digest: str = ""
    unknown: int = 0
    inherited: int = 0


def read_dump(path: Path, origin: Origin) -> Accounts:
    """Read what ``sacctmgr dump CLUSTER file=FILE`` has written.

    Parameters
    ----------
    path : Path
        The file.
    origin : Origin
        Is told where the associations stand, and what of them is not modelled.

    Raises
    ------
    SiteError
        If a line is none of it (names file and line).
    InputError
        If it cannot be read.
    """
    text, digest = read_text(path)
    found = Accounts(digest=digest)
    parent = "root"
    effective: dict[str, tuple[str, ...]] = {}
    by_partition: list[Association] = []
    for number, line in enumerate(map(str.strip, text.splitlines()), 1):
        location = f"{path.name}:{number}"
        if line.startswith("#") or "-" not in line:
            if line and not line.startswith("#"):
                origin.remark(
                    "corrected", f"{shortened(line, 60)!r} ({location})", "sacctmgr load passes over such a line"
                )
            continue
        match = _LINE.fullmatch(line)
        if match is None:
            raise SiteError(
                f"{location}: {shortened(line, 60)!r} is no line of an account or a user; give what sacctmgr dump "
                f"CLUSTER file={path.name} writes"
            )
        kind = _OLDER_LINES.get(match[1].lower(), match[1].lower())
        name, fields = _fields(match[2], location)
        if kind == "qos":
            found.qos.append({"name": Setting("Name", name, location), **fields})
            continue
        if kind == "cluster":
            found.cluster = name
        elif kind == "parent":
            parent = name
            continue
        elif kind == "coordinator":
            continue
        if len(found.associations) + len(by_partition) >= _MOST:
            raise SiteError(f"{location}: more than {_MOST:,} associations; give the dump of one cluster")
        account = {"cluster": "root", "account": name}.get(kind, parent)
        found.unknown += known_settings("association").judge(fields.values(), origin, f"{match[1]} {name}")
        if found.unknown > _MOST_UNKNOWN:
            raise SiteError(
                f"{location}: more than {_MOST_UNKNOWN:,} keys that no Slurm has; is it what sacctmgr dump wrote?"
            )
        if "partition" in fields:
            # Its shares and limits are in what is not modelled; its user may submit.
            if kind == "user":
                by_partition.append(Association(account, name))
            continue
        above = "" if kind == "cluster" else account if kind == "user" else parent
        association = _association(
            account, name if kind == "user" else "", parent, fields, effective.get(above, ()), found, origin
        )
        origin.note(f"association {account}/{name}" if kind == "user" else f"association {account}", location, fields)
        if kind != "user":
            effective[account] = association.qos or effective.get(above, ())
        if kind != "cluster" or association != Association("root"):
            found.associations.append(association)
    known = {(its.account, its.user) for its in found.associations}
    found.associations += [its for its in dict.fromkeys(by_partition) if (its.account, its.user) not in known]
    if not found.cluster and not found.associations:
        raise SiteError(f"{path}: has no account; give what sacctmgr dump CLUSTER file={path.name} writes")
    return found


def _fields(text: str, location: str) -> tuple[str, dict[str, Setting]]:
    """Return the name of a line and its fields by their keys in lower case."""
    first = _VALUE.match(text)
    fields: dict[str, Setting] = {}
    position = first.end() if first else 0
    if first is None or not first[1].strip("'\" "):
        raise SiteError(f"{location}: {shortened(text, 60)!r} has no name in front; is the line cut off?")
    length = len(text.rstrip())
    while position < length:
        key = _KEY.match(text, position)
        if key is None:
            raise SiteError(f"{location}: {shortened(text[position:], 60)!r} is not KEY=VALUE; is the line cut off?")
        value, position = _value(text, key.end())
        fields[key[1].lower()] = Setting(key[1], _plain(value), location)
    return _plain(first[1]).lower(), fields


def _value(text: str, position: int) -> tuple[str, int]:
    """Return a value that begins at a place, and where the next key begins: behind a colon that is in no quotes."""
    begin = position
    while True:
        part = _PART.match(text, position)
        end = len(text) if part is None else part.end()
        if text[end : end + 1] != ":" or not _TYPED.fullmatch(text, position, end):
            return text[begin:end], end + 1
        position = end + 1


def _plain(text: str) -> str:
    text = text.strip()
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"" else text


@dataclasses.dataclass(frozen=True, slots=True)
class _LimitRow:
    """The settings of an association or a QOS, whose limits can have several names each."""

    what: str
    settings: Mapping[str, Setting]
    origin: Origin

    def first(self, *names: str) -> Setting | None:
        """Return the first setting of some that has a value."""
        return next(
            (self.settings[name] for name in names if name in self.settings and self.settings[name].value), None
        )

    def number(self, *names: str) -> float:
        """Return a number, infinite where there is no limit."""
        setting = self.first(*names)
        return math.inf if setting is None or setting.value == "-1" else float(whole(setting))

    def wall(self, *names: str) -> float:
        """Return the seconds of a time, infinite where there is no limit."""
        setting = self.first(*names)
        return math.inf if setting is None else seconds(setting)

    def limits(
        self, resources: tuple[str, ...], jobs: tuple[str, ...] = (), submitted: tuple[str, ...] = (), older: str = ""
    ) -> Limits:
        """Return the limits that keys of resources and counts of jobs set; of others the origin is told.

        Before there were TRES each resource had a key of its own, which begins with ``older``.
        """
        amounts: dict[str, float] = {}
        places = [self.settings[name] for name in resources if name in self.settings and self.settings[name].value]
        for setting in places:
            amounts |= tres(setting)
        for key_end, name in _OLDER.items() if older else ():
            for key in (f"{older}{key_end}", f"{older}{key_end}perjob"):
                if key in self.settings:
                    amounts[name] = float(whole(self.settings[key]))
        known, left = limits(amounts, self.number(*jobs), self.number(*submitted))
        for name, amount in left.items():
            beyond = Setting(places[0].key, f"{name}={amount:g}", places[0].location)
            self.origin.differs(beyond, f"jobs would wait, or be refused, for {name} beyond this", self.what)
        return known

    def per_node(self, *names: str) -> Limits:
        """Return the limits of a job on each of its nodes."""
        known, setting = self.limits(names), self.first(*names)
        if setting is not None and math.isfinite(known.nodes):
            self.origin.correct(setting, self.what, "a limit of nodes on each node has no effect here; it is left out")
        return dataclasses.replace(known, nodes=math.inf)


def _association(
    account: str,
    user: str,
    parent: str,
    fields: Mapping[str, Setting],
    inherited: tuple[str, ...],
    found: Accounts,
    origin: Origin,
) -> Association:
    row = _LimitRow(f"User {user}" if user else f"Account {account}", fields, origin)
    shares = 1.0
    setting = fields.get("fairshare", fields.get("shares"))
    if setting is not None:
        by_parent = setting.value.lower() == "parent" or setting.value == str(_PARENT_SHARES)
        shares = math.nan if by_parent else float(whole(setting, 0, 2**32))
    return Association(
        account,
        user,
        "" if user or account == "root" or parent == "root" else parent,
        shares,
        max_wall=row.wall("maxwalldurationperjob", "maxwall"),
        total=row.limits(("grptres",), ("grpjobs",), ("grpsubmitjobs", "grpsubmit"), older="grp"),
        own=Limits(row.number("maxjobs"), row.number("maxsubmitjobs", "maxsubmit")),
        per_job=row.limits(("maxtresperjob", "maxtres"), older="max"),
        per_node=row.per_node("maxtrespernode"),
        default_qos=fields["defaultqos"].value.lower() if "defaultqos" in fields else "",
        qos=_qos(fields, inherited, found),
        priority=whole(fields["priority"], 0, 2**32 - 1) if "priority" in fields else 0,
    )


def _qos(fields: Mapping[str, Setting], inherited: tuple[str, ...], found: Accounts) -> tuple[str, ...]:
    """Return the QOS that an association may use: a list of its own, or the inherited one with ``+`` and ``-``."""
    setting = fields.get("qos", fields.get("qoslevel"))
    if setting is None:
        return ()
    names = listed(setting.value.lower())
    if not any(name.startswith(("+", "-")) for name in names):
        return names
    if not all(name.startswith(("+", "-")) for name in names):
        raise refused(setting, "names of QOS, or all of them with + or -")
    found.inherited += len(inherited)
    if found.inherited > _MOST_QOS:
        raise SiteError(
            f"{setting.location}: accounts and users have more than {_MOST_QOS:,} names of QOS from the accounts above "
            "them; shorten the lists of those"
        )
    allowed = dict.fromkeys(inherited)
    for name in names:
        if name.startswith("+"):
            allowed[name[1:]] = None
        else:
            allowed.pop(name[1:], None)
    return tuple(allowed)


# Qualities of service, as ``sacctmgr -P show qos`` prints them --------------------------------------------------------


_QOS_MOST = MOST_OF_A_KIND["qos"]
_RELATIVE = "relative"
_CURE = "sacctmgr -P show qos > qos.txt"


def read_qos(path: Path) -> tuple[list[dict[str, Setting]], str]:
    """Return the rows of a table of QOS, and the SHA-256 of the file.

    Raises
    ------
    SiteError
        If a row cannot be read (names file and line).
    InputError
        If the file cannot be read.
    """
    return read_rows(path, ("Name", "Priority"), "Description", _CURE)


def qos_of(
    table: Iterable[Mapping[str, Setting]], wholes: Mapping[str, Limits], origin: Origin, *, by_qos: bool
) -> list[Qos]:
    """Return the QOS of rows of a table or a dump.

    Parameters
    ----------
    table : iterable of mapping of str to Setting
        By the names of the columns in lower case.
    wholes : mapping of str to Limits
        By name of QOS what a relative one is a part of; of those without an entry that of the empty name, the cluster.
    origin : Origin
        Is told where they stand, and what of them is not modelled.
    by_qos : bool
        Whether the cluster stops jobs for others by their QOS: if not, it does not matter which may.

    Raises
    ------
    SiteError
        If a value is none of its kind (names file and line).
    """
    known, known_flags = known_settings("qos"), known_settings("qos_flags")
    found: list[Qos] = []
    for row in table:
        name, what = row["name"], f"QOS {row['name'].value}"
        if not name.value:
            raise SiteError(f"{name.location}: a QOS has no name; print the table with: {_CURE}")
        known.judge(row.values(), origin, what)
        if len(found) >= _QOS_MOST:
            raise SiteError(f"{name.location}: more than {_QOS_MOST:,} QOS; leave out those without jobs")
        origin.note(f"QOS {name.value.lower()}", name.location, row)
        qos = _qos_of(_LimitRow(what, row, origin))
        if by_qos:
            qos = qos_preemption(qos, row, origin)
        flags = words_of(row["flags"]) if "flags" in row else []
        if any(flag.key.lower() == _RELATIVE for flag in flags):
            qos = _part(qos, wholes.get(qos.name, wholes[""]))
        known_flags.judge((flag for flag in flags if flag.key.lower() != _RELATIVE), origin, f"{what} Flags")
        # In Slurm's own spelling.
        spelt = [known_flags.names[flag.key.lower()] for flag in flags if flag.key.lower() in known_flags.modelled]
        found.append(dataclasses.replace(qos, flags=tuple(spelt)))
    return found


def _part(qos: Qos, whole: Limits) -> Qos:
    """Return a QOS whose limits are per cent of a whole, rounded down (assoc_mgr.c, _foreach_tres_pos_set_cnt)."""

    def absolute(limits: Limits) -> Limits:
        amounts = {
            name: min(getattr(limits, name), 100) * getattr(whole, name) // 100
            for name in ("nodes", "cores", "memory", "gpus")
            if math.isfinite(getattr(limits, name))
        }
        return dataclasses.replace(limits, **amounts)

    return dataclasses.replace(
        qos,
        total=absolute(qos.total),
        per_user=absolute(qos.per_user),
        per_account=absolute(qos.per_account),
        per_job=absolute(qos.per_job),
        per_node=absolute(qos.per_node),
    )


def _qos_of(row: _LimitRow) -> Qos:
    priority, factor = row.first("priority"), row.first("usagefactor")
    return Qos(
        name=row.settings["name"].value.lower(),
        priority=0 if priority is None else whole(priority, 0, 2**32 - 1),
        max_wall=row.wall("maxwall", "maxwalldurationperjob"),
        total=row.limits(("grptres",), ("grpjobs",), ("grpsubmit", "grpsubmitjobs")),
        per_user=row.limits(
            ("maxtrespu", "maxtresperuser"),
            ("maxjobspu", "maxjobsperuser"),
            ("maxsubmitpu", "maxsubmitjobsperuser"),
        ),
        per_account=row.limits(
            ("maxtrespa", "maxtresperaccount"),
            ("maxjobspa", "maxjobsperaccount"),
            ("maxsubmitpa", "maxsubmitjobsperaccount"),
        ),
        per_job=row.limits(("maxtres", "maxtresperjob")),
        per_node=row.per_node("maxtrespernode", "maxtrespn"),
        usage_factor=1.0 if factor is None else _factor(factor, math.nextafter(1e9, 0.0), "a number from 0"),
    )


def _factor(setting: Setting, most: float, expected: str) -> float:
    try:
        value = float(setting.value)
    except ValueError:
        value = math.nan
    if not 0 <= value <= most:
        raise refused(setting, expected)
    return value


# Fair share, as sshare prints it --------------------------------------------------------------------------------------


def read_fair_shares(path: Path) -> dict[tuple[str, str], float]:
    """Return the fair share factors, 0 to 1, by account and user, of what ``sshare -a -l -P`` printed.

    Raises
    ------
    SiteError
        If a column is not there, or a factor is no number from 0 to 1 (names file and line).
    InputError
        If the file cannot be read.
    """
    rows, _ = read_rows(path, ("Account", "User", "FairShare"), "", "sshare -a -l -P")
    found: dict[tuple[str, str], float] = {}
    for row in rows:
        setting = row["fairshare"]
        if not row["user"].value or not setting.value:
            continue
        found[row["account"].value, row["user"].value] = _factor(setting, 1.0, "a number from 0 to 1")
    return found
