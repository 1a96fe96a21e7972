"""The rows say what the papers say, and refuse what cannot work."""

from __future__ import annotations

import dataclasses
import math

import pytest

from scanline import recipes, training
from scanline.algorithms import ActorCritic, Ppo, Vtrace
from scanline.parameters import CentralSettings
from scanline.records import Spaces
from scanline.stores import RolloutSettings, WindowSettings


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
    "knobs",
    [
        *((120, 1, 5, 5), (120, 5, 5, 1), (120, 20, 20, 1)),
        *((1200, 1, 5, 5), (1200, 5, 5, 1), (1200, 20, 20, 1), (4800, 20, 20, 1)),
    ],
)
def test_cule_s_configurations_have_names_and_use_every_step_once(
    knobs: tuple[int, int, int, int],
) -> None:
    recipe = recipes.find("cule-vtrace-" + "-".join(map(str, knobs)))
    sampling, store = recipe.sampling, recipe.store
    assert isinstance(store, WindowSettings)
    rollout, window = sampling.horizon_agent_steps, store.window_agent_steps
    assert (sampling.num_envs, store.num_blocks, window, rollout) == knobs
    assert window == rollout * store.num_blocks
    assert recipe.algorithm.normalise_pixels


def test_the_name_without_numbers_is_a_configuration_of_the_paper_for_a_cpu() -> None:
    recipe, published = recipes.find("cule-vtrace"), recipes.find("cule-vtrace-120-20-20-1")
    assert (recipe.network, recipe.algorithm.entropy_coef) == ("nips-orthogonal", 0.003)
    assert (published.network, published.algorithm.entropy_coef) == ("cule", 0.01)
    undone = recipe.replace(network="cule", entropy_coef=0.01)
    labels = {each: getattr(published, each) for each in ("name", "summary", "source")}
    assert dataclasses.replace(undone, **labels) == published


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


def test_ga3c_is_the_paper_s_and_its_repo_form_differs_where_the_code_does() -> None:
    paper, code = recipes.find("ga3c"), recipes.find("ga3c-repo")
    assert isinstance(paper.algorithm, ActorCritic)
    assert (paper.algorithm.log_form, paper.algorithm.reduction) == ("added", "sum")
    assert (paper.store.learn_terminal_reward, code.store.learn_terminal_reward) == (True, False)
    assert code.algorithm.log_form == "floor"


def test_exchanges_and_paces_that_do_not_fit_are_refused() -> None:
    central = CentralSettings(num_learners=2)
    for name, words in (
        ("fast-dqn", "use pace=Alternate"),
        ("cule-vtrace", "was built for rollouts and replays"),
        ("cule-a2c", "normalise_pixels=False"),
        ("ga3c", "shares its weights with no other learner"),
    ):
        with pytest.raises(ValueError, match=words):
            dataclasses.replace(recipes.find(name), exchange=central)
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
