"""One run of ALE and of our environment next to each other, compared after every frame.

Takes a `Case`; gives an `Outcome` that names the first difference, if any. Compared: 128 bytes of
RAM, the colour indices of the screen, reward, lives, end of game, truncation and both frame
counters. Both are reset at the end of a game and every `reset_every_frames`, so that resets after
play, which depend on what was played, are compared too.
"""

from __future__ import annotations

import dataclasses
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ale_py
import environment_library
import numpy as np
import product_console

from scanline import games


@dataclass(frozen=True, kw_only=True)
class Case:
    """What is played."""

    game: str
    """Id of the game."""
    frames: int = 1000
    """Frames acted, without those that resets emulate."""
    seed: int = 0
    """Of the actions, and ALE's random_seed."""
    sticky: float = 0.0
    """ALE's repeat_action_probability."""
    variations: tuple[tuple[int, int], ...] = ()
    """Modes and difficulties, one pair after the other at each reset; none: as after loading."""
    limit_frames: int = 0
    """ALE's max_num_frames_per_episode."""
    reset_every_frames: int = 400
    """Resets also while the game goes on."""
    strengths: bool = False
    """Draw the strength of paddles anew with each action."""
    unseen: bool = False
    """Emulate most frames without their picture, and compare only pictures that were asked for."""
    rom: str = ""
    """Name of another ROM of ale-py's, played under this game's rules; empty: the game's own."""

    @property
    def suits_the_product(self) -> bool:
        """scanline.Console offers all that is played."""
        special = self.variations or self.limit_frames or self.strengths or self.unseen or self.rom
        return not special

    def with_frames(self, frames: int) -> Case:
        return dataclasses.replace(self, frames=frames)


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What came of a case."""

    case: Any
    """A `Case`, or one of vector_side_by_side.py."""
    frames: int
    """Frames compared."""
    resets: int
    ends: int
    """Games that ended by themselves."""
    rewards: int
    """Frames with a reward that was not 0."""
    difference: str
    """The first one; empty: none."""


def run(case: Case, console: str = "plain") -> Outcome:
    """Plays the case in both; never raises for a difference.

    `console` names one of environment_library.py, or `product` for scanline.Console, which is
    replaced by `fast` for a case that it does not suit.
    """
    if console == "product" and not case.suits_the_product:
        console = "fast"
    return _Pair(case, load_ours(case, console)).play()


def rom_path(case: Case) -> Path:
    own = games.rom_path(case.game)
    return own.with_name(f"{case.rom}.bin") if case.rom else own


def load_ale(case: Case) -> ale_py.ALEInterface:
    """ALE knows the rules of a ROM by its file's name, so another ROM is loaded under it."""
    ale = ale_py.ALEInterface()
    ale.setInt("random_seed", case.seed)
    ale.setFloat("repeat_action_probability", case.sticky)
    ale.setInt("max_num_frames_per_episode", case.limit_frames)
    with tempfile.TemporaryDirectory() as folder:
        named = shutil.copy(rom_path(case), Path(folder) / f"{case.game}.bin")
        ale.loadROM(str(named))
    return ale


def load_ours(case: Case, console: str) -> Any:
    if console == "product":
        return product_console.ProductConsole(case.game, case.seed, case.sticky)
    settings = environment_library.Settings(
        random_seed=case.seed,
        repeat_action_probability=case.sticky,
        max_num_frames_per_episode=case.limit_frames,
    )
    library, rom = environment_library.load(console), rom_path(case).read_bytes()
    return environment_library.Environment(library, rom, games.find(case.game).index, settings)


