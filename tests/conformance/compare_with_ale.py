"""Plays random actions in ALE and in our console and compares them after every frame.

    python tests/conformance/compare_with_ale.py --frames 2000 --seeds 3 pong breakout
    python tests/conformance/compare_with_ale.py            # all 108 ROMs

Compared: 128 bytes of RAM, the screen's colour indices, reward, lives, end of game. Both are reset
when the game ends or after a quarter of the frames, so that resets after play are covered too. The
first difference of a ROM is printed and its run stops; the exit code is the number of ROMs that
differ. Four ROMs have no single-player rules in ALE: they run under the name of another game.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import shutil
import sys
import tempfile
import time

import ale_py
import console_library
import numpy as np

ROMS = pathlib.Path(ale_py.__file__).parent / "roms"
MULTIPLAYER = {
    "combat": "venture",
    "joust": "venture",
    "maze_craze": "venture",
    "warlords": "venture",
}


def game_indices() -> dict[str, int]:
    """ALE's name of a game to its row in native/games/table.h: both are in alphabetical order."""
    names = sorted(path.stem for path in ROMS.glob("*.bin") if path.stem not in MULTIPLAYER)
    return {name: index for index, name in enumerate(names)}


def load_ale(rom: pathlib.Path, seed: int) -> ale_py.ALEInterface:
    ale = ale_py.ALEInterface()
    ale.setInt("random_seed", seed)
    ale.setFloat("repeat_action_probability", 0.0)
    ale.setBool("sound", False)
    ale.loadROM(rom)
    return ale


def random_actions(rng: np.random.Generator, legal: list[int], num_frames: int) -> np.ndarray:
    """Each action is held for 1 to 24 frames: single frames alone hardly move some games."""
    actions: list[int] = []
    while len(actions) < num_frames:
        actions += [int(rng.choice(legal))] * int(rng.integers(1, 25))
    return np.array(actions[:num_frames])


def difference(ale: ale_py.ALEInterface, ours: console_library.NativeConsole) -> str:
    """Names what differs now; empty if nothing does."""
    ram, expected = ours.ram(), ale.getRAM()
    if not np.array_equal(ram, expected):
        where = np.flatnonzero(ram != expected)
        shown = " ".join(f"{128 + i:02X}:{ram[i]:02X}({expected[i]:02X})" for i in where[:8])
        return f"RAM at {len(where)} bytes, ours(ALE): {shown}"
    screen, expected_screen = ours.screen(), ale.getScreen()
    if screen.shape != expected_screen.shape:
        return f"screen shape {screen.shape}, ALE {expected_screen.shape}"
    if not np.array_equal(screen, expected_screen):
        where = np.argwhere(screen != expected_screen)
        line, x = where[0]
        return f"{len(where)} pixels, first at line {line}, x {x}"
    if bool(ale.game_over()) != ours.terminal():
        return f"end of game: ours {ours.terminal()}"
    if ale.lives() != ours.lives():
        return f"lives {ours.lives()}, ALE {ale.lives()}"
    return ""


def play(ale, ours, actions: np.ndarray, reset_every: int) -> str:
    """Plays the actions in both; returns the first difference."""
    ours.reset()
    if found := difference(ale, ours):
        return f"after loading: {found}"
    for frame, action in enumerate(actions):
        if ale.game_over() or (frame + 1) % reset_every == 0:
            ale.reset_game()
            ours.reset()
            reward = expected = 0
        else:
            expected = ale.act(int(action))
            reward = ours.act(int(action))
        if found := difference(ale, ours):
            return f"frame {frame}: {found}"
        if reward != expected:
            return f"frame {frame}: reward {reward}, ALE {expected}"
    return ""


def compare(library, name: str, num_frames: int, seed: int) -> str:
    rules = MULTIPLAYER.get(name, name)
    with tempfile.TemporaryDirectory() as folder:
        rom = pathlib.Path(folder) / f"{rules}.bin"
        shutil.copy(ROMS / f"{name}.bin", rom)
        ale = load_ale(rom, seed)
        ours = console_library.NativeConsole(library, rom.read_bytes(), game_indices()[rules])
    legal = [action.value for action in ale.getLegalActionSet()]
    actions = random_actions(np.random.default_rng(seed), legal, num_frames)
    return play(ale, ours, actions, max(2, num_frames // 4))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("roms", nargs="*", help="names as in ale-py; all by default")
    parser.add_argument("--frames", type=int, default=2000, help="per ROM and seed")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--variant", default="FastConsole", help="or Console, the slow one")
    parser.add_argument("--json", type=pathlib.Path, help="write the results here")
    options = parser.parse_args()
    ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
    library = console_library.load(options.variant)
    names = options.roms or sorted(path.stem for path in ROMS.glob("*.bin"))
    results: dict[str, str] = {}
    for name in names:
        start = time.perf_counter()
        seeds = range(options.first_seed, options.first_seed + options.seeds)
        found = next((d for s in seeds if (d := compare(library, name, options.frames, s))), "")
        results[name] = found
        seconds = time.perf_counter() - start
        print(f"{name:20} {found or 'equal'} ({seconds:.1f} s)", flush=True)
    num_different = sum(bool(found) for found in results.values())
    print(
        f"{len(results) - num_different} of {len(results)} ROMs equal, "
        f"{options.frames} frames x {options.seeds} seeds"
    )
    if options.json:
        options.json.write_text(json.dumps(results, indent=1))
    return num_different


if __name__ == "__main__":
    sys.exit(main())
