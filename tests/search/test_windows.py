"""Where windows begin: in time, apart, and as often as asked for."""

from __future__ import annotations

import numpy as np
import pytest

from policyfactory.core.errors import UsageError, WorkloadError
from policyfactory.search.learner import draw_windows
from policyfactory.search.options import TrainOptions
from policyfactory.workload.models.lublin import generate_lublin
from refusals import refused


@pytest.fixture(scope="module")
def workload():
    return generate_lublin(64, 2000, seed=3)


@pytest.mark.parametrize("seed", range(5))
def test_windows_to_learn_from_come_before_those_to_choose_by_and_those_before_the_judged(workload, seed: int) -> None:
    options = TrainOptions(window_jobs=100, training_windows=30, choosing_windows=9, judged_windows=5, seed=seed)
    windows = draw_windows(workload, options)
    assert (len(windows.training), len(windows.choosing), len(windows.judged)) == (30, 9, 5)
    assert windows.training.min() >= 0
    assert windows.training.max() <= 800 <= windows.choosing.min()
    assert windows.choosing.max() <= 1200 <= windows.judged.min()
    assert windows.judged.max() <= 2000
    assert (np.diff(windows.training) == 100).all()
    # Those that the intervals rest on share no job.
    assert (windows.judged[1:, 0] >= windows.judged[:-1, 1]).all()
    again = draw_windows(workload, options)
    assert again.judged.tolist() == windows.judged.tolist()
    assert windows.held_out


def test_another_seed_draws_other_windows_and_as_many_are_judged_as_fit(workload) -> None:
    one, other = (draw_windows(workload, TrainOptions(window_jobs=100, seed=seed)) for seed in (1, 2))
    assert one.training.tolist() != other.training.tolist()
    assert one.judged[:, 0].tolist() == [1200, 1300, 1400, 1500, 1600, 1700, 1800, 1900]


def test_given_windows_are_used_for_everything_and_count_from_their_first_job(workload) -> None:
    windows = draw_windows(workload, TrainOptions(windows="3x50jobs"))
    assert not windows.held_out
    first, second, _ = windows.cut(workload, "judged")
    assert first.job_id.tolist() == workload.job_id[:50].tolist()
    assert second.job_id.tolist() == workload.job_id[50:100].tolist()
    assert second.submit[0] == 0
    assert windows.cut(workload, "training")[1].job_id.tolist() == second.job_id.tolist()


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"windows": "9x1000jobs"}, WorkloadError, "2 windows lublin-64"),
        ({"window_jobs": 401}, WorkloadError, "401 400 lublin-64"),
        ({"windows": "nine"}, UsageError, "nine windows"),
        ({"parts": (50, 50, 1)}, UsageError, "--parts 50,50,1"),
        ({"training_windows": 0}, UsageError, "--training-windows 0"),
        ({"window_jobs": 1}, UsageError, "--window-jobs 1"),
        ({"goal": "speed"}, UsageError, "speed goal"),
        ({"bands": (("utilisation", 1.2),)}, UsageError, "factor 1.2"),
    ],
)
def test_what_cannot_be_drawn_is_refused(workload, options, error, said: str) -> None:
    refused(error, said, lambda: draw_windows(workload, TrainOptions(**options)))
