"""Environments that go wrong in the middle of a run, for Gymnasium as `late_trouble:ID`."""

from __future__ import annotations

import os
import signal
from typing import Any

import gymnasium

from scanline.envs.catch import Catch

RAISES, DIES = "LateRaise-v0", "LateDeath-v0"


class Late(Catch):
    """Catch that goes wrong at its 300th step."""

    def __init__(self, trouble: str, **settings: Any) -> None:
        super().__init__(**settings)
        self._trouble, self._count = trouble, 0

    def step(self, action: Any) -> Any:
        self._count += 1
        if self._count == 300 and self._trouble == "raise":
            raise KeyError("the ball is gone")
        if self._count == 300:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().step(action)


for _id, _trouble in ((RAISES, "raise"), (DIES, "die")):
    if _id not in gymnasium.registry:
        gymnasium.register(
            _id, entry_point="late_trouble:Late", kwargs={"trouble": _trouble}, order_enforce=False
        )
