"""The exports for Grid Engine, without a Grid Engine: the verifier is driven as the qmaster drives it."""

from __future__ import annotations

import dataclasses
import functools
import os
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from naive.exports import POLICIES
from naive.hostile import TEXTS, hostile_model
from policyfactory.core.errors import ExportError
from policyfactory.exports.content import Export, ExportSite
from policyfactory.exports.perl import gridengine as make
from policyfactory.exports.perl import urgencies
from policyfactory.exports.queue import scores_of
from policyfactory.policy.policy import Epoch, Policy
from policyfactory.policy.store import CATALOGUE, Model, resolve_model
from refusals import refused
from schedulers.processes import require
from sites import make_queue, make_sample, make_site
from support import examples

# One of the policies has no finite score at all, and is refused for it.
STATIC = [policy for policy in POLICIES if "w" not in policy.variables and policy.name != "overflow"]
EPOCH = int(time.time()) - 86_400
F1 = dataclasses.replace(resolve_model("F1"), policy=dataclasses.replace(CATALOGUE["F1"], epoch=Epoch("fixed", EPOCH)))


def files(export: Export) -> dict[str, str]:
    return {file.name: file.text for file in export.files}


def verify(program: str, *jobs: dict[str, str]) -> list[list[str]]:
    """Return what the verifier answers to each job, as the qmaster asks: one process for all."""
    require("perl")
    lines = []
    for job in jobs:
        lines += ["START", "PARAM VERSION 1.0", "PARAM CONTEXT server", "PARAM CMDARGS 2", "PARAM CMDARG0 a b"]
        lines += [f"PARAM {name} {value}" for name, value in job.items()] + ["BEGIN"]
    done = subprocess.run(
        ["perl", "-e", 'my $f = shift; do $f; die $@ if $@', program],
        input="\n".join([*lines, "QUIT", "START", ""]), capture_output=True, text=True, check=True, timeout=600,
    )  # fmt: skip
    assert not done.stderr
    answers = done.stdout.split("STARTED\n")
    assert answers[0] == ""
    return [answer.rstrip("\n").split("\n") for answer in answers[1:]]


def requested(answer: list[str]) -> dict[str, str]:
    assert answer[-1] == "RESULT STATE CORRECT"
    (line,) = [line for line in answer if line.startswith("PARAM ")]
    parts = [part.partition("=") for part in line.removeprefix("PARAM l_hard").strip().split(",") if part]
    return {name: value for name, _, value in parts}


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("jsv") / "policyfactory_jsv.pl"
    path.write_text(files(make(F1, make_site()))[path.name])
    return str(path)


def test_every_job_is_given_its_whole_number_over_its_slots(program: str) -> None:
    queue = make_queue(200)
    export = make(F1, make_site())
    before = int(time.time())
    answers = verify(program, *[
        {"l_hard": f"mem_free=1G,h_rt={p},arch=lx-*"} | ({"pe_name": "mpi", "pe_min": f"{q}"} if q > 1 else {})
        for p, q in zip(queue.p.tolist(), queue.q.tolist(), strict=True)
    ])  # fmt: skip
    after = int(time.time())
    result = np.array([float(requested(answer)["pf_score"]) for answer in answers]) * queue.q
    assert export.priorities is not None
    bounds = [
        export.priorities(dataclasses.replace(queue, submit=np.full(len(queue), second))) for second in (before, after)
    ]
    # Later submissions have the higher score, so the lower number.
    assert (result <= bounds[0] + 1).all()
    assert (result >= bounds[1] - 1).all()
    assert np.allclose(result, np.round(result), atol=1e-5)
    assert [requested(answer)["arch"] for answer in answers] == ["lx-*"] * len(queue)


