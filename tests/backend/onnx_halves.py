"""Compares the halves that `llmpart compile --emit=onnx` writes with the whole model, all in ONNX Runtime.

Usage: onnx_halves.py MODEL.onnx FOLDER [FOLDER ...]

Each folder holds halves of the model. They run a prompt, then a token, then two tokens; the whole model runs all tokens at
once. Logits must agree within 1e-4, and every model must pass onnx.checker. Exit status 77: a package is missing.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

try:
    import numpy as np
    import onnx
    import onnxruntime as ort
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

STEPS = (6, 1, 2)
TYPES = {"f32": np.float32, "f16": np.float16, "i64": np.int64, "i32": np.int32, "bool": np.bool_}
ORT_TYPES = {"tensor(float)": np.float32, "tensor(float16)": np.float16, "tensor(int64)": np.int64, "tensor(int32)": np.int32,
             "tensor(bool)": np.bool_}


def session(path: Path) -> ort.InferenceSession:
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    return ort.InferenceSession(str(path), options)


def size(dim: object, sizes: dict[str, int]) -> int:
    return int(eval(str(dim).replace("^", "**"), {}, sizes))  # a polynomial that llmpart printed


class Whole:
    """The model as it was exported, run over all tokens at once."""

    def __init__(self, path: Path) -> None:
        self.session = session(path)
        self.random = np.random.default_rng(1)
        self.feed = {i.name: self.fill(i) for i in self.session.get_inputs()}
        self.output = self.session.get_outputs()[0].name
        self.logits = self.session.run([self.output], self.feed)[0]

    def fill(self, i: ort.NodeArg) -> np.ndarray:
        total, dtype = sum(STEPS), ORT_TYPES[i.type]
        past = "past" in i.name
        shape = [d if isinstance(d, int) else 1 if k == 0 else (0 if past else total) for k, d in enumerate(i.shape)]
        if "position" in i.name:
            return np.arange(total, dtype=dtype).reshape(1, -1)
        if "mask" in i.name:
            return np.ones(shape, dtype)
        if "type" in i.name:
            return np.zeros(shape, dtype)
        if np.issubdtype(dtype, np.integer):
            return self.random.integers(3, 200, shape).astype(dtype)
        return self.random.standard_normal(shape).astype(dtype)


class Halves:
    def __init__(self, folder: Path) -> None:
        manifest = json.loads((folder / "manifest.json").read_text())
        self.programs, self.sessions = manifest["programs"], {}
        for part in self.programs["prefill"] + self.programs["decode"]:
            path = folder / part["model"]
            if part["model"] not in self.sessions:
                onnx.checker.check_model(str(path), full_check=True)
                self.sessions[part["model"]] = session(path)
                told = self.sessions[part["model"]].get_modelmeta().custom_metadata_map
                assert told["llmpart.place"] == part["side"] and told["llmpart.model"] == manifest.get("name", "") and int(told["llmpart.turn"]) >= 0, told

    def empty_past(self) -> dict[int, np.ndarray]:
        ports = [i for parts in self.programs.values() for part in parts for i in part["inputs"] if i["role"] == "past"]
        return {i["state"]: np.zeros([size(d, {"b": 1, "p": 0, "s": 0}) for d in i["shape"]], TYPES[i["dtype"]]) for i in ports}

    def step(self, name: str, values: dict[str, np.ndarray], states: dict[int, np.ndarray], sizes: dict[str, int]) -> None:
        """Runs the parts in order; adds what leaves them to `values`."""
        for part in self.programs[name]:
            feed = {}
            for i in part["inputs"]:
                if i["role"] == "past":
                    feed[i["name"]] = states[i["state"]]
                elif i["role"] == "size":
                    feed[i["name"]] = np.array([sizes[i["name"].removeprefix("size.")]], np.int64)
                else:
                    feed[i["name"]] = values[i["name"]]
            found = self.sessions[part["model"]].run([o["name"] for o in part["outputs"]], feed)
            values.update(zip((o["name"] for o in part["outputs"]), found))
        for part in self.programs[name]:
            states.update({o["state"]: values[o["name"]] for o in part["outputs"] if "state" in o})

    def generates(self) -> bool:
        return any(i["role"] == "past" for part in self.programs["decode"] for i in part["inputs"])


def run(halves: Halves, whole: Whole) -> np.ndarray:
    """The logits of all tokens: in steps when there are caches, else in one."""
    past, rows, states = 0, [], halves.empty_past()
    for number, count in enumerate(STEPS if halves.generates() else (sum(STEPS),)):
        sizes = {"b": 1, "s": count, "p": past}
        values = {}
        for name, value in whole.feed.items():
            along_tokens = value.ndim > 1 and value.shape[1] == sum(STEPS) and np.issubdtype(value.dtype, np.integer)
            values[name] = value[:, past:past + count] if along_tokens else value
        halves.step("decode" if number else "prefill", values, states, sizes)
        rows.append(values[whole.output])
        past += count
    return np.concatenate(rows, axis=1)


def main() -> None:
    whole, failed = Whole(Path(sys.argv[1])), False
    for folder in map(Path, sys.argv[2:]):
        halves = Halves(folder)
        parts = [part["model"] for part in halves.programs["decode"]]
        found = run(halves, whole)
        error = float(np.abs(found - whole.logits).max())
        print(f"{folder.name}: {len(parts)} models, error {error:.2g}")
        failed |= not error <= 1e-4 or found.shape != whole.logits.shape
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
