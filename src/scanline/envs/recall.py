"""Recall: a toy game that needs a memory, `scanline/Recall-v0`.

Shows a cue for one step, then nothing, then a lamp; the action at the lamp earns +1 where it is the
cue's and -1 where it is another. Knows only Gymnasium and NumPy.

What an observation shows does not say what to do, and the cue is older than any usual stack: a
policy without memory stays at the score of chance. New rounds follow within one game, so a memory
that is never overwritten fails too, and so does one that another environment's state gets into.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt

from ..engines.snapshots import Bound, checked

ID = "scanline/Recall-v0"
Lamps = npt.NDArray[np.uint8]


@dataclass(frozen=True, kw_only=True)
class RecallSettings:
    """How the game is played."""

    cues: int = 3
    """Different cues, and actions."""
    delay: int = 4
    """Agent steps between the cue and the lamp, at which nothing is shown."""
    rounds: int = 4
    """Cues per game."""

    def __post_init__(self) -> None:
        for field, least in (("cues", 2), ("delay", 0), ("rounds", 1)):
            if getattr(self, field) < least:
                raise ValueError(f"{field}={getattr(self, field)} must be at least {least}.")


class Recall(gymnasium.Env[Lamps, np.int64]):
    """The environment behind `scanline/Recall-v0`; keywords are the fields of `RecallSettings`."""

    metadata = {"render_modes": []}  # noqa: RUF012 (Gymnasium's form)

    def __init__(self, render_mode: str | None = None, **settings: Any) -> None:
        self._settings = RecallSettings(**settings)
        cues = self._settings.cues
        self.observation_space = gymnasium.spaces.Box(0, 255, (cues + 1,), np.uint8)
        self.action_space = gymnasium.spaces.Discrete(cues)
        self._game = {"round": 0, "step": 0, "cue": 0}

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Lamps, dict[str, Any]]:
        super().reset(seed=seed)
        self._game = {"round": 0, "step": 0, "cue": self._drawn()}
        return self._lamps(), {}

    def step(self, action: np.int64 | int) -> tuple[Lamps, float, bool, bool, dict[str, Any]]:
        game, reward = self._game, 0.0
        if game["step"] <= self._settings.delay:
            game["step"] += 1
        else:
            reward = 1.0 if int(action) == game["cue"] else -1.0
            game |= {"round": game["round"] + 1, "step": 0, "cue": self._drawn()}
        return self._lamps(), reward, game["round"] == self._settings.rounds, False, {}

    def snapshot(self) -> bytes:
        """The whole state, random generator included."""
        state = {"game": self._game, "random": self.np_random.bit_generator.state}
        return json.dumps(state).encode()

    def restore(self, snapshot: bytes) -> None:
        rules = self._settings
        most = {"round": rules.rounds, "step": rules.delay + 1, "cue": rules.cues - 1}
        try:
            state = json.loads(snapshot)
            game = checked(state["game"], {n: Bound(int, 0, top) for n, top in most.items()})
            self.np_random.bit_generator.state = state["random"]
        except (KeyError, TypeError, OverflowError, RecursionError) as error:
            raise ValueError("This is no snapshot of Recall.") from error
        self._game = game

    def _drawn(self) -> int:
        return int(self.np_random.integers(self._settings.cues))

    def _lamps(self) -> Lamps:
        """One per cue, and the one that asks for it."""
        lamps, game = np.zeros(self._settings.cues + 1, np.uint8), self._game
        if game["step"] == 0:
            lamps[game["cue"]] = 255
        elif game["step"] > self._settings.delay:
            lamps[-1] = 255
        return lamps
