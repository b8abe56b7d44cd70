"""What a scheduler has seen of the jobs so far: ends, starts and submissions, by user and by group of like jobs.

Nothing here looks ahead. A job's run time is read when it has ended, in the simulation, and not before; so predictions
that are made of it react to the schedule that they bring about.

At one instant all ends are noted first, then the jobs submitted then are described, in submit order. Jobs that end at
one instant are noted in submit order.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from policyfactory.core.by_pointer import by_pointer
from policyfactory.core.jit import inlined, kernel
from policyfactory.core.options import FloatArray, Int64Array
from policyfactory.engine.events import STARTED, Jobs, pop_job, push_job

# Numbers that are known of a job by itself, and kinds of groups that it belongs to; see
# policyfactory.prediction.features.
FACTS, GROUPS = 7, 7
# Then what its user did (22 numbers), and of each group four.
OF_USER = 22
FEATURES = FACTS + OF_USER + 4 * GROUPS
UNKNOWN = -1.0

MOST_RENEWED = 500  # waiting jobs of one user that are predicted anew at once, those submitted first
SHORT_S = 60.0  # a job below is called short
_RECENT, _LAST = 20, 3  # of the user's ended jobs
_ALIKE, _FADE = 60, math.exp(-0.05)  # of those that are weighted by likeness, and what one more in between takes
_RENEWAL = 0.1  # the least share of the newest job in the mean of a group
_BURST_S = 600.0  # submissions of one user less than that apart are one burst

# Columns of `Past.by_user`.
WAITING, RUNNING, ENDED, SUBMITTED, BURST, STARTED_LAST, ENDED_LAST, FIRST, LAST, CHANGED = range(10)
# Rows of `Past.queue`.
PREVIOUS, FOLLOWING = range(2)
# Columns of `Past.by_group`, which are also the first three of `Past.outcome`.
LN_RUN, SHORTNESS, SHARE, COUNT = range(4)
STATUS = 3
# Columns of `Past.progress`: starts and ends that were noted, jobs that were described.
STARTS, ENDS, DESCRIBED = range(3)


@by_pointer
class Past(NamedTuple):
    """The past of a run of n jobs, and what is given of them.

    Parameters
    ----------
    user : int64 array (n,)
        From 0 without gaps; -1 if unknown.
    facts : float64 array (n, FACTS)
        The first two are the natural logarithms of request (s) and processors.
    groups : int64 array (n, GROUPS)
        From 0 without gaps over all kinds together; -1 for none.
    outcome : float64 array (n, 4)
        ln of the run time (s), 10 / max(run time, 10), run time over request (at most 1), status: not read before the
        job's end is noted.
    ticks : int
        Ticks in a second.
    end : int64 array (n,)
        Of a job that was started, its end; -1 before.
    before : int64 array (n,)
        Of a job that has ended, the one of its user that ended before; -1 for none.
    queue : int64 array (2, n)
        Of a waiting job, the one of its user submitted before and the one submitted after it; -1 for none.
    by_user : int64 array (users, 10)
        Jobs that wait, run, have ended; last submission; jobs of the present burst before the last one; the job that
        was started last, and that ended last; the first and the last that wait (-1 for none); 1 if it is in
        ``changed``.
    changed : int64 array (users + 1,)
        The users of whom a job has ended since this list was emptied; element 0 counts them.
    by_group : float64 array (groups, 4)
        Means of the first three outcomes, and how many have ended.
    ends : int64 array (n + 1,)
        A heap of the jobs whose end was not noted yet, the earliest first; element 0 counts them.
    ended : int64 array (n,)
        Jobs in the order of their ends.
    progress : int64 array (3,)
        How many starts and ends were noted, and how many jobs described.
    """

    user: Int64Array
    facts: FloatArray
    groups: Int64Array
    outcome: FloatArray
    ticks: int
    end: Int64Array
    before: Int64Array
    queue: Int64Array
    by_user: Int64Array
    changed: Int64Array
    by_group: FloatArray
    ends: Int64Array
    ended: Int64Array
    progress: Int64Array


def new_past(user: Int64Array, facts: FloatArray, groups: Int64Array, outcome: FloatArray, ticks: int) -> Past:
    """Return the past before the first event; parameters as of `Past`."""
    n = len(user)
    users, kinds = int(user.max(initial=-1)) + 1, int(groups.max(initial=-1)) + 1
    by_user = np.zeros((users, 10), dtype=np.int64)
    by_user[:, [SUBMITTED, STARTED_LAST, ENDED_LAST, FIRST, LAST]] = -1
    none = np.full((4, n), -1, dtype=np.int64)
    return Past(
        *(user, facts, groups, outcome, ticks),
        end=none[0],
        before=none[1],
        queue=none[2:],
        by_user=by_user,
        changed=np.zeros(users + 1, dtype=np.int64),
        by_group=np.zeros((kinds, 4)),
        ends=np.zeros(n + 1, dtype=np.int64),
        ended=np.zeros(n, dtype=np.int64),
        progress=np.zeros(3, dtype=np.int64),
    )


@inlined
def note_until(past: Past, jobs: Jobs, state: Int64Array, now: int) -> None:
    """Note all starts so far, and all ends up to ``now``.

    Parameters
    ----------
    past : Past
        What was seen.
    jobs : Jobs
        With ``started``.
    state : int64 array
        Of the run, which has come to all events before ``now``.
    now : int
        Ticks.
    """
    while past.progress[STARTS] < state[STARTED]:
        job = jobs.started[past.progress[STARTS]]
        past.progress[STARTS] += 1
        note_start(past, job, jobs.start[job] + jobs.run_time[job])
        push_job(past.ends, past.end, job)
    while past.ends[0] > 0 and past.end[past.ends[1]] <= now:
        note_end(past, pop_job(past.ends, past.end))


@inlined
def note_start(past: Past, job: int, end: int) -> None:
    """Note that ``job`` was started, the last one of its user, and will have ended at ``end``."""
    past.end[job] = end
    user = past.user[job]
    if user >= 0:
        past.by_user[user, WAITING] -= 1
        past.by_user[user, RUNNING] += 1
        past.by_user[user, STARTED_LAST] = job
        _leave(past, user, job)


@inlined
def note_return(past: Past, job: int) -> None:
    """Note that ``job``, which was started, waits again: behind its user's other jobs, as if submitted anew."""
    past.end[job] = -1
    user = past.user[job]
    if user >= 0:
        past.by_user[user, RUNNING] -= 1
        past.by_user[user, WAITING] += 1
        _join(past, user, job)


