"""Writes one small decoder in the forms in which exporters wrap the generation protocol.

Usage: forms.py [NAME ...]      all forms, or those named, into forms/NAME beside this file

Forms with two layers of plain attention compute the same logits: they have the same weights and differ in masks, caches, sizes
and control flow. Stacked caches have three layers; buffers belong to GroupQueryAttention, or the graph writes their rows. Each
folder gets model.onnx and tokens.json: ONNX Runtime's greedy tokens, fed as the form's users feed it; those with the last logits only
also a padded prompt (test_data_set_0). Needs requirements.txt.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

VOCAB, WIDTH, HEADS, LAYERS, PLACES = 40, 24, 2, 2, 64
HEAD = WIDTH // HEADS
LOWEST = float(np.finfo(np.float32).min)
PROMPTS, STEPS = ([7], [3, 1, 4, 1, 5], [2, 7, 1, 8, 2, 8, 1, 8, 2, 8, 4], [30, 12, 25, 6, 33]), 12


@dataclass
class Graph:
    """Nodes and initializers under construction; `op` returns the name of a node's first result."""

    prefix: str = ""
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    constants: dict[str, np.ndarray] = field(default_factory=dict)

    def op(self, kind: str, *inputs: str | np.ndarray | list | float, out: str = "", **attributes) -> str:
        names = [i if isinstance(i, str) else self.constant(np.asarray(i)) for i in inputs]
        out = out or f"{self.prefix}{kind}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, names, [out], name=f"/{out}", **attributes))
        return out

    def constant(self, array: np.ndarray) -> str:
        if array.dtype == np.float64:
            array = array.astype(np.float32)
        name = f"{self.prefix}c{len(self.constants)}"
        self.constants[name] = array
        return name

    def weight(self, name: str, *shape: int) -> str:
        seed = sum(ord(c) * (i + 1) for i, c in enumerate(name))
        self.constants[name] = np.random.default_rng(seed).normal(0, 0.35, shape).astype(np.float32)
        return name

    def initializers(self) -> list[onnx.TensorProto]:
        return [numpy_helper.from_array(array, name) for name, array in self.constants.items()]

    def size(self, value: str, axis: int) -> str:
        return self.op("Shape", value, start=axis, end=axis + 1)


def plain_mlp(g: Graph, x: str, layer: int) -> str:
    inner = g.op("Relu", g.op("MatMul", x, g.weight(f"{layer}.up", WIDTH, 2 * WIDTH)))
    return g.op("MatMul", inner, g.weight(f"{layer}.down", 2 * WIDTH, WIDTH))


def plain_head(g: Graph, x: str) -> str:
    return g.op("MatMul", x, g.weight("head", WIDTH, VOCAB), out=g.prefix + "logits")


def plain_embedding(g: Graph) -> str:
    return g.op("Gather", g.weight("embedding", VOCAB, WIDTH), "input_ids")


@dataclass
class Parts:
    """What forms replace: the additive mask of a step, and how a layer's keys or values join their past."""

    mask: Callable[[Graph], str]
    append: Callable[[Graph, int, str, str], tuple[str, str]]  # (layer, "key", new [b,h,s,d]) -> all of them, the present
    turn: Callable[[Graph, str], str] = lambda g, x: x  # rotary positions of queries and keys
    head: Callable[[Graph, str], str] = plain_head  # hidden states -> "logits"
    mlp: Callable[[Graph, str, int], str] = plain_mlp
    weigh: Callable[[Graph, str, int], str] = lambda g, scores, layer: g.op("Softmax", scores, axis=-1)
    layers: int = LAYERS
    embed: Callable[[Graph], str] = plain_embedding  # -> [b,s,WIDTH]


def attention(g: Graph, x: str, layer: int, mask: str, parts: Parts) -> tuple[str, list[str]]:
    heads = {}
    for part in ("query", "key", "value"):
        wide = g.op("MatMul", x, g.weight(f"{layer}.{part}", WIDTH, WIDTH))
        heads[part] = g.op("Transpose", g.op("Reshape", wide, [0, 0, HEADS, HEAD]), perm=[0, 2, 1, 3])
    heads |= {part: parts.turn(g, heads[part]) for part in ("query", "key")}
    keys, present_key = parts.append(g, layer, "key", heads["key"])
    values, present_value = parts.append(g, layer, "value", heads["value"])
    scores = g.op("MatMul", heads["query"], g.op("Transpose", keys, perm=[0, 1, 3, 2]))
    scores = g.op("Add", g.op("Mul", scores, np.float32(HEAD**-0.5)), mask)
    rows = g.op("Transpose", g.op("MatMul", parts.weigh(g, scores, layer), values), perm=[0, 2, 1, 3])
    out = g.op("MatMul", g.op("Reshape", rows, [0, 0, WIDTH]), g.weight(f"{layer}.out", WIDTH, WIDTH))
    return out, [present_key, present_value]


