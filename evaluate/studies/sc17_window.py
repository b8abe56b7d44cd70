"""What the queue window of SC'17 does: ``python evaluate/studies/sc17_window.py --traces DIR --output docs``.

The windows of evaluate/sc17.toml are scheduled three times: by the programs' rules, by the same rules with the whole
queue in sight, and by the clean simulator. Then the requested times of the workload model are drawn anew. It takes a
minute of one core and writes ``data/sc17-window.csv``, ``data/sc17-pairs.csv``, ``data/sc17-seeds.csv`` and
``img/sc17-window.png``, from which docs/papers.md has its numbers.
"""  # noqa: INP001 (a script beside the package, not a part of it)

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.files import atomic_write
from policyfactory.core.picture import COLOURS, new_figure, save_picture
from policyfactory.evaluation.experiment import with_cases
from policyfactory.evaluation.logs import read_log
from policyfactory.evaluation.protocol import Protocol, read_protocol
from policyfactory.evaluation.run import run_cases
from policyfactory.policy.policy import Policy
from policyfactory.simulation.compat import TICKS, simulate_sc17
from policyfactory.simulation.metrics import measure
from policyfactory.simulation.simulate import Rules, Schedule, simulate
from policyfactory.statistics.compare import compare_values, judged_together
from policyfactory.statistics.intervals import Estimate, estimate_value

__all__ = ["main"]

FloatArray = NDArray[np.float64]

MODES = ("actual", "estimates", "backfilling")
WAYS = ("window", "whole queue", "clean")
SEEN, FIRST = 32, 16
FITTED, OTHERS = ("F1", "F2", "F3", "F4"), ("FCFS", "WFP3", "UNICEF", "SPF")
# s; rounding of the clock cannot move a dispatch to another second.
DELAY = 0.00261024742


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Found:
    """One mode of deciding on one log: values (ways, windows, policies), and shares in % (windows, policies)."""

    mode: str
    log: str
    policies: tuple[str, ...]
    values: FloatArray
    longer: FloatArray
    unseen: FloatArray


