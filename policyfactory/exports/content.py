"""The targets by name, what each is asked for and what it gives, and what all generated files have in common."""

from __future__ import annotations

import dataclasses
import datetime as dt
import functools
import importlib
import tomllib
from collections.abc import Callable, Sequence
from importlib.resources import files
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.text import format_duration
from policyfactory.core.version import __version__
from policyfactory.exports.expressible import NO_THRESHOLD, check_known, prepare
from policyfactory.exports.queue import Queue
from policyfactory.exports.sample import ExportSample, wide_sample
from policyfactory.exports.scripts import fill, parts
from policyfactory.policy.expression import VARIABLES
from policyfactory.policy.policy import Policy
from policyfactory.policy.scale import LARGEST, PriorityScale
from policyfactory.policy.store import Model
from policyfactory.workload.accounting.times import shown

if TYPE_CHECKING:
    from policyfactory.exports.foresight import SitePredictions

_WIDTH = 110


@dataclasses.dataclass(frozen=True, eq=False)
class ExportSite:
    """A cluster, and how the export was asked for.

    Parameters
    ----------
    draw : function that returns a Sample
        Jobs like its own; called once, by the targets that need them. Without it a model workload, spread over a year.
    processors : int or None
        Its size, if known.
    command : str
        The command line, for the header of the files; empty if there was none.
    model : str
        Where the policy is from, with the digest of its file; empty if it was made in the program.
    nodes : int or None
        Its nodes, if known.
    weight : int
        The largest whole number of a score, for targets that have whole numbers: how much the formula counts beside
        the scheduler's other factors; `learn_scale` takes it as ``largest``.
    log_only : bool
        Whether scores are logged and nothing is changed.
    foresight : SitePredictions, optional
        What predicts the jobs at submission.
    advise : function of a policy and its scale, optional
        What else an administrator must know (`policyfactory.exports.advice`), as sentences for the head of the files.
    """

    draw: Callable[[], ExportSample] = wide_sample
    processors: int | None = None
    command: str = ""
    model: str = ""
    nodes: int | None = None
    weight: int = LARGEST
    log_only: bool = False
    foresight: SitePredictions | None = None
    advise: Callable[[Policy, PriorityScale | None], Sequence[str]] | None = None

    @functools.cached_property
    def sample(self) -> ExportSample:
        """Jobs like the cluster's own."""
        return self.draw()


@dataclasses.dataclass(frozen=True, slots=True)
class File:
    """One file of an export.

    Parameters
    ----------
    name : str
        As the scheduler wants it to be called: ``job_submit.lua``.
    text : str
        Its content.
    executable : bool
        Whether it is a program.
    """

    name: str
    text: str
    executable: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class Export:
    """A policy in the form that a program or a scheduler takes.

    Parameters
    ----------
    files : tuple of File
        The main one first.
    settings : tuple of str
        Lines for the scheduler's configuration (slurm.conf), in order; empty if it needs none.
    install : tuple of str
        How to put it in place, a sentence, a command or a line of a program each; see `instructions`.
    rollback : tuple of str
        How to go back to the order of before, likewise.
    limits : tuple of str
        What this target cannot express of the policy, and what else must be known before it is trusted; sentences.
        Those of `unexpressed`, and those that begin with ``NOT``, are printed as warnings.
    priorities : function of Queue to float64 array (n,), optional
        What the scheduler will sort the waiting jobs by, computed as it will: HIGHER runs first, ties by submit time.
        None: the policy's own order.
    scale : PriorityScale, optional
        The map from scores to whole numbers, if the target has one: the command measures its ties.
    uninstall : File, optional
        A script that undoes the installation; it is written beside the files.
    """

    files: tuple[File, ...] = ()
    settings: tuple[str, ...] = ()
    install: tuple[str, ...] = ()
    rollback: tuple[str, ...] = ()
    limits: tuple[str, ...] = ()
    priorities: Callable[[Queue], NDArray[np.float64]] | None = None
    scale: PriorityScale | None = None
    uninstall: File | None = None

    @property
    def text(self) -> str:
        """Content of the main file."""
        return self.files[0].text


