"""Dynamic sampling: whatever the order of serving, an environment's data are its own."""

from __future__ import annotations

import dataclasses
import random

import pytest
import torch
from torch import Tensor

from scanline import protocols
from scanline.engines import Engine, EngineSettings, build
from scanline.records import Acted, Column, Slot
from scanline.samplers import DynamicSampler, DynamicSettings, LockstepSampler
from scanline.stores import SegmentQueue, SegmentSettings

CATCH = "scanline/Catch-v0"
NUM_ENVS, T, NUM_SEGMENTS = 6, 4, 12
COLUMNS = {"value": Column()}


class RowPolicy:
    """Treats every row alone, and uses its draws; its version counts calls."""

    version = 0

    def __call__(self, observations: Tensor, uniforms: Tensor, agent_steps: int) -> Acted:
        rows = observations.flatten(1).long()
        weights = torch.arange(1, rows.shape[1] + 1)
        value = (rows * weights).sum(1)
        actions = (value + (uniforms[:, 0] * 3).long()) % 3
        self.version += 1
        return Acted(actions, {"value": value.float()})


def engine(num_groups: int, num_workers: int = 0) -> Engine:
    protocol = protocols.get("as-is").replace(stack=3, episode_limit_frames=17)
    return build(
        "gymnasium",
        EngineSettings(
            game=CATCH,
            num_envs=NUM_ENVS,
            num_groups=num_groups,
            protocol=protocol,
            seed=3,
            num_workers=num_workers,
        ),
    )


def lockstep() -> list[Slot]:
    """The same play, all environments in step."""
    made = engine(1)
    sampler, policy = LockstepSampler(made, seed=5), RowPolicy()
    sampler.reset()
    slots = []
    for _ in range(NUM_SEGMENTS):
        slots.append(sampler.collect(policy, Slot.allocate(made.spaces, T, NUM_ENVS, COLUMNS)))
    made.close()
    return slots


def play(envs_per_agent: int, num_workers: int, shuffle: random.Random) -> dict[int, list[Slot]]:
    """Serves agents in any order and batches; gives the segments of each agent."""
    settings = DynamicSettings(
        num_envs=NUM_ENVS, envs_per_agent=envs_per_agent, rollout_agent_steps=T
    )
    made = engine(settings.num_groups, num_workers)
    store = SegmentQueue(made.spaces, COLUMNS, settings.shape(), SegmentSettings())
    sampler, policy = DynamicSampler(made, store, settings, seed=5), RowPolicy()
    found: dict[int, list[Slot]] = {group: [] for group in range(settings.num_groups)}
    sampler.begin()
    waiting: list[int] = []
    owner = {id(lane.segment.slot): group for group, lane in enumerate(sampler._lanes)}
    while min(map(len, found.values())) < NUM_SEGMENTS:
        waiting += sampler.requests.take(1, 100, patience_seconds=0.0)
        if waiting:
            shuffle.shuffle(waiting)
            few = 1 + shuffle.randrange(3)
            served, waiting = waiting[:few], waiting[few:]
            sampler.serve(served, policy, 0)
        sampler.receive(0.05)
        for group, lane in enumerate(sampler._lanes):
            owner[id(lane.segment.slot)] = group
        while len(store.full):
            number = store.full.take()[0]
            slot = store._slots[number]
            found[owner[id(slot)]].append(copied(slot))
            store.empty.put(number, 0.0)
    sampler.close()
    made.close()
    return found


def copied(slot: Slot) -> Slot:
    names = ("frames", "depth", "actions", "reward", "raw_reward", "terminated", "truncated")
    return dataclasses.replace(
        slot,
        finals=slot.finals.part(0, slot.num_steps),
        columns={name: column.clone() for name, column in slot.columns.items()},
        **{name: getattr(slot, name).clone() for name in names},
    )


