"""What of a job counts in usage: TRESBillingWeights of a partition."""

from __future__ import annotations

import re

from policyfactory.site.consistent import known_settings
from policyfactory.site.model import Origin, Setting
from policyfactory.site.slurm.conf import listed, refused

_WEIGHT = re.compile(r"([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)([kKmMgGtTpP]?)", re.ASCII)
_POWERS = {unit: power for power, unit in enumerate(" kmgtp")}
# Of resources of which no job holds any: they count for nothing (assoc_mgr_tres_weighted).
_NOT_HELD = frozenset({"billing", "energy", "vmem", "pages", "fs/disk"})


def billing_weights(setting: Setting, origin: Origin, what: str) -> dict[str, float]:
    """Return the weights of resources that a site has, for each core, MB, node and GPU.

    ``Mem=0.25G`` is a quarter for each GB (common/slurm_protocol_api.c, _tres_weight_item).

    Parameters
    ----------
    setting : Setting
        ``CPU=1.0,Mem=0.25G,GRES/gpu=2.0``.
    origin : Origin
        Is told of the resources that a site does not have.
    what : str
        Whose they are: ``PartitionName=gpu``.

    Raises
    ------
    SiteError
        If it is no such list (names file and line).
    """
    known, weights = known_settings("tres"), dict[str, float]()
    for word in listed(setting.value):
        name, _, value = word.partition("=")
        match, name = _WEIGHT.fullmatch(value.strip()), name.strip().lower()
        if match is None or not name:
            raise refused(setting, "weights such as CPU=1.0,Mem=0.25G,GRES/gpu=2.0")
        power = _POWERS[match[2].lower() or " "]
        # Memory counts in MB.
        base = _POWERS["m"] if name == "mem" else 0
        weight = float(match[1]) / 1024.0 ** max(power - base, 0)
        if name in known.modelled:
            weights[name] = weight
        elif weight and name not in _NOT_HELD:
            other = Setting(setting.key, f"{name}={weight:g}", setting.location)
            origin.differs(other, f"the {name} that jobs hold would count in usage", what)
    return weights
