"""Batches of games: threads, groups, caches, snapshots, and answers to misuse."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from batches import KEY, Array, Arrays, Player, random_actions

from scanline import games, protocols
from scanline._native import Batch, StepTarget, setting_choices, setting_fields
from scanline.engines import EngineSettings
from scanline.protocols import Protocol

NUM_ENVS, NUM_STEPS = 6, 120
HERE = Path(__file__).parent
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
    for field, values in protocols.choices().items():
        assert tuple(choices[field]) == values, field


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
    assert "shape (2,), but has (3,)" in refused(batch.send, 0, np.zeros(3, np.int64))
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


def arrays_of_calls(player: Player) -> dict[str, tuple[Any, Array]]:
    """Every array that a call takes: a call with all others right, and the right one."""
    batch, columns = player.batch, player.out.columns
    numbers = np.zeros(player.num_envs, np.int32)
    long = np.zeros(player.num_envs, np.int64)
    calls: dict[str, tuple[Any, Array]] = {
        "frame_number": (lambda given: batch.counters(0, given, numbers), numbers.copy()),
        "episode_frame_number": (lambda given: batch.counters(0, numbers, given), numbers.copy()),
        "actions": (lambda given: batch.send(0, given), long),
        "seeds": (lambda given: batch.reset(0, columns, None, given, KEY), long),
        "mask": (lambda given: batch.reset(0, columns, given, long, KEY), long == 0),
    }
    for place, column in enumerate(columns):
        name = (
            "frame depth reward raw_reward terminated truncated life_lost lives final_frame "
            "start_frames"
        )

        def target(given: Array, place: int = place) -> StepTarget:
            return StepTarget((*columns[:place], given, *columns[place + 1 :]))

        calls[name.split()[place]] = (target, column)
    return calls


NAMES = tuple(arrays_of_calls(Player("pong", 4)))


@pytest.mark.parametrize("name", NAMES)
def test_an_array_of_another_type_size_or_layout_is_refused(name: str) -> None:
    player = Player("pong", 4)
    player.reset()
    call, right = arrays_of_calls(player)[name]
    guarded = np.zeros((2 * len(right), *right.shape[1:]), right.dtype)
    wrong = {
        "too short": guarded[:1],
        "too long": guarded,
        "with gaps": guarded[::2],
        "of another type": right.astype(np.float64),
        "a list": right.tolist(),
    }
    if name not in ("actions", "seeds", "mask"):
        wrong["read-only"] = right.copy()
        wrong["read-only"].setflags(write=False)
    for case, given in wrong.items():
        if name == "frame" and case in ("too short", "too long"):
            continue  # all others have the wrong size then
        if not right.size and case == "with gaps":
            continue  # nothing lies between no numbers
        assert name in refused(call, given), case
    assert not guarded.any()
    call(right)


def test_entries_of_tuples_are_counted() -> None:
    rom = games.rom_path("pong").read_bytes()
    assert "tuple of ROM" in refused(Batch, [(rom,)], [0], {"reset": "ale"})
    player = Player("pong", 1)
    seeds = np.zeros(1, np.int64)
    assert "two words" in refused(player.batch.reset, 0, player.out.columns, None, seeds, (1, 2))


def test_a_reset_that_runs_out_of_time_keeps_its_arrays_until_it_is_done() -> None:
    player = Player("pong", 128, num_threads=1)  # a reset takes a tenth of a second and more
    late = Arrays(128, tuple(player.batch.frame_shape))
    frames = weakref.ref(late.columns[0])
    numbers = np.arange(128)
    with pytest.raises(TimeoutError, match="did not finish in time"):
        player.batch.reset(0, late.columns, None, numbers, KEY, False, 0.0)
    del late
    assert "still runs" in refused(player.batch.send, 0, numbers)
    assert "still runs" in refused(player.batch.snapshot, 0)
    assert "still runs" in refused(player.counters)
    assert frames() is not None
    player.reset()
    assert frames() is None
    player.step(np.zeros(128))


def test_arrays_are_kept_until_a_step_is_received() -> None:
    player = Player("pong", 2)
    player.reset()
    out = Arrays(2, tuple(player.batch.frame_shape))
    frames = weakref.ref(out.columns[0])
    player.batch.send(0, np.zeros(2, np.int64), out.columns)
    del out
    assert frames() is not None
    player.batch.recv(0)
    assert frames() is None


def test_nothing_is_read_while_a_reset_runs() -> None:
    player = Player("pong", 64, num_threads=1)
    player.reset()
    running = threading.Thread(target=player.reset)
    running.start()
    answers = set()
    while running.is_alive():
        try:
            player.batch.snapshot(0)
            answers.add("taken")
        except RuntimeError as error:
            answers.add(str(error))
    running.join()
    assert any("in flight" in answer for answer in answers)
    player.batch.snapshot(0)


def in_another_process(lines: str, seconds: float = 60.0) -> str:
    """What a program prints that may end badly."""
    program = f"import os, sys\nsys.path.insert(0, {str(HERE)!r})\n{lines}"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=seconds
    )
    assert done.returncode == 0, f"{done.returncode}: {done.stdout}{done.stderr}"
    return done.stdout


@pytest.mark.skipif(sys.platform != "linux", reason="limits of memory")
def test_threads_that_the_system_does_not_grant_are_an_error() -> None:
    printed = in_another_process(
        """
import resource
import numpy as np
from batches import Player
Player("pong", 2)
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + 100_000_000, resource.RLIM_INFINITY))
try:
    Player("pong", 64, num_threads=64)
except RuntimeError as error:
    print(error)
resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
player = Player("pong", 64, num_threads=64)
player.reset()
print("lives on")
"""
    )
    assert "of 64 threads" in printed and "lives on" in printed


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_forked_process_refuses_the_batch_and_ends() -> None:
    printed = in_another_process(
        """
import signal
import numpy as np
from batches import Player
player = Player("pong", 4, num_threads=2)
player.reset()
child = os.fork()
if child == 0:
    signal.alarm(20)
    calls = [lambda: player.step(np.zeros(4)), player.reset, player.counters,
             lambda: player.batch.recv(0), lambda: player.batch.poll(0.0),
             lambda: player.batch.snapshot(0)]
    for call in calls:
        try:
            call()
        except RuntimeError as error:
            print("refused" if "forked" in str(error) else error, flush=True)
    del call, calls, player
    print("ended", flush=True)
    os._exit(0)
print(os.waitpid(child, 0)[1])
player.step(np.zeros(4))
print("goes on")
"""
    )
    assert printed.split() == ["refused"] * 6 + ["ended", "0", "goes", "on"]


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
