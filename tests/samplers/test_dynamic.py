"""Dynamic sampling: whatever the order of serving, an environment's data are its own."""

from __future__ import annotations

import dataclasses
import random
import time
from collections.abc import Iterator

import pytest
import torch
from torch import Tensor

from scanline import protocols
from scanline.engines import Engine, EngineSettings, build
from scanline.records import Acted, Column, Slot
from scanline.samplers import DynamicSampler, DynamicSettings, LockstepSampler
from scanline.stores import SegmentSettings
from scanline.threads import WorkerThreads

CATCH = "scanline/Catch-v0"
NUM_ENVS, T, NUM_SEGMENTS = 6, 4, 12
COLUMNS = {"value": Column()}


class RowPolicy:
    """Treats every row alone, and uses its draws; its version counts calls."""

    version = 0
    draws_per_step = 2

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


class Slots:
    """Empty segments: as many as are asked for."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    def __call__(self) -> Slot:
        size = self.engine.settings.group_size
        return Slot.allocate(self.engine.spaces, T, size, COLUMNS)


def played(sampler: DynamicSampler, shuffle: random.Random) -> Iterator[tuple[int, Slot]]:
    """Serves agents in any order and batches; gives the agent of each full segment, and it."""
    policy, slot, waiting = RowPolicy(), Slots(sampler.engine), list[int]()
    sampler.start(slot, sampler.settings.num_groups)
    while True:
        waiting += sampler.requests.take(1, 100, patience_seconds=0.0)
        shuffle.shuffle(waiting)
        served, waiting = waiting[:2], waiting[2:]
        if served:
            sampler.serve(served, policy)
        while sampler._full:
            group = sampler._full[0]
            yield group, sampler.collect(policy, into=slot())
        sampler.receive(0.05)


def play(envs_per_agent: int, num_workers: int, shuffle: random.Random) -> dict[int, list[Slot]]:
    """The segments of each agent."""
    settings = DynamicSettings(
        num_envs=NUM_ENVS, envs_per_agent=envs_per_agent, rollout_agent_steps=T
    )
    made = engine(settings.num_groups, num_workers)
    sampler = DynamicSampler(made, settings, seed=5)
    found: dict[int, list[Slot]] = {group: [] for group in range(settings.num_groups)}
    for group, slot in played(sampler, shuffle):
        found[group].append(copied(slot))
        if min(map(len, found.values())) == NUM_SEGMENTS:
            break
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
    sampler, policy, slot = DynamicSampler(made, settings, seed=5), RowPolicy(), Slots(made)
    sampler.start(slot, num_active=2)

    def steps() -> list[int]:
        for _ in range(3):
            if groups := sampler.requests.take(1, 100, patience_seconds=0.0):
                sampler.serve(groups, policy)
            while sampler._full:
                sampler.collect(policy, into=slot())
            sampler.receive(0.05)
        return [agent.env_steps for agent in sampler._agents]

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


def test_full_segments_know_the_versions_that_acted_and_the_steps_that_there_were() -> None:
    """A scripted schedule: the version that acted is stored with every step."""
    settings = DynamicSettings(num_envs=2, rollout_agent_steps=T)
    made = build(
        "gymnasium",
        EngineSettings(
            game=CATCH, num_envs=2, num_groups=2, protocol=protocols.get("as-is"), num_workers=0
        ),
    )
    sampler, policy, slot = DynamicSampler(made, settings, seed=0), RowPolicy(), Slots(made)
    sampler.start(slot, 2)
    for _ in range(T):
        sampler.serve(sampler.requests.take(2, 2, patience_seconds=0.0), policy)
        sampler.receive(0.05)
    full = [sampler.collect(policy, into=slot()) for _ in range(2)]
    for segment in full:
        assert segment.version.tolist() == [t + 1 for t in range(T)]
        assert segment.agent_steps_after == 2 * T
    assert sampler.batch_sizes == {2: T + 1} and sampler.num_under_way == 2
    sampler.close()
    made.close()


def test_threads_that_collect_side_by_side_get_every_segment_once() -> None:
    settings = DynamicSettings(num_envs=NUM_ENVS, rollout_agent_steps=T)
    made = engine(NUM_ENVS)
    sampler, policy, slot = DynamicSampler(made, settings, seed=5), RowPolicy(), Slots(made)
    found: list[Slot] = []
    workers = WorkerThreads(stuck_seconds=30.0)
    sampler.start(slot, NUM_ENVS)
    workers.repeat("receiver", 1, lambda: sampler.receive(0.02))
    workers.repeat("predictor", 3, lambda: found.append(sampler.collect(policy, into=slot())))
    deadline = time.monotonic() + 30
    while len(found) < 100 and time.monotonic() < deadline:
        workers.check()
        time.sleep(0.01)
    sampler.close()
    workers.close()
    made.close()
    assert len({id(each) for each in found}) == len(found) >= 100
    assert sampler.agent_steps - (T + 1) * NUM_ENVS <= len(found) * T <= sampler.agent_steps


def test_settings_that_cannot_work_are_refused() -> None:
    with pytest.raises(ValueError, match="num_envs=5 does not divide"):
        DynamicSettings(num_envs=5, envs_per_agent=2)
    with pytest.raises(ValueError, match="min_predictions=9"):
        DynamicSettings(min_predictions=9, max_predictions=8)
    with pytest.raises(ValueError, match="needs 200 segments, but queue_segments=100"):
        DynamicSettings().check(SegmentSettings(min_batch_agent_steps=1_000))
