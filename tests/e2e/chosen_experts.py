"""Compares what `llmpart calibrate --experts` counted with ONNX Runtime: chosen_experts.py MODEL.onnx DOCUMENTS.jsonl FILE.

The scores that each MoE reads become outputs of the graph, and numpy takes the k greatest of each token.
"""

import json
import sys

import numpy as np
import onnx
import onnxruntime as ort

from activations import zeros_for


def main() -> int:
    model = onnx.load(sys.argv[1])
    mixtures = [n for n in model.graph.node if n.op_type == "MoE"]
    scores = [n.input[1] for n in mixtures]
    chosen = [next(a.i for a in n.attribute if a.name == "k") for n in mixtures]
    for name in scores:
        model.graph.output.append(onnx.helper.make_empty_tensor_value_info(name))
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    counts: list[np.ndarray] = [np.zeros(1)] * len(mixtures)
    tokens = 0
    for line in open(sys.argv[2]):
        ids = np.array([json.loads(line)], np.int64)
        results = session.run(scores, {entry.name: zeros_for(entry, ids) for entry in session.get_inputs()})
        tokens += ids.shape[1]
        for i, (value, k) in enumerate(zip(results, chosen)):
            best = np.argsort(-value, axis=-1, kind="stable")[..., :k]
            counts[i] = counts[i] + np.bincount(best.ravel(), minlength=value.shape[-1])
    found = [w["chosen"] for w in json.load(open(sys.argv[3]))["weights"]]
    wanted = [list(count / tokens) for count in counts for _ in range(2)]  # the first and the second product of a layer
    if len(found) != len(wanted) or not mixtures or not np.allclose(found, wanted, rtol=1e-5):
        print(f"found {found}\nwanted {wanted}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
