"""Exit heads: what is trained, and how the model looks with them."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from transformers import LlamaForCausalLM
from transformers.models.llama.modeling_llama import LlamaRMSNorm


class Exit(nn.Module):
    """An adapter and a norm before the model's own head: norm(P [h; silu(U norm(h))]).

    It begins as the model's final norm alone (P = [1 0]), which is what `llmpart compile --exits` puts behind a layer when the model has no
    exit there. The first part of P is an affine map of the stream (a "tuned lens", Belrose et al. 2023); the second lets it bend.
    """

    def __init__(self, model: LlamaForCausalLM, wide: int):
        super().__init__()
        width, eps = model.config.hidden_size, model.config.rms_norm_eps
        self.before, self.norm = LlamaRMSNorm(width, eps), LlamaRMSNorm(width, eps)
        self.up, self.project = nn.Linear(width, wide), nn.Linear(width + wide, width)
        with torch.no_grad():
            self.norm.weight.copy_(model.model.norm.weight)
            self.project.weight.copy_(torch.cat((torch.eye(width), torch.zeros(width, wide)), dim=1))
            self.project.bias.zero_()

    def forward(self, hidden: Tensor) -> Tensor:
        bent = nn.functional.silu(self.up(self.before(hidden)))
        return self.norm(self.project(torch.cat((hidden, bent), dim=-1)))


def make_exits(model: LlamaForCausalLM, layers: list[int], wide: int) -> nn.ModuleDict:
    return nn.ModuleDict({str(layer): Exit(model, wide) for layer in layers})
