"""The default model: a small Llama-like decoder with two early exits.

RMSNorm, rotary positions, grouped-query attention and a gated SiLU MLP. Every exit has a norm of its
own and shares the tied LM head, so that an exit costs one norm and one matrix product.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn


@dataclass(frozen=True)
class Config:
    vocab: int = 1024
    dim: int = 128
    layers: int = 9
    heads: int = 4
    kv_heads: int = 2
    head_dim: int = 32
    ffn: int = 320
    exits: tuple[int, ...] = (3, 6)
    context: int = 512
    theta: float = 10000.0
    eps: float = 1e-5
    qkv_bias: bool = False


class RMSNorm(nn.Module):
    def __init__(self, dim: int, eps: float):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps))


def rotate_half(x: Tensor) -> Tensor:
    half = x.shape[-1] // 2
    return torch.cat((-x[..., half:], x[..., :half]), dim=-1)


def causal_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """For training: in bf16 on a CPU, half as costly at this model's sizes as PyTorch's fused kernel."""
    scores = q @ k.transpose(2, 3) * q.shape[-1] ** -0.5
    blocked = torch.full(scores.shape[2:], float("-inf"), dtype=scores.dtype).triu(1)
    return torch.softmax(scores + blocked, dim=-1).to(v.dtype) @ v


class Attention(nn.Module):
    def __init__(self, c: Config):
        super().__init__()
        self.c = c
        self.q_proj = nn.Linear(c.dim, c.heads * c.head_dim, bias=c.qkv_bias)
        self.k_proj = nn.Linear(c.dim, c.kv_heads * c.head_dim, bias=c.qkv_bias)
        self.v_proj = nn.Linear(c.dim, c.kv_heads * c.head_dim, bias=c.qkv_bias)
        self.o_proj = nn.Linear(c.heads * c.head_dim, c.dim, bias=False)

    def _split(self, x: Tensor, heads: int) -> Tensor:
        batch, seq, _ = x.shape
        return x.view(batch, seq, heads, self.c.head_dim).transpose(1, 2)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor, mask: Tensor | None, past) -> tuple[Tensor, tuple]:
        """`mask` is added to the scores [batch][1][new][past + new]; None means causal without a past."""
        q = self._split(self.q_proj(x), self.c.heads)
        k = self._split(self.k_proj(x), self.c.kv_heads)
        v = self._split(self.v_proj(x), self.c.kv_heads)
        q, k = q * cos + rotate_half(q) * sin, k * cos + rotate_half(k) * sin
        if past is not None:
            k, v = torch.cat((past[0], k), dim=2), torch.cat((past[1], v), dim=2)
        present = (k, v)
        groups = self.c.heads // self.c.kv_heads
        batch, _, keys, _ = k.shape
        shape = (batch, self.c.kv_heads, groups, keys, self.c.head_dim)
        k = k[:, :, None].expand(shape).reshape(batch, self.c.heads, keys, self.c.head_dim)
        v = v[:, :, None].expand(shape).reshape(batch, self.c.heads, keys, self.c.head_dim)
        y = causal_attention(q, k, v) if mask is None else F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        y = y.transpose(1, 2).reshape(batch, -1, self.c.heads * self.c.head_dim)
        return self.o_proj(y), present


class MLP(nn.Module):
    def __init__(self, c: Config):
        super().__init__()
        self.gate_proj = nn.Linear(c.dim, c.ffn, bias=False)
        self.up_proj = nn.Linear(c.dim, c.ffn, bias=False)
        self.down_proj = nn.Linear(c.ffn, c.dim, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class Layer(nn.Module):
    def __init__(self, c: Config):
        super().__init__()
        self.input_layernorm = RMSNorm(c.dim, c.eps)
        self.self_attn = Attention(c)
        self.post_attention_layernorm = RMSNorm(c.dim, c.eps)
        self.mlp = MLP(c)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor, mask: Tensor | None, past) -> tuple[Tensor, tuple]:
        y, present = self.self_attn(self.input_layernorm(x), cos, sin, mask, past)
        x = x + y
        return x + self.mlp(self.post_attention_layernorm(x)), present


class Model(nn.Module):
    def __init__(self, c: Config):
        super().__init__()
        self.c = c
        self.embed_tokens = nn.Embedding(c.vocab, c.dim)
        self.layers = nn.ModuleList(Layer(c) for _ in range(c.layers))
        self.exit_norms = nn.ModuleDict({str(n): RMSNorm(c.dim, c.eps) for n in c.exits})
        self.norm = RMSNorm(c.dim, c.eps)
        inv_freq = c.theta ** -(torch.arange(0, c.head_dim, 2).float() / c.head_dim)
        self.register_buffer("inv_freq", inv_freq, persistent=False)
        for name, weight in self.named_parameters():
            if weight.dim() == 2:
                # The projections that write to the residual stream start smaller (GPT-2's rule).
                scale = (2 * c.layers) ** -0.5 if name.endswith(("o_proj.weight", "down_proj.weight")) else 1.0
                nn.init.normal_(weight, std=0.05 * scale)

    def _rotary(self, positions: Tensor) -> tuple[Tensor, Tensor]:
        angles = positions[:, None, :, None].float() * self.inv_freq
        angles = torch.cat((angles, angles), dim=-1)
        return angles.cos(), angles.sin()

    def head(self, norm: RMSNorm, x: Tensor) -> Tensor:
        return F.linear(norm(x), self.embed_tokens.weight)

    def hidden(self, ids: Tensor, positions: Tensor, mask: Tensor | None = None, past=None):
        """The states after the last layer and after each exit layer, and the new KV cache."""
        x = self.embed_tokens(ids)
        cos, sin = self._rotary(positions)
        exits, presents = {}, []
        for i, layer in enumerate(self.layers):
            x, present = layer(x, cos, sin, mask, None if past is None else past[i])
            presents.append(present)
            if i + 1 in self.c.exits:
                exits[i + 1] = x
        return x, exits, presents

    def forward(self, ids: Tensor) -> list[Tensor]:
        """Training form: logits of the full model, then of each exit, lowest first."""
        positions = torch.arange(ids.shape[1], device=ids.device)[None]
        x, exits, _ = self.hidden(ids, positions)
        return [self.head(self.norm, x)] + [self.head(self.exit_norms[str(n)], h) for n, h in exits.items()]


class CachedModel(nn.Module):
    """The form that is exported: explicit mask, positions and KV cache, as Hugging Face exports have."""

    def __init__(self, model: Model):
        super().__init__()
        self.model = model

    def forward(self, input_ids: Tensor, attention_mask: Tensor, position_ids: Tensor, *past: Tensor):
        m = self.model
        batch, seq = input_ids.shape
        total = past[0].shape[2] + seq
        query = torch.arange(total - seq, total)[:, None]
        visible = (torch.arange(total)[None, :] <= query)[None, None] & (attention_mask[:, None, None, :] != 0)
        mask = torch.where(visible, 0.0, torch.finfo(torch.float32).min)
        pairs = [(past[2 * i], past[2 * i + 1]) for i in range(m.c.layers)]
        x, exits, presents = m.hidden(input_ids, position_ids, mask, pairs)
        flat = [t for pair in presents for t in pair]
        return m.head(m.norm, x), *flat, *(m.head(m.exit_norms[str(n)], h) for n, h in exits.items())
