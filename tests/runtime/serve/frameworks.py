"""PyPI's instructor, langchain-openai and pydantic-ai against a running `llmpart serve`.

frameworks.py URL: each of them gets an object of a Pydantic model, by a JSON schema and by tools, and texts equal to those of OpenAI's
client. Prints each failure; the exit status is 1 if there is one.
"""

import sys
import typing

import instructor
import langchain_core.tools
import langchain_openai
import openai
import pydantic
import pydantic_ai
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider

url = sys.argv[1] + "/v1"
client = openai.OpenAI(base_url=url, api_key="none", max_retries=0)
messages = [{"role": "user", "content": "Who is it?"}]
greedy = {"model": "story", "temperature": 0, "max_tokens": 220}
failures = 0


class Place(pydantic.BaseModel):
    city: str = pydantic.Field(max_length=8)
    zip: str = pydantic.Field(pattern=r"^\d{5}$")


class Person(pydantic.BaseModel):
    """Someone."""

    name: str = pydantic.Field(max_length=8)
    age: int = pydantic.Field(ge=0, le=130)
    kind: typing.Literal["a", "b"]
    place: Place | None = None
    tags: list[typing.Annotated[str, pydantic.StringConstraints(max_length=4)]] = pydantic.Field(max_length=2)


def weather(city: str) -> str:
    """Tells the weather of a city."""
    return city


def expect(what, get, good):
    global failures
    try:
        found = get()
        if good(found):
            return
        why = repr(found)
    except Exception as error:  # an exception is a failure of that call only
        why = f"{type(error).__name__}: {error}"
    failures += 1
    print(f"{what}: {why}"[:600])


def is_person(found):
    return isinstance(found, Person)


wanted = client.chat.completions.create(**{**greedy, "max_tokens": 12}, messages=messages).choices[0].message.content

for mode in (instructor.Mode.JSON_SCHEMA, instructor.Mode.TOOLS, instructor.Mode.TOOLS_STRICT):
    asks = instructor.from_openai(client, mode=mode).chat.completions
    ask = {**greedy, "max_retries": 0, "messages": messages}
    expect(f"instructor {mode.name}", lambda: asks.create(**ask, response_model=Person), is_person)
    expect(f"instructor {mode.name}, streamed", lambda: list(asks.create_partial(**ask, response_model=Person))[-1], lambda found: found.tags is not None)
union = instructor.from_openai(client, mode=instructor.Mode.JSON_SCHEMA).chat.completions
expect("instructor, a union", lambda: union.create(**ask, response_model=typing.Union[Person, Place]), lambda found: isinstance(found, (Person, Place)))

chat = {"base_url": url, "api_key": "none", "model": "story", "temperature": 0, "max_retries": 0}
short, long = (langchain_openai.ChatOpenAI(**chat, max_tokens=count) for count in (12, 220))
expect("langchain", lambda: short.invoke("Who is it?").content, lambda found: found == wanted)
expect("langchain, streamed", lambda: "".join(each.content for each in short.stream("Who is it?")), lambda found: found == wanted)
for method in ("json_schema", "function_calling"):
    expect(f"langchain {method}", lambda: long.with_structured_output(Person, method=method).invoke("Who is it?"), is_person)
expect("langchain, a tool", lambda: long.bind_tools([langchain_core.tools.tool(weather)], tool_choice="weather").invoke("Weather?").tool_calls,
       lambda found: found[0]["name"] == "weather" and list(found[0]["args"]) == ["city"])
responses = langchain_openai.ChatOpenAI(**chat, max_tokens=12, use_responses_api=True)
expect("langchain, responses", lambda: responses.invoke("Who is it?").content[0]["text"], lambda found: found == wanted)

for kind in (OpenAIChatModel, OpenAIResponsesModel):
    model = kind("story", provider=OpenAIProvider(base_url=url, api_key="none"))
    for count, output, good in ((12, str, lambda found: found == wanted), (220, pydantic_ai.NativeOutput(Person), is_person), (220, pydantic_ai.ToolOutput(Person), is_person)):
        agent = pydantic_ai.Agent(model, output_type=output, model_settings={"temperature": 0, "max_tokens": count}, retries=0)
        expect(f"pydantic-ai {kind.__name__} {output}", lambda: agent.run_sync("Who is it?").output, good)
sys.exit(1 if failures else 0)
