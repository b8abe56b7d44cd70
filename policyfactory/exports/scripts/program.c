/*
@HEAD@
 *
 * Compile with: cc -std=c99 -c THIS.c; link with -lm. Not with -ffast-math: it drops the rules for infinity and NaN.
 */

#include <math.h>

const double @NAME@_threshold_s = @THRESHOLD@;
@EPOCH@
@HELPERS@double @NAME@_score(double p, double q, double r, double w, double m@MORE@);

/* The score of a job; the job with the lowest runs first. */
double @NAME@_score(double p, double q, double r, double w, double m@MORE@)
{
    const double value =
        @SCORE@;
@UNUSED@    return value != value ? INFINITY : value;
}
