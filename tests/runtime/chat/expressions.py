#!/usr/bin/env python3
"""Writes the texts of expressions.jsonl again: what Jinja 3.1.6 with transformers' settings makes of each source.

A row with a refusal keeps it: the engine renders less than Jinja does. A new row needs only its source and a text."""
import json
import pathlib

from jinja2.sandbox import ImmutableSandboxedEnvironment

FILE = pathlib.Path(__file__).parent / "expressions.jsonl"


def tojson(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"])
environment.filters["tojson"] = tojson
rows = [json.loads(line) for line in FILE.read_text(encoding="utf-8").splitlines()]
for row in rows:
    if "refusal" not in row:
        row["text"] = environment.from_string(row["source"]).render()
FILE.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
