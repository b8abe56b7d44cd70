"""A policy for OAR 2: a scheduler of a queue that sorts the waiting jobs and hands them to OAR's own scheduler.

The scheduler of a queue is a program of OAR's folder ``schedulers``; the stock ones ask ``OAR::IO`` for the jobs that
wait and plan them in the order in which they get them, each as early as it fits (conservative backfilling). The
exported Perl program puts its own function in place of that question and then runs the stock scheduler. It runs at
every pass and knows the time, so policies with w, thresholds and the oldest waiting job work as they are.

Seen with OAR 2.5.9.
"""

from __future__ import annotations

import functools
import math

from policyfactory.core.errors import ExportError
from policyfactory.export.expressible import fixed_epoch
from policyfactory.export.languages.perl import comment, score_function
from policyfactory.export.queue import policy_priorities
from policyfactory.export.targets import Export, File, Site, Target, header, identifier, instructions
from policyfactory.policy.policy import Policy
from policyfactory.policy.store import Model

__all__ = ["TARGET", "make"]

NAME = "oar"

_STOCK = "oar_sched_gantt_with_timesharing_and_fairsharing_and_quotas"


def _switch(scheduler: str) -> str:
    """Return the command that gives the queue another scheduler, and says if there is none then."""
    # In one call oarnotify would add before it removes, and it ends with 0 whatever happened.
    return (
        f"$ oarnotify --remove-queue default; oarnotify --add-queue default,2,{scheduler}; "
        f"oarnotify --list-queues | grep -A 3 '^default$' | grep 'scheduler = {scheduler}$' || "
        "echo 'NO QUEUE default: repeat oarnotify --add-queue'"
    )


_ROLLBACK = (
    (
        "Give the queue its former scheduler back, at once and without a restart; it is active then, as after the "
        "installation:"
    ),
    _switch(_STOCK),
)
_LIMITS = (
    (
        "OAR plans every waiting job, each as early as it fits (conservative backfilling): a job may start before "
        "one that stands before it, if that one is not delayed."
    ),
    (
        "Quotas, tokens, containers and dependencies stay as they are. The fair-sharing of the stock scheduler "
        "does not count: it would sort the jobs again."
    ),
    (
        "p is the walltime of the job's first description, if it has several (oarsub -l given more than once). q "
        "is the resources that it asks for; of whole nodes, the number of resources of a node on average."
    ),
    "At most 1000 jobs are planned in a pass, as in the stock scheduler: here the first of the order, not the oldest.",
    "Advance reservations and running jobs keep their places.",
    (
        "A job for which there is no score (its resources cannot be counted, an error) runs last; how many there are "
        "is logged at every pass, with the first of them (see LOG_FILE of oar.conf)."
    ),
    "r is at least 1 s from a fixed epoch: a job submitted before it counts as submitted at it.",
)


def make(model: Model, site: Site) -> Export:
    """Return the export.

    Raises
    ------
    ExportError
        If the policy counts r from the start of a window, or has m and the machine's size was not told.
    """
    policy = model.policy
    if policy.epoch.rule != "oldest-waiting":
        fixed_epoch(policy, NAME)
    if "m" in policy.variables and site.processors is None:
        raise ExportError(f"policy {policy.name} has m; give the machine's size: --processors N")
    program = f"oar_sched_pf_{identifier(policy.name)}"
    install = (
        "Put the file into OAR's folder of schedulers on the host of the server, as an executable, and try it:",
        f"$ install -m 755 {program} /usr/lib/oar/schedulers/",
        f"$ perl -c /usr/lib/oar/schedulers/{program}",
        (
            "Then make it the scheduler of a queue; the queue's name and priority (here default, 2) stay as "
            "oarnotify --list-queues shows them, and waiting jobs stay in it. OAR cannot change a queue: it is "
            "removed and added, a submission between the two has no queue, and if the second fails there is none until "
            "it is repeated. So all in one line, which shows the new scheduler at its end:"
        ),
        _switch(program),
        "The queue is active then. If it was not (state = notActive in the list of before):",
        "$ oarnotify --disable-queue default",
    )
    head = [
        *header(model, site, NAME),
        *instructions(install=install, rollback=_ROLLBACK, limits=_LIMITS),
    ]
    return Export(
        (File(program, _scheduler(policy, head, site), executable=True),),
        (),
        install,
        _ROLLBACK,
        _LIMITS,
        functools.partial(policy_priorities, policy, site.processors),
    )


def _scheduler(policy: Policy, head: list[str], site: Site) -> str:
    oldest = policy.epoch.rule == "oldest-waiting"
    epoch = "undef" if oldest else str(policy.epoch.unix_time or 0)
    what = "the submission of the job that has waited longest" if oldest else "this Unix time"
    threshold = "9**9**9" if math.isinf(policy.threshold) else repr(policy.threshold)
    size = site.processors if "m" in policy.variables else None
    return "\n".join(
        [
            "#!/usr/bin/perl",
            *comment(head),
            "",
            "use strict;",
            "use warnings;",
            "",
            "# The scheduler that plans the sorted jobs: the one that the queue had.",
            f"my $STOCK = '{_STOCK}';",
            "",
            "package PolicyFactory;",
            "",
            "use POSIX ();",
            "use OAR::Conf;",
            "use OAR::IO;",
            "use OAR::Modules::Judas qw(oar_error oar_warn);",
            "",
            f"my $EPOCH = {epoch};  # r counts from {what}",
            f"my $THRESHOLD = {threshold};  # jobs that have waited longer go first, s",
            "my $MOST = 1000;  # jobs planned in a pass",
            "my $ALL = 1_000_000;",
            *([f"my $m = {size};  # processors of the machine"] if size is not None else []),
            "",
            *score_function(policy),
            _PROGRAM,
        ]
    )


