"""The other papers' experiments: their numbers are consistent, their claims decide as they say."""

from __future__ import annotations

import math
import os
import re
import signal
import threading
import time
from pathlib import Path
from typing import Any

import pytest
import torch

from scanline import training
from scanline.processes import granted_core_ids
from scanline_lab.experiments import (
    EXPERIMENTS,
    Cell,
    accelerated_async,
    accelerated_gradients,
    accelerated_learners,
    accelerated_sampling,
    accelerated_secondary,
    command,
    cule,
    cule_load,
    cule_steps,
    learning,
    paac,
    pong,
)
from scanline_lab.experiments.coprocessor import SimulatedCoprocessor, TinyPolicy
from scanline_lab.experiments.measuring import sampling_rate, sampling_rate_side_by_side

CATCH = "scanline/Catch-v0"


SECTIONS = {
    "Clemente": ("2.1", "2.2", "2.3", "5.1", "5.2"),
    "Babaeizadeh": ("3.1", "3.2", "4.1", "4.2", "4.3", "4.4", "5.1", "5.2", "5.3"),
    "Stooke": ("4.1", "4.2", "4.3", "5.1", "5.2", "5.3", "5.4", "5.5"),
    "Daley": ("2.1", "2.2", "5.1", "5.2"),
    "Dalton": ("7.1", "7.2", "7.3", "7.4"),
}
"""Numbered parts of the papers, by first author."""


@pytest.mark.parametrize("name", [name for name in EXPERIMENTS if not name.startswith("learning")])
def test_a_claim_names_a_section_that_its_paper_has(name: str) -> None:
    experiment = EXPERIMENTS[name]
    known = next(own for author, own in SECTIONS.items() if experiment.paper.startswith(author))
    sources = " ".join([experiment.paper, *(claim.source for claim in experiment.claims)])
    assert set(re.findall(r"section (\d\.\d)", sources)) <= set(known)


@pytest.mark.parametrize(("place", "row"), cule.PAPER_ROWS.items())
def test_cule_s_table_is_consistent(place: tuple[str, Any], row: tuple[float, ...]) -> None:
    """Updates/s times environments times steps per update are the training frames/s."""
    _, (num_envs, _, _, steps_per_update) = place
    thousands, updates_per_second = row[:2]
    assert updates_per_second * num_envs * steps_per_update / 1e3 == pytest.approx(
        thousands, rel=0.04
    )


def test_the_learning_rates_are_the_paper_s_and_between_them_straight_in_logarithms() -> None:
    for size, rate in accelerated_secondary.RATES.items():
        assert accelerated_secondary.rate_of(size) == pytest.approx(rate)
    assert accelerated_secondary.rate_of(128) == pytest.approx(math.sqrt(2.5e-4 * 7.5e-4))
    assert accelerated_secondary.rate_of(4096) == pytest.approx(15e-4)


def taught(first: int, second: int, **changes: Any) -> dict[str, Any]:
    """A small cell of the secondary learner."""
    recipe = {
        "training_intensity": 0.5,
        "learning_starts_agent_steps": 64,
        "capacity_agent_steps": 512,
        "decorrelation_agent_steps": 0,
        "target_agent_steps": 64,
        "torch_threads": 1,
    }
    settings = {"first": first, "second": second, "seed": 0, "recipe": recipe}
    settings |= {"agent_steps": 256, "every": 128, "pause": 32, **changes}
    cell = Cell(name=f"{first}-teaches-{second}.0", settings=settings)
    return dict(accelerated_secondary.measure(cell, {}))


def test_a_second_learner_keeps_its_own_rate_and_does_not_disturb_the_first() -> None:
    large, small = taught(16, 32), taught(16, 8)
    for result in (large, small):
        assert [p["agent_steps"] for p in result["pauses"]] == [128, 256]
    last_large, last_small = large["pauses"][-1], small["pauses"][-1]
    assert last_large["first_updates"] == (256 - 64) // 32
    assert last_large["second_updates"] == (256 - 64) // 64
    assert last_small["second_updates"] == (256 - 64) // 16
    assert last_large["first_norm"] == last_small["first_norm"]
    assert last_large["second_norm"] != last_small["second_norm"]


