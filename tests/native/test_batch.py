"""Batches of games: threads, groups, caches, snapshots, and answers to misuse."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from batches import KEY, Arrays, Player, random_actions

from scanline import games, protocols
from scanline._native import Batch, StepTarget, setting_choices, setting_fields
from scanline.engines import EngineSettings
from scanline.protocols import Protocol

NUM_ENVS, NUM_STEPS = 6, 120
CACHED = {"reset": "cached", "random_stream": "counter", "autoreset": "same-step"}


def played(player: Player, *, direct: bool = True, num_groups: int = 1) -> list[list[Any]]:
    """All arrays of a run, with the environments of all groups side by side."""
    drawn = random_actions(NUM_STEPS, NUM_ENVS, player.num_actions)
    size = player.out.size
    rows = [[player.reset(group=g).copy() for g in range(num_groups)]]
    for actions in drawn:
        parts = []
        for g in range(num_groups):
            own = actions[g * size : (g + 1) * size]
            parts.append(player.step(own, g, direct=direct).copy())
        rows.append(parts)
    return [meant([np.concatenate(c) for c in zip(*parts, strict=True)]) for parts in rows]


def meant(columns: list[Any]) -> list[Any]:
    """A final frame means something only where an episode ended, start frames where one began."""
    return [*columns[:8], columns[9][columns[1] == 1]]


def assert_same_run(one: list[list[Any]], other: list[list[Any]]) -> None:
    for step, (mine, theirs) in enumerate(zip(one, other, strict=True)):
        for place, (a, b) in enumerate(zip(mine, theirs, strict=True)):
            np.testing.assert_array_equal(a, b, f"array {place} of step {step}")


@pytest.mark.parametrize(
    "preset", ["baselines", "envpool", "accelerated", "nature", "machado", "paac", "ga3c"]
)
def test_results_depend_neither_on_threads_nor_on_groups(preset: str) -> None:
    def run(num_threads: int, num_groups: int, direct: bool) -> list[list[Any]]:
        player = Player(
            "breakout",
            NUM_ENVS,
            preset=preset,
            num_threads=num_threads,
            num_groups=num_groups,
            engine=CACHED,
        )
        return played(player, direct=direct, num_groups=num_groups)

    reference = run(1, 1, True)
    assert_same_run(run(3, 2, True), reference)
    assert_same_run(run(2, 3, False), reference)


def test_a_game_does_not_depend_on_its_neighbours() -> None:
    names = ["breakout", "pong", "seaquest"]
    known = [games.find(name) for name in names]
    settings = protocols.get("baselines").replace(full_action_space=True).to_dict()
    settings = {k: v for k, v in settings.items() if k != "name"} | CACHED
    roms = [(games.rom_path(game).read_bytes(), game.index, -1, -1) for game in known]
    together = Batch(roms, [0, 1, 2], settings, 1, 2)
    out = Arrays(3, (84, 84))
    together.reset(0, out.columns, None, np.zeros(3, np.int64), KEY)
    alone = [Batch([rom], [0], settings, 1, 1) for rom in roms]
    ones = [Arrays(1, (84, 84)) for _ in roms]
    for i, (batch, one) in enumerate(zip(alone, ones, strict=True)):
        batch.reset(0, one.columns, None, np.zeros(1, np.int64), (*KEY[:2], i))
    for actions in random_actions(60, 3, 18):
        together.send(0, actions, out.columns)
        together.recv(0)
        for i, (batch, one) in enumerate(zip(alone, ones, strict=True)):
            batch.send(0, actions[i : i + 1], one.columns)
            batch.recv(0)
            for a, b in zip(out.columns[:8], one.columns[:8], strict=True):
                np.testing.assert_array_equal(a[i], b[0])


@pytest.mark.parametrize("preset", ["ale-vector", "baselines", "envpool", "cule"])
@pytest.mark.parametrize("game", ["breakout", "qbert"])
def test_a_restored_environment_repeats_its_future(game: str, preset: str) -> None:
    player = Player(game, 3, preset=preset, sticky=0.25)
    player.reset()
    before, after = np.split(random_actions(160, 3, player.num_actions), [83])
    for actions in before:
        player.step(actions)
    snapshots = [player.batch.snapshot(env) for env in range(3)]
    assert [player.batch.snapshot(env) for env in range(3)] == snapshots
    first = [player.step(actions).copy()[:8] for actions in after]
    turned = [1, 2, 0]  # a snapshot fits every environment of the same game and rules
    for env in range(3):
        player.batch.restore(env, snapshots[turned[env]])
    second = [player.step(actions[turned]).copy()[:8] for actions in after]
    assert_same_run([[column[turned] for column in row] for row in first], second)


@pytest.mark.parametrize(("life_loss", "num_ends"), [("fire", 1), ("ignore", 0)])
def test_fire_brings_the_next_ball_where_the_protocol_presses_it(
    life_loss: str, num_ends: int
) -> None:
    """Breakout waits for FIRE after every lost life; the player presses it once and then rests."""
    player = Player("breakout", 1, preset="cule", life_loss=life_loss)
    player.reset()
    player.step(np.ones(1, np.int64))
    still = np.zeros(1, np.int64)
    ends = [bool(player.step(still).terminated[0]) for _ in range(150)]
    assert ends.count(True) == num_ends


@pytest.mark.parametrize(
    ("preset", "apart"),
    [
        ("paac", range(30)),  # 1 to 30 NOOPs, then a stack that takes equally long in every game
        ("paac-repo", range(31)),
        ("ga3c", range(31)),
        ("ga3c-repo", range(1)),
        ("fast-dqn", range(0, 121, 4)),  # up to 30 NOOP steps, after one of FIRE
    ],
)
def test_games_begin_as_many_frames_apart_as_the_papers_say(preset: str, apart: range) -> None:
    player = Player("breakout", 400, preset=preset)
    player.reset()
    frames = player.counters()[1]
    assert sorted(set((frames - frames.min()).tolist())) == list(apart)


def test_a_snapshot_fits_a_new_batch() -> None:
    one, other = (Player("seaquest", 1, engine=CACHED) for _ in range(2))
    one.reset()
    for actions in random_actions(50, 1, one.num_actions):
        one.step(actions)
    other.batch.restore(0, one.batch.snapshot(0))
    for actions in random_actions(50, 1, one.num_actions, seed=1):
        mine, theirs = one.step(actions).copy(), other.step(actions).copy()
        for a, b in zip(mine[:8], theirs[:8], strict=True):
            np.testing.assert_array_equal(a, b)


def test_cached_starts_are_few_and_all_used() -> None:
    player = Player("breakout", 1, engine={**CACHED, "reset_cache_states": 5}, noop_max=30)
    starts = {player.reset(seed).frame.tobytes() for seed in range(3)}
    for _ in range(60):
        player.batch.reset(0, player.out.columns, None, None, KEY)
        starts.add(player.out.frame.tobytes())
    assert 2 <= len(starts) <= 5


def test_the_two_lists_of_settings_agree() -> None:
    own = {"reset", "reset_cache_states", "random_stream", "autoreset"}
    rules = set(Protocol.__dataclass_fields__) - {"name"}
    assert set(setting_fields()) == rules | own
    assert own - {"random_stream"} <= set(EngineSettings.__dataclass_fields__)
    choices = setting_choices()
    for field, kind in protocols._CHOICES.items():
        assert tuple(choices[field]) == kind.__args__, field


def refused(call: Any, *args: Any) -> str:
    with pytest.raises((ValueError, TypeError, RuntimeError)) as caught:
        call(*args)
    return str(caught.value)


def test_misuse_is_answered_with_a_sentence() -> None:
    player = Player("pong", 2)
    batch, columns = player.batch, player.out.columns
    zeros = np.zeros(2, np.int64)
    assert "never reset" in refused(batch.send, 0, zeros)
    assert "never reset" in refused(batch.reset, 0, columns, None, None, KEY)
    assert "Nothing was sent" in refused(batch.recv, 0)
    player.reset()
    assert "group=1" in refused(batch.send, 1, zeros)
    assert "outside of its set" in refused(batch.send, 0, np.array([0, 6]))
    assert "outside of its set" in refused(batch.send, 0, np.array([-1, 0]))
    assert "one entry per environment" in refused(batch.send, 0, np.zeros(3, np.int64))
    refused(batch.send, 0, np.zeros(2, np.int32))
    assert "tuple of the ten" in refused(batch.send, 0, zeros, columns[:8])
    wrong = (columns[0][:, :, ::2], *columns[1:])
    assert "frame must be" in refused(batch.send, 0, zeros, wrong)
    wrong = (columns[0], columns[1].astype(np.int64), *columns[2:])
    assert "depth must be" in refused(batch.send, 0, zeros, wrong)
    read_only = columns[0].copy()
    read_only.setflags(write=False)
    assert "frame must be" in refused(batch.send, 0, zeros, (read_only, *columns[1:]))
    wrong = (*columns[:9], np.zeros((2, 3, 84, 84), np.uint8))
    assert "start_frames must be" in refused(batch.send, 0, zeros, wrong)
    three = StepTarget(Arrays(3, tuple(batch.frame_shape)).columns)
    assert "frame must be" in refused(batch.send, 0, zeros, three)
    assert "tuple of the ten" in refused(batch.send, 0, zeros, list(columns))
    batch.send(0, zeros)
    assert "in flight" in refused(batch.send, 0, zeros)
    assert "in flight" in refused(batch.snapshot, 0)
    batch.recv(0, columns)


def test_snapshots_that_do_not_fit_are_refused() -> None:
    player = Player("pong", 1)
    player.reset()
    snapshot = player.batch.snapshot(0)
    other = Player("breakout", 1)
    other.reset()
    assert "another game" in refused(other.batch.restore, 0, snapshot)
    assert "another protocol" in refused(Player("pong", 1, sticky=0.25).batch.restore, 0, snapshot)
    assert "too short" in refused(player.batch.restore, 0, b"")
    assert "none of this engine" in refused(player.batch.restore, 0, b"x" * len(snapshot))
    assert "length" in refused(player.batch.restore, 0, snapshot[:-1])
    damaged = bytearray(snapshot)
    damaged[500] ^= 1
    assert "damaged" in refused(player.batch.restore, 0, bytes(damaged))
    player.batch.restore(0, snapshot)


def test_games_that_cannot_run_are_refused() -> None:
    settings = {"reset": "ale"}
    assert "cartridge type" in refused(Batch, [(b"x" * 100, 0, -1, -1)], [0], settings)
    rom = games.rom_path("pong").read_bytes()
    index = games.find("pong").index
    assert "no mode 99" in refused(Batch, [(rom, index, 99, -1)], [0], settings)
    other = (games.rom_path("seaquest").read_bytes(), games.find("seaquest").index, -1, 3)
    assert "no difficulty 3" in refused(Batch, [other], [0], settings)
    assert "does not divide" in refused(Batch, [(rom, index, -1, -1)], [0] * 3, settings, 2)
    assert "num_threads=0" in refused(Batch, [(rom, index, -1, -1)], [0], settings, 1, 0)
    assert "not given" in refused(Batch, [(rom, index, -1, -1)], [1], settings)
    assert "at least one" in refused(Batch, [(rom, index, -1, -1)], [], settings)
