"""Options that are declared once: a command takes the defaults of the library, and what is refused is named."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

from policyfactory.cli.main import build_command
from policyfactory.core.errors import UsageError
from policyfactory.core.options import check_values, declared, option, options_of
from policyfactory.exports.options import ExportOptions
from policyfactory.learning.options import LearnOptions
from policyfactory.prediction.options import PredictorOptions
from policyfactory.search.options import DistillOptions, JudgeOptions, SearchOptions, TrainOptions
from policyfactory.trials.table import GenerateOptions
from policyfactory.workload.accounting.options import ImportRules, Labels

COMMANDS: dict[str, Any] = {**build_command().commands}  # type: ignore[attr-defined]
COMMANDS["workload import"] = COMMANDS["workload"].commands["import"]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("learn", LearnOptions),
        ("train", TrainOptions),
        ("train", SearchOptions),
        ("judge", JudgeOptions),
        ("distill", DistillOptions),
        ("predict", PredictorOptions),
        ("generate", GenerateOptions),
        ("export", ExportOptions),
        ("workload import", ImportRules),
        ("workload import", Labels),
    ],
)
def test_what_a_command_does_without_options_is_what_the_library_does(name: str, kind: Any) -> None:
    params = {one.name: one for one in COMMANDS[name].params}
    options = declared(kind)
    assert set(options) <= set(params)
    assert options_of(kind, {one: params[one].default for one in options}) == kind()
    for one, said in options.items():
        assert params[one].help.lower().startswith(said.option.text.replace("`", "").lower())


@dataclasses.dataclass(frozen=True)
class Few:
    """Some options."""

    count: int = option(3, "how many", limits=(1, 10))
    share: float = option(0.5, "which part", limits=(0, None))
    word: Literal["a", "b"] = option("a", "which")
    names: tuple[str, ...] = option((), "of what", name="name")
    file: str | None = option(None, "from where", kind="the name of a file")
    folder: Path | str | None = option(None, "whereto", kind="a path")
    pair: tuple[int, int] = option((1, 2), "both", plain="1,2", parse=lambda text: tuple(map(int, text.split(","))))

    def __post_init__(self) -> None:
        check_values(self)


def test_values_are_read_as_they_are_typed() -> None:
    given: dict[str, Any] = {"count": 4, "name": ["x", "y"], "pair": "5,6", "share": None, "other": 1}
    assert options_of(Few, given) == Few(count=4, names=("x", "y"), pair=(5, 6))
    assert given == {"other": 1}
    assert Few(count=np.int64(4), names=["x"]) == Few(count=4, names=("x",))  # type: ignore[arg-type]


def test_whatever_stands_for_a_path_is_one() -> None:
    class Place(os.PathLike[str]):
        def __fspath__(self) -> str:
            return "some/where"

    assert Few(folder=Place()).folder == Path("some/where")  # type: ignore[arg-type]
    assert Few(folder="some/where").folder == "some/where"
    with pytest.raises(UsageError, match=r"^--file "):
        Few(file=Place())  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"count": 11}, "--count 11: expected a whole number, 1 to 10"),
        ({"count": True}, "--count True: expected a whole number, 1 to 10"),
        ({"count": 2.0}, r"--count 2\.0: expected a whole number"),
        ({"share": -1}, "--share -1: expected a number, at least 0"),
        ({"share": float("nan")}, "--share nan: expected a number"),
        ({"word": "c"}, "--word 'c': expected one of a, b"),
        ({"names": "x"}, "--name 'x': expected "),
        ({"file": 3}, "--file 3: expected the name of a file, or None"),
    ],
)
def test_what_is_refused_is_named_with_what_is_expected(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=f"^{message}"):
        Few(**changes)
