"""The garbage collector leaves out objects that were there before a loop.

Takes nothing and gives nothing: a `with` block around a loop. Knows no run.

PyTorch and what it imports are two hundred thousand objects that live as long as the process. The
collector walks through them every few seconds, 0.15 s each time: 6 % of a run of A2C.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def frozen_garbage() -> Iterator[None]:
    """Freezes all present objects: the collector skips them until the block ends."""
    if gc.get_freeze_count():  # the caller has frozen objects, and decides when to unfreeze
        yield
        return
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