def decoder(g: Graph, parts: Parts, absolute: bool = True) -> list[str]:
    """Logits and presents."""
    def norm(x: str, name: str) -> str:
        return g.op("LayerNormalization", x, g.weight(f"{name}.gain", WIDTH), g.weight(f"{name}.bias", WIDTH), axis=-1)

    x = parts.embed(g)
    if absolute:
        x = g.op("Add", x, g.op("Gather", g.weight("places", PLACES, WIDTH), "position_ids"))
    mask, presents = parts.mask(g), []
    for layer in range(parts.layers):
        attended, both = attention(g, norm(x, f"{layer}.before"), layer, mask, parts)
        x = g.op("Add", x, attended)
        x = g.op("Add", x, parts.mlp(g, norm(x, f"{layer}.middle"), layer))
        presents += both
    return [parts.head(g, norm(x, "last")), *presents]


# ---- masks ---------------------------------------------------------------------------------------------------------


def visible(g: Graph) -> str:
    """[s, p + s] of bools, from the positions and the length of the 2-D mask."""
    keys = g.op("Range", np.int64(0), g.op("Squeeze", g.size("attention_mask", 1), [0]), np.int64(1))
    return g.op("LessOrEqual", keys, g.op("Unsqueeze", g.op("Gather", "position_ids", np.int64(0)), [1]))


def added(g: Graph, shown: str) -> str:
    return g.op("Where", shown, np.float32(0), np.float32(LOWEST))


def own_mask(g: Graph) -> str:
    """The mask that the model makes of a 2-D attention_mask."""
    padding = g.op("Cast", g.op("Unsqueeze", "attention_mask", [1, 2]), to=TensorProto.BOOL)
    return added(g, g.op("And", visible(g), padding))


def padding_mask(g: Graph) -> str:
    """The mask of a graph that was traced with one new token: it hides padding and no later tokens."""
    return added(g, g.op("Cast", g.op("Unsqueeze", "attention_mask", [1, 2]), to=TensorProto.BOOL))


# ---- caches --------------------------------------------------------------------------------------------------------


def past_name(layer: int, part: str) -> str:
    return f"past_key_values.{layer}.{part}"


def usual(g: Graph, layer: int, part: str, new: str) -> tuple[str, str]:
    joined = g.op("Concat", past_name(layer, part), new, axis=2, out=f"present.{layer}.{part}")
    return joined, joined


def tokens_first(g: Graph, layer: int, part: str, new: str) -> tuple[str, str]:
    """[b, s, h, d]"""
    rows = g.op("Transpose", new, perm=[0, 2, 1, 3])
    joined = g.op("Concat", past_name(layer, part), rows, axis=1, out=f"present.{layer}.{part}")
    return g.op("Transpose", joined, perm=[0, 2, 1, 3]), joined


def keys_transposed(g: Graph, layer: int, part: str, new: str) -> tuple[str, str]:
    """Keys [b, h, d, s], as their product with queries wants them."""
    if part == "value":
        return usual(g, layer, part, new)
    columns = g.op("Transpose", new, perm=[0, 1, 3, 2])
    joined = g.op("Concat", past_name(layer, part), columns, axis=-1, out=f"present.{layer}.{part}")
    return g.op("Transpose", joined, perm=[0, 1, 3, 2]), joined


# ---- sinks ---------------------------------------------------------------------------------------------------------


def weights_with_sinks(g: Graph, scores: str, layer: int) -> str:
    """transformers' gpt-oss: a logit of each head joins the softmax, and its weight is dropped."""
    sizes = g.op("Concat", g.size("input_ids", 0), [1], g.size("input_ids", 1), [1], axis=0)
    sinks = g.op("Expand", g.op("Reshape", g.weight(f"{layer}.sinks", HEADS), [1, HEADS, 1, 1]), sizes)
    both = g.op("Concat", scores, sinks, axis=-1)
    weights = g.op("Softmax", g.op("Sub", both, g.op("ReduceMax", both, axes=[-1], keepdims=1)), axis=-1)
    return g.op("Slice", weights, [0], [-1], [3])


# ---- models --------------------------------------------------------------------------------------------------------

Shape = list[int | str | None]


@dataclass
class Model:
    """A form: its inputs and outputs, and what feeds it."""

    inputs: dict[str, tuple[int, Shape]]
    outputs: dict[str, tuple[int, Shape]]
    nodes: list[onnx.NodeProto]
    initializers: list[onnx.TensorProto]
    feed: Callable[[int, int], dict[str, np.ndarray]]  # (past, new) -> what is neither tokens nor a cache
    judge: Model | None = None  # answers instead, where ONNX Runtime takes only the sizes or inputs that the file states
    beside: dict[str, Model] = field(default_factory=dict)  # other files of the model

    def save(self, path: Path) -> None:
        info = lambda entry: [helper.make_tensor_value_info(name, *kind) for name, kind in entry.items()]
        graph = helper.make_graph(self.nodes, "main_graph", info(self.inputs), info(self.outputs), self.initializers)
        path.parent.mkdir(parents=True, exist_ok=True)
        for name, model in self.beside.items():
            model.save(path.with_name(name))
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)], ir_version=8), path)


