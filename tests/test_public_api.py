"""The public interface does not change by accident."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import policyfactory

PUBLIC = [
    "Arena",
    "CATALOGUE",
    "Case",
    "DistillOptions",
    "Distilled",
    "Evaluation",
    "Experiment",
    "ExportOptions",
    "Exported",
    "Forecast",
    "FormulaSearch",
    "JudgeOptions",
    "Judgement",
    "LearnOptions",
    "Learned",
    "METRICS",
    "Model",
    "Network",
    "Outcome",
    "Policy",
    "PolicyfactoryError",
    "PpoOptions",
    "Precision",
    "Predicted",
    "Predictor",
    "PredictorOptions",
    "Protocol",
    "Reinforcement",
    "Result",
    "Rules",
    "RunSettings",
    "Schedule",
    "ScoreTable",
    "SearchOptions",
    "TrainOptions",
    "Trained",
    "Tuner",
    "Workload",
    "__version__",
    "backtest",
    "case_of",
    "cases_of",
    "compare",
    "default_workload",
    "distill",
    "evaluate",
    "explain_network",
    "explain_queue",
    "export",
    "fit",
    "forecast",
    "generate",
    "generate_lublin",
    "judge",
    "learn",
    "load_forests",
    "load_model",
    "load_network",
    "measure",
    "predict",
    "read",
    "read_logs",
    "read_protocol",
    "read_score_table",
    "read_snapshot",
    "read_swf",
    "resample",
    "resolve",
    "run_experiment",
    "run_protocol",
    "save_forests",
    "save_model",
    "save_network",
    "simulate",
    "train",
    "tsafrir_estimates",
    "write_report",
    "write_score_table",
    "write_swf",
]


def test_public_names_are_these() -> None:
    assert dir(policyfactory) == sorted(PUBLIC)
    assert sorted(policyfactory.__all__) == sorted(PUBLIC)


def test_every_public_name_can_be_had() -> None:
    for name in policyfactory.__all__:
        assert getattr(policyfactory, name) is not None


VERBS = {
    "distill",
    "evaluate",
    "export",
    "fit",
    "generate",
    "judge",
    "learn",
    "predict",
    "read",
    "simulate",
    "train",
} & set(PUBLIC)


def test_no_folder_has_the_name_of_a_verb() -> None:
    folders = {path.name for path in Path(policyfactory.__file__).parent.iterdir() if path.is_dir()}
    assert not folders & set(PUBLIC)
    assert all(callable(getattr(policyfactory, name)) for name in VERBS)


def test_an_unknown_name_is_an_attribute_error() -> None:
    assert not hasattr(policyfactory, "no_such_name")


def test_importing_the_package_and_asking_its_version_load_nothing_heavy() -> None:
    heavy = "{'numba', 'numpy', 'pandas', 'scipy', 'sympy', 'statsmodels', 'sklearn', 'matplotlib', 'typer', 'rich'}"
    code = (
        "import sys; sys.argv = ['policyfactory', '--version']\n"
        "from policyfactory.cli.main import run; run()\n"
        f"assert not {heavy} & set(sys.modules), {heavy} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == f"policyfactory {policyfactory.__version__}\n"


def test_help_loads_no_numerics() -> None:
    heavy = "{'numba', 'pandas', 'scipy', 'sympy', 'statsmodels', 'sklearn', 'matplotlib'}"
    code = (
        "import sys; sys.argv = ['policyfactory', '--help']\n"
        "from policyfactory.cli.main import run\n"
        "try:\n    run()\nexcept SystemExit:\n    pass\n"
        f"assert not {heavy} & set(sys.modules), {heavy} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
