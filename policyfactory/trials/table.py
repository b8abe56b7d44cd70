"""The score table: what trials make and what fits read.

On disk it is a CSV file with the header ``p,q,r,score,stderr,tuple``, one line a job, numbers in the shortest
form that reads back to the same double; how it was made is in ``NAME.manifest.json`` beside it. The headerless
layout of the SC'17 artifact (``p,q,r,score``, paper 004 appendix A.4.1) is read as well: it does not name the
tuples, but the scores of a tuple sum to 1, so each run of lines that does is one.
"""

from __future__ import annotations

import dataclasses
import hashlib
import io
import itertools
import json
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from policyfactory.core.errors import InputError, ScoreTableError, UsageError
from policyfactory.core.files import Manifest, atomic_write
from policyfactory.core.inputs import read_bytes
from policyfactory.core.options import FloatArray, check_values, option
from policyfactory.core.picture import keeps_settings, new_figure, plain_numbers
from policyfactory.core.random import check_seed
from policyfactory.core.text import facts_html
from policyfactory.workload.header import printable

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

HEADER = "p,q,r,score,stderr,tuple"
_COLUMNS = ("p", "q", "r", "score", "stderr", "tuple_id")
_MAX_BYTES = 1 << 29  # about ten million jobs
# The artifact printed 12 significant digits: 32 of them sum to 1 within 1e-10.
_SUM_TOLERANCE = 1e-6
SAME_SCORE = 1e-12  # equal scores differ in their last bits
_LONGEST_LINE = 10_000  # bytes


@dataclasses.dataclass(frozen=True, slots=True, eq=False, repr=False)
class ScoreTable:
    """Scores of jobs that ran first, with what is known about the jobs when they are submitted.

    Arrays are read-only, of shape (n,), float64 unless said otherwise.

    Parameters
    ----------
    p : array
        Run time of the job, in seconds, at least 0.
    q : array
        Processors, at least 1.
    r : array
        Submit time, in seconds since the first submission of the job's tuple.
    score : array
        Share of the job in the sum of its tuple's mean values (docs/scores.md); a tuple sums to 1.
    stderr : array
        Standard error of the score; NaN where it is not known.
    tuple_id : int64 array
        Which tuple the job belongs to; the jobs of a tuple are not independent of each other.
    name : str
        What the table is called in reports.
    origin : str
        Where the scores come from, in words.
    sha256 : str
        Digest of the file's bytes, empty if there is no file.

    Raises
    ------
    ScoreTableError
        If the columns differ in length or a value breaks one of the rules above (named by its row, from 0).
    """

    p: FloatArray
    q: FloatArray
    r: FloatArray
    score: FloatArray
    stderr: FloatArray
    tuple_id: NDArray[np.int64]
    name: str = "scores"
    origin: str = ""
    sha256: str = ""

    def __post_init__(self) -> None:
        for column in _COLUMNS:
            kind = np.int64 if column == "tuple_id" else np.float64
            array = np.ascontiguousarray(getattr(self, column), dtype=kind).view()
            array.flags.writeable = False
            object.__setattr__(self, column, array)
        for column in _COLUMNS:
            shape = getattr(self, column).shape
            if shape != (len(self),):
                raise ScoreTableError(
                    f"{self.name}: column {column} has shape {shape}, expected ({len(self)},) as p has"
                )
        fault = _find_fault({column: getattr(self, column) for column in _COLUMNS})
        if fault is not None:
            raise ScoreTableError(f"{self.name}: row {fault[0]}: {fault[1]}")

    def __len__(self) -> int:
        return len(self.p)

    @property
    def tuples(self) -> int:
        """Number of different tuples."""
        return len(np.unique(self.tuple_id))

    def select(self, rows: Any, *, name: str | None = None) -> ScoreTable:
        """Return the jobs ``rows`` (slice, mask or indices) as a table without a file."""
        columns = {column: getattr(self, column)[rows] for column in _COLUMNS}
        return dataclasses.replace(self, name=name or self.name, sha256="", **columns)

    def frame(self) -> pd.DataFrame:
        """Return one row a job: p, q, r, score, stderr, tuple."""
        import pandas as pd

        return pd.DataFrame({name.removesuffix("_id"): getattr(self, name) for name in _COLUMNS})

    @keeps_settings
    def plot(self) -> Figure:
        """Return a picture of the scores over p, q and r."""
        figure = new_figure(10.0, 3.4)
        labels = {"p": "run time p (s)", "q": "processors q", "r": "submit time r\n(s since the tuple's first)"}
        for axes, (name, label) in zip(figure.subplots(1, 3, sharey=True), labels.items(), strict=True):
            axes.plot(getattr(self, name), self.score, ".", markersize=2, alpha=0.3)
            axes.set(xlabel=label, xscale="log" if name in "pq" else "linear")
            plain_numbers(axes.xaxis, minor=False)
        figure.axes[0].set_ylabel("score (lower runs first)")
        figure.suptitle(f"{self.name}: {len(self):,} jobs in {self.tuples:,} tuples")
        return figure

    def __repr__(self) -> str:
        return f"<ScoreTable {self.name}: {len(self):,} jobs in {self.tuples:,} tuples>"

    def _repr_html_(self) -> str:
        error = float(np.nanmedian(self.stderr / self.score)) if np.isfinite(self.stderr).any() else np.nan
        shown = {"median standard error": f"{100 * error:.2g} % of the score", "where from": self.origin}
        return facts_html(repr(self)[1:-1], shown)


