"""Checks of what a user hands to the public vector environment.

Takes a value and what it must fit; gives it in the form that the engine wants, or raises with a
sentence. Knows no engine: training hands over arrays that need no check.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..records import Array


def actions(given: Any, num: int, num_actions: int) -> Array:
    """One action per environment, as int64."""
    found = np.asarray(given)
    if found.shape != (num,):
        raise ValueError(f"actions have shape {found.shape}; give one per environment, {(num,)}.")
    if not np.issubdtype(found.dtype, np.integer):
        raise TypeError(f"actions are {found.dtype}; give integers, such as int64.")
    if found.min() < 0 or found.max() >= num_actions:
        raise ValueError(
            f"actions are {found.min()} to {found.max()}; they must lie in 0..{num_actions - 1}."
        )
    return found.astype(np.int64, copy=False)


def groups(env_ids: Any, num_envs: int, batch_size: int) -> tuple[Array, list[int]]:
    """The environments in the order given, and the whole groups that they make."""
    chosen = np.arange(num_envs) if env_ids is None else np.asarray(env_ids)
    found = np.unique(chosen // batch_size)
    whole = (found[:, None] * batch_size + np.arange(batch_size)).ravel()
    fits = whole.size > 0 and whole[0] >= 0 and whole[-1] < num_envs
    if not fits or not np.array_equal(np.sort(chosen), whole):
        raise ValueError(
            f"env_ids {chosen.tolist()} are not whole groups of {batch_size} of the {num_envs} "
            "environments; send what recv gave, or all."
        )
    return chosen, found.tolist()


def mask(given: Any, num_envs: int) -> Array | None:
    """A reset mask, or None for all environments."""
    if given is None:
        return None
    if not isinstance(given, np.ndarray) or given.dtype != np.bool_:
        raise TypeError("options['reset_mask'] must be a boolean NumPy array.")
    if given.shape != (num_envs,) or not given.any():
        raise ValueError(
            f"options['reset_mask'] has shape {given.shape} and names {int(given.sum())} "
            f"environments; it must have shape {(num_envs,)} and name at least one."
        )
    return given