IDS, FLOATS, BOOLS = TensorProto.INT64, TensorProto.FLOAT, TensorProto.BOOL
CACHE: Shape = ["batch", HEADS, "past", HEAD]
GROWN: Shape = ["batch", HEADS, "total", HEAD]


def protocol(mask: tuple[int, Shape] | None, cache: Shape = CACHE, grown: Shape = GROWN) -> tuple[dict, dict]:
    inputs = {"input_ids": (IDS, ["batch", "new"])} | ({"attention_mask": mask} if mask else {})
    inputs["position_ids"] = (IDS, ["batch", "new"])
    names = [past_name(layer, part) for layer in range(LAYERS) for part in ("key", "value")]
    inputs |= {name: (FLOATS, cache) for name in names}
    outputs = {"logits": (FLOATS, ["batch", "new", VOCAB])}
    return inputs, outputs | {name.replace("past_key_values", "present"): (FLOATS, grown) for name in names}


def positions(past: int, new: int) -> dict[str, np.ndarray]:
    return {"position_ids": np.arange(past, past + new)[None]}


def ones(past: int, new: int) -> dict[str, np.ndarray]:
    return positions(past, new) | {"attention_mask": np.ones((1, past + new), np.int64)}


def sinks() -> Model:
    g = Graph()
    decoder(g, Parts(own_mask, usual, weigh=weights_with_sinks))
    inputs, outputs = protocol((IDS, ["batch", "total"]))
    return Model(inputs, outputs, g.nodes, g.initializers(), ones)


def merged(later: Callable[[Graph], str] = own_mask) -> Model:
    """optimum's merged decoder: both branches name their results as the If does, and share the weights. `later` is the mask
    of the branch with a past."""
    inputs, outputs = protocol((IDS, ["batch", "total"]))
    main, branches = Graph(), []
    for name in ("with_past", "no_past"):
        g = Graph()
        if name == "no_past":
            first = lambda g, layer, part, new: (new, g.op("Identity", new, out=f"present.{layer}.{part}"))
            results = decoder(g, Parts(own_mask, first))
        else:
            results = decoder(g, Parts(later, usual))
        main.constants |= {k: v for k, v in g.constants.items() if "." in k or k in ("embedding", "places", "head")}
        own = [numpy_helper.from_array(v, k) for k, v in g.constants.items() if k not in main.constants]
        infos = [helper.make_tensor_value_info(n, *outputs[n]) for n in results]
        branches.append(helper.make_graph(g.nodes, name, [], infos, own))
    main.nodes.append(helper.make_node("If", ["use_cache_branch"], list(outputs), name="optimum::if", then_branch=branches[0],
                                       else_branch=branches[1]))
    inputs["use_cache_branch"] = (BOOLS, [1])
    feed = lambda past, new: ones(past, new) | {"use_cache_branch": np.array([past > 0])}
    return Model(inputs, outputs, main.nodes, main.initializers(), feed)


def merged_one_token() -> Model:
    """The legacy form: the branch with a past is right for one new token only."""
    return merged(padding_mask)


def embeds() -> Model:
    """A decoder that takes the rows of its embedding, which is another file, as transformers.js splits models of images."""
    g, table = Graph(), Graph()
    decoder(g, Parts(own_mask, usual, embed=lambda g: "inputs_embeds"))
    inputs, outputs = protocol((IDS, ["batch", "total"]))
    ids, rows = {"input_ids": inputs.pop("input_ids")}, {"inputs_embeds": (FLOATS, ["batch", "new", WIDTH])}
    table.nodes.append(helper.make_node("Identity", [plain_embedding(table)], ["inputs_embeds"]))
    embedding = Model(ids, rows, table.nodes, table.initializers(), ones)
    return Model(rows | inputs, outputs, g.nodes, g.initializers(), ones, judge=single(own_mask, (IDS, ["batch", "total"]), ones),
                 beside={"embed_tokens.onnx": embedding})


def single(mask: Callable[[Graph], str], kind: tuple[int, Shape], feed: Callable, append: Callable = usual) -> Model:
    g = Graph()
    decoder(g, Parts(mask, append))
    inputs, outputs = protocol(kind)
    return Model(inputs, outputs, g.nodes, g.initializers(), feed)


def seen(past: int, new: int) -> np.ndarray:
    return np.arange(past + new) <= np.arange(past, past + new)[:, None]


def with_sizes(sizes: dict[str, int], judge: Model | None) -> Model:
    model = single(own_mask, (IDS, ["batch", "total"]), ones)
    fix = lambda entry: {name: (kind, [sizes.get(d, d) for d in shape]) for name, (kind, shape) in entry.items()}
    return Model(fix(model.inputs), model.outputs, model.nodes, model.initializers, ones, judge)


def sizes_open() -> Model:
    """Open sizes written as -1."""
    return with_sizes({"batch": -1, "new": -1, "past": -1, "total": -1}, with_sizes({}, None))


def sizes_fixed() -> Model:
    """What onnxruntime's make_dynamic_shape_fixed makes: the inputs' sizes are numbers, the graph computes any."""
    return with_sizes({"batch": 1, "new": 1, "past": 15, "total": 16}, with_sizes({}, None))


