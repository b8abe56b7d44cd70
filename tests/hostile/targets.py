"""Every reader of the package: small genuine inputs, and how a reader is called on what became of them.

A call returns what it found out in a few words: inputs with an answer that was not heard before are worth more changes.
"""

from __future__ import annotations

import contextlib
import dataclasses
import datetime as dt
import functools
import gzip
import hashlib
import itertools
import json
import math
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from hostile import clusters, seeds, tables
from policyfactory.core.errors import FormulaError, PolicyfactoryError, TraceFormatError
from policyfactory.core.files import dump_toml
from policyfactory.core.journal import Journal
from policyfactory.core.text import parse_duration
from policyfactory.evaluation.analyses import make_analysis
from policyfactory.evaluation.analyses.gantt import KeptSchedule
from policyfactory.evaluation.analyses.starvation import LongWaits
from policyfactory.evaluation.logs import read_predictions
from policyfactory.evaluation.protocol import read_file, read_protocol
from policyfactory.evaluation.run import SimulationResult, decode, encode
from policyfactory.exports.content import TARGETS as EXPORTS
from policyfactory.exports.content import ExportSite
from policyfactory.exports.expressible import linear_coefficients
from policyfactory.exports.queue import read_queue
from policyfactory.fitting.forms import fit_user_form
from policyfactory.fitting.sample import nonlinear_names, prepare
from policyfactory.parallel.dask import scheduler_address
from policyfactory.policy.algebra import shorter_formula
from policyfactory.policy.compile import compile_expression
from policyfactory.policy.explain import explain, parse_job
from policyfactory.policy.expression import parse, to_latex
from policyfactory.policy.policy import Policy
from policyfactory.policy.store import Model, load_model, model_from_json, model_to_json
from policyfactory.prediction.history import History, HistoryLimits
from policyfactory.prediction.history_file import hash_with, read_history, read_jobs, update, write_history
from policyfactory.prediction.store import forests_from_json, forests_to_json, load_forests
from policyfactory.review.shadow import compare_orders, read_shadow
from policyfactory.search.learner import count
from policyfactory.search.replicated import lines_of, submitted
from policyfactory.search.run import pick
from policyfactory.simulation.cases import CaseFacts
from policyfactory.trials.table import ScoreTable, read_score_table
from policyfactory.workload.accounting import sacct, source
from policyfactory.workload.accounting.importing import Zone, import_logs
from policyfactory.workload.accounting.options import parse_limit, parse_limits
from policyfactory.workload.accounting.times import duration, find_zone, parse_date
from policyfactory.workload.clean import clean, clean_log
from policyfactory.workload.describe import describe, description_rows
from policyfactory.workload.models.lublin import default_workload
from policyfactory.workload.swf.files import format_swf, parse_swf, read_swf

__all__ = ["TARGETS", "Target"]

BERLIN = Zone(find_zone("Europe/Berlin"), "Europe/Berlin", "told by the test")
_JOB = parse_job("p=1h q=64 r=2d w=30m m=128 f=96")


@dataclasses.dataclass(frozen=True, slots=True)
class Target:
    """A reader.

    Parameters
    ----------
    name : str
    seeds : list of bytes
        Genuine inputs.
    call : function of Path to str
        Reads the file and says what it found.
    file : str
        What the file is called; errors must name it. Empty: the input is a text on the command line.
    packed : bool
        Seeds are gzip members: mostly it is what they hold that is changed.
    examples : int
        How many inputs a test run of thirty seconds has time for.
    """

    name: str
    seeds: list[bytes]
    call: Callable[[Path], str]
    file: str
    packed: bool = False
    examples: int = 700


def _swf(path: Path) -> str:
    log = read_swf(path)
    said = [str(sorted(log.oddities))]
    assert np.isfinite(log.submit.astype(float)).all()
    with contextlib.suppress(PolicyfactoryError):
        said.append(str(len(description_rows([describe(log)]))))
    again = parse_swf(format_swf(log), path)
    for ours, theirs in zip(log.columns().values(), again.columns().values(), strict=True):
        assert np.array_equal(ours, theirs), "a log that is written and read again is another"
    for preset in ("default", "sc17"):
        workload = clean(log, preset=preset, estimate_missing="runtime")
        report = workload.cleaning
        said += [step.what for step in report.steps]
        assert len(workload)
        assert report.summary()
    kept, _ = clean_log(log, estimate_missing="drop")
    return " ".join([*said, str(len(kept).bit_length())])


