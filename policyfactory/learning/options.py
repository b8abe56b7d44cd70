"""What can be said of how a policy is learned."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from policyfactory.core.errors import UsageError
from policyfactory.core.options import check_values, option, same_option
from policyfactory.core.random import check_seed
from policyfactory.core.text import duration_text, parse_duration
from policyfactory.evaluation.options import OPTIONS
from policyfactory.search.options import MAX_AREA, MAX_LONGEST, MAX_P99
from policyfactory.simulation.rules import Backfill, RuleOptions, Rules, rules_with
from policyfactory.workload.presets import EstimateMissing

if TYPE_CHECKING:
    from policyfactory.search.environment.goals import EpisodeLimit

DEMO_TUPLES, DEMO_TRIALS = 1000, 4096  # of a demonstration


def as_typed(options: Mapping[str, Any]) -> list[str]:
    """Return options of an evaluation as they are typed; nothing of those that are None or False."""
    words = []
    for name, value in options.items():
        if value is None or value is False:
            continue
        words.append((OPTIONS[name].option.flags or (f"--{name.replace('_', '-')}",))[0])
        if value is not True:
            words.append(",".join(value) if isinstance(value, tuple) else str(value))
    return words


# Without slots, so that the class has the defaults: LearnOptions.tuples.
@dataclasses.dataclass(frozen=True)
class LearnOptions:
    """How a policy is learned, and by what it is chosen.

    Parameters
    ----------
    tuples, trials : int
        Tuples to score, and trials of each; at least 32 and 256.
    metric : str
        Metric whose best value chooses the policy.
    threshold : str or float
        Jobs that have waited longer go first: ``20h``, or seconds as a number; ``inf`` for never; ``auto``: chosen
        like the formula.
    windows : str or None
        Cut the jobs to choose by and to test on, for example ``10x15d``; None: one continuous simulation.
    processors : int or None
        Processors of the machine, if the log does not say.
    force_processors : bool
        Use them also where the log's header has another number.
    estimate_missing : {"error", "runtime", "model", "drop"}
        What to do with jobs without a requested time.
    anyway : bool
        Go on where the replay is far from the record, or the log has ten times the work that its machine can do.
    preset : str
        Filter for the log.
    assume : str or None
        Nodes, memory and GPUs of jobs of which the log does not say them, for example ``n=q/32,mem=2000*q,g=0``.
    backfill : {"easy", "slurm", "conservative", "none"} or None
        Which jobs may overtake. None: with a site as under Slurm's own rules; without one all policies run as under
        EASY, and the best of them are chosen from and judged under Slurm's rules, on a site that is assumed of the log.
        Where Slurm's rules judge, formulas with predictions stay away if a threshold is given: no export carries both.
    site : str or None
        File of the cluster whose Slurm is simulated. The log's own jobs are replayed on it, under its priorities, and
        where that is far from the record nothing is learned, or with ``anyway`` no policy recommended.
    predictions : bool
        Let formulas compete that read what is predicted of a job from its user's past; False for a site that keeps no
        history of them (`policyfactory history`). Those that only count the user's jobs compete in both cases.
    minutes : float
        How long fits and replicas may take, about, on two cores: the number of the replicas and how many jobs they are
        of follow from it, and from the log, on any machine the same. At least six are made, of six weeks or more,
        however long that takes; with more time intervals are narrower. The runs of the log as it was come on top: some
        seconds, or minutes where a log has 100,000 jobs and the choice reads predictions.
    backfill_order : {"queue", "auto"}
        In which order jobs are tried for backfilling: the queue's, or one of its own where such a one is shown to be
        better, for simulation and schedulers that can have one. Under EASY only: Slurm plans by one priority.
    replicas : int or None
        So many replicas, of all jobs: of the second quarter to choose by, and as many of the second half to test on; 0:
        choose by the second quarter itself; None: what ``minutes`` allow. They are made of two weeks or more, and not
        of windows.
    max_p99, max_longest, max_area : str or None
        The most that the ninety-ninth percentile of the waits, the longest wait, and the wait weighted by processors
        and run time may be, on the replicas that choose and on those that test, and beside the record: times the best
        published policy's or the record's (``1.1x``), or a time (``20h``); None: anything.
    leave_out : tuple of str
        Attributes that predictions do not look at, though the log has them: those that the scheduler does not know when
        a job is submitted (`policyfactory.workload.jobs.Attributes`).

    Raises
    ------
    UsageError
        If a value is of a wrong type, outside its limits or unknown.
    """

    tuples: int = option(1000, "tuples to score", limits=(32, None))
    trials: int = option(16_000, "trials a tuple", limits=(256, None))
    metric: str = option("mean_bsld", "metric whose best value chooses the policy", metavar="NAME")
    threshold: str | float = option(
        "auto",
        "jobs that have waited longer go first: `20h`; `inf`: never; `auto`: chosen on the log too",
        kind='a duration, for example "20h", seconds as a number, or "auto"',
        metavar="TIME",
    )
    windows: str | None = option(
        None,
        "cut the jobs to choose by and to test on, for example `10x15d`",
        stated="one continuous simulation",
        metavar="NxLENGTH",
        kind='a text, for example "10x15d"',
    )
    processors: int | None = same_option(OPTIONS["processors"])
    force_processors: bool = same_option(OPTIONS["force_processors"])
    estimate_missing: EstimateMissing = same_option(OPTIONS["estimate_missing"])
    preset: str = same_option(OPTIONS["preset"])
    assume: str | None = same_option(OPTIONS["assume"])
    seed: int = option(1, "seed of the tuples, orders and replicas")
    backfill: Backfill | None = same_option(
        OPTIONS["backfill"],
        stated="easy for all policies, slurm for the best of them and the second half; with a site slurm",
    )
    site: str | None = same_option(OPTIONS["site"])
    predictions: bool = option(
        True,
        "let formulas compete that read what is predicted of a job from its user's past; "
        "`--no-predictions`: for a site that keeps no history of it",
    )
    minutes: float = option(
        3.0,
        "how long fits and replicas may take, about, on two cores: how many are made, and of how many jobs, follows "
        "from it; single runs of a long log come on top",
        limits=(0.1, 10_000),
    )
    replicas: int | None = option(
        None,
        "replicas of the second quarter to choose by, and of the second half to test on (users' weeks moved, loads of "
        "0.8 to 1.2), of all jobs; 0: choose by the second quarter itself",
        stated="as `--minutes` allow",
    )
    backfill_order: Literal["queue", "auto"] = option(
        "queue",
        "order in which jobs are tried for backfilling: the `queue`'s; `auto`: one of its own, if it is shown to be "
        "better, for schedulers that can have one (with `--backfill easy`)",
    )
    max_p99: str | None = option("1.1x", MAX_P99)
    max_longest: str | None = option("1.5x", MAX_LONGEST)
    max_area: str | None = option("1.2x", MAX_AREA)
    leave_out: tuple[str, ...] = option(
        (),
        "what predictions do not look at, though the log has it: `requested_memory`, `group`, `executable`, `queue`, "
        "`partition`",
        metavar="NAME",
    )
    anyway: bool = option(
        False,
        "go on where the log has more than ten times the work that its machine can do, or with `--site` its replay is "
        "far from the record",
    )

    def __post_init__(self) -> None:
        from policyfactory.simulation.metrics import METRICS, check_metrics
        from policyfactory.workload.jobs import Attributes
        from policyfactory.workload.machine import parse_assumptions
        from policyfactory.workload.windows import parse_windows

        check_values(self)
        check_seed(self.seed)
        if self.assume is not None:
            parse_assumptions(self.assume)
        if self.replicas and not 6 <= self.replicas <= 1000:
            raise UsageError(f"--replicas {self.replicas}: give 6 to 1,000, or 0 for none")
        Attributes.unknown(0).without(self.leave_out)
        _ = self.limits  # their words are checked there
        if not self.chooses_threshold:
            parse_duration(self.threshold_text, unit=True)
        object.__setattr__(self, "metric", *check_metrics([self.metric]))
        if METRICS[self.metric].lower_is_better is None:
            raise UsageError(f"--metric {self.metric}: neither direction of it is better; choose another metric")
        if self.windows is not None:
            parse_windows(self.windows)
        self._check_rules()

    def _check_rules(self) -> None:
        if self.site is not None and self.backfill not in {None, "slurm"}:
            raise UsageError(
                f"--site {self.site} is simulated under Slurm's rules: leave out --backfill {self.backfill} or the site"
            )
        Rules(backfill=self.backfill or "easy")
        if self.backfill_order == "auto" and self.backfill != "easy":
            raise UsageError(
                "--backfill-order auto: only EASY can try jobs for backfilling in another order than the queue's, and "
                "Slurm plans by one priority; add --backfill easy, or leave it out"
            )
        if self.backfill_order == "auto" and (self.replicas == 0 or self.windows is not None):
            raise UsageError(
                "--backfill-order auto: the order is chosen by replicas; leave out --replicas 0 and --windows"
            )

    @property
    def under_slurm(self) -> bool:
        """Whether Slurm's own rules hold where the policy is chosen."""
        return self.site is not None or self.backfill == "slurm"

    @property
    def judged_under_slurm(self) -> bool:
        """Whether they hold on the second half, which judges the choice."""
        return self.under_slurm or self.backfill is None

    @property
    def rules(self) -> Rules:
        """The scheduler's rules where the policy is chosen; its site is read."""
        return self._rules("slurm" if self.under_slurm else self.backfill or "easy")

    @property
    def judging(self) -> Rules:
        """The scheduler's rules on the second half."""
        return self._rules("slurm" if self.judged_under_slurm else self.backfill or "easy")

    def _rules(self, backfill: Backfill) -> Rules:
        options: RuleOptions = {"backfill": backfill}
        if self.site is not None:
            options["site"] = self.site
        if self.threshold_s is not None:
            options["threshold"] = self.threshold_s
        return rules_with(None, options)

    @property
    def limits(self) -> tuple[EpisodeLimit, ...]:
        """What a choice may cost on the replicas."""
        # With the simulation: the options are read where only help is asked for.
        from policyfactory.search.environment.goals import limits_of

        return limits_of(self.max_p99, self.max_longest, self.max_area)

    @property
    def reading(self) -> dict[str, Any]:
        """How the log is read: keywords of `policyfactory.workload.clean.clean`."""
        names = ("preset", "processors", "force_processors", "estimate_missing", "assume")
        return {name: getattr(self, name) for name in names}

    @property
    def machine_words(self) -> list[str]:
        """The size of the machine as it is typed; nothing if the log says it."""
        given = self.processors is not None and self.force_processors
        return as_typed({"processors": self.processors, "force_processors": given})

    @property
    def chooses_threshold(self) -> bool:
        """Whether the threshold is chosen like the formula."""
        return isinstance(self.threshold, str) and self.threshold.strip().lower() == "auto"

    @property
    def threshold_s(self) -> float | None:
        """The threshold that was asked for, in seconds; None if one is chosen, or there is none."""
        return None if self.chooses_threshold else parse_duration(self.threshold_text, unit=True)

    @property
    def threshold_text(self) -> str:
        """The threshold with its unit, ``7200s``, as commands and protocols take it."""
        return self.threshold if isinstance(self.threshold, str) else duration_text("threshold", self.threshold)
