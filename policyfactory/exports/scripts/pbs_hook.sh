hook=$(mktemp "${TMPDIR:-/tmp}/pf_submit.XXXXXX")
cat > "$hook" <<'END_OF_HOOK'
import time

import pbs

EPOCH = @EPOCH@  # seconds since 1970

# reject() ends the hook by SystemExit, which is no Exception; anything else must not block a submission.
try:
    event = pbs.event()
    if event.type == pbs.QUEUEJOB:
        event.job.Resource_List["pf_submit"] = float(max(1, int(time.time()) - EPOCH))
    elif event.job.Resource_List["pf_submit"] is not None and event.requestor != "root":
        event.reject("pf_submit is set by the server when a job is queued")
except Exception as error:
    pbs.logmsg(pbs.LOG_WARNING, "pf_submit: " + str(error))
END_OF_HOOK
qmgr -c 'list resource pf_submit' > /dev/null 2>&1 || qmgr -c 'create resource pf_submit type=float'
qmgr -c 'list hook pf_submit' > /dev/null 2>&1 || qmgr -c 'create hook pf_submit event="queuejob,modifyjob"'
qmgr -c "import hook pf_submit application/x-python default $hook"
rm "$hook"

# The hook sees new jobs only: those that wait already get their value here, from when they were created.
late=0
for job in $(qselect -s BHQTW); do
    created=$(qstat -f "$job" | sed -n 's/^ *ctime = //p') || created=
    created=$(date -d "${created:-none}" +%s 2> /dev/null) || created=
    since=$((${created:-0} - @EPOCH@))
    [ "$since" -ge 1 ] || since=1
    if [ -z "$created" ] || ! qalter -l "pf_submit=$since" "$job"; then
        echo "$job has no value and will run last" >&2
        late=$((late + 1))
    fi
done
[ "$late" -eq 0 ] || echo "$late waiting jobs could not be given pf_submit; as root: sh $0" >&2

