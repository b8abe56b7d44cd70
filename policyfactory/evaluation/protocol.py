"""Protocols: what is evaluated, as data. A TOML file in evaluate/ is one; so are the options of the command line.

docs/protocols.md has every key. A protocol is refused before anything is simulated if a key, a name or a value in it
is wrong; the message (`policyfactory.evaluation.protocol_content`) names the file, the table, the key, the value and
the cure.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from policyfactory.core.errors import UsageError
from policyfactory.core.inputs import read_toml, sha256_bytes
from policyfactory.core.text import parse_duration
from policyfactory.evaluation.experiment import Experiment, default_metrics
from policyfactory.evaluation.options import (
    By,
    ClaimTable,
    ExperimentTable,
    LogTable,
    ProtocolTable,
    ReferenceTable,
    RulesTable,
    TunerTable,
)
from policyfactory.evaluation.protocol_content import ProtocolContent
from policyfactory.policy.policy import Policy
from policyfactory.policy.store import ALIASES, CATALOGUE, Model, resolve, resolve_model
from policyfactory.simulation.metrics import METRICS, check_metrics
from policyfactory.simulation.rules import Rules
from policyfactory.simulation.tuning.tuner import Contender, Tuner, check_contenders
from policyfactory.site.file import site_and_digest
from policyfactory.site.model import Site

_MAX_CONTENDERS = 200


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
class _ExperimentBuilder:
    """Makes the experiment of a table; errors name file, table and key.

    Parameters
    ----------
    written : ProtocolContent
        The protocol.
    number : int
        Place of the experiment in it, from 0.
    log_names : sequence of str
        Names of the protocol's logs.
    seed : int
        The protocol's seed.
    places : Places
        Where model files are.
    """

    written: ProtocolContent[ProtocolTable]
    number: int
    log_names: Sequence[str]
    seed: int
    places: Places

    def build(self, table: ExperimentTable, policies: Sequence[Policy] = ()) -> Experiment:
        """Return the experiment, whose logs are not read yet; ``policies`` come before those that the table names."""
        logs = self._logs(table)
        contenders = self._contenders(table, policies)
        rules = self._rules(table.rules)
        if rules.backfill == "slurm":
            self._check_slurm(rules, contenders)
        metrics = table.metrics if "metrics" in table.model_fields_set else default_metrics(rules)
        with self._about("metrics"):
            metrics = check_metrics(METRICS if metrics == ("all",) else metrics)
        if table.windows is not None and table.resample is not None:
            raise self._error("resample", reason="an experiment has windows or resampled logs; leave one out")
        if table.lead_in is not None and (table.windows is not None or table.resample is not None):
            reason = "windows and resampled logs begin with an empty machine; measure whole logs, or leave it out"
            raise self._error("lead_in", reason=reason)
        self._check_skip(table, logs)
        known = {"logs": logs, "metrics": metrics, "policies": [contender.name for contender in contenders]}
        for index, reference in enumerate(table.reference):
            self._check_reference(index, reference, known)
        return Experiment(
            name=table.name,
            cases=(),
            contenders=contenders,
            title=table.title or table.name,
            rules=rules,
            metrics=metrics,
            statistic=table.statistic,
            analyses=table.analyses,
            references=table.reference,
            seed=self.seed,
            table=table,
            log_names=logs,
        )

    def _about(self, *path: str | int) -> Any:
        return self.written.about("experiments", self.number, *path)

    def _error(self, *path: str | int, reason: str) -> Exception:
        return self.written.error(("experiments", self.number, *path), reason)

    def _logs(self, table: ExperimentTable) -> tuple[str, ...]:
        if table.logs is not None and not table.logs:
            raise self._error("logs", reason="names no log; leave it out for all of them")
        for log in table.logs or ():
            if log not in self.log_names:
                there = ", ".join(self.log_names)
                raise self._error("logs", reason=f"there is no log {log!r}; add [logs.{log}], or choose from {there}")
        return table.logs or tuple(self.log_names)

    # Who competes. ----------------------------------------------------------------------------------------------------

    def _contenders(self, table: ExperimentTable, given: Sequence[Policy]) -> tuple[Contender, ...]:
        policies = [*given, *self._policies(table)]
        if not policies:
            example = self.written.example("policies", "FCFS", "SPF", "SAF")
            raise self._error("policies", reason=f"names no policy; write for example {example}")
        with self._about("policies"):
            check_contenders(policies)
        contenders: list[Contender] = list(policies)
        for index, tuner in enumerate(table.tuners):
            with self._about("tuners", index, "name"):
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
        from policyfactory.simulation.on_site import check_policy

        for contender in contenders:
            if isinstance(contender, Policy):
                with self._about("policies"):
                    check_policy(contender, rules)
            else:
                with self._about("tuners"):
                    contender.check(rules)

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

    def _check_reference(self, index: int, table: ReferenceTable, known: Mapping[str, Sequence[str]]) -> None:
        where = ("reference", index)
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
        dropped = [f"{log}, {policy}" for log, row in table.drop.items() for policy, count in row.items() if count]
        if dropped and table.statistic == "ratio":
            with self._about(*where, "source"):
                raise UsageError(
                    f"reference {table.source}: drop of {dropped[0]} would leave cases without their pair; "
                    "a ratio needs all of them"
                )


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


# Protocols ------------------------------------------------------------------------------------------------------------


PROTOCOL_SCHEMA = 1
MAX_BYTES = 1_000_000
_STEM = re.compile(r"[a-z0-9][a-z0-9_-]{0,59}")
_LONGEST_NAME = 100
_TAKEN = ("claims", "starts")  # folders of a report beside those of its experiments
_OF_A_FILE = ("sha256", "preset", "estimate_missing", "machine", "force_machine", "predictions")


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Protocol:
    """What is evaluated, and what a paper says about it.

    Parameters
    ----------
    name : str
        Stem of files.
    title : str
        What it is.
    source : str
        The paper, as a citation; empty if there is none.
    about : str
        What is done.
    seed : int
        Seed of everything random.
    logs : mapping of str to LogTable
        The logs by their names.
    experiments : tuple of Experiment
        The experiments, whose logs are not read yet.
    claims : tuple of ClaimTable
        What the paper concludes.
    folder : Path
        Where files are looked for.
    hashes : dict of str to str
        SHA-256 of the protocol and of the model files it names, by their paths.
    """

    name: str
    title: str
    source: str
    about: str
    seed: int
    logs: Mapping[str, LogTable]
    experiments: tuple[Experiment, ...]
    claims: tuple[ClaimTable, ...] = ()
    folder: Path = Path()
    hashes: Mapping[str, str] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True, slots=True)
class ProtocolFile:
    """A protocol file: read once, so that its digest is that of what is run.

    Parameters
    ----------
    path : Path
        The file.
    data : bytes
        What is in it.
    content : dict
        The same as `tomllib` reads it.
    """

    path: Path
    data: bytes
    content: dict[str, Any]


def read_file(path: Path) -> ProtocolFile:
    """Return a protocol file.

    Raises
    ------
    InputError
        If it cannot be read, is larger than `MAX_BYTES`, or is no TOML.
    """
    data, content = read_toml(path, limit=MAX_BYTES, page="docs/protocols.md")
    return ProtocolFile(path, data, content)


def read_protocol(path: Path | str) -> Protocol:
    """Read a protocol.

    Parameters
    ----------
    path : Path or str
        A TOML file; docs/protocols.md has its keys.

    Raises
    ------
    InputError
        If it cannot be read, or a key, a name or a value in it is wrong.
    """
    file = read_file(Path(path))
    return protocol_of(file.content, file)


def protocol_of(
    content: Mapping[str, Any],
    file: ProtocolFile | None = None,
    *,
    by: By = "command",
    policies: Sequence[Policy] = (),
) -> Protocol:
    """Return the protocol that ``content`` describes: its tables checked, and what their names stand for.

    Parameters
    ----------
    content : mapping
        As `tomllib` reads it.
    file : ProtocolFile, optional
        Where it is from, for messages, relative paths and the digest.
    by : {"command", "call"}
        Without a file: who gave the options that it was made from, for messages.
    policies : sequence of Policy
        Policies of every experiment that are there already.

    Raises
    ------
    InputError
        If a key, a name or a value cannot be used; of a content made from options, also UsageError and others.
    """
    path = None if file is None else file.path
    written = ProtocolContent(ProtocolTable, content, "" if path is None else str(path), by if file is None else "file")
    table = written.checked()
    if table.schema_version != PROTOCOL_SCHEMA:
        raise written.error(("schema_version",), f"this version of policyfactory reads {PROTOCOL_SCHEMA}; use another")
    name = table.name or ("" if path is None else path.stem)
    if not _STEM.fullmatch(name):
        reason = "is no stem of files; use at most 60 lower-case letters, digits, - and _"
        raise written.error(("name",), reason)
    _check_logs(written, table)
    places = Places(Path() if path is None else path.parent)
    experiments = tuple(
        _ExperimentBuilder(written, number, tuple(table.logs), table.seed, places).build(experiment, policies)
        for number, experiment in enumerate(table.experiments)
    )
    _check_experiments(written, experiments)
    for number, claim in enumerate(table.claims):
        _check_claim(written, number, claim, experiments)
    return Protocol(
        name=name,
        title=table.title or name,
        source=table.source,
        about=table.about,
        seed=table.seed,
        logs=table.logs,
        experiments=experiments,
        claims=table.claims,
        folder=places.folder,
        hashes=places.hashes | ({} if file is None else {str(file.path): sha256_bytes(file.data)}),
    )


def _check_logs(written: ProtocolContent[ProtocolTable], table: ProtocolTable) -> None:
    if not table.logs:
        example = '[logs.kth] with file = "KTH-SP2-1996-2.1-cln.swf.gz"'
        raise written.error(("logs",), f"names no log; write for example {example}")
    for name, log in table.logs.items():
        if not name.strip() or len(name) > _LONGEST_NAME or not name.isprintable():
            reason = f"a log's name must have 1 to {_LONGEST_NAME} printable characters"
            raise written.error(("logs", name, "name"), reason)
        if (log.file is not None) + (log.lublin is not None) + log.embedded != 1:
            reason = 'write one of file = "LOG.swf.gz", lublin = { ... } and embedded = true'
            raise written.error(("logs", name, "file"), reason)
        file_keys = [key for key in _OF_A_FILE if key in log.model_fields_set]
        if log.file is None and file_keys:
            reason = "belongs to a log that is read from a file; leave it out, or name the file"
            raise written.error(("logs", name, file_keys[0]), reason)


def _check_experiments(written: ProtocolContent[ProtocolTable], experiments: Sequence[Experiment]) -> None:
    if not experiments:
        raise written.error(("experiments",), "names no experiment; write at least one [[experiments]]")
    seen: set[str] = set()
    for index, experiment in enumerate(experiments):
        reason = ""
        if not _STEM.fullmatch(experiment.name):
            reason = "is no name of a folder; use at most 60 lower-case letters, digits, - and _"
        elif experiment.name in _TAKEN:
            reason = f"{experiment.name} is a folder of every report; choose another name"
        elif experiment.name in seen:
            reason = f"two are called {experiment.name}; give each a name of its own"
        if reason:
            raise written.error(("experiments", index, "name"), reason)
        seen.add(experiment.name)


def _check_claim(
    written: ProtocolContent[ProtocolTable], number: int, table: ClaimTable, experiments: Sequence[Experiment]
) -> None:
    where = ("claims", number)
    known = {experiment.name: experiment for experiment in experiments}
    for name in table.experiments:
        if name not in known:
            reason = f"there is no experiment {name!r}; there are {', '.join(known)}"
            raise written.error((*where, "experiments"), reason)
    judged = [known[name] for name in table.experiments or known]
    for experiment in judged:
        if table.metric not in experiment.metrics:
            reason = f"experiment {experiment.name} does not measure it; add it to its metrics"
            raise written.error((*where, "metric"), reason)
    for key, side in (("better", table.better), ("than", table.than)):
        for policy in side:
            lacking = [experiment.name for experiment in judged if policy not in experiment.policies]
            if lacking:
                reason = f"experiment {lacking[0]} has no policy {policy!r}; add it, or name another"
                raise written.error((*where, key), reason)
    for log in table.logs:
        if not any(log in experiment.log_names for experiment in judged):
            raise written.error((*where, "logs"), f"no experiment of this claim has a log {log!r}")
    with written.about(*where, "text"):
        if not table.better or not table.than:
            raise UsageError(f"claim {table.text!r}: name at least one policy in better and one in than")
        if both := sorted({*table.better} & {*table.than}):
            raise UsageError(f"claim {table.text!r}: {both[0]} is in better and in than; name it once")
