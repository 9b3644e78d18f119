"""Writes inputs of a merged decoder's branch without a past, and ONNX Runtime's outputs, beside the model of forms.py.

    python tests/models/dummy_past.py

As in optimum's generation code, the past is a dummy of one token.
"""

import numpy as np
import onnx
import onnxruntime
from forms import FORMS, HEAD, HEADS, Path, numpy_helper, ones


def main() -> None:
    folder = Path(__file__).parent / "forms" / "merged"
    model = FORMS["merged"]()
    feeds = {"input_ids": np.array([[3, 1, 4, 1, 5]]), **ones(0, 5), "use_cache_branch": np.array([False])}
    feeds |= {n: np.zeros((1, HEADS, 1, HEAD), np.float32) for n in model.inputs if n.startswith("past")}
    session = onnxruntime.InferenceSession(str(folder / "model.onnx"), providers=["CPUExecutionProvider"])
    data = folder / "test_data_set_0"
    data.mkdir(exist_ok=True)
    for i, name in enumerate(model.inputs):
        onnx.save_tensor(numpy_helper.from_array(feeds[name], name), data / f"input_{i}.pb")
    for i, (name, array) in enumerate(zip(model.outputs, session.run(list(model.outputs), feeds))):
        onnx.save_tensor(numpy_helper.from_array(array, name), data / f"output_{i}.pb")


if __name__ == "__main__":
    main()