@inlined
def note_end(past: Past, job: int) -> None:
    """Note that ``job`` has ended, as the last one so far."""
    past.ended[past.progress[ENDS]] = job
    past.progress[ENDS] += 1
    user = past.user[job]
    if user >= 0:
        past.by_user[user, RUNNING] -= 1
        past.by_user[user, ENDED] += 1
        past.before[job] = past.by_user[user, ENDED_LAST]
        past.by_user[user, ENDED_LAST] = job
        if past.by_user[user, CHANGED] == 0:
            past.by_user[user, CHANGED] = 1
            past.changed[0] += 1
            past.changed[past.changed[0]] = user
    for kind in range(GROUPS):
        group = past.groups[job, kind]
        if group >= 0:
            count = past.by_group[group, COUNT] + 1.0
            part = max(1.0 / count, _RENEWAL)
            past.by_group[group, COUNT] = count
            for column in range(COUNT):
                mean = past.by_group[group, column]
                past.by_group[group, column] = mean + part * (past.outcome[job, column] - mean)


@inlined
def submitted(past: Past, job: int, now: int) -> None:
    """Note that ``job`` was submitted now, after it was described."""
    past.progress[DESCRIBED] = job + 1
    user = past.user[job]
    if user < 0:
        return
    last = past.by_user[user, SUBMITTED]
    again = last >= 0 and now - last < _BURST_S * past.ticks
    past.by_user[user, BURST] = past.by_user[user, BURST] + 1 if again else 0
    past.by_user[user, SUBMITTED] = now
    past.by_user[user, WAITING] += 1
    _join(past, user, job)


@inlined
def take_changed(past: Past, jobs: Int64Array) -> int:
    """Fill in the waiting jobs of the users of whom a job has ended since this was asked last; return how many.

    ``jobs``: int64 array (n,). Of one user at most `MOST_RENEWED`, those submitted first.
    """
    count = 0
    for index in range(1, past.changed[0] + 1):
        user = past.changed[index]
        past.by_user[user, CHANGED] = 0
        job, most = past.by_user[user, FIRST], count + MOST_RENEWED
        while job >= 0 and count < most:
            jobs[count] = job
            count += 1
            job = past.queue[FOLLOWING, job]
    past.changed[0] = 0
    return count


