"""The OpenAI client and LiteLLM against a running `llmpart serve`.

clients.py URL MODEL WANTED: WANTED is the greedy continuation of "Once upon a time" by 12 tokens, as `llmpart run`
gives it. Prints each failure; the exit status is 1 if there is one.
"""

import json
import math
import os
import sys
import threading

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # reads no list from the network
import jsonschema
import litellm
import openai
import tokenizers

url, model, wanted = sys.argv[1:4]
client = openai.OpenAI(base_url=url + "/v1", api_key="none", max_retries=0, timeout=120)
ask = {"model": model, "prompt": "Once upon a time", "max_tokens": 12, "temperature": 0}
chat = {"model": model, "messages": [{"role": "user", "content": "Tell a story."}], "max_tokens": 12, "temperature": 0}
failures = 0


def check(what, good, found=""):
    global failures
    if not good:
        failures += 1
        print(f"{what}: {found}")


def refused(what, text, call, **options):
    try:
        answer = call(**options)
        check(what, False, f"was not refused: {answer}")
    except openai.BadRequestError as error:
        check(what, text in str(error), str(error))


def models():
    names = [one.id for one in client.models.list()]
    check("models", model in names and "edge" in names and "auto" in names, names)
    for name in (model, "edge", "auto"):
        check("retrieved", client.models.retrieve(name).id == name, name)
    try:
        check("retrieved nothing", False, client.models.retrieve("no-such-model"))
    except openai.NotFoundError as error:
        check("retrieved nothing", error.code == "model_not_found", error)
    answer = client.completions.create(**ask)
    check("model's name", answer.model == model, answer.model)
    check("text", answer.choices[0].text == wanted, repr(answer.choices[0].text))
    check("usage", (answer.usage.prompt_tokens, answer.usage.completion_tokens) == (4, 12), answer.usage)
    check("finish", answer.choices[0].finish_reason == "length", answer.choices[0].finish_reason)


def streams():
    parts = list(client.completions.create(**ask, stream=True, stream_options={"include_usage": True}))
    check("streamed", "".join(c.text for p in parts for c in p.choices) == wanted, parts)
    check("streamed usage", parts[-1].usage.completion_tokens == 12 and parts[-1].choices == [], parts[-1])
    whole = client.chat.completions.create(**chat).choices[0].message.content
    parts = list(client.chat.completions.create(**chat, stream=True))
    check("chat streamed", "".join(p.choices[0].delta.content or "" for p in parts) == whole, parts)
    check("role", parts[0].choices[0].delta.role == "assistant", parts[0])
    check("one id", len({p.id for p in parts}) == 1, [p.id for p in parts])


def prompts():
    """A prompt as token numbers, by Hugging Face's tokenizer; prompts that begin alike."""
    tokenizer = tokenizers.Tokenizer.from_file(os.environ["LP_SOURCE"] + "/examples/default-model/tokenizer.json")
    ids = tokenizer.encode(ask["prompt"]).ids
    for prompt in (ids, [ids]):
        answer = client.completions.create(**{**ask, "prompt": prompt})
        check("a prompt of tokens", answer.choices[0].text == wanted, answer)
        check("its usage", answer.usage.prompt_tokens == len(ids), answer.usage)
    refused("too great a token", "and the vocabulary", client.completions.create, **{**ask, "prompt": [10**8]})
    refused("no token", "list of token numbers", client.completions.create, **{**ask, "prompt": [1.5]})
    system = {"role": "system", "content": "You tell stories. " + "One day Lily went to the park with her mom. " * 8}
    for question in ("Tell of a dog.", "Now tell of a cat and a bird."):
        messages = [system, {"role": "user", "content": question}]
        usage = client.chat.completions.create(**{**chat, "messages": messages}).usage
    check("a shared system prompt", 64 <= usage.prompt_tokens_details.cached_tokens < usage.prompt_tokens, usage)


