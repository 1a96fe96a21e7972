"""The replay against definitions, over random games, several wraps and all its options."""

from __future__ import annotations

import threading
import tracemalloc
from collections.abc import Mapping

import hypothesis.strategies as st
import numpy as np
import pytest
import torch
from hypothesis import given, settings

from scanline.interfaces import Store
from scanline.records import Batch, Column, Experience, Slot, Spaces
from scanline.stores import (
    NStep,
    PrioritisedSampling,
    Replay,
    ReplaySettings,
    ReplayShape,
    Sampling,
    UniformSampling,
)
from stores.recorded_games import Games, assert_batch_is_true, poison, spaces, steps_of

RULES: list[Sampling] = [UniformSampling(), PrioritisedSampling()]
PADDINGS = ["zeros", "repeat", "noop-steps"]


def make(
    own: Spaces,
    shape: ReplayShape,
    columns: Mapping[str, Column] | None = None,
    n_step: int = 1,
    **changes: object,
) -> Replay:
    chosen: dict[str, object] = {
        "capacity_agent_steps": 24 * shape.num_envs,
        "batch_size": 16,
        "learning_starts_agent_steps": 0,
        "accumulator": NStep(n_step=n_step, discount=0.9),
        **changes,
    }
    replay = Replay(own, shape, ReplaySettings(**chosen), 7, columns)  # type: ignore[arg-type]
    poison(replay)
    return replay


@st.composite
def stores(draw: st.DrawFn) -> tuple[Replay, Games]:
    """An unstaged replay and the games to fill it with."""
    own = spaces(draw(st.integers(1, 4)), draw(st.sampled_from(PADDINGS)), draw(st.booleans()))
    shape = ReplayShape(
        num_envs=draw(st.integers(1, 3)), rollout_agent_steps=draw(st.integers(1, 6))
    )
    replay = make(own, shape, n_step=draw(st.integers(1, 4)), sampling=draw(st.sampled_from(RULES)))
    games = Games(own, shape.num_envs, draw(st.integers(0, 10**6)), draw(st.floats(0.0, 0.6)))
    games.warm_up(draw(st.integers(0, 5)))
    return replay, games


def put(replay: Replay, games: Games, agent_steps: int = 0) -> None:
    replay.put(games.fill(replay.slot(), range(len(games.games)), agent_steps))


@given(stores())
@settings(max_examples=60, deadline=None)
def test_batches_equal_their_definition_over_several_wraps(made: tuple[Replay, Games]) -> None:
    replay, games = made
    num_steps = replay.slot().num_steps
    for done in range(0, 100, num_steps):
        put(replay, games)
        if done >= 8:
            batch = replay.sample()
            assert_batch_is_true(replay, batch, games)
            replay.feedback(batch, torch.rand(16) * 3)


@given(stores())
@settings(max_examples=25, deadline=None)
def test_exactly_the_steps_with_a_whole_past_and_future_are_drawn(
    made: tuple[Replay, Games],
) -> None:
    replay, games = made
    n = replay.settings.accumulator.n_step
    for _ in range(0, 60, replay.slot().num_steps):
        put(replay, games)
    drawn = set()
    for _ in range(60):
        drawn |= set(steps_of(replay, replay.sample(), games))
    expected = set()
    for env, game in enumerate(games.games):
        written = len(game.actions)
        # 24 steps are kept of each; the newest n - 1 have no n-step future yet.
        expected |= {(env, k) for k in range(written - 24, written - n + 1)}
    assert drawn == expected


@pytest.mark.parametrize("flush", ["full", "completed"])
@given(st.integers(0, 10**6), st.integers(1, 3), st.sampled_from(PADDINGS))
@settings(max_examples=25, deadline=None)
def test_staged_steps_wait_for_the_commit(flush: str, seed: int, n_step: int, padding: str) -> None:
    own = spaces(3, padding)
    shape = ReplayShape(num_envs=4, rollout_agent_steps=3, num_writers=2, staged_agent_steps=4 * 6)
    replay = make(own, shape, n_step=n_step, flush=flush)
    games = Games(own, 4, seed, end_chance=0.1)
    for block in range(12):
        before = replay._cursors.drawable()
        for writer in [(0, 1, 0, 1), (0, 0, 1, 1), (1, 0, 1, 0)][block % 3]:
            envs = range(2 * writer, 2 * writer + 2)
            replay.put(games.fill(replay.slot(writer), envs))
            if replay._num_drawable:
                frozen = replay.sample()
                check_frozen(replay, games, frozen, before)
        replay.commit()
        if replay._num_drawable:
            assert_batch_is_true(replay, replay.sample(), games)
        for env, game in enumerate(games.games):
            visible = replay._cursors.committed[env] - 2
            assert visible == visible_by_definition(game, flush)


