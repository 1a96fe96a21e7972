"""`make`: from a game's name and a few options to a vector environment.

Takes a game, names of an engine and a protocol, and overrides in the spelling of the peers; gives
an `EngineVectorEnv`. Knows which options are the engine's; all others are the protocol's.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from gymnasium.vector import AutoresetMode

from .. import protocols
from ..engines import build, default_name, kind
from ..engines.interface import Autoreset, EngineSettings, Game
from ..protocols import Protocol
from .vector import MODES, EngineVectorEnv

_OWN = {"game", "num_envs", "protocol", "autoreset"}
_ENGINE_OPTIONS = {field.name for field in fields(EngineSettings)} - _OWN


def make(
    game: Game,
    num_envs: int = 1,
    *,
    engine: str | None = None,
    protocol: str | Protocol | None = None,
    autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
    **options: Any,
) -> EngineVectorEnv:
    """A Gymnasium vector environment for an Atari game, any Gymnasium id, or a callable.

    Options are those of `EngineSettings` (seed, num_threads, num_workers, mode, ...), `batch_size`
    (environments that `recv` gives at a time), and those of `Protocol`, also as the peers spell
    them: frameskip, frame_stack, noop_max, episodic_life, repeat_action_probability, ...
    """
    name = default_name(game) if engine is None else engine
    if not isinstance(protocol, Protocol):
        protocol = protocols.get(protocol or kind(name).protocol)
    own = {option: options.pop(option) for option in _ENGINE_OPTIONS & options.keys()}
    if batch_size := options.pop("batch_size", None):
        own["num_groups"] = _num_groups(num_envs, batch_size)
    rules, autoreset = protocol.replace(**options), _autoreset(autoreset_mode)
    settings = EngineSettings(
        game=game, num_envs=num_envs, protocol=rules, autoreset=autoreset, **own
    )
    return EngineVectorEnv(build(name, settings))


def _num_groups(num_envs: int, batch_size: int) -> int:
    if batch_size < 0 or num_envs % batch_size:
        raise ValueError(
            f"batch_size={batch_size} does not divide num_envs={num_envs}; use a divisor."
        )
    return num_envs // batch_size


def _autoreset(mode: AutoresetMode | str) -> Autoreset:
    for name, value in MODES.items():
        if mode in (name, value, value.value):
            return name
    raise ValueError(f"autoreset_mode={mode!r} is unknown; choose one of {', '.join(MODES)}.")
