@HEAD@

@HELPERS@local M = {}
M.name = @NAME@
M.formula = @FORMULA@
@EPOCH@M.threshold_s = @THRESHOLD@

-- The score of a job; the job with the lowest runs first.
function M.score(p, q, r, w, m@MORE@)
  -- Adding 0.0 makes a double of a whole number, whose products would wrap around.
  p, q, r, w, m = p + 0.0, q + 0.0, (r or 0) + 0.0, (w or 0) + 0.0, (m or 1) + 0.0
@DOUBLES@  local value = @SCORE@
  if value ~= value then return math.huge end
  return value
end

return M
