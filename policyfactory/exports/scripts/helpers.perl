# What a formula calls; those that it needs are taken over, each from the line behind its ===.
# Perl dies at a division by zero and at the logarithm of what has none; these return what C does.
#=== div
sub pf_div {
    my ($x, $y) = @_;
    return $x / $y if $y != 0;
    return $NAN if $x == 0 || $x != $x || $y != $y;
    return $x > 0 ? $INFINITY : -$INFINITY;
}
#=== log10
sub pf_log10 {
    my ($x) = @_;
    return POSIX::log10($x) if $x > 0;
    return $x == 0 ? -$INFINITY : $NAN;
}
#=== log2
sub pf_log2 {
    my ($x) = @_;
    # The POSIX module has it since Perl 5.22.
    my $log2 = POSIX->can('log2') || sub { return log($_[0]) / log(2) };
    return $log2->($x) if $x > 0;
    return $x == 0 ? -$INFINITY : $NAN;
}
#=== ln
sub pf_ln {
    my ($x) = @_;
    return log($x) if $x > 0;
    return $x == 0 ? -$INFINITY : $NAN;
}
#=== sqrt
sub pf_sqrt {
    my ($x) = @_;
    return $x >= 0 ? sqrt($x) : $NAN;
}
#=== exp
sub pf_exp {
    return exp($_[0]);
}
#=== abs
sub pf_abs {
    return abs($_[0]);
}
#=== min
sub pf_min {
    my ($x, $y) = @_;
    return ($x <= $y || $x != $x) ? $x : $y;
}
#=== max
sub pf_max {
    my ($x, $y) = @_;
    return ($x >= $y || $x != $x) ? $x : $y;
}
#=== pow
sub pf_pow {
    return $_[0] ** $_[1];
}
#=== powi
sub pf_powi {
    my ($x, $times) = @_;
    my $value = 1;
    $value *= $x for 1 .. $times;
    return $value;
}