def _import(path: Path) -> str:
    result = import_logs([path], zone=BERLIN)
    assert len(result.log) == result.report.jobs
    again = parse_swf(format_swf(result.log), path)
    assert len(again) == len(result.log)
    assert again.header.processors == result.report.machine
    json.dumps(result.report.as_dict(), allow_nan=False)
    for step in result.report.steps:
        assert step.place.startswith(str(path))
    return " ".join(f"{step.action} {step.what}" for step in result.report.steps)


def _blocks(path: Path) -> str:
    """Import a log in small chunks and blocks, by the compiled kernels; at once and as texts it must be the same."""
    answers = []
    with contextlib.ExitStack() as changed:
        changed.enter_context(patch.object(source, "PART", 97))
        changed.enter_context(patch.object(source, "_LONGEST_LINE", 1500))
        for block, few in ((300, 0), (1 << 20, 10_000)):
            with patch.object(source, "_BLOCK", block), patch.object(sacct, "_FEW_LINES", few):
                try:
                    result = import_logs([path], zone=BERLIN)
                    # Steps of one kind of action may be met in another order within a block.
                    steps = sorted(f"{step.action} {step.what} {step.count}" for step in result.report.steps)
                    notes, jobs = [], []
                    for line in format_swf(result.log).split(b"\n"):
                        (notes if line.startswith(b";") else jobs).append(line)
                    digest = hashlib.sha256(b"\n".join([*sorted(notes), *jobs])).hexdigest()
                    answers.append((digest, *steps))
                except PolicyfactoryError as error:
                    answers.append((str(error),))
    blocks, lines = answers
    # How far a log is read before its first fault is told depends on the block.
    early = len(blocks) == len(lines) == 1 and any("a line of more than" in one[0] for one in answers)
    assert blocks == lines or early, f"{blocks} by blocks, {lines} by lines"
    if len(blocks) == 1:
        raise TraceFormatError(blocks[0])
    return " ".join(blocks[1:])


_ANALYSES = (make_analysis("starvation"), make_analysis("gantt"))


def _found(path: Path) -> str:
    value = decode(path.read_bytes(), _ANALYSES, _workload)
    again = encode(value)
    assert encode(decode(again, _ANALYSES, _workload)) == again, "what is read and written is another"
    return type(value).__name__


def _found_seeds() -> list[bytes]:
    jobs = _workload()
    kept = KeptSchedule(jobs, jobs.submit, None, np.packbits(jobs.submit >= 0))
    waits = LongWaits(3, 1.5, math.inf, 1, 2, 3, 4.0, 5.0, math.nan, 6, 7, np.arange(3))
    facts = CaseFacts("kth", 1, "window", 100, 64, 1e6, None, "0" * 64)
    return [encode(SimulationResult(facts, [1.5, math.inf], 7.0, 3, 2, [math.nan], [waits, kept]))]


def _scores(path: Path) -> str:
    table = read_score_table(path)
    assert len(table)
    return f"{len(table).bit_length()} {table.tuples.bit_length()} {np.isnan(table.stderr).any()}"


def _manifest(path: Path) -> str:
    table = path.with_name("table.csv")
    table.write_bytes(seeds.SCORES[0])
    data = path.read_bytes().replace(b"0123", hashlib.sha256(seeds.SCORES[0]).hexdigest().encode())
    path.write_bytes(data)
    return str(bool(read_score_table(table).origin))


def _shorten(text: str) -> str:
    tree = parse(text)
    assert parse(tree.text()) == tree or "nan" in tree.text()
    shorter = shorter_formula(tree).expression
    assert shorter.size <= tree.size
    assert parse(shorter.text()).text() == shorter.text()
    linear = linear_coefficients(tree)
    compile_expression(tree)
    return f"{shorter.size < tree.size} {linear is None} {len(to_latex(tree)).bit_length()}"


