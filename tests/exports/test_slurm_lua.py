"""The Lua exports for Slurm, run in Lua 5.1 (Slurm's) to 5.4 with tables in place of slurmctld's jobs."""

from __future__ import annotations

import dataclasses
import importlib
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from naive.exports import MORE
from naive.formula import expressions
from policyfactory.core.errors import ExportError
from policyfactory.exports.content import TARGETS, Export, ExportSite
from policyfactory.exports.queue import UNLIMITED_S
from policyfactory.policy.policy import Epoch, Policy
from policyfactory.policy.scale import LARGEST
from policyfactory.policy.store import CATALOGUE, Model
from policyfactory.review.shadow import read_shadow
from refusals import refusal, refused
from sites import make_queue, make_site
from support import examples

EPOCH = 1_767_225_600
NOW = EPOCH + 30 * 86_400
NO_VAL, NO_VAL16, INFINITE = 4_294_967_294, 65_534, 4_294_967_295
SITE_FACTOR, PRIORITY = "slurm-site-factor-lua", "slurm-priority-lua"
FIELD = {SITE_FACTOR: "site_factor", PRIORITY: "priority"}
LUAS = ["lua51", "lua53", "lua54"]
F1 = dataclasses.replace(CATALOGUE["F1"], epoch=Epoch("fixed", EPOCH))
STATIC = [
    dataclasses.replace(policy, epoch=Epoch("fixed", EPOCH))
    for policy in [*CATALOGUE.values(), *MORE]
    if "w" not in policy.variables and policy.name != "overflow"  # of which no score is finite
]
# What a job that asks for nothing has.
UNSET = {
    "time_limit": NO_VAL, "min_cpus": 1, "num_tasks": NO_VAL, "cpus_per_task": NO_VAL16, "min_nodes": NO_VAL,
    "pn_min_cpus": NO_VAL16, "priority": NO_VAL, "site_factor": NO_VAL,
}  # fmt: skip
PARTITIONS = {
    "batch": {"default_time": 45, "max_time": INFINITE, "flag_default": 1},
    "day": {"default_time": NO_VAL, "max_time": 1440, "flag_default": 0},
    "endless": {"default_time": NO_VAL, "max_time": INFINITE, "flag_default": 0},
}


def export_of(policy: Policy, target: str = SITE_FACTOR, site: ExportSite | None = None) -> Export:
    return TARGETS[target].make(Model(policy), site or make_site(processors=64))


class Controller:
    """A stand-in for slurmctld: loads a script and hands it jobs."""

    def __init__(self, text: str, version: str = "lua51") -> None:
        self.lua = importlib.import_module(f"lupa.{version}").LuaRuntime(register_eval=False)
        self.errors: list[str] = []
        self.now = NOW
        self.logged: list[str] = []
        slurm = {
            "SUCCESS": 0,
            "log_error": lambda form, *rest: self.errors.append(form % rest),
            "log_info": lambda form, *rest: self.logged.append(form % rest),
        }
        self.lua.globals().slurm = self.lua.table_from(slurm)
        self.lua.globals().os.time = lambda: self.now
        self.parts = self.table({name: self.table(part) for name, part in PARTITIONS.items()})
        before = set(self.lua.globals())
        assert self.lua.execute(text) == 0
        self.names = set(self.lua.globals()) - before

    def table(self, fields: dict[str, Any]) -> Any:
        return self.lua.table_from(fields)

    def submit(self, **fields: Any) -> Any:
        job = self.table(UNSET | fields)
        assert self.lua.globals().slurm_job_submit(job, self.parts, 1000) == 0
        return job

    def modify(self, record: dict[str, Any], uid: int = 0, **fields: Any) -> Any:
        job = self.table(UNSET | {"min_cpus": NO_VAL} | fields)
        known = {"submit_time": NOW, "priority": 5, "site_factor": 5, "partition": "batch"}
        assert self.lua.globals().slurm_job_modify(job, self.table(known | record), self.parts, uid) == 0
        return job


