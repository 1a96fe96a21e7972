"""A film of one game, as mp4 and gif.

Takes an engine with one environment and a policy; writes two files.
Knows no learner. PyAV and imageio (extra `video`) are imported only here, and only when a film is
made. Both encode inside this process: a full disk is an `OSError`, and no child is left behind.

An engine that records its screens is filmed as a player would see the game: every raw frame, in
colour, sixty a second, in the 4:3 of a television. Of any other engine the newest frame of the
observation is shown once per agent step, enlarged.
"""

from __future__ import annotations

import contextlib
import importlib
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np

from ..carried import columns_of
from ..engines.interface import Engine
from ..envs.vector import coloured
from ..errors import MissingPackageError, RefusedError
from ..interfaces import Policy
from ..records import Array, Slot, to_array
from ..samplers import LockstepSampler

_RAW_FRAMES_PER_SECOND = 60
_SCREEN_PIXELS = (480, 640)
"""Rows and columns of a film of the console's screen: 4:3, as its television showed it."""
_WIDTH_PIXELS = 320
"""Least columns of a film of observations."""
_MP4_CRF = "12"
"""Quality of H.264: 0 is lossless, 51 the worst."""
_GIF_FRAMES_PER_SECOND = 20
_GIF_SECONDS = 20
"""A gif shows the end of the game, half as wide as the film."""


@runtime_checkable
class Recording(Protocol):
    """An engine that can keep the pictures of an environment's raw frames."""

    def start_recording(self, env: int) -> None:
        """Keeps them from now on, until the game starts anew."""

    def take_recorded(self, env: int) -> Array:
        """Pictures since the last call, uint8 [frames, H, W, 3]."""


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
    imageio = _package("imageio.v2")
    filmed = isinstance(engine, Recording)
    rate = frames_per_second(engine)
    every = max(1, round(rate / _GIF_FRAMES_PER_SECOND))
    mp4, gif = (out.with_name(f"{out.name}.{kind}") for kind in ("mp4", "gif"))
    out.parent.mkdir(parents=True, exist_ok=True)
    score, agent_steps, num_frames = 0.0, 0, 0
    shown: deque[Array] = deque(maxlen=_GIF_FRAMES_PER_SECOND * _GIF_SECONDS)
    with _mp4(mp4, rate) as add:
        for pictures, reward in played_pictures(engine, policy, seed, most_agent_steps):
            score, agent_steps = score + reward, agent_steps + 1
            for picture in pictures:
                rows, columns = _SCREEN_PIXELS if filmed else _enlarged(picture)
                add(scaled(picture, rows, columns))
                if num_frames % every == 0:
                    shown.append(scaled(picture, rows // 2, columns // 2))
                num_frames += 1
    imageio.mimwrite(gif, shown, duration=1000 * every / rate, loop=0)
    return Film(score=score, agent_steps=agent_steps, mp4=mp4, gif=gif)


def frames_per_second(engine: Engine) -> float:
    """Pictures of the engine that make a second of the console."""
    skip = 1 if isinstance(engine, Recording) else engine.settings.protocol.frame_skip
    return _RAW_FRAMES_PER_SECOND / skip


def played_pictures(
    engine: Engine, policy: Policy, seed: int, most_agent_steps: int
) -> Iterator[tuple[Array, float]]:
    """Pictures [frames, H, W, 3] and raw reward of every agent step of one game."""
    carried = columns_of(policy)
    sampler = LockstepSampler(engine, seed, carried=carried)
    sampler.reset()
    slot = Slot.allocate(engine.spaces, 1, 1, {}, carried)
    recorder = engine if isinstance(engine, Recording) else None
    if recorder is not None:
        recorder.start_recording(0)
    for _ in range(most_agent_steps):
        sampler.collect(policy, into=slot)
        pictures = observed(slot)[None] if recorder is None else recorder.take_recorded(0)
        yield pictures, float(slot.raw_reward[0, 0])
        if sampler.drain_episodes():
            return


def observed(slot: Slot) -> Array:
    """The newest frame of the first environment, [H, W, 3]."""
    frame = to_array(slot.frames[-1, 0])
    if frame.ndim == 1:
        raise RefusedError(
            "This environment has no pictures to film: its observations are vectors."
        )
    return coloured(frame)


def scaled(picture: Array, rows: int, columns: int) -> Array:
    """The picture [H, W, 3] with so many rows and columns, each the nearest of its own."""
    height, width, _ = picture.shape
    chosen = picture[np.arange(rows) * height // rows]
    return np.ascontiguousarray(chosen[:, np.arange(columns) * width // columns])


def _enlarged(picture: Array) -> tuple[int, int]:
    """Rows and columns of a multiple of the picture, even as video codecs want them."""
    height, width, _ = picture.shape
    factor = 2 * max(1, _WIDTH_PIXELS // (2 * width))
    return height * factor, width * factor


@contextlib.contextmanager
def _mp4(path: Path, frames_per_second: float) -> Iterator[Callable[[Array], None]]:
    """A function that adds a picture [H, W, 3] to the film; all pictures have one shape."""
    av = _package("av")
    with av.open(str(path), "w") as film:
        video = film.add_stream(
            "libx264", Fraction(frames_per_second), {"crf": _MP4_CRF, "preset": "veryfast"}
        )

        def add(picture: Array) -> None:
            if not video.codec_context.is_open:
                video.height, video.width, _ = picture.shape
            film.mux(video.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")))

        yield add
        film.mux(video.encode())


def _package(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise MissingPackageError(
            "Films need PyAV and imageio; get them with: pip install 'scanline[video]'"
        ) from error
