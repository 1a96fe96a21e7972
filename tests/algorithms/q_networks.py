"""Small networks and batches for tests of value-based algorithms."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor, nn

from scanline.records import Batch, QDistribution, QValues, Views

NUM_ACTIONS, NUM_FEATURES = 4, 6


class QNet(nn.Module):
    """Two layers from [N, 1, 6] to values, or to logits on some atoms."""

    def __init__(self, seed: int, num_atoms: int = 0) -> None:
        super().__init__()
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            outputs = NUM_ACTIONS * max(num_atoms, 1)
            self.layers = nn.Sequential(
                nn.Linear(NUM_FEATURES, 16), nn.ReLU(), nn.Linear(16, outputs)
            )
        self.num_atoms = num_atoms

    def forward(self, observations: Tensor) -> QValues | QDistribution:
        values = self.layers(observations.flatten(1))
        if self.num_atoms:
            return QDistribution(values.view(-1, NUM_ACTIONS, self.num_atoms))
        return QValues(values)


def views(seed: int, num_atoms: int = 0) -> Views:
    """A live and a different target network."""
    return Views(live=QNet(seed, num_atoms), target=QNet(seed + 1, num_atoms))


def random_batch(seed: int, num: int = 12, with_weights: bool = True) -> Batch:
    random = torch.Generator().manual_seed(seed)

    def normal(*shape: int) -> Tensor:
        return torch.randn(shape, generator=random)

    discount = 0.9 * (torch.rand(num, generator=random) < 0.7)
    return Batch(
        observations=normal(num, 1, NUM_FEATURES),
        next_observations=normal(num, 1, NUM_FEATURES),
        actions=torch.randint(NUM_ACTIONS, (num,), generator=random),
        columns={"reward": 2 * normal(num), "discount": discount},
        weights=torch.rand(num, generator=random) if with_weights else None,
        agent_steps=0,
        update=0,
    )


def in_double(batch: Batch) -> Batch:
    """The same batch with room for exact comparison."""
    assert batch.next_observations is not None
    return replace(
        batch,
        observations=batch.observations.double(),
        next_observations=batch.next_observations.double(),
        columns={name: column.double() for name, column in batch.columns.items()},
        weights=batch.weights.double() if batch.weights is not None else None,
    )
