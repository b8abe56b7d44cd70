"""Host lists: Slurm's grammar, expanded and compressed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policyfactory.core.errors import UsageError
from policyfactory.site.values import compress, expand


# scontrol show hostnames of Slurm 22.05.8 prints these, but for n[08-10]-ib, which it refuses.
@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("", ""),
        ("login", "login"),
        ("n[1-3]", "n1 n2 n3"),
        ("a[1-3,07-09],c", "a1 a2 a3 a07 a08 a09 c"),
        ("n[9-11]", "n9 n10 n11"),
        ("n[08-10]-ib", "n08-ib n09-ib n10-ib"),
        ("r[1-2]n[1-2]", "r1n1 r1n2 r2n1 r2n2"),
        ("a[1-2]-b[1-2],c", "a1-b1 a1-b2 a2-b1 a2-b2 c"),
        ("n5,n[7]", "n5 n7"),
    ],
)
def test_a_host_list_is_expanded_in_its_order(text: str, names: str) -> None:
    assert expand(text) == tuple(names.split())


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("n[1-3", "not closed"),
        ("n1-3]", "not opened"),
        ("n[[1-3]]", "inside another"),
        ("n[3-1]", "'3-1' is no range"),
        ("n[1-x]", "'1-x' is no range"),
        ("n[]", "'' is no range"),
        ("a,,b", "a name is empty"),
        ("a b", "'a b' is no name"),
        ("n[1-3],n2", "names n2 twice"),
        ("n[0-999999999]", "more than 200,000 hosts"),
        ("[1-999][1-999]", "more than 200,000 hosts"),
        ("n[1-9999999999999999999999]", "is no range"),
    ],
)
def test_what_is_no_host_list_is_refused(text: str, words: str) -> None:
    with pytest.raises(UsageError, match="host list") as error:
        expand(text)
    assert words in str(error.value)


def test_the_most_is_counted_before_names_are_made() -> None:
    assert len(expand("n[1-200000]")) == 200_000
    with pytest.raises(UsageError, match="more than 200,000 hosts"):
        expand("n[1-999999999][1-999999999][1-999999999]")


@pytest.mark.parametrize(
    ("names", "text"),
    [
        ("", ""),
        ("login", "login"),
        ("n1", "n1"),
        ("n1 n2 n3", "n[1-3]"),
        ("n9 n10", "n[9-10]"),
        ("n08 n09 n10 n12", "n[08-10,12]"),
        ("n1 n02", "n[1,02]"),
        ("a1-ib a2-ib b1", "a[1-2]-ib,b1"),
        ("n3 n1", "n[3,1]"),
    ],
)
def test_names_are_compressed(names: str, text: str) -> None:
    assert compress(names.split()) == text


@given(st.lists(st.from_regex(r"[a-c]?(r[0-9]{1,2})?n[0-9]{0,3}(-ib)?", fullmatch=True), unique=True, max_size=40))
def test_compressing_loses_nothing(names: list[str]) -> None:
    assert expand(compress(names)) == tuple(names)
