
BEGIN {
  FS = "|"
  INF = 1e300 * 1e300
  NAN = INF - INF
  # r counts from EPOCH (Unix s), or else from the submission of the job that has waited longest.
  FIXED = @FIXED@
  EPOCH = @EPOCH@
  # p of a job without a limit, s.
  UNLIMITED = @UNLIMITED@
  # Jobs that have waited longer (s) go first; negative: never.
  THRESHOLD = @THRESHOLD@
  # Processors of the machine.
  m = @PROCESSORS@
  # Between the priorities of neighbours, and the highest nice value of Slurm.
  GAP = @GAP@
  MOST = @MOST@
  # What is logged for policyfactory shadow: the negative score, or the priority less the nice value.
  BY_SCORE = @BY_SCORE@
}

@SCORE@
# squeue prints [days-][hours:]minutes:seconds.
function seconds(text,  at, days, n, part, total, i) {
  if (text == "UNLIMITED") return UNLIMITED
  at = index(text, "-")
  days = at ? substr(text, 1, at - 1) + 0 : 0
  text = substr(text, at + 1)
  if (text !~ /^[0-9]+(:[0-9]+)+$/) return -1
  n = split(text, part, ":")
  for (i = 1; i <= n; i++) total = total * 60 + part[i]
  return days * 86400 + total
}

# The GPUs of "gres:gpu:2,gres/gpu:a100=4": 6. A name without a number is one.
function gpus(text,  part, n, i, found) {
  n = split(text, part, ",")
  for (i = 1; i <= n; i++) {
    sub(/^gres[:\/]/, "", part[i])
    if (part[i] !~ /^gpu($|[:=])/) continue
    found += match(part[i], /[:=][0-9]+$/) ? substr(part[i], RSTART + 1) : 1
  }
  return found + 0
}

function larger(a, b) {
  return a > b ? a : b
}

# The processors, with those that are asked for by GPU: before 24.05 squeue does not count them.
function processors(  all, nodes) {
  nodes = match($10, /node=[0-9]+/) ? substr($10, RSTART + 5, RLENGTH - 5) : 1
  all = larger(gpus($13), larger(nodes * larger(gpus($14), gpus($15)), $11 * gpus($16)))
  return larger($7 + 0, all * gpus($12))
}

function before(a, b) {
  if (late[a] != late[b]) return late[a] > late[b]
  if (!late[a] && value[a] != value[b]) return value[a] < value[b]
  return earlier(a, b)
}

function earlier(a, b) {
  if (submit[a] != submit[b]) return submit[a] < submit[b]
  return id[a] != id[b] ? id[a] + 0 < id[b] + 0 : first[a] < first[b]
}

function sink(root, size,  child, kept) {
  kept = order[root]
  while ((child = 2 * root) <= size) {
    if (child < size && before(order[child], order[child + 1])) child++
    if (!before(kept, order[child])) break
    order[root] = order[child]
    root = child
  }
  order[root] = kept
}

function sort_jobs(  i, last) {
  for (i = 1; i <= n; i++) order[i] = i
  for (i = int(n / 2); i >= 1; i--) sink(i, n)
  for (i = n; i > 1; i--) {
    last = order[i]
    order[i] = order[1]
    order[1] = last
    sink(1, i - 1)
  }
}

function look(i) {
  p = limit[i]
  q = size[i]
  w = now > submit[i] ? now - submit[i] : 0
  r = submit[i] - (FIXED ? EPOCH : oldest)
  if (FIXED && r < 1) r = 1
  value[i] = p < 0 ? INF : score()
  late[i] = THRESHOLD >= 0 && w > THRESHOLD
  if (p < 0) unknown++
}

# Only down: every job keeps the priority that it has without nice, unless that would put it before one that goes first.
function place(i,  group) {
  group = partition[i]
  goal[i] = top[i]
  if (group in lowest && goal[i] > lowest[group] - GAP) goal[i] = lowest[group] - GAP
  if (goal[i] < top[i] - MOST) goal[i] = top[i] - MOST
  if (goal[i] < 1) { goal[i] = 1; bottom++ }
  # The tasks of an array may differ in age.
  lowest[group] = goal[i] - top[i] + least_top[i]
  wanted[i] = (nice[i] < 0 ? nice[i] : 0) + top[i] - goal[i]
}

function overtakes(i, other) {
  if (today[i] != least[other]) return today[i] > least[other]
  return earlier(i, other)
}

