"""What the parts of a run promise each other: algorithm, store, parameters, policy, sampler, run.

Contracts only; the records that pass between them are in records.py. Settings build their part:

| settings     | `build(context)` gives                                               |
|--------------|----------------------------------------------------------------------|
| `sampling`   | a `Sampler` over `context.engine`                                    |
| `store`      | a `Store`, with arrays for one learner                               |
| `exchange`   | the `Parameters` of one learner, around `context.network`            |
| `optimiser`  | `build(parameters)`: an optimiser of one group of parameters         |
| `pace`       | a `Runtime`, from the `Parts` that the context puts together         |
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor

from .carried import Carried
from .devices import Device, Places
from .random import Choice
from .records import (
    ActContext,
    Acted,
    Batch,
    Column,
    EpisodeEnd,
    Experience,
    LossResult,
    Outputs,
    Slot,
    Spaces,
    State,
    Views,
)


@runtime_checkable
class Saved(Protocol):
    """A part that a checkpoint holds."""

    def state(self) -> State: ...

    def load(self, state: State) -> None: ...


@runtime_checkable
class Algorithm(Protocol):
    """Pure functions over frozen settings; `algorithms.Defaults` supplies all but `loss`."""

    @property
    def head(self) -> str | Callable[..., torch.nn.Module]:
        """What a named network ends with: 'policy-value', 'q', 'dueling', 'categorical', ..., or
        a function from its hidden layers and the spaces to a module (`networks.Head`)."""

    @property
    def needs(self) -> frozenset[str]:
        """What it needs of store, pace and exchange: 'fresh steps', 'rollouts', 'sequences',
        'pairs', 'target', 'several losses', ... (`recipes/fit.py`)."""

    @property
    def gives(self) -> frozenset[str]:
        """What the other choices of a recipe may rely on."""

    @property
    def losses(self) -> tuple[str, ...]:
        """Names of the losses that `loss` gives, for networks that part their weights by them."""

    @property
    def draws_per_step(self) -> int:
        """Uniform numbers that `act` gets for every environment and step; 2 is usual."""

    def columns(self, spaces: Spaces) -> Mapping[str, Column]:
        """Columns that `act` gives and the store must keep."""

    def init(self, spaces: Spaces, num_envs: int) -> Mapping[str, Tensor]:
        """Its own state, tensors only; `num_envs` are this learner's. Several learners average
        what `prepare` makes of it."""

    def spanning(self, agent_steps: int) -> Algorithm:
        """The same algorithm, with schedules that span a run stretched over these agent steps."""

    @property
    def evaluation_choice(self) -> Choice:
        """How evaluations choose actions, unless a user says otherwise."""

    def inputs(self, views: Views, observations: Tensor) -> Tensor:
        """What the network reads: observations, or what the algorithm's state makes of them."""

    def act(self, outputs: Outputs, context: ActContext) -> Acted:
        """Network outputs to actions, without gradient."""

    def prepare(self, views: Views, slot: Slot) -> Experience:
        """Once per rollout, without gradient: returns, advantages, targets."""

    def loss(self, views: Views, batch: Batch) -> LossResult:
        """Losses by parameter group, with gradient."""


@runtime_checkable
class Store(Saved, Protocol):
    """Owns the arrays between acting and learning."""

    def slot(self) -> Slot:
        """Where the sampler writes next."""

    def put(self, experience: Experience) -> None:
        """Commits the slot."""

    def batches(self) -> Iterator[Batch]:
        """What the learner may see now, from where the last call was left."""

    keeps_rows: bool
    """Whether it keeps rows that never change once written, so that a checkpoint appends the new
    ones to files (`runs/replay_rows.py`); else `state` holds everything."""

    @property
    def owes(self) -> bool:
        """Whether `batches` would give one."""

    def feedback(self, batch: Batch, priorities: Tensor | None) -> None:
        """New priorities for what was drawn."""


Metric = Tensor | float
"""A detached scalar; a tensor may still be under way on its device."""


class Parameters(Saved, Protocol):
    """Owns the weights, and is the one place where they change."""

    @property
    def version(self) -> int:
        """Updates so far."""

    def read(self) -> Views:
        """The parameter sets to use now."""

    def keep(self, state: Mapping[str, Tensor] | None) -> None:
        """Replaces the algorithm's state; None keeps the old one."""

    def apply(
        self, views: Views, losses: Mapping[str, Tensor], agent_steps: int
    ) -> Mapping[str, Metric]:
        """One update by the losses of these views; gives its norms and rate by their log names."""


class Policy(Protocol):
    """A network, a parameter source and an algorithm's `act`, as one function."""

    @property
    def version(self) -> int:
        """Updates in the weights that it acts with."""

    @property
    def draws_per_step(self) -> int:
        """Uniform numbers that it takes per environment and step, n."""

    def __call__(
        self,
        observations: Tensor,
        uniforms: Tensor,
        agent_steps: int,
        carried: Carried | None = None,
    ) -> Acted:
        """Actions and columns for observations [b, S, *frame] and draws [b, n]; of a network with
        memory for what it carries into this step too (`carried.py`)."""


