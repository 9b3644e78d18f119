"""Exports the model with its exit heads: the outputs exit_logits_N, which `llmpart compile --exits=N` takes.

Usage: attach.py --exits exits.pt --out DIR
"""

from __future__ import annotations

import argparse
import sys
import warnings
from pathlib import Path

import torch
from torch import Tensor, nn
from transformers import DynamicCache, LlamaForCausalLM

sys.path.append(str(Path(__file__).parents[1] / "smollm2"))
import export as smollm2  # noqa: E402
from heads import make_exits  # noqa: E402


class WithExits(smollm2.Wrapped):
    """Logits after layers, in ascending order, as further outputs."""

    def __init__(self, model: LlamaForCausalLM, exits: nn.ModuleDict):
        super().__init__(model)
        self.exits = exits

    def forward(self, input_ids: Tensor, attention_mask: Tensor, position_ids: Tensor, *past: Tensor) -> tuple[Tensor, ...]:
        cache = DynamicCache(list(zip(past[::2], past[1::2])))
        out = self.model(input_ids=input_ids, attention_mask=attention_mask, position_ids=position_ids,
                         past_key_values=cache, use_cache=True, output_hidden_states=True)
        early = (self.model.lm_head(exit(out.hidden_states[int(layer)])) for layer, exit in self.exits.items())
        return out.logits, *(t for layer in out.past_key_values.layers for t in (layer.keys, layer.values)), *early


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--exits", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    warnings.filterwarnings("ignore")
    args.out.mkdir(parents=True, exist_ok=True)
    reader = smollm2.GGUFReader(smollm2.find_gguf())
    smollm2.write_tokenizer(reader, args.out)
    model = smollm2.load_model(reader)
    saved = torch.load(args.exits, weights_only=True)
    exits = make_exits(model, saved["layers"], saved["wide"])
    exits.load_state_dict(saved["exits"])
    smollm2.export(WithExits(model, exits).eval().requires_grad_(False), args.out, "torchscript",
                   [f"exit_logits_{layer}" for layer in saved["layers"]])


if __name__ == "__main__":
    main()
