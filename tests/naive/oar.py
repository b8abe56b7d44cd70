"""Modules in OAR's place, for a machine without OAR: the exported program runs with them."""

from __future__ import annotations

from pathlib import Path

__all__ = ["STOCK", "write_stand_in"]

STOCK = "oar_sched_gantt_with_timesharing_and_fairsharing_and_quotas"

# What the program calls: OAR::IO of version 2.5.9, with jobs from a file in place of a data base. Every tuple of
# properties has its own count: 4 nodes, 16 resources.
_IO = r"""
package OAR::IO;
use strict;
use warnings;
my @jobs = do { open my $file, '<', $ENV{JOBS} or die; map { [split] } <$file> };
sub get_jobs_to_schedule($$$) {
    my ($base, $queue, $limit) = @_;
    return map { { job_id => $_->[0], submission_time => $_->[3], properties => "drain='NO'" } } @jobs;
}
sub get_fairsharing_jobs_to_schedule($$$) { die 'never called' }
sub get_resources_data_structure_current_job($$) {
    my ($base, $id) = @_;
    my ($job) = grep { $_->[0] == $id } @jobs;
    my @levels = map { my @pair = split /=/; { resource => $pair[0], value => $pair[1] } } split m{/}, $job->[2];
    return [ [ [ { property => "type = 'default'", resources => \@levels } ], $job->[1], 1 ] ];
}
sub connect_ro() { return bless {}, 'Reader' }
package Reader;
sub selectrow_array {
    my ($self, $query) = @_;
    my ($names) = $query =~ /DISTINCT (.*) FROM resources WHERE \(drain='NO'\) AND \(type = 'default'\)\)/
        or die $query;
    return $names =~ /resource_id/ ? 16 : 4;
}
1;
"""
_CONF = r"""
package OAR::Conf;
use strict;
use warnings;
use base 'Exporter';
our @EXPORT_OK = qw(get_conf is_conf get_conf_with_default_param);
sub get_conf($) { return "value of $_[0]" }
sub is_conf($) { return $_[0] =~ /USER|KNOWN/ ? 1 : 0 }
1;
"""
_JUDAS = r"""
package OAR::Modules::Judas;
use strict;
use warnings;
use base 'Exporter';
our @EXPORT_OK = qw(oar_warn oar_error);
sub oar_warn { print "warning: @_" }
sub oar_error { print "error: @_" }
1;
"""
_SCHEDULER = r"""
use strict;
use warnings;
use OAR::IO;
use OAR::Conf qw(get_conf is_conf);
my @jobs = OAR::IO::get_fairsharing_jobs_to_schedule(undef, $ARGV[0], 30);
my @same = OAR::IO::get_jobs_to_schedule(undef, $ARGV[0], 1000);
die 'two orders' if "@{[map { $_->{job_id} } @jobs]}" ne "@{[map { $_->{job_id} } @same]}";
print join(' ', map { $_->{job_id} } @jobs), "\n";
for my $name (qw(SCHEDULER_FAIRSHARING_COEF_USER SCHEDULER_FAIRSHARING_COEF_PROJECT KNOWN OTHER)) {
    print "$name ", is_conf($name), ' ', get_conf($name), "\n";
}
"""


def write_stand_in(folder: Path) -> Path:
    """Write the modules and the stock scheduler below ``folder``; PERL5LIB and OARDIR have to name it."""
    (folder / "OAR/Modules").mkdir(parents=True)
    (folder / "schedulers").mkdir()
    for name, text in [("OAR/IO.pm", _IO), ("OAR/Conf.pm", _CONF), ("OAR/Modules/Judas.pm", _JUDAS)]:
        (folder / name).write_text(text)
    (folder / "schedulers" / STOCK).write_text(_SCHEDULER)
    return folder
