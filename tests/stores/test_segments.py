"""Segment queue: joined as they are, bounded, with returns from the values that acting gave."""

from __future__ import annotations

import threading
import time
from dataclasses import replace

import pytest
import torch

from scanline.algorithms import ActorCritic
from scanline.records import Batch, Column, Experience, Slot, Spaces, Views
from scanline.stores import SegmentQueue, SegmentSettings
from scanline.threads import QueueClosedError, WorkerThreads

SPACES = Spaces(frame_shape=(3, 3), frame_dtype="uint8", stack=2, num_actions=4)
T, B = 3, 2
DISCOUNT = 0.9


def queue(**settings: object) -> SegmentQueue:
    made = SegmentSettings(**settings)  # type: ignore[arg-type]
    num = 4 + made.queue_segments
    slots = [Slot.allocate(SPACES, T, B, {"value": Column()}) for _ in range(num)]
    return SegmentQueue(slots, made)


def prepared(store: SegmentQueue, slot: Slot) -> Experience:
    store.hide_terminal_rewards(slot)
    algorithm = ActorCritic(discount=DISCOUNT, bootstrap="acting")
    views = Views(live=torch.nn.Identity())  # asked for nothing: every value is known
    return algorithm.prepare(views, slot)


def fill(slot: Slot, seed: int) -> Slot:
    """Anything may happen at every step."""
    draws = torch.Generator().manual_seed(seed)
    slot.frames.copy_(torch.randint(0, 256, slot.frames.shape, generator=draws))
    slot.depth.copy_(torch.randint(1, 3, slot.depth.shape, generator=draws))
    slot.actions.copy_(torch.randint(0, 4, slot.actions.shape, generator=draws))
    slot.reward.copy_(torch.randn(slot.reward.shape, generator=draws))
    slot.terminated.copy_(torch.rand(slot.reward.shape, generator=draws) < 0.3)
    slot.columns["value"].copy_(torch.randn(slot.reward.shape, generator=draws))
    slot.version.fill_(seed)
    slot.last = {"value": torch.randn(B, generator=draws)}
    return slot


def test_segments_are_joined_in_order_until_the_minimum_and_given_back() -> None:
    store = queue(min_batch_agent_steps=10, queue_segments=4)  # two segments of 6 steps
    originals = []
    for seed in range(3):
        slot = fill(store.slot(), seed)
        slot.agent_steps = 100 * seed
        originals.append(replace(slot, frames=slot.frames.clone(), actions=slot.actions.clone()))
        store.put(prepared(store, slot))
    free = len(store.empty)
    assert store.owes
    batch = next(store.batches())
    assert len(store.empty) == free + 2 and not store.owes
    assert (batch.agent_steps, batch.update) == (100 + T * B, 0)  # when the newest was full
    steps = {n: c.view(T, 2 * B) for n, c in {**batch.columns, "actions": batch.actions}.items()}
    seen = batch.observations.view(T, 2 * B, *batch.observations.shape[1:])
    for place, original in enumerate(originals[:2]):
        envs = slice(place * B, (place + 1) * B)
        own = original.observations().view(T, B, *batch.observations.shape[1:])
        assert torch.equal(seen[:, envs], own)
        assert torch.equal(steps["actions"][:, envs], original.actions)
        assert steps["version"][:, envs].eq(place).all()


def by_hand(slot: Slot, learn_terminal: bool) -> list[tuple[int, int, float]]:
    """(t, env, return) of every step that is learned from, walked forward from each step."""
    found = []
    for env in range(slot.actions.shape[1]):
        for t in range(T):
            if slot.terminated[t, env] and not learn_terminal:
                continue
            total, factor, k = 0.0, 1.0, t
            while True:
                over = bool(slot.terminated[k, env])
                if learn_terminal or not over:
                    total += factor * float(slot.reward[k, env])
                factor *= DISCOUNT
                k += 1
                if over:
                    break
                if k == T:
                    total += factor * float(slot.last["value"][env])
                    break
            found.append((t, env, total))
    return found


@pytest.mark.parametrize("learn_terminal", [True, False])
def test_returns_bootstrap_with_the_acting_value_and_leave_out_what_the_flag_says(
    learn_terminal: bool,
) -> None:
    store = queue(min_batch_agent_steps=24, learn_terminal_reward=learn_terminal)
    slots = [fill(store.slot(), seed) for seed in range(4)]
    whole = [replace(s, reward=s.reward.clone(), terminated=s.terminated.clone()) for s in slots]
    for slot in slots:
        store.put(prepared(store, slot))
    batch = next(store.batches())
    expected = {
        (t, place * B + env): value
        for place, slot in enumerate(whole)
        for t, env, value in by_hand(slot, learn_terminal)
    }
    values = [expected[key] for key in sorted(expected)]
    assert batch.columns["returns"].tolist() == pytest.approx(values, abs=1e-5)
    assert len(batch.observations) == len(batch.actions) == len(values)


def test_acting_waits_while_the_queue_is_full_and_closing_wakes_it() -> None:
    store = queue(queue_segments=1)
    store.put(Experience(store.slot()))
    ended = threading.Event()

    def act() -> None:
        with pytest.raises(QueueClosedError):
            store.put(Experience(store.slot()))
        ended.set()

    thread = threading.Thread(target=act)
    thread.start()
    assert not ended.wait(0.2)
    store.close()
    thread.join(10)
    assert ended.is_set()
    with pytest.raises(QueueClosedError):
        next(store.batches())


def test_waits_give_heartbeats() -> None:
    store = queue(queue_segments=1)
    held = [store.slot() for _ in range(5)]
    store.put(Experience(held[0]))
    workers = WorkerThreads(stuck_seconds=0.5)
    workers.start("slot", store.slot)
    workers.start("put", lambda: store.put(Experience(held[1])))
    begun = time.monotonic()
    while time.monotonic() - begun < 1.2:
        workers.check()
        time.sleep(0.02)
    store.close()
    workers.close()


def test_nothing_is_joined_when_nothing_comes() -> None:
    assert list(queue().batches()) == []


def test_a_trainer_that_waits_for_the_rest_of_its_batch_holds_nothing_of_it() -> None:
    store = queue(min_batch_agent_steps=18, queue_segments=4)  # three segments of 6 steps
    for seed in range(2):
        store.put(prepared(store, fill(store.slot(), seed)))
    found: list[list[Batch]] = []
    trainer = threading.Thread(target=lambda: found.append(list(store.batches())), daemon=True)
    trainer.start()
    trainer.join(5)
    assert found == [[]]
    assert len(store.full) == 2
    store.put(prepared(store, fill(store.slot(), 2)))
    batch = next(store.batches())
    assert batch.columns["version"].view(T, -1)[0].tolist() == [0, 0, 1, 1, 2, 2]


def test_one_segment_is_enough_without_a_minimum() -> None:
    store = queue()
    store.put(prepared(store, fill(store.slot(), 1)))
    assert len(next(store.batches()).actions) == T * B


def test_batches_are_numbered_on_after_a_resume() -> None:
    store, again = queue(), queue()
    for number in range(3):
        store.put(prepared(store, fill(store.slot(), number)))
        assert next(store.batches()).update == number
    again.load(store.state())
    again.put(prepared(again, fill(again.slot(), 3)))
    assert next(again.batches()).update == 3
