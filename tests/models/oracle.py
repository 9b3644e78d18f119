"""Records a model's results in ONNX Runtime: greedy tokens, first logits, and ONNX test data.

Optimisations of the graph are off, so that the answers are those of the exporter's own graph.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import numpy_helper

STEPS = 24
LENGTHS = (1, 5, 17)
TEXTS = ("Once", "One day, Tom found", "Lily was a kind girl. She loved to play in the garden with her friend Ben and a red ball.")


class Oracle:
    """A causal language model in ONNX, with or without KV cache inputs; batch 1."""

    def __init__(self, path: Path):
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        self.session = onnxruntime.InferenceSession(str(path), options)
        self.inputs = {i.name: i for i in self.session.get_inputs()}
        self.outputs = [o.name for o in self.session.get_outputs()]
        self.past = [name for name in self.inputs if name.startswith("past_key_values.")]

    def run(self, ids: np.ndarray, cache: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """`ids` is [batch][new]; `cache` maps past names to [batch][head][past][dim]."""
        batch, new = ids.shape
        past = next(iter(cache.values())).shape[2] if cache else 0
        feeds = {"input_ids": ids, "attention_mask": np.ones((batch, past + new), np.int64),
                 "position_ids": np.tile(np.arange(past, past + new), (batch, 1))} | cache
        feeds = {name: value for name, value in feeds.items() if name in self.inputs}
        return dict(zip(self.outputs, self.session.run(None, feeds)))

    def empty_cache(self) -> dict[str, np.ndarray]:
        return {name: np.zeros((1, self.inputs[name].shape[1], 0, self.inputs[name].shape[3]), np.float32)
                for name in self.past}

    def greedy(self, prompt: list[int], steps: int, stop: int | None = None) -> tuple[list[int], np.ndarray, float]:
        """The tokens, the logits after the prompt, and the least distance from the best to the second."""
        cache, ids, tokens, first, margin = self.empty_cache(), list(prompt), [], None, np.inf
        for _ in range(steps):
            out = self.run(np.array([ids], np.int64), cache)
            logits = out["logits"][0, -1]
            first = logits if first is None else first
            second, best = np.sort(logits)[-2:]
            margin = min(margin, float(best - second))
            tokens.append(int(logits.argmax()))
            if tokens[-1] == stop:
                break
            if self.past:
                cache = {name: out[name.replace("past_key_values", "present")] for name in self.past}
                ids = tokens[-1:]
            else:
                ids.append(tokens[-1])
        return tokens, first, margin


def prompts_for(model: Path, vocab: int) -> list[list[int]]:
    """Text where a tokenizer lies beside the model, else seeded ids."""
    if (model.parent / "tokenizer.json").exists():
        from tokenizers import Tokenizer

        tokenizer = Tokenizer.from_file(str(model.parent / "tokenizer.json"))
        return [tokenizer.encode(text).ids[:length] for text, length in zip(TEXTS, LENGTHS)]
    rng = np.random.default_rng(7)
    return [rng.integers(0, vocab, length).tolist() for length in LENGTHS]


def write_tokens(model: Path, folder: Path) -> None:
    oracle = Oracle(model)
    vocab = oracle.session.get_outputs()[0].shape[-1]
    prompts = prompts_for(model, vocab)
    answers = [oracle.greedy(prompt, STEPS) for prompt in prompts]
    lists = {"prompts": prompts, "tokens": [tokens for tokens, _, _ in answers],
             "logits_first": [float(f"{x:.9g}") for x in answers[0][1]]}
    folder.mkdir(parents=True, exist_ok=True)
    lines = [f" {json.dumps(key)}: {json.dumps(value)}" for key, value in lists.items()]
    (folder / "tokens.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")
    margins = ", ".join(f"{margin:.3g}" for _, _, margin in answers)
    print(f"{folder}: least margins {margins}; distinct tokens {len(set(sum(lists['tokens'], [])))}")


def write_test_data(model: Path, folder: Path, values: list[np.ndarray]) -> None:
    """One ONNX test data set: the given inputs and what the session answers."""
    session = Oracle(model).session
    names = [i.name for i in session.get_inputs()]
    outputs = session.run(None, dict(zip(names, values)))
    folder.mkdir(parents=True, exist_ok=True)
    for kind, names, arrays in (("input", names, values), ("output", [o.name for o in session.get_outputs()], outputs)):
        for i, (name, array) in enumerate(zip(names, arrays)):
            onnx.save_tensor(numpy_helper.from_array(np.ascontiguousarray(array), name), folder / f"{kind}_{i}.pb")
