"""Small models of control flow, of scattered updates, of constants in 16 bits and of attention with rows that see no key, with the
outputs that ONNX Runtime gives, in the folders that
`llmpart verify --suite` reads; tests/conformance/flow/ has them:

    python3 tests/conformance/flow.py OUT
    llmpart verify --suite=OUT

Nothing here is bound: what decides is an input. Needs onnx 1.23, onnxruntime 1.30, numpy.
"""
import pathlib
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

F32, I64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
TYPES = {np.dtype("float32"): F32, np.dtype("float16"): TensorProto.FLOAT16, np.dtype("float64"): TensorProto.DOUBLE, np.dtype("int64"): I64,
         np.dtype("int32"): TensorProto.INT32, np.dtype("int8"): TensorProto.INT8, np.dtype("uint8"): TensorProto.UINT8,
         np.dtype("bool"): BOOL}


def value(name, kind=F32, shape=None):
    return helper.make_tensor_value_info(name, kind, shape)


def node(kind, inputs, outputs, **attributes):
    return helper.make_node(kind, inputs.split(), outputs.split(), **attributes)


def body(name, nodes, inputs, outputs):
    return helper.make_graph(nodes, name, inputs, outputs)


def branch(name, nodes, outputs):
    return body(name, nodes, [], [value(o) for o in outputs])


def write(out, name, nodes, feed, results, constants=None, opset=18):
    """A test of that name: the model, what it is fed and what ONNX Runtime gives."""
    inputs = [value(n, TYPES[a.dtype], a.shape) for n, a in feed.items()]
    weights = [numpy_helper.from_array(np.array(a), n) for n, a in (constants or {}).items()]
    graph = helper.make_graph(nodes, name, inputs, results, weights)
    domains = [("", opset)] + [("com.microsoft", 1)] * any(n.domain for n in nodes)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid(d, v) for d, v in domains], ir_version=10,
                              producer_name="conformance")
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    folder = out / name / "test_data_set_0"
    folder.mkdir(parents=True, exist_ok=True)
    onnx.save(model, out / name / "model.onnx")
    for i, array in enumerate(feed.values()):
        (folder / f"input_{i}.pb").write_bytes(numpy_helper.from_array(array).SerializeToString())
    for i, array in enumerate(session.run(None, feed)):
        (folder / f"output_{i}.pb").write_bytes(numpy_helper.from_array(np.array(array)).SerializeToString())


def branches(out, rng):
    x = rng.standard_normal((2, 3)).astype(np.float32)
    inner = node("If", "d", "b", then_branch=branch("e", [node("Neg", "x", "e")], "e"),
                 else_branch=branch("f", [node("Abs", "x", "f")], "f"))
    # the branch that is not taken divides integers by zero and reads far outside
    risky = [node("Cast", "x", "i", to=I64), node("Sub", "i i", "zero"), node("Div", "i zero", "q"), node("Gather", "x far", "g"),
             node("Cast", "q", "h", to=F32), node("Add", "h g", "a")]
    for first in (False, True):
        for second in (False, True):
            choose = node("If", "c", "y", then_branch=branch("t", [node("Exp", "x", "t")], "t"),
                          else_branch=branch("n", [inner], "b"))
            feed = {"x": x, "c": np.array(first), "d": np.array([second])}
            write(out, f"if_{int(first)}{int(second)}", [choose], feed, [value("y")])
    choose = node("If", "c", "y s", then_branch=branch("t", [node("Relu", "x", "t"), node("Tanh", "x", "u")], "tu"),
                  else_branch=branch("r", risky + [node("Sin", "x", "v")], "av"))
    write(out, "if_untaken", [choose], {"x": x, "c": np.array(True)}, [value("y"), value("s")],
          {"far": np.int64(1000000)})


def loops(out, rng):
    x = rng.standard_normal((2, 3)).astype(np.float32)
    inputs = [value("i", I64, []), value("k", BOOL, []), value("v", F32, [2, 3])]
    step = [node("Cast", "i", "j", to=F32), node("Add", "v j", "w"), node("ReduceSum", "w", "total", keepdims=0),
            node("Less", "total limit", "on")]
    scan = body("scan", [node("Cast", "i", "j", to=F32), node("Add", "v j", "w"), node("Identity", "k", "on"),
                         node("ReduceMax", "w", "most", keepdims=0)],
                inputs, [value("on", BOOL, []), value("w"), value("w"), value("most")])
    nodes = [helper.make_node("Loop", ["trips", "", "x"], ["y", "s", "m"], body=scan)]
    write(out, "loop_scans", nodes, {"x": x}, [value("y"), value("s"), value("m")], {"trips": np.int64(4)})
    until = body("until", step, inputs, [value("on", BOOL, []), value("w")])
    for limit in (-100.0, 5.0, 20.0, 1000.0):
        nodes = [helper.make_node("Loop", ["trips", "", "x"], ["y"], body=until)]
        feed = {"x": x, "limit": np.array(limit, np.float32)}
        write(out, f"loop_until_{int(limit)}", nodes, feed, [value("y")], {"trips": np.int64(5)})
    for start in (False, True):
        nodes = [helper.make_node("Loop", ["trips", "start", "x"], ["y"], body=until)]
        feed = {"x": x, "start": np.array(start), "limit": np.array(15, np.float32)}
        write(out, f"loop_start_{int(start)}", nodes, feed, [value("y")], {"trips": np.int64(5)})


