"""The rolling window against a list of everything that ever happened."""

from __future__ import annotations

import pytest
import torch

from scanline.records import Batch, Column, Experience, Slot, Spaces
from scanline.stacks import SparseFrames
from scanline.stores import WindowSettings, WindowStore

SPACES = Spaces(frame_shape=(2,), frame_dtype="uint8", stack=3, num_actions=2)
NUM_ENVS, NUM_BLOCKS = 6, 3


class Game:
    """Numbers that name their step and environment, written as a sampler writes them."""

    def __init__(self) -> None:
        self.t = 0
        self.window = torch.zeros((3, NUM_ENVS, 2), dtype=torch.uint8)
        self.window[-1] = self.frame(0)
        self.depth = torch.full((NUM_ENVS,), 3, dtype=torch.uint8)

    def frame(self, t: int) -> torch.Tensor:
        """The newest frame before step t."""
        rows = torch.arange(NUM_ENVS, dtype=torch.uint8)
        return torch.stack([torch.full_like(rows, t), rows], dim=-1)

    def fill(self, slot: Slot) -> None:
        slot.frames[:3] = self.window
        slot.depth[0] = self.depth
        slot.finals.clear()
        slot.agent_steps = self.t * NUM_ENVS
        for step in range(slot.num_steps):
            slot.frames[3 + step] = self.frame(self.t + 1)
            slot.depth[step + 1] = 3
            slot.reward[step] = self.t * 100 + torch.arange(NUM_ENVS)
            slot.actions[step] = self.t
            slot.version[step] = self.t
            slot.columns["mu"][step] = -self.t
            slot.truncated[step] = False
            if self.t % 4 == 3:
                env = self.t % NUM_ENVS
                slot.truncated[step, env] = True
                slot.finals.append(step, torch.tensor([env]), torch.tensor(self.t))
            self.t += 1
        self.window = slot.frames[slot.num_steps :].clone()


def at(some: SparseFrames) -> list[tuple[int, int]]:
    """Steps and environments of the entries."""
    return list(zip(some.steps.tolist(), some.envs.tolist(), strict=True))


def window(size: int = 4) -> WindowStore:
    settings = WindowSettings(window_agent_steps=size, num_blocks=NUM_BLOCKS)
    return WindowStore(arrays(size), settings, rollout_agent_steps=2)


def arrays(size: int) -> Slot:
    slot = Slot.allocate(SPACES, 2 * size, NUM_ENVS, {"mu": Column()})
    slot.frames.fill_(255)  # poison
    slot.reward.fill_(torch.nan)
    return slot


def step(store: WindowStore, game: Game) -> list[Batch]:
    slot = store.slot()
    game.fill(slot)
    store.put(Experience(slot))
    return list(store.batches())


def assert_is_window(batch: Batch, game: Game, size: int, block: int) -> None:
    """Everything that the batch must hold, by the names of steps and environments."""
    slot, first, envs = batch.slot, game.t - size, torch.arange(2 * block, 2 * block + 2)
    assert slot is not None
    for t in range(size):
        assert torch.equal(slot.reward[t], (first + t) * 100.0 + envs)
        assert slot.actions[t].tolist() == [first + t] * 2
        assert slot.columns["mu"][t].tolist() == [-(first + t)] * 2
        assert int(slot.version[t]) == first + t
    assert batch.actions.tolist() == slot.actions.flatten().tolist()
    states = batch.observations.view(size + 1, 2, 3, 2)
    for t in range(size + 1):
        for plane in range(3):
            expected = max(first + t - 2 + plane, 0)
            assert states[t, :, plane, 0].tolist() == [expected] * 2
            if first + t - 2 + plane >= 0:
                assert states[t, :, plane, 1].tolist() == envs.tolist()
    ends = [(t, b) for t in range(size) for b in range(2) if (first + t) % 4 == 3]
    ends = [(t, b) for t, b in ends if (first + t) % NUM_ENVS == 2 * block + b]
    assert at(slot.finals) == ends
    assert torch.nonzero(slot.truncated).tolist() == [list(end) for end in ends]
    for (t, _), last in zip(ends, slot.finals.frames, strict=True):
        assert last.unique().tolist() == [first + t]
    assert batch.agent_steps == game.t * NUM_ENVS


@pytest.mark.parametrize("size", [2, 4, 6])
def test_every_update_sees_one_block_of_the_last_steps_and_blocks_take_turns(size: int) -> None:
    store, game, updates = window(size), Game(), 0
    for _ in range(25):
        batches = step(store, game)
        if game.t < size:
            assert batches == []
            continue
        (batch,) = batches
        assert batch.update == updates
        assert_is_window(batch, game, size, updates % NUM_BLOCKS)
        updates += 1
    assert updates == 25 - size // 2 + 1


def test_slots_are_the_same_objects_again_and_again() -> None:
    """A sampler keeps views by the slot's identity."""
    store, game, seen = window(), Game(), set()
    for _ in range(20):
        seen.add(id(store.slot()))
        step(store, game)
    assert len(seen) == 4


def test_a_window_is_a_view_of_frames_that_are_kept_once() -> None:
    kept, game = arrays(4), Game()
    store = WindowStore(kept, WindowSettings(window_agent_steps=4, num_blocks=1), 2)
    step(store, game)
    (batch,) = step(store, game)
    assert batch.slot is not None
    assert batch.observations.data_ptr() == batch.slot.frames.data_ptr() == kept.frames.data_ptr()


@pytest.mark.parametrize("rounds", [0, 1, 2, 3, 4, 7])
def test_a_loaded_window_goes_on_exactly(rounds: int) -> None:
    first, game = window(6), Game()
    for _ in range(rounds):
        step(first, game)
    second, copy = window(6), Game()
    second.load(first.state())
    copy.t, copy.window = game.t, game.window
    for _ in range(9):
        mine, other = step(first, game), step(second, copy)
        assert len(mine) == len(other)
        for a, b in zip(mine, other, strict=True):
            assert torch.equal(a.observations, b.observations)
            assert torch.equal(a.slot.reward, b.slot.reward)
            assert (a.update, a.agent_steps) == (b.update, b.agent_steps)
            assert at(a.slot.finals) == at(b.slot.finals)


def test_what_cannot_work_is_refused() -> None:
    with pytest.raises(ValueError, match="do not divide into num_blocks=4"):
        WindowStore(arrays(4), WindowSettings(window_agent_steps=4, num_blocks=4), 2)
    with pytest.raises(ValueError, match="is no multiple of rollout_agent_steps=3"):
        WindowStore(arrays(4), WindowSettings(window_agent_steps=4, num_blocks=1), 3)
    with pytest.raises(ValueError, match="at least 1"):
        WindowSettings(num_blocks=0)
    store = window()
    with pytest.raises(ValueError, match="computed once per rollout"):
        store.put(Experience(store.slot(), {"returns": torch.zeros(2, NUM_ENVS)}))
