"""Pictures of an evaluation: what stands on them, and that they can be drawn whatever was found."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from matplotlib.colors import to_rgb

from policyfactory.core.picture import svg_bytes
from policyfactory.evaluation.picture import draw_boxes, draw_differences, draw_ranks, draw_wins
from policyfactory.statistics.compare import compare, mean_ranks, wins
from policyfactory.statistics.evaluation import Evaluation

Make = Callable[..., Evaluation]
COST = {"A": [4.0, 8.0, 2.0, 6.0, 10.0, 7.0], "B": [0.1 + 0.2, 9.0, 2.0, 5.0, 1.0, 1.5]}
LONG = "a-model-that-was-fitted-on-lublin-256-with-a-long-name-v2"


def names_of(axes: Any) -> list[str]:
    return [label.get_text() for label in axes.get_yticklabels()]


def texts_of(axes: Any) -> list[str]:
    return [text.get_text() for text in axes.texts]


def test_boxes_have_units_names_medians_and_a_logarithm_only_where_it_is_needed(by_hand: Make) -> None:
    wide = {"A": [10.0, 20.0, 30.0, 40.0, 50.0, 60.0], "B": [1.0, 2.0, 3.0, 400.0, 5.0, 9000.0]}
    narrow = {"A": [7200.0] * 6, "B": [9000.0, 8000.0, 8100.0, 8300.0, 8500.0, 8600.0]}
    evaluation = by_hand({"log": {"cost": wide, "delay": narrow}, "two": {"cost": wide, "delay": narrow}})
    cost, delay = draw_boxes(evaluation, "cost"), draw_boxes(evaluation, "delay")
    assert [axes.get_xscale() for axes in (*cost.axes, *delay.axes)] == ["log", "log", "linear", "linear"]
    assert [axes.get_xlabel() for axes in (cost.axes[0], delay.axes[0])] == ["cost, logarithmic", "delay (h)"]
    assert [axes.get_title(loc="left") for axes in cost.axes] == ["log, 6 cases", "two, 6 cases"]
    assert names_of(cost.axes[0]) == ["A", "B"]
    assert texts_of(cost.axes[0]) == ["35.0", "4.00", "median"]
    assert texts_of(delay.axes[1]) == ["2.00", "2.33", "median"]
    # The first name is on top, and the panels are as wide as a phone in portrait can show.
    low, high = cost.axes[0].get_ylim()
    assert low > high
    assert cost.get_size_inches()[0] < 7.5


def test_a_box_is_the_middle_half_and_every_case_has_its_dot(by_hand: Make) -> None:
    axes = draw_boxes(by_hand({"log": {"cost": COST}}), "cost").axes[0]
    boxes = [patch for patch in axes.patches if patch.get_alpha()]
    ends = [(box.get_x(), box.get_x() + box.get_width()) for box in boxes]
    assert ends == [pytest.approx(np.quantile(column, [0.25, 0.75])) for column in COST.values()]
    dots = [np.sort(line.get_xdata()) for line in axes.lines if line.get_marker() == "o"]
    assert [dot.tolist() for dot in dots] == [sorted(column) for column in COST.values()]


def test_of_very_many_cases_only_those_beyond_the_whiskers_are_dots(by_hand: Make) -> None:
    column = [float(value) for value in np.random.default_rng(0).normal(0, 1, 300)]
    column[7] = 40.0
    figure = draw_boxes(by_hand({"log": {"cost": {"A": column}}}), "cost")
    (points,) = (line.get_xdata() for line in figure.axes[0].lines if line.get_marker() == "o")
    assert 1 <= len(points) < 20
    assert 40.0 in points
    assert "beyond the whiskers" in figure.get_supxlabel()


def test_a_value_of_zero_one_case_or_none_is_drawn_as_well(by_hand: Make) -> None:
    zero = draw_boxes(by_hand({"log": {"cost": {"A": [0.0, 1e6], "B": [1.0, 2.0]}}}), "cost")
    assert zero.axes[0].get_xscale() == "linear"
    one = draw_boxes(by_hand({"log": {"cost": {"A": [1.0], "B": [math.nan]}}}), "cost")
    assert one.axes[0].get_title(loc="left") == "log, one case"
    assert texts_of(one.axes[0]) == ["1.00", "-", "value"]


def test_differences_are_drawn_against_the_baseline(by_hand: Make) -> None:
    figure = draw_differences(compare(by_hand({"log": {"cost": COST}})), "cost")
    assert figure.axes[0].get_xlabel() == "cost minus A's in the same case"
    assert names_of(figure.axes[0]) == ["B"]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["no difference"]
    assert figure.get_supxlabel() == "Marker: median over the cases; bar: 95 % interval."
    few = draw_differences(compare(by_hand({"log": {"cost": {"A": [1.0], "B": [2.0]}}})), "cost")
    assert [text.get_text() for text in few.legends[0].get_texts()] == ["too few cases"]
    assert few.get_supxlabel() == "Marker: the difference."


def test_a_verdict_has_a_shape_beside_its_colour(by_hand: Make) -> None:
    base = [10.0, 12.0, 14.0, 16.0, 18.0, 20.0, 22.0, 24.0]
    table = {"A": base, "LESS": [value - 5 for value in base], "MORE": [value + 5 for value in base],
             "SAME": [value + (-1) ** at for at, value in enumerate(base)]}  # fmt: skip
    figure = draw_differences(compare(by_hand({"log": {"cost": table}})), "cost")
    looks = {
        text.get_text(): (handle.get_marker(), handle.get_markerfacecolor())
        for text, handle in zip(figure.legends[0].get_texts(), figure.legends[0].legend_handles, strict=True)
    }
    assert set(looks) == {"better", "worse", "no difference"}
    assert looks["better"][0] != looks["worse"][0]
    assert looks["no difference"][1] == "white"


def test_one_huge_difference_does_not_hide_the_others_and_ticks_are_numbers(by_hand: Make) -> None:
    rng = np.random.default_rng(1)
    base = rng.uniform(1, 2, 8)
    table = {name: (base + rng.uniform(0.1, 0.2, 8)).tolist() for name in "BCDE"}
    table = {"A": base.tolist(), **table, "HUGE": (base + 50).tolist()}
    figure = draw_differences(compare(by_hand({"log": {"cost": table}})), "cost")
    axes = figure.axes[0]
    assert axes.get_xscale() == "symlog"
    figure.canvas.draw()
    labels = [label.get_text() for label in axes.get_xticklabels()]
    assert labels
    assert all(float(label) is not None for label in labels)


def test_ranks_begin_with_the_best(by_hand: Make) -> None:
    table = {"FCFS": [3.0] * 6, "MID": [2.0, 2.0, 2.0, 2.0, 2.0, 1.0], "TOP": [1.0, 1.0, 1.0, 1.0, 1.0, 2.0]}
    evaluation = by_hand({"log": {"cost": table}})
    axes = draw_ranks({"log": mean_ranks(evaluation, "cost", ["log"])}, "cost").axes[0]
    assert names_of(axes) == ["TOP", "MID", "FCFS"]
    assert texts_of(axes) == ["1.17", "1.83", "3.00", "mean rank"]
    assert axes.get_xlabel() == "mean rank by cost (1 is the best of 3)"


def test_wins_are_counted_in_their_cells_and_the_colour_says_who_wins(by_hand: Make) -> None:
    table = {"A": [1.0, 1.0, 1.0, 5.0], "B": [2.0, 2.0, 1.0, 4.0], "C": [9.0, 9.0, 9.0, 9.0]}
    evaluation = by_hand({"log": {"cost": table}})
    axes = draw_wins({"log": wins(evaluation, "log", "cost")}, {"log": 4}, evaluation.policies).axes[0]
    assert np.array(texts_of(axes)).reshape(3, 3).tolist() == [["–", "2", "4"], ["1", "–", "4"], ["0", "0", "–"]]
    mesh = axes.collections[0]
    mesh.update_scalarmappable()
    colours = np.asarray(mesh.get_facecolors()).reshape(3, 3, 4)
    assert colours[0, 2, 2] > colours[0, 2, 0]  # blue
    assert colours[2, 0, 0] > colours[2, 0, 2]  # orange
    assert np.ptp(to_rgb(colours[0, 1])) < np.ptp(to_rgb(colours[0, 2]))


@pytest.mark.parametrize(
    ("cases", "policies"),
    [
        *[(1, 1), (1, 12), (4, 2), (9, 1), (9, 12)],
        *(pytest.param(*numbers, marks=pytest.mark.slow) for numbers in [(1, 2), (4, 1), (4, 12), (9, 2)]),
    ],
)
def test_every_picture_can_be_drawn(cases: int, policies: int, by_hand: Make) -> None:
    names = [LONG, "$x$", "日本", "_hidden", "<b>", "x  y", *(f"P{at}" for at in range(6))][:policies]
    rng = np.random.default_rng(3)
    table = {name: rng.lognormal(0, 1, cases).round(1).tolist() for name in names}
    evaluation = by_hand({"\u202ea\x00\nlog": {"cost": table}, LONG: {"cost": table}})
    drawn = [draw_boxes(evaluation, "cost")]
    drawn.append(draw_ranks({log: mean_ranks(evaluation, "cost", [log]) for log in evaluation.logs}, "cost"))
    if policies > 1:
        drawn.append(draw_differences(compare(evaluation), "cost"))
        won = {log: wins(evaluation, log, "cost") for log in evaluation.logs}
        drawn.append(draw_wins(won, dict.fromkeys(won, cases), evaluation.policies))
    labels = names_of(drawn[0].axes[0])
    assert len(labels) == policies
    assert all(len(label) <= 30 and "\n" not in label for label in labels)
    # One of them as a file: warnings are errors, of letters that the font has not as well.
    if (cases, policies) == (9, 12):
        assert [svg_bytes(figure)[:5] for figure in drawn] == [b"<?xml"] * 4


def test_a_picture_has_the_unit_of_the_tables(by_hand: Make) -> None:
    waits = {"A": [60.0 * k for k in range(1, 8)], "B": [7200.0 * k for k in range(1, 8)]}
    evaluation = by_hand({"log": {"delay": waits}})
    for figure in (draw_boxes(evaluation, "delay", "min"), draw_differences(compare(evaluation), "delay", "min")):
        assert "(min)" in figure.axes[0].get_xlabel()


def test_the_chosen_policy_has_a_word_and_a_colour_in_every_picture(by_hand: Make) -> None:
    evaluation = by_hand({"log": {"cost": COST}})
    figures = [
        draw_boxes(evaluation, "cost", chosen="B"),
        draw_differences(compare(evaluation), "cost", chosen="B"),
        draw_ranks({"log": mean_ranks(evaluation, "cost", ["log"])}, "cost", "B"),
        draw_wins({"log": wins(evaluation, "log", "cost")}, {"log": 6}, evaluation.policies, "B"),
    ]
    for figure in figures:
        labels = {label.get_text(): label for label in figure.axes[0].get_yticklabels()}
        assert labels["B (chosen)"].get_fontweight() == "bold"
        assert all("chosen" not in name for name in labels if name != "B (chosen)")
