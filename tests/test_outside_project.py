"""Public names hold in a user's own project under `mypy --strict`, outside of this one."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import scanline

SCRIPT = """
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

import scanline


class Table:
    def open(self, settings: Mapping[str, Any], folder: Path) -> None:
        self.file = open(folder / "mine.txt", "w")

    def row(self, agent_steps: int, values: Mapping[str, float]) -> None:
        print(agent_steps, values.get("charts/SPS"), file=self.file)

    def close(self) -> None:
        self.file.close()


def callback(progress: scanline.TrainingProgress) -> bool:
    weights = [each.numel() for each in progress.views().live.parameters()]
    return sum(weights) > 0 and (progress.score is None or progress.score < 18.0)


console = scanline.Console("pong", seed=0)
console.reset()
reward: float = console.act(0)
envs = scanline.make("pong", num_envs=4)
observations, info = envs.reset(seed=0)
recipe: scanline.Recipe | str = "paac"
logger: scanline.Logger = Table()
run: scanline.Run = scanline.train(
    recipe, "pong", agent_steps=1_000, loggers=[logger], callback=callback
)
folder: Path = run.folder
mean: float = scanline.evaluate(folder, episodes=3).mean
policy = scanline.load_policy(folder)
actions = policy.act(np.asarray(observations))
reveal_type(run.score)
reveal_type(scanline.__version__)
reveal_type(envs)
"""
WRONG = """
import scanline

scanline.train("paac", "pong", callback=3)
scanline.evaluate(5)
scanline.trian("paac", "pong")
"""


def checked(folder: Path, **scripts: str) -> str:
    """What mypy says of scripts that import the package as an installed one."""
    for name, text in scripts.items():
        (folder / f"{name}.py").write_text(text)
    source = Path(scanline.__file__).parents[1]
    env = {**os.environ, "PYTHONPATH": str(source)}
    cache, files = ["--cache-dir", str(folder / "cache")], [f"{name}.py" for name in scripts]
    command = [sys.executable, "-m", "mypy", "--strict", *cache, *files]
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=600)
    return done.stdout + done.stderr


def test_public_names_hold_in_a_user_s_mypy(tmp_path: Path) -> None:
    said = checked(tmp_path, script=SCRIPT, wrong=WRONG)
    assert "Found 3 errors in 1 file (checked 2 source files)" in said, said
    assert sorted(line[:10] for line in said.splitlines() if "error:" in line) == [
        *("wrong.py:4", "wrong.py:5", "wrong.py:6"),
    ]
    for revealed in ("float | None", 'str"', "EngineVectorEnv"):
        assert revealed in said, said


def test_the_version_is_the_package_s() -> None:
    assert scanline.__version__ == version("scanline")
    assert (Path(scanline.__file__).parent / "py.typed").exists()
