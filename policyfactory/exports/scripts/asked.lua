-- mem: MB over the whole job; of a job that asks for none, slurm.conf's default by GPU, else its partition's, or 0.
local function requested_memory(job, record, partitions, q)
  local n, g = requested_nodes(job, record), requested_gpus(job, record)
  local function memory_in(one, prefix)
    local by_node = number_in(prefix .. "_mem_per_node", 2.0 ^ 52, one)
    if by_node then return n * by_node end
    local by_processor = number_in(prefix .. "_mem_per_cpu", 2.0 ^ 52, one)
    return by_processor and q * by_processor
  end
  -- In the record, defaults stand beside what was asked for: those by GPU have no "gres" before their name.
  local by_gpu = text_in("mem_per_tres", job, record)
  if job.mem_per_tres == nil and not string.find(by_gpu or "", "^gres") then by_gpu = nil end
  local of_gpus = g * gpus_in(by_gpu)
  local of_default = g * default_of(MB_PER_GPU, job, record, partitions)
  local default = memory_in(partition_of(job, record, partitions), "def")
  local recorded = record and memory_in(record, "min")
  if of_default > 0.0 and recorded == default then recorded = nil end
  return memory_in(job, "min") or (of_gpus > 0.0 and of_gpus) or recorded or (of_default > 0.0 and of_default)
    or default or 0.0
end

-- Whether a change is one of memory.
local function changes_asked(job)
  return number_in("min_mem_per_node", 2.0 ^ 52, job) ~= nil or number_in("min_mem_per_cpu", 2.0 ^ 52, job) ~= nil
    or job.mem_per_tres ~= nil
end

