"""Engine `opencl` gives what engine `native` gives, on Intel's OpenCL for processors."""

from __future__ import annotations

import subprocess
import sys

import devices
import pytest

from scanline import engines
from scanline.engines import EngineSettings


def build(settings: EngineSettings) -> engines.Engine:
    return engines.build("opencl", settings)


# Cartridge types 2K, 4K, F8 and DPC: each is compiled once, and then comes from pyopencl's cache.
@pytest.mark.parametrize(
    ("game", "num_steps"),
    [
        ("pong", 300),
        ("breakout", 300),
        ("space_invaders", 300),
        ("asteroids", 150),
        ("pitfall2", 150),
    ],
)
def test_it_plays_like_native(game: str, num_steps: int) -> None:
    settings = devices.settings_of(game, num_envs=4, num_groups=2, episode_limit_frames=500)
    happened = devices.assert_plays_like_native(
        build, settings, num_steps, snapshot_at=(5, num_steps - 1)
    )
    assert happened["ended"] >= 2


def test_a_missing_driver_is_one_sentence() -> None:
    program = (
        "import pyopencl as cl, scanline.engines.opencl as o\n"
        "def none(): raise cl.LogicError('PLATFORM_NOT_FOUND_KHR')\n"
        "cl.get_platforms = none\n"
        "try: o.OpenCLLauncher()\n"
        "except ValueError as error: print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("Engine 'opencl' finds no OpenCL driver; install")
    assert done.stdout.count("\n") == 1
