"""check.py WANTED.txt IDS: the package against `llmpart run`, whose text of a prompt is in WANTED.txt and whose ids
after 1,2,3 are IDS. Runs in a folder with model.onnx and tokenizer.json; LLMPART is the command. python.sh calls it."""

import gc
import logging
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import numpy
import pandas

import llmpart

MODEL = "model.onnx"
PROMPT = "Once upon a time"


def fails(kind: type[Exception], text: str, call: Callable[[], object]) -> Exception:
    """The call raises `kind` with `text` in its message."""
    try:
        found = call()
    except Exception as error:
        assert type(error) is kind and text in str(error), f"wanted {kind.__name__}: {text}, found {error!r}"
        return error
    raise AssertionError(f"no {kind.__name__}: {text}, but {found!r}")


def generates(bundle: llmpart.Bundle, text: str, ids: list[int]) -> None:
    generation = bundle.generate(PROMPT, n=24)
    assert generation.result is None
    made = list(generation)
    assert "".join(map(str, made)) == text
    assert {token.is_from_cloud for token in made} == {True} and all(0 < token.confidence <= 1 for token in made)
    assert generation.result and generation.result["tokens"] == len(made) == 24 and generation.result["ttft_ms"] > 0
    assert bundle.generate(PROMPT, n=24, threads=1).text() == text

    prompt = numpy.array([1, 2, 3], dtype=numpy.int32)
    prompt.flags.writeable = False
    apart = numpy.array([1, 9, 2, 9, 3, 9], dtype=numpy.int32)[::2]  # not contiguous
    for given in (prompt, prompt.astype(numpy.int64), apart, [1, 2, 3], range(1, 4)):
        assert [token.token for token in bundle.generate(tokens=given, n=24, ignore_eos=True)] == ids, given

    encoded = bundle.encode(PROMPT)
    array = numpy.asarray(encoded)
    assert array.dtype == numpy.int32 and numpy.shares_memory(array, numpy.frombuffer(encoded, numpy.int32))
    assert bundle.decode(array) == bundle.decode(list(encoded)) == PROMPT
    assert len(bundle.encode("")) == 0 and bundle.decode([]) == ""


def samples(bundle: llmpart.Bundle) -> None:
    """Sampling follows the seed, and greedy tokens do not."""
    first, again, other = (bundle.generate(PROMPT, n=24, temperature=2.0, seed=seed).text() for seed in (1, 1, 2))
    assert first == again != other


def ends(bundle: llmpart.Bundle) -> None:
    """A generation that is closed or dropped leaves no thread, and one that is not begun starts none."""
    before = threading.active_count()
    closed = bundle.generate(PROMPT, n=200)
    assert threading.active_count() == before
    next(closed)
    closed.close()
    assert list(closed) == [] and closed.result is None
    dropped = bundle.generate(PROMPT, n=200)
    next(dropped)
    del dropped
    assert threading.active_count() == before


def collects(path: Path) -> None:
    """The garbage collector ends what stands in a cycle with its bundle, in whatever order it comes upon it."""
    before = threading.active_count()
    array = numpy.array([1, 2, 3], dtype=numpy.int32)
    for begins in (0, 1, 24):
        for tokens in ([1, 2, 3], array.copy(), memoryview(array.copy())):
            bundle = llmpart.Bundle(path)
            cycle: list[object] = [bundle, tokens]
            if begins == 0 and isinstance(tokens, list):
                cycle.append(bundle.worker())  # ends after a second
            generation = bundle.generate(tokens=tokens, n=24)
            assert len([next(generation) for _ in range(begins)]) == begins
            cycle += [generation, bundle.generate(tokens=tokens, n=24), cycle]
            del bundle, tokens, generation, cycle
            gc.collect()
    assert threading.active_count() == before


def threads(bundle: llmpart.Bundle, text: str) -> None:
    """Several threads use a bundle at once; two generations of one thread take turns."""
    found: list[str] = []
    several = [threading.Thread(target=lambda: found.append(bundle.generate(PROMPT, n=24).text())) for _ in range(4)]
    for thread in several:
        thread.start()
    for thread in several:
        thread.join()
    assert found == [text] * 4
    pairs = list(zip(bundle.generate(PROMPT, n=24), bundle.generate(PROMPT, n=24), strict=True))
    assert "".join(str(one) for one, _ in pairs) == "".join(str(two) for _, two in pairs) == text


def works(bundle: llmpart.Bundle, text: str) -> None:
    """A worker in this process, and what needs one."""
    device = llmpart.Bundle(bundle.path, device_side=True, check=True)
    fails(llmpart.Error, "needs both sides", lambda: device.generate(PROMPT))
    with bundle.worker() as worker:
        generation = device.generate(PROMPT, n=24, cloud=worker.address)
        assert generation.text() == text
        assert generation.result and generation.result["bytes_up"] > 0
    worker.close()  # a second time
    gone = {"cloud": worker.address, "cloud_timeout_ms": 200}
    fails(llmpart.Error, worker.address, lambda: device.generate(PROMPT, **gone).text())


