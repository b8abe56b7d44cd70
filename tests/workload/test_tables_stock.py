"""Published tables of jobs, by the mappings that come along: each data set's columns, and its traps."""

from __future__ import annotations

import csv
import datetime as dt
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from accounting_logs import counts
from job_tables import T0, imported, moment, write_csv, write_lines, write_parquet
from policyfactory.core.errors import UsageError
from policyfactory.workload.clean import clean
from policyfactory.workload.tables.mapping import STOCK, find_mapping, stock_mapping
from refusals import refused
from support import extra_module

GPUS = '"1=40,2=340000,4=1,5=40,1002=2"'
CORES = '"1=48,2=180000,4=1"'


def test_every_mapping_that_comes_along_is_whole() -> None:
    for name in STOCK:
        mapping = stock_mapping(name)
        assert mapping.limited, name
        assert mapping.title, name
        assert mapping.notes, name
        assert len(mapping.sha256) == 64
    refused(UsageError, "kestrel sacct eagle kestrl --format", find_mapping, "kestrl")
    assert find_mapping("sacct") is None


def test_the_genuine_sample_of_eagle(shared: Callable[[str], Path]) -> None:
    done = imported("eagle", shared("traces/eagle_sample.csv"))
    report, log = done.report, done.log
    # 452 tasks of one array have one id: none of them is lost.
    assert (report.records, report.jobs, len(set(done.job))) == (1000, 1000, 1000)
    assert counts(done) == {"rules.overrun": 14}
    assert (report.time_zone, report.zone_needed) == ("America/Denver", True)
    # 2019-01-01 08:55:55 in Denver, in winter.
    assert log.header.unix_start == 1546358155
    assert (log.header.processors, report.peak) == (1995, 1995)
    workload = clean(log)
    assert len(workload) == 1000
    # What the sample says of itself: run_time is a column that the mapping does not look at.
    with shared("traces/eagle_sample.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    work = sum(float(row["run_time"]) * int(row["nodes_req"]) for row in rows)
    assert float((workload.run_time * workload.processors).sum()) == work
    assert sorted(workload.requested_time.tolist()) == sorted(int(float(row["wallclock_req"])) for row in rows)
    asked = workload.requests
    assert asked is not None
    assert asked.nodes.tolist() == workload.processors.tolist()
    # Two and sixteen GPUs; 184,000 MB a node, which is all of it; nodes are not shared.
    assert sorted(asked.gpus.tolist())[-4:] == [2, 2, 2, 16]
    assert sorted(set(asked.memory.tolist())) == [-1, 100, 184000, 552000, 1440000, 20160000]
    assert set(asked.exclusive.tolist()) == {1}
    assert (asked.names["qos"], len(asked.names["account"]), len(asked.names["partition"])) == (("normal",), 8, 5)
    # Two days of submissions, on a machine of which 1,995 nodes were in use at once.
    assert workload.offered_load == pytest.approx(0.234, abs=0.0005)


def test_kestrels_limits_are_durations_and_its_times_have_a_zone(tmp_path: Path) -> None:
    pa = extra_module("pyarrow", "parquet")
    zoned = pa.timestamp("us", tz="America/Denver")
    path = write_parquet(
        tmp_path / "part-0.parquet",
        {
            "id": pa.array(["1", "2", "3"]),
            "submit_time": pa.array([moment(0), moment(10), moment(20)], zoned),
            "start_time": pa.array([moment(60), moment(70), None], zoned),
            "end_time": pa.array([moment(660), moment(7270), moment(30)], zoned),
            "wallclock_req": pa.array(
                [dt.timedelta(hours=4), dt.timedelta(days=2), dt.timedelta(hours=1)], pa.duration("ns")
            ),
            "nodes_req": [2, 1, 1],
            "processors_req": [208, 52, 1],
            "nodes_used": [2, 1, 0],
            "processors_used": [208, 64, 0],
            "gpus_requested": [0, 2, 0],
            "memory_req": ["240G", "85Gn", None],
            "partition": ["short", "gpu-h100", "short"],
            "qos": ["normal", "high", "normal"],
            "state_simple": ["COMPLETED", "TIMEOUT", "CANCELLED"],
            "user_hash": ["a1", "b2", "a1"],
            "account_hash": ["x", "y", "x"],
        },
    )
    done = imported("kestrel", path)
    assert done.log.requested_time.tolist() == [4 * 3600, 2 * 86400]
    assert done.log.run_time.tolist() == [600, 7200]
    assert done.log.allocated.tolist() == [208, 64]
    assert done.log.header.unix_start == T0
    assert counts(done)["rules.cancelled"] == 1
    assert done.user == ("a1", "b2")
    asked = clean(done.log).requests
    assert asked is not None
    # 85 GB a node, on one; shared nodes, as far as anybody knows.
    assert asked.memory.tolist() == [240 * 1024, 85 * 1024]
    assert (asked.gpus.tolist(), asked.nodes.tolist(), asked.exclusive.tolist()) == ([0, 2], [2, 1], [-1, -1])
    assert asked.names["account"] == ("x", "y")


def test_pm100s_limits_are_minutes(tmp_path: Path) -> None:
    pa = extra_module("pyarrow", "parquet")
    zoned = pa.timestamp("us", tz="UTC")
    path = write_parquet(
        tmp_path / "job_table.parquet",
        {
            "job_id": [11, 12],
            "user_id": [7, 8],
            "submit_time": pa.array([moment(0), moment(0)], zoned),
            "eligible_time": pa.array([moment(0), moment(100)], zoned),
            "start_time": pa.array([moment(5), moment(200)], zoned),
            "end_time": pa.array([moment(3605), moment(300)], zoned),
            "run_time": [3600, 100],
            "time_limit": [1440, 2147483647],
            "num_nodes_req": [4, 1],
            "num_cores_req": [512, 128],
            "num_gpus_req": [16, 4],
            "num_nodes_alloc": [4, 1],
            "num_cores_alloc": [512, 128],
            "partition": ["1", "2"],
            "qos": ["1", "1"],
            "job_state": ["COMPLETED", "FAILED"],
        },
    )
    done = imported("pm100", path)
    # A day; in seconds it would be 24 minutes, and the job of an hour beyond it.
    assert done.log.requested_time.tolist() == [86400, -1]
    assert counts(done)["rules.unlimited"] == 1
    assert done.log.allocated.tolist() == [4, 1]
    assert done.log.header.processors == 980
    assert "by the mapping pm100" in done.report.machine_source
    assert counts(done)["rules.eligible"] == 1
    assert done.log.status.tolist() == [1, 0]
    asked = clean(done.log, estimate_missing="runtime").requests
    assert asked is not None
    assert (asked.eligible.tolist(), asked.gpus.tolist()) == ([0, 100], [16, 4])


def test_fugakus_times_are_of_japan_and_its_files_are_months(tmp_path: Path) -> None:
    extra_module("pyarrow", "parquet")

    def month(name: str, jobs: list[str], day: int) -> Path:
        stamp = [f"2023-07-{day:02d} 09:00:{second:02d}" for second in range(len(jobs))]
        return write_parquet(
            tmp_path / name,
            {
                "jid": jobs, "usr": ["u1"] * len(jobs), "jnam": ["run"] * len(jobs), "adt": stamp, "qdt": stamp,
                "schedsdt": stamp, "sdt": [f"2023-07-{day:02d} 10:00:00+09:00"] * len(jobs),
                "edt": [f"2023-07-{day:02d} 11:00:00+09:00"] * len(jobs), "elpl": [86400.0] * len(jobs),
                "duration": [3600.0] * len(jobs), "cnumr": [96] * len(jobs), "nnumr": [2] * len(jobs),
                "cnumat": [96] * len(jobs), "nnuma": [2] * len(jobs), "pri": [127] * len(jobs),
                "mszl": [3.0e10] * len(jobs), "econ": [1.0] * len(jobs), "exit state": ["completed"] * len(jobs),
            },
        )  # fmt: skip

    first, second = month("23_06.parquet", ["a", "b"], 1), month("23_07.parquet", ["c"], 2)
    done = imported("fugaku", second, first)
    assert done.job == ("a", "b", "c")
    # 09:00 in Tokyo is midnight in Greenwich.
    assert done.log.header.unix_start == int(dt.datetime(2023, 7, 1, tzinfo=dt.UTC).timestamp())
    assert done.log.wait.tolist()[0] == 3600
    assert done.log.header.processors == 158976
    assert done.log.status.tolist() == [1, 1, 1]


def test_lassen_has_four_gpus_a_node_and_a_largest_number_for_no_limit(tmp_path: Path) -> None:
    names = (
        "allocation_id,primary_job_id,job_submit_time,begin_time,end_time,time_limit,num_nodes,num_processors,num_gpus,"
        "queue,exit_status,hashed_user_id,hashed_user_group_id,job_type"
    )
    # The second job starts in the hour that comes twice: its run time of 20 minutes is no help, the submission is.
    rows = [
        "1,501,2020-10-31 10:00:00.5,2020-10-31 10:00:07.702,2020-10-31 11:00:07.1,7200,2,88,0,pbatch,0,u,g,batch",
        "2,502,2020-11-01 01:50:00,2020-11-01 01:10:00,2020-11-01 01:30:00,2147483647,1,44,0,pbatch,130,u,g,batch",
    ]
    done = imported("lassen", write_lines(tmp_path / "final.csv", names, rows))
    assert done.log.header.unix_start == int(dt.datetime(2020, 10, 31, 17, 0, tzinfo=dt.UTC).timestamp())
    assert done.log.requested_time.tolist() == [7200, -1]
    assert done.log.run_time.tolist() == [3600, 1200]
    # Submitted at 01:50 of summer time, begun at 01:10 of winter time.
    assert done.log.wait.tolist() == [7, 1200]
    assert counts(done)["sacct.settled"] == 1
    assert done.log.status.tolist() == [1, 0]
    asked = clean(done.log, estimate_missing="runtime").requests
    assert asked is not None
    assert (asked.gpus.tolist(), asked.nodes.tolist()) == ([8, 4], [2, 1])


@pytest.mark.parametrize("name", ["aurora", "polaris", "theta"])
def test_the_machines_of_argonne(tmp_path: Path, name: str) -> None:
    names = (
        "JOB_NAME,QUEUED_TIMESTAMP,START_TIMESTAMP,END_TIMESTAMP,WALLTIME_SECONDS,RUNTIME_SECONDS,NODES_REQUESTED,"
        "NODES_USED,CORES_REQUESTED,CORES_USED,QUEUE_NAME,EXIT_STATUS,USERNAME_GENID,PROJECT_NAME_GENID,LOCATION"
    )
    # The list of nodes of a large job is longer than what the csv module takes.
    nodes = ",".join(f"x4000c{number:08d}" for number in range(12_000))
    day = "2025-02-01"
    rows = [
        f'7.s,{day} 00:00:00,{day} 01:00:00,{day} 02:00:00,7200.0,3600.0,256,256,26624,26624,prod,0,11,22,"{nodes}"',
        f"8.server,{day} 00:10:00,,,7200,,8,,,,prod,,11,22,",
    ]
    done = imported(name, write_lines(tmp_path / "djc.csv", names, rows))
    assert done.log.requested_time.tolist() == [7200]
    assert done.log.allocated.tolist() == [256]
    assert done.log.header.processors == {"aurora": 10624, "polaris": 560, "theta": 4392}[name]
    assert done.report.count("dropped") == 1


def test_supercloud_is_rows_of_slurms_data_base(tmp_path: Path) -> None:
    names = (
        "id_job,id_array_job,id_user,nodes_alloc,cpus_req,mem_req,partition,state,timelimit,time_submit,time_eligible,"
        "time_start,time_end,tres_alloc,tres_req,nodelist"
    )
    rows = [
        f"9,0,77,1,20,8192,xeon-g6-volta,3,4294967295,{T0},{T0},{T0 + 9},{T0 + 99},{GPUS},{GPUS},['a']",
        f"10,0,78,0,48,0,xeon-p8,4,525600,{T0},{T0},0,{T0 + 50},,{CORES},[]",
        f"11,0,78,1,48,0,xeon-p8,6,60,{T0 + 1},{T0 + 1},{T0 + 2},{T0 + 3602},{CORES},{CORES},['b']",
    ]
    done = imported("supercloud", write_lines(tmp_path / "slurm-log.csv", names, rows))
    # 4294967295 minutes are none; 60 are an hour.
    assert done.log.requested_time.tolist() == [-1, 3600]
    assert counts(done)["rules.unlimited"] == 1
    assert counts(done)["rules.cancelled"] == 1
    assert done.log.allocated.tolist() == [40, 48]
    assert not done.report.zone_needed
    asked = clean(done.log, estimate_missing="runtime").requests
    assert asked is not None
    # A list without GPUs asks for none.
    assert (asked.gpus.tolist(), asked.memory.tolist()) == ([2, 0], [340000, 180000])


def test_ccin2p3_is_text_parted_by_tabs_with_unix_seconds(tmp_path: Path) -> None:
    names = "jobid submit start end elapsed timelimit alloccpus allocgpus partition state user account memory"
    rows = [
        (5, T0, T0 + 100, T0 + 400, 300, 86400, 1, 0, "htc", "COMPLETED", "u", "a", "3G"),
        (6, T0, T0 + 100, T0 + 400, 300, 3600, 8, 2, "gpu", "OUT_OF_MEMORY", "u", "a", "3G"),
    ]
    done = imported("ccin2p3", write_csv(tmp_path / "09.tsv", names.split(" "), rows, "\t"))
    assert done.log.header.unix_start == T0
    assert done.log.requested_time.tolist() == [86400, 3600]
    assert done.log.status.tolist() == [1, 0]
    assert done.report.peak == 9


def test_frontiers_nodes_are_in_the_last_field(tmp_path: Path) -> None:
    line = "{0} {1} 60 600 {2} -1 -1 {2} 7200 -1 1 5 1 -1 2 1 -1 -1 {3} -1 frontier:excl:{4}x112"
    lines = [line.format(1, 0, 589824, 16, 2), line.format(2, 30, 64, 8, 1)]
    first, second = tmp_path / "frontier-2024.swf", tmp_path / "frontier-2025.swf"
    first.write_text(f"; UnixStartTime: {T0}\n; MaxNodes: 9408\n" + "\n".join(lines) + "\n")
    second.write_text(f"; UnixStartTime: {T0 + 3600}\n" + lines[0] + "\n")
    done = imported("frontier", first, second)
    # Job 1 is in both files, and is another one in each.
    assert done.job == ("1", "2", "1:1")
    assert done.log.allocated.tolist() == [2, 1, 2]
    assert done.log.submit.tolist() == [0, 30, 3600]
    assert done.log.wait.tolist() == [60, 60, 60]
    assert done.log.requested_time.tolist() == [7200, 7200, 7200]
    asked = clean(done.log).requests
    assert asked is not None
    assert (asked.gpus.tolist(), asked.nodes.tolist(), asked.exclusive.tolist()) == ([16, 8, 16], [2, 1, 2], [1, 1, 1])


def test_theta_in_the_standard_workload_format(tmp_path: Path) -> None:
    path = tmp_path / "theta.swf"
    path.write_text(f"; UnixStartTime: {T0}\n1 5 60 600 128 -1 -1 128 7200 -1 1 5 1 -1 2 1 -1 -1\n")
    done = imported("theta-swf", path)
    assert done.log.header.unix_start == T0 + 5
    assert (done.log.allocated.tolist(), done.log.header.processors) == ([128], 4392)


def test_adastras_limits_are_dates(tmp_path: Path) -> None:
    pa = extra_module("pyarrow", "parquet")
    columns = {
        "job_id": [1, 2, 3],
        "submit_time": pa.array([moment(0), moment(0), moment(0)], pa.timestamp("ns", tz="UTC")),
        "start_time": pa.array([moment(60), moment(60), moment(60)], pa.timestamp("ns", tz="UTC")),
        "end_time": pa.array([moment(120), moment(120), moment(120)], pa.timestamp("ns", tz="UTC")),
        # The second is no deadline: minutes that were taken for a date; the third lies before the start.
        "time_limit": pa.array(
            [moment(7260), dt.datetime(1970, 1, 1, 0, 2, tzinfo=dt.UTC), moment(0)], pa.timestamp("ns", tz="UTC")
        ),
        "run_time": [60, 60, 60],
        "num_nodes_req": [1, 1, 1],
        "num_nodes_alloc": [1, 1, 1],
        "num_cores_req": [64, 64, 64],
        "num_gpus_req": [8, 8, 8],
        "partition": ["mi250"] * 3,
        "qos": ["normal"] * 3,
        "job_state": ["COMPLETED"] * 3,
        "user_id": [4, 4, 4],
    }
    done = imported("adastra", write_parquet(tmp_path / "adastra.parquet", columns))
    assert sorted(done.log.requested_time.tolist()) == [-1, -1, 7200]
    assert counts(done)["tables.deadline"] == 2
    assert json.loads(json.dumps(done.report.as_dict()))["unrequested"] == {"without one in the log": 2}
    assert np.all(done.log.run_time == 60)
