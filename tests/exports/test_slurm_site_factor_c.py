"""The header of the C plugin computes the numbers that Python says; no Slurm is needed for it."""

from __future__ import annotations

import ctypes
import dataclasses
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from naive.exports import JOBS, POLICIES, compiler, expected
from policyfactory.core.errors import ExportError
from policyfactory.exports.content import TARGETS
from policyfactory.exports.expressible import prepare
from policyfactory.exports.queue import Queue
from policyfactory.exports.scripts import parts
from policyfactory.exports.slurm.site_factor_c import HIGHEST, make, policy_header
from policyfactory.policy.policy import Epoch, Policy
from policyfactory.policy.scale import LARGEST, PriorityScale
from policyfactory.policy.store import CATALOGUE, Model
from refusals import refused
from sites import make_queue, make_site

EPOCH = Epoch("fixed", 1_767_225_600)
F1 = dataclasses.replace(CATALOGUE["F1"], epoch=EPOCH)
STRICT = ("-std=c99", "-O2", "-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Werror", "-ffp-contract=off", "-fPIC")
# What a job is and both times, as the plugin hands them over.
WRAPPER = """
double {name}(double p, double q, double submit, double waited, double origin, double latest, double n, double mem,
              double g);
double {name}(double p, double q, double submit, double waited, double origin, double latest, double n, double mem,
              double g)
{{
    const policy_job_t job = {{p, q, submit, waited, n, mem, g}};
    return policy_priority(&policy_settings, &job, origin, latest);
}}
"""
NOTHING = (1.0, 0.0, 0.0)  # n, mem and g of a job that asks for nothing else
ASKING = [
    Policy("asks", "p*mem + 1e6*n + 1e7*g"),
    Policy("each", "log10(mem)*q/n + sqrt(g)*w - max(n, g, mem/2000)"),
    Policy("memory", "p*mem/n"),
]


def library(folder: Path, headers: list[str]) -> list[ctypes._NamedFuncPointer]:
    """Return a function for each header, by the compiler at its strictest."""
    files = []
    for number, header in enumerate(headers):
        files.append(folder / f"{number}.c")
        files[-1].write_text(header + WRAPPER.format(name=f"priority_{number}"))
    subprocess.run([compiler(), *STRICT, "-shared", "-o", folder / "all.so", *files, "-lm"], check=True)
    loaded = ctypes.CDLL(str(folder / "all.so"))
    functions = [getattr(loaded, f"priority_{number}") for number in range(len(headers))]
    for function in functions:
        function.restype, function.argtypes = ctypes.c_double, [ctypes.c_double] * 9
    return functions


@pytest.mark.slow
def test_every_formula_gives_the_numbers_of_python(tmp_path: Path) -> None:
    site = make_site(processors=int(JOBS[0]["m"]))
    scales = []
    policies = [*POLICIES, *ASKING]
    for policy in policies:
        finite = expected(policy)[np.isfinite(expected(policy))]
        # Half of the jobs are outside the range.
        scales.append(
            PriorityScale(*np.quantile(finite, [0.25, 0.75]).tolist()) if np.ptp(finite) else PriorityScale(0.0, 1.0)
        )
    models = [prepare(Model(policy), processors=site.processors) for policy in policies]
    headers = [policy_header(model, site, scale) for model, scale in zip(models, scales, strict=True)]
    for policy, scale, function in zip(policies, scales, library(tmp_path, headers), strict=True):
        # r is at least 1 s in production.
        late = [place for place, job in enumerate(JOBS) if job["r"] >= 1]
        jobs = [JOBS[place] for place in late]
        result = [
            function(job["p"], job["q"], job["r"] + 1000.0, job["w"], 1000.0, 2000.0, job["n"], job["mem"], job["g"])
            for job in jobs
        ]
        assert result == scale.integers(expected(policy)[late]).tolist(), policy.name


def rated(function: ctypes._NamedFuncPointer, queue: Queue, origin: int) -> list[float]:
    rows = zip(queue.p, queue.q, queue.submit, queue.now - queue.submit, strict=True)
    return [function(*map(float, row), float(origin), float(queue.now), *NOTHING) for row in rows]


def test_overdue_jobs_are_above_all_others_in_submit_order(tmp_path: Path) -> None:
    policy = dataclasses.replace(F1, threshold=6 * 3600.0)
    export = make(Model(policy), make_site())
    queue = make_queue(300)
    (function,) = library(tmp_path, [export.files[1].text])
    result = rated(function, queue, EPOCH.unix_time or 0)
    assert export.priorities is not None
    assert result == export.priorities(queue).tolist()
    late = queue.now - queue.submit > policy.threshold
    assert 0 < late.sum() < len(queue)
    assert min(np.array(result)[late]) > LARGEST >= max(np.array(result)[~late])
    # The queue is in submit order.
    assert (np.diff(np.array(result)[late]) <= 0).all()
    assert max(result) <= HIGHEST


