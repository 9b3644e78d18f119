"""Makes seed corpora for the fuzz targets from the models and IR texts of the tests, and a dictionary of their words.

Usage: seeds.py --out DIR [--nodes /usr/share/libonnx-testdata]    (needs the Python packages onnx and gguf)

DIR/onnx: the models of tests/models and of the node tests, weights moved to an absent file, so that seeds are small.
DIR/gguf: a small model of each architecture, with the tokenizers and block types that the reader knows. DIR/huggingface: the
folders of tests/models with one file of weights: config.json, NUL, model.safetensors. The weights of models of both kinds
lie at one place, so that seeds are small. DIR/tokenizer: tokenizer.json, NUL, a chat template, of each kind that the tests
of tokenizers have. DIR/ir: the texts of tests/**/*.mlir. DIR/opt: the same after the pipelines of their RUN lines.
DIR/words.dict: names of operators and attributes from ir/ops.def.
"""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path

import gguf
import numpy as np
import onnx

SOURCE = Path(__file__).resolve().parents[2]
LARGEST = 65536
BLOCKS = ("F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1")


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


def overlap_safetensors(path: Path) -> bytes:
    """As overlap, with a header of the same length."""
    data = path.read_bytes()
    size, largest = int.from_bytes(data[:8], "little"), 0
    header = json.loads(data[8:8 + size])
    for name, tensor in header.items():
        if name != "__metadata__":
            first, last = tensor["data_offsets"]
            tensor["data_offsets"] = [0, last - first]
            largest = max(largest, last - first)
    return data[:8] + json.dumps(header, separators=(",", ":")).ljust(size).encode() + data[8 + size:8 + size + largest]


def huggingface_seeds(out: Path) -> int:
    count = 0
    for path in sorted(SOURCE.glob("tests/models/**/model.safetensors")):
        data = (path.parent / "config.json").read_bytes() + b"\0" + overlap_safetensors(path)
        count += write(out, "-".join(path.parts[-3:-1]), data)
    return count


def tokenizer_seeds(out: Path) -> int:
    """Each tokenizer with a template, and each template with the smallest tokenizer."""
    folder = SOURCE / "tests/runtime"
    kinds, templates = sorted(folder.glob("tokenizer/**/*.json"), key=lambda p: p.stat().st_size), sorted(folder.glob("chat/**/*.jinja"))
    pairs = {(kind, templates[i % len(templates)]) for i, kind in enumerate(kinds)} | {(kinds[0], t) for t in templates}
    return sum(write(out, f"{kind.stem}-{template.stem}", kind.read_bytes() + b"\0" + template.read_bytes())
               for kind, template in sorted(pairs))


def gguf_model(path: Path, architecture: str, tokenizer: str) -> None:
    """A layer of width 32, its weights in the block types in turn."""
    width, vocab, random = 32, 260, np.random.default_rng(1)
    file = gguf.GGUFWriter(path, architecture)
    file.add_context_length(32)
    file.add_embedding_length(width)
    file.add_feed_forward_length(width)
    file.add_block_count(1)
    file.add_head_count(2)
    file.add_head_count_kv(1)
    file.add_layer_norm_rms_eps(1e-5)
    file.add_rope_freq_base(1e4)
    file.add_tokenizer_model(tokenizer)
    file.add_token_list([b"<unk>", b"<s>", b"</s>", *(f"<0x{i:02X}>".encode() for i in range(vocab - 3))])
    file.add_token_types([2, 3, 3, *[6] * (vocab - 3)])
    if tokenizer == "llama":
        file.add_token_scores([0.0] * vocab)
    else:
        file.add_tokenizer_pre("gpt-2")
        file.add_token_merges(["a b", "c d"])
    file.add_bos_token_id(1)
    file.add_eos_token_id(2)
    file.add_chat_template("{{ bos_token }}{% for m in messages %}{{ m.content }}{% endfor %}")
    for name in ("output_norm", "blk.0.attn_norm", "blk.0.ffn_norm"):
        file.add_tensor(f"{name}.weight", np.ones(width, np.float32))
    rows = {"token_embd": vocab, "blk.0.attn_k": width // 2, "blk.0.attn_v": width // 2}
    for i, name in enumerate([*rows, *(f"blk.0.{n}" for n in ("attn_q", "attn_output", "ffn_gate", "ffn_up", "ffn_down"))]):
        kind = gguf.GGMLQuantizationType[BLOCKS[i % len(BLOCKS)]]
        weight = random.standard_normal((rows.get(name, width), width)).astype(np.float32)
        file.add_tensor(f"{name}.weight", gguf.quants.quantize(weight, kind), raw_dtype=kind)
    file.write_header_to_file()
    file.write_kv_data_to_file()
    file.write_tensors_to_file()
    file.close()


def gguf_seeds(out: Path) -> int:
    out.mkdir(parents=True, exist_ok=True)
    names = [(a, t) for a in ("llama", "qwen2", "qwen3", "gemma", "gemma2", "granite", "phi2", "phi3", "gpt2", "olmo", "starcoder2") for t in ("gpt2", "llama")]
    for architecture, tokenizer in names:
        gguf_model(out / f"{architecture}-{tokenizer}", architecture, tokenizer)
    return len(names)


def overlap(path: Path) -> bytes:
    """The file with all weights at one place, which the reader allows."""
    file = gguf.GGUFReader(path, "c")
    for tensor in file.tensors:
        tensor.field.parts[-1][0] = 0
    return file.data[:file.data_offset + max(int(tensor.n_bytes) for tensor in file.tensors)].tobytes()


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
    count += huggingface_seeds(options.out / "huggingface") + gguf_seeds(options.out / "gguf") + tokenizer_seeds(options.out / "tokenizer")
    (options.out / "words.dict").write_text(dictionary())
    count += sum(write(options.out / "gguf", path.name, overlap(path)) for path in sorted(SOURCE.glob("tests/models/gguf/*/*.gguf")))
    print(f"{count} seeds in {options.out}")


if __name__ == "__main__":
    main()
