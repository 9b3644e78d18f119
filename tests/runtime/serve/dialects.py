"""PyPI's clients of OpenAI's responses, of Anthropic's messages and of Ollama against a running `llmpart serve`.

dialects.py URL MODEL OTHER [KEY OTHER_KEY]: OTHER is the address of a server whose model has no chat template. Each answer is that of
/v1/chat/completions. With keys, histories belong to the key. Prints each failure; the exit status is 1 if there is one.
"""

import json
import sys
import urllib.error
import urllib.request

import anthropic
import ollama
import openai

url, model, other = sys.argv[1:4]
keys = sys.argv[4:6] or ["none", None]
openai_client = openai.OpenAI(base_url=url + "/v1", api_key=keys[0], max_retries=0, timeout=120)
claude = anthropic.Anthropic(base_url=url, api_key=keys[0], max_retries=0, timeout=120)
llama = ollama.Client(host=url, headers={"Authorization": "Bearer " + keys[0]})
system, question = "You tell stories.", "Tell a story."
greedy = {"model": model, "temperature": 0}
schema = {"type": "object", "properties": {"city": {"type": "string", "maxLength": 10}, "days": {"type": "integer", "minimum": 1, "maximum": 9}},
          "required": ["city", "days"], "additionalProperties": False}
failures = 0


def check(what, good, found=""):
    global failures
    if not good:
        failures += 1
        print(f"{what}: {found}"[:700])
        if failures > 20:
            sys.exit(1)


def chat(messages, **more):
    answer = openai_client.chat.completions.create(**{**greedy, "max_tokens": 12, **more}, messages=messages)
    return answer.choices[0].message.content, answer.usage


