"""Slurm's scheduler, plainly, from the rules of Slurm 22.05.

Written to be read, not to be fast: passes look at everything again. Whole seconds on a Unix clock. What is idealised:
a pass takes no time; the controller's clock ticks at whole seconds; what happens within one second happens in the
order of `Simulation.second`. A job that runs for less than a second counts as one of a second.

The rules are in slurm_jobs (what a job asks for), slurm_nodes (placing, and when running jobs make room), slurm_passes
(the main pass), slurm_backfill, slurm_priority and slurm_limits; here is what happens when.
"""

from __future__ import annotations

import dataclasses
import heapq
import math
from collections.abc import Iterable, Mapping, Sequence

from naive.slurm_backfill import Backfill
from naive.slurm_defaults import has_default_memory, with_defaults
from naive.slurm_jobs import Entry, Job, demand_of, limit_of
from naive.slurm_passes import Controller
from naive.slurm_versions import versioned
from policyfactory.site.model import Outage, Site

__all__ = ["Job", "Placed", "Running", "State", "Waiting", "simulate", "wanted_now"]

LIMIT_CHECK = 30  # seconds between two looks at the limits of running jobs
CREDENTIAL_LIFE = 120
PATIENCE = 30  # times as long a queue is watched in which nothing starts, if priorities change
PROCESSED = ("cancel", "end", "ended", "free", "outage", "reservation", "submit")


@dataclasses.dataclass(frozen=True)
class Placed:
    """What became of a job; its last run, if nodes failed under it. Nothing of one that never started."""

    start: int = -1
    end: int = -1
    nodes: tuple[int, ...] = ()
    by: str = ""  # main, backfill
    requeues: int = 0
    preempted: int = 0  # how often it was stopped for others
    lost: int = 0  # node seconds of the runs that were stopped


