"""`make`: from a game's name and a few options to a vector environment.

Takes a game, names of an engine and a protocol, and overrides in the spelling of the peers; gives
an `EngineVectorEnv`. Knows which options are the engine's; all others are the protocol's.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import gymnasium
from gymnasium.vector import AutoresetMode

from .. import engines, memory, protocols
from ..engines import build, default_name, kind
from ..engines.interface import Autoreset, EngineSettings, Game
from ..protocols import Protocol
from .console import Console
from .registration import spec_of
from .vector import MODES, EngineVectorEnv

_OWN = {"game", "num_envs", "protocol", "autoreset", "renders"}
_ENGINE_OPTIONS = {field.name for field in fields(EngineSettings)} - _OWN


class OptionError(ValueError, gymnasium.error.Error):
    """An option that cannot be; also Gymnasium's error, which users of ale-py catch."""


def make(
    game: Game,
    num_envs: int = 1,
    *,
    engine: str | None = None,
    protocol: str | Protocol | None = None,
    autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
    render_mode: str | None = None,
    **options: Any,
) -> EngineVectorEnv:
    """A Gymnasium vector environment for an Atari game, any Gymnasium id, or a callable.

    Of a list of games environment i plays entry i, and the list begins anew where it ends: with
    three games and num_envs=6 each is played twice. ale-py and EnvPool have one game per vector
    environment; this order keeps all games in every batch of `batch_size` that holds them once.
    Games whose numbers of actions differ are played with all 18.

    Options are those of `EngineSettings` (seed, num_threads, num_workers, mode, ...), `batch_size`
    (environments that `recv` gives at a time), and those of `Protocol`, also as the peers spell
    them: frameskip, frame_stack, noop_max, episodic_life, repeat_action_probability,
    obs_type='ram', ... With render_mode='rgb_array' `render` gives the consoles' screens.

    With continuous=True an action is (radius, angle, fire), float32, as in ale-py: a direction is
    pressed where its part of the radius exceeds `continuous_action_threshold`, 0.5 when not given,
    and the radius is how far a paddle is turned.
    """
    name = default_name(game) if engine is None else engine
    named = {"num_envs": num_envs, "engine": engine, "protocol": protocol, **options}
    if not isinstance(protocol, Protocol):
        protocol = protocols.get(protocol or kind(name).protocol)
    own = {option: options.pop(option) for option in _ENGINE_OPTIONS & options.keys()}
    if batch_size := options.pop("batch_size", None):
        own["num_groups"] = _num_groups(num_envs, batch_size)
    autoreset = _autoreset(autoreset_mode)
    polar_threshold = _polar_threshold(name, options)
    try:
        if name == "native" and _actions_differ(game):
            options.setdefault("full_action_space", True)
        rules = protocol.replace(**options)
        settings = EngineSettings(
            game=game,
            num_envs=num_envs,
            protocol=rules,
            autoreset=autoreset,
            renders=render_mode is not None,
            **own,
        )
    except ValueError as error:
        raise OptionError(str(error)) from error
    memory.told([engines.memory(name, settings)], {memory.HOST: memory.available_bytes()})
    envs = EngineVectorEnv(build(name, settings), render_mode, polar_threshold)
    envs.spec = spec_of(game, {**named, "autoreset_mode": MODES[autoreset]})
    return envs


def _polar_threshold(engine: str, options: dict[str, Any]) -> float | None:
    """Takes what continuous actions need from the options; None for discrete ones."""
    threshold = float(options.pop("continuous_action_threshold", 0.5))
    if not options.pop("continuous", False):
        return None
    if engine != "native":
        raise ValueError(f"Engine {engine!r} has no continuous actions; use engine='native'.")
    if not 0 <= threshold <= 1:
        raise ValueError(f"continuous_action_threshold={threshold} must lie in 0 to 1.")
    options["full_action_space"] = True
    return threshold


def _num_groups(num_envs: int, batch_size: int) -> int:
    if batch_size < 0 or num_envs % batch_size:
        raise ValueError(
            f"batch_size={batch_size} does not divide num_envs={num_envs}; use a divisor."
        )
    return num_envs // batch_size


def _actions_differ(game: Game) -> bool:
    """Whether a list names games whose minimal sets of actions are not of one size."""
    listed = [game] if isinstance(game, str) or callable(game) else sorted(set(game))
    return len(listed) > 1 and len({len(Console(str(name)).minimal_actions) for name in listed}) > 1


def _autoreset(mode: AutoresetMode | str) -> Autoreset:
    for name, value in MODES.items():
        if mode in (name, value, value.value):
            return name
    raise ValueError(f"autoreset_mode={mode!r} is unknown; choose one of {', '.join(MODES)}.")
