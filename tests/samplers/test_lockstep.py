"""The lockstep sampler on the toy game: groups, ends, decorrelation, continuation."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from scanline import engines, protocols
from scanline.engines import EngineSettings
from scanline.records import Acted, Slot
from scanline.samplers import LockstepSampler, SamplingSettings


class ByPixels:
    """A fixed policy that looks at each row alone: its sum of pixels and its own uniform."""

    version = 7
    draws_per_step = 2

    def __call__(
        self, observations: torch.Tensor, uniforms: torch.Tensor, agent_steps: int
    ) -> Acted:
        mixed = observations.long().flatten(1).sum(1) + (uniforms[:, 0] * 1000).long()
        return Acted(mixed % 3, {})


def make_sampler(num_groups: int = 1, limit: int = 0) -> LockstepSampler:
    protocol = protocols.get("as-is").replace(stack=3, episode_limit_frames=limit)
    settings = EngineSettings(
        game="scanline/Catch-v0",
        num_envs=6,
        num_groups=num_groups,
        protocol=protocol,
        seed=4,
        num_workers=0,
    )
    return LockstepSampler(engines.build("gymnasium", settings), seed=4)


def new_slot(sampler: LockstepSampler, num_steps: int = 9) -> Slot:
    return Slot.allocate(sampler.engine.spaces, num_steps, 6, {})


def assert_equal_slots(mine: Slot, other: Slot) -> None:
    for name in ("frames", "depth", "actions", "reward", "raw_reward", "terminated", "truncated"):
        assert torch.equal(getattr(mine, name), getattr(other, name)), name
    assert torch.equal(mine.states(), other.states())


def test_one_and_two_groups_give_equal_data() -> None:
    one, two = make_sampler(1), make_sampler(2)
    one.reset(20)
    two.reset(20)
    for _ in range(5):
        first = one.collect(ByPixels(), into=new_slot(one))
        second = two.collect(ByPixels(), into=new_slot(two))
        assert_equal_slots(first, second)
    finished = [sorted(sampler.drain_episodes()) for sampler in (one, two)]
    assert [(e.env, e.score) for e in finished[0]] == [(e.env, e.score) for e in finished[1]]
    assert first.version.tolist() == [7] * 9


def test_slots_join_without_a_gap() -> None:
    long, short = make_sampler(), make_sampler()
    long.reset()
    short.reset()
    whole = long.collect(ByPixels(), into=new_slot(long, 12))
    parts = [short.collect(ByPixels(), into=new_slot(short, 4)) for _ in range(3)]
    assert torch.equal(whole.actions, torch.cat([part.actions for part in parts]))
    for number, part in enumerate(parts):
        for t in range(5):
            assert torch.equal(part.observation(t), whole.observation(4 * number + t))


@pytest.mark.parametrize("num_steps", [1, 2, 9])  # shorter and longer than a stack
def test_a_slot_that_is_filled_again_holds_what_a_new_one_would(num_steps: int) -> None:
    one, other = make_sampler(2), make_sampler(2)
    one.reset()
    other.reset()
    same = new_slot(one, num_steps)
    for _ in range(12):
        again = one.collect(ByPixels(), into=same)
        fresh = other.collect(ByPixels(), into=new_slot(other, num_steps))
        assert_equal_slots(again, fresh)
        assert torch.equal(again.observation(num_steps), fresh.observation(num_steps))
        assert torch.equal(again.rollout_view().observations(), fresh.observations())
    assert sorted(one.drain_episodes()) == sorted(other.drain_episodes())


def test_a_truncated_step_keeps_its_true_last_observation() -> None:
    sampler = make_sampler(limit=5)
    sampler.reset()
    slot = sampler.collect(ByPixels(), into=new_slot(sampler))
    places = {(int(t), int(b)) for t, b in torch.nonzero(slot.truncated)}
    at = list(zip(slot.finals.steps.tolist(), slot.finals.envs.tolist(), strict=True))
    assert places == set(at)
    assert places
    for (t, b), last in zip(at, slot.finals.frames, strict=True):
        older = slot.observation(t)[b]
        assert torch.equal(last[:-1], older[1:]) or int(slot.depth[t, b]) < 3
        assert not torch.equal(last[-1], slot.frames[slot.stack + t, b])  # the next episode's


def test_scores_sum_raw_rewards_of_whole_games() -> None:
    sampler = make_sampler()
    sampler.reset()
    sums = np.zeros(6)
    expected, got = [], []
    for _ in range(6):
        slot = sampler.collect(ByPixels(), into=new_slot(sampler))
        for t in range(slot.num_steps):
            sums += slot.raw_reward[t].numpy()
            for b in np.flatnonzero((slot.terminated | slot.truncated)[t].numpy()):
                expected.append((int(b), float(sums[b])))
                sums[b] = 0.0
        got += [(end.env, end.score) for end in sampler.drain_episodes()]
    assert sorted(got) == sorted(expected)
    assert expected


def test_decorrelation_gives_games_different_ages_and_numbers_from_zero() -> None:
    sampler = make_sampler()
    sampler.reset(30)
    ends = []
    while len(ends) < 12:
        sampler.collect(ByPixels(), into=new_slot(sampler))
        ends += sampler.drain_episodes()
    numbers = sorted(end.started_at for end in ends)
    assert numbers[:6] == list(range(6))
    assert len({end.length_agent_steps for end in ends[:6]}) > 1


def test_decorrelation_may_play_all_steps_in_every_environment() -> None:
    """A game of Catch never ends within 5 steps, so all games are as old as the steps are many."""
    sampler = make_sampler()
    sampler.reset(5, "all")
    assert sampler.state()["episodes"]["length"].tolist() == [5] * 6
    frames = sampler.state()["window"][-1]
    assert len({frame.numpy().tobytes() for frame in frames}) > 1
    sampler.reset(5)
    assert len(set(sampler.state()["episodes"]["length"].tolist())) > 1


def test_a_restored_sampler_continues_bit_for_bit() -> None:
    first, second = make_sampler(), make_sampler()
    first.reset(10)
    first.collect(ByPixels(), into=new_slot(first))
    second.load(first.state())
    for _ in range(3):
        assert_equal_slots(
            first.collect(ByPixels(), into=new_slot(first)),
            second.collect(ByPixels(), into=new_slot(second)),
        )


@pytest.mark.parametrize("depth", [0, 200])
def test_a_depth_that_no_stack_has_is_refused(depth: int) -> None:
    sampler = make_sampler()
    sampler.reset()
    state = sampler.state()
    state["depth"][1] = depth
    with pytest.raises(ValueError, match="is out of bounds: an observation has 1 to"):
        sampler.load(state)


def test_groups_that_do_not_divide_are_refused() -> None:
    with pytest.raises(ValueError, match="equal groups"):
        SamplingSettings(num_envs=5, num_groups=2)
    with pytest.raises(ValueError, match="exactly one of them"):
        SamplingSettings(rollout_agent_steps=0)
    with pytest.raises(ValueError, match="at least 1"):
        SamplingSettings(num_envs=0)
    with pytest.raises(ValueError, match="'up-to' or 'all'"):
        SamplingSettings(decorrelation_draw="some")  # type: ignore[arg-type]


def test_a_state_without_the_frames_of_young_stacks_is_refused() -> None:
    settings = EngineSettings(game="qbert", num_envs=2, protocol=protocols.get("paac"), seed=4)
    sampler = LockstepSampler(engines.build("native", settings), seed=4)
    sampler.reset()
    state = sampler.state()
    starts = state["starts"]
    assert (starts["steps"].tolist(), starts["envs"].tolist()) == ([0, 0], [0, 1])
    for wrong in (
        {name: array[:1] for name, array in starts.items()},
        starts | {"steps": torch.tensor([1, 0])},
        starts | {"frames": starts["frames"][:, 1:]},
    ):
        with pytest.raises(ValueError, match="frames that fill the stacks"):
            sampler.load(state | {"starts": wrong})
    sampler.load(state)
    sampler.engine.close()
