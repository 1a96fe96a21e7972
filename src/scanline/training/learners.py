"""Learner processes: started here, or by torchrun, and joined.

Takes a plan; starts one process per further learner, whatever they exchange. Learners that divide
batches are joined as `Learners`: with `--learners N` this process leads and starts the others,
under torchrun all exist already. Those of a central store are started by central.py.
Knows how processes start and find each other, not what they do.
"""

from __future__ import annotations

import fcntl
import os
import pickle
import socket
import struct
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from typing import Any

import torch
from torch._C._distributed_c10d import TCPStore

from .. import devices, networks, recipes, settings
from ..errors import RefusedError, refusals
from ..parameters import Learners, join
from ..processes import ParentLink
from ..runners.supervise import LearnerProcesses, show_stack_when_asked
from .placement import own_cores, under_torchrun
from .plan import Plan, plan_from

GLOO_INTERFACE = "GLOO_SOCKET_IFNAME"
_SIOCGIFADDR = 0x8915
"""Linux: the IPv4 address of an interface."""
_LONGEST_WAIT_SECONDS = 1_800.0
"""Longest silence of a learner that lives: the leading one may evaluate, or save gigabytes."""

Follow = Callable[[Plan, Learners], None]


@refusals()
def placed(plan: Plan) -> Plan:
    """The plan with the number of learners that torchrun started; refused if it cannot be."""
    plan = settings.override(plan, {"device": devices.resolved(plan.run.device)})
    exchange = plan.recipe.exchange
    if under_torchrun():
        count = int(os.environ["WORLD_SIZE"])
        if exchange.is_central:
            raise ValueError(
                "Learners of a central store are processes of one machine that this command "
                "starts; leave torchrun out and use --learners."
            )
        if exchange.learners not in (1, count):
            raise ValueError(
                f"learners={exchange.learners}, but torchrun started {count}; leave it out."
            )
        plan = settings.override(plan, {"learners": count})
    if not exchange.is_central:
        _refuse_uneven(plan)
    return plan


def _refuse_uneven(plan: Plan) -> None:
    count, recipe = plan.learners, plan.recipe
    if count > 1 and "turns" not in recipe.pace.gives:
        raise ValueError(
            f"learners={count}: {recipe.name} learns while it plays, in one process; use "
            "learners=1, or accelerated-dqn."
        )
    least = count * recipe.sampling.num_groups
    if recipe.sampling.num_envs % least:
        raise ValueError(
            f"num_envs={recipe.sampling.num_envs} do not divide among {count} learners with "
            f"num_groups={recipe.sampling.num_groups} each; use a multiple of {least}."
        )
    recipe.store.shared(count)


def start(
    workers: LearnerProcesses,
    work: Callable[..., None],
    plan: Plan,
    args: Sequence[Sequence[Any]],
    fds: Sequence[int] = (),
) -> None:
    """Each process calls `work(link, plan, *args)`, and answers when it is ready."""
    sent = _sendable(plan)
    workers.start(_worked, [(work, sent, *row) for row in args], fds)


def _worked(link: ParentLink, work: Callable[..., None], sent: Any, *args: Any) -> None:
    """The whole life of a learner that another process started."""
    networks.own_process()
    show_stack_when_asked()
    if not isinstance(sent, Plan):  # data, of a recipe from a user's file
        recipe = sent["recipe"]
        sent = plan_from(sent, recipes.find(recipe["source"], recipe["source_sha256"]))
    work(link, sent, *args)


def _sendable(plan: Plan) -> Any:
    """A recipe from a user's file is found again by its path: it cannot be imported by name."""
    if plan.recipe.source.endswith(recipes.SUFFIX):
        return settings.to_dict(plan)
    remedy = "put its own classes and functions into a module, or into a recipe's file"
    try:
        pickled = pickle.dumps(plan)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise RefusedError(
            f"This recipe cannot be sent to learner processes ({error}); {remedy}."
        ) from error
    if b"__main__" in pickled:
        raise RefusedError(
            f"Learner processes cannot import this recipe from the main script; {remedy}."
        )
    return plan


