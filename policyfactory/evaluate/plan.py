"""One experiment of a protocol as it is written, before its logs are read."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from policyfactory.analyses import make_analysis
from policyfactory.core.artefact import unchanged
from policyfactory.core.errors import UsageError
from policyfactory.core.units import parse_duration
from policyfactory.evaluate.reader import Reader
from policyfactory.evaluate.reference import Reference
from policyfactory.evaluate.run import DEFAULT_METRICS, check_metrics
from policyfactory.policy.catalogue import ALIASES, CATALOGUE, resolve
from policyfactory.policy.policy import Policy
from policyfactory.policy.store import LARGEST_FILE
from policyfactory.simulate.metrics import METRICS
from policyfactory.simulate.rules import Backfill, Compatibility, DecideBy, Overrun, Rules, Ties
from policyfactory.statistics.intervals import STATISTICS, Statistic
from policyfactory.tuning.contenders import Contender, check_contenders
from policyfactory.tuning.tuner import make_tuner
from policyfactory.workload.resample import Draw, Resampling, parse_length
from policyfactory.workload.sensitivity import Sensitivity, parse_estimates
from policyfactory.workload.windows import WindowSpec, parse_windows

if TYPE_CHECKING:
    from policyfactory.analyses.analysis import Analysis

__all__ = ["IF_KNOWN", "MAX_CASES", "Places", "Plan", "Resamples", "parse_threshold", "read_plan"]

MAX_CASES = 100_000
IF_KNOWN = "if-known"  # the recorded schedule is shown where every case has it
_MAX_CONTENDERS = 200
_TIMES_LONGEST = re.compile(r"(\d{1,6}(?:\.\d{1,6})?)\s*x\s*longest\s*request", re.IGNORECASE)


@dataclasses.dataclass(frozen=True, slots=True)
class Resamples:
    """How many resampled logs of each log, and what they are.

    Parameters
    ----------
    count : int
        How many.
    how : Resampling
        Their length, and the weeks that are drawn from.
    """

    count: int
    how: Resampling


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """An experiment as it is written.

    Parameters
    ----------
    name, title : str
        Stem of its folder, and heading.
    logs : tuple of str
        Names of its logs.
    contenders : tuple of Policy or Tuner
        The first is the baseline.
    rules : Rules
        The rules of every simulation, but for the threshold of `times_longest`.
    times_longest : float or None
        The threshold as a multiple of the largest requested time of each log; None: that of ``rules``.
    metrics : tuple of str
        The first decides.
    windows : WindowSpec or None
        How each log is cut.
    resamples : Resamples or None
        Or what is drawn from it; with neither, the whole log is one case.
    skip : dict of str to tuple of int
        Cases of a log that are left out, by number.
    sensitivity : Sensitivity
        What is done to the jobs of every case.
    statistic : {"median", "mean", "ratio"}
        What stands for a policy over the cases.
    analyses : tuple of Analysis
        Looks beyond the metrics.
    references : tuple of Reference
        Published values.
    seed : int
        Seed of everything random.
    recorded : bool or None
        Whether the recorded schedule is shown beside the policies; None: where every case has it.
    """

    name: str
    title: str
    logs: tuple[str, ...]
    contenders: tuple[Contender, ...]
    rules: Rules
    times_longest: float | None = None
    metrics: tuple[str, ...] = DEFAULT_METRICS
    windows: WindowSpec | None = None
    resamples: Resamples | None = None
    skip: Mapping[str, tuple[int, ...]] = dataclasses.field(default_factory=dict)
    sensitivity: Sensitivity = dataclasses.field(default_factory=Sensitivity)
    statistic: Statistic = "median"
    analyses: tuple[Analysis, ...] = ()
    references: tuple[Reference, ...] = ()
    seed: int = 0
    recorded: bool | None = False

    @property
    def policies(self) -> tuple[str, ...]:
        """Names of the contenders, in order."""
        return tuple(contender.name for contender in self.contenders)


class Places:
    """Where the files that a protocol names are, and their digests.

    Parameters
    ----------
    folder : Path
        The folder of the protocol.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.hashes: dict[str, str] = {}

    def policy(self, spec: str) -> Policy:
        """Return the policy of a catalogue name or a model file, which lies beside the protocol or where we are."""
        path = Path(spec)
        if spec.lower().endswith(".json") or "/" in spec:
            beside = self.folder / path
            path = beside if beside.is_file() else path
            with unchanged(path, limit=LARGEST_FILE) as digest:
                found = resolve(str(path) if "/" in str(path) else f"./{path}")
            self.hashes[str(path)] = digest
            return found
        return resolve(spec)


