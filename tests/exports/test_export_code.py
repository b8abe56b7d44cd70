"""Python, C and Lua functions rank a thousand random jobs as the formula does, to the last bit."""

from __future__ import annotations

import ast
import ctypes
import dataclasses
import importlib
import math
import re
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from naive.exports import JOBS, MORE, POLICIES, compiler, expected, same_order
from naive.formula import expressions, same_bits
from policyfactory.exports.content import TARGETS, ExportSite, identifier
from policyfactory.policy.expression import PREDICTIONS
from policyfactory.policy.policy import Epoch, Policy
from policyfactory.policy.store import CATALOGUE, Model
from support import examples

NAMES = [policy.name for policy in POLICIES]
# How jobs reach a function: as a scheduler's whole numbers would.
ROWS = [[int(job[name]) for name in "pqrwm"] for job in JOBS]


def source(policy: Policy, target: str) -> str:
    return TARGETS[target].make(Model(policy), ExportSite()).text


def run_python(policy: Policy) -> np.ndarray:
    namespace: dict[str, Any] = {}
    exec(compile(source(policy, "python"), "policy.py", "exec"), namespace)
    return np.array([namespace["score"](*row) for row in ROWS])


@pytest.mark.parametrize("policy", POLICIES, ids=NAMES)
def test_python_gives_the_same_bits(policy: Policy) -> None:
    result = run_python(policy)
    assert np.array_equal(result, expected(policy))
    assert same_order(result, expected(policy))


