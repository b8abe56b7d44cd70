/*
 * Slurm plugin site_factor/policyfactory: waiting jobs get the priority that the formula in policy.h gives them.
 * Written by policyfactory, export --to slurm-site-factor-c; README.md says how to build, load and remove it.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 * It is built from headers of Slurm, which are under the GNU General Public License, version 2 or later, and so is
 * this file. It comes WITHOUT ANY WARRANTY. Pass the built plugin on only with its source.
 *
 * Slurm calls site_factor_p_set when a job is submitted, released or updated, and site_factor_p_update every
 * PriorityCalcPeriod, if it has slurmdbd. Both hold the write lock of the jobs and the read lock of the partitions.
 */

#define _GNU_SOURCE

#include "src/common/slurm_xlator.h"

#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "src/common/log.h"
#include "src/common/macros.h"
#include "src/common/read_config.h"
#include "src/common/xmalloc.h"
#include "src/common/xstring.h"
#include "src/slurmctld/slurmctld.h"

#include "policy.h"

const char plugin_name[] = "policyfactory, policy " POLICY_NAME;
const char plugin_type[] = "site_factor/policyfactory";
const uint32_t plugin_version = SLURM_VERSION_NUMBER;

/* All below is guarded by the lock: reconfiguration runs beside submissions. */
static pthread_mutex_t policy_lock = PTHREAD_MUTEX_INITIALIZER;
static policy_settings_t settings;
static bool wait_from_eligible = false;
static double oldest = INFINITY; /* submit time of the job that has waited longest, at the last calculation */
static double calculated = 0.0;  /* time of the last calculation */
static double logged = 0.0;      /* time at which all jobs were logged last */

#define LOG_EVERY 600.0 /* s between two such logs, so that a long queue does not fill the disk */

static bool _number(const char *text, double least, double most, double *value)
{
	char *end = NULL;
	const double found = strtod(text, &end);

	if ((end == text) || *end || !((found >= least) && (found <= most)))
		return false;
	*value = found;
	return true;
}

/* Take one NAME=VALUE of PrioritySiteFactorParameters; false if it is none. */
static bool _take(const char *name, const char *value, policy_settings_t *into, bool *eligible)
{
	if (!strcmp(name, "epoch"))
		return _number(value, -1e11, 1e11, &into->epoch);
	if (!strcmp(name, "low"))
		return _number(value, -1e300, 1e300, &into->low);
	if (!strcmp(name, "high"))
		return _number(value, -1e300, 1e300, &into->high);
	if (!strcmp(name, "threshold"))
		return _number(value, 0.0, INFINITY, &into->threshold);
	if (!strcmp(name, "wait")) {
		*eligible = !strcmp(value, "eligible");
		return *eligible || !strcmp(value, "submit");
	}
	return false;
}

static void _read_parameters(void)
{
	policy_settings_t found = policy_settings;
	bool eligible = false, good = true;
	char *copy = xstrdup(slurm_conf.site_factor_params), *rest = NULL, *word, *value;

	for (word = copy ? strtok_r(copy, ", ", &rest) : NULL; word; word = strtok_r(NULL, ", ", &rest)) {
		value = strchr(word, '=');
		if (value)
			*value++ = '\0';
		if (!value || !_take(word, value, &found, &eligible)) {
			error("%s: PrioritySiteFactorParameters: %s=%s is not one of epoch=UNIX_SECONDS, low=SCORE, "
			      "high=SCORE, threshold=SECONDS, wait=submit|eligible",
			      plugin_type, word, value ? value : "");
			good = false;
		}
	}
	xfree(copy);
	if (!(found.low < found.high)) {
		error("%s: PrioritySiteFactorParameters: low=%g is not below high=%g", plugin_type, found.low,
		      found.high);
		good = false;
	}
	if (!good) {
		error("%s: PrioritySiteFactorParameters are not used; the values of the export are", plugin_type);
		found = policy_settings;
		eligible = false;
	}

	slurm_mutex_lock(&policy_lock);
	settings = found;
	wait_from_eligible = eligible;
	slurm_mutex_unlock(&policy_lock);

	info("%s: policy %s, epoch=%.0f, low=%.17g, high=%.17g, threshold=%g, wait=%s%s", plugin_type, POLICY_NAME,
	     found.epoch, found.low, found.high, found.threshold, eligible ? "eligible" : "submit",
	     POLICY_COUNTS_FROM_OLDEST ? "; r counts from the oldest waiting job, not from the epoch" : "");
	if ((POLICY_CHANGES || isfinite(found.threshold)) &&
	    xstrcmp(slurm_conf.accounting_storage_type, "accounting_storage/slurmdbd"))
		error("%s: policy %s changes while jobs wait, but without slurmdbd Slurm never calculates it again: "
		      "jobs keep the priority of their submission",
		      plugin_type, POLICY_NAME);
}