@pytest.mark.parametrize(("envs_per_agent", "num_workers"), [(1, 0), (2, 0), (3, 2)])
def test_segments_hold_what_lockstep_would_have_played(
    envs_per_agent: int, num_workers: int
) -> None:
    expected = lockstep()
    for group, segments in play(envs_per_agent, num_workers, random.Random(1)).items():
        envs = slice(group * envs_per_agent, (group + 1) * envs_per_agent)
        for place, segment in enumerate(segments[:NUM_SEGMENTS]):
            assert_equal(segment, expected[place], envs)
            if place + 1 < NUM_SEGMENTS:  # the value after the last step is the next first one
                following = expected[place + 1].columns["value"][0, envs]
                assert torch.equal(segment.last["value"], following)


def assert_equal(segment: Slot, whole: Slot, envs: slice) -> None:
    for name in ("frames", "depth", "actions", "reward", "raw_reward", "terminated", "truncated"):
        assert torch.equal(getattr(segment, name), getattr(whole, name)[:, envs]), name
    assert torch.equal(segment.columns["value"], whole.columns["value"][:, envs])
    own = whole.finals.part(0, whole.num_steps, envs)
    for name in ("steps", "envs", "frames"):
        assert torch.equal(getattr(segment.finals, name), getattr(own, name)), name


def test_parked_agents_stop_after_their_step_and_go_on_when_let() -> None:
    settings = DynamicSettings(num_envs=NUM_ENVS, rollout_agent_steps=T)
    made = engine(NUM_ENVS)
    store = SegmentQueue(made.spaces, COLUMNS, settings.shape(), SegmentSettings())
    sampler, policy = DynamicSampler(made, store, settings, seed=5), RowPolicy()
    sampler.begin(num_active=2)

    def steps() -> list[int]:
        for _ in range(3):
            if groups := sampler.requests.take(1, 100, patience_seconds=0.0):
                sampler.serve(groups, policy, 0)
            sampler.receive(0.05)
        return [lane.env_steps for lane in sampler._lanes]

    assert steps() == [3, 3, 0, 0, 0, 0]
    sampler.let_act(4)
    assert steps() == [6, 6, 3, 3, 0, 0]
    sampler.let_act(1)
    after = steps()
    assert after[0] == 9 and max(after[1:]) <= 7  # the step that was asked for, no more
    sampler.let_act(6)
    assert all(now >= before + 3 for now, before in zip(steps(), after, strict=True))
    sampler.close()
    made.close()


def test_lag_is_the_number_of_updates_between_acting_and_learning() -> None:
    """A scripted schedule: the version that acted is stored with every step."""
    settings = DynamicSettings(num_envs=2, rollout_agent_steps=T)
    made = build(
        "gymnasium",
        EngineSettings(
            game=CATCH, num_envs=2, num_groups=2, protocol=protocols.get("as-is"), num_workers=0
        ),
    )
    store = SegmentQueue(
        made.spaces, COLUMNS, settings.shape(), SegmentSettings(min_batch_agent_steps=2 * T)
    )
    sampler, policy = DynamicSampler(made, store, settings, seed=0), RowPolicy()
    sampler.begin()
    for _ in range(T + 1):
        sampler.serve(sampler.requests.take(1, 2, patience_seconds=0.0), policy, 0)
        sampler.receive(0.05)
    joined = store.joined(0.1)
    assert joined is not None
    assert joined.version.tolist() == [[t + 1] * 2 for t in range(T)]
    assert (10 - joined.version).tolist() == [[9 - t] * 2 for t in range(T)]
    sampler.close()
    made.close()


def test_settings_that_cannot_work_are_refused() -> None:
    with pytest.raises(ValueError, match="num_envs=5 does not divide"):
        DynamicSettings(num_envs=5, envs_per_agent=2)
    with pytest.raises(ValueError, match="min_predictions=9"):
        DynamicSettings(min_predictions=9, max_predictions=8)
    with pytest.raises(ValueError, match="needs 200 segments, but queue_segments=100"):
        DynamicSettings().check(SegmentSettings(min_batch_agent_steps=1_000))
