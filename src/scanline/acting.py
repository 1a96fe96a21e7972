"""Acting: a network, a parameter source and an algorithm's `act`, as one policy.

Takes observations and counter-based uniforms; gives actions and the columns to store.
Knows no engine, sampler, store or optimiser.

It asks for the current views at every call, so that it never acts on old ones by accident: which
weights act (live, target copy, snapshot, central) is decided by the caller that gives the source.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from . import random
from .carried import Carried, Column, columns_of
from .devices import HOST, Device, download
from .interfaces import Algorithm
from .random import SAMPLED, Choice
from .records import ActContext, Acted, Views

Source = Callable[[], tuple[Views, int]]
"""Gives the views to act with and the number of updates in them."""
Poll = Callable[[int], object]
"""Takes the agent steps before a step; makes the source give newer weights, if there are some."""


class NetworkPolicy:
    """Acts with the behaviour view where there is one, else with the live one."""

    def __init__(
        self,
        algorithm: Algorithm,
        source: Source,
        choice: Choice = SAMPLED,
        poll: Poll = lambda agent_steps: None,
    ) -> None:
        """`poll` is called before every step, where acting looks for newer weights itself."""
        self._algorithm, self._source, self.choice, self._poll = algorithm, source, choice, poll

    @property
    def version(self) -> int:
        return self._source()[1]

    @property
    def draws_per_step(self) -> int:
        return self._algorithm.draws_per_step

    @property
    def carried(self) -> Mapping[str, Column]:
        """What its network carries from step to step."""
        return columns_of(self._source()[0].live)

    def __call__(
        self,
        observations: Tensor,
        uniforms: Tensor,
        agent_steps: int,
        carried: Carried | None = None,
    ) -> Acted:
        self._poll(agent_steps)
        views, _ = self._source()
        context = ActContext(views, uniforms, agent_steps, self.choice)
        network = views.behaviour or views.live
        with torch.inference_mode():
            inputs = self._algorithm.inputs(views, observations)
            if carried is None:
                return self._algorithm.act(network(inputs), context)
            outputs, after = network(inputs, carried)
            return self._algorithm.act(outputs, context)._replace(carried=after)


class EvaluationPolicy(NetworkPolicy):
    """A policy whose schedules stand still, where the run has brought them.

    Its own steps are those of an evaluation and move no schedule. Observations, draws and actions
    are in host memory, wherever the network is.
    """

    def __init__(
        self,
        algorithm: Algorithm,
        source: Source,
        choice: Choice = SAMPLED,
        agent_steps: int = 0,
        device: Device = HOST,
    ) -> None:
        super().__init__(algorithm, source, choice)
        self.agent_steps, self._device = agent_steps, device

    def __call__(
        self,
        observations: Tensor,
        uniforms: Tensor,
        agent_steps: int = 0,
        carried: Carried | None = None,
    ) -> Acted:
        if self._device.is_host:
            return super().__call__(observations, uniforms, self.agent_steps, carried)
        upload = self._device.upload
        if carried is not None:
            carried = Carried({name: upload(each) for name, each in carried.state.items()})
        there = upload(observations), upload(uniforms)
        acted = super().__call__(*there, self.agent_steps, carried)
        after = {name: torch.from_numpy(download(each)) for name, each in acted.carried.items()}
        return Acted(torch.from_numpy(download(acted.actions)), {}, after)


class PollEvery:
    """Looks for newer weights every so many steps of the environments."""

    def __init__(self, pull: Callable[[], object], every_steps: int) -> None:
        self._pull, self._every = pull, every_steps
        self._at, self._steps = -1, 0

    def __call__(self, agent_steps: int) -> None:
        if agent_steps != self._at:  # groups of one step share it, and see the same weights
            self._at, self._steps = agent_steps, self._steps + 1
            if self._steps % self._every == 0:
                self._pull()


class RandomPolicy:
    """Every action alike, whatever is seen; for steps that are played before anything is known."""

    version = 0
    draws_per_step = random.DRAWS_PER_STEP

    def __init__(self, num_actions: int) -> None:
        self._num_actions = num_actions

    def __call__(
        self,
        observations: Tensor,
        uniforms: Tensor,
        agent_steps: int,
        carried: Carried | None = None,
    ) -> Acted:
        equal = uniforms.new_zeros(len(observations), self._num_actions)
        return Acted(random.epsilon_greedy(equal, 1.0, uniforms), {})
