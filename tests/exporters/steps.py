"""Records a model's results in ONNX Runtime: greedy tokens, and ONNX test data of the steps of a generation.

A decoder is asked for a prompt of two sequences, one more token, several more tokens, a prompt with padding on the left, and
greedy tokens of one sequence and of two. Any other model gets one set of inputs. Optimisations of the graph are off, so
that the answers are those of the exporter's own graph. A model with f16 is also recorded as the same graph in f32.
"""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import numpy_helper

TYPES = {"tensor(float)": np.float32, "tensor(float16)": np.float16, "tensor(int64)": np.int64, "tensor(int32)": np.int32,
         "tensor(bool)": np.bool_, "tensor(double)": np.float64}
PROMPT, STEPS, SOURCE = 5, 10, 7
Values = dict[str, np.ndarray]


@contextlib.contextmanager
def float_activations(path: Path) -> Iterator[Path]:
    """A copy of the model in which MatMulNBits may not round activations to int8 (accuracy_level 4), which llmpart never does."""
    model = onnx.load(path, load_external_data=False)
    levels = [a for n in model.graph.node if n.op_type == "MatMulNBits" for a in n.attribute if a.name == "accuracy_level" and a.i]
    if not levels:
        yield path
        return
    for level in levels:
        level.i = 0
    copy = path.with_suffix(".exact")
    onnx.save(model, copy)
    yield copy
    copy.unlink()


def half(model: onnx.ModelProto) -> bool:
    return any(t.data_type == onnx.TensorProto.FLOAT16 for t in model.graph.initializer) or any(
        i.type.tensor_type.elem_type == onnx.TensorProto.FLOAT16 for i in [*model.graph.input, *model.graph.output])


def widen(nodes: Any, graph: Any = None) -> None:
    """f32 in place of f16. The values of constants stay; what is computed is no longer rounded to f16."""
    f16, f32 = onnx.TensorProto.FLOAT16, onnx.TensorProto.FLOAT
    tensors = list(graph.initializer) if graph else []
    if graph:
        del graph.value_info[:]
        for info in [*graph.input, *graph.output]:
            if info.type.tensor_type.elem_type == f16:
                info.type.tensor_type.elem_type = f32
    for attribute in (a for node in nodes for a in node.attribute):
        if attribute.name in ("to", "dtype") and attribute.i == f16:
            attribute.i = f32
        tensors += [attribute.t] if attribute.HasField("t") else []
        for inner in ([attribute.g] if attribute.HasField("g") else []) + list(attribute.graphs):
            widen(inner.node, inner)
    for tensor in tensors:
        if tensor.data_type == f16:
            tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor).astype(np.float32), tensor.name))


@contextlib.contextmanager
def widened(path: Path) -> Iterator[Path | None]:
    """A copy of a model with f16 in which all of it is f32; None for other models."""
    model = onnx.load(path)
    if not half(model):
        yield None
        return
    widen(model.graph.node, model.graph)
    for function in model.functions:
        widen(function.node)
    copy = path.with_suffix(".wide")
    onnx.save(model, copy)
    yield copy
    copy.unlink()


def windows(nodes: Any) -> dict[str, int]:
    """The caches that keep only a window, and its size."""
    sizes = {}
    for node in nodes:
        values = {a.name: a.i for a in node.attribute}
        if node.op_type == "GroupQueryAttention" and values.get("sliding_window_cache"):
            sizes |= dict.fromkeys(node.input[3:5], values["local_window_size"])
    return sizes


