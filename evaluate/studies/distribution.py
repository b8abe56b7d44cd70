"""Measure what sharing out work costs (docs/clusters.md): ``python evaluate/studies/distribution.py --output docs``.

It measures on this machine: the time of a tuple by its trials, the sizes of what is sent, the time of an empty work
unit on each backend, the efficiency of two workers, what a killed worker costs, and a real Dask scheduler with up to
64 workers whose work units sleep (that takes no processor). From these a simulation (distribution_model.py) draws the
curve to 1,000 workers. About half an hour on two quiet cores. It writes ``data/distribution*.csv`` and
``img/distribution.svg``; ``--only simulate`` makes the last two again from the measured ones.
"""  # noqa: INP001 (a script beside the package, not a part of it)

from __future__ import annotations

import argparse
import contextlib
import json
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from distribution_curves import simulate_all
from distribution_tasks import marked_nap, nap, nothing

from policyfactory.core.files import atomic_write
from policyfactory.parallel.pool import results
from policyfactory.parallel.workers import Backend, Workers

if TYPE_CHECKING:
    from policyfactory.evaluation.experiment import Experiment

__all__ = ["MEASUREMENTS", "main"]

Row = dict[str, Any]

SIZES = ((256, 96), (2_560, 96), (25_600, 48), (256_000, 48))  # trials of a tuple, and how many tuples are timed
SLEEPERS = (1, 4, 16, 32, 64)
NAPS = (0.05, 0.2, 1.0)
ROUNDS = 5


@contextlib.contextmanager
def cluster(workers: int, *, in_one: bool = False) -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """Start a scheduler and workers as processes; give its address, and them: the scheduler is the first.

    ``in_one``: processes of up to 64 workers each, for work units that sleep.
    """
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        file = Path(folder) / "scheduler.json"
        dask = [sys.executable, "-m", "dask"]
        here = Path(__file__).parent
        environment = {**os.environ, "PYTHONPATH": str(here), "PYTHONSAFEPATH": "1"}
        started: list[subprocess.Popen[bytes]] = []

        def start(*command: object) -> None:
            words = [str(part) for part in command]
            null = subprocess.DEVNULL
            started.append(subprocess.Popen(words, stdout=null, stderr=null, env=environment))  # noqa: S603 (our own)
            stack.callback(_stop, started[-1])

        common = ["--host", "127.0.0.1"]
        start(*dask, "scheduler", "--scheduler-file", file, "--port", 0, "--no-dashboard", *common)
        while not file.exists():
            time.sleep(0.05)
        address = str(json.loads(file.read_text())["address"])
        if in_one:
            for first in range(0, workers, 64):
                start(sys.executable, here / "distribution_tasks.py", address, min(64, workers - first))
        else:
            for _ in range(workers):
                more = ["--nthreads", 1, "--no-nanny", "--memory-limit", 0, "--no-dashboard"]
                start(*dask, "worker", address, *more, "--local-directory", folder, *common)
        from distributed import Client

        with Client(address, set_as_default=False) as client:
            client.wait_for_workers(workers, timeout=120)
        yield address, started


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(10)
    process.kill()
    process.wait()


