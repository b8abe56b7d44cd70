"""What all targets have in common: the registry, the header, the instructions, what a target cannot express."""

from __future__ import annotations

import dataclasses
import subprocess
import sys

import pytest

from policyfactory.core.errors import ExportError, UsageError
from policyfactory.exports.content import TARGETS, Export, ExportSite, header, identifier, instructions
from policyfactory.exports.export import export
from policyfactory.exports.expressible import fixed_epoch, keeps_threshold, left_out, static_only, unexpressed
from policyfactory.exports.sample import learn_scale
from policyfactory.policy.policy import Epoch, Policy
from policyfactory.policy.store import CATALOGUE, Model
from refusals import refused
from sites import make_queue, make_site

F1 = dataclasses.replace(CATALOGUE["F1"], epoch=Epoch("fixed", 1_767_225_600))
# Without r and w and of any coefficients: every target takes it.
PLAIN = Policy("plain", "0.5*q", epoch=Epoch("fixed", 1_767_225_600))


def test_names_of_the_targets() -> None:
    assert list(TARGETS) == [
        "slurm-site-factor-lua", "slurm-priority-lua", "slurm-nice", "slurm-weights", "slurm-site-factor-c",
        "gridengine", "oar", "pbs", "python", "c", "lua", "latex", "json",
    ]  # fmt: skip
    assert [target.name for target in TARGETS.values()] == list(TARGETS)
    assert all(target.description for target in TARGETS.values())


