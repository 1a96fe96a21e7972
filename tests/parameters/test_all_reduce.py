"""The exchange between two learners: means, messages, equal parameters, lost ones."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
import torch
from torch._C._distributed_c10d import TCPStore

from parameters import learner_pair
from scanline import processes
from scanline.parameters import LearnerLostError, Learners, LearnersDifferError
from scanline.parameters.all_reduce import digest, in_memory_order


@contextmanager
def pair(
    second: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[Learners, processes.WorkerPool]]:
    """This process as the first of two learners."""
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "lo")
    store = TCPStore("127.0.0.1", 0, 2, is_master=True, wait_for_workers=False)
    pool = processes.start_workers(second, [(store.port,)])
    learners = learner_pair.joined(0, store)
    try:
        yield learners, pool
    finally:
        learners.close()
        pool.close()


def test_two_learners_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    with pair(learner_pair.second, monkeypatch) as (learners, pool):
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


def test_one_bit_of_difference_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    with (
        pair(learner_pair.second_with_other_weights, monkeypatch) as (learners, _),
        pytest.raises(LearnersDifferError, match="After 7 updates"),
    ):
        learners.check_equal(learner_pair.network(0.0), 7)


def test_a_learner_that_dies_is_noticed_at_once_and_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with pair(learner_pair.second_that_dies, monkeypatch) as (learners, _):
        learners.reason = lambda: "it was killed."
        begun = time.monotonic()
        with pytest.raises(LearnerLostError, match=r"lost another learner: it was killed. The run"):
            learners.mean([torch.ones(3)])
        assert time.monotonic() - begun < 30.0  # by the closed connection, not by the time limit
        assert not learners.is_whole


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
