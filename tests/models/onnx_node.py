"""Writes the node tests of the installed onnx package as a suite: onnx_node.py DIR, then llmpart verify --suite=DIR.

Each test becomes DIR/NAME/model.onnx with test_data_set_N/input_N.pb and output_N.pb, as in ONNX's own repository. Needs
Python with onnx (requirements.txt).
"""
import inspect
import pathlib
import sys

import onnx
from onnx import numpy_helper
from onnx.backend.test.case.node import collect_testcases


def to_proto(value, info):
    """The value of a graph's input or output as the message that its type wants."""
    if isinstance(value, onnx.TensorProto):
        value.name = info.name
        return value
    if info.type.HasField("sequence_type"):
        return numpy_helper.from_list(value, info.name)
    if info.type.HasField("optional_type"):
        return numpy_helper.from_optional(value, info.name)
    return numpy_helper.from_array(value, info.name)


def write_values(folder, kind, values, infos):
    """KIND_0.pb, KIND_1.pb, ..."""
    if isinstance(values, dict):
        values = list(values.values())
    for index, value in enumerate(values):
        path = folder / f"{kind}_{index}.pb"
        path.write_bytes(to_proto(value, infos[index]).SerializeToString())


def main(out):
    """Writes every test below `out`."""
    takes_operator = bool(inspect.signature(collect_testcases).parameters)
    cases = collect_testcases(None) if takes_operator else collect_testcases()
    for case in cases:
        folder = out / case.name
        folder.mkdir(parents=True, exist_ok=True)
        onnx.save(case.model, folder / "model.onnx")
        for index, (inputs, outputs) in enumerate(case.data_sets or []):
            data = folder / f"test_data_set_{index}"
            data.mkdir(exist_ok=True)
            write_values(data, "input", inputs, case.model.graph.input)
            write_values(data, "output", outputs, case.model.graph.output)
    print(f"{len(cases)} tests")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(pathlib.Path(sys.argv[1]))