def parse_threshold(text: str) -> tuple[float | None, float | None]:
    """Return (seconds, None), or (None, factor) of ``3x longest request``.

    Raises
    ------
    UsageError
        If the text is neither a duration nor a multiple of the longest request.
    """
    times = _TIMES_LONGEST.fullmatch(text.strip())
    return (None, float(times.group(1))) if times else (parse_duration(text, unit=True), None)


def read_plan(reader: Reader, logs: Sequence[str], seed: int, places: Places) -> Plan:
    """Return the experiment of a table.

    Parameters
    ----------
    reader : Reader
        The table.
    logs : sequence of str
        Names of the protocol's logs.
    seed : int
        The protocol's seed.
    places : Places
        Where model files are.

    Raises
    ------
    InputError
        If a key, a name or a value cannot be meant.
    """
    name = reader.text("name")
    title = reader.text("title", name)
    own = _logs(reader, logs)
    policies = _policies(reader, places)
    contenders = _with_tuners(reader, policies)
    rules, times = _rules(reader.table("rules"), places)
    metrics = _metrics(reader)
    windows, resamples = _cases(reader)
    plan = Plan(
        name=name,
        title=title,
        logs=own,
        contenders=contenders,
        rules=rules,
        times_longest=times,
        metrics=metrics,
        windows=windows,
        resamples=resamples,
        skip=_skip(reader, own, in_windows=windows is not None),
        sensitivity=_sensitivity(reader),
        statistic=reader.choice("statistic", STATISTICS, "median"),
        analyses=_analyses(reader),
        references=_references(reader, own, metrics, tuple(one.name for one in contenders)),
        seed=seed,
        recorded=_recorded(reader),
    )
    reader.finish()
    return plan


def _logs(reader: Reader, logs: Sequence[str]) -> tuple[str, ...]:
    chosen: tuple[str, ...] = reader.texts("logs", tuple(logs))
    if not chosen:
        raise reader.error("logs", f"names no log; leave it out for all of {', '.join(logs)}")
    for log in chosen:
        if log not in logs:
            raise reader.error("logs", f"there is no log {log!r}; add [logs.{log}], or choose from {', '.join(logs)}")
    return chosen


def _policies(reader: Reader, places: Places) -> list[Policy]:
    formulas = {}
    table = reader.table("formulas")
    for name in table.content:
        with table.about(name):
            formulas[name] = Policy(name=name, formula=table.text(name), source="formula of the protocol")
    found = []
    for spec in reader.texts("policies", (), once=False):
        with reader.about("policies"):
            if spec in formulas and spec.upper() in {*CATALOGUE, *ALIASES}:
                raise UsageError(f"two policies are called {spec}, one of them a formula; give each a name of its own")
            found.append(formulas.pop(spec) if spec in formulas else places.policy(spec))
    found += formulas.values()
    if not found:
        raise reader.error("policies", 'names no policy; write for example policies = ["FCFS", "SPF", "SAF"]')
    return found


def _with_tuners(reader: Reader, policies: list[Policy]) -> tuple[Contender, ...]:
    with reader.about("policies"):
        check_contenders(policies)
    contenders: list[Contender] = list(policies)
    for table in reader.tables("tuners"):
        with reader.about("tuners"):
            contenders.append(make_tuner(table.content, policies))
    with reader.about("tuners"):
        check_contenders(contenders)
    if len(contenders) > _MAX_CONTENDERS:
        raise reader.error("policies", f"{len(contenders)} policies; name at most {_MAX_CONTENDERS}")
    return tuple(contenders)


def _rules(reader: Reader, places: Places) -> tuple[Rules, float | None]:
    given: dict[str, Any] = {}
    words = {"backfill": Backfill, "decide_by": DecideBy, "ties": Ties, "overrun": Overrun}
    for key, choices in {**words, "compatibility": Compatibility}.items():
        if reader.has(key):
            given[key] = reader.choice(key, get_args(choices))
    times = None
    if reader.has("threshold"):
        with reader.about("threshold"):
            seconds, times = parse_threshold(
                reader.text(
                    "threshold",
                    expected='a duration ("40h") or a multiple of the longest request ("3x longest request")',
                )
            )
            if seconds is not None:
                given["threshold"] = seconds
    if reader.has("backfill_policy"):
        with reader.about("backfill_policy"):
            given["backfill_policy"] = places.policy(reader.text("backfill_policy"))
    with reader.about(next(iter(reader.content), "backfill")):
        rules = Rules(**given)
    reader.finish()
    return rules, times


def _metrics(reader: Reader) -> tuple[str, ...]:
    names = reader.texts("metrics", DEFAULT_METRICS, once=False)
    with reader.about("metrics"):
        return check_metrics(METRICS if names == ("all",) else names)


