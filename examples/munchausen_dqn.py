"""Munchausen DQN (Vieillard 2020) in one file: an own target behind the built-in DQN.

    scanline train examples/munchausen_dqn.py pong
    scanline train examples/munchausen_dqn.py scanline/Catch-v0 --network mlp \\
        --agent-steps 20000 --learning-starts-agent-steps 500 --capacity-agent-steps 8000 \\
        --epsilon-agent-steps 5000 --target-agent-steps 400 --learning-rate 1e-3

The reward grows by a share of the log-probability that a softmax over the target's values gives
the action taken, and the next value is soft: the policy's mean plus its entropy. The first term is
of the observation that the rewards start from, so returns of more than one step do not go with it.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from scanline import Recipe, algorithms, paces, parameters, records, samplers, stores


@dataclass(frozen=True, kw_only=True)
class MunchausenDqn(algorithms.Dqn):
    """DQN whose reward holds its own log-policy."""

    munchausen_coef: float = 0.9
    """Share of the log-probability that is added to the reward, alpha."""
    temperature: float = 0.03
    """Of the softmax over values, tau, in units of the return."""
    lowest_log: float = -1.0
    """Bound from below on temperature x log-probability, l_0."""

    @torch.no_grad()
    def target(self, views: records.Views, batch: records.Batch) -> Tensor:
        """Reward, log-policy of the action taken, and discounted soft value of what follows."""
        outputs, _ = self.next_outputs(views, batch)
        assert views.target is not None
        here = views.target(self.inputs(views, batch.observations)).q
        log_taken = algorithms.taken(self.log_policy(here), batch.actions)
        bonus = (self.temperature * log_taken).clamp(self.lowest_log, 0.0)
        log_next = self.log_policy(outputs.q)
        soft = (log_next.exp() * (outputs.q - self.temperature * log_next)).sum(-1)
        reward = batch.columns["reward"] + self.munchausen_coef * bonus
        return reward + batch.columns["discount"] * soft

    def log_policy(self, q: Tensor) -> Tensor:
        """Log-probabilities [N, A] of the softmax over values [N, A]."""
        return torch.log_softmax(q / self.temperature, dim=-1)


recipe = Recipe(
    name="munchausen-dqn",
    summary="Vieillard 2020: DQN with its log-policy in the reward, on 8 environments.",
    algorithm=MunchausenDqn(
        exploration=algorithms.EpsilonGreedy(
            epsilon_end=0.01, epsilon_agent_steps=250_000, evaluation_epsilon=0.001
        )
    ),
    network="nature",
    optimiser=parameters.OptimiserSettings(kind="adam", learning_rate=5e-5, epsilon=0.01 / 32),
    sampling=samplers.SamplingSettings(num_envs=8, rollout_agent_steps=1),
    store=stores.ReplaySettings(batch_size=32, training_intensity=8.0),
    pace=paces.Alternate(target_agent_steps=8_000),
    agent_steps=10_000_000,
)