def refuses(bundle: llmpart.Bundle) -> None:
    fails(TypeError, "no field 'bogus'", lambda: bundle.generate(PROMPT, bogus=1))
    fails(TypeError, "either a prompt or tokens", lambda: bundle.generate())
    fails(TypeError, "either a prompt or tokens", lambda: bundle.generate(PROMPT, tokens=[1]))
    fails(TypeError, "integer", lambda: bundle.generate(tokens=numpy.array([1.5])))
    fails(TypeError, "integer", lambda: bundle.generate(tokens=[numpy.float32(1.5)]))
    fails(TypeError, "integer", lambda: bundle.generate(tokens=numpy.array([[1]], dtype=numpy.int32)))
    fails(TypeError, "integer", lambda: bundle.generate(tokens="123"))
    fails(OverflowError, "int32_t", lambda: bundle.generate(tokens=[2**40]))
    fails(ValueError, "NUL", lambda: bundle.generate("a\0b"))
    fails(ValueError, "n is at least 1", lambda: bundle.generate(PROMPT, n=0))
    fails(ValueError, "mode is one of", lambda: bundle.generate(PROMPT, mode="fast"))
    fails(llmpart.Error, "vocabulary", lambda: bundle.generate(tokens=[10**6]).text())
    fails(llmpart.Error, "the prompt has no tokens", lambda: bundle.generate("").text())
    fails(llmpart.Error, "temperature", lambda: bundle.generate(PROMPT, temperature=-1))
    fails(llmpart.Error, "chat template", lambda: bundle.encode_chat([{"role": "user", "content": "hi"}]))
    fails(llmpart.Error, "cannot open", lambda: llmpart.Bundle("absent.llmpart"))


def plans() -> None:
    machines = {"device": "raspberry-pi-5", "cloud": "a100", "link": "wifi"}
    plan = llmpart.plan(MODEL, **machines, isl=32, pin=["layer.0.*=device", "layer.7.*=cloud"])
    assert plan.feasible and plan.report["workload"]["isl"] == 32
    operators = plan.operators.to_pandas()
    assert isinstance(operators, pandas.DataFrame) and set(operators["side"]) == {"device", "cloud"}
    assert plan.figures[0]["ttft_ms"] == plan.report["plan"]["ttft_ms"]
    assert {"device_only", "cloud_only"} <= set(plan.baselines.to_pandas()["scheduler"])
    error = fails(llmpart.Infeasible, "the SLA asks 0.001 ms", lambda: llmpart.plan(MODEL, **machines, ttft=0.001))
    assert isinstance(error, llmpart.Infeasible) and error.status == 3
    assert not error.plan.feasible and error.plan.report["fixes"]
    error = fails(llmpart.Error, "unknown machine 'nope'", lambda: llmpart.plan(MODEL, device="nope"))
    assert isinstance(error, llmpart.Error) and error.status == 1
    fails(llmpart.Error, "'--nonsense'", lambda: llmpart.plan(MODEL, device="host", nonsense=1))
    fails(llmpart.Error, "not an ONNX file", lambda: llmpart.compile(__file__, device="host", out="bad.llmpart"))
    fails(llmpart.Error, "tpot_ms", lambda: llmpart.plan(MODEL, device="host", fail_if="tpot_ms > 0"))

    spec = {
        "model": MODEL,
        "machines": [{"device": ["jetson-orin"], "cloud": ["a100", "l4"]}],
        "links": ["wifi", "lte"],
        "workloads": {"isl": [32, 64], "osl": 8, "batch": 1},
    }
    rows = llmpart.sweep(spec, threads=1)
    assert len(rows) == len(rows.to_pandas()) == 8 and {row["cloud"] for row in rows} == {"a100", "l4"}
    Path("spec.yaml").write_text(str(spec), encoding="utf-8")
    assert llmpart.sweep("spec.yaml") == rows
    fails(llmpart.Error, "absent.yaml", lambda: llmpart.sweep("absent.yaml"))
    load = {
        "decoder": {"layers": 16, "hidden": 2048, "ffn": 8192, "heads": 32, "kv_heads": 8, "vocab": 32000},
        "load": {"rate": 40},
        "lengths": [{"isl": 64, "osl": 64}],
        "classes": [
            {"name": "board", "device": "raspberry-pi-5", "link": "wifi", "limits": {"tpot": {"p95": "60ms"}}},
            {"name": "laptop", "device": "apple-m4", "link": "wifi", "limits": {"ttft": {"p99": "2s"}}},
        ],
        "machines": ["l4"],
        "requests": 500,
    }
    fleet = llmpart.fleet(load)
    assert fleet.figures[0]["lower_bound"] <= fleet.figures[0]["usd_per_month"], fleet
    assert sum(pool["count"] for pool in fleet.pools) == fleet.figures[0]["machines"] > 0
    classes = fleet.classes.to_pandas()
    assert list(classes["limit_tpot_p95_ms"])[0] == 60 and classes["tpot_p95_ms"][0] <= 60, classes
    Path("fleet.yaml").write_text(str(load), encoding="utf-8")
    assert llmpart.fleet("fleet.yaml").pools == fleet.pools
    load["load"] = {"rate": 0}
    fails(llmpart.Error, "'rate' is '0'", lambda: llmpart.fleet(load))
    assert not list(Path().glob("tmp*")), "sweep or fleet leaves files"


def finds() -> None:
    """A missing command is an error that says so."""
    command = os.environ.pop("LLMPART")
    path, os.environ["PATH"] = os.environ["PATH"], "/nonexistent"
    fails(llmpart.Error, "neither on PATH", lambda: llmpart.plan(MODEL, device="host"))
    os.environ["PATH"], os.environ["LLMPART"] = path, command


def main() -> None:
    logging.basicConfig()
    text = Path(sys.argv[1]).read_text(encoding="utf-8").rstrip("\n")
    ids = [int(word) for word in sys.argv[2].split(",")]
    bundle = llmpart.compile(MODEL, device="host", cloud="host", link="wifi", cut=4)
    assert bundle.path == Path("model.llmpart") and bundle.is_split and bundle.plan and bundle.plan.feasible
    assert bundle.vocab_size == 1024
    assert llmpart._command.run("--version").startswith(f"llmpart {llmpart.__version__}\n")
    generates(bundle, text, ids)
    samples(bundle)
    ends(bundle)
    collects(bundle.path)
    threads(bundle, text)
    works(bundle, text)
    refuses(bundle)
    plans()
    finds()


main()
