"""How results show themselves in a terminal and in a notebook: a title and a few named values."""

from __future__ import annotations

import html
from collections.abc import Mapping

__all__ = ["facts_html", "facts_text"]


def facts_text(title: str, facts: Mapping[str, str]) -> str:
    """Return the title and one line for each fact, the values one below the other."""
    width = max(map(len, facts), default=0)
    return "\n".join([title, *(f"  {name:{width}}  {value}" for name, value in facts.items())])


def facts_html(title: str, facts: Mapping[str, str]) -> str:
    """Return the same as an HTML table."""
    rows = "".join(
        f"<tr><th align='left'>{html.escape(name)}</th><td align='left'>{html.escape(value)}</td></tr>"
        for name, value in facts.items()
    )
    return f"<table><caption>{html.escape(title)}</caption>{rows}</table>"
