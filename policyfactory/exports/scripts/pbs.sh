# What sets job_sort_formula and takes it back, in parts.
#=== start
set -eu
before=pbs_before_policyfactory

if [ "${1:-install}" = remove ]; then
    qmgr -c 'unset server job_sort_formula'
#=== remove_eligible
    qmgr -c 'unset server eligible_time_enable'
#=== remove_hook
    if qmgr -c 'list hook pf_submit' > /dev/null 2>&1; then qmgr -c 'delete hook pf_submit'; fi
#=== keep
    if [ -s "$before" ]; then qmgr < "$before"; fi
    rm -f "$before"
    exit 0
fi

# A scheduler's own formula would be refused beside the server's, and a threshold keeps jobs from running.
own=$(qmgr -c 'print server' && { qmgr -c 'print sched' 2> /dev/null || true; })
if printf '%s\n' "$own" | grep -E 'set sched .*job_sort_formula|job_sort_formula_threshold' >&2; then
    echo 'The lines above must be unset first (qmgr): jobs below the threshold would never run.' >&2
    exit 1
fi
if [ ! -e "$before" ]; then
    kept='^set server (job_sort_formula|eligible_time_enable) '
    printf '%s\n' "$own" | grep -E "$kept" > "$before" || true
fi

#=== set_eligible
qmgr -c 'set server eligible_time_enable = True'
