"""A reader: batches drawn from a replay's ring by one rule.

Takes the ring's gathering part and a started rule; gives batches whose arrays are valid until its
next one. Knows neither who writes nor how many updates are owed.

Draws are keyed by the reader's purpose and their number, so that two learners can read one replay,
each with batches of its own, and neither changes what the other sees.
"""

from __future__ import annotations

import torch

from ..records import Batch, to_array
from .gather import Gather
from .sampling import Draw, Draws, Rule


class Reader:
    """Draws for one learner."""

    def __init__(self, gather: Gather, rule: Rule, batch_size: int, draws: Draws) -> None:
        self.rule, self.num_draws = rule, 0
        self._gather, self._draws = gather, draws
        self._indices = torch.zeros(batch_size, dtype=torch.int64)

    def draw(self, agent_steps: int) -> Batch:
        """One batch, keyed by the number of this draw."""
        draw = Draw(self._draws, self.num_draws, agent_steps)
        places = to_array(self._indices)
        self.rule.draw(draw, places)
        self._gather.read(places)
        self.num_draws += 1
        return Batch(
            observations=self._gather.observations,
            actions=self._gather.actions,
            columns=self._gather.columns,
            agent_steps=agent_steps,
            update=self.num_draws - 1,
            random=draw.random,
            next_observations=self._gather.next_observations,
            weights=self.rule.weights,
            indices=self._indices,
        )
