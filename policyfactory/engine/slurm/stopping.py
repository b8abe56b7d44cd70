"""Which running jobs Slurm stops for others: by the tiers of their partitions, or by their QOS.

The rules are those of Slurm 24.11 and 22.05, found in their sources: src/interfaces/preempt.c and the plugins
preempt/partition_prio and preempt/qos (who, and in which order), slurmctld/node_scheduler.c (_preempt_jobs: when),
slurmctld/job_mgr.c (job_time_limit, batch_requeue_fini: what becomes of it). Which of them are stopped is found where
nodes are chosen (`policyfactory.engine.slurm.starts.stop_for`).

A run of a site without preemption has None in place of `SlurmPreemption`. numba leaves out what is done where it is not
None, so that this is compiled for sites that need it, and for no other.
"""

from __future__ import annotations

from typing import NamedTuple

from policyfactory.core.by_pointer import by_pointer
from policyfactory.core.jit import inlined, step
from policyfactory.core.options import Int64Array, UInt8Array
from policyfactory.engine.events import END, JOB, pop_end, push_end
from policyfactory.engine.slurm.holding import check_after, give_back, is_open, tell_rows
from policyfactory.engine.slurm.jobs import SlurmJobs, SlurmMachine, SlurmSettings, is_passed_over
from policyfactory.engine.slurm.nodes import BLOCKS, LISTED, NodeChoice
from policyfactory.engine.slurm.priority import FairShares, PriorityWeights, add_usage, new_priority
from policyfactory.engine.slurm.state import (
    ASIDE,
    CALCULATED,
    DUE,
    LEAVING,
    LEFT,
    MAIN,
    NOW,
    PASSED,
    RELEASED,
    RUNNING,
    WAITING,
    RunState,
    believed_end,
    is_ahead,
)
from policyfactory.engine.slurm.versions import SETS_ANEW

# What becomes of a job that is stopped: it is not; it goes back into the queue; it has ended.
STAYS, GOES_BACK, IS_CANCELLED = range(3)
# A job stops no more jobs for so long (s) after it has stopped some: KillWait and MessageTimeout.
_PATIENCE = 40
NOT_SOON = 2**60
_LARGE = 0xFFFF


@by_pointer
class SlurmPreemption(NamedTuple):
    """Preemption of n jobs of K kinds, which are their partitions or their QOS, on N nodes.

    Parameters
    ----------
    kind : int64 array (n,)
        -1: neither stops others nor is stopped.
    stops : uint8 array (K, K)
        1 where a job of the first kind may have one of the second stopped.
    goes_before : uint8 array (K, K)
        1 where it goes before that in the queue, whatever else is said of them.
    rank : int64 array (K,)
        Those of the least are stopped first.
    outcome : int64 array (K,)
        What becomes of one that is stopped.
    grace : int64 array (K,)
        Seconds that it then has left.
    exempt : int64 array (n,)
        Seconds after its start in which a job is safe.
    least_exempt : float
        Jobs of a priority above it are safe.
    youngest_first, strict : bool
        In which order jobs are stopped.
    reorders : int
        How often they are put into another order, so that fewer are stopped.
    sorts : bool
        Whether the queue is not in order by reservations, tiers and priorities alone.
    weights : PriorityWeights
        Of the run.
    shares : FairShares or None
        Of the run.
    until : int64 array (n,)
        When the grace time of a running job ends; `NOT_SOON` where none has begun.
    stopped_at : int64 array (n,)
        When it is stopped then, if it has not ended before; -1: it is not.
    last_stopping : int64 array (n,)
        When a job last had others stopped.
    stopped, lost : int64 array (n,)
        How often each job was stopped, and the node seconds of the runs that were.
    back : int64 array (n,)
        When it was last put back; long ago: never.
    candidate : int64 array (n + 1,)
        Places in ``RunState.running`` of those that may be stopped for a job, in their order.
    gone : uint8 array (n + 1,)
        1 for such a place.
    mark : uint8 array (N,)
        1 for a chosen node.
    kept : NodeChoice
        A choice to come back to.
    absent : uint8 array (n,)
        1 for a waiting job that was not in the queue when the pass began: as many tasks of its array ran as may.
    merged : int64 array (n,)
        Work space of the queue's order, and of the order in which jobs are stopped.
    stack : int64 array (64, 3)
        The same.
    """

    kind: Int64Array
    stops: UInt8Array
    goes_before: UInt8Array
    rank: Int64Array
    outcome: Int64Array
    grace: Int64Array
    exempt: Int64Array
    least_exempt: float
    youngest_first: bool
    strict: bool
    reorders: int
    sorts: bool
    weights: PriorityWeights
    shares: FairShares | None
    until: Int64Array
    stopped_at: Int64Array
    last_stopping: Int64Array
    stopped: Int64Array
    lost: Int64Array
    back: Int64Array
    candidate: Int64Array
    gone: UInt8Array
    mark: UInt8Array
    kept: NodeChoice
    absent: UInt8Array
    merged: Int64Array
    stack: Int64Array


