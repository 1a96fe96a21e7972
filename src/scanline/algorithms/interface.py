"""What every algorithm may leave out: the defaults behind `loss`.

A frozen dataclass derives from `Defaults`, adds its settings as fields and writes `loss`.
Knows no optimiser, buffer, process or environment.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from .. import random
from ..carried import single_step
from ..devices import Device
from ..interfaces import Algorithm
from ..random import SAMPLED, Choice
from ..records import ActContext, Acted, Column, Experience, Outputs, Slot, Spaces, Views
from ..returns import Trajectory


@dataclass(frozen=True, kw_only=True)
class Defaults:
    """A policy-value algorithm that stores nothing extra and prepares nothing."""

    @property
    def head(self) -> str | Callable[..., torch.nn.Module]:
        return "policy-value"

    @property
    def needs(self) -> frozenset[str]:
        return frozenset()

    @property
    def gives(self) -> frozenset[str]:
        return frozenset()

    @property
    def losses(self) -> tuple[str, ...]:
        """Names of the losses, each of which moves all weights."""
        return ("all",)

    @property
    def draws_per_step(self) -> int:
        return random.DRAWS_PER_STEP

    def columns(self, spaces: Spaces) -> Mapping[str, Column]:
        return {}

    def init(self, spaces: Spaces, num_envs: int) -> Mapping[str, Tensor]:
        return {}

    def spanning(self, agent_steps: int) -> Self:
        return self

    @property
    def evaluation_choice(self) -> Choice:
        return SAMPLED

    def inputs(self, views: Views, observations: Tensor) -> Tensor:
        return observations

    def act(self, outputs: Outputs, context: ActContext) -> Acted:
        return Acted(random.choose_actions(outputs.logits, context.uniforms, context.choice), {})

    def prepare(self, views: Views, slot: Slot) -> Experience:
        return Experience(slot)


def taken(log_all: Tensor, actions: Tensor) -> Tensor:
    """Log-probabilities [N] of the actions taken, from those of all actions [N, A]."""
    return log_all.gather(-1, actions[:, None]).squeeze(-1)


def trajectory_of(
    algorithm: Algorithm, views: Views, slot: Slot, last_value: Tensor | None = None
) -> Trajectory:
    """The rollout as `returns` takes it.

    `last_value` [B] is that of the observation after the last step; by default the live network's.
    """
    if last_value is None:
        last = algorithm.inputs(views, slot.observation(slot.num_steps))
        last_value = single_step(views.live, last, slot.carried_at(slot.num_steps))[0].value
    return Trajectory(
        reward=slot.reward,
        terminal=slot.terminal,
        truncated=slot.truncated,
        final_value=final_values(algorithm, views, slot),
        last_value=last_value,
    )


def final_values(algorithm: Algorithm, views: Views, slot: Slot) -> Tensor:
    """Values [T, B] of the true last observations of truncated steps; zero elsewhere.

    What a network with memory carries into them is computed from their last steps.
    """
    values = torch.zeros_like(slot.reward)
    finals = slot.finals
    if finals.count:
        steps, envs = Device.of(values).upload(torch.stack([finals.steps, finals.envs]))
        carried = slot.carried_at(steps, envs)
        if carried is not None:
            before = slot.observations()[steps * slot.reward.shape[1] + envs]
            _, carried = single_step(views.live, algorithm.inputs(views, before), carried)
        last = algorithm.inputs(views, finals.frames)
        values[steps, envs] = single_step(views.live, last, carried)[0].value
    return values
