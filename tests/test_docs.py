"""The documentation tells the truth: its code runs, its commands work, its links lead somewhere."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from commands import runner
from page_inputs import INPUTS
from policyfactory.cli.main import build_command
from support import ROOT, extra_module, shared_path

DOCS = ROOT / "docs"
PAGES = sorted([*DOCS.rglob("*.md"), ROOT / "README.md", ROOT / "CHANGELOG.md"])
FENCE = re.compile(r"^```(\w+)[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
# Their commands need a cluster: tests/slurm/test_afternoon.py and test_jobqueue.py run every one of them.
ON_A_CLUSTER = {"afternoon", "clusters"}
# Whole evaluations, fits and a bootstrap: two seconds of a processor and more each. README and api are of `make test`,
# which also reads the commands of all pages.
LONG = {
    "evaluate", "how-certain", "policies", "predictions", "scores", "slurm", "train", "tutorial", "workloads",
}  # fmt: skip
OF_EXTRAS = {"environment": "gymnasium"}
# What trains a network needs torch, and is run apart from the rest of its page.
NETWORKS = re.compile("--learner ppo")
# A block with a title is a file that the reader writes.
FILE = re.compile(r'^```\w+ title="([^"]+)"\n(.*?)^```', re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")


def blocks(page: Path) -> list[tuple[str, str]]:
    return FENCE.findall(page.read_text(encoding="utf-8"))


def commands_of(code: str) -> list[list[str]]:
    """Return the words of each command of the package in a block."""
    lines = code.replace("\\\n", " ").splitlines()
    return [shlex.split(line[2:], comments=True)[1:] for line in lines if line.startswith("$ policyfactory")]


def pages_that_run() -> list[object]:
    pages = [page for page in PAGES if blocks(page) and page.stem not in ON_A_CLUSTER]
    return [pytest.param(page, marks=pytest.mark.slow if page.stem in LONG else (), id=page.stem) for page in pages]


@pytest.fixture
def reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A reader's folder: the project's data, and the logs."""
    for name in ("training_data", "models", "evaluate"):
        (tmp_path / name).mkdir()
        for file in (ROOT / name).iterdir():
            (tmp_path / name / file.name).symlink_to(file)
    (tmp_path / "traces").symlink_to(shared_path("traces"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.usefixtures("blank_pictures")
@pytest.mark.parametrize("page", pages_that_run())
def test_code_and_commands_of_a_page_run(
    page: Path, reader: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    if page.stem in OF_EXTRAS:
        extra_module(OF_EXTRAS[page.stem], "rl")
    INPUTS.get(page.stem, lambda: None)()
    for name, text in FILE.findall(page.read_text(encoding="utf-8")):
        Path(name).write_text(text, encoding="utf-8")
    run_blocks([block for block in blocks(page) if not NETWORKS.search(block[1])], page, reader, monkeypatch, capfd)


def test_the_commands_of_all_pages_are_understood() -> None:
    parts = [(page, code) for page in PAGES for language, code in blocks(page) if language == "console"]
    count = 0
    for page, code in parts:
        for words in commands_of(code.replace("$(date +%F)", "2026-01-01")):  # as a shell does
            command: Any = build_command()
            rest = list(words)
            while hasattr(command, "commands"):
                assert rest[0] in command.commands, f"{page.name}: {shlex.join(words)}"
                command = command.commands[rest.pop(0)]
            # It has the options, and can read their values; files and logs are looked at by what it does.
            command.make_context(shlex.join(words), rest)
            count += 1
    assert count > 80


@pytest.mark.slow
def test_the_networks_of_the_pages_are_trained(
    reader: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    extra_module("torch", "rl")
    page = DOCS / "train.md"
    parts = [(language, code) for language, code in blocks(page) if NETWORKS.search(code) and language != "text"]
    assert len(parts) == 1
    run_blocks(parts, page, reader, monkeypatch, capfd)


def run_blocks(
    parts: list[tuple[str, str]],
    page: Path,
    reader: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    run = runner(reader, monkeypatch, capfd)
    namespace: dict[str, object] = {"__name__": page.stem}
    printed = ""
    for language, code in parts:
        if language == "python":
            exec(compile(code, str(page), "exec"), namespace)
            printed += capfd.readouterr().out
        elif language == "console":
            for words in commands_of(code):
                printed += run(*words).stdout
        elif code.startswith("In simulation: "):
            # A verdict is what really comes out, of what stands above it; "..." is left out.
            pieces = [_flat(piece) for line in code.splitlines() for piece in line.split("...")]
            assert [piece for piece in pieces if piece not in _flat(printed)] == []


def _flat(text: str) -> str:
    return " ".join(text.replace("─", " ").split())


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_of_a_page_lead_somewhere(page: Path) -> None:
    for target in LINK.findall(page.read_text(encoding="utf-8")):
        if not target.startswith(("http://", "https://", "mailto:")):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_every_page_is_in_the_navigation() -> None:
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    for page in DOCS.rglob("*.md"):
        assert f": {page.relative_to(DOCS)}\n" in navigation, page.name


def test_the_api_page_has_every_public_name() -> None:
    import policyfactory

    page = (DOCS / "api.md").read_text(encoding="utf-8")
    shown = set(re.findall(r"^::: policyfactory\S*\.(\w+)$", page, re.MULTILINE))
    # It may have more: the classes of results. That they exist is the build's matter.
    assert set(policyfactory.__all__) - {"__version__"} <= shown


def test_the_walks_of_the_architecture_name_what_is_there() -> None:
    page = (DOCS / "architecture.md").read_text(encoding="utf-8")
    pairs = re.findall(r"`(\w+/\S+\.py)` `(?:\w+\.)?(\w+)`", page)
    assert len(pairs) > 40
    for file, name in pairs:
        source = (ROOT / "policyfactory" / file).read_text(encoding="utf-8")
        assert re.search(rf"^\s*(?:def|class) {name}\b|^{name}(?:: .*)? = ", source, re.MULTILINE), f"{file}: {name}"
    for path in re.findall(r"`((?:\w+/)+\w+\.(?:py|toml|css))`", page):
        assert (ROOT / "policyfactory" / path).exists(), path


def test_the_reference_of_commands_is_made_from_the_commands() -> None:
    from policyfactory.cli.reference import render

    page = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
    assert page == render(), "docs/commands.md is old: run make docs/commands.md"