def scatters(out, rng):
    reductions = ("none", "add", "mul", "min", "max")
    for k, kind in enumerate(("float32", "float64", "int64", "int32", "int8", "uint8")):
        for reduction in reductions if k < 4 else ("none",):
            data = (rng.standard_normal((3, 5, 4)) * 9).astype(kind)
            # without a reduction places that come twice have no one result
            along = np.stack([rng.permutation(5) for _ in range(6)]).reshape(2, 3, 5).transpose(0, 2, 1)
            if reduction != "none":
                along = rng.integers(-5, 5, (2, 5, 3))
            updates = (rng.standard_normal(along.shape) * 9).astype(kind)
            nodes = [helper.make_node("ScatterElements", ["x", "i", "u"], ["y"], axis=1, reduction=reduction)]
            write(out, f"scatter_elements_{kind}_{reduction}", nodes,
                  {"x": data, "i": along.astype(np.int64), "u": updates}, [value("y", TYPES[data.dtype])])
            pairs = np.array([[0, 1], [2, -1], [1, 3]] + ([[0, 1]] if reduction != "none" else []), np.int64)
            updates = (rng.standard_normal((len(pairs), 4)) * 9).astype(kind)
            nodes = [helper.make_node("ScatterND", ["x", "i", "u"], ["y"], reduction=reduction)]
            write(out, f"scatter_nd_{kind}_{reduction}", nodes, {"x": data, "i": pairs, "u": updates},
                  [value("y", TYPES[data.dtype])])


def picks(out, rng):
    data = rng.standard_normal((2, 3, 4, 5)).astype(np.float32)
    index = np.stack([rng.integers(-3, 3, (2, 7)), rng.integers(-4, 4, (2, 7))], -1).astype(np.int64)
    write(out, "gather_nd_batch1", [node("GatherND", "x i", "y", batch_dims=1)], {"x": data, "i": index}, [value("y")])
    index = rng.integers(-4, 4, (2, 3, 6, 1)).astype(np.int64)
    write(out, "gather_nd_batch2", [node("GatherND", "x i", "y", batch_dims=2)], {"x": data, "i": index}, [value("y")])
    for axis in (-1, 0, 1):
        write(out, f"one_hot_{axis % 3}", [node("OneHot", "i depth v", "y", axis=axis)],
              {"i": rng.integers(-9, 9, (2, 4)).astype(np.int64), "v": np.array([-1, 2], np.float32)}, [value("y")],
              {"depth": np.int64(6)})
    x = rng.standard_normal((3, 4)).astype(np.float32)
    write(out, "compress", [node("Compress", "x c", "y", axis=1)], {"x": x}, [value("y")],
          {"c": np.array([True, False, True])})
    for size in (1, 2, 3, 5):
        write(out, f"reverse_sequence_{size}", [node("ReverseSequence", "x n", "y", batch_axis=1, time_axis=0)],
              {"x": rng.standard_normal((5, 3, 2)).astype(np.float32), "n": np.array([size, 5, 1], np.int64)},
              [value("y")])
    blocks = rng.standard_normal((2, 18, 2, 6)).astype(np.float32)
    for mode in ("DCR", "CRD"):
        write(out, f"depth_to_space_{mode.lower()}", [node("DepthToSpace", "x", "y", blocksize=3, mode=mode)],
              {"x": blocks}, [value("y")])
    write(out, "space_to_depth", [node("SpaceToDepth", "x", "y", blocksize=2)], {"x": blocks}, [value("y")])
    write(out, "eye_like", [node("EyeLike", "x", "y", k=1)], {"x": x}, [value("y")])
    square = rng.standard_normal((2, 4, 4, 3)).astype(np.float32)
    for name, equation in (("trace", "biij->bj"), ("diagonal", "bkkj->bjk")):
        write(out, f"einsum_{name}", [node("Einsum", "x", "y", equation=equation)], {"x": square}, [value("y")])
    write(out, "einsum_implied", [node("Einsum", "x z", "y", equation="iij,jk")],
          {"x": square[0], "z": x[:, :2]}, [value("y")])


