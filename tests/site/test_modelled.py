"""What a site calls modelled is modelled: each key changes the imported site, and the simulation reads each field."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest

from policyfactory.core.errors import SiteError
from policyfactory.engine.slurm.jobs import SlurmSettings
from policyfactory.site.file import known_settings, read_site
from policyfactory.site.model import PARAMETERS, Preemption, Priority, Reservation, Scheduling, Site
from policyfactory.site.slurm.site import Reports, import_slurm
from policyfactory.workload.accounting.times import Clock
from support import ROOT

# Of what is modelled, what the simulation does not read, and why.
_NOT_READ = {
    "bf_continue": "it is for passes that are interrupted, and passes take no time in the simulation",
    "FAIR_TREE": "Slurm's default: that it is on is what NO_FAIR_TREE does not say",
    "slurm_version": "the version whose rules are simulated is made of it (rules_version), which is read",
    "NO_NORMAL_ALL": "the import writes the flags that it stands for, which are read",
}

_BASE = "ClusterName=test\nNodeName=n[1-4] CPUs=8 RealMemory=100\nPartitionName=batch Nodes=ALL\n"
_MULTIFACTOR = "PriorityType=priority/multifactor "
# Of each modelled key a line that changes the site, or its other names.
_CONF = {
    "AccountingStorageEnforce": "limits", "DefMemPerCPU": "5", "DefMemPerNode": "5", "OverTimeLimit": "5",
    "DefCpuPerGPU": "5", "DefMemPerGPU": "5", "JobDefaults": "DefCpuPerGPU=5,DefMemPerGPU=7",
    "PriorityCalcPeriod": "10", "PriorityDecayHalfLife": "1-0", "PriorityFavorSmall": "YES",
    "PriorityFlags": "ACCRUE_ALWAYS", "PriorityMaxAge": "1-0", "PriorityType": "priority/basic",
    "PriorityWeightAge": "5", "PriorityWeightAssoc": "5", "PriorityWeightFairshare": "5",
    "PriorityWeightJobSize": "5", "PriorityWeightPartition": "5", "PriorityWeightQOS": "5",
    "PriorityWeightTRES": "cpu=5", "SchedulerParameters": "bf_interval=5", "SchedulerType": "sched/builtin",
    "SelectType": "select/linear", "SelectTypeParameters": "CR_Core", "ClusterName": "other",
    "SLURM_VERSION": "22.05.8",
}  # fmt: skip
_PARTITION = {
    "AllowAccounts": "a", "AllowQos": "a", "Default": "YES", "DefaultTime": "5", "MaxNodes": "2", "MaxTime": "5",
    "MinNodes": "2", "Nodes": "n1", "OverSubscribe": "EXCLUSIVE", "Exclusive": "NODE",
    "Priority": "5", "PriorityJobFactor": "5",
    "TRESBillingWeights": "CPU=2",
    "PriorityTier": "5", "QOS": "a", "Shared": "EXCLUSIVE", "State": "DOWN",
    "DefMemPerCPU": "5", "DefMemPerNode": "5", "DefCpuPerGPU": "5", "DefMemPerGPU": "5",
    "JobDefaults": "DefCpuPerGPU=5,DefMemPerGPU=7",
    # One partition's own is listed, and not modelled.
    "OverTimeLimit": "5",
}  # fmt: skip

# Where running jobs are stopped for others.
_PREEMPTING = f"PreemptType=preempt/partition_prio\nPreemptMode=REQUEUE\n{_BASE}"
_CONF_PREEMPTION = {
    "PreemptExemptTime": "5", "PreemptMode": "CANCEL", "PreemptParameters": "youngest_first",
    "PreemptType": "preempt/qos",
}  # fmt: skip
_PARTITION_PREEMPTION = {"GraceTime": "5", "PreemptMode": "CANCEL"}


def _site_of(folder: Path, text: str, reports: Reports | None = None) -> Site:
    (folder / "slurm.conf").write_text(text)
    return import_slurm(folder / "slurm.conf", reports or Reports(), Clock())[0]


def _listed(site: Site) -> dict[str, str]:
    return {one.name: one.effect for one in site.not_modelled}


def _modelled(kind: str) -> list[str]:
    known = known_settings(kind)
    return sorted(known.names[name] for name in known.modelled)


def _simulation() -> str:
    folder = ROOT / "policyfactory" / "simulation"
    return "\n".join(path.read_text(encoding="utf-8") for path in sorted(folder.rglob("*.py")))


@pytest.mark.parametrize("table", [Priority, Scheduling, Preemption])
def test_every_setting_of_a_site_is_read_by_the_simulation(table: type) -> None:
    text = _simulation()
    fields = [field.name for field in dataclasses.fields(table) if field.name not in PARAMETERS]
    unread = {name for name in fields if not re.search(rf"\.{name}\b", text)}
    assert {how.engine for how in PARAMETERS.values()} <= set(SlurmSettings._fields)
    assert unread - set(_NOT_READ) == set()


@pytest.mark.parametrize("kind", ["flags", "qos_flags", "tres"])
def test_every_word_that_is_modelled_is_read_by_the_simulation(kind: str) -> None:
    text = _simulation()
    unread = {word for word in _modelled(kind) if f'"{word}"' not in text}
    assert unread - set(_NOT_READ) == set()


def test_every_key_that_is_modelled_changes_the_site(tmp_path: Path) -> None:
    base = _site_of(tmp_path, _BASE)
    preempting = _site_of(tmp_path, _PREEMPTING)
    assert set(_modelled("conf")) == set(_CONF) | set(_CONF_PREEMPTION)
    for key, value in _CONF.items():
        assert _site_of(tmp_path, f"{_BASE}{key}={value}\n") != base, key
    for key, value in _CONF_PREEMPTION.items():
        assert _site_of(tmp_path, f"{_PREEMPTING}{key}={value}\n") != preempting, key
    assert set(_modelled("partition")) == set(_PARTITION) | set(_PARTITION_PREEMPTION)
    for key, value in _PARTITION.items():
        assert _site_of(tmp_path, f"{_BASE.strip()} {key}={value}\n") != base, key
    for key, value in _PARTITION_PREEMPTION.items():
        assert _site_of(tmp_path, f"{_PREEMPTING.strip()} {key}={value}\n") != preempting, key
    for key in _modelled("parameters"):
        if key.startswith("preempt_"):
            assert _site_of(tmp_path, f"{_PREEMPTING}SchedulerParameters={key}=7\n") != preempting, key
            continue
        value = "" if key == "bf_continue" else "=7"
        assert _site_of(tmp_path, f"{_BASE}SchedulerParameters={key}{value}\n").scheduling != base.scheduling, key


def test_what_nothing_in_the_simulation_reads_is_listed(tmp_path: Path) -> None:
    text = f"""{_BASE}{_MULTIFACTOR}PriorityUsageResetPeriod=WEEKLY