@pytest.fixture(scope="session")
def c_library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    """All policies in one library, each from its own file, compiled as strictly as a site might."""
    folder = tmp_path_factory.mktemp("c")
    files = []
    for policy in POLICIES:
        files.append(folder / f"{identifier(policy.name)}.c")
        files[-1].write_text(source(policy, "c"))
    strict = ["-std=c99", "-O2", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-Wmissing-prototypes", "-Wshadow"]
    library = folder / "policies.so"
    subprocess.run([compiler(), *strict, "-shared", "-fPIC", "-o", library, *files, "-lm"], check=True)
    return ctypes.CDLL(str(library))


@pytest.mark.parametrize("policy", POLICIES, ids=NAMES)
def test_c_gives_the_same_bits(policy: Policy, c_library: ctypes.CDLL) -> None:
    function = getattr(c_library, f"policyfactory_{identifier(policy.name)}_score")
    function.restype = ctypes.c_double
    function.argtypes = [ctypes.c_double] * 5
    result = np.array([function(*row) for row in ROWS])
    assert np.array_equal(result, expected(policy))
    assert same_order(result, expected(policy))


def test_c_has_no_global_names_outside_its_prefix(tmp_path: Path) -> None:
    policy = Policy("Ü f-1", "log10(p)*min(q, 3) + w**3", epoch=Epoch("fixed", 1_767_225_600), threshold=72_000.0)
    (tmp_path / "x.c").write_text(source(policy, "c"))
    subprocess.run([compiler(), "-std=c99", "-Wall", "-Werror", "-c", "x.c"], cwd=tmp_path, check=True)
    table = subprocess.run(
        ["nm", "-g", "--defined-only", "x.o"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    names = sorted(line.split()[-1] for line in table.stdout.splitlines())
    prefix = "policyfactory_f_1"
    assert names == [f"{prefix}_score", f"{prefix}_threshold_s"]
    assert "const long long policyfactory_f1_epoch_unix = 0LL; /* not fixed: see above */\n" in source(
        CATALOGUE["F1"], "c"
    )


@pytest.mark.parametrize("target", ["python", "c", "lua"])
def test_only_a_formula_with_r_has_an_epoch(target: str) -> None:
    moved = dataclasses.replace(CATALOGUE["SAF"], epoch=Epoch("fixed", 1_767_225_600))
    assert "epoch" not in source(moved, target).lower()
    assert "epoch" in source(CATALOGUE["F1"], target).lower()


LUAS = ["lua51", "lua53", "lua54", "luajit21"]


def lua_module(version: str, text: str) -> Any:
    # Not every platform's lupa has LuaJIT; the Luas it always has must be there.
    lupa = pytest.importorskip("lupa.luajit21") if version == "luajit21" else importlib.import_module(f"lupa.{version}")
    runtime = lupa.LuaRuntime(register_eval=False)
    before = runtime.eval("(function() local n = 0 for _ in pairs(_G) do n = n + 1 end return n end)()")
    module = runtime.execute(text)
    assert runtime.eval("(function() local n = 0 for _ in pairs(_G) do n = n + 1 end return n end)()") == before
    return module


# Lua 5.1 has no base-2 logarithm, and LuaJIT its own powers: there the last bits may differ.
@pytest.mark.parametrize("version", LUAS)
@pytest.mark.parametrize("policy", POLICIES, ids=NAMES)
def test_lua_gives_the_same_bits(policy: Policy, version: str) -> None:
    score = lua_module(version, source(policy, "lua"))["score"]
    result = np.array([score(*row) for row in ROWS], dtype=float)
    wanted = expected(policy)
    if version in {"lua53", "lua54"}:
        assert np.array_equal(result, wanted)
        assert same_order(result, wanted)
    elif "log2" not in policy.formula and "**" not in policy.formula:
        assert np.array_equal(result, wanted)
    else:
        finite = np.isfinite(wanted)
        assert np.array_equal(result[~finite], wanted[~finite])
        assert result[finite] == pytest.approx(wanted[finite], rel=1e-13, abs=1e-13 * np.abs(wanted[finite]).max())


@examples(60)
@given(expressions(depth=5, variables="pqrwm"))
def test_any_formula_in_python_and_lua(tree) -> None:
    if not tree.variables - {"m"}:
        return
    policy = Policy("any", tree.text())
    namespace: dict[str, Any] = {}
    exec(compile(source(policy, "python"), "policy.py", "exec"), namespace)
    lua = lua_module("lua54", source(policy, "lua"))["score"]
    for row, value in zip(ROWS[:20], expected(policy), strict=False):
        assert same_bits(namespace["score"](*row), value), (tree.text(), row)
        assert same_bits(lua(*row), value), (tree.text(), row)


def test_lua_takes_missing_values_and_large_products() -> None:
    score = lua_module("lua54", source(CATALOGUE["SAF"], "lua"))["score"]
    assert score(2**40, 2**40) == 2.0**80
    assert lua_module("lua54", source(CATALOGUE["LEXP"], "lua"))["score"](10, 1) == -1.0


@pytest.mark.parametrize(
    "formula", ["-ln(s) + ln(e) + 0.4*ln(q)", "p*e90 - user_waiting/q + w", "user_running**2 + max(e, e90)*s - r/m"]
)
def test_predictions_are_arguments_behind_the_others(formula: str, tmp_path: Path) -> None:
    policy = Policy("index", formula)
    names = [name for name in PREDICTIONS if name in policy.variables]
    columns = (np.array([job[name] for job in JOBS]) for name in ("p", "q", "r", "w", *PREDICTIONS))
    p, q, r, w, *predictions = columns
    wanted = policy.scores(p, q, r, w, JOBS[0]["m"], predictions=predictions)
    more = [[job[name] for name in names] for job in JOBS]

    namespace: dict[str, Any] = {}
    exec(compile(source(policy, "python"), "policy.py", "exec"), namespace)
    score = namespace["score"]
    rows = zip(ROWS, more, strict=True)
    assert [score(*row, **dict(zip(names, some, strict=True))) for row, some in rows] == wanted.tolist()
    with pytest.raises(TypeError, match=f"missing {len(names)} required keyword-only argument"):
        score(*ROWS[0])

    lua = lua_module("lua54", source(policy, "lua"))
    assert [lua["score"](*row, *some) for row, some in zip(ROWS, more, strict=True)] == wanted.tolist()
    with pytest.raises(Exception, match="attempt to perform arithmetic on a nil value"):
        lua["score"](*ROWS[0])

    (tmp_path / "index.c").write_text(source(policy, "c"))
    strict = ["-std=c99", "-O2", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-Wmissing-prototypes", "-Wshadow"]
    built = [compiler(), *strict, "-shared", "-fPIC", "-o", "index.so", "index.c", "-lm"]
    subprocess.run(built, cwd=tmp_path, check=True)
    function = ctypes.CDLL(str(tmp_path / "index.so")).policyfactory_index_score
    function.restype, function.argtypes = ctypes.c_double, [ctypes.c_double] * (5 + len(names))
    assert [function(*row, *some) for row, some in zip(ROWS, more, strict=True)] == wanted.tolist()


def test_what_a_module_says_about_itself() -> None:
    policy = Policy("Ω\"1'", "p + log10(r)", "short first", "me", Epoch("fixed", 1_767_225_600), 3600.0)
    namespace: dict[str, Any] = {}
    exec(source(policy, "python"), namespace)
    assert (namespace["NAME"], namespace["FORMULA"], namespace["EPOCH_UNIX"]) == (
        policy.name,
        policy.formula,
        1_767_225_600,
    )
    assert namespace["THRESHOLD_S"] == 3600
    assert source(policy, "python").isascii()
    module = lua_module("lua53", source(policy, "lua"))
    assert (module["name"], module["epoch_unix"], module["threshold_s"]) == (policy.name, 1_767_225_600, 3600)
    unlimited = lua_module("lua53", source(CATALOGUE["F1"], "lua"))
    assert (unlimited["threshold_s"], unlimited["epoch_unix"], unlimited["epoch_rule"]) == (
        math.inf,
        None,
        "window-start",
    )


def test_headers_say_how_the_file_was_made() -> None:
    policy = Policy("mine", "w/p + r", "d", "s", Epoch("fixed", 1_767_225_600), 7200.0)
    for target, comment in [("python", "# "), ("c", " * "), ("lua", "-- "), ("latex", "% ")]:
        text = TARGETS[target].make(Model(policy, provenance={"command": "policyfactory fit x.csv"}), ExportSite()).text
        lines = [line.removeprefix(comment) for line in text.splitlines() if line.startswith(comment)]
        assert "Policy mine: d" in lines
        assert any(line.startswith("Made by policyfactory") and f"--to {target}" in line for line in lines)
        assert "score = w/p + r" in lines
        assert "Epoch: r counts from Unix time 1767225600 (2026-01-01 00:00:00 UTC)." in lines
        assert "  p: requested run time of the job (s)" in lines
        assert "Jobs that have waited longer than 2h go first, in submit order." in lines
        assert "The score changes while a job waits: compute it again at every scheduling pass." in lines
        assert "Model made by: policyfactory fit x.csv" in lines


GOLDEN = '''
import math

NAME = 'F1'
FORMULA = 'log10(p)*q + 870*log10(r)'
EPOCH_RULE = 'window-start'
EPOCH_UNIX = None
THRESHOLD_S = math.inf


def _log10(x):
    return math.log10(x) if x > 0.0 else (-math.inf if x == 0.0 else math.nan)


def score(p, q, r=0.0, w=0.0, m=1.0):
    """Return the score of a job; the job with the lowest runs first."""
    p, q, r, w, m = float(p), float(q), float(r), float(w), float(m)
    value = _log10(p) * q + 870.0 * _log10(r)
    return math.inf if value != value else value
'''


def test_golden_python() -> None:
    text = source(CATALOGUE["F1"], "python")
    assert text[text.index("\nimport math") :] == GOLDEN


def test_golden_c_and_lua_expressions() -> None:
    wfp = CATALOGUE["WFP3"]
    assert "        -policyfactory_powi(w / p, 3) * q;\n" in source(wfp, "c")
    assert "  local value = -pf_powi(w / p, 3) * q\n" in source(wfp, "lua")
    signs = Policy("x", "-(-p) - (-q)*-w")
    assert "local value = -(-p) - (-q * (-w))\n" in source(signs, "lua")
    # Only the helpers that are needed.
    assert source(CATALOGUE["SAF"], "c").count("static") == 0
    assert re.findall(r"local function (\w+)", source(MORE[2], "lua")) == []
    ast.parse(source(MORE[0], "python"))


def test_latex() -> None:
    text = TARGETS["latex"].make(Model(CATALOGUE["F1"]), ExportSite()).text
    body = [line for line in text.splitlines() if not line.startswith("%")]
    assert body == [
        "Policy F1 sorts the queue by",
        r"\begin{equation}",
        r"  \mathrm{score}(p, q, r) = \log_{10}\left(p\right) \, q + 870 \, \log_{10}\left(r\right),",
        r"\end{equation}",
        (
            "lower first, where $p$: requested run time of the job (s); $q$: requested processors of the job "
            "(processors); $r$: submit time of the job since the policy's epoch (s)."
        ),
        "Here $r$ counts from the first job of the workload (window).",
    ]
    predicted = TARGETS["latex"].make(Model(Policy("x", "ln(e)/e90*user_waiting")), ExportSite()).text
    assert r"\mathrm{score}(e, e_{90}, \mathrm{user\_waiting}) = " in predicted
    assert r"; $\mathrm{user\_waiting}$: jobs of the same user that waited when" in predicted
