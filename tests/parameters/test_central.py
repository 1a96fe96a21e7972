"""Central store: one learner is a local run, several lose nothing, a lock outlives nobody."""

from __future__ import annotations

import time

import central_worker
import pytest
import torch
from torch import Tensor, nn

from scanline.networks import build
from scanline.parameters import (
    CentralOwner,
    CentralParameters,
    CentralSettings,
    Layout,
    LocalParameters,
    NotFiniteGradientError,
    OptimiserSettings,
    StoreStuckError,
    shared_store,
)
from scanline.processes import WorkerPool, start_workers
from scanline.records import Spaces
from updating import apply_at

SPACES = Spaces(frame_shape=(84, 84), frame_dtype="uint8", stack=4, num_actions=3)
KINDS = {
    "rmsprop": OptimiserSettings(),
    "centred": OptimiserSettings(centred=True, decay=0.95),
    "tensorflow": OptimiserSettings(epsilon=0.1, epsilon_inside_root=True, square_starts_at=1.0),
    "adam": OptimiserSettings(kind="adam"),
    "amsgrad": OptimiserSettings(kind="adam", amsgrad=True),
}
MULTI = [CentralSettings(rule="multi-step-adam", sync_updates=n) for n in (1, 2, 3, 4)]
WAIT_SECONDS = 60.0


def update(parameters: LocalParameters, number: int) -> None:
    generator = torch.Generator().manual_seed(number)
    frames = torch.randint(0, 256, (4, 4, 84, 84), dtype=torch.uint8, generator=generator)
    outputs = parameters.views.live(frames)
    loss = (outputs.value - 1).square().mean() + outputs.logits.square().mean()
    apply_at(parameters, {"all": loss}, 1e-2 / (1 + number))


def weights(parameters: LocalParameters) -> list[Tensor]:
    return [each.detach().clone() for each in parameters.network.parameters()]


def local(settings: OptimiserSettings) -> LocalParameters:
    network = build("nips", SPACES, "policy-value", seed=1)
    return LocalParameters(network, settings, max_grad_norm=0.5)


def central(
    settings: OptimiserSettings, how: CentralSettings
) -> tuple[CentralParameters, CentralOwner]:
    owned = local(settings)
    store = shared_store(owned.network, settings, how)
    owner = CentralOwner(owned, store, how.lock_seconds)
    network = build("nips", SPACES, "policy-value", seed=2)  # to be replaced by the central weights
    return CentralParameters(network, settings, store, how, max_grad_norm=0.5), owner


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("num_chunks", [1, 3, 8])
def test_one_learner_equals_the_local_optimiser_bit_for_bit(kind: str, num_chunks: int) -> None:
    alone = local(KINDS[kind])
    learner, _ = central(KINDS[kind], CentralSettings(num_chunks=num_chunks))
    for number in range(6):
        update(alone, number)
        update(learner, number)
    assert all(map(torch.equal, weights(alone), weights(learner)))
    assert learner.version == 6


@pytest.mark.parametrize("how", MULTI, ids=lambda how: f"every-{how.sync_updates}")
def test_multi_step_adam_with_one_learner_equals_adam_bit_for_bit(how: CentralSettings) -> None:
    alone = local(KINDS["adam"])
    learner, owner = central(KINDS["adam"], how)
    for number in range(7):
        update(alone, number)
        update(learner, number)
        assert all(map(torch.equal, weights(alone), weights(learner)))
    learner.pull()
    mine, theirs = owner.state(), alone.state()
    assert all(torch.equal(mine["network"][n], v) for n, v in theirs["network"].items())
    for mine_slot, slot in zip(
        mine["optimisers"]["all"]["slots"], theirs["optimisers"]["all"]["slots"], strict=True
    ):
        assert all(torch.equal(mine_slot[name], slot[name]) for name in slot)


