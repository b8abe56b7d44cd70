"""A distillation: a network whose order is a formula's is that formula, another one is said to be none."""

from __future__ import annotations

import contextlib
import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from naive.network import random_network
from policyfactory.core.errors import (
    EvaluationError,
    InputError,
    ModelFileError,
    OutputError,
    UsageError,
    WorkloadError,
)
from policyfactory.core.files import exclusive
from policyfactory.exports.export import export
from policyfactory.policy.network import Network, paper_inputs, save_network
from policyfactory.policy.policy import Policy
from policyfactory.policy.store import Model, load_model, save_model
from policyfactory.search.distill import distill, trained_with
from policyfactory.search.distill_fit import published_formulas
from policyfactory.search.environment.goals import goal_of
from policyfactory.search.options import DistillOptions, TrainOptions
from policyfactory.simulation.metrics import measure
from policyfactory.simulation.simulate import simulate
from policyfactory.workload.models.lublin import generate_lublin
from refusals import refusal, refused
from small_fits import few_fits

SMALL = DistillOptions(
    TrainOptions(window_jobs=150, training_windows=8, choosing_windows=6, judged_windows=8, bands=()), decisions=30
)
X, Y, V, C = "log10(max(p, 1))", "log10(q)", "log10(w + 10) - 1", "min(1, max(0, f - q + 1))"


@pytest.fixture(scope="module")
def workload():
    return generate_lublin(64, 3000, seed=5, load=0.9)


@pytest.fixture
def every_form() -> None:
    """Fit all of the SC'17 paper's forms by day, too."""