FOUR: Shape = ["batch", 1, "new", "total"]


def mask_added() -> Model:
    """transformers takes a mask of four axes as it is and adds it."""
    feed = lambda p, s: positions(p, s) | {"attention_mask": np.where(seen(p, s), 0, LOWEST).astype(np.float32)[None, None]}
    return single(lambda g: "attention_mask", (FLOATS, FOUR), feed)


def mask_shows() -> Model:
    feed = lambda p, s: positions(p, s) | {"attention_mask": seen(p, s)[None, None]}
    return single(lambda g: added(g, "attention_mask"), (BOOLS, FOUR), feed)


def mask_square() -> Model:
    """One mask [s, p + s] for all sequences."""
    feed = lambda p, s: positions(p, s) | {"attention_mask": seen(p, s)}
    return single(lambda g: added(g, "attention_mask"), (BOOLS, ["new", "total"]), feed)


def mask_hides() -> Model:
    """masked_fill(mask, lowest)"""
    feed = lambda p, s: positions(p, s) | {"attention_mask": ~seen(p, s)[None, None]}
    hide = lambda g: g.op("Where", "attention_mask", np.float32(LOWEST), np.float32(0))
    return single(hide, (BOOLS, FOUR), feed)


def mask_number() -> Model:
    """(1 - mask) * lowest, of a mask of whole numbers"""
    feed = lambda p, s: positions(p, s) | {"attention_mask": seen(p, s)[None, None].astype(np.int64)}

    def mask(g: Graph) -> str:
        return g.op("Mul", g.op("Sub", np.float32(1), g.op("Cast", "attention_mask", to=FLOATS)), np.float32(LOWEST))

    return single(mask, (IDS, FOUR), feed)


def with_layout(append: Callable, shapes: dict[str, Shape]) -> Model:
    """`shapes` has the cache of a "key" or "value", with "rows" for its positions."""
    model = single(own_mask, (IDS, ["batch", "total"]), ones, append)
    for entries, rows in ((model.inputs, "past"), (model.outputs, "total")):
        for name in entries:
            shape = shapes.get(name.rpartition(".")[2])
            if shape:
                entries[name] = (FLOATS, [rows if d == "rows" else d for d in shape])
    return model


def cache_tokens_first() -> Model:
    return with_layout(tokens_first, dict.fromkeys(("key", "value"), ["batch", "rows", HEADS, HEAD]))


def cache_keys_transposed() -> Model:
    return with_layout(keys_transposed, {"key": ["batch", HEADS, HEAD, "rows"]})


def cache_widened() -> Model:
    """optimum's fp16 models with layers in f32: a past in f16 is widened to the type of its present."""
    def append(g: Graph, layer: int, part: str, new: str) -> tuple[str, str]:
        past = g.op("Cast", past_name(layer, part), to=FLOATS)
        joined = g.op("Concat", past, new, axis=2, out=f"present.{layer}.{part}")
        return joined, joined

    model = with_layout(append, {})
    model.inputs |= {name: (TensorProto.FLOAT16, shape) for name, (_, shape) in model.inputs.items() if name.startswith("past")}
    return model


def with_stack(entries: dict[str, list[str]], view: Callable[[Graph, int, str], str]) -> Model:
    """One tensor for several caches. `entries` has the caches that each past input stacks, as "layer.part", in the order of
    its leading axes; `view` takes the past of a layer's keys or values."""
    def append(g: Graph, layer: int, part: str, new: str) -> tuple[str, str]:
        joined = g.op("Concat", view(g, layer, part), new, axis=2, out=f"joined.{layer}.{part}")
        return joined, joined

    g, layers = Graph(), 1 + max(int(name[0]) for names in entries.values() for name in names)
    decoder(g, Parts(own_mask, append, layers=layers))
    inputs, outputs = protocol((IDS, ["batch", "total"]))
    inputs = {name: kind for name, kind in inputs.items() if not name.startswith("past")}
    outputs = {"logits": outputs["logits"]}
    for past, names in entries.items():
        both = len({name[2:] for name in names}) > 1  # [..., 2, b, h, p, d]
        deep = [2] if len(names) == 2 and both else [layers, 2] if both else [layers]
        stacked = g.op("Concat", *(g.op("Unsqueeze", f"joined.{name}", [0]) for name in names), axis=0)
        present = past.replace("past", "present")
        g.op("Reshape", stacked, g.op("Concat", deep, g.op("Shape", f"joined.{names[0]}"), axis=0), out=present)
        inputs[past], outputs[present] = (FLOATS, [*deep, *CACHE]), (FLOATS, [*deep, *GROWN])
    return Model(inputs, outputs, g.nodes, g.initializers(), ones)


def part_number(part: str) -> np.int64:
    return np.int64(("key", "value").index(part))


def cache_pairs() -> Model:
    """ONNX Runtime's GPT-2: [2, b, h, p, d] for each layer"""
    view = lambda g, layer, part: g.op("Gather", f"past_{layer}", part_number(part), axis=0)
    return with_stack({f"past_{layer}": [f"{layer}.key", f"{layer}.value"] for layer in range(LAYERS)}, view)


