"""Small decoders with attention as one operator, with the tokens that ONNX Runtime generates greedily:

    python3 tests/conformance/decoders.py tests/conformance/decoders

Writes NAME.onnx and NAME.tokens: the prompt, then what follows. Needs onnx, onnxruntime, numpy.
"""
import pathlib
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

VOCABULARY, WIDTH, HEADS, HEAD, FFN = 32, 32, 2, 16, 32
PROMPT, STEPS = [5, 9, 30, 2], 12
MS = "com.microsoft"


class Decoder:
    def __init__(self, name, kv_heads, opset=17):
        self.name, self.kv_heads, self.opset = name, kv_heads, opset
        self.rng = np.random.default_rng(3)
        self.constants, self.nodes = [], []
        self.inputs = [("input_ids", TensorProto.INT64, ["batch", "s"]),
                       ("attention_mask", TensorProto.INT64, ["batch", "t"])]
        self.outputs = [("logits", TensorProto.FLOAT, ["batch", "s", VOCABULARY])]

    def weight(self, name, *shape):
        return self.constant(name, (self.rng.standard_normal(shape) / np.sqrt(shape[0])).astype(np.float32))

    def constant(self, name, array):
        self.constants.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def node(self, op, inputs, *outputs, domain="", **attributes):
        self.nodes.append(helper.make_node(op, inputs, list(outputs), name=outputs[0], domain=domain, **attributes))
        return outputs[0]

    def linear(self, name, x, n, k=WIDTH):
        return self.node("MatMul", [x, self.weight(name + ".w", k, n)], name)

    def cache(self):
        for kind in ("key", "value"):
            shape = ["batch", self.kv_heads]
            self.inputs.append((f"past_key_values.0.{kind}", TensorProto.FLOAT, [*shape, "p", HEAD]))
            self.outputs.append((f"present.0.{kind}", TensorProto.FLOAT, [*shape, "t", HEAD]))
        return [i[0] for i in self.inputs[2:]], [o[0] for o in self.outputs[1:]]

    def stacked_cache(self):
        self.inputs.append(("past_0", TensorProto.FLOAT, [2, "batch", HEADS, "p", HEAD]))
        self.outputs.append(("present_0", TensorProto.FLOAT, [2, "batch", HEADS, "t", HEAD]))
        return "past_0", "present_0"

    def mask32(self):
        return self.node("Cast", ["attention_mask"], "mask32", to=TensorProto.INT32)

    def lengths(self):
        self.constant("one", np.int64(1))
        self.node("ReduceSum", ["attention_mask", self.constant("axis1", np.array([1]))], "sums", keepdims=0)
        self.node("Cast", [self.node("Sub", ["sums", "one"], "last")], "seqlens_k", to=TensorProto.INT32)
        self.node("Gather", [self.node("Shape", ["attention_mask"], "shape"), "one"], "t")
        self.node("Cast", ["t"], "total", to=TensorProto.INT32)
        return ["seqlens_k", "total"]

    def tables(self):
        angles = np.arange(64)[:, None] / 10 ** (np.arange(HEAD // 2) / 4)
        return [self.constant(n, f(angles).astype(np.float32)) for n, f in (("cos", np.cos), ("sin", np.sin))]

    def parts(self, h):
        return [self.linear(n, h, w * HEAD) for n, w in (("q", HEADS), ("k", self.kv_heads), ("v", self.kv_heads))]

    def model(self, attend):
        x = self.node("Gather", [self.weight("table", VOCABULARY, WIDTH), "input_ids"], "embedding")
        scale, shift = self.constant("scale", np.ones(WIDTH, np.float32)), self.constant("shift", np.zeros(WIDTH, np.float32))
        h = self.node("LayerNormalization", [x, scale, shift], "norm")
        x = self.node("Add", [x, self.linear("out", attend(self, h), WIDTH)], "after_attention")
        up = self.node("Relu", [self.linear("up", x, FFN)], "activation")
        x = self.node("Add", [x, self.linear("down", up, WIDTH, FFN)], "after_mlp")
        self.node("MatMul", [x, self.weight("head", WIDTH, VOCABULARY)], "logits")
        info = helper.make_tensor_value_info
        graph = helper.make_graph(self.nodes, self.name, [info(*i) for i in self.inputs],
                                  [info(*o) for o in self.outputs], self.constants)
        imports = [helper.make_opsetid("", self.opset), helper.make_opsetid(MS, 1)]
        return helper.make_model(graph, opset_imports=imports, ir_version=10)


def group_query(packed=False, sinks=False, **attributes):
    def attend(d, h):
        past, present = d.cache()
        qkv = [d.linear("qkv", h, (HEADS + 2 * d.kv_heads) * HEAD), "", ""] if packed else d.parts(h)
        extra = ["", "", d.weight("sinks", HEADS)] if sinks else []
        return d.node("GroupQueryAttention", [*qkv, *past, *d.lengths(), *d.tables(), *extra], "attention", *present,
                      domain=MS, num_heads=HEADS, kv_num_heads=d.kv_heads, do_rotary=1, **attributes)
    return attend


def multi_head(d, h):
    past, present = d.cache()
    return d.node("MultiHeadAttention", [*d.parts(h), d.weight("bias", 3 * WIDTH), d.mask32(), "", *past], "attention",
                  *present, domain=MS, num_heads=HEADS, unidirectional=1)


def fused(d, h):
    past, present = d.stacked_cache()
    return d.node("Attention", [h, d.weight("qkv", WIDTH, 3 * WIDTH), d.weight("bias", 3 * WIDTH), d.mask32(), past],
                  "attention", present, domain=MS, num_heads=HEADS, unidirectional=1)


def standard(d, h):
    past, present = d.cache()
    return d.node("Attention", [*d.parts(h), "", *past], "attention", *present, q_num_heads=HEADS,
                  kv_num_heads=d.kv_heads, is_causal=1, softcap=3.0)


DECODERS = {"group_query": (1, 17, group_query()), "group_query_window": (1, 17, group_query(True, local_window_size=6)),
            "group_query_sinks": (1, 17, group_query(sinks=True)), "multi_head": (HEADS, 17, multi_head),
            "attention": (HEADS, 17, fused), "standard": (1, 23, standard)}


def generate(model):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    sizes = {"batch": 1, "p": 0}
    past = {i.name: np.zeros([sizes.get(n, n) for n in i.shape], np.float32)
            for i in session.get_inputs() if i.name.startswith("past")}
    wanted = {i.name for i in session.get_inputs()}
    tokens, new = list(PROMPT), list(PROMPT)
    for _ in range(STEPS):
        feed = {"input_ids": np.array([new]), "attention_mask": np.ones((1, len(tokens)), np.int64), **past}
        logits, *present = session.run(None, {n: a for n, a in feed.items() if n in wanted})
        past = dict(zip(past, present))
        new = [int(logits[0, -1].argmax())]
        tokens += new
    return tokens


def main(folder):
    folder.mkdir(parents=True, exist_ok=True)
    for name, (kv_heads, opset, attend) in DECODERS.items():
        model = Decoder(name, kv_heads, opset).model(attend)
        onnx.save(model, folder / f"{name}.onnx")
        (folder / f"{name}.tokens").write_text(",".join(map(str, generate(model))) + "\n")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
