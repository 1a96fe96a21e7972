"""Compares engines on devices with engine `native`, every array of every agent step.

    python tests/conformance/device_engines.py                    # gpu-host and opencl, 108 ROMs
    python tests/conformance/device_engines.py --engines cuda --suites play --games pong
    python tests/conformance/device_engines.py --mutations        # errors on purpose are found

play       all games, three protocols each: resets with masks and seeds, snapshots both ways
two-player the four ROMs without rules of their own, under another game's
batch      eight games in one batch, in two groups
hostile    cartridges of bytes from a seed, of every type

Prints one line per difference and a table, and exits with the number of differences, at most 99.
With --record an interrupted run goes on later; another build begins anew.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

sys.path.insert(0, str(Path(__file__).parents[1] / "engines"))

import devices
import numpy as np
import record
import suites
import toys
from side_by_side import Outcome

from scanline import engines, games
from scanline.engines import Engine, EngineSettings, launcher
from scanline.engines.device import DeviceEngine
from scanline.engines.native import NativeEngine
from scanline.engines.opencl import OpenCLLauncher
from scanline.tables import Table

ENGINES = ("gpu-host", "opencl")
NUM_STEPS = 200
SMALL: dict[str, Any] = {
    **{"num_envs": 2, "num_groups": 2, "num_threads": 1, "reset_cache_states": 2},
    "wait_seconds": 900.0,
}
SEEDS = range(3)
"""Of hostile cartridges, for every type."""
PROTOCOLS: list[dict[str, Any]] = [
    {"autoreset": "next-step", "episode_limit_frames": 120},
    {"protocol": "cule", "episode_limit_frames": 100},
    {"life_loss": "full-reset", "crop": "first-210", "pooling": "none"},
    {"life_loss": "noops-again", "frame_skip_min": 2, "frame_skip": 5, "autoreset": "next-step"},
    {"life_loss": "noop-fire-up", "fire_reset": "noop-fire-up", "sticky": 0.25},
    {"stack_padding": "repeat", "reward_clip": "none", "height": 64, "width": 72},
]
"""Besides `baselines` and `machado`, which every game plays; each game plays one of these."""
TYPES = {
    **{"2K": (2048, b""), "4K": (4096, b""), "F8": (8192, b""), "F6": (16384, b"")},
    **{"E0": (8192, b"\x8d\xe0\x1f"), "FE": (8192, b"\x20\x00\xd0\xc6\xc5"), "DPC": (10240, b"")},
    **{"F8SC": (8192, b"SC"), "F6SC": (16384, b"SC")},
}
"""Bytes of an image, and what an emulator knows its type by."""
MUTATIONS = {
    "play": ("gpu::at<u32>(actions, env)", "gpu::at<u32>(actions, first_env)"),
    "observe": ("plan, i32(row), frames", "plan, i32(row ? row - 1 : 0), frames"),
    "restart": ("step.restart_ended(start);", "if (index > 0) step.restart_ended(start);"),
}
"""By kernel: what stands in gpu/kernels.inc, and an error in its place."""


@dataclass(frozen=True, kw_only=True)
class DeviceCase:
    """What is played."""

    engine: str
    game: str | list[str]
    options: dict[str, Any] = field(default_factory=dict)
    """Of `devices.settings_of`."""
    steps: int = NUM_STEPS
    rom: str = ""
    """Name of another ROM, or type and seed of a hostile one; empty: the game's own."""

    @property
    def roms(self) -> list[str]:
        return [self.rom] if self.rom else [self.game] if isinstance(self.game, str) else self.game

    @property
    def settings(self) -> EngineSettings:
        return devices.settings_of(self.game, **{**SMALL, **self.options})


def play(engine: str, game: str) -> list[DeviceCase]:
    other = PROTOCOLS[games.find(game).index % len(PROTOCOLS)]
    chosen = [{"episode_limit_frames": 90}, {"protocol": "machado", "first_env_id": 7}, other]
    return [DeviceCase(engine=engine, game=game, options=options) for options in chosen]


def two_player(engine: str, game: str) -> list[DeviceCase]:
    roms = suites.TWO_PLAYER_ROMS if game == suites.LENDER_OF_RULES else ()
    return [DeviceCase(engine=engine, game=game, rom=rom) for rom in roms]


