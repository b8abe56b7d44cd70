"""What qmgr and pbsnodes print of a small cluster, in the form that OpenPBS's guides show."""

from __future__ import annotations

__all__ = ["NODES", "SERVER"]

SERVER = """#
# Create queues and set their attributes.
#
create queue workq
set queue workq queue_type = Execution
set queue workq Priority = 10
set queue workq max_queued = [u:PBS_GENERIC=100]
set queue workq max_run = [o:PBS_ALL=200],[u:PBS_GENERIC=10]
set queue workq max_run += [u:eve=2]
set queue workq max_run_res.ncpus = [u:PBS_GENERIC=256]
set queue workq max_run_res.mem = [o:PBS_ALL=2tb]
set queue workq resources_max.walltime = 24:00:00
set queue workq resources_max.ncpus = 128
set queue workq resources_max.nodect = 4
set queue workq resources_min.ncpus = 2
set queue workq resources_default.walltime = 01:00:00
set queue workq enabled = True
set queue workq started = True
create queue gpu
set queue gpu queue_type = Execution
set queue gpu Priority = 200
set queue gpu resources_default.place = scatter:excl
set queue gpu started = False
create queue route
set queue route queue_type = Route
set queue route route_destinations = workq
#
# Set server attributes.
#
set server scheduling = True
set server default_queue = workq
set server resources_max.walltime = 48:00:00
set server resources_default.walltime = 7200
set server max_run = [u:PBS_GENERIC=20]
set server job_sort_formula = "ncpus*walltime - eligible_time"
set server backfill_depth = 5
set server scheduler_iteration = 300
set server mail_from = adm
set server no_such_thing = 1
"""
NODES = """n001
     Mom = n001
     state = free
     pcpus = 48
     resources_available.mem = 196608000kb
     resources_available.ncpus = 48
     resources_available.vnode = n001

n002
     Mom = n002
     state = offline
     pcpus = 48
     resources_available.mem = 196608000kb
     resources_available.ncpus = 48

g001
     state = job-busy
     resources_available.mem = 64gb
     resources_available.ncpus = 16
     resources_available.ngpus = 4
     queue = gpu
"""
