"""Rules of the house that no linter knows."""

from __future__ import annotations

import ast
import functools
import io
import os
import re
import runpy
import subprocess
import tokenize
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from support import ROOT

SUFFIXES = {".py", ".md", ".toml", ".yml", ".c", ".cff", ".json", ".csv", ".sh", ""}
NOT_OURS = {".git", ".fuzz", ".mutants", "dist", "demo", "node_modules", ".cache", ".hypothesis", "__pycache__"}


@functools.cache
def modules() -> list[tuple[str, str, ast.Module]]:
    """Return name, source and tree of every module of the package."""
    sources = {path: path.read_text(encoding="utf-8") for path in sorted((ROOT / "policyfactory").rglob("*.py"))}
    return [(str(path.relative_to(ROOT)), source, ast.parse(source)) for path, source in sources.items()]


@functools.cache
def nodes() -> list[tuple[str, ast.AST]]:
    """Return all nodes of all modules, each with the name of its module."""
    return [(name, node) for name, _, tree in modules() for node in ast.walk(tree)]


def texts() -> Iterator[Path]:
    """Give every text of the project; environments and caches are not entered."""
    for folder, folders, names in os.walk(ROOT):
        folders[:] = [
            name
            for name in folders
            if name not in NOT_OURS
            and (name != "site" or Path(folder) != ROOT)  # the built documentation
            and not name.startswith(".venv")
            and not name.endswith("_cache")
        ]
        # .git is a file in a further worktree, with a path of the machine in it.
        paths = (Path(folder, name) for name in names if name != ".git")
        yield from (path for path in paths if path.suffix in SUFFIXES and path.is_file())


def test_a_module_says_what_it_is() -> None:
    assert [name for name, _, tree in modules() if not ast.get_docstring(tree)] == []


def test_a_file_holds_one_idea() -> None:
    long = []
    for name, source, _ in modules():
        if source.count("\n") > 900:
            long.append(f"{name} has {source.count(chr(10))} lines")
    long += [
        f"{name}: {node.name} ends 120 lines or more behind its beginning"
        for name, node in nodes()
        if isinstance(node, ast.FunctionDef) and (node.end_lineno or 0) - node.lineno >= 120
    ]
    assert long == []


def test_the_name_of_a_class_is_used_once() -> None:
    places: dict[str, list[str]] = {}
    for name, node in nodes():
        if isinstance(node, ast.ClassDef):
            places.setdefault(node.name, []).append(name)
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


# Words that name nothing; a field has the name that its file has.
EMPTY = {"one", "at", "place", "own", "said", "made"}


def test_a_name_says_what_the_thing_is() -> None:
    found = set()
    for name, node in nodes():
        match node:
            case ast.arg(arg=bound) | ast.FunctionDef(name=bound) | ast.Name(id=bound, ctx=ast.Store()):
                if bound.strip("_") in EMPTY:
                    found.add((name, bound))
    assert found == {
        ("policyfactory/site/model.py", "own"),
        ("policyfactory/site/model.py", "place"),
        ("policyfactory/workload/accounting/table.py", "place"),
    }


def test_a_constructor_is_given_names() -> None:
    many = []
    for name, node in nodes():
        # Kernels are written for the compiler.
        if not isinstance(node, ast.Call) or len(node.args) < 7 or "/engine/" in name:
            continue
        called = getattr(node.func, "id", getattr(node.func, "attr", ""))
        if called.lstrip("_")[:1].isupper() and not any(isinstance(given, ast.Starred) for given in node.args):
            many.append(f"{name}:{node.lineno} {called}")
    assert many == []


def code_lines() -> dict[str, set[int]]:
    """Return the numbers of the lines of each module that have code: no comments, no docstrings, nothing empty."""
    lines = {name: lines_of_tokens(source) for name, source, _ in modules()}
    for name, node in nodes():
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node):
            lines[name] -= {*range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1)}
    return lines


def lines_of_tokens(source: str) -> set[int]:
    rest = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in rest:
            lines.update(range(token.start[0], token.end[0] + 1))
    return lines


