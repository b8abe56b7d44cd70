"""A formula as functions of awk, for scripts that have to run where nothing else is sure to be installed.

Any awk of POSIX does (mawk, gawk and the original awk are tested). awk ends the program at a division by zero, has no
base-10 logarithm, and its implementations disagree about comparisons with NaN; so the helpers keep to numbers, and what
has no value is found by its printed form. Scores are those of Python to the last digits, which logarithms may change.
"""

from __future__ import annotations

from policyfactory.export.languages.code import Language, helpers_of, write_expression
from policyfactory.policy.nodes import Expression

__all__ = ["score_functions"]

_HELPERS = {
    "log10": """function pf_log10(x) {
  return x > 0 ? log(x) / log(10) : (x == 0 ? -INF : NAN)
}
""",
    "log2": """function pf_log2(x) {
  return x > 0 ? log(x) / log(2) : (x == 0 ? -INF : NAN)
}
""",
    "ln": """function pf_ln(x) {
  return x > 0 ? log(x) : (x == 0 ? -INF : NAN)
}
""",
    "sqrt": """function pf_sqrt(x) {
  return x >= 0 ? sqrt(x) : NAN
}
""",
    "exp": """function pf_exp(x) {
  return x > 709.78 ? INF : (x < -745.2 ? 0 : exp(x))
}
""",
    "abs": """function pf_abs(x) {
  return x < 0 ? -x : x
}
""",
    "min": """function pf_min(a, b) {
  return no_value(a) || no_value(b) ? NAN : (a <= b ? a : b)
}
""",
    "max": """function pf_max(a, b) {
  return no_value(a) || no_value(b) ? NAN : (a >= b ? a : b)
}
""",
    "pow": """function pf_pow(x, y) {
  return x == 0 && y < 0 ? INF : (x < 0 && y != int(y) ? NAN : x ^ y)
}
""",
    "powi": """function pf_powi(x, times,  value) {
  value = 1
  for (; times > 0; times--) value = value * x
  return value
}
""",
    "div": """function pf_div(x, y) {
  return y != 0 ? x / y : (no_value(x) || x == 0 ? NAN : (x > 0 ? INF : -INF))
}
""",
}

_LANGUAGE = Language("pf_", _HELPERS, divides=False)

_NO_VALUE = """function no_value(x) {
  return tolower(sprintf("%g", x)) ~ /nan/
}
"""


def score_functions(expression: Expression) -> str:
    """Return awk source of ``score()``, a function of the global p, q, r, w and m.

    It needs the global INF and NAN, which awk cannot write as constants: ``INF = 1e300 * 1e300; NAN = INF - INF``.
    What has no value is INF and runs last. The text has no quote and no backslash, so it may stand between the single
    quotes of a shell.
    """
    score = f"""function score(  value) {{
  value = {write_expression(expression, _LANGUAGE)}
  return no_value(value) ? INF : value
}}
"""
    return "\n".join([_NO_VALUE, *helpers_of(expression, _LANGUAGE), score])
