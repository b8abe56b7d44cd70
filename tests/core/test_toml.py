"""Writing TOML: what is written is read again."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policyfactory.core.files import dump_toml

SCALARS = st.one_of(
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=30),
    st.text('ab"\\\n\t ', max_size=12),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text('a".é \n', max_size=4), inner, max_size=3),
    max_leaves=12,
)


@given(st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), max_size=5), VALUES, max_size=5))
def test_what_is_written_as_toml_is_read_again(content: dict[str, Any]) -> None:
    assert tomllib.loads(dump_toml(content)) == content


def test_nothing_is_written_of_none_and_other_types_are_refused() -> None:
    assert dump_toml({"a": None, "b": {"c": None}}) == "[b]\n"
    with pytest.raises(TypeError, match="set"):
        dump_toml({"a": {1}})  # type: ignore[dict-item]
