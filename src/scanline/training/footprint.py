"""Footprint: the memory that a run will take, as one sum, before any of it is taken.

Takes a plan; gives `Share`s of engine, store, network and processes, all learners of this machine
together, and the sentence that tells of them. Knows the sizes of parts, builds none but a network
that is thrown away, and asks one environment for its spaces.

What frees itself at once (a checkpoint, an evaluation's few environments) is not counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

import psutil
import torch

from .. import engines, memory, settings
from ..carried import Carried, allocated, columns_of, single_step
from ..devices import Device
from ..errors import refusals
from ..memory import Share
from .context import Context, Say, probe_context
from .models import build_network
from .placement import Place, device_of, learners_here, local_rank
from .plan import Plan

_COPIES = 5
"""Weights, gradients, and at most three that an optimiser remembers in."""
_LOADED_BYTES = 120_000_000
"""What a learner's process grows by besides: 60 to 170 MB were measured."""
_GRADIENTS = 2
"""Activations are there once for the forward pass and once as gradients."""


@refusals()
def check(plan: Plan, say: Say) -> None:
    """Tells what a run will take; refuses more than is free. Once for all learners of a machine."""
    if local_rank(0) == 0:
        say(memory.told(shares(plan), free_bytes(plan)))


def free_bytes(plan: Plan) -> dict[str, float]:
    """What may still be taken of each place where a plan takes memory."""
    devices = [device_of(plan, rank) for rank in range(learners_here(plan))]
    return {memory.HOST: memory.available_bytes()} | {d.memory: d.free_bytes for d in devices}


@refusals()
def shares(plan: Plan) -> list[Share]:
    """What all learners of a plan take on this machine, and on their devices."""
    count = learners_here(plan)
    context = probe_context(plan, lambda sentence: None, place=Place(0, plan.learners))
    engine = engines.memory(context.plan.engine, context.engine.settings)
    store = context.recipe.store.memory(context)
    devices = [device_of(plan, rank) for rank in range(count)]
    # The learner that is here exists already; learners of a central store are all started.
    started = count if plan.recipe.exchange.is_central else count - 1
    return [
        engine.times(count, "learners"),
        *([store.times(count, "learners")] if store.place == memory.HOST else _on(devices, store)),
        *_on(devices, _network(context)),
        _processes(count, started),
    ]


def _on(devices: Sequence[Device], share: Share) -> Iterator[Share]:
    """On every device what the learners that use it take."""
    for device, count in Counter(devices).items():
        yield share.times(count, "learners")._replace(place=device.memory)


def _network(context: Context) -> Share:
    """Weights, gradients, the optimiser's memory, copies, and the activations of one batch."""
    # PyTorch's own layers say what they keep for the backward pass.
    plan = settings.override(context.plan, {"kernels": "torch"})
    network = build_network(plan, context.spaces, seed=0)
    weights = sum(each.nbytes for each in network.parameters())
    recipe = plan.recipe
    own = recipe.store.shared(context.num_learners, divides_batch=context.divides_batch)
    rows = own.updates(context.num_envs, context.rollout_agent_steps).batch_agent_steps
    threads = recipe.pace.num_network_threads
    copies = _COPIES + (recipe.pace.target_agent_steps > 0) + (threads if threads > 1 else 0)
    kept = _GRADIENTS * rows * _activation_bytes(network, context)
    return Share(
        f"The network with its optimiser and {rows:,} rows of activations",
        copies * weights + kept,
        lambda left: "use a smaller num_envs, network or batch",
    )


def _activation_bytes(network: torch.nn.Module, context: Context) -> int:
    """What one more row of a batch keeps for the backward pass."""
    spaces, kept = context.spaces, list[int]()
    for rows in (2, 3):
        sizes: list[int] = []
        state = allocated(columns_of(network), rows)
        seen = torch.zeros(
            (rows, *spaces.observation_shape), dtype=getattr(torch, spaces.frame_dtype)
        )
        with torch.autograd.graph.saved_tensors_hooks(_noting(sizes), lambda tensor: tensor):
            single_step(network, seen, Carried(state) if state else None)
        kept.append(sum(sizes))
    return kept[1] - kept[0]


def _noting(sizes: list[int]) -> Callable[[torch.Tensor], torch.Tensor]:
    def pack(tensor: torch.Tensor) -> torch.Tensor:
        sizes.append(tensor.nbytes)
        return tensor

    return pack


def _processes(count: int, started: int) -> Share:
    """What learners load and their threads use; those to be started are as large as this one."""
    own = psutil.Process().memory_info()
    return Share(
        f"Libraries and threads of {count} process{'es' * (count > 1)}",
        count * _LOADED_BYTES + started * (own.rss - getattr(own, "shared", 0)),
        lambda left: "use fewer learners" if started else "end other programs",
    )