def several():
    """Several prompts in one request: choices in the order of the prompts, each as if its prompt were alone."""
    texts = ["Once upon a time", "One day", "Lily and her dog", "The end of the story was"]
    alone = [client.completions.create(**{**ask, "prompt": text}) for text in texts]
    answer = client.completions.create(**{**ask, "prompt": texts})
    check("several prompts", [c.text for c in answer.choices] == [one.choices[0].text for one in alone], answer)
    check("their order", [c.index for c in answer.choices] == list(range(len(texts))), answer)
    usage = sum(one.usage.prompt_tokens for one in alone), sum(one.usage.completion_tokens for one in alone)
    check("their usage", (answer.usage.prompt_tokens, answer.usage.completion_tokens) == usage, answer.usage)
    warm = {**ask, "temperature": 1.0, "n": 2, "seed": 3}
    alone = [c.text for text in texts for c in client.completions.create(**{**warm, "prompt": text}).choices]
    answer = client.completions.create(**{**warm, "prompt": texts})
    check("prompts with choices", [c.text for c in answer.choices] == alone, answer)
    streamed, ends = [""] * len(alone), [0] * len(alone)
    for part in client.completions.create(**{**warm, "prompt": texts}, stream=True):
        for c in part.choices:
            streamed[c.index] += c.text
            ends[c.index] += c.finish_reason is not None
    check("prompts, streamed", streamed == alone and ends == [1] * len(alone), (streamed, ends))
    many = client.completions.create(**{**ask, "prompt": texts * 32, "max_tokens": 2}).choices
    check("128 prompts", len(many) == 128 and all(c.text == many[i % 4].text for i, c in enumerate(many)), many)
    refused("too many prompts", "at most 128", client.completions.create, **{**ask, "prompt": texts * 33})
    refused("too many answers", "at most 128", client.completions.create, **{**ask, "prompt": texts * 32}, n=2)
    refused("a prompt among others", "'prompt' must be text", client.completions.create, **{**ask, "prompt": ["a", ""]})
    refused("a prompt of tokens", "and the vocabulary", client.completions.create, **{**ask, "prompt": [[1], [10**8]]})


def stops():
    cut = wanted.split(" ")[3]
    answer = client.completions.create(**ask, stop=cut)
    check("stop", answer.choices[0].text == wanted[: wanted.index(cut)], repr(answer.choices[0].text))
    check("stop's finish", answer.choices[0].finish_reason == "stop", answer.choices[0].finish_reason)


def choices():
    warm = {**ask, "temperature": 1.0}
    answer = client.completions.create(**warm, n=3, seed=7)
    texts = [c.text for c in answer.choices]
    check("n", [c.index for c in answer.choices] == [0, 1, 2] and len(set(texts)) > 1, texts)
    again = [c.text for c in client.completions.create(**warm, n=3, seed=7).choices]
    check("seed", texts == again, again)
    one = client.completions.create(**warm, seed=7).choices[0].text
    check("the first choice is that of n 1", one == texts[0], one)
    other = {client.completions.create(**warm).choices[0].text for _ in range(6)}
    check("without a seed", len(other) > 1, other)
    streamed = ["", "", ""]
    for part in client.completions.create(**warm, n=3, seed=7, stream=True):
        for c in part.choices:
            streamed[c.index] += c.text
    check("n, streamed", streamed == texts, streamed)


def probabilities():
    answer = client.completions.create(**ask, logprobs=5).choices[0]
    told = answer.logprobs
    check("logprobs' tokens", "".join(told.tokens) == wanted, told.tokens)
    for token, logprob, top in zip(told.tokens, told.token_logprobs, told.top_logprobs):
        check("greedy takes the likeliest", len(top) == 5 and max(top, key=top.get) == token, (token, top))
        check("its logprob", abs(top[token] - logprob) < 1e-6, (token, logprob, top))
        check("a share", sum(math.exp(p) for p in top.values()) <= 1 + 1e-5, top)
    check("offsets", told.text_offset == [len("".join(told.tokens[:i])) for i in range(12)], told.text_offset)
    warm = {**ask, "temperature": 2.0, "seed": 2**63 - 1, "max_tokens": 40}
    for top in (0, 1, 2):
        told = client.completions.create(**warm, logprobs=top).choices[0].logprobs
        for token, logprob, others in zip(told.tokens, told.token_logprobs, told.top_logprobs):
            if "\ufffd" not in token:  # the name of several tokens
                check("the drawn token among the likeliest", others.get(token) == logprob, (token, others))
            check("no more than these", len(others) <= top + 1, others)
        check("unlikely tokens are drawn", any(len(others) == top + 1 for others in told.top_logprobs), told)
    content = client.chat.completions.create(**chat, logprobs=True, top_logprobs=2).choices[0]
    check("chat's tokens", "".join(t.token for t in content.logprobs.content) == content.message.content, content)
    for t in content.logprobs.content:
        check("top_logprobs", len(t.top_logprobs) == 2 and t.top_logprobs[0].token == t.token, t)
        check("bytes", bytes(t.bytes).decode(errors="replace") == t.token, t)
    streamed = []
    for part in client.chat.completions.create(**chat, logprobs=True, stream=True):
        streamed += [t.token for t in (part.choices[0].logprobs.content if part.choices[0].logprobs else [])]
    check("streamed logprobs", "".join(streamed) == content.message.content, streamed)
    refused("top_logprobs only", "'logprobs'", client.chat.completions.create, **chat, top_logprobs=2)


