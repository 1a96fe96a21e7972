"""Checks of a user's recipe: a few short runs that say whether it fits, learns, saves and repeats.

Takes a plan; gives one finding per check, with what was seen or what is wrong. The plan is made
small first, so that all of it takes a minute. Knows the verbs of the parts and no algorithm.
"""

from __future__ import annotations

import math
import tempfile
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from .. import networks, settings
from ..carried import Carried, allocated, columns_of
from ..errors import UserError
from ..interfaces import Parts
from ..recipes import RECIPES, Recipe
from ..records import Acted, Batch, Column, LossResult, Slot, Spaces
from ..runs.checkpoint import load_chosen
from ..runs.state_files import decode, encode
from .hooks import Hooks
from .models import build_learner
from .plan import Plan, changed_plan
from .prepared import prepared
from .train import TrainedRun, carry_out

SPEED_SECONDS = 6.0
"""Training time of each of the two runs that are compared."""
_SMALL = {
    "num_envs": 8,
    "learning_starts_agent_steps": 512,
    "capacity_agent_steps": 8_192,
    "decorrelation_agent_steps": 0,
}
_QUIET = {"live": False, "tensorboard": False}
_NUM_TURNS = 6
"""Turns of a run that is repeated or resumed, after learning has begun."""


class Finding(NamedTuple):
    """One line of the result."""

    check: str
    verdict: str
    """'ok', 'FAIL', or 'skipped' where the check does not go with the recipe."""
    detail: str


class CheckFailed(Exception):
    """What is wrong, in one sentence."""


class CheckSkipped(Exception):
    """Why a check does not go with this recipe."""


def check(plan: Plan) -> Iterator[Finding]:
    """Every check in turn; one that fails does not keep the others from running."""
    subject = Subject(small(plan))
    checks: Mapping[str, Callable[[], str]] = {
        "shapes": subject.shapes,
        "one update": subject.one_update,
        "gradients": subject.gradients,
        "save and load": subject.save_and_load,
        "determinism": subject.determinism,
        "resume": subject.resume,
        "kernels": subject.kernels,
        "speed": lambda: speed(
            changed_plan(plan, fitting_changes(plan, _SMALL | {"num_envs": None}))
        ),
    }
    for name, run in checks.items():
        try:
            yield Finding(name, "ok", run())
        except CheckSkipped as reason:
            yield Finding(name, "skipped", str(reason))
        except Exception as error:  # a user's code may raise anything
            yield Finding(name, "FAIL", _sentence(plan.recipe, error))


def _sentence(recipe: Recipe, error: Exception) -> str:
    """The error, and the last line of the user's file that led to it."""
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if frame.filename == recipe.source]
    place = f"line {lines[-1]}: " if lines else ""
    kind = "" if isinstance(error, (CheckFailed, UserError)) else f"{type(error).__name__}: "
    return f"{place}{kind}{error}".partition("\n")[0]


def fitting_changes(plan: Plan, wanted: Mapping[str, Any]) -> dict[str, Any]:
    """Those of the settings that the plan has; None leaves one alone, and none is made larger."""
    found = {leaf.name: leaf.value for leaf in settings.leaves(plan)}
    return _QUIET | {
        name: min(value, found[name])
        for name, value in wanted.items()
        if name in found and value is not None
    }


def small(plan: Plan) -> Plan:
    """The plan with few environments and a short replay, where its sizes allow that."""
    try:
        return changed_plan(plan, fitting_changes(plan, _SMALL))
    except ValueError:  # some number would no longer divide
        return changed_plan(plan, fitting_changes(plan, _SMALL | {"num_envs": None}))


