"""Forecasts beside a real Slurm: a day of 150 jobs of users with habits, the queue at ten instants, and what came.

In the folder tests, with PYTHONPATH=. :

    python -m schedulers.live_forecast record FOLDER [SEED [RATE]]    a real slurmctld, whose clock is too fast
    python -m schedulers.live_forecast judge FOLDER...                forecasts of the queues, and what came
    python -m schedulers.live_forecast both RELEASE [SEED [RATE]]     both, on the Slurm of a release of Debian (trixie
                                                                      has 24.11); some twelve minutes at RATE 100
"""

from __future__ import annotations

import dataclasses
import json
import math
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from policyfactory.site.model import NodeGroup, Partition, Site
from schedulers.processes import short_directory, wait_for
from schedulers.record import Job
from schedulers.replay import BEGIN, FastCluster, submission
from schedulers.replays import NIGHT, RATE, ROOT

if TYPE_CHECKING:
    from policyfactory.workload.jobs import Workload

SITE = Site("live", (NodeGroup("n[1-8]", 4),), (Partition("batch", default=True),))
USERS = ("daemon", "bin", "sys", "games", "man", "lp", "mail", "news")
WEEKS, JOBS, HOUR = 8, 150, 3600
INSTANTS = range(HOUR, 11 * HOUR, HOUR)


def drawn(jobs: int, seconds: float, seed: int) -> list[Job]:
    """Return jobs of users of whom each asks for the same again and again, and runs as long as its habit is."""
    rng = np.random.default_rng(seed)
    habits = np.random.default_rng(5)
    cores = habits.choice([1, 2, 4, 8], len(USERS))
    limit = habits.choice([1, 2, 4, 8], len(USERS)) * HOUR
    share = habits.uniform(0.05, 0.7, len(USERS))
    user = rng.integers(0, len(USERS), jobs)
    submit = np.sort(rng.uniform(0, seconds, jobs)).astype(int)
    run = np.clip(limit[user] * share[user] * np.exp(0.7 * rng.standard_normal(jobs)), 60, limit[user] - 60)
    return [
        Job(
            number + 1,
            submit=int(submit[number]),
            run_time=int(run[number]),
            limit=int(limit[one]),
            cores=int(cores[one]),
            user=USERS[one],
        )
        for number, one in enumerate(user.tolist())
    ]


def record(folder: Path, seed: int = 11, rate: int = RATE) -> None:
    """Let a real slurmctld run a day's jobs; write its queue at each instant, and when the jobs started."""
    folder.mkdir(parents=True, exist_ok=True)
    with short_directory("/dev/shm") as state, short_directory() as place:
        cluster = FastCluster(place, SITE, rate, more=[f"StateSaveLocation={state}"])
        with cluster:
            origin = math.ceil(cluster.clock() + 0.5 * rate)
            events: list[tuple[int, Job | None]] = [(job.submit, job) for job in drawn(JOBS, 10 * HOUR, seed)]
            events += [(second, None) for second in INSTANTS]
            for second, job in sorted(events, key=lambda event: event[0]):
                cluster.sleep_until(origin + second)
                if job is None:
                    (folder / f"queue-{second}.json").write_text(cluster.run("squeue", "--json"))
                else:
                    cluster.run("sbatch", *submission(job, rate, origin))
            ended = ("squeue", "-h", "-t", "PENDING,RUNNING,COMPLETING")
            wait_for("the end of all jobs", lambda: not cluster.run(*ended).strip(), 1200, pause=1.0)
            (folder / "jobs.txt").write_text(cluster.run("scontrol", "-o", "show", "job"))
            (folder / "origin.json").write_text(
                json.dumps({"origin": origin, "begin": BEGIN, "seed": seed, "rate": rate})
            )


