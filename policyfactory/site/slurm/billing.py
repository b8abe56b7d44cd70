"""Weights of resources: TRESBillingWeights of a partition, what of a job counts in usage; PriorityWeightTRES."""

from __future__ import annotations

import math
import re
from collections.abc import Collection

from policyfactory.site.consistent import known_settings
from policyfactory.site.model import Origin, Setting
from policyfactory.site.slurm.conf import listed, refused
from policyfactory.workload.declared import LARGEST

_WEIGHT = re.compile(r"([-+]?(?:\d{1,30}(?:\.\d{0,30})?|\.\d{1,30})(?:[eE][-+]?\d{1,3})?)([kKmMgGtTpP]?)", re.ASCII)
_MOST_WORDS = 1000
_POWERS = {unit: power for power, unit in enumerate(" kmgtp")}
# Of resources of which no job holds any: they count for nothing (assoc_mgr_tres_weighted).
NOT_HELD = frozenset({"billing", "energy", "vmem", "pages", "fs/disk"})


def weights_of(
    setting: Setting, origin: Origin, effect: str, what: str = "", silent: Collection[str] = ()
) -> dict[str, float]:
    """Return the weights of resources that a site has, for each core, MB, node and GPU.

    ``Mem=0.25G`` is a quarter for each GB (common/slurm_protocol_api.c, _tres_weight_item).

    Parameters
    ----------
    setting : Setting
        ``CPU=1.0,Mem=0.25G,GRES/gpu=2.0``.
    origin : Origin
        Is told of the resources that a site does not have.
    effect : str
        What these would do, with ``{}`` for the name of one.
    what : str
        Whose they are: ``PartitionName=gpu``.
    silent : collection of str
        Of which of these nothing is to be told.

    Raises
    ------
    SiteError
        If it is no such list (names file and line).
    """
    known, weights = known_settings("tres"), dict[str, float]()
    words = listed(setting.value)
    if len(words) > _MOST_WORDS:
        raise refused(setting, f"at most {_MOST_WORDS:,} weights")
    for word in words:
        name, _, value = word.partition("=")
        match, name = _WEIGHT.fullmatch(value.strip()), name.strip().lower()
        if match is None or not name:
            raise refused(setting, "weights such as CPU=1.0,Mem=0.25G,GRES/gpu=2.0")
        power = _POWERS[match[2].lower() or " "]
        # Memory counts in MB.
        base = _POWERS["m"] if name == "mem" else 0
        weight = float(match[1]) / 1024.0 ** max(power - base, 0)
        if math.isinf(weight):
            # Strtod's ERANGE, with which slurmctld does not start.
            raise refused(setting, f"weights of at most {LARGEST:,}")
        if name in known.modelled and abs(weight) > LARGEST:
            how = f"a weight is at most {LARGEST:,} here, and is taken as that"
            origin.correct(Setting(setting.key, word, setting.location), what, how)
            weight = math.copysign(LARGEST, weight)
        if name in known.modelled:
            weights[name] = weight
        elif weight and name not in silent:
            key = setting.key if what else f"{setting.key} {name}"
            other = Setting(key, f"{name}={weight:g}" if what else f"{weight:g}", setting.location)
            origin.differs(other, effect.format(name), what)
    return weights
