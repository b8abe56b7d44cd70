"""Texts of a stranger's model file that would break out of a comment or a string, and models full of them."""

from __future__ import annotations

import dataclasses

from hypothesis import strategies as st

from policyfactory.policy.policy import Policy
from policyfactory.policy.store import Model

__all__ = ["PIECES", "TEXTS", "hostile_model"]

# Each that does what it says leaves a file called broken_out.
PIECES = [
    "\n", "\r", "\r\n", "\x00", "\x0b", "\x0c", "\x1b[2J", "\x1c", "\x85", "\u2028", "\u2029", "\u202e", "\ud800", "é",
    "'", '"', "\\", "\\n", "\\\n", "#", ";", "&", "|", "%", "%s", "{", "}", "$", "`", "!", "]]", "--", "--[[", "--]]",
    "*/", "/*", "'''", "??/", "@JSV@", "@RESOURCE@", "=cut", "\n=pod\n", "__END__", "\n__END__\n", "END_OF_USAGE",
    "\nEND_OF_USAGE\n", "\nEND_OF_HOOK\n", "$(touch broken_out)", "`touch broken_out`", "\ntouch broken_out\n",
    "'; touch broken_out; '", "\nsystem('touch broken_out');\n", "\nInclude /etc/passwd\n", "\nPriorityType=basic\n",
    "x",
]  # fmt: skip
TEXTS = st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=5)), max_size=8).map("".join)


def hostile_model(policy: Policy, words: str) -> Model:
    """Return a model whose every text is ``words``, which passed no check at all."""
    named = dataclasses.replace(policy)
    for field in ("name", "description", "source"):
        object.__setattr__(named, field, words)
    return Model(named, provenance={"command": words, "note": words})