class _Pair:
    def __init__(self, case: Case, ours: Any):
        ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
        self.case = case
        self.ale = load_ale(case)
        self.ours = ours
        self.rng = np.random.default_rng(case.seed)
        self.legal = [action.value for action in self.ale.getLegalActionSet()]
        self.expected_ram, self.expected_screen = self.ale.getRAM(), self.ale.getScreen()
        self.held_frames = 0
        self.action, self.strength = 0, 1.0
        self.variation = "as loaded"
        self.frames = self.resets = self.ends = self.rewards = 0

    def play(self) -> Outcome:
        difference = self.play_until_different()
        return Outcome(
            case=self.case,
            frames=self.frames,
            resets=self.resets,
            ends=self.ends,
            rewards=self.rewards,
            difference=difference,
        )

    def play_until_different(self) -> str:
        if found := self.difference():
            return f"after loading: {found}"
        for frame in range(self.case.frames):
            if self.reset_is_due(frame) and (found := self.reset()):
                return f"reset before frame {frame}, {self.variation}: {found}"
            if found := self.act():
                return f"frame {frame}, {self.variation}, action {self.action}: {found}"
        return ""

    def reset_is_due(self, frame: int) -> bool:
        on_time = frame % self.case.reset_every_frames == 0
        first = frame == 0 and not self.case.variations
        return self.ale.game_over(with_truncation=True) or (on_time and not first)

    def reset(self) -> str:
        self.vary()
        self.ends += self.ale.game_over(with_truncation=False)
        self.resets += 1
        self.ale.reset_game()
        self.ours.reset(seen=not self.case.unseen)
        if self.case.unseen:
            self.ours.show_pictures()
        return self.difference()

    def vary(self) -> None:
        if not self.case.variations:
            return
        mode, difficulty = self.case.variations[self.resets % len(self.case.variations)]
        self.variation = f"mode {mode}, difficulty {difficulty}"
        self.ale.setMode(mode)
        self.ale.setDifficulty(difficulty)
        self.ours.set_mode(mode)
        self.ours.set_difficulty(difficulty)

    def act(self) -> str:
        self.choose()
        seen = not self.case.unseen or self.frames % 4 > 1
        expected = self.ale.act(self.action, self.strength)
        reward = self.ours.act(self.action, self.strength, seen)
        self.frames += 1
        self.rewards += expected != 0
        if reward != expected:
            return f"reward {reward}, ALE {expected}"
        return self.difference(seen)

    def choose(self) -> None:
        """Each action is held for 1 to 24 frames: single frames alone hardly move some games."""
        if self.held_frames == 0:
            self.action = int(self.rng.choice(self.legal))
            self.held_frames = int(self.rng.integers(1, 25))
            self.strength = float(self.rng.random()) if self.case.strengths else 1.0
        self.held_frames -= 1

    def difference(self, seen: bool = True) -> str:
        return (
            self.ram_difference() or (seen and self.screen_difference()) or self.value_difference()
        )

    def ram_difference(self) -> str:
        ram, expected = self.ours.ram(), self.expected_ram
        self.ale.getRAM(expected)
        if np.array_equal(ram, expected):
            return ""
        where = np.flatnonzero(ram != expected)
        shown = " ".join(f"{128 + i:02X}:{ram[i]:02X}({expected[i]:02X})" for i in where[:8])
        return f"RAM at {len(where)} bytes, ours(ALE): {shown}"

    def screen_difference(self) -> str:
        screen, expected = self.ours.screen(), self.expected_screen
        if screen.shape != expected.shape:
            return f"screen shape {screen.shape}, ALE {expected.shape}"
        self.ale.getScreen(expected)
        if np.array_equal(screen, expected):
            return ""
        where = np.argwhere(screen != expected)
        line, x = where[0]
        return f"{len(where)} pixels, first at line {line}, x {x}"

    def value_difference(self) -> str:
        results = self.ours.results()
        pairs = {
            "lives": (results.lives, self.ale.lives()),
            "end": (bool(results.game_over), self.ale.game_over(with_truncation=False)),
            "truncation": (bool(results.truncated), self.ale.game_truncated()),
            "frame number": (results.frame_number, self.ale.getFrameNumber()),
            "episode frame": (results.episode_frame_number, self.ale.getEpisodeFrameNumber()),
            "mode failed": (bool(results.mode_failed), False),
        }
        wrong = [f"{key} {ours}, ALE {ale}" for key, (ours, ale) in pairs.items() if ours != ale]
        return "; ".join(wrong)
