"""A small protocol with all that can be asked of one: every analysis, tuners, predictions, the record, drawn logs."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

from policyfactory.core.files import dump_json
from policyfactory.evaluation.analyses import ANALYSES
from policyfactory.evaluation.precision import Precision
from policyfactory.evaluation.protocol import Protocol, protocol_of
from policyfactory.evaluation.results_folder import Result, as_dict, results_csv, section_dict
from policyfactory.evaluation.study import RunSettings, run_protocol
from policyfactory.workload.jobs import Workload

__all__ = ["PRECISION", "SIMULATIONS", "make_or_die", "report_text", "run", "small_protocol"]

PRECISION = Precision(1e-6, most=5)
# 3 windows x 3; 5 drawn logs (3, and 2 by the precision) x 4; 1 log x 2.
SIMULATIONS = 9 + 20 + 2
_TUNERS = [
    {"name": "any", "feedback": "random", "period": "1d"},
    {"name": "best", "feedback": "simulate", "period": "1d"},
]


def small_protocol(folder: Path, **changes: Any) -> Protocol:
    """Return the protocol; its log and its predictions are written into ``folder``."""
    rows = []
    for n in range(1500):
        wait, runs, wide = (n * 37) % 4000, 60 + 7 * (n % 90), 1 + n % 4
        rows.append(f"{n} {n * 600} {wait} {runs} {wide} -1 -1 {wide} 900 -1 1 {n % 7} 1 -1 -1 -1 -1 -1")
    (folder / "own.swf").write_text("; MaxProcs: 4\n" + "\n".join(rows) + "\n")
    (folder / "own.csv").write_text("job_id,prediction\n" + "".join(f"{n},{61 + 8 * (n % 80)}\n" for n in range(1500)))
    experiments = [
        {
            "name": "windows",
            "logs": ["own"],
            "windows": "3x3d",
            "policies": ["FCFS", "SPF", "SAF"],
            "metrics": ["mean_bsld", "max_wait"],
            "recorded": True,
            "analyses": [name for name in ANALYSES if name not in {"choices", "improvement"}],
        },
        {
            "name": "drawn",
            "logs": ["model"],
            "resample": {"count": 3, "length": "1w"},
            "policies": ["FCFS", "SAF"],
            "tuners": _TUNERS,
            "metrics": ["mean_wait"],
            "analyses": ["improvement", "choices", "gantt"],
        },
        {
            "name": "predicted",
            "logs": ["own"],
            "policies": ["FCFS", "SPF"],
            "metrics": ["mean_bsld"],
            "rules": {"decide_by": "prediction"},
        },
    ]
    logs = {
        "own": {"file": str(folder / "own.swf"), "predictions": str(folder / "own.csv")},
        "model": {"lublin": {"processors": 32, "jobs": 1500, "seed": 1}},
    }
    content = {"schema_version": 1, "name": "small", "seed": 5, "logs": logs, "experiments": experiments}
    return protocol_of({**content, **changes})


def run(protocol: Protocol, **settings: Any) -> Result:
    """Run the protocol."""
    return run_protocol(protocol, settings=RunSettings(precision=PRECISION, **settings))


def report_text(study: Result) -> str:
    """Return all numbers and words of a report; drawing its pictures takes fifty times as long as the run."""
    sections = [*(section for outcome in study.outcomes for section in outcome.sections), *study.claims]
    words = [[section.name, section_dict(section), list(section.answers)] for section in sections]
    values = results_csv({outcome.experiment.name: outcome.evaluation for outcome in study.outcomes})
    return "\n".join([values, dump_json(as_dict(study)), dump_json(words)])


def make_or_die(mark: str, workload: Workload) -> Workload:
    """Return the jobs of a case; the first process that is asked is killed, and leaves a mark."""
    if not Path(mark).exists():
        Path(mark).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return workload
