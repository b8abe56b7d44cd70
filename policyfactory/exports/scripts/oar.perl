#!/usr/bin/perl
@HEAD@

use strict;
use warnings;

# The scheduler that plans the sorted jobs: the one that the queue had.
my $STOCK = '@STOCK@';

package PolicyFactory;

use POSIX ();
use OAR::Conf;
use OAR::IO;
use OAR::Modules::Judas qw(oar_error oar_warn);

my $EPOCH = @EPOCH@;  # r counts from @COUNTED_FROM@
my $THRESHOLD = @THRESHOLD@;  # jobs that have waited longer go first, s
my $MOST = 1000;  # jobs planned in a pass
my $ALL = 1_000_000;

@SCORE@

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
