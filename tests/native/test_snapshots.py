"""Snapshots whose bytes were changed, checksum included: refused with a sentence, nothing changed.

`native/tests/fuzz_snapshots.cpp` does the same for every field and checks that what is accepted is
harmless; here are the entries from Python and the values that once crashed or hung them.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from batches import Player

import scanline
from scanline import games
from scanline.envs.vector import _MAGIC, EngineVectorEnv

pytest.importorskip("ale_py", reason="ale-py brings the ROMs")

HEADER_BYTES, CONTENT_AT = 56, 48
CARTRIDGE, STATE, RANDOM, EPISODE = 256, 96440, 96516, 99040
NAN = struct.pack("<f", float("nan"))

# Field, where it lies in the content, and bytes that no console could hold.
CONSOLE_FIELDS = [
    ("cycles", 0, b"\xff" * 4),
    ("frame_start_clock", 4, struct.pack("<i", 1)),
    ("draw_origin_clock", 8, struct.pack("<i", -100000)),
    ("last_clock", 12, struct.pack("<i", 0x7FFFFFFF)),
    ("system_random_draws", 36, struct.pack("<I", 0xF0000000)),
    ("paddle_threshold_cycles", 40, struct.pack("<I", 19041)),
    ("timer_shift", 72, b"\x40"),
    ("hm", 100, b"\x10"),
    ("pos", 110, b"\xa0"),
    ("bank", 122, b"\x7f"),
    ("unused", 254, b"\x01"),
    ("music_clock_fraction", CARTRIDGE, struct.pack("<d", float("inf"))),
    ("counter", CARTRIDGE + 12, b"\xff\xff"),
    ("score", STATE + 4, struct.pack("<i", -0x80000000)),
    ("extra", STATE + 16, struct.pack("<i", 0x7FFFFFFF)),
    ("terminal", STATE + 36, b"\x02"),
    ("paddles", STATE + 40, struct.pack("<i", 0x7FFFFFFF)),
    ("strength", STATE + 48, NAN),
    ("strength", STATE + 52, struct.pack("<f", 1e30)),
    ("frame_number", STATE + 56, struct.pack("<i", -1)),
    ("mode", STATE + 64, struct.pack("<I", 1000)),
    ("difficulty", STATE + 68, struct.pack("<I", 4)),
    ("held", STATE + 72, b"\x12"),
    ("position_", RANDOM + 2496, struct.pack("<I", 625)),
]
EPISODE_FIELDS = [
    ("position_", RANDOM + 2496, struct.pack("<I", 0x7FFFFFFF)),
    ("is_ale_", RANDOM + 2516, struct.pack("<I", 0)),
    ("episode_return", EPISODE, struct.pack("<q", -(2**63))),
    ("episode_agent_steps", EPISODE + 8, struct.pack("<i", -1)),
    ("depth", EPISODE + 20, struct.pack("<i", 5)),
    ("depth", EPISODE + 20, struct.pack("<i", 0)),
    ("draws", EPISODE + 24, struct.pack("<I", 0xF0000000)),
    ("started", EPISODE + 56, b"\x02"),
    ("pending", EPISODE + 57, b"\x02"),
]


def fingerprint(content: bytes) -> int:
    """FNV-1a, as env/fingerprint.h computes it."""
    value = 0xCBF29CE484222325
    for byte in content:
        value = ((value ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return value


def patched(snapshot: bytes, offset: int, value: bytes) -> bytes:
    """The snapshot with other bytes at a place of its content, and a checksum that fits."""
    changed = bytearray(snapshot)
    place = HEADER_BYTES + offset
    changed[place : place + len(value)] = value
    changed[CONTENT_AT : CONTENT_AT + 8] = struct.pack(
        "<Q", fingerprint(bytes(changed[HEADER_BYTES:]))
    )
    return bytes(changed)


def console_in_play(game: str) -> scanline.Console:
    console = scanline.Console(game)
    console.reset()
    for frame in range(30):
        console.act(frame % 6)
    return console


@pytest.fixture(scope="module")
def pong() -> scanline.Console:
    return console_in_play("pong")


def test_the_checksum_of_the_tests_is_the_right_one(pong: scanline.Console) -> None:
    snapshot = pong.snapshot()
    assert patched(snapshot, 126, snapshot[HEADER_BYTES + 126 :][:1]) == snapshot
    pong.restore(patched(snapshot, 126, b"\x55"))
    assert pong.ram()[0] == 0x55
    pong.restore(snapshot)


@pytest.mark.parametrize(("field", "offset", "value"), CONSOLE_FIELDS)
def test_a_console_refuses_a_field_out_of_bounds(
    pong: scanline.Console, field: str, offset: int, value: bytes
) -> None:
    snapshot = pong.snapshot()
    with pytest.raises(ValueError, match=rf"cannot be restored because {field}.* is out of bounds"):
        pong.restore(patched(snapshot, offset, value))
    assert pong.snapshot() == snapshot
    pong.act(0)
    pong.restore(snapshot)


@pytest.mark.parametrize(
    "game",
    [
        *("pong", "breakout", "asterix", "road_runner", "klax"),
        *("montezuma_revenge", "robotank", "pitfall2"),
    ],
)
def test_every_kind_of_cartridge_bounds_its_banks(game: str) -> None:
    console = console_in_play(game)
    snapshot = console.snapshot()
    with pytest.raises(ValueError, match=r"because bank\[0\]=127 is out of bounds"):
        console.restore(patched(snapshot, 122, b"\x7f"))
    console.restore(snapshot)
    assert console.snapshot() == snapshot


@pytest.fixture(scope="module")
def player() -> Player:
    made = Player("pong", 1)
    made.reset()
    for _ in range(5):
        made.step(np.array([2]))
    return made


@pytest.mark.parametrize(("field", "offset", "value"), EPISODE_FIELDS)
def test_a_batch_refuses_a_field_out_of_bounds(
    player: Player, field: str, offset: int, value: bytes
) -> None:
    snapshot = player.batch.snapshot(0)
    forged = patched(snapshot, offset, value)
    for call in (player.batch.check_snapshot, player.batch.restore):
        with pytest.raises(ValueError, match=rf"because {field}.* is out of bounds"):
            call(0, forged)
    assert player.batch.snapshot(0) == snapshot


def test_a_refused_snapshot_loads_no_game() -> None:
    one, other = Player("pong", 1), Player("pong", 1)
    one.reset()
    snapshot = one.batch.snapshot(0)
    with pytest.raises(ValueError, match="bank"):
        other.batch.restore(0, patched(snapshot, 122, b"\x7f"))
    with pytest.raises(RuntimeError, match="Reset before"):
        other.batch.snapshot(0)
    other.batch.restore(0, snapshot)
    assert other.batch.snapshot(0) == snapshot


@pytest.fixture(scope="module")
def envs() -> Iterator[EngineVectorEnv]:
    with closing(scanline.make("pong", num_envs=2)) as made:
        made.reset(seed=1)
        made.step(np.array([0, 1]))
        yield made


def repacked(snapshot: bytes, **changes: object) -> bytes:
    """A vector environment's snapshot with other numbers in its head."""
    head, _, body = snapshot.removeprefix(_MAGIC).partition(b"\n")
    return _MAGIC + json.dumps(json.loads(head) | changes).encode() + b"\n" + body


