"""Sequences of a replay, beside a slow definition: one environment and one step at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from scanline.carried import Carried, Column, State
from scanline.records import Batch, Experience, QValues, Slot, Spaces
from scanline.stores import ReplaySettings
from scanline.stores.batches import NStep
from scanline.stores.memory import ReplayShape
from scanline.stores.replay import Replay
from scanline.stores.sampling import PrioritisedSampling
from scanline.stores.sequences import mixed

SPACES = Spaces(frame_shape=(1,), frame_dtype="float32", stack=2, num_actions=2)
COLUMNS = {"sum": Column((1,), initial=100.0)}
NUM_ENVS, NUM_STEPS, BURN_IN, LEARNED, N_STEP = 3, 4, 2, 3, 2


class Summing(nn.Module):
    """Its state is the sum of the newest frames of the episode, from 100 on; so is its output."""

    carried = COLUMNS

    def forward(self, observations: Tensor, carried: Carried) -> tuple[QValues, State]:
        rows, state = carried.unroll(self.step, observations[:, -1], self.carried)
        return QValues(rows.expand(-1, 2)), state

    def step(self, rows: Tensor, state: State) -> tuple[Tensor, State]:
        total = state["sum"] + rows
        return total, {"sum": total}


def replay_of(**changes: Any) -> Replay:
    settings = {
        "capacity_agent_steps": 20 * NUM_ENVS,
        "batch_size": 4 * LEARNED,
        "sequence_agent_steps": LEARNED,
        "burn_in_agent_steps": BURN_IN,
        "training_intensity": 1.0,
        "learning_starts_agent_steps": 0,
        "accumulator": NStep(n_step=N_STEP, discount=0.5),
    }
    shape = ReplayShape(num_envs=NUM_ENVS, rollout_agent_steps=NUM_STEPS)
    return Replay(SPACES, shape, ReplaySettings(**settings | changes), 0, {}, COLUMNS)


class Played:
    """What was put into a replay, in plain lists: per environment, one entry per step."""

    def __init__(self, replay: Replay, num_slots: int) -> None:
        self.steps: list[list[dict[str, Any]]] = [[] for _ in range(NUM_ENVS)]
        random = torch.Generator().manual_seed(5)
        state, newest = torch.full((NUM_ENVS, 1), 100.0), torch.zeros(2, NUM_ENVS, 1)
        for _ in range(num_slots):
            slot = replay.slot()
            self.fill(slot, random, state, newest)
            newest, state = slot.frames[-2:].clone(), slot.carried["sum"][-1].clone()
            self.newest = newest[-1, :, 0]
            self.note(slot)
            replay.put(Experience(slot))

    def fill(self, slot: Slot, random: torch.Generator, state: Tensor, newest: Tensor) -> None:
        slot.frames[:2] = newest
        slot.frames[2:] = torch.randint(1, 50, slot.frames[2:].shape, generator=random).float()
        slot.depth.fill_(2)
        slot.reward.copy_(torch.randn(slot.reward.shape, generator=random))
        slot.actions.random_(2, generator=random)
        drawn = torch.rand(slot.reward.shape, generator=random)
        slot.terminated.copy_(drawn < 0.15)
        slot.truncated.copy_((drawn > 0.15) & (drawn < 0.25))
        slot.finals.clear()
        for t, env in slot.truncated.nonzero().tolist():
            slot.finals.append(t, torch.tensor([env]), torch.zeros(1, 2, 1))
        slot.carried["sum"][0] = state
        for t in range(NUM_STEPS):
            after = slot.carried["sum"][t] + slot.frames[t + 1]
            slot.carried["sum"][t + 1] = torch.where(slot.ends()[t][:, None], 100.0, after)

    def note(self, slot: Slot) -> None:
        for env, steps in enumerate(self.steps):
            for t in range(NUM_STEPS):
                end = "terminal" if slot.terminated[t, env] else ""
                end = "truncated" if slot.truncated[t, env] else end
                steps.append(
                    {
                        "frame": float(slot.frames[t + 1, env, 0]),
                        "reward": float(slot.reward[t, env]),
                        "action": int(slot.actions[t, env]),
                        "end": end,
                    }
                )

    def value(self, env: int, step: int) -> float:
        """Of an observation, by summing from the beginning of its episode."""
        steps, first = self.steps[env], step
        while first > 0 and not steps[first - 1]["end"]:
            first -= 1
        frames = [each["frame"] for each in steps] + [float(self.newest[env])]
        return 100.0 + sum(frames[first : step + 1])

    def target(self, env: int, step: int) -> tuple[float, float, float | None] | None:
        """Reward, discount and next value of a pair; None where a limit cut its future."""
        steps, reward = self.steps[env], 0.0
        for ahead in range(N_STEP):
            reward += 0.5**ahead * steps[step + ahead]["reward"]
            if steps[step + ahead]["end"]:
                ended = steps[step + ahead]["end"] == "terminal"
                return (reward, 0.0, None) if ended else None
        return reward, 0.5**N_STEP, self.value(env, step + N_STEP)


def check(played: Played, batch: Batch, starts: Any, network: nn.Module) -> int:
    """Compares a batch with the definition; gives the number of steps that were left out."""
    values = batch.outputs(network).q[:, 0]
    assert batch.next_observations is not None
    following = batch.next_outputs(network, batch.next_observations).q[:, 0]
    row, left_out = 0, 0
    for t in range(LEARNED):
        for start in starts:
            env, step = int(start) % NUM_ENVS, int(played_step(played, start)) + t
            expected = played.target(env, step)
            if expected is None:
                left_out += 1
                continue
            assert batch.actions[row] == played.steps[env][step]["action"]
            assert values[row] == pytest.approx(played.value(env, step))
            found = (batch.columns["reward"][row], batch.columns["discount"][row])
            assert found == pytest.approx(expected[:2], abs=1e-5)
            if expected[2] is not None:
                assert following[row] == pytest.approx(expected[2])
            row += 1
    assert row == len(batch.actions)
    return left_out


def played_step(played: Played, index: int) -> int:
    """The newest step whose row in the ring has this index: rows begin with one of history."""
    num_rows, env = 22, int(index) % NUM_ENVS
    row = int(index) // NUM_ENVS
    newest = len(played.steps[env]) + 1
    while row + num_rows < newest:
        row += num_rows
    return row - 1


def test_batches_equal_their_definition_around_the_ring() -> None:
    replay = replay_of()
    played, left_out = Played(replay, 13), 0
    assert replay._ring.layout.num_rows == 22
    for _ in range(30):
        batch = replay.sample()
        left_out += check(played, batch, replay._reader._starts, Summing())
        assert batch.sequences is not None and len(batch.observations) == 4 * 7
    assert left_out


def test_gradients_stop_at_the_burn_in() -> None:
    replay = replay_of()
    Played(replay, 5)
    by_step = torch.zeros(7)
    for _ in range(10):
        batch = replay.sample()
        rows = batch.observations.clone().requires_grad_()
        batch.outputs(Summing(), rows).q.sum().backward()
        assert rows.grad is not None
        by_step += rows.grad.view(7, 4, -1).abs().sum((1, 2))
    assert (by_step > 0).tolist() == [False] * BURN_IN + [True] * LEARNED + [False] * N_STEP


def test_a_sequence_gets_the_largest_and_the_mean_error_of_its_steps() -> None:
    numbers, errors = np.array([0, 1, 0, 1, 1]), np.array([1.0, 2.0, 3.0, 0.0, 4.0], np.float32)
    assert mixed(numbers, errors, 3).tolist() == pytest.approx([2.9, 3.8, 0.0])


def test_sequences_with_large_errors_are_drawn_more_often() -> None:
    replay = replay_of(sampling=PrioritisedSampling(priority_exponent=1.0))
    Played(replay, 5)
    for _ in range(20):
        batch = replay.sample()
        wanted = replay._reader._starts % NUM_ENVS == 1
        assert batch.indices is not None and batch.weights is not None
        assert len(batch.weights) == len(batch.actions)
        replay.feedback(batch, torch.from_numpy(wanted)[batch.indices].float())
    drawn = [int(s) % NUM_ENVS for _ in range(20) for s in starts_of(replay)]
    assert drawn.count(1) > 40


def starts_of(replay: Replay) -> Any:
    replay.sample()
    return replay._reader._starts


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"batch_size": 10}, "no multiple of sequence_agent_steps=3"),
        ({"sequence_agent_steps": 0, "batch_size": 9}, "burn_in_agent_steps=2 goes before"),
        ({"capacity_agent_steps": 24}, "raise it or use fewer environments"),
    ],
)
def test_numbers_that_do_not_go_together_are_refused(
    changes: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(ValueError, match=sentence):
        replay_of(**changes)