def batch(engine: str, game: str) -> list[DeviceCase]:
    """Every eighth game with the seven after it."""
    names = [each.id for each in games.GAMES]
    first = names.index(game)
    together = (names + names)[first : first + 8]
    options = {"num_envs": 16, "full_action_space": True, "episode_limit_frames": 100}
    one = DeviceCase(engine=engine, game=together, options=options, steps=100)
    return [] if first % 8 else [one]


def hostile(engine: str, game: str) -> list[DeviceCase]:
    """Under the rules of some games."""
    chosen = ("pong", "breakout", "montezuma_revenge")
    if game not in chosen:
        return []
    roms = [f"{name} {seed}" for name in TYPES for seed in SEEDS if game == chosen[seed]]
    return [DeviceCase(engine=engine, game=game, rom=rom, steps=24) for rom in roms]


SUITES: dict[str, Callable[[str, str], list[DeviceCase]]] = {
    "play": play,
    "two-player": two_player,
    "batch": batch,
    "hostile": hostile,
}


def hostile_image(name: str, seed: int) -> bytes:
    """Random bytes of a cartridge type, whose reset vector leads into the image."""
    size, mark = TYPES[name]
    image = np.random.default_rng([seed, size]).integers(0, 256, size, np.uint8)
    if mark == b"SC":
        for bank in range(0, size, 0x1000):
            image[bank : bank + 0x100] = 0xFF
    elif mark:
        image[0x400 : 0x400 + len(mark)] = np.frombuffer(mark, np.uint8)
    end = min(size, 8192) if name == "DPC" else size
    image[end - 4 : end] = [0x00, 0xF4, 0x00, 0xF4]
    return image.tobytes()


@contextmanager
def rom_of(case: DeviceCase) -> Iterator[None]:
    """Inside, engines find the case's ROM, whatever the game."""
    if not case.rom:
        yield
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "image.bin"
        name, _, seed = case.rom.partition(" ")
        if seed:
            path.write_bytes(hostile_image(name, int(seed)))
        else:
            path = games.rom_path(case.game).parent / f"{name}.bin"
        with patch.object(games, "rom_path", lambda game: path):
            yield


@cache
def opencl() -> OpenCLLauncher:
    """One for all cases: kernels are compiled once per cartridge type."""
    return OpenCLLauncher()


def build(name: str, settings: EngineSettings) -> Engine:
    return DeviceEngine(settings, opencl()) if name == "opencl" else engines.build(name, settings)


class Pair:
    """`native` and another engine, given the same calls and compared after each."""

    def __init__(self, case: DeviceCase) -> None:
        self.settings = case.settings
        self.engines = [NativeEngine(self.settings), build(case.engine, self.settings)]
        size, spaces = self.settings.group_size, self.engines[0].spaces
        assert self.engines[1].spaces == spaces
        self.arrays = [toys.step_arrays(size, spaces) for _ in self.engines]
        self.ends = self.rewards = self.resets = 0

    def reset(self, when: str, **how: Any) -> None:
        for group in range(self.settings.num_groups):
            for engine, out in zip(self.engines, self.arrays, strict=True):
                engine.reset(group, out, **how)
            self._compare(group, when)
        self.resets += self.settings.num_envs

    def step(self, actions: np.ndarray, when: str) -> None:
        for group in range(self.settings.num_groups):
            for engine, out in zip(self.engines, self.arrays, strict=True):
                engine.send(group, actions[self.settings.rows(group)])
                engine.recv(group, out)
            self._compare(group, when)
            own = self.arrays[0]
            self.ends += int((own.terminated | own.truncated).sum())
            self.rewards += int(np.count_nonzero(own.raw_reward))

    def exchange(self, when: str) -> None:
        """Snapshots are equal bytes, and each engine goes on from the other's."""
        taken = [engine.snapshot() for engine in self.engines]
        assert taken[0] == taken[1], f"snapshots differ at {when}"
        for engine, snapshots in zip(self.engines, reversed(taken), strict=True):
            engine.restore(snapshots)

    def _compare(self, group: int, when: str) -> None:
        devices.assert_equal(*self.engines, self.arrays, group, when)

    def close(self) -> None:
        for engine in self.engines:
            engine.close()


