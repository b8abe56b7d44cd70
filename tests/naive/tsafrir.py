"""Estimates for jobs, told with a list of what is left."""

from __future__ import annotations

__all__ = ["assign", "rank_head"]


def assign(run_time, estimates, draws):
    """Return an estimate for each job (both lists longest first); the k-th draw picks among those that suffice."""
    left = list(estimates)
    given = []
    for run, draw in zip(run_time, draws, strict=True):
        # What is left is not sorted, but all that suffices stands before the first original estimate that does not.
        enough = sum(estimate >= run for estimate in estimates)
        first = len(given)
        place = first + draw % (enough - first)
        given.append(left[place])
        left[place] = left[first]
    return given


def rank_head(rows, choice):
    """Return a popularity rank for each row, by the paper's words: due ranks first, else the better of two drawn.

    ``choice`` draws one element of a list; ``rows`` are the ranks seen in real logs, the longest estimate first.
    """
    ranks = [1]
    pool = [rank for rank in rows[0] if rank != 1]
    for k, row in enumerate(rows[1:], 1):
        pool = [rank for rank in [*pool, *row] if rank not in ranks]
        later = {rank for following in rows[k + 1 :] for rank in following}
        due = sorted(set(range(1, 21)) - later - set(ranks))
        ranks.append(due[0] if due else min(choice(pool), choice(pool)))
    return ranks