def _model(path: Path) -> str:
    model = load_model(path)
    assert model_from_json(json.loads(json.dumps(model_to_json(model))), "again").policy == model.policy
    explained = explain(model.policy, _JOB)
    said = [str(len(explained.terms)), _shorten(model.policy.formula) if model.policy.has_formula else "network"]
    for name in ("c", "lua", "python", "latex", "pbs", "gridengine", "oar"):
        with contextlib.suppress(PolicyfactoryError):
            said.append(f"{name} {len(EXPORTS[name].make(model, ExportSite()).files)}")
    return " ".join(said)


def _predictor(path: Path) -> str:
    model = load_forests(path)
    again = forests_from_json(json.loads(json.dumps(forests_to_json(model, {}))), "again")
    said = []
    for one, other in ((model.shortness, again.shortness), (model.share, again.share), (model.tail, again.tail)):
        for first, second in zip(one, other, strict=True):
            assert np.asarray(first).tobytes() == np.asarray(second).tobytes(), "what is read and written is another"
        for root, end in itertools.pairwise([*one.roots.tolist(), len(one.feature)]):
            for node in range(root, end):
                if one.feature[node] >= 0:
                    assert node < min(one.left[node], one.right[node])
                    assert max(one.left[node], one.right[node]) < end, "a path leaves its tree"
        said.append(str(len(one.roots)))
    return " ".join(said)


def _protocol(path: Path) -> str:
    content = read_file(path).content
    protocol = read_protocol(path)
    assert _equal(_read_again(dump_toml(content)), content), "TOML that is written and read again is another"
    return f"{len(protocol.logs)} {len(protocol.experiments)} {len(protocol.claims)}"


def _read_again(text: str) -> Any:
    import tomllib

    return tomllib.loads(text)


