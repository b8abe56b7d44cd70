"""The site that is assumed of a log: its nodes, and that every job fits it."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from policyfactory.site.file import check_site
from policyfactory.site.fits import as_assumed, fit_jobs, lay_out, site_of
from policyfactory.workload.clean import read
from policyfactory.workload.jobs import Requests, Workload
from support import shared_path


def work(processors: Sequence[int], machine: int, nodes: Sequence[int] = ()) -> Workload:
    n = len(processors)
    times = np.full(n, 60)
    requests = dataclasses.replace(Requests.unknown(n), nodes=np.array(nodes, dtype=np.int64)) if nodes else None
    none = np.full(n, -1)
    return Workload("log", machine, np.arange(n), np.arange(n), times, times, processors, none, none, requests=requests)


@pytest.mark.parametrize(
    ("processors", "machine", "nodes", "groups", "whole"),
    [
        ([1, 3, 5], 100, (), [("n[1-100]", 1)], False),
        ([8, 16, 24] * 9 + [1], 64, (), [("n[1-8]", 8)], True),
        # Few small jobs more, so that most processors are asked for in eights, but not most jobs.
        ([64] * 3 + [1] * 4, 64, (), [("n1", 64)], False),
        # What jobs say of nodes goes first.
        ([8, 8, 3], 20, (1, 2, 1), [("n[1-3]", 8)], False),
        # More nodes than the processors make.
        ([8, 8], 16, (1, 5), [("n[1-5]", 8)], True),
    ],
)
def test_nodes_follow_from_the_jobs(
    processors: list[int], machine: int, nodes: tuple[int, ...], groups: list[tuple[str, int]], whole: bool
) -> None:
    site = site_of(work(processors, machine, nodes))
    assert [(group.names, group.cores) for group in site.nodes] == groups
    assert site.partitions[0].exclusive == whole
    assert ("as a whole" in site.assumed) == whole


def test_large_machines_have_a_bounded_number_of_nodes() -> None:
    site = site_of(work([1, 7], 1_000_003))
    assert len(site.node_names) == 8131
    assert lay_out(site).cores.sum() == 1_000_003
    assert "at most 8,192" in site.assumed


@given(
    st.integers(1, 3000).flatmap(
        lambda machine: st.tuples(
            st.just(machine),
            st.lists(st.tuples(st.integers(1, machine), st.integers(1, 40) | st.just(-1)), max_size=20),
        )
    )
)
def test_every_job_fits_and_the_site_is_consistent(drawn: tuple[int, list[tuple[int, int]]]) -> None:
    machine, jobs = drawn
    log = work([q for q, _ in jobs], machine, [nodes for _, nodes in jobs])
    site = site_of(log)
    check_site(site, "assumed")
    assert lay_out(site).cores.sum() >= machine
    assert fit_jobs(site, as_assumed(log, site)).fitting == len(log)


def test_what_only_a_described_site_could_have_is_left_out() -> None:
    log = work([4, 4], 8, (1, 2))
    assert log.requests is not None
    requests = dataclasses.replace(
        log.requests, partition=np.zeros(2), gpus=np.ones(2), eligible=np.array([3, 4]), names={"partition": ("short",)}
    )
    kept = as_assumed(dataclasses.replace(log, requests=requests), site_of(log)).requests
    assert kept is not None
    assert kept.known("partition") == kept.known("gpus") == 0
    assert kept.nodes.tolist() == [1, 2]
    assert kept.eligible.tolist() == [3, 4]
    plain = work([4], 8)
    assert as_assumed(plain, site_of(plain)) is plain


@pytest.mark.parametrize(
    ("name", "nodes", "cores", "whole"),
    [
        ("KTH-SP2-1996-2.1-cln.swf.gz", 100, 1, False),
        ("HPC2N-2002-2.1-cln.swf.gz", 120, 2, False),
        ("SDSC-BLUE-2000-4.2-cln.swf.gz", 144, 8, True),
        ("CEA-Curie-2011-2.1-cln.swf.gz", 5832, 16, False),
    ],
)
def test_four_logs_of_the_archive_get_their_nodes(name: str, nodes: int, cores: int, whole: bool) -> None:
    site = site_of(read(shared_path(f"traces/{name}")))
    assert len(site.node_names) == nodes
    assert [group.cores for group in site.nodes] == [cores]
    assert site.partitions[0].exclusive == whole
