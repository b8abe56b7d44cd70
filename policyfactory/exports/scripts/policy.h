/*
 * SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-or-later
 *
@COMMENT@
 *
 * Not to be compiled with -ffast-math, which drops the rules for infinity and NaN.
 */
#ifndef POLICYFACTORY_POLICY_H
#define POLICYFACTORY_POLICY_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#ifdef __FAST_MATH__
#error "compile without -ffast-math: it drops the rules for infinity and NaN"
#endif

#define POLICY_NAME "@NAME@"
/* What Slurm's own backfill scheduler takes for a job without a limit, s. */
#define POLICY_UNLIMITED @UNLIMITED@.0
#define POLICY_CHANGES @CHANGES@
/* Log the numbers for policyfactory shadow, and set none. */
#define POLICY_LOG_ONLY @LOG_ONLY@
#define POLICY_COUNTS_FROM_OLDEST @FROM_OLDEST@
/* Whether n, mem and g of a job are in the formula. */
#define POLICY_ASKS @ASKS@

typedef struct {
    double epoch;     /* Unix time from which r counts, s */
    double low, high; /* scores between which nearly all lie */
    double threshold; /* a job that has waited longer goes first, s */
} policy_settings_t;

static const policy_settings_t policy_settings = {
    .epoch = @EPOCH@.0,
    .low = @LOW@,
    .high = @HIGH@,
    .threshold = @THRESHOLD@,
};

typedef struct {
    double p;      /* requested run time, s */
    double q;      /* requested processors */
    double submit; /* Unix s */
    double waited; /* s */
    double n, mem, g; /* requested nodes, MB and GPUs, each over the whole job */
} policy_job_t;

@HELPERS@
/* The score of a job; the lowest runs first, NaN last. */
static double policy_score(double p, double q, double r, double w, double n, double mem, double g)
{
@UNUSED@    return @SCORE@;
}

@GPUS@
/* A falling map from scores to 1 .. @LARGEST@: three quarters of the numbers are for low .. high. */
static double policy_number(const policy_settings_t *settings, double score)
{
    const double u = (score - settings->low) / (settings->high - settings->low);
    double y = 0.125 + 0.75 * u, found;

    if (u < 0.0)
        y = 0.125 / (1.0 - 6.0 * u);
    else if (u > 1.0)
        y = 1.0 - 0.125 / (1.0 + 6.0 * (u - 1.0));
    found = floor(@LARGEST@.0 - y * @BELOW_LARGEST@.0);
    return found >= 1.0 ? (found <= @LARGEST@.0 ? found : @LARGEST@.0) : 1.0;
}

/*
 * What Slurm adds up as site_factor: 1 .. @HIGHEST@, the HIGHEST runs first.
 * origin is the Unix time from which r counts, latest that of the last calculation for all jobs.
 */
static uint32_t policy_priority(const policy_settings_t *settings, const policy_job_t *job, double origin,
                                double latest)
{
    /* A job submitted before the epoch counts as submitted at it; the oldest job itself has r = 0. */
    const double least = POLICY_COUNTS_FROM_OLDEST ? 0.0 : 1.0, since = job->submit - origin;

    if (job->waited > settings->threshold) {
        /* Overdue: above all others, in submit order. */
        const double ahead = latest - job->submit, most = @ABOVE_LARGEST@.0;

        return (uint32_t)(@LARGEST@.0 + (ahead > 0.0 ? (ahead < most ? ahead : most) : 0.0));
    }
    return (uint32_t)policy_number(settings, policy_score(job->p, job->q, since > least ? since : least, job->waited,
                                                          job->n, job->mem, job->g));
}

#endif
