# %% [markdown]
# # Simulate and compare
#
# A policy is a formula by which the queue is sorted; lower runs first. The scheduler is EASY backfilling unless you
# say otherwise.

# %%
import pandas as pd

import policyfactory as pf

log = pf.default_workload()[:5000]
schedule = pf.simulate(log, "SAF", threshold="20h")
print(schedule.summary())

# %% [markdown]
# Each job's wait and bounded slowdown are arrays; the whole schedule is a table.

# %%
print(schedule.wait.max(), schedule.bounded_slowdown.mean())
print(schedule.frame().sort_values("wait").tail(3)[["job_id", "processors", "run_time", "wait"]])

# %% [markdown]
# The classical policies side by side, with and without backfilling.

# %%
rows = []
for policy in ("FCFS", "SPF", "SAF", "F1", "WFP3"):
    for backfill in ("none", "easy", "conservative"):
        run = pf.simulate(log, policy, backfill=backfill)
        rows.append({"policy": policy, "backfill": backfill} | pf.measure(run, ["mean_bsld", "max_wait"]))
table = pd.DataFrame(rows).pivot_table("mean_bsld", "policy", "backfill")
print(table.round(1))

# %% [markdown]
# A Gantt chart of two days: a colour for each of the users with most work, hatched where a job was backfilled.

# %%
picture = schedule.plot(start="1d", length="2d")
