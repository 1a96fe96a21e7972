"""A model of scale: how fast one learner with many remote actors goes, and what limits it.

Takes rates that were measured on one machine and the network between machines; gives agent steps
per second for any number of actors, and the number of actors that one learner can take.
Knows no Ray, no engine and no network: it is arithmetic.

Every resource passes a stream of agent steps, and the slowest one sets the rate:

- actors: N actors, each at its own rate, less what it waits for new weights and for the way of
  calls and answers, as far as the calls that were made ahead do not hide it;
- learner: the time per batch, with unpacking;
- up: rollouts to the learner, single frames as differences;
- down: weights from the learner. A node fetches a version once for all of its actors, and only when
  one of them begins a rollout: at most a version per update, and at most one per rollout.
"""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True, kw_only=True)
class ScaleRates:
    """What was measured, and what is between the machines."""

    actor_steps_per_second: float
    """Agent steps per second of one actor, as the learner receives them over a fast network: with
    every cost of a call."""
    rollout_steps: int
    """Agent steps of one actor's rollout: steps times its environments."""
    bytes_per_step: float
    """Bytes of a rollout on the wire, per agent step."""
    weight_bytes: float
    """Bytes of one version of the weights."""
    batch_steps: int
    """Agent steps of an update."""
    learner_batch_seconds: float
    """Seconds of an update, with what unpacking its rollouts takes."""
    bandwidth_bytes_per_second: float
    """Of the learner's network card, in each direction."""
    latency_seconds: float = 0.0
    """What a slower way adds to a call and its answer, together."""
    actors_per_node: int = 1
    """Actors that share a node's copy of the weights."""
    rollouts_ahead: int = 2
    """Calls that an actor has at a time."""
    publish_every_updates: int = 1
    """Updates between two versions."""


@dataclass(frozen=True)
class ScalePrediction:
    """Agent steps per second with so many actors, and what limits them."""

    num_actors: int
    steps_per_second: float
    limit: str
    """actors, learner, up or down."""


def limits(rates: ScaleRates, num_actors: int) -> dict[str, float]:
    """Agent steps per second that each resource could pass."""
    nodes = -(-num_actors // rates.actors_per_node)
    versions_per_step = 1 / (rates.batch_steps * rates.publish_every_updates)
    copies_per_step = min(nodes * versions_per_step, 1 / rates.rollout_steps)
    return {
        "down": rates.bandwidth_bytes_per_second / (rates.weight_bytes * copies_per_step),
        "up": rates.bandwidth_bytes_per_second / rates.bytes_per_step,
        "learner": rates.batch_steps / rates.learner_batch_seconds,
        "actors": num_actors * _actor_rate(rates, num_actors),
    }


def _actor_rate(rates: ScaleRates, num_actors: int) -> float:
    """Agent steps per second of one of so many actors: it plays until there are new weights."""
    play_seconds = rates.rollout_steps / rates.actor_steps_per_second
    hidden_seconds = (rates.rollouts_ahead - 1) * play_seconds
    version_steps = rates.batch_steps * rates.publish_every_updates / num_actors
    steps = max(rates.rollout_steps, version_steps)
    weights_seconds = rates.weight_bytes / rates.bandwidth_bytes_per_second
    waits_seconds = max(0.0, weights_seconds - hidden_seconds)
    waits_seconds += max(0.0, rates.latency_seconds - hidden_seconds) * steps / rates.rollout_steps
    return steps / (steps / rates.actor_steps_per_second + waits_seconds)


def predict(rates: ScaleRates, num_actors: int) -> ScalePrediction:
    """The rate with so many actors."""
    found = limits(rates, num_actors)
    limit = min(found, key=lambda name: found[name])
    return ScalePrediction(num_actors, found[limit], limit)


def most_actors(rates: ScaleRates) -> ScalePrediction:
    """The most actors that still add to the rate: one more would only wait."""
    num_actors = 1
    while predict(rates, num_actors).limit == "actors":
        num_actors += 1
    return predict(rates, num_actors)


def publishing(rates: ScaleRates, every_updates: int) -> ScaleRates:
    """The same with fewer versions of the weights."""
    return replace(rates, publish_every_updates=every_updates)
