"""Small and read-only file systems: memory disks of our own where they may be mounted, else what comes near."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

__all__ = ["Disk", "read_only", "small_disk"]


def _mount(*words: object) -> bool:
    if shutil.which("mount") is None:
        return False
    return subprocess.run(["mount", *map(str, words)], capture_output=True, check=False).returncode == 0


class Disk:
    """A folder with little room.

    ``kind`` is "tmpfs", or "limit" where nothing can be mounted: then files are limited in size (RLIMIT_FSIZE).
    """

    def __init__(self, folder: Path, kind: str, room: int) -> None:
        self.folder = folder
        self.kind = kind
        self._room = room

    @property
    def largest_file(self) -> int | None:
        """Limit of the size of files, for `Nursery.start`."""
        return self._room if self.kind == "limit" else None

    def fill(self) -> None:
        """Use up the room that is left but for some bytes."""
        if self.kind == "tmpfs":
            left = max(shutil.disk_usage(self.folder).free - self._room, 0)
            (self.folder / "filler").write_bytes(bytes(left))

    def make_room(self) -> None:
        """Give the room back."""
        (self.folder / "filler").unlink(missing_ok=True)


@contextlib.contextmanager
def small_disk(folder: Path, room: int) -> Iterator[Disk]:
    """Give a disk of 16 MB, of which ``fill`` leaves ``room`` bytes."""
    folder.mkdir()
    mounted = _mount("-t", "tmpfs", "-o", "size=16m", "none", folder)
    try:
        yield Disk(folder, "tmpfs" if mounted else "limit", room)
    finally:
        if mounted:
            subprocess.run(["umount", folder], check=True)


@contextlib.contextmanager
def read_only(folder: Path) -> Iterator[str]:
    """Make a folder one in which not even root can write; give how."""
    ways = {
        "a file system mounted read-only": (
            ["mount", "--bind", folder, folder],
            ["mount", "-o", "remount,ro,bind", folder],
            ["umount", folder],
        ),
        "an immutable folder": (["true"], ["chattr", "+i", folder], ["chattr", "-i", folder]),
    }
    for name, (first, second, back) in ways.items():
        try:
            done = [subprocess.run(list(map(str, one)), capture_output=True, check=False) for one in (first, second)]
        except FileNotFoundError:
            continue
        if not any(one.returncode for one in done):
            try:
                yield name
            finally:
                subprocess.run(list(map(str, back)), check=True)
            return
        if not done[0].returncode and first[0] == "mount":
            subprocess.run(list(map(str, back)), check=True)
    pytest.skip("nothing can be mounted here, and no file made immutable")
