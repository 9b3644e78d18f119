"""Validates documents by the schemas of a folder: schemas.py FOLDER NAMES DOCUMENT...

A document names its schema, llmpart.NAME/1, which is FOLDER/NAME.json. NAMES lists the schemas that the sources name:
each has a file, each file is named, and each has a document here. Every object of a schema says that it allows no
other members, so that a member without a schema fails.
"""

import json
import pathlib
import sys

from jsonschema import Draft202012Validator


def loose(schema: object, path: str = "") -> list[str]:
    """Objects that allow members which the schema does not name."""
    found = []
    if isinstance(schema, dict):
        if "properties" in schema and "additionalProperties" not in schema:
            found.append(path or "/")
        for key, value in schema.items():
            found += loose(value, f"{path}/{key}")
    elif isinstance(schema, list):
        for index, value in enumerate(schema):
            found += loose(value, f"{path}/{index}")
    return found


def main(folder: pathlib.Path, names: pathlib.Path, documents: list[str]) -> int:
    failures = []
    schemas = {path.stem: json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))}
    named = {line.split(".")[1].split("/")[0] for line in names.read_text().split()}
    for name in sorted(named ^ set(schemas)):
        failures.append(f"docs/schemas/{name}.json: " + ("is missing" if name in named else "no source names it"))
    for name, schema in schemas.items():
        Draft202012Validator.check_schema(schema)
        failures += [f"docs/schemas/{name}.json{path}: allows other members" for path in loose(schema)]
    seen = set()
    for path in documents:
        document = json.loads(pathlib.Path(path).read_text())
        name = document["schema"].removeprefix("llmpart.").rsplit("/")[0]
        seen.add(name)
        if name not in schemas:
            continue
        errors = sorted(Draft202012Validator(schemas[name]).iter_errors(document), key=lambda error: len(error.path))
        failures += [f"{path} ({name}): {error.json_path}: {error.message[:200]}" for error in errors[:3]]
    failures += [f"docs/schemas/{name}.json: no output was validated" for name in schemas if name not in seen]
    print("\n".join(failures))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3:]))
