"""Fast DQN (Daley and Amato 2021): what its threads do when, as Figure 2 sketches it.

`fast-dqn-timeline` traces the four kinds twice: with a real network on this machine, and with a
simulated coprocessor in its place. Blocks are short, so that single steps can be seen.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from scanline import training
from scanline.runners.concurrent import TRAINER, Concurrent
from scanline.runs.clock import ACTING, ENVIRONMENT, LEARNING, OTHER
from scanline.tables import Table

from .claims import Finding, claim
from .coprocessor import OnCoprocessor, TinyQ
from .experiment import Cell, Experiment, Result, Results, Scale
from .fast_dqn import (
    KINDS,
    PAPER,
    device_of,
    figures_of,
    plan_of,
    settings_of,
    timed_blocks,
)
from .figures import figure
from .trace import Trace, TracedClock, TracedSpan, overlap_seconds, since

NUM_ENVS: Mapping[Scale, int] = {"smoke": 2, "desk": 4, "paper": 8}
SIZES = {"block": 80, "rollout": 5, "start": 400, "replay": 10_000}
SECONDS_PER_ITEM = 2e-5
"""Of the simulated device; about what `fast-dqn-speed` finds for the paper's machine."""
BLOCKS, SHOWN_BLOCKS = 10, 2
PARTS = {ENVIRONMENT: "environment", ACTING: "inference", LEARNING: "training"}
COLOURS = {"environment": "tab:green", "inference": "tab:blue", "training": "tab:orange"}
SIMULATED = "simulated."


def cells(scale: Scale) -> list[Cell]:
    variants = [f"{kind}-{NUM_ENVS[scale]}" for kind in KINDS]
    return [
        Cell(name=name + v, settings={"blocks": BLOCKS, "recipe": settings_of(v, SIZES)})
        for name in ("", SIMULATED)
        for v in variants
    ]


def measure(cell: Cell, before: Results) -> Result:
    """Spans of the last blocks, and how much happened at once in all of them."""
    trace, changes, around = Trace(), dict[str, Any](), dict[str, Any]()
    if cell.name.startswith(SIMULATED):
        device, changes = device_of(SECONDS_PER_ITEM), {"network": TinyQ}
        around = {"around": lambda inner: OnCoprocessor(inner, device)}
    attachments = training.Attachments(mark_threads=trace.mark, **around)
    plan, clock = plan_of(cell, **changes), TracedClock(trace)
    timing = timed_blocks(cell, plan, attachments=attachments, time_split=clock)
    pace = plan.recipe.pace
    learner = TRAINER if isinstance(pace, Concurrent) and pace.concurrent_training else "main"
    spans = [named for span in trace.spans() if (named := _named(span, learner)) is not None]
    begins = _block_begins([span for span in trace.spans() if _is_main(span)])
    shares, shown = _shares(since(begins[-BLOCKS], spans)), since(begins[-SHOWN_BLOCKS], spans)
    return {**figures_of(timing), **shares, "spans": shown}


def _block_begins(main: Sequence[TracedSpan]) -> list[float]:
    """Moments at which the main thread begins to wait for a block, after its own work."""
    pairs = itertools.pairwise(main)
    return [now.begin_seconds for before, now in pairs if before.part == OTHER != now.part]


def _is_main(span: TracedSpan) -> bool:
    return not span.thread.startswith(("sampler", "trainer"))


def _named(span: TracedSpan, learner: str) -> TracedSpan | None:
    """In the words of the figure; the main thread only waits, for samplers or for the learner."""
    is_main = _is_main(span)
    if span.part not in PARTS or (is_main and span.part != LEARNING):
        return None
    return span._replace(thread=learner if is_main else span.thread, part=PARTS[span.part])


def _shares(spans: Sequence[TracedSpan]) -> dict[str, float]:
    """How long threads sample and train, and how much of it happens at once."""
    learning = [s for s in spans if s.part == "training"]
    sampling = [s for s in spans if s.part != "training"]
    return {
        "training_seconds": overlap_seconds(learning, learning),
        "sampling_seconds": overlap_seconds(sampling, sampling),
        "overlap_seconds": overlap_seconds(learning, sampling),
    }


def tables(scale: Scale, results: Results) -> list[Table]:
    rows = [
        [name, r["seconds"], r["sampling_seconds"], r["training_seconds"], r["overlap_seconds"]]
        for name, r in results.items()
    ]
    columns = ("variant", "seconds", "sampling", "training", "both at once")
    return [Table(title=f"Figure 2: seconds of {BLOCKS} blocks", columns=columns, rows=rows)]


def plot(scale: Scale, results: Results, path: Path) -> None:
    """One row a thread, one colour a part; white is waiting."""
    with figure(path, len(KINDS), 2, width=3.8) as axes:
        for each, (name, result) in zip(axes, results.items(), strict=True):
            _draw(each, name, [TracedSpan(*span) for span in result["spans"]])
        handles = [axes[0].plot([], [], color=c, lw=6, label=p)[0] for p, c in COLOURS.items()]
        axes[0].legend(handles=handles, fontsize=7)


def _draw(axes: Any, name: str, spans: Sequence[TracedSpan]) -> None:
    threads = sorted({s.thread for s in spans}, reverse=True)
    begin = min(s.begin_seconds for s in spans)
    for (row, thread), (part, colour) in itertools.product(enumerate(threads), COLOURS.items()):
        own = [s for s in spans if (s.thread, s.part) == (thread, part)]
        bars = [(1e3 * (s.begin_seconds - begin), 1e3 * s.seconds) for s in own]
        axes.broken_barh(bars, (row - 0.4, 0.8), color=colour, linewidth=0)
    axes.set_yticks(range(len(threads)), threads)
    title = name.replace(SIMULATED, "SIMULATED device, ")
    axes.set(title=title, xlabel="milliseconds")


@claim(
    "By overlapping sampling and training, the training cost is masked.",
    "Figure 2",
    scales=("smoke", "desk", "paper"),
)
def _masked(results: Results) -> Finding:
    """Whether the shorter of sampling and training is hidden behind the longer one."""
    found = {name: r for name, r in results.items() if "concurrent" in name or "both" in name}
    shares = {
        name: r["overlap_seconds"] / min(r["training_seconds"], r["sampling_seconds"])
        for name, r in found.items()
    }
    words = ", ".join(f"{name} {share:.0%}" for name, share in shares.items())
    return Finding(all(share > 0.9 for share in shares.values()), f"hidden: {words}")


EXPERIMENTS = (
    Experiment(
        name="fast-dqn-timeline",
        summary="What the threads of fast DQN do when: sampling, inference, training, waiting.",
        paper=f"{PAPER}, Figure 2",
        cells=cells,
        measure=measure,
        tables=tables,
        claims=(_masked,),
        plot=plot,
        notes=(
            "White is waiting; training is one bar per block. Rows that begin with `simulated` "
            "were measured with a SIMULATED device in the network's place.",
        ),
        line=lambda result: f"{result['overlap_seconds']:.2f} s of sampling and training at once",
    ),
)
