"""The runner of mutants on planted modules: a mutant that matters is killed, one that does not survives."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from mutation.command import HERE, interval, main, read_survivors, read_targets
from mutation.operators import mutants, mutated
from mutation.results import BEGIN, END, PARTS, page_table, put_table, read_records, read_table
from support import ROOT

PLANTED = '''"""Planted; 1 + 1 is not changed here."""

import itertools

LIMIT = 3


def least(values: list[int]) -> int:
    """Return the least of the values, at most the limit."""
    best = LIMIT
    for value in values:
        if value < best:
            best = value
    return best


def count(seconds: int) -> int:
    for counted in itertools.count():
        if counted == seconds:
            break
    return counted
'''
TESTS = """
from planted import count, least

def test_least():
    assert least([2, 1, 2]) == 1
    assert least([5]) == 3

def test_count():
    assert count(2) == 2
"""


@pytest.mark.slow
def test_the_fates_of_planted_mutants(tmp_path: Path) -> None:
    (tmp_path / "planted.py").write_text(PLANTED, encoding="utf-8")
    (tmp_path / "test_planted.py").write_text(TESTS, encoding="utf-8")
    (tmp_path / "pytest.ini").write_text("[pytest]\npythonpath = .\n", encoding="utf-8")
    (tmp_path / "targets.toml").write_text('[[target]]\nmodule = "planted.py"\ntests = ["test_planted.py"]\n')
    change = 'before = "if value < best:"\nafter = "if value <= best:"\nreason = "equal values are the same"\n'
    (tmp_path / "survivors.toml").write_text(f'[[survivor]]\nmodule = "planted.py"\nfunction = "least"\n{change}')
    files = sorted(path.name for path in tmp_path.iterdir())
    command = [sys.executable, "-m", "mutation", "--root", str(tmp_path), "--targets", str(tmp_path / "targets.toml")]
    command += ["--survivors", str(tmp_path / "survivors.toml"), "--output", "results.json", "--preload", ""]
    environment = {**os.environ, "PYTHONPATH": str(HERE.parent)}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    records = [json.loads(line) for line in (tmp_path / "results.json").read_text().splitlines()]
    fates = {(record["before"], record["after"]): record["fate"] for record in records}
    assert len(fates) == len(records), done.stderr
    assert fates["if value < best:", "if value <= best:"] == "survived"
    assert fates["if value < best:", "if value >= best:"] == "killed"
    # Of the module and not of a function: the changed module is imported.
    assert fates["LIMIT = 3", "LIMIT = 4"] == "killed"
    # It never ends.
    assert fates["break", "continue"] == "out of time"
    survived = {change for change, fate in fates.items() if fate == "survived"}
    assert survived == {("if value < best:", "if value <= best:")}
    assert done.returncode == 0, done.stderr
    assert f"| all | {len(fates)} |" in done.stdout
    assert "equal values are the same" in done.stdout
    # Nothing but the results and Python's own bytecode is written.
    assert sorted({path.name for path in tmp_path.iterdir()} - {"__pycache__"}) == sorted([*files, "results.json"])
    assert (tmp_path / "planted.py").read_text(encoding="utf-8") == PLANTED
    # A kill leaves some results and part of one; the next run goes on with the others.
    whole = (tmp_path / "results.json").read_bytes()
    kept = whole[: whole.index(b"\n", len(whole) // 2) + 1]
    (tmp_path / "results.json").write_bytes(kept + whole[len(kept) : len(kept) + 30])
    done = subprocess.run([*command, "--budget", "0"], cwd=tmp_path, env=environment, capture_output=True, check=False)
    assert b"mutants are still to be run" in done.stdout
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert f"| all | {len(fates)} |" in done.stdout
    again = (tmp_path / "results.json").read_bytes()
    assert again.startswith(kept)
    assert again.count(b"\n") == len(records) + 1
    assert set(read_records([tmp_path / "results.json"]).items()) == {
        ((*(record[part] for part in PARTS),), record["fate"]) for record in records
    }
    # Only what survived is run once more, where it has no explanation.
    (tmp_path / "survivors.toml").write_text("", encoding="utf-8")
    done = subprocess.run([*command, "--again"], cwd=tmp_path, env=environment, capture_output=True, check=False)
    assert done.returncode == 1, done.stderr
    assert (tmp_path / "results.json").read_bytes().count(b"\n") == len(records) + 2


@pytest.mark.slow
def test_what_is_changed_and_what_is_not() -> None:
    source = '''"""Text 1 + 1."""
from typing import TYPE_CHECKING
__all__ = ["a"]
Pair = tuple[int, 1]
if TYPE_CHECKING:
    x = 1 + 1

@decorated(1)
def a(b: "int + 1" = 2) -> 1 + 1:
    """Text."""
    if b:
        raise ValueError(f"{b + 1}", 1)
    return min(b, not b)
'''
    tree, result = mutants("m.py", source)
    changes = {(mutant.operator, mutant.after) for mutant in result}
    assert changes == {
        ("constant", "def a(b: 'int + 1'=3) -> 1 + 1:"),
        ("constant", "def a(b: 'int + 1'=1) -> 1 + 1:"),
        ("boolean", "if not b:"),
        ("statement", "pass"),
        ("function", "return max(b, not b)"),
        ("boolean", "return min(b, b)"),
    }
    for mutant in result:
        with mutated(mutant):
            compile(tree, "m.py", "exec")
    again, _ = mutants("m.py", source)
    assert ast.dump(tree) == ast.dump(again), "a change was not taken back"


@pytest.mark.slow
def test_each_operator_on_its_sign() -> None:
    def after(expression: str) -> set[str]:
        return {mutant.after for mutant in mutants("m.py", expression)[1]}

    assert after("a < b") == {"a <= b", "a >= b"}
    assert after("a == b") == {"a != b"}
    assert after("a + b") == {"a - b"}
    assert after("a // b") == {"a / b"}
    assert after("a << b") == {"a >> b"}
    assert after("a and b") == {"a or b", "not a and b", "a and (not b)"}
    assert after("-a") == {"a"}
    assert after("x = 5") == {"x = 6", "x = 4"}
    assert after("x = 0") == {"x = 1", "x = -1"}
    assert after("x = True") == {"x = False"}
    assert after("x += y") == {"x -= y", "pass"}
    assert after("f(x)") == {"pass"}
    assert after("np.maximum(a, b)") == {"np.minimum(a, b)", "pass"}
    assert after("for x in y:\n    break") == {"for x in ():", "continue"}
    assert after("while x:\n    continue") == {"while False:", "while not x:", "break"}


def test_the_targets_and_the_explained_survivors_are_of_this_source() -> None:
    targets = read_targets(HERE / "targets.toml", ROOT)
    modules = [target.module for target in targets]
    assert len(set(modules)) == len(modules)
    for target in targets:
        for test in target.tests:
            path, _, name = test.partition("::")
            source = (ROOT / path).read_text(encoding="utf-8")
            assert not name or f"def {name.partition('[')[0]}(" in source, test
    known = {
        mutant.key for module in modules for mutant in mutants(module, (ROOT / module).read_text(encoding="utf-8"))[1]
    }
    stale = [key for key in read_survivors(HERE / "survivors.toml") if key not in known]
    assert not stale, "survivors.toml explains mutants that are no more"


@pytest.mark.slow
@pytest.mark.parametrize(("killed", "all_", "low", "high"), [(90, 100, 0.826, 0.945), (0, 10, 0.0, 0.278)])
def test_the_interval_is_wilsons(killed: int, all_: int, low: float, high: float) -> None:
    # From the formula in Wilson, JASA 22, 1927, worked once by hand.
    assert interval(killed, all_) == pytest.approx((low, high), abs=6e-4)


@pytest.mark.slow
def test_files_of_results_are_joined_and_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "some" / "fitting").mkdir(parents=True)
    (tmp_path / "some" / "fitting" / "sums.py").write_text("def total(a, b):\n    return a + b - 3\n", encoding="utf-8")
    module = "some/fitting/sums.py"
    (tmp_path / "targets.toml").write_text(f'[[target]]\nmodule = "{module}"\ntests = []\n', encoding="utf-8")
    before = "return a + b - 3"
    (tmp_path / "survivors.toml").write_text(
        f'[[survivor]]\nmodule = "{module}"\nfunction = "total"\nbefore = "{before}"\n'
        'after = "return a + b - 4"\nreason = "of no matter"\n',
        encoding="utf-8",
    )

    def results(name: str, fates: dict[str, str]) -> str:
        rows = [
            {"module": module, "function": "total", "before": before, "after": a, "nth": 0, "fate": f}
            for a, f in fates.items()
        ]
        (tmp_path / name).write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        return str(tmp_path / name)

    # Four mutants: two signs, two numbers; one was not run, one result is of a statement that is no more.
    first = {"return a - b - 3": "survived", "return a + b - 4": "survived", "return a": "survived"}
    files = [results("1", first), results("2", {"return a - b - 3": "killed", "return a + b + 3": "out of time"})]
    page = tmp_path / "page.md"
    page.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n", encoding="utf-8")
    options = ["--root", str(tmp_path), "--targets", str(tmp_path / "targets.toml"), "--page", str(page)]
    options += ["--survivors", str(tmp_path / "survivors.toml"), "--table", str(tmp_path / "table.csv")]
    assert main([*options, "--join", *files]) == 0, "every survivor is explained"
    assert "3 of 4 mutants; 1 results of changed sources left out" in capsys.readouterr().out
    assert (tmp_path / "table.csv").read_text(encoding="utf-8").splitlines() == [
        "module,mutants,run,killed,without_end,explained,unexplained",
        f"{module},4,3,1,1,1,0",
    ]
    text = page.read_text(encoding="utf-8")
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert "| fits | 4 | 3 | 2 | 1 | 1 | 0 | 66.6 | 100.0 |" in text
    assert "old" not in text
    # In the other order the first file counts: a survivor without a reason.
    assert main([*options, "--join", *files[::-1]]) == 1
    assert "+ return a - b - 3" in capsys.readouterr().out


def test_the_page_shows_the_committed_table() -> None:
    page = (ROOT / "docs" / "trust.md").read_text(encoding="utf-8")
    rows = read_table(ROOT / "docs" / "data" / "mutants.csv")
    assert page_table(rows) in page
    assert put_table(page, rows) == page
    assert set(rows) == {target.module for target in read_targets(HERE / "targets.toml", ROOT)}
    for module, row in rows.items():
        counted = row["killed"] + row["without_end"] + row["explained"] + row["unexplained"]
        assert counted == row["run"] <= row["mutants"], module
