"""`policyfactory.export`: hand a policy to a program or a scheduler."""

from __future__ import annotations

import dataclasses
import datetime as dt
import difflib
import functools
import shlex
import time
from pathlib import Path
from typing import Any

import numpy as np

from policyfactory.core.errors import EvaluationError, ExportError, PolicyfactoryError, UsageError
from policyfactory.core.files import dump_json, exclusive
from policyfactory.core.inputs import sha256_bytes
from policyfactory.core.options import changed
from policyfactory.core.text import DAY
from policyfactory.core.version import __version__
from policyfactory.exports.advice import as_then, gaming, renewal, starvation
from policyfactory.exports.content import TARGETS, Export, ExportSite, Target
from policyfactory.exports.exported import Exported, claim, earlier_files, places, write_files
from policyfactory.exports.expressible import NO_THRESHOLD, left_out, prepare
from policyfactory.exports.foresight import site_predictions
from policyfactory.exports.options import ExportOptions
from policyfactory.exports.sample import ExportSample, learn_scale, sample_of, wide_sample
from policyfactory.policy.expression import Binary, Call, Expression, Negative, Number
from policyfactory.policy.policy import Policy
from policyfactory.policy.scale import LARGEST, MOST_TIES, PriorityScale, tie_share
from policyfactory.policy.store import Model, PolicyLike, is_catalogued, model_to_json, resolve, resolve_model
from policyfactory.report.verdict import LIGHTS
from policyfactory.workload.accounting.times import shown
from policyfactory.workload.header import counts_nodes, printable
from policyfactory.workload.jobs import Workload
from policyfactory.workload.swf.log import SwfLog

# They order no queue: nobody waits for what they compute.
_PROGRAMS = frozenset({"python", "c", "lua", "latex", "json"})


def export(
    policy: PolicyLike | Model,
    to: str = "slurm-site-factor-lua",
    output: Path | str | None = None,
    options: ExportOptions | None = None,
    *,
    overwrite: bool = False,
    source: str = "",
    **changes: Any,
) -> Exported:
    """Export a policy to a scheduler (Slurm, Grid Engine, OAR, OpenPBS) or a program.

    Parameters
    ----------
    policy : str, Path, Policy, Model, or what has one (a fit, a learned policy)
        A name of the catalogue or a model file, or the policy itself.
    to : str
        Name of the target; `policyfactory.exports.content.TARGETS` has them.
    output : Path or str, optional
        File or folder for the files; without it nothing is written, and the result has their texts.
    options : ExportOptions, optional
        What the site fixes.
    overwrite : bool
        Whether earlier files are replaced.
    source : str
        Where a policy that is in memory is from, for the head of the files: a name of the catalogue, or its file.
    **changes
        Fields of `ExportOptions`, in place of ``options`` or on top of them: ``epoch="2026-01-01"``, ...

    Raises
    ------
    UsageError
        If there is no such target, or an option cannot be used.
    ExportError
        If the target cannot express the policy; says what to do.
    OutputError
        If a file is there already, or cannot be written.

    Examples
    --------
    >>> import policyfactory as pf
    >>> pf.export("SAF", "python")
    <Exported SAF to python: saf.py>
    """
    chosen = changed(options or ExportOptions(), changes)
    output_path = None if output is None else Path(output)
    policy = str(policy) if isinstance(policy, Path) else policy
    work = _Work(policy, policy if isinstance(policy, str) else source, _target(to), chosen)
    with exclusive(claim(output_path)):
        return work.run(output_path, overwrite=overwrite)


