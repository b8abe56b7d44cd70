"""The help of the commands: the options that matter first, then the others by what they are about, and an example."""

from __future__ import annotations

import typing
from pathlib import Path
from typing import Any

from policyfactory.cli.exits import DESCRIBING, RULE

__all__ = ["EXAMPLES", "arrange"]

# At most five of each command, in this order.
_FIRST: dict[str, tuple[str, ...]] = {
    "generate": ("output", "tuples", "trials", "workers", "overwrite"),
    "fit": ("output", "family", "form", "report", "figures"),
    "evaluate": ("policies", "metrics", "threshold", "windows", "output"),
    "tune": ("policies", "feedback", "period", "metrics", "output"),
    "learn": ("output", "tuples", "metric", "threshold", "workers"),
    "predict": ("output", "policy", "model", "overwrite"),
    "train": ("output", "goal", "learner", "family", "mode"),
    "judge": ("candidates", "output", "held_out", "replicas", "ledger"),
    "distill": ("output", "family", "goal", "margin", "overwrite"),
    "export": ("to", "output", "workload", "begin", "preview"),
    "shadow": ("accounting", "policy", "output", "overwrite"),
    "review": ("before", "after", "policy", "output", "overwrite"),
    "workload show": ("output", "json"),
    "workload clean": ("output", "preset", "estimate_missing", "overwrite"),
    "workload window": ("output", "windows", "start", "end", "jobs"),
    "workload import": ("output", "start", "end", "processors", "unlimited"),
    "workload lublin": ("processors", "jobs", "seed", "load", "output"),
    "workload estimates": ("max_estimate", "seed", "output"),
    "workload resample": ("weeks", "length", "number", "seed", "output"),
    "site import": ("output", "scheduler", "sacctmgr", "qos", "events"),
    "site check": ("json",),
    "site replay": ("output", "start", "end", "json", "overwrite"),
}

_TOPICS: dict[str, tuple[str, ...]] = {
    "How logs are read": (
        "preset", "processors", "force_processors", "estimate_missing", "predictions", "zero_run",
        "longest_request", "form", "partition", "leave_out", "unit", "time_zone", "nodes", "computer", "installation",
        "requeued", "keep_unstarted", "unlimited", "partition_limit", "default_limit", "defaults", "anonymize",
        "user_names", "assume",
    ),
    "Predictions": ("predictor", "state", "stale"),
    "What is simulated": (
        "windows", "lead_in", "resamples", "length", "draw", "load", "estimates", "formula", "epsilon", "discount",
        "noise", "state_size", "queue_size", "estimator", "tuples", "trials", "window_jobs", "training_windows",
        "choosing_windows", "judged_windows", "parts", "part", "replicas", "loads", "decisions", "pairs",
    ),
    "How it is trained": ("window", "every_days", "first_days", "least", "trees", "leaves"),
    "How it searches": ("start", "restarts", "evaluations", "step", "objective", "pull"),
    "The scheduler": (
        "backfill", "site", "decide_by", "threshold", "ties", "overrun", "backfill_order", "compatibility",
    ),
    "What is measured and said": (
        "metrics", "statistic", "recorded", "analyses", "precision", "max_resamples", "seed", "starts", "convergence",
        "repeats", "top", "bootstrap", "certainty", "trace", "bands", "max_p99", "max_longest",
    ),
    "Protocols": ("only", "log", "traces"),
    "How it runs": (
        "workers", "backend", "scheduler", "time_limit", "output", "overwrite", "json", "as_json", "verbose", "report",
        "figures",
    ),
}  # fmt: skip

