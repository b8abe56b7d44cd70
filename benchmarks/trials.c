/* Trials of one tuple in plain C: the yardstick of benchmarks/test_trials.py.
 *
 * The rule is that of policyfactory/engine/trials.py. Written as one would for speed without vector code: the state
 * after S is computed once and copied, running jobs lie in a small array sorted by end, the value of a trial is
 * summed on the way, and nothing is allocated. Orders come from the caller, or from xoshiro128++ and Fisher-Yates.
 */
#include <stdint.h>
#include <string.h>

#define MOST 512

typedef struct {
    int64_t end;
    int64_t procs;
} job_t;

typedef struct {
    int64_t clock, free, count;
    job_t running[MOST]; /* latest end first */
} state_t;

static inline int64_t start_job(state_t *s, int64_t p, int64_t q, int64_t r)
{
    int64_t clock = s->clock > r ? s->clock : r;
    int64_t free = s->free, count = s->count;
    while (count > 0 && s->running[count - 1].end <= clock)
        free += s->running[--count].procs;
    while (free < q) {
        clock = s->running[--count].end;
        free += s->running[count].procs;
    }
    int64_t end = clock + p, at = count;
    while (at > 0 && s->running[at - 1].end < end) {
        s->running[at] = s->running[at - 1];
        at--;
    }
    s->running[at].end = end;
    s->running[at].procs = q;
    s->clock = clock;
    s->free = free - q;
    s->count = count + 1;
    return clock;
}

static void occupy(state_t *s, const int64_t *p, const int64_t *q, const int64_t *r, int64_t size, int64_t machine)
{
    s->clock = 0;
    s->free = machine;
    s->count = 0;
    for (int64_t j = 0; j < size; j++)
        start_job(s, p[j], q[j], r[j]);
}

static inline double trial(const state_t *after, state_t *s, const int64_t *p, const int64_t *q, const int64_t *r,
                           const uint8_t *order, int64_t n)
{
    double sum = 0.0;
    s->clock = after->clock;
    s->free = after->free;
    s->count = after->count;
    memcpy(s->running, after->running, (size_t)after->count * sizeof(job_t));
    for (int64_t k = 0; k < n; k++) {
        int64_t j = order[k];
        int64_t start = start_job(s, p[j], q[j], r[j]);
        double slowdown = (double)(start - r[j] + p[j]) / (double)(p[j] > 10 ? p[j] : 10);
        sum += slowdown > 1.0 ? slowdown : 1.0;
    }
    return sum / (double)n;
}

/* The trials of given orders: out[i] is the average bounded slowdown of Q in the order orders[i * n ...]. */
void order_values(const int64_t *p, const int64_t *q, const int64_t *r, int64_t machine, int64_t state_size, int64_t n,
                  const uint8_t *orders, int64_t count, double *out)
{
    static state_t after, s;
    occupy(&after, p, q, r, state_size, machine);
    for (int64_t i = 0; i < count; i++)
        out[i] = trial(&after, &s, p + state_size, q + state_size, r + state_size, orders + i * n, n);
}

static inline uint32_t rotl(uint32_t x, int k)
{
    return (x << k) | (x >> (32 - k));
}

static inline uint32_t next_word(uint32_t *s)
{
    uint32_t result = rotl(s[0] + s[3], 7) + s[0], t = s[1] << 9;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotl(s[3], 11);
    return result;
}

/* Trials in random orders: sums[3 j ...] gets count, sum and sum of squares of the trials with j first. */
void random_trials(const int64_t *p, const int64_t *q, const int64_t *r, int64_t machine, int64_t state_size, int64_t n,
                   const uint32_t *seed, int64_t count, double *sums)
{
    static state_t after, s;
    uint32_t words[4];
    uint8_t order[256];
    memcpy(words, seed, sizeof words);
    occupy(&after, p, q, r, state_size, machine);
    for (int64_t i = 0; i < count; i++) {
        for (int64_t k = 0; k < n; k++)
            order[k] = (uint8_t)k;
        for (int64_t k = n - 1; k > 0; k--) {
            int64_t j = (int64_t)(((uint64_t)next_word(words) * (uint64_t)(k + 1)) >> 32);
            uint8_t job = order[k];
            order[k] = order[j];
            order[j] = job;
        }
        double value = trial(&after, &s, p + state_size, q + state_size, r + state_size, order, n);
        sums[3 * order[0]] += 1.0;
        sums[3 * order[0] + 1] += value;
        sums[3 * order[0] + 2] += value * value;
    }
}