def expected(export: Export, p: float, q: float, submit: int = NOW) -> int:
    queue = make_queue(1)
    assert export.priorities is not None
    one = dataclasses.replace(queue, p=np.array([p]), q=np.array([q]), submit=np.array([submit]))
    return int(export.priorities(one)[0])


@pytest.mark.parametrize("target", FIELD)
@pytest.mark.parametrize("version", LUAS)
def test_log_only_logs_the_number_and_sets_nothing(version: str, target: str, tmp_path: Path) -> None:
    export = export_of(F1, target, dataclasses.replace(make_site(processors=64), log_only=True))
    controller = Controller(export.text, version)
    job = controller.submit(time_limit=7, min_cpus=3, user_id=12)
    record = {"job_id": 9, "user_id": 12, "time_limit": 7, "min_cpus": 3, "priority": 55}
    changed = controller.modify(record, nice=0)
    controller.modify(record)  # changes neither shape nor nice
    assert all(one[name] == NO_VAL for one in (job, changed) for name in ("site_factor", "priority"))
    (tmp_path / "log").write_text("\n".join(controller.logged) + "\n")
    first, second = read_shadow(tmp_path / "log").lines
    assert not controller.errors
    assert first.number == second.number == expected(export, 420, 3)
    assert (first.job, second.job, first.user, second.present) == ("", "9", "12", 55)
    assert (first.time, first.processors, first.submit) == (420, 3, NOW)
    assert "LOG ONLY" in export.text
    # Backfilling stays as it is.
    assert "bf_job_part_count_reserve" not in export.text
    assert "Restart slurmctld." in export.text