def cache_layers() -> Model:
    """All layers' keys [layers, b, h, p, d], and all values"""
    view = lambda g, layer, part: g.op("Gather", f"past_{part}s", np.int64(layer), axis=0)
    return with_stack({f"past_{part}s": [f"{layer}.{part}" for layer in range(3)] for part in ("key", "value")}, view)


def cache_whole() -> Model:
    """[layers, 2, b, h, p, d]"""
    view = lambda g, layer, part: g.op("Gather", g.op("Gather", "past_key_values", np.int64(layer), axis=0), part_number(part), axis=0)
    return with_stack({"past_key_values": [f"{layer}.{part}" for layer in range(3) for part in ("key", "value")]}, view)


# ---- buffers -------------------------------------------------------------------------------------------------------

WIDE, BUFFER = 16, 32  # the head size that GroupQueryAttention's rotary positions need; the positions of a buffer
WINDOW = 4


def lengths_of_mask(g: Graph) -> list[str]:
    """seqlens_k and total_sequence_length, as onnxruntime-genai's builder computes them"""
    counts = g.op("Sub", g.op("ReduceSum", "attention_mask", [1], keepdims=0), np.int64(1))
    total = g.op("Gather", g.op("Shape", "attention_mask"), np.int64(1))
    return [g.op("Cast", size, to=TensorProto.INT32) for size in (counts, total)]


def group_query(before: int | str, after: int | str, lengths: Callable[[Graph], list[str]] = lengths_of_mask, window: int = 0,
                **fixed: int) -> Model:
    """A decoder of GroupQueryAttention. `before` and `after` are the lengths that the file declares for pasts and presents,
    `fixed` has the sizes of other inputs. The first layer may keep only a window, and has sinks then."""
    g, tables = Graph(), rotary_table(PLACES, 50.0, WIDE)
    cos_sin = [g.constant(tables["cos"]), g.constant(tables["sin"])]
    x, sizes = g.op("Gather", g.weight("embedding", VOCAB, WIDTH), "input_ids"), lengths(g)
    for layer in range(LAYERS):
        heads = [g.op("MatMul", x, g.weight(f"{layer}.{part}", WIDTH, HEADS * WIDE)) for part in ("query", "key", "value")]
        caches = [past_name(layer, part) for part in ("key", "value")]
        results = [f"attended.{layer}", *(name.replace("past_key_values", "present") for name in caches)]
        more = {"local_window_size": window, "sliding_window_cache": 1} if window and layer == 0 else {}
        last = ["", "", g.weight(f"{layer}.sinks", HEADS)] if more else []
        g.nodes.append(helper.make_node("GroupQueryAttention", [*heads, *caches, *sizes, *cos_sin, *last], results, domain="com.microsoft",
                                        num_heads=HEADS, kv_num_heads=HEADS, do_rotary=1, name=results[0], **more))
        x = g.op("Add", x, g.op("MatMul", results[0], g.weight(f"{layer}.out", HEADS * WIDE, WIDTH)))
        x = g.op("LayerNormalization", x, g.weight(f"{layer}.gain", WIDTH), g.weight(f"{layer}.bias", WIDTH), axis=-1)
    plain_head(g, x)
    inputs, outputs = protocol((IDS, ["batch", "total"]), ["batch", HEADS, before, WIDE], ["batch", HEADS, after, WIDE])
    del inputs["position_ids"]
    if lengths is not lengths_of_mask:
        del inputs["attention_mask"]
        inputs |= {"seqlens_k": (TensorProto.INT32, ["batch"]), "total_sequence_length": (TensorProto.INT32, [])}
    inputs = {name: (kind, [fixed.get(d, d) for d in shape]) for name, (kind, shape) in inputs.items()}

    def feed(past: int, new: int) -> dict[str, np.ndarray]:
        every = {"attention_mask": np.ones((1, past + new), np.int64), "seqlens_k": np.array([past + new - 1], np.int32),
                 "total_sequence_length": np.array(past + new, np.int32)}
        return {name: every[name] for name in inputs if name in every}

    return Model(inputs, outputs, g.nodes, g.initializers(), feed)


def growing() -> Model:
    return group_query("past", "grown")


def buffer_labels() -> Model:
    """The label of the present's length is that of the past's."""
    model = group_query("max_sequence_length", "max_sequence_length")
    model.judge = growing()
    return model


def buffer_constant() -> Model:
    model = group_query(BUFFER, BUFFER)
    model.judge = growing()
    return model


def buffer_fixed() -> Model:
    """All sizes are numbers."""
    model = group_query(BUFFER, BUFFER, batch=1, new=1, total=BUFFER)
    model.judge = growing()
    return model


def buffer_lengths() -> Model:
    """The lengths are inputs."""
    return group_query("past", "grown", lambda g: ["seqlens_k", "total_sequence_length"])