@dataclass(frozen=True)
class Subject:
    """A small plan, and what the checks share."""

    plan: Plan

    @property
    def turn_agent_steps(self) -> int:
        sampling = self.plan.recipe.sampling
        return sampling.num_envs * sampling.horizon_agent_steps

    @property
    def run_agent_steps(self) -> int:
        """Enough for some turns with updates."""
        starts: int = getattr(self.plan.recipe.store, "learning_starts_agent_steps", 0)
        window: int = getattr(self.plan.recipe.store, "window_agent_steps", 0)
        before = starts + window * self.plan.recipe.sampling.num_envs
        return (math.ceil(before / self.turn_agent_steps) + _NUM_TURNS) * self.turn_agent_steps

    @cached_property
    def first(self) -> FirstUpdate:
        recipe = self.plan.recipe
        if recipe.exchange.is_central or "turns" not in recipe.pace.gives:
            raise CheckSkipped("parts of this recipe do not take turns")
        return first_update(self.plan)

    def shapes(self) -> str:
        acted, batch = self.first.acted, list(self.first.batch.observations.shape)
        names = ", ".join(acted.columns) or "none"
        num = len(acted.actions)
        return f"actions [{num}], columns {names}; a batch has observations {batch}"

    def one_update(self) -> str:
        found = self.first
        for name, loss in found.result.losses.items():
            if loss.dim() != 0 or not torch.isfinite(loss):
                raise CheckFailed(f"losses[{name!r}] is {loss.tolist()}, not one finite number.")
        values = {name: loss.item() for name, loss in found.result.losses.items()}
        shown = ", ".join(f"{name} {value:.4g}" for name, value in values.items())
        return f"losses {shown}; metrics {', '.join(found.result.metrics) or 'none'}"

    def gradients(self) -> str:
        found = self.first
        if found.unreached:
            raise CheckFailed(f"no gradient reaches {', '.join(found.unreached)}.")
        return f"all {found.num_parameters} parameters that learn get one"

    def save_and_load(self) -> str:
        saved = encode({"parameters": self.first.state})
        other = build_learner(self.plan, self.first.spaces, seed=1)
        other.load(decode(saved.tree, saved.tensors)["parameters"])
        again = encode({"parameters": other.state()})
        differing = [n for n, t in saved.tensors.items() if not torch.equal(t, again.tensors[n])]
        if differing or saved.tree != again.tree:
            raise CheckFailed(f"after saving and loading these differ: {differing or 'numbers'}.")
        return f"{len(saved.tensors)} tensors, none of them changed"

    def determinism(self) -> str:
        with tempfile.TemporaryDirectory() as folder:
            first, second = (self._trained(Path(folder) / name) for name in ("first", "second"))
            return self._equal(first, second, "two runs of seed")

    def resume(self) -> str:
        with tempfile.TemporaryDirectory() as folder:
            whole, stopped = Path(folder) / "whole", Path(folder) / "stopped"
            self._trained(whole)
            half = self.turn_agent_steps * (self.run_agent_steps // self.turn_agent_steps - 2)
            self._trained(stopped, seconds_of=half)
            self._trained(stopped, resume=True)
            return self._equal(whole, stopped, "a run that was stopped and one that was not, seed")

    def _trained(self, out: Path, *, seconds_of: int = 0, resume: bool = False) -> Path:
        """A short run; `seconds_of` agent steps stop it as a signal would, before its end."""
        changes = {"agent_steps": self.run_agent_steps, "log_every_agent_steps": 1}
        plan = changed_plan(self.plan, changes)
        hooks = Hooks((), lambda progress: not seconds_of or progress.agent_steps < seconds_of)
        run = carried_out(plan, out, resume=resume, hooks=hooks)
        if run.inexact:
            raise CheckSkipped(f"not promised: {'; '.join(run.inexact)}")
        return out

    def _equal(self, one: Path, other: Path, what: str) -> str:
        states = [encode(load_chosen(run / "checkpoints", None).state) for run in (one, other)]
        first, second = (state.tensors for state in states)
        differing = [
            name
            for name in first.keys() | second.keys()
            if name not in first or name not in second or not torch.equal(first[name], second[name])
        ]
        if differing:
            raise CheckFailed(
                f"{what} {self.plan.run.seed} differ in {len(differing)} tensors, e.g. "
                f"{min(differing)}; draw only from context.uniforms and batch.random, and keep "
                "what lasts in the algorithm's state."
            )
        return f"{what} {self.plan.run.seed} end alike after {self.run_agent_steps:,} agent steps"

    def kernels(self) -> str:
        network = self.first.network
        return networks.used_kernels(network, self.plan.run.kernels).removeprefix("Kernels: ")


class FirstUpdate(NamedTuple):
    """What was seen up to the first update."""

    network: torch.nn.Module
    spaces: Spaces
    acted: Acted
    batch: Batch
    result: LossResult
    unreached: list[str]
    num_parameters: int
    state: Mapping[str, Any]


def first_update(plan: Plan) -> FirstUpdate:
    """Plays until the store gives a batch, and learns from it once."""
    built = prepared(plan, lambda part: None, lambda sentence: None)
    with closing(built.runtime):
        context, parts = built.context, built.context.parts
        views, acted = parts.parameters.read(), _acted(parts, parts.store.slot())
        refuse_misshapen(acted, context.num_envs, context.spaces, context.columns)
        parts.sampler.begin()
        batch = _first_batch(parts)
        result = parts.algorithm.loss(views, batch)
        unreached = _unreached(views.live, result.losses)
        parts.parameters.apply(views, result.losses, batch.agent_steps)
        learning = [each for each in views.live.parameters() if each.requires_grad]
        return FirstUpdate(
            views.live,
            context.spaces,
            acted,
            batch,
            result,
            unreached,
            len(learning),
            parts.parameters.state(),
        )


def refuse_misshapen(
    acted: Acted, num_envs: int, spaces: Spaces, declared: Mapping[str, Column]
) -> None:
    """Refuses actions that cannot be played and columns that are not those declared."""
    actions = acted.actions
    if actions.shape != (num_envs,) or actions.dtype is not torch.int64:
        raise CheckFailed(
            f"`act` gives actions {list(actions.shape)} of {actions.dtype}, but one int64 per "
            f"environment is played: [{num_envs}]."
        )
    if not 0 <= int(actions.min()) <= int(actions.max()) < spaces.num_actions:
        raise CheckFailed(f"`act` gives actions outside of 0..{spaces.num_actions - 1}.")
    given = {n: (tuple(c.shape[1:]), c.dtype) for n, c in acted.columns.items()}
    wanted = {n: (c.shape, c.dtype) for n, c in declared.items()}
    if given != wanted:
        raise CheckFailed(f"`act` gives columns {given}, but `columns` declares {wanted}.")


def _first_batch(parts: Parts) -> Batch:
    while True:
        slot = parts.sampler.collect(parts.policy, into=parts.store.slot())
        with torch.no_grad():
            experience = parts.algorithm.prepare(parts.parameters.read(), slot)
        parts.parameters.keep(experience.state)
        parts.store.put(experience)
        for batch in parts.store.batches():
            return batch


def _acted(parts: Parts, slot: Slot) -> Acted:
    """What the policy decides for the first observations of a slot."""
    policy, observations = parts.policy, slot.observation(0)
    num = len(observations)
    uniforms = torch.rand((num, policy.draws_per_step), generator=torch.Generator().manual_seed(0))
    columns = columns_of(parts.parameters.read().live)
    carried = Carried(allocated(columns, num)) if columns else None
    return policy(observations, uniforms, slot.agent_steps, carried)


def _unreached(network: torch.nn.Module, losses: Mapping[str, Tensor]) -> list[str]:
    """Names of parameters that learn and that no loss reaches; the graph stays."""
    named = {name: each for name, each in network.named_parameters() if each.requires_grad}
    reached = set[str]()
    for loss in losses.values():
        gradients = torch.autograd.grad(
            loss, list(named.values()), retain_graph=True, allow_unused=True
        )
        reached |= {n for n, each in zip(named, gradients, strict=True) if each is not None}
    return [name for name in named if name not in reached]


def nearest(recipe: Recipe) -> Recipe:
    """The built-in recipe whose choices declare most of the same needs and gifts; among equals one
    that chooses its actions alike."""
    wanted, greedy = _declared(recipe), recipe.algorithm.evaluation_choice.greedy

    def likeness(row: Recipe) -> tuple[float, bool, int]:
        own = _declared(row)
        is_alike = row.algorithm.evaluation_choice.greedy == greedy
        return len(wanted & own) / len(wanted | own), is_alike, -len(row.name)

    return max(RECIPES.values(), key=likeness)


def _declared(recipe: Recipe) -> frozenset[str]:
    choices = (recipe.pace, recipe.exchange, recipe.sampling, recipe.store, recipe.algorithm)
    return frozenset[str]().union(*(each.needs | each.gives for each in choices))


def speed(plan: Plan) -> str:
    """The recipe's rate beside that of the nearest built-in one with the same sizes."""
    near = nearest(plan.recipe)
    sizes = [
        leaf
        for part in (plan.recipe.sampling, plan.recipe.store, plan.recipe.pace)
        for leaf in settings.leaves(part)
    ]
    named = {"network": plan.recipe.network, "protocol": plan.recipe.protocol}
    wanted = {leaf.name: leaf.value for leaf in sizes} | {
        name: value for name, value in named.items() if isinstance(value, str)
    }
    own = {leaf.name for leaf in settings.leaves(near)}
    changes = {name: value for name, value in wanted.items() if name in own}
    other = Plan(game=plan.game, recipe=settings.override(near, changes), run=plan.run)
    mine = _rate(plan)
    try:
        theirs = _rate(other)
    except UserError:  # its network was made for other frames
        small = f"mlp-{other.recipe.network}"
        name = small if small in networks.descriptions() else "mlp"
        other = changed_plan(other, {"network": name})
        theirs = _rate(other)
    return (
        f"{mine:,.0f} agent steps/s; {near.name} on '{other.recipe.network}' with the same sizes "
        f"{theirs:,.0f} "
        f"({mine / theirs:.2f} times as fast)"
    )


def carried_out(plan: Plan, out: Path, **around: Any) -> TrainedRun:
    """A run that says nothing; a signal that ends it ends the checks, which would judge half."""
    run = carry_out(plan, out=out, say=lambda sentence: None, **{"resume": False, **around})
    if run.stop.kind == "signal":
        raise KeyboardInterrupt(run.stop.sentence)
    return run


def _rate(plan: Plan) -> float:
    changes = {"seconds": SPEED_SECONDS, "save_at_end": False}
    with tempfile.TemporaryDirectory() as folder:
        run = carried_out(changed_plan(plan, changes), Path(folder) / "run")
    if not run.agent_steps:
        raise CheckSkipped(f"{SPEED_SECONDS:g} s are too few for one rollout of {plan.recipe.name}")
    return run.agent_steps / run.training_seconds
