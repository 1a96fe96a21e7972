"""The table of engines: names, defaults, and no import that nobody asked for."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
import toy_envs
import toys

from scanline import engines, protocols
from scanline.engines import Engine


def test_every_engine_has_a_sentence_and_a_protocol() -> None:
    for kind in engines.KINDS.values():
        assert kind.summary.endswith(".")
        assert kind.protocol in protocols.PRESETS


@pytest.mark.parametrize("name", engines.KINDS)
def test_every_engine_keeps_the_interface(name: str) -> None:
    if not engines.kind(name).is_available:
        pytest.skip(f"engine {name} is not compiled here")
    if name == "cuda" and not torch.cuda.is_available():
        pytest.skip("engine cuda needs a GPU; test_cuda.py has what can be tested without one")
    game = "pong" if name != "gymnasium" else "scanline/Catch-v0"
    engine = toys.build(name, game, num_envs=1, num_threads=1, num_workers=0)
    assert isinstance(engine, Engine)
    assert engine.name == name
    engine.close()


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize(
    "game", ["pong", "ALE/Pong-v5", "Pong-v5", "PongNoFrameskip-v4", ["pong", "pong"]]
)
def test_atari_is_played_by_the_own_emulator_where_it_is_compiled(
    game: Any, compiled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = engines.KINDS["native"]
    name = "scanline.engines" if compiled else "scanline._never_compiled"
    monkeypatch.setitem(engines.KINDS, "native", dataclasses.replace(row, compiled=name))
    assert engines.default_name(game) == ("native" if compiled else "ale")


@pytest.mark.parametrize(
    "game", ["CartPole-v1", "scanline/Catch-v0", "some_module:Some-v0", toy_envs.Blocks]
)
def test_everything_else_is_played_by_gymnasium(game: Any) -> None:
    assert engines.default_name(game) == "gymnasium"


def test_unknown_names_bring_a_suggestion() -> None:
    with pytest.raises(ValueError, match="did you mean 'gymnasium'"):
        engines.kind("gymnasum")
    with pytest.raises(ValueError, match="did you mean breakout"):
        engines.default_name("brekout")


def test_importing_the_package_imports_neither_ale_py_nor_torch() -> None:
    program = (
        "import sys, gymnasium, scanline.engines; assert 'scanline/Catch-v0' in gymnasium.registry;"
        "sys.exit('torch' in sys.modules or 'ale_py' in sys.modules)"
    )
    env = {**os.environ, "PYTHONPATH": str(Path(engines.__file__).parents[2])}
    subprocess.run([sys.executable, "-c", program], check=True, env=env)
