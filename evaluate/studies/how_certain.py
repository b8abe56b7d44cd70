"""Make the numbers and pictures of docs/how-certain.md: ``python evaluate/studies/how_certain.py --output docs``.

With the defaults it takes some minutes on one core and 3 GB of memory. It writes ``data/certainty.csv``,
``data/certainty-logs.csv``, ``data/certainty-forms.csv``, ``img/certainty.png``; with ``--published FILE`` (the score
table of the SC'17 artifact) also ``img/shuffle.png``.
"""  # noqa: INP001 (a script beside the package, not a part of it)

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.files import atomic_write
from policyfactory.core.picture import COLOURS, new_figure, save_picture
from policyfactory.fitting.bootstrap import certainty_csv
from policyfactory.fitting.fits import fit
from policyfactory.fitting.model import agreement, draw_certainty, order_share
from policyfactory.fitting.regression import sort_key
from policyfactory.trials.files import generate
from policyfactory.trials.table import GenerateOptions, ScoreTable, read_score_table
from policyfactory.workload.models.lublin import generate_lublin

__all__ = ["main"]

QUEUE = 32
F1 = "log10(p)*q + log10(r)"
RICH = (
    "F1 as published=a*(log10(p)*q + 870*log10(r))",
    "F2 as published=a*(sqrt(p)*q + 2.56e4*log10(r))",
    "F3 as published=a*(p*q + 6.86e6*log10(r))",
    "F4 as published=a*(p*sqrt(q) + 5.3e5*log10(r))",
    "free exponents=a*p**b*q**c + d*log10(r)",
    "with a constant=a*p*sqrt(q) + b*log10(r) + c",
    "F1 and F4=a*log10(p)*q + b*p*sqrt(q) + c*log10(r)",
    "two logarithms=a*log10(p) + b*log10(q) + c*log10(r) + d",
)


def main(arguments: list[str] | None = None) -> None:
    """Run all three experiments and write their results."""
    given = _parser().parse_args(arguments)
    data, pictures = given.output / "data", given.output / "img"
    for folder in (data, pictures):
        folder.mkdir(parents=True, exist_ok=True)
    table = _scores(given.jobs_in_log, given.tuples, given.trials, log_seed=3, workers=given.workers)
    _certainty(table, given.replicates, data, pictures)
    _richer(table, data)
    _logs(given, data)
    if given.published is not None:
        _shuffle(read_score_table(given.published), table, pictures)


def first_of_the_shuffle(jobs: int) -> NDArray[np.float64]:
    """Return the probability of each job to be first after swapping position k with any position, k = 0, 1, ..."""
    place = np.eye(jobs)
    for k in range(jobs):
        mean = place.mean(axis=1)
        place = place * (1 - 1 / jobs) + place[:, [k]] / jobs
        place[:, k] = mean
    return place[:, 0]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--published", type=Path)
    parser.add_argument("--jobs-in-log", type=int, default=4_000_000)
    parser.add_argument("--tuples", type=int, default=24_000)
    parser.add_argument("--trials", type=int, default=4_000)
    parser.add_argument("--replicates", type=int, default=200)
    parser.add_argument("--logs", type=int, default=10)
    parser.add_argument("--log-tuples", type=int, default=6_000)
    parser.add_argument("--workers", type=int, default=1)
    return parser


def _scores(jobs: int, tuples: int, trials: int, *, log_seed: int, workers: int) -> ScoreTable:
    workload = generate_lublin(256, jobs, seed=log_seed)
    return generate(workload, GenerateOptions(tuples=tuples, trials=trials, seed=1), workers=workers)


def _certainty(table: ScoreTable, replicates: int, data: Path, pictures: Path) -> None:
    run = fit(table, "forms", bootstrap=replicates, certainty=True)
    assert run.certainty is not None  # noqa: S101 (asked for)
    atomic_write(data / "certainty.csv", certainty_csv(run.certainty))
    save_picture(draw_certainty(run.certainty), pictures / "certainty.png")


def _richer(table: ScoreTable, data: Path) -> None:
    """Write how well the best forms, the polynomials and some of our own do on the large table."""
    run = fit(table, ["forms", "polynomials", "linear", *RICH], top=5, bootstrap=0)
    lines = ["rank,name,sort_key,terms,mae,held_out,pairs"]
    for item in run.examined:
        held = item.candidate.held_out if item.candidate is not None else float("nan")
        key = sort_key(item.fit, digits=4) if len(item.fit.terms) < 10 else ""
        share = order_share(item.fit, run.sample)
        numbers = f"{len(item.fit.terms)},{item.fit.mae:.5g},{held:.5g},{share:.4f}"
        lines.append(f"{item.rank},{item.fit.name},{key},{numbers}")
    for name, key in (("SPF", "p"), ("SAF", "p*q"), ("FCFS", "r")):
        share = agreement(run.sample.score, run.sample.values(key), run.sample)
        lines.append(f",{name},{key},0,,,{share:.4f}")
    lines.append(
        f",the same score for every job of a queue,,0,{run.sample.level_mae:.5g},{run.sample.level_mae:.5g},0.5"
    )
    atomic_write(data / "certainty-forms.csv", "\n".join(lines) + "\n")


def _logs(given: argparse.Namespace, data: Path) -> None:
    """Write which form is first on logs of the SC'17 length, each with as many tuples as fit many times over."""
    lines = ["log_seed,first,first_mae,second,second_mae,rank_of_f1,f1_mae,f1_ratio,effective_tuples"]
    for seed in range(1, given.logs + 1):
        table = _scores(10_000, given.log_tuples, given.trials // 2, log_seed=seed, workers=given.workers)
        run = fit(table, "forms", bootstrap=0)
        first, second = run[:2]
        f1 = next(item for item in run if item.name == F1)
        ratio = f1.fit.coefficients[1] / f1.fit.coefficients[0]
        lines.append(
            f"{seed},{first.name},{first.mae:.5g},{second.name},{second.mae:.5g},{f1.rank},{f1.mae:.5g},{ratio:.5g},"
            f"{run.sample.effective_tuples:.0f}"
        )
    atomic_write(data / "certainty-logs.csv", "\n".join(lines) + "\n")


def _shuffle(published: ScoreTable, ours: ScoreTable, pictures: Path) -> None:
    """Draw the mean score by place in the order of submission: published, ours, and what the shuffle alone gives."""
    figure = new_figure(7.0, 4.0)
    axis = figure.subplots()
    places = np.arange(1, QUEUE + 1)
    axis.plot(places, published.score.reshape(-1, QUEUE).mean(axis=0), "o", color=COLOURS[1], label="published scores")
    axis.plot(
        places, first_of_the_shuffle(QUEUE), color=COLOURS[7], label="probability to be first in the program's shuffle"
    )
    axis.plot(
        places,
        ours.score.reshape(-1, QUEUE).mean(axis=0),
        "s",
        color=COLOURS[0],
        label="our scores, every job first equally often",
    )
    axis.axhline(1 / QUEUE, color="0.5", linestyle=":", label="1/32")
    axis.set_xlabel("place of the job in the order of submission")
    axis.set_ylabel("mean score of the job (1)")
    axis.set_ylim(0.02, 0.045)
    axis.legend(fontsize=9)
    save_picture(figure, pictures / "shuffle.png")


if __name__ == "__main__":
    main()
