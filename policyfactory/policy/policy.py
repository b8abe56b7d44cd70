"""A policy: a formula by which a queue is sorted (lower runs first), where it is from, and how it counts time."""

from __future__ import annotations

import dataclasses
import functools
import marshal
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, NoReturn, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from policyfactory.core.errors import FormulaError, UsageError
from policyfactory.core.inputs import sha256_bytes
from policyfactory.core.text import facts_html
from policyfactory.policy.expression import ASKED, MODELLED, PREDICTIONS, Expression, Variable, check_texts, parse

if TYPE_CHECKING:
    from policyfactory.policy.compile import Program
    from policyfactory.policy.network import Network


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class JobColumns:
    """Jobs as a policy's function sees them.

    Parameters
    ----------
    p, q, r : float64 array (n,)
        Requested seconds, processors, submit seconds since the epoch.
    m : float
        Processors of the machine.
    """

    p: NDArray[np.float64]
    q: NDArray[np.float64]
    r: NDArray[np.float64]
    m: float

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("_"):
            raise AttributeError(name)
        raise UsageError(
            f"a policy's function was asked for {name!r} of the jobs, and sees p, q, r and m; what changes while jobs "
            "wait (w, f) or is predicted (e, s) needs a formula: Policy('NAME', 'p*q / (1 + w)')"
        )


def digest_of(function: Any) -> str:
    """Return some letters that differ if the code of a function, or the state of an estimator, does."""
    code = getattr(function, "__code__", None)
    if code is not None:
        values = [cell.cell_contents for cell in function.__closure__ or ()]
        return sha256_bytes(marshal.dumps(code) + repr((values, function.__defaults__)).encode())[:8]
    import joblib

    return str(joblib.hash(function))[:8]


def estimated(estimator: Any, features: tuple[str, ...], jobs: JobColumns) -> ArrayLike:
    """Return the predictions of an estimator; one that was fitted to a table of pandas gets its column names."""
    columns = {name: np.broadcast_to(getattr(jobs, name), jobs.p.shape) for name in features}
    names = getattr(estimator, "feature_names_in_", None)
    if names is None:
        table: Any = np.column_stack(list(columns.values()))
    else:
        import pandas as pd

        table = pd.DataFrame(dict(zip(names, columns.values(), strict=True)))
    predictions: ArrayLike = estimator.predict(table) if jobs.p.size else np.empty(0)
    return predictions


# A policy -------------------------------------------------------------------------------------------------------------


EpochRule = Literal["window-start", "fixed", "oldest-waiting"]
EPOCH_RULES: tuple[EpochRule, ...] = get_args(EpochRule)


@dataclasses.dataclass(frozen=True, slots=True)
class Epoch:
    """From when a policy counts ``r``.

    Parameters
    ----------
    rule : str
        ``window-start``: the first job of the workload or window that is scheduled (the papers' rule; a scheduler
        in production has no such start and is given one at export). ``fixed``: the instant ``unix_time``.
        ``oldest-waiting``: the submission of the job that has waited longest, so ``r`` changes while jobs wait.
    unix_time : int or None
        Seconds since 1970 (UTC); only with ``fixed``.
    """

    rule: EpochRule = "window-start"
    unix_time: int | None = None

    def __post_init__(self) -> None:
        """Refuse an epoch that says nothing or two things."""
        if self.rule not in EPOCH_RULES:
            raise UsageError(f"unknown epoch rule {self.rule!r}; choose one of {', '.join(EPOCH_RULES)}")
        if (self.rule == "fixed") != (self.unix_time is not None):
            raise UsageError(
                f"epoch {self.rule!r} with unix_time {self.unix_time!r}: 'fixed' needs a time, the others have none"
            )

    def describe(self) -> str:
        """Return the rule as a sentence."""
        match self.rule:
            case "window-start":
                return "r counts from the first job of the workload (window)"
            case "fixed":
                return f"r counts from Unix time {self.unix_time}"
            case _:
                return "r counts from the submission of the job that has waited longest"


