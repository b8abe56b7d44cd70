"""``policyfactory workload import`` as an administrator runs it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from policyfactory.core.errors import TraceFormatError
from policyfactory.core.inputs import sha256_file
from policyfactory.workload.accounting.sacct_columns import RECOMMENDED_LINES
from policyfactory.workload.swf.files import parse_swf
from support import ROOT

SACCT = "oracles/slurm/sacct_recommended.txt"


def test_a_dump_becomes_a_log_with_a_report_and_a_manifest(
    run: Callable[..., Any], shared: Callable[[str], Path], tmp_path: Path
) -> None:
    options = ("--time-zone", "UTC", "--default-limit", "batch=1h", "--processors", 64, "--overwrite")
    done = run("workload", "import", shared(SACCT), "-o", "cluster.swf.gz", *options)
    assert "65 records of 1 file: 59 jobs, 5 dropped, 1 merged; machine of 64 processors" in done.stdout
    assert "jobs cancelled before they started" in done.stdout
    assert "partition daylimit: 100 % of the limits are 1d; is that the partition's default" in done.stderr
    assert "--default-limit daylimit=1d," in done.stderr
    assert "2 of 59 jobs have no requested time (2 UNLIMITED)" in done.stderr
    assert "commonest other: the most frequent limit among the rest" in " ".join(done.stdout.split())
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


def test_the_help_says_how_to_print_the_log(run: Callable[..., Any]) -> None:
    shown = run("workload", "import", "--help").stdout
    # Nothing behind a backslash, so that the lines can be copied; and the same as on the page.
    command = "\n".join(RECOMMENDED_LINES)
    assert f"\n{command}\n" in shown
    assert f"```text\n{command}\n```\n" in (ROOT / "docs/import.md").read_text()


def test_a_refusal_ends_with_the_cure(run: Callable[..., Any], shared: Callable[[str], Path], tmp_path: Path) -> None:
    own = tmp_path / "log"
    own.write_bytes(shared(SACCT).read_bytes())
    message = run("workload", "import", own, "-o", own, "--overwrite", code=2).stderr
    assert "is an input of this command" in message
    message = run("workload", "import", own, "--from", "2026-11-21", "--to", "2026-11-20", code=2).stderr
    assert "--from 2026-11-21 is not before --to 2026-11-20" in message
    message = run("workload", "import", own, "--from", "2027-01-01", code=1).stderr
    assert "no job is left of 65 records" in message
    assert "its jobs were submitted from 2026-11-20 " in message
    message = run("workload", "import", own, "--default-limit", "batch=60", code=2).stderr
    assert "--default-limit batch: '60' has no unit; write 60m for minutes" in message
    message = run("workload", "import", own, "--defaults", "unknown", code=2).stderr
    assert "--defaults unknown: no default is known" in message
    message = run("workload", "import", own, "--seed", 5, code=2).stderr
    assert "--seed 5 is of the order of --anonymize" in message
    message = run("workload", "import", own, "--partition-limit", "bacth=1d", code=2).stderr
    assert "--partition-limit bacth: no job was in it; the log has batch, daylimit, nolimit, short" in message
    message = run("workload", "import", own, "--processors", 32).stderr
    assert "--processors 32 is less than the log shows: the log has 64 processors in use at once" in message
    assert "nothing was written" in run("workload", "import", own).stderr


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("sacct_recommended.txt", "the output of sacct"),
        ("sacct_sample_default.txt", "the output of sacct"),
        ("sacct_sample.json", "the output of sacct --json"),
        ("jobcomp_filetxt_sample.txt", "a file of Slurm's plugin jobcomp/filetxt"),
    ],
)
def test_accounting_given_as_a_log_is_sent_to_the_import(
    run: Callable[..., Any], shared: Callable[[str], Path], name: str, kind: str
) -> None:
    path = shared(f"oracles/slurm/{name}")
    message = run("workload", "show", path, code=1).stderr
    assert f"{name}:1: this looks like {kind}: make a log of it first: policyfactory workload import {path} " in message
    assert "--output LOG.swf" in message


def test_a_model_file_given_as_a_log_is_called_what_it_is(run: Callable[..., Any], tmp_path: Path) -> None:
    run("export", "SAF", "--to", "json", "-o", "kth.json")
    message = run("evaluate", "kth.json", code=1).stderr
    assert "kth.json: is a model file (a policy), where a log is expected; name it with --policies" in message
    assert "sacct" not in message


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("\n1|1|0|0|root|batch|normal|COMPLETED\n", "the output of sacct"),
        ("State\x1fSubmit\x1fStart\n", "the output of sacct"),
        ("03/01/2026 10:00:00;E;5.host;user=a\n", "an accounting log of PBS"),
        ("1 0 2 3\n", None),
        ("1 0 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17\n1|1|0|0|root|batch|normal\n", None),
        ("hello world\n", None),
    ],
)
def test_what_looks_like_accounting_is_known_by_the_first_line(tmp_path: Path, text: str, kind: str | None) -> None:
    path = tmp_path / "two words"
    with pytest.raises(TraceFormatError) as error:
        parse_swf(text.encode(), path)
    assert ("this looks like" in str(error.value)) == (kind is not None)
    assert kind is None or f"looks like {kind}: make a log of it first: " in str(error.value)
    assert kind is None or f"workload import '{path}' --output LOG.swf" in str(error.value)
