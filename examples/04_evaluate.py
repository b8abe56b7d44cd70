# %% [markdown]
# # Evaluate honestly
#
# One schedule says little: which policy wins changes from fortnight to fortnight. So all of them run on the same
# windows of the log, and the differences are compared pair by pair.

# %%
import policyfactory as pf

log = pf.default_workload()
cases = pf.cases_of(log, windows="8x7d")
policies = [pf.resolve(name) for name in ("FCFS", "SPF", "SAF", "F1")]
experiment = pf.Experiment("four policies", tuple(cases), tuple(policies), metrics=("mean_bsld", "max_wait"))
outcome = pf.run_experiment(experiment)

# %% [markdown]
# One value for each window, policy and metric.

# %%
values = outcome.evaluation.frame()
print(values[values["metric"] == "mean_bsld"].pivot_table("value", "case", "policy").round(1))

# %% [markdown]
# Every other policy against the first, with an interval and a verdict: eight windows do not prove everything.

# %%
for row in outcome.comparisons:
    print(f"{row.metric:10} {row.policy:5} {row.difference:12.1f}  {row.verdict}")
