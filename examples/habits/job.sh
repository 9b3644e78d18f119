#!/bin/sh
# The job as a shell script: job.sh MODEL.onnx OUT. Plans, stops when the plan is too slow, compiles, and generates.
set -eu
model=$1 out=$2
llmpart compile "$model" --device=host --cloud=host,price_usd_per_s=1e-4 --link=wifi --cut=4 \
  --fail-if='tpot_ms > 1000' --report="$out.json" -o "$out"
llmpart check-plan "$out.json"
llmpart run "$out" --prompt="Once upon a time" -n 24
