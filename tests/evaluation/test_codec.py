"""The record of a simulation as text: it comes back as it was, and nothing else can be read."""

from __future__ import annotations

import base64
import contextlib
import dataclasses
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from policyfactory.core.errors import InputError
from policyfactory.core.options import FloatArray, Int64Array
from policyfactory.evaluation.analyses import ANALYSES, make_analysis
from policyfactory.evaluation.analyses.analysis import Analysis
from policyfactory.evaluation.experiment import Experiment
from policyfactory.evaluation.run import Shared, SimulationResult, decode, encode, observed_type, simulate_unit
from policyfactory.policy.store import resolve
from policyfactory.report.sections import Section
from policyfactory.simulation.cases import Case, CaseFacts, case_of
from policyfactory.simulation.metrics import WeeklySums
from policyfactory.simulation.rules import Rules
from policyfactory.simulation.schedule import Schedule
from policyfactory.simulation.tuning.tuner import Contender, Tuner
from policyfactory.statistics.evaluation import Evaluation
from policyfactory.workload.clean import read
from policyfactory.workload.jobs import Workload


def same(first: Any, second: Any) -> bool:
    """Whether two values are equal in every bit; a number of numpy is one of Python."""
    if isinstance(first, np.ndarray):
        about = [(one.dtype, one.shape, one.flags.c_contiguous, one.flags.f_contiguous) for one in (first, second)]
        return about[0] == about[1] and first.tobytes() == second.tobytes()
    first, second = (one.item() if isinstance(one, np.generic) else one for one in (first, second))
    if type(first) is not type(second):
        return False
    if isinstance(first, float):
        return first.hex() == second.hex()
    if isinstance(first, list | tuple):
        return len(first) == len(second) and all(map(same, first, second))
    if dataclasses.is_dataclass(first):
        names = [field.name for field in dataclasses.fields(first)]
        return all(same(getattr(first, name), getattr(second, name)) for name in names)
    return bool(first == second)


def nothing(_: Any = None) -> None:
    """Go on."""


@pytest.fixture(scope="module")
def jobs(shared: Callable[[str], Path]) -> Workload:
    """Jobs with recorded starts, of some weeks."""
    log = read(shared("oracles/online/trace_kth5k.swf.gz"))
    first = log.select(slice(0, 1500))
    return dataclasses.replace(first, start=first.submit + first.run_time % 7200)


FCFS = resolve("FCFS")
CONTENDERS: list[Contender] = [FCFS, resolve("SPF")]
CONTENDERS.append(Tuner("tuner", (FCFS, resolve("SAF")), "random", period_s=86_400))


@pytest.mark.parametrize("rules", [Rules(), Rules(decide_by="runtime", compatibility="sc17")], ids=["ours", "sc17"])
@pytest.mark.parametrize("name", [*ANALYSES, "replay"])
def test_what_every_analysis_keeps_comes_back_unchanged(name: str, rules: Rules, jobs: Workload) -> None:
    analysis = None if name == "replay" else make_analysis(name)
    contenders = CONTENDERS[:2] if rules.compatibility == "sc17" else CONTENDERS
    asked = () if analysis is None else (analysis,)
    experiment = Experiment(
        "e", (case_of(jobs),), tuple(contenders), rules=rules, metrics=("mean_bsld",), analyses=asked, recorded=True
    )
    shared = Shared(experiment, {0: 1}, in_text=True)
    for done in simulate_unit(shared, (0, tuple(range(len(contenders)))), nothing):
        assert done.text is not None
        assert b"\n" not in done.text
        again = decode(done.text, experiment.observers, lambda: jobs)
        assert same(again, done.result)
        assert encode(again) == done.text


@dataclasses.dataclass(frozen=True, eq=False)
class Kept:
    """What an analysis may keep."""

    number: float
    count: int
    text: str
    truth: bool
    values: FloatArray
    pair: tuple[float, Int64Array] | None
    many: tuple[int, ...]
    jobs: Workload | None = None


@dataclasses.dataclass(frozen=True)
class Keeps(Analysis):
    """An analysis that keeps all of it."""

    name = "keeps"

    def observe(self, case: Case, schedule: Schedule) -> Kept:
        raise NotImplementedError

    def conclude(self, evaluation: Evaluation, seen: list[list[Any]]) -> Section:
        raise NotImplementedError


FACTS = CaseFacts("kth", 1, "window", 100, 64, 1e6, None, "0" * 64)


def record(kept: Any) -> SimulationResult:
    weeks = WeeklySums(np.array([3, 4]), np.array([[1.5, np.nan], [2.5, np.nan]]), np.ones((2, 2)), math.inf)
    return SimulationResult(FACTS, [1.5, math.inf], 7.0, 3, 2, [math.nan], [kept], weeks)


def none() -> Workload:
    raise AssertionError("no jobs are mentioned")


def again(kept: Kept) -> Kept:
    """Return what comes back of a record."""
    text = encode(record(kept))
    assert b"\n" not in text
    whole = decode(text, [Keeps()], none)
    assert same(whole, record(kept))
    assert encode(whole) == text
    found: Kept = whole.seen[0]
    return found


FLOATS = arrays.arrays(np.float64, arrays.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4))
KEPT = st.builds(
    Kept,
    st.floats(allow_nan=False) | st.integers(-9, 9),
    st.integers(-(2**63) + 1, 2**63 - 1),
    st.text(),
    st.booleans(),
    FLOATS | FLOATS.map(np.asfortranarray),
    st.none() | st.tuples(st.floats(allow_nan=False), arrays.arrays(np.int64, 3)),
    st.lists(st.integers(-9, 9), max_size=3).map(tuple),
)
ONE = Kept(1.5, 2, "three", truth=True, values=np.arange(3.0), pair=(0.5, np.arange(2)), many=(1, 2))


