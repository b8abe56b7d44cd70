"""Site files: what is written comes back, and what is wrong is named with its place and its cure."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from policyfactory.core.errors import InputError, SiteError
from policyfactory.site.file import dump_site, read_site, write_site
from policyfactory.site.fits import lay_out, node_numbers
from policyfactory.site.model import (
    Association,
    Limits,
    NodeGroup,
    NotModelled,
    Outage,
    Partition,
    Priority,
    Qos,
    Reservation,
    Scheduling,
    Site,
)
from policyfactory.site.show import limit_rows, not_modelled_rows, partition_rows, setting_rows

SMALL = """schema = 1
nodes = [{names = "n[1-100]", cores = 48}]
partitions = [{name = "batch"}]
"""

LARGE = Site(
    name="large",
    nodes=(
        NodeGroup("cn[001-004]", cores=48, memory=192 * 1024),
        NodeGroup("g[1-2]", cores=64, memory=500_000, gpus=4, weight=10),
    ),
    partitions=(
        Partition("batch", "cn[001-004]", default=True, max_time=86400.0, default_time=3600.0, qos="part"),
        Partition("gpu", "g[1-2],cn001", tier=5, job_factor=10, max_nodes=2, allowed_qos=("normal",), exclusive=True),
        Partition("old", up=False, min_nodes=2, max_time=5400.0, allowed_accounts=("a",)),
    ),
    qos=(
        Qos("normal"),
        Qos("part", 100, 90.0, Limits(jobs=10, memory=2048), Limits(cores=64, gpus=0), Limits(submitted=5), Limits(3)),
        Qos("odd", usage_factor=0.5, flags=("NoReserve",), per_job=Limits(nodes=2, memory=100)),
    ),
    associations=(
        Association("a", shares=60.0, total=Limits(cores=96)),
        Association("b", parent="a", shares=0.5),
        Association("b", "eve", shares=math.nan, own=Limits(3, 5), default_qos="odd", qos=("odd", "normal")),
    ),
    reservations=(Reservation("maint", "ALL", 1.8e9, 1.8e9 + 7200, ("root",), ("a",), known=1.7e9),),
    outages=(Outage("cn001", 1.7e9, 1.7e9 + 5, drained=True, reason="disk"), Outage("g1", 1.7e9)),
    priority=Priority(
        age=1000, fair_share=5, tres={"cpu": 10.0, "gres/gpu": 2.5}, max_age=3600.0, flags=("ACCRUE_ALWAYS",)
    ),
    scheduling=Scheduling(
        select="cores+memory", bf_window=4 * 86400.0, bf_continue=True, kill_overrun=math.inf,
    ),
    enforced=("limits", "qos"),
    not_modelled=(NotModelled("PreemptType", "preempt/qos", "slurm.conf:12", "jobs would be stopped"),),
)  # fmt: skip


def test_a_site_of_one_partition_takes_three_lines(tmp_path: Path) -> None:
    path = tmp_path / "here.toml"
    path.write_text(SMALL)
    site = read_site(path)
    assert site == Site("here", (NodeGroup("n[1-100]", 48),), (Partition("batch"),))
    path.write_text(SMALL.replace("schema = 1", 'schema = 1\nscheduler = "slurm"'))  # as it was written once
    assert read_site(path) == site
    layout = lay_out(site)
    assert layout.cores.sum() == 4800
    assert layout.members.all()


def test_what_is_written_comes_back(tmp_path: Path) -> None:
    path = tmp_path / "large.toml"
    write_site(LARGE, path)
    again = read_site(path)
    assert again == LARGE
    assert dump_site(again) == path.read_text() == dump_site(LARGE)


def test_arrays_have_what_each_node_has() -> None:
    layout = lay_out(LARGE)
    assert layout.names == ("cn001", "cn002", "cn003", "cn004", "g1", "g2")
    np.testing.assert_array_equal(layout.cores, [48, 48, 48, 48, 64, 64])
    np.testing.assert_array_equal(layout.memory[3:5], [192 * 1024, 500_000])
    np.testing.assert_array_equal(layout.gpus, [0, 0, 0, 0, 4, 4])
    np.testing.assert_array_equal(layout.weight, [1, 1, 1, 1, 10, 10])
    np.testing.assert_array_equal(layout.members.astype(int), [[1, 1, 1, 1, 0, 0], [1, 0, 0, 0, 1, 1], [1] * 6])
    np.testing.assert_array_equal(node_numbers(LARGE, "g2,cn[003-004]"), [2, 3, 5])
    with pytest.raises(SiteError, match=r"names node x1 and 2 more, which the site does not have"):
        node_numbers(LARGE, "x[1-3]")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "has no schema; begin the file with: schema = 1"),
        ("schema = true", "schema is True"),
        ("schema = 2", "is a site file of schema 2, and this policyfactory reads up to 1; update policyfactory"),
        (f"schema = {'9' * 3000}", f"schema {'9' * 19}…{'9' * 10}, and"),
        (SMALL.replace("schema = 1", 'schema = 1\nscheduler = "pbs"'), "scheduler: only sites of Slurm are read"),
        (SMALL + "partition = []", "partition is no key of this table; did you mean partitions?"),
        (SMALL.replace("cores", "cpus"), "s.toml: nodes[1] (n[1-100]): cpus is no key of this table"),
        (
            SMALL.replace('name = "batch"', 'name = "b", max_tme = "1h"'),
            "(b): max_tme is no key of this table; did you mean",
        ),
        (SMALL.replace('name = "batch"', 'name = "b", max_time = 60'), "partitions[1] (b): max_time is 60; expected a"),
        (SMALL.replace('name = "batch"', 'name = "b", max_time = "60"'), "max_time is '60'; expected a time with its"),
        (SMALL.replace('name = "batch"', 'name = "b", max_time = "10:00"'), 'expected a time with its unit: "24h"'),
        (SMALL.replace("48", "-1"), "cores is -1; expected a whole number from 1 to 1,000,000"),
        (SMALL.replace("48", "true"), "cores is True; expected a whole number"),
        (SMALL.replace("48", '48, memory = "lots"'), "memory is 'lots'; expected a size such as"),
        (
            SMALL.replace("[1-100]", "[1-9999999]"),
            "(n[1-9999999]): names: host list 'n[1-9999999]' names more than 200,000",
        ),
        (SMALL.replace('name = "batch"', f'name = "b", max_time = "{"9" * 30}d"'), '"unlimited"; at most 99420d'),
        (SMALL.replace("48", f'48, memory = "{"9" * 30}T"'), "or a whole number of MB; at most 8388608P"),
        (SMALL.replace("48", "48, weight = -1"), "weight is -1; expected a whole number from 0 to 4,294,967,295"),
        (SMALL.replace("[1-100]", "[1-100"), "a bracket is not closed"),
        (SMALL.replace('name = "batch"', ""), "partitions[1]: name is not given"),
        (SMALL + 'reservations = [{nodes = "n1"}]', "reservations[1]: name, start and end are not given"),
        (SMALL + "priority = 3", "priority is 3; expected a table"),
        (SMALL + "qos = 3", "qos is no list of at most"),
        (SMALL + 'name = "a\\u202eb"', "expected a text of at most 10,000 printable characters"),
        (SMALL + "[priority]\nkind = 'fair'", "priority: kind is 'fair'; expected one of multifactor, basic"),
        (
            SMALL + "[[outages]]\nnodes='n1'\nstart='2026-01-01T00:00:00'",
            "expected a date and time of day with its zone",
        ),
        (SMALL + "[[associations]]\naccount='a'\nshares='all'", 'expected a number of shares from 0, or "parent"'),
    ],
)
def test_what_is_no_site_is_refused_with_its_place(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "s.toml"
    path.write_text(text)
    with pytest.raises(SiteError) as error:
        read_site(path)
    assert str(error.value).startswith(str(path))
    assert words in str(error.value)


def test_what_is_no_toml_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "s.toml"
    path.write_text("schema = ")
    with pytest.raises(InputError, match=r"is no TOML: .*docs/site.md shows the layout"):
        read_site(path)
    path.write_text("a" + ".a" * 5000 + " = 1")
    with pytest.raises(InputError, match="more than 500 points"):
        read_site(path)


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ("partitions=[]", "there is no partition; add"),
        ("partitions=[{name='a'}, {name='a'}]", "partition a is there 2 times"),
        ("partitions=[{name='a', default=true}, {name='b', default=true}]", "a, b are all the default; keep"),
        ("partitions=[{name='a', nodes='n[99-102]'}]", "partition a names node n101 and 1 more, which is not there"),
        ("partitions=[{name='a', min_nodes=3, max_nodes=2}]", "min_nodes 3 is more than max_nodes 2; no job fits both"),
        (
            "partitions=[{name='a', default_time='2h', max_time='1h'}]",
            "default_time 2h is more than max_time 1h; lower the default or raise the limit",
        ),
        ("partitions=[{name='a', max_time=0}]", "max_time is 0, no job fits"),
        (
            "partitions=[{name='a', nodes='n[1-3]', min_nodes=4}]",
            "min_nodes 4 is more than its nodes, 3; no job fits; lower",
        ),
        ("partitions=[{name='{a}', nodes='x1'}]", "partition {a} names node x1, which is not there"),
        (
            "partitions=[{name='a'}]\n[scheduling]\ndefault_queue_depth = 0",
            "default_queue_depth is 0, and a pass would look at no job; give at least 1, or leave it out for 100",
        ),
        ("partitions=[{name='a'}]\n[scheduling]\nbf_max_job_test = 0", "give at least 1, or leave it out for 500"),
        ("partitions=[{name='a', qos='x'}]\nqos=[{name='y'}]", "partition a names QOS x, which is not there"),
        ("partitions=[{name='a'}]\nqos=[{name='y'}, {name='y'}]", "QOS y is there 2 times"),
        (
            "partitions=[{name='a'}]\nqos=[{name='y', total={cores=4}, per_job={cores=8}}]",
            "a job may have cores 8, and all jobs together 4; lower per_job or raise total",
        ),
        ("partitions=[{name='a'}]\nassociations=[{account='c', parent='d'}]", "its parent d is not there; add"),
        ("partitions=[{name='a'}]\nassociations=[{account='c', user='u'}]", "the account is not there; add"),
        (
            "partitions=[{name='a'}]\nassociations=[{account='c', parent='d'}, {account='d', parent='c'}]",
            "accounts c > d > c are each other's parents; break the circle",
        ),
        (
            "partitions=[{name='a'}]\nassociations=[{account='c', default_qos='x', qos=['y']}]",
            "its default QOS x is none of those that it may use",
        ),
        (
            "partitions=[{name='a'}]\nreservations=[{name='r', nodes='ALL', start=10, end=10}]",
            "reservation r ends at or before its start",
        ),
        ("partitions=[{name='a'}]\noutages=[{nodes='x1', start=10}]", "outage of x1 names node x1, which is not there"),
        ("partitions=[{name='a'}]\n[scheduling]\nbf_interval = 0", "bf_interval is 0.0; it is a time above 0"),
        (
            "partitions=[{name='a'}]\n[scheduling]\ndefault_memory_per_core = 1\ndefault_memory_per_node = 2",
            "exclude each other; give one",
        ),
    ],
)
def test_a_contradiction_is_named_with_its_cure(tmp_path: Path, lines: str, words: str) -> None:
    path = tmp_path / "s.toml"
    path.write_text("\n".join([*SMALL.splitlines()[:2], lines]))
    with pytest.raises(SiteError) as error:
        read_site(path)
    assert words in str(error.value)


def test_many_contradictions_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "s.toml"
    names = ", ".join(f"{{name='p{n}', min_nodes=3, max_nodes=2}}" for n in range(30))
    path.write_text("\n".join([*SMALL.splitlines()[:2], f"partitions=[{names}]"]))
    with pytest.raises(SiteError, match="p0: min_nodes") as error:
        read_site(path)
    assert str(error.value).count("\n") == 5
    assert str(error.value).endswith("and 25 more")


def test_nodes_in_two_groups_and_none_at_all_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "s.toml"
    for nodes, words in (
        ("[{names='n1'}, {names='n[1-2]'}]", "node n1 is there 2 times; name each node in one group"),
        ("[]", "there is no node; add"),
        ("[{names=''}]", "a group of nodes has no names"),
        ("[{names='a[1-150000]'}, {names='b[1-150000]'}]", "more than 200,000 nodes"),
        ("[{names='a[1-9999]', cores=1000000}]", "cores in all, more than"),
    ):
        path.write_text(f"schema = 1\nnodes = {nodes}\npartitions = [{{name = 'batch'}}]\n")
        with pytest.raises(SiteError) as error:
            read_site(path)
        assert words in str(error.value)


def test_host_lists_that_are_too_much_together_are_refused_before_they_are_expanded(tmp_path: Path) -> None:
    path = tmp_path / "s.toml"
    # Lists that are written alike cost nothing.
    outages = "".join(f"[[outages]]\nnodes = 'n[{n + 1}-200000]'\nstart = 1\n" for n in range(1000))
    path.write_text("schema = 1\nnodes = [{names = 'n[1-200000]'}]\npartitions = [{name = 'batch'}]\n" + outages)
    with pytest.raises(SiteError, match="name more than 2,000,000 nodes together; leave out old"):
        read_site(path)


def test_what_is_very_long_is_short_in_the_tables() -> None:
    long = "x" * 200_000
    site = Site(
        "s",
        (NodeGroup("n1"),),
        (Partition(long),),
        qos=(Qos(long, 5),),
        not_modelled=(NotModelled(long, long, "slurm.conf:1", long),),
        enforced=(long,),
    )
    tables = (partition_rows(site), setting_rows(site), limit_rows(site), not_modelled_rows(site))
    assert max(len(cell) for table in tables for row in table for cell in row) <= 320
