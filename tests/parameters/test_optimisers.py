"""RMSProp in every placement against scalar arithmetic; Adam against PyTorch; settings."""

import math

import pytest
import torch
from torch import Tensor, nn

from scanline.parameters import OptimiserSettings, RateSettings, RMSProp

NUM_UPDATES = 20
RATE = 0.01


def parameters() -> list[nn.Parameter]:
    """A matrix, a vector and a kernel that lies channels last."""
    generator = torch.Generator().manual_seed(0)
    kernel = torch.randn(4, 3, 2, 2, generator=generator).to(memory_format=torch.channels_last)
    tensors = [torch.randn(3, 5, generator=generator), torch.randn(5, generator=generator), kernel]
    return [nn.Parameter(each) for each in tensors]


def set_gradients(moved: list[nn.Parameter], update: int) -> None:
    generator = torch.Generator().manual_seed(100 + update)
    for each in moved:
        gradient = torch.randn(each.shape, generator=generator) * 10.0 ** (update % 3 - 1)
        each.grad = torch.empty_like(each).copy_(gradient)


def stepped(settings: OptimiserSettings, updates: int = NUM_UPDATES) -> list[Tensor]:
    moved = parameters()
    optimiser = settings.build(moved)
    for update in range(updates):
        set_gradients(moved, update)
        optimiser.step(RATE)
    return [each.detach() for each in moved]


def scalar_rmsprop(value: float, gradients: list[float], settings: OptimiserSettings) -> float:
    """One number through the formula, in double precision."""
    square, mean = settings.square_starts_at, 0.0
    for gradient in gradients:
        square = settings.decay * square + (1 - settings.decay) * gradient**2
        mean = settings.decay * mean + (1 - settings.decay) * gradient
        variance = square - mean**2 if settings.centred else square
        if settings.epsilon_inside_root:
            value -= RATE * gradient / math.sqrt(variance + settings.epsilon)
        else:
            value -= RATE * gradient / (math.sqrt(variance) + settings.epsilon)
    return value


def by_definition(settings: OptimiserSettings) -> list[Tensor]:
    moved = parameters()
    history: list[list[list[float]]] = [[] for _ in moved]
    for update in range(NUM_UPDATES):
        set_gradients(moved, update)
        for each, rows in zip(moved, history, strict=True):
            rows.append(each.grad.flatten().tolist())
    results = []
    for each, rows in zip(moved, history, strict=True):
        numbers = each.flatten().tolist()
        columns = [list(column) for column in zip(*rows, strict=True)]
        done = [scalar_rmsprop(n, c, settings) for n, c in zip(numbers, columns, strict=True)]
        results.append(torch.tensor(done).view(each.shape))
    return results


