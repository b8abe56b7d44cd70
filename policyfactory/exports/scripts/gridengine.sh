# Parts of apply.sh and rollback.sh for Grid Engine, each from the line behind its ===.
#=== start
set -eu
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
changing=
leave() {
  code=$?
  rm -rf "$work"
  [ "$code" -eq 0 ] || [ -z "$changing" ] ||
    echo "not all is done; ./rollback.sh (again, if it was that) puts back what was before" >&2
  exit "$code"
}
trap leave EXIT

# value FILE KEY: the rest of the line of a key.
value() {
  awk -v key="$2" '$1 == key { sub(/^[^ \t]+[ \t]+/, ""); print }' "$1"
}

# with KEY VALUE: the configuration on standard input with another value; a key that it does not show is added.
with() {
  awk -v key="$1" -v value="$2" '$1 == key { print key, value; found = 1; next } !/^#/
    END { if (!found) print key, value }'
}

# urgency RESOURCE VALUE: the complexes on standard input with another urgency, their last column.
urgency() {
  awk -v key="$1" -v value="$2" '$1 == key { $8 = value } !/^#/'
}

# is WHAT WANTED FOUND: Grid Engine writes numbers in its own way.
is() {
  awk -v wanted="$2" -v found="$3" 'BEGIN {
    if (wanted == found) exit 0
    if (found !~ /^-?[0-9.]+(e[-+]?[0-9]+)?$/ || wanted !~ /^-?[0-9.]+(e[-+]?[0-9]+)?$/) exit 1
    apart = wanted - found
    size = wanted < 0 ? -wanted : wanted
    exit !((apart < 0 ? -apart : apart) <= 1e-6 + 1e-9 * size)
  }' || fail "$1 is '$3' after the change, and not $2"
}

# Every change is made in a copy of what qconf shows now, and read again.
scheduler() {
  qconf -ssconf > "$work/scheduler"
  with "$1" "$2" < "$work/scheduler" > "$work/new"
  qconf -Msconf "$work/new" > "$work/out" 2>&1 || fail "qconf -Msconf: $(cat "$work/out")"
  qconf -ssconf > "$work/scheduler"
  is "$1" "$2" "$(value "$work/scheduler" "$1")"
}
complexes() {
  qconf -Mc "$1" > "$work/out" 2>&1 || fail "qconf -Mc: $(cat "$work/out")"
  qconf -sc > "$work/shown"
  for resource in slots h_rt @RESOURCE@; do
    is "the urgency of $resource" \
      "$(awk -v key="$resource" '$1 == key { print $8 }' "$1")" \
      "$(awk -v key="$resource" '$1 == key { print $8 }' "$work/shown")"
  done
}
verifier() {
  qconf -sconf global > "$work/shown"
  # The file must be called as the configuration is.
  with jsv_url "$1" < "$work/shown" > "$work/global"
  qconf -Mconf "$work/global" > "$work/out" 2>&1 || fail "qconf -Mconf: $(cat "$work/out")"
  qconf -sconf global > "$work/shown"
  now=$(value "$work/shown" jsv_url)
  # Without a verifier some do not show the line at all.
  is jsv_url "$1" "${now:-none}"
}
#=== save

qconf -sconf global > "$work/configuration"
qconf -sc > "$work/complexes"
qconf -ssconf > "$work/scheduler"
#=== check_verifier

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
  '' | none | NONE | "script:$jsv") ;;
  *) fail "jsv_url is $now already, and Grid Engine has one verifier only: merge the two, or undo that one" ;;
esac
#=== check_limit

# Without a limit a job would count as one of 0 s.
requests=$SGE_ROOT/${SGE_CELL:-default}/common/sge_request
grep -q '^[^#]*h_rt=' "$requests" 2> /dev/null ||
  fail "jobs without a limit would run as if they took 0 s: add a line like -l h_rt=24:00:00 to $requests"
#=== keep

# Of a second run, what was before the first stays.
if [ ! -d "$before" ]; then
  mkdir "$before"
  cp "$work/configuration" "$work/complexes" "$work/scheduler" "$before"
fi
changing=yes
#=== slots

awk '$1 != "@RESOURCE@"' "$work/complexes" > "$work/now"
urgency slots @SLOTS@ < "$work/now" > "$work/next"
cp "$work/next" "$work/now"
#=== limit
urgency h_rt @H_RT@ < "$work/now" > "$work/next"
cp "$work/next" "$work/now"
awk '$1 == "@RESOURCE@" { $8 = 0; print }' "$work/complexes" >> "$work/now"
#=== request
echo "@RESOURCE@ @RESOURCE@ DOUBLE <= YES NO 0 1" >> "$work/now"
#=== complexes
complexes "$work/now"
others=$(awk -v known=" slots @KNOWN@ " '
  !/^#/ && $8 + 0 != 0 && !index(known, " " $1 " ") { print $1 "=" $8 }
' "$work/now")
[ -z "$others" ] || echo "these resources have urgencies too, which are added to the score:" $others
#=== offer
# Every host offers more of it than any job asks for.
qconf -se global | grep -q '@RESOURCE@=' ||
  qconf -aattr exechost complex_values @RESOURCE@=1e18 global > "$work/out" 2>&1 ||
  fail "qconf -aattr: $(cat "$work/out")"
#=== weights
scheduler weight_urgency 1
scheduler weight_waiting_time @WAITING@
scheduler weight_ticket 0
scheduler weight_priority 0
#=== verifier
# Last: until now no job was given a score.
verifier "script:$jsv"
#=== applied
echo "applied; what was before is in $before"
#=== before

[ -d "$before" ] || fail "$before is missing: apply.sh was not run here, or was rolled back already"
changing=yes
#=== rollback_verifier
qconf -sconf global > "$work/configuration"
now=$(value "$work/configuration" jsv_url)
if [ "$now" = "script:$here/@JSV@" ]; then
  former=$(value "$before/configuration" jsv_url)
  # Of a second apply.sh without its folder before, the former one is this.
  case $former in '' | NONE | "$now") former=none ;; esac
  verifier "$former"
else
  echo "jsv_url is ${now:-none}, not the verifier of this folder, and stays"
fi
#=== rollback
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
else
  if qconf -se global | grep -q '@RESOURCE@='; then
    qconf -dattr exechost complex_values @RESOURCE@ global > /dev/null
  fi
  awk '$1 != "@RESOURCE@"' "$work/next" > "$work/without"
  complexes "$work/without"
fi
rm -r "$before"
echo "rolled back"
