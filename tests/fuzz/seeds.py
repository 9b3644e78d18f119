"""Makes seed corpora for the fuzz targets from the models and IR texts of the tests, and a dictionary of their words.

Usage: seeds.py --out DIR [--nodes /usr/share/libonnx-testdata]    (needs the Python package onnx)

DIR/onnx: the models of tests/models and of the node tests, weights moved to an absent file, so that seeds are small.
DIR/ir: the texts of tests/**/*.mlir. DIR/opt: the same after the pipelines of their RUN lines. DIR/words.dict: names of
operators and attributes from ir/ops.def.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path

import onnx

SOURCE = Path(__file__).resolve().parents[2]
LARGEST = 65536


def strip(tensor: onnx.TensorProto) -> None:
    """Large data becomes a reference to a file that is not there."""
    if len(tensor.raw_data) <= 64:
        return
    size = len(tensor.raw_data)
    tensor.ClearField("raw_data")
    tensor.data_location = onnx.TensorProto.EXTERNAL
    for key, value in (("location", "weights.bin"), ("length", str(size))):
        tensor.external_data.add(key=key, value=value)


def write(folder: Path, name: str, data: bytes) -> int:
    if not data or len(data) > LARGEST:
        return 0
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(data)
    return 1


def shorten(model: onnx.ModelProto) -> None:
    """Exporters' long names become short ones; those of inputs and outputs say what they are and stay."""
    kept = {value.name for value in [*model.graph.input, *model.graph.output]}
    short: dict[str, str] = {"": ""}

    def name(old: str) -> str:
        return old if old in kept else short.setdefault(old, f"v{len(short)}")

    for node in model.graph.node:
        if any(a.type in (onnx.AttributeProto.GRAPH, onnx.AttributeProto.GRAPHS) for a in node.attribute):
            return  # names inside refer to names outside
    for node in model.graph.node:
        node.ClearField("name")
        node.input[:] = [name(old) for old in node.input]
        node.output[:] = [name(old) for old in node.output]
    for tensor in model.graph.initializer:
        tensor.name = name(tensor.name)


def onnx_seeds(out: Path, nodes: Path) -> int:
    count = 0
    for path in sorted([*SOURCE.glob("tests/models/**/*.onnx"), *SOURCE.glob("examples/*/*.onnx"), *nodes.glob("**/model.onnx")]):
        try:
            model = onnx.load(path, load_external_data=False)
        except Exception:  # the test data holds damaged files on purpose
            continue
        for tensor in model.graph.initializer:
            strip(tensor)
        for node in model.graph.node:
            for attribute in node.attribute:
                strip(attribute.t)
        del model.graph.value_info[:]
        shorten(model)
        name = "-".join(path.parts[-3:])
        count += write(out, name, model.SerializeToString())
    return count


def modules(path: Path) -> tuple[list[str], list[str]]:
    """The pipelines of a test's RUN lines and its modules."""
    text = path.read_text()
    runs = re.findall(r"RUN: .*?llmpart opt .*? -p ('[^']*'|\S+)", text)
    return [run.strip("'") for run in runs] or ["full"], re.split(r"(?m)^// -----.*\n", text)


def ir_seeds(out: Path) -> int:
    count = 0
    for path in sorted(SOURCE.glob("tests/**/*.mlir")):
        pipelines, texts = modules(path)
        for i, text in enumerate(texts):
            name = f"{path.parent.name}-{path.stem}-{i}"
            count += write(out / "ir", name, text.encode())
            for k, pipeline in enumerate(sorted({*pipelines, "full"})):
                count += write(out / "opt", f"{name}-{k}", f"{pipeline}\n{text}".encode())
    return count


def dictionary() -> str:
    words = set(re.findall(r'"([^"]*)"', (SOURCE / "ir/ops.def").read_text()))
    names = {part for word in words for part in [word, *re.findall(r"(\w+)\??:", word)]}
    return "".join(f'"{name}"\n' for name in sorted(names) if re.fullmatch(r"[\w.]{2,40}", name))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--nodes", type=Path, default=Path("/usr/share/libonnx-testdata"))
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    count = onnx_seeds(options.out / "onnx", options.nodes) + ir_seeds(options.out)
    (options.out / "words.dict").write_text(dictionary())
    print(f"{count} seeds in {options.out}")


if __name__ == "__main__":
    main()