def pair(first: float, second: float, norms: tuple[float, float] = (1.0, 2.0)) -> dict[str, Any]:
    pause = {"first_score": first, "second_score": second, "agent_steps": 1}
    return {"pauses": [{**pause, "first_norm": norms[0], "second_norm": norms[1]}]}


def test_claims_of_the_second_learner() -> None:
    results = {
        "64-teaches-2048.0": pair(100.0, 3.0, norms=(5.0, 4.0)),
        "2048-teaches-64.0": pair(100.0, 95.0, norms=(4.0, 5.0)),
        "256-teaches-256.0": pair(100.0, 90.0),
    }
    claims = EXPERIMENTS["accelerated-secondary-learner"].claims
    assert [claim.find(results).holds for claim in claims] == [True, True, True, True]
    failed = {**results, "2048-teaches-64.0": pair(100.0, 10.0, norms=(5.0, 4.0))}
    assert [claim.find(failed).holds for claim in claims] == [False, True, True, False]
    unlearned = {name: pair(2.0, 2.0) for name in results}
    assert claims[0].find(unlearned).holds is None


def curve(*scores: float | None, reached: bool = False, seconds: float = 60.0) -> dict[str, Any]:
    points = [[100 * (n + 1), 10.0 * (n + 1), score] for n, score in enumerate(scores)]
    row = {"curve": points, "agent_steps": 100, "seconds": seconds, "agent_sps": 10.0, "ups": 1.0}
    return {**row, "updates": 5, "score": scores[-1], "reached": reached}


def test_a_curve_tells_when_a_score_was_reached() -> None:
    found = curve(None, -20.0, 3.0, 1.0)
    assert learning.scored(found) == [(200, 20.0, -20.0), (300, 30.0, 3.0), (400, 40.0, 1.0)]
    assert learning.steps_to(found, 1.0) == 300
    assert learning.steps_to(found, 5.0) is None


def test_paac_s_claims(tmp_path: Path) -> None:
    alike, diverges = EXPERIMENTS["paac-scaling"].claims
    good = {f"pong-{n}": curve(-20.0, 1.0, 10.0) for n in (16, 32, 64, 128)}
    results = {**good, "pong-256": curve(-20.0, -21.0, -21.0)}
    assert (alike.find(results).holds, diverges.find(results).holds) == (True, True)
    flat = {name: curve(-20.0, -20.0) for name in results}
    assert (alike.find(flat).holds, diverges.find(flat).holds) == (None, None)
    unfinished = {name: curve(None) for name in results}
    assert (alike.find(unfinished).holds, diverges.find(unfinished).holds) == (None, None)
    paac.scaling_plot("smoke", unfinished, tmp_path / "plot.png")
    shares = {"environment": 50.0, "learning": 30.0, "acting": 7.0, "other": 13.0}
    usage = {f"nips-{n}": {"agent_sps": 1000.0 + n, "shares": shares} for n in (16, 32, 64)}
    usage["nature-32"] = {"agent_sps": 600.0, "shares": shares}
    claims = EXPERIMENTS["paac-time-usage"].claims
    assert [claim.find(usage).holds for claim in claims] == [True, True, True]
    assert len(paac.usage_tables("smoke", usage)[0].rows) == 4


