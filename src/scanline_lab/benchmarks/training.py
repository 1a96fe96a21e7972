"""`bench training`: agent steps per second of recipes and of peers matched with them.

Takes recipes, peers, a game; gives rows, each the median of interleaved repeats with its spread,
and of our own runs the limit: the best rate of all repeats while environments stood still.
Knows no library's inside: the drivers do the work in processes of their own.

Repeats are interleaved (every contender once, then every contender again), so that a machine that
slows down slows all of them. A ratio is always of rows of one run.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from scanline import engines, recipes, settings
from scanline.errors import MissingPackageError, refusals
from scanline.runners.concurrent import Concurrent
from scanline.stores import ReplaySettings

from . import comparisons, peers
from .options import Unasked, Words
from .rows import Row, print_table, summary
from .work import Figures, Work, measure

COLUMNS = {
    "recipe": "recipe",
    "peer": "peer",
    "num_envs": "envs",
    "batch_size": "batch",
    "agent_sps": "sps",
    "agent_sps_spread": "+-",
    "ups": "upd/s",
    "limit_sps": "limit",
    "times_peer": "ratio",
}
"""What a terminal of 80 columns has room for; the rows of the JSON file hold more."""

REPLAY_SETTINGS = {
    "capacity_agent_steps": 20_000,
    "learning_starts_agent_steps": 2_000,
    "epsilon_start": 0.1,
}
"""Shared by all contenders with a replay: every update is measured, few steps are random, and the
stacks that SB3 stores fit into memory."""
BLOCK_AGENT_STEPS = 2_000
"""About so long are the blocks of a concurrent recipe, so that a repeat has several."""


_SPELLINGS = {"sb3": ("sb3", "sb3-vector"), "sb3-vector": ("sb3-vector",)}
"""Peers by the word that asks for them."""


@dataclass(frozen=True, kw_only=True)
class TrainingBench:
    """Agent steps per second of recipes, beside peers doing the same work in the same run."""

    recipes: Words = ("paac", "a2c")
    """Recipes of ours, by commas."""
    peers: Words = ()
    """Peers by commas: sb3 (on its own environments, and on ale-py's vector environment)."""
    game: str = "pong"
    """Game that all contenders play."""
    engine: str | None = None
    """Our engine; the default one when not given."""
    repeats: int = 3
    """Interleaved repeats of every contender; the median counts."""
    seconds: float = 20.0
    """Timed seconds of one repeat."""
    warm_up_seconds: float = 5.0
    """Seconds before the clock starts."""
    num_envs: int | None = None
    """Environments of every contender; the recipe's number when not given."""
    num_threads: int | None = None
    """Engine threads; all cores when not given."""
    torch_threads: int | None = None
    """Threads of PyTorch, for us and for the peers; all cores when not given."""
    networks: Words = ()
    """Networks by commas that every recipe is measured with; its own when not given."""
    uneven_seconds: float = 0.0
    """Simulated: every step of an environment takes so long at least and up to ten times so."""
    json: Path | None = None
    """File for the rows."""
    settings: Unasked = field(default_factory=dict)
    """Further settings that all contenders share."""

    @property
    def changes(self) -> dict[str, Any]:
        """Settings that all contenders share."""
        return self.settings | ({} if self.num_envs is None else {"num_envs": self.num_envs})

    def __post_init__(self) -> None:
        for peer in self.peers:
            if peer not in _SPELLINGS:
                raise ValueError(
                    f"'{peer}' is no peer of this bench; use {', '.join(_SPELLINGS)}, or leave the "
                    "peers out."
                )
        if self.peers and (self.networks or self.uneven_seconds):
            raise ValueError(
                "Peers have networks and environments of their own; measure them without networks "
                "and uneven_seconds."
            )


@refusals()
def contenders(bench: TrainingBench) -> list[Work]:
    """Every recipe, and behind each its peers; then asynchronous ones with the work of others."""
    found: list[Work] = []
    engine = bench.engine or engines.default_name(bench.game)
    for network in bench.networks or (None,):
        changes = {**bench.changes, **({} if network is None else {"network": network})}
        for recipe in bench.recipes:
            own = _own(bench, engine, recipe, changes)
            found.append(own)
            for peer in bench.peers:
                for spelling in _SPELLINGS[peer]:
                    found.append(dataclasses.replace(own, peer=spelling))
        for recipe, other in comparisons.likened(bench.recipes):
            more = comparisons.matched(recipe, other, changes, even=not bench.uneven_seconds)
            if engine != "native":
                more.pop("protocol", None)  # others take the nearest one that they honour
            if more:
                own = _own(bench, engine, recipe, {**changes, **more})
                found.append(dataclasses.replace(own, like=other))
    return found


def _own(bench: TrainingBench, engine: str, recipe: str, changes: Mapping[str, Any]) -> Work:
    """A recipe's work on our engine."""
    return Work(
        recipe=recipe,
        game=bench.game,
        engine=engine,
        seconds=bench.seconds,
        warm_up_seconds=bench.warm_up_seconds,
        num_threads=bench.num_threads,
        torch_threads=bench.torch_threads,
        uneven_seconds=bench.uneven_seconds,
        settings={**settings_of(recipe, changes), **changes},
    )


def settings_of(name: str, changes: Mapping[str, Any]) -> dict[str, Any]:
    """Settings that make a recipe measurable in seconds, for us and for the peers alike."""
    recipe = recipes.find(name)
    if not isinstance(recipe.store, ReplaySettings):
        return {}
    if not isinstance(recipe.pace, Concurrent):
        return dict(REPLAY_SETTINGS)
    num_envs = changes.get("num_envs", recipe.sampling.num_envs)
    per_round = num_envs * recipe.sampling.horizon_agent_steps
    block = per_round * max(1, BLOCK_AGENT_STEPS // per_round)
    return {**REPLAY_SETTINGS, "target_agent_steps": block}


def run(bench: TrainingBench, say: Any = print) -> list[Row]:
    """Rows of all contenders."""
    for peer in bench.peers:
        if sentence := peers.lacking(peer):
            raise MissingPackageError(sentence)
    works = contenders(bench)
    figures: list[list[Figures]] = [[] for _ in works]
    for repeat in range(bench.repeats):
        for place, work in enumerate(works):
            figures[place].append(measure(work))
            rate, name = figures[place][-1]["agent_sps"], work.peer or "scanline"
            like = f" like {work.like}" if work.like else ""
            say(f"repeat {repeat + 1}: {name} {work.recipe}{like} {rate:,.0f} steps/s")
    rows = [_row(work, done) for work, done in zip(works, figures, strict=True)]
    for row in rows:
        row["times_peer"] = _times_peer(row, rows)
        row["factors"] = comparisons.factors(row, rows)
    return rows


def _row(work: Work, repeats: list[Figures]) -> Row:
    recipe = recipes.find(work.recipe).replace(**work.settings)
    return {
        "recipe": work.recipe,
        "peer": work.peer,
        "like": work.like,
        "game": work.game,
        "engine": {None: work.engine, "sb3": "subprocess", "sb3-vector": "ale"}[work.peer],
        "network": settings.to_dict(recipe)["network"],
        "batch_size": comparisons.batch_size(recipe),
        "num_envs": recipe.sampling.num_envs,
        "num_threads": work.num_threads,
        "torch_threads": work.torch_threads,
        "uneven_seconds": work.uneven_seconds,
        "settings": work.settings,
        **summary(repeats, bounds=("limit_sps",)),
    }


def _times_peer(row: Row, rows: Sequence[Row]) -> float | None:
    """Our rate over the peer's; on a peer's row, how many times we are faster than it."""
    own = [r for r in rows if r["recipe"] == row["recipe"] and r["peer"] is None]
    return None if row["peer"] is None else round(own[0]["agent_sps"] / row["agent_sps"], 2)


def show(rows: Sequence[Row]) -> None:
    title = "Training, agent steps/s (ratio: ours over the peer's; limit: no environments)"
    if any(row.get("uneven_seconds") for row in rows):
        title += "\nSIMULATED: steps of environments are held back and differ up to tenfold"
    several = len({row.get("network") for row in rows}) > 1
    print_table([{**row, "recipe": _name(row, several)} for row in rows], COLUMNS, title)
    for line in comparisons.lines(rows):
        print(line)


def _name(row: Row, several: bool) -> str:
    """The recipe, whose work it does, and its network where they differ by it alone."""
    network = f" on {row['network']}" if several and "network" in row["settings"] else ""
    return comparisons.title(row) + ("" if row.get("like") else network)
