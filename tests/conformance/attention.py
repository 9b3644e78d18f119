"""Random single-operator models of the attention operators of com.microsoft and of the standard, with the outputs that
ONNX Runtime gives, in the folders that `llmpart verify --suite` reads:

    python3 tests/conformance/attention.py OUT [--cases 400] [--seed 1] [--only GroupQueryAttention]
    llmpart verify --suite=OUT

Every attribute and optional operand is drawn at random. A combination that ONNX Runtime refuses is left out and counted.
With --cover only cases are written that show something new: tests/conformance/attention/ has those of
`--cases 400 --seed 3 --cover`, and some of --only WindowedGroupQuery. Needs onnx 1.23, onnxruntime 1.30, numpy.
"""
import argparse
import collections
import multiprocessing
import pathlib
import sys

import numpy as np
import onnx
import onnx.reference
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

TYPES = {np.dtype("float32"): TensorProto.FLOAT, np.dtype("float16"): TensorProto.FLOAT16,
         np.dtype("int32"): TensorProto.INT32, np.dtype("int64"): TensorProto.INT64, np.dtype("bool"): TensorProto.BOOL}


class Case:
    """One node: operands by name in order ('' where absent), attributes, results."""

    def __init__(self, rng, op, domain, opset):
        self.rng, self.op, self.domain, self.opset = rng, op, domain, opset
        self.operands, self.attributes, self.results = [], {}, []
        self.constants = set()

    def floats(self, *shape, scale=1.0):
        return (self.rng.standard_normal(shape) * scale).astype(np.float32)

    def pick(self, *values):
        return values[self.rng.integers(len(values))]

    def maybe(self, share=0.5):
        return self.rng.random() < share

    def add(self, name, array, constant=False):
        self.operands.append((name, array))
        if constant:
            self.constants.add(name)

    def skip(self, name):
        self.operands.append((name, None))

    def set(self, **attributes):
        self.attributes.update(attributes)

    def model(self, shapes=None):
        operands = list(self.operands)
        while operands and operands[-1][1] is None:
            operands.pop()
        info = helper.make_tensor_value_info
        inputs = [info(n, TYPES[a.dtype], a.shape) for n, a in operands if a is not None and n not in self.constants]
        first = next(a for _, a in operands if a is not None)
        outputs = [info(n, TYPES[first.dtype], shapes[n] if shapes else None) for n in self.results if n]
        node = helper.make_node(self.op, [n if a is not None else "" for n, a in operands], self.results,
                                domain=self.domain, **self.attributes)
        constants = [numpy_helper.from_array(a, n) for n, a in operands if n in self.constants]
        graph = helper.make_graph([node], self.op, inputs, outputs, constants)
        imports = [helper.make_opsetid("", self.opset)]
        if self.domain:
            imports.append(helper.make_opsetid(self.domain, 1))
        return helper.make_model(graph, opset_imports=imports, ir_version=10, producer_name="conformance")

    def feed(self):
        return {n: a for n, a in self.operands if a is not None and n not in self.constants}


