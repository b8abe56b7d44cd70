"""An export as it is handed over: its files, what must be known of them, and what it would do to the queue of today."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.errors import OutputError
from policyfactory.core.files import atomic_write, check_directory, check_file, exclusive, refuse_earlier, together
from policyfactory.core.options import FloatArray, Int64Array
from policyfactory.core.text import counted, facts_html, format_duration
from policyfactory.exports.content import Export, File, Target, instructions
from policyfactory.exports.expressible import keeps_threshold
from policyfactory.exports.queue import Queue, before_epoch, overdue, policy_priorities, scores_of, start_order
from policyfactory.policy.policy import Policy
from policyfactory.workload.header import printable

if TYPE_CHECKING:
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
        return instructions(self.export)

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


# What an export would do to the queue of today: who moves up, who moves down ------------------------------------------


_ALONE = (
    "Compared by the formula's number alone: the site's other factors (fair-share, QOS, age, partition) are not in it."
)
_COMPARED = {
    "slurm-nice": (
        "The number shown is the job's priority of today (1,000,000,000 where the queue has none) less the nice value "
        "that the script sets, as if each user ran it for their own jobs: the site's other factors are in it as they "
        "are today."
    ),
    "slurm-weights": (
        "Compared by the number of these weights alone: the site's other factors (fair-share, QOS, partition) are "
        "not in it."
    ),
}


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Preview:
    """The order of a queue today and under an export.

    Parameters
    ----------
    queue : Queue
        The jobs that wait.
    scores : float64 array (n,)
        Values of the policy, LOWER first.
    priorities : float64 array (n,)
        What the scheduler will sort by, HIGHER first.
    today, new : int64 array (n,)
        Place of each job, from 1.
    late : bool array (n,)
        Jobs that have waited longer than the policy's threshold, where the target lets them go first.
    early : int
        Jobs submitted before the date from which r counts.
    compared : str
        What the number is that the jobs are compared by, in a sentence.
    """

    queue: Queue
    scores: FloatArray
    priorities: FloatArray
    today: Int64Array
    new: Int64Array
    late: NDArray[np.bool_]
    early: int
    compared: str

    @property
    def order(self) -> NDArray[np.intp]:
        """Indices of the jobs in the new order."""
        return np.argsort(self.new, kind="stable")

    def rows(self) -> list[dict[str, Any]]:
        """Return the jobs in the new order, as JSON values; a score that is not finite is null."""
        queue = self.queue
        return [
            {
                "place": int(self.new[i]),
                "today": int(self.today[i]),
                "up": int(self.today[i] - self.new[i]),
                "job": queue.job[i],
                "user": queue.user[i],
                "p": int(queue.p[i]),
                "q": int(queue.q[i]),
                "waited": int(queue.now - queue.submit[i]),
                "score": float(self.scores[i]) if np.isfinite(self.scores[i]) else None,
                "priority": float(self.priorities[i]),
                "overdue": bool(self.late[i]),
            }
            for i in self.order.tolist()
        ]

    def summary(self) -> tuple[str, ...]:
        """Return what changes, in sentences."""
        moved = self.today - self.new
        up, down, same = (int(sentences.sum()) for sentences in (moved > 0, moved < 0, moved == 0))
        if same == len(self.queue):
            return (f"No change: {counted(same, 'job')} in this order today already.", *self._notes())
        sentences = [f"{counted(len(self.queue), 'job')}: up {up:,}, down {down:,}, same place {same:,}."]
        told = {
            "First to start": self.order[0],
            "Waits longest": np.argmin(self.queue.submit),
            "Falls furthest": np.argmin(moved),
        }
        for title, job in told.items():
            sentences.append(f"{title}: {self._words(int(job))}, {_from(int(self.today[job]), int(self.new[job]))}.")
        return (*sentences, *self._notes())

    def _notes(self) -> list[str]:
        sentences = []
        if self.late.any():
            sentences.append(f"Waited longer than the policy's threshold: {counted(int(self.late.sum()), 'job')}.")
        if self.early:
            sentences.append(
                f"Submitted before the epoch, and counted as submitted at it: {counted(self.early, 'job')}."
            )
        return sentences

    def _words(self, i: int) -> str:
        queue = self.queue
        user = f" of {queue.user[i]}" if queue.user[i] else ""
        waited = format_duration(int(queue.now - queue.submit[i]))
        return f"job {queue.job[i]}{user} ({format_duration(int(queue.p[i]))}, q = {queue.q[i]:,}, waited {waited})"


def _from(today: int, new: int) -> str:
    return f"stays at place {new:,}" if today == new else f"from place {today:,} to {new:,}"


def preview(export: Export, policy: Policy, queue: Queue, *, target: str = "") -> Preview:
    """Return the order of a queue today (by its priorities, else by submit time) and under an export.

    Parameters
    ----------
    export : Export
        What the target made of the policy.
    policy : Policy
        What was exported.
    queue : Queue
        The jobs that wait.
    target : str
        Its name, for what is said of its number.

    Raises
    ------
    ExportError
        If the formula has m or f.
    """
    scores = scores_of(policy, queue)
    given = export.priorities
    priorities = policy_priorities(policy, queue) if given is None else given(queue)
    today = np.zeros(len(queue)) if queue.priority is None else queue.priority
    return Preview(
        queue=queue,
        scores=scores,
        priorities=priorities,
        today=np.argsort(start_order(today, queue)) + 1,
        new=np.argsort(start_order(priorities, queue)) + 1,
        late=overdue(policy, queue) & keeps_threshold(policy, export.limits),
        early=before_epoch(policy, queue),
        compared=_COMPARED.get(target, _ALONE),
    )
