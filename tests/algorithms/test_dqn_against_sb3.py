"""Ten updates of Stable-Baselines3's DQN and of ours, from equal weights and one replay's batches.

Both start from SB3's own network. Ours learns through Replay, Dqn and LocalParameters, SB3's
through its `train`, fed the same transitions. No difference needs an excuse: SB3's smooth L1 of
width 1 is our Huber loss of width 1, its mean our mean, its clip of 10 our clip, and the target is
copied after the same update.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterator

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from scanline.algorithms import Dqn
from scanline.parameters import LocalParameters, OptimiserSettings
from scanline.records import Batch, Experience, QValues, Spaces
from scanline.stores import NStep, PrioritisedSampling, Replay, ReplaySettings, ReplayShape
from updating import apply_at

NUM_ACTIONS = 4
SPACES = Spaces(frame_shape=(6,), frame_dtype="float32", stack=2, num_actions=NUM_ACTIONS)
LEARNING_RATE, CLIP, COPY_AFTER = 3e-3, 10.0, 4


class Wrapped(nn.Module):
    """SB3's Q network behind our names."""

    def __init__(self, q_net: nn.Module) -> None:
        super().__init__()
        self.layers = copy.deepcopy(q_net)

    def forward(self, observations: Tensor) -> QValues:
        return QValues(self.layers(observations.flatten(1)))


def filled_replay(n_step: int, prioritised: bool) -> Replay:
    """Random vectors with ends of both kinds and rewards that leave the Huber loss's middle."""
    chosen = ReplaySettings(
        capacity_agent_steps=400,
        batch_size=32,
        accumulator=NStep(n_step=n_step, discount=0.97),
        **({"sampling": PrioritisedSampling()} if prioritised else {}),  # type: ignore[arg-type]
    )
    shape = ReplayShape(num_envs=2, rollout_agent_steps=20)
    replay = Replay(SPACES, shape, chosen, 5)
    random = torch.Generator().manual_seed(11)
    for _ in range(12):
        slot = replay.slot()
        slot.finals.clear()
        slot.frames.normal_(generator=random)
        slot.depth.fill_(2)
        slot.actions.random_(0, NUM_ACTIONS, generator=random)
        slot.reward.normal_(0, 5, generator=random)
        kind = torch.rand((20, 2), generator=random)
        slot.terminated[:], slot.truncated[:] = kind < 0.1, kind > 0.9
        for t, b in torch.nonzero(slot.truncated).tolist():
            slot.finals.append(t, torch.tensor([b]), torch.randn((2, 6), generator=random)[None])
        replay.put(Experience(slot))
    return replay


def sb3_model(optimiser: type[torch.optim.Optimizer], **options: object) -> object:
    """A DQN with a small network and no warnings of its own."""
    gymnasium = pytest.importorskip("gymnasium")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sb3 = pytest.importorskip("stable_baselines3")

        class Still(gymnasium.Env):  # type: ignore[misc,name-defined]
            observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (12,), np.float32)
            action_space = gymnasium.spaces.Discrete(NUM_ACTIONS)

        model = sb3.DQN(
            "MlpPolicy",
            Still(),
            learning_rate=LEARNING_RATE,
            gamma=0.97,
            max_grad_norm=CLIP,
            seed=3,
            device="cpu",
            buffer_size=10,
            policy_kwargs={
                "net_arch": [32, 32],
                "optimizer_class": optimiser,
                "optimizer_kwargs": options,
            },
        )
        model.set_logger(sb3.common.logger.Logger(folder=None, output_formats=[]))
    return model


class Feed:
    """Stands in for SB3's buffer: gives the batch that ours was just given."""

    def __init__(self) -> None:
        self.batch: Batch | None = None

    def sample(self, batch_size: int, env: object = None) -> object:
        from stable_baselines3.common.type_aliases import ReplayBufferSamples

        batch = self.batch
        assert batch is not None
        assert batch.next_observations is not None
        discount = batch.columns["discount"].clone()
        ended = discount == 0
        discount[ended] = 1.0  # SB3 multiplies by (1 - done) instead
        return ReplayBufferSamples(
            observations=batch.observations.flatten(1).clone(),
            actions=batch.actions[:, None].clone(),
            next_observations=batch.next_observations.flatten(1).clone(),
            dones=ended[:, None].float(),
            rewards=batch.columns["reward"][:, None].clone(),
            discounts=discount[:, None],
        )


def updates(replay: Replay, ours: LocalParameters, own: Dqn) -> Iterator[Batch]:
    """Ten updates of ours; the target is copied after one of them."""
    for update in range(10):
        batch = next(iter(replay.batches(1)))
        yield batch
        result = own.loss(ours.views, batch)
        apply_at(ours, result.losses, LEARNING_RATE)
        replay.feedback(batch, result.priorities)
        if update == COPY_AFTER:
            ours.sync_target()


@pytest.mark.parametrize("n_step", [1, 3])
@pytest.mark.parametrize("optimiser", ["adam", "rmsprop"])
def test_ten_updates_equal_those_of_stable_baselines3(n_step: int, optimiser: str) -> None:
    if optimiser == "adam":
        model = sb3_model(torch.optim.Adam, eps=1e-5)
        chosen = OptimiserSettings(kind="adam", epsilon=1e-5)
    else:
        model = sb3_model(torch.optim.RMSprop, alpha=0.95, eps=0.01)
        chosen = OptimiserSettings(kind="rmsprop", decay=0.95, epsilon=0.01)
    theirs = model.q_net  # type: ignore[attr-defined]
    ours = LocalParameters(Wrapped(theirs.q_net), chosen, max_grad_norm=CLIP, with_target=True)
    feed = Feed()
    model.replay_buffer = feed  # type: ignore[attr-defined]
    start = [each.clone() for each in theirs.parameters()]
    for update, batch in enumerate(updates(filled_replay(n_step, False), ours, Dqn())):
        feed.batch = batch
        model.train(1, 32)  # type: ignore[attr-defined]
        if update == COPY_AFTER:
            model.q_net_target.load_state_dict(theirs.state_dict())  # type: ignore[attr-defined]
    moved = max((a - b).abs().max().item() for a, b in zip(start, theirs.parameters(), strict=True))
    assert moved > 1e-3
    for mine, other in zip(ours.network.parameters(), theirs.parameters(), strict=True):
        assert (mine - other).abs().max().item() < 1e-6
