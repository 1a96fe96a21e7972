"""What a caller gives to a vector environment: checked, and brought into the engine's form.

Takes actions, numbers of environments, reset options and render modes; gives arrays, or raises one
sentence with what is allowed. Knows no engine's inside.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from gymnasium.spaces import Box

from ..engines.interface import Engine, ScreenEngine
from ..records import Array

_ACTIONS = np.array(  # ALE's, [left, none, right][down, none, up][fire]
    [
        [(9, 17), (4, 12), (7, 15)],
        [(5, 13), (0, 1), (2, 10)],
        [(8, 16), (3, 11), (6, 14)],
    ]
)


def polar_space() -> Box:
    """Continuous actions, as the Arcade Learning Environment has them: radius, angle and fire."""
    return Box(np.array([0, -np.pi, 0], np.float32), np.array([1, np.pi, 1], np.float32))


class Actions(NamedTuple):
    """One action per environment."""

    indices: Array  # [n] int64
    strengths: Array | None = None  # [n] float32, 0 to 1: how far paddles are turned; None: 1

    def part(self, places: Array) -> Actions:
        """Those of some environments, in the order of their places."""
        strengths = None if self.strengths is None else self.strengths[places]
        return Actions(self.indices[places], strengths)


def checked_actions(given: Any, num: int, num_actions: int) -> Actions:
    """One action per environment, as int64."""
    found = np.asarray(given)
    if found.shape != (num,):
        raise ValueError(f"actions have shape {found.shape}; give one per environment, {(num,)}.")
    if not np.issubdtype(found.dtype, np.integer):
        raise TypeError(f"actions are {found.dtype}; give integers, such as int64.")
    if found.min() < 0 or found.max() >= num_actions:
        raise ValueError(
            f"actions are {found.min()} to {found.max()}; they must lie in 0..{num_actions - 1}."
        )
    return Actions(found.astype(np.int64, copy=False))


def polar_actions(given: Any, num: int, threshold: float) -> Actions:
    """The nearest of ALE's 18 actions to each (radius, angle, fire), float32 [num, 3].

    A direction is pressed where its part of the radius exceeds the threshold, and the button where
    `fire` does; the radius is how far a paddle is turned.
    """
    found = np.asarray(given)
    if found.shape != (num, 3):
        raise ValueError(
            f"actions have shape {found.shape}; give radius, angle and fire per environment, "
            f"{(num, 3)}."
        )
    if found.dtype != np.float32:
        raise TypeError(f"actions are {found.dtype}; give float32.")
    radius, angle, fire = found.T
    if not (np.isfinite(found).all() and radius.min() >= 0 and radius.max() <= 1):
        raise ValueError("actions must be finite, with a radius of 0 to 1.")
    across, along = radius * np.cos(angle), radius * np.sin(angle)
    column, row = ((x > threshold).astype(int) - (x < -threshold) for x in (across, along))
    indices = _ACTIONS[column + 1, row + 1, (fire > threshold).astype(int)]
    return Actions(indices, np.ascontiguousarray(radius))


def checked_groups(env_ids: Any, num_envs: int, batch_size: int) -> tuple[Array, list[int]]:
    """The environments in the order given, and the whole groups that they make."""
    chosen = np.arange(num_envs) if env_ids is None else np.asarray(env_ids)
    found = np.unique(chosen // batch_size)
    whole = (found[:, None] * batch_size + np.arange(batch_size)).ravel()
    fits = whole.size > 0 and whole[0] >= 0 and whole[-1] < num_envs
    if not fits or not np.array_equal(np.sort(chosen), whole):
        raise ValueError(
            f"env_ids {chosen.tolist()} are not whole groups of {batch_size} of the {num_envs} "
            "environments; send what recv gave, or all."
        )
    return chosen, found.tolist()


def checked_mask(options: Mapping[str, Any], num_envs: int) -> Array | None:
    """The reset mask, which may name no environment, or None for all of them."""
    if unknown := sorted(options.keys() - {"reset_mask"}):
        raise ValueError(
            f"reset has no option {', '.join(map(repr, unknown))}; it knows 'reset_mask' only."
        )
    if "reset_mask" not in options:
        return None
    given = options["reset_mask"]
    if not isinstance(given, np.ndarray) or given.dtype != np.bool_:
        raise TypeError("options['reset_mask'] must be a boolean NumPy array.")
    if given.shape != (num_envs,):
        raise ValueError(
            f"options['reset_mask'] has shape {given.shape}; it must have one entry per "
            f"environment, {(num_envs,)}."
        )
    return given


def checked_render_mode(render_mode: str | None, engine: Engine) -> str | None:
    if render_mode not in (None, "rgb_array"):
        raise ValueError(
            f"render_mode={render_mode!r} is none of a vector environment; use 'rgb_array', with "
            "gymnasium.wrappers.vector.HumanRendering around it for a window."
        )
    has_pictures = isinstance(engine, ScreenEngine) or engine.spaces.is_image
    if render_mode is not None and not has_pictures:
        raise ValueError(
            f"Engine {engine.name!r} shows no screens; render with engine='native', or with "
            "observations that are pictures."
        )
    return render_mode
