"""Statistics of pixels against NumPy over all frames, and what algorithms do with them."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from scanline.acting import NetworkPolicy
from scanline.algorithms import ActorCritic, CategoricalDqn, Dqn, Ppo, Vtrace, pixels
from scanline.networks import build
from scanline.parameters import LocalParameters, OptimiserSettings
from scanline.records import Batch, Slot, Spaces, Views

SPACES = Spaces(frame_shape=(3, 4), frame_dtype="uint8", stack=2, num_actions=3)


def random_slot(seed: int, algorithm: Ppo | None = None) -> Slot:
    slot = Slot.allocate(SPACES, 5, 4, algorithm.columns(SPACES) if algorithm else {})
    slot.frames.random_(0, 256, generator=torch.Generator().manual_seed(seed))
    slot.frames[..., 0, 0] = 7  # a pixel that never changes
    slot.depth.fill_(2)
    return slot


def test_mean_and_deviation_are_those_of_all_frames_that_steps_gave() -> None:
    state, seen = pixels.initial(SPACES), []
    for seed in range(3):
        slot = random_slot(seed)
        state = pixels.counted(state, slot)
        seen.append(slot.frames[2:].flatten(0, 1).numpy().astype(np.float64))
    frames = np.concatenate(seen)
    mean, deviation = pixels.moments(state)
    assert float(state["pixel_count"]) == len(frames) == 60
    assert_close(mean, torch.from_numpy(frames.mean(0)).float())
    expected = torch.from_numpy(frames.std(0)).float()
    expected[0, 0] = 1.0  # the least deviation
    assert_close(deviation, expected)
    observation = slot.observations()
    assert_close(pixels.normalised(state, observation), (observation - mean) / deviation)


def test_before_the_first_frame_pixels_are_only_centred() -> None:
    observation = random_slot(0).observations()
    got = pixels.normalised(pixels.initial(SPACES), observation)
    assert_close(got, (observation - 127.5) / 128.0)


@pytest.mark.parametrize("order", ["whole", "stacks of a store"])
def test_the_native_pass_gives_the_bits_of_the_plain_one(order: str) -> None:
    random = torch.Generator().manual_seed(5)
    frames = torch.randint(0, 256, (20, 3, 21, 18), dtype=torch.uint8, generator=random)
    observations = frames[:4].swapaxes(0, 1)  # planes lie a whole step apart
    observations = observations.contiguous() if order == "whole" else observations
    sums = {
        "pixel_count": torch.tensor(60.0, dtype=torch.float64),
        "pixel_sum": frames.double().sum((0, 1)),
        "pixel_square": frames.double().square().sum((0, 1)),
    }
    mean, deviation = pixels.moments(sums)
    plain = observations.float().sub_(mean).mul_(deviation.reciprocal())
    assert torch.equal(pixels.normalised(sums, observations), plain)


def test_learners_that_average_their_states_agree_on_the_mean_over_all_frames() -> None:
    whole = mine = other = pixels.initial(SPACES)
    for seed in range(2):
        slot = random_slot(seed)
        whole = pixels.counted(whole, slot)
        halves = [pixels.counted(mine, slot.part(0, 5, slice(2 * n, 2 * n + 2))) for n in range(2)]
        mine = other = {name: (halves[0][name] + halves[1][name]) / 2 for name in whole}
    for got, expected in zip(pixels.moments(other), pixels.moments(whole), strict=True):
        assert torch.equal(got, expected)


@pytest.mark.parametrize("kind", [ActorCritic, Ppo, Vtrace, Dqn, CategoricalDqn])
def test_acting_and_learning_read_normalised_pixels_only_where_asked(kind: type) -> None:
    slot = random_slot(0, Ppo())
    for wanted in (True, False):
        algorithm = kind(normalise_pixels=wanted)
        local = LocalParameters(
            build("mlp", SPACES, algorithm.head, seed=0),
            OptimiserSettings(),
            algorithm_state=algorithm.init(SPACES, 1),
        )
        read: list[torch.Tensor] = []
        local.network.register_forward_pre_hook(lambda _, args, read=read: read.append(args[0]))
        with torch.no_grad():
            local.keep(algorithm.prepare(local.views, slot).state)
        NetworkPolicy(algorithm, lambda local=local: (local.views, 0))(
            slot.observation(0), torch.rand(4, 2), 0
        )
        expected = slot.observation(0)
        if wanted:
            expected = pixels.normalised(local.views.state, expected)
            assert float(local.views.state["pixel_count"]) == 20
        assert torch.equal(read[-1], expected)
        assert bool(local.state()["algorithm"]) == wanted


@pytest.mark.parametrize("kind", [Dqn, CategoricalDqn])
def test_both_observations_of_a_replayed_pair_are_normalised(kind: type) -> None:
    algorithm, slot = kind(normalise_pixels=True), random_slot(0)
    live, target = (build("mlp", SPACES, algorithm.head, seed=seed) for seed in range(2))
    views = Views(live, target, state=pixels.counted(pixels.initial(SPACES), slot))
    read: list[torch.Tensor] = []
    for network in (live, target):
        network.register_forward_pre_hook(lambda _, args: read.append(args[0]))
    zeros = torch.zeros(4)
    algorithm.loss(
        views,
        Batch(
            observations=slot.observation(0),
            next_observations=slot.observation(1),
            actions=zeros.long(),
            columns={"reward": zeros, "discount": zeros},
            agent_steps=0,
            update=0,
        ),
    )
    for t, observations in enumerate(read):
        assert torch.equal(observations, pixels.normalised(views.state, slot.observation(t)))
    assert len(read) == 2


def test_floats_have_no_pixels() -> None:
    vectors = Spaces(frame_shape=(6,), frame_dtype="float32", stack=1, num_actions=3)
    with pytest.raises(ValueError, match="set normalise_pixels=False"):
        Vtrace(normalise_pixels=True).init(vectors, 1)
    assert Vtrace().inputs(Views(live=torch.nn.Identity()), torch.ones(2)).dtype == torch.float32
