"""Writes conversations that the model holds with itself, for training exits and for judging them.

Usage: generate.py --out DIR [--train N] [--held-out N] [--seed S]

The model is given the beginning of a user's turn and makes up the rest ("Magpie", Xu et al. 2024), then answers: by sampling for
DIR/train.jsonl, greedily, as `llmpart run` does, for DIR/heldout.jsonl. A line is {"tokens": [...], "prompt": N}: ids, and how many of them
come before the answer.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

import torch
from torch import Tensor
from transformers import LlamaForCausalLM, PreTrainedTokenizerFast

sys.path.append(str(Path(__file__).parents[1] / "smollm2"))
import export as smollm2  # noqa: E402

SYSTEM = "You are a helpful AI assistant named SmolLM, trained by Hugging Face"  # of the model's chat template
BATCH, QUESTION, ANSWER = 96, 40, 120


def go_on(model: LlamaForCausalLM, rows: list[list[int]], new: int, end: int, **how) -> list[list[int]]:
    """The tokens that the model adds to each row, up to and including the end token."""
    longest = max(map(len, rows))
    ids = torch.tensor([[end] * (longest - len(row)) + row for row in rows])
    mask = torch.tensor([[0] * (longest - len(row)) + [1] * len(row) for row in rows])
    made: Tensor = model.generate(input_ids=ids, attention_mask=mask, max_new_tokens=new, eos_token_id=end, pad_token_id=end, **how)
    return [row[: row.index(end) + 1] if end in row else row for row in made[:, longest:].tolist()]


def conversations(model: LlamaForCausalLM, tokenizer: PreTrainedTokenizerFast, count: int, greedy: bool) -> list[dict]:
    end = tokenizer.convert_tokens_to_ids("<|im_end|>")
    begin = tokenizer.encode(f"<|im_start|>system\n{SYSTEM}<|im_end|>\n<|im_start|>user\n", add_special_tokens=False)
    middle = tokenizer.encode("\n<|im_start|>assistant\n", add_special_tokens=False)
    found = []
    while len(found) < count:
        questions = go_on(model, [begin] * min(BATCH, count - len(found)), QUESTION, end, do_sample=True, temperature=1.0, top_k=50)
        prompts = [begin + question + [end] * (question[-1] != end) + middle for question in questions]
        how = {"do_sample": False} if greedy else {"do_sample": True, "temperature": 0.7, "top_k": 50}
        answers = go_on(model, prompts, ANSWER, end, **how)
        found += [{"tokens": prompt + answer, "prompt": len(prompt)} for prompt, answer in zip(prompts, answers)]
        print(f"{len(found)} of {count} conversations", flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--train", type=int, default=288)
    parser.add_argument("--held-out", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    args.out.mkdir(parents=True, exist_ok=True)
    reader = smollm2.GGUFReader(smollm2.find_gguf())
    smollm2.write_tokenizer(reader, args.out)
    tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(args.out / "tokenizer.json"))
    model = smollm2.load_model(reader).to(torch.bfloat16)
    torch.manual_seed(args.seed)
    begin = time.monotonic()
    with torch.inference_mode():
        for name, count, greedy in (("heldout", args.held_out, True), ("train", args.train, False)):
            rows = conversations(model, tokenizer, count, greedy)
            (args.out / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
            answered = sum(len(row["tokens"]) - row["prompt"] for row in rows)
            print(f"{name}: {len(rows)} conversations, {answered} tokens of answers, {time.monotonic() - begin:.0f} s", flush=True)


if __name__ == "__main__":
    main()
