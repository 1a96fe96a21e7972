"""The table of engines: names, defaults, and no import that nobody asked for."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
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
    game = "pong" if name != "gymnasium" else "scanline/Catch-v0"
    engine = toys.build(name, game, num_envs=1, num_threads=1, num_workers=0)
    assert isinstance(engine, Engine)
    assert engine.name == name
    engine.close()


@pytest.mark.parametrize(
    ("game", "engine"),
    [
        ("pong", "ale"),
        ("ALE/Pong-v5", "ale"),
        ("Pong-v5", "ale"),
        ("PongNoFrameskip-v4", "ale"),
        (["pong", "pong"], "ale"),
        ("CartPole-v1", "gymnasium"),
        ("scanline/Catch-v0", "gymnasium"),
        ("some_module:Some-v0", "gymnasium"),
        (toy_envs.Blocks, "gymnasium"),
    ],
)
def test_a_game_has_a_default_engine(game: Any, engine: str) -> None:
    assert engines.default_name(game) == engine


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
