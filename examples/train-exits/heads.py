"""Exit heads: what is trained, and how the model looks with them."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from transformers import LlamaForCausalLM
from transformers.models.llama.modeling_llama import LlamaRMSNorm


class Exit(nn.Module):
    """An adapter and a norm before the model's own head: norm(P [h; silu(U norm(h))]).

    It begins as the model's final norm only (P = [1 0]), which `llmpart compile --exits` puts after a layer when the model has no
    exit there; `fit` is where training begins. The first part of P is an affine map of the stream (a "tuned lens", Belrose et al. 2023); the second lets it bend.
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
            nn.init.normal_(self.up.weight, std=1.5 / width**0.5)

    def features(self, hidden: Tensor) -> Tensor:
        return torch.cat((hidden, nn.functional.silu(self.up(self.before(hidden)))), dim=-1)

    def forward(self, hidden: Tensor) -> Tensor:
        return self.norm(self.project(self.features(hidden)))

    @torch.no_grad()
    def fit(self, hidden: Tensor, target: Tensor, ridge: float = 1e-3, batch: int = 2048) -> None:
        """Gives P its least squares: `target` is what the final norm makes of the full model's stream, before its gains. Closed form; what is trained
        from there has little left to learn. The few positions at which the stream is larger by orders of magnitude (attention sinks) are left out."""
        size = hidden.float().norm(dim=1)
        kept = (size < 10 * size.median()).nonzero()[:, 0]
        wide = self.project.in_features + 1
        gram, mixed = torch.zeros(wide, wide, dtype=torch.float64), torch.zeros(wide, target.shape[1], dtype=torch.float64)
        for rows in kept.split(batch):
            features = self.features(hidden[rows].float())
            features = torch.cat((features, torch.ones(len(rows), 1)), dim=1)
            gram += (features.T @ features).double()
            mixed += (features.T @ target[rows].float()).double()
        scale = (gram.diagonal() / len(kept)).sqrt()
        gram = gram / scale / scale[:, None] + ridge * len(kept) * torch.eye(wide, dtype=torch.float64)
        solved = (torch.linalg.solve(gram, mixed / scale[:, None]) / scale[:, None]).float()
        self.project.weight.copy_(solved[:-1].T)
        self.project.bias.copy_(solved[-1])


def make_exits(model: LlamaForCausalLM, layers: list[int], wide: int) -> nn.ModuleDict:
    return nn.ModuleDict({str(layer): Exit(model, wide) for layer in layers})
