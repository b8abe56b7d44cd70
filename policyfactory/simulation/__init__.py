"""Rules, kernels and metrics: a workload and a policy in, a schedule out."""
