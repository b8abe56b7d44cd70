"""An experiment as it is written: its table, and what the names in it stand for; its logs are not read yet."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from policyfactory.core.errors import UsageError
from policyfactory.core.units import parse_duration
from policyfactory.evaluate.checking import WrittenOptions
from policyfactory.evaluate.experiment import Experiment
from policyfactory.evaluate.options import ExperimentTable, ProtocolTable, ReferenceTable, RulesTable, TunerTable
from policyfactory.evaluate.reference import Reference
from policyfactory.policy.catalogue import ALIASES, CATALOGUE, resolve, resolve_model
from policyfactory.policy.policy import Policy
from policyfactory.policy.store import Model
from policyfactory.simulate.metrics import METRICS, check_metrics
from policyfactory.simulate.rules import Rules
from policyfactory.simulate.tuning.tuner import Contender, Tuner, check_contenders
from policyfactory.site.file import site_and_digest
from policyfactory.site.model import Site
from policyfactory.workload.sensitivity import Sensitivity

__all__ = ["Places", "Plan", "Planner"]

_MAX_CONTENDERS = 200


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """An experiment as it is written.

    Parameters
    ----------
    table : ExperimentTable
        Its table.
    logs : tuple of str
        Names of its logs.
    experiment : Experiment
        What is asked of the cases; it has none yet.
    """

    table: ExperimentTable
    logs: tuple[str, ...]
    experiment: Experiment

    @property
    def name(self) -> str:
        """Stem of its folder."""
        return self.table.name

    @property
    def policies(self) -> tuple[str, ...]:
        """Names of the contenders, in order."""
        return self.experiment.policies

    @property
    def times_longest(self) -> float | None:
        """The threshold as a multiple of the longest request of each log; None: that of the rules."""
        return None if self.table.rules.threshold is None else self.table.rules.threshold.times_longest

    @property
    def sensitivity(self) -> Sensitivity:
        """What is done to the jobs of every case."""
        return Sensitivity(self.table.load, self.table.estimates)


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
        self._models: dict[Path, Model] = {}
        self._sites: dict[Path, Site] = {}

    def policy(self, spec: str) -> Policy:
        """Return the policy of a catalogue name or a model file, which lies beside the protocol or where we are."""
        path = Path(spec)
        if spec.lower().endswith(".json") or "/" in spec:
            beside = self.folder / path
            path = beside if beside.is_file() else path
            # Once: a pipe cannot be read again, and a file may be another one then.
            if path not in self._models:
                self._models[path] = resolve_model(str(path) if "/" in str(path) else f"./{path}")
                self.hashes[str(path)] = self._models[path].sha256
            return self._models[path].policy
        return resolve(spec)

    def site(self, name: str) -> Site:
        """Return the site of a file, which lies beside the protocol or where we are."""
        beside = self.folder / name
        path = beside if beside.is_file() else Path(name)
        if path not in self._sites:
            self._sites[path], self.hashes[str(path)] = site_and_digest(path)
        return self._sites[path]


@dataclasses.dataclass(frozen=True, slots=True)
class Planner:
    """What makes the plan of an experiment's table; errors name file, table and key.

    Parameters
    ----------
    written : WrittenOptions
        The protocol.
    number : int
        Place of the experiment in it, from 0.
    logs : sequence of str
        Names of the protocol's logs.
    seed : int
        The protocol's seed.
    places : Places
        Where model files are.
    """

    written: WrittenOptions[ProtocolTable]
    number: int
    logs: Sequence[str]
    seed: int
    places: Places

    def plan(self, table: ExperimentTable, policies: Sequence[Policy] = ()) -> Plan:
        """Return the plan.

        Parameters
        ----------
        table : ExperimentTable
            The experiment's table.
        policies : sequence of Policy
            Policies that are there already; they come before those that the table names.

        Raises
        ------
        InputError, UsageError
            If a name stands for nothing, or two keys exclude each other.
        """
        logs = self._logs(table)
        contenders = self._contenders(table, policies)
        rules = self._rules(table.rules)
        if rules.backfill == "slurm":
            self._check_slurm(rules, contenders)
        with self._about("metrics"):
            metrics = check_metrics(METRICS if table.metrics == ("all",) else table.metrics)
        if table.windows is not None and table.resample is not None:
            raise self._error("resample", reason="an experiment has windows or resampled logs; leave one out")
        if table.lead_in is not None and (table.windows is not None or table.resample is not None):
            reason = "windows and resampled logs begin with an empty machine; measure whole logs, or leave it out"
            raise self._error("lead_in", reason=reason)
        self._check_skip(table, logs)
        known = {"logs": logs, "metrics": metrics, "policies": [one.name for one in contenders]}
        experiment = Experiment(
            name=table.name,
            cases=(),
            contenders=contenders,
            title=table.title or table.name,
            rules=rules,
            metrics=metrics,
            statistic=table.statistic,
            analyses=table.analyses,
            references=tuple(self._reference(at, one, known) for at, one in enumerate(table.reference)),
            seed=self.seed,
        )
        return Plan(table, logs, experiment)

    def _about(self, *path: str | int) -> Any:
        return self.written.about("experiments", self.number, *path)

    def _error(self, *path: str | int, reason: str) -> Exception:
        return self.written.error(("experiments", self.number, *path), reason)

    def _logs(self, table: ExperimentTable) -> tuple[str, ...]:
        for log in table.logs:
            if log not in self.logs:
                there = ", ".join(self.logs)
                raise self._error("logs", reason=f"there is no log {log!r}; add [logs.{log}], or choose from {there}")
        return table.logs or tuple(self.logs)

    # Who competes. ----------------------------------------------------------------------------------------------------

    def _contenders(self, table: ExperimentTable, given: Sequence[Policy]) -> tuple[Contender, ...]:
        policies = [*given, *self._policies(table)]
        if not policies:
            example = self.written.example("policies", "FCFS", "SPF", "SAF")
            raise self._error("policies", reason=f"names no policy; write for example {example}")
        with self._about("policies"):
            check_contenders(policies)
        contenders: list[Contender] = list(policies)
        for at, tuner in enumerate(table.tuners):
            with self._about("tuners", at, "name"):
                contenders.append(_tuner(tuner, policies))
        with self._about("tuners"):
            check_contenders(contenders)
        if len(contenders) > _MAX_CONTENDERS:
            raise self._error("policies", reason=f"{len(contenders)} policies; name at most {_MAX_CONTENDERS}")
        return tuple(contenders)

    def _policies(self, table: ExperimentTable) -> list[Policy]:
        formulas = {}
        for name, formula in table.formulas.items():
            with self._about("formulas", name):
                formulas[name] = Policy(name=name, formula=formula, source="formula of the protocol")
        policies = []
        with self._about("policies"):
            for spec in table.policies:
                if spec in formulas and spec.upper() in {*CATALOGUE, *ALIASES}:
                    raise UsageError(
                        f"two policies are called {spec}, one of them a formula; give each a name of its own"
                    )
                policies.append(formulas.pop(spec) if spec in formulas else self.places.policy(spec))
        return [*policies, *formulas.values()]

    # Under which rules, on which cases. -------------------------------------------------------------------------------

    def _rules(self, table: RulesTable) -> Rules:
        given = {key: getattr(table, key) for key in table.model_fields_set}
        threshold = given.pop("threshold", None)
        if threshold is not None and threshold.seconds is not None:
            given["threshold"] = threshold.seconds
        if given.get("site") is not None:
            with self._about("rules", "site"):
                given["site"] = self.places.site(given["site"])
            given.setdefault("backfill", "slurm")
        if "backfill_policy" in given:
            with self._about("rules", "backfill_policy"):
                given["backfill_policy"] = self.places.policy(given["backfill_policy"])
        with self._about("rules", *list(given)[:1] or ["backfill"]):
            return Rules(**{key: value for key, value in given.items() if value is not None})

    def _check_slurm(self, rules: Rules, contenders: Sequence[Contender]) -> None:
        from policyfactory.simulate.on_site import check_policy

        for one in contenders:
            if isinstance(one, Policy):
                with self._about("policies"):
                    check_policy(one, rules)
            else:
                with self._about("tuners"):
                    one.check(rules)

    def _check_skip(self, table: ExperimentTable, logs: Sequence[str]) -> None:
        for log in table.skip:
            self._check_log(log, logs, "skip")
            if table.windows is None:
                reason = "only windows can be left out, and this experiment has none; cut the logs with windows"
                raise self._error("skip", log, reason=reason)

    def _check_log(self, log: str, logs: Sequence[str], *table: str | int) -> None:
        if log not in logs:
            raise self._error(*table, log, reason=f"this experiment has no such log; it has {', '.join(logs)}")

    # Published values. ------------------------------------------------------------------------------------------------

    def _reference(self, at: int, table: ReferenceTable, known: Mapping[str, Sequence[str]]) -> Reference:
        where = ("reference", at)
        if table.metric not in known["metrics"]:
            measured = ", ".join(known["metrics"])
            raise self._error(*where, "metric", reason=f"this experiment does not measure it; it measures {measured}")
        if not table.values:
            reason = "names no value; write for example values.LOG = { FCFS = 299.83 }"
            raise self._error(*where, "values", reason=reason)
        for key in ("values", "drop"):
            numbers: Mapping[str, Mapping[str, float]] = getattr(table, key)
            for log, row in numbers.items():
                self._check_log(log, known["logs"], *where, key)
                for policy in row:
                    if policy not in known["policies"]:
                        there = ", ".join(known["policies"])
                        reason = f"this experiment has no such policy; it has {there}"
                        raise self._error(*where, key, log, policy, reason=reason)
        with self._about(*where, "source"):
            return Reference(**dict(table))


def _tuner(table: TunerTable, policies: Sequence[Policy]) -> Tuner:
    """Return the tuner of a table, which chooses among ``policies``."""
    known = {policy.name: policy for policy in policies}
    for name in table.policies or ():
        if name not in known:
            raise UsageError(f"a tuner cannot choose {name!r}; the experiment has {', '.join(known)}")
    return Tuner(
        name=table.name or f"{table.feedback}, {table.period}",
        arms=tuple(known[name] for name in table.policies or known),
        feedback=table.feedback,
        period_s=int(parse_duration(table.period)),
        epsilon=table.epsilon,
        discount=table.discount,
        noise=table.noise,
    )
