"""A learner process for the tests of the central store: many small updates, as fast as it can."""

from __future__ import annotations

import torch
from torch import nn

from scanline.parameters import CentralParameters, CentralSettings, OptimiserSettings, shared_store
from scanline.processes import ParentLink
from updating import apply_at

NUM_WEIGHTS = 1_000
HALVES = OptimiserSettings(decay=0.0, epsilon=1.0)
"""A gradient of ones moves every weight by half the rate, exactly."""
ADAM = OptimiserSettings(kind="adam")


def network() -> nn.Module:
    module = nn.Linear(NUM_WEIGHTS, 1, bias=False)
    nn.init.zeros_(module.weight)
    return module


def learn(
    link: ParentLink,
    optimiser: OptimiserSettings,
    settings: CentralSettings,
    fds: tuple[int, int],
    num_updates: int,
) -> None:
    """Waits for an order, then updates; answers with what was waited for locks."""
    torch.set_num_threads(1)
    module = network()
    store = shared_store(module, optimiser, settings, fds)
    parameters = CentralParameters(module, optimiser, store, settings)
    link.answer(0)
    for _ in link.orders():
        for _ in range(num_updates):
            apply_at(parameters, {"all": module(torch.ones(1, NUM_WEIGHTS)).sum()}, 1.0)
        parameters.pull()
        link.answer(0, parameters.waited_seconds)


def hold(link: ParentLink, fds: tuple[int, int], number: int) -> None:
    """Takes a lock and keeps it for as long as it lives."""
    store = shared_store(network(), HALVES, CentralSettings(num_chunks=2), fds)
    assert store.try_open(number)
    link.answer(0)
    for _ in link.orders():
        pass