def test_minutes_of_pong(tmp_path: Path) -> None:
    names = [cell.name for cell in EXPERIMENTS["pong-minutes"].cells("desk")]
    assert names[:5] == ["vtrace.0", "ppo.0", "paac.0", "ga3c.0", "vtrace.1"]
    published = EXPERIMENTS["pong-minutes"].cells("paper")
    assert published[0].name == "cule-vtrace.0" and published[0].settings["settings"] == {}
    (within,) = EXPERIMENTS["pong-minutes"].claims
    results = {name: curve(-20.0, -3.0, 18.0, reached=True, seconds=480.0) for name in names}
    results["vtrace.1"] = curve(-20.0, -20.0, seconds=7_200.0)
    memory = {"metrics": {pong.MEMORY: [[100, 5e8], [200, 5.5e8], [300, 5.7e8]]}}
    results = {name: {**result, **memory} for name, result in results.items()}
    theirs = {f"cule-{n}": result for n, result in results.items() if n.startswith("vtrace")}
    found = within.find(theirs)
    assert found.holds and found.measured == "2 of 3 runs reached it, after 8.0 min (median)"
    with pytest.raises(KeyError, match="cule-vtrace"):  # our own settings decide nothing
        within.find(results)
    (table,) = pong.tables("desk", results)
    assert table.rows[0][:4] == ["vtrace.0", 18.0, "yes", 8.0]
    assert table.rows[4][2] == "no"
    assert table.rows[0][7] is None  # nothing was seen after a minute
    late = {"curve": [[100, 10.0, 1.0], [200, 70.0, 1.0], [300, 90.0, 1.0]], **memory}
    assert pong.grown_megabytes(late) == pytest.approx(20.0)
    pong.plot("desk", results, tmp_path / "plot.png")
    assert table.rows[0][8] is None and within.scales == ("paper",)
    slow = {name: {**result, "seconds": 600.0} for name, result in theirs.items()}
    assert within.find(slow).holds is False
    assert within.find({"cule-vtrace.1": results["vtrace.1"]}).holds is None


def learner(num: int, rate: float, waited: float, *scores: float) -> dict[str, Any]:
    """A run of so many learners; learning takes 40 % of their time."""
    times = {name: [[100, 2.0]] for name in accelerated_async.TIMES}
    times["perf/time_learning"] = [[100, 4.0]]
    metrics = {accelerated_async.LAG: [[100, num - 1.0]], accelerated_async.WAITED: [[100, waited]]}
    found = curve(*scores)
    return {**found, "metrics": {**metrics, **times}, "agent_sps": rate, "learners": num}


def test_claims_and_table_of_asynchronous_learners(tmp_path: Path) -> None:
    results = {f"a3c-{num}": learner(num, 500.0 * num, 0.01, -20.0, 18.0) for num in (1, 2, 8)} | {
        f"appo-{period}": learner(8, 900.0, 0.0, -20.0, 17.0) for period in (1, 4)
    }
    experiment = EXPERIMENTS["accelerated-async"]
    assert [claim.find(results).holds for claim in experiment.claims] == [True] * 4
    (table,) = experiment.tables("smoke", results)
    assert table.rows[1][:2] == ["a3c-2", 2] and table.rows[1][4:6] == [2.4, 1.0]
    assert table.rows[2][3] == pytest.approx(50e6 / 4_000 / 3_600)
    assert table.rows[3][4] == 0.71
    assert max(len(line) for line in table.text().splitlines()[1:4]) <= 80
    accelerated_async.plot("smoke", results, tmp_path / "plot.png")
    assert (tmp_path / "plot.png").stat().st_size > 1_000
    slow = results | {
        "a3c-8": learner(8, 100.0, 0.3, -20.0, -20.0),
        "appo-4": learner(8, 1.0, 0.0, -21.0),
    }
    assert [claim.find(slow).holds for claim in experiment.claims] == [False] * 4
    cells = {cell.name: cell.settings["recipe"] for cell in experiment.cells("desk")}
    assert [name for name in cells if name.startswith("a3c")] == [f"a3c-{n}" for n in (1, 2, 4, 8)]
    assert [cells[f"appo-{n}"]["sync_updates"] for n in (1, 2, 3, 4)] == [1, 2, 3, 4]


def test_a_curve_has_falls_a_best_and_no_more_points_than_are_drawn() -> None:
    found = curve(None, -20.0, 3.0, -1.0, 5.0, 4.0)
    assert learning.best_score(found) == 5.0 and learning.deepest_fall(found) == 4.0
    assert learning.best_score(curve(None)) is learning.deepest_fall(curve(None)) is None
    for num in (0, 1, 200, 201, 999):
        rows = [{"agent_steps": n} for n in range(num)]
        kept = learning.thinned(rows)
        assert len(kept) <= learning.MOST_POINTS and kept[-1:] == rows[-1:]
        assert num > learning.MOST_POINTS or kept == rows
    assert list(learning.by_game({"ms-pacman-1": found, "pong-1": found})) == ["ms-pacman", "pong"]


