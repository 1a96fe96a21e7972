"""CuLE (Dalton 2020): training to a score, and training rates of three algorithms.

`cule-training` fills Table 3: rates, minutes and frames to a score for CuLE's batching strategies.
`cule-systems` fills Table 4: training rates of DQN, A2C and PPO.

The paper's engines are Gym's and CuLE's on CPU and GPU. Here they are ale-py's vector environment
and our own emulator on the CPU: their columns stand beside the paper's, not for them.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from scanline.processes import granted_cores
from scanline.recipes.cule import vtrace_name
from scanline.tables import Table
from scanline.timing import Stretch

from .claims import Finding, claim
from .experiment import Cell, Experiment, Result, Results, Scale
from .learning import learning_curve, plot_groups
from .measuring import stretch, utilisation

PAPER = "Dalton, Frosio and Garland 2020, Accelerating RL through GPU Atari Emulation"
ENGINES = ("ale", "native")

# Table 3

CONFIGURATIONS = (
    (120, 1, 5, 5),
    (120, 5, 5, 1),
    (120, 20, 20, 1),
    (1200, 20, 20, 1),
)
"""(E, B, N, SPU) of the paper's rows on Gym environments: what a CPU can be compared with."""

TARGETS = {"assault": 800.0, "asterix": 1000.0, "ms_pacman": 1500.0, "pong": 18.0}
PAPER_ROWS: Mapping[tuple[str, tuple[int, ...]], tuple[float | None, ...]] = {
    ("assault", (120, 1, 5, 5)): (4.2, 7.0, 20.2, 5.0),
    ("assault", (120, 5, 5, 1)): (3.4, 28.3, None, None),
    ("assault", (120, 20, 20, 1)): (3.0, 24.7, 42.6, 7.5),
    ("assault", (1200, 20, 20, 1)): (4.9, 4.1, 44.2, 13.0),
    ("asterix", (120, 1, 5, 5)): (4.3, 7.1, 8.1, 2.0),
    ("asterix", (120, 5, 5, 1)): (3.3, 27.9, 35.2, 7.0),
    ("asterix", (120, 20, 20, 1)): (3.0, 24.8, 14.4, 2.5),
    ("asterix", (1200, 20, 20, 1)): (4.9, 4.1, 27.1, 8.0),
    ("ms_pacman", (120, 1, 5, 5)): (4.0, 6.7, 16.6, 4.0),
    ("ms_pacman", (120, 5, 5, 1)): (3.3, 27.1, 20.5, 4.0),
    ("ms_pacman", (120, 20, 20, 1)): (2.8, 23.7, 14.7, 2.5),
    ("ms_pacman", (1200, 20, 20, 1)): (4.8, 4.0, 12.4, 3.5),
    ("pong", (120, 1, 5, 5)): (4.3, 7.2, 21.2, 5.5),
    ("pong", (120, 5, 5, 1)): (3.4, 28.1, 12.2, 2.5),
    ("pong", (120, 20, 20, 1)): (3.0, 24.9, 8.4, 1.5),
    ("pong", (1200, 20, 20, 1)): (4.8, 4.0, 8.7, 2.5),
}
"""Training KFPS, updates/s, minutes and million training frames to the score."""

TRAINING: Mapping[Scale, Mapping[str, Any]] = {
    "smoke": {"games": ["pong"], "agent_steps": 4_800, "most_envs": 120},
    "desk": {"games": ["pong"], "agent_steps": 3_000_000, "most_envs": 1200},
    "paper": {"games": list(TARGETS), "agent_steps": 20_000_000, "most_envs": 1200},
}


def training_cells(scale: Scale) -> list[Cell]:
    sizes = TRAINING[scale]
    return [
        Cell(
            name=f"{game}-{'-'.join(map(str, knobs))}",
            settings={"game": game, "knobs": list(knobs), "agent_steps": sizes["agent_steps"]},
        )
        for game, knobs in itertools.product(sizes["games"], CONFIGURATIONS)
        if knobs[0] <= sizes["most_envs"]
    ]


def measure_training(cell: Cell, before: Results) -> Result:
    game, knobs = cell.settings["game"], cell.settings["knobs"]
    found = learning_curve(
        vtrace_name(tuple(knobs)),
        game,
        agent_steps=cell.settings["agent_steps"],
        target_score=TARGETS[game],
        evaluation_games=10,
    )
    return {**found, "ups": found["updates"] / found["seconds"]}


def training_tables(scale: Scale, results: Results) -> list[Table]:
    rows = []
    for name, result in results.items():
        game, *knobs = name.split("-")
        paper = PAPER_ROWS[game, tuple(map(int, knobs))]
        minutes, frames = result["seconds"] / 60, result["agent_steps"] / 1e6
        to_score = [minutes, frames] if result["reached"] else [None, None]
        rows.append([name, result["agent_sps"] / 1e3, result["ups"], *to_score, *paper])
    columns = ("game-E-B-N-SPU", "KFPS", "UPS", "min", "Mfr", "paper KFPS", "UPS", "min", "Mfr")
    title = "Table 3: KFPS, updates/s, minutes and Mframes to the score of training games"
    return [Table(title=title, columns=columns, rows=rows, digits=1)]


def training_plot(scale: Scale, results: Results, path: Path) -> None:
    games = dict.fromkeys(name.split("-")[0] for name in results)
    plot_groups(
        path,
        {
            game: [(n.partition("-")[2], r) for n, r in results.items() if n.startswith(game)]
            for game in games
        },
    )