# A job, or the waiting tasks of an array that are alike: 57_[0-3,7]. The number of the array alone would mean its
# running tasks as well.
function named(i,  task, found, from) {
  if (first[i] < 0) return id[i]
  for (task = first[i]; task <= final[i]; task++) {
    if (!((i, task) in tasks)) continue
    from = task
    while ((i, task + 1) in tasks) task++
    found = found (found == "" ? "" : ",") (from == task ? from : from "-" task)
  }
  return id[i] "_[" found "]"
}

# One line for policyfactory shadow; the higher number first.
function shadow(i, task,  name) {
  name = task < 0 ? id[i] : id[i] "_" task
  printf "policyfactory-shadow: policy=- at=%d job=%s user=- submit=%d time=%.0f processors=%d ", now, name, submit[i], \
    limit[i], size[i]
  printf "score=%.17g number=%.17g present=%.0f us=-\n", value[i], BY_SCORE ? -value[i] : goal[i], today[i]
}

function short(text) {
  return length(text) > 20 ? substr(text, 1, 17) "..." : text
}

function say(count, text) {
  if (count) print count " " text | "cat >&2"
}

$0 == "" { next }
(NF != 9 && NF != 17) || $1 !~ /^[0-9]+(_[0-9]+)?$/ { odd++; next }
mode == "reset" && $4 <= 0 { next }
mode != "reset" && ($3 == 0 || $8 ~ /^(BeginTime|Dependency)/ || $8 == "JobHeldUser" || $8 == "JobHeldAdmin") {
  later++
  next
}
{
  # Tasks of an array that ask for the same get one nice value; a task may have been changed by hand.
  asked = processors()
  key = $2 FS $5 FS $6 FS asked FS $9
  known = key in place_of
  if (!known) place_of[key] = ++n
  i = place_of[key]
  task = $1 ~ /_/ ? substr($1, index($1, "_") + 1) + 0 : -1
  tasks[i, task] = 1
  if (!known || task < first[i]) first[i] = task
  if (!known || task > final[i]) final[i] = task
  jobs++
  without = $3 + ($4 > 0 ? $4 : 0)
  if (!known || $3 + 0 > today[i]) today[i] = $3 + 0
  if (!known || $3 + 0 < least[i]) least[i] = $3 + 0
  if (!known || without > top[i]) top[i] = without
  if (!known || without < least_top[i]) least_top[i] = without
  if (known && $4 + 0 != nice[i]) mixed[i] = 1
  submit[i] = $5 + 0
  if (n == 1 || submit[i] < oldest) oldest = submit[i]
  id[i] = $2
  nice[i] = $4 + 0
  limit[i] = seconds($6)
  size[i] = asked
  partition[i] = $9
}

END {
  if (mode == "reset") {
    for (i = 1; i <= n; i++) print named(i) " 0"
    exit
  }
  for (i = 1; i <= n; i++) look(i)
  sort_jobs()
  for (k = 1; k <= n; k++) place(order[k])
  if (mode == "bottom") {
    for (i = 1; i <= n; i++) if (least[i] <= 1 && nice[i] > 0) print named(i) " 0"
    exit
  }
  if (mode == "set") {
    for (i = 1; i <= n; i++) if (wanted[i] != nice[i] || i in mixed) printf "%s %.0f\n", named(i), wanted[i]
    exit
  }
  if (mode == "log") {
    for (k = 1; k <= n; k++) {
      i = order[k]
      for (task = first[i]; task <= final[i]; task++) if ((i, task) in tasks) shadow(i, task)
    }
  }
  if (mode == "show") {
    print "  place  job                   processors      limit s     waited s        score     priority      nice" \
      "  new nice  partition"
    for (k = 1; k <= n; k++) {
      i = order[k]
      printf "%7d  %-20s %11d %12d %12d ", k, short(named(i)), size[i], limit[i], now - submit[i]
      printf "%12.6g %12.0f %9.0f %9.0f  %s\n", value[i], today[i], nice[i], wanted[i], partition[i]
    }
  }
  if (mode == "check") {
    for (k = 1; k <= n; k++) {
      i = order[k]
      group = partition[i]
      if (group in ahead && overtakes(i, ahead[group])) wrong++
      ahead[group] = i
    }
    say(jobs, "waiting jobs and tasks of arrays looked at")
    say(wrong, "of them still stand before a job that the formula puts first (priority set by an operator?)")
  }
  say(bottom, "of them cannot go low enough: their priorities are too small for an order by nice")
  say(unknown, "of them have no time limit that squeue tells; they go last")
  say(later, "waiting jobs left alone: held, or waiting for another job or a time")
  say(odd, "lines of squeue left alone: parts of heterogeneous jobs, or of an unknown form")
}
