"""A policy as Perl source, for the schedulers that run Perl: Grid Engine's submission scripts and OAR's schedulers."""

from __future__ import annotations

from policyfactory.export.languages.code import PERL, helpers_of, write_expression
from policyfactory.policy.nodes import VARIABLES, Variable, replace_variables
from policyfactory.policy.policy import Policy

__all__ = ["score_function"]


def score_function(policy: Policy) -> list[str]:
    """Return the lines of ``sub pf_score($p, $q, $r, $w)`` and of what it calls; the file needs ``use POSIX ();``.

    What has no value is plus infinity. Perl multiplies whole numbers exactly where a double would round, so the last
    digit of a score may differ from other targets'.
    """
    inside = replace_variables(policy.expression, {name: Variable(f"${name}") for name in VARIABLES})
    return [
        "my $INFINITY = 9**9**9;",
        "my $NAN = $INFINITY - $INFINITY;",
        "",
        *helpers_of(inside, PERL),
        "# The score of a job; the job with the lowest runs first.",
        "sub pf_score {",
        "    my ($p, $q, $r, $w) = @_;",
        f"    my $value = {write_expression(inside, PERL)};",
        "    return $value != $value ? $INFINITY : $value;",
        "}",
    ]
