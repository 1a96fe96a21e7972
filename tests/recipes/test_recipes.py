"""The rows say what the papers say, and refuse what cannot work."""

from __future__ import annotations

import dataclasses
import math

import pytest
import torch

from scanline import protocols, recipes, training
from scanline.algorithms import ActorCritic, Dqn, Ppo, Vtrace
from scanline.parameters import CentralSettings
from scanline.recipes import Recipe
from scanline.records import Spaces
from scanline.runners.free_running import FreeRunning
from scanline.samplers import SamplingSettings
from scanline.stores import ReplaySettings, RolloutSettings, WindowSettings


def test_every_row_is_found_by_its_name_and_has_a_sentence() -> None:
    for name, recipe in recipes.RECIPES.items():
        assert recipes.find(name).source == name == recipe.name
        assert recipe.summary.endswith(".")
    with pytest.raises(ValueError, match="did you mean 'accelerated-ppo'"):
        recipes.find("accelerated-pp")


def test_ppo_is_cleanrl_s() -> None:
    recipe = recipes.find("ppo")
    assert isinstance(recipe.algorithm, Ppo)
    sampling, store = recipe.sampling, recipe.store
    assert (sampling.num_envs, sampling.horizon_agent_steps) == (8, 128)
    assert (store.epochs, store.num_minibatches) == (4, 4)
    assert recipe.optimiser.schedule(1_000)(500) == pytest.approx(1.25e-4)


@pytest.mark.parametrize(("num_envs", "horizon"), [(8, 256), (64, 32), (512, 4)])
def test_accelerated_ppo_learns_from_2048_samples_whatever_the_number_of_envs(
    num_envs: int, horizon: int
) -> None:
    sampling = recipes.find("accelerated-ppo").replace(num_envs=num_envs).sampling
    assert sampling.horizon_agent_steps == horizon


def test_a_number_of_envs_that_does_not_divide_the_samples_is_refused() -> None:
    recipe = recipes.find("accelerated-ppo")
    with pytest.raises(ValueError, match="do not divide among num_envs=48; use 32"):
        recipe.replace(num_envs=48)
    with pytest.raises(ValueError, match="exactly one of them"):
        recipe.replace(rollout_agent_steps=128)
    assert recipe.replace(rollout_agent_steps=128, rollout_samples=0).sampling.num_envs == 8


def test_accelerated_a2c_scales_its_rate_with_the_root_of_the_envs() -> None:
    recipe = recipes.find("accelerated-a2c")
    assert isinstance(recipe.algorithm, ActorCritic)
    assert recipe.sampling.num_groups == 2
    for num_envs in (16, 64, 512):
        expected = 7e-4 * math.sqrt(num_envs / 16)
        assert recipe.optimiser.scaled_rate(num_envs) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("name", "knobs"),
    [
        ("cule-vtrace", (120, 20, 20, 1)),
        *(
            ("cule-vtrace-" + "-".join(map(str, knobs)), knobs)
            for knobs in (
                *((120, 1, 5, 5), (120, 5, 5, 1), (1200, 1, 5, 5), (1200, 5, 5, 1)),
                *((1200, 20, 20, 1), (4800, 20, 20, 1)),
            )
        ),
    ],
)
def test_cule_s_configurations_are_those_of_table_3_and_use_every_step_once(
    name: str, knobs: tuple[int, int, int, int]
) -> None:
    recipe = recipes.find(name)
    sampling, store = recipe.sampling, recipe.store
    assert isinstance(store, WindowSettings) and isinstance(recipe.algorithm, Vtrace)
    rollout, window = sampling.horizon_agent_steps, store.window_agent_steps
    assert (sampling.num_envs, store.num_blocks, window, rollout) == knobs
    assert window == rollout * store.num_blocks
    assert (recipe.network, recipe.protocol) == ("cule", "cule")
    assert (recipe.algorithm.entropy_coef, recipe.algorithm.normalise_pixels) == (0.01, True)


