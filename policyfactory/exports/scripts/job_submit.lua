-- Parts of job_submit.lua for Slurm, each from the line behind its ===.
--=== start
@HEAD@

local EPOCH = @EPOCH@ -- r counts from it (Unix s)
local LOW, HIGH, LARGEST = @RANGE@

-- An error is logged; it never keeps a job from being submitted or changed, nor slurmctld from starting.
local function attempt(what, ...)
  local fine, problem = pcall(what, ...)
  if not fine then pcall(function() slurm.log_error("policyfactory: %s", tostring(problem)) end) end
  return fine
end

@LOOK@attempt(function() -- all of it, to the entry points at the end

@HELPERS@-- The score of a job; the job with the lowest runs first.
local function score(p, q, r@MORE@)
  return @SCORE@
end

-- Lower scores get higher numbers, 1 to LARGEST, and none is cut off; no value gets 1.
local function whole_number(value)
  local u = (value - LOW) / (HIGH - LOW)
  local y = 0.125 + 0.75 * u
  if u < 0.0 then
    y = 0.125 / (1.0 - 6.0 * u)
  elseif u > 1.0 then
    y = 1.0 - 0.125 / (1.0 + 6.0 * (u - 1.0))
  end
  local number = math.floor(LARGEST - y * (LARGEST - 1.0))
  if not (number >= 1.0) then return 1 end
  if number > LARGEST then return LARGEST end
  return number
end

-- Slurm's marks for "not set", in fields of 32 and of 16 bits; "unlimited" is one more.
local NO_VAL, NO_VAL16 = 4294967294, 65534
-- A job without any limit, as Slurm's backfill scheduler counts it (s).
local UNLIMITED = @UNLIMITED@
-- DefCpuPerGPU and DefMemPerGPU (MB) of slurm.conf, which Slurm does not tell Lua: fill them in, by partition, or [""]
-- for all others: {gpu = 8, [""] = 4}.
local CPUS_PER_GPU, MB_PER_GPU = {}, {}

-- The number in a field of a job, or of its record from before a change; nil if there is none.
local function number_in(field, mark, job, record)
  local value = tonumber(job[field])
  if value == nil or value <= 0 or value >= mark then
    value = record and tonumber(record[field])
  end
  if value and value > 0 and value < mark then return value + 0.0 end
  return nil
end

-- The partition of a job and its name.
local function partition_of(job, record, partitions)
  local names = job.partition or (record and record.partition)
  if type(names) == "string" then
    for name in string.gmatch(names, "[^,]+") do
      if partitions[name] then return partitions[name], name end
    end
  end
  for name, partition in pairs(partitions) do
    if partition.flag_default == 1 then return partition, name end
  end
  return {}, nil
end

-- p: the time limit (s); without one, that of the partition.
local function requested_time(job, record, partitions)
  local asked = tonumber(job.time_limit) or NO_VAL
  if asked == NO_VAL and record then asked = tonumber(record.time_limit) or NO_VAL end
  if asked > 0 and asked < NO_VAL then return 60.0 * asked end
  local partition = partition_of(job, record, partitions)
  local default = asked == NO_VAL and number_in("default_time", NO_VAL, partition)
  local minutes = default or number_in("max_time", NO_VAL, partition)
  return minutes and 60.0 * minutes or UNLIMITED + 0.0
end

-- A text of a job, or of its record from before a change.
local function text_in(field, job, record)
  local value = job[field]
  if value == nil and record then value = record[field] end
  return value
end

-- The GPUs of "gres:gpu:2,gres/gpu:a100=4": 6. A name without a number is one.
local function gpus_in(text)
  local total = 0.0
  if type(text) ~= "string" then return total end
  for part in string.gmatch(text, "[^,]+") do
    local rest = string.match(part, "^gres[:/]gpu(.*)$") or string.match(part, "^gpu(.*)$")
    if rest and (rest == "" or string.find(rest, "^[:=]")) then
      total = total + (tonumber(string.match(rest, "[:=](%d+)$")) or 1)
    end
  end
  return total
end

-- n: the nodes; one where the job leaves their number to Slurm.
local function requested_nodes(job, record)
  return number_in("min_nodes", NO_VAL, job, record) or 1.0
end

-- The tasks, given or by node; nil where neither says.
local function requested_tasks(job, record)
  local on_each = number_in("ntasks_per_node", NO_VAL16, job)
  return number_in("num_tasks", NO_VAL, job) or (on_each and on_each * requested_nodes(job, record))
end

-- g: the GPUs over the whole job, in whichever way they are asked for.
local function requested_gpus(job, record)
  local nodes, tasks = requested_nodes(job, record), requested_tasks(job, record)
  local sockets = number_in("sockets_per_node", NO_VAL16, job) or 1.0
  local gpus = math.max(gpus_in(text_in("tres_per_job", job, record)),
    nodes * gpus_in(text_in("tres_per_node", job, record)),
    nodes * sockets * gpus_in(text_in("tres_per_socket", job, record)),
    (tasks or nodes) * gpus_in(text_in("tres_per_task", job, record)))
  -- The record does not tell the tasks; what slurmctld counted it does, where AccountingStorageTRES has gres/gpu.
  local counted = record and not tasks and string.match(record.tres_fmt_req_str or "", "gres/gpu=(%d+)")
  if counted and not (job.tres_per_job or job.tres_per_node or job.tres_per_socket or job.tres_per_task) then
    gpus = math.max(gpus, tonumber(counted))
  end
  local on_each = number_in("ntasks_per_tres", NO_VAL16, job)
  if gpus == 0.0 and on_each and tasks then return math.floor(tasks / on_each) end
  return gpus
end

-- What a table of defaults has for the partition of a job.
local function default_of(defaults, job, record, partitions)
  local _, name = partition_of(job, record, partitions)
  return defaults[name or ""] or defaults[""] or 0.0
end

-- q: the largest of what the fields say; none of them alone is always right.
local function requested_processors(job, record, partitions)
  local gpus = requested_gpus(job, record)
  local each = number_in("cpus_per_task", NO_VAL16, job)
  local tasks = math.max(requested_tasks(job, record) or 0.0,
    gpus * (number_in("ntasks_per_tres", NO_VAL16, job) or 0.0))
  local on_each = number_in("pn_min_cpus", NO_VAL16, job, record) or 1.0
  local by_gpu = gpus_in(text_in("cpus_per_tres", job, record))
  if by_gpu == 0.0 and not each and on_each == 1.0 then
    by_gpu = default_of(CPUS_PER_GPU, job, record, partitions)
  end
  return math.max(number_in("min_cpus", NO_VAL, job, record) or 1.0, tasks * (each or 1.0),
    requested_nodes(job, record) * on_each, gpus * by_gpu)
end

--=== remember
-- user_waiting and user_running stay what they were at the submission: kept for each second in which a user submitted
-- (of several jobs the last one's), until slurmctld restarts or reads this file anew, or there are too many of them.
local kept, seconds = {}, 0

-- What a job that is changed counts itself: as waiting, an array with its tasks, and as running.
local function own_counts(record)
  if not record then return 0.0, 0.0 end
  local state = (tonumber(record.job_state) or 0) % 256 -- without flags; 2: suspended
  if state == 0 then return math.max(tonumber(record.array_task_cnt) or 1.0, 1.0), 0.0 end
  return 0.0, state <= 2 and 1.0 or 0.0
end

local function at_submission(user, submitted, record, waiting, running)
  local own_waiting, own_running = own_counts(record)
  waiting, running = math.max(waiting - own_waiting, 0.0), math.max(running - own_running, 0.0)
  local key = string.format("%.0f %.0f", user, submitted)
  if not record then
    if seconds == 100000 then kept, seconds = {}, 0 end
    if not kept[key] then seconds = seconds + 1 end
    kept[key] = {waiting, running}
    return waiting, running
  end
  -- The clock at the submission may have been a second behind.
  local known = kept[key] or kept[string.format("%.0f %.0f", user, submitted - 1)]
  if known then return known[1], known[2] end
  return waiting, running
end

--=== count
-- slurm.jobs is a table of slurmctld's own records, which stays as it is for the rest of a second: of a job that has gone
-- since, nothing may be read. So each table is counted once, in the call for which it was made.
local counted, whole, waiting, running

look = function()
  if slurm.jobs == counted then return end
  counted, whole, waiting, running = slurm.jobs, false, {}, {}
  for _, job in pairs(slurm.jobs) do
    local user, wait, run = job.user_id, own_counts(job)
    waiting[user], running[user] = (waiting[user] or 0.0) + wait, (running[user] or 0.0) + run
  end
  whole = true
end
pcall(look)

-- user_waiting and user_running: the jobs of the same user that wait and run, but this one; tasks of an array each.
local function count_jobs(job, record, submitted)
  pcall(look)
  if not whole then error("slurm.jobs cannot be read", 0) end
  local user = (record or job).user_id
  return at_submission(user, submitted, record, waiting[user] or 0.0, running[user] or 0.0)
end

-- Where they cannot be counted there are none, and slurmctld's log has a line.
local function present_jobs(job, record, submitted)
  local fine, wait, run = pcall(count_jobs, job, record, submitted)
  if fine then return wait, run end
  pcall(slurm.log_info, "%s", "policyfactory: the user's jobs not counted, none is taken: " .. tostring(wait))
  return 0.0, 0.0
end

--=== value
local function is_set(value)
  return value ~= nil and value ~= NO_VAL
end

-- Whether a change is one of the time limit or of the size; another partition may have another limit.
local function changes_shape(job)
  for _, field in ipairs({"tres_per_job", "tres_per_node", "tres_per_socket", "tres_per_task", "cpus_per_tres"}) do
    if job[field] ~= nil then return true end
  end
  return is_set(job.time_limit) or is_set(job.partition)
    or (number_in("min_cpus", NO_VAL, job) or number_in("num_tasks", NO_VAL, job)
      or number_in("cpus_per_task", NO_VAL16, job) or number_in("min_nodes", NO_VAL, job)
      or number_in("pn_min_cpus", NO_VAL16, job) or number_in("ntasks_per_node", NO_VAL16, job)) ~= nil@CHANGES@
end

-- The number that slurmctld sorts by, of a job that was submitted at a Unix time; r is at least 1 s.
local function value_of(job, record, partitions, submitted)
  local p = requested_time(job, record, partitions or {})
  local q = requested_processors(job, record, partitions or {})
  return whole_number(score(p, q, math.max(submitted - EPOCH, 1.0) + 0.0@FORESEEN@))
end

-- Global, so that another job_submit.lua can call it.
policyfactory = {}
--=== log_only

-- One line for policyfactory shadow; a job has no number yet when it is submitted. Nothing is set.
local function log_score(job, record, partitions, submitted, user)
  local begin = os.clock()
  local p = requested_time(job, record, partitions or {})
  local q = requested_processors(job, record, partitions or {})
  local value = score(p, q, math.max(submitted - EPOCH, 1.0) + 0.0@FORESEEN@)
  local number = whole_number(value)
  local cost = (os.clock() - begin) * 1e6
  slurm.log_info("%s", string.format(
    "policyfactory-shadow: policy=@NAME@ at=%d job=%s user=%s submit=%d time=%d processors=%d "
      .. "score=%.17g number=%.0f present=%s us=%.0f",
    os.time(), tostring(record and record.job_id or "-"), tostring(user or "-"), submitted, p, q, value, number,
    tostring(record and record.priority or "-"), cost))
end

function policyfactory.submit(job_desc, part_list, submit_uid)
@LOOKS@  attempt(function() log_score(job_desc, nil, part_list, os.time(), job_desc.user_id or submit_uid) end)
end

function policyfactory.modify(job_desc, job_rec, part_list)
@LOOKS@  attempt(function()
    if changes_shape(job_desc) or is_set(job_desc.nice) then
      log_score(job_desc, job_rec, part_list, job_rec.submit_time, job_rec.user_id)
    end
  end)
end
--=== set_site_factor

-- A job without a site_factor has 0, which is last.
function policyfactory.submit(job_desc, part_list)
@LOOKS@  attempt(function()
    if is_set(job_desc.site_factor) then return end
    job_desc.site_factor = value_of(job_desc, nil, part_list, os.time())
  end)
end

-- A change of nice scores again, so that a change to what it is scores jobs that had no score.
function policyfactory.modify(job_desc, job_rec, part_list)
@LOOKS@  attempt(function()
    if is_set(job_desc.site_factor) or not (changes_shape(job_desc) or is_set(job_desc.nice)) then return end
    job_desc.site_factor = value_of(job_desc, job_rec, part_list, job_rec.submit_time)
  end)
end
--=== set_priority

-- A held job (0) and a priority that somebody gave stay as they are.
function policyfactory.submit(job_desc, part_list)
  local function free() return not is_set(job_desc.priority) end
  local fine = attempt(function()
    if free() then job_desc.priority = value_of(job_desc, nil, part_list, os.time()) end
  end)
  -- The plugin's own priority may be above all scores: without a score, a job is last.
  if not fine then
    attempt(function()
      if free() then job_desc.priority = 1 end
    end)
  end
end

-- Whether a waiting job still has the priority of its score. The clock at its submission may have been a second behind.
local function is_ours(job_rec, part_list)
  local submitted = job_rec.submit_time
  return job_rec.priority == value_of(job_rec, nil, part_list, submitted)
    or job_rec.priority == value_of(job_rec, nil, part_list, submitted - 1)
end

-- slurmctld refuses the whole change of an ordinary user with a priority in it: only root's changes score again.
function policyfactory.modify(job_desc, job_rec, part_list, modify_uid)
  attempt(function()
    if modify_uid ~= 0 or is_set(job_desc.priority) or not changes_shape(job_desc) then return end
    if is_ours(job_rec, part_list) then
      job_desc.priority = value_of(job_desc, job_rec, part_list, job_rec.submit_time)
    end
  end)
end
--=== entry
end)

function slurm_job_submit(...)
  attempt(function(...) policyfactory.submit(...) end, ...)
  return slurm.SUCCESS
end

function slurm_job_modify(...)
  attempt(function(...) policyfactory.modify(...) end, ...)
  return slurm.SUCCESS
end

return slurm.SUCCESS
