"""What qmgr and pbsnodes print as a site; the texts are in the form that OpenPBS's guides show."""

from __future__ import annotations

import math
import time
from pathlib import Path

import pytest
from pbs_files import NODES, SERVER

from policyfactory.core.errors import SiteError
from policyfactory.site.file import read_site, write_site
from policyfactory.site.model import Limits, NodeGroup, Partition, Qos, Site
from policyfactory.site.pbs.site import import_pbs


def site_of(folder: Path, server: str = SERVER, nodes: str | None = NODES) -> Site:
    (folder / "complex.txt").write_text(server)
    if nodes is not None:
        (folder / "nodes.txt").write_text(nodes)
    return import_pbs(folder / "complex.txt", None if nodes is None else folder / "nodes.txt")[0]


def test_queues_become_partitions_and_their_limits_a_qos(tmp_path: Path) -> None:
    site = site_of(tmp_path)
    assert (site.name, site.scheduler) == ("complex", "pbs")
    assert site.nodes == (NodeGroup("n[001-002]", 48, 192000), NodeGroup("g001", 16, 65536, 4))
    assert site.partitions == (
        Partition(
            "workq", "n[001-002]", default=True, tier=1, max_time=86400.0, default_time=3600.0, max_nodes=4,
            qos="queue-workq",
        ),
        Partition("gpu", "g001", tier=2, max_time=172800.0, default_time=7200.0, exclusive=True, up=False),
    )  # fmt: skip
    assert site.qos == (
        Qos(
            "queue-workq",
            total=Limits(jobs=200, memory=2 * 1024**2),
            per_user=Limits(jobs=10, submitted=100, cores=256),
            per_job=Limits(cores=128),
        ),
    )
    assert site.scheduling.bf_job_part_count_reserve == 5
    assert site.scheduling.sched_interval == 300.0
    assert site.scheduling.default_queue_depth == site.scheduling.bf_max_job_test == 1_000_000
    write_site(site, tmp_path / "site.toml")
    assert read_site(tmp_path / "site.toml") == site


def test_what_pbs_has_and_is_not_modelled_is_listed(tmp_path: Path) -> None:
    found = {one.name: one for one in site_of(tmp_path).not_modelled}
    assert set(found) == {
        "server job_sort_formula", "server no_such_thing", "queue route route_destinations", "queue workq max_run",
        "queue workq resources_min.ncpus", "queue gpu Priority", "server max_run", "server eligible_time_enable",
        "nodes offline or down",
    }  # fmt: skip
    assert found["queue workq max_run"].value == "u:eve=2"
    assert found["server job_sort_formula"].place.startswith("complex.txt:")
    assert found["nodes offline or down"].value == "n002"


def test_a_server_of_one_queue_has_its_limits(tmp_path: Path) -> None:
    site = site_of(tmp_path, "create queue q\nset server max_run = [u:PBS_GENERIC=7]\nset queue q max_user_run = 5\n")
    assert site.qos == (Qos("queue-q", per_user=Limits(jobs=5)),)
    assert site.partitions[0].max_time == math.inf
    assert site.scheduling.bf_job_part_count_reserve == 1
    assert site.not_modelled[0].name == "nodes offline or down"


@pytest.mark.parametrize(
    ("server", "nodes", "words"),
    [
        (SERVER, None, "does not name the nodes; give them with --nodes: pbsnodes -av"),
        ("NodeName=n1\n", NODES, "complex.txt:1: 'NodeName=n1' is no line of qmgr"),
        ("", NODES, "names no queue; give what qmgr -c 'print server' prints"),
        ("create queue q\nset queue q Priority\n", NODES, "complex.txt:2: 'Priority' is not ATTRIBUTE = VALUE"),
        ("create queue q\nset queue q Priority = high\n", NODES, "Priority is 'high'; expected a whole number"),
        ("create queue q\nset queue q max_run = 5\n", NODES, "expected limits such as [u:PBS_GENERIC=4]"),
        ("create queue q\nset queue q resources_max.mem = lots\n", NODES, "expected a size such as 64gb"),
        ("create queue q\nset queue q resources_max.walltime = x\n", NODES, "expected a time such as 24:00:00"),
        ("create queue q\nset queue q started = maybe\n", NODES, "started is 'maybe'; expected True or False"),
        ("create queue q\nset queue q queue_type = Route\n", NODES, "there is no execution queue"),
        ("create queue q\n", "", "names no node; give what pbsnodes -av prints"),
        ("create queue q\n", "  state = free\n", "nodes.txt:1: 'state = free' is no node"),
        ("create queue q\n", "n1\n     pcpus = 0\n", "nodes.txt:1: node n1 has no ncpus"),
        ("create queue q\n", "n1\n     pcpus = 1\nn1\n     pcpus = 1\n", "host list 'n[1,1]' names n1 twice"),
        (
            "create queue q\nset queue q resources_min.nodect = 9\nset queue q resources_max.nodect = 2\n",
            NODES,
            "complex.txt:2: partition q: resources_min.nodect=9 is more than resources_max.nodect=2 (complex.txt:3)",
        ),
    ],
)
def test_what_pbs_does_not_print_is_refused_with_its_line(
    tmp_path: Path, server: str, nodes: str | None, words: str
) -> None:
    with pytest.raises(SiteError) as error:
        site_of(tmp_path, server, nodes)
    assert words in str(error.value)


@pytest.mark.parametrize("limit", ["[u:PBS_GENERIC=1{}x]", "[u:PBS_GENERIC=1,{}x]", "[u:PBS_GENERIC={}]x", "[{}u:a"])
def test_what_is_the_square_of_blanks_is_refused_in_time(tmp_path: Path, limit: str) -> None:
    began = time.process_time()
    with pytest.raises(SiteError, match=r"limits such as|whole number"):
        site_of(tmp_path, f"create queue q\nset queue q max_run = {limit.format(' ' * 200_000)}\n")
    assert time.process_time() - began < 30  # it took minutes
