"""Learn the sort keys of HPC batch schedulers, test them on real logs and hand them over.

The package follows one line of data flow, a folder a stage::

    workload -> trials -> fit -> policy -> evaluate -> export

The names below are the public interface. They are loaded on first use, so that importing the package (and
``policyfactory --version``) costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

# A package becomes an attribute of its parent when it is first imported, and never again: so now, before the verbs of
# the same names are asked for. None of these packages imports anything heavy.
import policyfactory.evaluate
import policyfactory.fit
import policyfactory.simulate

del policyfactory.evaluate, policyfactory.fit, policyfactory.simulate

__version__ = "0.1.0"

# name -> module that defines it
_PUBLIC: dict[str, str] = {
    "CATALOGUE": "policyfactory.policy.catalogue",
    "Case": "policyfactory.simulate.cases",
    "Evaluation": "policyfactory.statistics.evaluation",
    "Experiment": "policyfactory.evaluate.experiment",
    "GenerateOptions": "policyfactory.trials.run",
    "METRICS": "policyfactory.simulate.metrics",
    "Model": "policyfactory.policy.store",
    "Outcome": "policyfactory.evaluate.experiment",
    "Policy": "policyfactory.policy.policy",
    "PolicyfactoryError": "policyfactory.core.errors",
    "Precision": "policyfactory.evaluate.precision",
    "Protocol": "policyfactory.evaluate.protocol",
    "Rules": "policyfactory.simulate.rules",
    "RunSettings": "policyfactory.evaluate.study",
    "Schedule": "policyfactory.simulate.schedule",
    "ScoreTable": "policyfactory.trials.table",
    "Study": "policyfactory.evaluate.study",
    "Tuner": "policyfactory.tuning.tuner",
    "Workload": "policyfactory.workload.jobs",
    "case_of": "policyfactory.simulate.cases",
    "cases_of": "policyfactory.evaluate.from_plan",
    "compare": "policyfactory.statistics.compare",
    "default_workload": "policyfactory.workload.models.lublin",
    "fit_form": "policyfactory.fit.userform",
    "fit_forms": "policyfactory.fit.forms",
    "fit_polynomials": "policyfactory.fit.polynomials",
    "generate_lublin": "policyfactory.workload.models.lublin",
    "generate_scores": "policyfactory.trials.generate",
    "load_model": "policyfactory.policy.store",
    "load_workload": "policyfactory.workload.clean",
    "measure": "policyfactory.simulate.metrics",
    "read_logs": "policyfactory.evaluate.study",
    "read_protocol": "policyfactory.evaluate.protocol",
    "read_score_table": "policyfactory.trials.table",
    "read_swf": "policyfactory.workload.swf.files",
    "resample": "policyfactory.workload.resample",
    "resolve": "policyfactory.policy.catalogue",
    "run_experiment": "policyfactory.evaluate.experiments",
    "run_protocol": "policyfactory.evaluate.study",
    "save_model": "policyfactory.policy.store",
    "simulate": "policyfactory.simulate.simulate",
    "to_model": "policyfactory.fit.model",
    "tsafrir_estimates": "policyfactory.workload.models.tsafrir",
    "write_report": "policyfactory.evaluate.folder",
    "write_score_table": "policyfactory.trials.table",
    "write_swf": "policyfactory.workload.swf.files",
}

__all__ = ["__version__", *sorted(_PUBLIC)]  # noqa: PLE0604 (the names are the keys above)


def __getattr__(name: str) -> Any:
    if name in _PUBLIC:
        return getattr(import_module(_PUBLIC[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
