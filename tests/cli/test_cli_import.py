"""``policyfactory workload import`` as an administrator runs it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from policyfactory.core.artefact import sha256_file
from policyfactory.workload.accounting.recommended import RECOMMENDED_LINES

SACCT = "oracles/slurm/sacct_recommended.txt"


def test_a_dump_becomes_a_log_with_a_report_and_a_manifest(
    run: Callable[..., Any], shared: Callable[[str], Path], tmp_path: Path
) -> None:
    options = ("--time-zone", "UTC", "--default-limit", "batch=1h", "--processors", 64, "--overwrite")
    done = run("workload", "import", shared(SACCT), "-o", "cluster.swf.gz", *options)
    assert "65 records of 1 file: 59 jobs, 5 dropped, 1 merged; machine of 64 processors" in done.stdout
    assert "jobs cancelled before they started" in done.stdout
    assert "partition daylimit: 100 % of the limits are 1d; is that the partition's default" in done.stderr
    new = tmp_path / "cluster.swf.gz"
    manifest = json.loads((tmp_path / "cluster.swf.manifest.json").read_text())
    assert manifest["outputs"] == {"cluster.swf.gz": sha256_file(new)}
    assert manifest["inputs"] == {"sacct_recommended.txt": sha256_file(shared(SACCT))}
    assert manifest["command"].startswith("policyfactory workload import ")
    refused = run("workload", "import", shared(SACCT), "-o", "cluster.swf.gz", code=1)
    assert "cluster.swf.gz: exists; add --overwrite to replace it" in refused.stderr
    before = new.read_bytes()
    run("workload", "import", shared(SACCT), "-o", "cluster.swf.gz", *options)
    assert new.read_bytes() == before
    shown = run("workload", "show", "cluster.swf.gz", "--json")
    assert json.loads(shown.stdout)["logs"][0]["jobs"] == 59


def test_the_report_is_json_when_asked_for_and_names_stay_out_of_an_anonymous_log(
    run: Callable[..., Any], shared: Callable[[str], Path], tmp_path: Path
) -> None:
    options = ("--anonymize", "--seed", 5, "--partition", "batch,nolimit", "--from", "2026-11-20", "--json")
    done = run("workload", "import", shared(SACCT), "-o", "anonymous.swf", "--time-zone", "UTC", *options)
    report = json.loads(done.stdout)
    assert report["jobs"] + report["dropped"] + report["merged"] == report["records"] == 65
    assert report["inputs"][0]["format"] == "sacct"
    written = (tmp_path / "anonymous.swf").read_text() + (tmp_path / "anonymous.manifest.json").read_text()
    for word in ("nolimit", "sacct_recommended", "oracles"):
        assert word not in written
    assert json.loads((tmp_path / "anonymous.manifest.json").read_text())["seed"] == 5


def test_the_help_tells_how_to_print_the_log(run: Callable[..., Any]) -> None:
    shown = run("workload", "import", "--help").stdout
    for line in RECOMMENDED_LINES:
        assert line in shown


def test_what_can_not_be_meant_ends_with_the_cure(
    run: Callable[..., Any], shared: Callable[[str], Path], tmp_path: Path
) -> None:
    own = tmp_path / "log"
    own.write_bytes(shared(SACCT).read_bytes())
    told = run("workload", "import", own, "-o", own, "--overwrite", code=2).stderr
    assert "is one of the inputs; name another file" in told
    told = run("workload", "import", own, "--from", "2026-11-21", "--to", "2026-11-20", code=2).stderr
    assert "--from 2026-11-21 is not before --to 2026-11-20" in told
    told = run("workload", "import", own, "--from", "2027-01-01", code=1).stderr
    assert "no job is left of 65 records" in told
    assert "nothing was written" in run("workload", "import", own).stderr
