"""Rules of the house that no linter knows."""

from __future__ import annotations

import ast
import re
import subprocess
from pathlib import Path

import pytest

from support import ROOT

MODULES = sorted((ROOT / "policyfactory").rglob("*.py"))
TEXTS = [
    path
    for path in sorted(ROOT.rglob("*"))
    if path.is_file()
    and path.suffix in {".py", ".md", ".toml", ".yml", ".c", ".cff", ".json", ".csv", ".sh", ""}
    and not any(part.startswith(".venv") or part in {".git", "site", "demo", "node_modules"} for part in path.parts)
    and not any(part.endswith("_cache") or part in {".cache", ".hypothesis", "__pycache__"} for part in path.parts)
]


@pytest.mark.parametrize("module", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_module_says_what_it_is_and_what_it_offers(module: Path) -> None:
    tree = ast.parse(module.read_text(encoding="utf-8"))
    assert ast.get_docstring(tree), "the module has no docstring"
    if module.name not in {"__init__.py", "__main__.py"}:
        assignments = [node for node in tree.body if isinstance(node, ast.Assign)]
        assigned = [ast.unparse(target) for node in assignments for target in node.targets]
        assert "__all__" in assigned, "the module has no __all__"


@pytest.mark.parametrize("module", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_file_holds_one_idea(module: Path) -> None:
    source = module.read_text(encoding="utf-8")
    assert source.count("\n") <= 400
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef):
            assert (node.end_lineno or 0) - node.lineno < 120, f"{node.name} is {node.end_lineno} lines long"


def test_a_kernel_has_a_plain_twin_of_its_name() -> None:
    twins = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests" / "naive").glob("*.py"))
    for module in sorted((ROOT / "policyfactory" / "engine").glob("*.py")):
        tree = ast.parse(module.read_text(encoding="utf-8"))
        for node in tree.body:
            if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
                decorators = {ast.unparse(decorator) for decorator in node.decorator_list}
                if "kernel" in decorators:
                    twin = re.search(rf"^def {node.name}\(", twins, re.MULTILINE)
                    assert twin, f"{module.name}: {node.name} has no twin"


def test_nothing_of_one_machine_is_in_the_project() -> None:
    # Written in pieces, so that this file does not hold what it looks for.
    forbidden = re.compile("|".join(["/wo" + "rk/", "/ro" + "ot/", "/home/[a-z]", r"/tmp/[a-z]", "/opt/" + "pypi"]))
    for path in TEXTS:
        found = forbidden.search(path.read_text(encoding="utf-8", errors="replace"))
        assert not found, f"{path.relative_to(ROOT)}: {found.group() if found else ''}"


def test_what_is_made_by_a_build_is_not_in_the_repository() -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("not a checkout of the repository")
    done = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    for name in done.stdout.splitlines():
        assert not name.endswith((".pyc", ".nbi", ".nbc", ".partial", ".lock", ".so")), name
        assert not name.endswith((".swf", ".swf.gz")), f"{name}: logs of the archive stay out of the repository"
