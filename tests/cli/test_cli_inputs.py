"""No command writes what it reads, under whatever name."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from commands import Run
from policyfactory.cli.main import build_command

LOG = "; MaxProcs: 4\n" + "".join(f"{n} {n * 10} 0 5 1 -1 -1 1 9 -1 1 1 1 -1 1 -1 -1 -1\n" for n in range(1, 60))
TABLE = "p,q,r,score,stderr,tuple\n1,1,0,0.5,0.1,0\n2,1,1,0.5,0.1,0\n"
MODEL = '{"kind": "policyfactory-model"}\n'
# Command, and in it IN for an input, and OUT for the same file under another name. No work is done before the refusal.
CASES = {
    "generate": ["generate", "IN", "--convergence", "--output", "OUT"],
    "fit, model": ["fit", "IN", "--output", "OUT"],
    "fit, report": ["fit", "IN", "--report", "OUT"],
    "export, log": ["export", "SAF", "--to", "slurm-priority-lua", "--workload", "IN", "--output", "OUT"],
    "export, log without effect": ["export", "SAF", "--to", "json", "--workload", "IN", "--output", "OUT"],
    "export, model": ["export", "IN", "--to", "lua", "--output", "OUT"],
    "export, queue": ["export", "SAF", "--to", "slurm-priority-lua", "--preview", "IN", "--output", "OUT"],
    "clean": ["workload", "clean", "IN", "--output", "OUT"],
    "clean, report": ["workload", "clean", "IN", "--report", "OUT"],
    "window": ["workload", "window", "IN", "--jobs", "5", "--output", "OUT"],
    "import": ["workload", "import", "IN", "--output", "OUT"],
    "site": ["site", "import", "IN", "--output", "OUT"],
    "site, accounts": ["site", "import", "no.conf", "--sacctmgr", "IN", "--output", "OUT"],
    "estimates": ["workload", "estimates", "IN", "--output", "OUT"],
    "resample": ["workload", "resample", "IN", "--output", "OUT"],
}
SUFFIX = {"generate": ".svg", "fit, model": ".json", "fit, report": ".md"}


@pytest.mark.parametrize("name", CASES)
def test_an_output_that_is_an_input_is_refused(run: Run, tmp_path: Path, name: str) -> None:
    given, other = tmp_path / "in", tmp_path / f"out{SUFFIX.get(name, '.swf')}"
    given.write_text(TABLE if name.startswith("fit") else MODEL if name.endswith("model") else LOG)
    before = given.read_bytes()
    os.link(given, other)
    words = [str({"IN": given, "OUT": other}.get(word, word)) for word in CASES[name]]
    for more in ([], ["--overwrite"]):
        failed = run(*words, *more, code=2)
        assert f"{other}: is an input of this command" in failed.stderr
        assert given.read_bytes() == before
        assert other.samefile(given)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(["in", other.name])


def test_the_manifest_of_another_file_with_the_same_stem_is_no_input(run: Run, tmp_path: Path) -> None:
    (tmp_path / "a.conf").write_text("ClusterName=a\nNodeName=n1 CPUs=2\nPartitionName=p Nodes=n1\n")
    words = "site", "import", tmp_path / "a.conf", "--output", tmp_path / "a.toml", "--overwrite"
    for _ in range(2):
        run(*words)
        assert (tmp_path / "a.manifest.json").is_file()


def test_folders_of_results_are_no_place_for_their_inputs(run: Run, tmp_path: Path) -> None:
    (tmp_path / "r").mkdir()
    protocol = tmp_path / "r" / "protocol.toml"
    protocol.write_text("text")
    (tmp_path / "r" / "results.csv").write_text(LOG)
    failed = run("evaluate", tmp_path / "r" / "results.csv", "--output", tmp_path / "r", "--overwrite", code=2)
    assert "results.csv: is an input of this command" in failed.stderr
    assert (tmp_path / "r" / "results.csv").read_text() == LOG


def test_every_option_that_names_an_output_is_known() -> None:
    """What a new command calls its output must not be taken for an input."""
    known = {"output", "report", "figures"}

    def options(command: object) -> set[str]:
        found = {one.name for one in command.params if "rite" in (getattr(one, "help", "") or "")}  # type: ignore[attr-defined]
        return found.union(*map(options, getattr(command, "commands", {}).values()))

    assert options(build_command()) - known <= {"anonymize", "overwrite", "pick", "starts", "top", "user_names"}
