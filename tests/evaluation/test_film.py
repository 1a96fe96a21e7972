"""A film shows the console as a television did: every raw frame, in colour, sixty a second, 4:3."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import av
import imageio.v2 as imageio
import numpy as np
import torch
from numpy.testing import assert_array_equal

import scanline
from scanline import engines, evaluation, protocols
from scanline.engines import EngineSettings
from scanline.evaluation.film import scaled
from scanline.records import Acted, Array, Slot
from scanline.samplers import LockstepSampler


class Cycle:
    """The actions in turn, whatever is seen."""

    version = 0
    draws_per_step = 2

    def __init__(self, num_actions: int) -> None:
        self._num_actions, self._calls = num_actions, 0

    def __call__(
        self, observations: torch.Tensor, uniforms: torch.Tensor, agent_steps: int
    ) -> Acted:
        self._calls += 1
        actions = torch.full((len(observations),), self._calls % self._num_actions)
        return Acted(actions, {})


def atari(game: str, protocol: protocols.Protocol) -> engines.Engine:
    settings = EngineSettings(game=game, num_envs=1, protocol=protocol, reset="ale", num_threads=1)
    return engines.build("native", settings)


def decoded(mp4: Path) -> tuple[list[Array], float]:
    """Pictures [H, W, 3] of a film, and how many are shown in a second."""
    with av.open(str(mp4)) as film:
        video = film.streams.video[0]
        pictures = [frame.to_ndarray(format="rgb24") for frame in film.decode(video)]
        return pictures, float(video.average_rate)


def recorded(engine: engines.Engine, num_steps: int) -> list[Array]:
    sampler, slot = LockstepSampler(engine, 0), Slot.allocate(engine.spaces, 1, 1, {})
    sampler.reset()
    engine.start_recording(0)  # type: ignore[attr-defined]
    policy, taken = Cycle(engine.spaces.num_actions), []
    for _ in range(num_steps):
        sampler.collect(policy, into=slot)
        taken.append(engine.take_recorded(0))  # type: ignore[attr-defined]
    engine.close()
    return taken


def test_every_raw_frame_is_recorded_as_the_bare_console_shows_it() -> None:
    protocol = dataclasses.replace(protocols.get("baselines"), noop_min=0, noop_max=0)
    pictures = recorded(atari("breakout", dataclasses.replace(protocol, fire_reset="none")), 12)
    console = scanline.Console("breakout", seed=0)
    console.reset()
    for step, taken in enumerate(pictures, 1):
        assert taken.shape == (4, 210, 160, 3) and taken.dtype == np.uint8
        for picture in taken:
            console.act(console.minimal_actions[step % 4])
            assert_array_equal(picture, console.screen_rgb())


def test_a_recording_ends_with_its_game() -> None:
    protocol = dataclasses.replace(protocols.get("baselines"), episode_limit_frames=40)
    pictures = recorded(atari("pong", protocol), 30)
    assert sum(map(len, pictures)) == 40
    assert not len(pictures[-1])


def test_recording_changes_nothing() -> None:
    def played(records: bool) -> Array:
        engine = atari("riverraid", protocols.get("baselines"))
        sampler, slot = LockstepSampler(engine, 0), Slot.allocate(engine.spaces, 50, 1, {})
        sampler.reset()
        if records:
            engine.start_recording(0)  # type: ignore[attr-defined]
        sampler.collect(Cycle(engine.spaces.num_actions), into=slot)
        engine.close()
        return slot.frames.numpy()

    assert_array_equal(played(True), played(False))


def test_a_film_of_a_console_has_its_speed_and_shape(tmp_path: Path) -> None:
    engine = atari("pong", protocols.get("cule"))
    film = evaluation.make_film(engine, Cycle(6), seed=0, most_agent_steps=30, out=tmp_path / "a.b")
    engine.close()
    assert film.mp4.name == "a.b.mp4" and film.agent_steps == 30
    frames, frames_per_second = decoded(film.mp4)
    assert (frames_per_second, frames[0].shape, len(frames)) == (60, (480, 640, 3), 120)
    assert np.ptp(frames[100].astype(int), axis=2).max() > 40, "grey"
    gif = imageio.mimread(film.gif)
    assert gif[0].shape[:2] == (240, 320) and len(gif) <= 40


def test_a_film_of_observations_is_their_size_times_an_even_number(tmp_path: Path) -> None:
    protocol = protocols.get("as-is")
    settings = EngineSettings(game="scanline/Catch-v0", num_envs=1, protocol=protocol)
    engine = engines.build("gymnasium", settings)
    film = evaluation.make_film(engine, Cycle(3), seed=0, most_agent_steps=5, out=tmp_path / "film")
    height, width = engine.spaces.frame_shape
    engine.close()
    rows, columns, _ = decoded(film.mp4)[0][0].shape
    assert rows % (2 * height) == columns % (2 * width) == 0 and rows // height == columns // width


def test_pictures_are_scaled_by_the_nearest_pixel() -> None:
    picture = np.arange(2 * 3 * 3, dtype=np.uint8).reshape(2, 3, 3)
    large = scaled(picture, 4, 9)
    assert_array_equal(large, picture.repeat(2, axis=0).repeat(3, axis=1))
