"""lit: every tests/**/*.mlir and *.test with RUN lines. `llmpart`, FileCheck, mlir-opt, not and split-file are found in PATH.

By hand: build/dev/lit tests/passes
"""
import os

import lit.formats

config.name = "llmpart"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test"]
config.excludes = ["fixture", "Inputs", "fuzz", "models"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(lit_config.params["build"], "lit-output")

part = lit_config.params.get("part")  # "quick" leaves out tests with `REQUIRES: long`, "long" runs only these
if part != "quick":
    config.available_features.add("long")
if part == "long":
    config.limit_to_features = {"long"}

tools = [os.path.dirname(lit_config.params["llmpart"]), lit_config.params["llvm"]]
config.environment["PATH"] = os.pathsep.join(tools + [os.environ.get("PATH", "/usr/bin:/bin")])
for name in ("HOME", "XDG_CACHE_HOME", "ASAN_OPTIONS", "UBSAN_OPTIONS"):
    if name in os.environ:
        config.environment[name] = os.environ[name]
config.environment["LLMPART_HOST"] = os.path.join(config.test_source_root, "models", "host.yaml")
config.substitutions.append(("%root", os.path.dirname(config.test_source_root)))
