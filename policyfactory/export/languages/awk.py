"""A formula as functions of awk, for scripts that have to run where nothing else is sure to be installed.

Any awk of POSIX does (mawk, gawk and the original awk are tested). awk ends the program at a division by zero, has no
base-10 logarithm, and its implementations disagree about comparisons with NaN; so the helpers keep to numbers, and what
has no value is found by its printed form. Scores are those of Python to the last digits, which logarithms may change.
"""

from __future__ import annotations

from policyfactory.export.languages.code import AWK, helpers_of, write_expression
from policyfactory.export.scripts import parts
from policyfactory.policy.nodes import Expression

__all__ = ["score_functions"]


def score_functions(expression: Expression) -> str:
    """Return awk source of ``score()``, a function of the global p, q, r, w and m.

    It needs the global INF and NAN, which awk cannot write as constants: ``INF = 1e300 * 1e300; NAN = INF - INF``.
    What has no value is INF and runs last. The text has no quote and no backslash, so it may stand between the single
    quotes of a shell.
    """
    score = f"""function score(  value) {{
  value = {write_expression(expression, AWK)}
  return no_value(value) ? INF : value
}}
"""
    return "\n".join([parts("helpers.awk")["no_value"], *helpers_of(expression, AWK), score])
