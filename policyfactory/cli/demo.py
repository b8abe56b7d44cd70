"""``policyfactory demo``: the whole job on the embedded workload, each step the command that a user would type."""

from __future__ import annotations

import dataclasses
import json
import os
import shlex
import subprocess
import sys
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from policyfactory.cli.console import console, note
from policyfactory.cli.evaluate_options import PLAIN_NAME
from policyfactory.core.artefact import check_directory, exclusive
from policyfactory.core.errors import PolicyfactoryError
from policyfactory.core.units import format_duration

__all__ = ["demo"]

_CLASSICAL = ("FCFS", "SPF", "SQF", "SAF", "WFP3", "UNICEF", "F1")
_FORMS = 5


@dataclasses.dataclass(frozen=True, slots=True)
class _Step:
    title: str
    arguments: tuple[str, ...]


def _steps(folder: str, tuples: int, trials: int) -> list[_Step]:
    training, test, scores = f"{folder}/training.swf", f"{folder}/test.swf", f"{folder}/scores.csv"
    forms, polynomials = f"{folder}/forms.json", f"{folder}/polynomials.json"
    lublin = ("workload", "lublin", "--processors", "256", "--jobs", "20000", "--estimates", "tsafrir")
    # By error alone five forms are about equally good (docs/how-certain.md): the evaluation decides between them.
    learned = (*(f"{folder}/forms-f{rank}.json" for rank in range(1, _FORMS + 1)), f"{folder}/polynomials-lin.json")
    policies = ",".join((*_CLASSICAL, *learned))
    seed, family, written = ("--seed", "1"), "--family", "--output"
    return [
        _Step(
            "A workload to learn from (Lublin-Feitelson model, users' requests by Tsafrir's model)",
            (*lublin, *seed, written, training),
        ),
        _Step("Another one to test on, which nothing has learned from", (*lublin, "--seed", "2", written, test)),
        _Step(
            "Random orders of the queue, and the score of running each job first",
            ("generate", training, "--tuples", str(tuples), "--trials", str(trials), *seed, written, scores),
        ),
        _Step(
            "The 576 enumerated forms, fitted to the scores",
            ("fit", scores, family, "forms", "--top", str(_FORMS), written, forms)
            + ("--report", f"{folder}/forms.md", "--figures", f"{folder}/pictures"),
        ),
        _Step(
            "The polynomials, Lin to sextic",
            ("fit", scores, family, "polynomials", written, polynomials, "--report", f"{folder}/polynomials.md"),
        ),
        _Step(
            "The best of both against the classical policies under EASY backfilling, deciding by requested times",
            ("evaluate", test, "--policies", policies, "--backfill", "easy", "--decide-by", "request")
            + ("--windows", "10x15d", "--metrics", "mean_bsld,mean_wait,max_wait")
            + (written, f"{folder}/evaluation", "--overwrite"),
        ),
    ]


def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for everything that is made.")] = Path("demo"),
    tuples: Annotated[int, typer.Option(help="Tuples to score.", min=32)] = 1000,
    trials: Annotated[int, typer.Option(help="Trials a tuple.", min=256)] = 4096,
) -> None:
    """Do the main job end to end on the embedded workload: generate, fit, evaluate, export; about a minute."""
    begin = time.monotonic()
    with exclusive(check_directory(output) / "demo"):
        # A second demo starts afresh: an old score table is not resumed.
        for name in ("scores.csv", "scores.manifest.json", "scores.csv.partial"):
            (output / name).unlink(missing_ok=True)
        _run_all(output, tuples, trials, begin)


def _run_all(output: Path, tuples: int, trials: int, begin: float) -> None:
    steps = _steps(str(output), tuples, trials)
    total = len(steps) + 1
    for number, step in enumerate(steps, 1):
        _run(f"{number}/{total}", step)
    content = json.loads((output / "evaluation" / "evaluation.json").read_text(encoding="utf-8"))
    summary: dict[str, Any] = content["experiments"][PLAIN_NAME]
    source = _source(output, summary["winner"])
    for target, file in (("python", "winner.py"), ("lua", "winner.lua")):
        # r needs a fixed date in production; any will do for a demonstration.
        arguments = ("export", source, "--to", target, "--epoch", "2026-01-01", "--output", f"{output}/{file}")
        _run(f"{total}/{total}", _Step(f"The winner, {summary['winner']}, as {target}", arguments))
    _close(output, source, summary, time.monotonic() - begin)


def _run(place: str, step: _Step) -> None:
    screen = console()
    screen.rule(f"[bold]{place}[/bold]  {step.title}", align="left", style="dim")
    screen.print(f"$ policyfactory {shlex.join(step.arguments)}", style="cyan", markup=False, soft_wrap=True)
    sys.stdout.flush()
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    # The arguments are the list above.
    done = subprocess.run([sys.executable, "-m", "policyfactory", *step.arguments], env=environment, check=False)
    if done.returncode:
        raise PolicyfactoryError(f"step {place} ended with exit code {done.returncode}; its message is above")


def _source(output: Path, winner: str) -> str:
    """Return the model file of that name, or the name itself if it is one of the catalogue."""
    for path in sorted(output.glob("*.json")):
        if json.loads(path.read_text(encoding="utf-8")).get("name") == winner:
            return str(path)
    return winner


def _close(output: Path, source: str, summary: dict[str, Any], seconds: float) -> None:
    from policyfactory.policy.catalogue import resolve
    from policyfactory.policy.simplify import round_coefficients

    policy = resolve(source)
    formula = round_coefficients(policy.expression, 4).text()
    screen = console()
    screen.rule("[bold]In words[/bold]", align="left")
    for line in summary["words"]:
        screen.print(line, markup=False)
    screen.print(f"{policy.name} sorts the queue by {formula}, the lower value first.", markup=False)
    # The best of many on some windows is in part the luckiest on them: the demo must not teach otherwise.
    policies = len({row["policy"] for row in summary["summary"]})
    screen.print(
        f"It is the best of {policies} on the windows that chose it. The intervals compare each policy with "
        f"{summary['differences'][0]['baseline']}, not with the runner-up: look at the ranks, and evaluate "
        "the first few on another log before you trust their order.",
        markup=False,
    )
    note(f"everything is in {output}/ ({format_duration(seconds)}); evaluation/report.html says how far to trust it")
