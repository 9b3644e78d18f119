#!/usr/bin/env python3
"""Writes templates/NAME.golden: the text of every conversation with templates/NAME.jinja, from Jinja with transformers' settings."""
import pathlib

from transformers.utils.chat_template_utils import _compile_jinja_template as compile_template

HERE = pathlib.Path(__file__).parent / "templates"
ESCAPES = {"n": "\n", "t": "\t", "\\": "\\"}


def unescape(text):
    parts = text.split("\\\\")
    return "\\".join(part.replace("\\n", "\n").replace("\\t", "\t") for part in parts)


def conversations():
    for block in (HERE / "conversations.txt").read_text(encoding="utf-8").rstrip("\n").split("\n\n"):
        head, *lines = block.split("\n")
        pairs = [line.split(": ", 1) for line in lines]
        yield head == "prompt", [{"role": role, "content": unescape(content)} for role, content in pairs]


def render(template, prompt, messages):
    try:
        return template.render(messages=messages, add_generation_prompt=prompt, bos_token="<s>", eos_token="</s>",
                               tools=None, documents=None)
    except Exception as error:
        return f"error: {error}"


for path in sorted(HERE.glob("*.jinja")):
    compiled = compile_template(path.read_text(encoding="utf-8"))
    texts = [render(compiled, prompt, messages) for prompt, messages in conversations()]
    golden = "".join(f"=== {i}\n{text}\n" for i, text in enumerate(texts))
    path.with_suffix(".golden").write_text(golden, encoding="utf-8")