def test_scores_become_the_same_whole_numbers_as_in_python(program: str) -> None:
    scale = make(F1, make_site()).scale
    assert scale is not None
    rng = np.random.default_rng(1)
    scores = np.concatenate([
        rng.uniform(2 * scale.low - scale.high, 2 * scale.high - scale.low, 20_000),
        rng.standard_cauchy(5_000) * scale.high, [scale.low, scale.high, 0.0, 1e300, -1e300],
    ])  # fmt: skip
    functions = Path(program).read_text().split("# The protocol of")[0]
    text = f'{functions}\nprintf "%d\\n", pf_priority($_) for <DATA>, -$INFINITY, $INFINITY;\n__END__\n'
    done = subprocess.run(
        ["perl", "-"], input=text + "\n".join(map(repr, scores.tolist())), capture_output=True, text=True, check=True
    )
    result = np.array(done.stdout.split(), dtype=np.int64)
    expected = scale.integers([*scores, -np.inf, np.inf])
    # A number read from text may differ in its last digit.
    assert np.abs(result - expected).max() <= 1
    assert (result != expected).mean() < 0.01
    order = np.argsort([*scores, -np.inf, np.inf], kind="stable")
    assert (np.diff(result[order]) <= 0).all()


def test_a_job_keeps_its_other_requests_and_loses_a_score_of_its_own(program: str) -> None:
    jobs = [
        {"l_hard": "pf_score=1e18,h_rt=600"},
        {"l_hard": "h_rt=600,pf_score=1e18,mem_free=1G"},
        {"l_hard": "pf_score,h_rt=600"},
        {},
        {"l_hard": "pf_score=5"},
    ]
    one, two, three, none, only = (requested(answer) for answer in verify(program, *jobs))
    assert list(two) == ["h_rt", "mem_free", "pf_score"]
    assert list(one) == list(three) == ["h_rt", "pf_score"]
    assert list(none) == list(only) == ["pf_score"]
    assert float(one["pf_score"]) == pytest.approx(float(two["pf_score"]), abs=1e6)
    assert float(one["pf_score"]) > float(none["pf_score"]), "without a limit a job is a long one"


def test_limits_are_read_as_users_and_server_write_them(program: str) -> None:
    hour = ["h_rt=3600", "h_rt=1:0:0", "h_rt=60:00", "s_rt=3600", "h_rt=3600,s_rt=5"]
    none = ["h_rt=INFINITY", "h_rt=0", "h_rt=-5", "h_rt=1e9", f"h_rt={'9' * 40}", "h_rt=", "h_rt=1:2:3:4", "s_rt=x"]
    # F1 grows by the minute at most; an hour and two days differ by far more.
    known = [float(requested(a)["pf_score"]) for a in verify(program, *[{"l_hard": text} for text in hour])]
    unknown = [float(requested(a)["pf_score"]) for a in verify(program, *[{"l_hard": text} for text in [*none, ""]])]
    assert max(known) - min(known) < 0.02 * (min(known) - max(unknown)) or max(known) == min(known)
    assert min(known) > max(unknown)
    assert max(unknown) - min(unknown) < min(known) - max(unknown)


@examples(25)
@given(
    st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\n\r\x00"), max_size=30), min_size=1, max_size=4)
)
def test_whatever_a_user_asks_for_the_job_is_accepted(program: str, texts: list[str]) -> None:
    jobs = [{"l_hard": text, "pe_name": text, "pe_min": text, "N": text} for text in texts]
    for answer in verify(program, *jobs, {"l_hard": "h_rt=60"}):
        assert answer[-1] == "RESULT STATE CORRECT"
        assert "pf_score" in requested(answer)


def test_an_error_inside_lands_the_job_last_and_blocks_nothing(tmp_path: Path) -> None:
    text = files(make(F1, make_site()))["policyfactory_jsv.pl"]
    broken = tmp_path / "broken.pl"
    broken.write_text(text.replace("sub pf_priority {", "sub pf_priority {\n    die 'x';"))
    answers = verify(str(broken), {"l_hard": "h_rt=60,pf_score=9"}, {"l_hard": "pf_score=9"}, {})
    assert [answer[-1] for answer in answers] == ["RESULT STATE CORRECT"] * 3
    assert requested(answers[0]) == {"h_rt": "60"}
    assert requested(answers[1]) == {}, "without any request the parameter is deleted"
    assert not any(line.startswith("PARAM") for line in answers[2])
    assert all("LOG WARNING" in " ".join(answer) for answer in answers)


