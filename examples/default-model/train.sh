#!/bin/sh
# Makes the default model from nothing: environment, corpus, vocabulary, training, export, figures.
# Usage: sh examples/default-model/train.sh [WORKDIR] [MINUTES]
# WORKDIR (default: build/default-model) keeps what is not committed; a stopped training resumes from it.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
work=${1:-$here/../../build/default-model}
minutes=${2:-40}
mkdir -p "$work"
[ -x "$work/venv/bin/python" ] || python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet -r "$here/requirements.txt"
py=$work/venv/bin/python
"$py" "$here/corpus.py" --out "$work/corpus"
"$py" "$here/tokenizer.py" --corpus "$work/corpus" --out "$here"
"$py" "$here/train.py" --corpus "$work/corpus" --tokenizer "$here/tokenizer.json" --out "$work/model.pt" --minutes "$minutes"
"$py" "$here/export.py" --checkpoint "$work/model.pt" --out "$here/model.onnx"
"$py" "$here/evaluate.py" --corpus "$work/corpus" --model "$here/model.onnx" --card "$here/README.md"
