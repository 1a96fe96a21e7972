"""Policies of a plan: its algorithm with the weights of a learner or of a source.

Takes a plan and weights; gives a policy that plays. Knows no engine and no learner's inside.
"""

from __future__ import annotations

from .. import acting
from ..parameters import LocalParameters
from ..stores import ReplaySettings
from .plan import Plan


def policy_of(plan: Plan, learner: LocalParameters, greedy: bool = False) -> acting.NetworkPolicy:
    """A policy that plays with a learner's present weights."""
    return policy_from(plan, lambda: (learner.views, learner.version), greedy)


def policy_from(plan: Plan, source: acting.Source, greedy: bool = False) -> acting.NetworkPolicy:
    """A policy that plays with the weights of a source.

    A value learner has no distribution to draw from: it always plays as its evaluation does.
    """
    greedy = greedy or isinstance(plan.recipe.store, ReplaySettings)
    return acting.NetworkPolicy(plan.recipe.algorithm, source, greedy)
