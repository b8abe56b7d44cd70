"""The help: every command has an example that can be run as it stands, its options in groups; and shells complete."""

from __future__ import annotations

import itertools
import shlex
from collections.abc import Iterator
from typing import Any

import pytest

from policyfactory.cli.help import _FIRST
from policyfactory.cli.main import _COMMANDS, build_command
from policyfactory.cli.options import complete_metrics, complete_policies, complete_targets


def commands(command: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    for name, sub in getattr(command, "commands", {}).items():
        yield from commands(sub, f"{path} {name}".strip())
    if not hasattr(command, "commands"):
        yield path, command


COMMAND = build_command()
ALL = dict(commands(COMMAND))


LINES = 30


def example_of(path: str) -> list[str]:
    return shlex.split(ALL[path].epilog.removeprefix("Example: "))


def helped(path: str, flag: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> str:
    """What a terminal of 80 columns shows."""
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit) as end:
        COMMAND([*path.split(), flag], prog_name="policyfactory")
    assert end.value.code == 0
    return capsys.readouterr().out


def test_the_options_that_come_first_are_there() -> None:
    for path, names in _FIRST.items():
        assert set(names) <= {param.name for param in ALL[path].params}, path


def test_the_short_help_of_learn_has_what_decides_whether_a_site_can_use_the_result(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert {"--site", "--no-predictions"} <= set(helped("learn", "--help", monkeypatch, capsys).split())


@pytest.mark.parametrize("path", sorted(ALL))
def test_an_example_can_be_run_as_it_stands(path: str) -> None:
    command, words = ALL[path], example_of(path)
    depth = path.count(" ") + 1
    assert words[: 1 + depth] == ["policyfactory", *path.split()]
    command.make_context(path, words[1 + depth :])


@pytest.mark.parametrize("path", sorted(ALL))
def test_help_is_a_screen_and_help_all_has_every_option(
    path: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    brief, full = (helped(path, flag, monkeypatch, capsys) for flag in ("--help", "--help-all"))
    lines = brief.splitlines()
    assert sum(max(1, -(-len(line) // 80)) for line in lines) <= LINES
    assert any(shlex.join(example_of(path)) in line for line in map(_unquoted, lines))
    words = set(full.replace("│", " ").replace(",", " ").replace("/", " ").split())
    flags = [flag for one in ALL[path].params for flag in (*one.opts, *one.secondary_opts) if flag.startswith("-")]
    assert set(flags) <= words
    assert "…" not in full
    hidden = [flag for flag in flags if flag not in set(brief.replace(",", " ").split())]
    assert ("--help-all" in brief) == bool(set(hidden) - {"--help-all"})


def _unquoted(line: str) -> str:
    try:
        return shlex.join(shlex.split(line.removeprefix("Example: ")))
    except ValueError:
        return line


def test_the_commands_are_grouped(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    shown = helped("", "--help", monkeypatch, capsys)
    with pytest.raises(SystemExit):
        COMMAND([], prog_name="policyfactory")
    assert capsys.readouterr().out.strip() == shown.strip()
    heads = ["The main job:", "Research:", "The cluster:"]
    assert sorted(heads, key=shown.index) == heads
    for path in ALL:
        assert f"\n  {path.split()[0]} " in shown


def test_the_commands_stand_in_the_order_of_their_groups() -> None:
    listed = [name for commands in _COMMANDS.values() for name in commands]
    assert len(set(listed)) == len(listed)
    assert list(COMMAND.commands) == listed  # type: ignore[attr-defined]
    for heading, commands in _COMMANDS.items():
        assert {COMMAND.commands[name].rich_help_panel for name in commands} == {heading}  # type: ignore[attr-defined]


@pytest.mark.parametrize("path", sorted(ALL))
def test_an_option_says_what_it_takes(path: str) -> None:
    for option in ALL[path].params:
        if option.param_type_name == "option":
            assert option.is_flag != bool(option.metavar.strip()), option.name


@pytest.mark.parametrize("path", sorted(ALL))
def test_the_options_that_matter_come_first_and_are_few(path: str) -> None:
    options = [one for one in ALL[path].params if one.param_type_name == "option" and one.name != "help_all"]
    groups = [one.rich_help_panel for one in options]
    if any(groups):
        first = groups.index(next(filter(None, groups)))
        assert 1 <= first <= 5
        assert None not in groups[first:]
        # Each group is whole.
        assert len([1 for one, other in itertools.pairwise(groups) if one != other]) == len(set(groups)) - 1


def test_values_are_completed() -> None:
    assert complete_metrics("mean_bs") == ["mean_bsld"]
    assert complete_metrics("mean_bsld,al") == ["mean_bsld,all"]
    assert complete_policies("FCFS,sa") == ["FCFS,SAF"]
    assert "SAF" not in complete_policies("SAF,S")
    assert complete_targets("slurm-s") == ["slurm-site-factor-lua", "slurm-site-factor-c"]


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("policyfactory evaluate --metric mean_bs", "mean_bsld"),
        ("policyfactory evaluate --policies FCFS,SA", "FCFS,SAF"),
        ("policyfactory export SAF --to slurm-n", "slurm-nice"),
        ("policyfactory evaluate --backfill cons", "conservative"),
    ],
)
def test_a_shell_asks_for_them(
    typed: str, offered: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("_POLICYFACTORY_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", typed)
    monkeypatch.setenv("COMP_CWORD", str(len(typed.split()) - 1))
    with pytest.raises(SystemExit):
        COMMAND([], prog_name="policyfactory")
    assert capsys.readouterr().out.split() == [offered]