def main(arguments: list[str] | None = None) -> None:
    """Run it and write the results."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--traces", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--windows", type=int, help="only so many of each log")
    parser.add_argument("--seeds", type=int, default=20, help="draws of the requested times")
    given = parser.parse_args(arguments)
    data, pictures = given.output / "data", given.output / "img"
    for folder in (data, pictures):
        folder.mkdir(parents=True, exist_ok=True)
    protocol = read_protocol(Path(__file__).parent.parent / "sc17.toml")
    result = list(_all(protocol, given.traces, given.windows))
    atomic_write(data / "sc17-window.csv", "\n".join(_table(result)) + "\n")
    atomic_write(data / "sc17-pairs.csv", "\n".join(_pairs(result)) + "\n")
    _draw(result, pictures / "sc17-window.png")
    atomic_write(data / "sc17-seeds.csv", "\n".join(_seeds(protocol, given.seeds, given.windows)) + "\n")


def unseen_first(schedule: Schedule, policy: Policy, rules: Rules) -> tuple[float, float]:
    """Return, in % of the dispatches after the 16th, how often more than 32 jobs waited, and one of them was better.

    Parameters
    ----------
    schedule : Schedule
        By the programs' rules, without backfilling.
    policy : Policy
        What ordered the queue.
    rules : Rules
        The rules.
    """
    jobs = schedule.workload
    submit, wait_from = jobs.submit // TICKS, jobs.submit // TICKS - jobs.submit[0] // TICKS
    p = (jobs.requested_time if rules.decide_by == "request" else jobs.run_time) / TICKS
    by_start = np.argsort(schedule.start, kind="stable")
    # The whole second at which the queue was sorted, and the jobs that had come.
    now = np.floor(schedule.start[by_start] / TICKS - DELAY + 1e-6)
    come = np.searchsorted(submit, now, side="right")
    fixed = policy.scores(p, jobs.processors, wait_from, m=jobs.machine) if policy.is_static else None
    longer = better = 0
    for place in range(FIRST, len(jobs)):
        job, rest = by_start[place], slice(place + SEEN, come[place])
        if rest.start >= rest.stop:
            continue
        longer += 1
        if fixed is not None:
            better += fixed[rest].min() < fixed[job]
        else:
            rows = np.concatenate([[job], np.arange(rest.start, rest.stop)])
            wait = now[place] - submit[rows]
            scores = policy.scores(p[rows], jobs.processors[rows], wait_from[rows], wait, m=jobs.machine)
            better += scores[1:].min() < scores[0]
    counted = max(len(jobs) - FIRST, 1)
    return 100 * longer / counted, 100 * float(better) / counted


def _all(protocol: Protocol, traces: Path, windows: int | None) -> Iterator[Found]:
    logs = {name: read_log(name, source, [traces]) for name, source in protocol.logs.items()}
    for plan in protocol.experiments:
        mode = plan.name.removesuffix("-all")
        if mode == plan.name or mode not in MODES:
            continue
        experiment = with_cases(plan, logs)
        policies = [one for one in experiment.contenders if isinstance(one, Policy)]
        for log in logs:
            cases = [case.make() for case in experiment.cases if case.log == log][:windows]
            values = np.empty((len(WAYS), len(cases), len(policies)))
            shares = np.full((2, len(cases), len(policies)), np.nan)
            for row, jobs in enumerate(cases):
                for column, policy in enumerate(policies):
                    rules = experiment.rules
                    clean = dataclasses.replace(rules, compatibility="none")
                    schedules = (
                        simulate(jobs, policy, rules),
                        simulate_sc17(jobs, policy, rules, visible=len(jobs)),
                        simulate(jobs, policy, clean),
                    )
                    values[:, row, column] = [measure(one, ["sc17_bsld"])["sc17_bsld"] for one in schedules]
                    if rules.backfill == "none":
                        shares[:, row, column] = unseen_first(schedules[0], policy, rules)
            yield Found(mode, log, tuple(policy.name for policy in policies), values, *shares)


def _table(result: list[Found]) -> Iterator[str]:
    yield (
        "mode,log,policy,windows,window_median,whole_queue_median,clean_median,window_over_whole_queue,low,high,"
        "clean_over_whole_queue,low,high,longer_queue_percent,unseen_first_percent"
    )
    for one in result:
        medians = np.median(one.values, axis=1)
        for column, policy in enumerate(one.policies):
            window, clean = _ratio(one, 0, 1, column), _ratio(one, 2, 1, column)
            numbers = [*medians[:, column], *_with_interval(window), *_with_interval(clean)]
            shares = [float(share[:, column].mean()) for share in (one.longer, one.unseen)]
            output = [f"{number:.5g}" for number in numbers] + [f"{share:.2f}" for share in shares]
            yield ",".join([one.mode, one.log, policy, str(one.values.shape[1]), *output])


def _ratio(result: Found, above: int, below: int, column: int) -> Estimate:
    """Return the median over the windows of the ratio of two ways, with its interval."""
    return estimate_value("median", result.values[above, :, column] / result.values[below, :, column])


def _with_interval(estimate: Estimate) -> tuple[float, float, float]:
    ends = estimate.interval
    return (estimate.value, ends.low, ends.high) if ends else (estimate.value, float("nan"), float("nan"))


def _pairs(result: list[Found]) -> Iterator[str]:
    """Say of how many of the 16 pairs F1 to F4 against the others the first is better or worse, judged together."""
    yield "mode,log,way,better,no_difference,worse,worse_pairs"
    for one in result:
        for way, values in zip(WAYS, one.values, strict=True):
            pairs = {}
            for fitted in FITTED:
                for other in OTHERS:
                    columns = (values[:, one.policies.index(name)] for name in (fitted, other))
                    pairs[f"{fitted}>{other}"] = compare_values(*columns, lower_is_better=True)
            called = judged_together(
                [pair.verdict for pair in pairs.values()], [pair.estimate.p for pair in pairs.values()]
            )
            verdicts = {name: verdict for name, (verdict, _) in zip(pairs, called, strict=True)}
            counts = [
                sum(value == word for value in verdicts.values()) for word in ("better", "no difference", "worse")
            ]
            worse = " ".join(pair for pair, value in verdicts.items() if value == "worse")
            yield ",".join([one.mode, one.log, way, *map(str, counts), worse])


def _seeds(protocol: Protocol, seeds: int, windows: int | None) -> Iterator[str]:
    """Say how far the medians of table 4 hang on the draw of the model's requested times."""
    yield "mode,log,policy,published,seeds,least,median,largest"
    logs = {name: source for name, source in protocol.logs.items() if source.tsafrir is not None}
    drawn: dict[tuple[str, str], list[FloatArray]] = {}
    plans = {plan.name: plan for plan in protocol.experiments if plan.name in MODES[1:]}
    for seed in range(1, seeds + 1):
        for name, source in logs.items():
            assert source.tsafrir is not None  # noqa: S101 (chosen by it)
            model = source.tsafrir.model_copy(update={"seed": seed, "stream": "numpy"})
            read = {name: read_log(name, source.model_copy(update={"tsafrir": model}), [])}
            for mode, plan in plans.items():
                experiment = with_cases(plan, read)
                cases = experiment.cases[:windows]
                result = run_cases(dataclasses.replace(experiment, cases=cases, metrics=("sc17_bsld",)))
                medians = np.median(result.matrix(name, "sc17_bsld"), axis=0)
                drawn.setdefault((mode, name), []).append(medians)
    for (mode, log), rows in drawn.items():
        published = next(one.values[log] for one in plans[mode].references if log in one.values)
        for name, values in zip(plans[mode].policies, np.array(rows).T, strict=True):
            numbers = (published[name], len(values), values.min(), float(np.median(values)), values.max())
            yield f"{mode},{log},{name}," + ",".join(f"{number:.7g}" for number in numbers)


def _draw(result: list[Found], path: Path) -> None:
    """Draw by how much the window of 32 jobs raises the slowdown of each policy."""
    logs = list(dict.fromkeys(one.log for one in result))
    figure = new_figure(7.0, 2.6 * ((len(logs) + 1) // 2) + 0.5)
    axes = figure.subplots((len(logs) + 1) // 2, 2, sharex=True, sharey=True, squeeze=False).ravel()
    for axis, log in zip(axes, logs, strict=False):
        for offset, one in enumerate(one for one in result if one.log == log):
            for column in range(len(one.policies)):
                value, low, high = _with_interval(_ratio(one, 0, 1, column))
                place = column + 0.22 * (offset - 1)
                axis.plot([low, high], [place, place], color=COLOURS[offset], linewidth=2)
                label = one.mode if column == 0 else None
                axis.plot(value, place, "o", color=COLOURS[offset], markersize=4, label=label)
        axis.set_title(log, fontsize=10)
        axis.axvline(1, color="0.3", linewidth=1)
        axis.set_xscale("log")
        axis.set_xlim(0.7, 300)
        axis.set_xticks([1, 3, 10, 30, 100], ["1", "3", "10", "30", "100"])
        axis.set_xticks([], minor=True)
        axis.set_yticks(range(len(result[0].policies)), result[0].policies)
    axes[0].invert_yaxis()
    figure.supxlabel("bounded slowdown with 32 jobs in sight / with the whole queue in sight (1)", fontsize=10)
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=3)
    save_picture(figure, path)


if __name__ == "__main__":
    main()