def draws():
    first = {**ask, "max_tokens": 1, "prompt": "Once upon a time there was a girl called"}
    likely = client.completions.create(**first, logprobs=3).choices[0].logprobs.top_logprobs[0]
    names = sorted(likely, key=likely.get, reverse=True)
    warm = {**first, "temperature": 2.0}
    for name, extra in (("top_k", {"top_k": 1}), ("min_p", {"min_p": 1.0}), ("top_p", {"top_p": 1e-6}), ("top_p 0", {"top_p": 0})):
        found = {client.completions.create(**warm, seed=s, extra_body=extra).choices[0].text for s in range(8)}
        check(name, found == {names[0]}, found)
    found = {client.completions.create(**warm, seed=s).choices[0].text for s in range(16)}
    check("temperature", len(found) > 2, found)
    banned = {str(i): -100 for i in range(1024)}
    kept = client.completions.create(**ask, logit_bias={**banned, "300": 100}, logprobs=1).choices[0]
    check("logit_bias", len(set(kept.logprobs.tokens)) == 1, kept.logprobs.tokens)
    long = {**ask, "max_tokens": 60}
    plain = client.completions.create(**long, logprobs=0).choices[0].logprobs.tokens
    check("the model repeats itself", len(set(plain)) < len(plain), plain)
    for extra in ({"presence_penalty": 2.0}, {"frequency_penalty": 2.0}):
        more = client.completions.create(**long, **extra, logprobs=0).choices[0].logprobs.tokens
        check(f"{extra}", len(set(more)) > len(set(plain)), more)
    more = client.completions.create(**long, logprobs=0, extra_body={"repetition_penalty": 50.0}).choices[0].logprobs.tokens
    check("repetition_penalty", len(set(more)) == len(more), more)


def formats():
    schema = {
        "type": "object",
        "properties": {
            "name": {"type": "string", "maxLength": 12},
            "kind": {"type": "string", "enum": ["cat", "dog"]},
            "age": {"type": "integer", "minimum": 0, "maximum": 30},
            "born": {"type": "string", "format": "date"},
            "tag": {"type": "string", "pattern": "^[A-Z]{2}-[0-9]{4}$"},
            "weight": {"type": "number", "exclusiveMinimum": 0, "maximum": 99.5},
            "place": {"type": "array", "prefixItems": [{"type": "number"}, {"type": "boolean"}], "minItems": 2, "maxItems": 2},
            "friends": {"type": "array", "items": {"$ref": "#/$defs/friend"}, "minItems": 1, "maxItems": 2},
            "home": {"anyOf": [{"type": "null"}, {"type": "boolean"}]},
        },
        "required": ["name", "kind", "age", "born", "tag", "weight", "place", "friends", "home"],
        "additionalProperties": False,
        "$defs": {"friend": {"type": "object", "properties": {"name": {"type": "string", "maxLength": 8}}, "required": ["name"]}},
    }
    named = {"type": "json_schema", "json_schema": {"name": "pet", "schema": schema, "strict": True}}
    for seed in range(4):
        answer = client.chat.completions.create(
            **{**chat, "max_tokens": 400, "temperature": 1.0}, seed=seed, response_format=named
        ).choices[0]
        check("schema's finish", answer.finish_reason == "stop", answer)
        try:
            jsonschema.validate(json.loads(answer.message.content), schema)
        except (ValueError, jsonschema.ValidationError) as error:
            check("schema", False, f"{error} in {answer.message.content!r}")
    answer = client.chat.completions.create(
        **{**chat, "max_tokens": 400, "temperature": 1.0}, seed=1, response_format={"type": "json_object"}
    ).choices[0]
    if answer.finish_reason == "stop":
        check("json_object", isinstance(json.loads(answer.message.content), dict), answer.message.content)
    named["json_schema"]["schema"] = {"properties": {"a": {"contains": {}}}}
    refused("contains", "properties.a: the schema", client.chat.completions.create, **chat, response_format=named)


