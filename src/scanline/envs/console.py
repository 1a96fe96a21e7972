"""Console: one Atari 2600 with ALE's environment around it, frame by frame.

Takes a game's name or the path of a ROM; gives rewards, memory and pictures of single frames, equal
to ale-py's. Knows no agent steps: those are an engine's.
"""

from __future__ import annotations

from pathlib import Path

from .. import games
from .._native import Console as NativeConsole
from ..records import Array


class Console:
    """ALE's loadROM with `random_seed=seed`, then setMode and setDifficulty.

    A ROM that is none of the known games runs without score, lives and end.
    """

    def __init__(
        self,
        game: str | Path,
        *,
        seed: int = 0,
        repeat_action_probability: float = 0.0,
        mode: int | None = None,
        difficulty: int | None = None,
    ) -> None:
        if not 0.0 <= repeat_action_probability <= 1.0:
            raise ValueError(
                f"repeat_action_probability={repeat_action_probability} is no probability; "
                "use 0 to 1."
            )
        rom, index = _rom(game)
        self._native = NativeConsole(
            rom,
            index,
            seed,
            repeat_action_probability,
            -1 if mode is None else mode,
            -1 if difficulty is None else difficulty,
        )

    def reset(self) -> None:
        """ALE's reset_game."""
        self._native.reset()

    def act(
        self, action: int, action_b: int = 0, *, strength: float = 1.0, strength_b: float = 1.0
    ) -> int:
        """One frame with one of ALE's actions, 0 to 17; gives its reward.

        `action_b` is the second player's, for games in a mode of two players. A strength, 0 to 1,
        says how far an action turns a paddle; joysticks know none.
        """
        return int(self._native.act(action, action_b, strength, strength_b))

    def ram(self) -> Array:
        """[128] uint8."""
        ram: Array = self._native.ram()
        return ram

    def screen(self) -> Array:
        """[H, 160] uint8 colour indices."""
        picture: Array = self._native.screen()
        return picture

    def screen_gray(self) -> Array:
        """[H, 160] uint8."""
        picture: Array = self._native.screen_gray()
        return picture

    def screen_rgb(self) -> Array:
        """[H, 160, 3] uint8."""
        picture: Array = self._native.screen_rgb()
        return picture

    def snapshot(self) -> bytes:
        """Everything that decides the future, pictures and random stream included."""
        return bytes(self._native.snapshot())

    def restore(self, snapshot: bytes) -> None:
        """Continues from a snapshot of the same ROM."""
        self._native.restore(snapshot)

    @property
    def lives(self) -> int:
        return int(self._native.lives)

    @property
    def game_over(self) -> bool:
        return bool(self._native.game_over)

    @property
    def frame_number(self) -> int:
        return int(self._native.frame_number)

    @property
    def episode_frame_number(self) -> int:
        return int(self._native.episode_frame_number)

    @property
    def minimal_actions(self) -> list[int]:
        return list(self._native.minimal_actions)

    @property
    def legal_actions(self) -> list[int]:
        return list(self._native.legal_actions)

    @property
    def modes(self) -> list[int]:
        return list(self._native.modes)

    @property
    def difficulties(self) -> list[int]:
        return list(self._native.difficulties)


def _rom(game: str | Path) -> tuple[bytes, int]:
    """Bytes of the ROM and its row of the game table, -1 for a ROM without one."""
    path = Path(game)
    if path.is_file():
        rom = path.read_bytes()
        recognised = games.recognise(rom)
        return rom, -1 if recognised is None else recognised.index
    if isinstance(game, Path) or path.suffix.lower() in games.ROM_SUFFIXES:
        raise FileNotFoundError(f"There is no ROM file {str(path)!r}.")
    known = games.find(game)
    return games.rom_path(known).read_bytes(), known.index
