"""In what Slurm's rules differ from version to version: the passes ask here, and nowhere else.

Each name is the first version whose rules are simulated that has a rule; above it stands where Slurm 24.11.5 has it
and, where its release notes (NEWS) tell, since when. All other rules are those of 22.05, and have stayed.
"""

from __future__ import annotations

# The end of what is planned is rounded up to bf_resolution; before, down.
# sched/backfill, _set_slot_time and _bf_reserve_running; 24.05.4.
ROUNDS_UP = 2411
# From a start in the future on: running jobs that end before it are gone, and none is waited for that ends after the
# next look. Before, all were looked at from now on. sched/backfill, will_run_data; select/cons_tres, _future_run_test;
# 24.11.0.
LOOKS_FROM_START = 2411
# Nodes that are planned for others are looked for from the start that was found on, before anything else is asked.
# Before, a start after the next look came first. sched/backfill, _attempt_backfill (overlap_tested); 24.11.0.
CONFLICTS_FIRST = 2411
# Where the plan has two more records after the job's end, it is looked again from the end of the first of them on.
# sched/backfill, _attempt_backfill (node_space[next].next); 24.11.0.
LOOKS_PAST_END = 2411
# Nodes that are too small are left out before nodes are counted: a job without enough of them does not count as
# tried. sched/backfill, _attempt_backfill (job_req_node_filter).
SMALL_FIRST = 2411
# Nothing is looked for from after the end of the window on. sched/backfill, _attempt_backfill; 23.11.2.
STAYS_IN_WINDOW = 2411
# Nodes are chosen among free cores alone. Before, a job was first tried as if no core were in use, and had to find a
# place then, too. select/cons_tres, _job_test ("test 0 skipped").
SKIPS_IDLE = 2411
# A node offers a job without GPUs no more cores than it asks for of each (--ntasks-per-node): they all look alike.
# Before, it offered all that were free. select/cons_tres, _allocate_sc; 24.05.0.
OFFERS_TASKS = 2411
# Of an array of which only so many tasks may run no more are planned than may start beside those that run. Before, up
# to 20 were. sched/backfill, _attempt_backfill (max_run_tasks).
COUNTS_RUNNING = 2411
# A job that is put back into the queue has a new priority, without age; under priority/basic it stands behind all that
# came before. Until then it kept its priority for the next calculation, and under priority/basic its place.
# slurmctld/job_mgr.c, batch_requeue_fini; 24.05.5.
SETS_ANEW = 2411
# A job for one node takes the first one, of the lightest, on which it can run. Before, the best fit in the best run of
# nodes. Seen in the log of 26.05.5: select/cons_tres, _get_one_res.
TAKES_FIRST = 2605
# A job starts when the last of those has ended that were let end on its nodes. Before, when the last of all had that
# were let end at once. Seen in the plans of 26.05.5: select/cons_tres, _future_run_test.
ENDS_THERE = 2605
# Where it is looked from a second on, jobs that end at it are gone, too; before, only those that end before it. Seen in
# the plans of 26.05.5: select/cons_tres, _build_cr_job_list.
GONE_AT_START = 2605
# Each look for a start weighs nodes anew. Before, what one found of GPUs changed the weights of those after it, which
# is not simulated. A plan for now prefers nodes where nothing is being cleaned up. select/cons_tres, _set_sched_weight.
WEIGHS_ANEW = 2411
