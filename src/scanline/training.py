"""Assembly: settings to parts to runner. `train`, `evaluate`, `load_policy`.

Takes a recipe, a game and settings by name; gives a finished run, scores, or a policy to act with.
Knows how parts are put together and nothing of how they work.

Everything that a run depends on is in one frozen `Plan`, which is written into the run's folder:
resuming, evaluating and loading begin by reading it back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from . import acting, engines, networks, parameters, protocols, recipes, settings
from .engines import Engine, EngineSettings
from .evaluation import Scores
from .recipes import Recipe
from .records import Saved, Slot
from .runners import folder, on_policy
from .runners.clock import Spans
from .runners.progress import Progress
from .runners.session import Session, SessionSettings
from .runners.stopping import Limits, Stop
from .samplers import LockstepSampler
from .stores import RolloutStore

Say = Callable[[str], None]
EVALUATION_SEED = 1_000_003
"""Games of an evaluation are not those of training, whatever its seed."""


@dataclass(frozen=True, kw_only=True)
class RunSettings:
    """What a run needs besides its recipe."""

    seed: int = 0
    """Key of every random number of the run."""
    seconds: float | None = None
    """Training time in seconds after which the run ends, evaluation not counted."""
    target_score: float | None = None
    """Mean score of the last 100 games that ends the run; evaluation games then confirm it."""
    engine: str | None = None
    """What steps the environments (`scanline list engines`); chosen by the game when not given."""
    num_threads: int | None = None
    """Engine threads; all cores that the system grants when not given."""
    num_workers: int | None = None
    """Worker processes of the engine `gymnasium`; 0 steps environments in this process."""
    torch_threads: int | None = None
    """Threads of PyTorch; all cores when not given. Recorded, because it changes float sums."""
    device: str = "cpu"
    """Where the network lives: cpu, cuda, cuda:1, mps."""
    reset: engines.ResetKind = "cached"
    """How a console starts anew: `ale` (exact) or `cached` (start states from a cache)."""
    mode: int | None = None
    """Game mode; the game's default when not given."""
    difficulty: int | None = None
    """Difficulty switches; the game's default when not given."""
    strict_protocol: bool = False
    """Refuse an engine that cannot honour the protocol, instead of taking its nearest one."""
    evaluation_games: int = 30
    """Games of the evaluation that confirms a target score."""
    session: SessionSettings = field(default_factory=SessionSettings)


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Everything that a run depends on."""

    game: str
    """A game (`scanline list games`) or any Gymnasium id."""
    recipe: Recipe
    run: RunSettings = field(default_factory=RunSettings)

    def __post_init__(self) -> None:
        settings.check_unique(self)

    @property
    def engine(self) -> str:
        return self.run.engine or engines.default_name(self.game)


@dataclass(frozen=True)
class Run:
    """A finished or interrupted run."""

    folder: Path
    agent_steps: int
    training_seconds: float
    score: float | None
    """Mean of the last 100 training games; None before the first has finished."""
    stop: Stop
    confirmation: Scores | None = None
    """Evaluation games that confirm a reached target score."""


def make_plan(recipe: str | Recipe, game: str, **changes: Any) -> Plan:
    """A plan with settings of any part changed by name."""
    chosen = recipes.find(recipe) if isinstance(recipe, str) else recipe
    plan = Plan(game=game, recipe=chosen)
    if changes.get("protocol"):
        changes = {"strict_protocol": True, **changes}
    return settings.override(plan, changes)


def engine_settings(plan: Plan, **changes: Any) -> EngineSettings:
    """What the engine of a plan is built from."""
    run, sampling = plan.run, plan.recipe.sampling
    return EngineSettings(
        **{
            "game": plan.game,
            "num_envs": sampling.num_envs,
            "num_groups": sampling.num_groups,
            "protocol": protocols.get(plan.recipe.protocol),
            "seed": run.seed,
            "num_threads": run.num_threads,
            "num_workers": run.num_workers,
            "reset": run.reset,
            "mode": run.mode,
            "difficulty": run.difficulty,
            **changes,
        }
    )


def fitting_engine(plan: Plan, say: Say) -> tuple[Engine, Plan]:
    """The engine of a plan, and the plan with the protocol that the engine can honour."""
    try:
        return engines.build(plan.engine, engine_settings(plan)), plan
    except engines.ProtocolRefusedError as refusal:
        if plan.run.strict_protocol:
            raise
        say(f"{refusal} This run uses it.")
        plan = settings.override(plan, {"protocol": refusal.nearest})
        return engines.build(plan.engine, engine_settings(plan)), plan


@dataclass(frozen=True)
class Parts:
    """The parts of a synchronous run, and the plan that they follow."""

    plan: Plan
    engine: Engine
    loop: on_policy.Loop

    @property
    def saved(self) -> Mapping[str, Saved]:
        """What a checkpoint holds of them."""
        loop = self.loop
        return {"sampler": loop.sampler, "store": loop.store, "parameters": loop.parameters}


def assemble(plan: Plan, mark: Callable[[str], Any], say: Say = print) -> Parts:
    """Settings to parts."""
    if plan.run.torch_threads:
        torch.set_num_threads(plan.run.torch_threads)
    engine, plan = fitting_engine(plan, say)
    recipe, run, sampling = plan.recipe, plan.run, plan.recipe.sampling
    algorithm, spaces = recipe.algorithm, engine.spaces
    network = networks.build(recipe.network, spaces, algorithm.head, seed=run.seed)
    learner = parameters.LocalParameters(
        network.to(run.device),
        recipe.optimiser,
        max_grad_norm=recipe.optimiser.max_grad_norm,
        algorithm_state=algorithm.init(spaces),
    )
    slot = Slot.allocate(
        spaces, sampling.rollout_agent_steps, sampling.num_envs, algorithm.columns(spaces)
    )
    loop = on_policy.Loop(
        sampler=LockstepSampler(engine, run.seed, mark),
        policy=acting.NetworkPolicy(algorithm, lambda: (learner.views, learner.version)),
        store=RolloutStore(slot, recipe.store, run.seed),
        algorithm=algorithm,
        parameters=learner,
        learning_rate=recipe.optimiser.schedule(recipe.agent_steps, sampling.num_envs),
    )
    return Parts(plan, engine, loop)


def train(
    recipe: str | Recipe,
    game: str,
    *,
    out: str | Path | None = None,
    resume: bool = False,
    say: Say = print,
    **changes: Any,
) -> Run:
    """Trains until a limit is reached; settings of any part are given by name."""
    plan = make_plan(recipe, game, **changes)
    return carry_out(plan, out=out, resume=resume, say=say)


def carry_out(plan: Plan, *, out: str | Path | None, resume: bool, say: Say = print) -> Run:
    """Trains by a plan."""
    spans = Spans()
    parts = assemble(plan, spans.mark, say)
    try:
        session = open_session(parts, out, resume=resume, spans=spans)
        with session.running(parts.saved, resume=resume):
            if session.progress.agent_steps == 0:
                parts.loop.sampler.reset(plan.recipe.sampling.decorrelation_agent_steps)
            on_policy.run(parts.loop, session)
        return _finished(parts, session)
    finally:
        parts.engine.close()


def open_session(
    parts: Parts, out: str | Path | None, *, resume: bool = False, spans: Spans | None = None
) -> Session:
    """The run's folder and all that surrounds its loop."""
    plan, protocol = parts.plan, parts.engine.settings.protocol
    limits = Limits(
        agent_steps=plan.recipe.agent_steps,
        seconds=plan.run.seconds,
        target_score=plan.run.target_score,
    )
    settings_of_session = plan.run.session
    progress = Progress(
        settings_of_session.progress, frame_skip=protocol.frame_skip, spans=spans or Spans()
    )
    run_folder = _folder(parts, out, resume)
    title = f"{plan.recipe.name} on {plan.game}"
    return Session(run_folder, progress, limits, settings_of_session, title)