def buffer_window() -> Model:
    """onnxruntime-genai's models with sliding windows: the first layer's cache has only the rows of its window."""
    model = group_query("past", "grown", window=WINDOW)
    for entries, rows in ((model.inputs, "window"), (model.outputs, "window after")):
        entries |= {name: (FLOATS, ["batch", HEADS, rows, WIDE]) for name in entries if ".0." in name}
    return model


# ---- convolutions --------------------------------------------------------------------------------------------------

TAPS = 3


def conv_mlp(g: Graph, x: str, layer: int) -> str:
    """LFM2's layers as onnxruntime-genai writes them: a convolution, with columns that the next step continues."""
    columns = g.op("Transpose", g.op("MatMul", x, g.weight(f"{layer}.conv.in", WIDTH, WIDTH)), perm=[0, 2, 1])
    mixed, weights = f"mixed.{layer}", [g.weight(f"{layer}.conv.taps", WIDTH, 1, TAPS), g.weight(f"{layer}.conv.bias", WIDTH)]
    g.nodes.append(helper.make_node("CausalConvWithState", [columns, *weights, f"past.{layer}.conv"], [mixed, f"present.{layer}.conv"],
                                    domain="com.microsoft", activation="silu" if layer else "none", name=mixed))
    rows = g.op("MatMul", g.op("Transpose", mixed, perm=[0, 2, 1]), g.weight(f"{layer}.conv.back", WIDTH, WIDTH))
    return g.op("Add", rows, plain_mlp(g, x, layer))


def conv_state() -> Model:
    g = Graph()
    decoder(g, Parts(own_mask, usual, mlp=conv_mlp))
    inputs, outputs = protocol((IDS, ["batch", "total"]))
    for layer in range(LAYERS):
        inputs[f"past.{layer}.conv"] = outputs[f"present.{layer}.conv"] = (FLOATS, ["batch", WIDTH, TAPS - 1])
    return Model(inputs, outputs, g.nodes, g.initializers(), ones)


# ---- logits --------------------------------------------------------------------------------------------------------


def with_head(head: Callable[[Graph, str], str], rows: Shape, **more: tuple[int, Shape]) -> Model:
    """`rows` is the logits' shape; `more` are inputs that say how many positions are wanted."""
    g = Graph()
    decoder(g, Parts(own_mask, usual, head=head))
    inputs, outputs = protocol((IDS, ["batch", "total"]))
    outputs["logits"] = (FLOATS, rows)
    wanted = {name: np.ones([1 for _ in shape], np.int64) for name, (_, shape) in more.items()}
    return Model(inputs | more, outputs, g.nodes, g.initializers(), lambda past, new: ones(past, new) | wanted)


def logits_pruned() -> Model:
    """onnxruntime-genai's prune_lm_head: [b, 1, V]"""
    last = lambda g, x: g.op("Unsqueeze", g.op("Gather", x, np.int64(-1), axis=1), [1])
    return with_head(lambda g, x: plain_head(g, last(g, x)), ["batch", 1, VOCAB])


def logits_vector() -> Model:
    """[b, V], with a soft cap"""
    def head(g: Graph, x: str) -> str:
        x = g.op("Gather", x, np.int64(-1), axis=1)
        x = g.op("Gemm", x, g.op("Transpose", g.weight("head", WIDTH, VOCAB), perm=[1, 0]), g.constant(np.zeros(VOCAB)), transB=1)
        return g.op("Mul", g.op("Tanh", g.op("Div", x, np.float32(30))), np.float32(30), out="logits")

    return with_head(head, ["batch", VOCAB])


def logits_sliced() -> Model:
    """The last of all logits."""
    head = lambda g, x: g.op("MatMul", x, g.weight("head", WIDTH, VOCAB))
    return with_head(lambda g, x: g.op("Slice", head(g, x), [-1], [2**63 - 1], [1], out="logits"), ["batch", 1, VOCAB])


def logits_number() -> Model:
    """x[:, -num_logits_to_keep:]"""
    def head(g: Graph, x: str) -> str:
        start = g.op("Unsqueeze", g.op("Neg", "num_logits_to_keep"), [0])
        return plain_head(g, g.op("Slice", x, start, [2**63 - 1], [1]))

    return with_head(head, ["batch", "kept", VOCAB], num_logits_to_keep=(IDS, []))


def logits_indices() -> Model:
    """x[:, logits_to_keep], of a vector of positions."""
    model = with_head(lambda g, x: plain_head(g, g.op("Gather", x, "logits_to_keep", axis=1)), ["batch", "kept", VOCAB],
                      logits_to_keep=(IDS, ["kept"]))
    feed = lambda past, new: ones(past, new) | {"logits_to_keep": np.array([new - 1])}
    return Model(model.inputs, model.outputs, model.nodes, model.initializers, feed)


# ---- without a past ------------------------------------------------------------------------------------------------

PAD = 1  # PROMPTS have it among other tokens


def counted_places(g: Graph) -> str:
    """M2M-100's positions: the tokens other than padding are counted."""
    real = g.op("Cast", g.op("Not", g.op("Equal", "input_ids", np.int64(PAD))), to=TensorProto.INT32)
    counts = g.op("Mul", g.op("CumSum", real, np.int64(1)), real)
    places = g.op("Gather", g.weight("places", PLACES, WIDTH), g.op("Add", g.op("Cast", counts, to=TensorProto.INT64), np.int64(PAD)))
    return g.op("Add", plain_embedding(g), g.op("Mul", places, np.float32(4)))