def test_a_wait_of_a_life_does_not_leave_the_range(tmp_path: Path) -> None:
    policy = dataclasses.replace(F1, threshold=0.0)
    (function,) = library(tmp_path, [make(Model(policy), make_site()).files[1].text])
    assert function(60.0, 1.0, 0.0, 2e9, 0.0, 2e9, *NOTHING) == HIGHEST
    # A job may be submitted after the last calculation for all, and already be overdue.
    assert function(60.0, 1.0, 2e9 + 5, 1.0, 0.0, 2e9, *NOTHING) == LARGEST
    # Exactly the threshold is not longer than the threshold.
    assert function(60.0, 1.0, 2e9, 0.0, 0.0, 2e9, *NOTHING) < LARGEST


def test_r_may_count_from_the_oldest_waiting_job(tmp_path: Path) -> None:
    policy = dataclasses.replace(CATALOGUE["F1"], epoch=Epoch("oldest-waiting"))
    export = make(Model(policy), make_site())
    assert "#define POLICY_COUNTS_FROM_OLDEST 1" in export.files[1].text
    assert "PriorityCalcPeriod=1" in export.settings
    queue = make_queue(100)
    (function,) = library(tmp_path, [export.files[1].text])
    assert export.priorities is not None
    assert rated(function, queue, int(queue.submit.min())) == export.priorities(queue).tolist()


def test_log_only_changes_neither_order_nor_backfilling() -> None:
    export = make(Model(CATALOGUE["WFP3"]), dataclasses.replace(make_site(), log_only=True))
    assert export.settings[1:] == ("PrioritySiteFactorPlugin=site_factor/policyfactory",)
    assert "bf_job_part_count_reserve" not in "".join(file.text for file in export.files)
    assert any("bf_job_part_count_reserve" in text for text in make(Model(F1), make_site()).install)


def test_a_missing_value_or_none_lands_last(tmp_path: Path) -> None:
    export = make(Model(F1), make_site())
    (function,) = library(tmp_path, [export.files[1].text])
    origin = float(EPOCH.unix_time or 0)
    last = function(float("nan"), 1.0, origin + 10, 0.0, origin, origin, *NOTHING)
    assert last == 1
    assert function(60.0, float("nan"), origin + 10, 0.0, origin, origin, *NOTHING) == 1
    # A job submitted before the epoch counts as submitted at it.
    first = function(60.0, 1.0, origin + 1, 0.0, origin, origin, *NOTHING)
    assert function(60.0, 1.0, origin - 10, 0.0, origin, origin, *NOTHING) == first
    assert function(60.0, 1.0, origin, 0.0, origin, origin, *NOTHING) == first
    assert function(60.0, 1.0, origin + 10, 0.0, origin, origin, *NOTHING) > last


def test_a_static_policy_needs_no_period_and_a_window_start_is_refused() -> None:
    assert "PriorityCalcPeriod=1" not in make(Model(F1), make_site()).settings
    assert "PriorityCalcPeriod=1" in make(Model(CATALOGUE["WFP3"]), make_site()).settings
    refused(ExportError, "--epoch 2026-01-01", make, Model(CATALOGUE["F1"]), make_site())
    refused(ExportError, "--processors", make, Model(Policy("share", "p*q/m")), make_site())


def test_names_and_words_of_strangers_stay_in_comments(tmp_path: Path) -> None:
    hostile = '*/ int main(void) { return 1; } /* ??/\n#error "x" \\'.replace("\n", " ")
    policy = Policy(hostile, "p*q", hostile, hostile)
    header = make(Model(policy, provenance={"command": f"{hostile}\n{hostile}"}), make_site()).files[1].text
    (function,) = library(tmp_path, [header])
    assert function(60.0, 1.0, 0.0, 0.0, 0.0, 0.0, *NOTHING) > 1
    assert '#define POLICY_NAME "int_main' in header


def gpus_of(folder: Path, header: str, text: str | None) -> float:
    """Return what the header finds in a field of Slurm."""
    source = (
        header
        + """
double gpus(const char *text);
double gpus(const char *text) { return policy_gpus(text) + 0.0 * policy_settings.epoch; }
"""
    )
    done = folder / "gpus.so"
    if not done.exists():
        (folder / "gpus.c").write_text(source)
        strict = [*STRICT, "-Wno-unused-function"]
        subprocess.run([compiler(), *strict, "-shared", "-o", done, folder / "gpus.c", "-lm"], check=True)
    function = ctypes.CDLL(str(done)).gpus
    function.restype, function.argtypes = ctypes.c_double, [ctypes.c_char_p]
    return float(function(None if text is None else text.encode()))