@inlined
def can_stop(preemption: SlurmPreemption | None) -> bool:
    """Tell whether running jobs are stopped for others at all."""
    return preemption is not None


@inlined
def is_stoppable(job: int, preemption: SlurmPreemption | None) -> bool:
    """Tell whether a job may be stopped for others; of one without a QOS, by QOS, the plan takes that for given."""
    if preemption is not None:
        return bool(preemption.kind[job] < 0 or preemption.outcome[preemption.kind[job]] != STAYS)
    return False


@step
def list_candidates(
    jobs: SlurmJobs, machine: SlurmMachine, run: RunState, job: int, preemption: SlurmPreemption | None
) -> int:
    """Fill in which running jobs may be stopped for a job, in the order in which they would be; return how many."""
    count = 0
    if preemption is not None:
        kind, now, members = preemption.kind[job], run.state[NOW], machine.partition[jobs.partition[job]]
        for position in range(run.state[RUNNING]):
            preemption.gone[position] = 0
            other = run.running[position]
            others = preemption.kind[other]
            if kind < 0 or others < 0 or preemption.stops[kind, others] == 0:
                continue
            if run.priority[other] > preemption.least_exempt or now < run.start[other] + preemption.exempt[other]:
                continue
            shared = 0
            for entry in range(run.held_from[other], run.held_from[other] + run.held_count[other]):
                shared += members[run.held_node[entry]]
            if shared == 0:
                continue
            preemption.gone[position] = 1
            rank, to = _rank(run, other, preemption), count
            while to > 0:
                before = run.running[preemption.candidate[to - 1]]
                its = _rank(run, before, preemption)
                if its < rank or (its == rank and jobs.number[before] < jobs.number[other]):
                    break
                preemption.candidate[to] = preemption.candidate[to - 1]
                to -= 1
            preemption.candidate[to] = position
            count += 1
        preemption.gone[run.state[RUNNING]] = 0
    return count


@inlined
def _rank(run: RunState, job: int, preemption: SlurmPreemption) -> int:
    """Return by what running jobs are stopped first: the youngest, or those of low rank, of these the small ones."""
    if preemption.youngest_first:
        return int(-run.start[job])
    return int(preemption.rank[preemption.kind[job]] * (_LARGE + 1) + min(run.held_count[job], _LARGE))


@inlined
def is_gone(position: int, preemption: SlurmPreemption | None) -> bool:
    """Tell whether the running job at a position may be stopped (`list_candidates`)."""
    return bool(preemption is not None and preemption.gone[position] == 1)


@inlined
def after_gone(run: RunState, position: int, preemption: SlurmPreemption | None) -> int:
    """Return the next place among the running jobs, from one on, whose job may not be stopped (`list_candidates`)."""
    if preemption is not None:
        while position < run.state[RUNNING] and preemption.gone[position] == 1:
            position += 1
    return position


# The choice of who is stopped -----------------------------------------------------------------------------------------


@step
def keep_choice(run: RunState, preemption: SlurmPreemption | None) -> None:
    """Keep the chosen nodes, to come back to them (`restore_choice`)."""
    if preemption is not None:
        _copy_choice(run.choice, preemption.kept)


@step
def restore_choice(run: RunState, preemption: SlurmPreemption | None) -> None:
    """Let those be chosen that were kept."""
    if preemption is not None:
        _copy_choice(preemption.kept, run.choice)


@inlined
def _copy_choice(choice: NodeChoice, to: NodeChoice) -> None:
    to.parts[0] = choice.parts[0]
    for part in range(choice.parts[0]):
        to.node[part], to.many[part], to.cores[part] = choice.node[part], choice.many[part], choice.cores[part]
    for word in range(len(choice.bits)):
        to.bits[word] = choice.bits[word]


