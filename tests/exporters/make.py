"""Exports cases and records each model's results in ONNX Runtime.

Usage: make.py FOLDER CASE ...

A case is ARCHITECTURE.EXPORTER.PRECISION. FOLDER/CASE/ gets the exporter's files and, for each ONNX file, FILE.d/ with
test_data_set_N/ (ONNX test data) and expected.json. exported.json says which files there are, or why there are none. Each
case runs in a process of its own, since exporters do not release all they allocate, with a limit of time and memory; what is common, the
import of PyTorch and transformers, is done once before.
"""

from __future__ import annotations

import json
import os
import re
import resource
import shutil
import signal
import sys
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime  # noqa: F401 what every case needs is loaded before the first
import torch
import transformers

import architectures
import steps

SECONDS, MEMORY = 300, 12 << 30
EXPORTERS: dict[str, Callable[[str, str, Path], None]] = {}


def packed(model: onnx.ModelProto, precision: str) -> Any:
    """A quantizer of ONNX Runtime for weights of 4 bits."""
    from onnxruntime.quantization import QuantFormat, matmul_bnb4_quantizer, matmul_nbits_quantizer

    if precision == "bnb4":
        return matmul_bnb4_quantizer.MatMulBnb4Quantizer(model, matmul_bnb4_quantizer.MatMulBnb4Quantizer.NF4, block_size=64)
    if precision == "int4-hqq":
        settings = matmul_nbits_quantizer.HQQWeightOnlyQuantConfig(block_size=32, bits=4)
        return matmul_nbits_quantizer.MatMulNBitsQuantizer(model, algo_config=settings)
    form = QuantFormat.QDQ if precision == "int4-qdq" else QuantFormat.QOperator
    return matmul_nbits_quantizer.MatMulNBitsQuantizer(model, block_size=32, is_symmetric=precision != "int4-asym", quant_format=form)


def quantise(path: Path, precision: str) -> None:
    """In place, as the tools of ONNX Runtime do: int8 with dynamic activations, or packed weights of 4 bits."""
    target = path.with_suffix(".quantised.onnx")
    if precision == "int8":
        from onnxruntime.quantization import QuantType, quantize_dynamic

        quantize_dynamic(path, target, weight_type=QuantType.QInt8, per_channel=True)
    else:
        quantizer = packed(onnx.load(path), precision)
        quantizer.process()
        quantizer.model.save_model_to_file(str(target), False)
    target.replace(path)


def unquantised(case: str, folder: Path) -> Path | None:
    """The folder of the same export in f32, if it was made before: quantisation starts from there."""
    name, exporter, precision = case.split(".")
    base = folder.parent / f"{name}.{exporter}.f32"
    return base if exporter == "optimum" and precision.startswith(("int", "bnb")) and (base / "exported.json").exists() else None


def optimum(name: str, precision: str, folder: Path, past: str = "-with-past") -> None:
    from optimum.exporters.onnx import main_export

    base = unquantised(folder.name, folder)
    if base:
        shutil.copytree(base, folder, ignore=shutil.ignore_patterns("exported.json", "*.d", "*.w"), dirs_exist_ok=True)
        for path in sorted(folder.glob("*.onnx")):
            quantise(path, precision)
        return
    architectures.save(name, str(folder / "source"))
    task = architectures.ARCHITECTURES[name].task
    settings = {"dtype": "fp16"} if precision == "f16" else {"optimize": precision} if precision == "O2" else {}
    main_export(str(folder / "source"), folder, task=task + ("" if task == architectures.MASKED else past), device="cpu",
                do_validation=False, **settings)
    if precision.startswith(("int", "bnb")):
        for path in sorted(folder.glob("*.onnx")):
            quantise(path, precision)


def optimum_nopast(name: str, precision: str, folder: Path) -> None:
    optimum(name, precision, folder, "")


def genai(name: str, precision: str, folder: Path) -> None:
    from onnxruntime_genai.models import builder

    bits, _, provider = precision.partition("-")
    architectures.save(name, str(folder / "source"))
    source, provider = str(folder / "source"), {"": "cpu", "gpu": "cuda"}[provider]
    bits = {"f32": "fp32", "f16": "fp16"}.get(bits, bits)
    where = (source, source, str(folder), bits, provider, str(folder / "cache"))
    builder.create_model(*where, **builder.parse_extra_options(*where, []))


