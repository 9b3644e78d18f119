"""baselines.py [--layers 32 --hidden 4096 --ffn 11008 --heads 32 --vocab 32000 --prompt 2048 --steps 32]: PyTorch on the same GPU:
a Llama of that shape in f16 with a static KV cache and scaled_dot_product_attention, eager and by torch.compile (whose decode steps are
CUDA graphs), and the rate of bf16 matrix products. Prints lines NAME|VALUE|UNIT. --device=cpu is for trying it."""
import argparse
import time

import torch
import torch.nn.functional as F


class Layer(torch.nn.Module):
    def __init__(self, a):
        super().__init__()
        self.heads, self.width = a.heads, a.hidden // a.heads
        self.qkv = torch.nn.Linear(a.hidden, 3 * a.hidden, bias=False)
        self.out = torch.nn.Linear(a.hidden, a.hidden, bias=False)
        self.gate_up = torch.nn.Linear(a.hidden, 2 * a.ffn, bias=False)
        self.down = torch.nn.Linear(a.ffn, a.hidden, bias=False)
        self.norm = torch.nn.ParameterList([torch.nn.Parameter(torch.ones(a.hidden)) for _ in range(2)])

    def forward(self, x, keys, values, at, mask, cos, sin):
        b, s, _ = x.shape
        y = F.rms_norm(x, (x.shape[-1],), self.norm[0])
        q, k, v = self.qkv(y).view(b, s, 3, self.heads, self.width).permute(2, 0, 3, 1, 4)
        q, k = turn(q, cos, sin), turn(k, cos, sin)
        keys.index_copy_(2, at, k)
        values.index_copy_(2, at, v)
        y = F.scaled_dot_product_attention(q, keys, values, attn_mask=mask)
        x = x + self.out(y.transpose(1, 2).reshape(b, s, -1))
        gate, up = self.gate_up(F.rms_norm(x, (x.shape[-1],), self.norm[1])).chunk(2, -1)
        return x + self.down(F.silu(gate) * up)


def turn(x, cos, sin):
    a, b = x.chunk(2, -1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)


class Model(torch.nn.Module):
    def __init__(self, a):
        super().__init__()
        self.embed = torch.nn.Embedding(a.vocab, a.hidden)
        self.layers = torch.nn.ModuleList([Layer(a) for _ in range(a.layers)])
        self.head = torch.nn.Linear(a.hidden, a.vocab, bias=False)
        half = a.hidden // a.heads // 2
        self.register_buffer("frequency", 10000.0 ** (-torch.arange(half) / half))

    def forward(self, ids, at, caches):
        x = self.embed(ids)
        angle = at[:, None] * self.frequency.float()
        cos, sin = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
        mask = torch.arange(caches[0][0].shape[2], device=at.device)[None] <= at[:, None]
        for layer, (keys, values) in zip(self.layers, caches):
            x = layer(x, keys, values, at, mask, cos, sin)
        return self.head(x[:, -1]).argmax(-1, keepdim=True)


def wait(device):
    if device != "cpu":
        torch.cuda.synchronize()


def seconds(device, count, work):
    for _ in range(3):
        work()
    wait(device)
    begin = time.perf_counter()
    for _ in range(count):
        work()
    wait(device)
    return (time.perf_counter() - begin) / count


def matrix_rate(device, size):
    a, b = (torch.randn(size, size, device=device, dtype=torch.bfloat16) for _ in range(2))
    return 2 * size**3 / seconds(device, 10, lambda: a @ b) / 1e12


def measure(a, model, kind, batch):
    caches = [[torch.zeros(batch, a.heads, a.prompt + a.steps, a.hidden // a.heads, device=a.device, dtype=a.dtype)
               for _ in range(2)] for _ in range(a.layers)]
    token = torch.zeros(batch, 1, dtype=torch.long, device=a.device)
    at = torch.tensor([a.depth], device=a.device)
    step = seconds(a.device, a.steps, lambda: model(token, at, caches))
    print(f"{kind} decode x {batch}|{batch / step:.2f}|tokens/s", flush=True)
    if batch == 1:
        prompt, places = torch.zeros(1, a.prompt, dtype=torch.long, device=a.device), torch.arange(a.prompt, device=a.device)
        print(f"{kind} prompt {a.prompt}|{a.prompt / seconds(a.device, 3, lambda: model(prompt, places, caches)):.2f}|tokens/s", flush=True)


def main():
    parser = argparse.ArgumentParser()
    for name, value in (("layers", 32), ("hidden", 4096), ("ffn", 11008), ("heads", 32), ("vocab", 32000), ("prompt", 2048),
                        ("steps", 32), ("depth", 512), ("matrix", 8192)):
        parser.add_argument("--" + name, type=int, default=value)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--eager-only", action="store_true")
    a = parser.parse_args()
    a.dtype = torch.float32 if a.device == "cpu" else torch.float16
    print(f"bf16 products|{matrix_rate(a.device, a.matrix):.1f}|TFLOP/s", flush=True)
    with torch.device(a.device):
        torch.set_default_dtype(a.dtype)
        model = Model(a).to(a.dtype).eval()
    with torch.inference_mode():
        for batch in (1, 32):
            measure(a, model, "eager", batch)
    if a.eager_only:
        return
    compiled = torch.compile(model, mode="reduce-overhead")
    with torch.no_grad():
        for batch in (1, 32):
            measure(a, compiled, "compile", batch)


main()