def processor_seconds(process: int) -> float:
    """Return the processor time that a process has used."""
    fields = Path(f"/proc/{process}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _run(task: Callable[..., Any], shared: object, count: int, workers: Workers) -> float:
    """Do ``count`` work units; return the seconds."""
    begin = time.perf_counter()
    result = sorted(results(task, shared, range(count), workers))
    seconds = time.perf_counter() - begin
    assert result == list(range(count))  # noqa: S101 (each work unit once)
    return seconds


def task_times() -> list[Row]:
    """Return the processor seconds of each tuple, by its trials."""
    from policyfactory.trials.run import check_options, draw_places, tuple_rows
    from policyfactory.trials.table import GenerateOptions
    from policyfactory.workload.models.lublin import default_workload

    workload, rows = default_workload(), []
    for trials, tuples in SIZES:
        options = GenerateOptions(tuples, trials)
        places = draw_places(check_options(workload, options), tuples, options.seed)
        tuple_rows(workload, int(places[0]), 0, GenerateOptions(tuples, 256))
        for number, place in enumerate(places):
            begin = time.thread_time()
            tuple_rows(workload, int(place), number, options)
            rows.append({"kind": "tuple", "trials": trials, "seconds": f"{time.thread_time() - begin:.6f}"})
    return rows


_FIRST = """
import time, resource
from policyfactory.trials.table import GenerateOptions
from policyfactory.trials.run import tuple_rows
from policyfactory.workload.models.lublin import default_workload
workload, seconds = default_workload(), []
for number in range(2):
    begin = time.thread_time()
    tuple_rows(workload, 100, number, GenerateOptions(2, 256))
    seconds.append(time.thread_time() - begin)
print(seconds[0] - seconds[1], time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def starts(rounds: int) -> list[Row]:
    """Return what a worker's first tuple costs: kernels are compiled, or read from the disk."""
    rows: list[Row] = []
    for turn in range(rounds):
        with tempfile.TemporaryDirectory() as folder:
            for cache in ("empty", "filled"):
                environment = {**os.environ, "NUMBA_CACHE_DIR": folder}
                done = subprocess.run(  # noqa: S603 (the interpreter of this script)
                    [sys.executable, "-c", _FIRST], env=environment, capture_output=True, text=True, check=True
                )
                first, whole, memory = done.stdout.split()
                row: Row = {"cache": cache, "round": turn, "first_s": f"{float(first):.3f}"}
                rows.append({**row, "process_s": f"{float(whole):.3f}", "memory_mb": int(memory) // 1024})
    return rows


def evaluations(traces: Path) -> list[Row]:
    """Return the processor seconds of the work units of evaluate/tpds18.toml: a policy, or all tuners, on a case."""
    from policyfactory.policy.policy import Policy
    from policyfactory.simulation.tuning.tuner import run_contender

    experiment = _tables(traces)
    rows: list[Row] = []
    for case in experiment.cases:
        if case.number > experiment.cases[0].number + 1:
            continue
        begin = time.thread_time()
        workload = case.make()
        made, tuning, scratch = time.thread_time() - begin, 0.0, {}
        if not rows:  # reads the kernels
            run_contender(experiment.contenders[0], case, workload, experiment.rules, {})
        for contender in experiment.contenders:
            begin = time.thread_time()
            run_contender(contender, case, workload, experiment.rules, scratch)
            seconds = time.thread_time() - begin
            row: Row = {"log": case.log, "case": case.number, "jobs": len(workload), "make_s": f"{made:.4f}"}
            if isinstance(contender, Policy):
                rows.append({**row, "piece": contender.name, "seconds": f"{seconds:.4f}"})
            else:
                tuning += seconds
        rows.append({**row, "piece": "tuners", "seconds": f"{tuning:.4f}"})
    return rows


def overheads(rounds: int, units: int) -> list[Row]:
    """Return the time of an empty work unit on each backend, and whose processor time it was."""
    rows: list[Row] = []
    with cluster(2) as (address, processes):
        for turn in range(rounds):
            for backend in ("threading", "loky", "dask"):
                workers = Workers(2, _backend(backend), address if backend == "dask" else None)
                _run(nothing, None, 8, workers)  # loky's processes are started, Dask has seen the function
                before = [processor_seconds(process.pid) for process in processes]
                own, one = time.process_time(), _run(nothing, None, 2, workers)
                own, seconds = time.process_time(), _run(nothing, None, units, workers)
                used = [processor_seconds(process.pid) - then for process, then in zip(processes, before, strict=True)]
                row: Row = {"backend": backend, "round": turn, "pieces": units}
                row["start_and_end_seconds"] = f"{one:.4f}"
                row["wall_ms"] = f"{1000 * max(0.0, seconds - one) / (units - 2):.4f}"
                row["command_ms"] = f"{1000 * (time.process_time() - own) / units:.4f}"
                row["scheduler_ms"] = f"{1000 * used[0] / units:.4f}" if backend == "dask" else ""
                row["worker_ms"] = f"{1000 * sum(used[1:]) / units:.4f}" if backend == "dask" else ""
                rows.append(row)
    return rows


def _backend(name: str) -> Backend:
    return {"threading": "threading", "loky": "loky", "dask": "dask"}[name]  # type: ignore[return-value]


def efficiencies(rounds: int) -> list[Row]:
    """Return the time of the same tuples with one worker and with two, on each backend by turns."""
    from policyfactory.trials.files import generate
    from policyfactory.trials.table import GenerateOptions
    from policyfactory.workload.models.lublin import default_workload

    workload, rows = default_workload(), []
    jobs = ((2_560, 800), (25_600, 160), (256_000, 24), (2_560_000, 4))
    with cluster(1) as (one, _), cluster(2) as (two, _):
        for turn in range(rounds):
            for trials, tuples in jobs:
                for backend in ("threading", "loky", "dask"):
                    for count, address in ((1, one), (2, two)):
                        workers = Workers(count, _backend(backend), address if backend == "dask" else None)
                        took = []
                        # Few tuples first: that is the start, with kernels read and processes made.
                        for options in (GenerateOptions(4, 256), GenerateOptions(tuples, trials)):
                            begin = time.perf_counter()
                            generate(workload, options, workers=workers)
                            took.append(time.perf_counter() - begin)
                        row = {"trials": trials, "tuples": tuples, "backend": backend, "workers": count, "round": turn}
                        row |= {"start_s": f"{took[0]:.4f}", "seconds": f"{took[1]:.4f}"}
                        rows.append({**row, "load": f"{os.getloadavg()[0]:.2f}"})
    return rows


def losses(rounds: int) -> list[Row]:
    """Return what it costs that one of two workers is killed half way, with work units of half a second."""
    rows: list[Row] = []
    units, length = 24, 0.5
    for turn in range(rounds):
        for backend in ("loky", "dask"):
            for kill in (False, True):
                with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
                    marks = Path(folder) / "marks"
                    address = stack.enter_context(cluster(2))[0] if backend == "dask" else None
                    workers = Workers(2, _backend(backend), address)
                    _run(nap, 0.01, 8, workers)
                    begin, count, killed = time.perf_counter(), 0, 0
                    for count, _ in enumerate(results(marked_nap, (str(marks), length), range(units), workers), 1):
                        if kill and count == units // 2 and not killed:
                            killed = int(marks.read_text(encoding="ascii").split()[-1])
                            os.kill(killed, signal.SIGKILL)
                    assert count == units  # noqa: S101 (each work unit once)
                    begun = len(marks.read_text(encoding="ascii").splitlines())
                    row = {"backend": backend, "round": turn, "killed": int(kill), "pieces": units}
                    seconds = time.perf_counter() - begin
                    rows.append({**row, "piece_s": length, "seconds": f"{seconds:.3f}", "done_again": begun - units})
    return rows


def _bytes_at_scheduler(dask_scheduler: object) -> tuple[int, int]:  # noqa: ARG001 (Dask's name)
    """Return what all connections of the scheduler have taken in and given out, as the kernel counts."""
    import socket
    import struct

    inward = outward = 0
    for entry in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError), socket.socket(fileno=os.dup(int(entry.name))) as copy:
            if copy.type == socket.SOCK_STREAM and copy.family in {socket.AF_INET, socket.AF_INET6}:
                output = copy.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 136)
                acked, received = struct.unpack_from("QQ", output, 120)
                inward, outward = inward + received, outward + acked
    return inward, outward


def _shared_of_an_evaluation(traces: Path) -> int:
    """Return the pickled bytes of what each worker gets for evaluate/tpds18.toml."""
    from policyfactory.evaluation.run import Shared

    return len(pickle.dumps(Shared(_tables(traces), {}, in_text=False), protocol=5))


def _tables(traces: Path) -> Experiment:
    """Return the experiment of tables 3 and 4 of evaluate/tpds18.toml."""
    from policyfactory.evaluation.experiment import with_cases
    from policyfactory.evaluation.protocol import read_protocol
    from policyfactory.evaluation.study import read_logs, selected

    protocol = selected(read_protocol(Path(__file__).parent.parent / "tpds18.toml"), ["tables"])
    return with_cases(protocol.experiments[0], read_logs(protocol, [traces]))


def messages(traces: Path) -> list[Row]:
    """Return the bytes of a work unit, of what is found, and of what is shared; pickled, and on the wire."""
    from distributed import Client

    from policyfactory.trials.files import generate
    from policyfactory.trials.run import TupleBatch, tuple_rows
    from policyfactory.trials.table import GenerateOptions
    from policyfactory.workload.models.lublin import default_workload

    workload, tuples = default_workload(), 200
    options = GenerateOptions(tuples, 256)
    rows = {
        "piece pickled": len(pickle.dumps(TupleBatch((440,), (9_000,)))),
        "result pickled": len(pickle.dumps((440, tuple_rows(workload, 9_000, 440, options)))),
        "shared pickled": len(pickle.dumps((workload, options), protocol=5)),
        "evaluation shared pickled": _shared_of_an_evaluation(traces),
    }
    with cluster(2) as (address, _), Client(address, set_as_default=False) as client:
        workers = Workers(2, "dask", address)
        generate(workload, GenerateOptions(4, 256), workers=workers)
        few, many = 27, 127  # so few are sent one a work unit
        seen = [client.run_on_scheduler(_bytes_at_scheduler)]
        for count in (few, many):
            generate(workload, GenerateOptions(count, 256), workers=workers)
            seen.append(client.run_on_scheduler(_bytes_at_scheduler))
    for at, name in enumerate(("into the scheduler for a piece", "out of the scheduler for a piece")):
        first, second = (seen[i + 1][at] - seen[i][at] for i in range(2))
        rows[name] = round((second - first) / (many - few))
    return [{"what": name, "bytes": number} for name, number in rows.items()]


def sleepers(rounds: int) -> list[Row]:
    """Return how long a real scheduler takes for sleeping work units on up to 64 workers."""
    rows: list[Row] = []
    for count in SLEEPERS:
        with cluster(count, in_one=True) as (address, processes):
            workers = Workers(count, "dask", address)
            _run(nap, 0.01, 4 * count, workers)
            for turn in range(rounds):
                for length in NAPS:
                    units = count * max(4, min(40, round(3 / length)))
                    before = processor_seconds(processes[0].pid)
                    own, seconds = time.process_time(), _run(nap, length, units, workers)
                    used = processor_seconds(processes[0].pid) - before
                    row: Row = {"workers": count, "piece_s": length, "pieces": units, "round": turn}
                    row["seconds"] = f"{seconds:.4f}"
                    row["efficiency"] = f"{units * length / count / seconds:.4f}"
                    row["scheduler_ms"] = f"{1000 * used / units:.4f}"
                    row["command_ms"] = f"{1000 * (time.process_time() - own) / units:.4f}"
                    rows.append(row)
    return rows


MEASUREMENTS: dict[str, Callable[[argparse.Namespace], list[Row]]] = {
    "tasks": lambda _: task_times(),
    "start": lambda given: starts(min(given.rounds, 3)),
    "evaluation": lambda given: evaluations(given.traces),
    "messages": lambda given: messages(given.traces),
    "overhead": lambda given: overheads(given.rounds, 1_000),
    "efficiency": lambda given: efficiencies(given.rounds),
    "loss": lambda given: losses(min(given.rounds, 3)),
    "sleep": lambda given: sleepers(min(given.rounds, 3)),
}


def write(path: Path, rows: Sequence[Row]) -> None:
    """Write rows as CSV."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [",".join(rows[0]), *(",".join(str(value) for value in row.values()) for row in rows)]
    atomic_write(path, "\n".join(lines) + "\n")


def main(arguments: list[str] | None = None) -> None:
    """Measure, simulate, and draw."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--traces", type=Path, default=Path("traces"))
    parser.add_argument("--only", nargs="+", choices=[*MEASUREMENTS, "simulate"], default=[*MEASUREMENTS, "simulate"])
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    given = parser.parse_args(arguments)
    for name in given.only:
        if name in MEASUREMENTS:
            write(given.output / "data" / f"distribution-{name}.csv", MEASUREMENTS[name](given))
    if "simulate" in given.only:
        simulate_all(given.output)


if __name__ == "__main__":
    main()
