"""A reader: batches drawn from a replay's ring by one rule.

Takes the ring's gathering part and a started rule; gives batches whose arrays are valid until its
next one. Knows neither who writes nor how many updates are owed.

Draws are keyed by the reader's purpose and their number, so that two learners can read one replay,
each with batches of its own, and neither changes what the other sees.
"""

from __future__ import annotations

import torch

from .. import streams
from ..records import Batch, to_array
from .gather import Gather
from .sampling import Rule


class Reader:
    """Draws for one learner."""

    def __init__(
        self, gather: Gather, rule: Rule, batch_size: int, seed: int, purpose: str
    ) -> None:
        self.rule, self.num_draws = rule, 0
        self._gather, self._seed, self._purpose = gather, seed, purpose
        self._indices = torch.zeros(batch_size, dtype=torch.int64)

    def draw(self, agent_steps: int) -> Batch:
        """One batch, keyed by the number of this draw."""
        random = streams.generator(self._seed, self._purpose, self.num_draws)
        places = to_array(self._indices)
        self.rule.draw(random, agent_steps, places)
        self._gather.read(places)
        self.num_draws += 1
        return Batch(
            observations=self._gather.observations,
            actions=self._gather.actions,
            columns=self._gather.columns,
            agent_steps=agent_steps,
            update=self.num_draws - 1,
            random=random,
            next_observations=self._gather.next_observations,
            weights=self.rule.weights,
            indices=self._indices,
        )
