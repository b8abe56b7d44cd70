"""The catalogue says what the papers and their programs say."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

from naive.formula import random_jobs
from policyfactory.core.errors import InputError, ModelFileError, UsageError
from policyfactory.policy.store import ALIASES, CATALOGUE, published_model, resolve, resolve_model, save_model
from refusals import refused

JOBS = random_jobs(500, seed=3)


def columns(jobs: list[dict[str, float]]) -> list[np.ndarray]:
    return [np.array([job[name] for job in jobs]) for name in "pqrw"]


# Three jobs: short and wide, long and narrow, in between; submitted in this order, waiting the longer the earlier.
P, Q, R, W = [100.0, 9000.0, 1000.0], [64.0, 1.0, 8.0], [10.0, 20.0, 30.0], [50.0, 40.0, 30.0]


@pytest.mark.parametrize(
    ("name", "order"),
    [
        ("FCFS", [0, 1, 2]),
        ("LCFS", [2, 1, 0]),
        ("SPF", [0, 2, 1]),
        ("LPF", [1, 2, 0]),
        ("SQF", [1, 2, 0]),
        ("LQF", [0, 2, 1]),
        ("LEXP", [0, 2, 1]),  # (w + p)/p = 1.5, 1.0044, 1.03
        ("SEXP", [1, 2, 0]),
        ("SRF", [0, 2, 1]),  # p/q = 1.56, 9000, 125
        ("LRF", [1, 2, 0]),
        ("SAF", [0, 2, 1]),  # p q = 6400, 9000, 8000
        ("LAF", [1, 2, 0]),
        ("WFP3", [0, 2, 1]),  # (w/p)^3 q = 8, 9e-8, 2e-4
        ("UNICEF", [1, 0, 2]),  # w/(log2(q) p) = 0.083, inf, 0.01
    ],
)
def test_order_of_three_jobs(name: str, order: list[int]) -> None:
    assert np.argsort(CATALOGUE[name].scores(P, Q, R, W)).tolist() == order


def test_the_twelve_of_tpds_come_first() -> None:
    twelve = ["FCFS", "LCFS", "SPF", "LPF", "SQF", "LQF", "LEXP", "SEXP", "SRF", "LRF", "SAF", "LAF"]
    assert list(CATALOGUE)[:12] == twelve
    assert len(CATALOGUE) == 12 + 2 + 4 + 4 * 3
    assert len({policy.formula for policy in CATALOGUE.values()}) == len(CATALOGUE)
    for name, policy in CATALOGUE.items():
        assert policy.name == name == name.upper()
        assert policy.description
        assert policy.source


def test_keys_of_the_sc17_programs() -> None:
    """The programs sort by these keys, the largest first; the quotient of WFP in single precision there is not kept."""
    p, q, r, w = columns(JOBS)
    unicef = CATALOGUE["UNICEF"].scores(p, q, r, w)
    wfp = CATALOGUE["WFP3"].scores(p, q, r, w)
    for i in range(len(JOBS)):
        below = math.log2(q[i] + 1e-20) * p[i]
        key = math.inf if below == 0 else (w[i] + 1e-20) / below
        assert unicef[i] == -key
        assert wfp[i] == pytest.approx(-math.pow(w[i] / p[i], 3) * q[i], rel=1e-14)
    # One processor first, whatever it waited.
    assert (unicef[q == 1] == -math.inf).all()
    assert np.isfinite(unicef[q > 1]).all()


def test_f1_to_f4_of_table_3() -> None:
    p, q, r, _ = columns(JOBS)
    with np.errstate(divide="ignore"):
        size = {"F1": np.log10(p) * q, "F2": np.sqrt(p) * q, "F3": p * q, "F4": p * np.sqrt(q)}
        weight = {"F1": 8.70e2, "F2": 2.56e4, "F3": 6.86e6, "F4": 5.30e5}
        for name, first in size.items():
            assert CATALOGUE[name].scores(p, q, r) == pytest.approx(first + weight[name] * np.log10(r), rel=1e-14)


@pytest.mark.parametrize(
    ("name", "constant", "last", "some"),
    [
        # Of tables 3, 4, 5: the first coefficient, the last one, and one in between (term, value).
        ("LIN-SYNTHETIC", 3.24e-2, -1.57e-7, ("q", 2.61e-5)),
        ("QDR-SYNTHETIC", 3.70e-2, 6.77e-10, ("q**2", 1.17e-7)),
        ("CUB-SYNTHETIC", 3.33e-2, 9.52e-12, ("q**3", 7.05e-10)),
        ("QUA-SYNTHETIC", 4.83e-2, 1.55e-13, ("p**2*q**2", 1.89e-16)),
        ("LIN-CTC-SP2", 3.11e-2, -6.41e-8, ("p", 3e-8)),
        ("QDR-CTC-SP2", 2.86e-2, 8.50e-10, ("r**2", -4.19e-12)),
        ("CUB-CTC-SP2", 2.42e-2, -6.33e-12, ("p**2*q", -3.33e-14)),
        ("QUA-CTC-SP2", 6.09e-2, -9.75e-13, ("r**4", 4.07e-20)),
        ("LIN-SDSC-BLUE", 1.83e-2, -6.87e-8, ("q", 3.05e-5)),
        ("QDR-SDSC-BLUE", 1.39e-2, 5.50e-10, ("p**2", 5.59e-14)),
        ("CUB-SDSC-BLUE", 3.34e-2, 1.08e-12, ("r**3", -9.27e-17)),
        ("QUA-SDSC-BLUE", 2.27e-2, 3.65e-16, ("p**3*q", -6.68e-19)),
    ],
)
def test_polynomials_of_tables_3_to_5(name: str, constant: float, last: float, some: tuple[str, float]) -> None:
    from policyfactory.policy.explain import additive_terms

    terms = [term.text() for term in additive_terms(CATALOGUE[name].expression)]
    assert len(terms) == {"LIN": 4, "QDR": 8, "CUB": 13, "QUA": 19}[name[:3]]
    assert float(terms[0]) == constant
    assert float(terms[-1].split("*")[0]) == last
    result = {term.split("*", 1)[1]: float(term.split("*", 1)[0]) for term in terms[1:]}
    assert result[some[0]] == some[1]


def test_names_and_aliases_in_any_case() -> None:
    assert resolve("saf") is CATALOGUE["SAF"]
    assert resolve(" Spt ") is resolve("SJF") is CATALOGUE["SPF"]
    assert resolve("lin") is CATALOGUE["LIN-SYNTHETIC"]
    assert resolve("qua-ctc-sp2") is CATALOGUE["QUA-CTC-SP2"]
    for alias, name in ALIASES.items():
        assert alias not in CATALOGUE
        assert resolve(alias) is CATALOGUE[name]


def test_a_path_is_a_model_file(tmp_path) -> None:
    path = tmp_path / "SAF.json"
    save_model(published_model(CATALOGUE["F2"]), path)
    assert resolve(str(path)) == resolve(path) == CATALOGUE["F2"]
    assert resolve_model(str(path)).provenance["origin"] == "published"
    refused(InputError, "none.json no such file", resolve, str(tmp_path / "none.json"))
    (tmp_path / "broken.json").write_text("{")
    refused(ModelFileError, "broken.json:1 JSON 1", resolve, str(tmp_path / "broken.json"))


@pytest.mark.parametrize(
    ("spec", "near"), [("SPFF", "SPF"), ("unicep", "UNICEF"), ("WFP2", "WFP3"), ("qua-ctc", "QUA-CTC-SP2")]
)
def test_unknown_names_near_ones(spec: str, near: str) -> None:
    refused(UsageError, f"{spec} {near}", resolve, spec)


def test_unknown_name_without_near_ones() -> None:
    refused(UsageError, "?? list", resolve, "??")
    for formula in ("MINE=-ln(s) + ln(e)", "p*q"):
        refused(UsageError, "--formula NAME=FORMULA", resolve, formula)
    source = random.Random(5)
    with pytest.raises(UsageError) as caught:
        resolve("".join(chr(source.randrange(1, 0x2FFF)) for _ in range(5000)))
    assert str(caught.value).isascii()
    assert len(str(caught.value)) < 1000