class Scalar(nn.Module):
    """One weight whose gradient is the input."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(1))

    def forward(self, inputs: float) -> Tensor:
        return (self.weight * inputs).sum()


class SlowLearner:
    """Appendix B of Stooke and Abbeel for one weight, in double precision."""

    BETA, SQUARE_BETA, EPSILON, RATE = 0.9, 0.999, 1e-5, 0.1

    def __init__(self, central: dict[str, float]) -> None:
        self.central, self.own = central, dict(central)
        self.clear()

    def clear(self) -> None:
        self.steps, self.a_g, self.a_g2, self.a_s = 0, 0.0, 0.0, 0.0

    def step(self, g: float) -> None:
        own, b, c = self.own, self.BETA, self.SQUARE_BETA
        own["t"] += 1
        own["m"], own["v"] = b * own["m"] + (1 - b) * g, c * own["v"] + (1 - c) * g * g
        m, v = own["m"] / (1 - b ** own["t"]), own["v"] / (1 - c ** own["t"])
        s = self.RATE * m / (v**0.5 + self.EPSILON)
        own["w"] -= s
        self.a_g, self.a_g2 = b * self.a_g + g, c * self.a_g2 + g * g
        self.a_s, self.steps = self.a_s + s, self.steps + 1

    def sync(self) -> None:
        central, b, c, n = self.central, self.BETA, self.SQUARE_BETA, self.steps
        central["w"] -= self.a_s
        central["m"] = b**n * central["m"] + (1 - b) * self.a_g
        central["v"] = c**n * central["v"] + (1 - c) * self.a_g2
        central["t"] += n
        self.own = dict(central)
        self.clear()


@pytest.mark.parametrize("period", [1, 2, 3, 4])
def test_two_learners_merge_as_the_paper_says(period: int) -> None:
    settings = OptimiserSettings(kind="adam", epsilon=1e-5)
    how = CentralSettings(rule="multi-step-adam", sync_updates=period, num_chunks=1)
    first = Scalar()
    store = shared_store(first, settings, how)
    owner = CentralOwner(LocalParameters(first, settings), store, 1.0)
    learners = [CentralParameters(Scalar(), settings, store, how) for _ in range(2)]
    shared = {"w": 0.0, "m": 0.0, "v": 0.0, "t": 0.0}
    slow = [SlowLearner(shared), SlowLearner(shared)]
    draws = torch.Generator().manual_seed(period)
    for _ in range(40):  # uneven turns, so that merges meet central values of others
        who = int(torch.randint(0, 2, (), generator=draws))
        gradient = float(torch.randn((), generator=draws))
        apply_at(learners[who], {"all": learners[who].network(gradient)}, SlowLearner.RATE)
        slow[who].step(gradient)
        if slow[who].steps == period:
            slow[who].sync()
        assert learners[who].network.weight.item() == pytest.approx(slow[who].own["w"], rel=2e-4)
    for learner, by_hand in zip(learners, slow, strict=True):
        learner.pull()
        by_hand.sync()
    state = owner.state()
    slot = state["optimisers"]["all"]["slots"][0]
    assert float(state["network"]["weight"]) == pytest.approx(shared["w"], rel=2e-4)
    assert float(slot["exp_avg"]) == pytest.approx(shared["m"], rel=2e-4)
    assert float(slot["exp_avg_sq"]) == pytest.approx(shared["v"], rel=2e-4)
    assert float(slot["step"]) == shared["t"] == 40


def test_lag_in_a_scripted_schedule_is_what_the_others_did_meanwhile() -> None:
    settings, how = OptimiserSettings(), CentralSettings()
    module = Scalar()
    store = shared_store(module, settings, how)
    CentralOwner(LocalParameters(module, settings), store, 1.0)
    learners = [CentralParameters(Scalar(), settings, store, how) for _ in range(3)]
    lags = []
    for turn in range(12):
        learner = learners[turn % 3]
        acted_with = learner.version
        apply_at(learner, {"all": learner.network(1.0)}, 0.1)
        lags.append(learner.version - 1 - acted_with)
    assert lags == [0, 1, 2] + [2] * 9  # round-robin of three: two others in between


def run_learners(pool: WorkerPool, num: int) -> list[float]:
    """All begin together; gives the seconds that each waited for locks."""
    started: list[int] = []
    while len(started) < num:
        started += [w for w, _, _ in pool.answers(WAIT_SECONDS)]
    for worker in pool.workers:
        worker.order(0)
    waited: list[float] = []
    while len(waited) < num:
        found = pool.answers(WAIT_SECONDS)
        assert found, "a learner did not finish"
        waited += [item for _, _, item in found]
    return waited


@pytest.mark.parametrize(
    ("optimiser", "how"),
    [
        (central_worker.HALVES, CentralSettings(num_chunks=4)),
        (central_worker.ADAM, CentralSettings(num_chunks=2, rule="multi-step-adam")),
    ],
    ids=["chunks", "multi-step-adam"],
)
def test_contention_loses_no_update(optimiser: OptimiserSettings, how: CentralSettings) -> None:
    num_learners, num_updates = 3, 400
    module = central_worker.network()
    store = shared_store(module, optimiser, how)
    owner = CentralOwner(LocalParameters(module, optimiser), store, 5.0)
    args = [(optimiser, how, store.fds, num_updates)] * num_learners
    pool = start_workers(central_worker.learn, args, fds=store.fds)
    try:
        waited = run_learners(pool, num_learners)
    finally:
        pool.close()
    total = num_learners * num_updates
    chunks = [store.chunk(n) for n in range(len(store.layout.chunks))]
    assert [int(chunk.updates) for chunk in chunks] == [total] * len(chunks)
    if how.rule == "chunks":
        found = owner.pull().network.weight
        assert torch.equal(found, torch.full_like(found, -0.5 * total))
    else:
        assert [float(chunk.memories["step"][0]) for chunk in chunks] == [total] * len(chunks)
    assert all(seconds >= 0.0 for seconds in waited)
    store.free()


def test_a_busy_chunk_is_visited_last_and_a_wait_has_a_limit() -> None:
    how = CentralSettings(num_chunks=2, lock_seconds=0.2)
    module = central_worker.network()
    store = shared_store(module, central_worker.HALVES, how)
    CentralOwner(LocalParameters(module, central_worker.HALVES), store, 5.0)
    learner = CentralParameters(central_worker.network(), central_worker.HALVES, store, how)
    pool = start_workers(central_worker.hold, [(store.fds, 0)], fds=store.fds)
    try:
        assert pool.answers(WAIT_SECONDS)
        begun = time.monotonic()
        with pytest.raises(StoreStuckError, match=r"Chunks \[0\] .* stayed locked"):
            apply_at(learner, {"all": learner.network(torch.ones(1, 1_000)).sum()}, 1.0)
        assert 0.1 < time.monotonic() - begun < 10.0
        assert [int(store.chunk(n).updates) for n in range(2)] == [0, 1]
        pool.workers[0].process.kill()  # the system frees what a dead learner held
        pool.workers[0].process.wait()
        learner.pull()
        assert learner.waited_seconds < 0.2
    finally:
        pool.close()


def test_a_gradient_that_is_no_number_never_reaches_the_store() -> None:
    learner, owner = central(OptimiserSettings(), CentralSettings())
    update(learner, 0)
    before = {name: value.clone() for name, value in owner.state()["network"].items()}
    with pytest.raises(NotFiniteGradientError, match=r"after 1 updates.*losses were all=nan"):
        apply_at(learner, {"all": learner.network.head.value.weight.sum() * float("nan")}, 1.0)
    after = owner.state()
    assert after["version"] == 1
    assert all(torch.equal(before[name], value) for name, value in after["network"].items())


@pytest.mark.parametrize("kind", KINDS)
def test_the_owner_saves_what_a_local_run_would_and_goes_on_from_it(kind: str) -> None:
    learner, owner = central(KINDS[kind], CentralSettings())
    alone = local(KINDS[kind])
    for number in range(3):
        update(learner, number)
        update(alone, number)
    alone.load(owner.state())
    fresh, second = central(KINDS[kind], CentralSettings(num_chunks=5))
    second.load(alone.state())
    fresh.pull()
    for number in range(3, 6):
        update(fresh, number)
        update(alone, number)
    assert all(map(torch.equal, weights(alone), weights(fresh)))
    assert second.state()["version"] == 6


def test_chunks_cover_every_number_once_and_stay_within_a_group() -> None:
    groups = {
        "actor": [nn.Parameter(torch.zeros(10, 30))],
        "critic": [nn.Parameter(torch.zeros(1_000)), nn.Parameter(torch.zeros(7))],
    }
    layout = Layout.of(groups, 4)
    places = [n for chunk in layout.chunks for n in range(chunk.start, chunk.stop)]
    assert places == list(range(1_307))
    for chunk in layout.chunks:
        group = layout.groups[chunk.group]
        assert group.start <= chunk.start < chunk.stop <= group.stop
    assert len(layout.chunks_of("actor")) == 1
    assert len(layout.chunks_of("critic")) >= 3


def test_settings_that_cannot_be_are_refused() -> None:
    with pytest.raises(ValueError, match="belongs to rule='multi-step-adam'"):
        CentralSettings(sync_updates=2)
    with pytest.raises(ValueError, match="use kind='adam'"):
        central(OptimiserSettings(), CentralSettings(rule="multi-step-adam"))
    with pytest.raises(ValueError, match="num_chunks=0"):
        CentralSettings(num_chunks=0)