/* Minutes asked for, else those of the partition; NaN if there are none. */
static double _requested_seconds(const job_record_t *job)
{
	uint32_t minutes = job->time_limit;

	if ((minutes == NO_VAL) && job->part_ptr)
		minutes = job->part_ptr->default_time;
	if (((minutes == NO_VAL) || (minutes == INFINITE)) && job->part_ptr)
		minutes = job->part_ptr->max_time;
	if (minutes == INFINITE)
		return POLICY_UNLIMITED;
	return (minutes == NO_VAL) ? NAN : minutes * 60.0;
}

static double _given(uint32_t value)
{
	return ((value == NO_VAL) || (value == INFINITE)) ? 0.0 : (double) value;
}

static double _nodes(const job_record_t *job)
{
	return fmax(_given(job->details->min_nodes), 1.0);
}

/* The GPUs over the whole job, in whichever way they are asked for. */
static double _requested_gpus(job_record_t *job)
{
	const __typeof__(*job->details) *details = job->details; /* its name differs between versions */
	const double nodes = _nodes(job), tasks = fmax(_given(details->num_tasks), 1.0);
	const double by_socket = nodes * job_get_sockets_per_node(job) * policy_gpus(job->tres_per_socket);
	const double found = fmax(fmax(policy_gpus(job->tres_per_job), nodes * policy_gpus(job->tres_per_node)),
				  fmax(by_socket, tasks * policy_gpus(job->tres_per_task)));

	if ((found > 0.0) || !details->ntasks_per_tres || (details->ntasks_per_tres == NO_VAL16))
		return found;
	return floor(tasks / details->ntasks_per_tres);
}

static int _has_type(void *x, void *type)
{
	return ((const job_defaults_t *) x)->type == *(const uint16_t *) type;
}

/* What slurm.conf gives for each GPU, the partition's before the cluster's; 0 if it says nothing. */
static double _default_per_gpu(const job_record_t *job, uint16_t type)
{
	const job_defaults_t *found = NULL;

	if (job->part_ptr && job->part_ptr->job_defaults_list)
		found = list_find_first(job->part_ptr->job_defaults_list, _has_type, &type);
	if (!found && slurm_conf.job_defaults_list)
		found = list_find_first(slurm_conf.job_defaults_list, _has_type, &type);
	return found ? (double) found->value : 0.0;
}

static double _requested_processors(job_record_t *job)
{
	const __typeof__(*job->details) *details = job->details;
	double found = _given(details->min_cpus), by_gpu = policy_gpus(job->cpus_per_tres);
	const double by_tasks = _given(details->num_tasks) * details->cpus_per_task;
	const double by_nodes = _given(details->pn_min_cpus) * _given(details->min_nodes);

	/* With --overcommit tasks share processors. */
	if ((by_tasks > found) && !details->overcommit && (details->cpus_per_task != NO_VAL16))
		found = by_tasks;
	if (by_nodes > found)
		found = by_nodes;
	if (!by_gpu && (details->orig_cpus_per_task == NO_VAL16))
		by_gpu = _default_per_gpu(job, JOB_DEF_CPU_PER_GPU);
	found = fmax(found, by_gpu * _requested_gpus(job));
	return (found >= 1.0) ? found : NAN;
}

#if POLICY_ASKS
static bool _is_memory(uint64_t value)
{
	return (value != NO_VAL64) && (value != INFINITE64) && (value & ~MEM_PER_CPU);
}

/* MB over the whole job; of a job that asks for none, its partition's default, else that of slurm.conf, else 0. */
static double _requested_memory(const job_record_t *job, const policy_job_t *known)
{
	uint64_t asked = job->details->pn_min_memory;

	if (known->g && !(job->bit_flags & JOB_MEM_SET)) {
		double by_gpu = policy_gpus(job->mem_per_tres);

		if (!by_gpu)
			by_gpu = _default_per_gpu(job, JOB_DEF_MEM_PER_GPU);
		if (by_gpu)
			return known->g * by_gpu;
	}
	if (!_is_memory(asked) && job->part_ptr)
		asked = job->part_ptr->def_mem_per_cpu;
	if (!_is_memory(asked))
		asked = slurm_conf.def_mem_per_cpu;
	if (!_is_memory(asked))
		return 0.0;
	return (asked & MEM_PER_CPU) ? known->q * (double) (asked & ~MEM_PER_CPU) : known->n * (double) asked;
}

