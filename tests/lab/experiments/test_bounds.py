"""`make learning`: bounds come from seeds, a score below one is seen and ends with an exit code."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest
import torch

from scanline import returns, stacks
from scanline_lab.experiments import EXPERIMENTS, CellError, bounds, command
from scanline_lab.experiments.over_queue import run_of

ROOT = Path(__file__).parents[3]
EXPERIMENT = EXPERIMENTS["learning-bounds"]


def finished(scores: dict[str, float | None]) -> dict[str, Any]:
    """Results of runs with these scores, by recipe."""
    shared = {"agent_steps": 600_000, "minutes": 4.0, "curve": [[1, 1.0, -20.0]]}
    return {f"{recipe}-pong.0": {**shared, "score": score} for recipe, score in scores.items()}


def keep(folder: Path, results: dict[str, Any]) -> None:
    """As a reproduction has kept them."""
    (folder / "cells").mkdir()
    for cell in EXPERIMENT.cells("desk"):
        record = {"settings": dict(cell.settings), "result": results[cell.name]}
        (folder / "cells" / f"{cell.name}.json").write_text(json.dumps(record))


def test_a_bound_is_below_the_lowest_seed_and_above_play_at_random() -> None:
    for bound in bounds.BOUNDS:
        assert -20.0 < bound.at_least < min(bound.scores)
        assert run_of(bounds.cell_of(bound.row()).settings).plan().recipe.name == bound.recipe


def test_vtrace_s_seeds_are_the_kept_ones() -> None:
    lines = (ROOT / "benchmarks" / "results" / "pong-seeds.jsonl").read_text().splitlines()
    [bound] = [each for each in bounds.BOUNDS if each.recipe == "vtrace"]
    for line, score in zip(lines, bound.scores, strict=True):
        curve = json.loads(line)["curve"]
        until = [seen for steps, _, seen in curve if steps <= bound.agent_steps]
        assert until[-1] == pytest.approx(score, abs=0.06)


def test_the_faults_that_bounds_must_catch_are_what_they_say() -> None:
    path = ROOT / "benchmarks" / "learning_faults.py"
    spec = importlib.util.spec_from_file_location("learning_faults", path)
    assert spec is not None and spec.loader is not None
    faults = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(faults)

    def seen() -> tuple[torch.Tensor, returns.VTrace]:
        frames, depth = torch.arange(1, 5).reshape(4, 1, 1), torch.tensor([4], dtype=torch.uint8)
        one, zero, no = torch.ones(1, 1), torch.zeros(1, 1), torch.zeros(1, 1, dtype=torch.bool)
        steps = returns.Trajectory(one, no, no, zero, one[0])
        targets = returns.vtrace(steps, zero, one, 0.9, returns.Clips())
        return stacks.build(frames, depth, stacks.Padding("zeros")).flatten(), targets

    right, targets = seen()
    assert right.tolist() == [1, 2, 3, 4] and float(targets.advantage) == pytest.approx(1.9)
    with faults.put_in("padding"):
        assert seen()[0].tolist() == [0, 0, 0, 4]
    with faults.put_in("sign"):
        assert float(seen()[1].advantage) == pytest.approx(-1.9)
    with faults.put_in("discount"):
        assert float(seen()[1].advantage) == pytest.approx(1.1)
    assert float(seen()[1].advantage) == pytest.approx(1.9)


@pytest.mark.parametrize(("vtrace", "code"), [(10.0, 0), (-20.8, 1), (None, 1)])
def test_a_broken_bound_ends_with_a_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], vtrace: float | None, code: int
) -> None:
    keep(tmp_path, finished({"vtrace": vtrace, "ppo": 10.0, "paac": 10.0}))
    words = ["learning-bounds", "--scale", "desk", "--out", str(tmp_path)]
    assert command.run([*words, "--must-hold"], "scanline reproduce") == code
    assert command.run(words, "scanline reproduce") == 0
    assert ("contradicted: vtrace is at -12.5" in capsys.readouterr().out) is (code == 1)


def test_fresh_runs_are_not_those_of_the_old_queue(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep(tmp_path, finished({"vtrace": 1.0, "ppo": 1.0, "paac": 1.0}))
    (tmp_path / "queue" / "runs").mkdir(parents=True)
    seen = []

    def carried_out(cells: Any, path: Path) -> dict[str, Path]:
        seen.append(path.exists())
        return {}

    monkeypatch.setattr("scanline_lab.experiments.over_queue.carry_out", carried_out)
    words = ["learning-bounds", "--scale", "desk", "--out", str(tmp_path), "--fresh"]
    with pytest.raises(CellError, match="its run has failed"):
        command.run(words, "scanline reproduce")
    assert seen == [False]
