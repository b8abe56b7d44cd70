"""Paper 002: our fits, the protocol, the numbers and tables of docs/polynomials.md."""

from __future__ import annotations

import csv
import re
import runpy
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from policyfactory.evaluation.protocol import read_protocol
from policyfactory.fitting.forms import fit_all_polynomials
from policyfactory.fitting.regression import sort_key
from policyfactory.fitting.sample import prepare
from policyfactory.policy.store import load_model
from policyfactory.trials.table import read_score_table


def test_the_shipped_fits_are_those_of_the_command_beside_them(root: Path) -> None:
    sample = prepare(read_score_table(root / "training_data" / "lublin-256.csv"))
    for fit in fit_all_polynomials(sample)[0]:
        model = load_model(root / "models" / "ours" / f"OURS-{fit.name.lower()}.json")
        assert model.policy.name == f"OURS-{fit.name.lower()}"
        shipped = np.array([coefficient.value for coefficient in model.coefficients])
        # The condition number of SEX is 1e5: other libraries may change the last digits.
        np.testing.assert_allclose(shipped, fit.coefficients, rtol=1e-6)
        assert model.provenance["inputs"] == {sample.name: sample.sha256}
        assert model.provenance["command"] == (
            "policyfactory fit training_data/lublin-256.csv --family polynomials --output models/ours/OURS.json"
        )
        if fit.name == "LIN":
            number = r"[0-9.]{6,}"
            assert re.split(number, model.policy.formula) == re.split(number, sort_key(fit))
            ratios = [
                [float(text) for text in re.findall(number, key)] for key in (model.policy.formula, sort_key(fit))
            ]
            # Of the coefficients above, hence twice their tolerance.
            np.testing.assert_allclose(*ratios, rtol=2e-6)


def test_the_protocol_has_the_experiments_of_the_paper(root: Path) -> None:
    protocol = read_protocol(root / "evaluate" / "polynomials.toml")
    assert [plan.name for plan in protocol.experiments] == ["runtime", "request", "easy"]
    rules = [(plan.rules.backfill, plan.rules.decide_by) for plan in protocol.experiments]
    assert rules == [("none", "runtime"), ("none", "request"), ("easy", "request")]
    for plan in protocol.experiments:
        assert plan.policies[0] == "FCFS"
        assert {"SPF", "SAF", "WFP3", "UNICEF", "F2", "LIN-SYNTHETIC", "QUA-SYNTHETIC", "OURS-qua"} <= {*plan.policies}
    assert len(protocol.claims) == 6


