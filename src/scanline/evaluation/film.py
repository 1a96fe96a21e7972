"""A film of one game, as mp4 and gif.

Takes an engine with one environment and a policy; writes two files.
Knows no learner. imageio (extra `video`) is imported only here, and only when a film is made.

An engine that can show its screen in colour is filmed as a player would see it; of any other the
newest frame of the observation is shown, enlarged.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np

from ..engines.interface import Engine
from ..records import Array, Policy, Slot, to_array
from ..samplers import LockstepSampler

_WIDTH_PIXELS = 320
_RAW_FRAMES_PER_SECOND = 60


@runtime_checkable
class Pictured(Protocol):
    """An engine that can show its screens."""

    def picture(self, env: int) -> Array:
        """The screen of one environment, uint8 [H, W, 3]."""


@dataclass(frozen=True, kw_only=True)
class Film:
    """What was filmed."""

    score: float
    agent_steps: int
    mp4: Path
    gif: Path


def make_film(
    engine: Engine, policy: Policy, *, seed: int, most_agent_steps: int, out: Path
) -> Film:
    """Plays one game and writes `out.mp4` and `out.gif`."""
    writer = _imageio()
    sampler = LockstepSampler(engine, seed)
    sampler.reset()
    slot = Slot.allocate(engine.spaces, 1, 1, {})
    pictures, score = [], 0.0
    for _ in range(most_agent_steps):
        sampler.collect(policy, into=slot)
        pictures.append(enlarged(picture_of(engine, slot)))
        score += float(slot.raw_reward[0, 0])
        if sampler.drain_episodes():
            break
    frames_per_second = _RAW_FRAMES_PER_SECOND / engine.settings.protocol.frame_skip
    out.parent.mkdir(parents=True, exist_ok=True)
    mp4, gif = out.with_suffix(".mp4"), out.with_suffix(".gif")
    writer.mimwrite(mp4, pictures, fps=frames_per_second, macro_block_size=2)
    writer.mimwrite(gif, pictures[::2], duration=2000 / frames_per_second, loop=0)
    return Film(score=score, agent_steps=len(pictures), mp4=mp4, gif=gif)


def picture_of(engine: Engine, slot: Slot) -> Array:
    """The screen in colour where the engine can show it, else the newest frame."""
    if isinstance(engine, Pictured):
        return engine.picture(0)
    frame = to_array(slot.frames[-1, 0])
    if frame.ndim == 1:
        raise ValueError("This environment has no pictures to film: its observations are vectors.")
    return frame if frame.ndim == 3 else np.repeat(frame[:, :, None], 3, axis=2)


def enlarged(picture: Array) -> Array:
    """Every pixel as a square block, with even sides as video codecs want them."""
    factor = max(1, _WIDTH_PIXELS // picture.shape[1])
    large = picture.repeat(factor, axis=0).repeat(factor, axis=1)
    return large[: large.shape[0] // 2 * 2, : large.shape[1] // 2 * 2]


def _imageio() -> Any:
    try:
        return importlib.import_module("imageio.v2")
    except ImportError as error:
        raise ImportError(
            "Films need imageio with ffmpeg; get it with: pip install 'scanline[video]'"
        ) from error