def test_gradient_claims_and_the_forms_settings() -> None:
    def angled(*values: float, score: float = 1.0) -> dict[str, Any]:
        points = [[n, value] for n, value in enumerate(values)]
        return {"metrics": {accelerated_gradients.COSINE: points}, "updates": 5, "score": score}

    results = {
        **{f"{form}-16": angled(0.7, 0.72) for form in accelerated_gradients.FORMS},
        **{f"{form}-64": angled(0.8, 0.9) for form in accelerated_gradients.FORMS},
    }
    claims = EXPERIMENTS["accelerated-gradients"].claims
    assert [claim.find(results).holds for claim in claims] == [True, True, True]
    results["plain-64"] = angled(0.5, score=9.0)
    assert [claim.find(results).holds for claim in claims] == [True, False, False]
    cells = {cell.name: cell.settings["recipe"] for cell in accelerated_gradients.cells("smoke")}
    assert cells["warm-up-16"]["warmup_agent_steps"] == 192
    assert cells["plain-16"]["warmup_agent_steps"] == 0
    assert cells["same-start-64"]["decorrelation_agent_steps"] == 0


def test_the_log_s_cosine_reaches_the_curve() -> None:
    small = {"network": "mlp", "num_workers": 0, "torch_threads": 1, "cosine_every_updates": 2}
    name = accelerated_gradients.COSINE
    found = learning.learning_curve("a2c", CATCH, agent_steps=800, metrics=(name,), **small)
    assert found["metrics"][name] and all(-1 <= v <= 1 for _, v in found["metrics"][name])


def test_cule_s_claims_and_tables(tmp_path: Path) -> None:
    (sooner,) = EXPERIMENTS["cule-training"].claims
    plain, batched = "pong-120-1-5-5", "pong-120-20-20-1"
    fast = {plain: curve(1.0), batched: curve(18.0, reached=True)}
    slow = {plain: curve(18.0, reached=True), batched: curve(18.0, reached=True, seconds=90.0)}
    verdicts = [
        sooner.find(r).holds for r in (fast, slow, {plain: curve(None), batched: curve(None)})
    ]
    assert verdicts[:2] == [True, False] and verdicts[2] is None
    rows = cule.training_tables("smoke", fast)[0].rows
    assert rows[0][3:5] == [None, None] and rows[1][3] == pytest.approx(1.0)
    assert rows[1][5:] == [3.0, 24.9, 8.4, 1.5]
    cule.training_plot("smoke", fast, tmp_path / "plot.png")
    assert (tmp_path / "plot.png").stat().st_size > 1_000


def load_results() -> dict[str, Any]:
    rates = {"emulation": 9.0, "inference": 6.0, "training": 3.0}
    found: dict[str, Any] = {
        f"{game}-{load}-{engine}-{num}": {"raw_fps": rate * num * (2 if engine == "native" else 1)}
        for load, rate in rates.items()
        for engine in cule.ENGINES
        for game in ("pong", "boxing", "assault")
        for num in (16, 64)
        if load != "training" or game == "pong"
    }
    windows = [[10 * (n + 1), 1000.0, n % 2] for n in range(6)]
    return found | {
        f"pong-steps-{engine}-8": {"windows": windows, "raw_fps": 1000.0} for engine in cule.ENGINES
    }


def test_load_claims_compare_engines_loads_and_first_steps() -> None:
    results = load_results()
    claims = EXPERIMENTS["cule-load"].claims
    assert [claim.find(results).holds for claim in claims] == [True, True, True, True, None]
    results["pong-training-native-16"] = {"raw_fps": 1.0}
    assert claims[1].find(results).holds is False
    results["boxing-inference-native-16"] = results["pong-emulation-native-16"] = {"raw_fps": 9e3}
    results["pong-inference-native-16"] = {"raw_fps": 9e3}
    assert [claims[place].find(results).holds for place in (0, 2)] == [False, False]
    windows = [[10, 1000.0, 0], [20, 800.0, 1], [30, 750.0, 0]]
    results["pong-steps-native-8"] = results["pong-steps-cuda-8"] = {"windows": windows}
    assert [claim.find(results).holds for claim in claims[3:]] == [False, True]


