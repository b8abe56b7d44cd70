"""Published tables of jobs on the command line: download one, import it, judge what came of it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from commands import Run
from job_tables import OWN, write_lines
from naive.serving import Server, serving
from policyfactory.core.inputs import sha256_file
from policyfactory.workload.tables.mapping import PUBLISHED, STOCK, stock_mapping

NAMES = "id,submitted,began,ended,limit,cores"
ROWS = [f"{n},2024-03-05 12:{n:02d}:00,2024-03-05 13:00:00,2024-03-05 13:{n:02d}:30,3600,4" for n in range(1, 60)]


def test_a_published_table_becomes_a_log_with_its_source(
    run: Run, shared: Callable[[str], Path], tmp_path: Path
) -> None:
    sample = shared("traces/eagle_sample.csv")
    done = run("workload", "import", sample, "--format", "eagle", "-o", "eagle.swf.gz", "--overwrite")
    assert "1,000 records of 1 file: 1,000 jobs, 0 dropped" in done.stdout
    assert "machine of 1,995 nodes" in done.stdout
    assert "times in America/Denver (by the mapping eagle; --time-zone names another)" in done.stdout
    manifest = json.loads((tmp_path / "eagle.swf.manifest.json").read_text())
    assert manifest["inputs"] == {"eagle_sample.csv": sha256_file(sample), "mapping": stock_mapping("eagle").sha256}
    assert (manifest["parameters"]["unit"], manifest["parameters"]["machine"]) == ("nodes", 1995)
    before = (tmp_path / "eagle.swf.gz").read_bytes()
    run("workload", "import", sample, "--format", "eagle", "-o", "eagle.swf.gz", "--overwrite")
    assert (tmp_path / "eagle.swf.gz").read_bytes() == before
    shown = run("workload", "show", "eagle.swf.gz", "--json")
    assert json.loads(shown.stdout)["logs"][0]["jobs"] == 1000
    zoned = run("workload", "import", sample, "--format", "eagle", "--time-zone", "UTC", "--unit", "cpus", "--json")
    report = json.loads(zoned.stdout)
    assert (report["time_zone"], report["unit"], report["inputs"][0]["format"]) == ("UTC", "cpus", "eagle")


def test_a_table_of_ones_own_without_limits_is_never_taken_for_granted(run: Run, tmp_path: Path) -> None:
    table = write_lines(tmp_path / "jobs.csv", NAMES, ROWS)
    mapping = tmp_path / "mine.toml"
    mapping.write_text(OWN.replace('limit = { column = "limit", unit = "s" }\n', ""))
    refused = run("workload", "import", table, "--mapping", mapping, code=2).stderr
    assert "tables of mine have no requested times" in refused
    assert "--assume-limit 24h" in refused
    done = run("workload", "import", table, "--mapping", mapping, "--assume-limit", "24h", "-o", "assumed.swf")
    assert "59 jobs" in done.stdout or "jobs without a requested time in the log: 86400 s assumed" in done.stdout
    assert "what it does on this log is an assumption too" in done.stderr
    assert "requested time assumed: 86400 s" in (tmp_path / "assumed.swf").read_text()
    assert "backfilling (EASY) on them is an assumption" in run("workload", "show", "assumed.swf").stdout
    judged = run("evaluate", "assumed.swf", "--policies", "FCFS,SAF").stdout
    assert "100 % of the jobs changed (no requested time, 86,400 s assumed at the import: EASY backfilling" in judged
    run("workload", "import", table, "--mapping", mapping, "--assume-limit", "unknown", "-o", "unknown.swf")
    assert "59 of 59 usable jobs have no requested time" in run("workload", "clean", "unknown.swf", code=1).stderr


def test_formats_and_mappings_used_wrongly(run: Run, tmp_path: Path) -> None:
    table = write_lines(tmp_path / "jobs.csv", NAMES, ROWS)
    mapping = tmp_path / "mine.toml"
    mapping.write_text(OWN)
    both = run("workload", "import", table, "--mapping", mapping, "--format", "eagle", code=2).stderr
    assert "--format and --mapping both say what the inputs are" in both
    unknown = run("workload", "import", table, "--format", "kestral", code=2).stderr
    assert "--format 'kestral': no such format; did you mean kestrel?" in unknown
    other = run("workload", "import", table, "--format", "lassen", code=1).stderr
    assert "jobs.csv: no column primary_job_id" in other
    assert "the table has id, submitted, began" in other
    assert "no such file" in run("workload", "import", table, "--mapping", tmp_path / "none.toml", code=1).stderr
    assert "is an input of this command" in run(
        "workload", "import", table, "--mapping", mapping, "-o", mapping, "--overwrite", code=2
    ).stderr  # fmt: skip


def test_every_format_is_named_by_the_help(run: Run) -> None:
    shown = run("workload", "import", "--help-all").stdout
    for name in STOCK:
        assert name in shown


@pytest.fixture
def mirror() -> Server:
    return Server(b"id_job,time_submit\n1,2\n", path="/supercloud-slurm-log.csv")


def test_tables_are_downloaded_by_name(run: Run, mirror: Server, tmp_path: Path) -> None:
    with serving(mirror) as server:
        base = server.url.rpartition("/")[0]
        digest = hashlib.sha256(server.content).hexdigest()
        known = run("workload", "download", "supercloud", "--base-url", base, code=1).stderr
        assert f"SHA-256 is {digest}, expected {PUBLISHED['supercloud'].sha256}" in known
        done = run("workload", "download", "supercloud", "--base-url", base, "--sha256", digest)
        assert "supercloud-slurm-log.csv: 23 bytes" in done.stdout
        assert "(as expected)" in done.stdout
        assert "--format supercloud --output supercloud.swf.gz" in done.stderr
        manifest = json.loads((tmp_path / "supercloud-slurm-log.manifest.json").read_text())
        assert manifest["parameters"]["page"] == "https://dcc.mit.edu/"
        server.content = b"<html>please log in</html>"
        digest = hashlib.sha256(server.content).hexdigest()
        page = run(
            "workload", "download", "supercloud", "--base-url", base, "-o", "other", "--sha256", digest, code=1
        ).stderr  # fmt: skip
        assert "is no supercloud-slurm-log.csv; it was removed" in page


def test_tables_that_cannot_be_downloaded_say_where_they_are(run: Run) -> None:
    message = run("workload", "download", "aurora", code=2).stderr
    assert "behind a form (name and address); see https://reports.alcf.anl.gov/data/aurora.html" in message
    assert "--format aurora" in message
    assert "at no open address" in run("workload", "download", "frontier", code=2).stderr
    message = run("workload", "download", "fugaku", code=2).stderr
    assert "a data set of 38 files; name some of fugaku-2021-03 to fugaku-2024-04" in message
    assert "no table is called 'kestral'; near are kestrel" in run("workload", "download", "kestral", code=2).stderr


def test_the_addresses_are_those_of_the_formats() -> None:
    for one in PUBLISHED.values():
        assert one.form in STOCK
        assert one.address.startswith("https://")
        assert one.sha256 is None or len(one.sha256) == 64
        assert one.page.startswith("https://")
        assert (one.sha256 is None) == (one.size is None)
    # 38 months of Fugaku, 12 of CC-IN2P3; the others are one file each.
    assert len(PUBLISHED) == 38 + 12 + 6
