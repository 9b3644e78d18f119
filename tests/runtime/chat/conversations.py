#!/usr/bin/env python3
"""Compares chat templates with transformers over generated conversations, with tools, thoughts and images of text.

    conversations.py --driver BUILD/tests/runtime/tokenizer/tokenize [--count 1000] [--show] [FILE.jinja ...]
    conversations.py --write   what test_chat_template.c expects: families/conversations.jsonl and NAME.expected

Without files it takes families/, templates of our own in the style of the families that name them; published_templates.py
writes published ones. It draws conversations until transformers has rendered as many as asked, at most 20 times as many.
Those that the template itself refuses (raise_exception, a missing member) must be refused here as well.
"""
import argparse
import json
import pathlib
import struct
import subprocess
import sys

from transformers.utils.chat_template_utils import _compile_jinja_template as compile_template

import strings

HERE = pathlib.Path(__file__).parent
TEXTS = ["Hi", " What is 2 + 2? ", "", "Grüße, 世界 😀", "line one\nline two\n", "<|im_end|> is \"text\"", "a\\b\tc'd",
         "<think>Let me see.\n</think>\n\nIt is 4.", "[INST] x [/INST]", "  ", "{\"a\": 1}", "x" * 300]
TOOLS = [
    {"type": "function", "function": {"name": "get_weather", "description": "Weather of a city.\nNow.", "parameters": {
        "type": "object", "properties": {"city": {"type": "string", "description": "The city’s name"},
                                         "unit": {"type": "string", "enum": ["C", "F"]}}, "required": ["city"]}}},
    {"type": "function", "function": {"name": "add", "description": "Adds \"numbers\"", "parameters": {
        "type": "object", "properties": {"a": {"type": "number", "default": 1.5}, "b": {"type": "number", "minimum": 1e-7},
                                         "deep": {"type": "array", "items": {"type": "integer"}}}, "required": []}}},
    {"type": "function", "function": {"name": "now", "description": "", "parameters": {"type": "object", "properties": {}}}},
]
ARGUMENTS = [{"city": "Zürich"}, {"a": 1, "b": 2.25}, {}, {"deep": [1, [2, None]], "ok": True}]


def pick(random, items):
    return items[random.below(len(items))]


def assistant(random):
    message = {"role": "assistant", "content": pick(random, TEXTS)}
    kind = random.below(5)
    if kind == 0:
        message["reasoning_content"] = pick(random, TEXTS)
    if kind in (1, 2):
        calls = [{"id": f"call{i:05}", "type": "function",
                  "function": {"name": pick(random, TOOLS)["function"]["name"], "arguments": pick(random, ARGUMENTS)}}
                 for i in range(1 + random.below(2))]
        message["tool_calls"] = calls
        if kind == 1:
            message["content"] = None if random.below(2) else ""
    return message


def conversation(index):
    random = strings.Random(1000003 * 7 + index)
    messages = []
    if random.below(2):
        messages.append({"role": pick(random, ["system", "system", "developer"]), "content": pick(random, TEXTS)})
    for _ in range(1 + random.below(4)):
        content = pick(random, TEXTS)
        if random.below(6) == 0:
            content = [{"type": "text", "text": content}, {"type": "text", "text": pick(random, TEXTS)}]
        messages.append({"role": "user", "content": content})
        if random.below(5):
            messages.append(assistant(random))
            for call in messages[-1].get("tool_calls", []):
                if random.below(8):
                    result = pick(random, [{"t": 21.5}, "sunny", TEXTS[3], [1, 2]])
                    messages.append({"role": "tool", "name": call["function"]["name"], "tool_call_id": call["id"],
                                     "content": result})
    variables = {"messages": messages, "add_generation_prompt": bool(random.below(2)), "tools": None}
    if random.below(2):
        variables["tools"] = TOOLS[: 1 + random.below(3)]
    if random.below(3) == 0:
        variables["enable_thinking"] = bool(random.below(2))
    if random.below(4) == 0:
        variables["reasoning_effort"] = pick(random, ["low", "high"])
    if random.below(4) == 0:
        variables["documents"] = [{"title": "A", "text": "b"}, {"title": "C", "text": TEXTS[3]}]
    return variables


def wanted(template, variables):
    try:
        return "o" + template.render(**{"bos_token": "<s>", "eos_token": "</s>", "documents": None, **variables})
    except Exception as error:
        return f"e{error}"


def found(driver, path, all_variables):
    data = b"".join(struct.pack("<I", len(t)) + t for t in (json.dumps(v).encode() for v in all_variables))
    out = subprocess.run([driver, str(path), "chat"], input=data, stdout=subprocess.PIPE, check=True).stdout
    texts, at = [], 0
    while at < len(out):
        (size,) = struct.unpack_from("<I", out, at)
        texts.append(out[at + 4 : at + 4 + size].decode("utf-8"))
        at += 4 + size
    return texts


def drawn(template, count):
    """Conversations with what transformers makes of them."""
    pairs, rendered = [], 0
    while rendered < count and len(pairs) < 20 * count:
        variables = conversation(len(pairs))
        pairs.append((variables, wanted(template, variables)))
        rendered += pairs[-1][1][0] == "o"
    return pairs


def judge(path, driver, count, show):
    pairs = drawn(compile_template(path.read_text(encoding="utf-8")), count)
    pairs = [(v, w, f) for (v, w), f in zip(pairs, found(driver, path, [v for v, _ in pairs]))]
    both = sum(w[0] == "e" and f[0] == "e" for _, w, f in pairs)
    bad = [(v, w, f) for v, w, f in pairs if w != f and not (w[0] == "e" and f[0] == "e")]
    refused = sum(f[0] == "e" for _, _, f in bad)
    print(f"{path.stem:45} {len(pairs) - len(bad) - both} equal, {both} refused by both, {refused} refused here, "
          f"{len(bad) - refused} different", flush=True)
    for v, w, f in bad[: 3 if show else 0]:
        at = next((i for i, (a, b) in enumerate(zip(w, f)) if a != b), min(len(w), len(f)))
        print(f"  wanted {w[max(0, at - 60):at + 120]!r}\n  found  {f[max(0, at - 60):at + 120]!r}")
    return len(bad)


def write(files):
    """A line for each conversation: the hash of the text, or that the template refuses it."""
    all_variables = [conversation(i) for i in range(50)]
    lines = "".join(json.dumps(v) + "\n" for v in all_variables)
    (HERE / "families" / "conversations.jsonl").write_text(lines, encoding="ascii")
    for path in files:
        template = compile_template(path.read_text(encoding="utf-8"))
        texts = [wanted(template, v) for v in all_variables]
        marks = ["refused " if t[0] == "e" else f"{strings.hash_bytes(t[1:].encode('utf-8')):08x}" for t in texts]
        path.with_suffix(".expected").write_text("".join(m + "\n" for m in marks), encoding="ascii")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--driver")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--show", action="store_true")
    parser.add_argument("files", nargs="*", type=pathlib.Path)
    args = parser.parse_args()
    files = args.files or sorted((HERE / "families").glob("*.jinja"))
    if args.write:
        write(files)
        return 0
    return 1 if sum(judge(path, args.driver, args.count, args.show) for path in files) else 0


if __name__ == "__main__":
    sys.exit(main())
