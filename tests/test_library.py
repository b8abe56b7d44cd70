"""The library as a researcher writes it: a verb for each step, and results that show themselves."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

import policyfactory as pf
from policyfactory.core.errors import EvaluationError, UsageError, WorkloadError
from refusals import refusal, refused


@pytest.fixture(scope="module")
def log() -> pf.Workload:
    return pf.default_workload()[:2000]


@pytest.fixture(scope="module")
def scores(log: pf.Workload) -> pf.ScoreTable:
    return pf.generate(log, tuples=8, trials=512)


def shows(value: object) -> None:
    text, html = repr(value), value._repr_html_()  # type: ignore[attr-defined]
    assert len(text) < 160
    assert "\n" not in text
    assert html.startswith("<table>")
    assert html.endswith("</table>")


def test_a_log_is_read_with_the_account_of_its_cleaning(tmp_path: Path, log: pf.Workload) -> None:
    pf.write_swf(log, tmp_path / "log.swf.gz")
    again = pf.read(tmp_path / "log.swf.gz")
    assert np.array_equal(again.submit, log.submit - log.submit[0])
    assert np.array_equal(again.requested_time, log.requested_time)
    assert (again.cleaning.read, again.cleaning.kept) == (2000, 2000)
    assert pf.read(tmp_path / "log.swf.gz", processors=1000, force_processors=True).machine == 1000
    assert "not read from a log" in log.cleaning.summary()


def test_a_workload_is_cut_like_a_list_and_by_dates(log: pf.Workload) -> None:
    assert len(log[:100]) == 100
    week = log.between("1d", "8d")
    assert week.submit[0] >= log.submit[0] + 86_400
    assert week.submit[-1] < log.submit[0] + 8 * 86_400
    dated = pf.Workload.from_frame(log.frame(), processors=256, unix_start=844_000_000, time_zone="Europe/Stockholm")
    october = dated.between("1996-10", "1996-11")
    assert 0 < len(october) < len(dated)
    first = pd.to_datetime(844_000_000 + october.submit[0], unit="s", utc=True).tz_convert("Europe/Stockholm")
    assert (first.year, first.month) == (1996, 10)
    assert len(dated.between()) == len(dated)
    refused(UsageError, "1996-13 start", dated.between, "1996-13")
    refused(UsageError, "UnixStartTime 1996-10", log.between, "1996-10")
    refused(WorkloadError, "4000d between lublin-256", log.between, "4000d")


def test_a_table_of_pandas_goes_there_and_back(log: pf.Workload) -> None:
    frame = log.frame()
    assert list(frame) == ["job_id", "submit", "run_time", "requested_time", "processors", "user", "start"]
    assert pf.Workload.from_frame(frame.sample(frac=1, random_state=1), processors=256).sha256() == log.sha256()
    small = pf.Workload.from_frame(frame[["submit", "run_time", "processors"]])
    assert small.machine == frame["processors"].max()
    assert (small.requested_time == np.maximum(log.run_time, 1)).all()
    refused(WorkloadError, "processors submit run_time table", pf.Workload.from_frame, frame[["submit", "run_time"]])
    refused(WorkloadError, "user float64", pf.Workload.from_frame, frame.assign(user=np.nan))


def test_columns_of_a_table_have_other_names_too_and_the_message_has_them_all(log: pf.Workload) -> None:
    frame = log.frame()
    other = frame.rename(columns={"submit": "Submit Time", "run_time": "ELAPSED", "processors": "nCPUs", "user": "uid"})
    assert pf.Workload.from_frame(other, processors=256).sha256() == log.sha256()
    # One of its own name goes before any other.
    assert pf.Workload.from_frame(frame.assign(elapsed="1:00"), processors=256).sha256() == log.sha256()
    with refusal(WorkloadError, "cores cpus table"):
        pf.Workload.from_frame(frame.rename(columns={"processors": "cores"}).assign(cpus=4))
    with pytest.raises(WorkloadError) as missing:
        pf.Workload.from_frame(frame[["user"]].rename(columns={"user": "wer"}))
    said = str(missing.value)
    assert "no column submit and no column run_time and no column processors; it has wer" in said
    for field in ("requested_time (or requested_run_time, request", "processors (or procs, cores", "start (or start_"):
        assert field in said


def test_ticks_become_seconds_in_a_table(log: pf.Workload) -> None:
    fine = log[:10].in_ticks(1000).frame()
    assert fine["submit"].tolist() == log[:10].submit.tolist()
    assert (fine["start"] == -1).all()


def test_a_schedule_has_its_numbers(log: pf.Workload) -> None:
    schedule = pf.simulate(log, "saf", threshold="20h", backfill="easy")
    assert schedule.rules == pf.Rules(threshold=72_000.0)
    assert np.array_equal(schedule.wait, schedule.start - log.submit)
    assert schedule.bounded_slowdown.mean() == pytest.approx(pf.measure(schedule, ["mean_bsld"])["mean_bsld"])
    frame = schedule.frame()
    assert (frame["end"] - frame["start"] == frame["run_time"]).all()
    assert "mean_wait" in schedule.summary()
    assert "utilisation" in schedule._repr_html_()
    refused(UsageError, "treshold decide_by", pf.simulate, log, "SAF", treshold="20h")  # type: ignore[call-arg]
    refused(UsageError, "SAFF SAF", pf.simulate, log, "SAFF")


def test_results_show_themselves(log: pf.Workload, scores: pf.ScoreTable) -> None:
    schedule = pf.simulate(log, "FCFS")
    fits = pf.fit(scores, "linear", bootstrap=10)
    for value in (log, schedule, scores, fits, fits[0]):
        shows(value)
        assert value.plot().axes  # type: ignore[attr-defined]
    refused(EvaluationError, "4000d nothing lublin-256", schedule.plot, "4000d")


def test_scores_are_continued_from_their_file(tmp_path: Path, log: pf.Workload, scores: pf.ScoreTable) -> None:
    output = tmp_path / "scores.csv"
    written = pf.generate(log, tuples=8, trials=512, output=str(output))
    assert np.array_equal(written.score, scores.score)
    first = output.stat().st_mtime_ns
    assert np.array_equal(pf.generate(log, tuples=8, trials=512, output=output).score, scores.score)
    assert output.stat().st_mtime_ns == first
    assert list(scores.frame()) == ["p", "q", "r", "score", "stderr", "tuple"]
    best = pf.fit(scores, "linear", bootstrap=0)[0].formula
    assert [pf.fit(path, "linear", bootstrap=0)[0].formula for path in (output, str(output))] == [best, best]
    refused(UsageError, "triples option", pf.generate, log, triples=8)  # type: ignore[call-arg]


def test_a_fit_is_a_policy(tmp_path: Path, log: pf.Workload, scores: pf.ScoreTable) -> None:
    fits = pf.fit(scores, ["polynomials", "MINE=a*p*q + b*log10(r)"], bootstrap=10)
    assert [fit.rank for fit in fits] == list(range(1, len(fits) + 1))
    assert fits.frame()["mae"].is_monotonic_increasing
    mine = next(fit for fit in fits if fit.name == "MINE")
    assert mine.priority(p=60, q=4, r=10) == mine.policy.scores(60, 4, 10)[0]
    assert mine.priority(p=np.array([60.0, 70.0]), q=4, r=10).shape == (2,)  # type: ignore[union-attr]
    refused(UsageError, "r= priority p", mine.priority, p=60, q=4)
    assert "standard error" in mine.summary()
    assert "Best by mean absolute error" in fits.summary()
    pf.save_model(mine.model("mine"), tmp_path / "mine.json")
    by_file, by_fit = (pf.simulate(log, policy).start for policy in (str(tmp_path / "mine.json"), mine))
    assert np.array_equal(by_file, by_fit)


RULES = [{}, {"backfill": "none"}, {"backfill": "conservative"}, {"threshold": "1h"}, {"decide_by": "runtime"}]


@pytest.mark.parametrize("rules", [*RULES, {"backfill_policy": "WFP3"}], ids=str)
def test_a_function_is_a_policy(log: pf.Workload, rules: dict[str, str]) -> None:
    mine = pf.Policy.from_function(lambda job: job.p * job.q + job.r, name="MINE")
    formula = pf.Policy("FORMULA", "p*q + r")
    ours, theirs = (pf.simulate(log, policy, **rules) for policy in (mine, formula))  # type: ignore[arg-type]
    assert np.array_equal(ours.start, theirs.start)


def test_a_function_is_called_with_all_jobs_and_not_job_by_job(log: pf.Workload) -> None:
    sizes = []

    def longest(job):  # type: ignore[no-untyped-def]
        sizes.append(len(job.p))
        return -job.p

    workload = pf.default_workload()
    policy = pf.Policy.from_function(longest)
    assert policy.name == "longest"
    assert np.array_equal(pf.simulate(workload, policy).start, pf.simulate(workload, "LPF").start)
    # Once to count the jobs without a score, once for the order.
    assert sizes == [len(workload)] * 2


@pytest.mark.parametrize("named", [False, True])
def test_an_estimator_is_a_policy(log: pf.Workload, scores: pf.ScoreTable, named: bool) -> None:
    from sklearn.linear_model import LinearRegression

    frame = scores.frame()[["p", "q"]]
    model = LinearRegression().fit(frame if named else frame.to_numpy(), scores.score)
    policy = pf.Policy.from_function(model, features=("p", "q"))
    a, b = model.coef_
    linear = pf.Policy("LINEAR", f"{a!r}*p + {b!r}*q".replace("np.float64", ""))
    ours, theirs = (pf.simulate(log, one).start for one in (policy, linear))
    assert np.mean(ours == theirs) > 0.99  # another order of additions may break a tie


def test_a_function_says_what_it_cannot_do(tmp_path: Path, log: pf.Workload) -> None:
    mine = pf.Policy.from_function(lambda job: job.p, name="MINE")
    assert mine != pf.Policy.from_function(lambda job: job.q, name="MINE")
    refused(UsageError, "MINE formula", pf.save_model, pf.Model(mine), tmp_path / "mine.json")
    refused(UsageError, "MINE formula", pf.export, mine, to="lua")
    with refusal(UsageError, "MINE float64 2000"):
        pf.simulate(log, pf.Policy.from_function(lambda job: job.p.sum(), name="MINE"))
    refused(UsageError, "int predict", pf.Policy.from_function, 7)
    refused(UsageError, "z p q r m", pf.Policy.from_function, type("Model", (), {"predict": None})(), features=("z",))


def test_functions_and_fits_are_evaluated_like_policies(log: pf.Workload, scores: pf.ScoreTable) -> None:
    mine = pf.Policy.from_function(lambda job: job.p, name="MINE")
    fit = pf.fit(scores, "linear", bootstrap=0)[0]
    values = pf.evaluate(log, ["FCFS", "SPF", mine, fit], windows="3x2d", metrics=["mean_bsld"]).frame()
    by_policy = values.pivot_table("value", "case", "policy")
    assert (by_policy["MINE"] == by_policy["SPF"]).all()
    assert set(by_policy) == {"FCFS", "SPF", "MINE", fit.name}


def test_functions_go_to_other_processes(log: pf.Workload) -> None:
    factor = 2.0
    mine = pickle.loads(pickle.dumps(pf.Policy.from_function(lambda job: factor * job.p, name="MINE")))
    assert mine.name == "MINE"
    assert np.array_equal(pf.simulate(log, mine).start, pf.simulate(log, "SPF").start)
    assert pickle.loads(pickle.dumps(pf.resolve("F1"))) == pf.resolve("F1")


@pytest.mark.parametrize(
    ("use", "message"),
    [
        (lambda log: pf.simulate(log, lambda job: job.p), "Policy.from_function make yet"),
        (lambda log: pf.simulate(log, 3), "3 policy"),
        (lambda _: pf.simulate(3, "FCFS"), "3 workload"),
        (lambda _: pf.read(3), "3 workload"),
        (lambda _: pf.generate(3), "3 workload"),
        (lambda _: pf.learn(3), "3 workload"),
        (lambda _: pf.evaluate(3, "FCFS"), "3 workload"),
        (lambda _: pf.evaluate([None], "FCFS"), "None workload"),
        (lambda log: pf.evaluate(log, 3), "3 policies"),
        (
            lambda log: pf.simulate(log, pf.Policy.from_function(lambda job: job.w, "W")),
            "w jobs",
        ),
        (lambda log: pf.measure(log, "mean_bsld"), "Workload schedule"),
        (lambda log: pf.measure(pf.simulate(log, "SAF"), "mean_bsl"), "mean_bsld mean mean_bsl"),
        (pf.fit, "Workload scores"),
        (lambda log: pf.generate(log, trials="a"), "trials a"),
        (lambda log: pf.learn(log, tuples="x"), "tuples x"),
        (lambda log: pf.learn(log, windows=3), "windows 3"),
        (lambda log: pf.learn(log, nope=1), "nope option"),
        (lambda log: pf.export("SAF", "pbs", nope=1), "nope option"),
        (lambda log: pf.evaluate(log, ["FCFS"], precison="2%"), "mean precision precison"),
        (lambda log: pf.evaluate(log, ["FCFS"], threshold=-5), "threshold -5"),
    ],
)
def test_wrong_use_is_a_message(log: pf.Workload, use: Callable[[pf.Workload], object], message: str) -> None:
    refused(pf.PolicyfactoryError, message, use, log)


@pytest.mark.parametrize(
    ("family", "message"),
    [
        ("poly", "poly polynomials"),
        ("p", "has 0 1 40 p"),
        ("r", "has 0 1 40 p"),
        ("a", "same ranks"),
    ],
)
def test_what_is_no_family_and_no_form_is_a_message(scores: pf.ScoreTable, family: str, message: str) -> None:
    refused(pf.PolicyfactoryError, message, pf.fit, scores, family)


def test_numbers_of_python_are_options(log: pf.Workload) -> None:
    by_number = pf.evaluate(log, ["FCFS", "SAF"], threshold=72_000)
    assert by_number.outcome.experiment.rules.threshold == 72_000
    drawn = pf.evaluate(log, ["FCFS", "SAF"], resamples=2, precision=0.9, max_resamples=4)
    assert len(drawn.outcome.evaluation.cases) >= 2
    assert pf.measure(pf.simulate(log, "SAF"), "mean_bsld").keys() == {"mean_bsld"}


def test_numbers_of_numpy_are_options(log: pf.Workload) -> None:
    plain = {"threshold": 7200.0, "seed": 3, "resamples": 2, "load": 1.5, "recorded": False, "metrics": ["max_wait"]}
    numpy = {name: np.array(value) if name == "metrics" else np.array([value])[0] for name, value in plain.items()}
    one, two = (pf.evaluate(log, ["FCFS", "SAF"], **options) for options in (plain, numpy))
    assert (one.text, one.frame().to_csv()) == (two.text, two.frame().to_csv())
    assert pf.generate(log, tuples=np.int64(2), trials=np.int16(512)).tuples == 2
    refused(UsageError, "seed -3", pf.evaluate, log, ["FCFS"], seed=np.int64(-3))
    refused(UsageError, "seed 0.5", pf.evaluate, log, ["FCFS"], seed=np.longdouble(0.5))  # Python has no such number


def test_pictures_leave_the_settings_of_matplotlib_as_they_were(log: pf.Workload, scores: pf.ScoreTable) -> None:
    before = dict(mpl.rcParams)
    figures = [log.plot(), pf.simulate(log, "SAF").plot(), scores.plot(), pf.fit(scores, bootstrap=0)[0].plot()]
    assert dict(mpl.rcParams) == before
    for figure in figures:
        figure.canvas.draw()
        labels = [label.get_text() for axes in figure.axes for label in axes.get_xticklabels()]
        assert not any("mathdefault" in label for label in labels)


def test_a_policy_is_shown_in_a_line() -> None:
    assert repr(pf.Policy("MINE", "p*q / (1 + w)")) == "<Policy MINE: p*q / (1 + w)>"
    assert repr(pf.Policy.from_function(lambda job: job.p, "OWN")) == "<Policy OWN: Python function>"
    assert "p*q" in pf.resolve("SAF")._repr_html_()