def _cases(reader: Reader) -> tuple[WindowSpec | None, Resamples | None]:
    windows, resamples = None, None
    text = reader.text("windows", None)
    if text is not None:
        with reader.about("windows"):
            windows = parse_windows(text)
            if (windows.count or 0) > MAX_CASES:
                raise reader.error("windows", f"ask for at most {MAX_CASES:,}")
    if reader.has("resample"):
        if windows is not None:
            raise reader.error("resample", "an experiment has windows or resampled logs; leave one out")
        table = reader.table("resample")
        count = table.integer("count", least=1, most=MAX_CASES)
        draw = table.choice("draw", get_args(Draw), "log")
        with table.about("length"):
            weeks = parse_length(table.text("length", "log", expected='a length, for example "2y"'))
            resamples = Resamples(count, Resampling(weeks, draw))
        table.finish()
    return windows, resamples


def _skip(reader: Reader, logs: Sequence[str], *, in_windows: bool) -> dict[str, tuple[int, ...]]:
    table = reader.table("skip")
    for log in table.content:
        if log not in logs:
            raise table.error(log, f"this experiment has no such log; it has {', '.join(logs)}")
        if not in_windows:
            raise table.error(
                log, "only windows can be left out, and this experiment has none; cut the logs with windows"
            )
    return {log: table.integers(log) for log in table.content}


def _sensitivity(reader: Reader) -> Sensitivity:
    load = float(reader.number("load", 1.0))
    estimates = reader.text("estimates", "user")
    with reader.about("estimates"):
        rule = parse_estimates(estimates)
    if not 0.01 <= load <= 100:
        raise reader.error("load", "is out of range; 1.1 brings 10 % more load, write 0.01 to 100")
    return Sensitivity(load, rule)


def _analyses(reader: Reader) -> tuple[Analysis, ...]:
    found: list[Analysis] = []
    for entry in reader.entries("analyses"):
        with reader.about("analyses"):
            if isinstance(entry, str):
                found.append(make_analysis(entry))
            else:
                options = {key: value for key, value in entry.content.items() if key != "name"}
                found.append(make_analysis(entry.text("name"), **options))
    return tuple(found)


def _recorded(reader: Reader) -> bool | None:
    if not reader.has("recorded"):
        return False
    found = reader.content["recorded"]
    if not isinstance(found, bool) and found != IF_KNOWN:
        raise reader.error("recorded", f'write true, false, or "{IF_KNOWN}" (where every job has a recorded start)')
    return found if isinstance(found, bool) else None


# Published values. ----------------------------------------------------------------------------------------------------


def _references(
    reader: Reader, logs: Sequence[str], metrics: Sequence[str], policies: Sequence[str]
) -> tuple[Reference, ...]:
    if not reader.has("reference"):
        return ()
    one = isinstance(reader.content["reference"], Mapping)
    tables = [reader.table("reference")] if one else reader.tables("reference", name="source")
    return tuple(_reference(table, logs, metrics, policies) for table in tables)


def _reference(reader: Reader, logs: Sequence[str], metrics: Sequence[str], policies: Sequence[str]) -> Reference:
    metric = reader.text("metric")
    if metric not in metrics:
        raise reader.error("metric", f"this experiment does not measure it; it measures {', '.join(metrics)}")
    values = _numbers(reader, "values", logs, policies, lambda row, name: float(row.number(name)))
    if not values:
        raise reader.error("values", "names no value; write for example values.LOG = { FCFS = 299.83 }")
    drop = _numbers(reader, "drop", logs, policies, Reader.integer)
    with reader.about("source"):
        found = Reference(
            source=reader.text("source"),
            metric=metric,
            values=values,
            statistic=reader.choice("statistic", STATISTICS, "median"),
            digits=reader.integer("digits", 2, least=-9, most=9),
            drop=drop,
            first=reader.integer("first", None, least=1, most=MAX_CASES),
            cut=reader.flag("cut", False),
        )
    reader.finish()
    return found


def _numbers(
    reader: Reader, key: str, logs: Sequence[str], policies: Sequence[str], read: Callable[[Reader, str], Any]
) -> dict[str, dict[str, Any]]:
    """Return the numbers by log and policy, each read by ``read``."""
    outer = reader.table(key)
    found: dict[str, dict[str, Any]] = {}
    for log in outer.content:
        if log not in logs:
            raise outer.error(log, f"this experiment has no such log; it has {', '.join(logs)}")
        inner = outer.table(log)
        for policy in inner.content:
            if policy not in policies:
                raise inner.error(policy, f"this experiment has no such policy; it has {', '.join(policies)}")
        found[log] = {policy: read(inner, policy) for policy in inner.content}
    return found
