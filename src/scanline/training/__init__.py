"""Training: settings to parts to runner; train, evaluate, load_policy."""

from .assembly import Parts, assemble
from .plan import Plan, RunSettings, make_plan, read_plan, synchronous
from .scoring import EVALUATION_SEED, LoadedPolicy, evaluate, film, load_policy, score
from .train import Run, carry_out, open_session, prepared, train

__all__ = [
    "EVALUATION_SEED",
    "LoadedPolicy",
    "Parts",
    "Plan",
    "Run",
    "RunSettings",
    "assemble",
    "carry_out",
    "evaluate",
    "film",
    "load_policy",
    "make_plan",
    "open_session",
    "prepared",
    "read_plan",
    "score",
    "synchronous",
    "train",
]
