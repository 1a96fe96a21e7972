"""What a sampler keeps for a network with memory: resets, groups, slots, continuation."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from scanline import engines, protocols
from scanline.carried import Carried, Column
from scanline.engines import EngineSettings
from scanline.records import Acted, Slot
from scanline.samplers import DeferredResetEngine, LockstepSampler, inner_settings

COLUMNS = {"age": Column((2,), initial=-1.0)}
NUM_ENVS = 6


class Counting:
    """Its state counts the steps of the episode, and decides."""

    version = 0
    draws_per_step = 2

    def __call__(
        self,
        observations: Tensor,
        uniforms: Tensor,
        agent_steps: int,
        carried: Carried | None = None,
    ) -> Acted:
        assert carried is not None and carried.begins is None
        age = carried.state["age"]
        mixed = observations.long().flatten(1).sum(1) + age[:, 0].long()
        return Acted(mixed % 3, {}, {"age": age + 1})


def make_sampler(num_groups: int = 1, reset_mode: str = "inline", **changes: Any) -> Any:
    protocol = protocols.get("as-is").replace(stack=1)
    chosen = {"protocol": protocol, "seed": 4, "num_workers": 0} | changes
    settings = EngineSettings(
        **{"game": "scanline/Catch-v0", "num_envs": NUM_ENVS, "num_groups": num_groups} | chosen
    )
    kind = "gymnasium" if "/" in settings.game else "native"
    if reset_mode == "inline":
        return LockstepSampler(engines.build(kind, settings), seed=4, carried=COLUMNS)
    reserves = 2 if reset_mode == "reserve" else 0
    inner = engines.build(kind, inner_settings(settings, reserves))
    return LockstepSampler(DeferredResetEngine(inner, settings), seed=4, carried=COLUMNS)


def new_slot(sampler: LockstepSampler, num_steps: int = 9) -> Slot:
    return Slot.allocate(sampler.engine.spaces, num_steps, NUM_ENVS, {}, COLUMNS)


def ages_of(sampler: LockstepSampler, num_slots: int = 12) -> tuple[Tensor, Tensor]:
    """The states that a slow count gives and those that were stored, over all slots."""
    age, expected, found = torch.full((NUM_ENVS,), -1.0), [], []
    for _ in range(num_slots):
        slot = sampler.collect(Counting(), into=new_slot(sampler))
        for ended in slot.terminal | slot.truncated:
            expected.append(age)
            age = torch.where(ended, -1.0, age + 1)
        if slot.valid is not None:  # a held environment begins anew with the next slot
            age = torch.where(slot.valid.all(0), age, -1.0)
        else:
            assert torch.equal(slot.carried["age"][-1, :, 0], age)
        found.append(slot.carried["age"][:-1])
    assert torch.equal(found[0][..., 0], found[0][..., 1])
    return torch.stack(expected), torch.cat(found)[..., 0]


@pytest.mark.parametrize("reset_mode", ["inline", "reserve", "hold"])
def test_the_state_goes_on_over_slots_and_begins_anew_with_every_episode(reset_mode: str) -> None:
    sampler = make_sampler(reset_mode=reset_mode)
    sampler.reset()
    expected, found = ages_of(sampler)
    assert (found == -1.0).sum() > NUM_ENVS
    assert torch.equal(expected, found)


def test_a_lost_life_that_ends_the_return_ends_the_memory_too() -> None:
    protocol = protocols.get("baselines-unstacked")
    sampler = make_sampler(game="breakout", protocol=protocol, num_threads=1)
    sampler.reset()
    slot = sampler.collect(Counting(), into=new_slot(sampler, 120))
    lost = slot.life_lost & ~slot.terminated
    assert lost.any()
    assert (slot.carried["age"][1:][lost] == -1.0).all()
    assert slot.sequences(slot.num_steps).begins[1:].equal(slot.ends()[:-1])


def test_groups_do_not_change_what_is_carried() -> None:
    slots = []
    for num_groups in (1, 2, 3):
        sampler = make_sampler(num_groups)
        sampler.reset(20)
        slots.append([sampler.collect(Counting(), into=new_slot(sampler)) for _ in range(4)])
    for one, *others in zip(*slots, strict=True):
        assert all(torch.equal(one.carried["age"], other.carried["age"]) for other in others)
        assert all(torch.equal(one.actions, other.actions) for other in others)


def test_a_restored_sampler_carries_on() -> None:
    first, second = make_sampler(), make_sampler()
    first.reset(10)
    first.collect(Counting(), into=new_slot(first))
    second.load(first.state())
    for _ in range(3):
        mine = first.collect(Counting(), into=new_slot(first))
        other = second.collect(Counting(), into=new_slot(second))
        assert torch.equal(mine.carried["age"], other.carried["age"])
        assert torch.equal(mine.actions, other.actions)


def test_new_games_begin_with_the_initial_state() -> None:
    sampler = make_sampler()
    sampler.reset()
    sampler.collect(Counting(), into=new_slot(sampler))
    sampler.abandon()
    slot = sampler.collect(Counting(), into=new_slot(sampler))
    assert (slot.carried["age"][0] == -1.0).all()
