-- What a formula calls; those that it needs are taken over, each from the line behind its ===.
-- Lua 5.1 has math.log10 and ignores the base of math.log; 5.3 and 5.4 need not have math.log10.
--=== log10
local raw_log10 = math.log10 or function(x) return math.log(x, 10) end
local function pf_log10(x)
  if x > 0.0 then return raw_log10(x) end
  return x == 0.0 and -math.huge or 0.0 / 0.0
end
--=== log2
local raw_log2 = math.log(8, 2) == 3 and function(x) return math.log(x, 2) end
  or function(x) return math.log(x) / math.log(2) end
local function pf_log2(x)
  if x > 0.0 then return raw_log2(x) end
  return x == 0.0 and -math.huge or 0.0 / 0.0
end
--=== ln
local function pf_ln(x)
  if x > 0.0 then return math.log(x) end
  return x == 0.0 and -math.huge or 0.0 / 0.0
end
--=== sqrt
local function pf_sqrt(x)
  return x >= 0.0 and math.sqrt(x) or 0.0 / 0.0
end
--=== exp
local function pf_exp(x)
  return math.exp(x)
end
--=== abs
local function pf_abs(x)
  return math.abs(x)
end
--=== min
local function pf_min(a, b)
  return (a <= b or a ~= a) and a or b
end
--=== max
local function pf_max(a, b)
  return (a >= b or a ~= a) and a or b
end
--=== pow
local function pf_pow(x, y)
  return x ^ y
end
--=== powi
local function pf_powi(x, times)
  local value = 1.0
  for _ = 1, times do value = value * x end
  return value
end