@pytest.mark.slow
def test_the_scripts_write_numbers_pictures_and_tables(
    root: Path, shared: Callable[[str], Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main = runpy.run_path(str(root / "evaluate" / "studies" / "multicollinearity.py"))["main"]
    page = runpy.run_path(str(root / "evaluate" / "studies" / "multicollinearity_page.py"))["main"]
    results = tmp_path / "results"
    written = {"claims/claims/claims": "experiment,log,claim 1\neasy,kth,holds (3 of 3)\n"}
    for name in ("runtime", "request", "easy"):
        written[f"{name}/wins/kth"] = "policy,FCFS,FCFS mark,OURS-qua,OURS-qua mark\nOURS-qua,5,better,,\n"
        written[f"{name}/values/kth"] = "policy,mean_bsld,mean_bsld low,mean_bsld high,other\nFCFS,123.4,50,200.5,7\n"
    for name, text in written.items():
        path = results / f"{name}.csv"
        path.parent.mkdir(parents=True)
        path.write_text(text, encoding="utf-8")
    table = ["--table", str(root / "training_data" / "lublin-256.csv"), "--traces", str(shared("traces"))]
    small = ["--replicates", "2", "--windows", "1", "--tuples", "60", "--trials", "992", "--jobs-in-log", "4000"]
    main(["--output", str(tmp_path), "--logs", "kth", *table, *small])
    page(["--output", str(tmp_path), "--results", str(results)])
    names = [f"collinearity-{name}.csv" for name in ("bases", "orders", "schedules", "slices", "terms")]
    names += ["polynomials-claims.csv", "polynomials-values.csv", "polynomials-wins.csv"]
    assert sorted(path.name for path in (tmp_path / "data").iterdir()) == names
    drawn = ("schedules", "slices", "terms")
    assert sorted(path.name for path in (tmp_path / "img").iterdir()) == [f"collinearity-{name}.png" for name in drawn]
    shown = capsys.readouterr().out
    assert "| QUA | 18 |" in shown
    assert "| 1 | easy | kth |" in shown
    assert "| rising and inside |" in shown
    rows = list(csv.DictReader((tmp_path / "data" / "collinearity-bases.csv").read_text(encoding="utf-8").splitlines()))
    # Collinearity is a matter of the basis: centred terms have other factors and make the same schedules.
    for row in rows:
        assert float(row["largest_vif"]) >= float(row["largest_vif_centred"])
        assert float(row["largest_vif_orthogonal"]) < 1.001
        assert float(row["centred_apart"]) < 1e-6
        assert float(row["orthogonal_apart"]) < 1e-6
        assert row["same_schedules"] == row["windows"]


def test_the_tables_of_the_page_are_those_of_the_files(root: Path) -> None:
    page = (root / "docs" / "polynomials.md").read_text(encoding="utf-8")
    tables = runpy.run_path(str(root / "evaluate" / "studies" / "multicollinearity_page.py"))["tables"](
        root / "docs" / "data"
    )
    for name, text in tables.items():
        assert text in page, f"{name}: put in the table that evaluate/studies/multicollinearity_page.py prints"


def test_the_sentences_of_the_page_are_true(root: Path) -> None:
    def rows(name: str) -> list[dict[str, str]]:
        return list(csv.DictReader((root / "docs" / "data" / name).read_text(encoding="utf-8").splitlines()))

    page = " ".join((root / "docs" / "polynomials.md").read_text(encoding="utf-8").split())
    values = rows("polynomials-values.csv")
    on_curie = {(one["experiment"], one["policy"]): float(one["mean_bsld"]) for one in values if one["log"] == "curie"}
    ours = {name for rules, name in on_curie if rules == "runtime" and name.startswith("OURS")}
    worse = {name for name in ours if on_curie["runtime", name] > on_curie["runtime", "FCFS"]}
    assert worse == {"OURS-qdr", "OURS-qua"}
    terms = {(row["family"], row["term"]): row for row in rows("collinearity-terms.csv")}
    assert min(terms.values(), key=lambda row: float(row["vif"])) is terms["LIN", "r"]
    assert f"flips in {100 * float(terms['LIN', 'r']['other_sign']):.0f} % of the resamplings" in page
    assert f"the factors reach {max(float(row['vif']) for row in terms.values()):,.0f} " in page
    spread = {
        (row["family"], row["variant"]): row
        for row in rows("collinearity-schedules.csv")
        if (row["rules"], row["log"]) == ("runtime", "lublin") and row["table"] in {"", "441"}
    }
    quartic, repaired = spread["QUA", "as fitted"], spread["QUA", "rising and inside"]
    assert f"from {float(quartic['mean_bsld']):,.0f} to {float(repaired['mean_bsld']):.1f} on the log" in page
    orders = {
        (row["table"], row["family"]): row for row in rows("collinearity-orders.csv") if row["jobs"] == "training"
    }
    tau = [float(orders[table, "QUA"]["tau"]) for table in ("6000", "441")]
    assert f"({tau[0]:.2f} instead of {tau[1]:.2f} for QUA in the tuples)" in page
    sample = prepare(read_score_table(root / "training_data" / "lublin-256.csv"))
    assert f"r reaches {sample.r.max() / 86_400:.1f} days, p {sample.p.max() / 3600:.0f} hours" in page