def halves(out, rng):
    """Constants in 16 bits where operators copy them or compute with them beside what is computed in f32."""
    x = rng.standard_normal((4, 6)).astype(np.float16)
    weights = {"w": rng.standard_normal((4, 6)).astype(np.float16)}
    row, rows = rng.integers(0, 6, 3), rng.integers(0, 4, (4, 6))
    for name, nodes, feed in [
            ("concat", [node("Concat", "w x", "y", axis=0)], {}),
            ("turned", [node("Transpose", "w", "t", perm=[1, 0]), node("Transpose", "x", "u", perm=[1, 0]),
                        node("Concat", "t u", "y", axis=0)], {}),
            ("product", [node("Transpose", "x", "t"), node("MatMul", "w t", "y")], {}),
            ("einsum", [node("Einsum", "w x", "y", equation="ij,kj->ki")], {}),
            ("gather", [node("Gather", "w i", "t", axis=1), node("Gather", "x i", "u", axis=1), node("Sub", "t u", "y")],
             {"i": row}),
            ("elements", [node("GatherElements", "w i", "t", axis=0), node("Add", "t x", "y")], {"i": rows}),
            ("scatter", [node("ScatterElements", "x i w", "y", axis=0)], {"i": rng.permuted(rows * 0 + [[0], [1], [2], [3]], axis=0)})]:
        write(out, "half_" + name, nodes, {**feed, "x": x}, [value("y", TensorProto.FLOAT16)], weights)


def hidden(out, rng):
    """Attention in which the data hides keys by a number that they all get, and hides every key of a row."""
    q, k, v = (rng.standard_normal((2, 2, 3, 4)).astype(np.float32) * 2 for _ in range(3))
    hide = np.array([[[0, 1, 1], [1, 1, 1], [0, 0, 1]], [[1, 1, 1], [1, 0, 1], [0, 0, 0]]], bool)[:, None]
    bias = rng.standard_normal((2, 1, 3)).astype(np.float32)
    product, weigh = node("MatMul", "q t", "s"), [node("Softmax", "h", "w", axis=-1), node("MatMul", "w v", "y")]
    turn, feed = node("Transpose", "k", "t", perm=[0, 1, 3, 2]), {"q": q, "k": k, "v": v, "hide": hide}
    for name, number in (("least", np.finfo(np.float32).min), ("half", -65504), ("few", -1e5)):
        constants = {"number": np.float32(number)}
        write(out, f"hidden_{name}", [turn, product, node("Where", "hide number s", "h"), *weigh], feed, [value("y")], constants)
        write(out, f"hidden_{name}_biased", [turn, product, node("Add", "s bias", "sb"), node("Where", "hide number sb", "h"), *weigh], feed,
              [value("y")], constants | {"bias": bias})


def fused(out, rng):
    """Products that ONNX Runtime's optimizer fuses with transposes of the last two axes and a factor."""
    x, w, v = (rng.standard_normal(s).astype(np.float32) for s in ((2, 3, 4), (2, 5, 4), (4,)))
    turned = {"x": x.transpose(0, 2, 1).copy(), "w": w.transpose(0, 2, 1).copy()}
    for a, b in ((0, 0), (0, 1), (1, 0), (1, 1)):
        write(out, f"fused_product_{a}{b}",
              [node("FusedMatMul", "x w", "y", domain="com.microsoft", transA=a, transB=b, alpha=0.125)],
              {"x": turned["x"] if a else x}, [value("y")], {"w": w if b else turned["w"]})
    write(out, "fused_product_vector", [node("FusedMatMul", "x v", "y", domain="com.microsoft", transB=1)], {"x": x},
          [value("y")], {"v": v})


def sequences(out, rng):
    """Sequences of constant lengths, as older exporters write torch.split: pieces taken at constant indices."""
    x = rng.standard_normal((2, 7)).astype(np.float32)
    taken = lambda index, result: node("SequenceAt", f"parts {index}", result)
    last, sizes, second = np.int64(-1), np.array([3, 4]), np.int64(1)
    write(out, "sequence_of_size", [node("SplitToSequence", "x each", "parts", axis=1), taken("last", "a"), taken("second", "b"),
                                    node("Concat", "b a", "y", axis=1)], {"x": x}, [value("y")],
          {"each": np.int64(3), "last": last, "second": second})
    write(out, "sequence_of_sizes", [node("SplitToSequence", "x sizes", "parts", axis=-1), taken("last", "y")], {"x": x}, [value("y")],
          {"sizes": sizes, "last": last})
    write(out, "sequence_without_axis", [node("SplitToSequence", "x", "parts", axis=0, keepdims=0), taken("second", "y")], {"x": x},
          [value("y")], {"second": second})
    write(out, "sequence_joined", [node("SequenceConstruct", "x x", "both"), node("ConcatFromSequence", "both", "y", axis=1, new_axis=1)],
          {"x": x}, [value("y")])
    write(out, "sequence_length", [node("SplitToSequence", "x each", "parts", axis=1), node("SequenceLength", "parts", "n"),
                                   node("ConcatFromSequence", "parts", "all", axis=1), node("Cast", "n", "f", to=F32),
                                   node("Mul", "all f", "y")], {"x": x}, [value("y")], {"each": np.int64(2)})


def main():
    out, rng = pathlib.Path(sys.argv[1]), np.random.default_rng(5)
    for make in (branches, loops, scatters, picks, halves, fused, sequences, hidden):
        make(out, rng)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main()