def responses():
    whole, usage = chat([{"role": "system", "content": system}, {"role": "user", "content": question}])
    ask = {**greedy, "instructions": system, "max_output_tokens": 12}
    for form in (question, [{"role": "user", "content": question}], [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": question}]}]):
        answer = openai_client.responses.create(**ask, input=form)
        check("text", answer.output_text == whole, answer)
    check("usage", (answer.usage.input_tokens, answer.usage.output_tokens) == (usage.prompt_tokens, 12), answer.usage)
    check("its end", answer.status == "incomplete" and answer.incomplete_details.reason == "max_output_tokens", answer)
    events = list(openai_client.responses.create(**ask, input=question, stream=True))
    final = events[-1].response
    check("streamed", final.output_text == whole and "".join(e.delta for e in events if e.type == "response.output_text.delta") == whole, final)
    check("order", [e.sequence_number for e in events] == list(range(len(events))), events)
    check("first and last", events[0].type == "response.created" and events[-1].type == "response.incomplete", [e.type for e in events])
    # the state is the server's, or the client's
    wanted, _ = chat([{"role": "user", "content": question}, {"role": "assistant", "content": whole_of(ask, question)}, {"role": "user", "content": "Go on."}])
    first = openai_client.responses.create(**{**greedy, "max_output_tokens": 12}, input=question)
    next_one = openai_client.responses.create(**{**greedy, "max_output_tokens": 12}, input="Go on.", previous_response_id=first.id)
    check("goes on", next_one.output_text == wanted, (next_one.output_text, wanted))
    again = openai_client.responses.create(**{**greedy, "max_output_tokens": 12}, input=[{"role": "user", "content": question}, *first.output, {"role": "user", "content": "Go on."}])
    check("the client's state", again.output_text == wanted, again.output_text)
    unkept = openai_client.responses.create(**{**greedy, "max_output_tokens": 2}, input=question, store=False)
    for missing in (unkept.id, "resp_none"):
        refused("kept nothing", "names no answer that is kept", openai_client.responses.create, **greedy, input="a", previous_response_id=missing)
    if keys[1]:
        stranger = openai_client.with_options(api_key=keys[1])
        refused("another key", "names no answer that is kept", stranger.responses.create, **greedy, input="a", previous_response_id=first.id)
    for extra in ({"reasoning": {"effort": "high"}}, {"tools": [{"type": "web_search"}]}, {"background": True}, {"prompt": {"id": "x"}},
                  {"input": [{"type": "item_reference", "id": "x"}]}, {"input": [{"role": "user", "content": [{"type": "input_image", "image_url": "x"}]}]}):
        refused(str(extra), "not supported", openai_client.responses.create, **{**greedy, "input": "a", **extra})
    # calls and their results
    tools = [{"type": "function", "name": "get_weather", "parameters": schema, "strict": True}]
    ask = {**greedy, "input": question, "tools": tools, "tool_choice": "required", "max_output_tokens": 200}
    answer = openai_client.responses.create(**ask)
    call = answer.output[0]
    check("call", call.type == "function_call" and set(json.loads(call.arguments)) == {"city", "days"} and answer.status == "completed", answer)
    with openai_client.responses.stream(**ask) as stream:
        done = [e for e in stream if e.type == "response.function_call_arguments.done"]
        check("streamed call", stream.get_final_response().output[0].arguments == call.arguments and len(done) == 1, done)
    told = openai_client.responses.create(**{**greedy, "max_output_tokens": 8}, previous_response_id=answer.id,
                                          input=[{"type": "function_call_output", "call_id": call.call_id, "output": "rain"}])
    check("told", told.output_text, told)
    form = {"format": {"type": "json_schema", "name": "place", "schema": schema, "strict": True}}
    check("format", set(json.loads(openai_client.responses.create(**{**greedy, "max_output_tokens": 200}, input=question, text=form).output_text)) == {"city", "days"})


def whole_of(ask, text):
    return openai_client.responses.create(**{**ask, "instructions": None}, input=text).output_text


def refused(what, text, call, **options):
    try:
        check(what, False, f"was not refused: {call(**options)}")
    except (openai.BadRequestError, anthropic.BadRequestError, ollama.ResponseError) as error:
        check(what, text in str(error), str(error))


def unknown_models():
    one = [{"role": "user", "content": question}]
    for call in (lambda: openai_client.chat.completions.create(model="moon", messages=one), lambda: openai_client.models.retrieve("moon"),
                 lambda: openai_client.chat.completions.create(model="cloud", messages=one, stream=True),
                 lambda: openai_client.responses.create(model="moon", input=question)):
        try:
            check("an unknown model", False, call())
        except openai.NotFoundError as error:
            check("an unknown model", error.code == "model_not_found" and error.param == "model", error)
    try:
        check("an unknown model", False, claude.messages.create(model="moon", max_tokens=5, messages=one))
    except anthropic.NotFoundError as error:
        check("an unknown model", error.body["error"]["type"] == "not_found_error" and "'moon'" in str(error), error)


def messages():
    whole, usage = chat([{"role": "system", "content": system}, {"role": "user", "content": question}])
    ask = {"model": model, "extra_body": {"temperature": 0}, "max_tokens": 12, "messages": [{"role": "user", "content": question}]}
    for form in (system, [{"type": "text", "text": system, "cache_control": {"type": "ephemeral"}}]):
        answer = claude.messages.create(**ask, system=form)
        check("messages text", answer.content[0].text == whole and answer.stop_reason == "max_tokens", answer)
    given = answer.usage.input_tokens + answer.usage.cache_read_input_tokens
    check("messages usage", (given, answer.usage.output_tokens) == (usage.prompt_tokens, 12), answer.usage)
    with claude.messages.stream(**ask, system=system) as stream:
        check("messages streamed", "".join(stream.text_stream) == whole)
        final = stream.get_final_message()
        check("messages final", final.content[0].text == whole and final.usage.output_tokens == 12 and final.stop_reason == "max_tokens", final)
    cut = whole.split(" ")[3]
    answer = claude.messages.create(**ask, system=system, stop_sequences=["never", cut])
    check("stop", answer.stop_reason == "stop_sequence" and answer.stop_sequence == cut, answer)
    counted = claude.messages.count_tokens(model=model, system=system, messages=ask["messages"])
    check("count", counted.input_tokens == usage.prompt_tokens, counted)
    tools = [{"name": "get_weather", "description": "Tells.", "input_schema": schema}]
    ask = {**ask, "tools": tools, "max_tokens": 200, "tool_choice": {"type": "any"}}
    answer = claude.messages.create(**ask)
    call = answer.content[0]
    check("messages call", call.type == "tool_use" and set(call.input) == {"city", "days"} and answer.stop_reason == "tool_use", answer)
    with claude.messages.stream(**{**ask, "tool_choice": {"type": "tool", "name": "get_weather"}}) as stream:
        for _ in stream:
            pass
        check("messages streamed call", stream.get_final_message().content[0].input == call.input)
    results = [{"type": "tool_result", "tool_use_id": call.id, "content": [{"type": "text", "text": "rain"}]}, {"type": "text", "text": "And now?"}]
    history = [*ask["messages"], {"role": "assistant", "content": answer.content}, {"role": "user", "content": results}]
    told = claude.messages.create(**{**ask, "tool_choice": {"type": "none"}, "max_tokens": 8, "messages": history})
    check("messages told", told.content[0].text, told)
    for extra in ({"thinking": {"type": "enabled", "budget_tokens": 1024}}, {"tools": [{"type": "web_search_20250305", "name": "web_search"}]},
                  {"messages": [{"role": "user", "content": [{"type": "image", "source": {"type": "url", "url": "x"}}]}]}):
        refused(str(extra), "not supported", claude.messages.create, **{**ask, **extra})
    try:
        check("messages key", keys[1] is None or not claude.with_options(api_key="wrong").messages.create(**ask))
    except anthropic.AuthenticationError as error:
        check("messages key", error.body["error"]["type"] == "authentication_error", error)


def of_ollama():
    whole, usage = chat([{"role": "user", "content": question}])
    ask = {"model": model + ":latest", "messages": [{"role": "user", "content": question}], "options": {"temperature": 0, "num_predict": 12, "num_ctx": 4096}}
    answer = llama.chat(**ask)
    check("ollama text", answer.message.content == whole and answer.done_reason == "length", answer)
    check("ollama counts", (answer.prompt_eval_count, answer.eval_count) == (usage.prompt_tokens, 12) and answer.total_duration >= answer.eval_duration > 0, answer)
    parts = list(llama.chat(**ask, stream=True))
    check("ollama streamed", "".join(p.message.content for p in parts) == whole and [p.done for p in parts] == [False] * (len(parts) - 1) + [True], parts)
    made = llama.generate(model=model, prompt=question, options=ask["options"])
    check("ollama generate", made.response == whole, made)
    check("ollama generate, streamed", "".join(p.response for p in llama.generate(model=model, prompt=question, options=ask["options"], stream=True)) == whole)
    raw = openai_client.completions.create(**greedy, prompt="Once upon a time", max_tokens=12).choices[0].text
    check("ollama raw", llama.generate(model=model, prompt="Once upon a time", raw=True, options=ask["options"]).response == raw)
    plain = ollama.Client(host=other)
    check("ollama without a template", plain.generate(model="plain", prompt="Once upon a time", options=ask["options"]).response == raw)
    tool = {"type": "function", "function": {"name": "get_weather", "description": "Tells.", "parameters": schema}}
    history = [*ask["messages"], {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "get_weather", "arguments": {"city": "Rome", "days": 1}}}]},
               {"role": "tool", "content": "rain", "tool_name": "get_weather"}]
    check("ollama told", llama.chat(**{**ask, "messages": history}, tools=[tool]).message.content)
    formed = llama.chat(**{**ask, "options": {"temperature": 0, "num_predict": 200}}, format=schema)
    check("ollama format", set(json.loads(formed.message.content)) == {"city", "days"}, formed)
    check("ollama list", [m.model for m in llama.list().models] == [model], llama.list())
    check("ollama show", "tools" in llama.show(model).capabilities)
    for extra in ({"think": True}, {"options": {"mirostat": 1}}, {"messages": [{"role": "user", "content": "a", "images": ["aGk="]}]}):
        refused(str(extra), "not supported", llama.chat, **{**ask, **extra})
    for call in (lambda: llama.show("moon"), lambda: llama.chat(model="moon", messages=ask["messages"])):
        try:
            check("ollama's unknown model", not call())
        except ollama.ResponseError as error:
            good = error.status_code == 404 and error.error.startswith("there is no model 'moon'") and model in error.error
            check("ollama's unknown model", good, error)
    with urllib.request.urlopen(url + "/api/version") as found:
        check("version", json.load(found)["version"])


