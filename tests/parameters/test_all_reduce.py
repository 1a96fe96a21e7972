"""The exchange between two learners: means, messages, equal parameters, lost ones."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any

import pytest
import torch
from torch._C._distributed_c10d import TCPStore

from parameters import learner_pair
from scanline import processes
from scanline.parameters import LearnerLostError, Learners, LearnersDifferError
from scanline.parameters.all_reduce import digest, in_memory_order

near_or_not = pytest.mark.parametrize("is_near", [False, True], ids=["network", "shared memory"])


@contextmanager
def pair(
    second: Callable[..., None], monkeypatch: pytest.MonkeyPatch, *args: Any, **choices: Any
) -> Iterator[tuple[Learners, processes.WorkerPool]]:
    """This process as the first of two learners."""
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "lo")
    store = TCPStore("127.0.0.1", 0, 2, is_master=True, wait_for_workers=False)
    pool = processes.start_workers(second, [(store.port, *args)])
    learners = learner_pair.joined(0, store, **choices)
    try:
        yield learners, pool
    finally:
        pool.close(grace_seconds=0.0 if not learners.is_whole else 5.0)
        learners.close()


@near_or_not
def test_two_learners_agree(is_near: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    with pair(learner_pair.second, monkeypatch, is_near, is_near=is_near) as (learners, pool):
        gradient = torch.arange(96.0).view(2, 3, 4, 4)
        before = gradient.clone()
        count = torch.tensor([2.0], dtype=torch.float64)
        learners.mean([gradient, count])
        assert torch.equal(gradient, (before + 4.0) / 2)
        assert count.tolist() == [3.5]
        assert learners.total(4) == 7
        assert learners.gathered("first") == ["first", "second"]
        assert learners.scattered([{"a": 1}, {"a": 2}]) == {"a": 1}
        assert learners.broadcast("this") == "this"
        assert learners.ordered(3) == 3
        learners.check_equal(learner_pair.network(0.5), 0)
        ((_, _, answer),) = pool.answers(60)
        assert answer == (7, {"a": 2}, ("this", 3), float(gradient.mean()))


@near_or_not
def test_three_learners_sum_in_the_order_of_their_ranks(
    is_near: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So the result is that of any other placing, bit for bit."""
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "lo")
    store = TCPStore("127.0.0.1", 0, 3, is_master=True, wait_for_workers=False)
    args = [(store.port, is_near, rank) for rank in (1, 2)]
    pool = processes.start_workers(learner_pair.one_of_three, args)
    learners = learner_pair.joined(0, store, **learner_pair.three(is_near))
    with closing(pool), closing(learners):
        mine, *others = (learner_pair.third_of_three(rank) for rank in range(3))
        expected = (mine + others[0] + others[1]) / 3
        assert not torch.equal(expected, (mine + (others[0] + others[1])) / 3)
        learners.mean([mine])
        assert torch.equal(mine, expected)
        assert all(worker.answer()[1] == expected.tolist() for worker in pool.workers)


def test_one_bit_of_difference_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    with (
        pair(learner_pair.second_with_other_weights, monkeypatch) as (learners, _),
        pytest.raises(LearnersDifferError, match="After 7 updates"),
    ):
        learners.check_equal(learner_pair.network(0.0), 7)


@near_or_not
def test_a_learner_that_dies_is_noticed_at_once_and_named(
    is_near: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    second = learner_pair.second_that_dies
    with pair(second, monkeypatch, is_near, is_near=is_near) as (learners, _):
        begun = time.monotonic()
        with pytest.raises(LearnerLostError, match=r"another learner: learner 1 has ended. The"):
            learners.mean([torch.ones(3)])
        assert time.monotonic() - begun < 30.0  # not by the time limit
        assert not learners.is_whole
        learners.reason = lambda: "it was killed."
        with pytest.raises(LearnerLostError, match=r"lost another learner: it was killed. The run"):
            learners.mean([torch.ones(3)])


@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="a process is stopped by SIGSTOP")
def test_a_learner_that_stands_still_is_noticed_and_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with pair(learner_pair.second_that_stops, monkeypatch, silent=3.0) as (learners, _):
        learners.start_again = True
        begun = time.monotonic()
        with pytest.raises(LearnerLostError, match=r"learner 1 has not been heard for 3 seconds"):
            learners.ordered()
        assert time.monotonic() - begun < 30.0


def test_a_learner_that_fails_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    with (
        pair(learner_pair.second_that_fails, monkeypatch) as (learners, _),
        pytest.raises(LearnerLostError, match=r"learner 1 failed: No space left on device"),
    ):
        learners.ordered()


def test_a_digest_depends_on_every_bit() -> None:
    network = torch.nn.Linear(2, 2)
    first = digest(network)
    assert digest(network) == first
    network.bias.data[1] = torch.nextafter(network.bias.data[1], torch.tensor(9.0))
    assert digest(network) != first


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (0, 3, 1, 2), (3, 2, 1, 0)])
def test_dense_tensors_are_flattened_in_place(order: tuple[int, ...]) -> None:
    tensor = torch.arange(120.0).view(2, 3, 4, 5).permute(order)
    flat = in_memory_order(tensor).reshape(-1)
    assert flat.data_ptr() == tensor.data_ptr()
    assert torch.equal(flat, torch.arange(120.0))
