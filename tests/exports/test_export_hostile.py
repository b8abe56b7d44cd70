"""Names, descriptions and provenance from a stranger's model file stay inside comments and strings."""

from __future__ import annotations

import ast
import importlib
import json
import re
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from naive.exports import compiler
from policyfactory.core.errors import FormulaError
from policyfactory.exports.content import TARGETS, ExportSite, ascii_text, identifier
from policyfactory.policy.policy import Epoch, Policy
from policyfactory.policy.store import Model
from refusals import refused
from support import examples

PIECES = [
    "\n", "\r", "\r\n", "\x0b", "\x0c", "\x1c", "\x85", "\u2028", "\u2029", "*/", "/*", "*//*", "]]", "--[[", "--]]",
    "'''", '"""', "'", '"', "\\", "\\n", "??/", "??/\n", "%", "%%", "{", "}", "$", "`", "$(id)", "#", "^^M", "\x00",
    "\x1b[2J",     "\ud800", "END_OF_HOOK", "\nEND_OF_HOOK\n", "import os", "\\end{equation}", "\\input{x}",
    "é", "\u202e", "; rm x", "x",
]  # fmt: skip
TEXTS = st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=5)), max_size=8).map("".join)


def hostile(name: str, words: str, command: str) -> Model:
    """A model whose texts passed no check at all."""
    policy = Policy("x", "log10(p)*q + 870*log10(r)", epoch=Epoch("fixed", 1_767_225_600))
    for field, value in (("name", name), ("description", words), ("source", words)):
        object.__setattr__(policy, field, value)
    return Model(policy, provenance={"command": command})


def plain(target: str) -> str:
    return TARGETS[target].make(hostile("x", "x", "x"), ExportSite()).text


@examples(200)
@given(TEXTS, TEXTS, TEXTS)
def test_python_is_the_same_program(name: str, words: str, command: str) -> None:
    text = TARGETS["python"].make(hostile(name, words, command), ExportSite()).text
    tree, benign = ast.parse(text), ast.parse(plain("python"))
    assign = tree.body[1]
    assert ast.literal_eval(assign.value) == name  # type: ignore[attr-defined]
    assign.value = ast.Constant("x")  # type: ignore[attr-defined]
    assert ast.dump(tree) == ast.dump(benign)
    assert text.isascii()


def without_comments(text: str) -> str:
    """C as its lexer sees it: trigraphs and joined lines first, then comments."""
    assert "??" not in text
    assert "\\" not in text
    return re.sub(r"/\*.*?\*/", " ", text, flags=re.DOTALL)


@examples(200)
@given(TEXTS, TEXTS, TEXTS)
def test_c_is_the_same_program(name: str, words: str, command: str) -> None:
    text = TARGETS["c"].make(hostile(name, words, command), ExportSite()).text
    assert text.isascii()
    assert not re.search(r"/\*[^*]*/\*", text), "a comment in a comment is a warning"
    assert text.count("/*") == plain("c").count("/*")
    code = without_comments(text).replace(f"policyfactory_{identifier(name)}_", "policyfactory_x_")
    assert code == without_comments(plain("c"))
    assert re.fullmatch(r"[a-z0-9_]{1,40}", identifier(name))


def test_c_with_the_worst_names_compiles_without_a_warning(tmp_path: Path) -> None:
    worst = "".join(PIECES)
    (tmp_path / "x.c").write_text(TARGETS["c"].make(hostile(worst, worst, worst), ExportSite()).text)
    strict = ["-std=c99", "-trigraphs", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]
    subprocess.run([compiler(), *strict, "-c", "x.c"], cwd=tmp_path, check=True)


@examples(100)
@given(TEXTS, TEXTS, TEXTS)
def test_lua_is_the_same_program(name: str, words: str, command: str) -> None:
    text = TARGETS["lua"].make(hostile(name, words, command), ExportSite()).text
    assert text.isascii()
    lines = [line for line in text.split("\n") if not line.startswith("--") and not line.startswith("M.name")]
    benign = [line for line in plain("lua").split("\n") if not line.startswith("--") and not line.startswith("M.name")]
    assert lines == benign
    assert not re.search(r"^--\[", text, re.MULTILINE)
    runtime = importlib.import_module("lupa.lua54").LuaRuntime(encoding=None, register_eval=False)
    module = runtime.execute(text.encode())
    assert module[b"name"] == name.encode("utf-8", "replace")
    assert module[b"score"](10, 1, 10) == 871.0


@examples(200)
@given(TEXTS, TEXTS, TEXTS)
def test_latex_has_the_same_commands(name: str, words: str, command: str) -> None:
    text = TARGETS["latex"].make(hostile(name, f"x{words}", command), ExportSite()).text
    lines = text.split("\n")
    benign = plain("latex").split("\n")
    assert len(lines) == len(benign)
    for line, other in zip(lines, benign, strict=True):
        assert line.startswith("%") == other.startswith("%")
        if not other.startswith(("%", "Policy x sorts")):
            assert line == other
    (sentence,) = (line for line in lines if line.startswith("Policy ") and line.endswith("sorts the queue by"))
    shown = sentence.removeprefix("Policy ").removesuffix(" sorts the queue by")
    known = r"\\text(backslash|asciitilde|asciicircum|less|greater|quotedbl|asciigrave)\{\}|\\[&%$#_{}]"
    assert not set(re.sub(known, "", shown)) & set("\\{}$&#%_^~")
    assert all(c.isprintable() for c in shown)


@examples(200)
@given(TEXTS, TEXTS, TEXTS)
def test_pbs_runs_the_same_commands(name: str, words: str, command: str) -> None:
    text = TARGETS["pbs"].make(hostile(name, words, command), ExportSite()).text
    assert text.isascii()
    lines = [line for line in text.split("\n") if not line.startswith("#")]
    benign = [line for line in plain("pbs").split("\n") if not line.startswith("#")]
    assert [line.replace(f"pf_{identifier(name)}", "pf_x") for line in lines] == benign
    assert text.startswith("#!/bin/sh\n")


@examples(100)
@given(TEXTS.filter(lambda text: "\ud800" not in text), TEXTS.filter(lambda text: "\ud800" not in text))
def test_json_is_json(name: str, words: str) -> None:
    value = json.loads(TARGETS["json"].make(hostile(name, words, words), ExportSite()).text)
    assert value["name"] == name
    assert value["formula"] == "log10(p)*q + 870*log10(r)"


@examples(300)
@given(TEXTS)
def test_text_of_a_comment(text: str) -> None:
    shown = ascii_text(text)
    assert re.fullmatch(r"[ -\[\]-~]*", shown)  # printable ASCII without backslash
    for pair in ("/*", "*/", "??"):
        assert pair not in shown


def test_plain_text_is_kept() -> None:
    assert ascii_text("F1: log10(p)*q + 870*log10(r) [--to c]") == "F1: log10(p)*q + 870*log10(r) [--to c]"
    assert ascii_text("é\n\\") == "<U+00E9><U+000A><U+005C>"


@pytest.mark.parametrize("bad", ["p'", 'p"', "p\\", "p\n", "p;q", "p$q", "p`"])
def test_the_grammar_keeps_shell_characters_out_of_the_formula(bad: str) -> None:
    refused(FormulaError, "grammar", Policy, "x", bad)
