-- n: the nodes; one where the job leaves their number to Slurm.
local function requested_nodes(job, record)
  return number_in("min_nodes", NO_VAL, job, record) or 1.0
end

-- mem: MB over the whole job, by node or by processor; of a job that asks for none, its partition's default, or 0.
local function requested_memory(job, record, partitions, q)
  local n = requested_nodes(job, record)
  local function memory_in(one, prefix)
    local by_node = number_in(prefix .. "_mem_per_node", 2.0 ^ 52, one)
    if by_node then return n * by_node end
    local by_processor = number_in(prefix .. "_mem_per_cpu", 2.0 ^ 52, one)
    return by_processor and q * by_processor
  end
  local partition = partition_of(job, record, partitions)
  return memory_in(job, "min") or (record and memory_in(record, "min")) or memory_in(partition, "def") or 0.0
end

-- The GPUs of "gres:gpu:2,gres:gpu:a100:4": 6. A name without a number is one.
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

-- g: the GPUs over the whole job, in whichever way they are asked for.
local function requested_gpus(job, record)
  local function most(one)
    local tasks = number_in("num_tasks", NO_VAL, one) or 1.0
    local nodes = requested_nodes(job, record)
    return math.max(gpus_in(one.tres_per_job), nodes * gpus_in(one.tres_per_node),
      nodes * gpus_in(one.tres_per_socket), tasks * gpus_in(one.tres_per_task))
  end
  local gpus = most(job)
  if gpus > 0.0 or not record then return gpus end
  return most(record)
end

-- Whether a change is one of memory or GPUs.
local function changes_asked(job)
  return number_in("min_mem_per_node", 2.0 ^ 52, job) ~= nil or number_in("min_mem_per_cpu", 2.0 ^ 52, job) ~= nil
    or job.tres_per_job ~= nil or job.tres_per_node ~= nil or job.tres_per_socket ~= nil or job.tres_per_task ~= nil
end

