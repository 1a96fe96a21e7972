"""Which code does the matrix work of a network on the CPU, and on how many threads.

Takes a number of threads; gives them to our own kernels (convolutions.py, dense.py) or to PyTorch.
Knows no layer.

On a machine without a GPU the network is the limit. The native kernels read the stored bytes
themselves and compute what is equal in several images, or in several patches of one, only once;
PyTorch reaches half of the processor's multiply-adds at the batches of acting. Their sums do not
depend on the number of threads. A network built with `kernels="torch"` leaves everything to
PyTorch: the reference to compare with.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

import torch

from .._native import LAYERS_FINGERPRINT, keep_freed_memory, layer_threads, set_layer_threads

Kernels = Literal["native", "torch"]
FINGERPRINT: str = LAYERS_FINGERPRINT
"""A short hash of our kernels' sources."""

_is_own_process = False


def own_process() -> None:
    """Says that this process does nothing but scanline's work: a command, a learner.

    Only there `share_cores` changes what cannot be changed back, which is how memory is allocated.
    """
    global _is_own_process
    _is_own_process = True


def share_cores(num_threads: int, native: bool) -> None:
    """Gives the threads to the code that does the matrix work; `threads_restored` undoes it.

    Two sets of threads would disturb each other: PyTorch's wait by spinning.
    """
    set_layer_threads(num_threads)
    torch.set_num_threads(1 if native else num_threads)
    if native and _is_own_process:
        _prefer_large_pages()


@contextmanager
def threads_restored() -> Iterator[None]:
    """Numbers of threads that are set inside are undone at the end."""
    before = layer_threads(), torch.get_num_threads()
    try:
        yield
    finally:
        set_layer_threads(before[0])
        torch.set_num_threads(before[1])


def _prefer_large_pages() -> None:
    """Puts large tensors into pages of 2 MB, and keeps freed memory for the next update.

    A dense layer's weights are read across their rows, each in a page of its own otherwise: 7 % of
    an update of A2C. PyTorch reads the variable when it allocates its first tensor.
    """
    os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")
    keep_freed_memory()


def share_cores_here() -> None:
    """Repeats PyTorch's number of threads in the calling thread.

    OpenMP keeps it per thread: oneDNN would use all cores in a new one, and its second thread would
    spin on a core that another thread needs.
    """
    torch.set_num_threads(torch.get_num_threads())
