"""One environment as a `gymnasium.Env`: `scanline.make_single`.

Takes a game and the options of `scanline.make`; gives observations, rewards and ends of the same
numbers as `make` with one environment, without its first axis. Knows no engine.
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np

from ..engines.interface import Game
from ..records import Array
from .make import make
from .recorders import KEY, episode_key
from .registration import spec_of
from .vector import FRAMES_PER_SECOND


class SingleEnv(gymnasium.Env[Array, np.int64]):
    """One game, reset by its user only.

    Where the protocol ends an episode with a life, the reset after it goes on with the same game.
    """

    metadata = {  # noqa: RUF012 (Gymnasium's form)
        "render_modes": ["rgb_array"],
        "render_fps": FRAMES_PER_SECOND // 4,
    }

    def __init__(self, game: Game, render_mode: str | None = None, **options: Any) -> None:
        self._envs = make(game, 1, autoreset_mode="disabled", render_mode=render_mode, **options)
        self.metadata = {**self.metadata, "render_fps": self._envs.metadata["render_fps"]}
        self.render_mode, self.protocol = render_mode, self._envs.protocol
        self.observation_space = self._envs.single_observation_space
        self.action_space = self._envs.single_action_space
        self.spec = spec_of(game, options)
        self._is_reset = False

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Array, dict[str, Any]]:
        if options:
            raise ValueError(f"reset has no option {', '.join(map(repr, sorted(options)))}.")
        goes_on = self._is_reset and seed is None
        mask = {"reset_mask": np.ones(1, np.bool_)} if goes_on else {}
        observations, info = self._envs.reset(seed=seed, options=mask)
        super().reset(seed=seed)
        self._is_reset = True
        return observations[0], _first(info)

    def step(
        self, action: np.int64 | int | Array
    ) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        observations, rewards, terminated, truncated, info = self._envs.step(np.asarray([action]))
        own = _first(info)
        if KEY in own:
            own[episode_key(self)] = own.pop(KEY)
        return observations[0], float(rewards[0]), bool(terminated[0]), bool(truncated[0]), own

    def render(self) -> Array | None:
        """The console's screen in colour, uint8 [H, 160, 3]; None without a render mode."""
        return None if self.render_mode is None else self._envs.render()[0]

    def snapshot(self) -> bytes:
        """The whole state."""
        return self._envs.snapshot()[0]

    def restore(self, snapshot: bytes) -> Array:
        """Continues from a snapshot; gives the observation there."""
        self._is_reset = True
        observation: Array = self._envs.restore([snapshot])[0]
        return observation

    def close(self) -> None:
        self._envs.close()


def make_single(
    game: Game, *, render_mode: str | None = None, **options: Any
) -> gymnasium.Env[Array, np.int64]:
    """One environment of an Atari game, any Gymnasium id, or a callable; options as for `make`.

    render_mode: None, `rgb_array`, or `human` for a window, which needs pygame and a screen.
    """
    if render_mode != "human":
        return SingleEnv(game, render_mode, **options)
    return gymnasium.wrappers.HumanRendering(SingleEnv(game, "rgb_array", **options))


def _first(info: dict[str, Any]) -> dict[str, Any]:
    """The only environment's part of an info, without masks and its number."""
    return {
        name: _first(value) if isinstance(value, dict) else value[0].item()
        for name, value in info.items()
        if not name.startswith("_") and name != "env_id"
    }