class _Work:
    """One export: the model as the site has it, and what is said of it on the way."""

    def __init__(self, policy: PolicyLike | Model, source: str, target: Target, options: ExportOptions) -> None:
        self.target = target
        self.options = options
        self.notes: list[str] = []
        self.warnings: list[str] = []
        self.begin, self.life = options.begin_s, options.life_s
        given, origin = _model(policy, source)
        self.model = prepare(
            given, epoch=options.counts_from, processors=options.processors, threshold=options.threshold_s
        )
        if (formula := self.policy.backfill_formula) and target.name != "json":
            raise ExportError(
                f"policy {self.policy.name} has an order of its own for backfilling, by {formula}, which {target.name} "
                "has not; export it to json, or take a policy without (learn without --backfill-order)"
            )
        self._check_epoch()
        # What determines the bytes of the files, and not where they are written.
        words = [word for option in options.given().items() for word in option if word]
        command = ["policyfactory", "export", source, "--to", target.name, *words] if source else []
        self.site = ExportSite(
            draw=self._sample,
            processors=options.processors,
            command=shlex.join(command),
            model=origin,
            nodes=options.nodes,
            weight=options.weight or LARGEST,
            log_only=options.log_only,
            foresight=site_predictions(options) if self.policy.needs_model else None,
            advise=self._advise if target.name not in _PROGRAMS else None,
        )
        self.advice: list[str] = []
        self._waits: dict[Policy, str] = {}  # what of the longest waits was said of each
        self._refused = False
        if options.log_only and not target.name.startswith("slurm-"):
            raise UsageError(f"--log-only: {target.name} cannot log without acting; the targets for Slurm can")
        if options.slurm and not target.name.startswith("slurm-"):
            raise UsageError(f"--backfill slurm, --site: {target.name} is not for Slurm; leave them out")

    @property
    def policy(self) -> Policy:
        return self.model.policy

    def run(self, output: Path | None, *, overwrite: bool) -> Exported:
        """Make the files, write them where an output is named, and say what must be known of them."""
        self._refuse(output, overwrite=overwrite)
        done = make_with_few_ties(self.target, self.model, self.site)
        export, options = done.export, self.options
        if isinstance(options.workload, Path | str) and export.install and not self.drawn:
            from policyfactory.workload.swf.files import read_swf

            self._check_unit(read_swf(options.workload))
        paths: list[Path] = []
        if output is not None:
            paths = write_files(export, self.target.name, output, overwrite=overwrite)
            stale = earlier_files(output, paths) if overwrite and output.is_dir() else []
            if stale:
                self.warnings.append(
                    f"{printable(str(output), 300)} has files of another export as well, which stay: {', '.join(stale)}"
                )
        self._say_what_was_measured(done)
        self._say_ties(done)
        self.notes += self.advice
        verdict = printable(self.model.verdict, 400)
        if verdict and "agreement" in self.model.diagnostics:
            # It is compared with the network that it was made of.
            self.notes.append(f"distilled: {verdict}")
        elif verdict and not verdict.startswith(LIGHTS["better"]):
            self.warnings.insert(0, f"it is not recommended: {verdict}")
        self.warnings += left_out(self.policy, export.limits)
        self.warnings += [f"of the fit: {printable(text, 400)}" for text in self.model.warnings]
        return Exported(
            policy=self.policy,
            target=self.target,
            export=export,
            ties=done.ties,
            notes=tuple(self.notes),
            warnings=tuple(self.warnings),
            paths=tuple(paths),
            log_only=self.options.log_only,
        )

    def _refuse(self, output: Path | None, *, overwrite: bool) -> None:
        """Refuse what cannot be made or written, before the waits under the formula are simulated."""
        export = self.target.make(self.model, self.site)
        if self.options.weight is not None and export.scale is None:
            raise UsageError(f"--weight: {self.target.name} makes no whole numbers of the scores of {self.policy.name}")
        if output is not None:
            places(export, self.target.name, output, overwrite=overwrite)
        self._refused = True

    def _advise(self, policy: Policy, scale: PriorityScale | None) -> list[str]:
        """Return what must be known before a formula orders a queue, be it the policy's or one near it; it is kept."""
        if not self._refused:
            return []
        if policy not in self._waits:
            self._waits[policy] = self._starvation(policy)
        sentences = (
            renewal(policy, scale, self.begin, self.life),
            self._waits[policy],
            gaming(policy, self.options.processors),
        )
        self.advice = [text for text in sentences if text]
        return self.advice

    def _starvation(self, policy: Policy) -> str:
        keeps = self.target.name not in NO_THRESHOLD
        try:
            from policyfactory.prediction.training import Predictor
            from policyfactory.simulation.rules import rules_with

            predictor = None if self.site.foresight is None else Predictor(forests=self.site.foresight.forests)
            options = self.options
            slurm = options.under_slurm(self.target.name)
            rules = rules_with(None, {"backfill": "slurm", "site": options.site}) if slurm else None
            return starvation(
                *(policy, self._workload),
                keeps_threshold=keeps,
                predictor=predictor,
                rules=rules,
                or_easy=not options.slurm,
            )
        except PolicyfactoryError as error:
            return f"Starvation: how long a job may wait could not be simulated: {error}."

    @functools.cached_property
    def _workload(self) -> Workload | None:
        """The site's own jobs, read once."""
        source = self.options.workload
        return source if source is None or isinstance(source, Workload) else self._read(source)

    @property
    def drawn(self) -> bool:
        """Whether the target looked at jobs; `Site.sample` is kept once it was asked for."""
        return "sample" in vars(self.site)

    def _check_epoch(self) -> None:
        """Refuse to count from a day that has not come: r would stay at its least value until then; or from none."""
        epoch, name = self.policy.epoch.unix_time, printable(self.policy.name)
        if self.begin is not None and "r" in self.policy.variables and self.policy.epoch.rule == "window-start":
            day = dt.datetime.fromtimestamp(min(self.begin, _now()), dt.UTC).date()
            raise UsageError(
                f"--begin {self.options.begin} says when {name} is put to use, and not from when its r counts; give "
                f"that as well, for example --epoch {day}"
            )
        if "r" in self.policy.variables and epoch is not None and epoch > _now() + DAY:
            named = f"the epoch of {name}" if self.options.epoch is None else "--epoch"
            raise UsageError(
                f"{named} {shown(epoch, dt.UTC)} is in the future, so that all jobs until then would count as "
                "submitted at once; give a day that has come (a later first day of use is --begin DATE)"
            )

    def _sample(self) -> ExportSample:
        """Return the jobs over whose scores the whole numbers are spread; called by the targets that need them."""
        workload = self._workload
        if workload is None:
            return wide_sample(self.policy, begin=self.begin, life=self.life)
        return sample_of(workload, self.policy, begin=self.begin, life=self.life)

    def _read(self, source: Path | str) -> Workload:
        from policyfactory.workload.clean import clean
        from policyfactory.workload.swf.files import read_swf

        log = read_swf(source)
        options = self.options
        workload = clean(
            log,
            processors=options.processors,
            force_processors=options.force_processors,
            estimate_missing=options.estimate_missing,
        )
        self.notes.append(workload.cleaning.totals())
        self._check_unit(log)
        return workload

    def _check_unit(self, log: SwfLog) -> None:
        if counts_nodes(log.header):
            self.warnings.append(
                f"{printable(log.path, 300)} counts whole nodes, and the scheduler's script counts processors as q: "
                "import the log with --unit cpus, and learn the formula from that"
            )

    def _say_what_was_measured(self, done: Made) -> None:
        """Say which jobs the export was measured on, for how long it holds, and which options changed nothing."""
        read = vars(self).get("_workload")  # of a target that looks at no jobs, none were read
        if read is not None and self.target.name != "pbs":  # which says itself where it puts jobs without a score
            self.warnings += filter(None, [_without_score(read, self.policy)])
        scaled, moves, given = done.export.scale is not None, "r" in self.policy.variables, self.options.given()
        if self.drawn and self.options.workload is None:
            what = "the range of scores is that of" if scaled else "it was measured on jobs of"
            spread = ", spread over the policy's life" if moves else ""
            self.notes.append(f"no --workload LOG: {what} the model workload{spread}")
        unused = [] if moves else [name for name in ("--epoch", "--begin", "--life") if name in given]
        if unused:
            self.notes.append(
                f"without effect, as the formula of {printable(self.policy.name)} has no r: {', '.join(unused)}"
            )
        used = {"--workload": self.drawn or bool(self.advice), "--nodes": self.target.name == "slurm-weights"}
        used |= dict.fromkeys(("--begin", "--life"), self.drawn or bool(self.advice) or not moves)
        used |= dict.fromkeys(("--predictor", "--state", "--stale"), self.site.foresight is not None)
        if idle := [name for name in used if name in given and not used[name]]:
            self.notes.append(f"without effect for {self.target.name}: {', '.join(idle)}")
        epoch = self.policy.epoch.unix_time
        if scaled and moves and epoch is not None:
            begin = epoch if self.begin is None else self.begin
            if begin + self.life < _now():
                self.warnings.append(
                    f"the range of scores was learnt for submissions from {shown(begin, dt.UTC)} to "
                    f"{shown(begin + self.life, dt.UTC)}, which is over; give the day from which it is used "
                    "(--begin DATE) or a longer --life"
                )

    def _say_ties(self, done: Made) -> None:
        """Say how well whole numbers keep the scores apart."""
        scale = done.export.scale
        if scale is None or done.ties is None:
            return
        how = " on a scale of logarithms, which keeps more of them apart in the same order"
        self.notes.append(
            f"scores {scale.low:g} to {scale.high:g} are spread over the whole numbers to {scale.largest:,}"
            f"{'' if done.policy is self.policy else how}"
        )
        jobs = "the model workload" if self._workload is None else f"the {len(self._workload):,} jobs of the log"
        self.notes.append(
            f"ties: {100 * done.ties:.3g} % of neighbouring scores share a whole number, where submit time decides "
            f"(measured on {len(self.site.sample):,} draws from {jobs})"
        )
        if done.ties > MOST_TIES:
            self._say_what_makes_ties(done, scale)

    def _say_what_makes_ties(self, done: Made, scale: PriorityScale) -> None:
        """Say what a weight costs that was chosen; where ties would be many without it as well, warn."""
        options, widest = self.options, dataclasses.replace(scale, largest=LARGEST)
        chosen = options.weight is not None and options.weight < LARGEST
        if chosen and tie_share(widest, self.site.sample.scores(done.policy)) <= MOST_TIES:
            self.notes.append(
                f"these ties are made by --weight {options.weight}: of jobs with one number the earlier submission "
                "goes first; a larger --weight makes fewer"
            )
            return
        cures = [] if options.workload is not None else ["the cluster's own jobs (--workload LOG)"]
        if "r" in self.policy.variables:
            cures += ["a shorter --life", "the day from which it is used (--begin DATE)"]
        self.warnings.append("more than 1 % ties" + (f": give {' or '.join(cures)}" if cures else ""))


