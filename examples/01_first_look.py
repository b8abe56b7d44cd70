# %% [markdown]
# # A first look at a log
#
# A workload is a table of rigid jobs and the machine that they run on. The package has one of its own, made by the
# model of Lublin and Feitelson; `pf.read("LOG.swf.gz")` reads yours.

# %%
import policyfactory as pf

log = pf.default_workload()
log

# %% [markdown]
# A log that was read says what was dropped and changed, and why; this one was made, and nothing was.

# %%
print(log.cleaning.summary())

# %% [markdown]
# It is a table of pandas where you want one. Times are in seconds.

# %%
frame = log.frame()
print(frame[["run_time", "requested_time", "processors"]].describe().round(0))

# %% [markdown]
# It is cut by number and by time. A log with a date in its header also takes `log.between("1996-10", "1996-12")`.

# %%
week = log.between("7d", "14d")
print(len(log[:1000]), len(week))

# %% [markdown]
# And back: any table with submit times, run times and processors is a workload.

# %%
wide = pf.Workload.from_frame(frame[frame["processors"] >= 8], processors=log.machine, name="wide jobs")
wide

# %%
picture = log.plot()
