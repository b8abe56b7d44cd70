# %% [markdown]
# # Evaluate honestly
#
# One schedule says little: which policy wins changes from fortnight to fortnight. So all of them run on the same
# windows of the log, and the differences are compared pair by pair.

# %%
import policyfactory as pf

log = pf.default_workload()
largest = pf.Policy.from_function(lambda job: -job.p * job.q, name="LARGEST")
result = pf.evaluate(log, ["FCFS", "SPF", "SAF", largest], windows="8x7d", metrics=["mean_bsld", "max_wait"])
result

# %% [markdown]
# The conclusion in words, and the verdict on each policy against the first. Eight windows do not prove everything.

# %%
print(result.summary())
for row in result.comparisons:
    print(f"{row.metric:10} {row.policy:8} {row.difference:12.1f}  {row.verdict}")

# %% [markdown]
# One value for each window, policy and metric is a table of pandas, and a picture.

# %%
values = result.frame()
print(values[values["metric"] == "mean_bsld"].pivot_table("value", "case", "policy").round(1))
picture = result.plot("mean_bsld")

# %% [markdown]
# `result.report("folder")` writes the whole report with its tables and pictures.