def test_a_configuration_has_one_name() -> None:
    with pytest.raises(ValueError, match="did you mean 'cule-vtrace'\\?"):
        recipes.find("cule-vtrace-120-20-20-1")
    rows = {name: unnamed(recipe) for name, recipe in recipes.RECIPES.items()}
    assert len(set(rows.values())) == len(rows)


def unnamed(recipe: Recipe) -> str:
    return repr(dataclasses.replace(recipe, name="", summary="", source=""))


def test_the_row_retuned_for_a_cpu_says_what_it_changes() -> None:
    recipe, published = recipes.find("vtrace"), recipes.find("cule-vtrace")
    assert (recipe.network, recipe.algorithm.entropy_coef) == ("nips-orthogonal", 0.003)
    rollout, blocks = recipe.sampling.horizon_agent_steps, recipe.store.num_blocks
    assert recipe.store.window_agent_steps == rollout * blocks, "every step once"
    undone = recipe.replace(
        network="cule",
        entropy_coef=0.01,
        learning_rate=6.5e-4,
        anneal="none",
        num_envs=120,
        num_blocks=20,
        window_agent_steps=20,
        rollout_agent_steps=1,
        decorrelation_draw="all",
        agent_steps=20_000_000,
    )
    assert unnamed(undone) == unnamed(published)


@pytest.mark.parametrize("name", ["cule-vtrace", "cule-a2c", "cule-ppo", "cule-dqn"])
def test_every_environment_of_cule_plays_the_whole_count_of_random_steps(name: str) -> None:
    """The released code's 400 raw frames, 4,000 for DQN, without a draw."""
    sampling = recipes.find(name).sampling
    assert isinstance(sampling, SamplingSettings)
    raw_frames = 4_000 if name == "cule-dqn" else 400
    assert sampling.decorrelation_draw == "all"
    assert 4 * sampling.decorrelation_agent_steps == raw_frames


def test_an_algorithm_and_a_store_that_do_not_fit_are_refused() -> None:
    recipe = recipes.find("cule-vtrace")
    with pytest.raises(ValueError, match="use store=WindowSettings"):
        dataclasses.replace(recipe, store=RolloutSettings())
    with pytest.raises(ValueError, match="ActorCritic knows nothing of older policies"):
        dataclasses.replace(recipe, algorithm=ActorCritic())
    assert isinstance(recipe.algorithm, Vtrace)


def test_asynchronous_rows_are_their_synchronous_twins_with_an_exchange() -> None:
    for name, twin in (
        ("accelerated-a3c", "accelerated-a2c"),
        ("accelerated-dqn-async", "accelerated-dqn"),
    ):
        recipe = recipes.find(name)
        assert isinstance(recipe.exchange, CentralSettings)
        assert (recipe.algorithm, recipe.optimiser) == (
            recipes.find(twin).algorithm,
            recipes.find(twin).optimiser,
        )
    appo = recipes.find("accelerated-appo")
    assert (
        appo.optimiser.learning_rate == recipes.find("accelerated-ppo").optimiser.learning_rate / 4
    )
    for period in (1, 2, 3, 4):
        assert appo.replace(sync_updates=period).exchange.sync_updates == period


def test_ga3c_is_the_paper_s() -> None:
    recipe = recipes.find("ga3c")
    loss, pace = recipe.algorithm, recipe.pace
    assert isinstance(loss, ActorCritic) and isinstance(pace, FreeRunning)
    assert (recipe.sampling.num_envs, pace.num_predictors, pace.num_trainers) == (128, 2, 2)  # 5.1
    assert loss.value_coef == 1.0  # equation 2
    assert (loss.log_form, loss.log_epsilon > 0) == ("added", True)  # equation 5
    assert loss.reduction == "sum"  # section 5.3
    assert recipe.sampling.horizon_agent_steps == 5  # section 3.2
    assert 20 <= recipe.store.min_batch_agent_steps <= 40  # figure 7
    assert recipe.store.learn_terminal_reward
    rate = recipe.optimiser.schedule(1_000)
    assert rate(0) == rate(999) == 3e-4  # figure 6
    assert protocols.get(recipe.protocol).noop_max > 0  # starts vary