def ascii_text(text: str) -> str:
    """Return ``text`` as printable ASCII in one line, in which nothing opens, closes or continues a comment.

    Names and descriptions come from model files of strangers and go into comments of four languages. (In Lua a
    long comment opens only directly after ``--``; here a blank stands between.)
    """
    shown = "".join(c if " " <= c <= "~" and c != "\\" else f"<U+{ord(c):04X}>" for c in text)
    # Comments of C, and its trigraphs: ??/ is a backslash, which would join the next line to the comment.
    for pair in ("/*", "*/", "??"):
        while pair in shown:
            shown = shown.replace(pair, f"{pair[0]} {pair[1]}")
    return shown


def identifier(name: str) -> str:
    """Return a policy's name as part of an identifier: lower-case ASCII letters, digits, underscores."""
    kept = "".join(c if c.isascii() and c.isalnum() else "_" for c in name.lower())
    return kept[:40].strip("_") or "policy"


def header(model: Model, site: ExportSite, target: str, scale: PriorityScale | None = None) -> list[str]:
    """Return what a reader of the generated file must know, as lines for its comment.

    Parameters
    ----------
    model : Model
        The policy, with its epoch.
    site : ExportSite
        How it was asked for; its sample is looked at only with a ``scale``.
    target : str
        Name of the target; one that leaves a threshold out says so among its limits.
    scale : PriorityScale, optional
        The map to whole numbers, if there is one.
    """
    policy = model.policy
    lines = [
        f"Policy {policy.name}: {policy.description}" if policy.description else f"Policy {policy.name}",
        f"Made by policyfactory {__version__}, export --to {target}; make it again rather than edit it.",
        *([f"Command: {site.command[:500]}"] if site.command else []),
        *(["LOG ONLY: numbers are computed and logged for policyfactory shadow; nothing is changed."] * site.log_only),
        "",
        *_folded("score = ", policy.formula),
        "The job with the LOWER score runs first; ties go by submit time, then by job id.",
        *(f"  {name}: {VARIABLES[name]}" for name in VARIABLES if name in policy.variables),
        *_epoch_lines(policy),
        "No value (0/0, logarithm of a negative number) becomes +inf: runs last. log10(0) is -inf: runs first.",
    ]
    if not policy.is_static:
        lines.append("The score changes while a job waits: compute it again at every scheduling pass.")
    if policy.threshold != float("inf") and target not in NO_THRESHOLD:
        lines.append(
            f"Jobs that have waited longer than {format_duration(policy.threshold)} go first, in submit order."
        )
    if scale is not None:
        if "r" in policy.variables and policy.epoch.unix_time is not None:
            lines.append("r is at least 1 s: a job submitted before the epoch counts as submitted at it.")
        lines += [
            f"Scores from {scale.low!r} to {scale.high!r} become whole numbers up to {scale.largest}, higher first.",
            f"Range learnt from: {site.sample.origin}",
        ]
    if policy.source:
        lines.append(f"Source: {policy.source}")
    if site.model:
        lines.append(f"Model: {site.model}")
    if site.advise is not None:
        lines += site.advise(policy, scale)
    lines += [f"Verdict: {model.verdict}"] if model.verdict else []
    lines += [f"Warning of the fit: {text}" for text in model.warnings]
    command = model.provenance.get("command")
    if isinstance(command, str):
        lines.append(f"Model made by: {command[:500]}")
    return [ascii_text(line) for line in lines]


def comment(lines: Sequence[str], mark: str = "#") -> list[str]:
    """Return lines, of which none has a line break, as those of a comment."""
    return [f"{mark} {line}".rstrip() for line in lines]


