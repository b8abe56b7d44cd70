"""The help: every command has an example that can be run as it stands, its options in groups; and shells complete."""

from __future__ import annotations

import itertools
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from policyfactory.cli.help import EXAMPLES
from policyfactory.cli.main import build_command
from policyfactory.cli.options import complete_metrics, complete_policies, complete_targets


def commands(command: Any = None, path: str = "") -> Iterator[tuple[str, Any]]:
    command = command or build_command()
    for name, sub in getattr(command, "commands", {}).items():
        yield from commands(sub, f"{path} {name}".strip())
    if not hasattr(command, "commands"):
        yield path, command


ALL = dict(commands())


def test_every_command_has_an_example_and_no_other_has_one() -> None:
    assert set(EXAMPLES) == set(ALL)


@pytest.mark.parametrize("path", sorted(ALL))
def test_an_example_names_options_that_there_are(path: str) -> None:
    command, words = ALL[path], shlex.split(EXAMPLES[path])
    assert words[: 1 + path.count(" ") + 1] == ["policyfactory", *path.split()]
    flags = {flag for one in command.params for flag in (*one.opts, *one.secondary_opts)}
    assert {word for word in words if word.startswith("-")} <= flags


@pytest.mark.parametrize("path", sorted(ALL))
def test_the_options_that_matter_come_first_and_are_few(path: str) -> None:
    options = [one for one in ALL[path].params if one.param_type_name == "option"]
    groups = [one.rich_help_panel for one in options]
    if any(groups):
        first = groups.index(next(filter(None, groups)))
        assert 1 <= first <= 5
        assert None not in groups[first:]
        # Each group is whole.
        assert len([1 for one, other in itertools.pairwise(groups) if one != other]) == len(set(groups)) - 1


@pytest.mark.parametrize("path", ["evaluate", "learn", "export", "workload import"])
def test_no_name_is_cut_in_a_terminal_of_80_columns(path: str) -> None:
    environment = {**os.environ, "COLUMNS": "80", "TERM": "dumb", "NO_COLOR": "1"}
    words = [sys.executable, "-m", "policyfactory", *path.split(), "--help"]
    shown = subprocess.run(words, capture_output=True, text=True, check=True, env=environment).stdout
    assert "…" not in shown
    options = [one for one in ALL[path].params if one.param_type_name == "option" and not one.hidden]
    for one in options:
        for flag in one.opts:
            assert re.search(rf"(^|[\s,│/]){re.escape(flag)}[\s,│/]", shown), flag
    assert EXAMPLES[path].split()[1] in shown


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
def test_a_shell_asks_for_them(typed: str, offered: str) -> None:
    words = typed.split()
    asked = {"_POLICYFACTORY_COMPLETE": "complete_bash", "COMP_WORDS": typed, "COMP_CWORD": str(len(words) - 1)}
    run = "import sys; sys.argv = ['policyfactory']; from policyfactory.cli.main import build_command; "
    run += "build_command()(prog_name='policyfactory')"
    environment = {**os.environ, **asked}
    done = subprocess.run([sys.executable, "-c", run], capture_output=True, text=True, check=False, env=environment)
    assert done.stdout.split() == [offered]
