"""Engines: what steps the environments, by name.

Takes a name and `EngineSettings`; gives an `Engine`. Knows the list of engines, and imports one
only when it is built: an engine that is not used costs nothing and may be missing.

The order of `KINDS` is the order of preference among those that play Atari.
Importing this package also registers the toy games, `scanline/Catch-v0` and
its like, with Gymnasium.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

# Not `import gymnasium`: the submodule of that name would take its place in this package.
from gymnasium import register, registry

from .. import games
from ..errors import RefusedError, look_up
from ..memory import Share
from ..processes import granted_cores
from .interface import Engine as Engine
from .interface import EngineError as EngineError
from .interface import EngineSettings as EngineSettings
from .interface import Game as Game
from .interface import ProtocolRefusedError as ProtocolRefusedError
from .interface import ResetKind as ResetKind


@dataclass(frozen=True, kw_only=True)
class EngineKind:
    """One row of the table of engines; the module of its name has `build(settings)`."""

    summary: str
    """One sentence for `scanline list engines`."""
    protocol: str
    """The preset that the engine honours and uses when none is named."""
    version: Callable[[], str]
    """What games depend on: the version of a package, or a fingerprint of sources."""
    env_bytes: int
    """Memory of one environment, roughly and rather less, its frames aside."""
    worker_bytes: int = 0
    """Memory of one worker process, where it has such."""
    compiled: str | None = None
    """Module of this package that must have been compiled for it."""
    package: str | None = None
    """Package of an extra without which it is not listed."""

    @property
    def is_available(self) -> bool:
        """Whether its compiled part and its extra are here; `build` says what else is missing."""
        is_compiled = self.compiled is None or importlib.util.find_spec(self.compiled) is not None
        return is_compiled and self.is_listed

    @property
    def is_listed(self) -> bool:
        """Whether lists for users name it."""
        try:
            return self.package is None or importlib.util.find_spec(self.package) is not None
        except ModuleNotFoundError:  # of a package in a package that is missing
            return False


def _package_version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def _core_fingerprint() -> str:
    return f"core {importlib.import_module('scanline._native').CORE_FINGERPRINT}"


KINDS: Mapping[str, EngineKind] = {
    "native": EngineKind(
        summary="Our own emulator in C++ threads, equal to ALE.",
        protocol="baselines",
        version=_core_fingerprint,
        env_bytes=140_000,
        compiled="scanline._native",
    ),
    "ale": EngineKind(
        summary="ale-py's own vector environment in C++ threads, the reference.",
        protocol="ale-vector",
        version=partial(_package_version, "ale-py"),
        env_bytes=140_000,
    ),
    "gymnasium": EngineKind(
        summary="Worker processes with several environments each, for any Gymnasium id.",
        protocol="as-is",
        version=partial(_package_version, "gymnasium"),
        env_bytes=10_000,
        worker_bytes=25_000_000,
    ),
    "opencl": EngineKind(
        summary="The same emulator on an OpenCL device: whole agent steps, by kernels.",
        protocol="baselines",
        version=_core_fingerprint,
        env_bytes=140_000,
        compiled="scanline._native",
        package="pyopencl",
    ),
    "cuda": EngineKind(
        summary="The same emulator on an NVIDIA GPU: whole agent steps, by kernels.",
        protocol="baselines",
        version=_core_fingerprint,
        env_bytes=140_000,
        compiled="scanline._native",
        package="cuda.core",
    ),
}
_FOR_TESTS = {
    "gpu-host": EngineKind(
        summary="The kernels of a GPU as loops in this process.",
        protocol="baselines",
        version=_core_fingerprint,
        env_bytes=140_000,
        compiled="scanline._native",
    )
}
"""Engines that no list and no refusal names."""


def kind(name: str) -> EngineKind:
    """The engine of this name."""
    return _FOR_TESTS.get(name) or look_up("engine", name, KINDS)


def version(name: str) -> str:
    """An engine with what its games depend on, such as `native core 0123456789ab`."""
    return f"{name} {kind(name).version()}"


def default_name(game: Game) -> str:
    """The engine for a game: the first available for Atari, `gymnasium` for anything else."""
    first = game if isinstance(game, str) or callable(game) else game[0]
    if not isinstance(first, str) or ":" in first:
        return "gymnasium"
    try:
        game_found = games.find(first)
    except ValueError:
        if first in registry:
            return "gymnasium"
        raise
    entry = registry[first].entry_point if first in registry else "ale_py"
    if not str(entry).startswith("ale_py"):
        raise RefusedError(
            f"{first!r} is a game of Gymnasium's and one of Atari's; give "
            f"{game_found.gymnasium_id!r} for Atari's, or the engine 'gymnasium' for the other."
        )
    return next(name for name, row in KINDS.items() if row.is_available)


def memory(name: str, settings: EngineSettings) -> Share:
    """What an engine takes, its workers included."""
    rules, row = settings.protocol, kind(name)
    frame_bytes = 0 if rules.colour == "as-is" else rules.height * rules.width
    workers = granted_cores() if settings.num_workers is None else settings.num_workers
    return Share(
        f"{settings.num_envs:,} environments of the engine {name!r}",
        settings.num_envs * (row.env_bytes + (rules.stack + 1) * frame_bytes)
        + workers * row.worker_bytes,
        lambda left: "use a smaller num_envs",
    )


def build(name: str, settings: EngineSettings) -> Engine:
    """An engine, ready to be reset; `memory` says before what it takes."""
    kind(name)
    module = importlib.import_module(f".{name.replace('-', '_')}", __name__)
    engine: Engine = module.build(settings)
    # Wrappers read torch, which workers do without.
    if settings.uneven_seconds:
        from .wrapped import UnevenEngine

        engine = UnevenEngine(engine)
    if settings.is_paused is not None:
        from .wrapped import PausableEngine

        engine = PausableEngine(engine, settings.is_paused)
    return engine


TOY = "scanline/Catch-v0"
TOYS = {
    TOY: "catch:Catch",
    "scanline/Corridor-v0": "corridor:Corridor",
    "scanline/Recall-v0": "recall:Recall",
}
for _id, _entry in TOYS.items():
    if _id not in registry:
        register(_id, entry_point=f"scanline.envs.{_entry}")
