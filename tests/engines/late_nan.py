"""A loss that goes wrong in the middle of a run; learner processes import it by its name."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

from scanline import recipes
from scanline.algorithms import ActorCritic
from scanline.recipes import Recipe
from scanline.records import Batch, LossResult, Views

_calls: list[int] = []


@dataclass(frozen=True, kw_only=True)
class LateNan(ActorCritic):
    """An actor-critic whose loss is no number from the 20th update of a process on."""

    def loss(self, views: Views, batch: Batch) -> LossResult:
        _calls.append(1)
        result = super().loss(views, batch)
        if len(_calls) < 20:
            return result
        return replace(result, losses={"all": result.losses["all"] * float("nan")})


def recipe(name: str) -> Recipe:
    """The recipe of this name with such a loss."""
    found = recipes.find(name)
    assert isinstance(found.algorithm, ActorCritic)
    own = {field.name: getattr(found.algorithm, field.name) for field in fields(found.algorithm)}
    _calls.clear()
    return replace(found, algorithm=LateNan(**own), source="")