@step
def mark_chosen(run: RunState, preemption: SlurmPreemption) -> None:
    """Mark the chosen nodes."""
    choice, mark = run.choice, preemption.mark
    mark[:] = 0
    for part in range(choice.parts[0]):
        for node in range(choice.node[part], choice.node[part] + choice.many[part]):
            mark[node] = 1


@step
def count_marked(run: RunState, job: int, preemption: SlurmPreemption) -> int:
    """Return how many of the marked nodes a running job has."""
    count = 0
    for entry in range(run.held_from[job], run.held_from[job] + run.held_count[job]):
        count += preemption.mark[run.held_node[entry]]
    return count


@step
def put_first(run: RunState, index: int, preemption: SlurmPreemption) -> None:
    """Put the candidate first that made the difference, and after it those before that have most chosen nodes."""
    candidate, first = preemption.candidate, preemption.candidate[index]
    for to in range(index, 0, -1):
        candidate[to] = candidate[to - 1]
    candidate[0] = first
    if preemption.strict:
        return
    chosen = preemption.merged
    for position in range(1, index + 1):
        moved, to = candidate[position], position
        chosen[moved] = count_marked(run, run.running[moved], preemption)
        while to > 1 and chosen[candidate[to - 1]] < chosen[moved]:
            candidate[to] = candidate[to - 1]
            to -= 1
        candidate[to] = moved


# What becomes of the stopped ------------------------------------------------------------------------------------------


@step
def stop_chosen(
    jobs: SlurmJobs,
    machine: SlurmMachine,
    run: RunState,
    settings: SlurmSettings,
    job: int,
    last: int,
    preemption: SlurmPreemption,
) -> None:
    """Stop the candidates up to a last one that have marked nodes; not so soon after others were stopped for it."""
    now, count = run.state[NOW], 0
    if preemption.last_stopping[jobs.first[job]] > now - _PATIENCE:
        return
    preemption.last_stopping[jobs.first[job]] = now
    # Those that are stopped leave the list of the running ones, so that places are no longer theirs.
    for index in range(last + 1):
        other = run.running[preemption.candidate[index]]
        if count_marked(run, other, preemption) > 0:
            preemption.candidate[count] = other
            count += 1
    for index in range(count):
        _stop(jobs, machine, run, settings, preemption.candidate[index], preemption)
    blocks = run.blocks
    for block in range(blocks.size[BLOCKS]):
        blocks.free[block] = run.free[blocks.first[block]]
    blocks.size[LISTED] = 0


@step
def _stop(
    jobs: SlurmJobs,
    machine: SlurmMachine,
    run: RunState,
    settings: SlurmSettings,
    job: int,
    preemption: SlurmPreemption,
) -> None:
    """Stop a job, or let its grace time begin: it then runs on until the next look at limits after that."""
    now, grace = run.state[NOW], preemption.grace[preemption.kind[job]]
    if preemption.until[job] < NOT_SOON:
        if now < believed_end(jobs, run, job, preemption):
            return
    elif grace > 0:
        preemption.until[job] = now + grace
        _move_up(jobs, run, job, preemption)
        end = check_after(settings, max(believed_end(jobs, run, job, preemption), now + 1))
        if end < run.end[job]:
            run.end[job] = preemption.stopped_at[job] = end
            tell_rows(jobs, run, job)
            push_end(run.heap, end, job)
        return
    _stop_now(jobs, machine, run, settings, job, max(settings.turn_round, 1), preemption)


@inlined
def _move_up(jobs: SlurmJobs, run: RunState, job: int, preemption: SlurmPreemption) -> None:
    """Put a running job that now ends sooner into its place among the others."""
    position, believed = 0, believed_end(jobs, run, job, preemption)
    while run.running[position] != job:
        position += 1
    while position > 0:
        other = run.running[position - 1]
        end = believed_end(jobs, run, other, preemption)
        if end < believed or (end == believed and jobs.number[other] < jobs.number[job]):
            break
        run.running[position] = other
        position -= 1
    run.running[position] = job


@step
def stop_late(
    jobs: SlurmJobs,
    machine: SlurmMachine,
    run: RunState,
    settings: SlurmSettings,
    job: int,
    preemption: SlurmPreemption | None,
) -> bool:
    """Stop a running job whose time it is if its grace time has ended; tell whether it has."""
    if preemption is not None:
        if preemption.stopped_at[job] != run.state[NOW]:
            return False
        _stop_now(jobs, machine, run, settings, job, settings.turn_round, preemption)
        return True
    return False


