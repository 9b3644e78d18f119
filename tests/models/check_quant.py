"""Random models of quantised operators: `llmpart verify` against ONNX Runtime's answers.

    python check_quant.py LLMPART [--seed=1] [--count=60]

Each model is one operator, or a weight after DequantizeLinear and its product, with random sizes, types, block sizes
and zero points. Prints what differs; the exit status is 1 if anything does or is refused.
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
         np.dtype(np.int64): TensorProto.INT64}


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


CASES = [matmul_nbits, dynamic_matmul, integer_to_float, matmul_integer, gather_block, behind_dequantize, there_and_back]


def verify(llmpart: str, case: Case) -> str:
    """Empty when all is well."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    with tempfile.TemporaryDirectory() as folder:
        path, data = Path(folder) / "model.onnx", Path(folder) / "test_data_set_0"
        model = onnx.shape_inference.infer_shapes(case.model())
        onnx.save(model, path)
        session = onnxruntime.InferenceSession(str(path), options)
        found = session.run(None, case.inputs)
        model.graph.output[0].CopyFrom(helper.make_tensor_value_info("y", TYPES.get(found[0].dtype, TensorProto.INT32),
                                                                     found[0].shape))
        onnx.save(model, path)
        data.mkdir()
        for kind, arrays in (("input", case.inputs.values()), ("output", found)):
            for i, array in enumerate(arrays):
                onnx.save_tensor(numpy_helper.from_array(np.ascontiguousarray(array)), data / f"{kind}_{i}.pb")
        done = subprocess.run([llmpart, "verify", str(path), f"--test-data={folder}", "--atol=1e-3"], capture_output=True,
                              text=True, check=False)
        return "" if done.returncode == 0 else (done.stdout + done.stderr).strip()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("llmpart")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=60)
    args = parser.parse_args()
    rng, failed = np.random.default_rng(args.seed), 0
    for i in range(args.count):
        case = Case(rng)
        build = CASES[i % len(CASES)]
        build(case)
        why = verify(args.llmpart, case)
        if why:
            failed += 1
            print(f"{build.__name__} {case.text}: {why}")
    print(f"{args.count - failed} of {args.count} agree with ONNX Runtime {onnxruntime.__version__}")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
