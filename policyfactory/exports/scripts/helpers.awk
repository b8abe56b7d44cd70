# What a formula calls; those that it needs are taken over, each from the line behind its ===.
#=== log10
function pf_log10(x) {
  return x > 0 ? log(x) / log(10) : (x == 0 ? -INF : NAN)
}
#=== log2
function pf_log2(x) {
  return x > 0 ? log(x) / log(2) : (x == 0 ? -INF : NAN)
}
#=== ln
function pf_ln(x) {
  return x > 0 ? log(x) : (x == 0 ? -INF : NAN)
}
#=== sqrt
function pf_sqrt(x) {
  return x >= 0 ? sqrt(x) : NAN
}
#=== exp
function pf_exp(x) {
  return x > 709.78 ? INF : (x < -745.2 ? 0 : exp(x))
}
#=== abs
function pf_abs(x) {
  return x < 0 ? -x : x
}
#=== min
function pf_min(a, b) {
  return no_value(a) || no_value(b) ? NAN : (a <= b ? a : b)
}
#=== max
function pf_max(a, b) {
  return no_value(a) || no_value(b) ? NAN : (a >= b ? a : b)
}
#=== pow
function pf_pow(x, y) {
  return x == 0 && y < 0 ? INF : (x < 0 && y != int(y) ? NAN : x ^ y)
}
#=== powi
function pf_powi(x, times,  value) {
  value = 1
  for (; times > 0; times--) value = value * x
  return value
}
#=== div
function pf_div(x, y) {
  return y != 0 ? x / y : (no_value(x) || x == 0 ? NAN : (x > 0 ? INF : -INF))
}
#=== no_value
function no_value(x) {
  return tolower(sprintf("%g", x)) ~ /nan/
}