PriorityFlags=MAX_TRES,DEPTH_OBLIVIOUS,INCR_ONLY,CALCULATE_RUNNING
PriorityWeightTRES=cpu=1,gres/gpu:a100=5,license/x=3,billing=0
SchedulerParameters=sched_min_interval=500000,bf_one_resv_per_job,bf_max_time=90,bf_yield_interval=9,bf_yield_sleep=9
PartitionName=gpu Nodes=n1 OverTimeLimit=4
"""
    site = _site_of(tmp_path, text)
    assert set(_listed(site)) == {
        "PriorityUsageResetPeriod", "PriorityFlags DEPTH_OBLIVIOUS",
        "PriorityFlags INCR_ONLY", "PriorityWeightTRES gres/gpu:a100", "PriorityWeightTRES license/x",
        "SchedulerParameters sched_min_interval", "SchedulerParameters bf_one_resv_per_job",
        "SchedulerParameters bf_max_time", "SchedulerParameters bf_yield_interval",
        "SchedulerParameters bf_yield_sleep", "PartitionName=gpu OverTimeLimit",
    }  # fmt: skip
    assert site.priority.flags == ("NO_FAIR_TREE", "MAX_TRES")
    assert site.priority.tres == {"cpu": 1.0}
    usual = "SchedulerParameters=sched_min_interval=2,max_sched_time=2\nPriorityUsageResetPeriod=NOW\n"
    assert _site_of(tmp_path, _BASE + usual).not_modelled == ()


def test_flags_of_qos_are_judged_one_by_one(tmp_path: Path) -> None:
    flags = "NoReserve,overpartqos,DenyOnLimit,NoDecay,RequiresReservation,Relative,Swift"
    (tmp_path / "qos.txt").write_text(f"Name|Priority|Flags|LimitFactor\na|1|{flags}|2.000000\nb|1||1.000000\n")
    site = _site_of(tmp_path, _BASE, Reports(qos=tmp_path / "qos.txt"))
    assert site.qos[0].flags == ("NoReserve", "OverPartQOS")
    assert set(_listed(site)) == {
        "QOS a Flags RequiresReservation", "QOS a Flags Swift", "QOS a LimitFactor",
    }  # fmt: skip


def test_a_reservation_of_some_is_listed_as_closed_to_all(tmp_path: Path) -> None:
    (tmp_path / "r.txt").write_text(
        "ReservationName=r StartTime=1000 EndTime=2000 Nodes=n1 Users=ada Accounts=(null) Flags=\n"
    )
    site = _site_of(tmp_path, _BASE, Reports(reservations=tmp_path / "r.txt"))
    assert site.reservations == (Reservation("r", "n1", 1000.0, 2000.0, ("ada",)),)
    assert _listed(site) == {
        "reservation r Users": "their jobs could use it; the log does not say which jobs ran in it: it is closed to all"
    }


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ("[priority]\nusage_reset = 'WEEKLY'", "usage_reset is no key"),
        ("[scheduling]\nbf_max_time = '60s'", "bf_max_time is no key"),
        (
            "[priority]\nflags = ['INCR_ONLY']",
            "priority: flags has INCR_ONLY, which has no effect; take it out, there are",
        ),
        ("[priority]\ntres = {billing = 1}", "priority: tres has billing, which has no effect; take it out, there are"),
        ("[[qos]]\nname = 'a'\nflags = ['Relative']", "QOS a: flags has Relative, which has no effect; take it out"),
    ],
)
def test_a_site_file_cannot_set_them_in_vain(tmp_path: Path, lines: str, words: str) -> None:
    (tmp_path / "s.toml").write_text(
        f"schema = 1\nnodes = [{{names = 'n1'}}]\npartitions = [{{name = 'batch'}}]\n{lines}\n"
    )
    with pytest.raises(SiteError) as error:
        read_site(tmp_path / "s.toml")
    assert words in str(error.value)


def test_names_of_resources_have_no_case(tmp_path: Path) -> None:
    text = "schema = 1\nnodes = [{names = 'n1'}]\npartitions = [{name = 'batch', billing = {CPU = 2}}]\n"
    (tmp_path / "s.toml").write_text(f"{text}priority = {{tres = {{MEM = 3}}}}\n")
    site = read_site(tmp_path / "s.toml")
    assert (site.partitions[0].billing, site.priority.tres) == ({"cpu": 2.0}, {"mem": 3.0})
    (tmp_path / "s.toml").write_text(text.replace("CPU = 2", "CPU = 2, cpu = 3"))
    with pytest.raises(SiteError, match=r"billing.*each name once"):
        read_site(tmp_path / "s.toml")
