"""Learners with a central store: a plan to the processes of a fleet, and one learner's whole life.

Takes a `Plan` whose recipe has a central exchange; gives `FleetParts`, which a session runs like
the parts of any other recipe. `learn` is what each process does.
Knows how parts are put together and nothing of how they work.

A learner is a small synchronous run of its own: engine, sampler, store and loop are those of every
recipe. Only its parameters know that there are others.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from .. import acting, interfaces, networks, parameters, random, recipes, settings
from ..engines import Engine
from ..engines import build as build_engine
from ..interfaces import Policy, Saved
from ..parameters import CentralOwner, CentralParameters, CentralSettings, Learners, SharedStore
from ..processes import ParentLink, granted_cores
from ..protocols import Protocol
from ..records import Views
from ..runners.supervise import Board, Fleet, Journal, StoreSide, show_stack_when_asked
from ..runs.garbage import frozen_garbage
from ..runs.leader import LeaderRun
from ..samplers import LockstepSampler
from ..stores import ReplaySettings
from .assembly import (
    Say,
    build_store,
    engine_settings,
    fitting,
    share_cores,
    take_turns,
)
from .attachments import Pause
from .models import build_learner, build_network, learner_options
from .plan import Plan
from .policies import policy_from


@dataclass(frozen=True)
class Order:
    """What a learner process is told when it starts."""

    source: str
    """File of a user's own recipe: importing it first makes its classes known to pickle."""
    source_sha256: str
    pickled_plan: bytes
    rank: int
    num_learners: int
    num_resumes: int
    can_pause: bool
    store_fds: tuple[int, int]
    board_fd: int

    def plan(self) -> Plan:
        if self.source.endswith(recipes.SUFFIX):
            recipes.find(self.source, self.source_sha256)
        plan: Plan = pickle.loads(self.pickled_plan)
        return own_plan(plan, self.num_learners, self.num_resumes)


