"""The networks of the SC'20 paper in torch: the kernel network, which is a policy, and those of the whole view.

A batch of decisions is ragged: the rows of the jobs that could be chosen, decision after decision, and how many each
had. Weights begin as in the paper's program: uniform after Glorot and Bengio (AISTATS 2010), biases 0; drawn by our own
generator, so that a seed gives the same network with every version of torch.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.errors import UsageError
from policyfactory.core.options import Float32Array
from policyfactory.core.random import generator
from policyfactory.engine.rollouts import Layers
from policyfactory.policy.network import Network

if TYPE_CHECKING:
    import torch
    from torch import nn

KERNEL = "kernel"
# Table IV of the paper; hidden layers of one job, or of the whole view. LeNet is built by itself.
NETWORKS: dict[str, tuple[int, ...]] = {
    KERNEL: (32, 16, 8),
    "mlp-v1": (128, 128, 128),
    "mlp-v2": (32, 16, 8),
    "mlp-v3": (32, 32, 32, 32, 32),
    "lenet": (),
}
_PURPOSE = 73  # of the random stream; see core.random


def torch_module() -> Any:
    """Return torch.

    Raises
    ------
    UsageError
        If it is not installed.
    """
    try:
        import torch
    except ImportError:
        raise UsageError(
            "the learner ppo needs torch, which is not installed: pip install 'policyfactory[rl]', or use "
            "--learner search"
        ) from None
    return torch


def new_network(name: str, inputs: int, seed: int) -> nn.Module:
    """Return a network with weights of a seed; called with rows and sizes it gives the preferences (d, most).

    Raises
    ------
    UsageError
        If there is none of this name.
    """
    if name not in NETWORKS:
        raise UsageError(f"there is no network {name!r}; choose one of {', '.join(NETWORKS)}")
    torch_module()
    from policyfactory.search.reinforce import modules

    network: nn.Module
    if name == KERNEL:
        network = modules.OfEachJob((inputs, *NETWORKS[name], 1))
    elif name == "lenet":
        network = modules.LeNet()
    else:
        network = modules.OfTheView((modules.VIEW * inputs, *NETWORKS[name], modules.VIEW))
    return _drawn(network, generator(seed, _PURPOSE, 0))


def new_value_network(inputs: int, seed: int) -> nn.Module:
    """Return the network that says what is still to come: 8-32-16-8-1 of each job, then 128-64-32-8-1 of the view."""
    torch_module()
    from policyfactory.search.reinforce import modules

    return _drawn(modules.Value((inputs, 32, 16, 8, 1), (modules.VIEW, 64, 32, 8, 1)), generator(seed, _PURPOSE, 1))


def _drawn(module: nn.Module, random: np.random.Generator) -> nn.Module:
    torch = torch_module()
    with torch.no_grad():
        for parameter in module.parameters():
            if parameter.ndim == 1:
                parameter.zero_()
                continue
            field = math.prod(parameter.shape[2:])
            bound = math.sqrt(6.0 / (field * (parameter.shape[0] + parameter.shape[1])))
            values = random.uniform(-bound, bound, tuple(parameter.shape)).astype(np.float32)
            parameter.copy_(torch.from_numpy(values))
    return module


def numbers_of(module: nn.Module) -> Float32Array:
    """Return all parameters of a network, one behind the other: float32 array."""
    parts = [parameter.detach().cpu().numpy().ravel() for parameter in module.parameters()]
    return np.concatenate(parts).astype(np.float32, copy=False)


def set_numbers(module: nn.Module, numbers: Float32Array) -> None:
    """Give a network the parameters that `numbers_of` returned."""
    torch = torch_module()
    offset = 0
    with torch.no_grad():
        for parameter in module.parameters():
            part = numbers[offset : offset + parameter.numel()].reshape(tuple(parameter.shape))
            parameter.copy_(torch.from_numpy(np.ascontiguousarray(part)))
            offset += parameter.numel()


def layers_of(numbers: Float32Array, inputs: int) -> Layers:
    """Return the kernel network of these numbers for the kernels of rollouts."""
    widths = (inputs, *NETWORKS[KERNEL], 1)
    parts = [part.ravel() for pair in _pairs(numbers, widths) for part in pair]
    return Layers(np.array(widths, dtype=np.int64), np.concatenate(parts))


def network_of(numbers: Float32Array, name: str, inputs: Sequence[str], **fields: Any) -> Network:
    """Return the kernel network of these numbers as a policy's network; ``fields``: of `Network`."""
    return Network.of(name, inputs, _pairs(numbers, (len(inputs), *NETWORKS[KERNEL], 1)), **fields)


def _pairs(numbers: Float32Array, widths: Sequence[int]) -> list[tuple[NDArray[np.float32], NDArray[np.float32]]]:
    """Return weights (inputs, outputs) and biases of each layer; torch has (outputs, inputs)."""
    pairs, offset = [], 0
    for before, after in itertools.pairwise(widths):
        weights = numbers[offset : offset + before * after].reshape(after, before).T
        offset += before * after
        pairs.append((np.ascontiguousarray(weights), numbers[offset : offset + after].copy()))
        offset += after
    return pairs


def device_of(name: str) -> torch.device:
    """Return the device that calculates.

    Raises
    ------
    UsageError
        If it is none, or there is no such one here.
    """
    torch = torch_module()
    if name not in {"cpu", "cuda"}:
        raise UsageError(f"--device {name!r}: choose cpu or cuda")
    if name == "cuda" and not torch.cuda.is_available():
        raise UsageError("--device cuda: torch finds no such device here; use --device cpu, which suits so small nets")
    return torch.device(name)
