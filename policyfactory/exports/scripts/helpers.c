// What a formula calls; those that it needs are taken over, each from the line behind its ===.
// A compiler may compute functions of constants itself, with other last bits than the library: volatile forbids it.
//=== log10
static double policyfactory_log10(double x)
{
    volatile double argument = x;
    return x > 0.0 ? log10(argument) : (x == 0.0 ? -INFINITY : NAN);
}
//=== log2
static double policyfactory_log2(double x)
{
    volatile double argument = x;
    return x > 0.0 ? log2(argument) : (x == 0.0 ? -INFINITY : NAN);
}
//=== ln
static double policyfactory_ln(double x)
{
    volatile double argument = x;
    return x > 0.0 ? log(argument) : (x == 0.0 ? -INFINITY : NAN);
}
//=== sqrt
static double policyfactory_sqrt(double x)
{
    return x >= 0.0 ? sqrt(x) : NAN;
}
//=== exp
static double policyfactory_exp(double x)
{
    volatile double argument = x;
    return exp(argument);
}
//=== abs
static double policyfactory_abs(double x)
{
    return fabs(x);
}
//=== min
static double policyfactory_min(double a, double b)
{
    return (a <= b || a != a) ? a : b;
}
//=== max
static double policyfactory_max(double a, double b)
{
    return (a >= b || a != a) ? a : b;
}
//=== pow
static double policyfactory_pow(double x, double y)
{
    volatile double exponent = y;
    return pow(x, exponent);
}
//=== powi
static double policyfactory_powi(double x, int times)
{
    double value = 1.0;
    int i;
    for (i = 0; i < times; i++)
        value *= x;
    return value;
}