def _equal(one: Any, other: Any) -> bool:
    """Tell whether two values of TOML are equal, NaN to itself as well."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_equal(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_equal, one, other))
    if isinstance(one, float) and isinstance(other, float) and math.isnan(one):
        return math.isnan(other)
    return type(one) is type(other) and bool(one == other)


def _text_of(path: Path) -> str:
    return path.read_bytes().decode("utf-8", "surrogateescape")


def _formula(path: Path) -> str:
    text = _text_of(path)
    try:
        form = parse(text, coefficients=True)
    except FormulaError as error:
        if error.position is not None and not 0 <= error.position <= len(text):
            raise IndexError(error.position) from error
        raise
    return f"{len(form.coefficients)} {_shorten(text)}"


@functools.cache
def _sample() -> Any:
    rng = np.random.default_rng(1)
    p, q, r = rng.integers(1, 9999, 60), rng.integers(1, 64, 60), rng.integers(0, 999, 60)
    return prepare(ScoreTable(p, q, r, np.full(60, 1 / 30), np.full(60, 0.01), np.repeat([0, 1], 30)))


def _form(path: Path) -> str:
    text = _text_of(path)
    with contextlib.suppress(FormulaError):
        form = parse(text, coefficients=True)
        # The time of a fit is bounded by steps, each as slow as the form is long: not what is asked here.
        if len(nonlinear_names(form)) > 2 or form.size > 100:
            return "long"
    fit = fit_user_form(_sample(), text, starts=2)
    return f"{len(fit.terms)} {fit.family} {fit.converged}"


@functools.cache
def _workload() -> Any:
    return clean(parse_swf(seeds.SWF[0], "log"), estimate_missing="runtime")


def _predictions(path: Path) -> str:
    return str(len(read_predictions(path, _workload())[0]))


def _queue(path: Path) -> str:
    queue, notes = read_queue(path.read_bytes(), str(path), zone=dt.UTC)
    return f"{len(queue.job).bit_length()} {queue.priority is None} {notes}"


def _journal(path: Path) -> str:
    with Journal(path, {"seed": 1}, 3) as journal:
        whole = [number for number, _ in journal.records()]
        assert len(journal) == len(whole)
        return str(whole)


def _journal_seed() -> bytes:
    head = b'{"seed": 1}'
    lines = [b"policyfactory partial result %b %b" % (hashlib.sha256(head).hexdigest()[:16].encode(), head)]
    for number in range(3):
        body = b"%d %b" % (number, b"1,2,3,0.5,0.1,0|" * number)
        digest = hashlib.sha256(hashlib.sha256(head).digest() + body).hexdigest()
        lines.append(digest[:16].encode() + b" " + body)
    return b"\n".join([*lines, b""])


def _options(path: Path) -> str:
    """Read a text by everything that options are read by."""
    text = _text_of(path)
    readers: list[Callable[[str], object]] = [
        parse_duration,
        duration,
        parse_job,
        find_zone,
        lambda text: parse_limit(text, "--unlimited"),
        lambda text: parse_limits([text], "--partition-limit"),
        lambda text: parse_date(text, dt.UTC, "--begin"),
    ]
    said = []
    for reader in readers:
        try:
            said.append(type(reader(text)).__name__)
        except PolicyfactoryError as error:
            _check_words(str(error))
            said.append("")
    return " ".join(said)


def _check_words(message: str) -> None:
    assert 0 < len(message) < 3000, f"a message of {len(message)} characters"
    raw = [c for c in message if not c.isprintable() and c != "\n"]
    assert not raw, f"raw {raw[0]!r} in {message!r}"


_SCHEDULER = json.dumps(
    {"type": "Scheduler", "id": "Scheduler-4711", "address": "tcp://10.1.2.3:8786", "services": {"dashboard": 8787}}
    | {"started": 1_700_000_000.25, "workers": {}}
).encode()
_EVERYTHING = [*seeds.SACCT, *seeds.SACCT_JSON, *seeds.PBS, *seeds.FILETXT, *seeds.SWF, *seeds.QUEUES, *seeds.SCORES]


def _shadow(path: Path) -> str:
    log = read_shadow(path)
    assert all(abs(line.submit) < 1 << 41 and abs(line.time) < 1 << 41 for line in log.lines)
    rows = np.zeros(len(log.lines), dtype=np.int64)
    pairs = compare_orders(np.array([1767225600]), np.array([1767226000]), rows, list(log.lines))
    assert pairs.pairs == 0
    return f"{len(log.lines)} lines, {log.unread > 0}"


_HASHED = hash_with(bytes(32))


def _history_seeds() -> list[bytes]:
    history = History()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "history")
        path.write_bytes(seeds.SACCT[0])
        update(history, read_jobs(path), 1_700_000_500, _HASHED, HistoryLimits())
        write_history(history, path, _HASHED)
        return [path.read_bytes()]


def _history(path: Path) -> str:
    """Read a history to its end, and write it again."""
    history = read_history(path, _HASHED)
    for name in list(history.asleep):
        history.user(name)
    again = path.with_name("again")
    write_history(history, again, _HASHED)
    assert read_history(again, _HASHED).instant == history.instant
    return f"{len(history.users)} {len(history.groups)} {len(history.noted)}"


def _history_update(path: Path) -> str:
    """Update a history from an accounting log."""
    history = History()
    done = update(history, read_jobs(path, BERLIN.clock), 1_800_000_000, _HASHED, HistoryLimits(users=2, noted=2))
    assert len(history.users) <= 2
    write_history(history, path.with_name("history"), _HASHED)
    assert read_history(path.with_name("history"), _HASHED).instant == history.instant
    return f"{done.ended.bit_length()} {done.waiting.bit_length()} {done.running.bit_length()}"


_CANDIDATES = (
    b'# mine\np*sqrt(q)\n\n{"name": "index", "formula": "-0.5*ln(s) + ln(e) + 0.3*ln(q)"}\n{"formula": "p/(w + 1)"}\n'
)
_LOG = {"name": "log", "tried": 3, "held_out": 1, "settings": {"0": {"tried": 3, "held_out": 1, "options": {}}}}
_LEDGER = json.dumps({"kind": "judge-ledger", "schema_version": 1, "logs": {"0": _LOG}}).encode()
_MEMBERS = [{"name": name, "model": model_to_json(Model(Policy(name, "p*q")))} for name in ("A", "B")]
_FRONT = json.dumps({"kind": "pareto-front", "schema_version": 1, "members": _MEMBERS}).encode()


def _candidates(path: Path) -> str:
    read = submitted(lines_of(path.read_bytes()))
    for one in read:
        assert (one.policy is None) == bool(one.error)
        assert len(one.error) <= 1000
        assert len(one.text) <= 200
    return " ".join(str(bool(one.error)) for one in read[:8])


def _ledger(path: Path) -> str:
    jobs = default_workload(jobs=50)
    counted = count(path, jobs, {"seed": 1}, tried=2)
    assert counted.tried >= 2
    return str(count(path, jobs, {"seed": 1}, tried=2).tried == counted.tried + 2)


def _front(path: Path) -> str:
    with contextlib.suppress(FileNotFoundError):
        (path.parent / "policy.json").unlink()
    model = pick(path.parent, "2", overwrite=True)
    assert load_model(path.parent / "policy.json").policy == model.policy
    return model.policy.name[:1]


TARGETS = {
    target.name: target
    for target in (
        Target("swf", seeds.SWF, _swf, "log.swf"),
        Target("swf.gz", seeds.PACKED, _swf, "log.swf.gz", packed=True),
        Target("sacct", seeds.SACCT, _import, "log.txt"),
        Target("sacct.gz", [gzip.compress(text, mtime=0) for text in seeds.SACCT], _import, "log.gz", packed=True),
        Target("sacct-blocks", [text * 3 for text in seeds.SACCT], _blocks, "log.txt", examples=300),
        Target("sacct-json", seeds.SACCT_JSON, _import, "log.json"),
        Target("pbs", seeds.PBS, _import, "20260302"),
        Target("filetxt", seeds.FILETXT, _import, "jobcomp.log"),
        Target("detection", _EVERYTHING, _import, "log"),
        Target("table", tables.TABLES, tables.table, "jobs.csv"),
        Target("table-archive", tables.ARCHIVES, tables.table, "jobs.zip", examples=300),
        Target("mapping", tables.MAPPINGS, tables.mapping, "mine.toml"),
        Target("site", clusters.SITES, clusters.site_file, "site.toml"),
        Target("slurm.conf", clusters.CONFS, clusters.conf, "slurm.conf"),
        Target("sacctmgr", clusters.DUMPS, clusters.report("dump"), "dump.cfg"),
        Target("qos", clusters.QOS, clusters.report("qos"), "qos.txt"),
        Target("events", clusters.EVENTS, clusters.report("events"), "events.txt"),
        Target("reservations", clusters.RESERVATIONS, clusters.report("reservations"), "reservations.txt"),
        Target("snapshot", clusters.SNAPSHOTS, clusters.snapshot, "queue.txt", examples=300),
        Target("sshare", clusters.FAIR_SHARES, clusters.fair_shares, "sshare.txt"),
        Target("scores", seeds.SCORES, _scores, "scores.csv"),
        Target("manifest", seeds.MANIFEST, _manifest, "table.manifest.json"),
        Target("model", seeds.MODEL, _model, "model.json"),
        Target("predictor", seeds.PREDICTORS, _predictor, "model.json"),
        Target("protocol", seeds.PROTOCOLS, _protocol, "small.toml"),
        Target("formula", seeds.FORMULAS, _formula, ""),
        Target("form", seeds.FORMS, _form, ""),
        Target("candidates", [_CANDIDATES, *seeds.FORMULAS], _candidates, ""),
        Target("ledger", [_LEDGER], _ledger, "ledger.json"),
        Target("front", [_FRONT], _front, "front.json"),
        Target("predictions", seeds.PREDICTIONS, _predictions, "predictions.csv"),
        Target("queue", seeds.QUEUES, _queue, "queue.csv"),
        Target("shadow", seeds.SHADOW, _shadow, "slurmctld.log"),
        Target("history", _history_seeds(), _history, "history"),
        Target("history-update", seeds.SACCT, _history_update, "log.txt"),
        Target("journal", [_journal_seed()], _journal, "result.csv.partial"),
        Target("found", _found_seeds(), _found, ""),
        Target("scheduler", [_SCHEDULER], lambda path: scheduler_address(str(path)), "scheduler.json"),
        Target("options", seeds.TEXTS, _options, ""),
    )
}
