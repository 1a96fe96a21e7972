"""RND (Burda 2018) in one file: a reward of the learner's own for what it has not seen.

    scanline train examples/rnd.py montezuma_revenge --num-envs 32
    scanline train examples/rnd.py scanline/Corridor-v0 --agent-steps 60000
    scanline train examples/rnd.py scanline/Corridor-v0 --agent-steps 60000 --novelty-coef 0

The only reward of the corridor is at its far end, where random play never comes. A network learns
to predict the outputs of a fixed random one; where it fails, the observation is new, and its error
is added to the reward once per rollout (`prepare`). How large errors are is kept as a state of the
algorithm (`init`), which checkpoints hold.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from scanline import Recipe, algorithms, networks, parameters, records, samplers, stores


class CuriousNetwork(nn.Module):
    """A named network that plays; beside it a predictor of a network that never learns."""

    def __init__(self, spaces: records.Spaces) -> None:
        super().__init__()
        name = "nature" if spaces.frame_shape == (84, 84) else "mlp"
        self.player = networks.build(
            name, spaces, "policy-value", seed=int(torch.randint(9999, ()))
        )
        num_pixels = int(torch.Size(spaces.frame_shape).numel())
        self.fixed, self.predictor = (
            nn.Sequential(nn.Linear(num_pixels, 64), nn.ReLU(), nn.Linear(64, 32)) for _ in range(2)
        )
        self.fixed.requires_grad_(False)

    def forward(self, observations: Tensor) -> records.PolicyValue:
        outputs: records.PolicyValue = self.player(observations)
        return outputs

    def novelty(self, observations: Tensor) -> Tensor:
        """Squared error [N] of the prediction for the newest frames."""
        frames = observations[:, -1].flatten(1).float() / 255
        return (self.predictor(frames) - self.fixed(frames)).square().mean(-1)


@dataclass(frozen=True, kw_only=True)
class Rnd(algorithms.Ppo):
    """PPO with novelty in its reward."""

    novelty_coef: float = 0.1
    """Weight of novelty, divided by its deviation so far, in the reward; 0 is PPO."""

    def init(self, spaces: records.Spaces, num_envs: int) -> Mapping[str, Tensor]:
        return {"count": torch.tensor(1e-4), "sum_of_squares": torch.tensor(1e-8)}

    def prepare(self, views: records.Views, slot: records.Slot) -> records.Experience:
        num_steps, num_envs = slot.actions.shape
        with torch.no_grad():
            novelty = views.live.novelty(slot.states())[num_envs:].view(num_steps, num_envs)
        state = {
            "count": views.state["count"] + novelty.numel(),
            "sum_of_squares": views.state["sum_of_squares"] + novelty.square().sum(),
        }
        size = (state["sum_of_squares"] / state["count"]).sqrt()
        reward = slot.reward + self.novelty_coef * novelty / size
        columns = super().prepare(views, dataclasses.replace(slot, reward=reward)).columns
        return records.Experience(slot, columns, state)

    def inputs(self, views: records.Views, observations: Tensor) -> Tensor:
        return observations  # the state is not of pixels here

    def loss(self, views: records.Views, batch: records.Batch) -> records.LossResult:
        result = super().loss(views, batch)
        novelty = views.live.novelty(batch.observations).mean()
        losses = {"all": result.losses["all"] + novelty}
        metrics = {**result.metrics, "losses/novelty": novelty.detach()}
        return dataclasses.replace(result, losses=losses, metrics=metrics)


recipe = Recipe(
    name="rnd",
    summary="Burda 2018: PPO that is rewarded for observations it cannot predict.",
    algorithm=Rnd(entropy_coef=0.01, value_coef=0.25),
    network=CuriousNetwork,
    optimiser=parameters.OptimiserSettings(kind="adam", learning_rate=1e-3, max_grad_norm=0.5),
    sampling=samplers.SamplingSettings(num_envs=16, rollout_agent_steps=64),
    store=stores.RolloutSettings(epochs=4, num_minibatches=4),
    agent_steps=10_000_000,
)
