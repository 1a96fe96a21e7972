"""`bench emulation`: raw frames per second of engines, random actions, observations produced.

Takes games, engines, numbers of environments and threads; gives rows and a picture.
Knows no engine's inside.

All engines of a game are built first and then timed in turn, again and again, in this one process:
a machine that slows down slows all of them. `reset="ale"` is the work that the peers do; our
cached resets are an extra row. With `stacks`, vector environments are stepped as a user does.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from scanline import games as game_names
from scanline.engines import ResetKind
from scanline.errors import MissingPackageError, refusals
from scanline.processes import granted_cores

from . import stepping
from .options import Numbers, Words
from .peers import envpool, lacking
from .rows import Row, print_table, summary, write_json
from .stepping import Stepped, Stepper

COLUMNS = {
    "game": "game",
    "engine": "engine",
    "protocol": "protocol",
    "reset": "reset",
    "num_envs": "envs",
    "num_threads": "threads",
    "raw_fps": "frames/s",
    "raw_fps_spread": "+-",
    "times_best_peer": "x best peer",
}
LISTS = {**game_names.LISTS, "all": game_names.LISTS["atari104"]}


@dataclass(frozen=True, kw_only=True)
class EmulationBench:
    """Raw frames per second of engines: random actions, observations produced."""

    games: Words = ("pong",)
    """Games by commas, or a list: atari57, atari49, atari60, atari26, all."""
    engines: Words = ("native", "ale", "envpool")
    """Engines by commas; envpool is left out where it is not installed."""
    num_envs: Numbers = (64,)
    """Numbers of environments by commas."""
    num_threads: Numbers = ()
    """Numbers of engine threads by commas; all cores when not given."""
    protocols: Words = (stepping.PROTOCOL,)
    """Protocols of `native` by commas; the peers play their own."""
    stacks: bool = False
    """Step whole vector environments, observations of four frames: scanline.make beside ale-py's
    own and EnvPool. Otherwise engines, which give single frames."""
    repeats: int = 3
    """Interleaved repeats of every engine; the median counts."""
    seconds: float = 1.0
    """Timed seconds of one repeat."""
    warm_up_seconds: float = 0.5
    """Seconds before the clock starts."""
    json: Path | None = None
    """File for the rows."""
    plot: Path | None = None
    """File for a picture of the rows (png, svg)."""


@dataclass(frozen=True)
class Contender:
    """One engine on one game."""

    engine: str
    protocol: str
    reset: ResetKind
    stepper: Stepper


def run(bench: EmulationBench, say: Callable[[str], None] = print) -> list[Row]:
    """Rows of all games, sizes and engines."""
    threads = bench.num_threads or (granted_cores(),)
    bench = replace(bench, engines=installed(bench.engines, say))
    rows = []
    for game in expand(bench.games):
        for num_envs in bench.num_envs:
            for num_threads in threads:
                rows += measure(bench, game, num_envs, num_threads)
                say(_line(rows[-1]["game"], rows, num_envs, num_threads))
                if bench.json is not None:
                    write_json(bench.json, rows)  # hours of games: nothing measured is lost
    return rows


def installed(names: Sequence[str], say: Callable[[str], None]) -> tuple[str, ...]:
    """Engines without EnvPool where it is missing, which is said; it alone is refused."""
    sentence = lacking("envpool") if "envpool" in names else None
    if sentence is None:
        return tuple(names)
    if set(names) == {"envpool"}:
        raise MissingPackageError(sentence)
    say(f"envpool is left out. {sentence}")
    return tuple(name for name in names if name != "envpool")


@refusals()
def expand(names: Sequence[str]) -> list[str]:
    """Names of lists replaced by their games."""
    found = [g for name in names for g in LISTS.get(name, (name,))]
    return [game_names.find(name).id for name in found]


def measure(bench: EmulationBench, game: str, num_envs: int, num_threads: int) -> list[Row]:
    """Rows of one game and size, the engines timed in turn."""
    asked = Stepped(game=game, num_envs=num_envs, num_threads=num_threads)
    contenders = build(bench.engines, bench.protocols, asked, bench.stacks)
    try:
        for contender in contenders:
            stepping.raw_fps(contender.stepper, num_envs, bench.warm_up_seconds)
        rates: list[list[float]] = [[] for _ in contenders]
        for _ in range(bench.repeats):
            for place, contender in enumerate(contenders):
                rate = stepping.raw_fps(contender.stepper, num_envs, bench.seconds)
                rates[place].append(rate)
    finally:
        for contender in contenders:
            contender.stepper.close()
    rows = [
        {
            "game": game,
            "engine": contender.engine,
            "protocol": contender.protocol,
            "reset": contender.reset,
            "num_envs": num_envs,
            "num_threads": num_threads,
            "stack": stepping.STACK if bench.stacks else 1,
            "bytes_per_env": contender.stepper.bytes_per_env,
            **summary([{"raw_fps": rate} for rate in measured]),
        }
        for contender, measured in zip(contenders, rates, strict=True)
    ]
    return [row | {"times_best_peer": times_best_peer(row, rows)} for row in rows]


@refusals()
def build(
    names: Sequence[str], protocols: Sequence[str], asked: Stepped, stacks: bool = False
) -> list[Contender]:
    """Every engine; `native` with each protocol, and once more with cached resets."""
    found = []
    make = stepping.build_vector if stacks else stepping.build
    for name in names:
        if name == "envpool":
            stack = stepping.STACK if stacks else 1
            stepper = envpool.build(
                asked.game, asked.num_envs, asked.num_threads, seed=asked.seed, stack=stack
            )
            found.append(Contender(name, "envpool", "ale", stepper))
            continue
        resets: tuple[ResetKind, ...] = ("ale", "cached") if name == "native" else ("ale",)
        for protocol in protocols if name == "native" else (stepping.PROTOCOL,):
            for reset in resets:
                own = replace(asked, protocol=protocol, reset=reset)
                found.append(Contender(name, protocol, reset, make(name, own)))
    return found


def times_best_peer(row: Row, rows: Sequence[Row]) -> float | None:
    """Our rate over the faster peer's."""
    peers = [r["raw_fps"] for r in rows if r["engine"] != "native"]
    return round(row["raw_fps"] / max(peers), 2) if peers and row["engine"] == "native" else None


