"""grammar.py BENCH_GRAMMAR: the time of a mask and a step for each token, over the schemas of real tools in
grammar_tools.json and a published vocabulary of 131,072 tokens, beside llguidance and xgrammar where these are there.

Needs the PyPI packages mistral-common (for its vocabulary) and llguidance, and optionally xgrammar. Prints a table: the
median, the 99th percentile and the worst of all tokens in microseconds; `again`: as a later request with a schema that
was asked for before."""

import base64
import importlib.util
import json
import pathlib
import statistics
import struct
import subprocess
import sys
import tempfile
import time


def vocabulary():
    """Tekken's tokens by their numbers; special ones are empty."""
    found = importlib.util.find_spec("mistral_common").submodule_search_locations[0]
    tekken = json.loads((pathlib.Path(found) / "data" / "tekken_240911.json").read_text())
    special = tekken["config"]["default_num_special_tokens"]
    count = tekken["config"]["default_vocab_size"]
    return [b""] * special + [base64.b64decode(token["token_bytes"]) for token in tekken["vocab"][: count - special]]


def encode(text, numbers, longest):
    """The longest token that fits, again and again."""
    out = []
    while text:
        for size in range(min(longest, len(text)), 0, -1):
            number = numbers.get(text[:size])
            if number is not None:
                break
        out.append(number)
        text = text[size:]
    return out


def cases(tokens):
    numbers = {}
    for number, token in enumerate(tokens):
        if token:
            numbers.setdefault(token, number)
    longest = max(map(len, tokens))
    tools = json.loads(pathlib.Path(__file__).with_name("grammar_tools.json").read_text())
    for tool in tools:
        text = json.dumps(tool["value"], ensure_ascii=False)
        yield tool["schema"], encode(text.encode(), numbers, longest)


def own(bench, tokens, all_cases):
    with tempfile.TemporaryDirectory() as work:
        path = pathlib.Path(work)
        (path / "tokens").write_bytes(b"".join(struct.pack("<I", len(token)) + token for token in tokens))
        lines = (json.dumps(schema) + "\t" + " ".join(map(str, text)) + "\n" for schema, text in all_cases)
        (path / "cases").write_text("".join(lines))
        done = subprocess.run([bench, path / "tokens", path / "cases"], capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(done.stderr)
        sys.stderr.write(done.stderr)
    lines = [list(map(int, line.split())) for line in done.stdout.splitlines()]
    return {"llmpart": sum(lines[1::3], []), "llmpart again": sum(lines[2::3], [])}, [line[0] for line in lines[::3]]


def timed(begin, step, text):
    """The nanoseconds of CPU time of each token."""
    begin()
    for token in text:
        before = time.thread_time_ns()
        step(token)
        yield time.thread_time_ns() - before


def llguidance(tokens, all_cases):
    import llguidance as ll
    import llguidance.numpy

    class Wrapped:
        eos_token_id = bos_token_id = 2
        special_token_ids = list(range(1000))

        def __init__(self):
            self.tokens = [token or b"<special_%d>" % i for i, token in enumerate(tokens)]

        def __call__(self, text):
            return [self.tokens.index(bytes([byte])) for byte in (text if isinstance(text, bytes) else text.encode())]

    tokenizer = ll.LLTokenizer(ll.TokenizerWrapper(Wrapped()))
    bits = ll.numpy.allocate_token_bitmask(1, tokenizer.vocab_size)
    times, made = [], []
    for schema, text in all_cases:
        before = time.process_time_ns()
        matcher = ll.LLMatcher(tokenizer, ll.LLMatcher.grammar_from_json_schema(schema, overrides={"whitespace_flexible": True}))
        made.append(time.process_time_ns() - before)

        def step(token):
            ll.numpy.fill_next_token_bitmask(matcher, bits, 0)
            if not matcher.consume_token(token):
                raise ValueError(f"{tokens[token]} is refused: {matcher.get_error()}")

        times += timed(lambda: None, step, text)
    return {"llguidance": times}, made


def xgrammar(tokens, all_cases):
    import xgrammar as xgr

    info = xgr.TokenizerInfo([token or b"<special_%d>" % i for i, token in enumerate(tokens)], stop_token_ids=[2])
    compiler = xgr.GrammarCompiler(info, max_threads=1)
    bits = xgr.allocate_token_bitmask(1, info.vocab_size)
    times, made = [], []
    for schema, text in all_cases:
        before = time.process_time_ns()
        matcher = xgr.GrammarMatcher(compiler.compile_json_schema(json.dumps(schema)))
        made.append(time.process_time_ns() - before)

        def step(token):
            matcher.fill_next_token_bitmask(bits)
            if not matcher.accept_token(token):
                raise ValueError(f"{tokens[token]} is refused")

        times += timed(lambda: None, step, text)
    return {"xgrammar": times}, made


def main():
    tokens = vocabulary()
    all_cases = list(cases(tokens))
    print(f"{len(tokens)} tokens, {len(all_cases)} schemas, {sum(len(text) for _, text in all_cases)} tokens of texts")
    print("| | median us | 99 % us | worst us | schema, median ms | worst ms |\n| --- | --- | --- | --- | --- | --- |")
    for name, measure in (("own", None), ("llguidance", llguidance), ("xgrammar", xgrammar)):
        if measure and importlib.util.find_spec(name) is None:
            print(f"| {name} is not there |")
            continue
        rows, made = measure(tokens, all_cases) if measure else own(sys.argv[1], tokens, all_cases)
        for row, times in rows.items():
            times.sort()
            us = [statistics.median(times), times[len(times) * 99 // 100], times[-1]]
            ms = [statistics.median(made), max(made)]
            print(f"| {row} | " + " | ".join(f"{x / 1e3:.1f}" for x in us) + " | " + " | ".join(f"{x / 1e6:.2f}" for x in ms) + " |")


if __name__ == "__main__":
    main()
