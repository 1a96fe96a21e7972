"""A rendezvous of torchrun that listens on the address of its endpoint and nowhere else.

`torchrun --rdzv-backend=scanline --rdzv-endpoint=ADDRESS:PORT`, found by its entry point. It is
torchrun's own `c10d` on another store: that of `c10d` listens on all interfaces. The address by
which a host reaches the endpoint is taken for its own, whatever its name may be looked up to.
Knows torchrun and nothing of learners.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from torch._C._distributed_c10d import TCPStore
from torch.distributed.elastic.rendezvous import RendezvousHandler, RendezvousParameters
from torch.distributed.elastic.rendezvous.c10d_rendezvous_backend import C10dRendezvousBackend
from torch.distributed.elastic.rendezvous.dynamic_rendezvous import create_handler
from torch.distributed.elastic.rendezvous.utils import parse_rendezvous_endpoint

from .addresses import connected_store, listening_store, own_address_towards

_DEFAULT_PORT = 29_500


class BoundRendezvousBackend(C10dRendezvousBackend):
    """The state of a rendezvous in a store; torchrun compares its name with the one asked for."""

    @property
    def name(self) -> str:
        return "scanline"


def handler() -> Callable[[RendezvousParameters], RendezvousHandler]:
    """What torchrun's registry asks of an entry point."""
    return _created


def _created(parameters: RendezvousParameters) -> RendezvousHandler:
    host, port = parse_rendezvous_endpoint(parameters.endpoint, default_port=_DEFAULT_PORT)
    # Learners have a store of their own, in the process of learner 0 (training/learners.py).
    os.environ["TORCH_DISABLE_SHARE_RDZV_TCP_STORE"] = "1"
    parameters.local_addr = parameters.local_addr or own_address_towards(host, port)
    store = _store(host, port)
    return create_handler(store, BoundRendezvousBackend(store, parameters.run_id), parameters)


def _store(host: str, port: int) -> TCPStore:
    """On the machine that has the address it listens, unless another torchrun does so already."""
    try:
        return listening_store(host, port)
    except OSError:
        return connected_store(host, port)