def test_a_folder_keeps_to_its_budget() -> None:
    budgets = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["policyfactory"]["budgets"]
    found: Counter[str] = Counter()
    for name, lines in code_lines().items():
        found[name.split("/")[1]] += len(lines) if name.count("/") > 1 else 0
    over = {folder: (count, budgets.get(folder)) for folder, count in found.items() if count > budgets.get(folder, 0)}
    assert over == {}, "a budget is raised in a commit that says why and what was given up"


def test_a_part_of_the_pages_keeps_to_its_words() -> None:
    budgets = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["policyfactory"]["words"]
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2]
    found: Counter[str] = Counter()
    part = "tutorial"  # the first page stands before all parts
    for heading, page in re.findall(r"^  - (\w+):$|: (\S+\.md)$", navigation, re.MULTILINE):
        part = heading.lower() or part
        found[part] += len((ROOT / "docs" / page).read_text(encoding="utf-8").split()) if page else 0
    assert found.keys() == budgets.keys()
    over = {name: (words, budgets[name]) for name, words in found.items() if words > budgets[name]}
    assert over == {}, "a budget is raised in a commit that says why and what was given up"


def test_a_kernel_has_a_plain_twin_of_its_name() -> None:
    texts_of_twins = [path.read_text(encoding="utf-8") for path in (ROOT / "tests" / "naive").glob("*.py")]
    twins = {name for text in texts_of_twins for name in re.findall(r"^def (\w+)\(", text, re.MULTILINE)}
    kernels = set()
    for module, _, tree in modules():
        if not re.fullmatch(r"policyfactory/engine/(slurm/)?\w+\.py", module):
            continue
        for node in tree.body:
            if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
                decorators = {ast.unparse(decorator) for decorator in node.decorator_list}
                if "kernel" in decorators:
                    kernels.add(node.name)
    assert len(kernels) > 20
    assert kernels - twins == set()


# What runs text or bytes as code, and where it is used all the same: between the processes of one run, and to have
# numba compile a kernel.
_RUNS_CODE = re.compile(
    r"(^|\.)(eval|exec|compile|__import__|system|popen|sympify|parse_expr|lambdify|query|unsafe_load)$"
    r"|^(subprocess|shelve|runpy|code)\.|^(pickle|cloudpickle|marshal|joblib|np|numpy|pd|pandas)\.(loads?|read_pickle)$"
)
ALLOWED_CALLS = {
    ("policyfactory/core/jit.py", "dispatcher.compile"),
    ("policyfactory/parallel/dask.py", "pickle.loads"),
    ("policyfactory/parallel/processes.py", "pickle.loads"),
    ("policyfactory/policy/policy.py", "cloudpickle.loads"),
}


def test_no_text_and_no_file_is_run_as_code() -> None:
    calls = {(name, ast.unparse(node.func)) for name, node in nodes() if isinstance(node, ast.Call)}
    assert {call for call in calls if _RUNS_CODE.search(call[1]) and call[1] != "re.compile"} == ALLOWED_CALLS
    planted = ["eval", "pickle.load", "df.query", "sympy.sympify", "np.load", "subprocess.run", "os.system"]
    assert all(map(_RUNS_CODE.search, planted))


def test_nothing_of_one_machine_is_in_the_project() -> None:
    # Written in pieces, so that this file does not hold what it looks for.
    forbidden = re.compile("|".join(["/wo" + "rk/", "/ro" + "ot/", "/home/[a-z]", r"/tmp/[a-z]", "/opt/" + "pypi"]))
    for path in texts():
        result = forbidden.search(path.read_text(encoding="utf-8", errors="replace"))
        assert not result, f"{path.relative_to(ROOT)}: {result.group() if result else ''}"


def test_what_is_made_by_a_build_is_not_in_the_repository() -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("not a checkout of the repository")
    done = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    for name in done.stdout.splitlines():
        assert not name.endswith((".pyc", ".nbi", ".nbc", ".partial", ".lock", ".so")), name
        assert not name.endswith((".swf", ".swf.gz")), f"{name}: logs of the archive stay out of the repository"


def test_what_is_run_by_what_changed_is_there_and_has_its_line() -> None:
    module = runpy.run_path(str(ROOT / ".ci" / "changed.py"))
    for area in module["AREAS"]:
        assert module["digest"](area)
        assert all((ROOT / test).is_file() for test in module["tests_of"](area))
        assert f"- {area}: " in module["PAGE"].read_text(encoding="utf-8")
