"""Learner processes: started here, or by torchrun, and joined.

Takes a plan; starts one process per further learner, whatever they exchange. Learners that divide
batches are joined as `Learners`: with `--learners N` this process leads and starts the others,
under torchrun all exist already. Those of a central store are started by central.py.
Knows how processes start and find each other, not what they do.
"""

from __future__ import annotations

import os
import pickle
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import torch
from torch._C._distributed_c10d import TCPStore

from .. import devices, networks, recipes, settings
from ..addresses import (
    STORE_SECONDS,
    connected_store,
    interface_of,
    listening_store,
    own_address_towards,
)
from ..errors import RefusedError, refusals
from ..parameters import LearnerLostError, Learners, join
from ..processes import ParentLink
from ..runners.supervise import LearnerProcesses, show_stack_when_asked
from ..runs import folder
from .placement import learners_here, own_cores, under_torchrun
from .plan import Plan, plan_from

GLOO_INTERFACE = "GLOO_SOCKET_IFNAME"
_LONGEST_WAIT_SECONDS = 1_800.0
"""Longest wait for learners that have a pulse: the leading one may evaluate, or save gigabytes."""
_RETRY_SECONDS = 0.5

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
        with _started_by_torchrun(plan) as learners:
            yield learners
    else:
        with _leading_own(plan, follow) as learners:
            yield learners


def _join(plan: Plan, rank: int, store: TCPStore, address: str) -> Learners:
    """Joins with Gloo on the interface that has this address of the machine.

    It looks up the machine's own name otherwise, which may lead anywhere. It reads the variable
    while it joins and takes no argument instead.
    """
    interface = None if GLOO_INTERFACE in os.environ else interface_of(address)
    if interface is not None:
        os.environ[GLOO_INTERFACE] = interface
    try:
        return join(
            rank,
            plan.learners,
            backend=_backend(plan),
            store=store,
            timeout_seconds=_LONGEST_WAIT_SECONDS,
            silent_seconds=plan.run.lost_learner_seconds,
            is_near=learners_here(plan) == plan.learners and plan.run.device == "cpu",
        )
    finally:
        if interface is not None:
            del os.environ[GLOO_INTERFACE]


def _backend(plan: Plan) -> str:
    """NCCL where every learner has a GPU of its own: it cannot share one."""
    own_gpus = torch.cuda.device_count() >= plan.learners or under_torchrun()
    return "cpu:gloo,cuda:nccl" if plan.run.device == "cuda" and own_gpus else "gloo"


@contextmanager
def _started_by_torchrun(plan: Plan) -> Iterator[Learners]:
    """A learner says why it fails; one that lost another one ends without waiting for it."""
    rank, host, port = (os.environ[name] for name in ("RANK", "MASTER_ADDR", "MASTER_PORT"))
    address = own_address_towards(host, int(port))
    with closing(_join(plan, int(rank), _torchrun_store(int(rank)), address)) as learners:
        learners.start_again = _starts_again()
        try:
            with own_cores(plan, int(rank)):
                yield learners
        except LearnerLostError as error:
            print(error, file=sys.stderr, flush=True)
            os._exit(1)  # PyTorch would wait for the learner that is silent
        except BaseException as error:
            learners.leave(error)
            raise


def _torchrun_store(rank: int) -> TCPStore:
    """The learners' own store, in the process of learner 0: new whenever torchrun starts them.

    With torchrun's `c10d` its agents have a store that outlives the learners; then learner 0 says
    there where its own is, and an earlier one's word leads nowhere.
    """
    host, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    if os.environ.get("TORCHELASTIC_USE_AGENT_STORE") != str(True):
        return listening_store(host, port) if rank == 0 else connected_store(host, port)
    agents = connected_store(host, port)
    if rank == 0:
        own = listening_store(own_address_towards(host, port))
        agents.set("scanline", f"{own.host} {own.port}")
        return own
    deadline = time.monotonic() + STORE_SECONDS
    while True:
        address, _, number = agents.get("scanline").decode().partition(" ")
        try:
            return connected_store(address, int(number), seconds=_RETRY_SECONDS)
        except RuntimeError:
            if time.monotonic() > deadline:
                raise


def _starts_again() -> bool:
    """Whether torchrun starts learners again that have failed."""
    return under_torchrun() and int(os.environ.get("TORCHELASTIC_MAX_RESTARTS", "0")) > 0


@refusals()
def goes_on(plan: Plan, out: str | Path | None) -> bool:
    """Whether torchrun, which starts the same command again, finds a run to go on with."""
    several = under_torchrun() and learners_here(plan) < plan.learners
    if out is None and (several or _starts_again()):
        raise ValueError(
            "Under torchrun with --max-restarts or several hosts a run needs --out: it goes on in "
            "that folder, and each host keeps there the rows of its replay."
        )
    return _starts_again() and (Path(out or "") / folder.SETTINGS).exists()


@contextmanager
def _leading_own(plan: Plan, follow: Follow) -> Iterator[Learners]:
    store, address = _named_store(plan), plan.run.learner_address
    workers = LearnerProcesses(plan.learners - 1, first_rank=1)
    try:
        ranks = range(1, plan.learners)
        start(workers, _followed, plan, [(follow, rank, store.port) for rank in ranks])
        with closing(_join(plan, 0, store, address)) as learners:
            learners.reason = workers.last_words
            try:
                with own_cores(plan, 0):
                    yield learners
            finally:
                if not learners.is_whole:
                    workers.close()  # first: the exchange would wait for one that is silent
    finally:
        workers.close()


def _named_store(plan: Plan) -> TCPStore:
    """By which learners find each other, on the address that the user names."""
    address = plan.run.learner_address
    try:
        return listening_store(address, count=plan.learners)
    except OSError as error:
        raise RefusedError(
            f"learner_address={address!r} is no IPv4 address of this machine "
            f"({error.strerror}); leave it out."
        ) from error


def _followed(link: ParentLink, plan: Plan, follow: Follow, rank: int, port: int) -> None:
    link.answer(0)
    address = plan.run.learner_address
    store = connected_store(address, port)
    with closing(_join(plan, rank, store, address)) as learners, own_cores(plan, rank):
        follow(plan, learners)
    os._exit(0)  # all is closed, and taking an interpreter with torch apart may take seconds