class Simulation:
    """A site from its controller's start until no job is left that could start."""

    def __init__(
        self, site: Site, jobs: Sequence[Job], *, begin: int | None = None, turnround: int | Mapping[int, int] = 0
    ) -> None:
        self.c = Controller(site)
        # A log that says the memory of no job does not say either that they ask for none.
        said = any(job.memory >= 0 for job in jobs)
        self.c.nodes.takes_memory &= said or has_default_memory(site)
        self.silent = bool(jobs) and not said
        self.c.stop = self._stop
        self.site, self.settings = site, site.scheduling
        self.turnround = turnround if isinstance(turnround, Mapping) else {job.id: turnround for job in jobs}
        self.origin = min((job.submit for job in jobs), default=0) if begin is None else begin
        self.entries: dict[int, Entry] = {}
        self.events: list[tuple[int, int, int, object]] = []
        self.told = 0  # events so far: those of one kind and moment keep their order
        for job in jobs:
            self._at(job.submit, "submit", job)
            if job.cancelled >= 0:
                self._at(job.cancelled, "cancel", job)
        for outage in site.outages:
            self._at(math.ceil(outage.start), "outage", (outage, True))
            if not math.isinf(outage.end):
                self._at(math.ceil(outage.end), "outage", (outage, False))
        for one in site.reservations:
            known = self.origin if math.isinf(one.known) else math.ceil(one.known)
            for time, what in ((known, "known"), (math.ceil(one.start), "begins"), (math.ceil(one.end), "ends")):
                self._at(max(time, self.origin), "reservation", (one, what))
        self.out: dict[int, list[Outage]] = {}
        self.last_full = self.last_pass = self.last_backfill = self.origin
        self.c.changed = self.origin
        self.requested = False
        self.stir = self.origin  # when something last happened that is not a pass

    def _at(self, time: int, kind: str, what: object) -> None:
        self.told += 1
        heapq.heappush(self.events, (max(time, self.origin), PROCESSED.index(kind), self.told, what))

    def run(self) -> dict[int, Placed]:
        """Return what became of each job, by id."""
        self.c.now = self.origin
        self.c.priorities.calculate(self.origin, [], [])
        self.next_calculation = self.origin + int(self.site.priority.calculation_period)
        while (time := self._next()) is not None:
            self.second(time)
        return {id_: self._placed(entry) for id_, entry in self.entries.items()}

    def _placed(self, entry: Entry) -> Placed:
        if entry.start < 0:
            return Placed(requeues=entry.requeues, preempted=entry.preempted, lost=entry.lost)
        nodes = tuple(sorted(self.c.nodes.number[i] for i in entry.allocation))
        return Placed(entry.start, entry.end, nodes, entry.started_by, entry.requeues, entry.preempted, entry.lost)

    def _next(self) -> int | None:
        """Return the next second in which something happens; None if nothing can start any more."""
        times = [self.events[0][0]] if self.events else []
        begins = [entry.begin for entry in self.c.pending if entry.begin > self.c.now]
        if not self.c.pending and not times:
            return None
        quiet = 2 * max(self.settings.sched_interval, self.settings.bf_interval, self.settings.batch_sched_delay) + 60
        if self.site.priority.kind == "multifactor":
            quiet *= PATIENCE  # their order changes, and with it whom a pass reaches
        if not times and not begins and not self.c.running and self.c.now > self.stir + quiet:
            return None
        times.append(self.next_calculation)
        if self.c.pending:
            times.append(self.last_full + int(self.settings.sched_interval))
            if self.requested:
                times.append(self.last_pass + int(self.settings.batch_sched_delay))
        if self.settings.backfill and self._more_work():
            times.append(self.last_backfill + int(self.settings.bf_interval))
        return max(min(times), self.c.now)

    def second(self, now: int) -> None:
        """Ends, then nodes and reservations, submissions, priorities, one main pass, one backfilling pass."""
        self.c.now = now
        # A pass that was asked for and found an empty queue.
        asked_for = self.last_pass + int(self.settings.batch_sched_delay)
        if self.requested and asked_for < min(now, self.last_full + int(self.settings.sched_interval)):
            self.last_pass, self.requested = asked_for, False
        finished = False
        while self.events and self.events[0][0] <= now:
            _, kind, _, what = heapq.heappop(self.events)
            if PROCESSED[kind] == "end" and (what[0] not in self.c.running or what[0].start != what[1]):
                continue  # its node failed before
            if PROCESSED[kind] == "ended":  # its nodes are clean, so that what waits for it may start
                self.c.ended.add(what)
                continue
            if PROCESSED[kind] == "cancel":
                self.stir = now
                self._cancel(what)
                continue
            self.stir = self.c.changed = now
            finished |= getattr(self, f"_{PROCESSED[kind]}")(what)
        while self.next_calculation <= now:
            self._calculate()
        full, interval = False, int(self.settings.sched_interval)
        # Those before this second found nothing to do.
        while self.last_full + interval <= now:
            self.last_full = self.last_pass = self.last_full + interval
            full = self.last_full == now
        self.requested &= not full
        asked = self.requested and now - self.last_pass >= self.settings.batch_sched_delay
        if asked and not full:
            self.last_pass, self.requested = now, False
        if full or asked or finished:
            self._started(self.c.main_pass(full=full))
        due = now - self.last_backfill >= self.settings.bf_interval
        if self.settings.backfill and due and self._more_work():
            self._started(Backfill(self.c).run())
            self.last_backfill = now

    def _more_work(self) -> bool:
        """Return whether backfilling could find anything new; while a reservation lasts, Slurm always says so."""
        now = self.c.now
        return self.c.changed >= self.last_backfill or any(one.start <= now < one.end for one in self.c.reservations)

    def _started(self, entries: Iterable[Entry]) -> None:
        for entry in entries:
            self.entries[entry.job.id] = entry
            if entry not in self.c.running:
                continue  # stopped for another in the pass that started it
            run = max(entry.job.run_time, 1)
            entry.end = min(entry.start + run, self._killed(entry))
            self._at(entry.end, "end", (entry, entry.start))

    def _killed(self, entry: Entry) -> float:
        """Return when the job is killed: at the first look at limits after it has used up its own."""
        over, end = self.settings.kill_overrun, math.inf
        if not math.isinf(over):
            end = self._look(entry.believed_end + int(over) // 60 * 60)
        mine = self.c.own_reservation(entry.job)
        return end if mine is None else min(end, self._look(math.floor(mine.end) + 1))

    def _look(self, time: int) -> int:
        return self.origin + max(-(-(time - self.origin) // LIMIT_CHECK), 1) * LIMIT_CHECK

    def _calculate(self) -> None:
        self.c.priorities.calculate(self.next_calculation, self.c.running, self.c.pending)
        # With priority/basic nothing is calculated.
        if self.site.priority.kind == "multifactor" and any(not entry.held for entry in self.c.pending):
            self.c.changed = self.next_calculation
        self.next_calculation += int(self.site.priority.calculation_period)

    # What happens. Each returns whether it makes slurmctld schedule at once.

    def entries_of(self, job: Job) -> list[Entry]:
        """Return the job in each of its partitions, by their tiers (priority_sort_part_tier)."""
        if not job.partitions:
            return [self.entry_of(job)]
        tiers = {name: self.c.partitions[name].tier for name in job.partitions}
        entries = [self.entry_of(job, name) for name in sorted(tiers, key=lambda name: -tiers[name])]
        for place, entry in enumerate(entries):
            entry.seen, entry.place = entries[0].seen, place
        return entries

    def entry_of(self, job: Job, name: str = "") -> Entry:
        """Return the job in one partition as the controller takes it."""
        c = self.c
        name = name or job.partition or c.default_partition()
        partition = c.partitions[name]
        most_gpus = max((c.nodes.gpus[i] for i in c.nodes.of_partition[name]), default=0)
        demand = demand_of(job, partition, self.settings, most_gpus)
        demand = with_defaults(demand, job, partition, self.settings, silent=self.silent)
        begin = max(job.submit, job.eligible)
        if job.after >= 0 and job.after in self.entries and job.after not in c.ended:
            begin = -1
        return Entry(job, partition, demand, limit_of(job, partition), c.rules.qos_of(job), job.submit, begin)

    def _submit(self, job: Job) -> bool:
        c = self.c
        entries = self.entries_of(job)
        self.entries[job.id] = entries[0]
        queued = [entry for entry in entries if self._may_submit(entry)]
        if not queued:
            c.ended.add(job.id)
            return False
        for number, entry in enumerate(queued):
            entry.others = [one for one in queued if one is not entry]
            if not number or self.site.priority.kind == "multifactor":
                c.priorities.at_submission(entry, c.now)
            entry.priority = entry.priority or queued[0].priority
        c.pending.extend(queued)
        self.requested = True
        return False

    def _cancel(self, job: Job) -> None:
        """Take a job out of the queue if it waits, for whatever."""
        if any(entry.job is job for entry in self.c.pending):
            self.c.pending = [entry for entry in self.c.pending if entry.job is not job]
            self.c.changed = self.c.now
            self.c.ended.add(job.id)

    def _may_submit(self, entry: Entry) -> bool:
        c, job = self.c, entry.job
        allowed = not c.rules.refused(job) and c.rules.may_submit(job, entry.partition, c.pending + c.running)
        return allowed and c.try_submission(entry)

    def _end(self, what: tuple[Entry, int]) -> bool:
        entry, _ = what
        if entry.stops_at == self.c.now:
            return self._stopped(entry, self.turnround[entry.job.id])
        self.c.running.remove(entry)
        self._at(self.c.now + self.turnround[entry.job.id], "ended", entry.job.id)
        self.c.priorities.finished(entry, self.c.now)
        return self._clean_up(entry, set(entry.allocation))

    def _clean_up(self, entry: Entry, nodes: set[int], turnround: int | None = None) -> bool:
        """Free the job's nodes, after the turn-round; return whether they are free at once."""
        self.c.use.add(entry, -1)
        turnround = self.turnround[entry.job.id] if turnround is None else turnround
        if not turnround or not nodes:
            return bool(nodes)
        for i in nodes:
            self.c.completing[i] = self.c.completing.get(i, 0) + 1
        self._at(self.c.now + turnround, "free", nodes)
        return False

    def _free(self, nodes: set[int]) -> bool:
        for i in nodes:
            self.c.completing[i] -= 1
            if not self.c.completing[i]:
                del self.c.completing[i]
        return True

    def _outage(self, what: tuple[Outage, bool]) -> bool:
        outage, begins = what
        nodes = self.c.nodes.named(self.site, outage.nodes)
        if not begins:
            for i in nodes:
                self.out[i].remove(outage)
            back = {i for i in nodes if not self.out[i]}
            self.c.available |= back
            self.requested |= bool(back)
            return False
        for i in nodes:
            self.out.setdefault(i, []).append(outage)
        self.c.available -= nodes
        finished = False
        if not outage.drained:
            hit = [one for one in self.c.running if nodes & set(one.allocation)]
            for entry in sorted(hit, key=lambda one: one.job.id):
                finished |= self._requeue(entry, nodes)
        return finished

    def _requeue(self, entry: Entry, failed: set[int]) -> bool:
        """Put a job whose node failed back into the queue: as if submitted now, eligible two minutes later."""
        c = self.c
        c.running.remove(entry)
        c.priorities.finished(entry, c.now)
        finished = self._clean_up(entry, set(entry.allocation) - failed)
        entry.requeues += 1
        self._put_back(entry, c.now)
        return finished

    def _put_back(self, entry: Entry, submitted: int) -> None:
        """Put a job that has left its nodes back into the queue, in each of its partitions."""
        calculated, anew = self.site.priority.kind == "multifactor", versioned(self.site).sets_anew
        entry.cores_seen = 0
        for one in (entry, *entry.others):
            if anew or calculated:  # without priorities, its place is by this
                one.submit = submitted
            one.begin, one.accrue = submitted + CREDENTIAL_LIFE + 1, -1
            one.start, one.end, one.allocation, one.started_by = -1, -1, {}, ""
            one.to_stop, one.stops_at = False, -1
            one.requeues, one.preempted, one.lost = entry.requeues, entry.preempted, entry.lost
            if anew and calculated:
                one.priority = self.c.priorities.priority(one, self.c.now)
            self.c.pending.append(one)

    def _stop(self, entry: Entry) -> None:
        """Stop a job for another, or let its grace time begin: it then runs on until the next look at limits after it.

        A job that is stopped in a pass leaves its nodes a second later at the soonest: as a pass takes no time here.
        """
        now, grace = self.c.now, self.c.preemption.grace(entry)
        if entry.to_stop:
            if now < entry.believed_end:
                return
        elif grace:
            entry.believed_end = min(entry.believed_end, now + grace)
            end = self._look(max(entry.believed_end, now + 1))
            entry.to_stop = True
            if end < entry.end:
                entry.end = entry.stops_at = end
                self._at(end, "end", (entry, entry.start))
            return
        self._stopped(entry, max(self.turnround.get(entry.job.id, 0), 1))

    def _stopped(self, entry: Entry, turnround: int) -> bool:
        """Take a job from its nodes; it has ended, or goes back into the queue."""
        c = self.c
        c.running.remove(entry)
        c.priorities.finished(entry, c.now)
        c.changed = c.now
        entry.preempted += 1
        entry.lost += len(entry.allocation) * (c.now - entry.start)
        free = self._clean_up(entry, set(entry.allocation), turnround)
        if c.preemption.mode(entry) == "cancel":
            entry.end = c.now
            self._at(c.now + turnround, "ended", entry.job.id)
            return free
        self._put_back(entry, c.now + turnround)
        return free

    def _reservation(self, what: tuple[object, str]) -> bool:
        one, event = what
        if event == "known" and one.end > self.c.now:
            self.c.reservations.append(one)
        elif event == "begins":
            self.requested = True
        elif event == "ends" and one in self.c.reservations:
            self.c.reservations.remove(one)
        return False


def simulate(
    site: Site, jobs: Sequence[Job], *, begin: int | None = None, turnround: int | Mapping[int, int] = 0
) -> dict[int, Placed]:
    """Return what becomes of each job on a site.

    Parameters
    ----------
    begin : int
        When slurmctld starts: its passes are counted from there; by default with the first submission.
    turnround : int or mapping of int to int
        Seconds from the end of a job until its nodes are free; of all jobs, or by their ids.
    """
    return Simulation(site, jobs, begin=begin, turnround=turnround).run()


@dataclasses.dataclass(frozen=True)
class Running:
    """A job that runs in a real cluster; nodes by their numbers in the site, with the cores that it has of each."""

    job: Job
    start: int
    cores: dict[int, int]


@dataclasses.dataclass(frozen=True)
class Waiting:
    """A job that waits in a real cluster, and since when it may start."""

    job: Job
    priority: int
    submit: int = -1
    begin: int = -1


@dataclasses.dataclass(frozen=True)
class State:
    """A real cluster at an instant."""

    now: int
    running: Sequence[Running]
    waiting: Sequence[Waiting]
    unavailable: frozenset[int] = frozenset()  # nodes that are down or drained
    completing: frozenset[int] = frozenset()  # nodes on which a job that has ended is being cleaned up
    by: str = ""  # the pass that is made: main or backfill; empty: both


def resume(site: Site, state: State) -> Simulation:
    """Return a simulation that stands where a real cluster stood: what runs has its nodes, what waits is queued."""
    simulation = Simulation(site, [], begin=state.now)
    c = simulation.c
    c.now = state.now
    c.reservations = [one for one in site.reservations if one.known <= state.now < one.end]
    c.available -= {c.nodes.inner[number] for number in state.unavailable}
    c.completing = {c.nodes.inner[number]: 1 for number in state.completing}
    for one in state.running:
        entry = simulation.entry_of(one.job)
        gpus, each = entry.demand.gpus, entry.demand
        entry.allocation = {
            c.nodes.inner[number]: (cores, each.memory or each.memory_per_core * cores, gpus)
            for number, cores in one.cores.items()
        }
        entry.start, entry.believed_end = one.start, one.start + entry.limit
        c.use.add(entry)
        c.running.append(entry)
    for one in state.waiting:
        entries = simulation.entries_of(one.job)
        for entry in entries:
            entry.others = [other for other in entries if other is not entry]
            c.pending.append(entry)
            entry.priority = one.priority
            entry.submit = one.submit if one.submit >= 0 else entry.submit
            entry.begin = one.begin if one.begin >= 0 else entry.submit
    return simulation


def wanted_now(site: Site, state: State) -> dict[int, tuple[str, frozenset[int]]]:
    """Return which jobs Slurm's rules start at this instant, in which pass (main or backfill) and on which nodes.

    A main pass over the whole queue, then a backfilling pass, or one of the two, whether or not it would be due.
    """
    c = resume(site, state).c
    number = c.nodes.number
    started = c.main_pass(full=True) if state.by != "backfill" else []
    if site.scheduling.backfill and state.by != "main":
        started += Backfill(c).run()
    return {one.job.id: (one.started_by, frozenset(number[i] for i in one.allocation)) for one in started}