def contrib_mask(c, batch, rows, past, fresh):
    """A mask_index in one of its forms; every row keeps something to see."""
    total = past + fresh
    form = c.pick("none", "none", "length", "ends", "keys", "square", "dummy")
    if form == "length":
        return c.rng.integers(1, total + 1, batch).astype(np.int32)
    if form == "ends":
        begins = c.rng.integers(0, max(1, total // 2), batch)
        ends = begins + 1 + c.rng.integers(0, total - begins)
        return np.concatenate([ends, begins]).astype(np.int32)
    if form == "keys" or form == "square":
        shape = (batch, total) if form == "keys" else (batch, rows, total)
        mask = (c.rng.random(shape) < 0.7).astype(np.int32)
        mask[..., 0] = 1
        return mask
    if form == "dummy":
        return np.zeros((batch, 1), np.int32)
    return None


def bias_of(c, batch, heads, rows, total, share=0.3):
    return c.floats(c.pick(1, batch), c.pick(1, heads), rows, total) if c.maybe(share) else None


def attention(rng):
    c = Case(rng, "Attention", "com.microsoft", 17)
    batch, rows, heads, d, width = c.pick(1, 2, 3), c.pick(1, 2, 5), c.pick(1, 2, 4), c.pick(8, 16, 20), c.pick(12, 32)
    past = c.pick(0, 0, 3, 7)
    dv = c.pick(d, d, 8) if past == 0 else d
    c.set(num_heads=heads)
    c.add("x", c.floats(batch, rows, width))
    c.add("w", c.floats(width, heads * (2 * d + dv), scale=0.3), constant=c.maybe(0.7))
    if c.maybe(0.8):
        c.add("b", c.floats(heads * (2 * d + dv)), constant=c.maybe(0.7))
    else:
        c.skip("b")
    mask = contrib_mask(c, batch, rows, past, rows)
    c.add("mask", mask) if mask is not None else c.skip("mask")
    c.add("past", c.floats(2, batch, heads, past, d)) if past else c.skip("past")
    bias = bias_of(c, batch, heads, rows, past + rows)
    c.add("bias", bias) if bias is not None else c.skip("bias")
    if dv != d or c.maybe(0.2):
        c.set(qkv_hidden_sizes=[heads * d, heads * d, heads * dv])
    if c.maybe():
        c.set(unidirectional=1)
    if c.maybe(0.3):
        c.set(scale=float(c.pick(0.1, 0.5, 1.0)))
    if c.maybe(0.3):
        c.set(mask_filter_value=float(c.pick(-3.0, -1000.0)))
    c.results = ["y", "present"] if dv == d and (past or c.maybe(0.3)) else ["y"]
    return c


def multi_head(rng):
    c = Case(rng, "MultiHeadAttention", "com.microsoft", 17)
    batch, rows, heads, d = c.pick(1, 2, 3), c.pick(1, 2, 5), c.pick(1, 2, 4), c.pick(8, 16, 20)
    form = c.pick("flat", "flat", "flat", "packed", "packed_kv", "cross")
    past = c.pick(0, 0, 3, 7) if form == "flat" else 0
    fresh = c.pick(rows, rows, 4) if form in ("flat", "packed_kv") and not past else rows
    dv = c.pick(d, d, 8) if form == "flat" and not past else d
    c.set(num_heads=heads)
    if form == "packed":
        c.add("q", c.floats(batch, rows, heads, 3, d))
        c.skip("k"), c.skip("v")
    elif form == "packed_kv":
        c.add("q", c.floats(batch, rows, heads * d))
        c.add("k", c.floats(batch, fresh, heads, 2, d))
        c.skip("v")
    elif form == "cross":
        fresh = c.pick(3, 6)
        c.add("q", c.floats(batch, rows, heads * d))
        c.add("k", c.floats(batch, heads, fresh, d))
        c.add("v", c.floats(batch, heads, fresh, d))
    else:
        c.add("q", c.floats(batch, rows, heads * d))
        c.add("k", c.floats(batch, fresh, heads * d))
        c.add("v", c.floats(batch, fresh, heads * dv))
    if form in ("flat", "packed") and c.maybe():
        c.add("b", c.floats(heads * (2 * d + dv)), constant=c.maybe(0.7))
    else:
        c.skip("b")
    mask = contrib_mask(c, batch, rows, past, fresh)
    c.add("mask", mask) if mask is not None else c.skip("mask")
    bias = bias_of(c, batch, heads, rows, past + fresh)
    c.add("bias", bias) if bias is not None else c.skip("bias")
    if past:
        c.add("past_k", c.floats(batch, heads, past, d))
        c.add("past_v", c.floats(batch, heads, past, d))
    if fresh == rows and c.maybe(0.4):
        c.set(unidirectional=1)
    if c.maybe(0.3):
        c.set(scale=float(c.pick(0.1, 0.5, 1.0)))
    if c.maybe(0.3):
        c.set(mask_filter_value=float(c.pick(-3.0, -1000.0)))
    c.results = ["y"]
    if past or (form == "flat" and c.maybe(0.3)):
        c.results += ["present_k", "present_v"]
        if c.maybe(0.3):
            c.results += ["scores"]
    return c


def decoder_masked(rng):
    c = Case(rng, "DecoderMaskedMultiHeadAttention", "com.microsoft", 17)
    batch, heads, d, past = c.pick(1, 2, 3), c.pick(1, 2, 4), c.pick(8, 16), c.pick(1, 3, 7)
    cross = c.maybe(0.3)
    c.set(num_heads=heads)
    c.add("q", c.floats(batch, 1, heads * d))
    if cross:
        c.add("k", c.floats(batch, heads, past, d))
        c.add("v", c.floats(batch, heads, past, d))
    else:
        c.add("k", c.floats(batch, 1, heads * d))
        c.add("v", c.floats(batch, 1, heads * d))
    total = past if cross else past + 1
    mask = (c.rng.random((batch, total)) < 0.7).astype(np.int32)
    mask[:, 0] = 1
    c.add("mask", mask) if c.maybe(0.4) else c.skip("mask")
    bias = bias_of(c, batch, heads, 1, total)
    c.add("bias", bias) if bias is not None else c.skip("bias")
    if not cross:
        c.add("past_k", c.floats(batch, heads, past, d))
        c.add("past_v", c.floats(batch, heads, past, d))
    c.results = ["y"] if cross else ["y", "present_k", "present_v"]
    return c


def group_query(rng):
    c = Case(rng, "GroupQueryAttention", "com.microsoft", 17)
    kv_heads, group, d = c.pick(1, 2), c.pick(1, 2, 4), c.pick(16, 32)
    heads = kv_heads * group
    stage = c.pick("prompt", "decode", "decode", "chunk")
    batch = 1 if stage == "chunk" else c.pick(1, 2, 3)
    rows = 1 if stage == "decode" else c.pick(2, 5)
    before = 0 if stage == "prompt" else c.pick(1, 4, 9)
    total = before + rows
    lengths = np.full(batch, total)
    if batch > 1 and c.maybe(0.4):  # shorter sequences, padded at their ends
        lengths = c.rng.integers(max(rows if stage != "prompt" else 1, 1), total + 1, batch)
        lengths[c.rng.integers(batch)] = total
    shared = c.maybe(0.4)
    capacity = total + c.pick(0, 3) if shared else before
    c.set(num_heads=heads, kv_num_heads=kv_heads)
    if c.maybe(0.3):
        c.add("q", c.floats(batch, rows, (heads + 2 * kv_heads) * d))
        c.skip("k"), c.skip("v")
    else:
        c.add("q", c.floats(batch, rows, heads * d))
        c.add("k", c.floats(batch, rows, kv_heads * d))
        c.add("v", c.floats(batch, rows, kv_heads * d))
    if capacity or c.maybe():
        c.add("past_k", c.floats(batch, kv_heads, capacity, d))
        c.add("past_v", c.floats(batch, kv_heads, capacity, d))
    else:
        c.skip("past_k"), c.skip("past_v")
    known = c.maybe(0.3)
    c.add("seqlens_k", (lengths - 1).astype(np.int32), constant=known)
    c.add("total", np.array(total, np.int32), constant=known)
    if c.maybe(0.5):
        rotary = c.pick(d // 2, d // 2, 8)
        c.set(do_rotary=1, rotary_interleaved=int(c.maybe(0.3)))
        c.add("cos", c.floats(32, rotary), constant=c.maybe())
        c.add("sin", c.floats(32, rotary), constant=c.maybe())
        if c.maybe(0.3):
            positions = (lengths - rows)[:, None] + np.arange(rows) if stage != "prompt" else np.arange(rows) + np.zeros((batch, 1))
            c.add("positions", (positions + c.pick(0, 2)).clip(0, 31).astype(np.int64))
        else:
            c.skip("positions")
    else:
        c.skip("cos"), c.skip("sin"), c.skip("positions")
    bias = bias_of(c, batch, heads, rows, total, 0.2)
    c.add("bias", bias) if bias is not None else c.skip("bias")
    if c.maybe(0.2):
        c.add("sinks", c.floats(heads))
    elif c.maybe(0.2):
        c.set(smooth_softmax=1)
    if c.maybe(0.3):
        c.set(local_window_size=c.pick(1, 2, 4))
    elif c.maybe(0.1):
        c.set(causal=0)
    if c.maybe(0.2):
        c.set(softcap=float(c.pick(1.5, 5.0)))
    if c.maybe(0.3):
        c.set(scale=float(c.pick(0.1, 0.5)))
    c.results = ["y", "present_k", "present_v"]
    c.lengths, c.rows, c.before, c.prompt = lengths, rows, before, stage == "prompt"
    return c


def rotary(rng):
    domain = "com.microsoft" if rng.random() < 0.5 else ""
    c = Case(rng, "RotaryEmbedding", domain, 23)
    batch, rows, heads, d = c.pick(1, 2, 3), c.pick(1, 2, 5), c.pick(1, 2, 4), c.pick(8, 16, 32)
    part = c.pick(0, 0, 8) if d > 8 else 0
    half = (part or d) // 2
    four = c.maybe()
    c.add("x", c.floats(batch, heads, rows, d) if four else c.floats(batch, rows, heads * d))
    tables = [c.floats(16, half) for _ in range(2)]
    positions = c.rng.integers(0, 16, (batch, rows)).astype(np.int64)
    if domain:
        c.add("positions", np.array([c.pick(0, 3)], np.int64) if c.maybe(0.4) else positions)
    none = not domain and c.maybe(0.4)
    for name, table in zip(("cos", "sin"), tables):
        c.add(name, table[positions] if none else table, constant=c.maybe() and not none)
    if not domain and not none:
        c.add("positions", positions)
    if part:
        c.set(rotary_embedding_dim=part)
    if part or not four or c.maybe(0.3):
        c.set(num_heads=heads)
    c.set(interleaved=int(c.maybe()))
    c.results = ["y"]
    return c


def standard(rng):
    opset = int(rng.choice([23, 24]))
    c = Case(rng, "Attention", "", opset)
    batch, rows, kv_heads, group = c.pick(1, 2, 3), c.pick(1, 2, 5), c.pick(1, 2), c.pick(1, 1, 2, 3)
    heads, d = kv_heads * group, c.pick(8, 16, 20)
    dv = c.pick(d, d, 12)
    past = c.pick(0, 0, 0, 4)
    padded = opset == 24 and not past and c.maybe(0.3)
    fresh = c.pick(rows, rows, 6) if not past else rows
    fresh = max(fresh, rows) if padded else fresh
    total, three = past + fresh, c.maybe(0.4)
    if three:
        c.set(q_num_heads=heads, kv_num_heads=kv_heads)
        c.add("q", c.floats(batch, rows, heads * d))
        c.add("k", c.floats(batch, fresh, kv_heads * d))
        c.add("v", c.floats(batch, fresh, kv_heads * dv))
    else:
        c.add("q", c.floats(batch, heads, rows, d))
        c.add("k", c.floats(batch, kv_heads, fresh, d))
        c.add("v", c.floats(batch, kv_heads, fresh, dv))
    if c.maybe(0.6):
        shape = c.pick((rows, total), (1, rows, total), (heads, rows, total), (batch, 1, rows, total),
                       (batch, heads, rows, total), (1, 1, 1, total))
        if c.maybe():
            mask = c.rng.random(shape) < 0.7
            mask[..., 0] = True
        else:
            mask = c.floats(*shape)
        c.add("mask", mask)
    else:
        c.skip("mask")
    if past:
        c.add("past_k", c.floats(batch, kv_heads, past, d))
        c.add("past_v", c.floats(batch, kv_heads, past, dv))
    else:
        c.skip("past_k"), c.skip("past_v")
    if padded:
        c.add("lengths", c.rng.integers(rows, total + 1, batch).astype(np.int64))
    if c.maybe(0.4):
        c.set(is_causal=1)
    if c.maybe(0.3):
        c.set(softcap=float(c.pick(1.5, 5.0)))
    if c.maybe(0.3):
        c.set(scale=float(c.pick(0.1, 0.5, 1.0)))
    c.results = ["y"]
    if past or (c.maybe(0.4) and not padded):
        c.results += ["present_k", "present_v"]
        if c.maybe(0.5):
            c.results += ["scores"]
            c.set(qk_matmul_output_mode=c.pick(0, 1, 2, 3))
    return c


def linear(rng):
    c = Case(rng, "LinearAttention", "", 27)
    batch, rows, kv_heads, group = c.pick(1, 2, 3), c.pick(1, 4, 9), c.pick(1, 2), c.pick(1, 2)
    d, dv, rule = c.pick(4, 8, 20), c.pick(8, 16, 21), c.pick("linear", "gated", "delta", "gated_delta")
    c.set(q_num_heads=kv_heads * group, kv_num_heads=kv_heads, update_rule=rule)
    c.add("q", c.floats(batch, rows, kv_heads * group * d))
    c.add("k", c.floats(batch, rows, kv_heads * d, scale=0.3))
    c.add("v", c.floats(batch, rows, kv_heads * dv))
    c.add("state", c.floats(batch, kv_heads, d, dv)) if c.maybe() else c.skip("state")
    per_key = c.pick(1, d)
    c.add("decay", -abs(c.floats(batch, rows, kv_heads * per_key))) if "gated" in rule else c.skip("decay")
    c.add("beta", abs(c.floats(batch, rows, c.pick(1, kv_heads)))) if "delta" in rule else c.skip("beta")
    if c.maybe(0.3):
        c.set(scale=0.5)
    c.results = ["y", "present"]
    return c


def resident(tokens, window, capacity):
    """The rows of a window's cache that mean something after so many tokens."""
    group = capacity - window + 1
    return tokens if tokens <= capacity else tokens - group * -(-(tokens - capacity) // group)


def windowed(rng):
    """GroupQueryAttention with a cache that keeps only its window."""
    c = Case(rng, "GroupQueryAttention", "com.microsoft", 17)
    kv_heads, group, d = c.pick(1, 2), c.pick(1, 2), 16
    window = c.pick(2, 4)
    capacity = window + c.pick(0, 0, 1, 3)
    rows = c.pick(1, 1, 3, 9)
    batch = c.pick(1, 3) if rows == 1 else 1
    before = np.array([c.pick(0, 1, 3, 5, 8, 12) for _ in range(batch)]) if rows > 1 else c.rng.integers(1, 14, batch)
    lengths = before + rows
    c.set(num_heads=kv_heads * group, kv_num_heads=kv_heads, local_window_size=window, sliding_window_cache=1)
    for name, heads in (("q", kv_heads * group), ("k", kv_heads), ("v", kv_heads)):
        c.add(name, c.floats(batch, rows, heads * d))
    for name in ("past_k", "past_v"):
        c.add(name, c.floats(batch, kv_heads, capacity, d))
    c.add("seqlens_k", (lengths - 1).astype(np.int32))
    c.add("total", np.array(lengths.max(), np.int32))
    if c.maybe():
        c.set(do_rotary=1)
        c.add("cos", c.floats(32, d // 2)), c.add("sin", c.floats(32, d // 2))
    else:
        c.skip("cos"), c.skip("sin")
    c.skip("positions"), c.skip("bias")
    if c.maybe():
        c.add("sinks", c.floats(kv_heads * group))
    c.results = ["y", "present_k", "present_v"]
    c.resident = [resident(n, window, capacity) for n in lengths]
    return c


def convolution(rng):
    c = Case(rng, "CausalConvWithState", "", 27)
    batch, channels, rows, taps = c.pick(1, 2), c.pick(1, 6), c.pick(1, 2, 7), c.pick(1, 2, 4)
    c.add("x", c.floats(batch, channels, rows))
    c.add("w", c.floats(channels, 1, taps), constant=c.maybe(0.7))
    c.add("b", c.floats(channels)) if c.maybe() else c.skip("b")
    c.add("past", c.floats(batch, channels, taps - 1)) if taps > 1 and c.maybe() else c.skip("past")
    if c.maybe():
        c.set(activation=c.pick("silu", "swish", "none"))
    c.results = ["y", "present"]
    return c


MAKERS = collections.OrderedDict(Attention=attention, MultiHeadAttention=multi_head, GroupQueryAttention=group_query,
                                 DecoderMaskedMultiHeadAttention=decoder_masked, RotaryEmbedding=rotary,
                                 StandardAttention=standard, LinearAttention=linear, CausalConvWithState=convolution,
                                 WindowedGroupQuery=windowed)


def run(case):
    if case.op in ("LinearAttention", "CausalConvWithState"):  # ONNX Runtime has them in no opset of the standard's
        evaluator = onnx.reference.ReferenceEvaluator(case.model())
        return dict(zip(case.results, evaluator.run(None, case.feed())))
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(case.model().SerializeToString(), options, providers=["CPUExecutionProvider"])
    outputs = dict(zip([n for n in case.results if n], session.run(None, case.feed())))
    for b, rows in enumerate(getattr(case, "resident", ())):
        for name in ("present_k", "present_v"):
            outputs[name][b, :, rows:] = 0
    if "scores" in outputs:  # where the standard has minus infinity, ONNX Runtime has the lowest number
        scores = outputs["scores"]
        scores[scores <= np.finfo(scores.dtype).min] = -np.inf
    return outputs


def features(case):
    """What a case shows of its operator: attributes, operands, forms of masks."""
    kinds = ("update_rule", "qk_matmul_output_mode", "interleaved", "causal")
    found = {(case.op, case.domain, n, v if n in kinds else None) for n, v in case.attributes.items()}
    return found | {(case.op, case.domain, n, a.ndim if n == "mask" else 0) for n, a in case.operands if a is not None}


def run_apart(case):
    """In a process of its own: some combinations crash ONNX Runtime."""
    receive, send = multiprocessing.Pipe(False)

    def work():
        try:
            send.send((run(case), None))
        except Exception as error:  # it says no in many types
            send.send((None, str(error).splitlines()[0][-110:]))

    process = multiprocessing.get_context("fork").Process(target=work)
    process.start()
    send.close()
    try:
        return receive.recv()
    except EOFError:
        return None, "crashes"
    finally:
        process.join()


def write(folder, case, outputs):
    data = folder / "test_data_set_0"
    data.mkdir(parents=True, exist_ok=True)
    onnx.save(case.model({n: a.shape for n, a in outputs.items()}), folder / "model.onnx")
    for kind, arrays in (("input", case.feed()), ("output", outputs)):
        for i, (name, array) in enumerate(arrays.items()):
            (data / f"{kind}_{i}.pb").write_bytes(numpy_helper.from_array(array, name).SerializeToString())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--cases", type=int, default=400)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cover", action="store_true")
    parser.add_argument("--only", choices=list(MAKERS))
    arguments = parser.parse_args()
    makers = [(n, m) for n, m in MAKERS.items() if arguments.only in (None, n)]
    refused, seen = collections.Counter(), set()
    for i in range(arguments.cases):
        name, make = makers[i % len(makers)]
        case = make(np.random.default_rng([arguments.seed, i]))
        outputs, why = run_apart(case)
        if why:
            refused[f"{name}: {why}"] += 1
            continue
        new = features(case) - seen
        if arguments.cover and not new:
            continue
        seen |= new
        write(arguments.out / f"{name}_{i:04}", case, outputs)
    for why, count in sorted(refused.items()):
        print(f"{count} left out, {why}", file=sys.stderr)


if __name__ == "__main__":
    main()
