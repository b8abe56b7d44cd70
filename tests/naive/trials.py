"""Plain twins of the trial kernels, and the original simulator's trial with its network delays."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from policyfactory.workload.jobs import Workload

# The message that starts a job in the original: latency of two links, then 1000 bytes (SC17_SCHEDULER section 4).
LATENCY = 13.01 * 2 * 100e-6
TRANSFER = 1000 / (0.97 * 125e6)
MERGE = 1e-5


def workload_of(n: int = 100, ticks: int = 1) -> Workload:
    rng = np.random.default_rng(3)
    return Workload(
        name="random",
        machine=32,
        job_id=np.arange(1, n + 1),
        submit=np.cumsum(rng.integers(0, 50, n)) * ticks,
        run_time=rng.integers(1, 500, n) * ticks,
        requested_time=np.full(n, 1000) * ticks,
        processors=rng.integers(1, 33, n),
        user=np.full(n, -1),
        start=np.full(n, -1),
        ticks=ticks,
    )


def list_schedule(p, q, r, machine, running=(), clock=0):
    """Return the start of each job, started strictly in the order given; ``running`` are (end, processors)."""
    running = list(running)
    starts = []
    for j in range(len(p)):
        clock = max(clock, r[j])
        running = [job for job in running if job[0] > clock]
        while machine - sum(procs for _, procs in running) < q[j]:
            clock = min(end for end, _ in running)
            running = [job for job in running if job[0] > clock]
        starts.append(clock)
        running.append((clock + p[j], q[j]))
    return starts


def bounded_slowdown(wait, p, tau):
    return max((wait + p) / max(p, tau), 1.0)


def occupy(p, q, r, machine):
    starts = list_schedule(p, q, r, machine)
    clock = max(starts, default=0)
    # Latest end first; jobs that end together stay in the order in which they were started.
    left = sorted(((s + run, procs) for s, run, procs in zip(starts, p, q, strict=True)), key=lambda job: -job[0])
    left = [job for job in left if job[0] > clock]
    return np.array([end for end, _ in left]), np.cumsum([procs for _, procs in left]), clock


def order_values(problem, orders, out):
    clock, machine, tau, _ = (int(value) for value in problem.limits)
    running = list(zip(problem.ends.tolist(), np.diff(problem.held, prepend=0).tolist(), strict=True))
    p, q, r = problem.p.tolist(), problem.q.tolist(), problem.r.tolist()
    for i, order in enumerate(orders.tolist()):
        jobs = [[column[j] for j in order] for column in (p, q, r)]
        starts = list_schedule(*jobs, machine, running, clock)
        slowdowns = [bounded_slowdown(start - r[j], p[j], tau) for start, j in zip(starts, order, strict=True)]
        out[i] = sum(slowdowns) / len(slowdowns)


def front_orders(order):
    """Return the orders in which each job in turn goes first and the others follow as in ``order``."""
    order = list(order)
    return np.array([[j, *(other for other in order if other != j)] for j in range(len(order))], dtype=np.uint8)


def front_values(problem, orders, out):
    for i, order in enumerate(orders.tolist()):
        order_values(problem, front_orders(order), out[i])


def next_word(s0, s1, s2, s3):
    """Follow the reference code of xoshiro128++ 1.0 line by line."""
    mask = 0xFFFFFFFF

    def rotl(x, k):
        return ((x << k) | (x >> (32 - k))) & mask

    s = [s0, s1, s2, s3]
    result = (rotl((s[0] + s[3]) & mask, 7) + s[0]) & mask
    t = (s[1] << 9) & mask
    s[2] ^= s[0]
    s[3] ^= s[1]
    s[1] ^= s[2]
    s[0] ^= s[3]
    s[2] ^= t
    s[3] = rotl(s[3], 11)
    return (result, *s)


def below(words, limit):
    """Return a number below ``limit``: the high word of word * limit, unless the low word is in the excess."""
    while True:
        bits, *state = next_word(*(int(word) for word in words))
        words[:] = state
        high, low = divmod(bits * limit, 2**32)
        if low >= 2**32 % limit:
            return high


def shuffle(words, orders):
    for order in orders:
        numbers = list(range(len(order)))
        for i in range(len(numbers) - 1, 0, -1):
            j = below(words, i + 1)
            numbers[i], numbers[j] = numbers[j], numbers[i]
        order[:] = numbers


def turn(drawn, orders):
    half = drawn.shape[1] // 2
    for i, order in enumerate(drawn.tolist()):
        exchanged = order[half:] + order[:half]
        orders[4 * i : 4 * i + 4] = [order, order[::-1], exchanged, exchanged[::-1]]


def moments(blocks):
    """Return what `add_block` accumulates, from the block means themselves: float array (blocks, n)."""
    total = blocks.sum(axis=1)
    off, total_off = blocks - blocks.mean(axis=0), total - total.mean()
    rows = np.column_stack([blocks.mean(axis=0), (off**2).sum(axis=0), (off * total_off[:, None]).sum(axis=0)])
    return np.vstack([rows, [len(blocks), total.mean(), (total_off**2).sum()]])


def add_block(values, sums, earlier=()):
    sums[:] = moments(np.array([*earlier, np.mean(values, axis=0)]))


def add_blocks(problem, words, blocks, sums):
    n = len(problem.p)
    means = np.empty((blocks, n))
    for i in range(blocks):
        drawn, orders, values = np.empty((1, n), np.uint8), np.empty((4, n), np.uint8), np.empty((4, n))
        shuffle(words, drawn)
        turn(drawn, orders)
        front_values(problem, orders, values)
        means[i] = values.mean(axis=0)
    sums[:] = moments(means)


def add_orders(problem, words, trials, sums):
    orders, values = np.empty((trials, len(problem.p)), np.uint8), np.empty(trials)
    shuffle(words, orders)
    order_values(problem, orders, values)
    for j, value in zip(orders[:, 0].tolist(), values.tolist(), strict=True):
        sums[j] += [1.0, value, value**2]


def original_trial(jobs: Sequence[tuple[int, int, int]], machine: int, state_size: int, *, merge: bool = True) -> float:
    """Return the value of a trial as the original simulator computes it.

    ``jobs`` are (p, q, r) in the order of starting. Starting a job blocks the dispatcher for the time of a message,
    and what falls due within 1e-5 s after an instant happens at this instant.
    """
    simulation = _Original(machine, MERGE if merge else 0.0)
    waits = []
    for p, q, r in jobs:
        simulation.wait_for(float(r))
        while simulation.free < q:
            simulation.wait_for(min(due for due, _, _ in simulation.running))
        number = simulation.start(p, q)
        waits.append((number, simulation.clock - r, simulation.clock))
    while simulation.running:
        simulation.wait_for(min(due for due, _, _ in simulation.running))
    queued = [
        max(1.0, (wait + simulation.ends[number] - start) / max(simulation.ends[number] - start, 10.0))
        for number, wait, start in waits[state_size:]
    ]
    return sum(queued) / len(queued)


class _Original:
    def __init__(self, machine: int, merge: float) -> None:
        self.clock = 0.0
        self.free = machine
        self.merge = merge
        self.running: list[tuple[float, int, int]] = []  # due, processors, number
        self.ends: dict[int, float] = {}

    def wait_for(self, instant: float) -> None:
        """Let the clock go to ``instant``, if that is ahead; each completion before it is an instant of its own."""
        if instant < self.clock:
            return
        while self.running and min(due for due, _, _ in self.running) < instant:
            self._happen(min(due for due, _, _ in self.running))
        self._happen(instant)

    def _happen(self, instant: float) -> None:
        self.clock = instant
        for job in list(self.running):
            due, q, number = job
            if due <= instant or due < instant + self.merge:
                self.running.remove(job)
                self.ends[number] = instant
                self.free += q

    def start(self, p: int, q: int) -> int:
        """Take the processors now, send the message, start when it has arrived; return the job's number."""
        number = len(self.ends) + len(self.running)
        self.free -= q
        begin = self.clock
        self.wait_for(begin + LATENCY)
        self.wait_for(begin + (LATENCY + TRANSFER))
        self.running.append((self.clock + p, q, number))
        return number
