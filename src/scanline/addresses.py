"""Addresses: stores on the one address that the user names, and the interfaces that have them.

Takes IPv4 addresses; gives a store (PyTorch's TCPStore) that listens on one of them and nowhere
else, the address by which this machine reaches another one, and the interface of an address.
Knows sockets and nothing of learners.
"""

from __future__ import annotations

import fcntl
import socket
import struct
import sys
from contextlib import suppress
from datetime import timedelta

from torch._C._distributed_c10d import TCPStore

STORE_SECONDS = 300.0
"""Longest wait for the answer of a store, or for the process that has it."""
_SIOCGIFADDR = 0x8915
"""Linux: the IPv4 address of an interface."""


def listening_store(
    address: str, port: int = 0, count: int | None = None, seconds: float = STORE_SECONDS
) -> TCPStore:
    """A store that listens on this address alone; port 0 for any free one.

    Left to itself a TCPStore listens on all interfaces, whatever host it is given. Raises OSError
    where the address is not this machine's, or the port is taken.
    """
    listener = socket.create_server((address, port), backlog=128)
    port = listener.getsockname()[1]
    return TCPStore(
        address,
        port,
        count,
        is_master=True,
        wait_for_workers=False,
        timeout=timedelta(seconds=seconds),
        master_listen_fd=listener.detach(),
    )


def connected_store(address: str, port: int, seconds: float = STORE_SECONDS) -> TCPStore:
    """The store of another process; waits for it."""
    limit = timedelta(seconds=seconds)
    return TCPStore(address, port, None, is_master=False, timeout=limit)


def own_address_towards(host: str, port: int) -> str:
    """The address of this machine from which it reaches another one; sends nothing."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((host, port))
        address: str = probe.getsockname()[0]
    return address


def interface_of(address: str) -> str | None:
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
