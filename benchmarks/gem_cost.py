"""What an update of GEM costs on levels of copying, and what its cheaper forms do.

Milliseconds of the processor for an update of an LSTM of 64 units at some levels, all strategies in
turn in one process, the best of several rounds; and how often an update hurts an earlier level.

    python benchmarks/gem_cost.py [--levels 4,8,12] [--rounds 5]
"""

import argparse
import time

import torch

from attractor.continual import AGEM, ER, GEM, Strategy
from attractor.continual.lifelong import Curriculum, Rules, levels
from attractor.models import SequenceTagger

STRATEGIES = {
    "nothing": lambda: None,
    "GEM": lambda: GEM(120, memory="ring"),
    "GEM, screened": lambda: GEM(120, memory="ring", screened=True),
    "GEM, every 5": lambda: GEM(120, memory="ring", every=5),
    "GEM, every 20": lambda: GEM(120, memory="ring", every=20),
    "A-GEM": lambda: AGEM(10, reference_batch=120),
    "ER": lambda: ER("ring", 120),
}


def learner(strategy: Strategy | None, before: int) -> Curriculum:
    """A learner that passes each level after so many updates, whatever it has learnt."""
    stream = levels("copy", first=2, step=1, count=12)
    g = torch.Generator().manual_seed(0)
    model = SequenceTagger("lstm", stream[0].input_size, 64, stream[0].output_size, generator=g)
    rules = Rules(steps=before, window=1, threshold=0.0, held_out=2)
    rate = {"name": "adam", "lr": 0.005}
    return Curriculum(model, stream, strategy, rules=rules, optimiser=rate)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--levels", default="4,8,12")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--updates", type=int, default=20, help="of a round")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    places = [int(one) - 1 for one in asked.levels.split(",")]
    before = max(150, asked.rounds * asked.updates + 10)
    learners = {name: learner(make(), before) for name, make in STRATEGIES.items()}
    print("| level | " + " | ".join(STRATEGIES) + " | updates that hurt |")
    print("|---|" + "---:|" * (len(STRATEGIES) + 1))
    for place in places:
        for one in learners.values():
            while one.level < place or one.update < 5:
                one.advance()
        best = dict.fromkeys(learners, float("inf"))
        hurt, seen = 0, 0
        for _ in range(asked.rounds):
            for name, one in learners.items():
                began = time.process_time()
                for _ in range(asked.updates):
                    one.advance()
                    if name == "GEM":
                        hurt, seen = hurt + (one.strategy.conflict > 0), seen + 1
                best[name] = min(best[name], (time.process_time() - began) / asked.updates)
        row = " | ".join(f"{1e3 * best[name]:.1f}" for name in learners)
        print(f"| {place + 1} | {row} | {hurt / seen:.0%} |", flush=True)


if __name__ == "__main__":
    main()
