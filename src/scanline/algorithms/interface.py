"""What every algorithm may leave out: the defaults behind `loss`.

A frozen dataclass derives from `Defaults`, adds its settings as fields and writes `loss`.
Knows no optimiser, buffer, process or environment.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from .. import draws
from ..records import ActContext, Acted, Column, Experience, Outputs, Slot, Spaces, Views
from ..returns import Path


@dataclass(frozen=True, kw_only=True)
class Defaults:
    """A policy-value algorithm that stores nothing extra and prepares nothing."""

    @property
    def head(self) -> str:
        return "policy-value"

    def columns(self, spaces: Spaces) -> Mapping[str, Column]:
        return {}

    def init(self, spaces: Spaces) -> Mapping[str, Tensor]:
        return {}

    def act(self, outputs: Outputs, context: ActContext) -> Acted:
        if context.greedy:
            return Acted(outputs.logits.argmax(dim=-1), {})
        return Acted(draws.categorical(outputs.logits, context.uniforms[:, 0]), {})

    def prepare(self, views: Views, slot: Slot) -> Experience:
        return Experience(slot)


def path_of(views: Views, slot: Slot) -> Path:
    """The rollout as `returns` wants it, bootstrapped with the live values."""
    return Path(
        reward=slot.reward,
        terminal=slot.terminal,
        truncated=slot.truncated,
        final_value=final_values(views, slot),
        last_value=views.live(slot.observation(slot.num_steps)).value,
    )


def final_values(views: Views, slot: Slot) -> Tensor:
    """Values [T, B] of the true last observations of truncated steps; zero elsewhere."""
    values = torch.zeros_like(slot.reward)
    if slot.finals:
        steps, envs, observations = zip(*slot.finals, strict=True)
        values[list(steps), list(envs)] = views.live(torch.stack(observations)).value
    return values
