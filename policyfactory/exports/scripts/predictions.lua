-- Predictions of a job at its submission, from the file that policyfactory history update writes; a part of
-- job_submit.lua. The same numbers in the same order as policyfactory's own engine has them.
local STATE = @STATE@
local STALE = @STALE@ -- s: the file is not used when it is older
local HEADER, LINE, SCHEMA, FEATURE_SET, FEATURES = @LAYOUT@
local TAU, LEAST = 10.0, 1e-6
local LONGEST = 1000000 -- bytes of a part
local QUEUES = {@QUEUES@} -- numbers of the partitions in the log that the forests were trained on

-- SHA-256, its first 16 hexadecimal digits. Lua 5.1 has whole numbers up to 2^53 and no operations on bits.
local XOR, AND = {}, {}
for a = 0, 255 do
  for b = 0, 255 do
    local x, y, either, both, bit = a, b, 0, 0, 1
    while bit < 256 do
      local i, j = x % 2, y % 2
      if i ~= j then either = either + bit elseif i == 1 then both = both + bit end
      x, y, bit = (x - i) / 2, (y - j) / 2, 2 * bit
    end
    XOR[256 * a + b], AND[256 * a + b] = either, both
  end
end

local floor, unpack = math.floor, unpack or table.unpack

local function bytewise(by, a, b)
  local a0, b0 = a % 256, b % 256
  local a1, b1 = floor(a / 256) % 256, floor(b / 256) % 256
  local a2, b2 = floor(a / 65536) % 256, floor(b / 65536) % 256
  return by[256 * a0 + b0] + 256 * by[256 * a1 + b1] + 65536 * by[256 * a2 + b2]
    + 16777216 * by[256 * floor(a / 16777216) + floor(b / 16777216)]
end

local POWER = {}
for n = 0, 32 do POWER[n] = 2 ^ n end

local function turned(x, n)
  local low = x % POWER[n]
  return (x - low) / POWER[n] + low * POWER[32 - n]
end

local function mixed(x, i, j, k, shifts)
  local third = shifts and floor(x / POWER[k]) or turned(x, k)
  return bytewise(XOR, bytewise(XOR, turned(x, i), turned(x, j)), third)
end

