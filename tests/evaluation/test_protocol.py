"""Protocols as they are written: what is read, and what is told when a key, a name or a value cannot be meant."""

from __future__ import annotations

import gzip
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from policyfactory.cli.reference import with_tables
from policyfactory.core.errors import InputError, UsageError, WorkloadError
from policyfactory.core.files import dump_toml
from policyfactory.evaluation.experiment import with_cases
from policyfactory.evaluation.logs import read_log
from policyfactory.evaluation.options import Threshold, parse_share, parse_threshold
from policyfactory.evaluation.precision import Precision, needed
from policyfactory.evaluation.protocol import MAX_BYTES, Protocol, protocol_of, read_file, read_protocol
from policyfactory.evaluation.study import read_logs, selected
from refusals import refused
from support import ROOT

WHOLE = """
schema_version = 1
name = "whole"
title = "All of it"
source = "A paper"
about = "What is done."
seed = 7

[logs.kth]
file = "kth.swf.gz"
preset = "sc17"
machine = 100
estimate_missing = "drop"

[logs.model]
lublin = { processors = 256, jobs = 300, seed = 1488557399, stream = "drand48", uhi = 8.0, umed = 5.5 }
tsafrir = { max_estimate = "18h", seed = 1 }

[[experiments]]
name = "actual"
title = "By the actual run time"
logs = ["kth"]
windows = "sc17:10x15d"
skip = { kth = [1, 8] }
load = 1.1
estimates = "noisy:0.2"
policies = ["FCFS", "MINE", "beside.json"]
formulas = { MINE = "p*q" }
tuners = [{ name = "Full, day", feedback = "simulate", period = "1d", discount = 0.9 }]
metrics = ["mean_bsld", "max-wait"]
statistic = "mean"
analyses = ["groups", { name = "premature", source = "mine" }]
[experiments.rules]
backfill = "none"
decide_by = "runtime"
threshold = "40h"
ties = "lifo"
overrun = "kill"
[experiments.reference]
source = "table 4"
metric = "mean_bsld"
statistic = "median"
digits = 2
first = 9
values.kth = { FCFS = 299.83, MINE = 10 }
drop.kth = { FCFS = 1 }

[[experiments]]
name = "drawn"
resample = { count = 60, length = "2y", draw = "active" }
policies = ["FCFS", "SPF"]
[experiments.rules]
threshold = "3x longest request"
backfill_policy = "SPF"

[[claims]]
text = "MINE is better"
better = ["MINE"]
than = ["FCFS"]
metric = "mean_bsld"
experiments = ["actual"]
logs = ["kth"]
"""

SMALL: dict[str, Any] = {
    "schema_version": 1,
    "name": "small",
    "logs": {"m": {"lublin": {"processors": 8, "jobs": 50, "seed": 1}}},
    "experiments": [{"name": "e", "policies": ["FCFS", "SPF"], "metrics": ["mean_bsld"]}],
}


def write(folder: Path, text: str, name: str = "p.toml") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture
def whole(tmp_path: Path) -> Protocol:
    model = {"kind": "policyfactory-model", "schema_version": 1, "name": "beside", "formula": "p"}
    (tmp_path / "beside.json").write_text(json.dumps(model))
    return read_protocol(write(tmp_path, WHOLE))


