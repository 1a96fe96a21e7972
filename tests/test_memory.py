"""Memory: what is free, and one sum that is compared with it."""

from __future__ import annotations

import math

import pytest

from scanline import memory
from scanline.errors import RefusedError
from scanline.memory import HOST, Share

SHARES = [
    Share("Environments", 1e6, lambda left: "use a smaller num_envs"),
    Share("A replay", 7e9, lambda left: f"keep {left / 1e9:.1f} GB"),
    Share("The network", 2e9, lambda left: "use a smaller network", "cuda:0"),
]


def test_this_machine_has_memory() -> None:
    assert 1e6 < memory.available_bytes() < 1e15


def test_the_sum_of_every_place_is_told_largest_share_first() -> None:
    assert memory.told(SHARES, {HOST: 8e9, "cuda:0": 4e9}) == (
        "Memory: 7.00 GB of 8.00 GB free on this machine (7.00 GB a replay, 1.00 MB environments). "
        "Memory: 2.00 GB of 4.00 GB free on cuda:0 (2.00 GB the network)."
    )
    boundless = memory.told(SHARES, {HOST: 8e9, "cuda:0": math.inf})
    assert boundless.endswith(" Memory: 2.00 GB on cuda:0 (2.00 GB the network).")


def test_shares_that_fit_alone_and_not_together_are_refused() -> None:
    free = {HOST: 7.0005e9, "cuda:0": 4e9}
    assert all(share.num_bytes <= free[share.place] for share in SHARES)
    with pytest.raises(RefusedError, match=r"has 7.00 GB left; .* 7.00 GB, is a replay: keep 7.0"):
        memory.told(SHARES, free)


def test_a_device_that_is_too_small_is_named() -> None:
    with pytest.raises(RefusedError, match=r"cuda:0 has 1.00 GB left.*use a smaller network\.$"):
        memory.told(SHARES, {HOST: 8e9, "cuda:0": 1e9})


def test_a_share_of_several_learners_is_as_large_as_all_of_them() -> None:
    pair = SHARES[1].times(2, "learners")
    assert (pair.what, pair.num_bytes) == ("A replay in each of 2 learners", 14e9)
    assert pair.remedy(4e9) == "keep 2.0 GB"
    assert SHARES[1].times(1, "learners") is SHARES[1]
