"""What a policy would be worth on the jobs of a time: against the record, and against first come, first served."""

from __future__ import annotations

import dataclasses

from policyfactory.core.text import counted
from policyfactory.core.units import format_duration
from policyfactory.evaluate.basis import basis_in_words
from policyfactory.evaluate.verdict import requests_invented
from policyfactory.policy.policy import Policy
from policyfactory.report.sections import Column, Section
from policyfactory.report.verdict import TOO_FAR, Verdict
from policyfactory.review.simulated import Means, difference, in_words, means_of, nobody_waits, plain_table, sign
from policyfactory.simulate.schedule import Schedule, lacking_starts, recorded_schedule
from policyfactory.simulate.simulate import simulate
from policyfactory.workload.jobs import Workload, load_in_words

__all__ = ["BASELINE", "Judged", "judge_simulated"]

BASELINE = "FCFS"
_FEW_JOBS = 100


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Judged:
    """Schedules of one time and what separates them.

    Parameters
    ----------
    means : dict of str to Means
        Of the policy, of the baseline and, where the starts are known, of the record.
    verdict : Verdict
        Whether the policy is better than both.
    """

    means: dict[str, Means]
    verdict: Verdict

    def section(self, name: str = "simulated", title: str = "Simulated with EASY backfilling") -> Section:
        """Return the values as a table."""
        columns = (
            Column("order"),
            Column("mean wait", "s"),
            Column("mean bounded slowdown", "1"),
            Column("longest wait", "s"),
            Column("jobs that wait longer than 10 s", "%"),
        )
        rows = [(who, of.wait_s, of.bsld, of.longest_s, 100 * of.waiting) for who, of in self.means.items()]
        table = plain_table("values", "One continuous simulation of the jobs", columns, rows)
        return Section(name, title, (), (table,))


def judge_simulated(workload: Workload, policy: Policy) -> Judged:
    """Simulate the jobs of a time by a policy and first come, first served, and compare both with the record.

    Parameters
    ----------
    workload : Workload
        Its jobs.
    policy : Policy
        The order that is judged.
    """
    new, base = simulate(workload, policy), simulate(workload, BASELINE)
    name = policy.name
    means = {f"{name}, simulated": means_of(new), f"{BASELINE}, simulated": means_of(base)}
    lacking = lacking_starts(workload)
    record = None if lacking else recorded_schedule(workload)
    if record is not None:
        means["recorded"] = means_of(record)
    verdict = _judge(name, new, base, record, lacking)
    if verdict.light != "cannot tell" and (invented := requests_invented(workload)):
        verdict = Verdict("unsound", (*invented, *verdict.sentences))
    return Judged(means, dataclasses.replace(verdict, caveats=basis_in_words(workload)))


def _judge(name: str, new: Schedule, base: Schedule, record: Schedule | None, lacking: str) -> Verdict:
    own, first = means_of(new), means_of(base)
    if len(new) < _FEW_JOBS:
        return Verdict("cannot tell", (f"What it would be worth cannot be told from {counted(len(new), 'job')}.",))
    if nobody_waits(own, first):
        load = new.workload.offered_load
        return Verdict(
            "cannot tell",
            (f"Nobody waits in a simulation under either order ({load_in_words(load)}): it cannot tell them apart.",),
        )
    against_base = difference(new, base, "bsld")
    sentences = [
        (
            f"Simulated with EASY, the mean bounded slowdown is {own.bsld:.3g} against {first.bsld:.3g} of {BASELINE}: "
            f"{in_words(against_base)}; the mean wait {format_duration(own.wait_s)} against "
            f"{format_duration(first.wait_s)}, the longest {format_duration(own.longest_s)} against "
            f"{format_duration(first.longest_s)}."
        )
    ]
    if record is None:
        return Verdict("cannot tell", (*sentences, f"It cannot be compared with the record: {lacking}."))
    was = means_of(record)
    against_record = difference(new, record, "bsld")
    recorded = f"In the record the mean bounded slowdown is {was.bsld:.3g}, the mean wait {format_duration(was.wait_s)}"
    if was.bsld > TOO_FAR * first.bsld:
        far = f"{recorded}: the simulation of {BASELINE} is too far from that to judge by it (limits, partitions, ...)."
        return Verdict("unsound", (far, *sentences))
    sentences.append(f"{recorded}; against that {name} is {in_words(against_record)}.")
    signs = [sign(against_base), sign(against_record)]
    if signs == [-1, -1]:
        return Verdict("better", tuple(sentences))
    if 1 in signs:
        return Verdict("worse", tuple(sentences))
    return Verdict("cannot tell", (*sentences, "It is not shown to be better than both."))
