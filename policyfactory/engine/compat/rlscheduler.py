"""The clock of RLScheduler (Zhang et al., SC 2020): a chosen job is committed to, and everything waits for it.

One decision picks one job. If it fits it starts, and the next decision is asked for at the same instant while the
queue is not empty. If it does not fit, time goes on event by event until it does. An event is one arrival, if its
submission is not after the earliest completion, else one completion; jobs enter the queue with these events only. An
episode ends when the last job has started. The twin in tests/naive/rlscheduler.py says the same at length;
docs/rlscheduler.md says where this differs from the paper.

Backfilling, while a job is waited for: its shadow time is computed once, when the wait begins, from the requested
ends; before each event the queue is gone through in submit order, and every job that fits and would, by its request,
end before the shadow time is started. There are no extra processors.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.jit import inlined, kernel
from policyfactory.core.options import Float32Array, FloatArray, Int64Array
from policyfactory.engine.waiting import evaluate

# Jobs that are shown, numbers that are shown of each.
VIEW, FEATURES = 128, 8

# The state of an episode, an int64 array (8,): the instant; free nodes; the next job to arrive; jobs in the queue,
# running and shown; the place of the window's first job in the log; decisions made.
NOW, FREE, NEXT, QUEUED, RUNNING, SHOWN, FIRST, ASKED = range(8)


class Committed(NamedTuple):
    """The jobs of a log, by job id; arrays (n,), times in seconds.

    Parameters
    ----------
    submit, run_time, request, nodes : int64 array
        The machine executes the run time; the scheduler believes the request.
    features : float32 array (n, 6)
        What is shown of each job besides its wait and whether it fits: requested time, processors, memory, user,
        group, executable, as shares of the log's largest.
    by_request, by_size : int64 array
        Rank of each job by (request, submit), and by (processors, submit).
    """

    submit: Int64Array
    run_time: Int64Array
    request: Int64Array
    nodes: Int64Array
    features: Float32Array
    by_request: Int64Array
    by_size: Int64Array


class RLSchedulerEpisode(NamedTuple):
    """Windows of n jobs being played, or one of them (without the first axis); jobs are numbered within the window.

    Parameters
    ----------
    state : int64 array (k, 8)
        See `NOW` and the others.
    queue, running : int64 array (k, n)
        The queue in its own order; the running jobs by end, then in the order in which they complete.
    shown : int64 array (k, 128)
        The jobs that are shown.
    by_request, by_size : int64 array (k, n)
        The window's jobs in these orders.
    start : int64 array (k, n)
        Starts, -1 before.
    backfilled : bool array (k, n)
        Which jobs were started while another was waited for.
    work : int64 array (k, n)
        Work space.
    """

    state: Int64Array
    queue: Int64Array
    running: Int64Array
    shown: Int64Array
    by_request: Int64Array
    by_size: Int64Array
    start: Int64Array
    backfilled: NDArray[np.bool_]
    work: Int64Array


def new_episodes(episodes: int, jobs: int) -> RLSchedulerEpisode:
    """Return space for ``episodes`` windows of ``jobs`` jobs each."""
    queue, running, by_request, by_size, start, work = np.zeros((6, episodes, jobs), dtype=np.int64)
    state, shown = np.zeros((episodes, 8), dtype=np.int64), np.zeros((episodes, VIEW), dtype=np.int64)
    backfilled = np.zeros((episodes, jobs), dtype=np.bool_)
    return RLSchedulerEpisode(state, queue, running, shown, by_request, by_size, start, backfilled, work)


@kernel
def one_of(episodes: RLSchedulerEpisode, number: int) -> RLSchedulerEpisode:
    """Return one of several episodes, by its number."""
    return RLSchedulerEpisode(
        episodes.state[number],
        episodes.queue[number],
        episodes.running[number],
        episodes.shown[number],
        episodes.by_request[number],
        episodes.by_size[number],
        episodes.start[number],
        episodes.backfilled[number],
        episodes.work[number],
    )


@kernel
def begin(jobs: Committed, episode: RLSchedulerEpisode, first: int, nodes: int) -> None:
    """Let the window that begins with job ``first`` of the log start over on an empty machine of ``nodes`` nodes."""
    state, n = episode.state, len(episode.start)
    state[NOW], state[FREE], state[NEXT] = jobs.submit[first], nodes, 1
    state[QUEUED], state[RUNNING], state[SHOWN], state[FIRST], state[ASKED] = 1, 0, 0, first, 0
    episode.queue[0] = 0
    episode.start[:] = -1
    episode.backfilled[:] = False
    episode.by_request[:] = np.argsort(jobs.by_request[first : first + n])
    episode.by_size[:] = np.argsort(jobs.by_size[first : first + n])


@inlined
def commit(jobs: Committed, episode: RLSchedulerEpisode, job: int, backfill: bool) -> bool:  # noqa: FBT001 (kernels have no keyword-only arguments)
    """Start a job of the queue as soon as it fits; say whether the episode is over.

    Parameters
    ----------
    jobs : Committed
        The log.
    episode : Episode
        One episode.
    job : int
        Its number in the episode.
    backfill : bool
        Whether others may start while it is waited for.
    """
    state, first = episode.state, episode.state[FIRST]
    needed = jobs.nodes[first + job]
    if needed > state[FREE]:
        shadow = _shadow_time(jobs, episode, needed) if backfill else 0
        while needed > state[FREE]:
            if backfill:
                _start_before(jobs, episode, shadow)
            _next_event(jobs, episode)
    _start(jobs, episode, job)
    _leave(episode, job)
    state[ASKED] += 1
    while state[QUEUED] == 0:
        if state[NEXT] == len(episode.start):
            return True
        _next_event(jobs, episode)
    return False


@inlined
def _next_event(jobs: Committed, episode: RLSchedulerEpisode) -> None:
    """Let one job arrive, or one complete."""
    state, first, running = episode.state, episode.state[FIRST], episode.running
    end = 0
    if state[RUNNING] > 0:
        end = episode.start[running[0]] + jobs.run_time[first + running[0]]
    arrival = state[NEXT]
    if arrival < len(episode.start) and (state[RUNNING] == 0 or jobs.submit[first + arrival] <= end):
        state[NOW] = max(state[NOW], jobs.submit[first + arrival])
        episode.queue[state[QUEUED]] = arrival
        state[QUEUED] += 1
        state[NEXT] += 1
        return
    state[NOW] = max(state[NOW], end)
    state[FREE] += jobs.nodes[first + running[0]]
    state[RUNNING] -= 1
    for position in range(state[RUNNING]):
        running[position] = running[position + 1]


@inlined
def _start(jobs: Committed, episode: RLSchedulerEpisode, job: int) -> None:
    state, first, running = episode.state, episode.state[FIRST], episode.running
    episode.start[job] = state[NOW]
    state[FREE] -= jobs.nodes[first + job]
    end = state[NOW] + jobs.run_time[first + job]
    position = state[RUNNING]
    # Behind those that end at the same time.
    while position > 0 and episode.start[running[position - 1]] + jobs.run_time[first + running[position - 1]] > end:
        running[position] = running[position - 1]
        position -= 1
    running[position] = job
    state[RUNNING] += 1


@inlined
def _leave(episode: RLSchedulerEpisode, job: int) -> None:
    """Take a job out of the queue."""
    queue, position = episode.queue, 0
    while queue[position] != job:
        position += 1
    episode.state[QUEUED] -= 1
    for later in range(position, episode.state[QUEUED]):
        queue[later] = queue[later + 1]


@inlined
def _shadow_time(jobs: Committed, episode: RLSchedulerEpisode, needed: int) -> int:
    """Return when, by the requests, enough running jobs have ended; it may lie in the past."""
    state, first, running = episode.state, episode.state[FIRST], episode.running
    by_request = episode.work
    for count in range(state[RUNNING]):
        job, position = running[count], count
        end = episode.start[job] + jobs.request[first + job]
        while position > 0:
            other = by_request[position - 1]
            if episode.start[other] + jobs.request[first + other] <= end:
                break
            by_request[position] = other
            position -= 1
        by_request[position] = job
    free, shadow = state[FREE], state[NOW]
    for position in range(state[RUNNING]):
        job = by_request[position]
        free += jobs.nodes[first + job]
        shadow = episode.start[job] + jobs.request[first + job]
        if free >= needed:
            break
    # The program sorts its one list of running jobs: of those that end together, the first by request is first now.
    for count in range(1, state[RUNNING]):
        job, position = running[count], count
        end, requested = _ends(jobs, episode, job)
        while position > 0:
            other_end, other_requested = _ends(jobs, episode, running[position - 1])
            if other_end < end or other_requested <= requested:
                break
            running[position] = running[position - 1]
            position -= 1
        running[position] = job
    return int(shadow)


@inlined
def _ends(jobs: Committed, episode: RLSchedulerEpisode, job: int) -> tuple[int, int]:
    """Return when a running job ends, and when by its request."""
    start, row = episode.start[job], episode.state[FIRST] + job
    return int(start + jobs.run_time[row]), int(start + jobs.request[row])


@inlined
def _start_before(jobs: Committed, episode: RLSchedulerEpisode, shadow: int) -> None:
    """Start all jobs, in submit order, that fit now and by their request end before the shadow time."""
    state, first, queue = episode.state, episode.state[FIRST], episode.queue
    sort_by_submit(jobs, episode)
    kept = 0
    for position in range(state[QUEUED]):
        job = queue[position]
        if state[NOW] + jobs.request[first + job] < shadow and jobs.nodes[first + job] <= state[FREE]:
            _start(jobs, episode, job)
            episode.backfilled[job] = True
        else:
            queue[kept] = job
            kept += 1
    state[QUEUED] = kept


@inlined
def sort_by_submit(jobs: Committed, episode: RLSchedulerEpisode) -> None:
    """Sort the queue by submit time; equal ones stay as they are."""
    first, queue = episode.state[FIRST], episode.queue
    for count in range(1, episode.state[QUEUED]):
        job, position = queue[count], count
        submit = jobs.submit[first + job]
        while position > 0 and jobs.submit[first + queue[position - 1]] > submit:
            queue[position] = queue[position - 1]
            position -= 1
        queue[position] = job


# What RLScheduler shows of the queue ----------------------------------------------------------------------------------

# What RLScheduler shows of the queue: 128 jobs at most, eight numbers each; and a step of many episodes at once.
#
# Up to 128 waiting jobs are shown in submit order. Of more, the jobs of the least request and of the fewest processors
# are shown in turn until there are 128, and the queue stays in the order of processors, which later ties of submit time
# show. A place without a job is 0, six times 1, and 0.


# Waits are shown as shares of twelve hours, and no share is more than this.
LONGEST_WAIT, NEARLY_ONE = 43200.0, 1.0 - 1e-5


@kernel
def reset_all(
    jobs: Committed,
    episodes: RLSchedulerEpisode,
    which: NDArray[np.bool_],
    first: Int64Array,
    nodes: int,
    observation: Float32Array,
) -> None:
    """Let episodes begin, and show their queues.

    Parameters
    ----------
    jobs : Committed
        The log.
    episodes : Episode
        Where k windows are played.
    which : bool array (k,)
        Which of them begin.
    first : int64 array (k,)
        The first job of each window.
    nodes : int
        Nodes of the machine.
    observation : float32 array (k, 128, 8)
        What is shown.
    """
    for number in range(len(first)):
        if which[number]:
            episode = one_of(episodes, number)
            begin(jobs, episode, first[number], nodes)
            show(jobs, episode, observation[number])


@kernel
def step_all(
    jobs: Committed,
    episodes: RLSchedulerEpisode,
    action: Int64Array,
    backfill: bool,  # noqa: FBT001 (kernels have no keyword-only arguments)
    observation: Float32Array,
    over: NDArray[np.bool_],
) -> None:
    """Make one decision in each episode that is not over, and show the queue after it.

    Parameters
    ----------
    jobs : Committed
        The log.
    episodes : Episode
        Where k windows are played.
    action : int64 array (k,)
        The place of the chosen job among those shown.
    backfill : bool
        Whether jobs may start while the chosen one is waited for.
    observation : float32 array (k, 128, 8)
        What is shown afterwards; all 0 in an episode that is over.
    over : bool array (k,)
        Which episodes are over.
    """
    for number in range(len(action)):
        if over[number]:
            continue
        episode = one_of(episodes, number)
        over[number] = commit(jobs, episode, episode.shown[action[number]], backfill)
        if over[number]:
            episode.state[SHOWN] = 0
            observation[number] = 0.0
        else:
            show(jobs, episode, observation[number])


@kernel
def show(jobs: Committed, episode: RLSchedulerEpisode, observation: Float32Array) -> None:
    """Fill in the jobs that are shown, and what is shown of them: float32 array (128, 8)."""
    choose_shown(jobs, episode)
    state, first = episode.state, episode.state[FIRST]
    for slot in range(state[SHOWN]):
        job = first + episode.shown[slot]
        row = observation[slot]
        row[0] = min((state[NOW] - jobs.submit[job]) / LONGEST_WAIT, NEARLY_ONE)
        for feature in range(FEATURES - 2):
            row[1 + feature] = jobs.features[job, feature]
        row[FEATURES - 1] = NEARLY_ONE if jobs.nodes[job] <= state[FREE] else 1e-5
    for slot in range(state[SHOWN], VIEW):
        row = observation[slot]
        row[0] = row[FEATURES - 1] = 0.0
        for feature in range(1, FEATURES - 1):
            row[feature] = 1.0


@inlined
def choose_shown(jobs: Committed, episode: RLSchedulerEpisode) -> None:
    """Fill in the jobs that are shown."""
    state, queue, shown = episode.state, episode.queue, episode.shown
    if state[QUEUED] <= VIEW:
        sort_by_submit(jobs, episode)
        state[SHOWN] = state[QUEUED]
        for position in range(state[SHOWN]):
            shown[position] = queue[position]
        return
    waiting = 0
    for job in episode.by_size:
        if job < state[NEXT] and episode.start[job] < 0:
            queue[waiting] = job
            waiting += 1
    taken = episode.work
    taken[:] = 0
    count, short, small = 0, -1, 0
    while count < VIEW:
        short = _next_waiting(episode, short)
        count = _show_job(episode.by_request[short], taken, shown, count)
        count = _show_job(queue[small], taken, shown, count)
        small += 1
    state[SHOWN] = VIEW


@inlined
def _next_waiting(episode: RLSchedulerEpisode, rank: int) -> int:
    """Return the next place behind ``rank`` in the order of requests whose job waits."""
    rank += 1
    job = episode.by_request[rank]
    while job >= episode.state[NEXT] or episode.start[job] >= 0:
        rank += 1
        job = episode.by_request[rank]
    return rank


@inlined
def _show_job(job: int, taken: Int64Array, shown: Int64Array, count: int) -> int:
    """Show a job that is not shown yet, while there is room; return how many are shown."""
    if taken[job] == 1 or count == VIEW:
        return count
    taken[job] = 1
    shown[count] = job
    return count + 1


# A formula in the place of RLScheduler's agent ------------------------------------------------------------------------

# The job of the least value is chosen, of the queue or of those shown.
#
# Equal values go by submit time, then job id. Jobs that are submitted at one instant are gone through for backfilling
# in the order of the values that they had at the decision, as in the program, which sorts its one queue by the values.
# Where only the jobs that are shown are seen, as its network sees them, the first shown of equal values is chosen, and
# the queue stays as it is.


@kernel
def play(
    jobs: Committed,
    episodes: RLSchedulerEpisode,
    first: Int64Array,
    machine: tuple[int, int],
    rules: tuple[bool, bool],
    codes: Int64Array,
    operands: FloatArray,
    keys: FloatArray,
    columns: FloatArray,
    work: FloatArray,
) -> None:
    """Play windows by a formula.

    Parameters
    ----------
    jobs : Committed
        The log.
    episodes : Episode
        Space for k windows; `Episode.start` has the starts afterwards.
    first : int64 array (k,)
        The first job of each window.
    machine : (int, int)
        Nodes and processors of the machine.
    rules : (bool, bool)
        Whether jobs may start while the chosen one is waited for; whether only the jobs shown are seen.
    codes, operands : arrays
        The program of `policyfactory.engine.waiting`; not read where there are keys.
    keys : float64 array (n,)
        The value of each job of the log, if it does not change while the job waits; else empty.
    columns : float64 array (3, n)
        p, q and r of each job of the log.
    work : float64 array (6 + depth, at least the jobs of a window)
        Work space.
    """
    backfill, as_shown = rules
    for number in range(len(first)):
        episode = one_of(episodes, number)
        begin(jobs, episode, first[number], machine[0])
        over = False
        while not over:
            if as_shown:
                choose_shown(jobs, episode)
                seen, count = episode.shown, episode.state[SHOWN]
            else:
                _sort(jobs, episode)
                seen, count = episode.queue, episode.state[QUEUED]
            scores = work[0]
            if len(keys):
                for position in range(count):
                    scores[position] = keys[first[number] + seen[position]]
            else:
                _score(jobs, episode, seen[:count], machine, codes, operands, columns, work)
            if backfill and not as_shown:
                _group(jobs, episode, scores)
            over = commit(jobs, episode, seen[_least(scores, count)], backfill)


@inlined
def _sort(jobs: Committed, episode: RLSchedulerEpisode) -> None:
    """Sort the queue by submit time, then by number."""
    first, queue = episode.state[FIRST], episode.queue
    for count in range(1, episode.state[QUEUED]):
        job, position = queue[count], count
        submit = jobs.submit[first + job]
        while position > 0:
            before = jobs.submit[first + queue[position - 1]]
            if before < submit or (before == submit and queue[position - 1] < job):
                break
            queue[position] = queue[position - 1]
            position -= 1
        queue[position] = job


@kernel
def _score(
    jobs: Committed,
    episode: RLSchedulerEpisode,
    seen: Int64Array,
    machine: tuple[int, int],
    codes: Int64Array,
    operands: FloatArray,
    columns: FloatArray,
    work: FloatArray,
) -> None:
    """Fill in the value of each job that is seen; NaN becomes inf (runs last)."""
    state, count = episode.state, len(seen)
    for position in range(count):
        job = state[FIRST] + seen[position]
        for column in range(3):
            work[1 + column, position] = columns[column, job]
        work[4, position] = state[NOW] - jobs.submit[job]
    nodes, processors = machine
    free = float(state[FREE] * processors // nodes)
    evaluate(codes, operands, work[1:5], count, float(processors), free, work[5:])
    for position in range(count):
        work[0, position] = np.inf if np.isnan(work[5, position]) else work[5, position]


@inlined
def _group(jobs: Committed, episode: RLSchedulerEpisode, scores: FloatArray) -> None:
    """Sort the jobs that were submitted at one instant by value."""
    first, queue = episode.state[FIRST], episode.queue
    for count in range(1, episode.state[QUEUED]):
        job, score, position = queue[count], scores[count], count
        submit = jobs.submit[first + job]
        while position > 0 and scores[position - 1] > score and jobs.submit[first + queue[position - 1]] == submit:
            queue[position], scores[position] = queue[position - 1], scores[position - 1]
            position -= 1
        queue[position], scores[position] = job, score


@inlined
def _least(scores: FloatArray, count: int) -> int:
    """Return the place of the least value, the first of equal ones."""
    best = 0
    for position in range(1, count):
        if scores[position] < scores[best]:
            best = position
    return best