def check_frozen(replay: Replay, games: Games, batch: Batch, before: object) -> None:
    """Between commits draws come from the window of the last commit, and their frames are whole."""
    assert batch.indices is not None
    for item, place in enumerate(batch.indices.tolist()):
        position, env = divmod(place, replay._ring.layout.num_envs)
        rows = range(int(before.first[env]), int(before.last[env]))  # type: ignore[attr-defined]
        (row,) = [row for row in rows if row % replay._ring.layout.num_rows == position]
        expected = games.observation(games.games[env], row - 2)
        assert torch.equal(batch.observations[item], expected)


def visible_by_definition(game: object, flush: str) -> int:
    """Steps of a game that a commit shows."""
    terminal, truncated = game.terminal, game.truncated  # type: ignore[attr-defined]
    if flush == "full":
        return len(terminal)
    visible = 0
    for commit in range(6, len(terminal) + 1, 6):
        ends = [k + 1 for k in range(commit) if terminal[k] or truncated[k]]
        completed = max(ends, default=0)
        # An episode of more than half of the 24 kept steps is shown unfinished.
        visible = max(visible, commit if commit - completed > 12 else completed)
    return visible


@pytest.mark.parametrize("rule", RULES)
def test_draws_do_not_depend_on_the_order_of_writers_or_threads(rule: Sampling) -> None:
    own = spaces(2)
    shape = ReplayShape(num_envs=3, rollout_agent_steps=2, num_writers=3, staged_agent_steps=3 * 6)

    def fill(orders: list[list[int]], threads: bool) -> torch.Tensor:
        replay = make(own, shape, sampling=rule, n_step=2)
        games = [Games(own, 1, seed) for seed in range(3)]
        for game in games[1:]:
            game._num_frames = 1000 * games.index(game)

        def play(writer: int, times: int = 1) -> None:
            for _ in range(times):
                replay.put(games[writer].fill(replay.slot(writer), range(1), agent_steps=4))

        for order in orders:
            if threads:
                running = [threading.Thread(target=play, args=(w, 3)) for w in range(3)]
                for thread in running:
                    thread.start()
                for thread in running:
                    thread.join()
            else:
                for writer in order:
                    play(writer)
            replay.commit()
        return torch.cat([replay.sample().next_observations.flatten() for _ in range(3)])  # type: ignore[union-attr]

    first = fill([[0, 1, 2] * 3] * 4, threads=False)
    assert torch.equal(first, fill([[2, 2, 1, 0, 1, 2, 0, 0, 1]] * 4, threads=False))
    assert torch.equal(first, fill([[]] * 4, threads=True))


def test_more_than_may_be_staged_is_refused() -> None:
    own = spaces(1)
    replay = make(own, ReplayShape(num_envs=1, rollout_agent_steps=2, staged_agent_steps=4))
    games = Games(own, 1, 0)
    put(replay, games)
    put(replay, games)
    with pytest.raises(RuntimeError, match="call commit"):
        put(replay, games)


@given(stores(), st.integers(4, 60), st.integers(1, 20))
@settings(max_examples=40, deadline=None)
def test_a_restored_replay_draws_the_same(
    made: tuple[Replay, Games], num_before: int, num_between: int
) -> None:
    """Rows are appended twice, as two checkpoints would, and read back into a new replay."""
    replay, games = made
    segments, saved = [], 0
    for part in (num_before, num_between):
        for _ in range(0, part, replay.slot().num_steps):
            put(replay, games)
            if replay._num_drawable:
                replay.feedback(replay.sample(), torch.rand(16))
        first = max(saved, replay.first_row())
        columns = {name: t.clone() for name, t in replay.rows(first, replay.next_row()).items()}
        segments.append((first, columns))
        saved = replay.next_row()
    state = replay.state()
    other = Replay(games.spaces, replay._shape, replay.settings, 7)
    poison(other)
    for first, columns in segments:
        other.restore_rows(first, columns)
    other.load(state)
    for _ in range(8):
        assert_same_draws(replay, other)
        experience = games.fill(replay.slot(), range(len(games.games)))
        copy_slot(experience.slot, other.slot())
        replay.put(experience)
        other.put(type(experience)(other.slot()))