def _folder(parts: Parts, out: str | Path | None, resume: bool) -> folder.RunFolder:
    plan = parts.plan
    path = Path(out or folder.default_folder(plan.game, plan.recipe.name, plan.run.seed))
    record = settings.to_dict(plan) | {"protocol": parts.engine.settings.protocol.to_dict()}
    begin = folder.RunFolder.resume if resume else folder.RunFolder.create
    return begin(path, record, folder.versions(plan.engine, ""))


def _finished(parts: Parts, session: Session) -> Run:
    """What the run came to; a reached target score is confirmed by evaluation games."""
    assert session.stop is not None
    confirmation = None
    if session.stop.kind == "target_score":
        policy = policy_of(parts.plan, parts.loop.parameters)
        confirmation = score(parts.plan, policy, games=parts.plan.run.evaluation_games)
    progress = session.progress
    return Run(
        folder=session.folder.path,
        agent_steps=progress.agent_steps,
        training_seconds=session.spans.training_seconds(),
        score=progress.scores.mean,
        stop=session.stop,
        confirmation=confirmation,
    )


def policy_of(
    plan: Plan, learner: parameters.LocalParameters, greedy: bool = False
) -> acting.NetworkPolicy:
    """A policy that acts with a learner's present weights."""
    source = lambda: (learner.views, learner.version)  # noqa: E731
    return acting.NetworkPolicy(plan.recipe.algorithm, source, greedy)