@pytest.mark.parametrize("target", FIELD)
@pytest.mark.parametrize("version", LUAS)
@pytest.mark.parametrize("policy", STATIC, ids=[policy.name for policy in STATIC])
def test_a_job_gets_the_number_of_the_python_map(policy: Policy, version: str, target: str) -> None:
    export = export_of(policy, target)
    controller = Controller(export.text, version)
    queue = make_queue(60)
    assert export.priorities is not None
    wanted = export.priorities(queue)
    result = []
    for p, q, submit in zip(queue.p.tolist(), queue.q.tolist(), queue.submit.tolist(), strict=True):
        controller.now = submit
        result.append(controller.submit(time_limit=p // 60, min_cpus=q)[FIELD[target]])
    assert np.abs(np.array(result) - wanted).max() <= 1
    assert not controller.errors
    assert controller.names == {"policyfactory", "slurm_job_submit", "slurm_job_modify"}


# As dumped from Slurm 22.05.8, and what a newer one might leave out.
ASKED = [
    ({}, 45 * 60, 1),
    ({"min_cpus": 8, "num_tasks": 4, "cpus_per_task": 2, "pn_min_cpus": 2}, 45 * 60, 8),
    ({"min_cpus": 3, "cpus_per_task": 3}, 45 * 60, 3),
    ({"min_cpus": 2, "min_nodes": 2, "pn_min_cpus": 5}, 45 * 60, 10),
    ({"min_cpus": 2, "min_nodes": 2, "shared": 0}, 45 * 60, 2),
    ({"min_cpus": NO_VAL, "num_tasks": 7, "cpus_per_task": 3}, 45 * 60, 21),
    ({"min_cpus": None, "num_tasks": None, "cpus_per_task": None, "time_limit": None}, 45 * 60, 1),
    ({"min_cpus": INFINITE, "num_tasks": 4, "cpus_per_task": 65_535}, 45 * 60, 4),
    ({"min_cpus": 0, "min_nodes": 0, "pn_min_cpus": 0}, 45 * 60, 1),
    ({"time_limit": 2}, 120, 1),
    ({"time_limit": 90, "partition": "day"}, 5400, 1),
    ({"time_limit": INFINITE}, UNLIMITED_S, 1),
    ({"time_limit": INFINITE, "partition": "day"}, 86_400, 1),
    ({"time_limit": 0}, UNLIMITED_S, 1),
    ({"partition": "day"}, 86_400, 1),
    ({"partition": "nowhere,day,endless"}, 86_400, 1),
    ({"partition": "endless"}, UNLIMITED_S, 1),
    ({"partition": "nowhere"}, 45 * 60, 1),
]


@pytest.mark.parametrize("target", FIELD)
@pytest.mark.parametrize(("fields", "p", "q"), ASKED, ids=[str(row[0]) for row in ASKED])
def test_size_and_time_are_found_in_slurms_fields(fields: dict[str, Any], p: int, q: int, target: str) -> None:
    export = export_of(F1, target)
    controller = Controller(export.text)
    assert controller.submit(**fields)[FIELD[target]] == pytest.approx(expected(export, p, q), abs=1)
    assert not controller.errors


def test_without_partitions_a_job_without_a_limit_has_none() -> None:
    export = export_of(F1)
    controller = Controller(export.text)
    for parts in (None, controller.table({})):
        job = controller.table(UNSET)
        assert controller.lua.globals().slurm_job_submit(job, parts, 1000) == 0
        assert job.site_factor == pytest.approx(expected(export, UNLIMITED_S, 1), abs=1)
    assert not controller.errors


def test_a_priority_or_a_site_factor_that_is_given_stays() -> None:
    controller = Controller(export_of(F1, PRIORITY).text)
    assert [controller.submit(priority=given).priority for given in (0, 77, INFINITE)] == [0, 77, INFINITE]
    assert controller.modify({"time_limit": 5, "min_cpus": 1}, priority=99, time_limit=7).priority == 99
    controller = Controller(export_of(F1).text)
    assert controller.submit(site_factor=7).site_factor == 7
    assert controller.modify({"time_limit": 5, "min_cpus": 1}, site_factor=7, time_limit=7).site_factor == 7
    held = controller.submit(priority=0)
    assert held.priority == 0
    assert held.site_factor > 0


CHANGES = [
    ({"time_limit": 7}, 420, 8),
    ({"time_limit": INFINITE}, UNLIMITED_S, 8),
    ({"min_cpus": 3}, 3600, 4),  # a node has to give 4 still
    ({"num_tasks": 20}, 3600, 20),
    ({"num_tasks": 2}, 3600, 8),
    ({"min_nodes": 3}, 3600, 12),
    ({"pn_min_cpus": 16}, 3600, 16),
    ({"num_tasks": 6, "cpus_per_task": 2, "time_limit": 1}, 60, 12),
]


@pytest.mark.parametrize(("fields", "p", "q"), CHANGES, ids=[str(row[0]) for row in CHANGES])
def test_a_change_of_limit_or_size_scores_again(fields: dict[str, Any], p: int, q: int) -> None:
    record = {"time_limit": 60, "min_cpus": 8, "min_nodes": 1, "pn_min_cpus": 4, "submit_time": NOW - 5000}
    export = export_of(F1)
    controller = Controller(export.text)
    wanted = pytest.approx(expected(export, p, q, NOW - 5000), abs=1)
    assert controller.modify(record, uid=1000, **fields).site_factor == wanted

    export = export_of(F1, PRIORITY)
    controller = Controller(export.text)
    before = controller.submit(time_limit=60, min_cpus=8).priority
    # The clock of the submission was a second behind the submit time.
    for submit_time in (NOW, NOW + 1):
        own = record | {"priority": before, "submit_time": submit_time}
        wanted = pytest.approx(expected(export, p, q, submit_time), abs=1)
        assert controller.modify(own, **fields).priority == wanted
        assert controller.modify(own, uid=1000, **fields).priority == NO_VAL
        assert controller.modify(own | {"priority": before + 1}, **fields).priority == NO_VAL
        assert controller.modify(own | {"priority": 0}, **fields).priority == NO_VAL
    assert not controller.errors


@pytest.mark.parametrize("target", FIELD)
def test_other_changes_leave_the_score(target: str) -> None:
    controller = Controller(export_of(F1, target).text)
    job = controller.modify({"time_limit": 60, "min_cpus": 8}, comment="x")
    assert (job.priority, job.site_factor) == (NO_VAL, NO_VAL)


@pytest.mark.parametrize("target", FIELD)
@pytest.mark.parametrize("version", LUAS)
def test_an_error_is_logged_and_the_job_is_last(target: str, version: str) -> None:
    export = export_of(F1, target)
    broken = export.text.replace("  return pf_log10", "  error('50% wrong', 0)\n  return pf_log10")
    assert broken != export.text
    # In Lua, return is the last statement of a block.
    controller = Controller(broken, version)
    job = controller.submit(time_limit=60)
    assert (job.site_factor, job.priority) == {SITE_FACTOR: (NO_VAL, NO_VAL), PRIORITY: (NO_VAL, 1)}[target]
    controller.modify({"time_limit": 60, "min_cpus": 8}, time_limit=7)
    assert controller.errors == ["policyfactory: 50% wrong"] * 2


# What runs inside attempt(), which contains its errors: each function from its first line, and the file between them.
OUTSIDE = {"attempt", "slurm_job_submit", "slurm_job_modify"}
FUNCTION = re.compile(r"^(?:local )?function ([\w.]+)\(.*\)$", re.MULTILINE)


@pytest.mark.parametrize("log_only", [False, True])
@pytest.mark.parametrize("target", FIELD)
@pytest.mark.parametrize("policy", ["F1", "ASKS"])
def test_an_error_anywhere_reaches_nobody(policy: str, target: str, log_only: bool) -> None:
    # An error that reaches slurmctld rejects the job since Slurm 26.05, and in the file keeps slurmctld from starting.
    site = dataclasses.replace(make_site(processors=64), log_only=log_only)
    text = export_of({"F1": F1, "ASKS": ASKS}[policy], target, site).text
    functions = [found for found in FUNCTION.finditer(text) if found[1] not in OUTSIDE]
    assert {"score", "policyfactory.submit", "policyfactory.modify", "partition_of"} < {name[1] for name in functions}
    begin = text.index("attempt(function()")
    places = [found.end() for found in functions] + [found.start() for found in functions if found.start() > begin]
    logged = 0
    for place in places:
        controller = Controller(f"{text[:place]}\nerror({{}})\n{text[place:]}")
        job = controller.submit(time_limit=60)
        controller.modify({"time_limit": 60, "min_cpus": 8}, time_limit=7)
        assert job.time_limit == 60
        logged += bool(controller.errors)
    assert logged > len(places) * 2 // 3
    # The log itself may fail, and what is read from Slurm.
    for name in ("slurm.log_error", "slurm.log_info", "os.time", "string.match", "math.floor"):
        controller = Controller(text)
        controller.lua.execute(f"{name} = function() error('no {name}') end")
        controller.submit(time_limit=60)
        controller.modify({"time_limit": 60, "min_cpus": 8}, time_limit=7)


@pytest.mark.parametrize("target", FIELD)
def test_a_job_that_cannot_be_read_is_no_error_of_slurms(target: str) -> None:
    controller = Controller(export_of(F1, target).text)
    hostile = controller.lua.execute("return setmetatable({}, {__index = function() error('no field') end})")
    run = controller.lua.globals()
    assert run.slurm_job_submit(hostile, controller.parts, 0) == 0
    assert run.slurm_job_modify(hostile, hostile, controller.parts, 0) == 0
    assert run.slurm_job_submit(None, None, 0) == 0
    assert controller.errors
    for wrong in ("", "x", "nan", -5, 2**40, math.nan, math.inf, -math.inf, True):
        job = controller.submit(time_limit=wrong, min_cpus=wrong, num_tasks=wrong, partition=wrong)
        assert job[FIELD[target]] == NO_VAL or 1 <= job[FIELD[target]] <= LARGEST


@examples(60)
@given(expressions(depth=5, variables="pqrwm"), st.integers(1, 10**6), st.integers(1, 10**5))
def test_any_formula_gives_a_number_in_the_range(tree: Any, minutes: int, size: int) -> None:
    if not tree.variables - {"m", "w"} or "w" in tree.variables:
        return
    try:
        export = export_of(Policy("any", tree.text(), epoch=Epoch("fixed", EPOCH)), site=make_site(200, processors=64))
    except ExportError:
        return  # one score for all jobs
    controller = Controller(export.text)
    result = controller.submit(time_limit=minutes, min_cpus=size).site_factor
    assert result == int(result)
    assert 1 <= result <= LARGEST
    assert not controller.errors


def test_the_order_is_the_formulas_for_extreme_scores() -> None:
    export = export_of(Policy("steep", "log10(q - 3) + (q - 9)*(p - 60)*p**30"))
    controller = Controller(export.text)
    # No value, minus infinity, and both sides of the range.
    shapes = [(1, 1), (5, 3), (5, 4), (600, 5), (60, 8), (2, 10), (7, 11), (50_000, 64)]
    assert export.priorities is not None
    for minutes, size in shapes:
        result = controller.submit(time_limit=minutes, min_cpus=size).site_factor
        assert result == pytest.approx(expected(export, minutes * 60, size), abs=1)
    assert controller.submit(time_limit=1, min_cpus=1).site_factor == 1


@pytest.mark.parametrize("target", FIELD)
def test_what_cannot_be_expressed_is_refused_with_the_cure(target: str) -> None:
    refused(ExportError, "--to slurm-site-factor-c", export_of, CATALOGUE["WFP3"], target)
    refused(ExportError, "--epoch 2026-01-01", export_of, CATALOGUE["F1"], target)
    with refusal(ExportError, "--epoch 2026-01-01"):
        export_of(dataclasses.replace(F1, epoch=Epoch("oldest-waiting")), target)
    refused(ExportError, "--processors", export_of, Policy("sized", "p*q/m"), target, make_site())
    late = export_of(dataclasses.replace(F1, threshold=3600.0), target)
    assert "threshold is left out" in late.limits[0]
    assert "slurm-site-factor-c has the threshold." in late.limits
    assert not any("threshold" in text for text in export_of(F1, target).limits)
    # The head promises nothing that the script does not do.
    assert "have waited longer than 1h go first" not in late.text.replace("\n", "")


@pytest.mark.parametrize("target", FIELD)
def test_what_must_be_done_stands_in_the_file(target: str) -> None:
    export = export_of(F1, target)
    head = export.text.partition("\nlocal EPOCH")[0]
    assert all(line.startswith("--") or not line for line in head.splitlines())
    words = " ".join(line.removeprefix("--").strip() for line in head.splitlines())
    for text in (*export.settings, *export.install, *export.rollback, *export.limits):
        assert " ".join(text.split()) in " ".join(words.split())
    assert "SchedulerParameters=bf_job_part_count_reserve=1" in export.settings
    assert "Seen with Slurm 22.05.8 and 24.11.5." in words
    assert "memory and GPUs are not looked at" in words
    assert "add lua to it" in words
    # Commands are in one line each.
    assert max(len(line) for line in export.text.splitlines() if "  $ " not in line) <= 130


@pytest.mark.parametrize("target", FIELD)
def test_the_lines_for_a_script_that_is_there_already(target: str, tmp_path: Any) -> None:
    export = export_of(F1, target)
    (tmp_path / "policyfactory.lua").write_text(export.text)
    top, say, submit, modify = (
        text.strip().replace("/etc/slurm", str(tmp_path)) for text in export.install if text.startswith("  ")
    )
    # Each of them can be copied out of the file's head.
    for line in (top, say, submit, modify):
        assert f"--     {line.replace(str(tmp_path), '/etc/slurm')}\n" in export.text
    own = f"""{top}
{say}
function slurm_job_submit(job_desc, part_list, submit_uid)
  job_desc.time_limit = 20
  {submit}
  return slurm.SUCCESS
end
function slurm_job_modify(job_desc, job_rec, part_list, modify_uid)
  {modify}
  return slurm.SUCCESS
end
return slurm.SUCCESS
"""
    assert Controller(own).submit()[FIELD[target]] == pytest.approx(expected(export, 1200, 1), abs=1)
    # Without the export, the site's own script still works.
    (tmp_path / "policyfactory.lua").write_text("this is not Lua")
    controller = Controller(own)
    assert controller.submit()[FIELD[target]] == NO_VAL
    (said,) = controller.errors
    assert "policyfactory.lua:1: '=' expected" in said
    (tmp_path / "policyfactory.lua").unlink()
    assert "No such file" in Controller(own).errors[0]


PIECES = ["\n", "\r", "]]", "--[[", "--]]", "'", '"', "\\", "%", "\x00", "\x1b[2J", "\u2028", "é", "os.exit()", "x"]


@examples(40)
@given(st.lists(st.sampled_from(PIECES), max_size=8).map("".join))
def test_a_strangers_words_stay_in_comments(words: str) -> None:
    site: Callable[..., ExportSite] = make_site
    benign = export_of(Policy("x", "p*q"), site=site(200)).text

    policy = Policy("x", "p*q")
    for field in ("name", "description", "source"):
        object.__setattr__(policy, field, words)
    text = export_of(policy, site=site(200)).text

    def code(source: str) -> list[str]:
        return [line for line in source.split("\n") if not line.startswith("--")]

    assert text.isascii()
    assert code(text) == code(benign)


@pytest.mark.parametrize("target", FIELD)
def test_a_job_from_before_the_epoch_counts_as_submitted_at_it(target: str) -> None:
    export = export_of(F1, target)
    controller = Controller(export.text)
    result = []
    for controller.now in (EPOCH - 86_400, EPOCH, EPOCH + 1, EPOCH + 2):
        result.append(controller.submit(time_limit=10, min_cpus=4)[FIELD[target]])
        assert result[-1] == pytest.approx(expected(export, 600, 4, controller.now), abs=1)
    assert result[0] == result[1] == result[2] > result[3] > 1


@pytest.mark.parametrize("target", FIELD)
def test_the_weight_is_the_largest_number(target: str) -> None:
    site = dataclasses.replace(make_site(processors=64), weight=1000)
    export = export_of(Policy("area", "p*q"), target, site)
    controller = Controller(export.text)
    shapes = [(1, 1), (60, 8), (2880, 64), (500_000, 5000)]
    result = [controller.submit(time_limit=p, min_cpus=q)[FIELD[target]] for p, q in shapes]
    assert result == [expected(export, 60 * p, q) for p, q in shapes]
    assert 1000 > result[0] > result[1] > result[2] > result[3] >= 1
    if target == SITE_FACTOR:
        assert any("site_factor is up to 1000," in text for text in export.limits)


def test_a_change_of_nice_or_partition_scores_again_and_other_changes_do_not() -> None:
    export = export_of(F1)
    controller = Controller(export.text)
    record = {"time_limit": 60, "min_cpus": 8, "submit_time": NOW - 5000, "site_factor": 0}
    wanted = pytest.approx(expected(export, 3600, 8, NOW - 5000), abs=1)
    assert controller.modify(record, nice=2**31).site_factor == wanted
    assert controller.modify(record, uid=1000, nice=2**31 + 100).site_factor == wanted
    assert controller.modify(record | {"site_factor": 7}, nice=2**31).site_factor == wanted
    record["time_limit"] = NO_VAL
    wanted = pytest.approx(expected(export, 86_400, 8, NOW - 5000), abs=1)
    assert controller.modify(record, partition="day").site_factor == wanted
    for field in ("comment", "name", "account"):
        assert controller.modify(record, **{field: "x"}).site_factor == NO_VAL


ASKS = Policy("asks", "p*mem + 1e6*n + 1e7*g")


@pytest.mark.parametrize("target", FIELD)
@pytest.mark.parametrize("version", LUAS)
@pytest.mark.parametrize(
    ("fields", "n", "mem", "g"),
    [
        ({}, 1, 0, 0),
        ({"min_nodes": 3, "min_mem_per_node": 4000}, 3, 12_000, 0),
        ({"min_cpus": 16, "min_mem_per_cpu": 500}, 1, 8000, 0),
        ({"min_cpus": 16, "partition": "fat"}, 1, 16_000, 0),
        ({"min_nodes": 2, "partition": "wide"}, 2, 128_000, 0),
        ({"tres_per_job": "gres:gpu:3"}, 1, 0, 3),
        ({"min_nodes": 2, "tres_per_node": "gres:gpu:a100:2,gres:gpu:1"}, 2, 0, 6),
        ({"num_tasks": 4, "tres_per_task": "gres/gpu:1"}, 1, 0, 4),
        ({"tres_per_node": "gres:gpu"}, 1, 0, 1),
        ({"tres_per_node": "gpu:2,license:7,gres:gputype:9"}, 1, 0, 2),
        ({"tres_per_node": 7, "min_mem_per_cpu": 2.0**60}, 1, 0, 0),
        ({"tres_per_job": "gres:gpu:4", "mem_per_tres": "gres:gpu:100", "partition": "fat"}, 1, 400, 4),
        ({"min_nodes": 2, "tres_per_node": "gres/gpu:2", "mem_per_tres": "gres/gpu:100"}, 2, 400, 4),
        ({"tres_per_socket": "gres:gpu:1", "sockets_per_node": 2, "min_nodes": 2}, 2, 0, 4),
        ({"num_tasks": 1, "tres_per_job": "gres:gpu:4", "mem_per_tres": "gres:gpu:1", "min_mem_per_node": 9}, 1, 9, 4),
    ],
)
def test_what_a_job_asks_for_is_found_in_slurms_fields(
    fields: dict[str, Any], n: int, mem: int, g: int, version: str, target: str
) -> None:
    export = export_of(ASKS, target)
    controller = Controller(export.text, version)
    more = {"fat": {"def_mem_per_cpu": 1000}, "wide": {"def_mem_per_node": 64_000}}
    for name, part in more.items():
        controller.parts[name] = controller.table(part | {"default_time": 45, "flag_default": 0})
    job = controller.submit(time_limit=10, **fields)
    assert export.scale is not None
    score = ASKS.scores([600], [1], [0], asked=[[n], [mem], [g]])
    assert job[FIELD[target]] == export.scale.integers(score)[0]
    assert not controller.errors


def test_a_change_of_memory_or_gpus_scores_again() -> None:
    export = export_of(ASKS)
    assert export.scale is not None
    controller = Controller(export.text)
    record = {"time_limit": 10, "min_cpus": 4, "min_nodes": 2, "min_mem_per_node": 1000, "tres_per_node": "gres:gpu:1"}
    for fields, mem, g in (
        ({"min_mem_per_cpu": 300}, 1200, 2),
        ({"min_mem_per_node": 700}, 1400, 2),
        ({"tres_per_job": "gres:gpu:5"}, 2000, 5),
        ({"time_limit": 10}, 2000, 2),
    ):
        job = controller.modify(record, **fields)
        assert job["site_factor"] == export.scale.integers(ASKS.scores([600], [4], [0], asked=[[2], [mem], [g]]))[0]
    assert controller.modify(record)["site_factor"] == NO_VAL
    # Without them in the formula nothing of that is in the script.
    assert "requested_memory" not in export_of(F1).text
    assert "DefMemPerNode" in export.text


# As sbatch of 22.05.8, sbatch of 24.11.5 and slurmrestd send them, and the processors that sacct has of the job then.
BY_GPU_AND_TASK = [
    ({"tres_per_job": "gres:gpu:4", "cpus_per_tres": "gres:gpu:8"}, 32),
    ({"tres_per_job": "gres/gpu:4", "cpus_per_tres": "gres/gpu:8", "min_cpus": 32}, 32),
    ({"tres_per_node": "gres:gpu:2", "cpus_per_tres": "gres:gpu:3", "min_nodes": 2, "min_cpus": 2}, 12),
    ({"tres_per_task": "gres:gpu:1", "cpus_per_tres": "gres:gpu:3", "num_tasks": 4, "min_cpus": 4}, 12),
    ({"tres_per_task": "gres/gpu=2", "tres_per_job": "gres/gpu:4", "num_tasks": 2, "cpus_per_task": 6}, 12),
    ({"tres_per_socket": "gres:gpu:1", "sockets_per_node": 2, "min_nodes": 2, "cpus_per_tres": "gres:gpu:2"}, 8),
    ({"tres_per_job": "gres:gpu:a100:2", "cpus_per_tres": "gres:gpu:2", "num_tasks": 8, "min_cpus": 8}, 8),
    ({"tres_per_job": "gres:gpu:3", "ntasks_per_tres": 2}, 6),
    ({"tres_per_job": "gres:gpu:2", "ntasks_per_tres": 2, "cpus_per_task": 2, "pn_min_cpus": 2, "min_cpus": 2}, 8),
    ({"ntasks_per_tres": 2, "num_tasks": 4, "cpus_per_tres": "gres:gpu:5"}, 10),
    ({"ntasks_per_node": 16, "min_nodes": 2, "min_cpus": NO_VAL}, 32),
    ({"ntasks_per_node": 2, "min_nodes": 2, "min_cpus": 1, "cpus_per_task": 3}, 12),
    ({"ntasks_per_node": 4}, 4),
    ({"cpus_per_tres": "gres:gpu:8"}, 1),
    ({"cpus_per_tres": 7, "tres_per_job": 7, "ntasks_per_tres": NO_VAL16}, 1),
]  # fmt: skip


@pytest.mark.parametrize("target", FIELD)
@pytest.mark.parametrize("version", LUAS)
@pytest.mark.parametrize(("fields", "q"), BY_GPU_AND_TASK)
def test_processors_by_gpu_and_by_task_are_found(fields: dict[str, Any], q: int, version: str, target: str) -> None:
    export = export_of(F1, target)
    controller = Controller(export.text, version)
    assert controller.submit(time_limit=10, **fields)[FIELD[target]] == expected(export, 600, q)
    assert not controller.errors


def test_a_change_keeps_what_was_asked_for_by_gpu() -> None:
    export = export_of(F1)
    controller = Controller(export.text)
    by_job = {"time_limit": 10, "min_cpus": 1, "tres_per_job": "gres:gpu:4", "cpus_per_tres": "gres:gpu:8"}
    assert controller.modify(by_job, nice=0)["site_factor"] == expected(export, 600, 32)
    assert controller.modify(by_job, cpus_per_tres="gres:gpu:2")["site_factor"] == expected(export, 600, 8)
    assert controller.modify(by_job, tres_per_job="gres:gpu:1")["site_factor"] == expected(export, 600, 8)
    # The tasks are not in the record; the GPUs that slurmctld counted are.
    by_task = {"time_limit": 10, "min_cpus": 4, "tres_per_task": "gres:gpu:1", "cpus_per_tres": "gres:gpu:3"}
    counted = {"tres_fmt_req_str": "cpu=4,mem=80M,node=1,billing=4,gres/gpu=4"}
    assert controller.modify(by_task | counted, nice=0)["site_factor"] == expected(export, 600, 12)
    assert not controller.errors


def test_defaults_by_gpu_are_those_that_an_administrator_fills_in() -> None:
    export = export_of(F1)
    tables = "CPUS_PER_GPU, MB_PER_GPU = {}, {}"
    assert tables in export.text
    controller = Controller(export.text.replace(tables, 'CPUS_PER_GPU, MB_PER_GPU = {day = 8, [""] = 4}, {}'))
    gpus = {"time_limit": 10, "tres_per_job": "gres:gpu:3"}
    for fields, q in (
        (gpus, 12),
        (gpus | {"partition": "day"}, 24),
        (gpus | {"cpus_per_tres": "gres:gpu:2"}, 6),
        (gpus | {"cpus_per_task": 5, "pn_min_cpus": 5, "min_cpus": 5}, 5),
        ({"time_limit": 10, "min_cpus": 2}, 2),
    ):
        assert controller.submit(**fields)["site_factor"] == expected(export, 600, q)
        # slurmctld writes its default into the record when it first looks at the job, without "gres".
        record = fields | ({"cpus_per_tres": "gpu:4"} if fields == gpus else {})
        assert controller.modify({"min_cpus": 1} | record, nice=0)["site_factor"] == expected(export, 600, q)
    assert not controller.errors