class Sampler(Saved, Protocol):
    """Steps environments with a policy."""

    games_go_on: bool
    """Whether the games in play are those of the state that was loaded."""

    def begin(self) -> None:
        """Starts the games of a run that was not resumed."""

    def collect(self, policy: Policy, into: Slot) -> Slot:
        """Fills a slot; gives it, or another one that is full."""

    def abandon(self) -> None:
        """Starts new games in place of those in play, which will never end."""

    def drain_episodes(self) -> list[EpisodeEnd]:
        """Games finished since the last call."""


class Run(Protocol):
    """What surrounds a loop: it counts, logs, saves and ends it."""

    def goes_on(self) -> bool:
        """Does what is due; false at a limit, after a signal, or when another learner ends it."""

    def collected(self, slot: Slot) -> None:
        """Counts the steps of a rollout and takes the games that have ended."""

    def updated(self, metrics: Mapping[str, Metric], norms: Mapping[str, Metric]) -> None:
        """Counts an update and keeps its metrics."""


@dataclass(frozen=True, kw_only=True)
class Parts:
    """The parts that take turns."""

    sampler: Sampler
    policy: Policy
    store: Store
    algorithm: Algorithm
    parameters: Parameters


class BuildContext(Protocol):
    """What no settings object knows, and its `build(context)` needs: one learner's share."""

    @property
    def engine(self) -> Any:
        """The `engines.Engine` of this learner, or of one sampler among several."""

    @property
    def spaces(self) -> Spaces: ...

    @property
    def seed(self) -> int:
        """Key of every random number of the run."""

    @property
    def columns(self) -> Mapping[str, Column]:
        """What the algorithm wants stored with every step."""

    @property
    def device(self) -> Device:
        """Where this learner's network is, and learns."""

    @property
    def places(self) -> Places:
        """The same device, and where the engine writes the frames of a store's slots."""

    @property
    def carried(self) -> Mapping[str, Column]:
        """What the network carries from step to step; nothing for one without memory."""

    @property
    def num_envs(self) -> int:
        """Environments of this learner, over all of its samplers."""

    @property
    def first_env_id(self) -> int:
        """Global number of the first of them."""

    @property
    def rollout_agent_steps(self) -> int:
        """Agent steps of every environment per slot."""

    @property
    def num_learners(self) -> int:
        """Learners of the run, this one included."""

    @property
    def num_samplers(self) -> int:
        """Samplers that fill slots of one store side by side, each an equal block of them."""

    @property
    def staged_agent_steps(self) -> int:
        """Agent steps between two `commit`s of the store; 0 where a `put` is visible at once."""

    @property
    def divides_batch(self) -> bool:
        """Whether learners divide the batch of the settings among them."""

    @property
    def mark(self) -> Callable[[str], Any]:
        """Called with what the time from now on belongs to: 'acting', 'environment', 'other'."""


class RuntimeContext(BuildContext, Protocol):
    """What the `build` of a pace needs besides: the parts, and what surrounds them in a run."""

    @property
    def samplers(self) -> Sequence[Sampler]:
        """One per block of environments; built at the first call."""

    @property
    def store(self) -> Store:
        """Built at the first call."""

    @property
    def parts(self) -> Parts:
        """The first sampler, policy, store, algorithm and parameters; built at the first call."""

    @property
    def inexact(self) -> Sequence[str]:
        """Why engine and device keep a resumed run from ending bit for bit like one that was never
        stopped; often empty."""

    def surround(self, parts: Parts, run: Any) -> Parts:
        """The same parts with what the plan and the run want around them: turns that can be left,
        time marks, the activation cache, instruments."""

    def in_blocks(self, run: Run) -> Any:
        """The run with the methods of a `runners.concurrent.BlockRun`."""

    def renewed(self, num_resumes: int) -> RuntimeContext:
        """After so many resumes, where games cannot go on: another engine with other games."""

    def close(self) -> None:
        """Closes the engines; may be called twice."""


class Runtime(Protocol):
    """What `training` runs, whatever the recipe."""

    @property
    def inexact(self) -> Sequence[str]:
        """Why a resumed run cannot end bit for bit like one that was never stopped; often empty."""

    def begin(self, is_resumed: bool) -> None:
        """Starts games, threads and processes, before the clock of the run starts."""

    def run(self, run: Any) -> None:
        """The loop, as long as the run goes on."""

    def weights(self) -> tuple[Views, int]:
        """The newest weights, and the updates in them."""

    def saved(self) -> Mapping[str, Saved]:
        """What a checkpoint holds, in the order in which it is saved and loaded."""

    def note(self) -> Mapping[str, Any]:
        """What a measurement should tell besides its rates: numbers, histograms."""

    def halt(self) -> None:
        """Ends what acts and learns by itself, before the weights are judged."""

    def close(self) -> None:
        """Ends everything; may be called twice."""
