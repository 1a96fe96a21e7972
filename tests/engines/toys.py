"""Recordings that the engine tests share."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from scanline import engines, protocols
from scanline.engines import Engine, EngineSettings
from scanline.records import Spaces, StepArrays

POISON = 77


def step_arrays(num: int, spaces: Spaces) -> StepArrays:
    """Arrays of one group, full of poison."""
    frames = (num, *spaces.frame_shape)
    shapes = {
        "frame": (frames, spaces.frame_dtype),
        "final_frame": (frames, spaces.frame_dtype),
        "start_frames": ((num, spaces.num_start_frames, *spaces.frame_shape), spaces.frame_dtype),
        "depth": (num, "uint8"),
        "reward": (num, "float32"),
        "raw_reward": (num, "float32"),
        "terminated": (num, "bool"),
        "truncated": (num, "bool"),
        "life_lost": (num, "bool"),
        "lives": (num, "int32"),
    }
    return StepArrays(**{name: np.full(s, POISON, dtype) for name, (s, dtype) in shapes.items()})


def columns(arrays: StepArrays) -> dict[str, np.ndarray]:
    return {field.name: getattr(arrays, field.name) for field in dataclasses.fields(arrays)}


def build(kind: str, game: Any, *, protocol: Any = None, **options: Any) -> Engine:
    rules = protocols.get(engines.kind(kind).protocol) if protocol is None else protocol
    return engines.build(kind, EngineSettings(game=game, protocol=rules, **options))


def random_actions(num_steps: int, num_envs: int, num_actions: int) -> np.ndarray:
    return np.random.default_rng(5).integers(0, num_actions, (num_steps, num_envs))


def record(
    engine: Engine, actions: Sequence[np.ndarray], *, tells_early: bool = False
) -> dict[str, np.ndarray]:
    """Plays the actions with all groups in flight at once; gives [T + 1, N, ...] per column.

    `tells_early` names the arrays when actions are sent, and not only when results are received.
    """
    size, num_groups = engine.settings.group_size, engine.settings.num_groups
    rows = [slice(g * size, (g + 1) * size) for g in range(num_groups)]
    history = []

    def gather(outs: list[StepArrays]) -> None:
        parts = [columns(out) for out in outs]
        history.append({name: np.concatenate([p[name] for p in parts]) for name in parts[0]})

    outs = [step_arrays(size, engine.spaces) for _ in rows]
    for group, out in enumerate(outs):
        engine.reset(group, out)
    gather(outs)
    for step in actions:
        outs = [step_arrays(size, engine.spaces) for _ in rows]
        for group in range(num_groups):
            engine.send(group, step[rows[group]], outs[group] if tells_early else None)
        for group in reversed(range(num_groups)):
            engine.recv(group, outs[group])
        gather(outs)
    return {name: np.stack([row[name] for row in history]) for name in history[0]}
