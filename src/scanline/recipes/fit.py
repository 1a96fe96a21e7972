"""Whether the choices of a recipe fit together.

Takes the parts of a recipe, each of which declares by name what it `needs` of the others and what
it `gives` them; refuses a need that no part meets with a sentence that says why and what to use.
Knows no part by its class: a user's own store, pace or algorithm is compared like any other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..choices import Declared

_OLD_STEPS = (
    "{name} knows nothing of older policies, whose steps a window or a replay holds; use "
    "store=RolloutSettings(...), or the algorithm Vtrace."
)
_ALL_OF_GA3C = (
    "Agents that are served as they come need all of sampling=DynamicSettings(...), "
    "store=SegmentSettings(...), pace=FreeRunning(...) and an algorithm such as ActorCritic."
)
_LASTING = (
    "Learning beside playing needs steps that stay; use store=ReplaySettings(...), or "
    "pace=Alternate() with a rollout."
)

SENTENCES = {
    "sequences": "{name} learns from sequences, which a window or a queue of rollouts gives; use "
    "store=WindowSettings(...) or RolloutQueueSettings(...).",
    "fresh steps": _OLD_STEPS,
    "rollouts": _OLD_STEPS,
    "pairs": "{name} learns from pairs of observations, which a rollout does not give; use "
    "store=ReplaySettings(...).",
    "target": "{name} needs a target network, but target_agent_steps=0 keeps none; 10000 is usual, "
    "or a target_rate of 0.005.",
    "running statistics": "normalise_pixels counts pixels while the replay stands still for a "
    "block; use normalise_pixels=False, or pace=Alternate(...).",
    "equal statistics": "normalise_pixels keeps statistics that learners of a central store do not "
    "share; use normalise_pixels=False.",
    "several losses": "A central store holds the weights once, for one optimiser; use "
    "separate_losses=False.",
    "unplayed steps": "reset_mode='hold' leaves steps without a game, which only a rollout can "
    "leave out; use reset_mode='reserve' or 'inline'.",
    "pauses": "A reset_mode other than 'inline' needs a pause after every rollout, which blocks of "
    "target_agent_steps do not have; use reset_mode='inline'.",
    "late resets": "Learners of a central store start new games at once; use reset_mode='inline'.",
    "lasting steps": _LASTING,
    "lockstep": _LASTING,
    "agents": _ALL_OF_GA3C,
    "segments": _ALL_OF_GA3C,
    "free threads": _ALL_OF_GA3C,
    "one learner": "A free-running recipe shares its weights with no other learner; use "
    "exchange=Alone().",
    "turns": "Learners of a central store take turns of their own; use pace=Alternate() with "
    "CentralSettings.",
    "central updates": "A central store was built for rollouts and replays; use "
    "store=RolloutSettings(...) or ReplaySettings(...).",
    "shared memory": "A central store holds the memory of our own optimisers only; use "
    "optimiser=OptimiserSettings(...).",
    "writers": "Remote actors bring rollouts when they are ready, of weights some updates old; use "
    "the recipe impala, or a replay with spread='steps'.",
    "adam": "rule='multi-step-adam' needs kind='adam'.",
    "carried state": "A network with memory gets its state back at every step, which agents that "
    "are served as they come do not keep; use sampling=SamplingSettings(...) and pace=Alternate().",
    "whole sequences": "A network with memory learns from whole sequences; use "
    "store=RolloutSettings(shuffle='envs'), WindowSettings(...), or of a replay "
    "sequence_agent_steps (80 is usual).",
}
"""What to tell a user whose recipe does not meet a need; `name` is the class that has the need."""


@dataclass(frozen=True)
class Memory:
    """What a network that carries a state needs of the other choices."""

    needs: frozenset[str] = frozenset({"carried state", "whole sequences"})
    gives: frozenset[str] = frozenset()


def refuse_unmet_needs(choices: Sequence[Declared]) -> None:
    """Refuses the first need, in the order of the choices, that none of them meets."""
    given = frozenset[str]().union(*(each.gives for each in choices))
    for each in choices:
        for need in sorted(each.needs - given):
            name = type(each).__name__
            unknown = f"{name} needs {need!r}, which no other choice of this recipe gives."
            raise ValueError(SENTENCES.get(need, unknown).format(name=name))