@given(KEPT)
def test_what_is_kept_comes_back_unchanged(kept: Kept) -> None:
    again(kept)


def test_arrays_that_come_back_are_their_own() -> None:
    found = again(ONE)
    found.values[0] = 7
    assert found.values.tolist() == [7, 1, 2]


def of_jobs(kept: Workload, jobs: int) -> bytes:
    """Return the text of a record of a case with so many jobs, of which an analysis keeps some."""
    one = record(dataclasses.replace(ONE, jobs=kept))
    return encode(dataclasses.replace(one, facts=dataclasses.replace(one.facts, jobs=jobs)))


def test_jobs_that_a_site_left_out_of_a_case_stay_out(jobs: Workload) -> None:
    kept = jobs.select(np.arange(len(jobs)) % 7 != 3)
    assert same(decode(of_jobs(kept, len(jobs)), [Keeps()], lambda: jobs).seen[0].jobs, kept)


def test_the_jobs_of_a_case_are_only_mentioned(jobs: Workload) -> None:
    for own in (jobs, jobs.in_ticks(1000), dataclasses.replace(jobs, machine=200)):
        text = of_jobs(own, len(jobs))
        assert len(text) < 1000
        assert same(decode(text, [Keeps()], lambda: jobs).seen[0].jobs, own)
    with pytest.raises(InputError, match="jobs of another case"):
        decode(text, [Keeps()], lambda: jobs.select(slice(0, 9)))


def test_what_cannot_be_written_is_refused() -> None:
    with pytest.raises(TypeError, match="not JSON serializable"):
        encode(record({1, 2}))


def test_every_analysis_declares_what_it_keeps() -> None:
    for name in ANALYSES:
        assert observed_type(type(make_analysis(name))) is not Any


GOOD = encode(record(ONE))
TEXT = base64.b64encode(bytes(24))
VALUES = encode(record(ONE))[GOOD.index(b'"values":') + 9 : GOOD.index(b',"pair"')]
WRONG = [
    b"",
    b"\xff",
    b"[1, 2]",
    b"{}",
    b"7",
    b'{"seen":[]}',
    b"[" * 100_000,
    b'{"seen":' * 100_000,
    b"9" * 10_000,
    GOOD.replace(b'"number":1.5', b'"number":"1.5"'),
    GOOD.replace(b'"number":1.5', b'"number":true'),
    GOOD.replace(b'"number":1.5', b'"other":1.5'),
    GOOD.replace(b'"count":2', b'"count":2.5'),
    GOOD.replace(b'"count":2', b'"count":%d' % 10**30),
    GOOD.replace(b'"many":[1,2]', b'"many":[1,null]'),
    GOOD.replace(b'"many":[1,2]', b'"many":7'),
    GOOD.replace(b'"jobs":null', b'"jobs":[1,1,"0"]'),
    GOOD.replace(b'"span_s":1000000.0', b'"span_s":null'),
    GOOD.replace(b'"sha256":"' + b"0" * 64 + b'"', b'"sha256":null'),
    *(
        GOOD.replace(VALUES, column)
        for column in (
            b"null",
            b"[]",
            b'["<,i8",[3],"C","%s"]' % TEXT,  # numpy reads it as Python, and fails in its parser
            b'["<i8",[3],"C","%s"]' % TEXT,
            b'["|O8",[3],"C","%s"]' % TEXT,
            b'["<U2",[3],"C","%s"]' % TEXT,
            b'["<f8",[2],"C","%s"]' % TEXT,
            b'["<f8",[99999999999999],"C","%s"]' % TEXT,
            b'["<f8",[-3],"C","%s"]' % TEXT,
            b'["<f8",[true],"C","%s"]' % TEXT,
            b'["<f8",[3],"X","%s"]' % TEXT,
            b'["<f8",[3],"C","!!!!"]',
            b'["<f8",[3],"C"]',
        )
    ),
]


@pytest.mark.parametrize("text", WRONG, ids=lambda text: repr(text[:40]))
def test_a_text_that_is_none_is_refused(text: bytes) -> None:
    with pytest.raises(InputError, match="is not the record of a simulation"):
        decode(text, [Keeps()], read_nothing)


def read_nothing() -> Workload:
    columns = (np.arange(3), np.arange(3), np.full(3, 60), np.full(3, 90), np.ones(3), np.arange(3), np.full(3, -1))
    return Workload("small", 4, *(np.asarray(column, dtype=np.int64) for column in columns))


def test_a_record_of_other_analyses_is_refused() -> None:
    with pytest.raises(InputError, match="is not the record of a simulation"):
        decode(GOOD, [], none)


def test_what_is_wrong_is_said_in_printable_characters() -> None:
    with pytest.raises(InputError) as error:
        decode(GOOD.replace(VALUES, '["1\u00a02",[3],"C","AAAA"]'.encode()), [Keeps()], none)
    assert str(error.value).isprintable()


@given(st.binary(max_size=60) | st.integers(0, len(GOOD)).map(lambda cut: GOOD[:cut] + GOOD[cut + 1 :]))
def test_any_bytes_are_read_or_refused(text: bytes) -> None:
    with contextlib.suppress(InputError):
        decode(text, [Keeps()], none)
