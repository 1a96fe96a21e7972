"""Training: settings to parts to runner; train, evaluate, load_policy."""

from .assembly import Attachments, Parts, assemble, build_learner, policy_of
from .plan import Plan, RunSettings, make_plan, read_plan
from .scoring import EVALUATION_SEED, LoadedPolicy, evaluate, film, load_policy, score
from .timing import Stretch, Timing, timed
from .train import Run, carry_out, open_session, train

__all__ = [
    "EVALUATION_SEED",
    "Attachments",
    "LoadedPolicy",
    "Parts",
    "Plan",
    "Run",
    "RunSettings",
    "Stretch",
    "Timing",
    "assemble",
    "build_learner",
    "carry_out",
    "evaluate",
    "film",
    "load_policy",
    "make_plan",
    "open_session",
    "policy_of",
    "read_plan",
    "score",
    "timed",
    "train",
]
