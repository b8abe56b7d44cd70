"""The Perl function gives the scores of the formula."""

from __future__ import annotations

import subprocess

import numpy as np
import pytest

from naive.exports import JOBS, POLICIES, expected
from policyfactory.exports.languages import perl_function
from policyfactory.policy.expression import Number, parse, replace_variables
from policyfactory.policy.policy import Policy
from schedulers.processes import require


def perl(text: str, given: str = "") -> str:
    require("perl")
    done = subprocess.run(["perl", "-"], input=f"{text}\n__END__\n{given}", capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    return done.stdout


def scores(policies: list[Policy]) -> np.ndarray:
    """Return the scores of all jobs by each policy, from one process."""
    size = JOBS[0]["m"]
    functions = [
        "\n".join(
            [
                f"package P{i};",
                "use POSIX ();",
                f"my $m = {size!r};",
                *perl_function(policy.expression),
            ]
        )
        for i, policy in enumerate(policies)
    ]
    loop = """
package main;
my @jobs = map { [split] } <DATA>;
for my $i (0 .. COUNT - 1) {
    my $score = "P$i"->can('pf_score');
    printf "%.17g\\n", $score->(@$_) for @jobs;
}
""".replace("COUNT", str(len(policies)))
    rows = "\n".join(" ".join(str(int(job[name])) for name in "pqrw") for job in JOBS)
    result = perl("use strict;\nuse warnings;\n" + "\n".join(f"{{\n{f}\n}}" for f in functions) + loop, rows)
    return np.array(result.split(), dtype=float).reshape(len(policies), len(JOBS))


def test_perl_gives_the_scores_of_the_formula() -> None:
    result = scores(POLICIES)
    for policy, values in zip(POLICIES, result, strict=True):
        truth = expected(policy)
        infinite = np.isinf(truth)
        assert (values[infinite] == truth[infinite]).all(), policy.name
        # Whole numbers are multiplied exactly where a double would round: only the last digits may differ.
        assert values[~infinite] == pytest.approx(truth[~infinite], rel=1e-9, abs=1e-9), policy.name


def test_a_division_by_zero_and_a_logarithm_of_nothing_do_not_end_the_program() -> None:
    policies = [
        Policy("a", "p/(q - q)"), Policy("b", "(q - q)/(q - q) + p"), Policy("c", "-p/(q - q)"),
        Policy("d", "log2(q - q)*p"),
        Policy("e", "ln(-p)"), Policy("f", "sqrt(-p) + q"), Policy("g", "exp(p*p*p)"), Policy("h", "(q - q)**-1*p"),
    ]  # fmt: skip
    infinity = np.inf
    assert scores(policies)[:, 0].tolist() == [
        infinity, infinity, -infinity, -infinity, infinity, infinity, infinity, infinity,
    ]  # fmt: skip


def test_the_machine_is_a_variable_of_the_program() -> None:
    policy = Policy("m", "p/m + q")
    assert "$m" in "\n".join(perl_function(policy.expression))
    fixed = replace_variables(policy.expression, {"m": Number(64.0)}).text()
    assert "$m" not in "\n".join(perl_function(parse(fixed)))
