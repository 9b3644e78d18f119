"""Compares the regret of the router's model with that of a lookup of mean rewards, on tasks outside of its training, as Markdown.

Usage: evaluate.py MODEL.onnx

Regret of the last decision of a prompt (further decisions included), as a share of the regret of a uniform guess, by the
number of examples before it.
"""

from __future__ import annotations

import sys

import numpy as np
import onnxruntime
from tasks import ACTION0, ACTIONS, GROUP, REWARD0, Tasks

BATCH, BATCHES = 64, 40


def lookup(met: np.ndarray, action: np.ndarray, rank: np.ndarray, offered: np.ndarray) -> int:
    """The action of the greatest mean rank among examples of the same class, or else among all."""
    for same in (met[:-1] == met[-1], np.ones(len(met) - 1, bool)):
        known = [rank[same & (action == a)].mean() if offered[a] and (same & (action == a)).any() else -1 for a in range(len(offered))]
        if max(known) >= 0:
            return int(np.argmax(known))
    return 0


def choices(session: onnxruntime.InferenceSession, ids: np.ndarray) -> np.ndarray:
    """The model's logits of the actions after the last query [batch][actions]."""
    feed = {"input_ids": ids, "attention_mask": np.ones_like(ids), "position_ids": np.arange(ids.shape[1])[None].repeat(len(ids), 0)}
    for value in session.get_inputs():
        if value.name.startswith("past"):
            feed[value.name] = np.zeros((len(ids), value.shape[1], 0, value.shape[3]), np.float32)
    return session.run(["logits"], feed)[0][:, -1, ACTION0 : ACTION0 + len(ACTIONS)]


def regrets(session: onnxruntime.InferenceSession, groups: int) -> tuple[float, float]:
    rng, lost, guessed = np.random.default_rng(99), np.zeros(2), 0.0
    for _ in range(BATCHES):
        ids, met, _, value = Tasks(rng, BATCH).prompt(groups)
        body = ids[:, 1:].reshape(BATCH, groups, GROUP)
        action, rank = (body[:, :-1, -2] - ACTION0) % len(ACTIONS), (body[:, :-1, -1] - REWARD0) // 2
        offered = ~np.isinf(value[:, -1])
        gap = np.where(offered, value[:, -1].max(-1, keepdims=True) - value[:, -1], 0)
        by_lookup = [lookup(met[i], action[i], rank[i], offered[i]) for i in range(BATCH)]
        by_model = np.where(offered, choices(session, ids[:, :-2]), -np.inf).argmax(-1)
        rows = np.arange(BATCH)
        lost += [gap[rows, by_model].sum(), gap[rows, by_lookup].sum()]
        guessed += (gap.sum(-1) / offered.sum(-1)).sum()
    return lost[0] / guessed, lost[1] / guessed


def main() -> None:
    session = onnxruntime.InferenceSession(sys.argv[1])
    print("| examples | model | lookup |\n| ---: | ---: | ---: |")
    for groups in (5, 9, 13, 21, 33):
        by_model, by_lookup = regrets(session, groups)
        print(f"| {groups - 1} | {by_model:.3f} | {by_lookup:.3f} |")


if __name__ == "__main__":
    main()
