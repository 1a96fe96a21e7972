"""The queue of rollouts: batches of whole trajectories, whichever writer brought them."""

from __future__ import annotations

import pytest
import torch

from scanline.records import Batch, Column, Experience, Slot, Spaces
from scanline.stores import RolloutQueue, RolloutQueueSettings

SPACES = Spaces(
    frame_shape=(2,), frame_dtype="uint8", stack=2, num_actions=2, stack_padding="noop-steps"
)


def queue(rollout: int, batch: int, num_steps: int = 3) -> RolloutQueue:
    width = max(rollout, batch)
    arrays = Slot.allocate(SPACES, num_steps, width, {"mu": Column()})
    return RolloutQueue(arrays, rollout, batch)


def bring(store: RolloutQueue, mark: int) -> None:
    """Puts a rollout whose frames, columns and rewards are marked, as a writer would."""
    slot = store.slot(mark)
    slot.frames[:] = mark
    slot.depth[:] = 2
    slot.depth[1, 0] = 1
    slot.reward[:], slot.columns["mu"][:], slot.version[:] = mark, -mark, mark
    slot.finals.clear()
    slot.starts.clear()
    slot.truncated[:] = False
    slot.truncated[2, -1] = True
    last = slot.actions.shape[1] - 1
    slot.finals.append(2, torch.tensor([last]), torch.full((1, 2, 2), mark, dtype=torch.uint8))
    slot.starts.append(1, torch.tensor([0]), torch.full((1, 1, 2), 100 + mark, dtype=torch.uint8))
    slot.agent_steps = 10 * mark
    store.put(Experience(slot))


def drawn(store: RolloutQueue) -> list[Batch]:
    return list(store.batches())


def test_a_batch_joins_rollouts_with_their_own_versions_ends_and_starts() -> None:
    store = queue(rollout=2, batch=4)
    bring(store, 5)
    assert not store.owes
    assert drawn(store) == []
    first = store.slot()
    bring(store, 6)
    assert first.version.tolist() == [6, 6, 6]
    (batch,) = drawn(store)
    assert batch.slot is not None
    assert batch.slot.reward.tolist() == [[5.0, 5.0, 6.0, 6.0]] * 3
    assert batch.columns["mu"].tolist() == [-5.0, -5.0, -6.0, -6.0] * 3
    assert batch.slot.finals.envs.tolist() == [1, 3]
    assert batch.slot.finals.frames[:, 0, 0].tolist() == [5, 6]
    states = batch.observations.view(4, 4, 2, 2)
    assert states[1, :, 0, 0].tolist() == [105, 5, 106, 6]
    assert batch.agent_steps == 66
    assert not store.owes
    bring(store, 7)
    bring(store, 8)
    (batch,) = drawn(store)
    assert batch.update == 1
    assert batch.slot is not None and batch.slot.finals.frames[:, 0, 0].tolist() == [7, 8]


def test_a_wide_rollout_gives_several_batches() -> None:
    store = queue(rollout=4, batch=2)
    bring(store, 1)
    batches = drawn(store)
    assert [len(batch.actions) for batch in batches] == [6, 6]
    found = [batch.slot.finals.envs.tolist() for batch in batches if batch.slot is not None]
    assert found == [[], [1]]


@pytest.mark.parametrize(("rollout", "batch"), [(1, 3), (4, 2)])
def test_what_waits_is_saved_and_goes_on(rollout: int, batch: int) -> None:
    store, other = queue(rollout, batch), queue(rollout, batch)
    bring(store, 3)
    if store.owes:
        next(iter(store.batches()))
    other.load(store.state())
    assert other.owes == store.owes
    for each in (store, other):
        if not each.owes:
            bring(each, 4)
            bring(each, 5)
    (mine,), (theirs,) = drawn(store), drawn(other)
    assert torch.equal(mine.observations, theirs.observations)
    assert mine.update == theirs.update


def test_what_does_not_divide_is_refused() -> None:
    with pytest.raises(ValueError, match="batch_trajectories=0"):
        RolloutQueueSettings(batch_trajectories=0)
    with pytest.raises(ValueError, match="does not divide among 3 learners"):
        RolloutQueueSettings().shared(3)
    store = queue(2, 4)
    with pytest.raises(ValueError, match="compute them in the loss"):
        store.put(Experience(store.slot(), {"returns": torch.zeros(3, 2)}))