@pytest.mark.parametrize(
    ("text", "gpus"),
    [
        (None, 0),
        ("", 0),
        (",", 0),
        ("gres:gpu:3", 3),
        ("gres:gpu:a100:2,gres:gpu:1", 3),
        ("gres/gpu:1", 1),
        ("gres/gpu=12", 12),
        ("gres:gpu", 1),
        ("gres:gpu:a100", 1),
        ("gpu:2,license:7,gres:gputype:9", 2),
        ("gpu7,gpu:,gpu:x7,:gpu:7,gres:,gres:gpu:0", 2),
    ],
)
def test_gpus_are_found_in_slurms_fields_as_by_the_script(
    tmp_path_factory: pytest.TempPathFactory, text: str | None, gpus: int
) -> None:
    header = make(Model(ASKING[0]), make_site()).files[1].text
    assert gpus_of(tmp_path_factory.getbasetemp(), header, text) == gpus
    # The same of job_submit.lua, a field of which is nil where nothing is asked for.
    if text is not None and shutil.which("lua5.1"):
        start = parts("job_submit.lua")["start"]
        script = start[start.index("local function gpus_in") : start.index("-- n: the nodes")].removeprefix("local ")
        lua = ["lua5.1", "-e", f"{script}\nio.write(gpus_in({text!r}))"]
        assert float(subprocess.run(lua, capture_output=True, text=True, check=True).stdout) == gpus


def test_what_a_policy_asks_for_is_looked_for_and_said() -> None:
    export = make(Model(ASKING[0]), make_site())
    assert "#define POLICY_ASKS 1" in export.files[1].text
    # A list of waiting jobs has no memory: there is nothing to compare with.
    assert export.priorities is None
    limits = " ".join(export.limits)
    for words in ("--mem-per-cpu times the processors", "else those of slurm.conf", "--gpus-per-task times the tasks"):
        assert words in limits
    assert "are not looked at" not in limits
    plain = make(Model(F1), make_site())
    assert "#define POLICY_ASKS 0" in plain.files[1].text
    assert any("memory and GPUs are not looked at" in text for text in plain.limits)


def test_fast_mathematics_are_refused(tmp_path: Path) -> None:
    (tmp_path / "x.c").write_text(make(Model(F1), make_site()).files[1].text)
    command = [compiler(), "-ffast-math", "-c", "x.c"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode
    assert "compile without -ffast-math" in done.stderr


def test_the_files_say_how_to_build_load_and_remove_the_plugin() -> None:
    export = TARGETS["slurm-site-factor-c"].make(Model(F1), make_site())
    assert [file.name for file in export.files] == ["site_factor_policyfactory.c", "policy.h", "Makefile", "README.md"]
    readme = export.files[-1].text
    for words in (*export.settings, *export.limits, "  make SLURM_SOURCE=", "  sudo make install", "SiteFactor=0"):
        assert words in readme
    assert "SPDX: GPL-2.0-or-later" in readme
    licences = [re.search(r"SPDX-License-Identifier: (.+)", file.text) for file in export.files[:-1]]
    assert [found.group(1) if found else None for found in licences] == [
        "GPL-2.0-or-later",
        "Apache-2.0 OR GPL-2.0-or-later",
        "GPL-2.0-or-later",
    ]
    assert export.files == TARGETS["slurm-site-factor-c"].make(Model(F1), make_site()).files


def test_the_makefile_refuses_what_is_no_source_or_another_version(tmp_path: Path) -> None:
    export = make(Model(F1), make_site())
    for file in export.files:
        (tmp_path / file.name).write_text(file.text)
    compiler()

    def build(source: str) -> str:
        command = ["make", f"SLURM_SOURCE={source}", "SLURMCTLD=./slurmctld"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode
        return done.stderr

    (tmp_path / "slurmctld").write_text("#!/bin/sh\necho slurm 23.11.4\n")
    (tmp_path / "slurmctld").chmod(0o755)
    assert "is no source of Slurm" in build("")
    (tmp_path / "source").mkdir()
    (tmp_path / "source/META").write_text("  Name:\tslurm\n  Version:\t22.05.8\n")
    assert "the source is Slurm 22.05.8 but ./slurmctld is 23.11.4" in build("source")