@step
def _stop_now(
    jobs: SlurmJobs,
    machine: SlurmMachine,
    run: RunState,
    settings: SlurmSettings,
    job: int,
    turn_round: int,
    preemption: SlurmPreemption,
) -> None:
    """Take a job from its nodes, which are free after the turn-round; it has ended, or goes back into the queue."""
    state, weights, shares, now = run.state, preemption.weights, preemption.shares, run.state[NOW]
    if weights.tail:
        add_usage(jobs, machine, run, weights, shares, job, state[CALCULATED])
    preemption.stopped[jobs.first[job]] += 1
    preemption.lost[jobs.first[job]] += run.held_count[job] * (now - run.start[job])
    for entry in range(run.held_from[job], run.held_from[job] + run.held_count[job]):
        if turn_round == 0:
            state[DUE] = 1
            continue
        slot = (state[LEFT] + state[LEAVING]) % len(run.leaving)
        run.leaving[slot, 0], run.leaving[slot, 1] = now + turn_round, run.held_node[entry]
        run.completing[run.held_node[entry]] += 1
        state[LEAVING] += 1
    give_back(jobs, machine, run, job)
    _forget_ends(run, job)
    forget_grace(job, preemption)
    if preemption.outcome[preemption.kind[job]] == IS_CANCELLED:
        run.end[job] = now
        tell_rows(jobs, run, job)
        let_go(jobs, run, weights, job, now + turn_round)
        return
    put_back(jobs, run, settings, weights, shares, job, now + turn_round)
    row = jobs.first[job]
    while row >= 0:
        preemption.back[row] = now
        row = jobs.other[row]


@step
def put_back(
    jobs: SlurmJobs,
    run: RunState,
    settings: SlurmSettings,
    weights: PriorityWeights,
    shares: FairShares | None,
    job: int,
    submitted: int,
) -> None:
    """Put a job that has left its nodes back into the queue, as if it were submitted at a time."""
    row = jobs.first[job]
    run.seen_processors[row] = 0
    while row >= 0:
        run.start[row] = run.end[row] = -1
        run.by[row] = run.seen[row] = 0
        if settings.version >= SETS_ANEW:
            run.priority[row] = new_priority(jobs, run, weights, shares, row, run.state[NOW])
        # Without priorities that are calculated, the order of submission is what it keeps.
        if settings.version >= SETS_ANEW or settings.calculation > 0:
            run.submit[row] = submitted
        run.ready[row] = submitted + settings.requeue_delay
        push_end(run.heap, run.ready[row], len(jobs.ready) + row)
        run.state[ASIDE] += 1
        row = jobs.other[row]


@inlined
def forget_grace(job: int, preemption: SlurmPreemption | None) -> None:
    """Forget the grace time of a job that has left its nodes."""
    if preemption is not None:
        preemption.until[job], preemption.stopped_at[job] = NOT_SOON, -1


@step
def _forget_ends(run: RunState, job: int) -> None:
    """Take a job off the heap of ends."""
    heap, hole = run.heap, 1
    while hole <= heap[END, 0]:
        if heap[JOB, hole] != job:
            hole += 1
            continue
        # It goes up to the top, and from there off.
        while hole > 1:
            heap[END, hole], heap[JOB, hole] = heap[END, hole >> 1], heap[JOB, hole >> 1]
            hole >>= 1
        pop_end(heap)


@step
def let_go(jobs: SlurmJobs, run: RunState, weights: PriorityWeights, job: int, time: int) -> None:
    """Let the jobs that waited for the end of another start from a time on: when its nodes are free again."""
    first = jobs.first[job]
    other = run.dependent[first]
    while other >= 0:
        release(jobs, run, weights, other, time)
        other = run.sibling[other]
    run.dependent[first] = -1


@step
def release(jobs: SlurmJobs, run: RunState, weights: PriorityWeights, job: int, time: int) -> None:
    """Let a job that waited for another, or would have, start from a time on."""
    # With ACCRUE_ALWAYS a pass looks at those that wait for another, too.
    seen = weights.from_submission and max(run.state[MAIN], run.state[PASSED]) >= run.submit[job]
    run.seen[job] = seen + RELEASED * (run.ready[job] <= time)
    run.ready[job] = max(run.ready[job], time)
    push_end(run.heap, run.ready[job], len(jobs.ready) + job)