def copy_slot(source: Slot, target: Slot) -> None:
    for name, value in vars(source).items():
        if isinstance(value, torch.Tensor):
            getattr(target, name).copy_(value)
    for name in ("finals", "starts"):
        getattr(target, name).load(getattr(source, name).state())
    target.agent_steps = source.agent_steps


def assert_same_draws(one: Replay, other: Replay) -> None:
    if not one._num_drawable:
        return
    first, second = one.sample(), other.sample()
    assert first.update == second.update
    assert torch.equal(first.observations, second.observations)
    assert torch.equal(first.indices, second.indices)  # type: ignore[arg-type]
    assert torch.equal(first.next_observations, second.next_observations)  # type: ignore[arg-type]
    for name, column in first.columns.items():
        assert torch.equal(column, second.columns[name])
    if first.weights is not None:
        assert torch.equal(first.weights, second.weights)  # type: ignore[arg-type]
    priorities = torch.rand(16)
    one.feedback(first, priorities)
    other.feedback(second, priorities)


def test_load_without_its_rows_is_refused() -> None:
    own = spaces(2)
    shape = ReplayShape(num_envs=1, rollout_agent_steps=4)
    replay = make(own, shape)
    put(replay, Games(own, 1, 0))
    with pytest.raises(ValueError, match="restore_rows"):
        make(own, shape).load(replay.state())
    with pytest.raises(ValueError, match="rows per environment"):
        make(own, shape, capacity_agent_steps=40).load(replay.state())


@given(st.integers(0, 10**6), st.integers(1, 4), st.integers(1, 4), st.sampled_from(PADDINGS))
@settings(max_examples=25, deadline=None)
def test_after_a_cut_no_draw_mixes_two_games(
    seed: int, stack: int, n_step: int, padding: str
) -> None:
    own = spaces(stack, padding)
    replay = make(own, ReplayShape(num_envs=2, rollout_agent_steps=3), n_step=n_step)
    games = Games(own, 2, seed, end_chance=0.1)
    for _ in range(4):
        put(replay, games)
    saved = {name: t.clone() for name, t in replay.rows(0, replay.next_row()).items()}
    replay.cut()
    games.restart()
    state = replay.state()
    other = make(own, replay._shape, n_step=n_step)
    other.restore_rows(0, saved)  # saved before the cut: `load` must bring it back
    other.load(state)
    for _ in range(5):
        experience = games.fill(replay.slot(), range(2))
        copy_slot(experience.slot, other.slot())
        replay.put(experience)
        other.put(type(experience)(other.slot()))
        assert_batch_is_true(replay, replay.sample(), games)
        assert_batch_is_true(other, other.sample(), games)


def test_updates_follow_the_training_intensity_after_the_learning_start() -> None:
    own = spaces(1)
    shape = ReplayShape(num_envs=2, rollout_agent_steps=2)
    replay = make(own, shape, learning_starts_agent_steps=16, training_intensity=6.0)
    games = Games(own, 2, 0)
    updates = []
    for _ in range(12):
        put(replay, games)
        updates.append(sum(1 for _ in replay.batches()))
    # 4 steps x 6 / 16 = 1.5 updates per put, after four puts
    assert updates == [0, 0, 0, 0, 1, 2, 1, 2, 1, 2, 1, 2]
    assert sum(1 for _ in replay.batches(5)) == 5
    assert sum(1 for _ in replay.batches()) == 0


def test_columns_of_an_algorithm_come_back_with_their_step() -> None:
    own = spaces(1)
    columns = {"noise": Column(shape=(2,)), "mark": Column(dtype=torch.int64)}
    replay = make(own, ReplayShape(num_envs=2, rollout_agent_steps=5), columns)
    games = Games(own, 2, 3)
    for start in range(0, 60, 10):
        put(replay, games, start)
    batch = replay.sample()
    assert batch.columns["noise"].shape == (16, 2)
    for item, (_, k) in enumerate(steps_of(replay, batch, games)):
        assert batch.columns["mark"][item] == hash(("mark", k + 1)) % 97
        assert (batch.columns["noise"][item] == hash(("noise", k + 1)) % 97).all()
        assert batch.columns["version"][item] == k // 5 * 10
    assert batch.agent_steps == 60
    with pytest.raises(ValueError, match="rename"):
        make(own, ReplayShape(num_envs=2, rollout_agent_steps=5), {"reward": Column()})


