"""Who else could have written a file whose content runs code here, or says whom to trust."""

from __future__ import annotations

import functools
import grp
import os
import pwd
import stat
from collections.abc import Iterator
from pathlib import Path

__all__ = ["who_else"]

_MOST_LINKS = 40  # as Linux


def who_else(path: Path, *, like: Path | None = None) -> str:
    """Say who else than this user and root can change a file or a folder, or put another in its place.

    As ssh looks at its keys: each folder and link on the way belongs to the user or root, and nobody else can write
    there (in ``/tmp``: not rename what is somebody else's). A group that is the user's alone is no one else.

    Parameters
    ----------
    path : Path
        Exists.
    like : Path, optional
        A folder whose code runs here in any case, and that leads to ``path``: who can write there is no one else, and
        the way to it is not looked at.

    Returns
    -------
    str
        What is wrong, with owner or mode; empty if nothing is.

    Raises
    ------
    OSError
        If something on the way cannot be looked at.
    """
    trusted, allowed, group = {0, os.geteuid()}, 0, -1
    if like is not None:
        known = like.stat()
        trusted.add(known.st_uid)
        allowed, group = known.st_mode, known.st_gid
    places = [path] if like is not None else list(_passed(path))
    for place in places:
        status = place.lstat()
        last = place == places[-1]
        # In a container the system's own folders may belong to a number that stands for everybody outside.
        if status.st_uid not in trusted and (last or status.st_uid != Path("/").stat().st_uid):
            return f"{place} belongs to {_user(status.st_uid)}"
        if stat.S_ISLNK(status.st_mode):
            if last:
                return f"{place} is a link"
            continue
        writers = status.st_mode & (stat.S_IWGRP | stat.S_IWOTH) & ~(allowed & stat.S_IWOTH)
        if (status.st_gid == group and allowed & stat.S_IWGRP) or _is_own_group(status.st_gid):
            writers &= ~stat.S_IWGRP
        if writers and (last or not status.st_mode & stat.S_ISVTX):
            who = "everybody" if writers & stat.S_IWOTH else f"group {_group(status.st_gid)}"
            return f"{place} can be written by {who} (mode {stat.S_IMODE(status.st_mode):04o})"
    return ""


def _passed(path: Path) -> Iterator[Path]:
    """Give every folder and link on the way to a path, and what it leads to."""
    rest = [*reversed((Path.cwd() / path).parts[1:])]
    passed, links = Path("/"), 0
    yield passed
    while rest:
        part = rest.pop()
        passed = passed.parent if part == ".." else passed / part
        yield passed
        if passed.is_symlink() and links < _MOST_LINKS:
            target = passed.readlink()
            passed, links = Path("/") if target.is_absolute() else passed.parent, links + 1
            rest += reversed([part for part in target.parts if part != "/"])


@functools.cache
def _is_own_group(number: int) -> bool:
    """Tell whether a group is the one that many systems make for each user: of his name, without other members."""
    try:
        group, user = grp.getgrgid(number), pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return False
    return group.gr_name == user and set(group.gr_mem) <= {user}


def _user(number: int) -> str:
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return f"user {number}"


def _group(number: int) -> str:
    try:
        return grp.getgrgid(number).gr_name
    except KeyError:
        return str(number)
