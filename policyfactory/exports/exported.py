"""An export as it is handed over: its files, where they were written, and what must be known of them."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING

from policyfactory.core.errors import OutputError
from policyfactory.core.files import atomic_write, check_directory, check_file, exclusive, refuse_earlier, together
from policyfactory.core.text import facts_html
from policyfactory.exports.content import Export, File, instructions
from policyfactory.exports.targets import Target
from policyfactory.policy.policy import Policy
from policyfactory.workload.header import printable

if TYPE_CHECKING:
    from policyfactory.exports.preview import Preview
    from policyfactory.exports.queue import Queue
    from policyfactory.policy.scale import PriorityScale

# Of a folder, and of a file, that are looked at for an earlier export.
_MOST_FILES = 1000
_HEAD = 4096


@dataclasses.dataclass(frozen=True, slots=True, eq=False, repr=False)
class Exported:
    """A policy in the form that a program or a scheduler takes.

    Parameters
    ----------
    policy : Policy
        What was exported, with the epoch, the threshold and the size of the machine that were given.
    target : Target
        To what.
    export : Export
        What the target made: files, settings, how to install it and to roll it back, its limits.
    ties : float or None
        Share of neighbouring scores that get one whole number; None without whole numbers.
    notes, warnings : tuple of str
        What was measured on which jobs; and what of the policy is lost, or should not be trusted.
    paths : tuple of Path
        The files that were written, in the order of ``files``, and behind them the script that uninstalls.
    log_only : bool
        Whether it only logs what it computes.
    """

    policy: Policy
    target: Target
    export: Export
    ties: float | None = None
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    paths: tuple[Path, ...] = ()
    log_only: bool = False

    @property
    def files(self) -> tuple[File, ...]:
        """The files, the main one first."""
        return self.export.files

    @property
    def text(self) -> str:
        """Content of the main file."""
        return self.export.text

    @property
    def description(self) -> str:
        """What the files are, in words."""
        only = "Slurm: LOG ONLY, computes and logs the numbers that {} would sort by, and sets nothing"
        return only.format(self.target.name) if self.log_only else self.target.description

    @property
    def scale(self) -> PriorityScale | None:
        """The map from scores to whole numbers, if there is one."""
        return self.export.scale

    def instructions(self) -> list[str]:
        """Return how to install it, how to roll it back, and its limits."""
        export = self.export
        return instructions(export.settings, export.install, export.rollback, export.limits)

    def summary(self) -> str:
        """Return the instructions, the notes and the warnings."""
        return "\n".join([repr(self), *self.instructions(), "", *self.notes, *(f"warning: {w}" for w in self.warnings)])

    def preview(self, queue: Queue) -> Preview:
        """Return what changes in a queue.

        Parameters
        ----------
        queue : Queue
            The jobs that wait; `policyfactory.exports.queue.read_queue` reads what squeue prints.
        """
        from policyfactory.exports.preview import preview

        return preview(self.export, self.policy, queue, target=self.target.name)

    def save(self, output: Path | str, *, overwrite: bool = False) -> list[Path]:
        """Write the files; see `write_files`."""
        output = Path(output)
        with exclusive(claim(output)):
            return write_files(self.export, self.target.name, output, overwrite=overwrite)

    def __repr__(self) -> str:
        names = ", ".join(file.name for file in self.files)
        return f"<Exported {self.policy.name} to {self.target.name}: {names}>"

    def _repr_html_(self) -> str:
        facts = {"target": self.description, "files": ", ".join(file.name for file in self.files)}
        facts |= {f"note {number}": text for number, text in enumerate(self.notes, start=1)}
        facts |= {f"warning {number}": text for number, text in enumerate(self.warnings, start=1)}
        return facts_html(f"{self.policy.name} for {self.target.name}", facts)


def claim(output: Path | None) -> Path | None:
    """Return what another export must not write meanwhile; a folder in folders that are not there yet is nobody's."""
    if output is None or not output.parent.is_dir():
        return None
    return output / "export" if output.is_dir() else output


def write_files(export: Export, target: str, output: Path, *, overwrite: bool = False) -> list[Path]:
    """Write the files of an export, all or none; return where.

    Parameters
    ----------
    export : Export
        The files.
    target : str
        Name of the target, for messages.
    output : Path
        A file for one, a folder for several; into a folder that is there goes also one.
    overwrite : bool
        Whether earlier files are replaced.

    Raises
    ------
    OutputError
        If a file is there already, or cannot be written.
    """
    paths, files = places(export, target, output, overwrite=overwrite)
    if len(export.files) > 1:
        check_directory(output)
    with together():
        for path, file in zip(paths, files, strict=True):
            if len(paths) > 1:
                check_file(path, "more files")
            atomic_write(path, file.text, executable=file.executable)
    return paths


def places(export: Export, target: str, output: Path, *, overwrite: bool = False) -> tuple[list[Path], list[File]]:
    """Return where the files of an export go, and these; parameters and errors are those of `write_files`."""
    if len(export.files) > 1 or output.is_dir():
        if output.exists() and not output.is_dir():
            raise OutputError(f"{output}: is a file, and {target} has {len(export.files)} files; name a folder")
        paths = [output / file.name for file in export.files]
    else:
        paths = [output]
    files = list(export.files)
    if export.uninstall is not None:
        # That of a single file bears its name, so that two exports in one folder keep theirs.
        name = export.uninstall.name if len(export.files) > 1 else f"{paths[0].stem}.{export.uninstall.name}"
        paths.append(paths[0].with_name(name))
        files.append(export.uninstall)
    refuse_earlier(*paths, overwrite=overwrite)
    return paths, files


def earlier_files(folder: Path, written: list[Path]) -> list[str]:
    """Return files of other exports beside the new ones: they are not removed, as they may be in use."""
    stale = []
    for path in sorted(folder.iterdir())[:_MOST_FILES]:
        if path in written or not path.is_file():
            continue
        try:
            with path.open("rb") as file:
                ours = b"policyfactory" in file.read(_HEAD)
        except OSError:
            continue
        if ours:
            stale.append(printable(path.name))
    return stale
