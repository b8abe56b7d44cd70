"""What the oracle measured on each sample of model jobs (see ``_about`` in oracles/lublin_oracle.json)."""

from __future__ import annotations

import numpy as np

from policyfactory.workload.models.lublin import LublinModel

__all__ = ["CONFIGS", "flatten", "measure", "model_of", "node_classes"]

CONFIGS = (
    "typeless_128", "typeless_256", "typeless_1024", "typed_128", "typed_256", "typed_1024", "typed_256_published",
)  # fmt: skip

_QUANTILES = (0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99)


def measure(submit, nodes, run, kind, machine):
    """Return the measures of one sample as a flat dict, named as in the oracle with ``/`` between levels."""
    ln_run, gaps = np.log(run), np.diff(submit)
    powers = (nodes & (nodes - 1)) == 0
    serial = nodes == 1
    got = {
        "serial_fraction": serial.mean(),
        "power_of_two_fraction_excl_serial": (powers & ~serial).mean(),
        "other_fraction": (~powers).mean(),
        "mean_nodes": nodes.mean(),
        "mean_log2_nodes": np.log2(nodes).mean(),
        "max_nodes": nodes.max(),
        "mean_runtime": run.mean(),
        "ln_runtime_mean": ln_run.mean(),
        "ln_runtime_sd": ln_run.std(),
        "min_runtime": run.min(),
        "max_runtime": run.max(),
        "P_ln_runtime_gt_7.5": (ln_run > 7.5).mean(),
        "mean_interarrival": gaps.mean(),
        "P_interarrival_0": (gaps == 0).mean(),
        "ln_interarrival_positive_mean": np.log(gaps[gaps > 0]).mean(),
        "max_interarrival": gaps.max(),
        "utilisation_sum_pq_over_m_span": (run * nodes).sum() / (machine * (submit[-1] - submit[0])),
        "corr_log2nodes_lnruntime": np.corrcoef(np.log2(nodes), ln_run)[0, 1],
        "share_interactive_type0": (kind == 0).mean(),
    }
    for power in (2**k for k in range(machine.bit_length())):
        got[f"freq_power_of_two/{power}"] = (nodes == power).mean()
    for name, values in (("nodes", nodes), ("ln_runtime", ln_run), ("interarrival", gaps)):
        for quantile in _QUANTILES:
            got[f"{name}_quantiles/{quantile:g}"] = np.quantile(values, quantile)
    for name, mine in node_classes(nodes, machine).items():
        got[f"by_node_class/{name}/share"] = mine.mean()
        got[f"by_node_class/{name}/mean_runtime"] = run[mine].mean()
        got[f"by_node_class/{name}/P_ln_runtime_gt_7.5"] = (ln_run[mine] > 7.5).mean()
        for quantile in (0.1, 0.25, 0.5, 0.75, 0.9):
            got[f"by_node_class/{name}/ln_runtime_quantiles/{quantile:g}"] = np.quantile(ln_run[mine], quantile)
    for hour, share in enumerate(np.bincount(submit // 3600 % 24, minlength=24) / len(submit)):
        got[f"hourly_arrival_fraction_printed_clock/{hour}"] = share
    return got


def node_classes(nodes, machine):
    """Return which jobs have 1, 2, 3-4, 5-8, ..., 129-256, 257-1024 nodes."""
    edges = [1, 2, 4, 8, 16, 32, 64, 128, 256, 1024]
    pairs = [(low + 1, high) for low, high in zip([0, *edges], edges, strict=False) if high <= machine]
    return {f"{low}-{high}": (nodes >= low) & (nodes <= high) for low, high in pairs}


def model_of(name: str) -> LublinModel:
    """Return the model of a configuration of the oracle."""
    sizes = {"umed": 5.6} if name.endswith("published") else {}
    return LublinModel.for_machine(int(name.split("_")[1]), typed=name.startswith("typed"), **sizes)


def flatten(values: dict, path: str = "") -> dict[str, tuple[float, float]]:
    """Mean and standard deviation by path, lists by position."""
    flat: dict[str, tuple[float, float]] = {}
    for key, value in values.items():
        if set(value) == {"mean", "sd_between_seeds"}:
            mean, deviation = value["mean"], value["sd_between_seeds"]
            if isinstance(mean, list):
                flat |= {f"{path}{key}/{i}": pair for i, pair in enumerate(zip(mean, deviation, strict=True))}
            else:
                flat[path + key] = (mean, deviation)
        else:
            flat |= flatten(value, f"{path}{key}/")
    return flat
