"""A visit to this machine: what is told, what is written, and a device that computes wrongly."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from scanline import networks, training
from scanline.devices import HOST
from scanline.doctor import advice, checks, command, facts, figures, probes
from scanline.doctor.first_updates import small
from scanline.doctor.traffic import SIMULATED, Budget, budget
from scanline.engines import TOY


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probes, "WARM_UP_SECONDS", 0.02)


def test_facts_name_what_a_report_needs() -> None:
    found = facts.facts()
    assert found["machine"]["num_cores"] >= 1 and found["versions"]["torch"] == torch.__version__
    assert json.loads(json.dumps(found)) == found


def test_a_recipe_agrees_with_pytorch_and_with_itself() -> None:
    found = list(checks.recipe_checks(TOY, HOST, "paac"))
    assert [check.status for check in found] == ["ok", "ok"]


def broken(monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on every second network that is built computes wrongly."""
    build, built = networks.build, list[torch.nn.Module]()

    def wrong(*args: Any, **changes: Any) -> torch.nn.Module:
        built.append(build(*args, **changes))
        if len(built) % 2:
            built[-1].register_forward_hook(
                lambda module, inputs, outputs: type(outputs)(*(each * 1.5 for each in outputs))
            )
        return built[-1]

    monkeypatch.setattr(networks, "build", wrong)


def test_a_device_that_computes_wrongly_fails_and_names_the_next_step(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    broken(monkeypatch)
    monkeypatch.setattr(command, "_QUICK_RECIPES", ("paac",))
    monkeypatch.setattr(command, "chosen_game", lambda: TOY)
    monkeypatch.setattr(command, "_QUICK_ENVS", (4,))
    monkeypatch.setattr(command, "_QUICK_SECONDS", 0.05)
    report = tmp_path / "new" / "doctor.json"
    assert command.run(["--quick", "--json", str(report)], "scanline doctor") == 1
    printed = capsys.readouterr().out
    assert "FAILED paac: first 3 updates as on a CPU" in printed
    assert "Next: train paac with --device cpu --kernels torch, and attach" in printed
    record = json.loads(report.read_text())
    assert {"facts", "checks", "advice", "device", "game"} <= record.keys()
    assert "failed" in {check["status"] for check in record["checks"]}
    assert record["advice"]["recommended"]["num_envs"] == 4


def test_a_simulated_device_agrees_and_has_the_transfers_of_its_budget() -> None:
    found = [*checks.recipe_checks(TOY, SIMULATED, "paac")]
    assert [check.status for check in found] == ["ok", "ok"]
    plan = small(training.make_plan("paac", TOY), network="mlp", num_workers=0)
    counted = budget(plan, SIMULATED)
    # Five steps: frames go up and actions come back; rewards and ends go up once.
    assert (counted.uploads, counted.downloads) == (6, 5)
    assert counted.within(counted) and not Budget(7, 5).within(counted)


def test_an_error_inside_is_a_finding() -> None:
    def broken_check() -> tuple[bool, str]:
        raise RuntimeError("out of memory")

    found = checks.guarded("x", "do this", broken_check)
    assert found == checks.Check("x", "failed", "RuntimeError: out of memory", "do this")


def test_figures_are_positive() -> None:
    assert 0 < figures.launch_seconds(HOST, 10) < 1
    assert 0 < figures.wait_seconds(HOST) < 1
    assert min(figures.copy_bytes_per_second(HOST, 1 << 16).values()) > 0


def test_engines_that_are_not_here_are_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks.engines, "KINDS", {})
    assert [check.status for check in checks.engine_checks("pong")] == ["skipped", "skipped"]


def test_advice_takes_the_fewest_environments_that_are_fast_enough(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(figures, "emulator_steps_per_second", lambda game, engine: 1.0)
    found = advice.advice(TOY, HOST, (2, 4), 0.05)
    assert found.recommended["num_envs"] in (2, 4) and len(found.sizes) == 2
