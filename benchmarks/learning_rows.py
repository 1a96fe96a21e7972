"""The kept rows of learning, and README's table of them.

    scanline sweep QUEUE ... && scanline work QUEUE          or `scanline reproduce learning`, then
    python benchmarks/learning_rows.py QUEUE --out benchmarks/results/learning
    python benchmarks/learning_rows.py --out benchmarks/results/learning         the table alone
    ... --picture docs/learning.png                                   and all kept curves, by game

Takes the finished runs of a queue, or of the queue that a reproduction has in its folder; keeps a
file of rows per recipe. A new row takes the place of one with the same recipe, game, seed and hash
over the settings; all others stay. A row has recipe, game, seed, agent_steps, minutes, score (mean
of the last 100 training games), the means of the evaluation games (greedy, sampled), the score that
was published, after the paper's own steps, the verdict, the settings that differ from the recipe's,
their hash, why the run ended, and a curve of (agent steps, training seconds, score).
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from scanline.queue.result import RESULT, read_result
from scanline.recipes import RECIPES
from scanline.tables import Table
from scanline_lab.experiments.evidence import find_row, mean_of_evaluation, measure_run, verdict
from scanline_lab.experiments.figures import figure
from scanline_lab.experiments.learning import plot_curves
from scanline_lab.experiments.published_scores import BY_RECIPE

POINTS = 40
README = Path(__file__).parents[1] / "README.md"
BEGIN, END = "<!-- learning: benchmarks/learning_rows.py writes this -->\n", "<!-- /learning -->\n"
FIGURES = ("minutes", "score", "evaluation_greedy", "evaluation_sampled", "published")
MISSING = "A recipe of `scanline list recipes` without a line here is not run yet."
LIMITS = {"agent_steps", "seconds", "target_score", "num_threads", "torch_threads"}
"""Settings that are not the recipe's own: when a run ends, and on how many cores it runs."""
Kept = dict[str, Any]


def row_of(folder: Path) -> Kept:
    """The row of a finished run."""
    record, result = read_result(folder), measure_run(folder)
    assert record is not None, "measure_run has read it"
    apart = max(1, len(result["curve"]) // POINTS)
    row = find_row(record["recipe"], record["game"])
    return {
        **{name: record[name] for name in ("recipe", "game", "seed", "agent_steps")},
        "minutes": round(result["minutes"], 2),
        "score": result["score"],
        "evaluation_greedy": mean_of_evaluation(result, "greedy"),
        "evaluation_sampled": mean_of_evaluation(result, "sampled"),
        "published": BY_RECIPE.get(row.recipe, {}).get(row.game),
        "verdict": verdict(row, result),
        **{name: record[name] for name in ("settings", "settings_sha256", "stop")},
        "curve": result["curve"][::-1][::apart][::-1],
    }


def read(path: Path) -> list[Kept]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def read_all(folder: Path) -> list[Kept]:
    """All kept rows, in the order of `scanline list recipes`."""
    return [row for recipe in RECIPES for row in read(folder / f"{recipe}.jsonl")]


def merged(rows: Iterable[Kept]) -> list[Kept]:
    """Rows in order, of equal runs the last one."""
    names = ("recipe", "game", "seed", "settings_sha256")
    newest = {tuple(row[name] for name in names): row for row in rows}
    return sorted(
        newest.values(), key=lambda row: (row["game"] != "pong", row["game"], row["seed"])
    )


def keep(queue: Path, out: Path) -> None:
    """Adds the finished runs of a queue to the kept files."""
    files: dict[str, list[Kept]] = {}
    for result in sorted((queue / "runs").glob(f"*/{RESULT}")):
        row = row_of(result.parent)
        files.setdefault(row["recipe"], []).append(row)
        print(f"{row['recipe']} {row['game']} seed {row['seed']}: {row['verdict']}")
    out.mkdir(parents=True, exist_ok=True)
    for recipe, new in files.items():
        path = out / f"{recipe}.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in merged([*read(path), *new])))


def changes(row: Kept) -> str:
    """Settings that a row has changed, in words; empty for a run with the recipe's own."""
    given = row.get("settings", {}).items()
    return ", ".join(f"{name} {value}" for name, value in given if name not in LIMITS)


def table(rows: Sequence[Kept]) -> str:
    """Markdown: a line per recipe, game and settings, its seeds' medians; own settings first."""
    groups: dict[tuple[str, ...], list[Kept]] = {}
    for row in rows:
        groups.setdefault((row["recipe"], row["game"], row["settings_sha256"]), []).append(row)
    own = [_line(group) for group in groups.values() if not changes(group[0])]
    other = [[*_line(g), changes(g[0])] for g in groups.values() if changes(g[0])]
    scores = ("score", "greedy", "sampled", "paper")
    columns = ("recipe", "game", "seeds", "steps", "min", *scores, "verdict")
    tables = (
        Table(title="Runs with the recipes' own settings", columns=columns, rows=own),
        Table(title="Runs with other settings", columns=(*columns, "changed"), rows=other),
    )
    text = "".join(f"{each.markdown()}\n\n" for each in tables if each.rows)
    return f"{text}{MISSING}\n"


def _line(group: Sequence[Kept]) -> list[Any]:
    def median(name: str) -> float | None:
        values = [row[name] for row in group if row[name] is not None]
        return statistics.median(values) if values else None

    verdicts = Counter(row["verdict"] for row in group)
    several = len(group) > 1
    words = ", ".join(f"{word} ({num})" if several else word for word, num in verdicts.items())
    return [
        *(f"`{group[0]['recipe']}`", group[0]["game"], len(group)),
        f"{median('agent_steps') or 0:,.0f}",
        *(median(name) for name in FIGURES),
        words,
    ]


def written(text: str, rows: Sequence[Kept]) -> str:
    """A page with the table between its marks."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{table(rows)}\n{END}{after}"


def draw(rows: Sequence[Kept], picture: Path) -> None:
    """Curves of all rows, a column per game."""
    games = list(dict.fromkeys(row["game"] for row in rows))
    with figure(picture, len(games)) as axes:
        for each, game in zip(axes, games, strict=True):
            own = [(f"{row['recipe']}.{row['seed']}", row) for row in rows if row["game"] == game]
            plot_curves(each, own)
            each.set(title=game)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("queue", type=Path, nargs="?")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--readme", type=Path, default=README)
    parser.add_argument("--picture", type=Path)
    options = parser.parse_args()
    if options.queue is not None:
        inside = options.queue / "queue"
        keep(inside if inside.is_dir() else options.queue, options.out)
    rows = read_all(options.out)
    options.readme.write_text(written(options.readme.read_text(), rows))
    if options.picture is not None:
        draw(rows, options.picture)


if __name__ == "__main__":
    main()
