# %% [markdown]
# # A policy of your own
#
# A formula in p (requested seconds), q (processors), r (submit time), w (time waited) and m (processors of the
# machine) is a policy that everything else understands: simulation, evaluation, and export to a scheduler.

# %%
import policyfactory as pf

log = pf.default_workload()[:5000]
formula = pf.Policy("MINE", "p*q / (1 + w)")
print(pf.measure(pf.simulate(log, formula), ["mean_bsld"]))

# %% [markdown]
# Any Python function of the jobs is a policy, too, as long as a job's score does not change while it waits. It is
# called with the columns of all jobs, and not job by job.

# %%
import numpy as np


def short_and_narrow(job):
    """Small jobs first, in classes of a factor of two; the day's order within a class."""
    return np.floor(np.log2(job.p * job.q)) + job.r / job.r.max()


function = pf.Policy.from_function(short_and_narrow)
print(pf.measure(pf.simulate(log, function), ["mean_bsld"]))

# %% [markdown]
# So is a fitted estimator of scikit-learn: here a forest that learned the scores of jobs.

# %%
from sklearn.ensemble import RandomForestRegressor

scores = pf.generate(log, tuples=40, trials=2_560)
table = scores.frame()
forest = RandomForestRegressor(n_estimators=20, min_samples_leaf=5, random_state=1).fit(
    table[["p", "q"]], table["score"]
)
learned = pf.Policy.from_function(forest, "FOREST", features=("p", "q"))
print(pf.measure(pf.simulate(log, learned), ["mean_bsld"]))

# %% [markdown]
# A function has no formula: it cannot be exported, and says so. What it found can guide a formula that can.

# %%
try:
    pf.save_model(pf.Model(learned), "forest.json")
except pf.PolicyfactoryError as error:
    print(error)
fit = pf.fit(scores, "a*p*q + b*q", bootstrap=0)[0]
print(fit.policy.formula, pf.measure(pf.simulate(log, fit), ["mean_bsld"]))