def own_plan(plan: Plan, num_learners: int, num_resumes: int) -> Plan:
    """One learner's share of the machine and of the replay; new games after a resume."""
    run, cores = plan.run, max(1, granted_cores() // num_learners)
    alone = plan.recipe.sampling.num_envs == 1
    changes: dict[str, Any] = {
        "torch_threads": run.torch_threads or cores,
        "num_threads": run.num_threads or cores,
        "num_workers": (0 if alone else cores) if run.num_workers is None else run.num_workers,
    }
    if num_resumes:
        changes["seed"] = int(random.seeds(run.seed, "resumed", [num_resumes])[0])
    if isinstance(store := plan.recipe.store, ReplaySettings):
        changes["capacity_agent_steps"] = store.capacity_agent_steps // num_learners
        changes["capacity_bytes"] = store.capacity_bytes // num_learners
        changes["learning_starts_agent_steps"] = store.learning_starts_agent_steps // num_learners
    return settings.override(plan, changes)


@dataclass(frozen=True)
class FleetParts:
    """A run of several learners, as a session sees it."""

    plan: Plan
    protocol: Protocol
    owner: CentralOwner
    store: SharedStore
    fleet: Fleet
    pause: Pause | None = None
    inexact = ("learners of a central store do not wait for each other",)
    peers = None

    @property
    def parameters(self) -> parameters.LocalParameters:
        return self.owner.pull()

    def policy(self, agent_steps: int) -> acting.EvaluationPolicy:
        """Plays with the newest central weights, schedules at so many agent steps."""

        def source() -> tuple[Views, int]:
            learner = self.owner.pull()
            return learner.views, learner.version

        return policy_from(self.plan, source, agent_steps)

    def note(self) -> dict[str, Any]:
        """Histogram of the policy lag: updates to agent steps."""
        lags = self.fleet.lags.counts
        return {"learners": self.fleet.num_learners, "policy_lag": dict(sorted(lags.items()))}

    def begin(self, is_resumed: bool) -> None:
        """Starts the learners' processes, before the clock and the view of the run."""
        self.fleet.start()

    def loop(self, run: LeaderRun) -> None:
        while run.goes_on():
            if self.pause is not None:
                self.fleet.board.pause(self.pause.is_on)
            self.fleet.turn(run)

    def saved(self, session: LeaderRun) -> Mapping[str, Saved]:
        return {"parameters": self.owner, "learners": self.fleet}

    def halt(self) -> None:
        self.fleet.close()

    def close(self) -> None:
        self.fleet.close()
        self.store.free()


def assemble_fleet(plan: Plan, say: Say, pause: Pause | None = None) -> FleetParts:
    """The central store and the processes of a plan; they start with the run."""
    exchange = plan.recipe.exchange
    assert isinstance(exchange, CentralSettings)
    probe, plan = fitting(plan, say, _probe)
    spaces, protocol = probe.spaces, probe.settings.protocol
    probe.close()
    owned = build_learner(plan, spaces, plan.run.seed)
    store = parameters.shared_store(owned.network, plan.recipe.optimiser, exchange)
    owner = CentralOwner(owned, store, exchange.lock_seconds)
    pickled, num = _pickled(plan), exchange.num_learners or granted_cores()

    def args_of(rank: int, fleet: Fleet) -> tuple[Order]:
        board_fd = fleet.board.shared.fd
        recipe, resumes, can_pause = plan.recipe, fleet.num_resumes, pause is not None
        source = (recipe.source, recipe.source_sha256)
        return (Order(*source, pickled, rank, num, resumes, can_pause, store.fds, board_fd),)

    fleet = Fleet(learn, args_of, num, num_envs=plan.recipe.sampling.num_envs, fds=store.fds)
    return FleetParts(plan, protocol, owner, store, fleet, pause)


def _probe(plan: Plan) -> Engine:
    """One environment, to ask it for its spaces."""
    one = {"num_envs": 1, "num_groups": 1, "num_workers": 0, "num_threads": 1}
    return build_engine(plan.engine, engine_settings(plan, **one))


def _pickled(plan: Plan) -> bytes:
    try:
        pickled = pickle.dumps(plan)
    except Exception as error:
        raise ValueError(
            f"Learner processes cannot be told of this recipe ({error}); put its own classes and "
            "functions into a module or into a recipe's file."
        ) from error
    if b"__main__" in pickled:
        raise ValueError(
            "Learner processes cannot import from the main script; put the recipe's own classes "
            "and functions into a module or into a recipe's file."
        )
    return pickled


def learn(link: ParentLink, order: Order) -> None:
    """What a learner process does until it is told to stop."""
    networks.own_process()
    show_stack_when_asked()
    plan = order.plan()
    share_cores(plan, Learners())
    board = Board(order.num_learners, order.board_fd)
    is_paused = (lambda: board.is_paused) if order.can_pause else None
    first_env_id = order.rank * plan.recipe.sampling.num_envs
    wanted = engine_settings(plan, first_env_id=first_env_id, is_paused=is_paused)
    engine = build_engine(plan.engine, wanted)
    try:
        learner, store = _central(plan, engine, order)
        side = StoreSide(
            updates=lambda: store.updates,
            own_updates=lambda: learner.own_updates,
            waited_seconds=lambda: learner.waited_seconds,
        )
        journal = Journal(link, board, order.rank, side)
        wired = _wired(plan, engine, learner, journal, order.num_learners)
        link.answer(0)
        next(link.orders())
        with frozen_garbage():
            take_turns(plan, wired, learner, journal)
    finally:
        engine.close()


def _central(plan: Plan, engine: Engine, order: Order) -> tuple[CentralParameters, SharedStore]:
    recipe = plan.recipe
    assert isinstance(recipe.exchange, CentralSettings)
    network = build_network(plan, engine.spaces, seed=0).to(plan.run.device)
    store = parameters.shared_store(network, recipe.optimiser, recipe.exchange, order.store_fds)
    learner = CentralParameters(
        network,
        recipe.optimiser,
        store,
        recipe.exchange,
        **learner_options(plan, engine.spaces, network, engine.settings.is_paused),
    )
    if learner.views.target is not None:
        learner.sync_target()
    return learner, store


def _wired(
    plan: Plan, engine: Engine, learner: CentralParameters, journal: Journal, num_learners: int
) -> interfaces.Parts:
    recipe = plan.recipe
    algorithm, _ = recipe.schedules()
    policy: Policy = acting.NetworkPolicy(algorithm, lambda: (learner.views, learner.version))
    assert isinstance(recipe.exchange, CentralSettings)
    if recipe.exchange.poll_steps:
        policy = acting.PollingPolicy(policy, learner.pull, recipe.exchange.poll_steps)
    mark: Callable[[str], Any] = journal.time_split.mark
    sampler = LockstepSampler(engine, plan.run.seed, mark)
    sampling = recipe.sampling
    sampler.reset(sampling.decorrelation_agent_steps, sampling.decorrelation_draw)
    store = build_store(plan, engine, _unsaid, Learners())
    store.slot().num_learners = num_learners
    return interfaces.Parts(
        sampler=sampler, policy=policy, store=store, algorithm=algorithm, parameters=learner
    )


def _unsaid(sentence: str) -> None:
    """What every learner would say is said by none."""