def plain(name: str, precision: str, folder: Path, dynamo: bool) -> None:
    """transformers and torch.onnx.export, with flat tensors instead of a cache object."""
    model = architectures.make(name)
    if hasattr(model, "set_experts_implementation"):
        model.set_experts_implementation("batched_mm")  # of those of transformers 5 the only one that both exporters can write
    if precision == "f16":
        model = model.half()
    if architectures.ARCHITECTURES[name].task != "text-generation":
        raise NotImplementedError("the plain export is of decoders")
    layers, names = model.config.num_hidden_layers, ["input_ids", "attention_mask"]
    with torch.no_grad():
        made = model(torch.ones(1, 3, dtype=torch.long), use_cache=True).past_key_values
    shapes = [tuple(t.shape) for layer in made.layers for t in (layer.keys, layer.values)]
    names += [f"past_key_values.{i}.{kind}" for i in range(layers) for kind in ("key", "value")]

    class Flat(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, ids, mask, *past):
            out = self.model(ids, attention_mask=mask, use_cache=True, past_key_values=transformers.DynamicCache(list(zip(past[::2], past[1::2]))))
            return out.logits, *(t for layer in out.past_key_values.layers for t in (layer.keys, layer.values))

    torch.manual_seed(3)
    values = [torch.randint(3, 99, (2, 3)), torch.ones(2, 8, dtype=torch.long),
              *(torch.randn(2, *s[1:-2], 5, s[-1], dtype=model.dtype) for s in shapes)]
    outputs = ["logits", *(n.replace("past_key_values", "present") for n in names[2:])]
    axes = {n: {0: "batch", 2: "past"} if n.startswith("past") else {0: "batch", 1: "total" if "mask" in n else "new"} for n in names}
    if dynamo:
        every = [{axis: torch.export.Dim.DYNAMIC for axis in axes[n]} for n in names]
        settings = {"dynamo": True, "dynamic_shapes": (every[0], every[1], tuple(every[2:])), "external_data": False}
    else:
        axes |= {n: {0: "batch", 2: "total"} for n in outputs[1:]} | {"logits": {0: "batch", 1: "new"}}
        # The LayerNormalization that opset 17 exports for f16 mixes types.
        settings = {"dynamo": False, "dynamic_axes": axes, "opset_version": 16 if precision == "f16" else 17}
    torch.onnx.export(Flat().eval(), tuple(values), str(folder / "model.onnx"), input_names=names, output_names=outputs, **settings)
    model.config.save_pretrained(folder)


EXPORTERS |= {"optimum": optimum, "optimum-nopast": optimum_nopast, "genai": genai,
              "script": lambda *case: plain(*case, dynamo=False), "dynamo": lambda *case: plain(*case, dynamo=True)}


def first_line(error: Exception) -> str:
    """One line, without paths of this machine and without ONNX Runtime's preamble."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = re.sub(r"^.*Status Message: ", "", lines[0] if lines else "")
    return f"{type(error).__name__}: {re.sub(r'[^ ]*/', '', text)}"[:200]


def export(case: str, folder: Path) -> dict[str, object]:
    name, exporter, precision = case.split(".")
    base = unquantised(case, folder)
    told = json.loads((base / "exported.json").read_text())["export"] if base else "ok"
    if told != "ok":
        return {"export": told}
    try:
        EXPORTERS[exporter](name, precision, folder)
    except Exception as error:  # the exporters do not manage every case; that is a line of the table
        return {"export": first_line(error)}
    finally:
        shutil.rmtree(folder / "source", ignore_errors=True)
        shutil.rmtree(folder / "cache", ignore_errors=True)
    files = {}
    config = json.loads((folder / "config.json").read_text()) if (folder / "config.json").exists() else {}
    for path in sorted(folder.rglob("*.onnx")):
        try:
            files[str(path.relative_to(folder))] = steps.write(path, config or architectures.make(name).config.to_dict())
        except Exception as error:
            files[str(path.relative_to(folder))] = first_line(error)
    return {"export": "ok" if files else "no ONNX file was written", "files": files}


def make(case: str, folder: Path) -> None:
    """In the process of its own."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    signal.setitimer(signal.ITIMER_PROF, SECONDS)  # of this process, whatever else the machine does
    folder.mkdir(parents=True, exist_ok=True)
    found = export(case, folder)
    (folder / "exported.json").write_text(json.dumps(found, indent=1) + "\n")


def main() -> None:
    warnings.filterwarnings("ignore")
    np.seterr(all="ignore")
    torch.set_num_threads(1)
    for case in sys.argv[2:]:
        folder = Path(sys.argv[1]) / case
        child = os.fork()
        if child == 0:
            try:
                make(case, folder)
            except BaseException:
                traceback.print_exc()
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if not (folder / "exported.json").exists():
            ended = "no end in time" if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGPROF else "the exporter crashed"
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "exported.json").write_text(json.dumps({"export": ended}) + "\n")


if __name__ == "__main__":
    main()