/* n, mem and g; a job that leaves the number of its nodes to Slurm has one. */
static void _add_asked(job_record_t *job, policy_job_t *asked)
{
	asked->n = _nodes(job);
	asked->g = _requested_gpus(job);
	asked->mem = _requested_memory(job, asked);
}
#endif

static double _waited(const job_record_t *job, double now)
{
	const double since = wait_from_eligible ? job->details->accrue_time : job->details->submit_time;

	/* accrue_time is 0 until the job could run. */
	return ((since > 0.0) && (now > since)) ? now - since : 0.0;
}

static bool _is_waiting(const job_record_t *job)
{
	return job->details && IS_JOB_PENDING(job);
}

typedef struct {
	char text[16];
} task_t;

/* "_7" behind the number of an array, nothing for another job. */
static task_t _task(const job_record_t *job)
{
	task_t task = { "" };

	if (job->array_task_id != NO_VAL)
		snprintf(task.text, sizeof(task.text), "_%u", job->array_task_id);
	return task;
}

/* Give the job its number; in log-only mode write a line for policyfactory shadow instead. */
static void _rate(job_record_t *job, double now)
{
	policy_job_t asked = {
		.p = _requested_seconds(job),
		.q = _requested_processors(job),
		.submit = job->details->submit_time,
		.waited = _waited(job, now),
	};
	const double origin = POLICY_COUNTS_FROM_OLDEST ? oldest : settings.epoch;

	struct timespec begin, end;
	uint32_t number;

#if POLICY_ASKS
	_add_asked(job, &asked);
#endif
	if (POLICY_LOG_ONLY)
		clock_gettime(CLOCK_MONOTONIC, &begin);
	number = policy_priority(&settings, &asked, origin, calculated);
	if (!POLICY_LOG_ONLY) {
		job->site_factor = NICE_OFFSET + number;
		return;
	}
	clock_gettime(CLOCK_MONOTONIC, &end);
	info("policyfactory-shadow: policy=%s at=%.0f job=%u%s user=%u submit=%.0f time=%.0f processors=%.0f score=%.17g "
	     "number=%u present=%u us=%.3f",
	     POLICY_NAME, now, (job->array_task_id == NO_VAL) ? job->job_id : job->array_job_id, _task(job).text,
	     job->user_id, asked.submit, asked.p, asked.q,
	     policy_score(asked.p, asked.q, fmax(asked.submit - origin, POLICY_COUNTS_FROM_OLDEST ? 0.0 : 1.0),
			  asked.waited, asked.n, asked.mem, asked.g),
	     number, job->priority, (end.tv_sec - begin.tv_sec) * 1e6 + (end.tv_nsec - begin.tv_nsec) / 1e3);
}

/* For list_for_each. A held job (priority 0) is not the one that waits longest. */
static int _find_oldest(void *x, void *unused)
{
	const job_record_t *job = x;

	if (_is_waiting(job) && job->priority && (job->details->submit_time < oldest))
		oldest = job->details->submit_time;
	return SLURM_SUCCESS;
}

static int _rate_waiting(void *x, void *now)
{
	job_record_t *job = x;

	if (_is_waiting(job))
		_rate(job, *(const double *) now);
	return SLURM_SUCCESS;
}

extern int init(void)
{
	calculated = time(NULL);
	_read_parameters();
	return SLURM_SUCCESS;
}

extern int fini(void)
{
	return SLURM_SUCCESS;
}

extern void site_factor_p_reconfig(void)
{
	_read_parameters();
}

extern void site_factor_p_set(job_record_t *job_ptr)
{
	if (!_is_waiting(job_ptr))
		return;
	slurm_mutex_lock(&policy_lock);
	if (job_ptr->details->submit_time < oldest)
		oldest = job_ptr->details->submit_time;
	_rate(job_ptr, time(NULL));
	slurm_mutex_unlock(&policy_lock);
}

extern void site_factor_p_update(void)
{
	double now = time(NULL);

	if (!job_list)
		return;
	slurm_mutex_lock(&policy_lock);
	calculated = now;
	oldest = INFINITY;
	list_for_each(job_list, _find_oldest, NULL);
	if (!POLICY_LOG_ONLY || (now - logged >= LOG_EVERY)) {
		list_for_each(job_list, _rate_waiting, &now);
		logged = now;
	}
	slurm_mutex_unlock(&policy_lock);
}