def triangle(g: Graph) -> str:
    """[s, s]: a token sees itself and those before it."""
    row = g.op("Range", np.int64(0), g.op("Squeeze", g.size("input_ids", 1), [0]), np.int64(1))
    return added(g, g.op("LessOrEqual", row, g.op("Unsqueeze", row, [1])))


def without_past(embed: Callable[[Graph], str]) -> Model:
    g = Graph()
    decoder(g, Parts(triangle, lambda g, layer, part, new: (new, new), embed=embed), absolute=False)
    sizes: Shape = ["batch", "new"]
    return Model({"input_ids": (IDS, sizes)}, {"logits": (FLOATS, [*sizes, VOCAB])}, g.nodes, g.initializers(), lambda past, new: {})


def places_counted() -> Model:
    return without_past(counted_places)


def sizes_whole() -> Model:
    """The length of a whole text is a number, as after make_dynamic_shape_fixed, and the graph computes any."""
    model = without_past(plain_embedding)
    return Model({"input_ids": (IDS, [1, 8])}, model.outputs, model.nodes, model.initializers, model.feed, judge=model)


# ---- buffers that the graph writes itself --------------------------------------------------------------------------

ROWS = 32  # of a buffer


def visible_in_buffer(g: Graph) -> str:
    """[s, ROWS]: transformers compares the columns of a StaticCache with the positions."""
    rows = g.op("Unsqueeze", g.op("Gather", "position_ids", np.int64(0)), [1])
    return added(g, g.op("LessOrEqual", np.arange(ROWS), rows))


def scattered(g: Graph, layer: int, part: str, new: str) -> tuple[str, str]:
    """index_copy_ as torch.export writes it: ScatterND into [ROWS, b, h, d]"""
    at = g.op("Unsqueeze", g.op("Identity", g.op("Gather", "position_ids", np.int64(0))), [1])
    rows = [g.op("Transpose", x, perm=[2, 0, 1, 3]) for x in (past_name(layer, part), new)]
    whole = g.op("Transpose", g.op("ScatterND", rows[0], at, rows[1]), perm=[1, 2, 0, 3], out=f"present.{layer}.{part}")
    return whole, whole


def scattered_elements(g: Graph, layer: int, part: str, new: str) -> tuple[str, str]:
    """[b, ROWS, h, d]"""
    rows = g.op("Transpose", new, perm=[0, 2, 1, 3])
    at = g.op("Unsqueeze", g.op("Gather", "position_ids", np.int64(0)), [0, 2, 3])
    at = g.op("Expand", at, g.op("Shape", rows))
    whole = g.op("ScatterElements", past_name(layer, part), at, rows, axis=1, out=f"present.{layer}.{part}")
    return g.op("Transpose", whole, perm=[0, 2, 1, 3]), whole


def written_buffer(append: Callable, cache: Shape) -> Model:
    g = Graph()
    decoder(g, Parts(visible_in_buffer, append))
    inputs, outputs = protocol(None, cache, cache)
    return Model(inputs, outputs, g.nodes, g.initializers(), positions)


def buffer_scattered() -> Model:
    return written_buffer(scattered, ["batch", HEADS, ROWS, HEAD])


def buffer_elements() -> Model:
    return written_buffer(scattered_elements, ["batch", ROWS, HEADS, HEAD])


# ---- positions -----------------------------------------------------------------------------------------------------

SHORT = 16  # positions of the shorter rotary table


