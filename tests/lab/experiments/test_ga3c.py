"""GA3C's experiments: tables and claims from made-up results, and real cells in small."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from scanline import training
from scanline.records import PolicyValue, Spaces
from scanline.tables import WIDTH
from scanline_lab.experiments import (
    EXPERIMENTS,
    Experiment,
    Results,
    ga3c,
    ga3c_batch_size,
    ga3c_configurations,
    ga3c_throughput,
)
from scanline_lab.experiments.claims import judge
from scanline_lab.experiments.experiment import Cell

SPEED, ADJUSTMENT = EXPERIMENTS["ga3c-vs-a3c"], EXPERIMENTS["ga3c-adjustment"]
THROUGHPUT, CONFIGURATIONS = EXPERIMENTS["ga3c-throughput"], EXPERIMENTS["ga3c-configurations"]
BATCHES, EPSILON = EXPERIMENTS["ga3c-batch-size"], EXPERIMENTS["ga3c-epsilon"]
CATCH = "scanline/Catch-v0"
SMALL = {"network": "mlp", "num_workers": 0}


def assert_reported(experiment: Experiment, results: Results, path: Path) -> None:
    """Tables fit a terminal, and the picture is drawn."""
    for table in experiment.tables("smoke", results):
        lines = table.text().splitlines()
        assert all(len(line) <= WIDTH for line in lines[1 : len(lines) - len(table.notes)])
    assert experiment.plot is not None
    experiment.plot("smoke", results, path / "plot.png")
    assert (path / "plot.png").stat().st_size > 1_000


def verdicts(experiment: Experiment, results: Results) -> list[str]:
    return [judged.verdict for judged in judge(experiment.claims, "desk", results)]


def speeds(small: float, large: float) -> dict[str, dict[str, float]]:
    """A3C predicts 100 a second, GA3C so many times as much."""
    found = {}
    for network in ga3c.NETWORKS:
        factor = small if network == "ga3c" else large
        found[f"a3c-agents_{network}"] = {"pps": 100.0, "tps": 20.0, "cpu_percent": 99.0}
        found[f"ga3c_{network}"] = {"pps": 100.0 * factor, "tps": 20.0, "cpu_percent": 90.0}
    return found


@pytest.mark.parametrize(
    ("small", "large", "verdicts"),
    [
        (2.0, 3.0, ["confirmed", "confirmed"]),
        (0.9, 3.0, ["contradicted", "confirmed"]),
        (3.0, 2.0, ["confirmed", "contradicted"]),
    ],
)
def test_the_claims_of_table_2_follow_the_factors(
    small: float, large: float, verdicts: list[str]
) -> None:
    assert [j.verdict for j in judge(SPEED.claims, "desk", speeds(small, large))] == verdicts


def test_table_2_stands_beside_the_paper_s_and_says_that_no_gpu_was_run(tmp_path: Path) -> None:
    results = speeds(2.0, 3.0)
    (table,) = SPEED.tables("smoke", results)
    assert len(table.rows) == 5
    assert table.rows[0][:6] == ["ga3c", 100.0, 200.0, 2.0, 90.0, "not run"]
    assert table.rows[0][6:8] == [352, 1_361]
    (partly,) = SPEED.tables("smoke", {"ga3c_ga3c": results["ga3c_ga3c"]})
    assert partly.rows[0][1:4] == [None, 200.0, None]
    SPEED.plot("smoke", results, tmp_path / "speed.png")
    assert (tmp_path / "speed.png").stat().st_size > 0


def test_a_search_is_told_window_by_window(tmp_path: Path) -> None:
    rows = [(3.0, 1, 1, 1, 10.0, True), (6.0, 2, 1, 1, 15.0, True), (9.0, 2, 2, 1, 12.0, False)]
    one = {"rows": rows, "first_tps": 10.0, "best_tps": 15.0, "best": (2, 1, 1)}
    results = {"boxing": one, "pong": {**one, "best": (3, 1, 1)}}
    (table,) = ADJUSTMENT.tables("smoke", results)
    assert table.rows[0] == ["boxing", 3, 1, 10.0, 15.0, "2/1/1"]
    assert [j.verdict for j in judge(ADJUSTMENT.claims, "desk", results)] == ["confirmed"] * 2
    ADJUSTMENT.plot("smoke", results, tmp_path / "search.png")
    assert (tmp_path / "search.png").stat().st_size > 0


def test_a_real_search_begins_with_one_of_each_and_changes_one_by_one() -> None:
    settings = {
        "game": "scanline/Catch-v0",
        "seconds": 4.0,
        "adjust_seconds": 0.6,
        "settle_seconds": 0.2,
        "num_envs": 4,
        "network": "mlp",
        "num_workers": 0,
    }
    found = ADJUSTMENT.measure(Cell(name="catch", settings=settings), {})
    assert found["rows"][0][1:4] == (1, 1, 1)
    assert len(found["rows"]) >= 3
    assert found["best_tps"] >= found["first_tps"] > 0


# Figures 3 and 4


def grid(**changes: Any) -> dict[str, dict[str, float]]:
    """Two threads of each kind are best, more agents are better, the queue is short."""
    found = {}
    for place in ga3c_throughput.places("desk"):
        far = abs(place.predictors - 2) + abs(place.trainers - 2)
        tps = 100.0 + place.agents - 5 * far
        if place.network in ga3c_throughput.LARGE:
            tps *= 0.95
        found[place.name] = {
            "tps": tps,
            "pps": 5 * tps,
            "prediction_batch": place.agents / place.predictors,
            "training_queue": 10.0,
            "lag": 3.0,
            **changes,
        }
    return found


def test_the_grid_is_the_paper_s_on_both_devices_and_has_the_larger_networks() -> None:
    names = [cell.name for cell in THROUGHPUT.cells("desk")]
    assert len(names) == 2 * 4 * 25 + 4
    assert {"ga3c_128_2_2", "simulated_16_16_1", "ga3c-large-1_128_2_2"} <= set(names)
    for name in names:
        assert ga3c_throughput.GridPoint.of(name).name == name


def test_the_three_fastest_of_each_number_of_agents_are_shown(tmp_path: Path) -> None:
    here, simulated, large = THROUGHPUT.tables("desk", grid())
    assert len(here.rows) == len(simulated.rows) == 12 and len(large.rows) == 4
    assert here.rows[9][:4] == ["128/2/2", 228.0, 1.0, 1140.0]
    assert "SIMULATED" in simulated.title and "SIMULATED" in simulated.notes[0]
    assert large.rows[0][:2] == ["ga3c-large-4", "128/2/2"]
    assert large.rows[0][3] == pytest.approx(0.95)
    assert_reported(THROUGHPUT, grid(), tmp_path)
    only = {name: result for name, result in grid().items() if name.startswith("simulated")}
    assert len(THROUGHPUT.tables("desk", only)) == 1
    assert_reported(THROUGHPUT, only, tmp_path)


def test_the_claims_of_figures_3_and_4() -> None:
    assert verdicts(THROUGHPUT, grid()) == ["confirmed"] * 11
    full = verdicts(THROUGHPUT, grid(training_queue=99.0))
    long = [
        claim.sentence
        for claim, verdict in zip(THROUGHPUT.claims, full, strict=True)
        if verdict == "contradicted"
    ]
    assert long == ["The training queue stays well below its capacity."] * 2
    slow = grid()
    slow["ga3c-large-4_128_2_2"] = {**slow["ga3c-large-4_128_2_2"], "tps": 100.0}
    assert verdicts(THROUGHPUT, slow)[-1] == "contradicted"
    flipped = {name: {**r, "tps": 1e3 / r["tps"]} for name, r in grid().items()}
    wrong, right = ["contradicted"], ["confirmed"]
    assert verdicts(THROUGHPUT, flipped) == wrong * 4 + right * 4 + wrong * 2 + right
    places = {name: ga3c_throughput.GridPoint.of(name) for name in grid()}
    lopsided = {
        name: {**r, "tps": places[name].predictors / places[name].trainers}
        for name, r in grid().items()
    }
    assert verdicts(THROUGHPUT, lopsided)[4:6] == ["contradicted"] * 2
    assert set(verdicts(THROUGHPUT, {})) == {"not testable at this scale"}


def test_a_real_cell_waits_for_the_simulated_device() -> None:
    (cell,) = (c for c in THROUGHPUT.cells("smoke") if c.name == "simulated_16_1_1")
    settings = {**cell.settings, "seconds": 1.5, "warm_up": 0.3}
    found = THROUGHPUT.measure(Cell(name=cell.name, settings=settings), {})
    # One trainer, one segment per update: a call and 4 items for each of 5 steps.
    least = ga3c_throughput.SECONDS_PER_CALL + 20 * ga3c_throughput.SECONDS_PER_ITEM
    assert 0 < found["tps"] <= 1.1 / least
    assert 1 <= found["prediction_batch"] <= 16 and found["lag"] >= 0


# Figure 5


def curve(*scores: float | None, metrics: Any = None, **changes: Any) -> dict[str, Any]:
    """Scores at every 100 steps and 10 seconds."""
    points = [[100 * (n + 1), 10.0 * (n + 1), score] for n, score in enumerate(scores)]
    found = {"curve": points, "agent_steps": 100 * len(scores), "seconds": 10.0 * len(scores)}
    found |= {"agent_sps": 10.0, "updates": 20, "score": scores[-1], "metrics": metrics or {}}
    return {**found, **changes}


def configured(**frames: tuple[int, float | None]) -> dict[str, dict[str, Any]]:
    counts = {name: [[100, 2.0]] for name in ga3c_configurations.COUNTS}
    return {
        f"pong-{name}": curve(
            -21.0, score, metrics=counts, agent_steps=steps, agent_sps=steps / 60, seconds=60.0
        )
        for name, (steps, score) in frames.items()
    }


def test_the_claims_of_figure_5(tmp_path: Path) -> None:
    good = configured(
        single=(100, -20.0), sixteen=(400, -10.0), optimal=(900, 10.0), dynamic=(800, 9.5)
    )
    assert verdicts(CONFIGURATIONS, good) == ["confirmed"] * 3
    (table,) = CONFIGURATIONS.tables("smoke", good)
    assert table.rows[2][:4] == ["pong-optimal", "2/2/2", 900 * 4 / 1e6, 15.0]
    assert_reported(CONFIGURATIONS, good, tmp_path)
    bad = configured(
        single=(900, -20.0), sixteen=(400, -10.0), optimal=(100, 10.0), dynamic=(80, -9.0)
    )
    assert verdicts(CONFIGURATIONS, bad) == ["contradicted"] * 3
    unfinished = configured(
        single=(1, None), sixteen=(2, None), optimal=(3, None), dynamic=(2, None)
    )
    assert [claim.find(unfinished).holds for claim in CONFIGURATIONS.claims] == [None, True, None]


def test_the_four_settings_begin_with_the_same_weights() -> None:
    cells = CONFIGURATIONS.cells("smoke")
    assert [cell.name for cell in cells] == [
        f"pong-{name}" for name in ("single", "sixteen", "optimal", "dynamic")
    ]
    spaces = Spaces(frame_shape=(84, 84), frame_dtype="uint8", stack=4, num_actions=6)
    weights = []
    for cell in cells:
        seed, recipe = cell.settings["seed"], cell.settings["recipe"]
        plan = training.make_plan("ga3c", "pong", seed=seed, **recipe)
        network = training.build_learner(plan, spaces, plan.run.seed).network
        weights.append(torch.cat([p.detach().flatten() for p in network.parameters()]))
    assert all(torch.equal(each, weights[0]) for each in weights)


def test_a_real_configuration_is_limited_by_time() -> None:
    recipe = {"num_envs": 4, "num_predictors": 1, "num_trainers": 1, **SMALL}
    settings = {"game": CATCH, "seconds": 1.5, "seed": 0, "recipe": recipe}
    found = CONFIGURATIONS.measure(Cell(name="catch-small", settings=settings), {})
    assert 1.5 <= found["seconds"] < 10 and found["updates"] > 0
    assert [found["metrics"][name][-1][1] for name in ga3c_configurations.COUNTS] == [4, 1, 1]


# Figure 7


def batched(**runs: tuple[list[float | None], float, int]) -> dict[str, dict[str, Any]]:
    """Scores, lag and updates by least batch."""
    return {
        f"pong-{name.removeprefix('b')}": curve(
            *scores, metrics={ga3c_batch_size.LAG: [[100, lag]]}, updates=updates
        )
        for name, (scores, lag, updates) in runs.items()
    }


def test_the_claims_of_figure_7(tmp_path: Path) -> None:
    good = batched(
        b1=([-20.0, 5.0, -10.0], 9.0, 300),
        b20=([-20.0, 8.0, 7.0], 4.0, 200),
        b40=([-20.0, 9.0, 9.0], 2.0, 100),
        b80=([-20.0, -15.0, -12.0], 1.0, 50),
    )
    assert verdicts(BATCHES, good) == ["confirmed"] * 4
    (table,) = BATCHES.tables("smoke", good)
    assert table.rows[0] == ["pong-1", 5, 10.0, 10.0, 9.0, -10.0, 5.0, 15.0]
    assert [row[1] for row in table.rows] == [5, 20, 40, 80]
    assert_reported(BATCHES, good, tmp_path)
    bad = {**good, "pong-40": good["pong-1"], "pong-1": good["pong-40"]}
    assert verdicts(BATCHES, bad) == ["contradicted"] * 4
    unfinished = batched(b1=([None], 1.0, 1), b40=([None], 0.5, 1))
    assert [claim.find(unfinished).holds for claim in BATCHES.claims][2:] == [None, None]


# Section 4.4


def ended(failed: bool, least: float, share: float = 0.0) -> dict[str, Any]:
    lag = None if failed else 2.0
    return {
        "failed": failed,
        "updates": 50,
        "least_probability": least,
        "unlikely_share": share,
        "lag": lag,
    }


def test_the_claims_of_the_epsilon(tmp_path: Path) -> None:
    names = [cell.name for cell in EPSILON.cells("smoke")]
    assert len(names) == 10 and names[0] == "none-0.0003.0"
    good = {name: ended(False, 1e-3) for name in names}
    good["none-0.3.0"] = ended(True, 0.0, 0.1)
    good["exact-0.3.0"] = ended(False, 0.0, 0.1)
    assert verdicts(EPSILON, good) == ["confirmed"] * 3
    (table,) = EPSILON.tables("smoke", good)
    assert table.rows[1] == ["none 0.3", "1 of 1", 50, "0.0e+00", "10.00%", None]
    assert_reported(EPSILON, good, tmp_path)
    bad = {**good, "added-0.3.0": ended(True, 0.0), "lockstep-0.3.0": ended(False, 0.0, 0.2)}
    assert verdicts(EPSILON, bad) == ["contradicted", "confirmed", "contradicted"]
    calm = {name: ended(False, 1e-3) for name in names}
    assert [claim.find(calm).holds for claim in EPSILON.claims] == [None, None, None]


@pytest.mark.parametrize(("form", "fails"), [("none", True), ("added", False), ("lockstep", False)])
def test_a_probability_of_0_ends_a_run_without_epsilon_only(form: str, fails: bool) -> None:
    settings = {"form": form, "rate": 3e-4, "seed": 0, "seconds": 0.7, "num_envs": 4}
    settings |= {"game": CATCH, "recipe": {"num_workers": 0, "network": OneSided}}
    found = EPSILON.measure(Cell(name="x", settings=settings), {})
    assert found["failed"] == fails
    assert found["updates"] > 0


class OneSided(torch.nn.Module):
    """A policy whose first action has a probability that float32 rounds to 0."""

    def __init__(self, spaces: Spaces) -> None:
        super().__init__()
        self.bias = torch.nn.Parameter(torch.tensor([-200.0, 0.0, 0.0]))
        self.value = torch.nn.Parameter(torch.zeros(1))

    def forward(self, observations: torch.Tensor) -> PolicyValue:
        num = len(observations)
        return PolicyValue(self.bias.expand(num, -1), self.value.expand(num))
