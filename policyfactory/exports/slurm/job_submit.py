"""A policy as Slurm's ``job_submit.lua``, which sets ``site_factor`` (the recommended way) or the priority itself.

The priority plugin adds site_factor to its other factors, so fair-share and QOS still count; hold, release, requeue, a
restart and a change of the time limit by an ordinary user keep the order. A job without a score has 0, less than any
with one.

A priority that is set goes past the plugin, for sites whose priority is nothing but the formula: hold and release, and
a release of a job that is not held, put the plugin's own priority in place; ``--nice``, fair-share and QOS have no
effect. Priority 0 means held, and 4294967295 is what a release sends: both are left alone, as is a priority that
somebody gave.

Seen with Slurm 22.05.8, whose scripts run in Lua 5.1:

- A field that is not set is 4294967294, or 65534 where it has 16 bits; 4294967295 is "unlimited". The size of a job is
  in up to five fields, of which none alone is right: ``-n 4 -c 2`` fills min_cpus, ``-N 2 --mincpus=5`` only
  min_nodes and pn_min_cpus.
- The time limit is in minutes, rounded up. Without one, slurmctld takes the partition's DefaultTime, then its MaxTime.
- slurm_job_modify sees what is to be changed in the description, and the job as it was in the record.
- An error in a function is logged and the job accepted as it is; an error in loading the file keeps slurmctld from
  starting, but while it runs, the file of before stays in force.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import shlex
from collections.abc import Iterator, Sequence

from policyfactory.core.errors import ExportError
from policyfactory.core.text import DAY, format_duration
from policyfactory.engine.past import FEATURES, Forest
from policyfactory.exports.content import (
    Export,
    ExportSite,
    File,
    ascii_text,
    comment,
    header,
    identifier,
    instructions,
    uninstall_script,
)
from policyfactory.exports.expressible import fixed_epoch, static_only, unexpressed
from policyfactory.exports.foresight import SitePredictions, foresight_of
from policyfactory.exports.languages import LUA, helpers_of, lua_text, write_expression
from policyfactory.exports.queue import UNLIMITED_S, scaled_priorities
from policyfactory.exports.sample import learn_scale
from policyfactory.exports.scripts import fill, filled, parts, sentences, whole
from policyfactory.policy.expression import PREDICTIONS
from policyfactory.policy.policy import Policy
from policyfactory.policy.store import Model
from policyfactory.prediction.features import FEATURE_SET
from policyfactory.prediction.history_file import HEADER, HISTORY_SCHEMA, LINE

# The further arguments of score() for what a job asks for: their names, where they are from, what changes them.
ASKED_MORE = ", n, mem, g"
ASKED = (
    ", requested_nodes(job, record), requested_memory(job, record, partitions or {}, q), requested_gpus(job, record)"
)
CHANGES = "\n    or changes_asked(job)"


def _make(target: str, what: str, model: Model, site: ExportSite) -> Export:
    """Return the export of the target that sets ``what``, site_factor or priority.

    Raises
    ------
    ExportError
        If the score changes while a job waits, counts from no fixed date, needs the machine's size, or reads
        predictions that nothing makes.
    """
    policy = model.policy
    static_only(policy, target)
    fixed_epoch(policy, target)
    foresight = foresight_of(policy, site.foresight, target)
    counts = policy.needs_predictions and not policy.needs_model
    scale = learn_scale(policy, site.sample, largest=site.weight)
    does = "log_only" if site.log_only else what
    settings, install, rollback, limits = (
        sentences("slurm.txt", *names, DAYS=UNLIMITED_S // DAY, LARGEST_SCORE=site.weight)
        for names in (
            ["lua_log_settings" if site.log_only else "lua_settings"],
            [f"{does}_install"],
            [f"{does}_rollback"],
            [
                *(["lua_no_threshold"] if math.isfinite(policy.threshold) else []),
                "lua_limits",
                "lua_asked_limits" if policy.asked else "hardware",
                *(["lua_prediction_limits"] if foresight else []),
                *(["lua_counting_limits"] if counts else []),
                *([] if site.log_only else ["backfilling"]),
                f"{does}_limits",
            ],
        )
    )
    limits = (*unexpressed(policy), *limits)
    if foresight:
        install += sentences("slurm.txt", "lua_prediction_install", STATE=shlex.quote(foresight.state))
        rollback += sentences("slurm.txt", "lua_prediction_rollback")
    predicted = [ascii_text(line) for line in prediction_lines(foresight)] if foresight else []
    words = Export((), settings, install, rollback, limits)
    head = header(model, site, target, scale) + predicted + instructions(words)
    # Several numbers: only the last call of a list gives all that it returns.
    more, given, changes = ([ASKED_MORE], [ASKED], CHANGES) if policy.asked else ([], [], "")
    if foresight:
        more, given = [*more, MORE], [*given, FORESEEN]
    elif counts:
        more, given = [*more, ", user_waiting, user_running"], [*given, ", present_jobs(job, record, submitted)"]
    values = {
        "HEAD": "\n".join(comment(head, "--")),
        "EPOCH": policy.epoch.unix_time or 0,
        "RANGE": f"{scale.low!r}, {scale.high!r}, {scale.largest}.0",
        "HELPERS": "".join(f"{source}\n" for source in helpers_of(policy.expression, LUA)),
        "SCORE": write_expression(policy.expression, LUA),
        "UNLIMITED": UNLIMITED_S,
        "NAME": identifier(policy.name),
        "MORE": "".join(more),
        "FORESEEN": "".join(given),
        "CHANGES": changes,
        "LOOK": "local look -- at the beginning of each call\n\n" if counts else "",
        "LOOKS": "  pcall(look)\n" if counts else "",
    }
    script = parts("job_submit.lua")
    start, *others = (
        fill(script[part], values) for part in ("start", "value", does if site.log_only else f"set_{what}", "entry")
    )
    asked = whole("asked.lua") if policy.asked else ""
    foreseen = script["count"] if counts else prediction_script(policy, foresight) if foresight else ""
    remember = script["remember"] if foreseen else ""
    text = "".join([start, asked, remember, foreseen, *others])
    priorities = None if counts or foresight or policy.asked else scaled_priorities(policy, scale)
    jobs = "log_jobs" if site.log_only else f"{what}_jobs".replace("site_factor", "factor")
    return dataclasses.replace(
        words,
        files=(File("job_submit.lua", text),),
        priorities=priorities,
        scale=scale,
        uninstall=uninstall_script(policy, ("start", "conf", "waiting", "lua", jobs, "end")),
    )


set_site_factor = functools.partial(_make, "slurm-site-factor-lua", "site_factor")
set_priority = functools.partial(_make, "slurm-priority-lua", "priority")


# What a script in Lua needs to predict a job at its submission --------------------------------------------------------

# The forests, and where the history of the users is.
#
# The forests are numbers in a text that the script takes apart: constants of a function in Lua are limited in number,
# and nothing of a model is ever run as code.


# The further arguments of score(): their names, and where they are from.
MORE = ", ".join(["", *PREDICTIONS])
FORESEEN = ", foresee(job, record, partitions or {}, submitted, p, q)"


def prediction_lines(given: SitePredictions) -> list[str]:
    """Return what a reader of the script must know of its predictions, as lines for its head."""
    forests = given.forests
    trees = sum(len(forest.roots) for forest in (forests.shortness, forests.share, forests.tail))
    age, known = (
        format_duration(given.stale_s),
        ", ".join(sorted(given.queues)) or "none (the header of --workload LOG may name them)",
    )
    return [
        f"Predictor: {given.origin or 'made in a program'}, {trees:,} trees, trained on {forests.jobs:,} jobs.",
        f"History: {given.state}, set {FEATURE_SET} of the features; not used when older than {age}.",
        f"Partitions with a number of their own: {known}.",
    ]


def prediction_script(policy: Policy, given: SitePredictions) -> str:
    """Return the part of the script that predicts."""
    forests = given.forests
    queues = ", ".join(f"[{lua_text(name)}] = {int(number)}" for name, number in sorted(given.queues.items()))
    none = 'forest(0.0, "", "")'
    values = {
        "STATE": lua_text(given.state),
        "STALE": repr(float(given.stale_s)),
        "LAYOUT": f"{HEADER}, {LINE}, {HISTORY_SCHEMA}, {FEATURE_SET}, {FEATURES}",
        "QUEUES": queues,
        "SHORTNESS": _forest(forests.shortness),
        "SHARE": _forest(forests.share),
        "TAIL": _forest(forests.tail) if "e90" in policy.variables else none,
    }
    return filled("predictions.lua", values)


def _forest(forest: Forest) -> str:
    """Return the call that makes a forest of its numbers."""
    columns = zip(
        forest.feature.tolist(), forest.threshold.tolist(), forest.left.tolist(), forest.right.tolist(), strict=True
    )
    nodes = []
    for feature, threshold, left, right in columns:
        if not math.isfinite(threshold):
            raise ExportError(f"the predictor has the threshold {threshold}, which is no finite number; train it again")
        nodes.append(f"{int(feature)} {float(threshold)!r} {int(left)} {int(right)}\n")
    roots = " ".join(str(int(root)) for root in forest.roots)
    return f'forest({float(forest.base)!r}, "{roots}", [[\n{"".join(nodes)}]])'


# Score the waiting jobs of some users anew, when what is known of them has changed ------------------------------------

# An update that sets the nice value to what it is changes nothing else, and the script of the export scores the job.


_USERS = 200  # named in one command


def renewal_commands(users: Sequence[str]) -> Iterator[str]:
    """Give commands for sh, of which each scores the waiting jobs of up to 200 users.

    Parameters
    ----------
    users : sequence of str
        Their numbers; what is none is left out.
    """
    numbers = [user for user in users if user.isascii() and user.isdigit()]
    for begin in range(0, len(numbers), _USERS):
        yield from sentences("slurm.txt", "renew", USERS=",".join(numbers[begin : begin + _USERS]))
