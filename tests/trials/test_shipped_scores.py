"""The score table that comes with the project, and the numbers about precision in the documentation."""

from __future__ import annotations

import csv
import json
import re

import numpy as np
import pytest

from policyfactory.core.inputs import sha256_file
from policyfactory.trials.run import describe, finished_tuples
from policyfactory.trials.table import GenerateOptions, read_score_table
from policyfactory.workload.models.lublin import default_workload


@pytest.fixture(scope="module")
def path(root):
    return root / "training_data" / "lublin-256.csv"


@pytest.fixture(scope="module")
def manifest(root):
    return json.loads((root / "training_data" / "lublin-256.manifest.json").read_text(encoding="utf-8"))


def test_it_has_what_the_papers_had(path):
    table = read_score_table(path)
    assert (table.tuples, len(table)) == (441, 441 * 32)
    np.testing.assert_allclose(np.bincount(table.tuple_id, weights=table.score), 1.0, rtol=1e-12)
    assert (table.stderr > 0).all()
    assert 32 * table.stderr.max() < 0.01
    # Somebody must have something to gain by going first.
    assert table.score.std() > 100 * np.sqrt((table.stderr**2).mean())


def test_its_manifest_says_how_to_make_it(path, manifest):
    assert manifest["kind"] == "score-table"
    assert manifest["outputs"] == {"lublin-256.csv": sha256_file(path)}
    assert manifest["command"] == (
        "policyfactory generate --tuples 441 --trials 256000 --output training_data/lublin-256.csv"
    )
    assert {"policyfactory", "python", "numpy", "numba"} <= set(manifest["versions"])
    assert manifest["measured"]["tuples_done"] == 441
    assert manifest["measured"]["trials_per_second"] > 0


def test_the_command_still_makes_it(path, manifest):
    """The options, the workload and, on a sample of tuples, every byte are what the code of today gives."""
    workload, options = default_workload(), GenerateOptions()
    run = describe(workload, options)
    assert {key: manifest["parameters"][key] for key in run} == run
    lines = path.read_text(encoding="ascii").splitlines(keepends=True)[1:]
    for number, rows in finished_tuples(workload, options, [0, 200, 440], workers=2):
        assert rows == "".join(lines[32 * number : 32 * number + 32])


def test_the_table_of_the_documentation_is_the_figure(root):
    page = (root / "docs" / "scores.md").read_text(encoding="utf-8")
    cells = re.findall(r"^\| ([\d,]+) \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \|$", page, re.MULTILINE)
    with (root / "docs" / "img" / "convergence.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    paper, stratified = ([row for row in rows if row["estimator"] == name] for name in ("paper", "stratified"))
    told = {f"{int(row['trials']):,}": (row, other) for row, other in zip(paper, stratified, strict=True)}
    assert len(cells) == 3
    for shown in cells:
        percent = [100 * float(row[key]) for row in told[shown[0]] for key in ("spread", "stated")]
        assert shown == (shown[0], *(f"{value:.3g}" for value in percent))
