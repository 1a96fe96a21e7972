"""What a finished cell leaves for comparisons: `result.json` in its run folder.

Takes a cell, its plan and its finished run; plays the evaluation games and writes the file.
Knows no queue: the file is one of a run folder like the others.

Games are played twice, greedily and with actions sampled as in training, and both are named: which
one a paper means is seldom said.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import safetensors.torch

from .. import training
from ..files import disk_errors, json_object, replace_file, sha256
from ..runs.checkpoint import load_latest
from ..training import Plan, TrainedRun
from .cells import Cell

FORMAT_VERSION = 1
RESULT = "result.json"


def write(cell: Cell, plan: Plan, run: TrainedRun) -> None:
    """Evaluates the newest weights of a run and writes its result."""
    record = {
        "format_version": FORMAT_VERSION,
        "scanline": cell.scanline,
        "recipe": plan.recipe.name,
        "recipe_sha256": cell.recipe_sha256,
        "game": cell.game,
        "seed": cell.seed,
        "settings": dict(cell.settings),
        "settings_sha256": cell.settings_sha256,
        "agent_steps": run.agent_steps,
        "training_minutes": run.training_seconds / 60,
        "stop": run.stop.kind,
        "training_score": run.score,
        "evaluation": evaluated(plan, run.folder),
        "weights_sha256": weights_sha256(run.folder),
        "inexact": list(run.inexact),
    }
    with disk_errors(str(run.folder / RESULT), "free some space and start the worker again"):
        replace_file(run.folder / RESULT, (json.dumps(record, indent=1) + "\n").encode())


def evaluated(plan: Plan, folder: Path) -> dict[str, Any]:
    """Scores of both choices of actions; none where the cell asks for no games."""
    games = plan.run.evaluation_games
    code: dict[str, Any] = {"recipe": plan.recipe, "game": plan.game}
    choices = {"greedy": True, "sampled": False} if games else {}
    return {
        name: training.evaluate(folder, games, greedy=greedy, **code).record()
        for name, greedy in choices.items()
    }


def weights_sha256(folder: Path) -> str:
    """SHA-256 of the network's newest weights as safetensors: equal for equal runs."""
    found = load_latest(folder / "checkpoints", check=None)
    network = found.state["parameters"]["network"]
    return sha256(safetensors.torch.save({k: v.contiguous() for k, v in network.items()}))


def read_result(run: Path) -> dict[str, Any] | None:
    """The result of a run folder; None where there is none that can be read."""
    try:
        record = json_object((run / RESULT).read_bytes()) or {}
    except OSError:
        return None
    return record if record.get("format_version") == 1 else None
