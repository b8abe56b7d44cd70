"""The shell scripts that put an order into a running Grid Engine, and take it out again."""

from __future__ import annotations

from collections.abc import Mapping

from policyfactory.export.scripts import parts
from policyfactory.export.targets import comment

__all__ = ["JSV_NAME", "RESOURCE", "apply_script", "rollback_script"]

RESOURCE = "pf_score"
JSV_NAME = "policyfactory_jsv.pl"
_PARTS = parts("gridengine.sh")


def apply_script(head: list[str], changes: Mapping[str, str]) -> str:
    """Return the script that makes the changes, after saving what was before.

    Parameters
    ----------
    head : list of str
        Lines for its comment.
    changes : mapping of str to str
        New values: of ``weight_waiting_time``, and the urgencies of resources by their names. With that of `RESOURCE`,
        the verifier beside the script is put in place; with that of ``h_rt``, a default limit is asked for.
    """
    scripted = RESOURCE in changes
    parts = [_PARTS["start"], _PARTS["save"]]
    if scripted:
        parts.append(_PARTS["check_verifier"])
    elif float(changes["h_rt"]):
        parts.append(_PARTS["check_limit"])
    parts += [
        _PARTS["keep"],
        _change_complexes({name: v for name, v in changes.items() if name != "weight_waiting_time"}),
    ]
    weights = {
        "weight_urgency": "1",
        "weight_waiting_time": changes["weight_waiting_time"],
        "weight_ticket": "0",
        "weight_priority": "0",
    }
    parts.append("".join(f"scheduler {key} {value}\n" for key, value in weights.items()))
    if scripted:
        parts.append('# Last: until now no job was given a score.\nverifier "script:$jsv"\n')
    parts.append('echo "applied; what was before is in $before"\n')
    title = "apply.sh: puts the order into a running Grid Engine; run it as a manager."
    return _lines(title, head) + _filled("".join(parts))


def _change_complexes(changes: Mapping[str, str]) -> str:
    lines = ["", 'awk \'$1 != "@RESOURCE@"\' "$work/complexes" > "$work/now"']
    for name, value in changes.items():
        if name != RESOURCE:
            lines += [f'urgency {name} {value} < "$work/now" > "$work/next"', 'cp "$work/next" "$work/now"']
    if RESOURCE in changes:
        lines.append(f'echo "@RESOURCE@ @RESOURCE@ DOUBLE <= YES NO 0 {changes[RESOURCE]}" >> "$work/now"')
    else:
        lines.append('awk \'$1 == "@RESOURCE@" { $8 = 0; print }\' "$work/complexes" >> "$work/now"')
    known = " ".join(("slots", *(name for name in changes if name != "slots")))
    lines += [
        'complexes "$work/now"',
        f'others=$(awk -v known=" {known} " \'',
        '  !/^#/ && $8 + 0 != 0 && !index(known, " " $1 " ") { print $1 "=" $8 }',
        '\' "$work/now")',
        '[ -z "$others" ] || echo "these resources have urgencies too, which are added to the score:" $others',
    ]
    if RESOURCE in changes:
        lines += [
            "# Every host offers more of it than any job asks for.",
            "qconf -se global | grep -q '@RESOURCE@=' ||",
            '  qconf -aattr exechost complex_values @RESOURCE@=1e18 global > "$work/out" 2>&1 ||',
            '  fail "qconf -aattr: $(cat "$work/out")"',
        ]
    return "\n".join(lines) + "\n"


def rollback_script(head: list[str], *, scripted: bool) -> str:
    """Return the script that restores what `apply_script`'s saved; ``scripted``: the verifier too."""
    body = _PARTS["start"] + _PARTS["before"] + (_PARTS["rollback_verifier"] if scripted else "") + _PARTS["rollback"]
    return _lines("rollback.sh: undoes apply.sh; run it as a manager.", head) + _filled(body)


def _lines(title: str, head: list[str]) -> str:
    return "\n".join(["#!/bin/sh", *comment([title, *head]), ""])


def _filled(text: str) -> str:
    # Never the header: it has texts of strangers.
    return text.replace("@RESOURCE@", RESOURCE).replace("@JSV@", JSV_NAME)
