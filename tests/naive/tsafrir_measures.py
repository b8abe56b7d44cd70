"""What the oracle measured after the original program gave estimates to jobs (oracles/tsafrir_oracle.json)."""

from __future__ import annotations

import numpy as np

__all__ = ["SAMPLES", "measure"]

SAMPLES = [
    f"{sample}_Tmax{longest}"
    for sample in ("typeless_128", "typeless_256", "typeless_1024", "typed_128")
    for longest in (36_000, 64_800, 162_754)
]

_RUN_CLASSES = (("1_60", 1, 60), ("60_600", 60, 600), ("600_3600", 600, 3600), ("3600_14400", 3600, 14400),
                ("14400_1e+09", 14400, 10**9))  # fmt: skip


def measure(original_run, run, estimate, histogram, longest):
    """Return the measures of one assignment as a dict, named as in the oracle."""
    accuracy = run / estimate
    got = {
        "truncated_jobs_share": (original_run > longest).mean(),
        "distinct_estimates": len(histogram.times),
        "mean_estimate_s": estimate.mean(),
        "share_estimate_eq_Tmax": (estimate == longest).mean(),
        "accuracy_hist_10_bins": np.histogram(accuracy, np.linspace(0, 1, 11))[0] / len(accuracy),
        "accuracy_mean": accuracy.mean(),
        "accuracy_median": np.median(accuracy),
        "accuracy_le_0.01": (accuracy <= 0.01).mean(),
        "accuracy_le_0.001": (accuracy <= 0.001).mean(),
        "accuracy_ge_0.95": (accuracy >= 0.95).mean(),
        "estimate_over_runtime_ge_100": (estimate / run >= 100).mean(),
        "pearson_ln": np.corrcoef(np.log(run), np.log(estimate))[0, 1],
        "violations_estimate_lt_runtime": (estimate < run).sum(),
    }
    for count in (1, 2, 5, 10, 20):
        got[f"top{count}_share"] = histogram.share(count)
    for name, low, high in _RUN_CLASSES:
        mine = (run >= low) & (run < high)
        got[f"mean_accuracy_runtime_{name}"] = accuracy[mine].mean()
        got[f"mean_estimate_runtime_{name}"] = estimate[mine].mean()
    return got
