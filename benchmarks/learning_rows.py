"""The kept rows of learning: one small file per recipe from the results of `reproduce learning`.

    scanline reproduce learning --scale desk
    python benchmarks/learning_rows.py reproduced/learning-desk --out benchmarks/results/learning

A row has recipe, game, seed, agent_steps, minutes, score (mean of the last 100 training games), the
means of 30 evaluation games (greedy, sampled), the verdict, a hash over the settings and a curve.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from scanline_lab.experiments.evidence import Row, mean_of_evaluation, rows, verdict

POINTS = 40


def kept(row: Row, result: dict[str, Any]) -> dict[str, Any]:
    apart = max(1, len(result["curve"]) // POINTS)
    return {
        **{"recipe": row.recipe, "game": row.game, "seed": row.seed},
        "agent_steps": result["agent_steps"],
        "minutes": round(result["minutes"], 2),
        "score": result["score"],
        "evaluation_greedy": mean_of_evaluation(result, "greedy"),
        "evaluation_sampled": mean_of_evaluation(result, "sampled"),
        "verdict": verdict(row, result),
        "settings_sha256": result["settings_sha256"],
        "curve": result["curve"][::apart],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("reproduced", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    record = json.loads((options.reproduced / "results.json").read_text())
    files: dict[str, list[dict[str, Any]]] = {}
    for row in rows(record["scale"]):
        found = record["cells"].get(row.name.replace("/", "."))
        if found is not None:
            files.setdefault(row.recipe, []).append(kept(row, found["result"]))
    options.out.mkdir(parents=True, exist_ok=True)
    for recipe, lines in files.items():
        text = "".join(json.dumps(line) + "\n" for line in lines)
        (options.out / f"{recipe}.jsonl").write_text(text)
        print(f"{recipe}: {', '.join(line['verdict'] for line in lines)}")


if __name__ == "__main__":
    main()