def csv_number(value: float) -> str:
    """Return the shortest text that reads back as ``value``; whole numbers without a point."""
    return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)


def csv_rows(columns: Sequence[ArrayLike], number: int) -> str:
    """Return the lines of tuple ``number``, each ended by a newline; ``columns`` are p, q, r, score, stderr."""
    lists = [np.asarray(column, dtype=np.float64).tolist() for column in columns]
    return "".join(f"{','.join(map(csv_number, row))},{number}\n" for row in zip(*lists, strict=True))


def parse_rows(text: str, *, name: str, origin: str) -> ScoreTable:
    """Return the table of which ``text`` has the lines, without a header."""
    return ScoreTable(**_parse(Path(name), text.encode("ascii"), header=False, columns=6), name=name, origin=origin)


def write_score_table(table: ScoreTable, path: Path) -> None:
    """Write ``table`` as CSV with its header (whole or not at all).

    Raises
    ------
    OutputError
        If the file cannot be written.
    """
    columns = [getattr(table, column).tolist() for column in _COLUMNS]
    lines = (f"{','.join(map(csv_number, row[:-1]))},{row[-1]}\n".encode() for row in zip(*columns, strict=True))
    atomic_write(path, itertools.chain([HEADER.encode() + b"\n"], lines))


def read_score_table(path: Path | str) -> ScoreTable:
    """Return the table in a CSV file, ours or the headerless one of the SC'17 artifact.

    Raises
    ------
    InputError
        If the file cannot be read at all.
    ScoreTableError
        If it is malformed (names file:line), or differs from what its manifest says was written.
    """
    path = Path(path)
    data = read_bytes(path, limit=_MAX_BYTES)
    digest = hashlib.sha256(data).hexdigest()
    origin = _origin(path, digest)
    first = data[: data.find(b"\n") if b"\n" in data else len(data)].strip()
    if not first:
        raise ScoreTableError(f"{path}:1: no scores; expected the header {HEADER} or lines of p,q,r,score")
    # A line of a log has 18 numbers between blanks, its header ";" before each line.
    if path.name.lower().endswith((".swf", ".swf.gz")) or first.startswith(b";") or len(first.split()) == 18:
        raise ScoreTableError(
            f"{path}: is a log of jobs and not a score table; make one of it: policyfactory generate "
            f"{shlex.quote(str(path))} --output scores.csv"
        )
    ours = first == HEADER.encode()
    if not ours and first[:1].isalpha():
        shown = first[:60].decode(errors="replace")
        raise ScoreTableError(f"{path}:1: header {shown!r}, expected {HEADER!r}, or no header and lines of p,q,r,score")
    columns = _parse(path, data, header=ours, columns=6 if ours else 4)
    del data
    if not ours:
        columns["stderr"] = np.full(len(columns["p"]), np.nan)
        columns["tuple_id"] = np.zeros(len(columns["p"]))
    fault = _find_fault(columns)
    if fault is not None:
        raise ScoreTableError(f"{path}:{fault[0] + 1 + ours}: {fault[1]}")
    if ours:
        _check_sums(path, columns["score"], columns["tuple_id"])
    else:
        columns["tuple_id"] = _group(path, columns["score"])
        origin = origin or "table in the SC'17 artifact's layout, standard errors unknown"
    return ScoreTable(**columns, name=path.stem, origin=origin or f"score table {path.name}", sha256=digest)