@inlined
def known_since(run: RunState, settings: SlurmSettings, job: int, preemption: SlurmPreemption | None) -> int:
    """Return since when a job has been in the queue or aside, so that its priority is calculated."""
    since = run.submit[job]
    if preemption is not None and preemption.back[job] >= since - max(settings.turn_round, 1):
        since = min(since, preemption.back[job])
    return int(since)


# The order of the queue -----------------------------------------------------------------------------------------------


@step
def order_queue(jobs: SlurmJobs, machine: SlurmMachine, run: RunState, preemption: SlurmPreemption | None) -> None:
    """Note who is in the queue, and put it into the order in which Slurm looks at it where jobs go before others.

    That they go before those that they may have stopped makes no order by itself, so that the way of
    sorting decides: merging halves, as glibc's qsort does, from the order of the jobs' numbers on.
    """
    if preemption is not None:
        for position in range(run.state[WAITING]):
            job = run.waiting[position]
            preemption.absent[job] = is_passed_over(jobs, run.limits, run.start, job)
        if not preemption.sorts:
            return
        waiting, count = run.waiting, 0
        # Those that are not looked at are not sorted.
        for position in range(run.state[WAITING]):
            job = waiting[position]
            reservation = jobs.reservation[job]
            if machine.closed[jobs.partition[job]] == 1 or is_passed_over(jobs, run.limits, run.start, job):
                continue
            if reservation >= 0 and not is_open(machine, reservation, run.state[NOW]):
                continue
            waiting[position], waiting[count] = waiting[count], job
            count += 1
        _merge_sort(jobs, machine, run, preemption, count, True)
        _merge_sort(jobs, machine, run, preemption, count, False)


@inlined
def is_absent(jobs: SlurmJobs, run: RunState, job: int, preemption: SlurmPreemption | None) -> bool:
    """Tell whether as many tasks of a job's array run as may, or did when the pass began."""
    if preemption is not None and preemption.absent[job] == 1:
        return True
    return bool(is_passed_over(jobs, run.limits, run.start, job))


@step
def _merge_sort(
    jobs: SlurmJobs,
    machine: SlurmMachine,
    run: RunState,
    preemption: SlurmPreemption,
    count: int,
    by_number: bool,  # noqa: FBT001 (kernels have no keyword-only arguments)
) -> None:
    """Sort the first jobs of the queue by merging halves."""
    stack, depth = preemption.stack, 0
    stack[0, 0], stack[0, 1], stack[0, 2] = 0, count, 0
    while depth >= 0:
        low, size, half = stack[depth, 0], stack[depth, 1], stack[depth, 1] // 2
        sorted_halves = stack[depth, 2]
        if size < 2:
            depth -= 1
        elif sorted_halves < 2:
            stack[depth, 2] += 1
            depth += 1
            stack[depth, 0] = low + half * sorted_halves
            stack[depth, 1] = size - half if sorted_halves == 1 else half
            stack[depth, 2] = 0
        else:
            _merge(jobs, machine, run, preemption, low, half, size, by_number)
            depth -= 1


@step
def _merge(
    jobs: SlurmJobs,
    machine: SlurmMachine,
    run: RunState,
    preemption: SlurmPreemption,
    low: int,
    half: int,
    size: int,
    by_number: bool,  # noqa: FBT001 (kernels have no keyword-only arguments)
) -> None:
    """Merge two parts of the queue that follow each other."""
    waiting, merged, first, second = run.waiting, preemption.merged, low, low + half
    for index in range(size):
        if second == low + size:
            from_second = False
        elif first == low + half:
            from_second = True
        else:
            from_second = _is_before(jobs, machine, run, preemption, waiting[second], waiting[first], by_number)
        merged[index] = waiting[second if from_second else first]
        second, first = second + from_second, first + (not from_second)
    for index in range(size):
        waiting[low + index] = merged[index]


@step
def _is_before(
    jobs: SlurmJobs,
    machine: SlurmMachine,
    run: RunState,
    preemption: SlurmPreemption,
    job: int,
    other: int,
    by_number: bool,  # noqa: FBT001 (kernels have no keyword-only arguments)
) -> bool:
    """Tell whether a job is before another in the queue, or has the lower number."""
    if by_number:
        return bool(jobs.number[job] < jobs.number[other])
    kind, others = preemption.kind[job], preemption.kind[other]
    if kind >= 0 and others >= 0:
        if preemption.goes_before[kind, others] == 1:
            return True
        if preemption.goes_before[others, kind] == 1:
            return False
    return bool(is_ahead(jobs, machine, run, job, other))
