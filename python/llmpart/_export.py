"""ONNX files from Hugging Face folders, by the exporters that are installed."""

from __future__ import annotations

import importlib
import importlib.util
import os
from pathlib import Path
from typing import Any

from ._command import Error


def _by_optimum(folder: Path, out: Path) -> Path:
    exporter: Any = importlib.import_module("optimum.exporters.onnx")
    task = "text-generation-with-past"
    exporter.main_export(str(folder), output=out, task=task, device="cpu", do_validation=False, local_files_only=True)
    return out / "model.onnx"


def _by_torch(folder: Path, out: Path) -> Path:
    """Trace the whole model without a KV cache, which the compiler adds."""
    torch: Any = importlib.import_module("torch")
    transformers: Any = importlib.import_module("transformers")
    model = transformers.AutoModelForCausalLM.from_pretrained(
        folder, torch_dtype=torch.float32, attn_implementation="eager", local_files_only=True
    )

    class Logits(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, input_ids: Any) -> Any:
            return self.model(input_ids=input_ids, use_cache=False).logits

    out.mkdir(parents=True, exist_ok=True)
    torch.onnx.export(
        Logits().eval(),
        (torch.ones((2, 8), dtype=torch.int64),),
        str(out / "model.onnx"),
        input_names=["input_ids"],
        output_names=["logits"],
        dynamic_shapes={"input_ids": {0: "batch", 1: "sequence"}},
        opset_version=18,
        dynamo=True,
        external_data=False,
    )
    for name in ("config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json"):
        if (folder / name).exists():
            (out / name).write_bytes((folder / name).read_bytes())
    return out / "model.onnx"


def export(folder: str | os.PathLike[str], out: str | os.PathLike[str] | None = None) -> Path:
    """Export a Hugging Face model to ONNX and return the path of model.onnx in the folder `out`.

    The compiler reads the folders of common architectures itself: `compile(folder)` needs no export and no other
    package. This is for the other architectures, and for those who want the file. It uses optimum's exporter when that
    is installed, else PyTorch, transformers and onnxscript, and raises Error when none is there. The folder is local:
    nothing is loaded from the network. `out` is FOLDER-onnx unless given.
    """
    source = Path(folder)
    if not (source / "config.json").exists():
        raise Error(f"{source}: no Hugging Face model: config.json is absent")
    target = Path(out) if out is not None else source.with_name(source.name + "-onnx")
    if importlib.util.find_spec("optimum") and importlib.util.find_spec("optimum.exporters.onnx"):
        return _by_optimum(source, target)
    if all(importlib.util.find_spec(name) for name in ("torch", "transformers", "onnxscript")):
        return _by_torch(source, target)
    raise Error(
        "an export needs optimum (pip install optimum[exporters]) or torch, transformers and onnxscript; "
        "llmpart.compile reads the folders of common architectures without them"
    )
