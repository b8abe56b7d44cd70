#!/usr/bin/perl
@HEAD@

use strict;
use warnings;
use POSIX ();

my $RESOURCE = '@RESOURCE@';
my $EPOCH = @EPOCH@;  # Unix time from which r counts
my $NO_LIMIT = @LONGEST@;  # p of a job without h_rt and s_rt, s
my ($LOW, $HIGH, $LARGEST) = (@RANGE@);

@SCORE@

# The whole number of a score, 1 to $LARGEST; higher runs first.
sub pf_priority {
    my ($score) = @_;
    my $u = ($score - $LOW) / ($HIGH - $LOW);
    my $y = $u < 0 ? 0.125 / (1 - 6 * $u) : $u > 1 ? 1 - 0.125 / (1 + 6 * ($u - 1)) : 0.125 + 0.75 * $u;
    my $found = POSIX::floor($LARGEST - $y * ($LARGEST - 1));
    return $found >= 1 ? ($found <= $LARGEST ? $found : $LARGEST) : 1;
}

# Seconds of a limit: the qmaster hands on seconds, a user's own verifier may get [[HH:]MM:]SS.
sub seconds {
    my ($text) = @_;
    return $NO_LIMIT if !defined $text || length $text > 30 || $text !~ /^\d+(?::\d+){0,2}$/;
    my $found = 0;
    $found = 60 * $found + $_ for split /:/, $text;
    return $found > 0 ? $found : $NO_LIMIT;
}

sub slots {
    my ($parameters) = @_;
    my $least = defined $parameters->{pe_name} ? $parameters->{pe_min} : 1;
    return defined $least && $least =~ /^[1-9]\d{0,8}$/ ? $least : 1;
}

sub verify {
    my ($parameters) = @_;
    my $given = $parameters->{l_hard};
    # A user's own request for it is dropped.
    my @requests = grep { !/^\Q$RESOURCE\E(?:=|$)/ } split /,/, defined $given ? $given : '';
    eval {
        my %asked = map { /^(\w+)=(.*)$/ ? ($1, $2) : () } @requests;
        my $limit = defined $asked{h_rt} ? $asked{h_rt} : $asked{s_rt};
        my ($slots, $r) = (slots($parameters), time - $EPOCH);
        my $priority = pf_priority(pf_score(seconds($limit), $slots, $r < 1 ? 1 : $r, 0));
        push @requests, sprintf('%s=%.17g', $RESOURCE, $priority / $slots);
        1;
    } or print "LOG WARNING no score for this job: it runs last\n";
    print join(' ', 'PARAM l_hard', @requests ? join(',', @requests) : ()), "\n" if @requests || defined $given;
    print "RESULT STATE CORRECT\n";
    return;
}

# The protocol of sge_jsv(1): one process verifies one job after another.
$| = 1;
my %parameters;
while (defined(my $line = <STDIN>)) {
    chomp $line;
    my ($command, $name, $value) = split / /, $line, 3;
    next if !defined $command;
    last if $command eq 'QUIT';
    if ($command eq 'START') {
        %parameters = ();
        print "STARTED\n";
    }
    elsif ($command eq 'PARAM' && defined $value) {
        $parameters{$name} = $value if $name =~ /^(?:l_hard|pe_name|pe_min)$/;
    }
    elsif ($command eq 'BEGIN') {
        verify(\%parameters);
    }
}
