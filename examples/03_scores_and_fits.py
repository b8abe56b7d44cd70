# %% [markdown]
# # Scores and fits
#
# A score says what it costs the others when a job runs first: it comes from thousands of random orders of a small
# queue. Use a few hundred tuples and `output="scores.csv"` for a real result; an interrupted run then goes on where
# it stopped.

# %%
import policyfactory as pf

log = pf.default_workload()
scores = pf.generate(log, tuples=40, trials=2_560)
scores

# %%
print(scores.frame().head())
picture = scores.plot()

# %% [markdown]
# The 576 forms of the SC'17 paper, fitted exactly and ranked.

# %%
fits = pf.fit(scores, family="forms", bootstrap=50)
print(fits.frame().head(5)[["name", "mae", "held_out"]])
print(fits.summary())

# %% [markdown]
# The best one in full: its coefficients, how sure they are, and what speaks against it.

# %%
best = fits[0]
print(best.summary())
print(best.priority(p=60, q=4, r=10), best.priority(p=3600, q=64, r=10))

# %% [markdown]
# A form of your own, with named coefficients.

# %%
mine = pf.fit(scores, family="a*p**b*q + c*log10(r)", bootstrap=50)[0]
print(mine, mine.policy.formula)

# %% [markdown]
# A fit is a policy.

# %%
print(pf.simulate(log[:5000], best).summary())
