"""Exploration: how often a Q learner acts at random, as settings and one function.

Takes action values and the count of agent steps; gives actions. Knows no network or store.

The value-based algorithms share these four numbers, so they hold one record of them. The count of
agent steps is an argument, so a resumed run explores as it would have.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from .. import random
from ..random import Choice
from ..records import ActContext, Acted
from ..schedules import Linear
from ..settings import at_least, fractions


@dataclass(frozen=True, kw_only=True)
class EpsilonGreedy:
    """The best action, or with a chance that falls over agent steps any."""

    epsilon_start: float = 1.0
    """Chance of a random action at the first agent step."""
    epsilon_end: float = 0.1
    """Chance of a random action once its schedule is over."""
    epsilon_agent_steps: int = 1_000_000
    """Agent steps from the first chance to the last, in a straight line."""
    evaluation_epsilon: float = 0.05
    """Chance of a random action in evaluation."""

    def __post_init__(self) -> None:
        fractions(self, "epsilon_start", "epsilon_end", "evaluation_epsilon")
        constant = "a constant chance has epsilon_start equal to epsilon_end"
        at_least(1, self, "epsilon_agent_steps", remedy=constant)

    @property
    def evaluation_choice(self) -> Choice:
        return Choice(greedy=True, epsilon=self.evaluation_epsilon)

    def epsilon(self, agent_steps: int) -> float:
        """Chance of a random action at this count."""
        return Linear(
            start=self.epsilon_start,
            end=self.epsilon_end,
            duration_agent_steps=self.epsilon_agent_steps,
        )(agent_steps)

    def act(self, q: Tensor, context: ActContext) -> Acted:
        """Actions for values [b, A]: by the schedule, or by a choice that has its own chance."""
        choice = context.choice
        epsilon = choice.epsilon if choice.greedy else self.epsilon(context.agent_steps)
        return Acted(random.epsilon_greedy(q, epsilon, context.uniforms), {})