def test_load_tables_give_the_boxes_over_games(tmp_path: Path) -> None:
    results = load_results() | {"boxing-emulation-ale-16": {"raw_fps": 64.0}}
    boxes, loads, steps = EXPERIMENTS["cule-load"].tables("smoke", results)
    assert boxes.rows[0] == ["emulation, ale", 16, 64, 104, 144, 144, 144, 9]
    assert len(boxes.rows) == 8
    assert loads.rows[0] == [16, 144, 288, 96, 192, 48, 96]
    assert steps.rows[0] == ["pong, ale", 1000, 1000, 1.0, 3, 1]
    cule_load.plot("smoke", results, tmp_path / "plot.png")
    assert (tmp_path / "plot.png").stat().st_size > 1_000


@pytest.mark.parametrize("engine", cule.ENGINES)
def test_environments_that_start_alike_are_stepped_and_reset(engine: str) -> None:
    settings = {"game": "asterix", "engine": engine, "num_envs": 2, "num_steps": 600}
    result = cule_steps.measure(Cell(name="any", settings=settings))
    steps, rates, resets = zip(*result["windows"], strict=True)
    assert steps == tuple(range(10, 601, 10))
    assert min(rates) > 0 and sum(resets) > 0


def by_hours(table: dict[str, tuple[float | None, ...]], own: bool = True) -> dict[str, Any]:
    """Results of the learners' experiment that would take so many hours."""
    return {
        f"{name}-{num}": {
            "agent_sps": accelerated_learners.PAPER_AGENT_STEPS / 3600 / hours,
            "ups": 1.0,
            "score": None,
            "cores": num,
            "own_cores": own,
        }
        for name, row in table.items()
        for num, hours in zip(accelerated_learners.PAPER_LEARNERS, row, strict=True)
        if hours is not None
    }


def test_the_paper_s_own_hours_confirm_its_claims_about_learners(tmp_path: Path) -> None:
    table = {name: row.paper_hours for name, row in accelerated_learners.ROWS.items()}
    results, claims = by_hours(table), EXPERIMENTS["accelerated-learners"].claims
    assert [claim.find(results).holds for claim in claims] == [True] * 6
    assert "A2C 6.44 times" in claims[0].find(results).measured
    hours, rates = EXPERIMENTS["accelerated-learners"].tables("paper", results)
    for row in hours.rows:
        mine, paper = row[1:5], row[5:]
        assert mine == [each and pytest.approx(each) for each in paper]
    assert len(rates.rows) == 4 * 5 + 3 * 2
    accelerated_learners.plot("paper", results, tmp_path / "plot.png")
    assert (tmp_path / "plot.png").stat().st_size > 1_000


def test_learners_that_shared_cores_or_gained_nothing_confirm_nothing() -> None:
    table = {name: row.paper_hours for name, row in accelerated_learners.ROWS.items()}
    claims = EXPERIMENTS["accelerated-learners"].claims
    shared = by_hours(table, own=False)
    assert [claim.find(shared).holds for claim in claims] == [None] * 6
    slow: dict[str, tuple[float | None, ...]] = {
        **dict.fromkeys(table, (1.0, 1.1, 1.2, 1.3)),
        "A3C": (None, 1.0, 1.0, 1.0),
        "APPO": (None, 2.0, 2.0, 2.0),
        "CatDQN": (1.0, 2.0, 3.0, 4.0),
        "DQN": (1.0, 0.5, 0.25, 0.125),
    }
    assert [claim.find(by_hours(slow)).holds for claim in claims] == [False] * 6


def test_batches_grow_with_learners_or_are_divided_as_in_the_paper() -> None:
    cells = {cell.name: cell.settings for cell in accelerated_learners.cells("paper")}
    envs = {name: cells[f"{name}-4"]["settings"]["num_envs"] for name in accelerated_learners.ROWS}
    assert envs == {
        **{"A2C": 64, "A3C": 16, "PPO": 32, "APPO": 8},
        **{"DQN": 32, "Rainbow": 32, "CatDQN": 64},
    }
    assert "A3C-1" not in cells and cells["A2C-1"]["settings"]["num_envs"] == 16