def test_ga3c_s_released_code_is_a_row_of_its_own() -> None:
    paper, code = recipes.find("ga3c"), recipes.find("ga3c-repo")
    assert isinstance(code.algorithm, ActorCritic)
    assert (code.algorithm.log_form, code.algorithm.value_coef) == ("floor", 0.5)
    assert (code.sampling.num_envs, code.store.min_batch_agent_steps) == (32, 0)
    assert not code.store.learn_terminal_reward
    # Annealed by episodes, but from 0.0003 to 0.0003 and from 0.01 to 0.01.
    assert code.optimiser == paper.optimiser
    assert code.algorithm.entropy_coef == paper.algorithm.entropy_coef == 0.01
    rules, code_rules = (protocols.get(row.protocol).to_dict() for row in (paper, code))
    differing = {name for name in rules if rules[name] != code_rules[name]}
    assert differing == {"name", "noop_max", "sticky"}


def test_paac_is_the_paper_s() -> None:
    """Section 5.1, hyperparameters of Table 1."""
    recipe = recipes.find("paac")
    assert isinstance(recipe.algorithm, ActorCritic)
    assert (recipe.sampling.num_envs, recipe.sampling.horizon_agent_steps) == (32, 5)
    assert recipe.optimiser.scaled_rate(32) == pytest.approx(0.0224)
    assert (recipe.optimiser.epsilon, recipe.optimiser.decay) == (0.1, 0.99)
    assert (recipe.optimiser.max_grad_norm, recipe.algorithm.entropy_coef) == (40.0, 0.01)
    rules = protocols.get(recipe.protocol)
    assert (rules.noop_min, rules.noop_max, rules.pooling) == (1, 30, "grey")
    assert protocols.get(recipes.find("paac-repo").protocol).noop_min == 0


def test_fast_dqn_is_the_paper_s() -> None:
    """Table 5 and appendix B; the setup of Mnih 2015 otherwise."""
    recipe = recipes.find("fast-dqn")
    store, optimiser = recipe.store, recipe.optimiser
    assert (store.batch_size, store.training_intensity, store.capacity_agent_steps) == (32, 8, 1e6)
    assert store.learning_starts_agent_steps == 50_000
    assert recipe.pace.target_agent_steps == 10_000
    assert (optimiser.learning_rate, optimiser.decay, optimiser.epsilon) == (2.5e-4, 0.95, 0.01)
    assert optimiser.centred
    assert protocols.get(recipe.protocol).pooling == "grey"
    assert protocols.get(recipes.find("fast-dqn-repo").protocol).pooling == "none"


def test_accelerated_dqn_has_the_original_s_optimiser() -> None:
    """Appendix A.3: hyperparameters other than the learning rate as in the original publication."""
    original, recipe = recipes.find("dqn").optimiser, recipes.find("accelerated-dqn")
    assert (recipe.store.batch_size, recipe.optimiser.learning_rate) == (512, 7.5e-4)
    assert recipe.optimiser.epsilon * 512**2 == original.epsilon == 0.01
    same = {"learning_rate": 7.5e-4, "epsilon": recipe.optimiser.epsilon}
    assert recipe.optimiser == dataclasses.replace(original, **same)
    assert recipe.optimiser.centred and recipe.optimiser.decay == 0.95
    assert recipes.find("accelerated-dqn-async").optimiser == recipe.optimiser