@inlined
def _join(past: Past, user: int, job: int) -> None:
    """Put a job at the end of its user's list."""
    other = past.by_user[user, LAST]
    past.queue[PREVIOUS, job] = other
    past.queue[FOLLOWING, job] = -1
    if other >= 0:
        past.queue[FOLLOWING, other] = job
    else:
        past.by_user[user, FIRST] = job
    past.by_user[user, LAST] = job


@inlined
def _leave(past: Past, user: int, job: int) -> None:
    """Take a job that was started out of its user's list."""
    previous, following = past.queue[PREVIOUS, job], past.queue[FOLLOWING, job]
    if previous >= 0:
        past.queue[FOLLOWING, previous] = following
    else:
        past.by_user[user, FIRST] = following
    if following >= 0:
        past.queue[PREVIOUS, following] = previous
    else:
        past.by_user[user, LAST] = previous


@inlined
def describe(past: Past, start: Int64Array, job: int, now: int, features: FloatArray) -> None:
    """Fill in the features of ``job`` as it is submitted now; all that happened up to now must have been noted.

    ``start``: int64 array (n,), of the jobs that were started. ``features``: float64 array (FEATURES,); what is
    unknown is -1. `policyfactory.prediction.features.NAMES` names them.
    """
    for feature in range(FACTS):
        features[feature] = past.facts[job, feature]
    for feature in range(OF_USER):
        features[FACTS + feature] = UNKNOWN
    if past.user[job] >= 0:
        _describe_recent(past, job, now, features[FACTS:])
        _describe_alike(past, job, features[FACTS + 8 :])
        _describe_present(past, start, job, now, features[FACTS + 13 :])
    feature = FACTS + OF_USER
    for kind in range(GROUPS):
        group = past.groups[job, kind]
        count = past.by_group[group, COUNT] if group >= 0 else 0.0
        for column in range(COUNT):
            features[feature + column] = past.by_group[group, column] if count > 0.0 else UNKNOWN
        features[feature + COUNT] = count
        feature += 4


@inlined
def _describe_recent(past: Past, job: int, now: int, features: FloatArray) -> None:
    """Fill in ln of the last three run times, the last's status and age; of 20 mean, deviation, share of short ones."""
    ended = past.by_user[past.user[job], ENDED_LAST]
    if ended < 0:
        return
    features[3] = past.outcome[ended, STATUS]
    features[4] = math.log(1.0 + (now - past.end[ended]) / past.ticks)
    count, total, squares, short = 0, 0.0, 0.0, 0
    while ended >= 0 and count < _RECENT:
        value = past.outcome[ended, LN_RUN]
        if count < _LAST:
            features[count] = value
        total += value
        squares += value * value
        if value < math.log(SHORT_S):
            short += 1
        count += 1
        ended = past.before[ended]
    mean = total / count
    features[5] = mean
    features[6] = math.sqrt(max(squares / count - mean * mean, 0.0))
    features[7] = short / count


@inlined
def _describe_alike(past: Past, job: int, features: FloatArray) -> None:
    """Fill in means over the user's last jobs, those like this one first: the outcomes, the weight and its largest."""
    request, processors = past.facts[job, 0], past.facts[job, 1]
    ended, count, fade = past.by_user[past.user[job], ENDED_LAST], 0, 1.0
    weight, largest, ln_run, shortness, share = 0.0, 0.0, 0.0, 0.0, 0.0
    while ended >= 0 and count < _ALIKE:
        far = abs(past.facts[ended, 0] - request) + abs(past.facts[ended, 1] - processors)
        similarity = fade if far == 0.0 else fade * math.exp(-far)
        weight += similarity
        largest = max(largest, similarity)
        ln_run += similarity * past.outcome[ended, LN_RUN]
        shortness += similarity * past.outcome[ended, SHORTNESS]
        share += similarity * past.outcome[ended, SHARE]
        fade *= _FADE
        count += 1
        ended = past.before[ended]
    features[3] = weight
    features[4] = largest
    if weight > 0.0:
        features[0] = ln_run / weight
        features[1] = shortness / weight
        features[2] = share / weight


