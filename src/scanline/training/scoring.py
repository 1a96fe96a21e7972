"""Scores, policies and films of a run.

Takes the folder of a run, or a plan and a policy; gives scores, a policy to act with, a film.
Knows no learner: weights come from a checkpoint or from a given policy.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from .. import devices, engines, evaluation, protocols, random, settings
from ..carried import Carried, allocated, masked
from ..engines import Engine
from ..errors import refusals
from ..evaluation import EvaluatedPolicy, EvaluationScores
from ..files import disk_errors
from ..recipes import Recipe
from ..records import Array
from ..runs.checkpoint import CheckpointError, load_chosen
from ..runs.evaluating import Evaluations
from .context import engine_settings
from .models import build_learner, policy_of
from .plan import Plan, read_plan

EVALUATION_SEED = 1_000_003
"""Games of an evaluation are not those of training, whatever its seed."""
_MOST_SLOTS = 16


def evaluation_protocol(protocol: protocols.Protocol) -> protocols.Protocol:
    """The rules of a score: whole games, up to 30 no-ops, everything else as in training."""
    if protocol.colour == "as-is":
        return protocol
    life_loss = "ignore" if protocol.life_loss == "full-reset" else protocol.life_loss
    return dataclasses.replace(protocol, noop_max=max(30, protocol.noop_min), life_loss=life_loss)


@refusals()
def evaluation_engine(plan: Plan, *, games: int, seed: int) -> Engine:
    """Environments of their own, in as many slots as there are games, at most 16."""
    own = plan.protocol
    changes = {"num_envs": min(games, _MOST_SLOTS), "num_groups": 1, "seed": seed, "reset": "ale"}
    return engines.build(
        plan.engine, engine_settings(plan, **changes, protocol=evaluation_protocol(own))
    )


def score(
    plan: Plan,
    policy: EvaluatedPolicy,
    *,
    games: int,
    most_agent_steps: int = 0,
    seed: int = EVALUATION_SEED,
) -> EvaluationScores:
    """Plays games with frozen weights; 0 games are as many as the agent steps allow."""
    engine = evaluation_engine(plan, games=games if games > 0 else _MOST_SLOTS, seed=seed)
    limits = {"num_games": games, "most_agent_steps": most_agent_steps}
    try:
        return evaluation.play_games(engine, policy, **limits, seed=seed)
    finally:
        engine.close()


def evaluations_of(
    plan: Plan, policy_at: Callable[[int], EvaluatedPolicy], say: Callable[[str], None] = print
) -> Evaluations | None:
    """Pauses as the recipe asks for them, with games of their own; None where it asks for none.

    `policy_at` gives the present weights as a policy, with schedules at so many agent steps.
    """
    kind = plan.recipe.evaluation
    if not kind.evaluate_every_agent_steps:
        return None

    def evaluate(agent_steps: int) -> dict[str, Any]:
        limits = {"games": kind.pause_games, "most_agent_steps": kind.pause_agent_steps}
        found = score(plan, policy_at(agent_steps), **limits)
        say(f"Evaluation: {found.sentence()}.")
        return found.record()

    return Evaluations(kind, evaluate)


class LoadedPolicy:
    """Weights of a run, ready to act."""

    def __init__(
        self, plan: Plan, checkpoint_state: Mapping[str, Any], greedy: bool | None
    ) -> None:
        if not devices.is_there(plan.run.device):  # trained elsewhere
            plan = settings.override(plan, {"device": "cpu"})
        engine = evaluation_engine(plan, games=1, seed=EVALUATION_SEED)
        self.plan, self.spaces = plan, engine.spaces
        engine.close()
        learner = build_learner(plan, self.spaces, seed=0)
        try:
            learner.load(checkpoint_state["parameters"])
            self.agent_steps: int = checkpoint_state["progress"]["agent_steps"]
        except (KeyError, TypeError, AttributeError, RuntimeError, ValueError) as error:
            fault = f"{type(error).__name__}: {error}".partition("\n")[0]
            raise CheckpointError(
                f"The weights do not fit the settings of this run ({fault});"
                " put back its settings.json, or name the recipe that it was trained with."
            ) from error
        self.policy = policy_of(
            plan, lambda: (learner.views, learner.version), self.agent_steps, greedy
        )
        self._calls = 0
        self._carried: dict[str, torch.Tensor] = {}

    def reset(self) -> None:
        """All environments begin anew: a network with memory forgets what it has seen."""
        self._carried = {}

    def act(self, observations: Array, ended: Array | bool | None = None) -> Array:
        """Actions [N] for observations [N, S, ...], or one action for one observation [S, ...].

        A network with memory remembers the calls before, row by row; `ended` says where the last
        step ended an episode (`terminated | truncated`), so that it begins anew there.
        """
        alone = observations.ndim == len(self.spaces.observation_shape)
        batch = torch.as_tensor(np.asarray(observations)[None] if alone else observations)
        rows, num_draws = np.arange(len(batch)), self.policy.draws_per_step
        numbers = random.draws(EVALUATION_SEED, "policy", rows, self._calls, num_draws)
        self._calls += 1
        carried = self._state(len(batch), ended)
        acted = self.policy(batch, numbers, carried=carried)
        self._carried = dict(acted.carried)
        return np.asarray(acted.actions[0] if alone else acted.actions)

    def _state(self, num_rows: int, ended: Array | bool | None) -> Carried | None:
        """What a network with memory carries into this call; None for others."""
        columns = self.policy.carried
        if not columns:
            return None
        state = self._carried or allocated(columns, num_rows)
        if any(len(each) != num_rows for each in state.values()):
            raise ValueError(
                f"{num_rows} observations came after {len(next(iter(state.values())))}, but this "
                "policy remembers each row's own past; call policy.reset() first."
            )
        if ended is not None:
            rows = torch.as_tensor(np.atleast_1d(ended), dtype=torch.bool)
            state = {n: masked(each, rows, columns[n].initial) for n, each in state.items()}
        return Carried(state)


@refusals()
def load_policy(
    run: str | Path,
    *,
    greedy: bool | None = None,
    checkpoint: int | str | None = None,
    recipe: str | Recipe | None = None,
    game: str | None = None,
) -> LoadedPolicy:
    """The newest weights of a run as a policy: `policy.act(observations)`.

    `checkpoint` chooses others: those after so many agent steps, or those of the "best" evaluation.

    Actions are chosen as the algorithm declares for its evaluations, or as `greedy` says: the best
    one, or as in training. `recipe` and `game` name code that the run's folder names and you have
    not trained from.
    """
    plan = read_plan(Path(run), recipe, game)
    found = load_chosen(Path(run) / "checkpoints", checkpoint)
    return LoadedPolicy(plan, found.state, greedy)


def evaluate(  # noqa: PLR0913 (each is a choice of its own)
    run: str | Path,
    episodes: int = 30,
    *,
    greedy: bool | None = None,
    checkpoint: int | str | None = None,
    seed: int = EVALUATION_SEED,
    recipe: str | Recipe | None = None,
    game: str | None = None,
) -> EvaluationScores:
    """Plays whole games with the newest weights of a run, started first counted first.

    Schedules stand where the run has brought them; the others as in `load_policy`.
    """
    loaded = load_policy(run, greedy=greedy, checkpoint=checkpoint, recipe=recipe, game=game)
    return score(loaded.plan, loaded.policy, games=episodes, seed=seed)


def film(
    run: str | Path,
    *,
    out: str | Path | None = None,
    seed: int = 0,
    most_agent_steps: int = 4_000,
    **loading: Any,
) -> evaluation.Film:
    """Films one game played with the newest weights of a run; `loading` is for `load_policy`."""
    loaded = load_policy(run, **loading)
    engine = evaluation_engine(loaded.plan, games=1, seed=seed)
    name = f"{loaded.plan.game.replace('/', '-')}-{loaded.agent_steps}"
    target = Path(out or run) / name
    try:
        with disk_errors(f"the film {target}", "choose another folder with --out"):
            return evaluation.make_film(
                engine, loaded.policy, seed=seed, most_agent_steps=most_agent_steps, out=target
            )
    finally:
        engine.close()


def watch(
    run: str | Path, *, seed: int = 0, most_agent_steps: int = 4_000, **loading: Any
) -> evaluation.Watched:
    """Shows one game in a window as it is played; `loading` is for `load_policy`."""
    loaded = load_policy(run, **loading)
    engine = evaluation_engine(loaded.plan, games=1, seed=seed)
    try:
        return evaluation.show_game(
            engine, loaded.policy, seed=seed, most_agent_steps=most_agent_steps
        )
    finally:
        engine.close()
