"""What a warp of consoles executes: instructions of 32 lanes together, by game and step.

    python benchmarks/divergence.py [--games pong,seaquest] [--loops plain,lanes] [--json FILE]
    python benchmarks/divergence.py --picture FILE.png --json FILE

Runs the kernel `scanline_play` of engine `cuda` as PTX on the host (ptx_warp.py), one agent step at
each of a few places after a reset, and counts every instruction once per warp, with the lanes that
took part. Between these places engine `native` plays; each counted step must equal its own.
Counts are exact for the PTX; the assembler's code for a GPU may be shorter or longer.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from ptx_warp import Counted, WarpLauncher

from scanline import protocols
from scanline.engines import EngineSettings
from scanline.engines.device import DeviceEngine
from scanline.engines.native import NativeEngine
from scanline.records import StepArrays

GAMES = (
    *("pong", "breakout", "space_invaders", "seaquest", "qbert", "riverraid"),
    *("asteroids", "beam_rider", "ms_pacman", "pitfall2"),
)
LOOPS = {"plain": ("SCANLINE_PLAIN_LOOP",), "lanes": ()}
PLACES = (2, 16, 64, 200)
"""Agent steps after a reset at which a step is counted."""
LANES = 32
FRAMES_PER_STEP = 4
UNSEEN_PER_STEP = 2


def summary(counts: Sequence[Counted]) -> dict[str, float]:
    """Of one agent step. An unseen frame is one without a picture: two of four."""
    issued = sum(count.instructions * count.issued for count in counts)
    taken = sum(count.instructions * count.lanes for count in counts)
    unseen = [count for count in counts if "NoPixels" in count.function]
    unseen_issued = sum(count.instructions * count.issued for count in unseen)
    unseen_taken = sum(count.instructions * count.lanes for count in unseen)
    return {
        "warp_instructions_per_frame": issued / FRAMES_PER_STEP,
        "active_lanes": taken / issued,
        "warp_instructions_per_unseen_frame": unseen_issued / UNSEEN_PER_STEP,
        "active_lanes_unseen": unseen_taken / unseen_issued,
        "memory_share": sum(count.memory * count.issued for count in counts) / issued,
    }


def _arrays(engine: NativeEngine) -> StepArrays:
    return StepArrays.allocate(engine.spaces, LANES)


def _advance(engine: Any, actions: np.ndarray[Any, Any], out: StepArrays) -> None:
    engine.send(0, actions)
    engine.recv(0, out)


def rows(game: str, loop: str, places: Sequence[int]) -> Iterator[dict[str, Any]]:
    """One per place; raises where the kernel does not play like `native`."""
    settings = EngineSettings(
        game=game, protocol=protocols.get("baselines"), num_envs=LANES, seed=4
    )
    launcher = WarpLauncher(LOOPS[loop])
    native, device = NativeEngine(settings), DeviceEngine(settings, launcher)
    (program,) = launcher.programs.values()
    both = [_arrays(native), _arrays(native)]
    native.reset(0, both[0])
    device.reset(0, both[1])
    draws = np.random.default_rng(7).integers(
        0, native.spaces.num_actions, (max(places) + 1, LANES)
    )
    for step in range(max(places) + 1):
        if step + 1 in places:  # a restored console draws its first frames, seen or not
            device.restore(native.snapshot())
            _advance(device, draws[step], both[1])
        if step in places:
            program.take_counts()
            _advance(device, draws[step], both[1])
            counted = summary(program.take_counts())
        _advance(native, draws[step], both[0])
        if step in places:
            if not np.array_equal(both[0].frame, both[1].frame):
                raise AssertionError(f"{game}: step {step} differs from engine native")
            yield {"game": game, "loop": loop, "step": step, **counted}


def table(found: Sequence[dict[str, Any]]) -> str:
    """Mean over places, one line per game: both loops and their ratio."""
    lines = [
        "| game | plain: million (active lanes) | lanes: million (active lanes) | part |",
        "|---|---|---|---|",
    ]
    for game in dict.fromkeys(row["game"] for row in found):
        cells, means = [], []
        for loop in LOOPS:
            chosen = [row for row in found if row["game"] == game and row["loop"] == loop]
            if not chosen:
                cells.append("")
                continue
            key = "warp_instructions_per_unseen_frame"
            means.append(float(np.mean([row[key] for row in chosen])))
            lanes = np.average(
                [row["active_lanes_unseen"] for row in chosen], weights=[row[key] for row in chosen]
            )
            cells.append(f"{means[-1] / 1e6:.2f} ({lanes:.1f})")
        part = f"{means[1] / means[0]:.2f}" if len(means) == 2 else ""
        lines.append(f"| {game} | {' | '.join(cells)} | {part} |")
    return "\n".join(lines)


def picture(found: Sequence[dict[str, Any]], path: Path) -> None:
    """Active lanes over steps after reset, a panel per loop."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(1, len(LOOPS), figsize=(11, 4), sharey=True)
    for panel, loop in zip(panels, LOOPS, strict=True):
        for game in dict.fromkeys(row["game"] for row in found):
            chosen = [row for row in found if row["game"] == game and row["loop"] == loop]
            steps = [row["step"] for row in chosen]
            panel.plot(
                steps, [row["active_lanes_unseen"] for row in chosen], marker=".", label=game
            )
        panel.set_xscale("log", base=2)
        panel.set_title(f"loop: {loop}")
        panel.set_xlabel("agent steps after a reset")
    panels[0].set_ylabel("active lanes of 32, unseen frames")
    panels[-1].legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(path, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--games", default=",".join(GAMES))
    parser.add_argument("--loops", default=",".join(LOOPS))
    parser.add_argument("--places", default=",".join(map(str, PLACES)))
    parser.add_argument("--json", type=Path, required=True)
    parser.add_argument("--picture", type=Path)
    options = parser.parse_args()
    found = json.loads(options.json.read_text())["rows"] if options.json.exists() else []
    done = {(row["game"], row["loop"]) for row in found}
    places = [int(place) for place in options.places.split(",")]
    for game in options.games.split(","):
        for loop in options.loops.split(","):
            if (game, loop) in done:
                continue
            found += rows(game, loop, places)
            options.json.write_text(json.dumps({"rows": found}, indent=1) + "\n")
            print(table([row for row in found if row["game"] == game]).splitlines()[-1], flush=True)
    print(table(found))
    if options.picture is not None:
        picture(found, options.picture)


if __name__ == "__main__":
    main()
