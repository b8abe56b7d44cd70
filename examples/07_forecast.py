# %% [markdown]
# # When will my job start?
#
# A forecast needs the log of the cluster up to now, its queue as squeue or scontrol print it, and, for Slurm's own
# rules, its site file. Here are made ones: the first 4,000 jobs of the workload of the package, scheduled by EASY.

# %%
import dataclasses
import json
from pathlib import Path
from tempfile import mkdtemp

import policyfactory as pf

log = dataclasses.replace(pf.default_workload()[:4000], unix_start=1_767_225_600)  # 2026-01-01
log = dataclasses.replace(log, start=pf.simulate(log, "FCFS").start)
now = log.unix_start + int((log.start + log.run_time).max()) + 600

# %% [markdown]
# `squeue --json` prints such a queue: two jobs run, and three wait.

# %%
running = {"job_state": ["RUNNING"], "start_time": now - 1800, "submit_time": now - 3600, "time_limit": 600}
waiting = {"job_state": ["PENDING"], "submit_time": now - 900}
jobs = [
    {"job_id": 1, "cpus": 100, "user_name": "ann", **running},
    {"job_id": 2, "cpus": 120, "user_name": "bob", **running},
    {"job_id": 3, "cpus": 128, "user_name": "ann", "time_limit": 720, **waiting},
    {"job_id": 4, "cpus": 64, "user_name": "eve", "time_limit": 60, **waiting},
    {"job_id": 5, "cpus": 16, "user_name": "eve", "time_limit": 30, **waiting},
]
queue = Path(mkdtemp()) / "queue.json"
queue.write_text(json.dumps({"jobs": [{"partition": "all", **job} for job in jobs], "last_update": now, "meta": {}}))
snapshot = pf.read_snapshot(queue)

# %% [markdown]
# Two hundred futures of the next day, and a table of what they say. Without a site file the rules are EASY's.

# %%
found = pf.forecast(snapshot, None, log, submit="-n 32 -t 2:00:00", user="eve")
print(found.frame()[["job", "user", "q0.05", "median", "q0.95", "within_hour"]])
picture = found.plot()

# %% [markdown]
# The last of them is not there yet (`submit`). What else could be asked for, in the same futures:

# %%
for other in found.alternatives:
    print(f"{other.words}: {other.earlier / 60:.0f} min earlier on average, {100 * other.sure:.0f} % sure")

# %% [markdown]
# How often such forecasts are right on a log of your own says `pf.backtest(log, "site.toml", instants=200)`.
