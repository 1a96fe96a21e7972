"""What the choices of a recipe promise: they declare what they need and give, and build their part.

Contracts only, of the settings of sampling, store, exchange and pace; a user's own settings keep
them like ours. `needs` and `gives` are compared by `recipes/fit.py`; `training/context.py` is what
`build` is given.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

from .interfaces import Runtime
from .memory import Share


class Declared(Protocol):
    """A choice of a recipe, as far as the other choices depend on it (`recipes/fit.py`)."""

    @property
    def needs(self) -> frozenset[str]:
        """What it needs, by name, of the other choices."""

    @property
    def gives(self) -> frozenset[str]:
        """What the others may rely on."""


class SamplerSettings(Declared, Protocol):
    """How experience is gathered."""

    @property
    def num_envs(self) -> int: ...

    @property
    def num_groups(self) -> int:
        """Groups of environments that the engine steps on their own."""

    @property
    def horizon_agent_steps(self) -> int:
        """Agent steps of every environment per rollout."""

    @property
    def reset_mode(self) -> Any:
        """'inline' where ended environments start anew at once."""

    @property
    def reserves(self) -> int:
        """Instances besides the environments that play."""

    def build(self, context: Any) -> Any:
        """A `Sampler` over the engine of a `BuildContext`."""


class Updates(NamedTuple):
    """What a store asks of a learner."""

    per_rollout: float
    """Updates after every rollout of all environments, on average."""
    batch_agent_steps: int
    """Agent steps that one update sees."""


class StoreSettings(Declared, Protocol):
    """What is kept between acting and learning."""

    def updates(self, num_envs: int, rollout_agent_steps: int) -> Updates:
        """What is learned from rollouts of so many environments and steps of each."""

    def build(self, context: Any) -> Any:
        """A `Store` with the arrays of one learner, from a `BuildContext`."""

    def memory(self, context: Any) -> Share:
        """What the arrays of one learner take when they are full, from a `BuildContext`."""

    def shared(self, num_learners: int, *, divides_batch: bool = True) -> Any:
        """What one of several learners keeps; refuses what does not divide."""


class ExchangeSettings(Declared, Protocol):
    """How learners share weights."""

    @property
    def learners(self) -> int:
        """Learner processes; 0 for one per core."""

    @property
    def is_central(self) -> bool:
        """Whether learners go their own way, with environments of their own, around a store that
        this process owns; else they divide environments and batches and wait for each other."""

    @property
    def poll_steps(self) -> int:
        """Steps of every environment between two looks for newer weights while acting; 0: none."""

    def build(self, context: Any) -> Any:
        """The `Parameters` of one learner."""


class PaceSettings(Declared, Protocol):
    """In which order acting and learning happen."""

    @property
    def target_agent_steps(self) -> int:
        """Agent steps between two copies into the target; 0 for none."""

    @property
    def target_rate(self) -> float:
        """Share of the live weights that every update mixes into the target; 0 for none. There is
        a target where this or `target_agent_steps` is above 0."""

    @property
    def staged_agent_steps(self) -> int:
        """Agent steps that the store holds back between two commits; 0 for none."""

    @property
    def acts_with_target(self) -> bool:
        """Whether samplers play in threads of their own, with the weights of the target."""

    @property
    def num_network_threads(self) -> int:
        """Threads that use the network at the same time."""

    def num_samplers(self, num_envs: int) -> int:
        """Samplers that play side by side, each with an equal block of environments."""

    def check(self, sampling: Any, store: Any) -> None:
        """Refuses numbers that do not go together."""

    def build(self, context: Any) -> Runtime:
        """What runs the loop, from a `RuntimeContext`."""
