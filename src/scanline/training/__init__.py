"""Training: settings to parts to loop; train, evaluate, load_policy."""

from .attachments import Attachments
from .checks import check
from .models import build_learner, policy_of
from .plan import Plan, RunSettings, changed_plan, make_plan, read_plan
from .prepared import PreparedRun, prepared
from .scoring import EVALUATION_SEED, LoadedPolicy, evaluate, film, load_policy, score, watch
from .train import TrainedRun, carry_out, open_run, train

__all__ = [
    "EVALUATION_SEED",
    "Attachments",
    "LoadedPolicy",
    "Plan",
    "PreparedRun",
    "RunSettings",
    "TrainedRun",
    "build_learner",
    "carry_out",
    "changed_plan",
    "check",
    "evaluate",
    "film",
    "load_policy",
    "make_plan",
    "open_run",
    "policy_of",
    "prepared",
    "read_plan",
    "score",
    "train",
    "watch",
]