@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize("start", [0.0, 1.0])
@pytest.mark.parametrize("centred", [False, True])
@pytest.mark.parametrize("epsilon", [0.1, 1e-5])
def test_rmsprop_equals_its_definition(inside, start, centred, epsilon):
    settings = OptimiserSettings(
        decay=0.95,
        epsilon=epsilon,
        epsilon_inside_root=inside,
        square_starts_at=start,
        centred=centred,
    )
    # Single precision against double: the variance loses digits when it is centred.
    tolerance = 1e-4 if centred else 2e-6
    for mine, expected in zip(stepped(settings), by_definition(settings), strict=True):
        torch.testing.assert_close(mine, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("centred", [False, True])
def test_rmsprop_with_epsilon_outside_and_start_0_is_pytorchs(centred):
    moved = parameters()
    theirs = torch.optim.RMSprop(moved, lr=RATE, alpha=0.95, eps=1e-2, centered=centred)
    for update in range(NUM_UPDATES):
        set_gradients(moved, update)
        theirs.step()
    mine = stepped(OptimiserSettings(decay=0.95, epsilon=1e-2, centred=centred))
    for one, other in zip(mine, moved, strict=True):
        torch.testing.assert_close(one, other.detach(), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize("centred", [False, True])
def test_rmsprop_in_one_pass_equals_its_whole_arrays(inside, centred):
    settings = OptimiserSettings(epsilon=1e-3, epsilon_inside_root=inside, centred=centred)
    moved, other = parameters(), parameters()
    one_pass, whole = RMSProp(moved, settings), RMSProp(other, settings, fused=False)
    for update in range(NUM_UPDATES):
        for each in (moved, other):
            set_gradients(each, update)
        before = [each._version for each in moved]
        one_pass.step(RATE)
        whole.step(RATE)
        assert all(each._version > old for each, old in zip(moved, before, strict=True))
    for one, two in zip(moved, other, strict=True):
        torch.testing.assert_close(one.detach(), two.detach(), rtol=2e-6, atol=2e-7)


def test_rmsprop_pairs_gradients_of_another_memory_order_rightly():
    settings = OptimiserSettings(epsilon=1e-3)
    moved, other = parameters(), parameters()
    for each, optimiser in ((moved, RMSProp(moved, settings)), (other, RMSProp(other, settings))):
        set_gradients(each, 0)
        if each is other:
            each[2].grad = each[2].grad.contiguous()
        optimiser.step(RATE)
    for one, two in zip(moved, other, strict=True):
        torch.testing.assert_close(one.detach(), two.detach(), rtol=2e-6, atol=2e-7)


def test_rmsprop_of_tensorflow_1_takes_its_known_first_step():
    settings = OptimiserSettings(
        decay=0.99, epsilon=0.1, epsilon_inside_root=True, square_starts_at=1.0
    )
    moved = nn.Parameter(torch.zeros(1))
    moved.grad = torch.full((1,), 2.0)
    settings.build([moved]).step(0.5)
    # square = 0.99 * 1 + 0.01 * 4 = 1.03
    assert float(moved.detach()) == pytest.approx(-0.5 * 2 / math.sqrt(1.03 + 0.1), rel=1e-6)


def test_centred_variance_below_zero_by_rounding_gives_no_nan():
    moved = nn.Parameter(torch.zeros(1000))
    optimiser = OptimiserSettings(decay=0.5, epsilon=1e-8, centred=True).build([moved])
    gradient = torch.linspace(0.1, 3.0, 1000)
    for _ in range(200):  # a constant gradient: the variance tends to zero from both sides
        moved.grad = gradient.clone()
        optimiser.step(1e-9)
    assert bool(moved.isfinite().all())


@pytest.mark.parametrize("amsgrad", [False, True])
def test_adam_is_pytorchs(amsgrad):
    moved = parameters()
    theirs = torch.optim.Adam(moved, lr=RATE, eps=1e-3, amsgrad=amsgrad, foreach=False)
    for update in range(NUM_UPDATES):
        set_gradients(moved, update)
        theirs.step()
    mine = stepped(OptimiserSettings(kind="adam", epsilon=1e-3, amsgrad=amsgrad))
    for one, other in zip(mine, moved, strict=True):
        torch.testing.assert_close(one, other.detach(), rtol=1e-6, atol=1e-6)


def test_adam_pairs_gradients_of_another_memory_order_rightly():
    settings = OptimiserSettings(kind="adam")
    results = []
    for order in (torch.channels_last, torch.contiguous_format):
        moved = parameters()
        optimiser = settings.build(moved)
        set_gradients(moved, 0)
        # Past the check of the `grad` setter: `.data` keeps the strides it is given.
        moved[2].grad.data = moved[2].grad.data.contiguous(memory_format=order)
        optimiser.step(RATE)
        results.append(moved[2].detach())
    assert torch.equal(*results)


RMSPROP = OptimiserSettings(centred=True, square_starts_at=1.0)
ADAM = OptimiserSettings(kind="adam", amsgrad=True)


@pytest.mark.parametrize("settings", [RMSPROP, ADAM], ids=["rmsprop", "adam"])
def test_a_loaded_optimiser_continues_bit_for_bit(settings):
    moved = parameters()
    optimiser = settings.build(moved)
    for update in range(NUM_UPDATES):
        if update == 7:
            state, weights = optimiser.state(), [each.detach().clone() for each in moved]
            moved = [nn.Parameter(torch.empty_like(w).copy_(w)) for w in weights]
            optimiser = settings.build(moved)
            optimiser.load(state)
        set_gradients(moved, update)
        optimiser.step(RATE)
    for one, other in zip(moved, stepped(settings), strict=True):
        assert torch.equal(one.detach(), other)


@pytest.mark.parametrize("settings", [RMSPROP, ADAM], ids=["rmsprop", "adam"])
def test_state_is_a_contiguous_copy_of_tensors(settings):
    moved = parameters()
    optimiser = settings.build(moved)
    set_gradients(moved, 0)
    optimiser.step(RATE)
    state = optimiser.state()
    before = [each.clone() for each in leaves(state)]
    set_gradients(moved, 1)
    optimiser.step(RATE)
    assert len(before) >= 6
    for then, now in zip(before, leaves(state), strict=True):
        assert now.is_contiguous()
        assert torch.equal(then, now)


def leaves(state: object) -> list[Tensor]:
    if isinstance(state, dict):
        return [leaf for value in state.values() for leaf in leaves(value)]
    if isinstance(state, list):
        return [leaf for value in state for leaf in leaves(value)]
    assert isinstance(state, Tensor)
    return [state]


@pytest.mark.parametrize("settings", [RMSPROP, ADAM], ids=["rmsprop", "adam"])
def test_a_parameter_without_gradient_stays_and_others_move(settings):
    moved = parameters()
    before = [each.detach().clone() for each in moved]
    optimiser = settings.build(moved)
    optimiser.step(RATE)
    set_gradients(moved, 0)
    moved[1].grad = None
    optimiser.step(RATE)
    same = [torch.equal(one.detach(), other) for one, other in zip(moved, before, strict=True)]
    assert same == [False, True, False]


def test_a_state_of_another_size_is_refused():
    for settings in (RMSPROP, ADAM):
        state = settings.build(parameters()[:2]).state()
        with pytest.raises(ValueError, match="holds 2 tensors per slot, but this one has 3"):
            settings.build(parameters()).load(state)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"kind": "sgd"}, "kind='sgd' is unknown; use"),
        ({"anneal": "cosine"}, "anneal='cosine' is unknown; use"),
        ({"learning_rate": 0.0}, "learning_rate=0.0 is not positive; use"),
        ({"learning_rate": math.nan}, "learning_rate=nan is not positive; use"),
        ({"epsilon": 0.0}, "epsilon=0.0 is not positive; use"),
        ({"decay": 1.0}, "decay has 1.0, outside"),
        ({"kind": "adam", "betas": (0.9, 1.5)}, "betas has 1.5, outside"),
        ({"square_starts_at": -1.0}, "square_starts_at=-1.0 must not be negative"),
        ({"warmup_agent_steps": -1}, "warmup_agent_steps=-1 must not be negative"),
        ({"amsgrad": True}, "amsgrad=True means nothing to 'rmsprop'"),
        ({"kind": "adam", "centred": True}, "centred=True means nothing to 'adam'"),
        ({"kind": "adam", "epsilon_inside_root": True}, "epsilon_inside_root=True means nothing"),
        ({"kind": "adam", "square_starts_at": 1.0}, "square_starts_at=1.0 means nothing"),
    ],
)
def test_impossible_settings_are_refused(wrong, words):
    with pytest.raises(ValueError, match=words):
        OptimiserSettings(**wrong)


def test_the_learning_rate_follows_agent_steps():
    plain = OptimiserSettings(learning_rate=0.5).schedule(1000)
    assert [plain(steps) for steps in (0, 1000)] == [0.5, 0.5]
    settings = OptimiserSettings(learning_rate=0.5, anneal="linear", warmup_agent_steps=100)
    rate = settings.schedule(1000)
    assert [rate(steps) for steps in (0, 50, 100, 500, 1000, 1001)] == pytest.approx(
        [0.0, 0.5 * 0.5 * 0.95, 0.45, 0.25, 0.0, 0.0]
    )


def test_settings_without_an_optimiser_are_refused_where_they_are_made() -> None:
    class Unfinished(RateSettings):
        pass

    with pytest.raises(TypeError, match=r"abstract.*build"):
        Unfinished()  # type: ignore[abstract]