def _line(game: str, rows: Sequence[Row], num_envs: int, num_threads: int) -> str:
    here = [
        r
        for r in rows
        if (r["game"], r["num_envs"], r["num_threads"]) == (game, num_envs, num_threads)
    ]
    rates = ", ".join(
        f"{r['engine']}/{r['protocol']}/{r['reset']} {r['raw_fps']:,.0f}" for r in here
    )
    ratios = [r["times_best_peer"] for r in here if r["times_best_peer"] and r["reset"] == "ale"]
    return f"{game}: {rates} raw frames/s" + (f", {ratios[0]} x the best peer" if ratios else "")


def ratios(rows: Sequence[Row]) -> list[float]:
    """Native over the faster peer, with the peers' resets, one per game and size."""
    return [r["times_best_peer"] for r in rows if r["times_best_peer"] and r["reset"] == "ale"]


def show(rows: Sequence[Row]) -> None:
    print_table(rows, COLUMNS, "Emulation, raw frames per second")
    found = ratios(rows)
    if found:
        print(
            f"native / faster peer, reset ale: median {statistics.median(found):.2f}, "
            f"lowest {min(found):.2f}, highest {max(found):.2f} over {len(found)} rows"
        )


def plot(rows: Sequence[Row], path: Path) -> None:
    """Rates by game, one colour an engine."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    kinds = list(dict.fromkeys((row["engine"], row["reset"]) for row in rows))
    names = list(dict.fromkeys(row["game"] for row in rows))
    figure, axes = pyplot.subplots(figsize=(max(6, 0.28 * len(names)), 4.5), layout="constrained")
    for engine, reset in kinds:
        mine = [r for r in rows if (r["engine"], r["reset"]) == (engine, reset)]
        points = ([names.index(r["game"]) for r in mine], [r["raw_fps"] for r in mine])
        axes.plot(*points, marker="o", linestyle="", label=f"{engine}, {reset} resets")
    axes.set_xticks(range(len(names)), names, rotation=90, fontsize=8)
    axes.set_ylabel("raw frames per second")
    axes.set_ylim(bottom=0)
    axes.grid(axis="y", alpha=0.3)
    axes.legend()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    pyplot.close(figure)
