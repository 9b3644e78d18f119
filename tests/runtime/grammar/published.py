"""Schemas as tools and libraries publish them: their grammars, judged by PyPI's jsonschema.

published.py DRAW [FOLDER]: DRAW is the program draw_grammar; FOLDER has further files with a member "schema" each, such as
those of the benchmark github.com/guidance-ai/jsonschemabench, of which some may be refused. Each text that is drawn must be valid JSON that its schema accepts,
formats included; a schema marked `!` must be refused, with the name of the keyword. Prints each failure; the exit
status is 1 if there is one.
"""

import datetime
import decimal
import enum
import glob
import json
import subprocess
import sys
import typing
import uuid

import jsonschema
import pydantic


# Pydantic, as instructor and openai's `parse` send it
class Color(enum.Enum):
    red = "red"
    green = "green"


class Address(pydantic.BaseModel):
    """Where someone lives."""

    street: str = pydantic.Field(min_length=1, max_length=4000, description="with the number")
    zip: str = pydantic.Field(pattern=r"^\d{5}(-\d{4})?$")
    country: typing.Literal["DE", "FR", "US"] = "DE"


class Person(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid", title="A person")
    name: str = pydantic.Field(examples=["Ada"])
    age: int = pydantic.Field(ge=0, le=130)
    height: float | None = pydantic.Field(default=None, gt=0, lt=3)
    emails: list[str] = pydantic.Field(default_factory=list, max_length=3)
    address: Address
    favourite: Color | None = None
    born: datetime.date
    seen: datetime.datetime | None = None
    alarm: datetime.time
    id: uuid.UUID
    scores: dict[str, float]
    pair: tuple[int, str]


class Node(pydantic.BaseModel):
    value: int
    children: list["Node"] = []


class Cat(pydantic.BaseModel):
    kind: typing.Literal["cat"]
    lives: int = pydantic.Field(ge=1, le=9)


class Dog(pydantic.BaseModel):
    kind: typing.Literal["dog", "wolf"]
    good: bool


class Owner(pydantic.BaseModel):
    pet: Cat | Dog = pydantic.Field(discriminator="kind")
    prices: list[decimal.Decimal] = pydantic.Field(max_length=2)
    site: pydantic.HttpUrl
    ratio: float = pydantic.Field(multiple_of=0.25, ge=-10, le=10)
    count: pydantic.PositiveInt
    step: int = pydantic.Field(multiple_of=5, ge=-100, le=1000)
    wait: datetime.timedelta
    address: pydantic.IPvAnyAddress | None = None
    tag: typing.Annotated[str, pydantic.StringConstraints(pattern=r"^[a-z][a-z0-9_-]*$", min_length=2, max_length=32)]
    labels: dict[typing.Annotated[str, pydantic.StringConstraints(pattern="^x-[a-z]+$")], int]


class Answers(pydantic.BaseModel):
    """instructor: Iterable and Maybe."""

    tasks: list[Person]
    error: bool = False
    message: str | None = None


of_pydantic = [model.model_json_schema() for model in (Address, Person, Node, Owner, Answers, Cat)]


# Tools as servers of MCP, and documents of providers, describe them
def tool(required=(), **properties):
    return {"$schema": "http://json-schema.org/draft-07/schema#", "type": "object", "properties": properties,
            "required": list(required), "additionalProperties": False}


text, number, integer, flag = {"type": "string"}, {"type": "number"}, {"type": "integer"}, {"type": "boolean"}
page = {"type": "number", "minimum": 1, "description": "Page number for pagination (min 1)"}
per_page = {"type": "number", "minimum": 1, "maximum": 100, "description": "Results per page for pagination (min 1, max 100)"}
lists = {"type": "array", "items": {"type": "string"}}
of_tools = [
    tool(["location"], location={**text, "description": "City and state, e.g. San Francisco, CA"}, unit={"type": "string", "enum": ["celsius", "fahrenheit"]}),
    tool(["path"], path=text, head=number, tail=number),
    tool(["paths"], paths={**lists, "minItems": 1, "description": "Array of file paths"}),
    tool(["path", "edits"], path=text, dryRun={**flag, "default": False},
         edits={"type": "array", "items": tool(["oldText", "newText"], oldText=text, newText=text)}),
    tool(["query"], query={**text, "maxLength": 400}, count={**number, "minimum": 1, "maximum": 20, "default": 10}, offset={**number, "minimum": 0, "maximum": 9}),
    tool(["url"], url={**text, "format": "uri", "minLength": 1}, max_length={**integer, "exclusiveMaximum": 1000000, "exclusiveMinimum": 0, "default": 5000},
         start_index={**integer, "minimum": 0, "default": 0}, raw={**flag, "default": False}),
    tool(["owner", "repo"], owner=text, repo=text, state={"enum": ["open", "closed", "all"], "type": "string"}, page=page, perPage=per_page),
    tool(["owner", "repo", "title"], owner=text, repo=text, title=text, body=text, assignees=lists, labels=lists, milestone=number),
    tool(["files"], files={"type": "array", "minItems": 1, "maxItems": 100, "items": {"type": "object", "required": ["path", "content"],
                                                                                "properties": {"path": text, "content": text}}}),
    tool(["thought", "nextThoughtNeeded", "thoughtNumber", "totalThoughts"], thought=text, nextThoughtNeeded=flag,
         thoughtNumber={**integer, "minimum": 1}, totalThoughts={**integer, "minimum": 1}, isRevision=flag),
    tool(["entities"], entities={"type": "array", "items": tool(["name", "entityType", "observations"], name=text, entityType=text, observations=lists)}),
    tool(["channel_id", "ts"], channel_id={**text, "pattern": "^[CGD][A-Z0-9]{8,10}$"}, ts={**text, "pattern": r"^\d{10}\.\d{6}$"}),
    tool(["timezone"], timezone=text, time={**text, "pattern": r"^([01]?[0-9]|2[0-3]):[0-5][0-9]$"}),
    tool(["latitude", "longitude"], latitude={**number, "minimum": -90, "maximum": 90}, longitude={**number, "minimum": -180, "maximum": 180},
         radius={**integer, "exclusiveMinimum": 0, "maximum": 50000}),
    tool(["to", "subject"], to={"type": "array", "items": {**text, "format": "email"}, "minItems": 1, "maxItems": 10}, subject={**text, "maxLength": 998},
         at={**text, "format": "date-time"}, reply={"type": ["string", "null"], "format": "email"}),
    tool(["start", "end"], start={**text, "format": "date"}, end={**text, "format": "date"}, days={"type": "array", "items": {"type": "integer", "minimum": 0, "maximum": 6}, "maxItems": 7}),
    tool(["amount", "currency"], amount={**integer, "minimum": 50, "maximum": 99999999}, currency={**text, "pattern": "^[a-z]{3}$"},
         metadata={"type": "object", "additionalProperties": {"type": "string", "maxLength": 500}, "propertyNames": {"type": "string", "maxLength": 40}}),
    tool(["sql"], sql=text, params={"type": "array", "items": {"anyOf": [text, number, flag, {"type": "null"}]}}),
    tool(["operation"], operation={"type": "string", "const": "add"}, a=number, b=number),
    tool(["cluster"], cluster={**text, "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", "maxLength": 63}, replicas={**integer, "minimum": 0, "maximum": 1000},
         port={**integer, "minimum": 1, "maximum": 65535}, cidr={**text, "pattern": r"^(\d{1,3}\.){3}\d{1,3}/\d{1,2}$"}, host={**text, "format": "hostname"}, ip={**text, "format": "ipv4"}),
    tool(["color"], color={**text, "pattern": "^#([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$"}, opacity={**number, "minimum": 0, "maximum": 1}, size={**number, "exclusiveMinimum": 0}),
    tool(["version"], version={**text, "pattern": r"^v?(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z.-]+)?$"}, sha={**text, "pattern": "^[0-9a-f]{40}$"}),
    tool(["box"], box={"type": "array", "items": {**number, "minimum": 0, "maximum": 1}, "minItems": 4, "maxItems": 4}),
    # Zod: tuples, records, unions by a literal, and what zod-to-json-schema writes
    tool(["point"], point={"type": "array", "minItems": 2, "maxItems": 2, "items": [number, number]}),
    {**tool(["point"], point={"type": "array", "prefixItems": [number, number], "items": text, "maxItems": 4}), "$schema": "https://json-schema.org/draft/2020-12/schema"},
    {"type": "object", "propertyNames": {"type": "string", "enum": ["a", "b"]}, "additionalProperties": integer},
    {"oneOf": [tool(["type", "value"], type={"type": "string", "const": "number"}, value=number), tool(["type"], type={"type": "string", "const": "none"})]},
    tool(["id"], id={**text, "format": "uuid"}, code={**integer, "exclusiveMinimum": -9007199254740991, "maximum": 9007199254740991},
         duration={**text, "format": "duration"}, ipv6={**text, "format": "ipv6"}, at={**text, "format": "time"}),
    tool(["nullable"], nullable={"anyOf": [{**text, "minLength": 3, "maxLength": 5000}, {"type": "null"}]}, even={**integer, "multipleOf": 2}, cents={**number, "multipleOf": 0.5}),
    # OpenAI's documents: recursion, and definitions
    {"type": "object", "properties": {"type": {"type": "string", "enum": ["div", "button"]}, "label": text, "children": {"type": "array", "items": {"$ref": "#"}},
                                      "attributes": {"type": "array", "items": tool(["name", "value"], name=text, value=text)}},
     "required": ["type", "label", "children", "attributes"], "additionalProperties": False},
    {"type": "object", "properties": {"linked_list": {"$ref": "#/$defs/linked_list_node"}}, "required": ["linked_list"], "additionalProperties": False,
     "$defs": {"linked_list_node": {"type": "object", "properties": {"value": number, "next": {"anyOf": [{"$ref": "#/$defs/linked_list_node"}, {"type": "null"}]}},
                                    "required": ["next", "value"], "additionalProperties": False}}},
    {"type": "object", "properties": {"steps": {"type": "array", "items": {"type": "object", "properties": {"explanation": text, "output": text},
                                                                           "required": ["explanation", "output"], "additionalProperties": False}}, "final_answer": text},
     "required": ["steps", "final_answer"], "additionalProperties": False},
    # Intersections of Zod, `extends` of OpenAPI, Terraform's and Kubernetes' conditions
    {"allOf": [tool(["a"], a=integer) | {"additionalProperties": True}, {"type": "object", "properties": {"b": text}, "required": ["b"]}],
     "unevaluatedProperties": False},
    {"type": "object", "properties": {"kind": {"enum": ["a", "b"]}, "x": integer, "y": text}, "required": ["kind"], "additionalProperties": False,
     "oneOf": [{"properties": {"kind": {"const": "a"}}, "required": ["x"]}, {"properties": {"kind": {"const": "b"}}, "required": ["y"]}]},
    {"type": "object", "properties": {"cert": text, "key": text, "token": text}, "oneOf": [{"required": ["cert", "key"]}, {"required": ["token"]}]},
    {"type": "object", "properties": {"file": text, "line": integer}, "dependentRequired": {"line": ["file"]}, "minProperties": 1},
    {"type": "object", "properties": {"country": {"enum": ["US", "NL"]}, "zip": {"type": "string"}}, "required": ["country", "zip"],
     "if": {"properties": {"country": {"const": "US"}}}, "then": {"properties": {"zip": {"pattern": "^[0-9]{5}$"}}},
     "else": {"properties": {"zip": {"pattern": "^[0-9]{4} [A-Z]{2}$"}}}},
    # Chains of conditions: eight on one property, and four that are independent
    {"type": "object", "properties": {"kind": {"enum": [f"k{i}" for i in range(9)]}, **{f"p{i}": text for i in range(8)}}, "required": ["kind"],
     "allOf": [{"if": {"properties": {"kind": {"const": f"k{i}"}}}, "then": {"required": [f"p{i}"]}} for i in range(8)]},
    {"type": "object", "properties": {**{f"b{i}": flag for i in range(4)}, **{f"p{i}": text for i in range(4)}},
     "allOf": [{"if": {"properties": {f"b{i}": {"const": True}}, "required": [f"b{i}"]}, "then": {"required": [f"p{i}"]}} for i in range(4)]},
    {"$ref": "#/$defs/base", "description": "beside a reference", "required": ["id"], "$defs": {"base": {"type": "object", "properties": {"id": integer, "no": {"not": {}}}}}},
    {"type": "object", "properties": {"a": {"type": "string", "maxLength": 9}, "ab": text}, "patternProperties": {"b$": {"minLength": 2}}, "maxProperties": 1},
    # OpenAPI's words for numbers, annotations, and names with every character
    tool(["n"], n={"type": "integer", "format": "int64", "minimum": 0, "x-order": 1, "deprecated": True, "readOnly": False},
         **{"a \"b\" / c": {"type": "number", "format": "double", "example": 1.5}, "é": {"type": "string", "format": "password", "contentEncoding": "base64"}}),
]
refused = {  # what a grammar cannot hold, by name and path
    "properties.a.contains": tool(a={"type": "array", "contains": integer}),
    "properties.a: the schema's keyword 'uniqueItems'": tool(a={"type": "array", "items": text, "uniqueItems": True}),
    "properties.a.oneOf: the schema's keyword 'oneOf'": tool(a={"oneOf": [{"multipleOf": 3}, {"multipleOf": 5}]}),
    "the schema is too large: it has too many schemas within each other, or too many of 'if'": {
        "properties": {f"b{i}": flag for i in range(16)},
        "allOf": [{"if": {"required": [f"b{i}"]}, "then": {"required": [f"b{i + 1}"]}} for i in range(16)]},
    "properties.a.items: the schema's keyword 'not' (or 'if')": tool(a={"type": "array", "items": {"not": {"minLength": 3}}}),
    "properties.a.pattern: the schema's 'pattern' has a look at": tool(a={**text, "pattern": "^(?=.*[0-9]).{8,}$"}),
    "the schema has two 'pattern' that hold at once": {"allOf": [{"pattern": "a"}, {"pattern": "b"}]},
}

failures = 0


def fail(what):
    global failures
    failures += 1
    print(what[:600])


def main():
    further = [json.load(open(path))["schema"] for path in sorted(glob.glob(sys.argv[2] + "/*.json"))] if len(sys.argv) > 2 else []
    schemas = of_pydantic + of_tools + further
    count = 5 if further else 40
    lines = "".join(json.dumps(schema) + "\n" for schema in schemas + list(refused.values()))
    found = subprocess.run([sys.argv[1], str(count)], input=lines.encode(), stdout=subprocess.PIPE, check=True).stdout.decode()
    unsupported = 0
    drawn = [[] for _ in schemas + list(refused)]
    for line in found.split("\n")[:-1]:
        index, drawn_text = line.split("\t", 1)
        drawn[int(index)].append(drawn_text)
    for schema, texts in zip(schemas, drawn):
        draft = jsonschema.validators.validator_for(schema, jsonschema.Draft202012Validator)
        validator = draft(schema, format_checker=draft.FORMAT_CHECKER)
        if further and texts and texts[0][:1] == "!":
            unsupported += 1
            continue
        if (len(texts) < count / 2 and not further) or texts[:1] and texts[0][:1] == "!":
            fail(f"{len(texts)} texts of {json.dumps(schema)}: {texts[:1]}")
            continue
        for each in texts:
            try:
                validator.validate(json.loads(each))
            except (ValueError, jsonschema.ValidationError) as error:
                fail(f"{getattr(error, 'message', error)}: {each}")
                break
    for why, texts in zip(refused, drawn[len(schemas):]):
        wanted = why.rsplit(".", 1)[-1] if ":" not in why and " " not in why else why
        if not texts or texts[0][:1] != "!" or wanted not in texts[0]:
            fail(f"wanted a refusal with {wanted!r}: {texts[:1]}")
    print(f"{len(schemas)} schemas, {sum(map(len, drawn[:len(schemas)]))} texts, {unsupported} not supported, {len(refused)} refusals, {failures} failures")
    sys.exit(1 if failures else 0)


main()
