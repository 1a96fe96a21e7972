"""PPO in one file, in the manner of CleanRL, on a scanline environment.

Everything of the algorithm is below, to be read and changed; only `make_envs` knows where the
frames come from. The line for EnvPool stands beside ours: nothing else differs.

    python examples/ppo_single_file.py --game pong --total-steps 2000000
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import tyro
from torch import Tensor, nn
from torch.distributions import Categorical

import scanline


@dataclass
class Args:
    game: str = "pong"
    """Atari game."""
    total_steps: int = 10_000_000
    """Agent steps of the whole run."""
    num_envs: int = 8
    """Environments that play side by side."""
    num_steps: int = 128
    """Steps of every environment per rollout."""
    num_minibatches: int = 4
    num_epochs: int = 4
    learning_rate: float = 2.5e-4
    """At the start; it falls to 0 over the run."""
    gamma: float = 0.99
    gae_lambda: float = 0.95
    clip_range: float = 0.1
    entropy_coef: float = 0.01
    value_coef: float = 0.5
    max_grad_norm: float = 0.5
    seed: int = 1


def make_envs(args: Args) -> Any:
    """Vector environment: uint8 observations [N, 4, 84, 84], rewards clipped to their sign."""
    # envpool.make("Pong-v5", env_type="gymnasium", num_envs=args.num_envs, seed=args.seed)
    return scanline.make(args.game, num_envs=args.num_envs, seed=args.seed)


def layer(module: Any, gain: float = 2**0.5) -> Any:
    nn.init.orthogonal_(module.weight, gain)
    nn.init.zeros_(module.bias)
    return module


class Agent(nn.Module):
    """The network of Mnih 2015 with a policy and a value."""

    def __init__(self, num_actions: int) -> None:
        super().__init__()
        self.trunk = nn.Sequential(
            layer(nn.Conv2d(4, 32, 8, stride=4)),
            nn.ReLU(),
            layer(nn.Conv2d(32, 64, 4, stride=2)),
            nn.ReLU(),
            layer(nn.Conv2d(64, 64, 3)),
            nn.ReLU(),
            nn.Flatten(),
            layer(nn.Linear(3136, 512)),
            nn.ReLU(),
        )
        self.policy, self.value = (
            layer(nn.Linear(512, num_actions), 0.01),
            layer(nn.Linear(512, 1), 1),
        )

    def forward(self, observations: Tensor) -> tuple[Categorical, Tensor]:
        features = self.trunk(observations.float() / 255)
        return Categorical(logits=self.policy(features)), self.value(features).squeeze(-1)


def advantages_of(
    rewards: Tensor, values: Tensor, ends: Tensor, last: Tensor, args: Args
) -> Tensor:
    """Generalised advantages [T, N]; `ends[t]` says that step t was an episode's last."""
    found, running = torch.zeros_like(rewards), torch.zeros_like(last)
    for t in reversed(range(len(rewards))):
        following = last if t == len(rewards) - 1 else values[t + 1]
        goes_on = 1 - ends[t]
        error = rewards[t] + args.gamma * following * goes_on - values[t]
        running = error + args.gamma * args.gae_lambda * goes_on * running
        found[t] = running
    return found


def main(args: Args) -> float | None:
    """Trains; gives the mean score of the last 100 games, None before one has finished."""
    torch.manual_seed(args.seed)
    envs = make_envs(args)
    agent = Agent(envs.single_action_space.n)
    optimiser = torch.optim.Adam(agent.parameters(), lr=args.learning_rate, eps=1e-5)
    shape = (args.num_steps, args.num_envs)
    observations = torch.zeros((*shape, *envs.single_observation_space.shape), dtype=torch.uint8)
    actions = torch.zeros(shape, dtype=torch.int64)
    log_probs, rewards, ends, values = (torch.zeros(shape) for _ in range(4))
    scores: list[float] = []
    seen, began = torch.from_numpy(envs.reset(seed=args.seed)[0]), time.time()
    num_updates = args.total_steps // (args.num_steps * args.num_envs)
    for update in range(num_updates):
        optimiser.param_groups[0]["lr"] = args.learning_rate * (1 - update / num_updates)
        for t in range(args.num_steps):
            observations[t] = seen
            with torch.no_grad():
                policy, values[t] = agent(seen)
            actions[t] = policy.sample()
            log_probs[t] = policy.log_prob(actions[t])
            step = envs.step(actions[t].numpy())
            seen, rewards[t] = torch.from_numpy(step[0]), torch.from_numpy(step[1])
            ends[t] = torch.from_numpy(step[2] | step[3])
            if "episode" in step[4]:
                scores += step[4]["episode"]["r"][step[4]["_episode"]].tolist()
        with torch.no_grad():
            last = agent(seen)[1]
        advantages = advantages_of(rewards, values, ends, last, args)
        returns = advantages + values
        flat = [
            x.flatten(0, 1) for x in (observations, actions, log_probs, advantages, returns, values)
        ]
        for _ in range(args.num_epochs):
            for picked in torch.randperm(actions.numel()).chunk(args.num_minibatches):
                loss = loss_of(agent, [x[picked] for x in flat], args)
                optimiser.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(agent.parameters(), args.max_grad_norm)
                optimiser.step()
        done = (update + 1) * actions.numel()
        shown = f"{np.mean(scores[-100:]):.1f}" if scores else "none yet"
        print(
            f"{done:,} steps  score {shown}  {done / (time.time() - began):,.0f} steps/s",
            flush=True,
        )
    envs.close()
    return float(np.mean(scores[-100:])) if scores else None


def loss_of(agent: Agent, batch: list[Tensor], args: Args) -> Tensor:
    observations, actions, old_log_probs, advantages, returns, old_values = batch
    policy, values = agent(observations)
    ratio = (policy.log_prob(actions) - old_log_probs).exp()
    advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
    clipped = ratio.clamp(1 - args.clip_range, 1 + args.clip_range)
    policy_loss = -torch.min(advantages * ratio, advantages * clipped).mean()
    near = old_values + (values - old_values).clamp(-args.clip_range, args.clip_range)
    value_loss = 0.5 * torch.max((values - returns) ** 2, (near - returns) ** 2).mean()
    return policy_loss + args.value_coef * value_loss - args.entropy_coef * policy.entropy().mean()


if __name__ == "__main__":
    main(tyro.cli(Args))