def test_a_mean_with_epsilon_over_the_batch_squared_is_a_sum_with_epsilon() -> None:
    """So that `accelerated-dqn` on batches of 32, with the original's rate, is the original."""
    weights = []
    for reduction, epsilon in (("sum", 0.01), ("mean", 0.01 / 32**2)):
        start = torch.Generator().manual_seed(0)
        layer, inputs = torch.randn(4, 3, generator=start), torch.randn(9, 32, 3, generator=start)
        layer.requires_grad_()
        settings = dataclasses.replace(recipes.find("dqn").optimiser, epsilon=epsilon)
        optimiser = settings.build([layer])
        for batch in inputs:
            layer.grad = None
            errors = (batch @ layer.T - 1.0).square().sum(1)
            (errors.sum() if reduction == "sum" else errors.mean()).backward()
            optimiser.step(settings.learning_rate)
        weights.append(layer.detach())
    torch.testing.assert_close(*weights)


def test_cule_s_dqn_is_the_released_one() -> None:
    recipe = recipes.find("cule-dqn")
    loss, store, sampling = recipe.algorithm, recipe.store, recipe.sampling
    assert isinstance(loss, Dqn) and isinstance(store, ReplaySettings)
    assert (recipe.network, loss.normalise_pixels, loss.loss_form) == ("cule-dqn", True, "squared")
    # Eight minibatches of 32 per step of 32 environments.
    steps = sampling.num_envs * sampling.horizon_agent_steps
    assert (sampling.num_envs, store.training_intensity * steps / store.batch_size) == (32, 8.0)
    # Its frames are training frames: steps of all environments.
    assert recipe.pace.target_agent_steps == 32_000
    assert loss.exploration.epsilon(15_000_000) == 0.1 < loss.exploration.epsilon(14_000_000)
    optimiser = recipe.optimiser
    assert (optimiser.kind, optimiser.learning_rate, optimiser.amsgrad) == ("adam", 6.25e-5, True)
    # Half the square has half the gradient.
    assert (2 * optimiser.epsilon, 2 * optimiser.max_grad_norm) == (1.5e-4, 1.0)


def test_blocks_do_not_count_pixels() -> None:
    with pytest.raises(ValueError, match="normalise_pixels=False"):
        recipes.find("fast-dqn").replace(normalise_pixels=True)


def test_exchanges_and_paces_that_do_not_fit_are_refused() -> None:
    central = CentralSettings(learners=2)
    for name, words in (
        ("fast-dqn", "use pace=Alternate"),
        ("cule-vtrace", "was built for rollouts and replays"),
        ("cule-a2c", "normalise_pixels=False"),
        ("ga3c", "shares its weights with no other learner"),
    ):
        with pytest.raises(ValueError, match=words):
            dataclasses.replace(recipes.find(name), exchange=central)
    with pytest.raises(ValueError, match="separate_losses=False"):
        recipes.find("a3c-agents").replace(separate_losses=True)
    with pytest.raises(ValueError, match="need all of sampling=DynamicSettings"):
        dataclasses.replace(recipes.find("ga3c"), store=RolloutSettings())
    with pytest.raises(ValueError, match="needs kind='adam'"):
        recipes.find("accelerated-a3c").replace(rule="multi-step-adam")


def test_the_epsilon_rainbow_scales_the_gradient_of_its_convolutions() -> None:
    spaces = Spaces(frame_shape=(104, 80), frame_dtype="uint8", stack=4, num_actions=6)
    plan = training.make_plan("accelerated-rainbow", "pong")
    learner = training.build_learner(plan, spaces, seed=0)
    assert learner.views.live.head.gradient_scale == pytest.approx(2**-0.5)
    plain = training.make_plan("accelerated-rainbow", "pong", conv_gradient_scale=1.0)
    assert training.build_learner(plain, spaces, seed=0).views.live.head.gradient_scale == 1.0
    wrong = training.make_plan("accelerated-dqn", "pong", conv_gradient_scale=0.5)
    with pytest.raises(ValueError, match="dueling heads only"):
        training.build_learner(wrong, spaces, seed=0)