def _target(to: str) -> Target:
    if not isinstance(to, str):
        raise UsageError(f"to {ascii(to)[:60]}: give the name of a target: {', '.join(TARGETS)}")
    name = to.lower()
    if name in TARGETS:
        return TARGETS[name]
    # slurm-lua means those that have both words.
    near = [known for known in TARGETS if set(name.split("-")) <= set(known.split("-"))]
    near = near or difflib.get_close_matches(name[:60], TARGETS, n=2, cutoff=0.5)
    hint = f"did you mean {' or '.join(near)}? The targets are" if 0 < len(near) <= 3 else "the targets are"
    known = "".join(f"\n  {target}" for target in TARGETS)
    raise UsageError(f"unknown target {name[:60]!a}; {hint}{known}")


def _model(policy: PolicyLike | Model, source: str) -> tuple[Model, str]:
    """Return the model, and where it is from with the digest of its file; nothing for what was made in a program."""
    if isinstance(policy, str):
        model = _named(policy)
        return model, _origin(policy, model.sha256)
    # A fit and a learned policy know more of it than its formula.
    known = policy if isinstance(policy, Model) else getattr(policy, "model", None)
    found = known() if callable(known) else known
    model = found if isinstance(found, Model) else Model(resolve(policy))
    if not source or is_catalogued(source):
        return model, _origin(source, "") if source else ""
    return model, _origin(source, model.sha256 or sha256_bytes(dump_json(model_to_json(model)).encode()))