def judge(folders: list[Path]) -> None:
    """Forecast the queues of days, and print how often intervals contained the starts, and the loss."""
    from policyfactory.forecasting.backtest import backtest
    from policyfactory.forecasting.forecast import forecast
    from policyfactory.simulation.slurm.run import run_slurm
    from policyfactory.statistics.calibration import LEVELS, Stretch
    from policyfactory.workload.snapshot import read_snapshot

    past = [job for day in range(WEEKS * 7) for job in drawn(JOBS, 10 * HOUR, 100 + day)]
    history = workload(past, np.full(len(past), -1), BEGIN)
    start = run_slurm(history, SITE).start
    history = dataclasses.replace(history, start=start)
    stretch = backtest(history, SITE, 60, futures=100, horizon="12h", workers=2).stretch
    _say(f"{len(history):,} jobs before, of which the calibration is {stretch}")
    for name, used in (("not calibrated", Stretch()), ("calibrated", stretch)):
        days = []
        for folder in folders:
            about, starts = json.loads((folder / "origin.json").read_text()), started(folder / "jobs.txt")
            live = drawn(JOBS, 10 * HOUR, about.get("seed", 11))
            zero = about["origin"] - WEEKS * 7 * 86_400
            began = np.array([starts[number] - zero for number in range(1, JOBS + 1)])
            log = workload([*past, *live], np.concatenate([start, began]), zero)
            rows = []
            for second in INSTANTS:
                snapshot = read_snapshot(folder / f"queue-{second}.json")
                found = forecast(snapshot, SITE, log, horizon="12h", stretch=used)
                for job in found.jobs:
                    truth = starts[job.job.number] - snapshot.taken
                    told = np.minimum(job.quantiles, found.draws.horizon)
                    plan = np.full(5, min(job.plan or 0, found.draws.horizon))
                    losses = (pinball(truth, values, LEVELS) for values in (told, plan))
                    shares = told[1] <= truth <= told[3], told[0] <= truth <= told[4], truth <= told[2]
                    rows.append((*shares, *losses))
            days.append(np.mean(rows, axis=0))
            _show(f"{folder.name}, {name}: {len(rows)} forecasts", days[-1])
        if len(days) > 1:
            _show(f"{len(days)} days, {name}", np.mean(days, axis=0))
            errors = np.std(days, axis=0, ddof=1) / math.sqrt(len(days))
            shares = ", ".join(f"{error:.2f}" for error in errors[:3])
            _say(f"    standard errors of these three shares over the days: {shares}")


def workload(jobs: list[Job], start: np.ndarray, zero: int) -> Workload:
    """Return days of jobs, on a clock that began at a Unix second."""
    from policyfactory.workload.jobs import Requests, Workload

    columns = np.array([(job.submit, job.run_time, job.limit, job.cores, USERS.index(job.user)) for job in jobs]).T
    names, day = {"user": USERS}, 86_400 * (np.arange(len(jobs)) // JOBS)
    return Workload(
        "live", 32, np.arange(1, len(jobs) + 1), columns[0] + day, *columns[1:], start, unix_start=zero,
        requests=dataclasses.replace(Requests.unknown(len(jobs)), user_name=columns[4], names=names),
    )  # fmt: skip


def _show(what: str, means: np.ndarray) -> None:
    inside50, inside90, below, loss, plan = means
    _say(
        f"{what}: in 50 %: {inside50:.2f}, in 90 %: {inside90:.2f}, by the median: {below:.2f}; loss {loss:.0f} s, of "
        f"Slurm's plan {plan:.0f} s, ratio {loss / plan:.2f}"
    )


def _say(text: str) -> None:
    print(text, flush=True)  # noqa: T201 this is a command


def pinball(truth: float, quantiles: np.ndarray, levels: tuple[float, ...]) -> float:
    """Return the mean pinball loss."""
    error, level = truth - quantiles, np.array(levels)
    return float(np.maximum(level * error, (level - 1) * error).mean())


def started(path: Path) -> dict[int, int]:
    """Return when jobs started (Unix seconds), by their numbers."""
    from policyfactory.workload.accounting.times import Clock

    found = {}
    for line in path.read_text().splitlines():
        fields = dict(part.split("=", 1) for part in line.split() if "=" in part)
        if "JobId" in fields:
            found[int(fields["JobId"])] = Clock().read(fields["StartTime"])[0]
    return found


def main(words: list[str]) -> None:
    """Do what the words say."""
    match words:
        case ["record", folder, *numbers]:
            record(Path(folder), *map(int, numbers))
        case ["judge", *folders] if folders:
            judge([Path(folder) for folder in folders])
        case ["both", release, *numbers]:
            out = NIGHT / "-".join([release, "forecast", *numbers[:1]])
            inside = ("python", "-m", "schedulers.live_forecast", "record", "/out", *numbers)
            subprocess.run([ROOT / ".ci/modern-slurm", release, NIGHT / release, out, *inside], check=True)
            judge([out])
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
