"""Every string that goes into a shell, a terminal, TOML, JSON, HTML, C, Lua, Perl or awk comes out again or is shown.

The exports' own tests (tests/exports/test_export_hostile.py and others) compare whole files; here the interpreters run.
"""

from __future__ import annotations

import html.parser
import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commands import Run
from naive.exports import compiler
from naive.hostile import PIECES, hostile_model
from naive.oar import write_stand_in
from policyfactory.core.files import command_line, dump_json, dump_toml
from policyfactory.core.text import visible
from policyfactory.exports.content import TARGETS, ExportSite, ascii_text, identifier
from policyfactory.policy.policy import Policy
from schedulers.processes import require
from support import NIGHTLY

MORE = [
    "</script>",
    "<!--",
    "-->",
    "]]>",
    "<img src=x onerror=1>",
    "&lt;",
    "~",
    "*",
    "?",
    "-rf",
    "\t",
    "\\x",
    "\\u0041",
    "]]",
]
EXAMPLES = 300 if NIGHTLY else 60
ALL = st.lists(st.one_of(st.sampled_from(PIECES + MORE), st.text(max_size=5)), max_size=8).map("".join)


def some(count: int) -> list[str]:
    """Texts of all the pieces, the same ones in every run."""
    random = Random(5)
    texts = ["".join(random.choices(PIECES + MORE, k=random.randint(1, 6))) for _ in range(count)]
    return [*PIECES, *MORE, *texts]


def shuffled(count: int) -> list[str]:
    """Long texts, each with all the pieces in another order."""
    random = Random(6)
    units = PIECES + MORE
    return ["".join(random.sample(units, len(units))) for _ in range(count)]


