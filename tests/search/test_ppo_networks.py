"""The networks in torch: their sizes, and that they are the kernels' and the policies' networks."""

from __future__ import annotations

import numpy as np
import pytest

from policyfactory.core.errors import UsageError
from policyfactory.core.random import generator
from policyfactory.search.reinforce import networks as module
from policyfactory.search.reinforce.networks import (
    NETWORKS,
    device_of,
    layers_of,
    network_of,
    new_network,
    new_value_network,
    numbers_of,
    set_numbers,
)
from policyfactory.search.reinforce.rollouts import ByLayers, play
from policyfactory.search.reinforce.training import ByModule, Decisions, chooser_of
from small_training import numbers_from, small_world
from support import extra_module

torch = extra_module("torch", "rl")
FIRST = np.array([0, 3, 250, 431, 77])


@pytest.mark.parametrize(
    ("name", "parameters"),
    # Table IV; of LeNet with its 256 slots.
    [("kernel", 961), ("mlp-v1", 180_736), ("mlp-v2", 34_616), ("mlp-v3", 41_248), ("lenet", 84_640)],
)
def test_networks_have_as_many_parameters_as_the_papers(name: str, parameters: int) -> None:
    network = new_network(name, 8, 1)
    numbers = numbers_of(network)
    assert len(numbers) == parameters
    assert np.array_equal(numbers, numbers_of(new_network(name, 8, 1)))
    assert not np.array_equal(numbers, numbers_of(new_network(name, 8, 2)))
    other = new_network(name, 8, 2)
    set_numbers(other, numbers)
    assert np.array_equal(numbers, numbers_of(other))
    # Glorot's bounds, and biases of 0.
    for parameter in network.parameters():
        if parameter.ndim == 2:
            bound = np.sqrt(6 / sum(parameter.shape))
            assert 0.6 * bound < float(parameter.detach().abs().max()) <= bound + 1e-6
        elif parameter.ndim == 1:
            assert not parameter.any()
    rows, sizes = torch.rand(7, 8), torch.tensor([3, 1, 3])
    preferences = network(rows, sizes)
    assert preferences.shape[0] == 3
    chances = torch.softmax(preferences, dim=1)
    assert torch.allclose(chances.sum(dim=1), torch.ones(3))
    assert not chances[1, 1:].any()


def test_the_value_network_works_out_empty_slots_once() -> None:
    network = new_value_network(8, 1)
    assert len(numbers_of(network)) == 11_570
    rows, sizes = torch.rand(7, 8), torch.tensor([3, 1, 3])
    view = torch.tensor([0.0, 1, 1, 1, 1, 1, 1, 0]).repeat(3, 128, 1)
    view[0, :3], view[1, :1], view[2, :3] = rows[:3], rows[3:4], rows[4:]
    with torch.no_grad():
        expected = network.of_all(network.of_each(view)[:, :, 0])[:, 0]
        assert torch.allclose(network(rows, sizes), expected, atol=1e-6)


@pytest.mark.parametrize("mode", ["paper", "standard"])
def test_torch_the_kernels_and_the_policy_are_one_network(mode: str) -> None:
    world = small_world(mode, 5)
    network = new_network("kernel", len(world.inputs), 4)
    numbers = numbers_of(network)
    assert np.array_equal(numbers_from(network_of(numbers, "N", world.inputs)), numbers)
    played = play(world, FIRST, ByLayers(layers_of(numbers, len(world.inputs))), generator(1, 0), share=1.0)
    decisions = Decisions(played, torch.device("cpu"))
    with torch.no_grad():
        logarithms = torch.log_softmax(network(*decisions.pick(np.arange(len(played)))), dim=1).numpy()
    assert logarithms[np.arange(len(played)), played.chosen] == pytest.approx(played.log_probability, abs=1e-5)
    # Any order of decisions, as a pass takes them.
    some = np.array([len(played) - 1, 0, 5])
    rows, sizes = decisions.pick(some)
    ends = np.cumsum(played.size)
    assert np.array_equal(rows[: sizes[0]].numpy(), played.rows[ends[-2] : ends[-1]])
    assert sizes.tolist() == played.size[some].tolist()


def test_a_network_decided_with_by_torch_decides_as_by_kernels() -> None:
    world = small_world("paper", 7)
    network = new_network("kernel", 8, 4)
    by_kernels = play(world, FIRST, ByLayers(layers_of(numbers_of(network), 8)), generator(1, 0), share=0.5)
    by_torch = play(world, FIRST, ByModule(network, torch.device("cpu")), generator(1, 0), share=0.5)
    assert np.array_equal(by_torch.chosen, by_kernels.chosen)
    assert np.array_equal(by_torch.rows, by_kernels.rows)
    assert by_torch.log_probability == pytest.approx(by_kernels.log_probability, abs=1e-5)
    assert np.array_equal(by_torch.costs, by_kernels.costs)


@pytest.mark.parametrize("name", [name for name in NETWORKS if name != "kernel"])
def test_networks_of_the_view_play_whole_windows(name: str) -> None:
    world = small_world("paper", 5)
    numbers = numbers_of(new_network(name, 8, 3))
    played = play(world, FIRST, chooser_of(numbers, name, world))
    assert (played.decisions > 0).all()
    with pytest.raises(UsageError, match=f"network {name} looks at the 128 slots of mode paper"):
        chooser_of(numbers, name, small_world("standard"))


def test_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    assert device_of("cpu").type == "cpu"
    with pytest.raises(UsageError, match="--device 'tpu': choose cpu or cuda"):
        device_of("tpu")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(UsageError, match="torch finds no such device here; use --device cpu"):
        device_of("cuda")
    with pytest.raises(UsageError, match="there is no network 'resnet'; choose one of kernel"):
        new_network("resnet", 8, 0)
    monkeypatch.setitem(__import__("sys").modules, "torch", None)
    with pytest.raises(UsageError, match=r"pip install 'policyfactory\[rl\]'"):
        module.torch_module()
