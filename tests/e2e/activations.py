"""Checks what `llmpart calibrate --activations` measured by ONNX Runtime: activations.py MODEL.onnx DOCUMENTS.jsonl FILE.

Each matrix that a MatMul of the graph reads as its second operand gets its first operand as a further output. Prints the
number of weights compared, and fails when one differs or is absent.
"""

import json
import sys

import numpy as np
import onnx
import onnxruntime as ort


def zeros_for(entry: ort.NodeArg, ids: np.ndarray) -> np.ndarray:
    """An empty cache, or the inputs of the generation protocol at position 0."""
    count = ids.shape[1]
    known = {"input_ids": ids, "attention_mask": np.ones((1, count), np.int64),
             "position_ids": np.arange(count, dtype=np.int64)[None]}
    if entry.name in known:
        return known[entry.name]
    return np.zeros([d if isinstance(d, int) else (1 if i == 0 else 0) for i, d in enumerate(entry.shape)], np.float32)


def main() -> int:
    model = onnx.load(sys.argv[1])
    matrices = {i.name for i in model.graph.initializer if len(i.dims) == 2}
    products = [(n.input[1], n.input[0]) for n in model.graph.node if n.op_type == "MatMul" and n.input[1] in matrices]
    for name in sorted({operand for _, operand in products}):
        model.graph.output.append(onnx.helper.make_empty_tensor_value_info(name))
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    sums: dict[str, np.ndarray] = {}
    rows = 0
    for line in open(sys.argv[2]):
        ids = np.array([json.loads(line)], np.int64)
        results = session.run(sorted({operand for _, operand in products}),
                              {entry.name: zeros_for(entry, ids) for entry in session.get_inputs()})
        rows += ids.shape[1]
        for name, value in zip(sorted({operand for _, operand in products}), results):
            sums[name] = sums.get(name, 0) + (value.astype(np.float64) ** 2).reshape(-1, value.shape[-1]).sum(0)
    found = {w["name"]: np.array(w["mean_squares"]) for w in json.load(open(sys.argv[3]))["weights"]}
    wrong = [weight for weight, operand in products
             if weight not in found or not np.allclose(found[weight], sums[operand] / rows, rtol=1e-3, atol=1e-7)]
    print(len(products) - len(wrong))
    for weight in wrong:
        print(f"{weight}: {'differs' if weight in found else 'is absent'}", file=sys.stderr)
    return 1 if wrong or not products else 0


if __name__ == "__main__":
    sys.exit(main())
