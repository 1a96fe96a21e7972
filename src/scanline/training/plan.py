"""A plan: everything that a run depends on, in one frozen tree.

Takes a recipe, a game and changes by name; gives a `Plan`, which is written into the run's folder
and read back when the run is resumed, evaluated or loaded. Knows no part, only settings.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args

from .. import engines, networks, processes, protocols, recipes, settings
from ..errors import refusals
from ..protocols import Protocol
from ..recipes import Recipe, user_code
from ..runs import folder
from ..runs.instruments import InstrumentSettings
from ..runs.leader import OutputSettings
from ..samplers import RemoteSettings
from .rules import RuleChanges


@dataclass(frozen=True, kw_only=True)
class RunSettings:
    """What a run needs besides its recipe."""

    seed: int = 0
    """Key of every random number of the run."""
    init: str | None = None
    """Folder of another run whose newest weights this one begins with, of the same network."""
    seconds: float | None = None
    """Training time in seconds after which the run ends, evaluation not counted."""
    target_score: float | None = None
    """Mean score of the last 100 games that ends the run; evaluation games then confirm it."""
    stop_if_too_slow: bool = False
    """End after the first minute if the agent steps cannot be done within `seconds`."""
    learner_address: str = "127.0.0.1"
    """Address of this machine on which learners listen for each other; by default no other machine
    reaches it. Under torchrun it is the one that reaches torchrun's endpoint."""
    lost_learner_seconds: float = 30.0
    """Seconds without a sign of life of another learner, or of its host, after which all end: then
    torchrun starts them again. A learner that evaluates or saves is not silent."""
    engine: str | None = None
    """What steps the environments (`scanline list engines`); chosen by the game when not given."""
    num_threads: int | None = None
    """Engine threads; all cores that the system grants when not given."""
    num_workers: int | None = None
    """Worker processes of the engine `gymnasium`; 0 steps environments in this process."""
    pin_cores: bool = False
    """Bind engine threads or workers to one core each, and learners to a share of the cores."""
    torch_threads: int | None = None
    """Threads of the network's work; all cores when not given. PyTorch's sums depend on it."""
    kernels: networks.Kernels = "native"
    """Who does the matrix work on a CPU: our own kernels where they can, or PyTorch alone."""
    device: str = "auto"
    """Where the network lives and learns: auto (cuda where there is one, else cpu), cpu, cuda,
    cuda:1, mps."""
    precision: networks.Precision = "float32"
    """Numbers in the network's products: float32, tf32 (on GPUs that have it) or bfloat16; weights
    and losses are always float32."""
    compile: bool = False
    """Compile the network's forward and backward passes by torch.compile, as it starts."""
    reset: engines.ResetKind = "cached"
    """How a console starts anew: `ale` (exact) or `cached` (start states from a cache)."""
    mode: int | None = None
    """Game mode; the game's default when not given."""
    difficulty: int | None = None
    """Difficulty switches; the game's default when not given."""
    reset_cache_states: int = 30
    """Start states in the cache of `cached` resets."""
    wait_seconds: float = 60.0
    """Longest wait for one step of a group of environments before the engine is called stuck."""
    uneven_seconds: float = 0.0
    """Simulated: every step of an environment takes so many seconds at least, and up to ten times
    as many, as those of slow environments would; 0 for none."""
    strict_protocol: bool = False
    """Refuse an engine that cannot honour the protocol, instead of taking its nearest one."""
    evaluation_games: int = 30
    """Games of the evaluation that confirms a target score."""
    rules: RuleChanges = field(default_factory=RuleChanges)
    """Rules that are not the protocol's."""
    remote: RemoteSettings = field(default_factory=RemoteSettings)
    instruments: InstrumentSettings = field(default_factory=InstrumentSettings)
    output: OutputSettings = field(default_factory=OutputSettings)

    def __post_init__(self) -> None:
        settings.at_least(3, self, "lost_learner_seconds")


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Everything that a run depends on."""

    game: str
    """A game (`scanline list games`) or any Gymnasium id."""
    recipe: Recipe
    run: RunSettings = field(default_factory=RunSettings)

    def __post_init__(self) -> None:
        settings.check_unique(self)
        if self.run.precision not in get_args(networks.Precision):
            raise ValueError(
                f"precision={self.run.precision!r} is unknown; use float32, tf32 or bfloat16."
            )

    @property
    def learners(self) -> int:
        """Learner processes: as the exchange wants, which may be one per core."""
        return self.recipe.exchange.learners or processes.granted_cores()

    @property
    def kernels(self) -> networks.Kernels:
        """Ours compute in float32 and cannot be compiled by PyTorch."""
        is_plain = self.run.precision != "bfloat16" and not self.run.compile
        return self.run.kernels if is_plain else "torch"

    @property
    def protocol(self) -> Protocol:
        """The named protocol, with the rules that this run changes."""
        return self.run.rules.applied(protocols.get(self.recipe.protocol))

    @property
    def engine(self) -> str:
        return self.run.engine or engines.default_name(self.game)


@refusals()
def make_plan(recipe: str | Recipe, game: str, **changes: Any) -> Plan:
    """A plan with settings of any part changed by name."""
    chosen = recipes.find(recipe) if isinstance(recipe, str) else recipe
    return changed_plan(Plan(game=game, recipe=chosen), changes)


@refusals()
def changed_plan(plan: Plan, changes: Mapping[str, Any]) -> Plan:
    """The plan with settings of any part changed by name."""
    if changes.get("protocol"):
        changes = {"strict_protocol": True, **changes}
    return settings.override(plan, changes)


@refusals()
def read_plan(run: Path, recipe: str | Recipe | None = None, game: str | None = None) -> Plan:
    """The plan of a run, from its folder, which is data: see recipes/user_code.py.

    The user may name the recipe and the game; one made in Python must be given.
    """
    record = folder.read_record(run)
    planned = record["settings"]
    row, played = planned.get("recipe"), planned.get("game")
    source = row.get("source") if isinstance(row, Mapping) else None
    if not isinstance(source, str) or not isinstance(played, str):
        raise folder.damaged(run, "it names no recipe or no game")
    chosen = user_code.recipe_of(run, source, recipe)
    user_code.check_game(run, played, game)
    # The protocol in full stands beside the plan, as the engine honoured it.
    protocol = {"protocol": planned.get("protocol")}
    now = settings.to_dict(Plan(game=played, recipe=chosen))
    folder.refuse_other_names(run, record, now | protocol)
    try:
        return plan_from(planned, chosen)
    except ValueError as error:
        raise folder.damaged(run, str(error)) from error


def plan_from(record: Mapping[str, Any], recipe: Recipe) -> Plan:
    """The plan that `settings.to_dict` wrote, with the recipe that it was made from."""
    found = {"source": recipe.source, "source_sha256": recipe.source_sha256}
    plan = settings.restore(Plan(game=record["game"], recipe=recipe), record)
    return settings.override(plan, found)
