"""Rollouts on the wire: what arrives is what was played, whatever its frames are."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from scanline.records import Column, Slot, Spaces
from scanline.samplers.wire import SlotReceiver, SlotSender, num_bytes
from stores.recorded_games import Games, spaces

PADDINGS = ("zeros", "repeat", "noop-steps")


def assert_same(got: Slot, sent: Slot) -> None:
    for name in ("frames", "depth", "actions", "reward", "raw_reward", "terminated", "truncated"):
        assert torch.equal(getattr(got, name), getattr(sent, name)), name
    assert torch.equal(got.life_lost, sent.life_lost)
    assert torch.equal(got.version, sent.version)
    assert torch.equal(got.columns["mu"], sent.columns["mu"])
    assert torch.equal(got.states(), sent.states())
    assert got.finals.steps.tolist() == sent.finals.steps.tolist()
    assert got.finals.envs.tolist() == sent.finals.envs.tolist()
    assert torch.equal(got.finals.frames, sent.finals.frames)


@given(
    st.integers(0, 10**6),
    st.integers(1, 4),
    st.sampled_from(PADDINGS),
    st.booleans(),
)
@settings(max_examples=30, deadline=None)
def test_rollouts_arrive_as_they_were_played(
    seed: int, stack: int, padding: str, deflates: bool
) -> None:
    own = spaces(stack, padding)
    games = Games(own, 3, seed)
    sent, got = (Slot.allocate(own, 5, 3, {"mu": Column()}) for _ in range(2))
    sender, receiver = SlotSender(deflates), SlotReceiver(own, 3)
    for number in range(4):
        games.fill(sent, range(3), agent_steps=number)
        for ended in sent.truncated.nonzero()[:1]:
            last = torch.full((1, *sent.finals.frames.shape[1:]), float(number))
            sent.finals.append(int(ended[0]), ended[1:], last)
        receiver.unpack(sender.pack(sent), got)
        assert_same(got, sent)


@pytest.mark.parametrize("deflates", [False, True])
def test_a_frame_is_sent_once_and_only_what_has_changed(deflates: bool) -> None:
    own = Spaces(frame_shape=(84, 84), frame_dtype="uint8", stack=4, num_actions=2)
    slot = Slot.allocate(own, 20, 8, {})
    slot.frames.random_(generator=torch.Generator().manual_seed(0))
    sender = SlotSender(deflates)
    first = num_bytes(sender.pack(slot))
    assert first > slot.frames.numel() / 2
    slot.frames[:] = slot.frames[0].clone()
    slot.frames[7, :, 40] = 255
    still = num_bytes(sender.pack(slot))
    steps = slot.actions.numel()
    assert still / steps < 160  # a bit for every eight bytes, and the few numbers of a step