def instructions(export: Export) -> list[str]:
    """Return what an administrator must do and know, as lines for the comment of a file, which may be still to come.

    Sentences are broken at blanks; settings, and texts that begin with ``$ `` (commands) or two blanks (lines of a
    program), are not.
    """
    texts_of = {
        "Settings:": export.settings,
        "Install:": export.install,
        "Roll back:": export.rollback,
        "Limits:": export.limits,
    }
    lines: list[str] = []
    for title, texts in texts_of.items():
        if texts:
            lines += ["", title]
        for text in texts:
            whole = title == "Settings:" or text.startswith(("$ ", "  "))
            lines += [f"  {text}"] if whole else _folded("  - ", text)
    return [ascii_text(line) for line in lines]


def _epoch_lines(policy: Policy) -> list[str]:
    if "r" not in policy.variables:
        return []
    instant = policy.epoch.unix_time
    date = "" if instant is None else f" ({shown(instant, dt.UTC)})"
    return [f"Epoch: {policy.epoch.describe()}{date}."]


def _folded(start: str, formula: str) -> list[str]:
    """Return the formula in lines of readable width, broken at blanks."""
    lines = [start]
    for word in formula.split(" "):
        if len(lines[-1]) + len(word) > _WIDTH:
            lines.append("    ")
        lines[-1] += word + " "
    return [line.rstrip() for line in lines]


# The script that takes an export out of Slurm again: what the steps of its installation did, undone -------------------

# It shows what it would do, does it when asked to, refuses what does not look as installed, and may be run again.


def uninstall_script(policy: Policy, sections: Sequence[str], file: str = "") -> File:
    """Return the script that takes an installed export back.

    Parameters
    ----------
    policy : Policy
        What was exported.
    sections : sequence of str
        Parts of ``uninstall.sh`` of the scripts, in order.
    file : str
        Name of the file that was installed.
    """
    script = parts("uninstall.sh")
    by_array = " ".join(parts("slurm.txt")["by_array"].split())
    head = [
        ascii_text(f"Takes policy {policy.name} out of the scheduler again."),
        "Made by policyfactory with the export beside it, whose head says what it is.",
    ]
    values = {"HEAD": "\n".join(comment(head)), "BY_ARRAY": by_array, "FILE": file}
    return File("uninstall.sh", "".join(fill(script[name], values) for name in sections), executable=True)


# The targets by name --------------------------------------------------------------------------------------------------


# They write the formula down and compute nothing.
_TEXTS = frozenset({"json", "latex"})


@dataclasses.dataclass(frozen=True, slots=True)
class Target:
    """A language or scheduler that a policy can be handed to.

    Parameters
    ----------
    name : str
        As in ``--to NAME``.
    description : str
        In words.
    entry_point : str
        Module of this package, and in it the function of Model and Site that gives the files and what must be known
        about them: ``pbs:make``. It raises ExportError where the target cannot express the policy at all.
        ``site.sample`` costs time: only functions that need jobs ask for it.
    predictions : bool
        Whether it can be given a formula that reads predictions: as arguments of a function, or made by itself.
    asked : bool
        Whether it can be given a formula that reads n, mem or g: as arguments, or from what a job asks for.
    """

    name: str
    description: str
    entry_point: str
    predictions: bool = False
    asked: bool = False

    def make(self, model: Model, site: ExportSite) -> Export:
        """Return the export of a policy, its m a number where the size of the site is known.

        Raises
        ------
        ExportError
            If the target cannot express the policy.
        """
        able = {
            kind: [name for name, target in TARGETS.items() if getattr(target, kind) and name not in _TEXTS]
            for kind in ("predictions", "asked")
        }
        knows = [kind for kind in able if getattr(self, kind)] + ["free"] * (self.name in _TEXTS)
        check_known(model.policy, self.name, knows, able)
        # Imported here: one target does not wait for the libraries of another.
        module, _, function = self.entry_point.partition(":")
        write: Callable[[Model, ExportSite], Export] = getattr(
            importlib.import_module(f"policyfactory.exports.{module}"), function
        )
        return write(prepare(model, processors=site.processors), site)


TARGETS = {
    name: Target(name, **known)
    for name, known in tomllib.loads(files(__package__).joinpath("targets.toml").read_text(encoding="utf-8")).items()
}
