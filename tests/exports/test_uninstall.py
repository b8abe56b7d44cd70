"""The scripts that take an export out of Slurm; in place of Slurm's, programs that write down what they are told."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
from pathlib import Path

import pytest

import policyfactory as pf

FAKE = """#!/bin/sh
case "$(basename "$0") $*" in
"scontrol show config") printf '%s\\n' 'BOOT_TIME = 2100-01-01T00:00:00' "JobSubmitPlugins = ${LOADED:-(null)}" ;;
scontrol*) echo "$*" >> "$TOLD" ;;
squeue*"%Q %i %y"*) printf '%s\\n' '5 11 3' '0 12 0' '4 13_2 0' '4 13_3 0' ;;
squeue*) printf '%s\\n' '11 3' '12 0' '13_2 0' '13_3 0' ;;
sprio*" 11 "*) echo '  77' ;;
sprio*" 13 "*) echo 0 ;;
sprio*) echo 'Unable to find jobs matching user/id(s) specified' ;;
esac
"""
CONF = """ClusterName=c
# JobSubmitPlugins=lua
jobsubmitplugins = all_partitions, lua # ours
PriorityType=priority/multifactor
"""


class Site:
    """A folder as beside slurm.conf, and the programs."""

    def __init__(self, folder: Path, shell: str) -> None:
        self.folder, self.shell = folder, shell
        (folder / "bin").mkdir()
        for name in ("scontrol", "squeue", "sprio"):
            (folder / "bin" / name).write_text(FAKE)
            (folder / "bin" / name).chmod(0o755)
        self.conf, self.told = folder / "slurm.conf", folder / "told"
        self.conf.write_text(CONF)
        self.told.write_text("")

    def run(self, script: Path, *arguments: str, code: int = 0, **environment: str) -> str:
        known = {"PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}", "SLURM_CONF": str(self.conf)}
        known |= {"TOLD": str(self.told), **environment}
        done = subprocess.run([self.shell, script, *arguments], env=known, capture_output=True, text=True, check=False)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr


@pytest.fixture(params=["dash", "bash"])
def site(request: pytest.FixtureRequest, tmp_path: Path) -> Site:
    if shutil.which(request.param) is None:
        pytest.skip(f"no {request.param}")
    return Site(tmp_path, request.param)


@functools.cache
def exported(policy: str, to: str) -> pf.Exported:
    """Export once for all tests and both shells."""
    return pf.export(policy, to)


def installed(site: Site, to: str, file: str) -> Path:
    exported("SAF", to).save(site.folder / file)
    return site.folder / f"{Path(file).stem}.uninstall.sh"


def test_a_script_shows_then_removes_and_leaves_what_is_anothers(site: Site) -> None:
    script = installed(site, "slurm-site-factor-lua", "job_submit.lua")
    shown = site.run(script)
    assert "would: take lua out of JobSubmitPlugins" in shown
    assert "would: move" in shown
    assert site.conf.read_text() == CONF
    site.run(script, "remove")
    assert site.conf.read_text() == CONF.replace(
        "jobsubmitplugins = all_partitions, lua # ours", "JobSubmitPlugins=all_partitions"
    )
    assert (site.folder / "slurm.conf.before_uninstall").read_text() == CONF
    assert (site.folder / "job_submit.lua.removed").is_file()
    assert "nothing of this export" in site.run(script, "remove")
    # Jobs only after the restart; those that have no number are left alone, those that nothing shows are not.
    assert "still has it loaded" in site.run(script, "jobs", code=1, LOADED="all_partitions,lua")
    assert site.told.read_text() == ""
    site.run(script, "jobs", LOADED="all_partitions")
    assert site.told.read_text().splitlines() == ["update JobId=11 SiteFactor=0", "update JobId=12 SiteFactor=0"]


def test_lua_by_its_long_name_is_taken_out_too(site: Site) -> None:
    script = installed(site, "slurm-site-factor-lua", "job_submit.lua")
    site.conf.write_text(CONF.replace("all_partitions, lua", "job_submit/lua,all_partitions"))
    assert "would: take lua out of JobSubmitPlugins" in site.run(script)
    site.run(script, "remove")
    assert "JobSubmitPlugins=all_partitions\n" in site.conf.read_text()
    assert "still has it loaded" in site.run(script, "jobs", code=1, LOADED="job_submit/lua")


def test_one_cannot_be_misled(site: Site, tmp_path: Path) -> None:
    script = installed(site, "slurm-site-factor-lua", "job_submit.lua")
    # Another's script, which calls ours: its owner takes the lines out.
    own = site.folder / "job_submit.lua"
    own.rename(site.folder / "policyfactory.lua")
    own.write_text('local fine = pcall(dofile, "policyfactory.lua")\n')
    assert "your own and calls policyfactory.lua" in site.run(script, "remove", code=1)
    own.write_text("-- nothing of it any more\n")
    assert "policyfactory.lua.removed" in site.run(script, "remove")
    assert own.is_file()
    assert site.conf.read_text() == CONF
    assert "is not of policyfactory; it stays" in site.run(script, "remove")
    assert "none: there is no such slurm.conf" in site.run(script, code=1, SLURM_CONF=str(tmp_path / "none"))
    assert "cannot ask Slurm where slurm.conf is" in site.run(script, code=1, SLURM_CONF="")
    assert "usage" in site.run(script, "delete", code=2)


def test_a_line_in_an_included_file_is_not_overlooked(site: Site) -> None:
    script = installed(site, "slurm-site-factor-lua", "job_submit.lua")
    more = site.folder / "more.conf"
    more.write_text("  JobSubmitPlugins = lua\n")
    assert "more.conf has JobSubmitPlugins with lua" in site.run(script, "remove", code=1)
    assert (site.folder / "job_submit.lua").is_file()
    more.write_text("#JobSubmitPlugins=lua\n")
    # The file itself is no other one, however its path is written.
    assert "doing: move" in site.run(script, "remove", SLURM_CONF=f"{site.folder}//slurm.conf")


def test_a_priority_is_given_back_to_the_plugin_but_for_held_jobs(site: Site) -> None:
    script = installed(site, "slurm-priority-lua", "job_submit.lua")
    site.run(script, "remove")
    site.run(script, "jobs")
    told = site.told.read_text().splitlines()
    assert told == ["release 11", "update JobId=11 Nice=3", "release 13_[2,3]", "update JobId=13_[2,3] Nice=0"]


def test_lines_of_the_plugin_go_and_its_file(site: Site) -> None:
    exported("WFP3", "slurm-site-factor-c").save(site.folder / "export")
    script, plugin = site.folder / "export" / "uninstall.sh", site.folder / "site_factor_policyfactory.so"
    lines = "PrioritySiteFactorPlugin=site_factor/policyfactory\nPrioritySiteFactorParameters=wait=submit\n"
    site.conf.write_text(CONF + lines)
    plugin.write_text("somebody's")
    assert "does not look like policyfactory's" in site.run(script, code=1, PLUGINDIR=str(site.folder))
    plugin.write_bytes(b"\x7fELF\x00policyfactory, policy wfp3\x00")
    site.run(script, "remove", PLUGINDIR=str(site.folder))
    assert not plugin.exists()
    assert site.conf.read_text() == CONF
    assert "nothing of this export" in site.run(script, "remove", PLUGINDIR=str(site.folder))


def test_nice_values_that_are_set_are_taken_away(site: Site) -> None:
    script = installed(site, "slurm-nice", "nice.sh")
    assert "would: set the nice value of job 11 from 3 to 0" in site.run(script)
    assert site.told.read_text() == ""
    site.run(script, "remove")
    assert site.told.read_text() == "update JobId=11 Nice=0\n"


@pytest.mark.parametrize(
    "line", ["Include policyfactory_weights.conf", "\tinclude\t/etc/slurm/policyfactory_weights.conf"]
)
def test_the_line_that_includes_weights_goes_before_their_file(line: str, site: Site) -> None:
    script = installed(site, "slurm-weights", "policyfactory_weights.conf")
    site.conf.write_text(f"{CONF}#policyfactory PriorityWeightAge=3\nInclude my_policyfactory_weights.conf\n{line}\n")
    site.run(script, "remove")
    # slurmctld does not start where a file that it includes is gone.
    assert site.conf.read_text() == f"{CONF}PriorityWeightAge=3\nInclude my_policyfactory_weights.conf\n"
    assert (site.folder / "policyfactory_weights.conf.removed").is_file()
    assert "nothing of this export" in site.run(script, "remove")


def test_weights_that_another_file_includes_stay(site: Site) -> None:
    script = installed(site, "slurm-weights", "policyfactory_weights.conf")
    (site.folder / "more.conf").write_text("Include policyfactory_weights.conf\n")
    assert "more.conf has Include with policyfactory_weights.conf" in site.run(script, "remove", code=1)
    assert (site.folder / "policyfactory_weights.conf").is_file()
