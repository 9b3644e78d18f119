"""Writes tokens.json: ONNX Runtime's greedy answers to a few chat prompts, up to the end token.

Usage: oracle.py --model DIR [--out tokens.json] [--steps N]     (DIR as export.py wrote it)
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from transformers import PreTrainedTokenizerFast

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1] / "tests" / "models"))
from oracle import Oracle  # noqa: E402

QUESTIONS = ("What is the capital of France?", "What is gravity?", "Give me three tips for sleeping well.",
             "Write a short poem about the sea.")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=HERE / "tokens.json")
    parser.add_argument("--steps", type=int, default=48)
    args = parser.parse_args()
    settings = json.loads((args.model / "tokenizer_config.json").read_text())
    tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(args.model / "tokenizer.json"), eos_token=settings["eos_token"])
    tokenizer.chat_template = settings["chat_template"]
    oracle = Oracle(args.model / "model.onnx")
    answers = []
    for question in QUESTIONS:
        text = tokenizer.apply_chat_template([{"role": "user", "content": question}], tokenize=False, add_generation_prompt=True)
        ids = tokenizer.encode(text, add_special_tokens=False)
        tokens, _, margin = oracle.greedy(ids, args.steps, stop=tokenizer.eos_token_id)
        print(f"{question} (least margin {margin:.3g})\n{tokenizer.decode(tokens)}\n")
        answers.append({"question": question, "prompt": text, "prompt_ids": ids, "tokens": tokens})
    args.out.write_text("[\n" + ",\n".join(json.dumps(answer) for answer in answers) + "\n]\n")


if __name__ == "__main__":
    main()