def test_a_target_is_imported_when_it_is_asked_for() -> None:
    code = (
        "import sys; from policyfactory.exports.content import TARGETS\n"
        "heavy = {'numba', 'sympy', 'policyfactory.exports.languages', 'policyfactory.exports.pbs'}\n"
        "assert 'lua' in TARGETS and 'perl' not in TARGETS and len(TARGETS) == 13\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
        "from policyfactory.exports.content import ExportSite\n"
        "from policyfactory.policy.policy import Policy\n"
        "from policyfactory.policy.store import Model\n"
        "TARGETS['lua'].make(Model(Policy('x', 'p*q')), ExportSite())\n"
        "assert 'policyfactory.exports.languages' in sys.modules\n"
        "assert 'policyfactory.exports.pbs' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_an_unknown_name_is_refused_with_those_that_are_known() -> None:
    refused(UsageError, "perl slurm-site-factor-lua", export, PLAIN, "perl")


@pytest.mark.parametrize("name", TARGETS)
def test_every_target_says_what_it_made(name: str) -> None:
    made = TARGETS[name].make(Model(PLAIN), make_site(200, processors=64))
    assert isinstance(made, Export)
    assert made.text == made.files[0].text
    assert all(file.text.endswith("\n") and "/" not in file.name for file in made.files)
    assert len({file.name for file in made.files}) == len(made.files)
    scheduler = name in set(TARGETS) - {"python", "c", "lua", "latex", "json"}
    assert bool(made.install and made.rollback and made.limits) == scheduler
    if scheduler:
        # What must be done cannot get lost: it stands in the file as well.
        shown = "\n".join(file.text for file in made.files)
        for settings in made.settings:
            assert settings.split("=", 1)[-1] in shown
    if made.priorities is not None:
        queue = make_queue(20)
        numbers = made.priorities(queue)
        assert numbers.shape == (20,)
        assert (numbers[queue.q.argmin()] >= numbers).all()


@pytest.mark.parametrize("name", TARGETS)
def test_the_same_site_gives_the_same_bytes(name: str) -> None:
    first, second = (TARGETS[name].make(Model(PLAIN), make_site(200, processors=64)) for _ in range(2))
    assert first.files == second.files


def test_the_header_says_how_and_from_what() -> None:
    site = dataclasses.replace(make_site(300), command="policyfactory export F1", model="f1.json, SHA-256 abc")
    lines = header(Model(F1), site, "test", learn_scale(F1, site.sample))
    assert lines[0] == f"Policy F1: {F1.description}"
    assert "Command: policyfactory export F1" in lines
    assert "Model: f1.json, SHA-256 abc" in lines
    assert "Range learnt from: 300 random jobs of the tests" in lines
    (scores,) = (line for line in lines if line.startswith("Scores from "))
    assert scores.endswith("become whole numbers up to 2000000000, higher first.")
    assert "r is at least 1 s: a job submitted before the epoch counts as submitted at it." in lines
    assert "Epoch: r counts from Unix time 1767225600 (2026-01-01 00:00:00 UTC)." in lines
    plain = header(Model(F1), ExportSite(), "test")
    assert not [line for line in plain if line.startswith(("Command:", "Model:", "Range", "Scores from"))]


def test_a_hostile_command_stays_in_its_line() -> None:
    site = ExportSite(command="x\n*/ ]] \\", model="é\n")
    hostile = Export((), ("a\nb",), ("*/",), ("$ x\ny",), ("\u2028",))
    for line in header(Model(F1), site, "test") + instructions(hostile):
        assert line.isascii()
        assert line.isprintable()
        assert "*/" not in line
        assert "\\" not in line


def test_instructions_are_folded_but_commands_are_not() -> None:
    command = "$ scontrol " + "x " * 100
    lines = instructions(Export((), ("Key=Value",), ("Do this.", command), limits=("word " * 60,)))
    assert lines[:6] == ["", "Settings:", "  Key=Value", "", "Install:", "  - Do this."]
    assert lines[6] == f"  {command}"
    assert lines[7:9] == ["", "Limits:"]
    assert len(lines) > 10
    assert all(len(line) <= 112 for line in lines[9:])
    assert " ".join(" ".join(lines[9:]).split()) == "- " + " ".join(["word"] * 60)
    assert instructions(Export()) == []


def test_from_when_r_counts_or_why_not() -> None:
    assert fixed_epoch(F1, "Slurm") == 1_767_225_600
    assert fixed_epoch(CATALOGUE["SAF"], "Slurm") is None
    refused(ExportError, "r window --epoch", fixed_epoch, CATALOGUE["F1"], "Slurm")
    refused(
        ExportError, "Slurm fixed --epoch", fixed_epoch, dataclasses.replace(F1, epoch=Epoch("oldest-waiting")), "Slurm"
    )


def test_a_policy_that_changes_while_a_job_waits() -> None:
    static_only(F1, "slurm-nice")
    refused(ExportError, "--to slurm-site-factor-c", static_only, CATALOGUE["WFP3"], "slurm-nice")


@pytest.mark.parametrize("name", TARGETS)
def test_only_texts_take_a_formula_with_free_processors(name: str) -> None:
    policy = Policy("fits", "q - f/m*q", epoch=F1.epoch)
    if name in {"json", "latex"}:
        assert TARGETS[name].make(Model(policy), make_site()).files
        return
    refused(ExportError, f"fits f {name}", TARGETS[name].make, Model(policy), make_site(processors=64))


@pytest.mark.parametrize("name", [name for name, target in TARGETS.items() if not target.predictions])
def test_a_formula_with_predictions_is_refused_by_schedulers_that_have_none(name: str) -> None:
    policy = Policy("index", "-ln(s) + ln(e) + 0.4*ln(q)")
    refused(ExportError, f"index e s {name} python c lua", TARGETS[name].make, Model(policy), make_site(processors=64))


def test_which_targets_take_predictions() -> None:
    assert [name for name, target in TARGETS.items() if target.predictions] == [
        "slurm-site-factor-lua", "python", "c", "lua", "latex", "json",
    ]  # fmt: skip


def test_what_is_left_out_is_said() -> None:
    policy = dataclasses.replace(CATALOGUE["WFP3"], threshold=7200.0)
    threshold, waiting = unexpressed(policy)
    assert "waited longer than 2h do not go first" in threshold
    assert "with w = 0" in waiting
    moving = dataclasses.replace(F1, epoch=Epoch("oldest-waiting"))
    assert unexpressed(moving) == ("The policy counts r from the job that has waited longest; here it cannot.",)
    assert unexpressed(policy, can_threshold=True, can_wait=True) == ()
    assert unexpressed(moving, can_oldest_waiting=True) == ()
    assert unexpressed(F1) == ()


def test_what_of_the_policy_is_lost_is_distinguished_from_the_rest() -> None:
    policy = dataclasses.replace(F1, threshold=7200.0)
    limits = ("It is slow.", *unexpressed(policy), "NOT exact: the formula is not linear.", "NOTHING else.")
    assert left_out(policy, limits) == limits[1:3]
    assert not keeps_threshold(policy, limits)
    assert keeps_threshold(policy, limits[2:])
    assert left_out(CATALOGUE["F1"], TARGETS["c"].make(Model(CATALOGUE["F1"]), ExportSite()).limits)[0].startswith(
        "r counts"
    )


@pytest.mark.parametrize("name", ["slurm-site-factor-lua", "slurm-priority-lua", "slurm-site-factor-c", "gridengine"])
def test_a_target_with_whole_numbers_keeps_to_the_weight(name: str) -> None:
    made = TARGETS[name].make(Model(F1), dataclasses.replace(make_site(200, processors=64), weight=100_000))
    assert made.scale is not None
    assert made.scale.largest == 100_000
    assert made.priorities is not None
    numbers = made.priorities(make_queue(50))
    assert 1 <= numbers.min() < numbers.max() <= 100_000
    assert any("up to 100000, higher first" in file.text for file in made.files)


WORST = "\n*/ ??/ ]] --[[ ''' \" ` $(id) \\ END_OF_HOOK \u2028 \x1b[2J é #"


@pytest.mark.parametrize("name", [name for name in TARGETS if name not in {"json", "latex", "python", "lua", "c"}])
def test_a_strangers_texts_stay_in_comments(name: str) -> None:
    """The files of a model whose texts passed no check have the lines of those of a plain one, but for comments."""

    def lines(words: str) -> list[list[str]]:
        model = Model(dataclasses.replace(PLAIN), provenance={"command": words})
        for field in ("name", "description", "source"):
            object.__setattr__(model.policy, field, words)
        made = TARGETS[name].make(model, dataclasses.replace(make_site(200, processors=64), command=words, model=words))
        assert all(file.text.isascii() for file in made.files)
        assert all(c.isprintable() or c in "\n\t" for file in made.files for c in file.text)
        # A file to be read may show them anywhere.
        return [file.text.split("\n") for file in made.files if not file.name.endswith(".md")]

    comment = ("#", "--", " *", "//")
    for hostile, plain in zip(lines(WORST), lines("x"), strict=True):
        assert len(hostile) == len(plain)
        for result, wanted in zip(hostile, plain, strict=True):
            same = result.replace("policy_id", "x").replace(identifier(WORST), "x") == wanted
            assert same or (result.startswith(comment) and wanted.startswith(comment)), (result, wanted)
