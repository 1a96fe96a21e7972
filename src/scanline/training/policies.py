"""Policies of a plan: its algorithm with the weights of a learner or of a source.

Takes a plan, weights and the agent steps that a run has made; gives a policy that plays as the
run's evaluations do. Knows no engine and no learner's inside.
"""

from __future__ import annotations

from ..acting import EvaluationPolicy, NetworkPolicy, Source
from ..parameters import LocalParameters
from ..random import GREEDY, SAMPLED
from .plan import Plan


def policy_of(
    plan: Plan, learner: LocalParameters, agent_steps: int, greedy: bool | None = None
) -> EvaluationPolicy:
    """A policy that plays with a learner's present weights."""
    return policy_from(plan, lambda: (learner.views, learner.version), agent_steps, greedy)


def policy_from(
    plan: Plan, source: Source, agent_steps: int, greedy: bool | None = None
) -> EvaluationPolicy:
    """A policy that plays with the weights of a source.

    Every schedule stands at `agent_steps`. Actions are chosen as the algorithm declares for its
    evaluations, or as the user wants: the best one (`greedy`), or as in training (not `greedy`).
    """
    algorithm = plan.recipe.algorithm.spanning(plan.recipe.agent_steps)
    wanted = GREEDY if greedy else SAMPLED
    choice = algorithm.evaluation_choice if greedy is None else wanted
    return EvaluationPolicy(NetworkPolicy(algorithm, source, choice), agent_steps)
