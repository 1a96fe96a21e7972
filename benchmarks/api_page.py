"""The page of public names, docs/api.md, from docstrings.

    python benchmarks/api_page.py        writes the page; a test compares it with the sources

A name is public if it is in `PUBLIC`. Every module has an example, which the tests of the
documentation run.
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
from pathlib import Path
from typing import Any

from scanline.settings import field_sentences

PAGE = Path(__file__).parents[1] / "docs" / "api.md"
PUBLIC: dict[str, tuple[str, ...]] = {
    "scanline": (
        *("train", "evaluate", "load_policy", "make", "make_single", "Console"),
        *("Recipe", "Run", "TrainingProgress", "Logger"),
    ),
    "scanline.algorithms": (
        *("Defaults", "QLearning", "EpsilonGreedy", "ActorCritic", "Ppo", "Vtrace", "Dqn"),
        *("CategoricalDqn", "Pqn", "taken", "trajectory_of", "weighted"),
    ),
    "scanline.records": (
        *("Spaces", "Views", "ActContext", "Acted", "Column", "Slot", "Experience", "Batch"),
        *("LossResult", "PolicyValue", "QValues", "QDistribution"),
    ),
    "scanline.networks": ("build", "Hidden", "Head", "Features", "rows_of", "NoisyLinear"),
    "scanline.carried": ("Carried", "Column", "State"),
    "scanline.returns": ("Trajectory", "n_step", "gae", "vtrace", "Clips", "explained_variance"),
    "scanline.random": (
        *("Choice", "choose_actions", "categorical", "epsilon_greedy", "normals", "generator"),
    ),
    "scanline.parameters": (
        *("OptimiserSettings", "TorchSettings", "RateSettings", "Optimiser"),
        *("Alone", "CentralSettings", "LocalParameters"),
    ),
    "scanline.schedules": ("Constant", "Linear", "WarmUp"),
    "scanline.samplers": ("SamplingSettings", "DynamicSettings"),
    "scanline.stores": (
        *("RolloutSettings", "ReplaySettings", "UniformSampling", "PrioritisedSampling", "NStep"),
        *("WindowSettings", "SegmentSettings"),
    ),
    "scanline.paces": ("Alternate", "Concurrent", "FreeRunning", "SynchronousRuntime", "learn"),
    "scanline.protocols": ("Protocol", "get"),
    "scanline.interfaces": (
        *("Algorithm", "Store", "Sampler", "Policy", "Parameters", "Run", "Runtime"),
        *("BuildContext", "RuntimeContext", "Saved"),
    ),
}
EXAMPLES = {
    "scanline": """
import scanline

small = {"network": "mlp", "protocol": "as-is", "num_envs": 4, "agent_steps": 400}
run = scanline.train("a2c", "scanline/Catch-v0", live=False, num_workers=0, **small)
print(run.folder, run.agent_steps)
""",
    "scanline.algorithms": """
from dataclasses import dataclass
from scanline import algorithms, records


@dataclass(frozen=True, kw_only=True)
class Imitate(algorithms.Defaults):
    def loss(self, views: records.Views, batch: records.Batch) -> records.LossResult:
        log_all = views.live(batch.observations).logits.log_softmax(-1)
        return records.LossResult({"all": -algorithms.taken(log_all, batch.actions).mean()})


print(Imitate().head, Imitate().draws_per_step)
""",
    "scanline.records": """
import torch
from scanline import records

spaces = records.Spaces(frame_shape=(84, 84), frame_dtype="uint8", stack=4, num_actions=6)
print(spaces.observation_shape, records.QValues(torch.tensor([[1.0, 3.0]])).value)
""",
    "scanline.networks": """
from torch import nn
from scanline import networks, records


class TwoValues(nn.Module):
    def __init__(self, hidden: networks.Hidden, spaces: records.Spaces) -> None:
        super().__init__()
        self.stream, self.q = hidden.stream(), hidden.outputs(spaces.num_actions)

    def forward(self, features: networks.Features) -> records.QValues:
        return records.QValues(self.q(self.stream(features)))


spaces = records.Spaces(frame_shape=(84, 84), frame_dtype="uint8", stack=4, num_actions=6)
print(networks.build("nature", spaces, TwoValues, seed=0))
""",
    "scanline.carried": """
from scanline import carried

print(carried.Column((128,)))
""",
    "scanline.returns": """
import torch
from scanline import returns

steps = torch.zeros(3, 1)
trajectory = returns.Trajectory(
    reward=steps + 1,
    terminal=steps.bool(),
    truncated=steps.bool(),
    final_value=steps,
    last_value=torch.tensor([10.0]),
)
print(returns.n_step(trajectory, discount=0.9).flatten())
""",
    "scanline.random": """
