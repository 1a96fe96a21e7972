"""A recipe begun and examined: files that run as they are, and checks that see what is wrong."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from scanline import authoring, cli, recipes
from scanline.training import checks, make_plan
from scanline.training.hooks import Hooks

CATCH = "scanline/Catch-v0"
OWN = Path(__file__).parents[1] / "examples" / "own_recipe.py"
SMALL = ["--num-workers", "0", "--torch-threads", "1", "--num-envs", "4"]
BROKEN = """
import torch
from dataclasses import dataclass
from scanline import Recipe, algorithms, parameters, records, samplers

class Net(torch.nn.Module):
    def __init__(self, spaces):
        super().__init__()
        self.policy, self.idle = torch.nn.Linear(25, 3), torch.nn.Linear(2, 2)

    def forward(self, observations):
        logits = self.policy(observations.flatten(1).float() / 255)
        return records.PolicyValue(logits, logits.sum(-1))

@dataclass(frozen=True, kw_only=True)
class Lawless(algorithms.Defaults):
    def loss(self, views, batch):
        logits = views.live(batch.observations).logits
        return records.LossResult({"all": (logits * torch.rand(())).square().mean()})

recipe = Recipe(
    name="lawless", summary="Draws from a global generator.", algorithm=Lawless(), network=Net,
    protocol="as-is", optimiser=parameters.OptimiserSettings(kind="adam"),
    sampling=samplers.SamplingSettings(num_envs=4, rollout_agent_steps=4),
)
"""


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "SPEED_SECONDS", 0.5)


def lines(printed: str) -> dict[str, str]:
    """Verdicts by check."""
    rows = [row for row in printed.splitlines() if row[:8].strip() in ("ok", "FAIL", "skipped")]
    return {row[8:23].strip(): row[:8].strip() for row in rows}


@pytest.mark.filterwarnings("default")
def test_a_good_recipe_passes_every_check(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["check", str(OWN), CATCH, *SMALL]) == 0
    printed = capsys.readouterr().out
    assert len(lines(printed)) == 8
    assert {verdict for name, verdict in lines(printed).items() if name != "speed"} == {"ok"}
    assert "all 6 parameters" in printed and "PyTorch's" in printed


@pytest.mark.filterwarnings("default")
def test_what_is_wrong_is_said_line_by_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "lawless.py"
    file.write_text(BROKEN)
    assert cli.main(["check", str(file), CATCH, "--num-workers", "0"]) == 1
    printed = capsys.readouterr().out
    found = lines(printed)
    failed = {name for name, verdict in found.items() if verdict == "FAIL"}
    assert failed == {"gradients", "determinism", "resume"}
    assert "no gradient reaches idle.weight, idle.bias" in printed
    assert "batch.random" in printed


def test_a_signal_ends_the_checks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    plan = make_plan(str(OWN), CATCH, num_workers=0, live=False, tensorboard=False)
    signals: list[int] = []
    hooks = Hooks((), lambda progress: signals.append(os.kill(os.getpid(), signal.SIGTERM)))
    with pytest.raises(KeyboardInterrupt, match="SIGTERM"):
        checks.carried_out(plan, tmp_path / "run", hooks=hooks)
    assert signals


def test_a_new_file_has_the_user_s_names_and_is_a_recipe(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli.main(["new", "my-idea"]) == 0
    text = Path("my_idea.py").read_text()
    assert 'name="my-idea"' in text and "scanline train my_idea.py pong" in text
    assert recipes.find("my_idea.py").name == "my-idea"
    assert cli.main(["new", "my-idea"]) == 2, "it is there already"
    assert "is there already" in capsys.readouterr().err
    assert cli.main(["new", "curious", "--template", "rnd"]) == 0
    assert "class Rnd(" in Path("curious.py").read_text()


def test_a_name_of_a_built_in_recipe_stays_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli.main(["new", "pqn"]) == 0
    assert recipes.find("pqn.py").name == "own-pqn"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "new needs a name"),
        (["Not A Name"], "is no name"),
        (["x", "--template", "qr-dq"], "did you mean 'qr-dqn'"),
    ],
)
def test_mistakes_are_one_sentence(
    words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["new", *words]) == 2
    assert sentence in capsys.readouterr().err


def test_the_nearest_recipe_has_the_same_kind_of_parts() -> None:
    templates = authoring.templates()
    names = {name: checks.nearest(recipes.find(str(templates[name]))).name for name in templates}
    assert (names["qr-dqn"], names["impala-ppo"], names["pqn"]) == ("dqn", "ppo", "pqn")