local FIRST, ROUND = {}, {}
do
  -- The fractions of the square and cube roots of the first primes, 32 bits of each: as whole numbers, exactly.
  local prime = {}
  local at = 2
  while #prime < 64 do
    local is_prime = true
    for _, other in ipairs(prime) do
      if at % other == 0 then is_prime = false end
    end
    if is_prime then prime[#prime + 1] = at end
    at = at + 1
  end
  for i = 1, 64 do ROUND[i] = floor((prime[i] ^ (1 / 3)) % 1 * POWER[32]) end
  for i = 1, 8 do FIRST[i] = floor((prime[i] ^ 0.5) % 1 * POWER[32]) end
end

local function number_of(text, at)
  local a, b, c, d = string.byte(text, at, at + 3)
  return 16777216 * a + 65536 * b + 256 * c + d
end

local function absorb(state, text, at)
  local w = {}
  for i = 1, 16 do w[i] = number_of(text, at + 4 * (i - 1)) end
  for i = 17, 64 do
    local one, two = mixed(w[i - 15], 7, 18, 3, true), mixed(w[i - 2], 17, 19, 10, true)
    w[i] = (w[i - 16] + one + w[i - 7] + two) % POWER[32]
  end
  local a, b, c, d, e, f, g, h = unpack(state)
  for i = 1, 64 do
    local choice = bytewise(AND, e, f) + bytewise(AND, POWER[32] - 1 - e, g)
    local one = h + mixed(e, 6, 11, 25) + choice + ROUND[i] + w[i]
    local most = bytewise(AND, a, b) + bytewise(AND, c, bytewise(XOR, a, b))
    local two = mixed(a, 2, 13, 22) + most
    h, g, f, e, d, c, b, a = g, f, e, (d + one) % POWER[32], c, b, a, (one + two) % POWER[32]
  end
  for i, value in ipairs({a, b, c, d, e, f, g, h}) do state[i] = (state[i] + value) % POWER[32] end
end

local function sha256(text)
  local state = {}
  for i = 1, 8 do state[i] = FIRST[i] end
  local size = #text
  text = text .. "\128" .. string.rep("\0", (55 - size) % 64) .. "\0\0\0\0"
    .. string.char(floor(size / 2097152) % 256, floor(size / 8192) % 256, floor(size / 32) % 256, 8 * size % 256)
  for at = 1, #text, 64 do absorb(state, text, at) end
  return string.format("%08x%08x", state[1], state[2])
end

-- Adler-32, as eight hexadecimal digits.
local function checksum(text)
  local a, b = 1, 0
  for at = 1, #text, 128 do
    local bytes = {string.byte(text, at, at + 127)}
    for i = 1, #bytes do
      a = a + bytes[i]
      b = b + a
    end
    a, b = a % 65521, b % 65521
  end
  return string.format("%08x", 65536 * b + a)
end

-- The forests: of each node the feature that it looks at (-1: none, it is a leaf), its threshold or value, and where
-- its children are; nodes from 0.
local function forest(base, roots, nodes)
  local made = {base = base, roots = {}, feature = {}, threshold = {}, left = {}, right = {}}
  for root in string.gmatch(roots, "%S+") do made.roots[#made.roots + 1] = tonumber(root) end
  local at = 0
  for feature, threshold, left, right in string.gmatch(nodes, "(%S+) (%S+) (%S+) (%S+)\n") do
    made.feature[at], made.threshold[at] = tonumber(feature), tonumber(threshold)
    made.left[at], made.right[at] = tonumber(left), tonumber(right)
    at = at + 1
  end
  return made
end

local SHORTNESS = @SHORTNESS@
local SHARE = @SHARE@
local TAIL = @TAIL@

local function forest_sum(trees, features)
  local feature, threshold, left, right, total = trees.feature, trees.threshold, trees.left, trees.right, trees.base
  for _, node in ipairs(trees.roots) do
    while feature[node] >= 0 do
      node = features[feature[node]] <= threshold[node] and left[node] or right[node]
    end
    total = total + threshold[node]
  end
  return total
end

-- Reading the file: what is wrong is an error, whose text says what.
local function whole(path, most)
  local file = io.open(path, "rb")
  if not file then error("no file " .. path, 0) end
  local text = file:read(most)
  file:close()
  return text or ""
end

local key_text, key, key_mark

local function read_key()
  local text = whole(STATE .. ".key", 80)
  if text == key_text then return end
  local digits = string.match(text, "^(%x+)\n?$")
  if not digits or #digits ~= 64 then error(STATE .. ".key is damaged", 0) end
  key = string.gsub(digits, "%x%x", function(pair) return string.char(tonumber(pair, 16)) end)
  key_text, key_mark = text, sha256(key .. "key")
end

-- The part of a name, found by halves; nil if the file has none.
local function part_of(file, entries, name)
  local wanted, low, high = sha256(key .. name), 0, entries - 1
  while low <= high do
    local middle = floor((low + high) / 2)
    file:seek("set", HEADER + middle * LINE)
    local found, begin, length, sum = string.match(file:read(LINE) or "", "^(%x+) (%d+) (%d+) (%x+)\n$")
    if not found then error(STATE .. " is damaged", 0) end
    if found == wanted then
      if tonumber(length) > LONGEST then error(STATE .. " is damaged", 0) end
      file:seek("set", tonumber(begin))
      local part = file:read(tonumber(length))
      if not part or #part ~= tonumber(length) or checksum(part) ~= sum then error(STATE .. " is damaged", 0) end
      return part
    elseif found < wanted then
      low = middle + 1
    else
      high = middle - 1
    end
  end
  return nil
end

local function read_parts(file, now, names)
  local head = file:read(HEADER) or ""
  local schema, set, at, mark, entries, size, named = string.match(head, "^policyfactory%-history (%d+) "
    .. "features (%d+) at (%d+) key (%x+) entries (%d+) bytes (%d+) names ([01]) *\n$")
  if not schema then error(STATE .. " is damaged", 0) end
  if tonumber(schema) ~= SCHEMA then error(STATE .. " has version " .. schema .. " of the format", 0) end
  if tonumber(set) ~= FEATURE_SET then error(STATE .. " has set " .. set .. " of the features", 0) end
  if file:seek("end") ~= tonumber(size) then error(STATE .. " is damaged", 0) end
  if now - at > STALE then error(STATE .. " is stale, of " .. os.date("%Y-%m-%d %H:%M:%S", tonumber(at)), 0) end
  if at - now > STALE then error(STATE .. " is of a later time than now", 0) end
  read_key()
  if mark ~= key_mark then error(STATE .. " was made with another key", 0) end
  local parts = {named = named == "1"}
  for kind, name in pairs(names) do parts[kind] = part_of(file, tonumber(entries), name) end
  return parts
end

local function parts_for(now, names)
  local file = io.open(STATE, "rb")
  if not file then error("no file " .. STATE, 0) end
  local fine, result = pcall(read_parts, file, now, names)
  file:close()
  if not fine then error(result, 0) end
  return result
end

-- The numbers behind the words that a line begins with; none if there is no such line.
local function numbers(part, words)
  local first, last = string.find(part or "", "\n" .. words .. " ", 1, true)
  if not first and string.sub(part or "", 1, #words + 1) == words .. " " then first, last = 1, #words + 1 end
  if not first then return {} end
  local found = {}
  for word in string.gmatch(string.match(part, "^[^\n]*", last + 1), "%S+") do found[#found + 1] = tonumber(word) end
  return found
end

local function describe_recent(f, jobs, now)
  local last, count, total, squares, short = jobs[1], 0, 0.0, 0.0, 0
  f[10], f[11] = last.status, math.log(1.0 + math.max(now - last.finish, 0.0))
  for i = 1, math.min(#jobs, 20) do
    local value = math.log(math.max(jobs[i].run, 1.0))
    if i <= 3 then f[6 + i] = value end
    total, squares, count = total + value, squares + value * value, count + 1
    if value < math.log(60.0) then short = short + 1 end
  end
  local mean = total / count
  f[12], f[13], f[14] = mean, math.sqrt(math.max(squares / count - mean * mean, 0.0)), short / count
end

local function describe_alike(f, jobs, request, processors)
  local fade, step = 1.0, math.exp(-0.05)
  local weight, largest, ln_run, shortness, share = 0.0, 0.0, 0.0, 0.0, 0.0
  for i = 1, math.min(#jobs, 60) do
    local job = jobs[i]
    local far = math.abs(math.log(job.request) - request) + math.abs(math.log(job.processors) - processors)
    local one = far == 0.0 and fade or fade * math.exp(-far)
    local run = math.max(job.run, 1.0)
    weight, largest = weight + one, math.max(largest, one)
    ln_run = ln_run + one * math.log(run)
    shortness = shortness + one * (TAU / math.max(run, TAU))
    share = share + one * math.min(run / job.request, 1.0)
    fade = fade * step
  end
  f[18], f[19] = weight, largest
  if weight > 0.0 then f[15], f[16], f[17] = ln_run / weight, shortness / weight, share / weight end
end

local function describe_present(f, user, started, jobs, now, request, processors)
  f[20], f[21], f[22] = user[1], user[2], user[3]
  if user[4] >= 0 then
    local ago = math.max(now - user[4], 0.0)
    f[23], f[24] = math.log(1.0 + ago), ago < 600.0 and user[5] + 1.0 or 0.0
  end
  if started[1] then
    if started[4] == 1 then f[25] = math.log(1.0 + math.max(now - started[1], 0.0)) end
    f[26], f[27] = math.abs(math.log(started[2]) - request), math.abs(math.log(started[3]) - processors)
  end
  if jobs[1] then f[28] = math.abs(math.log(jobs[1].request) - request) end
end

local function describe_group(f, at, means)
  for i = 1, 3 do f[at + i - 1] = (means[4] or 0) > 0 and means[i] or -1.0 end
  f[at + 3] = means[4] or 0
end

-- The features of a job, from 0, as policyfactory.engine.past describes them.
local function describe(parts, executable, queue, now, submitted, p, q)
  local f = {}
  for i = 0, FEATURES - 1 do f[i] = -1.0 end
  local request, processors, clock = math.log(p), math.log(q), os.date("*t", submitted)
  f[0], f[1], f[3] = request, processors, queue
  f[5] = (3600.0 * clock.hour + 60.0 * clock.min + clock.sec) / 3600.0
  f[6] = (clock.wday + 2) % 7 -- from Thursday, as the first of January 1970 was
  local jobs = {}
  for finish, asked, size, run, status in string.gmatch(parts.user, "\nJ (%d+) (%d+) (%d+) (%d+) (%-?%d+)") do
    jobs[#jobs + 1] = {
      finish = tonumber(finish), request = tonumber(asked), processors = tonumber(size), run = tonumber(run),
      status = tonumber(status),
    }
  end
  if jobs[1] then describe_recent(f, jobs, now) end
  describe_alike(f, jobs, request, processors)
  describe_present(f, numbers(parts.user, "U"), numbers(parts.user, "L"), jobs, now, request, processors)
  for kind, group in ipairs({
    string.format("%d %d %s", p, q, executable), string.format("0 %d -", q), string.format("%d 0 -", p),
    "0 0 " .. executable, "0 0 -",
  }) do
    describe_group(f, 25 + 4 * kind, numbers(parts.user, string.format("K %d %s", kind - 1, group)))
  end
  describe_group(f, 49, numbers(parts.group, "G"))
  describe_group(f, 53, numbers(parts.shape, "S"))
  return f
end

local function bounded(value)
  return math.min(math.max(value, LEAST), 1.0)
end

local present -- how many of the user's jobs wait and run, as far as that is known

local function predict(job, record, partitions, submitted, p, q)
  local function id(field)
    local value = tonumber((record or job)[field])
    return value and value >= 0 and value < NO_VAL and value or nil
  end
  local now, user, group = os.time(), id("user_id"), id("group_id")
  if not user then error("its user is not known", 0) end
  present = {at_submission(user, submitted, record, 0.0, 0.0)}
  local names = {user = string.format("u%.0f", user), shape = string.format("s%.0f/%.0f", p, q)}
  if group then names.group = string.format("g%.0f", group) end
  local parts = parts_for(now, names)
  local counts = numbers(parts.user, "U")
  present = {at_submission(user, submitted, record, (counts[1] or 0) + 0.0, (counts[2] or 0) + 0.0)}
  if (counts[3] or 0) < 1 then
    error("user " .. string.format("%.0f", user) .. " has no job that has ended", 0)
  end
  local _, partition = partition_of(job, record, partitions)
  local executable, name = "-", (record or job).name
  if parts.named and type(name) == "string" and name ~= "" then
    executable = sha256(key .. "n" .. string.sub(string.gsub(name, "%d+", "#"), 1, 100))
  end
  local f = describe(parts, executable, QUEUES[partition or ""] or -1.0, now, submitted, p, q)
  -- The request is that of the logarithm, as in the simulation.
  local request = math.exp(f[0])
  local shortness, share = bounded(math.exp(forest_sum(SHORTNESS, f))), bounded(math.exp(forest_sum(SHARE, f)))
  local tail = 1.0
  if TAIL.roots[1] then tail = bounded(forest_sum(TAIL, f)) end
  return {share * request, shortness, tail * request}
end

-- e, s, e90, user_waiting and user_running of a job; where they cannot be known, what the request says, and a line in
-- slurmctld's log.
local function foresee(job, record, partitions, submitted, p, q)
  present = {0.0, 0.0}
  local fine, found = pcall(predict, job, record, partitions, submitted, p, q)
  if fine then return found[1], found[2], found[3], present[1], present[2] end
  pcall(slurm.log_info, "%s", "policyfactory: no prediction, the request is taken: " .. tostring(found))
  return p, TAU / math.max(p, TAU), p, present[1], present[2]
end

