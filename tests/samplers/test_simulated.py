"""Slots on a simulated device: what goes up, what comes back, and the observations there."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch

from scanline import engines, protocols, random, simulated, stacks
from scanline.acting import RandomPolicy
from scanline.devices import HOST, Device, Places, download
from scanline.engines import EngineSettings
from scanline.records import Slot
from scanline.samplers import LockstepSampler

THERE = Device("simulated:0")
NUM_ENVS, NUM_STEPS, NUM_GROUPS = 4, 5, 2
GAME = "scanline/Catch-v0"


def sampler(device: Device, padding: str = "zeros") -> LockstepSampler:
    protocol = dataclasses.replace(protocols.get("as-is"), stack=4, stack_padding=padding)
    settings = EngineSettings(
        game=GAME, num_envs=NUM_ENVS, num_groups=NUM_GROUPS, protocol=protocol, num_workers=0
    )
    made = LockstepSampler(engines.build("gymnasium", settings), seed=1, places=Places(device))
    made.reset()
    return made


@pytest.mark.parametrize("padding", ["zeros", "repeat"])
def test_a_simulated_slot_holds_what_one_of_the_host_does(padding: str) -> None:
    slots = []
    for device in (HOST, THERE):
        player = sampler(device, padding)
        slot = Slot.allocate(player.engine.spaces, NUM_STEPS, NUM_ENVS, {}, places=Places(device))
        seen = []
        for _ in range(4):  # games of Catch end within them
            player.collect(RandomPolicy(player.engine.spaces.num_actions), into=slot)
            seen += [slot.observations().clone(), slot.states().clone(), slot.observation(2)]
            seen += [slot.actions.clone(), slot.reward.clone(), slot.terminated.clone()]
        slots.append([download(each).copy() for each in seen])
        player.engine.close()
    for mine, theirs in zip(*slots, strict=True):
        assert np.array_equal(mine, theirs)


def test_each_frame_goes_up_once_to_a_simulated_device_and_only_actions_come_back() -> None:
    player = sampler(THERE)
    spaces, rollouts = player.engine.spaces, 8
    slot = Slot.allocate(spaces, NUM_STEPS, NUM_ENVS, {}, places=Places(THERE))
    policy = RandomPolicy(spaces.num_actions)
    player.collect(policy, into=slot)  # the frames of the reset, and the first block of draws
    with simulated.measured() as traffic:
        for _ in range(rollouts):
            player.collect(policy, into=slot)
    player.engine.close()
    group_steps, group_size = rollouts * NUM_STEPS * NUM_GROUPS, NUM_ENVS // NUM_GROUPS
    assert traffic.downloads == traffic.waits == group_steps
    assert traffic.downloaded_bytes == group_steps * group_size * 8
    assert traffic.upload_sizes[group_size * spaces.frame_bytes] == group_steps
    assert traffic.upload_sizes[NUM_STEPS * NUM_ENVS * 12] == rollouts


def atari(engine: str, places: Places, padding: str) -> LockstepSampler:
    protocol = protocols.get("baselines").replace(
        episode_limit_frames=64, stack_padding=padding, height=42, width=42
    )
    settings = EngineSettings(
        game="breakout", num_envs=NUM_ENVS, num_groups=NUM_GROUPS, protocol=protocol, seed=3,
        num_threads=1, reset_cache_states=2, device=places.device.name,
    )  # fmt: skip
    return LockstepSampler(engines.build(engine, settings), seed=1, places=places)


def played(player: LockstepSampler, rollouts: int, places: Places) -> list[np.ndarray]:
    """What the slots of some rollouts hold, true last observations of truncated games too."""
    spaces = player.engine.spaces
    slot = Slot.allocate(spaces, NUM_STEPS, NUM_ENVS, {}, places=places)
    seen = list[torch.Tensor]()
    for _ in range(rollouts):
        player.collect(RandomPolicy(spaces.num_actions), into=slot)
        seen += [slot.states().clone(), slot.actions.clone(), slot.truncated.clone()]
        seen += [slot.finals.frames.clone(), slot.finals.steps.clone(), slot.finals.envs.clone()]
    return [download(each) for each in seen]


@pytest.mark.parametrize("padding", ["zeros", "repeat"])
def test_an_engine_writes_frames_where_a_simulated_device_has_them(padding: str) -> None:
    there, halves = Places(THERE, THERE), list[list[np.ndarray]]()
    native, kernels = atari("native", Places(), padding), atari("gpu-host", there, padding)
    for player, places in ((native, Places()), (kernels, there)):
        player.reset(decorrelation_agent_steps=6)
        halves.append(played(player, 4, places))
    resumed = atari("gpu-host", there, padding)
    resumed.load(kernels.state())
    for player, places in ((native, Places()), (resumed, there)):
        halves.append(played(player, 4, places))
    assert any(each.size for each in halves[0][3::6])  # games were cut
    for mine, theirs in zip(halves[0] + halves[2], halves[1] + halves[3], strict=True):
        assert np.array_equal(mine, theirs)
    for player in (native, kernels, resumed):
        player.engine.close()


@pytest.mark.parametrize("padding", ["zeros", "repeat", "noop-steps"])
def test_young_stacks_on_a_simulated_device(padding: str) -> None:
    generator = torch.Generator().manual_seed(2)
    frames = torch.randint(0, 256, (7, 3, 2, 2), generator=generator, dtype=torch.uint8)
    depth = torch.tensor([[1, 4, 2], [2, 4, 3], [3, 1, 4], [4, 2, 4]], dtype=torch.uint8)
    starts = stacks.SparseFrames((3, 2, 2), torch.uint8, 4)
    for step, env in ((0, 0), (-1, 2), (2, 1)):
        given = torch.randint(0, 256, (1, 3, 2, 2), generator=generator, dtype=torch.uint8)
        starts.append(step, torch.tensor([env]), given)
    rule = stacks.Padding(padding, starts)
    here = stacks.windows(frames, depth, rule)
    there = stacks.windows(THERE.upload(frames), depth, rule)
    assert np.array_equal(download(there), here.numpy())


def test_simulated_draws_are_those_of_the_host() -> None:
    ids = np.array([0, 1, 7, 2**31 + 5, 2**33 + 1])
    here, there = random.EnvStream(3, "act", ids), random.EnvStream(3, "act", ids, THERE)
    for step in (0, 127, 128, 5_000, 2**32 + 3):
        assert np.array_equal(here.at(step).numpy(), download(there.at(step)))