def _parse(path: Path, data: bytes, *, header: bool, columns: int) -> dict[str, Any]:
    """Return the first ``columns`` columns of the lines after the header."""
    names = _COLUMNS[:columns]
    if max(map(len, io.BytesIO(data))) > _LONGEST_LINE:
        # Not by numpy: of each number it would make more bytes than the number has.
        raise ScoreTableError(_first_bad_line(path, data, columns, header=header))
    lines = data.count(b"\n") + (not data.endswith(b"\n")) - header
    if lines == 0 or not data[len(HEADER) * header :].strip():
        raise ScoreTableError(f"{path}:2: no scores after the header; run policyfactory generate again")
    try:
        rows = np.loadtxt(
            io.BytesIO(data), delimiter=",", skiprows=int(header), comments=None, encoding="ascii", ndmin=2
        )
        complete = rows.shape == (lines, columns)
    except ValueError:
        complete = False
    if not complete:
        raise ScoreTableError(_first_bad_line(path, data, columns, header=header))
    return {name: np.ascontiguousarray(rows[:, column]) for column, name in enumerate(names)}


def _first_bad_line(path: Path, data: bytes, columns: int, *, header: bool) -> str:
    """Return the message for the first line that is not ``columns`` numbers."""
    names = HEADER.split(",")[:columns]
    for number, raw in enumerate(io.BytesIO(data), start=1):
        if header and number == 1:
            continue
        if len(raw) > _LONGEST_LINE:
            return f"{path}:{number}: {len(raw):,} characters, expected {columns} numbers ({','.join(names)})"
        cells = raw.decode(errors="replace").rstrip("\r\n").split(",")
        if len(cells) != columns:
            return f"{path}:{number}: {len(cells)} columns, expected {columns} numbers ({','.join(names)})"
        for cell, name in zip(cells, names, strict=True):
            if not _is_number(cell):
                return f"{path}:{number}: {name} is {cell[:40]!r}, expected a number; correct or remove the line"
    return f"{path}: is not a table of {columns} columns of numbers; run policyfactory generate again"


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell and cell.isascii()


def _find_fault(columns: dict[str, Any]) -> tuple[int, str] | None:
    """Return the first row with a value that cannot be, and why."""
    rules: tuple[tuple[str, Callable[[FloatArray], NDArray[np.bool_]], str], ...] = (
        ("p", lambda p: ~(p >= 0) | np.isinf(p), "a run time in seconds of at least 0"),
        ("q", lambda q: ~(q >= 1) | np.isinf(q), "at least 1 processor"),
        ("r", lambda r: ~(r >= 0) | np.isinf(r), "seconds of at least 0"),
        ("score", lambda s: ~((s >= 0) & (s <= 1 + _SUM_TOLERANCE)), "a share of 0 to 1"),
        ("stderr", lambda e: (e < 0) | np.isinf(e), "at least 0, or nan if it is not known"),
        ("tuple_id", lambda i: ~(np.abs(i) < 2**53) | (i != np.floor(i)), "the number of a tuple"),
    )
    faults: list[tuple[int, str]] = []
    for name, broken, expected in rules:
        rows = np.flatnonzero(broken(columns[name]))
        if len(rows):
            shown = name.removesuffix("_id")
            faults.append((int(rows[0]), f"{shown} is {columns[name][rows[0]]:g}, expected {expected}"))
    return min(faults, default=None)


def _check_sums(path: Path, score: FloatArray, tuple_id: FloatArray) -> None:
    names, tuple_of = np.unique(tuple_id, return_inverse=True)
    sums = np.bincount(tuple_of, score)
    for number in np.flatnonzero(np.abs(sums - 1) > _SUM_TOLERANCE):
        raise ScoreTableError(
            f"{path}: the scores of tuple {names[number]:.0f} sum to {sums[number]:.9g}, expected 1: is the file cut "
            "off? remove the tuple's lines, or run policyfactory generate again"
        )


