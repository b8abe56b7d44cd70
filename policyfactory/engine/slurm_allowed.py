"""Which nodes a job may use from a time on: those of its partition that are up, and what reservations leave of them.

The rules are those of the reservations of Slurm 22.05, found in their source.
"""

from __future__ import annotations

from policyfactory.core.arrays import UInt8Array
from policyfactory.core.jit import inlined, step
from policyfactory.engine.slurm_blocks import BLOCKS, WORD, WORDS, Blocks
from policyfactory.engine.slurm_jobs import Jobs, Machine, Settings
from policyfactory.engine.slurm_state import HORIZON, NOW, Run

__all__ = ["after_reservations", "allow", "allow_members", "is_open"]

# How often a maintenance of the whole partition is waited for.
_TRIES = 10


@step
def allow(jobs: Jobs, machine: Machine, run: Run, job: int, begin: int, allowed: UInt8Array) -> tuple[int, bool]:
    """Fill in which blocks a job may use from a time on, by its partition and the reservations.

    Parameters
    ----------
    jobs : Jobs
    machine : Machine
    run : Run
    job, begin : int
        Its number; seconds.
    allowed : uint8 array (N,)
        Filled in.

    Returns
    -------
    begin : int
        Later than given if a maintenance of the whole partition is to be waited for; -1 if the job is not to be
        planned now.
    overlaps : bool
        Whether a reservation takes nodes of the partition away.
    """
    partition, blocks = machine.partition[jobs.partition[job]], run.blocks
    own = jobs.reservation[job]
    overlaps = False
    for _ in range(_TRIES):
        whole = -1
        allow_members(blocks, run.up, partition, allowed)
        if own >= 0:
            if begin < machine.reservation[own, 0] or begin > machine.reservation[own, 1]:
                return -1, False
            run.state[HORIZON] = min(run.state[HORIZON], machine.reservation[own, 1] + 1)
            for block in range(blocks.size[BLOCKS]):
                allowed[block] &= machine.reserved[own, blocks.first[block]]
        for other in range(len(machine.reservation)):
            begins, ends = machine.reservation[other, 0], machine.reservation[other, 1]
            if other != own and begins >= begin + jobs.limit[job] and begin == run.state[NOW]:
                run.state[HORIZON] = min(run.state[HORIZON], begins - jobs.limit[job] + 1)
            if other == own or begins >= begin + jobs.limit[job] or ends <= begin:
                continue
            if machine.reservation[other, 2] > run.state[NOW]:
                continue
            inside = overlap = 0
            for block in range(blocks.size[BLOCKS]):
                node = blocks.first[block]
                inside += partition[node] > machine.reserved[other, node]
                overlap += (partition[node] if own < 0 else allowed[block]) & machine.reserved[other, node]
                allowed[block] &= 1 - machine.reserved[other, node]
            if inside == 0 and machine.reservation[other, 3] == 1 and own < 0:
                whole = other
                break
            overlaps = overlaps or overlap > 0
        if whole < 0:
            return begin, overlaps
        begin = machine.reservation[whole, 1]
    return -1, False


@inlined
def is_open(machine: Machine, reservation: int, now: int) -> bool:
    """Tell whether jobs can start in a reservation at this time."""
    begin = max(machine.reservation[reservation, 0], machine.reservation[reservation, 2])
    return bool(begin <= now < machine.reservation[reservation, 1])


@inlined
def allow_members(blocks: Blocks, up: UInt8Array, members: UInt8Array, allowed: UInt8Array) -> None:
    """Fill in a mask with the blocks of some nodes that are up; it is 0 up to a whole word of bits."""
    for block in range(blocks.size[BLOCKS]):
        allowed[block] = up[blocks.first[block]] & members[blocks.first[block]]
    for block in range(blocks.size[BLOCKS], WORD * blocks.size[WORDS]):
        allowed[block] = 0


@inlined
def after_reservations(machine: Machine, settings: Settings, now: int, begin: int, later: int) -> int:
    """Return when to try again where reservations take nodes away: when the next one ends, if that is before."""
    end, resolution = 0, settings.resolution
    for other in range(len(machine.reservation)):
        if machine.reservation[other, 2] > now or machine.reservation[other, 1] <= now:
            continue
        if begin <= machine.reservation[other, 1] and (end == 0 or machine.reservation[other, 1] < end):
            end = machine.reservation[other, 1]
    free_again = (end + resolution - 1) // resolution * resolution + 1
    window_end = (now + settings.window) // resolution * resolution
    return int(free_again if 1 < free_again < window_end and (later == 0 or free_again < later) else later)
