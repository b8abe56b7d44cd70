usage() {
  cat >&2 <<'END_OF_USAGE'
usage: sh @NAME@ [show | set | reset | sbatch ARGUMENT... | log]
  show    your waiting jobs in the order of the formula, and the nice values that make it (the default)
  set     set these nice values
  reset   set the nice value of all your waiting jobs to 0: the order of before
  sbatch  submit with sbatch and these arguments, then set
  log     a line for each waiting job, for policyfactory shadow; changes nothing
END_OF_USAGE
}

# Your waiting jobs; what you set for squeue in the environment must not change the list.
list() (
  unset SQUEUE_ACCOUNT SQUEUE_FEDERATION SQUEUE_LICENSES SQUEUE_NAMES SQUEUE_PARTITION SQUEUE_PRIORITY
  unset SQUEUE_QOS SQUEUE_SIBLING SQUEUE_STATES SQUEUE_USERS SLURM_CLUSTERS
  LC_ALL=C SLURM_TIME_FORMAT=%s squeue --noheader --array --all @WHOSE@\
    --states=PENDING --Format='JobArrayID:|,ArrayJobID:|,PriorityLong:|,Nice:|,SubmitTime:|,TimeLimit:|,NumCPUs:|,Reason:|,'\
'Partition:|,tres-alloc:|,NumTasks:|,cpus-per-tres:|,tres-per-job:|,tres-per-node:|,tres-per-socket:|,tres-per-task:|'
)

rank() {
  now=$(date +%s) && rows=$(list) || return 1
  printf '%s\n' "$rows" | LC_ALL=C awk -v mode="$1" -v now="$now" '@AWK@'
}

# Each line of the input: a job, or waiting tasks of an array, and the nice value. Slurm says itself what it refuses.
update() {
  tried=0 refused=0
  while read -r job nice; do
    [ -n "$job" ] || continue
    tried=$((tried + 1))
    scontrol update "JobId=$job" "Nice=$nice" </dev/null || refused=$((refused + 1))
  done
  [ "$refused" -gt 0 ] || return 0
  echo "$refused of $tried nice values could not be set; where jobs only ended meanwhile, run it again" >&2
  return 1
}

set_nice() {
  failed=0
  # What nice took from a job at the very bottom cannot be seen there: give it back before looking.
  plan=$(rank bottom) || return 1
  printf '%s\n' "$plan" | update || failed=1
  plan=$(rank set) || return 1
  printf '%s\n' "$plan" | update || failed=1
  rank check >&2 || failed=1
  return "$failed"
}

case "@LOG_ONLY@${1:-show}" in
1set | 1reset | 1sbatch)
  echo "this export only logs (sh $0 log >> FILE); an export without --log-only sets" >&2
  exit 2
  ;;
esac

case "${1:-show}" in
show | log) rank "${1:-show}" ;;
set) set_nice ;;
reset) plan=$(rank reset) && printf '%s\n' "$plan" | update ;;
sbatch)
  shift
  sbatch "$@" || exit
  # The job is in, whatever happens now.
  set_nice || echo "the job was submitted, but not all nice values were set; run: sh $0 set" >&2
  ;;
*) usage; exit 2 ;;
esac
