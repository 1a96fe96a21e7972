"""What the tests of engines on devices share: a device engine beside `native`, step by step."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import toys

from scanline import protocols
from scanline.engines import Engine, EngineSettings
from scanline.engines.native import NativeEngine

Build = Callable[[EngineSettings], Engine]


def settings_of(game: Any, protocol: str = "baselines", **options: Any) -> EngineSettings:
    """Options that name a field of the protocol replace it there."""
    rules = protocols.get(protocol)
    fields = {field.name for field in dataclasses.fields(rules)}
    own = {name: options.pop(name) for name in list(options) if name in fields}
    return EngineSettings(
        game=game, protocol=rules.replace(**own), **{"num_envs": 3, "seed": 4, **options}
    )


def assert_plays_like_native(
    build: Build, settings: EngineSettings, num_steps: int, snapshot_at: Sequence[int] = ()
) -> dict[str, int]:
    """Every array, counter and snapshot is equal; how often what happened."""
    native, other = NativeEngine(settings), build(settings)
    happened = {"ended": 0, "life_lost": 0}
    try:
        assert other.spaces == native.spaces
        both = [toys.step_arrays(settings.group_size, native.spaces) for _ in range(2)]
        for group in range(settings.num_groups):
            for engine, out in zip((native, other), both, strict=True):
                engine.reset(group, out)
            assert_equal(native, other, both, group, "reset")
        actions = toys.random_actions(num_steps, settings.num_envs, native.spaces.num_actions)
        for step, row in enumerate(actions):
            for group in range(settings.num_groups):
                for engine, out in zip((native, other), both, strict=True):
                    engine.send(group, row[settings.rows(group)])
                    engine.recv(group, out)
                assert_equal(native, other, both, group, f"step {step}")
                happened["ended"] += int((both[0].terminated | both[0].truncated).sum())
                happened["life_lost"] += int(both[0].life_lost.sum())
            if step in snapshot_at:
                assert other.snapshot() == native.snapshot(), f"snapshots differ at step {step}"
    finally:
        native.close()
        other.close()
    return happened


def assert_equal(native: Engine, other: Engine, both: Any, group: int, when: str) -> None:
    """Rows of `final_frame` that nobody wrote keep the same poison."""
    one, two = (toys.columns(out) for out in both)
    for name in one:
        assert np.array_equal(one[name], two[name]), f"{name} differs at {when}, group {group}"
    counters = native.counters(group), other.counters(group)
    for name in counters[0]:
        assert np.array_equal(counters[0][name], counters[1][name]), f"{name} differs at {when}"
