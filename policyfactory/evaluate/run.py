"""Every policy on every window: the same jobs, the same rules, one long table of numbers.

All policies see the same windows (common inputs), so that windows can be compared in pairs. A run of one policy on
one window shares nothing with the others; the table is the same, byte for byte, for any number of workers.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.errors import EvaluationError, UsageError
from policyfactory.evaluate.metrics import METRICS, measure
from policyfactory.evaluate.simulate import Rules, Schedule, simulate
from policyfactory.workload.jobs import Workload

if TYPE_CHECKING:
    import pandas as pd

    from policyfactory.policy.policy import Policy

__all__ = ["DEFAULT_METRICS", "Evaluation", "Window", "WindowFacts", "check_metrics", "evaluate"]

DEFAULT_METRICS = ("mean_bsld", "mean_wait", "p95_wait", "max_wait", "utilisation")

Keep = Callable[["Window", Schedule], None]
Progress = Callable[[int], None]


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Window:
    """A part of a log that is simulated on its own, the machine empty at its start.

    Parameters
    ----------
    trace : str
        Name of the log that it is cut from.
    number : int
        Its place among the log's windows, from 1.
    workload : Workload
        Its jobs, times counted from the first of them.
    prediction : int64 array (n,) or None
        Predicted run time of each job, in ticks.
    """

    trace: str
    number: int
    workload: Workload
    prediction: NDArray[np.int64] | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class WindowFacts:
    """What a table says about a window.

    Parameters
    ----------
    trace, number
        As in `Window`.
    jobs : int
        Its jobs.
    machine : int
        Processors of the machine.
    span_s : float
        First to last submission, in seconds.
    unix_start : int or None
        Unix time of its first submission, if the log says so.
    sha256 : str
        Digest of its jobs.
    """

    trace: str
    number: int
    jobs: int
    machine: int
    span_s: float
    unix_start: int | None
    sha256: str


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Evaluation:
    """The values of all policies on all windows.

    Parameters
    ----------
    windows : tuple of WindowFacts (n_windows,)
        In the order of the traces and of time.
    candidates : tuple of Policy (n_policies,)
        What orders the queue; the first is the baseline.
    metrics : tuple of str (n_metrics,)
        Names in `METRICS`.
    rules : Rules
        The rules of every simulation.
    values : float64 array (n_windows, n_policies, n_metrics)
        In the units of the metrics.
    longest_wait : float64 array (n_windows, n_policies), seconds
        The longest wait of any job.
    longest_wait_job : int64 array (n_windows, n_policies)
        Id of the job that waited longest (the first of several).
    """

    windows: tuple[WindowFacts, ...]
    candidates: tuple[Policy, ...]
    metrics: tuple[str, ...]
    rules: Rules
    values: NDArray[np.float64]
    longest_wait: NDArray[np.float64]
    longest_wait_job: NDArray[np.int64]

    @property
    def traces(self) -> tuple[str, ...]:
        """Names of the traces, in order."""
        return tuple(dict.fromkeys(window.trace for window in self.windows))

    @property
    def policies(self) -> tuple[str, ...]:
        """Names of the policies, in order."""
        return tuple(policy.name for policy in self.candidates)

    @property
    def baseline(self) -> str:
        """Name of the policy that the others are compared with: the first."""
        return self.policies[0]

    @property
    def jobs_simulated(self) -> int:
        """Jobs of all simulations together."""
        return sum(window.jobs for window in self.windows) * len(self.policies)

    def rows(self, trace: str) -> NDArray[np.intp]:
        """Return the indices of a trace's windows."""
        return np.array([at for at, window in enumerate(self.windows) if window.trace == trace], dtype=np.intp)

    def matrix(self, trace: str, metric: str) -> NDArray[np.float64]:
        """Return one metric on one trace: float64 array (windows of the trace, n_policies)."""
        return self.values[self.rows(trace), :, self.metrics.index(metric)]

    def frame(self) -> pd.DataFrame:
        """Return the long table: trace, window, policy, metric, value (one row each)."""
        import pandas as pd

        shape = (len(self.policies), len(self.metrics))
        each = shape[0] * shape[1]
        return pd.DataFrame(
            {
                "trace": np.repeat([window.trace for window in self.windows], each),
                "window": np.repeat([window.number for window in self.windows], each),
                "policy": np.tile(np.repeat(self.policies, shape[1]), len(self.windows)),
                "metric": np.tile(self.metrics, len(self.windows) * shape[0]),
                "value": self.values.reshape(-1),
            }
        )