EXAMPLES: dict[str, str] = {
    "generate": "policyfactory generate site.swf.gz --tuples 1000 --output scores.csv",
    "fit": "policyfactory fit scores.csv --output model.json --report fit.md",
    "evaluate": "policyfactory evaluate site.swf.gz --policies FCFS,SAF,model.json --output results",
    "tune": "policyfactory tune site.swf.gz --policies FCFS,SPF,SAF --period 1w --output tuned",
    "learn": "policyfactory learn site.swf.gz --output learned",
    "predict": "policyfactory predict site.swf.gz --output predicted",
    "train": "policyfactory train site.swf.gz --family linear --output trained",
    "judge": "policyfactory judge site.swf.gz 'p*sqrt(q)' 'ln(e) - ln(s) + 0.4*ln(q)'",
    "distill": "policyfactory distill net.json site.swf.gz --output distilled",
    "export": "policyfactory export learned/policy.json --workload site.swf.gz --output job_submit.lua",
    "history update": "policyfactory history update sacct.txt --state history",
    "shadow": "policyfactory shadow slurmctld.log --accounting sacct.txt --output shadow",
    "review": "policyfactory review --before before.txt --after after.txt --policy policy.json --output review",
    "demo": "policyfactory demo",
    "workload show": "policyfactory workload show site.swf.gz",
    "workload clean": "policyfactory workload clean site.swf.gz --output clean.swf --report cleaned.json",
    "workload window": "policyfactory workload window site.swf.gz --from 2026-03-01 --to 2026-04-01 --output march.swf",
    "workload download": "policyfactory workload download kth",
    "workload import": "policyfactory workload import sacct.txt --output site.swf",
    "workload lublin": "policyfactory workload lublin --processors 256 --jobs 10000 --seed 1 --output lublin.swf",
    "workload estimates": "policyfactory workload estimates lublin.swf --seed 1 --output requests.swf",
    "workload resample": "policyfactory workload resample site.swf.gz --number 10 --output drawn",
    "site import": "policyfactory site import slurm.conf --sacctmgr dump.cfg --qos qos.txt --output site.toml",
    "site show": "policyfactory site show site.toml",
    "site check": "policyfactory site check site.swf.gz site.toml",
    "site replay": "policyfactory site replay site.swf.gz site.toml --output replayed",
    "policy list": "policyfactory policy list",
    "policy show": "policyfactory policy show SAF",
    "policy explain": "policyfactory policy explain F1 --job p=3600,q=16,r=86400",
}

_OTHERS = "Further options"


def arrange(command: Any, path: str = "") -> Any:
    """Put the options of a command and of all below it into groups, and an example at its end; return it.

    Parameters
    ----------
    command : click.Command
        What typer has made of the functions.
    path : str
        Its name, with those of the groups that it is in.
    """
    for name, sub in getattr(command, "commands", {}).items():
        arrange(sub, f"{path} {name}".strip())
    if command.help:
        # Paragraphs as wide as the terminal, whatever the width of the source.
        command.help = "\n\n".join(" ".join(part.split()) for part in command.help.split("\n\n"))
        command.help += f"\n\n{RULE}" if path in DESCRIBING else ""
    if example := EXAMPLES.get(path):
        command.epilog = f"Example: {example}"
    options = [one for one in command.params if one.param_type_name == "option" and one.name != "help"]
    for one in options:
        one.metavar = one.metavar or _metavar(one)
    first = _FIRST.get(path, ())
    if not first:
        return command
    topics = {name: topic for topic, names in _TOPICS.items() for name in names}
    order = [*_TOPICS, _OTHERS]
    for one in options:
        if one.name not in first:
            one.rich_help_panel = topics.get(one.name, _OTHERS) if len(options) > len(first) + 4 else _OTHERS

    def place(one: Any) -> tuple[int, int]:
        if one.param_type_name != "option" or one.name == "help":
            return (0 if one.param_type_name == "argument" else 3, 0)
        return (1, first.index(one.name)) if one.name in first else (2, order.index(one.rich_help_panel))

    command.params.sort(key=place)
    return command


def _metavar(option: Any) -> str | None:
    """Return what stands for the value of an option: nothing for a flag, one word for many that its text says.

    None leaves it to typer, whose older versions do not show types.
    """
    kind = getattr(getattr(option, "type_descriptor", None), "annotation", None)
    kinds = [one for one in typing.get_args(kind) if one is not type(None)]
    if typing.get_origin(kind) is not typing.Literal and len(kinds) == 1:
        kind = kinds[0]
    if typing.get_origin(kind) is typing.Literal:
        words = [str(word) for word in typing.get_args(kind)]
        return "WORD" if all(word in (option.help or "") for word in words) else "|".join(words)
    names: dict[Any, str] = {bool: " ", int: "N", float: "NUMBER", str: "TEXT", Path: "FILE"}
    return names.get(kind)
