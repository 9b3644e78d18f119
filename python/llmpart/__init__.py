"""Splits a language model between a device and the cloud, compiles both parts, and runs them.

    bundle = llmpart.compile("model.onnx", device="host", cloud="host", link="wifi")
    for token in bundle.generate("Once upon a time", n=64):
        print(token, end="", flush=True)

The package runs the command `llmpart` for plans and code, and generates through the library libllmpart-runtime. The
warnings and notes of both go to the logger "llmpart", and what the command says of its result, too, as information.
"""

from ._bundle import Bundle, Generation, Token, Worker, compile
from ._command import Error
from ._export import export
from ._library import library, string
from ._plan import Fleet, Infeasible, Plan, Table, fleet, plan, sweep

__all__ = [
    "Bundle",
    "Error",
    "Fleet",
    "Generation",
    "Infeasible",
    "Plan",
    "Table",
    "Token",
    "Worker",
    "compile",
    "export",
    "fleet",
    "plan",
    "sweep",
]


def __getattr__(name: str) -> str:
    """Return the version, which is that of the library."""
    if name != "__version__":
        raise AttributeError(f"module 'llmpart' has no attribute '{name}'")
    return string(library().llmpart_version())