def test_learners_are_timed_on_a_real_run() -> None:
    cells = {cell.name: cell for cell in accelerated_learners.cells("smoke")}
    asked = dict(cells["A2C-2"].settings) | {"seconds": 0.3, "warm_up": 0.0}
    cores = granted_core_ids()
    result = accelerated_learners.measure(Cell(name="any", settings=asked), {})
    assert result["agent_sps"] > 0 and result["ups"] > 0
    assert result["cores"] == min(2, len(cores)) and granted_core_ids() == cores


def test_sampling_claims_compare_groups_barriers_and_cores() -> None:
    def rates(kind: str, gain: float, per_core: float) -> dict[str, Any]:
        kinds = (*accelerated_sampling.GROUPS, *accelerated_sampling.SIDE_BY_SIDE)
        found = {f"{k}-{n}": {"agent_sps": 10.0 + n} for k in kinds for n in (8, 32)}
        found |= {f"{kind}-{n}": {"agent_sps": 10.0 + n + gain} for n in (8, 32)}
        cores = {"cores-2x8": per_core, "idle-2x8": 100.0, "cores-16x8": 1.0, "idle-16x8": 100.0}
        return found | {n: {"agent_sps": r, "has_cores": "16x" not in n} for n, r in cores.items()}

    experiment = EXPERIMENTS["accelerated-sampling"]
    real, simulated, free, rises, near = experiment.claims
    good = rates("simulated-2", 5.0, 85.0)
    assert simulated.find(good).holds and rises.find(good).holds and near.find(good).holds
    assert not real.find(good).holds and not free.find(good).holds
    assert free.find(rates("free", 1.0, 85.0)).holds
    assert not near.find(rates("free", 1.0, 40.0)).holds
    groups, table_3, cores = experiment.tables("desk", good)
    assert [row[0] for row in groups.rows] == [row[0] for row in table_3.rows] == [8, 32]
    assert [row[0] for row in cores.rows] == ["2 x 8"]


@pytest.mark.parametrize("barrier", [True, False])
def test_samplers_side_by_side_have_a_rate(barrier: bool) -> None:
    plan = training.make_plan(
        "accelerated-a2c", "pong", num_envs=2, network=TinyPolicy, num_threads=1
    )
    devices = [SimulatedCoprocessor(1e-3, 0.0) for _ in range(2)]
    rate = sampling_rate_side_by_side([plan] * 2, devices, seconds=0.2, barrier=barrier)
    assert rate > 0 and all(device.num_calls > 1 for device in devices)


@pytest.mark.parametrize("decider", ["random", "network", "simulated"])
def test_a_sampler_alone_has_a_rate(decider: Any) -> None:
    network = TinyPolicy if decider == "simulated" else "nips-104x80"
    plan = training.make_plan("accelerated-a2c", "pong", num_envs=2, network=network)
    device = SimulatedCoprocessor(1e-3, 0.0)
    rate = sampling_rate(plan, decider, seconds=0.2, device=device)
    assert rate > 0
    if decider == "simulated":
        assert rate < 2 / 1e-3 and device.num_calls > 10


def test_a_learning_curve_is_that_of_a_run() -> None:
    small = {"network": "mlp", "num_workers": 0, "torch_threads": 1}
    found = learning.learning_curve("a2c", CATCH, agent_steps=800, **small)
    assert found["agent_steps"] == 800 and found["updates"] == 10
    assert [point[0] for point in found["curve"]] == list(range(80, 801, 80))
    assert torch.isfinite(torch.tensor(found["agent_sps"])) and not found["reached"]


def test_a_run_that_a_signal_ends_is_no_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    small = {"network": "mlp", "num_workers": 0, "torch_threads": 1}
    monkeypatch.setattr(pong, "LEARNERS", {"a2c": pong.Learner(18.0, small)})
    monkeypatch.setattr(pong, "GAME", CATCH)

    def stop() -> None:
        while signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            time.sleep(0.01)  # the run does not listen yet
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=stop, daemon=True).start()
    words = ["pong-minutes", "--scale", "desk", "--out", str(tmp_path / "out")]
    assert command.run(words, "scanline reproduce") == command.STOPPED
    assert "the same command goes on" in capsys.readouterr().out
    assert not list((tmp_path / "out" / "cells").glob("*.json"))
