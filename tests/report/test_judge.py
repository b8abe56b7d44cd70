"""The rule of the verdicts, against a plain one, over every combination of what sources can say."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import pytest

from policyfactory.report.verdict import Finding, judge

WORDS = ("better", "worse", "no difference", "unsound")


def plain_light(sources: Sequence[Finding]) -> str:
    unsound = better = worse = open_questions = decisive = 0
    for source in sources:
        if source.word == "unsound":
            unsound += 1
        if source.word == "worse":
            worse += 1
        if source.word == "better":
            better += 1
            decisive += source.needed
        elif source.needed:
            open_questions += 1
    if unsound > 0:
        return "unsound"
    if worse > 0 and better == 0:
        return "worse"
    if decisive > 0 and open_questions == 0 and worse == 0:
        return "better"
    return "cannot tell"


def plain_judge(comparisons: Sequence[Sequence[Finding]]) -> str:
    lights = [plain_light(sources) for sources in comparisons if len(sources) > 0]
    for light in ("unsound", "worse", "cannot tell"):
        if light in lights:
            return light
    return "better" if lights else "cannot tell"


SOURCES = [Finding(word, needed) for word in WORDS for needed in (True, False)]


@pytest.mark.parametrize("count", range(5))
def test_every_combination_of_sources_is_judged_as_the_plain_rule_does(count: int) -> None:
    for evidence in itertools.product(SOURCES, repeat=count):
        assert judge(evidence) == plain_judge([evidence]), evidence


@pytest.mark.parametrize("sizes", [*itertools.product(range(3), repeat=2)], ids=str)
def test_every_combination_of_two_comparisons_is_judged_as_the_plain_rule_does(sizes: tuple[int, int]) -> None:
    for one in itertools.product(SOURCES, repeat=sizes[0]):
        for other in itertools.product(SOURCES, repeat=sizes[1]):
            assert judge(one, other) == judge(other, one) == plain_judge([one, other]), (one, other)


# What a simulation says of a policy and the baseline, down; what the comparison with the record says, across.
TABLE = """
                better       worse   no difference  (no record)  unsound
better          better       worse   cannot_tell    cannot_tell  unsound
worse           worse        worse   worse          worse        unsound
no_difference   cannot_tell  worse   cannot_tell    cannot_tell  unsound
too_few_cases   cannot_tell  worse   cannot_tell    cannot_tell  unsound
unsound         unsound      unsound unsound        unsound      unsound
"""
_HEAD, *ROWS = TABLE.strip().splitlines()
CASES = [
    (row.split()[0], record, light)
    for row in ROWS
    for record, light in zip(("better", "worse", "no difference", "", "unsound"), row.split()[1:], strict=True)
]


@pytest.mark.parametrize(("simulated", "record", "light"), CASES)
def test_the_simulation_and_the_record(simulated: str, record: str, light: str) -> None:
    light = light.replace("_", " ")
    both = [Finding(simulated.replace("_", " "))], [Finding(record)]
    assert judge(*both) == light
    # A replay on the site of which it cannot be told how near it is recommends nothing, and refuses what it refused.
    assert judge(*both, [Finding("cannot tell")]) == ("cannot tell" if light == "better" else light)
    assert judge(*both, [Finding("unsound")]) == "unsound"


@pytest.mark.parametrize(
    ("weeks", "light"), [("better", "better"), ("worse", "cannot tell"), ("no difference", "better")]
)
def test_weeks_beside_replicas_can_only_contradict(weeks: str, light: str) -> None:
    assert judge([Finding("better"), Finding(weeks, needed=False)]) == light
    assert judge([Finding(weeks, needed=False)]) == ("worse" if weeks == "worse" else "cannot tell")


def test_where_nobody_waits_or_there_are_too_few_there_is_no_source() -> None:
    assert judge() == judge([]) == "cannot tell"