def test_a_command_line_is_the_same_in_a_shell(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The command of a manifest can be typed again: one shell prints the arguments of many."""
    require("sh")
    words = [text.replace("\0", "").encode("utf-8", "replace").decode() for text in some(200)]
    monkeypatch.setattr(sys, "argv", ["policyfactory", *words])
    script = "show() { for word; do printf '%s\\0' \"$word\"; done; }\n" + command_line().replace(
        "policyfactory", "show", 1
    )
    done = subprocess.run(["sh"], input=script.encode(), capture_output=True, check=True, cwd=tmp_path)
    assert done.stdout.split(b"\0")[:-1] == [word.encode() for word in words]
    assert not done.stderr
    assert not list(tmp_path.iterdir())


@settings(max_examples=EXAMPLES)
@given(st.recursive(ALL | st.integers() | st.booleans(), lambda inner: st.lists(inner, max_size=3), max_leaves=8), ALL)
def test_toml_and_json_read_the_same_text(value: object, name: str) -> None:
    text = json.dumps({name: value, "table": {name: value}}, ensure_ascii=False)
    clean = json.loads(re.sub("[\ud800-\udfff]", "?", text))
    assert tomllib.loads(dump_toml(clean)) == clean
    assert json.loads(dump_json(clean)) == clean


@settings(max_examples=EXAMPLES)
@given(ALL)
def test_html_shows_the_text_and_has_no_tag_of_it(text: str) -> None:
    import jinja2

    result: list[str] = []
    tags: list[str] = []

    class Reader(html.parser.HTMLParser):
        def handle_data(self, data: str) -> None:
            result.append(data)

        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            tags.append(tag)
            result.extend(value or "" for _, value in attrs)

    page = jinja2.Environment(autoescape=True).from_string('<p title="{{ text }}">{{ text }}</p>')
    reader = Reader()
    reader.feed(page.render(text=visible(text)))
    reader.close()
    assert tags == ["p"]
    assert result[0] == visible(text)
    assert "".join(result[1:]) == visible(text)


@settings(max_examples=EXAMPLES)
@given(ALL)
def test_names_are_identifiers_and_comments_are_plain(text: str) -> None:
    assert identifier(text).isascii()
    assert identifier(text).replace("_", "a").isalnum()
    shown = ascii_text(text)
    assert shown.isascii()
    assert shown.isprintable()
    assert "\\" not in shown


def test_many_strings_in_one_unit_of_c(tmp_path: Path) -> None:
    """The comments of a dozen exports, compiled at once with trigraphs on, hold no statement."""
    policy = Policy("x", "p*q")
    parts = []
    for number, text in enumerate(shuffled(12)):
        code = TARGETS["c"].make(hostile_model(policy, text), ExportSite()).text
        name = identifier(text)
        parts.append(code.replace(f"policyfactory_{name}", f"policyfactory_{number}"))
    (tmp_path / "all.c").write_text("\n".join(parts) + "\nint main(void) { return 0; }\n")
    strict = ["-std=c99", "-trigraphs", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-Wno-unused-function"]
    subprocess.run([compiler(), *strict, "all.c", "-o", "all", "-lm"], cwd=tmp_path, check=True)
    subprocess.run([tmp_path / "all"], check=True, cwd=tmp_path)
    assert not (tmp_path / "broken_out").exists()


def test_scripts_of_strangers_models_break_out_of_nothing(tmp_path: Path) -> None:
    """Each shell, Perl and Lua text is read by its interpreter; none of the statements in names is there to run."""
    require("sh", "perl")
    # Perl loads what a program uses also to read it; OAR's own modules need not be there.
    environment = {**os.environ, "PERL5LIB": str(write_stand_in(tmp_path / "oar")), "JOBS": os.devnull}
    policy = Policy("x", "p*q")
    shells: list[str] = []
    for text in shuffled(3):
        for target in ("gridengine", "oar", "pbs"):
            for file in TARGETS[target].make(hostile_model(policy, text), ExportSite()).files:
                if file.text.startswith("#!/bin/sh") or file.name.endswith(".sh"):
                    assert "touch broken_out" not in [line.strip() for line in file.text.split("\n")]
                    shells.append(file.text)
                elif "perl" in file.text.split("\n", 1)[0]:
                    done = subprocess.run(
                        ["perl", "-c"],
                        input=file.text.encode(),
                        capture_output=True,
                        cwd=tmp_path,
                        env=environment,
                        check=False,
                    )
                    assert b"syntax OK" in done.stderr, done.stderr
    assert shells
    for text in dict.fromkeys(shells):
        subprocess.run(["sh", "-n"], input=text.encode(), check=True, cwd=tmp_path)
    assert not (tmp_path / "broken_out").exists()


@pytest.mark.parametrize("name", ["\x1b]0;owned\x07.swf", "a\r\x1b[2Kgone.swf", "\u202efws.swf", "\u2028x.swf", "-rf"])
def test_a_name_of_a_file_does_not_steer_the_terminal(name: str, run: Run, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(b"1 2 3\n")
    said = run("workload", "show", f"./{name}", code=1).stderr
    assert all(c.isprintable() or c == "\n" for c in said)
    assert "3 fields, a job has 18" in said
    (tmp_path / name).write_bytes(b"; MaxProcs: 64\n1 0 5 100 4 -1 -1 4 200 -1 1 3 1 -1 1 -1 -1 -1\n")
    done = run("workload", "show", f"./{name}")
    assert all(c.isprintable() or c == "\n" for c in done.stdout + done.stderr)


@pytest.mark.parametrize("text", ["\x1b[2J\x1b]0;x\x07", "a\rb", "\x9b1m", "\u202ex", "\u2028x", "[bold red]words[/]"])
def test_texts_of_a_model_do_not_steer_the_terminal(text: str, run: Run, tmp_path: Path) -> None:
    model = {"kind": "policyfactory-model", "schema_version": 1, "name": "x", "formula": "p*q", "coefficients": []}
    for field in ("name", "description", "source", "written_by", "kind", "formula"):
        (tmp_path / "x.json").write_text(json.dumps(model | {field: text}))
        refused = field in {"kind", "formula"} or (field != "written_by" and not text.isprintable())
        done = run("policy", "show", "./x.json", code=int(refused))
        assert all(c.isprintable() or c == "\n" for c in done.stdout + done.stderr)
        if field in {"description", "source"} and not refused:
            assert text in done.stdout