import torch
from scanline import random

q, uniforms = torch.tensor([[0.0, 1.0]]), torch.tensor([[0.5, 0.2]])
print(random.epsilon_greedy(q, 0.1, uniforms), random.normals(uniforms))
""",
    "scanline.parameters": """
import torch
from scanline import parameters

settings = parameters.TorchSettings(factory=torch.optim.RAdam, learning_rate=1e-3, anneal="linear")
print(settings.schedule(1_000)(500))
""",
    "scanline.schedules": """
from scanline import schedules

print(schedules.Linear(start=1.0, end=0.1, duration_agent_steps=100)(50))
""",
    "scanline.samplers": """
from scanline import samplers

print(samplers.SamplingSettings(num_envs=8, rollout_agent_steps=128).horizon_agent_steps)
""",
    "scanline.stores": """
from scanline import stores

print(stores.RolloutSettings(epochs=4, num_minibatches=4).gives)
""",
    "scanline.paces": """
from scanline import paces

print(paces.Alternate(target_rate=0.005).gives)
""",
    "scanline.protocols": """
from scanline import protocols

print(protocols.get("baselines").replace(sticky=0.25).setting_name)
""",
    "scanline.interfaces": """
from scanline import algorithms, interfaces

assert isinstance(algorithms.Ppo(), interfaces.Algorithm)
""",
}
ALIASES = {
    "Head": "A function from `Hidden` and `Spaces` to the module that a named network ends with.",
    "State": "The carried state by name, each [B, ...].",
    "Features": "What a head is called with: `hidden.stream()` takes it; `rows_of` gives a tensor.",
}
"""Names of types, which have no docstring."""
HEAD = """# Public names

These names, and the options of the [command line](command-line.md), are what you can rely on.
All other modules, and what else these modules hold, are private: they may change without notice.
[Write your own](own-recipes.md) shows most of them at work; [Examples](examples/index.md) are whole
files.

This page is made from docstrings (`python benchmarks/api_page.py`).
"""


def page() -> str:
    return HEAD + "".join(section(module, names) for module, names in PUBLIC.items())


def section(module: str, names: tuple[str, ...]) -> str:
    found = importlib.import_module(module)
    about = "The package." if module == "scanline" else first_paragraph(found)
    example = f"```python{EXAMPLES[module]}```\n"
    entries = "".join(entry(name, getattr(found, name)) for name in names)
    return f"\n## `{module}`\n{about}\n\n{example}{entries}"


def first_paragraph(what: Any) -> str:
    return one_line((inspect.getdoc(what) or "").split("\n\n")[0])


def one_line(text: str) -> str:
    return " ".join(text.split())


def entry(name: str, what: Any) -> str:
    if not (inspect.isclass(what) or inspect.isfunction(what)):
        return f"\n### `{name}`\n{ALIASES[name]}\n"
    text = f"\n### `{name}{signature(what)}`\n{first_paragraph(what)}\n"
    if inspect.isclass(what):
        rows = [*fields(what), *methods(what)]
        text += "\n" + "".join(f"- {row}\n" for row in rows) if rows else ""
    return text


def signature(what: Any) -> str:
    if inspect.isclass(what):
        return ""
    parameters = inspect.signature(what)
    shown = [str(each).replace("'", "") for each in parameters.parameters.values()]
    return f"({', '.join(shown)})"


def fields(cls: type) -> list[str]:
    """Fields of a dataclass or a named tuple, each with its sentence."""
    if dataclasses.is_dataclass(cls):
        sentences = field_sentences(cls)
        return [
            f"`{each.name}: {each.type}{default(each)}` {one_line(sentences.get(each.name, ''))}"
            for each in dataclasses.fields(cls)
        ]
    return [f"`{name}`" for name in getattr(cls, "_fields", ())]


def default(field: dataclasses.Field[Any]) -> str:
    if field.default is not dataclasses.MISSING:
        return f" = {field.default!r}"
    return "" if field.default_factory is dataclasses.MISSING else " = ..."


def methods(cls: type) -> list[str]:
    """Functions and properties of the class itself that have a docstring."""
    rows = []
    for name, value in vars(cls).items():
        function = value.fget if isinstance(value, property) else getattr(value, "__func__", value)
        if name.startswith("_") or not inspect.isfunction(function) or not function.__doc__:
            continue
        shown = name if isinstance(value, property) else f"{name}{signature(function)}"
        rows.append(f"`{shown}` {first_paragraph(function)}")
    return rows


if __name__ == "__main__":
    PAGE.write_text(page())