@claim(
    "On Pong, 20 blocks over 20 steps reach 18 sooner than one batch of 5.",
    "Table 3, rows of 120 Gym environments",
)
def _multi_batch_is_faster(results: Results) -> Finding:
    plain, batched = results["pong-120-1-5-5"], results["pong-120-20-20-1"]
    words = [
        f"{r['seconds'] / 60:.1f} min" if r["reached"] else "not reached" for r in (plain, batched)
    ]
    if not plain["reached"] and not batched["reached"]:
        return Finding(None, f"score 18 with (1,5,5) {words[0]}, with (20,20,1) {words[1]}")
    sooner = batched["reached"] and (not plain["reached"] or batched["seconds"] < plain["seconds"])
    return Finding(sooner, f"score 18 with (1,5,5) {words[0]}, with (20,20,1) {words[1]}")


# Table 4

PAPER_SYSTEMS = {
    ("dqn", 256): (6.4, 7.2, 14.4),
    ("dqn", 1024): (8.4, 8.6, 25.6),
    ("a2c", 256): (12.8, 10.4, 19.6),
    ("a2c", 1024): (15.2, 14.2, 51.0),
    ("ppo", 256): (12.0, 10.0, 14.0),
    ("ppo", 1024): (10.6, 10.2, 36.0),
}
"""Thousand raw frames/s on System I: OpenAI Gym, CuLE on the CPU, CuLE on the GPU."""

SYSTEMS: Mapping[Scale, Mapping[str, Any]] = {
    "smoke": {"num_envs": [128], "seconds": 2.0},
    "desk": {"num_envs": [256, 1024], "seconds": 30.0},
    "paper": {"num_envs": [256, 1024], "seconds": 120.0},
}
_SETTINGS: Mapping[str, Mapping[str, Any]] = {
    "dqn": {"learning_starts_agent_steps": 2_048, "capacity_agent_steps": 100_000},
    "a2c": {},
    "ppo": {"rollout_agent_steps": 32},
}


def _intensity(kind: str, num_envs: int) -> dict[str, float]:
    """The released DQN makes at most 8 updates of 32 per step of all environments."""
    return {"training_intensity": min(8.0, 8 * 32 / num_envs)} if kind == "dqn" else {}


def systems_cells(scale: Scale) -> list[Cell]:
    sizes = SYSTEMS[scale]
    return [
        Cell(
            name=f"{kind}-{engine}-{num}",
            settings={
                "recipe": f"cule-{kind}",
                "engine": engine,
                "seconds": sizes["seconds"],
                "settings": {"num_envs": num, **_SETTINGS[kind], **_intensity(kind, num)},
            },
        )
        for kind, num, engine in itertools.product(_SETTINGS, sizes["num_envs"], ENGINES)
    ]


def measure_systems(cell: Cell, before: Results) -> Result:
    asked = cell.settings
    first = asked["settings"].get("learning_starts_agent_steps", 0)
    with utilisation() as cores:
        timing = stretch(
            asked["recipe"],
            "pong",
            seconds=asked["seconds"],
            warm_up=Stretch(agent_steps=first, seconds=asked["seconds"] / 10),
            engine=asked["engine"],
            decorrelation_agent_steps=0,
            **asked["settings"],
        )
    return {"raw_fps": timing.raw_frames_per_second, "ups": timing.updates_per_second, **cores}


def systems_tables(scale: Scale, results: Results) -> list[Table]:
    rows = []
    for name, result in results.items():
        kind, _engine, num = name.split("-")
        paper = PAPER_SYSTEMS.get((kind, int(num)), (None, None, None))
        figures = result["raw_fps"] / 1e3, result["ups"], result["cpu_percent"]
        rows.append([name, *figures, *paper])
    columns = ("algorithm-engine-envs", "KFPS", "UPS", "CPU%", "paper Gym", "CuLE CPU", "GPU")
    title = (
        f"Table 4: thousand raw frames/s while training on {granted_cores()} cores without a GPU"
    )
    return [Table(title=title, columns=columns, rows=rows, digits=1)]


EXPERIMENTS = (
    Experiment(
        name="cule-training",
        summary="CuLE's batching strategies with V-trace: rates, minutes and frames to a score.",
        paper=f"{PAPER}, Table 3 and Figure 5",
        cells=training_cells,
        measure=measure_training,
        tables=training_tables,
        claims=(_multi_batch_is_faster,),
        plot=training_plot,
        notes=(
            "KFPS and Mframes are training frames, as in the paper's table: agent steps.",
            "Here a score is reached when the mean of the last 100 TRAINING games is so high; in "
            "the paper when the mean of 10 TEST games is, played every 500,000 training frames by "
            "its released code. Minutes are training time in both.",
        ),
        line=lambda result: f"score {result['score']} at {result['agent_sps']:,.0f} steps/s",
    ),
    Experiment(
        name="cule-systems",
        summary="Training rates of DQN, A2C and PPO on two engines.",
        paper=f"{PAPER}, Table 4",
        cells=systems_cells,
        measure=measure_systems,
        tables=systems_tables,
        notes=(
            "DQN learns as the released code does: at most 8 updates of 32 per step of all "
            "environments, which is an intensity of 1 with 256 of them and 0.25 with 1024.",
            "CPU%: share of all cores that were busy, start and warm-up included; the paper gives "
            "the utilisation of its GPU instead, of which there is none here.",
        ),
        line=lambda result: f"{result['raw_fps']:,.0f} raw frames/s",
    ),
)