def check_metrics(names: Iterable[str]) -> tuple[str, ...]:
    """Return the names of metrics, each once and in the given order.

    Raises
    ------
    UsageError
        If there is no such metric (near matches are named) or no name at all.
    """
    import difflib

    chosen = tuple(dict.fromkeys(name.strip().lower().replace("-", "_") for name in names if name.strip()))
    for name in chosen:
        if name not in METRICS:
            near = difflib.get_close_matches(name, METRICS, n=3, cutoff=0.5)
            hint = f"; did you mean {' or '.join(near)}?" if near else ""
            raise UsageError(f"there is no metric {name!r}{hint} (metrics: {', '.join(METRICS)})")
    if not chosen:
        raise UsageError(f"no metric was named; choose from {', '.join(METRICS)}")
    return chosen


def evaluate(
    windows: Sequence[Window | Workload],
    policies: Sequence[Policy],
    *,
    rules: Rules | None = None,
    metrics: Iterable[str] = DEFAULT_METRICS,
    workers: int = 1,
    keep: Keep | None = None,
    progress: Progress | None = None,
) -> Evaluation:
    """Simulate every policy on every window and measure the schedules.

    Parameters
    ----------
    windows : sequence of Window or Workload
        What to simulate; a bare workload is one window of a trace of its name.
    policies : sequence of Policy
        With distinct names; the first is the baseline.
    rules : Rules, optional
        The scheduler's rules (default: EASY, decisions by request).
    metrics : iterable of str
        Names in `METRICS`.
    workers : int
        Threads that simulate side by side (the kernels hold no lock).
    keep : callable, optional
        Called with each window and its schedule, from the thread that made it, in no particular order.
    progress : callable, optional
        Called in the calling thread with the number of jobs of each simulation that is done.

    Raises
    ------
    UsageError
        If there is no policy, two have one name, a metric is unknown, or ``workers`` is below 1.
    EvaluationError
        If there is no window or one has no job.
    """
    from joblib import Parallel, delayed

    rules = rules or Rules()
    names = check_metrics(metrics)
    _check_policies(policies)
    if workers < 1:
        raise UsageError(f"{workers} workers; give at least 1")
    cases = _as_windows(windows)
    tasks = [(window, policy) for window in cases for policy in policies]
    run = Parallel(n_jobs=min(workers, len(tasks)), backend="threading", return_as="generator")
    results = []
    for at, result in enumerate(run(delayed(_run_one)(*task, rules, names, keep) for task in tasks)):
        results.append(result)
        if progress is not None:
            progress(len(tasks[at][0].workload))
    shape = (len(cases), len(policies))
    return Evaluation(
        windows=tuple(_facts(window) for window in cases),
        candidates=tuple(policies),
        metrics=names,
        rules=rules,
        values=np.array([values for values, _, _ in results], dtype=np.float64).reshape(*shape, len(names)),
        longest_wait=np.array([wait for _, wait, _ in results], dtype=np.float64).reshape(shape),
        longest_wait_job=np.array([job for _, _, job in results], dtype=np.int64).reshape(shape),
    )


def _run_one(
    window: Window, policy: Policy, rules: Rules, metrics: tuple[str, ...], keep: Keep | None
) -> tuple[list[float], float, int]:
    schedule = simulate(window.workload, policy, rules, window.prediction)
    if keep is not None:
        keep(window, schedule)
    values = measure(schedule, metrics)
    wait = schedule.start - window.workload.submit
    longest = int(np.argmax(wait))
    return (
        [values[name] for name in metrics],
        float(wait[longest]) / window.workload.ticks,
        int(window.workload.job_id[longest]),
    )


def _check_policies(policies: Sequence[Policy]) -> None:
    if not policies:
        raise UsageError("no policy was named; give for example --policies FCFS,SPF,SAF")
    seen: set[str] = set()
    for policy in policies:
        if policy.name.casefold() in seen:
            raise UsageError(f"two policies are called {policy.name}; give each a name of its own")
        seen.add(policy.name.casefold())


def _as_windows(windows: Sequence[Window | Workload]) -> list[Window]:
    cases = [case if isinstance(case, Window) else Window(case.name, 1, case) for case in windows]
    if not cases:
        raise EvaluationError("there is no window to simulate; give a log, or shorter windows")
    seen: set[tuple[str, int]] = set()
    for case in cases:
        if not len(case.workload):
            raise EvaluationError(f"{case.trace}: window {case.number} has no job; use longer windows")
        if (case.trace, case.number) in seen:
            raise UsageError(f"two logs are called {case.trace}; name each log once, or rename one file")
        seen.add((case.trace, case.number))
    return cases


def _facts(window: Window) -> WindowFacts:
    jobs = window.workload
    return WindowFacts(
        trace=window.trace,
        number=window.number,
        jobs=len(jobs),
        machine=jobs.machine,
        span_s=float(jobs.submit[-1] - jobs.submit[0]) / jobs.ticks,
        unix_start=jobs.unix_start,
        sha256=jobs.sha256(),
    )