_PROGRAM = r"""
# The tuples of these properties that the resources have which a job may use; remembered, as most jobs ask alike.
my (%counted, $reader);

sub count_of {
    my ($where, @names) = @_;
    return 1 if !@names;
    my $what = join(', ', @names);
    if (!defined $counted{$where}{$what}) {
        # The conditions are the users': OAR looks at them with rights to read only, too.
        $reader = OAR::IO::connect_ro() if !defined $reader;
        my ($found) = $reader->selectrow_array(
            "SELECT COUNT(*) FROM (SELECT DISTINCT $what FROM resources WHERE $where) AS tuples");
        die "the resources where $where cannot be counted\n" if !defined $found;
        $counted{$where}{$what} = $found || 1;
    }
    return $counted{$where}{$what};
}

# Resources of one part of a description: what is asked for at each level, times what lies below the last one.
sub resources_of {
    my ($properties, $group) = @_;
    my @conditions = grep { defined $_ && $_ ne '' } $properties, $group->{property};
    my $where = join(' AND ', map { "($_)" } @conditions) || '1 = 1';
    my ($found, @names) = (1);
    for my $level (@{ $group->{resources} }) {
        die "the property $level->{resource} is no name\n" if $level->{resource} !~ /^\w+$/;
        my $above = count_of($where, @names);
        push @names, $level->{resource};
        my $wanted = $level->{value};
        # -1 is ALL, -2 BEST, -3 BESTHALF.
        $wanted = count_of($where, @names) / $above / ($wanted == -3 ? 2 : 1) if $wanted < 0;
        $found *= $wanted;
    }
    return $found * count_of($where, @names, grep { $_ ne $names[-1] } 'resource_id') / count_of($where, @names);
}

sub score_of {
    my ($base, $job, $r, $waited) = @_;
    my $descriptions = OAR::IO::get_resources_data_structure_current_job($base, $job->{job_id});
    my ($groups, $walltime) = @{ $descriptions->[0] };
    my $q = 0;
    $q += resources_of($job->{properties}, $_) for @$groups;
    return pf_score($walltime, $q, defined $EPOCH && $r < 1 ? 1 : $r, $waited);
}

# The jobs in the order of the policy: the ones that have waited too long, then by score, then those without one; ties
# by submit time, then id.
sub sorted {
    my ($base, $queue, $now, @jobs) = @_;
    my $epoch = $EPOCH;
    if (!defined $epoch) {
        $epoch = $now;
        for my $job (@jobs) {
            $epoch = $job->{submission_time} if $job->{submission_time} < $epoch;
        }
    }
    my (%place, %score, @failed);
    for my $job (@jobs) {
        my ($id, $waited) = ($job->{job_id}, $now - $job->{submission_time});
        ($place{$id}, $score{$id}) = (0, 0);
        next if $waited > $THRESHOLD;
        $place{$id} = 1;
        # One job that cannot be looked at must not cost the others their order.
        eval { $score{$id} = score_of($base, $job, $job->{submission_time} - $epoch, $waited); 1 } or do {
            $place{$id} = 2;
            push @failed, "job $id: $@";
        };
    }
    if (@failed) {
        my ($many, $first) = (scalar @failed, $failed[0]);
        $first =~ s/[^ -~]+/ /g;
        oar_warn("[PolicyFactory] queue $queue: $many without a score run last: $first\n");
    }
    return sort {
             $place{ $a->{job_id} } <=> $place{ $b->{job_id} }
          || $score{ $a->{job_id} } <=> $score{ $b->{job_id} }
          || $a->{submission_time} <=> $b->{submission_time}
          || $a->{job_id} <=> $b->{job_id}
    } @jobs;
}

# What the stock schedulers ask for the waiting jobs.
my $waiting = \&OAR::IO::get_jobs_to_schedule;

sub ordered {
    my ($base, $queue) = @_;
    my @jobs = $waiting->($base, $queue, $ALL);
    my $now = defined $ARGV[1] && $ARGV[1] =~ /^\d+$/ ? $ARGV[1] : time;
    my @found = sorted($base, $queue, $now, @jobs);
    splice @found, $MOST if @found > $MOST;
    return @found;
}

# Fair-sharing would sort the jobs again: with factors of 0 all users are alike, and the sort keeps the order.
my $configured = \&OAR::Conf::get_conf;
my $is_configured = \&OAR::Conf::is_conf;
my $factor = qr/^SCHEDULER_FAIRSHARING_COEF_(?:PROJECT|USER|USER_ASK)$/;

{
    no warnings qw(redefine prototype);
    *OAR::IO::get_jobs_to_schedule = \&ordered;
    *OAR::IO::get_fairsharing_jobs_to_schedule = \&ordered;
    *OAR::Conf::get_conf = sub ($) { return $_[0] =~ $factor ? 0 : $configured->($_[0]) };
    *OAR::Conf::is_conf = sub ($) { return $_[0] =~ $factor ? 1 : $is_configured->($_[0]) };
}

package main;

if (!defined $ENV{OARDIR} || !-r "$ENV{OARDIR}/schedulers/$STOCK") {
    OAR::Modules::Judas::oar_error("[PolicyFactory] no scheduler $STOCK in OARDIR/schedulers\n");
    # With 1 OAR goes on with its other queues, and tries this one again; any other number would disable the queue.
    exit 1;
}
do "$ENV{OARDIR}/schedulers/$STOCK";
if ($@) {
    OAR::Modules::Judas::oar_error("[PolicyFactory] $STOCK: $@\n");
    exit 1;
}
exit 0;
"""

TARGET = Target(NAME, "OAR 2: a scheduler of a queue (Perl) that sorts the jobs for OAR's own", make)