def errors():
    """Each dialect has its own form of errors. Values of other kinds are refused, and nothing else happens."""
    kinds = [7, [], [7], {}, [{"role": 7, "content": 7}], [{"role": "user", "content": [{"type": 7}]}], {"type": "tool"}, [{"type": "function_call"}]]
    members = ("model", "input", "messages", "prompt", "tools", "tool_choice", "system", "instructions", "text", "options", "format", "stream", "previous_response_id")
    for path in ("/v1/responses", "/v1/messages", "/v1/messages/count_tokens", "/api/chat", "/api/generate"):
        good = {"model": model, "input": "a", "max_output_tokens": 1} if path == "/v1/responses" else {"model": model, "prompt": "a", "options": {"num_predict": 1}} \
            if path == "/api/generate" else \
            {"model": model, "messages": [{"role": "user", "content": "a"}], **({"options": {"num_predict": 1}} if path == "/api/chat" else {"max_tokens": 1})}
        for member in members:
            for value in kinds:
                body = json.dumps({**good, member: value}).encode()
                request = urllib.request.Request(url + path, body, {"Content-Type": "application/json", "Authorization": "Bearer " + keys[0]})
                try:
                    urllib.request.urlopen(request).read()
                except OSError as error:
                    check(path, getattr(error, "code", 0) == 400 and json.load(error), (body, error))
    for path, form in (("/v1/responses", lambda e: e["error"]["message"]), ("/v1/messages", lambda e: e["error"]["message"] if e["type"] == "error" else ""), ("/api/chat", lambda e: e["error"])):
        for body, text in ((b"{", "not valid JSON"), (b'{"surprise":1}', "'surprise' is not supported")):
            request = urllib.request.Request(url + path, body, {"Content-Type": "application/json", "Authorization": "Bearer " + keys[0]})
            try:
                urllib.request.urlopen(request)
                check(path, False, "was not refused")
            except urllib.error.HTTPError as error:
                check(path, error.code == 400 and text in form(json.load(error)), text)


for test in (responses, messages, of_ollama, unknown_models, errors):
    try:
        test()
    except Exception as error:  # an exception is a failure of that part only
        check(test.__name__, False, f"{type(error).__name__} in line {error.__traceback__.tb_next.tb_lineno}: {error}")
sys.exit(1 if failures else 0)