def test_every_key_arrives_where_it_is_meant(whole: Protocol, tmp_path: Path) -> None:
    assert (whole.name, whole.title, whole.source, whole.about, whole.seed) == (
        "whole", "All of it", "A paper", "What is done.", 7,
    )  # fmt: skip
    kth, model = whole.logs.values()
    assert list(whole.logs) == ["kth", "model"]
    assert (kth.file, kth.preset, kth.machine) == ("kth.swf.gz", "sc17", 100)
    assert kth.estimate_missing == "drop"
    assert model.lublin is not None
    assert (model.lublin.processors, model.lublin.jobs, model.lublin.seed) == (256, 300, 1488557399)
    assert (model.lublin.stream, model.lublin.typed, model.lublin.uhi, model.lublin.umed) == (
        "drand48",
        False,
        8.0,
        5.5,
    )
    assert model.tsafrir is not None
    assert (model.tsafrir.max_estimate, model.tsafrir.seed) == (64800, 1)
    plans = whole.experiments
    actual, drawn = plans
    assert actual.policies == ("FCFS", "MINE", "beside", "Full, day")
    assert actual.metrics == ("mean_bsld", "max_wait")
    table = plans[0].table
    assert table.windows is not None
    assert (table.windows.count, table.windows.length, table.windows.rule) == (10, 15 * 86400, "sc17")
    assert (table.resample, table.skip, actual.statistic, actual.seed) == (None, {"kth": (1, 8)}, "mean", 7)
    assert (plans[0].sensitivity.load, str(plans[0].sensitivity.estimates)) == (1.1, "noisy:0.2")
    rules = actual.rules
    assert (rules.backfill, rules.decide_by, rules.threshold, rules.ties) == ("none", "runtime", 144000, "lifo")
    assert (rules.overrun, rules.compatibility, rules.backfill_policy) == ("kill", "none", None)
    assert [analysis.name for analysis in actual.analyses] == ["groups", "premature"]
    (reference,) = actual.references
    assert reference.values == {"kth": {"FCFS": 299.83, "MINE": 10.0}}
    assert (reference.first, reference.drop, reference.digits) == (9, {"kth": {"FCFS": 1}}, 2)
    assert plans[1].log_names == ("kth", "model")
    assert drawn.title == "drawn"
    resample = plans[1].table.resample
    assert resample is not None
    assert (resample.count, resample.length, resample.draw) == (60, 104, "active")
    assert (plans[1].times_longest, drawn.rules.threshold) == (3.0, math.inf)
    assert drawn.rules.backfill_policy is not None
    (claim,) = whole.claims
    assert (claim.better, claim.than, claim.experiments, claim.logs) == (("MINE",), ("FCFS",), ("actual",), ("kth",))
    assert set(whole.hashes) == {str(tmp_path / "p.toml"), str(tmp_path / "beside.json")}


def test_a_protocol_that_is_written_again_is_the_same(tmp_path: Path, whole: Protocol) -> None:
    content = read_file(tmp_path / "p.toml").content
    assert read_file(write(tmp_path, dump_toml(content), "again.toml")).content == content


def changed(text: str, old: str, new: str) -> str:
    assert old in text, old
    return text.replace(old, new, 1)