class Decoder:
    """A model's session, and how the names and sizes of its inputs follow the protocol of a generation."""

    def __init__(self, path: Path, config: dict[str, Any], level: Any = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL):
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = level
        options.log_severity_level, options.intra_op_num_threads = 4, 1
        with float_activations(path) as exact:
            self.session = onnxruntime.InferenceSession(str(exact), options, providers=["CPUExecutionProvider"])
        self.inputs = {i.name: i for i in self.session.get_inputs()}
        self.outputs = [o.name for o in self.session.get_outputs()]
        self.states = [name for name in self.inputs if name.startswith("past")]
        self.config = config.get("text_config", config)
        self.rng = np.random.default_rng(5)
        nodes = onnx.load(path, load_external_data=False).graph.node
        self.packs = any(node.op_type == "GroupQueryAttention" for node in nodes)  # it takes a mask for lengths: padding on the right
        self.windows = windows(nodes)

    @property
    def crosses(self) -> bool:
        return "encoder_hidden_states" in self.inputs or any("encoder" in n or "cross" in n for n in self.states)

    @property
    def generates(self) -> bool:
        return "input_ids" in self.inputs and "logits" in self.outputs and not self.crosses and "token_type_ids" not in self.inputs

    def encodes(self) -> bool:
        """Does the first position see a later one? Such a model has logits, but no token continues a sequence."""
        ids = np.arange(3, 3 + PROMPT)[None]
        changed = ids + (np.arange(PROMPT) == PROMPT - 1)
        first, second = (self.run(self.feeds(row, np.ones_like(row), {}))["logits"] for row in (ids, changed))
        return first.ndim == 3 and first.shape[1] == PROMPT and not np.array_equal(first[:, 0], second[:, 0])

    def size(self, *names: str) -> int:
        return next(self.config[n] for n in names if self.config.get(n))

    def kind(self, name: str) -> type:
        return TYPES[self.inputs[name].type]

    def state(self, name: str, batch: int, past: int) -> np.ndarray:
        """Zeros of a cache's shape. A size that is a name is the batch, the past, or in last place the size of a head."""
        shape = list(self.inputs[name].shape)
        sizes = [n if isinstance(n, int) else None for n in shape]
        sizes[0] = sizes[0] or batch
        if sizes[-1] is None:
            heads = self.size("num_attention_heads", "n_head", "n_heads", "num_heads")
            sizes[-1] = self.config.get("head_dim") or self.size("hidden_size", "n_embd", "d_model") // heads
        length = self.windows.get(name, SOURCE if "encoder" in name or "cross" in name else past)
        return np.zeros([length if n is None else n for n in sizes], self.kind(name))

    def feeds(self, ids: np.ndarray, mask: np.ndarray, states: Values) -> Values:
        """`ids` is [batch][new], `mask` [batch][past and new]."""
        batch, new = ids.shape
        positions = np.maximum(np.cumsum(mask, axis=1) - 1, 0)[:, -new:]
        total = mask.shape[1]
        every = {"input_ids": ids, "attention_mask": mask, "position_ids": positions, "cache_position": np.arange(total - new, total),
                 "use_cache_branch": np.array([total > new]), "token_type_ids": np.zeros_like(ids)}
        values = {n: every[n] for n in self.inputs if n in every}
        for name in self.inputs:
            if name in self.states:
                values[name] = states[name] if states else self.state(name, batch, 0)
            elif name not in every:
                values[name] = self.other(name, batch, new)
        return {n: values[n].astype(self.kind(n)) for n in self.inputs}

    def other(self, name: str, batch: int, new: int) -> np.ndarray:
        """An input that no rule of a generation gives: random values of its shape."""
        shape = self.inputs[name].shape
        known = {"encoder_hidden_states": (batch, SOURCE, self.config.get("d_model", 64)), "encoder_attention_mask": (batch, SOURCE),
                 "decoder_input_ids": (batch, new), "decoder_attention_mask": (batch, new)}
        sizes = known.get(name) or [n if isinstance(n, int) else batch if i == 0 else new for i, n in enumerate(shape)]
        if name == "input_features":
            sizes = (batch, self.config["num_mel_bins"], 2 * self.config["max_source_positions"])
        if name.endswith("mask"):
            return np.ones(sizes)
        if self.kind(name) in (np.int64, np.int32):
            return self.rng.integers(3, 99, sizes)
        return self.rng.standard_normal(sizes)

    def run(self, feeds: Values) -> Values:
        return dict(zip(self.outputs, self.session.run(None, feeds)))

    def next_states(self, out: Values) -> Values:
        """The outputs that continue the inputs."""
        return {n: out[self.present(n)] for n in self.states}

    def clear(self, out: Values, total: int) -> None:
        """Zeroes the rows of a window's cache after those of the sequence, which mean nothing."""
        for name in self.windows:
            out[self.present(name)][:, :, total:] = 0

    def present(self, name: str) -> str:
        forms = (name.replace("past_key_values", "present"), name.replace("past", "present"), name.replace("past", "present_key_values"))
        return next(form for form in forms if form in self.outputs)

    def greedy(self, prompt: np.ndarray, steps: int) -> tuple[np.ndarray, np.ndarray, float]:
        """Tokens [batch][steps], how far the best logit was above the second each time, and the greatest logit."""
        ids, mask, states = prompt, np.ones_like(prompt), {}
        tokens, margins, greatest = [], [], 0.0
        for _ in range(steps):
            out = self.run(self.feeds(ids, mask, states))
            logits = out["logits"].astype(np.float64)
            logits = logits[:, -1] if logits.ndim == 3 else logits
            second = np.sort(logits, axis=-1)[:, -2:]
            tokens.append(logits.argmax(-1))
            margins.append(second[:, 1] - second[:, 0])
            greatest = max(greatest, float(np.abs(logits).max()))
            mask = np.concatenate([mask, np.ones_like(mask[:, :1])], axis=1)
            if self.states:
                ids, states = tokens[-1][:, None], self.next_states(out)
            else:
                ids = np.concatenate([ids, tokens[-1][:, None]], axis=1)
        return np.stack(tokens, 1), np.stack(margins, 1), greatest


def write_set(folder: Path, feeds: Values, out: Values) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for kind, values in (("input", feeds), ("output", out)):
        for i, (name, array) in enumerate(values.items()):
            onnx.save_tensor(numpy_helper.from_array(np.ascontiguousarray(array), name), folder / f"{kind}_{i}.pb")


