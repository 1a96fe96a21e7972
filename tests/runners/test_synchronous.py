"""The loop calls its verbs in the printed order, for as many updates as the store owes."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from scanline.runners import synchronous
from scanline.runners.synchronous import SynchronousRuntime, learn, loop

FLOW = Path(__file__).parents[2] / "docs" / "flow.md"


class Script:
    """Parts and run in one that note every call; `owed` batches follow each rollout."""

    def __init__(self, rollouts: int, owed: list[int]) -> None:
        self.calls: list[str] = []
        self._rollouts, self._owed = rollouts, owed
        self.owes = False
        self.sampler = self.store = self.algorithm = self.parameters = self
        self.policy = "policy"

    def _note(self, call: str, value: Any = None) -> Any:
        self.calls.append(call)
        return value

    def goes_on(self) -> bool:
        self._rollouts -= 1
        return bool(self._note("goes_on", self._rollouts >= 0))

    def slot(self) -> str:
        return str(self._note("slot", "empty"))

    def collect(self, policy: str, into: str) -> str:
        return str(self._note(f"collect {policy} {into}", "another slot"))

    def read(self) -> str:
        return str(self._note("read", "views"))

    def prepare(self, views: str, slot: str) -> SimpleNamespace:
        return self._note(f"prepare {views} {slot}", SimpleNamespace(state="state"))  # type: ignore[no-any-return]

    def keep(self, state: str) -> None:
        self._note(f"keep {state}")

    def put(self, experience: SimpleNamespace) -> None:
        self._note(f"put {experience.state}")

    def collected(self, slot: str) -> None:
        self._note(f"collected {slot}")

    def batches(self) -> Iterator[SimpleNamespace]:
        self._note("batches")
        for _ in range(self._owed.pop(0)):
            yield SimpleNamespace(agent_steps=40)

    def loss(self, views: str, batch: SimpleNamespace) -> SimpleNamespace:
        result = SimpleNamespace(losses="losses", priorities="priorities", metrics="metrics")
        return self._note(f"loss {views}", result)  # type: ignore[no-any-return]

    def apply(self, views: str, losses: str, agent_steps: int) -> str:
        return str(self._note(f"apply {views} {losses} {agent_steps}", "norms"))

    def feedback(self, batch: SimpleNamespace, priorities: str) -> None:
        self._note(f"feedback {priorities}")

    def updated(self, metrics: str, norms: str) -> None:
        self._note(f"updated {metrics} {norms}")


COLLECT = ["goes_on", "slot", "collect policy empty", "read", "prepare views another slot"]
COMMIT = ["keep state", "put state", "collected another slot", "batches"]
UPDATE = ["read", "loss views", "apply views losses 40", "feedback priorities"]


@pytest.mark.parametrize("owed", [0, 1, 3])
def test_verbs_come_in_the_printed_order(owed: int) -> None:
    script: Any = Script(rollouts=1, owed=[owed])
    loop(script, script)
    updates = [*UPDATE, "updated metrics norms"] * owed
    assert script.calls == [*COLLECT, *COMMIT, *updates, "goes_on"]


def test_a_turn_that_was_left_is_learned_from_first() -> None:
    script: Any = Script(rollouts=0, owed=[2])
    script.owes = True
    context: Any = SimpleNamespace(parts=script, inexact=(), surround=lambda parts, run: parts)
    SynchronousRuntime(context).run(script)
    assert script.calls == ["batches", *([*UPDATE, "updated metrics norms"] * 2), "goes_on"]


def test_the_page_prints_the_loop_that_runs() -> None:
    page = FLOW.read_text()
    for function in (loop, learn):
        name = function.__name__
        found = re.search(rf"^    def {name}\(.*?(?=\n\n)", page, re.DOTALL | re.MULTILINE)
        assert found is not None, f"docs/flow.md does not print {name}"
        printed = body_of(textwrap.dedent(found.group()))
        assert printed == body_of(inspect.getsource(getattr(synchronous, name)))


def body_of(source: str) -> list[str]:
    """Statements of a function without comments and its docstring."""
    [function] = ast.parse(source).body
    assert isinstance(function, ast.FunctionDef)
    statements = [ast.dump(each) for each in function.body]
    return statements[1:] if ast.get_docstring(function) else statements