@contextmanager
def joined(plan: Plan, follow: Follow) -> Iterator[Learners]:
    """This process among the learners of the plan; `follow` is what the others do."""
    if plan.recipe.exchange.is_central or plan.learners == 1:
        yield Learners()
    elif under_torchrun():
        rank = int(os.environ["RANK"])
        with closing(_join(plan, rank, None)) as learners, own_cores(plan, rank):
            yield learners
    else:
        with _leading_own(plan, follow) as learners:
            yield learners


def _join(plan: Plan, rank: int, store: TCPStore | None) -> Learners:
    return join(
        rank,
        plan.learners,
        backend=_backend(plan),
        store=store,
        timeout_seconds=_LONGEST_WAIT_SECONDS,
    )


def _backend(plan: Plan) -> str:
    """NCCL where every learner has a GPU of its own: it cannot share one."""
    own_gpus = torch.cuda.device_count() >= plan.learners or under_torchrun()
    return "cpu:gloo,cuda:nccl" if plan.run.device == "cuda" and own_gpus else "gloo"


@contextmanager
def _leading_own(plan: Plan, follow: Follow) -> Iterator[Learners]:
    store = listening_store(plan.run.learner_address, plan.learners)
    workers = LearnerProcesses(plan.learners - 1, first_rank=1)
    try:
        ranks = range(1, plan.learners)
        start(workers, _followed, plan, [(follow, rank, store.port) for rank in ranks])
        with closing(_join_here(plan, 0, store)) as learners:
            learners.reason = workers.last_words
            with own_cores(plan, 0):
                yield learners
    finally:
        workers.close()


def _followed(link: ParentLink, plan: Plan, follow: Follow, rank: int, port: int) -> None:
    link.answer(0)
    store = TCPStore(plan.run.learner_address, port, plan.learners, is_master=False)
    with closing(_join_here(plan, rank, store)) as learners, own_cores(plan, rank):
        follow(plan, learners)
    os._exit(0)  # all is closed, and taking an interpreter with torch apart may take seconds


def listening_store(address: str, count: int) -> TCPStore:
    """The store by which learners find each other, listening on this address alone.

    Left to itself a TCPStore listens on all interfaces, whatever host it is given.
    """
    try:
        listener = socket.create_server((address, 0), backlog=count)
    except OSError as error:
        raise RefusedError(
            f"learner_address={address!r} is no IPv4 address of this machine "
            f"({error.strerror}); leave it out."
        ) from error
    port = listener.getsockname()[1]
    return TCPStore(
        address,
        port,
        count,
        is_master=True,
        wait_for_workers=False,
        master_listen_fd=listener.detach(),
    )


def _join_here(plan: Plan, rank: int, store: TCPStore) -> Learners:
    """Joins with Gloo on the interface that has the learners' address.

    It looks up the machine's own name otherwise, which may lead anywhere. It reads the variable
    while it joins and takes no argument instead.
    """
    interface = _interface_of(plan.run.learner_address)
    if interface is None or GLOO_INTERFACE in os.environ:
        return _join(plan, rank, store)
    os.environ[GLOO_INTERFACE] = interface
    try:
        return _join(plan, rank, store)
    finally:
        del os.environ[GLOO_INTERFACE]


def _interface_of(address: str) -> str | None:
    """The network interface that has an IPv4 address; None where the system does not tell."""
    names = [name for _, name in socket.if_nameindex()]
    if address.startswith("127."):
        return next((name for name in ("lo", "lo0") if name in names), None)
    wanted = socket.inet_aton(socket.gethostbyname(address))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        for name in names if sys.platform == "linux" else ():
            request = struct.pack("256s", name.encode())
            with suppress(OSError):  # an interface without an address
                if fcntl.ioctl(any_socket, _SIOCGIFADDR, request)[20:24] == wanted:
                    return name
    return None