def rotary_table(rows: int, base: float, head: int = HEAD) -> dict[str, np.ndarray]:
    angles = np.outer(np.arange(rows), base ** (-np.arange(head // 2) / (head // 2)))
    return {"cos": np.cos(angles).astype(np.float32), "sin": np.sin(angles).astype(np.float32)}


def rope_if() -> Model:
    """onnxruntime-genai's models of longrope: one rotary table up to a length and another beyond."""
    g, outs = Graph(), ["cos_cache", "sin_cache"]
    total = g.op("Gather", g.op("Shape", "attention_mask"), np.int64(1))
    branches = {}
    for branch, rows, base in (("then_branch", PLACES, 50.0), ("else_branch", SHORT, 10.0)):
        tables, size = rotary_table(rows, base), "large" if rows == PLACES else "small"
        nodes = [helper.make_node("Constant", [], [f"{part}_cache_{size}"], value=numpy_helper.from_array(table))
                 for part, table in tables.items()]
        infos = [helper.make_tensor_value_info(node.output[0], FLOATS, [rows, HEAD // 2]) for node in nodes]
        branches[branch] = helper.make_graph(nodes, f"{size}_rotary_caches_graph", [], infos)
    g.nodes.append(helper.make_node("If", [g.op("Greater", total, np.int64(SHORT))], outs, name="/rotemb/If", **branches))
    turn = lambda g, x: g.op("RotaryEmbedding", x, "position_ids", *outs, domain="com.microsoft")
    results = decoder(g, Parts(own_mask, usual, turn), absolute=False)
    inputs, outputs = protocol((IDS, ["batch", "total"]))
    return Model(inputs, dict(zip(results, outputs.values())), g.nodes, g.initializers(), ones)


FORMS = {"merged": merged, "merged-one-token": merged_one_token, "embeds": embeds, "sinks": sinks, "buffer-window": buffer_window, "conv-state": conv_state, "mask-added": mask_added, "mask-shows": mask_shows, "mask-hides": mask_hides, "mask-square": mask_square,
         "mask-number": mask_number, "rope-if": rope_if, "sizes-open": sizes_open, "sizes-fixed": sizes_fixed,
         "cache-tokens-first": cache_tokens_first, "cache-keys-transposed": cache_keys_transposed, "cache-widened": cache_widened,
         "cache-tokens-first": cache_tokens_first, "cache-keys-transposed": cache_keys_transposed,
         "cache-pairs": cache_pairs, "cache-layers": cache_layers, "cache-whole": cache_whole, "buffer-labels": buffer_labels,
         "buffer-constant": buffer_constant, "buffer-fixed": buffer_fixed, "buffer-lengths": buffer_lengths,
         "buffer-scattered": buffer_scattered, "buffer-elements": buffer_elements,
         "logits-pruned": logits_pruned, "logits-vector": logits_vector, "logits-sliced": logits_sliced,
         "places-counted": places_counted, "sizes-whole": sizes_whole, "logits-number": logits_number, "logits-indices": logits_indices}

# ---- answers -------------------------------------------------------------------------------------------------------


def present_of(past: str, outputs: dict[str, np.ndarray]) -> str:
    short = past.replace("past_key_values", "present")
    return short if short in outputs else past.replace("past", "present")


def greedy(model: Model, path: Path, prompt: list[int]) -> list[int]:
    if model.judge:
        with tempfile.TemporaryDirectory() as folder:
            model.judge.save(Path(folder) / "model.onnx")
            return greedy(model.judge, Path(folder) / "model.onnx", prompt)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(path), options)
    caches = [name for name in model.inputs if name.startswith("past")]
    cache = {}
    for name in caches:
        shape = [{"batch": 1, "past": 0, "window": WINDOW}.get(d, d) for d in model.inputs[name][1]]
        cache[name] = np.zeros(shape, helper.tensor_dtype_to_np_dtype(model.inputs[name][0]))
    ids, tokens, past = list(prompt), [], 0
    for _ in range(STEPS):
        feeds = {"input_ids": np.array([ids], np.int64)} | model.feed(past, len(ids)) | cache
        out = dict(zip(model.outputs, session.run(list(model.outputs), feeds)))
        logits = out["logits"].reshape(-1, VOCAB)[-1]
        last, second = np.sort(logits)[[-1, -2]]
        assert last - second > 1e-4, "the tokens hang on rounding"
        past += len(ids)
        tokens.append(int(logits.argmax()))
        if not caches:
            ids, past = [*ids, tokens[-1]], 0
            continue
        ids, cache = tokens[-1:], {name: out[present_of(name, out)].astype(cache[name].dtype) for name in caches}
    return tokens


def write_padded(model: Model, folder: Path) -> None:
    """A prompt of two sequences, the first of which begins with two positions of padding, and ONNX Runtime's logits."""
    mask = np.ones((2, 5), np.int64)
    mask[0, :2] = 0
    feeds = {"input_ids": np.array([[0, 0, 3, 1, 4], [30, 12, 25, 6, 33]]), **model.feed(0, 5), "attention_mask": mask,
             "position_ids": np.tile(np.arange(5), (2, 1))}
    feeds |= {n: np.zeros((2, HEADS, 0, HEAD), np.float32) for n in model.inputs if n.startswith("past")}
    session = onnxruntime.InferenceSession(str(folder / "model.onnx"), providers=["CPUExecutionProvider"])
    data = folder / "test_data_set_0"
    data.mkdir(exist_ok=True)
    for i, name in enumerate(model.inputs):
        onnx.save_tensor(numpy_helper.from_array(feeds[name], name), data / f"input_{i}.pb")
    for i, (name, array) in enumerate(zip(model.outputs, session.run(list(model.outputs), feeds))):
        onnx.save_tensor(numpy_helper.from_array(array, name), data / f"output_{i}.pb")


def main(names: list[str]) -> None:
    for name in names or FORMS:
        folder = Path(__file__).parent / "forms" / name
        model = FORMS[name]()
        model.save(folder / "model.onnx")
        if name.startswith("logits"):
            write_padded(model, folder)
        lists = {"prompts": PROMPTS, "tokens": [greedy(model, folder / "model.onnx", prompt) for prompt in PROMPTS]}
        lines = [f" {json.dumps(key)}: {json.dumps(value)}" for key, value in lists.items()]
        (folder / "tokens.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")
        print(name, lists["tokens"])


if __name__ == "__main__":
    main(sys.argv[1:])