tools = [
    {
        "type": "function",
        "function": {
            "name": name,
            "description": "Tells something.",
            "parameters": {
                "type": "object",
                "properties": {"city": {"type": "string", "maxLength": 10}, "days": {"type": "integer"}},
                "required": ["city", "days"],
            },
        },
    }
    for name in ("get_weather", "get_time")
]


def calls():
    long = {**chat, "max_tokens": 200}
    named = {"type": "function", "function": {"name": "get_time"}}
    answer = client.chat.completions.create(**long, tools=tools, tool_choice=named).choices[0]
    check("call's finish", answer.finish_reason == "tool_calls", answer)
    call = answer.message.tool_calls[0] if answer.message.tool_calls else None
    check("call", call and call.function.name == "get_time" and call.id, answer)
    if call:
        jsonschema.validate(json.loads(call.function.arguments), tools[1]["function"]["parameters"])
    answer = client.chat.completions.create(**long, tools=tools, tool_choice="required").choices[0]
    check("required", answer.message.tool_calls and answer.message.content is None, answer)
    parts = list(client.chat.completions.create(**long, tools=tools, tool_choice=named, stream=True))
    streamed = [c for p in parts for c in (p.choices[0].delta.tool_calls or [])]
    check("streamed call", len(streamed) == 1 and streamed[0].function.name == "get_time", parts)
    answer = client.chat.completions.create(**chat, tools=tools).choices[0]
    check("auto", answer.message.content and not answer.message.tool_calls, answer)
    with_tools = client.chat.completions.create(**chat, tools=tools).usage.prompt_tokens
    none = client.chat.completions.create(**chat, tools=tools, tool_choice="none").usage.prompt_tokens
    check("the template has the tools", with_tools > none, (with_tools, none))
    history = chat["messages"] + [
        {"role": "assistant", "content": None, "tool_calls": [
            {"id": "call_1", "type": "function", "function": {"name": "get_time", "arguments": '{"city": "Rome", "days": 1}'}}]},
        {"role": "tool", "tool_call_id": "call_1", "content": "noon"},
    ]
    answer = client.chat.completions.create(**{**chat, "messages": history}, tools=tools)
    check("a tool's answer", answer.choices[0].message.content, answer)


def refusals():
    for key, value in (("suffix", "x"), ("best_of", 2), ("echo", True)):
        refused(key, f"'{key}' is not supported", client.completions.create, **ask, **{key: value})
    for key, value in (("guided_regex", "a+"), ("ignore_eos", True), ("min_tokens", 3)):
        refused(key, f"'{key}' is not supported", client.completions.create, **ask, extra_body={key: value})
    refused("n", "'n' must be a number from 1 to 16", client.completions.create, **ask, n=17)
    refused("a bias beyond", "logit_bias", client.completions.create, **ask, logit_bias={"99999999": 1})
    try:
        client.completions.create(**{**ask, "model": "no-such-model"})
        check("no such model", False)
    except openai.NotFoundError as error:
        check("no such model", "no-such-model" in str(error), error)