@pytest.mark.parametrize("policy", STATIC, ids=lambda policy: policy.name)
def test_every_static_policy_becomes_programs_that_compile(policy: Policy, tmp_path: Path) -> None:
    require("perl")
    from policyfactory.exports.expressible import prepare

    # From a date before the jobs of the queue.
    model = prepare(Model(policy), epoch=1_767_225_600, processors=64)
    export = make(model, make_site(500))
    for name, text in files(export).items():
        assert text.isascii()
        (tmp_path / name).write_text(text)
        check = ["perl", "-c"] if name.endswith(".pl") else ["sh", "-n"]
        done = subprocess.run([*check, tmp_path / name], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    # Whichever way it takes: the order of a queue is that of the formula, but for rounding.
    queue = make_queue(100)
    assert export.priorities is not None
    scores = scores_of(model.policy, queue)
    numbers = export.priorities(queue)[np.argsort(scores, kind="stable")]
    assert (np.diff(numbers) <= 1e-9 * np.abs(numbers).max()).all()


def test_formulas_that_urgencies_express_need_no_program() -> None:
    linear = {
        "SAF": (-1000.0, 0.0, 0.0),
        "FCFS": (0.0, 0.0, 1000.0),
        "SQF": (0.0, -1000.0, 0.0),
        "LQF": (0.0, 1000.0, 0.0),
        "LAF": (1000.0, 0.0, 0.0),
    }
    for name, (of_time, of_slots, waiting) in linear.items():
        result = urgencies(CATALOGUE[name])
        assert result is not None, name
        assert (result.time, result.slots, result.waiting) == (of_time, of_slots, waiting), name
        assert set(files(make(resolve_model(name), ExportSite()))) == {"apply.sh", "rollback.sh"}
    for name in ("SPF", "F1", "F4", "WFP3", "UNICEF", "LEXP", "LIN"):
        assert urgencies(CATALOGUE.get(name) or resolve_model(name).policy) is None, name


def test_urgencies_sort_a_queue_as_the_formula_does_whatever_the_epoch() -> None:
    queue = make_queue(500)
    for text in ("0.02*p*q - 3.5*q + 7*r", "q*(p + 5) - 1e-7*w", "3*r - p*q*1e-6", "q/7 - w/1e6 + p*q/3e5 + 12"):
        for epoch in (Epoch(), Epoch("fixed", EPOCH), Epoch("oldest-waiting")):
            policy = Policy("x", text, epoch=epoch)
            result = urgencies(policy)
            assert result is not None
            # No digit of the weight of the waiting time is lost in qconf's six decimals.
            assert float(result.changes()["WAITING"]) == pytest.approx(result.waiting, rel=1e-9)
            scores = policy.scores(queue.p, queue.q, queue.submit - 1_767_225_600, queue.now - queue.submit)
            numbers = result.priorities(queue)
            assert np.corrcoef(scores, numbers)[0, 1] == pytest.approx(-1.0, abs=1e-12)


def test_what_grid_engine_cannot_do_is_refused_with_the_cure() -> None:
    site = make_site(500)
    for policy, cure in [
        (CATALOGUE["WFP3"], "without"),
        (CATALOGUE["F1"], "--epoch"),
        (dataclasses.replace(CATALOGUE["F1"], epoch=Epoch("oldest-waiting")), "--epoch"),
        (Policy("m", "p*q/m + sqrt(p)"), "--processors"),
    ]:
        refused(ExportError, cure, make, Model(policy), site)


def test_what_the_export_leaves_out_is_said_in_the_file() -> None:
    late = dataclasses.replace(F1.policy, threshold=72_000.0)
    for model in (
        dataclasses.replace(F1, policy=late),
        Model(dataclasses.replace(CATALOGUE["SAF"], threshold=72_000.0)),
    ):
        export = make(model, make_site(500))
        assert any("threshold is left out" in sentence for sentence in export.limits)
        head = " ".join(line.strip("# ") for line in export.text.splitlines())
        for sentence in (*export.limits, *export.install, *export.rollback):
            assert " ".join(sentence.split()).removeprefix("$ ") in head.replace("  ", " ")


def test_the_same_export_has_the_same_bytes() -> None:
    assert files(make(F1, make_site())) == files(make(F1, make_site()))


def test_jobs_submitted_before_the_epoch_count_as_submitted_at_it(tmp_path: Path) -> None:
    tomorrow = int(time.time()) + 86_400
    export = make(Model(dataclasses.replace(F1.policy, epoch=Epoch("fixed", tomorrow))), make_site())
    path = tmp_path / "policyfactory_jsv.pl"
    path.write_text(files(export)[path.name])
    sizes = [(600, 1), (7200, 1), (600, 60)]
    jobs = [{"l_hard": f"h_rt={p}"} | ({"pe_name": "mpi", "pe_min": f"{q}"} if q > 1 else {}) for p, q in sizes]
    result = [float(requested(a)["pf_score"]) * q for a, (_, q) in zip(verify(str(path), *jobs), sizes, strict=True)]
    queue = make_queue(3, now=tomorrow - 5)
    queue = dataclasses.replace(queue, p=np.array([p for p, _ in sizes]), q=np.array([q for _, q in sizes]))
    assert export.priorities is not None
    assert result == pytest.approx(export.priorities(queue), abs=1)
    assert len(set(result)) == 3


# A qmaster of four files. What it does not show it can still set; a key in the file stuck it never changes.
_QCONF = r"""#!/bin/sh
cd "{folder}"
case $1 in
-sconf) cat configuration ;;
-sc) cat complexes ;;
-ssconf) cat scheduler ;;
-se) cat host ;;
-aattr) echo "complex_values $4" > host ;;
-dattr) echo "complex_values NONE" > host ;;
-Mc) to=complexes ;;
-Msconf) to=scheduler ;;
-Mconf) to=configuration ;;
esac
[ -n "$to" ] || exit 0
if grep -qx -e "${1#-}" stuck; then echo denied; exit 1; fi
cp "$to" old
awk 'FILENAME == "stuck" { stuck[$1]; next }
  FILENAME == "old" { old[$1] = $0; next }
  !($1 in stuck) { print; next }
  $1 in old { print old[$1] }' stuck old "$2" > "$to"
"""


class Master:
    """A folder with the files of an export beside a qconf that remembers."""

    def __init__(self, folder: Path, export: Export) -> None:
        require("perl")
        self.folder, self.here = folder, folder / "here"
        for name in ("bin", "here", "common"):
            (folder / name).mkdir()
        (folder / "bin/qconf").write_text(_QCONF.replace("{folder}", str(folder)))
        (folder / "bin/qstat").write_text("#!/bin/sh\n")
        self.write("configuration", "execd_spool_dir /x\njsv_url none\nloglevel log_warning\n")
        self.write("complexes", "#name\nslots s INT <= YES YES 1 1000.0\nh_rt h_rt TIME <= YES NO 0:0:0 0.000000\n")
        weights = ("weight_urgency 0.1", "weight_waiting_time 0", "weight_ticket 0.5", "weight_priority 1.0")
        self.write("scheduler", "\n".join(("algorithm default", *weights, "")))
        self.write("host", "complex_values NONE\n")
        self.write("stuck", "")
        (folder / "common/sge_request").write_text("-l h_rt=1:0:0\n")
        for program in (folder / "bin").iterdir():
            program.chmod(0o755)
        for file in export.files:
            (self.here / file.name).write_text(file.text)
            (self.here / file.name).chmod(0o755)
        self.before = self.state()

    def write(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text)

    def state(self) -> dict[str, set[str]]:
        names = ("configuration", "complexes", "scheduler", "host")
        return {
            name: {line for line in (self.folder / name).read_text().splitlines() if line[0] != "#"} for name in names
        }

    def run(self, script: str, code: int = 0) -> str:
        path = f"{self.folder}/bin:{os.environ['PATH']}"
        done = subprocess.run(
            [f"./{script}"], cwd=self.here, capture_output=True, text=True, check=False,
            env={"PATH": path, "SGE_ROOT": str(self.folder), "SGE_CELL": "."},
        )  # fmt: skip
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr


WAYS = ("verifier", "urgencies")


@functools.cache
def exported(way: str) -> Export:
    if way == "verifier":
        return make(F1, ExportSite(lambda: make_sample(200)))
    return make(resolve_model("SAF"), ExportSite())


@pytest.mark.parametrize("way", WAYS)
def test_the_scripts_change_the_configuration_and_change_it_back(tmp_path: Path, way: str) -> None:
    master = Master(tmp_path, exported(way))
    assert "applied" in master.run("apply.sh")
    assert {"weight_urgency 1", "weight_ticket 0", "weight_priority 0"} <= master.state()["scheduler"]
    url = f"jsv_url script:{tmp_path}/here/policyfactory_jsv.pl"
    assert (url in master.state()["configuration"]) == (way == "verifier")
    assert "applied" in master.run("apply.sh"), "again, after a new fit"
    assert "rolled back" in master.run("rollback.sh")
    assert master.state() == master.before
    assert "rolled back already" in master.run("rollback.sh", code=1)


def test_a_key_that_is_not_shown_is_set_all_the_same(tmp_path: Path) -> None:
    master = Master(tmp_path, exported("verifier"))
    master.write("configuration", "execd_spool_dir /x\n")
    assert "applied" in master.run("apply.sh")
    assert f"jsv_url script:{tmp_path}/here/policyfactory_jsv.pl" in master.state()["configuration"]
    master.run("rollback.sh")
    assert master.state()["configuration"] == {"execd_spool_dir /x", "jsv_url none"}


@pytest.mark.parametrize("stuck", ["jsv_url", "weight_ticket", "slots", "-Msconf", "-Mc", "-Mconf"])
def test_a_change_that_did_not_come_about_is_said_with_the_way_back(tmp_path: Path, stuck: str) -> None:
    master = Master(tmp_path, exported("verifier"))
    master.write("stuck", stuck.removeprefix("-"))
    said = master.run("apply.sh", code=1)
    assert "applied" not in said
    assert "./rollback.sh" in said
    assert "denied" in said or f"{stuck} is '" in said
    master.write("stuck", "")
    assert "rolled back" in master.run("rollback.sh")
    assert master.state() == master.before


def test_nothing_of_a_way_back_is_said_before_anything_changed(tmp_path: Path) -> None:
    master = Master(tmp_path, exported("verifier"))
    master.write("configuration", "jsv_url script:/site/own.pl\n")
    said = master.run("apply.sh", code=1)
    assert "jsv_url is script:/site/own.pl already" in said
    assert "./rollback.sh" not in said


@pytest.mark.parametrize("way", WAYS)
def test_a_rollback_leaves_a_verifier_of_the_site_in_place(tmp_path: Path, way: str) -> None:
    master = Master(tmp_path, exported(way))
    master.run("apply.sh")
    master.write("configuration", "execd_spool_dir /x\njsv_url script:/site/own.pl\nloglevel log_warning\n")
    said = master.run("rollback.sh")
    assert ("script:/site/own.pl, not the verifier of this folder, and stays" in said) == (way == "verifier")
    assert "jsv_url script:/site/own.pl" in master.state()["configuration"]
    assert master.state()["scheduler"] == master.before["scheduler"]


@examples(40)
@given(TEXTS)
def test_texts_of_a_stranger_stay_in_the_comment(words: str) -> None:
    sample = ExportSite(lambda: make_sample(200))
    hostile, benign = ({}, {})
    for kept, text in ((hostile, words), (benign, "x")):
        for policy in (F1.policy, CATALOGUE["SAF"]):
            for name, content in files(make(hostile_model(policy, text), sample)).items():
                kept[policy.name, name] = [line for line in content.split("\n") if not line.startswith("#")]
    assert hostile == benign


def test_marks_of_the_scripts_in_a_text_stay_as_they_are(tmp_path: Path) -> None:
    for model in (F1, resolve_model("SAF")):
        words = "x @JSV@ @RESOURCE@ $(touch broken_out)"
        for name, text in files(make(hostile_model(model.policy, words), make_site(200))).items():
            assert words in text.splitlines()[1] + text.splitlines()[2], name
            (tmp_path / name).write_text(text)
            check = ["perl", "-c"] if name.endswith(".pl") else ["sh", "-n"]
            assert subprocess.run([*check, name], cwd=tmp_path, capture_output=True, check=False).returncode == 0
    assert not (tmp_path / "broken_out").exists()
