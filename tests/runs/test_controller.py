"""The controller against a fake clock and a made-up machine."""

from __future__ import annotations

import itertools
import math

import pytest

from scanline import random
from scanline.runs.controller import Controller, ControllerSettings, Counts

SETTINGS = ControllerSettings(adjust=True, most_predictors=8, most_trainers=8)
MOST_AGENTS = 40
TICK = 5
"""Seconds between two looks at the clock."""


class Machine:
    """Updates per second of any numbers: what is scarce limits, what is too much costs."""

    def __init__(self, noise: float = 0.0) -> None:
        self.counts, self.updates, self.noise, self.draws = Counts(1, 1, 1), 0.0, noise, 0

    def rate(self, counts: Counts) -> float:
        agents, predictors, trainers = counts
        supply = 40.0 * agents / (1 + agents / 24)  # steps per second of the agents, 5 per update
        served = 900.0 * predictors / (1 + 0.4 * predictors)
        learned = 90.0 * trainers / (1 + 0.3 * trainers)
        soft = (supply / 5) ** -4 + (served / 5) ** -4 + learned**-4
        crowd = 1 + 0.004 * (agents + 4 * predictors + 4 * trainers)
        return soft**-0.25 / crowd

    def best(self) -> float:
        numbers = itertools.product(range(1, MOST_AGENTS + 1), range(1, 9), range(1, 9))
        return max(self.rate(Counts(*n)) for n in numbers)

    def set(self, counts: Counts) -> None:
        self.counts = counts

    def pass_time(self) -> None:
        """One tick."""
        self.draws += 1
        chance = float(random.uniforms(1, "noise", 0, self.draws)[0])
        self.updates += TICK * self.rate(self.counts) * (1 + self.noise * (2 * chance - 1))


def run(machine: Machine, controller: Controller, hours: float) -> None:
    for second in range(0, round(hours * 3_600), TICK):
        controller.tick(float(second), int(machine.updates))
        machine.pass_time()


def made(machine: Machine, settings: ControllerSettings = SETTINGS, seed: int = 0) -> Controller:
    return Controller(settings, Counts(1, 1, 1), MOST_AGENTS, machine.set, seed)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_from_one_of_each_it_comes_within_a_tenth_of_the_best(seed: int, noise: float) -> None:
    machine = Machine(noise)
    controller = made(machine, seed=seed)
    start = machine.rate(Counts(1, 1, 1))
    run(machine, controller, hours=24)
    assert start < 0.2 * machine.best()
    assert machine.rate(controller._best) >= 0.9 * machine.best()


def test_the_released_codes_moves_get_there_too() -> None:
    machine = Machine()
    settings = ControllerSettings(
        adjust=True,
        moves="all",
        adjust_seconds=20,
        settle_seconds=5,
        most_predictors=8,
        most_trainers=8,
    )
    controller = made(machine, settings)
    run(machine, controller, hours=12)
    assert machine.rate(controller._best) >= 0.9 * machine.best()


def test_one_number_changes_by_one_and_a_worse_one_comes_back_at_once() -> None:
    machine = Machine()
    controller = made(machine)
    applied: list[tuple[float, Counts]] = []
    now = 0.0

    def apply(counts: Counts) -> None:
        machine.set(counts)
        applied.append((now, counts))

    controller._apply = apply
    for second in range(0, 14_400, TICK):
        now = float(second)
        controller.tick(now, int(machine.updates))
        machine.pass_time()
    best, rate = Counts(1, 1, 1), machine.rate(Counts(1, 1, 1))
    for (since, counts), (until, following) in itertools.pairwise(applied):
        assert until - since == 60.0
        if counts == best:
            assert sum(abs(a - b) for a, b in zip(following, best, strict=True)) == 1
        elif machine.rate(counts) > rate * 1.02:  # clearly better: kept, and changed from there
            best, rate = counts, machine.rate(counts)
            assert sum(abs(a - b) for a, b in zip(following, best, strict=True)) == 1
        elif machine.rate(counts) < rate * 0.98:  # clearly worse: the old numbers at once
            assert following == best
        else:
            best, rate = (counts, machine.rate(counts)) if following != best else (best, rate)


def test_windows_are_equal_and_begin_after_settling() -> None:
    """A burst of updates while things settle must not count."""
    applied: list[Counts] = []
    controller = Controller(SETTINGS, Counts(2, 2, 2), 8, applied.append)
    updates = 0
    for second in range(61):
        updates += 1_000 if second < 10 else 3
        controller.tick(float(second), updates)
    assert [round(step.rate) for step in controller.steps] == [3]
    assert len(applied) == 1


def test_limits_hold_and_nothing_moves_unless_asked() -> None:
    machine = Machine()
    controller = made(machine)
    run(machine, controller, hours=6)
    for step in controller.steps:
        assert all(n >= 1 for n in step.counts)
        assert step.counts.agents <= MOST_AGENTS
        assert max(step.counts[1:]) <= 8
    still = made(Machine(), ControllerSettings())
    still.tick(0.0, 0)
    still.tick(1e6, 10**9)
    assert (still.counts, still.steps) == (Counts(1, 1, 1), [])


def test_a_loaded_controller_goes_on_from_its_best_numbers() -> None:
    machine = Machine()
    controller = made(machine)
    run(machine, controller, hours=2)
    other = made(Machine())
    other.load(controller.state())
    assert other.counts == controller._best
    assert math.isfinite(controller.steps[-1].rate)


def test_settings_without_time_to_measure_are_refused() -> None:
    with pytest.raises(ValueError, match="settle_seconds=60 must be at least 0 and below"):
        ControllerSettings(settle_seconds=60.0)
