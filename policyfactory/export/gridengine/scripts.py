"""The shell scripts that put an order into a running Grid Engine, and take it out again."""

from __future__ import annotations

from collections.abc import Mapping

from policyfactory.export.languages.perl import comment

__all__ = ["JSV_NAME", "RESOURCE", "apply_script", "rollback_script"]

RESOURCE = "pf_score"
JSV_NAME = "policyfactory_jsv.pl"

_START = r"""set -eu
# Long lines whole.
SGE_SINGLE_LINE=1
export SGE_SINGLE_LINE
here=$(cd "$(dirname "$0")" && pwd -P)
before=$here/before
fail() {
  echo "$*" >&2
  exit 1
}
command -v qconf > /dev/null || fail "qconf is not on the PATH: load Grid Engine's settings.sh first"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# value FILE KEY: the rest of the line of a key.
value() {
  awk -v key="$2" '$1 == key { sub(/^[^ \t]+[ \t]+/, ""); print }' "$1"
}

# with KEY VALUE: the configuration on standard input with another value.
with() {
  awk -v key="$1" -v value="$2" '$1 == key { print key, value; next } !/^#/'
}

# urgency RESOURCE VALUE: the complexes on standard input with another urgency, their last column.
urgency() {
  awk -v key="$1" -v value="$2" '$1 == key { $8 = value } !/^#/'
}

# Every change is made in a copy of what qconf shows now.
scheduler() {
  qconf -ssconf > "$work/scheduler"
  with "$1" "$2" < "$work/scheduler" > "$work/new"
  qconf -Msconf "$work/new" > "$work/out" 2>&1 || fail "qconf -Msconf: $(cat "$work/out")"
}
complexes() {
  qconf -Mc "$1" > "$work/out" 2>&1 || fail "qconf -Mc: $(cat "$work/out")"
}
verifier() {
  qconf -sconf global > "$work/shown"
  # The file must be called as the configuration is.
  with jsv_url "$1" < "$work/shown" > "$work/global"
  qconf -Mconf "$work/global" > "$work/out" 2>&1 || fail "qconf -Mconf: $(cat "$work/out")"
}
"""

_SAVE = r"""
qconf -sconf global > "$work/configuration"
qconf -sc > "$work/complexes"
qconf -ssconf > "$work/scheduler"
"""

_CHECK_JSV = r"""
jsv=$here/@JSV@
case $jsv in
  *[!A-Za-z0-9_./+-]*) fail "$jsv: Grid Engine takes no path with such characters; put the folder elsewhere" ;;
esac
[ -x "$jsv" ] || fail "$jsv is missing or not executable"
answer=$(printf 'START\nPARAM l_hard h_rt=600\nBEGIN\nQUIT\n' | "$jsv")
case $answer in
  *@RESOURCE@=*) ;;
  *) fail "$jsv gives no score: $answer" ;;
esac
now=$(value "$work/configuration" jsv_url)
case $now in
  none | NONE | "script:$jsv") ;;
  *) fail "jsv_url is $now already, and Grid Engine has one verifier only: merge the two, or undo that one" ;;
esac
"""

_CHECK_LIMIT = r"""
# Without a limit a job would count as one of 0 s.
requests=$SGE_ROOT/${SGE_CELL:-default}/common/sge_request
grep -q '^[^#]*h_rt=' "$requests" 2> /dev/null ||
  fail "jobs without a limit would run as if they took 0 s: add a line like -l h_rt=24:00:00 to $requests"
"""

_KEEP = r"""
# Of a second run, what was before the first stays.
if [ ! -d "$before" ]; then
  mkdir "$before"
  cp "$work/configuration" "$work/complexes" "$work/scheduler" "$before"
fi
"""

_ROLLBACK = r"""
[ -d "$before" ] || fail "$before is missing: apply.sh was not run here, or was rolled back already"
verifier "$(value "$before/configuration" jsv_url)"
for key in weight_urgency weight_waiting_time weight_ticket weight_priority; do
  scheduler "$key" "$(value "$before/scheduler" "$key")"
done
qconf -sc > "$work/now"
for resource in slots h_rt; do
  former=$(awk -v key="$resource" '$1 == key { print $8 }' "$before/complexes")
  urgency "$resource" "$former" < "$work/now" > "$work/next"
  cp "$work/next" "$work/now"
done
urgency @RESOURCE@ 0 < "$work/now" > "$work/next"
complexes "$work/next"
# A job that asks for it would never start without it: then it stays, without an effect.
if qstat -u '*' -r | grep -q '@RESOURCE@='; then
  echo "jobs still ask for @RESOURCE@; when they are gone, remove it:"
  echo "  qconf -dattr exechost complex_values @RESOURCE@ global, then its line with qconf -mc"
elif qconf -se global | grep -q '@RESOURCE@='; then
  qconf -dattr exechost complex_values @RESOURCE@ global > /dev/null
  awk '$1 != "@RESOURCE@"' "$work/next" > "$work/without"
  complexes "$work/without"
fi
rm -r "$before"
echo "rolled back"
"""


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
    parts = [_lines("apply.sh: puts the order into a running Grid Engine; run it as a manager.", head), _START, _SAVE]
    if scripted:
        parts.append(_CHECK_JSV)
    elif float(changes["h_rt"]):
        parts.append(_CHECK_LIMIT)
    parts += [_KEEP, _change_complexes({name: v for name, v in changes.items() if name != "weight_waiting_time"})]
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
    return _filled("".join(parts))


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


def rollback_script(head: list[str]) -> str:
    """Return the script that restores what `apply_script`'s saved."""
    return _filled(_lines("rollback.sh: undoes apply.sh; run it as a manager.", head) + _START + _ROLLBACK)


def _lines(title: str, head: list[str]) -> str:
    return "\n".join(["#!/bin/sh", *comment([title, *head]), ""])


def _filled(text: str) -> str:
    return text.replace("@RESOURCE@", RESOURCE).replace("@JSV@", JSV_NAME)
