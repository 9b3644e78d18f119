"""Random models of quantised operators: `llmpart verify` against ONNX Runtime's answers.

    python check_quant.py LLMPART [--seed=1] [--count=60] [--only=NAME] [--write=FOLDER]

Each model is one operator, or a weight after DequantizeLinear and its product, with random sizes, types, block sizes
and zero points. Prints what differs; the exit status is 1 if anything does or is refused. --write keeps the models and
their data as a suite: tests/conformance/quantised has those of `--count=24 --only=q` and of `--count=4 --only=matmul_bnb4`.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

MS = "com.microsoft"
TYPES = {np.dtype(np.float32): TensorProto.FLOAT, np.dtype(np.uint8): TensorProto.UINT8, np.dtype(np.int8): TensorProto.INT8,
         np.dtype(np.int64): TensorProto.INT64, np.dtype(np.int32): TensorProto.INT32}


class Case:
    def __init__(self, rng: np.random.Generator) -> None:
        self.rng, self.nodes, self.constants, self.inputs, self.text = rng, [], [], {}, ""

    def size(self, most: int = 80) -> int:
        return int(self.rng.integers(1, most))

    def floats(self, *shape: int) -> np.ndarray:
        return self.rng.standard_normal(shape).astype(np.float32)

    def scales(self, *shape: int) -> np.ndarray:
        return (0.005 + 0.02 * self.rng.random(shape)).astype(np.float32)

    def codes(self, *shape: int, bits: int = 8) -> np.ndarray:
        return self.rng.integers(0, 2**bits, shape).astype(np.uint8)

    def constant(self, name: str, value: np.ndarray) -> str:
        self.constants.append(numpy_helper.from_array(value, name))
        return name

    def input(self, name: str, value: np.ndarray) -> str:
        self.inputs[name] = value
        return name

    def node(self, op: str, inputs: list[str], output: str = "y", domain: str = "", **attributes) -> str:
        self.nodes.append(helper.make_node(op, inputs, [output], name=op, domain=domain, **attributes))
        return output

    def model(self) -> onnx.ModelProto:
        inputs = [helper.make_tensor_value_info(n, TYPES[v.dtype], v.shape) for n, v in self.inputs.items()]
        graph = helper.make_graph(self.nodes, "g", inputs, [helper.make_empty_tensor_value_info("y")], self.constants)
        opsets = [helper.make_opsetid("", 21), helper.make_opsetid(MS, 1)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def matmul_nbits(c: Case) -> None:
    bits, block = int(c.rng.choice([4, 8])), int(c.rng.choice([16, 32, 64, 128]))
    m, n, k = c.size(9), c.size(), c.size(200)
    blocks, zeros = -(-k // block), c.rng.choice(["none", "packed", "float"] if bits == 4 else ["none", "packed"])
    inputs = [c.input("x", c.floats(m, k)), c.constant("w", c.codes(n, blocks, block * bits // 8)),
              c.constant("s", c.scales(n * blocks))]
    if zeros == "packed":
        inputs.append(c.constant("z", c.codes(n * -(-blocks * bits // 8))))
    if zeros == "float":
        inputs.append(c.constant("z", (8 + c.floats(n * blocks)).astype(np.float32)))
    c.node("MatMulNBits", inputs, domain=MS, K=k, N=n, bits=bits, block_size=block)
    c.text = f"bits {bits} block {block} zeros {zeros} {m}x{k}x{n}"


def matmul_bnb4(c: Case) -> None:
    block, kind, m, n, k = int(c.rng.choice([16, 32, 64])), int(c.rng.integers(2)), c.size(9), c.size(), c.size(100)
    inputs = [c.input("x", c.floats(m, k)), c.constant("w", c.codes(-(-n * k // 2))), c.constant("s", c.scales(-(-n * k // block)))]
    c.node("MatMulBnb4", inputs, domain=MS, K=k, N=n, block_size=block, quant_type=kind)
    c.text = f"type {kind} block {block} {m}x{k}x{n}"


def dynamic_matmul(c: Case) -> None:
    m, n, k = c.size(9), c.size(), c.size()
    per_column = bool(c.rng.integers(2))
    w = c.rng.integers(-127, 128, (k, n)).astype(np.int8)
    inputs = [c.input("x", c.floats(m, k)), c.constant("w", w), c.constant("s", c.scales(n) if per_column else c.scales(1)[0])]
    c.node("DynamicQuantizeMatMul", inputs, domain=MS)
    c.text = f"{m}x{k}x{n} {'per column' if per_column else 'one scale'}"


def integer_to_float(c: Case) -> None:
    m, n, k = c.size(9), c.size(), c.size()
    inputs = [c.input("a", c.codes(m, k)), c.input("b", c.codes(k, n)), c.constant("sa", c.scales(1)[0]),
              c.constant("sb", c.scales(n)), c.constant("za", c.codes(1)[0]), c.constant("zb", c.codes(n)),
              c.constant("bias", c.floats(n))]
    c.node("MatMulIntegerToFloat", inputs, domain=MS)
    c.text = f"{m}x{k}x{n}"


def matmul_integer(c: Case) -> None:
    m, n, k = c.size(9), c.size(), c.size(900)
    c.node("MatMulInteger", [c.input("a", c.codes(m, k)), c.input("b", c.codes(k, n)), c.constant("za", c.codes(1)[0]),
                             c.constant("zb", c.codes(1)[0])])
    c.text = f"{m}x{k}x{n}"


def gather_block(c: Case) -> None:
    block, rows, blocks = int(c.rng.choice([16, 32])), c.size(40), c.size(5)
    shape = (rows, blocks * block // 2)
    inputs = [c.constant("t", c.codes(*shape)), c.input("i", c.rng.integers(0, rows, (2, 3))),
              c.constant("s", c.scales(rows, blocks))]
    c.node("GatherBlockQuantized", inputs, domain=MS, bits=4, block_size=block, gather_axis=0, quantize_axis=1)
    c.text = f"{rows}x{blocks * block} block {block}"


def behind_dequantize(c: Case) -> None:
    m, n, block = c.size(9), c.size(), int(c.rng.choice([16, 32]))
    k, form = block * c.size(5), c.rng.choice(["tensor", "column", "block", "rows"])
    transposed = form == "rows"
    w = c.constant("w", c.rng.integers(-128, 128, (n, k) if transposed else (k, n)).astype(np.int8))
    shape = {"tensor": (), "column": (n,), "block": (k // block, n), "rows": (n, k // block)}[form]
    scale = c.scales(*shape) if shape else c.scales(1)[0]
    attributes = {"axis": 1 if form in ("column", "rows") else 0}
    if form in ("block", "rows"):
        attributes["block_size"] = block
    wide = c.node("DequantizeLinear", [w, c.constant("s", np.asarray(scale))], "wide", **attributes)
    x = c.input("x", c.floats(m, k))
    if transposed:
        c.node("Gemm", [x, wide, c.constant("bias", c.floats(n))], transB=1)
    else:
        c.node("MatMul", [x, wide])
    c.text = f"{form} {m}x{k}x{n}"


def there_and_back(c: Case) -> None:
    shape = (c.size(5), c.size(20), c.size(20))
    scale, zero = c.scales(shape[1]), c.codes(shape[1])
    names = [c.constant("s", scale), c.constant("z", zero)]
    codes = c.node("QuantizeLinear", [c.input("x", c.floats(*shape)), *names], "q", axis=1)
    c.node("DequantizeLinear", [codes, *names], axis=1)
    c.text = f"{shape}"


def quantised(c: Case, name: str, signed: bool, *shape: int) -> list[str]:
    """An input of codes with a constant scale and zero point."""
    kind, low = (np.int8, -128) if signed else (np.uint8, 0)
    codes = (c.codes(*shape).astype(np.int32) + low).astype(kind)
    zero = np.asarray(c.rng.integers(100, 150) + low, kind)
    return [c.input(name, codes), *point(c, name, zero)]


def point(c: Case, name: str, zero: np.ndarray) -> list[str]:
    return [c.constant(f"{name}_scale", c.scales(1)[0]), c.constant(f"{name}_zero", zero)]


def result(c: Case, signed: bool, scale: float) -> list[str]:
    zero = np.asarray(-3 if signed else 125, np.int8 if signed else np.uint8)
    return [c.constant("y_scale", np.float32(scale)), c.constant("y_zero", zero)]


def qlinear_binary(c: Case) -> None:
    signed, op = bool(c.rng.integers(2)), str(c.rng.choice(["QLinearAdd", "QLinearMul"]))
    rows, columns = c.size(9), c.size()
    inputs = quantised(c, "a", signed, 2, rows, columns) + quantised(c, "b", signed, columns)
    c.node(op, inputs + result(c, signed, 0.03), domain=MS)
    c.text = f"{op} {'int8' if signed else 'uint8'} {rows}x{columns}"


def qlinear_unary(c: Case) -> None:
    signed, op = bool(c.rng.integers(2)), str(c.rng.choice(["QLinearSigmoid", "QLinearLeakyRelu", "QLinearSoftmax"]))
    more = {"QLinearSigmoid": {}, "QLinearLeakyRelu": {"alpha": 0.3}, "QLinearSoftmax": {"axis": -1, "opset": 17}}[op]
    inputs = quantised(c, "x", signed, 2, c.size(9), c.size(30)) + result(c, signed, 1 / 128)
    c.node(op, inputs, domain=MS, **more)
    c.text = f"{op} {'int8' if signed else 'uint8'}"


def qlinear_concat(c: Case) -> None:
    rows, parts = c.size(9), [c.size(20) for _ in range(3)]
    inputs = [name for i, n in enumerate(parts) for name in quantised(c, f"x{i}", False, rows, n)]
    c.node("QLinearConcat", result(c, False, 0.02) + inputs, domain=MS, axis=1)
    c.text = f"{rows}x{parts}"


def qgemm(c: Case) -> None:
    m, n, k, wide, turned = c.size(9), c.size(), c.size(), bool(c.rng.integers(2)), int(c.rng.integers(2))
    w = c.rng.integers(-127, 128, (n, k) if turned else (k, n)).astype(np.int8)
    inputs = [*quantised(c, "a", False, m, k), c.constant("w", w), c.constant("w_scale", c.scales(n)),
              c.constant("w_zero", np.zeros(n, np.int8)), c.constant("c", c.rng.integers(-900, 900, n).astype(np.int32))]
    c.node("QGemm", inputs + ([] if wide else result(c, False, 0.5)), domain=MS, transB=turned, alpha=1.0)
    c.text = f"{m}x{k}x{n} {'f32' if wide else 'uint8'} transB {turned}"


def qattention(c: Case) -> None:
    """With a past, as GPT-2 has it, or with a mask, as BERT has it."""
    batch, new, heads, size, past = 2, c.size(6), 2, 8, int(c.rng.integers(0, 5))
    hidden, causal = heads * size, int(c.rng.integers(2))
    w = c.rng.integers(-127, 128, (hidden, 3 * hidden)).astype(np.int8)
    x, scale, zero = quantised(c, "x", False, batch, new, hidden)
    mask = c.input("mask", np.asarray([[1] * (past + new), [0] + [1] * (past + new - 1)][:batch], np.int32)) if past + new > 1 else ""
    inputs = [x, c.constant("w", w), c.constant("bias", c.floats(3 * hidden)), scale, c.constant("w_scale", c.scales(3 * hidden)),
              mask, zero, c.constant("w_zero", np.zeros(3 * hidden, np.int8))]
    if causal:
        inputs.append(c.input("past", c.floats(2, batch, heads, past, size)))
    elif past:
        c.inputs["mask"] = c.inputs["mask"][:, :new]
        c.inputs["mask"][:, -1] = 1
    c.nodes.append(helper.make_node("QAttention", inputs, ["y", "present"] if causal else ["y"], domain=MS, num_heads=heads,
                                    unidirectional=causal))
    c.text = f"{new} after {past if causal else 0} unidirectional {causal}"


def qembed(c: Case) -> None:
    hidden, length = 8 * c.size(5), c.size(9)
    tables = {"word": (30, hidden), "position": (20, hidden), "segment": (2, hidden), "gamma": (hidden,), "beta": (hidden,)}
    codes = [c.constant(n, c.codes(*shape)) for n, shape in tables.items()]
    points = [point(c, n, np.asarray(c.rng.integers(100, 150), np.uint8)) for n in tables]
    inputs = [c.input("ids", c.rng.integers(0, 30, (2, length)).astype(np.int32)),
              c.input("segments", c.rng.integers(0, 2, (2, length)).astype(np.int32)), *codes, "",
              *(scale for scale, _ in points), *(zero for _, zero in points)]
    c.nodes.append(helper.make_node("QEmbedLayerNormalization", inputs, ["y", "index"], domain=MS, epsilon=1e-5))
    c.text = f"{length} tokens of {hidden}"


CASES = [matmul_nbits, dynamic_matmul, integer_to_float, matmul_integer, gather_block, behind_dequantize, there_and_back, qlinear_binary,
         qlinear_unary, qlinear_concat, qgemm, qattention, qembed, matmul_bnb4]


def verify(llmpart: str, case: Case, kept: Path | None) -> str:
    """Empty when all is well. A code of the result may be off by one where the floats before it round differently."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    with tempfile.TemporaryDirectory() as folder:
        folder = kept or Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        path, data = folder / "model.onnx", folder / "test_data_set_0"
        model = onnx.shape_inference.infer_shapes(case.model())
        onnx.save(model, path)
        session = onnxruntime.InferenceSession(str(path), options)
        found = session.run(["y"], case.inputs)
        model.graph.output[0].CopyFrom(helper.make_tensor_value_info("y", TYPES[found[0].dtype],
                                                                     found[0].shape))
        onnx.save(model, path)
        data.mkdir(exist_ok=True)
        for kind, arrays in (("input", case.inputs.values()), ("output", found)):
            for i, array in enumerate(arrays):
                onnx.save_tensor(numpy_helper.from_array(np.ascontiguousarray(array)), data / f"{kind}_{i}.pb")
        step = "1.01" if found[0].dtype.itemsize == 1 else "1e-3"
        done = subprocess.run([llmpart, "verify", str(path), f"--test-data={folder}", f"--atol={step}"], capture_output=True,
                              text=True, check=False)
        return "" if done.returncode == 0 else (done.stdout + done.stderr).strip()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("llmpart")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--only", default="", metavar="NAME", help="the cases with names that begin so")
    parser.add_argument("--write", type=Path, metavar="FOLDER")
    args = parser.parse_args()
    rng, failed = np.random.default_rng(args.seed), 0
    cases = [c for c in CASES if c.__name__.startswith(args.only)]
    for i in range(args.count):
        case = Case(rng)
        build = cases[i % len(cases)]
        build(case)
        why = verify(args.llmpart, case, args.write and args.write / f"{build.__name__}_{i // len(cases)}")
        if why:
            failed += 1
            print(f"{build.__name__} {case.text}: {why}")
    print(f"{args.count - failed} of {args.count} agree with ONNX Runtime {onnxruntime.__version__}")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
