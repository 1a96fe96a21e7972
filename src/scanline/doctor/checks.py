"""Checks of a machine: the same numbers on its device as on a CPU, twice the same, equal engines.

Takes a game and a device; gives a `Check` each, whose failure names the next step. Nothing raises:
an error inside is a failed check. Tells the rate of an engine on a device, and judges no speed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from .. import engines, protocols, training
from ..devices import Device
from ..engines import EngineSettings
from ..errors import UserError
from ..records import StepArrays
from . import figures
from .first_updates import UPDATES, FirstUpdates, first_updates, small
from .traffic import SIMULATED, budget

Status = Literal["ok", "failed", "skipped"]

LOSSES_WITHIN, WEIGHTS_WITHIN = 1e-3, 0.05
"""Largest difference of a loss, relative above 1; and of weights, over the way that they went."""
_ENGINE_STEPS = 60
_ENGINE_ENVS = {"opencl": 64, "cuda": 4096}
"""Engines on devices, with the environments that their rate is measured with."""
REPORT = "attach the file of `scanline doctor --json FILE` to a report"


@dataclass(frozen=True)
class Check:
    """One thing that was tried."""

    name: str
    status: Status
    finding: str
    next_step: str = ""
    """What to do about a failure."""


def guarded(name: str, next_step: str, check: Callable[[], tuple[bool, str]]) -> Check:
    """A check whose errors are findings, but for what is not installed."""
    try:
        is_ok, finding = check()
    except UserError:
        raise
    except Exception as error:
        is_ok, finding = False, f"{type(error).__name__}: {error}"
    return Check(name, "ok" if is_ok else "failed", finding, "" if is_ok else next_step)


def recipe_checks(game: str, device: Device, recipe: str) -> Iterator[Check]:
    """The first updates of a recipe on a device, beside PyTorch's kernels on the CPU, and twice."""
    found: list[FirstUpdates] = []

    def agreement() -> tuple[bool, str]:
        found.append(_first(recipe, game, device.name))
        return _agree(found[0], _first(recipe, game, "cpu", kernels="torch"))

    title = f"{recipe}: first {UPDATES} updates as on a CPU"
    yield guarded(
        title, f"train {recipe} with --device cpu --kernels torch, and {REPORT}", agreement
    )
    if found:
        yield guarded(
            f"{recipe}: the same seed twice",
            _determinism_step(device),
            lambda: _twice(found[0], _first(recipe, game, device.name)),
        )


def _first(recipe: str, game: str, device: str, **changes: object) -> FirstUpdates:
    if game == engines.TOY:
        changes |= {"network": "mlp", "num_workers": 0}
    return first_updates(small(training.make_plan(recipe, game), device=device, **changes))


def _agree(there: FirstUpdates, here: FirstUpdates) -> tuple[bool, str]:
    losses, weights = here.losses_differ_by(there), here.differs_by(there)
    finding = (
        f"losses within {losses:.1e} ({LOSSES_WITHIN:g}), weights within {weights:.1e} of their "
        f"way ({WEIGHTS_WITHIN:g})"
    )
    return losses <= LOSSES_WITHIN and weights <= WEIGHTS_WITHIN, finding


def _twice(first: FirstUpdates, second: FirstUpdates) -> tuple[bool, str]:
    if first.equals(second):
        return True, "weights are equal byte for byte"
    return False, f"weights differ by {first.differs_by(second):.1e} of their way"


def _determinism_step(device: Device) -> str:
    if device.is_host:
        return f"train with --kernels torch --torch-threads 1, and {REPORT}"
    return "expect runs that differ a little: this device adds in an order that changes"


def budget_check(game: str, device: Device) -> Check:
    """Transfers of a rollout by the profiler, beside those that the simulated device counts."""
    name, recipe = "paac: transfers per rollout", training.make_plan("paac", game)
    if device.is_host:
        return Check(name, "skipped", "nothing crosses on the processor")

    def compared() -> tuple[bool, str]:
        found, expected = (budget(small(recipe), each) for each in (device, SIMULATED))
        return found.within(expected), f"{found}; the simulated device has {expected}"

    return guarded(name, f"train with --device cpu, and {REPORT}", compared)


def in_place_check(game: str, device: Device) -> Check:
    """Transfers with engine `cuda`, beside the same kernels on a simulated device."""
    name = "paac with engine cuda: transfers per rollout"
    if device.kind != "cuda":
        return Check(name, "skipped", "needs an NVIDIA GPU")

    def compared() -> tuple[bool, str]:
        sides = (("cuda", device), ("gpu-host", SIMULATED))
        plans = [(training.make_plan("paac", game, engine=each), on) for each, on in sides]
        found, expected = (budget(small(plan), on) for plan, on in plans)
        return found.within(expected), f"{found}; the simulated device has {expected}"

    try:
        return guarded(name, f"train with --engine native, and {REPORT}", compared)
    except UserError as error:
        return Check(name, "skipped", str(error))


def engine_checks(game: str) -> Iterator[Check]:
    """Engines on devices beside `native`, every array of some steps."""
    for name in _ENGINE_ENVS:
        if name not in engines.KINDS or not engines.KINDS[name].is_listed:
            yield Check(f"engine {name}", "skipped", "not installed")
        else:
            yield _engine_check(name, game)


def _engine_check(name: str, game: str) -> Check:
    def same() -> tuple[bool, str]:
        differing = _differing_arrays(name, game)
        if differing:
            return False, f"differs from engine native in {', '.join(differing)}"
        return True, f"{_ENGINE_STEPS} agent steps equal engine native's, every array; {rate()}"

    def rate() -> str:
        num = _ENGINE_ENVS[name]
        steps = figures.emulator_steps_per_second(game, name, num_envs=num)
        return f"{steps:,.0f} agent steps/s with {num} environments"

    try:
        return guarded(f"engine {name}", f"train with --engine native, and {REPORT}", same)
    except UserError as error:  # its device or driver is not here
        return Check(f"engine {name}", "skipped", str(error))


def _differing_arrays(name: str, game: str) -> list[str]:
    settings = EngineSettings(game=game, num_envs=4, protocol=protocols.get("baselines"), seed=1)
    both = [engines.build(each, settings) for each in ("native", name)]
    arrays = [StepArrays.allocate(engine.spaces, settings.num_envs) for engine in both]
    differing, draws = set[str](), np.random.default_rng(0)
    try:
        for engine, out in zip(both, arrays, strict=True):
            engine.reset(0, out)
        for _ in range(_ENGINE_STEPS):
            actions = draws.integers(both[0].spaces.num_actions, size=settings.num_envs)
            for engine, out in zip(both, arrays, strict=True):
                engine.send(0, actions, out)
                engine.recv(0, out)
            ours, theirs = map(vars, arrays)
            differing |= {n for n in ours if not np.array_equal(ours[n], theirs[n])}
    finally:
        for engine in both:
            engine.close()
    return sorted(differing)