@inlined
def _describe_present(past: Past, start: Int64Array, job: int, now: int, features: FloatArray) -> None:
    """Fill in the user's jobs that wait, run, have ended; the last submission and burst; the one started last."""
    user = past.user[job]
    features[0] = past.by_user[user, WAITING]
    features[1] = past.by_user[user, RUNNING]
    features[2] = past.by_user[user, ENDED]
    last = past.by_user[user, SUBMITTED]
    if last >= 0:
        features[3] = math.log(1.0 + (now - last) / past.ticks)
        features[4] = past.by_user[user, BURST] + 1.0 if now - last < _BURST_S * past.ticks else 0.0
    other = past.by_user[user, STARTED_LAST]
    if other >= 0:
        # Its request is known, its end is not before it comes: how long it runs already, and how like this one it is.
        running = past.end[other] > now
        features[5] = math.log(1.0 + (now - start[other]) / past.ticks) if running else UNKNOWN
        features[6] = abs(past.facts[other, 0] - past.facts[job, 0])
        features[7] = abs(past.facts[other, 1] - past.facts[job, 1])
    ended = past.by_user[user, ENDED_LAST]
    if ended >= 0:
        features[8] = abs(past.facts[ended, 0] - past.facts[job, 0])


# Sums of regression trees, one job at a time --------------------------------------------------------------------------


LEAF = -1


@by_pointer
class Forest(NamedTuple):
    """Regression trees, node by node; their number may be 0.

    Parameters
    ----------
    feature : int64 array (nodes,)
        Which feature a node looks at; `LEAF` for none.
    threshold : float64 array (nodes,)
        A job whose feature is at most that goes left; of a leaf, its value.
    left, right : int64 array (nodes,)
        Where a node's children are; not read of a leaf. A child stands behind its parent.
    roots : int64 array (trees,)
        Where each tree begins.
    base : float
        What is added to the sum.
    """

    feature: Int64Array
    threshold: FloatArray
    left: Int64Array
    right: Int64Array
    roots: Int64Array
    base: float


def no_forest() -> Forest:
    """Return a forest without trees."""
    none = np.empty(0, dtype=np.int64)
    return Forest(none, np.empty(0), none, none, none, 0.0)


@inlined
def forest_sum(forest: Forest, features: FloatArray) -> float:
    """Return the base plus the value of each tree's leaf, added in the order of the trees.

    ``features``: float64 array (at least as many as the forest looks at,), of one job.
    """
    total = forest.base
    for tree in range(len(forest.roots)):
        node = forest.roots[tree]
        looked_at = forest.feature[node]
        while looked_at != LEAF:
            node = forest.left[node] if features[looked_at] <= forest.threshold[node] else forest.right[node]
            looked_at = forest.feature[node]
        total += forest.threshold[node]
    return total


# Requested times as users write them ----------------------------------------------------------------------------------

# Requested times as users write them, where a log has some that were raised to the run time.


USUAL_FROM = 10  # jobs that asked for exactly that, from which on a request is a usual one


@kernel
def usual_requests(requests: Int64Array, which: Int64Array, values: Int64Array, minute: int) -> Int64Array:
    """Return for each job its own request if it is a usual one, else the largest usual one below, if there is any.

    A request is usual if it is a whole number of minutes, or if at least `USUAL_FROM` jobs before asked for exactly
    that. Nothing but requests of the same and of earlier jobs is looked at.

    Parameters
    ----------
    requests : int64 array (n,), ticks
        In submit order.
    which : int64 array (n,)
        Where each of them is among the values.
    values : int64 array (k,), ticks
        The different requests, ascending.
    minute : int
        Ticks of a minute.
    """
    usual, count = np.empty(len(values), dtype=np.int64), 0
    seen = np.zeros(len(values), dtype=np.int64)
    rounded = requests.copy()
    for job in range(len(requests)):
        value = requests[job]
        if value % minute != 0 and seen[which[job]] < USUAL_FROM:
            position = np.searchsorted(usual[:count], value, side="right")
            if position > 0:
                rounded[job] = usual[position - 1]
        seen[which[job]] += 1
        if seen[which[job]] == USUAL_FROM:
            position = np.searchsorted(usual[:count], value)
            for later in range(count, position, -1):
                usual[later] = usual[later - 1]
            usual[position] = value
            count += 1
    return rounded
