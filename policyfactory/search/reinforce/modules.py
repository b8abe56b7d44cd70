"""The networks themselves; imported only where torch is there."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import torch
from torch import Tensor, nn

VIEW = 128
# What a slot without a job shows.
EMPTY = (0.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.0)
_NEVER = -1e30


def dense(widths: Sequence[int]) -> nn.Sequential:
    """Return linear layers of these widths with ReLU between them."""
    parts: list[nn.Module] = []
    for before, after in itertools.pairwise(widths):
        parts += [nn.Linear(before, after), nn.ReLU()]
    return nn.Sequential(*parts[:-1])


def positions(sizes: Tensor, width: int) -> Tensor:
    """Return where the jobs of decisions lie in lines of ``width`` slots: bool tensor (d, width)."""
    return torch.arange(width, device=sizes.device) < sizes[:, None]


def padded(values: Tensor, sizes: Tensor, width: int) -> Tensor:
    """Return ragged values (rows,) as one line a decision, filled up to ``width`` with 0."""
    table = torch.zeros((len(sizes), width), dtype=values.dtype, device=values.device)
    table[positions(sizes, width)] = values
    return table


def masked(preferences: Tensor, sizes: Tensor) -> Tensor:
    """Return preferences with those of slots without a job made impossible."""
    return preferences.masked_fill(~positions(sizes, preferences.shape[1]), _NEVER)


def view_of(rows: Tensor, sizes: Tensor) -> Tensor:
    """Return what the paper's program shows: (d, 128, 8), slots without a job as it fills them."""
    empty = torch.tensor(EMPTY, dtype=rows.dtype, device=rows.device)
    view = empty.expand(len(sizes), VIEW, len(EMPTY)).clone()
    view[positions(sizes, VIEW)] = rows
    return view


class OfEachJob(nn.Module):
    """One small network for each job: the kernel network."""

    def __init__(self, widths: Sequence[int]) -> None:
        super().__init__()
        self.layers = dense(widths)

    def forward(self, rows: Tensor, sizes: Tensor) -> Tensor:
        """Return the preferences (d, most jobs)."""
        return masked(padded(self.layers(rows)[:, 0], sizes, int(sizes.max())), sizes)


class OfTheView(nn.Module):
    """One network for the whole view: the multilayer perceptrons."""

    def __init__(self, widths: Sequence[int]) -> None:
        super().__init__()
        self.layers = dense(widths)

    def forward(self, rows: Tensor, sizes: Tensor) -> Tensor:
        """Return the preferences (d, 128)."""
        return masked(self.layers(view_of(rows, sizes).flatten(1)), sizes)


class LeNet(nn.Module):
    """The program's LeNet: 1 x 1 kernels and no activations.

    It needs a square of slots, and 128 is none, so the program could run it with 256 slots only, as it once had. Here
    the 128 slots are filled up to 256 with slots without a job.
    """

    side = 16

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Conv2d(8, 32, 1), nn.Conv2d(32, 64, 1)
        self.third, self.last = nn.Linear(64 * (self.side // 4) ** 2, 64), nn.Linear(64, self.side**2)

    def forward(self, rows: Tensor, sizes: Tensor) -> Tensor:
        """Return the preferences (d, 128)."""
        view = view_of(rows, sizes)
        empty = torch.tensor(EMPTY, dtype=rows.dtype, device=rows.device)
        square = torch.cat([view, empty.expand(len(view), self.side**2 - VIEW, len(EMPTY))], dim=1)
        image = square.transpose(1, 2).reshape(len(view), len(EMPTY), self.side, self.side)
        pool = nn.functional.max_pool2d
        image = pool(self.second(pool(self.first(image), 2)), 2)
        return masked(self.last(self.third(image.flatten(1)))[:, :VIEW], sizes)


class Value(nn.Module):
    """What is still to come: one number of each slot, then a network of these."""

    def __init__(self, of_each: Sequence[int], of_all: Sequence[int]) -> None:
        super().__init__()
        self.of_each, self.of_all = dense(of_each), dense(of_all)

    def forward(self, rows: Tensor, sizes: Tensor) -> Tensor:
        """Return the values (d,)."""
        # Slots without a job all look the same, and are worked out once.
        empty = self.of_each(torch.tensor([EMPTY], dtype=rows.dtype, device=rows.device))[0, 0]
        filled = padded(self.of_each(rows)[:, 0], sizes, VIEW)
        filled = torch.where(positions(sizes, VIEW), filled, empty)
        return self.of_all(filled)[:, 0]
