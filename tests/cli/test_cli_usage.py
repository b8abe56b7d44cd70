"""What is said of an option's value is in our words: the value, and what is to be written."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import pytest

from commands import Run
from policyfactory.cli.main import build_command

_LIBRARIES = re.compile(r"Input should|unable to parse|Value error|validation error|pydantic", re.IGNORECASE)

# Older ones check values themselves, and say what is wrong as well.
pytestmark = pytest.mark.skipif(find_spec("typer._adapters") is None, reason="this typer does not ask pydantic")


def _numbers(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str, int, bool]]:
    """Give each option that takes a number: its command and how many arguments that has; whether it is whole."""
    for name, sub in getattr(command, "commands", {}).items():
        yield from _numbers(sub, (*path, name))
    needed = sum(1 for one in command.params if one.param_type_name == "argument" and one.required)
    for one in command.params:
        kind = getattr(getattr(one, "type_descriptor", None), "annotation", None)
        if one.param_type_name == "option" and kind in {int, float}:
            yield path, one.opts[0], needed, kind is int


OPTIONS = list(_numbers(build_command()))


@pytest.mark.parametrize(("command", "option", "needed", "whole"), OPTIONS, ids=str)
def test_a_number_that_is_none_is_named_with_what_to_write(
    run: Run, command: tuple[str, ...], option: str, needed: int, *, whole: bool
) -> None:
    said = " ".join(re.sub("[│╭╮╰╯─]", " ", run(*command, *["x"] * needed, option, "many", code=2).stderr).split())
    assert not _LIBRARIES.search(said)
    expected = "a whole number" if whole else "a number"
    assert f"Invalid value for '{option}'" in said
    assert f"'many' cannot be read; write {expected}" in said


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("learn", "x", "--tuples", "1"), "--tuples 1: expected a whole number, at least 32"),
        (("learn", "x", "--trials", "-4"), "--trials -4: expected a whole number, at least 256"),
        (("learn", "x", "--seed", "1.5"), "'1.5' cannot be read; write a whole number"),
        (("learn", "x", "--estimate-missing", "zz"), "'zz' is not one of 'error', 'runtime', 'model', 'drop'"),
    ],
)
def test_limits_are_named(run: Run, words: tuple[str, ...], says: str) -> None:
    said = " ".join(re.sub("[│╭╮╰╯─]", " ", run(*words, code=2).stderr).split())
    assert says in said
    assert not _LIBRARIES.search(said)