def concurrent():
    """Answers do not depend on the requests beside them."""
    found = [None] * 24

    def one(i):
        found[i] = client.completions.create(**{**ask, "max_tokens": 4 + i}).choices[0].text

    threads = [threading.Thread(target=one, args=(i,)) for i in range(len(found))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    alone = [client.completions.create(**{**ask, "max_tokens": 4 + i}).choices[0].text for i in range(len(found))]
    check("at the same time", found == alone, list(zip(found, alone)))


def light():
    """LiteLLM, as a provider that is compatible with OpenAI's API."""
    options = {"model": "openai/" + model, "api_base": url + "/v1", "api_key": "none", "num_retries": 0}
    answer = litellm.text_completion(**options, prompt="Once upon a time", max_tokens=12, temperature=0)
    check("litellm text", answer.choices[0].text == wanted, answer)
    messages = chat["messages"]
    answer = litellm.completion(**options, messages=messages, max_tokens=12, temperature=0, logprobs=True, top_logprobs=1)
    whole = client.chat.completions.create(**chat).choices[0].message.content
    check("litellm chat", answer.choices[0].message.content == whole, answer)
    parts = litellm.completion(**options, messages=messages, max_tokens=12, temperature=0, stream=True)
    check("litellm streamed", "".join(p.choices[0].delta.content or "" for p in parts) == whole)
    answer = litellm.completion(**options, messages=messages, max_tokens=200, tools=tools, tool_choice="required")
    check("litellm call", answer.choices[0].message.tool_calls, answer)


def function(name, parameters):
    return {"type": "function", "function": {"name": name, "description": "", "parameters": parameters}}


def light_forms():
    """What the tests send that LiteLLM holds against each of its providers: forms of messages, of schemas and of tools."""
    options = {"model": "openai/" + model, "api_base": url + "/v1", "api_key": "none", "num_retries": 0, "max_tokens": 24, "temperature": 0}

    def ask(messages, **more):
        return litellm.completion(**{**options, **more}, messages=messages).choices[0]

    text = {"type": "text", "text": "hello", "cache_control": {"type": "ephemeral"}}
    plain = ask([{"role": "system", "content": "hello"}, {"role": "user", "content": "hello"}]).message.content
    for form in ([{"role": "system", "content": [text]}, {"role": "user", "content": [text]}],
                 [{"role": "system", "content": "hello"}, {"role": "user", "content": "hello", "name": "someone"}],
                 [{"role": "system", "content": "hello"}, litellm.Message(role="user", content="hello")]):
        check("litellm message", ask(form).message.content == plain, form)
    check("litellm no tools", ask([{"role": "system", "content": "hello"}, {"role": "user", "content": "hello"}], tools=[]).message.content == plain)
    check("litellm developer", ask([{"role": "developer", "content": "hello"}]).message.content)
    of_two_types = function("shoe", {"$schema": "http://json-schema.org/draft-07/schema#", "type": "object", "required": ["id"],
                                     "properties": {"id": {"type": ["string", "number"], "maxLength": 8}}, "additionalProperties": False})
    with_empty_value = function("search", {"title": "arguments", "type": "object", "required": ["mode"],
                                           "properties": {"mode": {"default": "", "enum": ["", "all"], "title": "Mode", "type": "string"}}})
    messages = [{"role": "user", "content": "hello"}]
    for tool in (of_two_types, with_empty_value):
        answer = ask(messages, tools=[tool], tool_choice="required", max_tokens=100)
        check("litellm finish", answer.finish_reason == "tool_calls", answer)
        call = answer.message.tool_calls[0]
        jsonschema.validate(json.loads(call.function.arguments), tool["function"]["parameters"])
        told = [*messages, answer.message.model_dump(), {"role": "tool", "tool_call_id": call.id, "name": call.function.name, "content": "72"}]
        check("litellm told", ask(told, tools=[tool], tool_choice="none").message.content)
    parts = list(litellm.completion(**{**options, "max_tokens": 100}, messages=messages, tools=[of_two_types], tool_choice="required", stream=True))
    built = litellm.stream_chunk_builder(parts)
    check("litellm built", built.choices[0].message.tool_calls[0].function.name == "shoe", built)
    check("litellm one time", len({part.created for part in parts}) == 1)
    for provider in ("hosted_vllm", "lm_studio", "llamafile", "custom_openai"):
        answer = ask([{"role": "system", "content": "hello"}, {"role": "user", "content": "hello"}], model=f"{provider}/{model}")
        check("litellm " + provider, answer.message.content == plain, answer)


for test in (models, streams, prompts, several, stops, choices, probabilities, draws, formats, calls, refusals, concurrent, light, light_forms):
    try:
        test()
    except Exception as error:  # an exception is a failure of that part only
        check(test.__name__, False, f"{type(error).__name__}: {error}")
sys.exit(1 if failures else 0)
