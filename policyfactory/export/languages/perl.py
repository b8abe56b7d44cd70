"""A policy as Perl source, for the schedulers that run Perl: Grid Engine's submission scripts and OAR's schedulers."""

from __future__ import annotations

from policyfactory.export.languages.code import Language, helpers_of, write_expression
from policyfactory.policy.nodes import VARIABLES, Variable, replace_variables
from policyfactory.policy.policy import Policy

__all__ = ["comment", "score_function"]

# Perl dies at a division by zero and at the logarithm of what has none; these return what C does.
_HELPERS = {
    "div": """sub pf_div {
    my ($x, $y) = @_;
    return $x / $y if $y != 0;
    return $NAN if $x == 0 || $x != $x || $y != $y;
    return $x > 0 ? $INFINITY : -$INFINITY;
}
""",
    "log10": """sub pf_log10 {
    my ($x) = @_;
    return POSIX::log10($x) if $x > 0;
    return $x == 0 ? -$INFINITY : $NAN;
}
""",
    "log2": """sub pf_log2 {
    my ($x) = @_;
    # The POSIX module has it since Perl 5.22.
    my $log2 = POSIX->can('log2') || sub { return log($_[0]) / log(2) };
    return $log2->($x) if $x > 0;
    return $x == 0 ? -$INFINITY : $NAN;
}
""",
    "ln": """sub pf_ln {
    my ($x) = @_;
    return log($x) if $x > 0;
    return $x == 0 ? -$INFINITY : $NAN;
}
""",
    "sqrt": """sub pf_sqrt {
    my ($x) = @_;
    return $x >= 0 ? sqrt($x) : $NAN;
}
""",
    "exp": """sub pf_exp {
    return exp($_[0]);
}
""",
    "abs": """sub pf_abs {
    return abs($_[0]);
}
""",
    "min": """sub pf_min {
    my ($x, $y) = @_;
    return ($x <= $y || $x != $x) ? $x : $y;
}
""",
    "max": """sub pf_max {
    my ($x, $y) = @_;
    return ($x >= $y || $x != $x) ? $x : $y;
}
""",
    "pow": """sub pf_pow {
    return $_[0] ** $_[1];
}
""",
    "powi": """sub pf_powi {
    my ($x, $times) = @_;
    my $value = 1;
    $value *= $x for 1 .. $times;
    return $value;
}
""",
}

_LANGUAGE = Language("pf_", _HELPERS, divides=False)


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
        *helpers_of(inside, _LANGUAGE),
        "# The score of a job; the job with the lowest runs first.",
        "sub pf_score {",
        "    my ($p, $q, $r, $w) = @_;",
        f"    my $value = {write_expression(inside, _LANGUAGE)};",
        "    return $value != $value ? $INFINITY : $value;",
        "}",
    ]


def comment(lines: list[str]) -> list[str]:
    """Return lines of a comment, for Perl and for the shell; a line break in one would end it, and is a blank."""
    return [f"# {' '.join(line.splitlines())}".rstrip() for line in lines]
