"""The rollout store: views without copies, minibatches, determinism."""

from __future__ import annotations

import itertools
from typing import Literal

import pytest
import torch

from scanline.records import Column, Experience, Slot, Spaces
from scanline.stores import RolloutSettings, RolloutStore

SPACES = Spaces(frame_shape=(3, 3), frame_dtype="uint8", stack=4, num_actions=2)


def store(settings: RolloutSettings = RolloutSettings()) -> RolloutStore:  # noqa: B008
    slot = Slot.allocate(SPACES, 5, 4, {"extra": Column()})
    slot.frames.random_(generator=torch.Generator().manual_seed(0))
    slot.depth.fill_(4)
    slot.actions.copy_(torch.arange(20).view(5, 4))
    return RolloutStore(slot, settings, seed=1)


def put(kept: RolloutStore) -> None:
    kept.put(Experience(kept.slot(), {"returns": torch.arange(20.0).view(5, 4)}))


def test_the_whole_rollout_is_one_batch_without_a_copy() -> None:
    kept = store()
    put(kept)
    (batch,) = kept.batches()
    assert batch.observations.data_ptr() == kept.slot().frames.data_ptr()
    assert torch.equal(batch.actions, torch.arange(20))
    assert torch.equal(batch.columns["returns"], torch.arange(20.0))
    assert batch.columns["extra"].shape == (20,)
    for n in (0, 7, 19):
        t, b = divmod(n, 4)
        assert torch.equal(batch.observations[n], kept.slot().frames[t : t + 4, b])


def test_minibatches_hold_every_step_once_per_epoch_with_its_own_columns() -> None:
    kept = store(RolloutSettings(epochs=3, num_minibatches=4))
    put(kept)
    batches = list(kept.batches())
    assert [batch.update for batch in batches] == list(range(12))
    for epoch in range(3):
        seen = torch.cat([batch.actions for batch in batches[4 * epoch : 4 * epoch + 4]])
        assert torch.equal(seen.sort().values, torch.arange(20))
    for batch in batches:
        assert torch.equal(batch.actions.float(), batch.columns["returns"])
    assert not torch.equal(batches[0].actions, batches[4].actions)


def test_the_order_continues_after_a_resume() -> None:
    settings = RolloutSettings(num_minibatches=2)
    first, second = store(settings), store(settings)
    put(first)
    list(first.batches())
    second.load(first.state())
    put(first)
    put(second)
    for mine, other in zip(first.batches(), second.batches(), strict=True):
        assert torch.equal(mine.actions, other.actions)


@pytest.mark.parametrize("shuffle", ["steps", "per-env"])
@pytest.mark.parametrize("num_given", [0, 1, 4, 5, 6, 10])
def test_a_rollout_that_was_left_goes_on_with_the_next_minibatch(
    shuffle: Literal["steps", "per-env"], num_given: int
) -> None:
    settings = RolloutSettings(epochs=2, num_minibatches=5, shuffle=shuffle)
    whole, left, resumed = store(settings), store(settings), store(settings)
    put(whole)
    expected = list(whole.batches())
    put(left)
    given = list(itertools.islice(left.batches(), num_given))
    assert left.owes == (num_given < 10)
    state = left.state()
    assert bool(state["rollout"]) == left.owes  # a rollout that is used up is not saved
    resumed.load(state)
    rest = list(resumed.batches())
    assert not resumed.owes
    for mine, other in zip(expected, given + rest, strict=True):
        assert mine.update == other.update and mine.agent_steps == other.agent_steps
        for name in ("observations", "actions"):
            assert torch.equal(getattr(mine, name), getattr(other, name))
        assert torch.equal(mine.columns["returns"], other.columns["returns"])


def test_parts_that_do_not_divide_are_refused() -> None:
    with pytest.raises(ValueError, match="do not divide into 3 equal minibatches"):
        store(RolloutSettings(num_minibatches=3))
    with pytest.raises(ValueError, match="at least 1"):
        RolloutSettings(epochs=0)


def shuffled_per_env(num_envs: int, first: int) -> list[list[tuple[int, int]]]:
    """(step, global environment) of every minibatch, in a rollout of 4 steps."""
    slot = Slot.allocate(SPACES, 4, num_envs, {})
    settings = RolloutSettings(epochs=2, num_minibatches=2, shuffle="per-env")
    kept = RolloutStore(slot, settings, seed=1, first_env_id=first)
    envs = first + torch.arange(num_envs).expand(4, num_envs)
    steps = torch.arange(4)[:, None].expand(4, num_envs)
    kept.put(Experience(slot, {"env": envs, "step": steps}))
    columns = [batch.columns for batch in kept.batches()]
    return [list(zip(c["step"].tolist(), c["env"].tolist(), strict=True)) for c in columns]


