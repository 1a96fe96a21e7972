"""Training: settings to parts to runner; train, evaluate, load_policy."""

from .assembly import Parts, assemble
from .attachments import Attachments
from .free import FreeParts
from .models import build_learner
from .plan import Plan, RunSettings, make_plan, read_plan, synchronous
from .policies import policy_of
from .scoring import EVALUATION_SEED, LoadedPolicy, evaluate, film, load_policy, score
from .train import Run, carry_out, open_run, prepared, train

__all__ = [
    "EVALUATION_SEED",
    "Attachments",
    "FreeParts",
    "LoadedPolicy",
    "Parts",
    "Plan",
    "Run",
    "RunSettings",
    "assemble",
    "build_learner",
    "carry_out",
    "evaluate",
    "film",
    "load_policy",
    "make_plan",
    "open_run",
    "policy_of",
    "prepared",
    "read_plan",
    "score",
    "synchronous",
    "train",
]