@pytest.mark.parametrize(
    "changes",
    [
        *({"depth": 0}, {"depth": 5}, {"depth": 1.0}, {"depth": True}, {"score": float("nan")}),
        *({"length": -1}, {"length": 2**63}, {"waits": 2}, {"lives": 2**31}, {"lives": "3"}),
        *({"window_bytes": 0}, {"window_bytes": -1}, {"window_bytes": 2**40}),
    ],
)
def test_an_environment_refuses_numbers_out_of_bounds(
    envs: EngineVectorEnv, changes: dict[str, object]
) -> None:
    good = envs.snapshot()
    with pytest.raises(ValueError, match=f"cannot be restored because {next(iter(changes))}="):
        envs.restore([good[0], repacked(good[1], **changes)])
    assert envs.snapshot() == good


def test_environments_are_restored_all_or_none(envs: EngineVectorEnv) -> None:
    first = envs.snapshot()
    for _ in range(3):
        envs.step(np.array([0, 1]))
    second = envs.snapshot()
    head, _, body = first[1].removeprefix(_MAGIC).partition(b"\n")
    size = json.loads(head)["window_bytes"]
    forged = _MAGIC + head + b"\n" + body[:size] + patched(body[size:], 122, b"\x7f")
    with pytest.raises(ValueError, match="bank"):
        envs.restore([first[0], forged])
    assert envs.snapshot() == second
    envs.restore(first)
    assert envs.snapshot() == first


def test_every_game_restores_its_own_snapshots() -> None:
    paths = sorted(games.rom_path("pong").parent.glob("*.bin"))
    assert len(paths) > 100
    for path in paths:
        console = scanline.Console(Path(path))
        for frame in range(4):
            console.act(frame)
            snapshot = console.snapshot()
            console.restore(snapshot)
            assert console.snapshot() == snapshot, path.stem