def test_shuffled_per_env_the_draw_does_not_depend_on_who_holds_an_environment() -> None:
    whole = shuffled_per_env(6, 0)
    halves = shuffled_per_env(3, 0), shuffled_per_env(3, 3)
    for together, low, high in zip(whole, *halves, strict=True):
        assert sorted(together) == sorted(low + high)
        assert sorted(env for _, env in together) == sorted([*range(6), *range(6)])
    for epoch in (whole[:2], whole[2:]):
        assert len({place for batch in epoch for place in batch}) == 24
    assert whole[0] != whole[2]
    per_env = [[step for step, env in whole[0] if env == e] for e in range(6)]
    assert any(steps != per_env[0] for steps in per_env)


def test_shuffled_per_env_the_steps_of_each_environment_must_divide() -> None:
    slot = Slot.allocate(SPACES, 3, 4, {})
    with pytest.raises(ValueError, match="and environment do not divide"):
        RolloutStore(slot, RolloutSettings(num_minibatches=2, shuffle="per-env"), seed=1)


def with_memory(first_env: int = 0, num_envs: int = 8, **settings: object) -> RolloutStore:
    """Steps and states that name their environment."""
    columns = {"state": Column((1,))}
    slot = Slot.allocate(SPACES, 5, num_envs, {}, columns)
    envs = first_env + torch.arange(num_envs)
    slot.actions.copy_(100 * torch.arange(5)[:, None] + envs)
    slot.carried["state"][0, :, 0] = envs
    slot.terminated[2, ::2] = True
    chosen = RolloutSettings(shuffle="envs", num_minibatches=4, **settings)  # type: ignore[arg-type]
    return RolloutStore(slot, chosen, seed=1, first_env_id=first_env)


def test_minibatches_of_a_network_with_memory_are_whole_sequences() -> None:
    kept = with_memory(epochs=2)
    kept.put(Experience(kept.slot()))
    batches = list(kept.batches())
    orders = []
    for batch in batches:
        sequences = batch.sequences
        assert sequences is not None
        envs = sequences.state["state"][:, 0].long()
        assert torch.equal(batch.actions.view(5, 2), 100 * torch.arange(5)[:, None] + envs)
        assert torch.equal(sequences.begins[3], envs % 2 == 0)
        assert sequences.begins.sum() == (envs % 2 == 0).sum()
        orders.append(sorted(envs.tolist()))
    for epoch in (orders[:4], orders[4:]):
        assert sorted(itertools.chain(*epoch)) == list(range(8))
    assert orders[:4] != orders[4:]


def test_learners_do_not_change_which_sequences_meet() -> None:
    whole, *shares = with_memory(), with_memory(0, 4), with_memory(4, 4)
    found = []
    for kept in (whole, *shares):
        kept.put(Experience(kept.slot()))
        found.append([set(batch.actions.tolist()) for batch in kept.batches()])
    assert found[0] == [mine | other for mine, other in zip(found[1], found[2], strict=True)]


def test_sequences_that_are_left_are_given_after_a_resume() -> None:
    first, second = with_memory(), with_memory()
    first.put(Experience(first.slot()))
    batches = first.batches()
    next(batches)
    second.load(first.state())
    for mine, other in zip(batches, second.batches(), strict=True):
        assert mine.sequences is not None and other.sequences is not None
        assert torch.equal(mine.actions, other.actions)
        assert torch.equal(mine.sequences.state["state"], other.sequences.state["state"])
        assert torch.equal(mine.sequences.begins, other.sequences.begins)


def test_steps_that_were_not_played_are_gone_through_and_not_learned_from() -> None:
    kept = with_memory()
    slot = kept.slot()
    slot.valid = torch.ones_like(slot.terminated)
    slot.valid[3:, ::2] = False
    kept.put(Experience(slot))
    for batch in kept.batches():
        assert batch.sequences is not None and batch.sequences.chosen is not None
        assert len(batch.observations) == 10
        times, envs = batch.actions // 100, batch.actions % 100
        assert slot.valid[times, envs].all()
        assert len(batch.actions) == int(slot.valid[:, envs.unique()].sum())


def test_environments_that_do_not_divide_are_refused() -> None:
    with pytest.raises(ValueError, match="6 environments do not divide into 4 equal minibatches"):
        with_memory(num_envs=6)