def _origin(source: str, digest: str) -> str:
    """Return where a model is from; ``digest`` is that of its file."""
    return f"{Path(source).name}, SHA-256 {digest}" if digest else f"catalogue of policyfactory {__version__}"


def _named(spec: str) -> Model:
    """Return the model; a folder is no model, but what `learn` makes has one in it."""
    folder = Path(spec)
    if not is_catalogued(spec) and len(spec) <= 1000 and "\0" not in spec and folder.is_dir():
        inside = folder / "policy.json"
        hint = f"did you mean {inside}?" if inside.is_file() else "name a model file in it"
        raise UsageError(f"{printable(spec, 300)}: that is a folder; {hint}")
    return resolve_model(spec)


def _now() -> int:
    """Return the present Unix time: for messages, never for files."""
    return int(time.time())


# Keep scores apart that whole numbers would make equal ----------------------------------------------------------------

# The same order, on a scale of logarithms.
#
# The sizes of scores like -(w/p)**3*q go from 1e-15 to 1e12. Spread evenly over two thousand million numbers, most of
# them would get the same one. Then the export is made of another formula with the same order: log10(1 + score/c) for
# scores above 0 and its mirror image below, where c is a score as small as many are.


# Shares of the scores that lie nearer to 0 than the constants that are tried.
_SHARES = (0.001, 0.01, 0.1, 0.5)
_WORDS = "on a scale of logarithms, in the same order"


