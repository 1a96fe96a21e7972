"""A limit is the same run without its environments: the same work, in the same threads."""

from __future__ import annotations

import threading
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

import pytest
from torch import Tensor

from scanline import training
from scanline.engines.gymnasium import GymnasiumEngine
from scanline.records import ActContext, Acted, Batch, LossResult, Outputs, Views
from scanline.timing import Limit, Stretch, Timing, since, timed
from scanline.training.attachments import Pause
from scanline_lab.experiments.coprocessor import AlgorithmWrapper

CATCH = "scanline/Catch-v0"
QUIET = {"num_workers": 0, "torch_threads": 1, "tensorboard": False, "live": False}
REPLAY = {"capacity_agent_steps": 2_000, "learning_starts_agent_steps": 200}
RECIPES: dict[str, dict[str, Any]] = {
    "a2c": {"num_envs": 4},
    "ppo": {"num_envs": 4, "rollout_agent_steps": 16},
    "dqn": REPLAY,
    "fast-dqn": {
        **REPLAY,
        **{"num_envs": 2, "rollout_agent_steps": 5, "target_agent_steps": 40},
        "synchronised_execution": False,
    },
    "ga3c": {"num_envs": 4},
}
LIMIT = Limit(turn=Stretch(agent_steps=200))


@dataclass
class Seen:
    """What was done while environments played (False) and while they stood still (True)."""

    pause: Pause = field(default_factory=Pause)
    sizes: dict[tuple[str, bool], set[int]] = field(default_factory=lambda: defaultdict(set))
    threads: dict[tuple[str, bool], set[str]] = field(default_factory=lambda: defaultdict(set))
    weights: list[Tensor] = field(default_factory=list)

    def note(self, verb: str, num: int) -> None:
        self.sizes[verb, self.pause.is_on].add(num)
        self.threads[verb, self.pause.is_on].add(threading.current_thread().name)

    def roles(self, verb: str, is_paused: bool) -> set[str]:
        """Which of several equal threads comes when is the system's choice."""
        return {name.rpartition("-")[0] for name in self.threads[verb, is_paused]}


@dataclass(frozen=True)
class Noted(AlgorithmWrapper):
    """The recipe's algorithm; what it is asked for is noted."""

    seen: Seen

    def act(self, outputs: Outputs, context: ActContext) -> Acted:
        self.seen.note("act", len(context.uniforms))
        return self.inner.act(outputs, context)

    def loss(self, views: Views, batch: Batch) -> LossResult:
        self.seen.note("loss", len(batch.actions))
        if self.seen.pause.is_on:
            self.seen.weights.append(next(views.live.parameters()).detach().clone())
        return self.inner.loss(views, batch)


def timed_on_catch(recipe: str, around: Any, pause: Pause, **changes: Any) -> Timing:
    given = {"network": "mlp", **QUIET, **RECIPES[recipe], **changes}
    return timed(
        training.make_plan(recipe, CATCH, engine="gymnasium", **given),
        warm_up=Stretch(agent_steps=600),
        measured=Stretch(agent_steps=400),
        attachments=training.Attachments(around=around, pause=pause),
        limit=LIMIT,
    )


@pytest.mark.parametrize("recipe", RECIPES)
def test_without_environments_the_same_threads_do_the_same_work(
    recipe: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen, send, stepped = Seen(), GymnasiumEngine.send, list[bool]()

    def noted(self: GymnasiumEngine, *args: Any) -> None:
        stepped.append(seen.pause.is_on)
        send(self, *args)

    monkeypatch.setattr(GymnasiumEngine, "send", noted)
    timing = timed_on_catch(recipe, lambda inner: Noted(inner, seen), seen.pause)
    assert timing.limit_agent_steps_per_second is not None
    assert timing.agent_steps >= 400 and timing.updates > 0
    assert seen.sizes["loss", True] == seen.sizes["loss", False]
    if recipe == "ga3c":  # threads may be in the middle of something when the pause begins
        assert sum(stepped) < 0.1 * len(stepped)
        assert all(seen.roles(v, True) == seen.roles(v, False) for v in ("act", "loss"))
        return
    assert stepped and not any(stepped)
    assert all(seen.threads[v, True] == seen.threads[v, False] for v in ("act", "loss"))
    assert seen.sizes["act", True] == seen.sizes["act", False]
    assert len({tuple(each.flatten().tolist()) for each in seen.weights}) < len(seen.weights) / 2


@dataclass(frozen=True)
class Failing(AlgorithmWrapper):
    """An algorithm that fails while environments stand still, in one of its verbs."""

    pause: Pause
    verb: str

    def act(self, outputs: Outputs, context: ActContext) -> Acted:
        self._fail("act")
        return self.inner.act(outputs, context)

    def loss(self, views: Views, batch: Batch) -> LossResult:
        self._fail("loss")
        return self.inner.loss(views, batch)

    def _fail(self, verb: str) -> None:
        if self.pause.is_on and verb == self.verb:
            raise KeyError(f"{verb} fails")


@pytest.mark.parametrize("verb", ["act", "loss"])
@pytest.mark.parametrize("recipe", ["a2c", "fast-dqn", "ga3c"])
def test_an_error_of_a_thread_is_raised_while_the_limit_is_measured(recipe: str, verb: str) -> None:
    pause = Pause()
    with pytest.raises(KeyError, match=f"{verb} fails"):
        timed_on_catch(recipe, lambda inner: Failing(inner, pause, verb), pause)


def test_learners_in_processes_of_their_own_all_go_on_without_environments() -> None:
    """A step takes 10 to 100 milliseconds, unless environments stand still."""
    given = {"network": "mlp", "learners": 2, "uneven_seconds": 0.01, **QUIET}
    timing = timed(
        training.make_plan("a3c-agents", CATCH, engine="gymnasium", **given),
        warm_up=Stretch(agent_steps=20),
        measured=Stretch(agent_steps=20),
        limit=Limit(turn=Stretch(agent_steps=20), settle=Stretch(agent_steps=20)),
    )
    assert timing.note["learners"] == 2
    assert timing.limit_agent_steps_per_second is not None
    assert timing.limit_agent_steps_per_second > timing.agent_steps_per_second


def test_learners_that_follow_another_one_have_no_limit() -> None:
    plan = training.make_plan("a2c", CATCH, learners=2, **QUIET)
    with pytest.raises(ValueError, match="learners=2: the environments of other learners cannot"):
        timed(plan, warm_up=Stretch(), measured=Stretch(), limit=LIMIT)


def test_a_histogram_counts_what_came_since() -> None:
    before = {"learners": 1, "lag": {0: 5, 2: 1}}
    after = {"learners": 2, "lag": {0: 5, 2: 4, 3: 1}}
    assert since(before, after) == {"learners": 2, "lag": {2: 3, 3: 1}}