def evaluation_protocol(protocol: protocols.Protocol) -> protocols.Protocol:
    """The rules of a score: whole games, up to 30 no-ops, everything else as in training."""
    if protocol.colour == "as-is":
        return protocol
    life_loss = "ignore" if protocol.life_loss == "full-reset" else protocol.life_loss
    return dataclasses.replace(protocol, noop_max=30, life_loss=life_loss)


def evaluation_engine(plan: Plan, *, games: int, seed: int) -> Engine:
    """Environments of their own, in as many slots as there are games, at most 16."""
    own = protocols.get(plan.recipe.protocol)
    changes = {"num_envs": min(games, 16), "num_groups": 1, "seed": seed, "reset": "ale"}
    return engines.build(
        plan.engine, engine_settings(plan, **changes, protocol=evaluation_protocol(own))
    )


def score(plan: Plan, policy: Policy, *, games: int, seed: int = EVALUATION_SEED) -> Scores:
    """Plays games with frozen weights."""
    engine = evaluation_engine(plan, games=games, seed=seed)
    try:
        return evaluation.play_games(engine, policy, games, seed)
    finally:
        engine.close()


def read_plan(run: Path, recipe: Recipe | None = None) -> Plan:
    """The plan of a run, from its folder; a recipe made in Python must be handed in again."""
    record = folder.read_record(run)["settings"]
    source = record["recipe"]["source"]
    if recipe is None and not source:
        raise ValueError(
            f"{run} was trained with a recipe made in Python; hand it in: recipe=Recipe(...)."
        )
    plan = Plan(game=record["game"], recipe=recipe or recipes.find(source))
    return settings.restore(plan, record)


class LoadedPolicy:
    """Weights of a run, ready to act."""

    def __init__(self, plan: Plan, checkpoint_state: Mapping[str, Any], greedy: bool) -> None:
        engine = evaluation_engine(plan, games=1, seed=EVALUATION_SEED)
        self.plan, self.spaces = plan, engine.spaces
        engine.close()
        algorithm = plan.recipe.algorithm
        network = networks.build(plan.recipe.network, self.spaces, algorithm.head, seed=0)
        learner = parameters.LocalParameters(
            network, plan.recipe.optimiser, algorithm_state=algorithm.init(self.spaces)
        )
        learner.load(checkpoint_state["parameters"])
        self.agent_steps: int = checkpoint_state["progress"]["agent_steps"]
        self.policy = policy_of(plan, learner, greedy)
        self._calls = 0

    def act(self, observations: Array) -> Array:
        """Actions [N] for observations [N, S, ...], or one action for one observation [S, ...]."""
        alone = observations.ndim == len(self.spaces.observation_shape)
        batch = torch.as_tensor(np.asarray(observations)[None] if alone else observations)
        numbers = streams.uniforms(EVALUATION_SEED, "policy", np.arange(len(batch)), self._calls)
        self._calls += 1
        actions = self.policy(batch, torch.from_numpy(numbers[:, :2].copy()), self.agent_steps)[0]
        return np.asarray(actions[0] if alone else actions)


def load_policy(
    run: str | Path, *, greedy: bool = False, recipe: Recipe | None = None
) -> LoadedPolicy:
    """The newest weights of a run as a policy: `policy.act(observations)`."""
    plan = read_plan(Path(run), recipe)
    found = checkpoint.load_latest(Path(run) / "checkpoints")
    return LoadedPolicy(plan, found.state, greedy)


def evaluate(
    run: str | Path,
    episodes: int = 30,
    *,
    greedy: bool = False,
    seed: int = EVALUATION_SEED,
    recipe: Recipe | None = None,
) -> Scores:
    """Plays whole games with the newest weights of a run, started first counted first."""
    loaded = load_policy(run, greedy=greedy, recipe=recipe)
    return score(loaded.plan, loaded.policy, games=episodes, seed=seed)


def film(
    run: str | Path,
    *,
    out: str | Path | None = None,
    greedy: bool = False,
    seed: int = 0,
    most_agent_steps: int = 4_000,
) -> evaluation.Film:
    """Films one game played with the newest weights of a run."""
    loaded = load_policy(run, greedy=greedy)
    engine = evaluation_engine(loaded.plan, games=1, seed=seed)
    name = f"{loaded.plan.game.replace('/', '-')}-{loaded.agent_steps}"
    target = Path(out or run) / name
    try:
        return evaluation.make_film(
            engine, loaded.policy, seed=seed, most_agent_steps=most_agent_steps, out=target
        )
    finally:
        engine.close()
