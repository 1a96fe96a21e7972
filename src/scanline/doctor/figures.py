"""Figures of a machine: launch latency, copies, the emulator on one core.

Takes a device; gives seconds and bytes per second. Knows no recipe. A copy and a launch on the CPU
are what they cost there: a call of PyTorch, and a copy within memory.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import numpy as np
import torch

from .. import engines, protocols
from ..devices import Device, download
from ..records import StepArrays

_REPEATS = 5


def _median_seconds(work: Callable[[], object], done: Callable[[], object]) -> float:
    """Of a few repeats, the first of which is not counted."""
    seconds = []
    for _ in range(_REPEATS + 1):
        begun = time.perf_counter()
        work()
        done()
        seconds.append(time.perf_counter() - begun)
    return statistics.median(seconds[1:])


def launch_seconds(device: Device, num_launches: int = 1_000) -> float:
    """One small operation, of many that are not waited for."""
    number = device.zeros((1,))

    def launch() -> None:
        for _ in range(num_launches):
            number.add_(1.0)

    return _median_seconds(launch, lambda: download(number)) / num_launches


def wait_seconds(device: Device) -> float:
    """One operation and its result back on the host: the least that a decision takes."""
    number = device.zeros((1,))
    return _median_seconds(lambda: number.add_(1.0), lambda: download(number))


def copy_bytes_per_second(device: Device, num_bytes: int = 64 << 20) -> dict[str, float]:
    """Large copies from the host (`up`) and to it (`down`)."""
    host = device.staging((num_bytes,), torch.uint8)
    there = device.empty((num_bytes,), torch.uint8)
    up = _median_seconds(lambda: device.upload_into(there, host), lambda: download(there[:1]))
    down = _median_seconds(lambda: host.copy_(there), lambda: None)
    return {"up": num_bytes / up, "down": num_bytes / down}


def emulator_steps_per_second(
    game: str, engine: str, seconds: float = 1.5, num_envs: int = 4
) -> float:
    """Agent steps of one engine thread, or of a device, with random actions and observations."""
    rules = protocols.get(engines.kind(engine).protocol)
    settings = engines.EngineSettings(game=game, num_envs=num_envs, num_threads=1, protocol=rules)
    built = engines.build(engine, settings)
    try:
        arrays = StepArrays.allocate(built.spaces, settings.num_envs)
        built.reset(0, arrays)
        draws, steps = np.random.default_rng(0), 0
        begun = time.perf_counter()
        while time.perf_counter() - begun < seconds:
            built.send(0, draws.integers(built.spaces.num_actions, size=settings.num_envs), arrays)
            built.recv(0, arrays)
            steps += settings.num_envs
        return steps / (time.perf_counter() - begun)
    finally:
        built.close()
