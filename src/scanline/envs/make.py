"""`make`: from a game's name and a few words to a vector environment.

Takes a game, names of an engine and a protocol, and overrides in the spelling of the peers; gives
an `EngineVectorEnv`. Knows which words belong to the engine; all others are the protocol's.
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

_ENGINE_WORDS = {field.name for field in fields(EngineSettings)} - {
    "game",
    "num_envs",
    "protocol",
    "autoreset",
}


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
    rules = protocol if isinstance(protocol, Protocol) else None
    rules = rules or protocols.get(str(protocol or kind(name).protocol))
    words = {word: options.pop(word) for word in list(options) if word in _ENGINE_WORDS}
    if "batch_size" in options:
        words["num_groups"] = _num_groups(num_envs, options.pop("batch_size"))
    settings = EngineSettings(
        game=game,
        num_envs=num_envs,
        protocol=rules.replace(**options),
        autoreset=_autoreset(autoreset_mode),
        **words,
    )
    return EngineVectorEnv(build(name, settings))


def _num_groups(num_envs: int, batch_size: int | None) -> int:
    if not batch_size:
        return 1
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