def decoder_sets(decoder: Decoder) -> dict[str, tuple[Values, Values]]:
    """Of two sequences; of one where ONNX Runtime takes several tokens after a past only so, and no such set where not even that."""
    rng = np.random.default_rng(3)

    def step(new: int, mask: np.ndarray, states: Values) -> tuple[Values, Values]:
        feeds = decoder.feeds(rng.integers(3, 99, (len(mask), new)), mask, states)
        out = decoder.run(feeds)
        decoder.clear(out, mask.shape[1])
        return feeds, out

    sets = {"prompt": step(PROMPT, np.ones((2, PROMPT), np.int64), {})}
    if decoder.states:
        sets["decode"] = step(1, np.ones((2, PROMPT + 1), np.int64), decoder.next_states(sets["prompt"][1]))
        states = decoder.next_states(sets["decode"][1])
        for batch in (2, 1):
            try:
                sets["several"] = step(3, np.ones((batch, PROMPT + 4), np.int64), {n: v[:batch] for n, v in states.items()})
                break
            except Exception:  # an operator's limit in ONNX Runtime
                continue
    if "attention_mask" in decoder.inputs and not decoder.packs:
        mask = np.ones((2, PROMPT), np.int64)
        mask[0, :2] = 0
        sets["padded"] = step(PROMPT, mask, {})
    return sets


def other_sets(decoder: Decoder) -> dict[str, tuple[Values, Values]]:
    rng = np.random.default_rng(3)
    past = PROMPT if decoder.states else 0
    if "use_cache_branch" in decoder.inputs or not decoder.states:
        past = 0
    states = {n: rng.standard_normal(decoder.state(n, 2, past).shape) for n in decoder.states} if past else {}
    new = 1 if past else PROMPT
    feeds = decoder.feeds(rng.integers(3, 99, (2, new)), np.ones((2, past + new), np.int64), states)
    return {"step": (feeds, decoder.run(feeds))}


def write_widened(path: Path, config: dict[str, Any], sets: dict[str, tuple[Values, Values]]) -> None:
    """FILE.w/ beside the model: the same inputs, and the outputs of the graph in f32, rounded at the end. Nothing for a model that
    ONNX Runtime does not run so."""
    with widened(path) as copy:
        if not copy:
            return
        try:
            decoder = Decoder(copy, config)
            for i, (feeds, out) in enumerate(sets.values()):
                made = decoder.run({n: v.astype(decoder.kind(n)) for n, v in feeds.items()})
                if "attention_mask" in feeds:
                    decoder.clear(made, feeds["attention_mask"].shape[1])
                write_set(path.with_suffix(".w") / f"test_data_set_{i}", feeds, {n: v.astype(out[n].dtype) for n, v in made.items()})
        except Exception:  # an operator that has no implementation in f32
            shutil.rmtree(path.with_suffix(".w"), ignore_errors=True)


def own_difference(path: Path, config: dict[str, Any], sets: dict[str, tuple[Values, Values]]) -> float:
    """By how much ONNX Runtime's results change with its optimisations, as a share of the greatest value, in a model that rounds
    activations to integers; 0 for others. A sum in another order may round to another step, and the next layer amplifies it."""
    if not any(n.op_type in ("DynamicQuantizeLinear", "QuantizeLinear") for n in onnx.load(path, load_external_data=False).graph.node):
        return 0.0
    levels, share = onnxruntime.GraphOptimizationLevel, 0.0
    for level in (levels.ORT_ENABLE_BASIC, levels.ORT_ENABLE_ALL):
        decoder = Decoder(path, config, level)
        for feeds, out in sets.values():
            made = decoder.run(feeds)
            scale = max(1.0, *(float(np.abs(v).max(initial=0)) for v in out.values()))
            share = max(share, *(float(np.abs(made[n] - v).max(initial=0)) / scale for n, v in out.items()))
    return share


def write(path: Path, config: dict[str, Any]) -> str:
    """FILE.d/ beside the model. Returns "ok", or why ONNX Runtime does not run the model."""
    decoder = Decoder(path, config)
    folder = path.with_suffix(".d")
    generates = decoder.generates and not decoder.encodes()
    sets = decoder_sets(decoder) if generates else other_sets(decoder)
    for i, (feeds, out) in enumerate(sets.values()):
        write_set(folder / f"test_data_set_{i}", feeds, out)
    write_widened(path, config, sets)
    expected: dict[str, Any] = {"sets": list(sets), "scale": [float(max(np.abs(v.astype(np.float64)).max(initial=0)
                                                                    for v in out.values())) for _, out in sets.values()]}
    expected["own"] = own_difference(path, config, sets)
    if not all(np.isfinite(v).all() for _, out in list(sets.values())[:3] for v in out.values()):
        return "ONNX Runtime's results are not finite"
    if generates:
        prompts = np.random.default_rng(7).integers(3, 99, (2, PROMPT + 1))
        expected["runs"] = []
        for rows in (prompts[:1], prompts):
            tokens, margins, greatest = decoder.greedy(rows, STEPS)
            expected["runs"].append({"prompt": rows.tolist(), "tokens": tokens.tolist(), "margins": margins.round(6).tolist(),
                                     "greatest": greatest})
    (folder / "expected.json").write_text(json.dumps(expected) + "\n")
    return "ok"


