"""A command that runs others: each step is the command that a user would type, shown before it runs."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from policyfactory.cli.console import console, note
from policyfactory.cli.evaluate_options import PLAIN_NAME
from policyfactory.core import signals
from policyfactory.core.errors import OutputError, PolicyfactoryError

__all__ = [
    "CLASSICAL",
    "FORMS",
    "Step",
    "evaluation_of",
    "fit_steps",
    "learned_models",
    "model_named",
    "remove_results",
    "run_steps",
]

# The policies that whatever was learned has to beat; the first is the baseline.
CLASSICAL = ("FCFS", "SPF", "SQF", "SAF", "WFP3", "UNICEF", "F1")
# By error alone five forms are about equally good (docs/how-certain.md): the evaluation decides between them.
FORMS = 5
_SCORES = ("scores.csv", "scores.manifest.json", "scores.csv.partial")


@dataclasses.dataclass(frozen=True, slots=True)
class Step:
    """A command and what it is for.

    Parameters
    ----------
    title : str
        In words.
    arguments : tuple of str
        What stands behind ``policyfactory``.
    """

    title: str
    arguments: tuple[str, ...]


def fit_steps(folder: str, training: str, tuples: int, trials: int, seed: int) -> list[Step]:
    """Return the steps from a training workload to model files (`learned_models`).

    Parameters
    ----------
    folder : str
        Where all files go.
    training : str
        The log to learn from.
    tuples, trials, seed : int
        As of ``policyfactory generate``.
    """
    scores, forms, polynomials = (f"{folder}/{name}" for name in ("scores.csv", "forms.json", "polynomials.json"))
    return [
        Step(
            "Random orders of the queue, and the score of running each job first",
            ("generate", training, "--tuples", str(tuples), "--trials", str(trials))
            + ("--seed", str(seed), "--output", scores),
        ),
        Step(
            "The 576 enumerated forms, fitted to the scores",
            ("fit", scores, "--family", "forms", "--top", str(FORMS), "--output", forms)
            + ("--report", f"{folder}/forms.md", "--figures", f"{folder}/pictures"),
        ),
        Step(
            "The polynomials, Lin to sextic",
            ("fit", scores, "--family", "polynomials", "--output", polynomials)
            + ("--report", f"{folder}/polynomials.md"),
        ),
    ]


def learned_models(folder: Path) -> list[str]:
    """Return the model files that `fit_steps` left: the best forms, and LIN or what else could be fitted.

    Parameters
    ----------
    folder : Path
        Where they are.
    """
    lin = "polynomials-lin.json" if (folder / "polynomials-lin.json").exists() else "polynomials.json"
    names = [*(f"forms-f{rank}.json" for rank in range(1, FORMS + 1)), lin]
    return [f"{folder}/{name}" for name in names if (folder / name).exists()]


def remove_results(folder: Path) -> None:
    """Remove the score table and the models of an earlier run, so that they are neither resumed nor compared."""
    for name in _SCORES:
        (folder / name).unlink(missing_ok=True)
    for path in (*folder.glob("forms*.json"), *folder.glob("polynomials*.json")):
        if path.is_file():
            path.unlink()


def run_steps(steps: Sequence[Step], first: int, total: int, *, quiet: Path | None = None) -> None:
    """Show and run commands one after the other.

    Parameters
    ----------
    steps : sequence of Step
        What to run.
    first, total : int
        Number of the first of them, and of all.
    quiet : Path, optional
        File to which their results go; without it the screen.

    Raises
    ------
    PolicyfactoryError
        If one ends with an exit code other than 0.
    """
    for number, step in enumerate(steps, first):
        place = f"{number}/{total}"
        _head(place, step)
        if quiet is None:
            _run(place, step)
            continue
        try:
            with quiet.open("w" if number == 1 else "a", encoding="utf-8") as file, contextlib.redirect_stdout(file):
                _head(place, step)
                _run(place, step)
        except OSError as error:
            if error.filename is not None:
                raise
            raise OutputError(f"{quiet}: cannot be written: {error.strerror or error}") from None


def _head(place: str, step: Step) -> None:
    screen = console()
    screen.rule(f"[bold]{place}[/bold]  {step.title}", align="left", style="dim")
    screen.print(f"$ policyfactory {shlex.join(step.arguments)}", style="cyan", markup=False, soft_wrap=True)
    sys.stdout.flush()


def _run(place: str, step: Step) -> None:
    from policyfactory.cli.main import build_app

    own = sys.argv
    # What a step writes says by which command it was made.
    sys.argv = ["policyfactory", *step.arguments]
    try:
        code = build_app()(args=list(step.arguments), standalone_mode=False)
    except PolicyfactoryError:
        note(f"step {place} could not be done:")
        raise
    finally:
        sys.argv = own
        sys.stdout.flush()
    if code and (stop := signals.received()) is not None:
        # Typer makes exit codes of interrupts.
        raise stop
    if code:
        raise PolicyfactoryError(f"step {place} ended with exit code {code}; its message is above")


def evaluation_of(folder: Path) -> dict[str, Any]:
    """Return what an evaluation of plain logs found: ``winner``, ``words``, ``summary``, ``differences``."""
    content = json.loads((folder / "evaluation.json").read_text(encoding="utf-8"))
    found: dict[str, Any] = content["experiments"][PLAIN_NAME]
    return found


def model_named(folder: Path, name: str) -> str:
    """Return the model file of that policy in ``folder``, or the name itself if it is one of the catalogue."""
    for path in sorted(folder.glob("*.json")):
        content = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(content, dict) and content.get("kind") == "policyfactory-model" and content.get("name") == name:
            return str(path)
    return name