WRONG = [
    # (what is replaced, by what, what the message tells: table, key, value, what would be right)
    ("schema_version = 1", "schema_version = 2", "schema_version 2 1"),
    ("schema_version = 1", "", "schema_version missing"),
    ('name = "whole"', 'name = "../x"', "name ../x"),
    ("seed = 7", "seed = -1", "seed -1 0"),
    ("seed = 7", "seed = true", "seed True"),
    ("seed = 7", "sead = 7", "sead 7 seed"),
    ('title = "All of it"', "title = 5", "title 5"),
    ('file = "kth.swf.gz"', "", "logs.kth file one"),
    ('file = "kth.swf.gz"', 'file = "a"\nembedded = true', "logs.kth file a"),
    ('preset = "sc17"', 'preset = "sc71"', "logs.kth preset sc71"),
    ('preset = "sc17"', 'sha256 = "12"', "logs.kth sha256 12"),
    ("machine = 100", "machine = 0", "logs.kth machine 0 1"),
    ("machine = 100", 'machine = "100"', "logs.kth machine 100"),
    ('estimate_missing = "drop"', 'estimate_missing = "guess"', "estimate_missing guess"),
    ("jobs = 300,", "", "logs.model.lublin jobs missing"),
    ("uhi = 8.0", "uhj = 8.0", "logs.model.lublin uhj 8.0 uhi"),
    ("uhi = 8.0", "uhi = inf", "logs.model.lublin uhi inf"),
    ('"18h", seed', '"inf", seed', "logs.model.tsafrir max_estimate inf"),
    ('name = "actual"', 'name = "Act ual"', "experiments"),
    ('name = "drawn"', 'name = "actual"', "two actual"),
    ('logs = ["kth"]', 'logs = ["ktb"]', "experiments logs ktb actual"),
    ('logs = ["kth"]', 'logs = "kth"', "experiments logs kth actual"),
    ('logs = ["kth"]', 'logs = ["kth", "kth"]', "kth twice actual"),
    ('windows = "sc17:10x15d"', 'windows = "ten"', "windows ten actual"),
    ('windows = "sc17:10x15d"', 'windows = "999999x1d"', "windows 999999x1d 100,000"),
    ('windows = "sc17:10x15d"', 'resample = { count = 2 }\nwindows = "15d"', "windows resampled logs actual"),
    ("skip = { kth", "skip = { ktb", "experiments.skip ktb 1"),
    ('name = "actual"', 'name = "claims"', "claims report"),
    ("load = 1.1", "load = 0", "load 0"),
    ('estimates = "noisy:0.2"', 'estimates = "loud"', "estimates loud"),
    ('"MINE", "beside.json"', '"MINE", "SFP"', "policies FCFS MINE SFP"),
    ('"MINE", "beside.json"', '"MINE", "gone.json"', "gone.json"),
    ('"MINE", "beside.json"', '"MINE", "FCFS"', "two FCFS actual"),
    ('MINE = "p*q"', 'MINE = "p*"', "experiments.formulas MINE p* 3"),
    ('feedback = "simulate"', 'feedback = "magic"', "experiments.tuners feedback magic Full day"),
    ('feedback = "simulate"', "feedbak = 3", "experiments.tuners feedbak 3 Full day"),
    ('period = "1d"', "period = 86400", "period 86400"),
    ('period = "1d"', 'period = "soon"', "period soon"),
    ('period = "1d"', 'period = "inf"', "period inf"),
    ("discount = 0.9", "discount = true", "discount True 0 1"),
    ("discount = 0.9", "discount = 2", "discount 2 0 1"),
    ("discount = 0.9", 'epsilon = "0.1"', "experiments.tuners epsilon 0.1 Full day 0 1"),
    ('policies = ["FCFS", "SPF"]', "policies = []", "policies names policy drawn"),
    ('policies = ["FCFS", "SPF"]', 'logs = []\npolicies = ["FCFS", "SPF"]', "logs names no log"),
    ("discount = 0.9", 'policies = "SPF"', "policies SPF"),
    ("discount = 0.9", 'policies = ["F1"]', "F1 FCFS MINE beside"),
    ('"max-wait"', '"max_wiat"', "metrics max_wiat"),
    ('statistic = "mean"', 'statistic = "mode"', "statistic mode"),
    ('"groups", {', '"grops", {', "grops groups analysis"),
    ('source = "mine" }', 'sauce = "mine" }', "sauce analysis premature"),
    ('backfill = "none"', 'backfill = "some"', "experiments.rules backfill some"),
    ('threshold = "40h"', 'threshold = "soon"', "experiments.rules threshold soon"),
    ('threshold = "40h"', "threshold = 40", "threshold 40"),
    ('ties = "lifo"', 'compatibility = "pyss"', "compatibility pyss sc17"),
    ('threshold = "40h"', 'backfill_policy = "SPF"', "needs backfill easy none"),
    ('metric = "mean_bsld"\nstatistic', 'metric = "mean_wait"\nstatistic', "measure mean_wait"),
    ("FCFS = 299.83", "FCSF = 299.83", "experiments.reference.values.kth FCSF 299.83"),
    ("values.kth", "values.ktb", "experiments.reference.values ktb FCFS"),
    ("drop.kth = { FCFS = 1 }", "drop.kth = { FCFS = 1.5 }", "experiments.reference.drop.kth FCFS 1.5"),
    ("drop.kth = { FCFS = 1 }", "drop.kth = { FCFS = -1 }", "FCFS -1 0"),
    ('statistic = "median"', 'statistic = "ratio"', "kth FCFS without pair"),
    ("first = 9", "first = 0", "first 0 1"),
    ('count = 60, length = "2y"', 'count = 0, length = "2y"', "experiments.resample count 0"),
    ("count = 60", "count = 100001", "count 100001 1 100,000"),
    ('length = "2y"', 'length = "5h"', "experiments.resample length 5h"),
    ('draw = "active"', 'draw = "all"', "draw all"),
    ('better = ["MINE"]', 'better = ["SAF"]', "claims better SAF MINE is"),
    ('than = ["FCFS"]', 'than = ["MINE"]', "MINE better"),
    ('than = ["FCFS"]', "than = []", "least policy than"),
    ('experiments = ["actual"]', 'experiments = ["virtual"]', "virtual experiment"),
    ('metric = "mean_bsld"\nexperiments', 'metric = "makespan"\nexperiments', "measure makespan"),
    ("[[claims]]", "[claims]", "claims"),
]


@pytest.mark.parametrize(("old", "new", "message"), WRONG, ids=lambda value: str(value)[:40])
def test_an_error_names_file_table_key_value_and_cure(
    old: str, new: str, message: str, tmp_path: Path, whole: Protocol
) -> None:
    path = write(tmp_path, changed(WHOLE, old, new))
    text = refused(InputError, message, read_protocol, path)
    assert text.startswith(f"{path}: "), text
    assert "\n" not in text or "character" in text


def test_an_error_about_long_names_is_short(tmp_path: Path, whole: Protocol) -> None:
    path = write(tmp_path, changed(WHOLE, 'logs = ["kth"]', f'logs = ["{"k" * 15_000}"]'))
    with pytest.raises(InputError) as error:
        read_protocol(path)
    assert len(str(error.value)) < 2000


