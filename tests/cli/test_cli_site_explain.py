"""``policyfactory site explain``: what the jobs of a queue wait for, as a table, and of one job or two."""

from __future__ import annotations

import dataclasses
import json
import os
import re
from pathlib import Path

import pytest

from commands import Run
from policyfactory.site.file import read_site, write_site
from recorded_queues import queue_file, site_of_version

QUEUE = queue_file("24.11", "squeue.json.gz")


@pytest.fixture
def site(tmp_path: Path) -> Path:
    path = tmp_path / "site.toml"
    write_site(site_of_version("24.11", tmp_path), path)
    # As old as the recorded queue: see the warning of the last test.
    os.utime(path, (1_700_000_000, 1_700_000_000))
    return path


def test_the_queue_as_a_table_of_eighty_columns(run: Run, site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    done = run("site", "explain", "--site", site, "--queue", QUEUE)
    assert max(map(len, done.stdout.splitlines())) <= 80
    monkeypatch.setenv("COLUMNS", "120")
    done = run("site", "explain", "--site", site, "--queue", QUEUE)
    lines = {line.split()[0]: line for line in done.stdout.splitlines() if line.strip()}
    assert "never: GrpTRES=cpu" in lines["4"]
    assert "MaxTRESPerUser=cpu (root)" in lines["5"]
    assert "held" in lines["7"]
    assert "job 1 to end" in lines["10"]
    assert "run to their limits" in done.stderr


@pytest.mark.parametrize("tiers", [{"batch": 1, "short": 1, "away": 1}, {"batch": 2, "short": 3, "away": 9}])
def test_the_table_shows_by_what_the_queue_is_ordered(
    run: Run, site: Path, monkeypatch: pytest.MonkeyPatch, tiers: dict[str, int]
) -> None:
    read = read_site(site)
    parts = tuple(dataclasses.replace(part, tier=tiers[part.name]) for part in read.partitions)
    write_site(dataclasses.replace(read, partitions=parts), site)
    monkeypatch.setenv("COLUMNS", "120")
    command = ("site", "explain", "--site", site, "--queue", QUEUE)
    shown = [re.split(r" {2,}", line.strip()) for line in run(*command).stdout.splitlines()]
    head, rows = shown[2], {row[0]: row for row in shown[4:] if len(row) > 2}
    queue = [job for job in json.loads(run(*command, "--json").stdout)["jobs"] if job["position"]]
    cells = [dict(zip(head, rows[job["job"]], strict=True)) for job in queue]
    assert [cell["partition"] for cell in cells] == [job["partition"] for job in queue]
    assert ("tier" in head) == (len({*tiers.values()}) > 1)
    keys = [(int(cell.get("tier", 0)), int(cell["priority"].replace(",", ""))) for cell in cells]
    assert keys == sorted(keys, reverse=True)


def test_the_queue_as_json(run: Run, site: Path) -> None:
    found = json.loads(run("site", "explain", "--site", site, "--queue", QUEUE, "--json").stdout)
    assert found["site"] == "test"
    jobs = {one["job"]: one for one in found["jobs"]}
    assert jobs["6"]["waits"][0]["kind"] == "limit"
    assert jobs["6"]["start"] > found["taken"]
    assert jobs["4"]["terms"]["QOS"] == 0


def test_one_job_and_why_it_is_before_another(run: Run, site: Path) -> None:
    shares = queue_file("24.11", "sshare.txt")
    done = run(
        *("site", "explain", "--site", site, "--queue", QUEUE, "--sshare", shares, "--job", 6, "--before", 5)
    ).stdout
    assert "number 3 of the queue; Slurm says AssocGrpCpuLimit" in done
    assert "account science" in done
    assert "would start in" in done
    assert "job 6 is before job 5" in done
    assert "66,667" in done
    assert "most of it by FAIRSHARE" in done
    assert "would never start" in run("site", "explain", "--site", site, "--queue", QUEUE, "--job", 4).stdout
    assert "cannot be told" in run("site", "explain", "--site", site, "--queue", QUEUE, "--job", 7).stdout
    alone = json.loads(run("site", "explain", "--site", site, "--queue", QUEUE, "--job", 13, "--json").stdout)
    assert alone["alone"] <= alone["start"]
    assert (
        "its priority, by the columns of sprio"
        in run("site", "explain", "--site", site, "--queue", QUEUE, "--job", 5).stdout
    )


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--queue", QUEUE, "--job", "99"], 2, "no such job"),
        (["--queue", QUEUE, "--job", "1"], 2, "job 1 runs"),
        (["--queue", QUEUE, "--job", "5", "--before", "1"], 2, "job 1 runs"),
        (["--queue", QUEUE, "--before", "5"], 2, "--before needs --job"),
        (["--queue", "none.json"], 1, "no such file"),
        (["--queue", queue_file("24.11", "sprio.txt")], 1, "squeue --json"),
        (["--queue", QUEUE, "--sshare", queue_file("24.11", "sprio.txt")], 1, "sshare -a -l -P"),
        (["--queue", QUEUE, "--taken", "noon"], 2, "--taken"),
    ],
)
def test_mistakes_have_a_message(run: Run, site: Path, words: list[object], code: int, said: str) -> None:
    done = run("site", "explain", "--site", site, *words, code=code)
    assert said in done.stderr
    assert len(done.stderr) < 700


def test_a_factor_that_is_none_is_refused_with_its_line(run: Run, site: Path, tmp_path: Path) -> None:
    (tmp_path / "shares.txt").write_text("Account|User|FairShare\nlab|ann|1.5\n")
    done = run("site", "explain", "--site", site, "--queue", QUEUE, "--sshare", "shares.txt", code=1)
    assert "shares.txt:2" in done.stderr
    assert "from 0 to 1" in done.stderr


def test_an_old_queue_and_one_without_running_jobs_are_warned_of(run: Run, site: Path, tmp_path: Path) -> None:
    os.utime(site)
    done = run("site", "explain", "--site", site, "--queue", QUEUE, "--taken", "1000000000")
    assert "is older than the site file" in done.stderr
    text = queue_file("24.11", "lines.txt").read_text().splitlines()
    (tmp_path / "waiting.txt").write_text("\n".join([text[0], *(line for line in text if "|PENDING|" in line)]))
    done = run("site", "explain", "--site", site, "--queue", "waiting.txt")
    assert "no job runs" in done.stderr
    (tmp_path / "running.txt").write_text("\n".join([text[0], *(line for line in text if "|RUNNING|" in line)]))
    assert "no job waits" in run("site", "explain", "--site", site, "--queue", "running.txt").stdout