@pytest.fixture(autouse=True)
def quick_fits(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fit few of them in tests of families and of files."""
    with contextlib.nullcontext() if "every_form" in request.fixturenames else few_fits():
        yield


def linear(weights: dict[str, float], name: str = "NET") -> Network:
    """Return a network without hidden layers: its policy's value is the weighted sum of the formulas."""
    return Network.of(name, tuple(weights), [([[-weight] for weight in weights.values()], [0.0])])


def options(**fields) -> DistillOptions:
    return dataclasses.replace(SMALL, **fields)


@pytest.mark.parametrize(
    ("weights", "formula"),
    [
        ({X: 1.0, Y: 0.5}, "p*sqrt(q)"),
        ({X: 1.0, Y: 1.0}, "p*q"),
        ({X: 1.0}, "p"),
        ({X: -1.0}, "-p"),
        ({"w": -1.0}, "r"),
    ],
)
def test_a_network_that_orders_as_a_published_formula_is_that_formula(workload, weights, formula: str) -> None:
    found = distill(linear(weights), workload, options(families=("power",)))
    assert found.policy.formula == formula
    judged = found.chosen.choice.judged
    assert (judged.pairs, judged.tau, judged.first) == (1.0, 1.0, 1.0)
    assert found.warnings == []
    network = next(one for one in found.judged if one.role == "network")
    assert network.means == found.judged[0].means
    assert network.margin.verdict == "no difference"


def test_it_is_that_formula_among_all_forms(workload, every_form: None) -> None:
    assert distill(linear({X: 1.0, Y: 0.5}), workload, options(families=("power",))).policy.formula == "p*sqrt(q)"


@pytest.mark.parametrize(
    ("weights", "family", "values"),
    [
        ({X: 1.0, Y: 0.8}, "power", {"a": 0.8}),
        ({X: -1.0, Y: 0.7}, "power", {"a": -0.7}),
        ({X: 1.0, Y: 0.6, V: -0.7}, "linear", {"a": 0.6, "b": 0.7}),
        ({"log10(max(p, 1))": 1.0, "log10(q)": 0.5, "log10(1 + w/max(p, 1))": -0.8}, "stretch", {"a": 0.5, "b": 0.8}),
    ],
)
def test_the_coefficients_of_a_family_are_found(workload, weights, family: str, values: dict[str, float]) -> None:
    found = distill(linear(weights), workload, options(families=(family,)))
    fitted = next(one for one in found.rated if one.formula.origin == family)
    assert fitted.judged.pairs > 0.99
    assert {one.name: one.value for one in fitted.formula.coefficients} == pytest.approx(values, abs=0.06)
    assert found.chosen.choice.judged.pairs > 0.98


@pytest.mark.slow
def test_a_wait_is_taken_where_it_is_worth_it_and_the_best_without_is_told(workload, every_form: None) -> None:
    network = linear({X: 1.0, Y: 0.6, V: -0.9})
    found = distill(network, workload, options(families=("power", "linear")))
    choice, static = found.chosen.choice, found.chosen.static
    assert (choice.formula.kind, static.formula.kind) == ("w", "static")
    assert choice.judged.pairs > static.judged.pairs
    # A published order that is a candidate already is not there twice.
    roles, formulas = [one.role for one in found.judged], [one.policy.formula for one in found.judged]
    assert roles[:3] == ["choice", "network", "static"]
    assert set(roles[3:]) == {"beside"}
    assert formulas.count("p*q") == formulas.count("p*sqrt(q)") == 1
    never = distill(network, workload, options(families=("power", "linear"), margin=0.9))
    assert never.chosen.choice is never.chosen.static
    assert never.chosen.choice.formula.policy == static.formula.policy


@pytest.mark.slow
def test_free_processors_are_never_in_the_choice_and_it_is_said_what_they_would_add(workload, tmp_path: Path) -> None:
    network = linear({X: 0.4, Y: 0.2, C: -4.0})
    found = distill(network, workload, SMALL, output=tmp_path / "found")
    assert found.chosen.free is not None
    assert found.chosen.free.judged.pairs > 0.98
    assert "f" not in found.policy.variables
    assert any(text.startswith("with the free processors (f)") for text in found.warnings)
    assert "with f" in [one.role for one in found.judged]
    report = json.loads((tmp_path / "found" / "report.json").read_text())
    assert "f - q" in report["with_free_processors"]["formula"]
    # Both files are formulas for a scheduler.
    for name in ("policy.json", "static.json"):
        model = load_model(tmp_path / "found" / name)
        assert export(model, to="python").text
        assert model.diagnostics["network"]["digest"] == network.digest
        assert model.provenance["workload_sha256"] == workload.sha256()
    assert export(load_model(tmp_path / "found" / "static.json"), to="slurm-priority-lua").text


def test_the_static_formula_has_the_warnings_and_the_words_of_its_own_agreement(workload) -> None:
    found = distill(linear({X: 1.0, Y: 0.6, V: -0.9}), workload, options(families=("power", "linear")))
    assert found.chosen.choice.judged.pairs > 0.95 > found.chosen.static.judged.pairs
    assert found.model.warnings == ()
    assert found.chosen.static.formula.policy.name in found.static_model.warnings[0]
    exported = export(found.static_model, to="python")
    assert not any("not recommended" in text for text in exported.warnings)
    assert any("ordered as by network NET" in text for text in exported.notes)


def test_what_is_chosen_is_shown_once(workload) -> None:
    found = distill(linear({X: 1.0, Y: 0.5}), workload, options(families=("power",)))
    rated = (*(one for one in found.rated if one is not found.chosen.static), found.chosen.static)
    last = dataclasses.replace(found, rated=rated)
    assert found.chosen.static is found.chosen.choice
    assert last.best(2) == [*rated[:2], found.chosen.static]
    assert found.best(2) == list(found.rated[:2])


def test_another_policy_is_said_to_be_no_copy(workload, every_form: None) -> None:
    found = distill(random_network(11, (6, 16, 1)), workload, options(families=("power",)))
    share = found.chosen.choice.judged.pairs
    assert share < 0.95
    assert f"orders only {100 * share:.1f} % of the pairs as the network does" in found.warnings[0]
    assert f"{100 * share:.1f} %" in found.verdict
    assert f"{100 * share:.1f} %" in found.model.verdict
    # What the table of costs has is what the simulator gives.
    parts = found.windows.cut(workload, "judged")
    for one in found.judged:
        own = [measure(simulate(part, one.policy), "mean_bsld")["mean_bsld"] for part in parts]
        assert one.means[0] == pytest.approx(np.mean(own), rel=1e-12)


def test_a_network_of_mode_paper_plays_by_its_own_rules(workload) -> None:
    network = dataclasses.replace(random_network(2, (8, 4, 1), paper_inputs(5e4)), mode="paper")
    found = distill(network, workload, options(families=("linear",)))
    assert found.options.windows.mode == "paper"
    assert found.options.windows.rules.compatibility == "rlscheduler"
    exact = Network.of("SAF", ("log10(max(p, 1))", "log10(q)"), [([[-1.0], [-1.0]], [0.0])], mode="paper")
    copied = distill(exact, workload, options(families=("power",)))
    assert copied.policy.formula == "p*q"
    assert copied.chosen.choice.judged.pairs == 1.0


@pytest.mark.slow
def test_the_same_seed_writes_the_same_bytes_and_another_draws_others(workload, tmp_path: Path) -> None:
    network, few = random_network(4), options(families=("power", "ageing"))
    for folder in ("one", "two"):
        distill(network, workload, few, output=tmp_path / folder)
    names = sorted(path.name for path in (tmp_path / "one").iterdir())
    assert names == ["agreement.png", "policy.json", "report.json", "static.json"]
    for name in names:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
    other = dataclasses.replace(few, families=("power",), windows=dataclasses.replace(few.windows, seed=2))
    report = json.loads((tmp_path / "one" / "report.json").read_text())
    assert distill(network, workload, other).as_dict()["windows"] != report["windows"]


def test_options_can_be_changed_by_name(workload) -> None:
    network = dataclasses.replace(linear({X: 1.0}), provenance={"options": {"backfill": "none"}})
    few = {"window_jobs": 100, "training_windows": 4, "choosing_windows": 3, "judged_windows": 5}
    found = distill(network, workload, families=("power",), decisions=10, **few)
    assert (found.options.decisions, found.options.windows.window_jobs) == (10, 100)
    assert found.options.windows.backfill == "none"
    # What the options say goes before what the training says.
    assert distill(network, workload, SMALL, families=("power",)).options.windows.backfill == "easy"
    refused(UsageError, "window_job", distill, network, workload, window_job=100)
    refused(UsageError, "many number", distill, network, workload, decisions="many")


def test_a_coefficient_of_what_all_jobs_have_in_common_keeps_its_value(workload) -> None:
    serial = dataclasses.replace(workload, processors=np.ones_like(workload.processors), machine=4)
    found = distill(linear({X: 1.0}), serial, options(families=("power",)))
    power = next(one for one in found.rated if one.formula.origin == "power")
    assert power.judged.pairs == 1.0
    assert power.formula.policy.formula == "log10(max(p, 1)) + 0.5*log10(q)"


def test_the_backfilling_is_that_of_its_training() -> None:
    network = random_network(1)
    assert trained_with(network) == "easy"
    for said, expected in [({"backfill": "none"}, "none"), ({"backfill": 7}, "easy"), ("none", "easy")]:
        assert trained_with(dataclasses.replace(network, provenance={"options": said})) == expected


def test_published_formulas_count_no_time_from_an_epoch() -> None:
    names = {one.policy.name for one in published_formulas()}
    assert {"FCFS", "SAF", "SPF", "WFP3", "P*SQRT(Q)"} <= names
    assert not names & {"F1", "F2", "F3", "F4"}


# Wrong use -----------------------------------------------------------------------------------------------------------


def test_a_network_that_tells_no_jobs_apart_is_refused(workload) -> None:
    flat = Network.of("FLAT", ("log10(max(p, 1))",), [([[0.0]], [1.0])])
    refused(EvaluationError, "FLAT preference", distill, flat, workload, SMALL)


def test_windows_without_a_queue_are_refused() -> None:
    idle = generate_lublin(64, 3000, seed=5, load=0.9)
    alone = dataclasses.replace(idle, submit=np.arange(len(idle)) * 10**7)
    refused(EvaluationError, "8 training", distill, linear({X: 1.0}), alone, SMALL)


def test_a_log_that_is_too_short_is_refused(workload) -> None:
    long = dataclasses.replace(SMALL, windows=dataclasses.replace(SMALL.windows, window_jobs=1000))
    refused(WorkloadError, "1,000 shortest", distill, linear({X: 1.0}), workload, long)


def test_what_is_no_network_is_refused(workload, tmp_path: Path) -> None:
    path = tmp_path / "net.json"
    refused(InputError, "net.json", distill, path, workload, SMALL)
    save_network(random_network(1), path)
    whole = path.read_text()
    path.write_text(whole[: len(whole) // 2])
    refused(ModelFileError, "net.json", distill, path, workload, SMALL)
    path.write_text(whole.replace("policyfactory-network", "another-network"))
    refused(ModelFileError, "net.json policyfactory-network field", distill, path, workload, SMALL)
    path.write_text(whole.replace('"schema_version": 1', '"schema_version": 99'))
    refused(ModelFileError, "net.json 99", distill, path, workload, SMALL)
    save_model(Model(Policy("SAF", "p*q")), path)
    refused(UsageError, "net.json formula already", distill, path, workload, SMALL)


def test_a_folder_in_use_or_with_a_result_is_refused(workload, tmp_path: Path) -> None:
    network = linear({X: 1.0})
    (tmp_path / "busy").mkdir()
    with (
        exclusive(tmp_path / "busy" / "policy.json"),
        refusal(OutputError, "policy.json another run"),
    ):
        distill(network, workload, SMALL, output=tmp_path / "busy")
    (tmp_path / "policy.json").write_text("mine")
    refused(OutputError, "policy.json --overwrite replace", distill, network, workload, SMALL, output=tmp_path)
    assert (tmp_path / "policy.json").read_text() == "mine"


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"decisions": 0}, "--decisions 0 1 10,000"),
        ({"pairs": 0}, "--pairs 0 1 100,000"),
        ({"margin": 1.0}, "--margin 1.0"),
        ({"margin": float("nan")}, "--margin nan"),
    ],
)
def test_options_outside_their_limits_are_refused(fields, said: str) -> None:
    refused(UsageError, said, options, **fields)


def test_families_of_ones_own_are_fitted_or_said_to_be_left_out(workload) -> None:
    said = []

    class Heard:
        def message(self, sentence: str) -> None:
            said.append(sentence)

    network = linear({X: 1.0, Y: 0.8})
    own = ("mine=a*log10(p) + b*log10(q)", "curve=p*q**a", "dead=p/log10(q) + a*q")
    found = distill(network, workload, options(families=own), follower=Heard())
    rated = {one.formula.origin: one for one in found.rated}
    assert rated["mine"].judged.pairs > 0.99
    assert rated["curve"].judged.pairs > 0.97
    assert "dead" not in rated
    assert any("family dead has no value for some jobs" in text for text in said)
    refused(UsageError, "liner family", distill, network, workload, options(families=("liner",)))


def test_goals_are_compared_in_their_own_direction(workload) -> None:
    some = dataclasses.replace(
        SMALL, windows=dataclasses.replace(SMALL.windows, goal="utilisation"), families=("power",)
    )
    found = distill(linear({X: -1.0}), workload, some)
    assert goal_of(found.options.windows.goal).unit == "%"
    network = next(one for one in found.judged if one.role == "network")
    assert network.means == found.judged[0].means