def test_a_foreign_slot_and_an_empty_replay_are_refused() -> None:
    own = spaces(1)
    replay = make(own, ReplayShape(num_envs=1, rollout_agent_steps=2), n_step=3)
    assert isinstance(replay, Store)
    other = make(own, ReplayShape(num_envs=1, rollout_agent_steps=2))
    games = Games(own, 1, 0)
    with pytest.raises(ValueError, match="slot"):
        replay.put(games.fill(other.slot(), range(1)))
    with pytest.raises(RuntimeError, match="No step can be drawn"):
        replay.sample()
    assert list(replay.batches()) == []


@pytest.mark.parametrize("rule", RULES)
def test_drawing_reuses_its_memory(rule: Sampling) -> None:
    own = Spaces(frame_shape=(84, 84), frame_dtype="uint8", stack=4, num_actions=6)
    shape = ReplayShape(num_envs=2, rollout_agent_steps=5)
    replay = make(own, shape, sampling=rule, capacity_agent_steps=200, batch_size=32, n_step=3)
    for _ in range(30):
        replay.put(type("E", (), {"slot": replay.slot(), "columns": {}})())  # type: ignore[arg-type]
    places = [replay.sample().observations.data_ptr() for _ in range(3)]
    assert len(set(places)) == 1
    tracemalloc.start()
    replay.sample()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # One pair of stacks is 56 kB and a batch 1.8 MB: only short index vectors and one row of sums
    # per tree level may come and go.
    assert peak < 40_000


@pytest.mark.parametrize("padding", PADDINGS)
def test_uniform_draws_are_uniform(padding: str) -> None:
    own = spaces(2, padding)
    shape = ReplayShape(num_envs=3, rollout_agent_steps=5, num_writers=3)
    replay = make(own, shape, batch_size=500)
    games = Games(own, 3, 1)
    for writer in (0, 0, 0, 1, 1, 2):  # unequally filled environments
        replay.put(games.fill(replay.slot(writer), range(writer, writer + 1)))
    counts = np.zeros(replay._ring.layout.size)
    for _ in range(60):
        np.add.at(counts, replay.sample().indices.numpy(), 1)  # type: ignore[union-attr]
    drawn = counts[counts > 0]
    assert len(drawn) == 15 + 10 + 5
    # Chi-square with 29 degrees of freedom: mean 29, deviation 7.6; five deviations above.
    chi = ((drawn - 1000.0) ** 2 / 1000.0).sum()
    assert chi < 29 + 5 * 7.6


def test_another_reader_draws_batches_of_its_own_and_disturbs_nothing() -> None:
    own = Spaces(frame_shape=(2, 2), frame_dtype="uint8", stack=2, num_actions=3)
    shape = ReplayShape(num_envs=2, rollout_agent_steps=4)
    kept = ReplaySettings(capacity_agent_steps=64, batch_size=3)
    alone, shared = (Replay(own, shape, kept, 0) for _ in range(2))
    reader = shared.reader(batch_size=7, purpose="second")
    for number in range(6):
        for replay in (alone, shared):
            slot = replay.slot()
            slot.frames[:] = torch.arange(slot.frames.numel()).reshape(slot.frames.shape) + number
            slot.depth.fill_(2)
            slot.actions.fill_(number % 3)
            replay.put(Experience(slot))
        other = shared.sample(reader)
        assert len(other.actions) == 7 and other.actions.max() <= number
        mine, same = alone.sample(), shared.sample()
        assert torch.equal(mine.observations, same.observations)
        assert torch.equal(mine.actions, same.actions)


def test_frames_of_starts_leave_the_pool_with_their_rows() -> None:
    own = spaces(4, "noop-steps")
    replay = make(own, ReplayShape(num_envs=2, rollout_agent_steps=3))
    games = Games(own, 2, seed=1, end_chance=0.3)
    for _ in range(80):
        put(replay, games)
    rows = replay.state()["pools"]["start"]["steps"]
    assert 0 < len(rows) < 40
    assert replay._pools["start"].kept.count <= 80
    assert rows.min() >= replay.first_row()
