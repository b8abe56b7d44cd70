"""From end to end: what the papers' experiments take on this machine, CPU seconds and memory, a process each.

    pytest benchmarks/test_papers.py --benchmark-enable -s

generate, fit and the protocols of evaluate/, as the commands run them, reading, statistics and report included, on one
worker. A protocol with resampled logs is run with one of its resamples and, if that was not too long, with two; what
the whole takes is said beside it then: a straight line through both. With POLICYFACTORY_BENCH_SMALL=1 it is four tuples
and one log, to see that all of it runs.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from test_scaling import SMALL
from test_start import cost

from floors import record

ROOT = Path(__file__).resolve().parents[1]
SHARED = Path(os.environ.get("POLICYFACTORY_SHARED", ROOT.parent / "shared"))
GROUP = "papers, end to end"
MEMORY = "peak memory"

# Protocol: experiments to run.
WHOLE = {"sc17": ["actual", "estimates", "backfilling"], "polynomials": ["easy"]}
# Protocol and experiment, and resamples of the article.
SHARES = {"ccgrid19": ("easy", 10), "tpds18": ("tables", 60)}
# CPU seconds with one resample, above which two are not run.
LONG = 40
# Of a small run.
LOG = {"sc17": "sdsc-blue", "polynomials": "sdsc-blue", "ccgrid19": "kth", "tpds18": "kth-sp2"}

# Minutes; tests/evaluation has parts of them.
pytestmark = pytest.mark.skipif("not config.getoption('--benchmark-enable')")


@pytest.fixture
def traces() -> Path:
    if not (SHARED / "traces").is_dir():
        pytest.skip("the logs are not there")
    return SHARED / "traces"


def test_generate_and_fit(tmp_path: Path) -> None:
    table = tmp_path / "scores.csv"
    less = ["--tuples", "4", "--trials", "1000"] if SMALL else []
    seconds, peak = cost(["generate", "--workers", "1", "--output", str(table), *less], tmp_path)
    record(GROUP, "SC'17: generate, 441 tuples of 256,000 trials", seconds, "CPU s", ceiling=40)
    record(MEMORY, "generate, 441 tuples of 256,000 trials", peak / 1e6, "MB")
    seconds, peak = cost(["fit", str(table), "--output", str(tmp_path / "fit.json")], tmp_path)
    record(GROUP, "SC'17: fit of all 576 forms, with 200 resamplings", seconds, "CPU s", ceiling=10)
    record(MEMORY, "fit of 14,112 scores", peak / 1e6, "MB")


@pytest.mark.parametrize("name", WHOLE)
def test_protocol(traces: Path, tmp_path: Path, name: str) -> None:
    only = [word for experiment in WHOLE[name] for word in ("--only", experiment)]
    seconds, peak = evaluate(ROOT / "evaluate" / f"{name}.toml", traces, tmp_path, only)
    record(GROUP, f"{name}.toml, {', '.join(WHOLE[name])}", seconds, "CPU s")
    record(MEMORY, f"evaluate {name}.toml", peak / 1e6, "MB")


@pytest.mark.parametrize("name", SHARES)
def test_share_of_a_protocol(traces: Path, tmp_path: Path, name: str) -> None:
    experiment, whole = SHARES[name]
    text = (ROOT / "evaluate" / f"{name}.toml").read_text(encoding="utf-8")
    what, times = f"{name}.toml, experiment {experiment}", []
    for count in (1, 2):
        protocol = tmp_path / f"{name}-{count}.toml"
        changed, places = re.subn(rf"(resample = \{{ count = ){whole}\b", rf"\g<1>{count}", text)
        assert places
        protocol.write_text(changed, encoding="utf-8")
        seconds, peak = evaluate(protocol, traces, tmp_path, ["--only", experiment])
        times.append(seconds)
        resamples = f"{count} of {whole} resampled logs a log"
        record(GROUP, f"{what}, {resamples}", seconds, "CPU s")
        record(MEMORY, f"evaluate {what}, {resamples}", peak / 1e6, "MB")
        if seconds > LONG:
            break
    if len(times) == 2:
        each = times[1] - times[0]
        record(GROUP, f"{what}, all {whole} (by a straight line)", times[0] + each * (whole - 1), "CPU s")


def evaluate(protocol: Path, traces: Path, folder: Path, more: list[str]) -> tuple[float, int]:
    """Return CPU seconds and peak memory of a protocol."""
    output = folder / f"results-{protocol.stem}"
    arguments = ["evaluate", str(protocol), "--traces", str(traces), "--workers", "1", "--output", str(output)]
    less = ["--log", LOG[protocol.stem.partition("-")[0]]] if SMALL else []
    return cost([*arguments, *more, *less], folder)
