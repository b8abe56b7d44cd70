"""``policyfactory site``: a cluster's files in, its tables out, and which jobs of a log fit it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from commands import Run
from naive.logs import text_of
from policyfactory.cli.options import DESCRIBING, RULE
from policyfactory.core.inputs import sha256_file
from policyfactory.site.file import read_site

REAL = Path(__file__).parents[1] / "site" / "real"
REPORTS = [
    word
    for option, name in (("sacctmgr", "dump.cfg"), ("qos", "qos.txt"), ("events", "events.txt"))
    for word in (f"--{option}", REAL / name)
]
SMALL = 'schema = 1\nnodes = [{names = "n[1-4]", cores = 8}]\npartitions = [{name = "batch", max_time = "1h"}]\n'


def test_a_cluster_becomes_a_site_file(run: Run, tmp_path: Path) -> None:
    words = ["--reservations", REAL / "reservations.txt", "--time-zone", "Europe/Berlin", "--output", "site.toml"]
    done = run("site", "import", REAL / "slurm.conf", *REPORTS, *words)
    assert "test: 4 nodes, 32 cores, 3 partitions, 2 QOS, 10 associations, 3 reservations" in done.stdout
    assert "there, and not modelled" in done.stdout
    assert "slurm.conf:57" in done.stdout
    assert "written: site.toml" in done.stderr
    site = read_site(tmp_path / "site.toml")
    # 8 o'clock in Berlin.
    assert site.reservations[0].start == 1893481200.0
    manifest = json.loads((tmp_path / "site.manifest.json").read_text())
    assert set(manifest["inputs"]) == {"slurm.conf", "dump.cfg", "qos.txt", "events.txt", "reservations.txt"}
    assert manifest["parameters"]["not_modelled"] == len(site.not_modelled)
    again = run("site", "show", "site.toml").stdout
    assert again == done.stdout
    first = (tmp_path / "site.toml").read_bytes()
    run("site", "import", REAL / "slurm.conf", *REPORTS, *words, "--overwrite")
    assert (tmp_path / "site.toml").read_bytes() == first


def test_without_an_output_the_account_is_all(run: Run, tmp_path: Path) -> None:
    done = run("site", "import", REAL / "slurm.conf")
    assert "nothing was written; add --output site.toml" in done.stderr
    assert "give --sacctmgr" in done.stdout
    assert list(tmp_path.iterdir()) == []


def test_what_was_assumed_and_corrected_is_said(run: Run, tmp_path: Path) -> None:
    (tmp_path / "slurm.conf").write_text(
        "ClusterName=c\nNodeName=n1 CPUs=4\nPartitionName=p Nodes=n1 MaxTime=30 DefaultTime=60\n"
    )
    done = run("site", "import", "slurm.conf", "--slurm-version", "22.05", "--output", "s.toml")
    assert (
        "assumed: SelectType=select/linear: the default of Slurm 22.05 (since 23.11 it is select/cons_tres)"
        in done.stdout
    )
    assert "corrected: partition p DefaultTime=60 MaxTime=30 (slurm.conf:3): DefaultTime is more than" in done.stdout
    assert run("site", "show", "s.toml").stdout == done.stdout
    site = read_site(tmp_path / "s.toml")
    assert (site.scheduling.select, site.partitions[0].max_time) == ("nodes", 1800.0)
    assert json.loads(run("site", "show", "s.toml", "--json").stdout)["remarks"] == list(site.remarks)
    manifest = json.loads((tmp_path / "s.manifest.json").read_text())
    assert manifest["parameters"]["remarks"] == list(site.remarks)
    failed = run("site", "import", "slurm.conf", "--slurm-version", "old", code=2)
    assert "--slurm-version 'old' is no version of Slurm; give for example 24.11" in failed.stderr


def test_a_site_is_shown_as_json(run: Run, tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(SMALL)
    shown = json.loads(run("site", "show", "s.toml", "--json").stdout)
    assert shown["name"] == "s"
    assert shown["partitions"] == [["batch", "4", "32", "-", "0", "1", "1h", "no limit", "-"]]
    # What a site file does not say is not all Slurm's default.
    assert shown["settings"] == [["scheduling.select", "cores", "cores+memory"]]
    assert shown["not_modelled"] == []
    assert "nothing that is known to matter was left out" in run("site", "show", "s.toml").stdout


@pytest.mark.parametrize("command", ["show", "check"])
def test_a_site_file_that_is_too_new_or_wrong_is_refused(run: Run, tmp_path: Path, command: str) -> None:
    (tmp_path / "log.swf").write_text(text_of([{"submit": 0}]))
    words = ["log.swf"] if command == "check" else []
    (tmp_path / "s.toml").write_text("schema = 99\n")
    failed = run("site", command, *words, "s.toml", code=1)
    assert "s.toml: is a site file of schema 99, and this policyfactory reads up to 1; update" in failed.stderr
    failed = run("site", command, *words, "none.toml", code=1)
    assert "none.toml: no such file" in failed.stderr


def test_jobs_that_fit_are_counted_and_others_named(run: Run, tmp_path: Path) -> None:
    jobs: list[dict[str, object]] = [
        {"submit": 60 * n, "allocated": 64 if n < 3 else 4, "run_time": 30, "requested_time": 60} for n in range(10)
    ]
    (tmp_path / "log.swf").write_text(text_of(jobs))
    (tmp_path / "s.toml").write_text(SMALL)
    done = run("site", "check", "log.swf", "s.toml", "--processors", 128, "--force-processors")
    assert "70.0" in done.stdout
    assert "cores 64, and partition batch has 32" in done.stdout
    assert "do not say their nodes" in done.stdout
    assert "another cluster" not in done.stderr
    (tmp_path / "t.toml").write_text(SMALL.replace("[1-4]", "1").replace("cores = 8", "cores = 2"))
    words = ("site", "check", "log.swf", "t.toml", "--processors", 128, "--force-processors")
    assert "most jobs do not fit (10 of 10): is this log of another cluster than t?" in run(*words, code=1).stderr
    assert json.loads(run(*words, "--json", code=1).stdout)["other_cluster"] is True


def _replayed_log(tmp_path: Path, wait: int) -> None:
    jobs: list[dict[str, object]] = [
        {"submit": 60 * n, "wait": wait, "allocated": 4, "run_time": 30, "requested_time": 60} for n in range(200)
    ]
    (tmp_path / "log.swf").write_text(text_of(jobs))
    (tmp_path / "s.toml").write_text(SMALL)


def test_a_log_is_replayed_as_it_was(run: Run, tmp_path: Path) -> None:
    _replayed_log(tmp_path, 1)
    done = run("site", "replay", "log.swf", "s.toml", "--output", "out")
    assert "Near enough to the record to be trusted" in done.stdout
    assert "200 jobs, of which 20 fill the machine and 180 are compared" in done.stdout
    assert "chance: simulated again with nodes that are free a second later" in done.stdout
    found = json.loads((tmp_path / "out" / "fidelity.json").read_text())
    assert found["light"] == "near"
    assert found["groups"][0]["jobs"] == 180
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert manifest["inputs"] == {name: sha256_file(tmp_path / name) for name in ("log.swf", "s.toml")}
    assert {"fidelity.json", "report.html", "fidelity/waits.svg", "cores-in-use/utilisation.csv"} <= set(
        manifest["outputs"]
    )
    page = (tmp_path / "out" / "report.html").read_text()
    assert "How near is the simulation to the record?" in page
    first = (tmp_path / "out" / "fidelity.json").read_bytes()
    run("site", "replay", "log.swf", "s.toml", "--output", "out", "--overwrite")
    assert (tmp_path / "out" / "fidelity.json").read_bytes() == first
    assert json.loads(run("site", "replay", "log.swf", "s.toml", "--json").stdout) == found


def test_what_is_assumed_of_the_jobs_is_said_and_counts(run: Run, tmp_path: Path) -> None:
    _replayed_log(tmp_path, 1)
    done = run("site", "check", "log.swf", "s.toml", "--assume", "n=5", code=1)
    assert "nodes 5, and partition batch allows 4" in done.stdout
    assert "assumed n=5 for 200 of 200 jobs, of which the log does not say it" in done.stderr
    assert "do not say their nodes" in run("site", "check", "log.swf", "s.toml").stdout
    words = ("site", "replay", "log.swf", "s.toml", "--assume", "n=q/2", "--preset", "sc17", "--output", "out")
    assert "assumed n=q/2" in run(*words).stderr
    parameters = json.loads((tmp_path / "out" / "manifest.json").read_text())["parameters"]
    assert (parameters["assume"], parameters["preset"], parameters["estimate_missing"]) == ("n=q/2", "sc17", "error")
    assert "200 of 200 jobs do not fit site s" in run(*words[:4], "--assume", "n=5", code=1).stderr


def test_a_replay_that_is_far_says_what_lacks(run: Run, tmp_path: Path) -> None:
    _replayed_log(tmp_path, 5000)
    done = run("site", "replay", "log.swf", "s.toml", code=1)
    assert "Not to be trusted here" in done.stdout
    assert "of the time that jobs waited, their partition had enough idle cores for them" in done.stdout
    assert "add --output DIR for a page with pictures" in done.stderr
    few = run("site", "replay", "log.swf", "s.toml", "--to", "1h").stdout
    assert "Only 54 jobs can be compared, and 100 are asked for" in few


@pytest.mark.parametrize(
    "words",
    [
        ("site", "replay", "log.swf", "s.toml"),
        ("site", "replay", "log.swf", "s.toml", "--json"),
        ("evaluate", "log.swf", "--site", "s.toml", "--policies", "FCFS,SAF"),
        ("evaluate", "log.swf", "--site", "s.toml", "--policies", "FCFS,SAF", "--json"),
        ("learn", "log.swf", "--site", "s.toml"),
        ("site", "check", "log.swf", "s.toml"),
    ],
    ids=" ".join,
)
def test_the_exit_code_says_whether_the_site_describes_the_log(
    run: Run, tmp_path: Path, words: tuple[str, ...]
) -> None:
    # What is compared with the record is far from it; of site check the jobs fit, and do not.
    _replayed_log(tmp_path, 5000)
    if words[1] == "check":
        run(*words)
        (tmp_path / "s.toml").write_text(SMALL.replace("[1-4]", "1").replace("cores = 8", "cores = 2"))
    run(*words, code=1)
    if words[0] != "learn" and words[1] != "check":
        _replayed_log(tmp_path, 1)
        run(*words)
    run(*words[:-1], words[-1], "--preset", "none-such", code=2)


def test_the_rule_of_exit_codes_is_in_the_help_of_each(run: Run) -> None:
    for command in DESCRIBING:
        assert " ".join(RULE.split()) in " ".join(run(*command.split(), "--help-all").stdout.replace("│", " ").split())


def test_learning_stops_after_a_replay_that_is_far(run: Run, tmp_path: Path) -> None:
    _replayed_log(tmp_path, 5000)
    done = run("learn", "log.swf", "--site", "s.toml", "--output", "out", code=1)
    assert "the replay on s.toml is far from the record, so nothing was learned" in done.stderr
    assert "go on all the same with --anyway" in done.stderr
    assert "2/" not in done.stdout
    assert not (tmp_path / "out").exists()


def test_a_log_that_cannot_be_replayed_is_refused(run: Run, tmp_path: Path) -> None:
    _replayed_log(tmp_path, -1)
    assert "have no recorded start" in run("site", "replay", "log.swf", "s.toml", code=2).stderr
    _replayed_log(tmp_path, 1)
    (tmp_path / "s.toml").write_text(SMALL.replace("[1-4]", "1").replace("cores = 8", "cores = 2"))
    failed = run("site", "replay", "log.swf", "s.toml", "--output", "out", code=1)
    assert "200 of 200 jobs do not fit site s" in failed.stderr
    assert "is this log of another cluster? Nothing was simulated" in failed.stderr
    assert not (tmp_path / "out").exists()
