"""Counters of a free-running run at one moment, and rates between two of them, by their log names.

Takes a dynamic sampler and a segment queue. Knows no thread.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from ..processes import granted_cores
from .clock import ACTING, ENVIRONMENT, LEARNING
from .controller import Counts


@dataclass(frozen=True)
class ThreadCounters:
    """Counters at one moment, for rates between two of them."""

    clock_seconds: float = 0.0
    agent_steps: int = 0
    predictions: int = 0
    inferences: int = 0
    agent_wait_seconds: float = 0.0
    predictor_wait_seconds: float = 0.0
    trainer_wait_seconds: float = 0.0
    full_wait_seconds: float = 0.0
    requests: int = 0
    segments: int = 0

    @classmethod
    def of(cls, sampler: Any, store: Any) -> ThreadCounters:
        sizes = dict(sampler.batch_sizes)
        return cls(
            time.monotonic(),
            sampler.agent_steps,
            sum(size * count for size, count in sizes.items()),
            sum(sizes.values()),
            sampler.wait_seconds,
            sampler.requests.take_seconds,
            store.full.take_seconds,
            store.full.put_seconds,
            len(sampler.requests),
            len(store.full),
        )

    def split_seconds(self, before: ThreadCounters, counts: Counts) -> dict[str, float]:
        """What busy threads did since then; what they left of the cores went to environments."""
        seconds = self.clock_seconds - before.clock_seconds
        waited = self.predictor_wait_seconds - before.predictor_wait_seconds
        starved = self.trainer_wait_seconds - before.trainer_wait_seconds
        acting = max(0.0, counts.predictors * seconds - waited)
        learning = max(0.0, counts.trainers * seconds - starved)
        left = max(0.0, granted_cores() * seconds - acting - learning)
        return {ACTING: acting, LEARNING: learning, ENVIRONMENT: left}

    def metrics(self, before: ThreadCounters, counts: Counts) -> dict[str, float]:
        """Batches since then, and what waits now, under the names of the log."""
        inferences = self.inferences - before.inferences
        return {
            "perf/prediction_batch": (self.predictions - before.predictions) / max(inferences, 1),
            "perf/prediction_queue": float(self.requests),
            "perf/training_queue": float(self.segments),
            "charts/agents": float(counts.agents),
            "charts/predictors": float(counts.predictors),
            "charts/trainers": float(counts.trainers),
        }

    def rates(self, before: ThreadCounters, counts: Counts) -> dict[str, float]:
        """What depends on the clock: rates and waits since then, under the names of the log."""
        seconds = max(self.clock_seconds - before.clock_seconds, 1e-9)
        predictions = self.predictions - before.predictions
        agent_wait = self.agent_wait_seconds - before.agent_wait_seconds
        predictor_wait = self.predictor_wait_seconds - before.predictor_wait_seconds
        trainer_wait = self.trainer_wait_seconds - before.trainer_wait_seconds
        return {
            "perf/predictions_per_second": predictions / seconds,
            "perf/agent_wait_seconds": agent_wait / max(predictions, 1),
            "perf/predictor_idle_share": predictor_wait / seconds / counts.predictors,
            "perf/trainer_idle_share": trainer_wait / seconds / counts.trainers,
            "perf/full_queue_share": (self.full_wait_seconds - before.full_wait_seconds) / seconds,
        }