def _group(path: Path, score: FloatArray) -> NDArray[np.int64]:
    """Return the tuple number of each line: consecutive groups whose scores sum to 1."""
    tuple_id = np.empty(len(score), dtype=np.int64)
    group, first, total = 0, 0, 0.0
    for row, value in enumerate(score.tolist()):
        tuple_id[row] = group
        total += value
        if total > 1 + _SUM_TOLERANCE:
            raise ScoreTableError(
                f"{path}:{row + 1}: the scores from line {first + 1} on sum to {total:.9g}, expected 1 at the end of "
                f"a tuple; keep the tuples' lines together, or name the tuples in a table with the header {HEADER}"
            )
        if total > 1 - _SUM_TOLERANCE:
            group, first, total = group + 1, row + 1, 0.0
    if total:
        raise ScoreTableError(
            f"{path}:{len(score)}: the last tuple (from line {first + 1}) sums to {total:.9g}, expected 1; "
            "is the file cut off?"
        )
    return tuple_id


def _origin(path: Path, digest: str) -> str:
    """Return what the manifest says about the table's origin, after checking that it is about this table."""
    manifest = Manifest.path_for(path)
    if not manifest.exists():
        return ""
    try:
        content = json.loads(read_bytes(manifest, limit=1 << 20))
        recorded = content["outputs"].get(path.name)
        origin = printable(str(content["parameters"].get("origin", "")), 1000)
    except (ValueError, KeyError, AttributeError, TypeError, InputError, RecursionError):
        raise ScoreTableError(
            f"{manifest}: is not a manifest of {path.name}; remove it or generate the table again"
        ) from None
    if recorded is not None and recorded != digest:
        raise ScoreTableError(
            f"{path}: is not the table that {manifest.name} describes (SHA-256 {digest[:12]}..., expected "
            f"{printable(str(recorded), 12)}); if you changed it on purpose, remove the manifest, else generate it "
            "again"
        )
    return origin


# What determines the scores of jobs, each option once -----------------------------------------------------------------


Estimator = Literal["stratified", "paper"]

ESTIMATORS: tuple[Estimator, ...] = ("stratified", "paper")
# An order holds job numbers in one byte; a state beyond this is no machine that anybody has.
MAX_QUEUE = 255
MAX_STATE = 10_000
_MAX_TRIALS = 10**12


@dataclasses.dataclass(frozen=True, slots=True)
class GenerateOptions:
    """What determines the scores, next to the workload.

    Parameters
    ----------
    tuples : int
        How many tuples.
    trials : int
        Trials of each, at least; ``stratified`` runs whole blocks of 4 ``queue_size``.
    state_size, queue_size : int
        Jobs in S and in Q.
    estimator : {"stratified", "paper"}
        See `policyfactory.trials.run`.
    seed : int
        Seed of places and orders.
    """

    tuples: int = option(441, "how many tuples to score", limits=(1, 10**7))
    trials: int = option(256_000, "trials (simulated orders) of each tuple")
    state_size: int = option(16, "jobs that fill the machine first (S)", limits=(0, MAX_STATE))
    queue_size: int = option(32, "jobs that queue (Q)", limits=(2, MAX_QUEUE))
    estimator: Estimator = option(
        "stratified", "stratified: every job first equally often, in common orders; paper: plain random orders"
    )
    seed: int = option(1, "seed of the tuples and of the orders")

    @property
    def trials_each(self) -> int:
        """Trials that are run of each tuple."""
        return trials_run(self.estimator, self.trials, self.queue_size)

    def check(self) -> None:
        """Check what can be checked without a workload.

        Raises
        ------
        UsageError
            If an option is out of range.
        """
        check_values(self)
        check_seed(self.seed)
        check_trials(self.trials, self.queue_size)


def check_trials(trials: int, queue_size: int) -> None:
    """Check that standard errors can be computed from ``trials`` trials.

    Raises
    ------
    UsageError
        If the trials do not make two blocks of the stratified estimator, or are too many to count.
    """
    from policyfactory.engine.trials import VARIANTS

    least = 2 * VARIANTS * queue_size
    if not least <= trials <= _MAX_TRIALS:
        raise UsageError(
            f"{trials} trials a tuple; a queue of {queue_size} jobs needs at least {least} (2 blocks of {least // 2}) "
            f"for its standard errors, and at most {_MAX_TRIALS:,} are run; the papers had 256000"
        )


def trials_run(estimator: Estimator, trials: int, queue_size: int) -> int:
    """Return how many trials are run a tuple: ``stratified`` runs whole blocks."""
    from policyfactory.engine.trials import VARIANTS

    block = VARIANTS * queue_size if estimator == "stratified" else 1
    return -(-trials // block) * block