def run(case: DeviceCase) -> Outcome:
    """Plays the case; never raises for a difference."""
    with rom_of(case):
        pair = Pair(case)
    done, difference = 0, ""
    try:
        pair.reset("reset")
        num_actions = pair.engines[0].spaces.num_actions
        for actions in toys.random_actions(case.steps, pair.settings.num_envs, num_actions):
            pair.step(actions, f"step {done}")
            done += 1
            if done % (case.steps // 3) == 0:
                pair.exchange(f"step {done}")
            if done == case.steps // 2:
                mask = np.arange(pair.settings.group_size) % 2 == 0
                pair.reset(f"a reset with a mask at step {done}", mask=mask)
            if done == 3 * case.steps // 4:
                pair.reset(f"a reset with a seed at step {done}", seed=5)
    except AssertionError as error:
        difference = str(error)
    finally:
        pair.close()
    frames = done * pair.settings.num_envs * pair.settings.protocol.frame_skip
    counts = {"resets": pair.resets, "ends": pair.ends, "rewards": pair.rewards}
    return Outcome(case=case, frames=frames, difference=difference, **counts)


def what_is_compared(engine: str) -> str:
    """Changes with the emulator, the kernels, the engines and the comparison."""
    files = [*Path(engines.__file__).parent.glob("*.py"), Path(__file__)]
    words = (launcher.sources_fingerprint(), engines.version(engine))
    return record.fingerprint(files, *words)


def table(outcomes: dict[tuple[str, str], list[Outcome]]) -> Table:
    rows = []
    for (engine, suite), found in outcomes.items():
        roms = {rom for outcome in found for rom in outcome.case.roms}
        sums = [sum(getattr(o, n) for o in found) for n in ("frames", "resets", "ends", "rewards")]
        different = sum(bool(o.difference) for o in found)
        rows.append([engine, suite, len(found), len(roms), *sums, different])
    columns = ("engine", "suite", "cases", "ROMs", "raw frames", "resets", "ends", "rewards")
    return Table(
        title="Engines on devices beside engine native",
        columns=(*columns, "different"),
        rows=rows,
        notes=("Every array of every agent step, and snapshots exchanged in both directions.",),
    )


def mutated(kernel: str) -> Outcome:
    """A game on OpenCL with an error in one kernel."""
    before, after = MUTATIONS[kernel]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "kernels"
        shutil.copytree(launcher.sources(), folder)
        text = (folder / "gpu" / "kernels.inc").read_text()
        assert text.count(before) == 1, f"{kernel}: {before!r} is not there once"
        (folder / "gpu" / "kernels.inc").write_text(text.replace(before, after))
        opencl.cache_clear()
        case = DeviceCase(engine="opencl", game="pong", options={"episode_limit_frames": 90})
        with patch.object(launcher, "sources", lambda: folder):
            return run(case)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--engines", nargs="*", default=list(ENGINES))
    parser.add_argument("--suites", nargs="*", default=list(SUITES))
    parser.add_argument("--games", nargs="*", default=[game.id for game in games.GAMES])
    parser.add_argument("--steps", type=int, help="agent steps of each case, at most")
    parser.add_argument("--record", type=Path, help="folder of outcomes; goes on from them")
    parser.add_argument("--summary", type=Path, help="write the table here too")
    parser.add_argument("--mutations", action="store_true", help="put an error into each kernel")
    return parser.parse_args()


def main() -> int:
    options = arguments()
    if options.mutations:
        found = {kernel: mutated(kernel).difference for kernel in MUTATIONS}
        for kernel, difference in found.items():
            print(f"error in {kernel}: {difference or 'NOT FOUND'}")
        return sum(not difference for difference in found.values())
    outcomes: dict[tuple[str, str], list[Outcome]] = {}
    for engine in options.engines:
        path = options.record and options.record / f"{engine}.jsonl"
        kept = record.Record(path, what_is_compared(engine)) if path else None
        for suite in options.suites:
            cases = [case for game in options.games for case in SUITES[suite](engine, game)]
            if options.steps:
                cases = [replace(case, steps=min(case.steps, options.steps)) for case in cases]
            outcomes[engine, suite] = [played(suite, case, kept) for case in cases]
            print(f"{engine} {suite}: {len(cases)} cases, {time.strftime('%X')}", flush=True)
    text = table(outcomes).markdown()
    print(text)
    if options.summary:
        options.summary.write_text(text + "\n")
    return min(99, sum(bool(o.difference) for found in outcomes.values() for o in found))


def played(suite: str, case: DeviceCase, kept: record.Record | None) -> Outcome:
    found = kept.find(suite, case) if kept else None
    if found is not None:
        return found
    outcome = run(case)
    if outcome.difference:
        print(f"DIFFERENT {suite}: {case}: {outcome.difference}", flush=True)
    if kept:
        kept.add(suite, outcome)
    return outcome


if __name__ == "__main__":
    sys.exit(main())
