"""/v1/embeddings of a running `llmpart serve`, beside the vectors that sentence-transformers made (tests/models/embeddings.py).

embeddings.py URL MODEL VECTORS.json [apart]: by plain HTTP, and by OpenAI's client and LiteLLM where they are installed. Prints each failure; the
exit status is 1 if there is one. `skipped: ` lines say what is not installed.
"""

import base64
import json
import math
import os
import re
import struct
import sys
import threading
import urllib.error
import urllib.request

url, model, path = sys.argv[1:4]
apart = sys.argv[4:] == ["apart"]
known = json.load(open(path))
texts, tokens, vectors = known["texts"], known["tokens"], known["vectors"]
width, count = len(vectors[0]), sum(map(len, tokens))
failures = 0


def check(what, good, found=""):
    global failures
    if not good:
        failures += 1
        print(f"{what}: {found}")


def near(what, found, wanted):
    worst = max(abs(a - b) for a, b in zip(found, wanted)) if len(found) == len(wanted) else math.inf
    check(what, worst < 2e-5, f"differs by {worst}")


def post(**body):
    request = urllib.request.Request(url + "/v1/embeddings", json.dumps(body).encode(), {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=120) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def unpack(text):
    data = base64.b64decode(text, validate=True)
    return struct.unpack(f"<{len(data) // 4}f", data)


def plain():
    for name in (model, "embeddings"):
        status, answer = post(model=name, input=texts)
        check("status", status == 200, (status, answer))
        check("form", (answer["object"], answer["model"]) == ("list", model), answer)
        check("usage", answer["usage"] == {"prompt_tokens": count, "total_tokens": count}, answer["usage"])
        check("order", [(d["object"], d["index"]) for d in answer["data"]] == [("embedding", i) for i in range(len(texts))], answer)
        for text, data, wanted in zip(texts, answer["data"], vectors):
            near(text, data["embedding"], wanted)
    near("one text", post(model=model, input=texts[0])[1]["data"][0]["embedding"], vectors[0])
    near("token numbers", post(model=model, input=tokens[1])[1]["data"][0]["embedding"], vectors[1])
    both = post(model=model, input=[tokens[2], tokens[0]])[1]["data"]
    near("lists of token numbers", both[0]["embedding"] + both[1]["embedding"], vectors[2] + vectors[0])
    near("the model's own width", post(model=model, input=texts[1], dimensions=width)[1]["data"][0]["embedding"], vectors[1])
    packed = post(model=model, input=texts, encoding_format="base64")[1]["data"]
    loose = post(model=model, input=texts, encoding_format="float")[1]["data"]
    for a, b in zip(packed, loose):
        check("base64", unpack(a["embedding"]) == struct.unpack(f"<{width}f", struct.pack(f"<{width}f", *b["embedding"])), a)


def refusals():
    long = {"input": [5] * 4096} if "bert" in path else {"input": [10**6]}
    for what, body in {
        "'input' has a text that is empty": {"input": ""},
        "'input' must be text": {"input": 5},
        "'input' has 0 texts": {"input": []},
        "token numbers": {"input": [5, 1.5]},
        "and the vocabulary": {"input": [10**6]},
        "maximum context length" if "bert" in path else "the vocabulary": long,
        "'encoding_format'": {"input": "a", "encoding_format": "hex"},
        f"have {width} values": {"input": "a", "dimensions": width - 1},
        "no model for embeddings": {"input": "a", "model": "other"},
        "'model' must be text": {"input": "a", "model": 7},
        "'input_type' is not supported": {"input": "a", "input_type": "query"},
    }.items():
        status, answer = post(**{"model": model, **body})
        good = status == (404 if "no model" in what else 400) and answer["error"]["type"] == "invalid_request_error" and what in answer["error"]["message"]
        check(what, good, (status, answer))


def concurrent():
    """Answers do not depend on the requests beside them."""
    found = [None] * 16

    def one(i):
        found[i] = post(model=model, input=[texts[i % len(texts)]] * 3)[1]["data"]

    threads = [threading.Thread(target=one, args=(i,)) for i in range(len(found))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for i, data in enumerate(found):
        for d in data:
            near(f"at the same time, request {i}", d["embedding"], vectors[i % len(texts)])


def passes():
    with urllib.request.urlopen(url + "/metrics", timeout=120) as answer:
        return int(re.search(r"^llmpart_embedding_passes_total (\d+)$", answer.read().decode(), re.MULTILINE).group(1))


def together():
    """Texts share passes unless the bundle runs them apart, and each has the vector that it has alone, to the bit."""
    many = (texts * 20)[:30]
    before = passes()
    found = post(model=model, input=many)[1]["data"]
    taken = passes() - before
    check("passes", taken == len(many) if apart else 0 < taken <= len(many) // 3, f"{taken} passes over {len(many)} texts")
    for text, data in zip(many, found[: len(texts)]):
        check("together as alone", data["embedding"] == post(model=model, input=text)[1]["data"][0]["embedding"], text)
    check("all alike", all(d["embedding"] == found[i % len(texts)]["embedding"] for i, d in enumerate(found)))


def openai_client():
    try:
        import openai
    except ImportError:
        print("skipped: openai is not installed", file=sys.stderr)
        return
    client = openai.OpenAI(base_url=url + "/v1", api_key="none", max_retries=0, timeout=120)
    for extra in ({}, {"encoding_format": "float"}, {"encoding_format": "base64"}):  # {}: the client asks for base64 and unpacks it
        answer = client.embeddings.create(model=model, input=texts, **extra)
        for data, wanted in zip(answer.data, vectors):
            near(f"OpenAI's client {extra}", unpack(data.embedding) if isinstance(data.embedding, str) else data.embedding, wanted)
        check("its usage", answer.usage.total_tokens == count, answer.usage)
    near("its tokens", client.embeddings.create(model=model, input=tokens[0]).data[0].embedding, vectors[0])
    check("its list of models", model in [m.id for m in client.models.list()])
    try:
        client.embeddings.create(model=model, input="a", dimensions=3)
        check("dimensions", False, "was not refused")
    except openai.BadRequestError as error:
        check("dimensions", "not supported" in str(error), error)


def light():
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # reads no list from the network
    try:
        import litellm
    except ImportError:
        print("skipped: litellm is not installed", file=sys.stderr)
        return
    answer = litellm.embedding(model="openai/" + model, api_base=url + "/v1", api_key="none", input=texts)
    for data, wanted in zip(answer.data, vectors):
        near("LiteLLM", data["embedding"], wanted)


for test in (plain, refusals, concurrent, together, openai_client, light):
    try:
        test()
    except Exception as error:  # an exception is a failure of that part only
        check(test.__name__, False, f"{type(error).__name__}: {error}")
sys.exit(1 if failures else 0)