@dataclasses.dataclass(frozen=True, repr=False)
class Policy:
    """A formula in p, q, r, w, m, f, n, mem, g and predictions; the queue is sorted by it, LOWER runs first.

    Ties go by submit time and then by job id, in whatever uses the policy.

    Parameters
    ----------
    name : str
        Printable, at most 100 characters.
    formula : str
        Text of the grammar of `policyfactory.policy.expression`.
    description : str
        What it does, in words.
    source : str
        Where it is from.
    epoch : Epoch
        From when ``r`` counts.
    threshold : float
        Jobs that have waited longer (s) go first, in submit order; ``math.inf`` for never.
    backfill_formula : str
        By what jobs behind the first are tried for backfilling, the lowest value first; empty: in the queue's order.
        Only EASY has one (`policyfactory.simulation.rules.Rules`), and no scheduler that is exported to.
    function : callable or None
        What computes the scores in place of a formula; see `from_function`.
    network : Network or None
        The same; see `from_network`.

    Examples
    --------
    >>> import policyfactory as pf
    >>> pf.Policy("MINE", "p*q").scores(p=[60, 10], q=[1, 8], r=[0, 5])
    array([60., 80.])
    >>> pf.Policy("AGED", "p*q / (1 + w)").is_static
    False
    """

    name: str
    formula: str
    description: str = ""
    source: str = ""
    epoch: Epoch = Epoch()
    threshold: float = math.inf
    backfill_formula: str = ""
    function: Callable[[JobColumns], ArrayLike] | None = None
    network: Network | None = None

    @classmethod
    def from_function(
        cls, function: Any, name: str | None = None, *, features: Sequence[str] = ("p", "q", "r"), description: str = ""
    ) -> Policy:
        """Return a policy whose scores are computed by Python.

        It is called with all jobs at once, twice a workload: to count those that it gives no score, and for the order.
        It has no formula: it cannot be stored, exported or used where scores change while jobs wait.

        Parameters
        ----------
        function : callable or estimator
            From `JobColumns` to one number a job, lower runs first: ``lambda job: job.p * job.q``. Or anything with a
            method ``predict`` over rows of features, such as a fitted estimator of scikit-learn.
        name : str, optional
            The policy's name; that of the function if not given.
        features : sequence of str
            The columns of an estimator, of p, q, r and m, in its order.
        description : str
            What it does, in words.

        Raises
        ------
        UsageError
            If it is neither, or a feature or the name cannot be used.
        """
        kind = getattr(function, "__name__", type(function).__name__)
        name = name or (kind if kind.isidentifier() else "FUNCTION")
        compiled = function
        if hasattr(function, "predict"):
            unknown = set(features) - {"p", "q", "r", "m"}
            if unknown:
                raise UsageError(f"policy {name}: there is no feature {min(unknown)!r}; choose among p, q, r, m")
            function = functools.partial(estimated, function, tuple(features))
        elif not callable(function):
            raise UsageError(f"policy {name}: {type(function).__name__} is no function; give one, or what has predict")
        return cls(name, f"Python function {kind}, digest {digest_of(compiled)}", description, function=function)

    @classmethod
    def from_network(cls, network: Network) -> Policy:
        """Return the policy that sorts the queue by a network's output, the highest first.

        It is simulated, evaluated and tuned with as a formula is; what needs a formula refuses it.

        Parameters
        ----------
        network : Network
            Of `policyfactory.policy.network`.
        """
        return cls(network.name, network.describe(), network.description, network.source, network=network)

    def __repr__(self) -> str:
        return f"<Policy {self.name}: {self.formula if self.function is None else 'Python function'}>"

    def _repr_html_(self) -> str:
        shown = {"sort key": self.formula, "about": self.description, "source": self.source}
        return facts_html(self.name, {name: text for name, text in shown.items() if text})

    def __post_init__(self) -> None:
        """Refuse a policy that could not be evaluated or printed."""
        check_texts(self.name, self.description, self.source)
        if not self.threshold >= 0:
            raise UsageError(f"the threshold {self.threshold} of policy {self.name} is no time; give >= 0 s, or inf")
        if self.has_formula and not self.expression.variables - {"m", "f"}:
            raise FormulaError(
                f"{self.formula[:60]!r} is the same for all jobs and ranks none; use p, q, r or w in it",
                self.formula,
                0,
            )
        _ = self.backfill_policy  # its formula is checked there

    def __reduce__(self) -> tuple[Any, ...]:
        values = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        if self.function is None:
            return _restored, (values, b"")
        # A function goes to other processes by its code: a lambda has no name by which it could be imported there.
        import cloudpickle

        return _restored, (values | {"function": None}, cloudpickle.dumps(self.function))

    @property
    def has_formula(self) -> bool:
        """Whether it is a formula, and neither a function nor a network."""
        return self.function is None and self.network is None

    @functools.cached_property
    def backfill_policy(self) -> Policy | None:
        """The order in which jobs are tried for backfilling; None if it is the queue's."""
        return Policy(f"{self.name[:60]} backfilling", self.backfill_formula) if self.backfill_formula else None

    @functools.cached_property
    def expression(self) -> Expression:
        """The formula as a tree.

        Raises
        ------
        UsageError
            If it has none.
        """
        if self.network is not None:
            raise UsageError(
                f"policy {self.name} is a network without a formula: it can be simulated, evaluated and tuned with, "
                "not exported or simplified; make a formula of it first: policyfactory distill net.json LOG"
            )
        if self.function is not None:
            raise UsageError(
                f"policy {self.name} is a Python function without a formula: it can be simulated and evaluated, not "
                "exported or stored; fit a formula (policyfactory.fit) for that"
            )
        return parse(self.formula)

    @functools.cached_property
    def program(self) -> Program:
        """Formula or network as a program of the array machine; of a function, one that reads its scores as r."""
        if self.network is not None:
            return self.network.program
        # Imported here: reading and printing policies must not wait for the compiler.
        from policyfactory.policy.compile import compile_expression

        return compile_expression(self.expression if self.function is None else Variable("r"))

    @functools.cached_property
    def variables(self) -> frozenset[str]:
        """The names that formula or network has, of `VARIABLES`; a function may use p, q, r and m."""
        if self.network is not None:
            return self.network.variables
        return self.expression.variables if self.function is None else frozenset("pqrm")

    @property
    def needs_predictions(self) -> bool:
        """Whether it, or its order for backfilling, reads what is predicted of a job from its user's past."""
        backfill = self.backfill_policy
        return not self.variables.isdisjoint(PREDICTIONS) or (backfill is not None and backfill.needs_predictions)

    @property
    def needs_model(self) -> bool:
        """Whether a model has to be trained for it: it, or its order for backfilling, reads more than counts."""
        backfill = self.backfill_policy
        return not self.variables.isdisjoint(MODELLED) or (backfill is not None and backfill.needs_model)

    @property
    def asked(self) -> tuple[str, ...]:
        """What it reads of a job's requests besides processors and time, of `ASKED`, in that order."""
        return tuple(name for name in ASKED if name in self.variables)

    @property
    def is_static(self) -> bool:
        """Whether a job's value never changes while it waits, unless it is predicted anew."""
        moving = self.epoch.rule == "oldest-waiting" and "r" in self.variables
        return not self.variables & {"w", "f"} and not moving

    def scores(
        self,
        p: ArrayLike,
        q: ArrayLike,
        r: ArrayLike,
        w: ArrayLike | None = None,
        m: float = 1.0,
        f: float | None = None,
        predictions: ArrayLike | None = None,
        asked: ArrayLike | None = None,
        undefined: float = math.inf,
    ) -> NDArray[np.float64]:
        """Return the value of every job; lower runs first.

        Parameters
        ----------
        p, q, r : arrays (n,)
            Requested seconds, processors, submit seconds since the epoch.
        w : array (n,) or None
            Seconds waited so far; None is 0 for every job.
        m : float
            Processors of the machine.
        f : float or None
            Processors of it that are free; None is all of them.
        predictions : array (5, n), optional
            e, s, e90, user_waiting and user_running of each job; needed by a formula that reads one of them.
        asked : array (3, n), optional
            Nodes, memory (MB) and GPUs of each job; needed by a formula that reads n, mem or g.
        undefined : float
            What a job gets that has no value (NaN: a negative time under a logarithm, 0/0).

        Returns
        -------
        float64 array (n,)
            What has no value is +inf and runs last, unless ``undefined`` is another number; log10(0) is -inf and runs
            first.

        Raises
        ------
        UsageError
            If the arrays have different lengths, or predictions or requests are needed and there are none.
        """
        given = [np.asarray(value, dtype=np.float64) for value in (p, q, r, 0.0 if w is None else w)]
        try:
            columns = [np.ascontiguousarray(column) for column in np.broadcast_arrays(*map(np.atleast_1d, given))]
        except ValueError:
            lengths = ", ".join(f"{name} {value.size}" for name, value in zip("pqrw", given, strict=True))
            raise UsageError(f"one value of p, q, r, w for every job is needed, got {lengths}") from None
        if self.function is None:
            rows = np.array((*columns, *self._more_rows(predictions, asked, columns[0].size)))
            values = self.program.values(rows, float(m), float(m if f is None else f))
        else:
            values = self._computed(JobColumns(columns[0], columns[1], columns[2], float(m)))
        return np.where(np.isnan(values), undefined, values)

    def _more_rows(
        self, predictions: ArrayLike | None, asked: ArrayLike | None, n: int
    ) -> tuple[NDArray[np.float64], ...]:
        """Return the rows behind p, q, r and w: none, or all where the formula reads one of them."""
        if not (self.needs_predictions or self.asked):
            return ()
        if self.needs_predictions and predictions is None:
            raise predictions_needed(self, "scores() without predictions")
        if self.asked and asked is None:
            raise asked_needed(self, "a score of p, q, r and w alone")
        rows: list[NDArray[np.float64]] = []
        for what, given, names in (("predictions", predictions, PREDICTIONS), ("asked", asked, ASKED)):
            unread = self.variables.isdisjoint(names)
            table = np.full((len(names), n), np.nan) if unread else np.asarray(given, dtype=np.float64)
            if table.shape != (len(names), n):
                raise UsageError(
                    f"{what} has shape {table.shape}; {len(names)} rows ({', '.join(names)}) of {n} jobs are needed"
                )
            rows += list(table)
        return tuple(rows)

    def _computed(self, jobs: JobColumns) -> NDArray[np.float64]:
        """Return what the function makes of the jobs, checked."""
        values = np.asarray(None if self.function is None else self.function(jobs))
        if values.shape != jobs.p.shape or values.dtype.kind not in "biuf":
            raise UsageError(
                f"policy {self.name} returned shape {values.shape} and type {values.dtype} for {jobs.p.size} jobs; a "
                "function of a policy takes arrays and returns one number for each job"
            )
        return values.astype(np.float64)


def predictions_needed(policy: Policy, where: str) -> UsageError:
    """Return the error of a policy that reads predictions where there are none."""
    names = ", ".join(name for name in PREDICTIONS if name in policy.variables)
    return UsageError(
        f"policy {policy.name} reads {names}, which {where} does not know: predictions are made while a log is "
        "simulated by our own rules (simulate, evaluate, predict); take a formula without them here"
    )


def asked_needed(policy: Policy, where: str) -> UsageError:
    """Return the error of a policy that reads what jobs ask for where that is not known."""
    return UsageError(
        f"policy {policy.name} reads {', '.join(policy.asked)} (requested nodes n, memory mem, GPUs g), which {where} "
        "does not know; take a formula without them here"
    )


def _restored(values: dict[str, Any], function: bytes) -> Policy:
    """Return a policy in another process, from its fields and the pickle of its function."""
    if not function:
        return Policy(**values)
    import cloudpickle

    return Policy(**values | {"function": cloudpickle.loads(function)})