def test_a_formula_that_no_policy_names_comes_last(tmp_path: Path, whole: Protocol) -> None:
    text = changed(WHOLE, '{ MINE = "p*q" }', '{ MINE = "p*q", LATE = "q" }')
    assert read_protocol(write(tmp_path, text)).experiments[0].policies == (
        "FCFS", "MINE", "beside", "LATE", "Full, day",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"a = [", "TOML"),
        (b"\xff\xfe", "UTF-8"),
        (b"a = 1\na = 2", "TOML"),
        (b"x" * (MAX_BYTES + 1), "1,000,000"),
        (b"a = " + b"[" * 5000 + b"]" * 5000, ""),
        (b"", "schema_version missing"),
        (b"schema_version = 1", "logs names log"),
        (b"schema_version = 1\n[logs]\n", "logs"),
        (b"schema_version = 1\nlogs = 3\n", "logs 3"),
        (b"schema_version = 1\n[logs.a]\nembedded = true\n", "experiments names experiment"),
        (b"schema_version = 1\nname = 'x'\n[logs.\"a\\nb\"]\nembedded = true\n", "printable characters 1"),
        (b"schema_version = 1979-05-27\n", "date whole number 1979"),
    ],
    ids=range(12),
)
def test_a_file_that_is_no_protocol_is_refused(data: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "p.toml"
    path.write_bytes(data)
    assert refused(InputError, message, read_protocol, path).startswith(str(path))


def test_hostile_texts_are_shown_escaped_and_short(tmp_path: Path) -> None:
    content = {**SMALL, "experiments": [{**SMALL["experiments"][0], "\x1b[31m" + "x" * 5000: "\x07" * 5000}]}
    with pytest.raises(InputError) as error:
        read_protocol(write(tmp_path, dump_toml(content)))
    text = str(error.value)
    assert text.isprintable()
    assert len(text) < 700


def test_too_many_policies_are_refused(tmp_path: Path) -> None:
    formulas = {f"P{number}": f"p + {number}" for number in range(201)}
    content = {**SMALL, "experiments": [{**SMALL["experiments"][0], "formulas": formulas}]}
    refused(InputError, "p.toml 203 200", read_protocol, write(tmp_path, dump_toml(content)))


def test_thresholds_are_durations_or_multiples_of_the_longest_request() -> None:
    assert parse_threshold("40h") == Threshold(144000)
    assert parse_threshold(" 2.5 x  Longest  Request ") == Threshold(None, 2.5)
    assert parse_threshold("inf") == Threshold(math.inf)
    for text in ("x longest request", "-1x longest request", "3x longest", "1e9x longest request"):
        refused(UsageError, f"{text} duration", parse_threshold, text)


def test_precision_as_people_write_it() -> None:
    assert parse_share("2%") == pytest.approx(0.02)
    assert Precision.of({"precision": " 0.02 ", "max_resamples": 5}, "call") == Precision(0.02, 5)
    assert Precision.of({"precision": None, "max_resamples": None}, "call") is None
    refused(UsageError, "--max-resamples 5 precision", Precision.of, {"max_resamples": 5}, "command")
    for text in ("two", "0", "-1%", "100%", "nan", "inf", ""):
        refused(UsageError, "2% example --precision", Precision.of, {"precision": text}, "command")
    refused(UsageError, "--max-resamples 0 1 100,000", Precision.of, {"precision": "2%", "max_resamples": 0}, "command")
    # Four times as many for half the width.
    assert needed(10, 0.04, 0.02) == 40
    assert needed(10, math.inf, 0.02) is None


# Logs. ----------------------------------------------------------------------------------------------------------------


def test_logs_are_looked_for_in_the_folder_then_beside_the_protocol(
    tmp_path: Path, shared: Callable[[str], Path], whole: Protocol
) -> None:
    data = shared("oracles/online/trace_kth5k.swf.gz").read_bytes()
    refused(InputError, "kth.swf.gz --traces DIR", read_logs, selected(whole, logs=["kth"]), [tmp_path / "traces"])
    (tmp_path / "kth.swf.gz").write_bytes(data)
    beside = read_logs(selected(whole, logs=["kth"]), [tmp_path / "traces"])["kth"]
    assert list(beside.hashes) == [str(tmp_path / "kth.swf.gz")]
    assert beside.workload.name == "kth"
    (tmp_path / "traces").mkdir()
    (tmp_path / "traces" / "kth.swf.gz").write_bytes(gzip.compress(gzip.decompress(data)[:-1] + b"\n"))
    assert list(read_logs(selected(whole, logs=["kth"]), [tmp_path / "traces"])["kth"].hashes) == [
        str(tmp_path / "traces" / "kth.swf.gz")
    ]


def test_another_version_of_a_log_is_refused(tmp_path: Path, shared: Callable[[str], Path]) -> None:
    path = shared("oracles/online/trace_kth5k.swf.gz")
    content = {**SMALL, "logs": {"kth": {"file": path.name, "sha256": "0" * 64}}}
    protocol = read_protocol(write(tmp_path, dump_toml(content)))
    refused(InputError, "trace_kth5k.swf.gz SHA-256 protocol", read_logs, protocol, [path.parent])


def test_the_jobs_of_a_model_are_those_of_its_keys() -> None:
    source = protocol_of(SMALL).logs["m"]
    first, second = read_log("m", source, []), read_log("m", source, [])
    assert first.workload.sha256() == second.workload.sha256()
    assert (len(first.workload), first.workload.machine, first.workload.name) == (50, 8, "m")
    assert first.hashes == {"m": first.workload.sha256()}


# Cases. ---------------------------------------------------------------------------------------------------------------


def planned(**changes: Any) -> Any:
    content = {**SMALL, "logs": {"m": {"lublin": {"processors": 8, "jobs": 2000, "seed": 1}}}}
    content = {**content, "experiments": [{**SMALL["experiments"][0], **changes}]}
    protocol = protocol_of(content)
    return with_cases(protocol.experiments[0], read_logs(protocol))


def test_cases_are_windows_whole_logs_or_resamples() -> None:
    assert [(case.kind, case.number) for case in planned().cases] == [("log", 1)]
    windows = planned(windows="4x3d", skip={"m": [2]}).cases
    assert [(case.kind, case.number) for case in windows] == [("window", 1), ("window", 3), ("window", 4)]
    drawn = planned(resample={"count": 3, "length": "1w"})
    assert [(case.kind, case.number) for case in drawn.cases] == [("resample", 1), ("resample", 2), ("resample", 3)]
    assert drawn.cases[2].make().sha256() == drawn.more["m"](3).make().sha256() != drawn.more["m"](4).make().sha256()


def test_load_and_requests_are_changed_case_by_case() -> None:
    plain = planned(windows="3x3d").cases
    dense = planned(windows="3x3d", load=2.0).cases
    for a, b in zip(plain, dense, strict=True):
        # The same jobs in each window, in half of the time.
        assert (a.make().job_id == b.make().job_id).all()
        assert b.make().submit[-1] == pytest.approx(a.make().submit[-1] / 2, abs=1)
    noisy = planned(windows="3x3d", estimates="noisy:1").cases
    ratios = [(case.make().requested_time / case.make().run_time).tolist()[:20] for case in noisy]
    assert ratios[0] != ratios[1]
    assert noisy[0].make().sha256() == noisy[0].make().sha256()


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"windows": "3x3d", "skip": {"m": [4]}}, UsageError, "4 3"),
        ({"windows": "2x3d", "skip": {"m": [1, 2]}}, WorkloadError, "m skipped"),
        ({"skip": {"m": [1]}}, UsageError, "windows left 1 --m"),
        ({"rules": {"decide_by": "prediction"}}, UsageError, "m predictions"),
        ({"windows": "1x9000d"}, WorkloadError, "0 windows m"),
    ],
)
def test_impossible_cases_are_refused(changes: dict[str, Any], error: type[Exception], message: str) -> None:
    refused(error, message, planned, **changes)


# The reference page. --------------------------------------------------------------------------------------------------


def test_the_protocol_of_the_reference_page_can_be_read(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "protocols.md").read_text(encoding="utf-8")
    text = page.split("```toml\n")[1].split("```")[0]
    assert read_protocol(write(tmp_path, text)).experiments[0].policies == ("FCFS", "SPF", "MINE")


def test_the_log_of_the_reference_page_has_its_windows(tmp_path: Path, shared: Callable[[str], Path]) -> None:
    folder = shared("traces/KTH-SP2-1996-2.1-cln.swf.gz").parent
    page = (ROOT / "docs" / "protocols.md").read_text(encoding="utf-8")
    protocol = read_protocol(write(tmp_path, page.split("```toml\n")[1].split("```")[0]))
    cases = with_cases(protocol.experiments[0], read_logs(protocol, [folder])).cases
    assert {case.log for case in cases} == {"kth", "model"}


def test_the_reference_page_has_the_declared_keys() -> None:
    page = (ROOT / "docs" / "protocols.md").read_text(encoding="utf-8")
    assert page == with_tables(page), "docs/protocols.md is old: run make docs/protocols.md"
    assert page.count("<!-- keys: ") == 10
