"""Validates answers of `llmpart serve`: answers.py SCHEMA ANSWERS, lines of "NAME JSON", where NAME is one of the schema's $defs.

Each answer that the schema has must occur, and none of its objects may allow members without a schema.
"""

import json
import pathlib
import sys

from jsonschema import Draft202012Validator
from schemas import loose

PARTS = {"usage", "call", "text_logprobs", "chat_logprobs", "probability"}  # of answers

schema = json.loads(pathlib.Path(sys.argv[1]).read_text())
Draft202012Validator.check_schema(schema)
failures = [f"{path}: allows other members" for path in loose(schema)]
seen = set()
for line in pathlib.Path(sys.argv[2]).read_text().splitlines():
    name, text = line.split(" ", 1)
    seen.add(name)
    validator = Draft202012Validator({"$ref": f"#/$defs/{name}", "$defs": schema["$defs"]})
    failures += [f"{name}: {error.json_path}: {error.message[:200]}" for error in list(validator.iter_errors(json.loads(text)))[:3]]
failures += [f"{name}: no answer was validated" for name in sorted(set(schema["$defs"]) - PARTS - seen)]
print("\n".join(failures))
sys.exit(bool(failures))
