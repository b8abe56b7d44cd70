"""What was found of a simulation as text: it comes back as it was, and nothing else can be read."""

from __future__ import annotations

import base64
import contextlib
import dataclasses
import math
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from policyfactory.core.errors import InputError, WorkloadError
from policyfactory.evaluate.analyses import ANALYSES, make_analysis
from policyfactory.evaluate.analyses.replay import Replay
from policyfactory.evaluate.work import RECORDS, Shared, SimulationResult, UnitSettings, decode, encode, simulate_unit
from policyfactory.policy.store import resolve
from policyfactory.simulate.cases import case_of
from policyfactory.simulate.rules import Rules
from policyfactory.simulate.tuning.tuner import Contender, Tuner
from policyfactory.workload.clean import read
from policyfactory.workload.jobs import Attributes, Workload


def same(first: Any, second: Any) -> bool:
    """Whether two values are equal in type and in every bit."""
    if type(first) is not type(second):
        return False
    if isinstance(first, np.ndarray):
        about = [(one.dtype, one.shape, one.flags.c_contiguous, one.flags.f_contiguous) for one in (first, second)]
        return about[0] == about[1] and first.tobytes() == second.tobytes()
    if isinstance(first, np.generic):
        return first.dtype == second.dtype and first.tobytes() == second.tobytes()
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
    analysis = Replay() if name == "replay" else make_analysis(name)
    contenders = CONTENDERS[:2] if rules.compatibility == "sc17" else CONTENDERS
    job = UnitSettings(tuple(contenders), rules, ("mean_bsld",), (analysis,), None, recorded=True, in_text=True)
    shared = Shared(job, [case_of(jobs)], {0: 1})
    for done in simulate_unit(shared, (0, tuple(range(len(contenders)))), nothing):
        assert done.text is not None
        assert b"\n" not in done.text
        again = decode(done.text, lambda: jobs)
        assert same(again, done.result)
        assert encode(again, again.facts.sha256) == done.text


def test_every_record_is_a_class_that_is_there() -> None:
    for module, kind in RECORDS.values():
        assert isinstance(getattr(import_module(f"policyfactory.{module}"), kind), type)


def test_attributes_of_jobs_come_back(jobs: Workload) -> None:
    names = [field.name for field in dataclasses.fields(Attributes)]
    known = Attributes(**{name: np.arange(len(jobs)) + at for at, name in enumerate(names)})
    again = decode(encode(dataclasses.replace(jobs, attributes=known)))
    for name in names:
        np.testing.assert_array_equal(getattr(again.attributes, name), getattr(known, name))
    wrong = {name: np.zeros(at % 2 + 1) for at, name in enumerate(names)}
    with pytest.raises(WorkloadError, match=r"attributes of shapes \(1,\), \(2,\); each job has one of each"):
        Attributes(**wrong)


def test_the_jobs_of_a_case_are_mentioned_and_other_jobs_are_written_out(jobs: Workload) -> None:
    named = dataclasses.replace(jobs, name="other", origin="drawn")
    text = encode([named], jobs.sha256())
    assert len(text) < 200
    (again,) = decode(text, lambda: jobs)
    assert same(again, named)
    finer = jobs.in_ticks(1000)
    assert same(decode(encode(finer, jobs.sha256()), lambda: jobs), finer)


def test_what_a_log_says_besides_comes_back_and_nothing_in_its_place() -> None:
    n = 3
    attributes = dataclasses.replace(Attributes.unknown(n), queue=np.arange(n), group=np.arange(n) % 2)
    columns = (np.arange(n), np.arange(n), np.full(n, 60), np.full(n, 90), np.ones(n), np.arange(n), np.full(n, -1))
    log = Workload("small", 4, *columns, attributes=attributes)
    again = decode(encode(log))
    assert same(again, log)
    # A column of another length, and something that is no attributes.
    text = encode(log)
    for found, put in (
        (encode(np.arange(n)), encode(np.arange(n + 1))),
        (encode(attributes), encode([1] * n)),
        (encode(attributes), b"3"),
    ):
        assert found in text
        with pytest.raises(InputError, match="is not the result of a simulation"):
            decode(text.replace(found, put))


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text()
    | st.floats().map(np.float64)
    | arrays.arrays(
        arrays.integer_dtypes(endianness="=") | arrays.floating_dtypes(endianness="=") | arrays.boolean_dtypes(),
        arrays.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4),
    )
    | arrays.arrays(np.float64, (3, 4)).map(np.asfortranarray),
    lambda inner: st.lists(inner, max_size=4) | st.lists(inner, max_size=4).map(tuple),
    max_leaves=8,
)


@given(VALUES)
def test_a_value_comes_back_unchanged(value: Any) -> None:
    text = encode(value)
    assert b"\n" not in text
    assert same(decode(text), value)


def test_arrays_that_come_back_are_their_own() -> None:
    again = decode(encode(np.arange(3)))
    again[0] = 7
    assert again.tolist() == [7, 1, 2]
    assert math.isnan(decode(encode(math.nan)))


def test_a_kind_that_nobody_entered_is_refused() -> None:
    with pytest.raises(TypeError, match="Rules cannot be written"):
        encode(Rules())


TEXT = base64.b64encode(bytes(8)).decode()
WRONG = [
    b'{"number":["<,i8","BQAAAAAAAAA="]}',  # numpy reads it as Python, and fails in its parser
    b"",
    b"\xff",
    b"[1, 2]",
    b"{}",
    b'{"tuple": 1}',
    b'{"tuple": [], "list": []}',
    b'{"os.system": ["true"]}',
    b'{"run": [1]}',
    b'{"workload": [1, 2, 3]}',
    b'{"jobs": ["a", null, null, ""]}',
    b'{"array": ["<f8", [2], "C", "%s"]}' % TEXT.encode(),
    b'{"array": ["<f8", [99999999999999], "C", "%s"]}' % TEXT.encode(),
    b'{"array": ["<f8", [-1], "C", "%s"]}' % TEXT.encode(),
    b'{"array": ["<f8", [true], "C", "%s"]}' % TEXT.encode(),
    b'{"array": ["|O8", [1], "C", "%s"]}' % TEXT.encode(),
    b'{"array": ["<U2", [1], "C", "%s"]}' % TEXT.encode(),
    b'{"array": ["<f8", [1], "X", "%s"]}' % TEXT.encode(),
    b'{"array": ["<f8", [1], "C", "!!!!"]}',
    b'{"array": ["<f8", [1], "C"]}',
    b'{"number": ["<f8"]}',
    b"[" * 100_000,
    b'{"tuple": [' * 100_000,
    b"9" * 10_000,
]


@pytest.mark.parametrize("text", WRONG, ids=lambda text: repr(text[:40]))
def test_a_text_that_is_none_is_refused(text: bytes) -> None:
    with pytest.raises(InputError, match="is not the result of a simulation"):
        decode(text)


def test_what_is_wrong_is_said_in_printable_characters() -> None:
    with pytest.raises(InputError) as error:
        decode('{"array":["1\u00a02",[3],"C","AAAA"]}'.encode())
    assert str(error.value).isprintable()


@given(st.binary(max_size=60) | VALUES.map(lambda value: encode(value)[1:-1]))
def test_any_bytes_are_read_or_refused(text: bytes) -> None:
    with contextlib.suppress(InputError):
        decode(text)


def test_a_run_has_the_fields_that_the_table_takes() -> None:
    assert [field.name for field in dataclasses.fields(SimulationResult)] == [
        "facts", "values", "longest_wait", "longest_wait_job", "waiting", "recorded", "seen", "weeks", "recorded_weeks",
    ]  # fmt: skip
