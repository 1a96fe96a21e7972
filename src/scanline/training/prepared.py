"""A run that is ready to begin: a plan to the runtime of its recipe.

Takes a plan and what stands around it; gives its `Runtime` with what a run must know of it: the
plan and protocol that the engine honours, what a checkpoint holds, the other learners, a policy.
Knows how parts are put together and nothing of how they work.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from .. import acting
from ..errors import refusals
from ..interfaces import Runtime, Saved
from ..parameters import Learners
from ..protocols import Protocol as AgentProtocol
from ..runs.learners import LearnerGroup
from ..runs.replay_segments import ReplayRows, Segments, stream_name
from .actors import refuse_remote, remote_samplers
from .attachments import Attachments, Mark
from .central import CentralRuntime
from .context import Context, Say, open_context, probe_context
from .models import policy_of
from .placement import Place
from .plan import Plan


class RowFiles(Protocol):
    """Where a run keeps the rows of a replay, beside its checkpoints."""

    @property
    def replay_segment_agent_steps(self) -> int: ...

    def segments(self, name: str) -> Segments: ...


@dataclass(frozen=True)
class PreparedRun:
    """A runtime, and what a run must know of it."""

    context: Context
    runtime: Runtime
    peers: LearnerGroup | None = None
    """The learners that divide batches with this one; None for a learner alone."""

    @property
    def plan(self) -> Plan:
        return self.context.plan

    @property
    def protocol(self) -> AgentProtocol:
        return self.context.protocol

    def policy(self, agent_steps: int) -> acting.EvaluationPolicy:
        """Plays with the newest weights, schedules at so many agent steps."""
        return policy_of(self.plan, self.runtime.weights, agent_steps)

    def saved(self, files: RowFiles) -> Mapping[str, Saved]:
        """What a checkpoint holds, in the order in which learners save and load."""
        parts = dict(self.runtime.saved())
        store: Any = parts.get("store")
        if store is not None and store.keeps_rows:
            parts["store"] = self._rows(store, files)
        if self.peers is None:
            return parts
        return self.peers.saved(parts, anew=self.context.samplers[0].abandon)

    def _rows(self, store: Any, files: RowFiles) -> ReplayRows:
        """A replay as a checkpoint holds it: its rows lie in files of their own."""
        context, samplers = self.context, self.context.samplers
        streams: Sequence[Segments] = [
            files.segments(stream_name(context.place.rank + number))
            for number in range(context.num_samplers)
        ]
        rows = files.replay_segment_agent_steps // (context.num_envs * context.num_learners)
        return ReplayRows(store, streams, lambda: all(s.games_go_on for s in samplers), rows)


@refusals()
def prepared(
    plan: Plan,
    mark: Mark,
    say: Say = print,
    group: Learners | None = None,
    attachments: Attachments | None = None,
) -> PreparedRun:
    """The runtime of a plan, built by its pace, or the parent of processes that each build one."""
    group, attachments = group or Learners(), attachments or Attachments()
    refuse_remote(plan)
    if plan.recipe.exchange.is_central:
        if attachments != Attachments(pause=attachments.pause):
            raise ValueError("To learners in processes of their own only a pause can be attached.")
        context = probe_context(plan, say, attachments)
        return PreparedRun(context, CentralRuntime(context))
    place, around = Place(group.rank, group.count), dict[str, Any](group=group, mark=mark)
    if plan.run.remote.remote_actors:
        around["samplers_of"] = remote_samplers
    context = open_context(plan, place=place, announce=say, attachments=attachments, **around)
    try:
        runtime = context.recipe.pace.build(context)
        if group.count == 1:
            return PreparedRun(context, runtime)
        peers = LearnerGroup(group, context.parameters, context.num_envs)
        return PreparedRun(context, runtime, peers)
    except BaseException:
        context.close()
        raise