@dataclasses.dataclass(frozen=True, slots=True)
class Made:
    """An export and how well it keeps scores apart.

    Parameters
    ----------
    export : Export
        What the target made of the policy.
    policy : Policy
        What it was made of: the policy, or one with the same order.
    ties : float or None
        Share of neighbouring scores of the site's sample that get one whole number; None without whole numbers.
    """

    export: Export
    policy: Policy
    ties: float | None


def compressed(policy: Policy, unit: float) -> Policy:
    """Return a policy of the same order, whose score grows with the logarithm of the score beyond ``unit``.

    Parameters
    ----------
    policy : Policy
        What is exported.
    unit : float
        Scores nearer to 0 than this keep their distances; above 0.
    """

    def side(score: Expression) -> Expression:
        part = Call("max", (score, Number(0.0)))
        return Call("log10", (Binary("+", Number(1.0), Binary("/", part, Number(unit))),))

    score = policy.expression
    formula = Binary("-", side(score), side(Negative(score))).text()
    description = f"{policy.description}; {_WORDS}" if policy.description else _WORDS
    return dataclasses.replace(policy, formula=formula, description=description[-2000:])


def _without_score(workload: Workload, policy: Policy) -> str:
    """Return how many jobs of a log the policy gives no score, in words; empty if none."""
    from policyfactory.simulation.prepare import unscored

    try:
        return unscored(workload, as_then(policy, workload))
    except EvaluationError as error:
        return str(error)


def make_with_few_ties(target: Target, model: Model, site: ExportSite) -> Made:
    """Return the export; of a compressed formula, where the policy's own would give more than 1 % of ties.

    Errors are those of the target.
    """
    export = target.make(model, site)
    if export.scale is None:
        return Made(export, model.policy, None)
    first = Made(export, model.policy, tie_share(export.scale, site.sample.scores(model.policy)))
    if first.ties is None or first.ties <= MOST_TIES:
        return first
    tried = [(policy, _ties(policy, site)) for policy in _candidates(model.policy, site)]
    policy, ties = min(tried, key=lambda candidate: candidate[1])
    if ties >= first.ties:
        return first
    return Made(target.make(dataclasses.replace(model, policy=policy), site), policy, ties)


def _ties(policy: Policy, site: ExportSite) -> float:
    return tie_share(learn_scale(policy, site.sample, largest=site.weight), site.sample.scores(policy))


def _candidates(policy: Policy, site: ExportSite) -> list[Policy]:
    scores = np.abs(site.sample.scores(policy))
    scores = scores[np.isfinite(scores) & (scores > 0)]
    units = sorted(set(np.quantile(scores, _SHARES, method="inverted_cdf").tolist()))
    return [compressed(policy, unit) for unit in units]
