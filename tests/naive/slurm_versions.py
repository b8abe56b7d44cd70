"""In what Slurm's rules differ from version to version: the plain Slurm asks here, and nowhere else.

Each rule is followed by where Slurm 24.11.5 has it and, where its release notes (NEWS) tell, since when.
"""

from __future__ import annotations

import dataclasses

from policyfactory.site.model import Site

__all__ = ["Versioned", "versioned"]


@dataclasses.dataclass(frozen=True)
class Versioned:
    """Which of the rules that changed after 22.05 hold."""

    # The end of what is planned is rounded up to bf_resolution, not down.
    # sched/backfill, _set_slot_time and _bf_reserve_running; 24.05.4.
    rounds_up: bool
    # From a start in the future on: running jobs that end before it are gone, and none is waited for that ends after
    # the next look. sched/backfill, will_run_data; select/cons_tres/job_test.c, _future_run_test; 24.11.0.
    looks_from_start: bool
    # Whether the nodes found are planned for others is asked before whether to look again.
    # sched/backfill, _attempt_backfill (overlap_tested); 24.11.0.
    conflicts_first: bool
    # Where the plan has rows after the job's end, it is looked again from the end of the first of them.
    # sched/backfill, _attempt_backfill (node_space[next].next); 24.11.0.
    looks_past_end: bool
    # Nodes that are too small are left out before the nodes that are left are counted: a job without enough of them
    # does not count as tried. sched/backfill, _attempt_backfill (job_req_node_filter).
    small_first: bool
    # Nothing is looked for from after the end of the window on. sched/backfill, _attempt_backfill; 23.11.2.
    stays_in_window: bool
    # A job is not tried on idle cores first. select/cons_tres/job_test.c, _job_test ("test 0 skipped").
    skips_idle: bool
    # Each look for a start forgets what others found of GPUs, and one for now prefers nodes where nothing is being
    # cleaned up. select/cons_tres/job_test.c, _set_sched_weight.
    weighs_anew: bool
    # A node offers a job without GPUs no more cores than it asks for of each (--ntasks-per-node). Before, all that were
    # free. select/cons_tres/job_test.c, _allocate_sc; 24.05.0.
    offers_tasks: bool
    # Of an array of which only so many tasks may run no more are planned than may start beside those that run. Before,
    # up to 20 were. sched/backfill, _attempt_backfill (max_run_tasks).
    counts_running: bool
    # A job that is put back into the queue has a new priority then. Before, it kept what it had.
    # slurmctld/job_mgr.c, batch_requeue_fini; 24.05.5.
    sets_anew: bool
    # A job for one node gets the first one, of the lightest, on which it can run. Seen in the log of 26.05.5:
    # select/cons_tres, _get_one_res.
    takes_first: bool
    # A job starts when the last of those ends that were let end on its nodes. Before, when the last of all ended that
    # were let end at once. Seen in the plans of 26.05.5: select/cons_tres, _future_run_test.
    ends_there: bool
    # Where it is looked from a second on, jobs that end at it are gone, too; before, only those that end before it.
    # Seen in the plans of 26.05.5: select/cons_tres, _build_cr_job_list.
    gone_at_start: bool
    # AllowAccounts of a partition names the accounts below, too. slurm.conf(5) of 24.11.5.
    asks_above: bool


_ALL = Versioned(**{field.name: True for field in dataclasses.fields(Versioned)})
_VERSIONS = {
    "22.05": Versioned(**{field.name: False for field in dataclasses.fields(Versioned)}),
    "24.11": dataclasses.replace(_ALL, takes_first=False, ends_there=False, gone_at_start=False),
    "26.05": _ALL,
}


def versioned(site: Site) -> Versioned:
    """Return the rules of the site's version of Slurm."""
    return _VERSIONS[site.scheduling.rules_version]
