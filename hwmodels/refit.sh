#!/bin/sh
# Fits the machines that have tables of measured operators again: hwmodels/refit.sh LLMPART DATA-FOLDER. The figures and
# comments above `measured:` stay as they are in machines/.
set -eu
cd "$(dirname "$0")/machines"
llmpart=$1 data=$2
vidur="github.com/microsoft/vidur data/profiling at 7d47513 and e2d00e9 (MIT): Llama-2-7B's shapes in f16"
refit() { # refit MACHINE SOURCE
  sed '/^measured:/,$d' "$1.yaml" >"$1.figures.yaml"
  "$llmpart" hw fit "$data/$1.csv" --machine="./$1.figures.yaml" --source="$2" -o "$1.fitted.yaml"
  { cat "$1.figures.yaml"; sed -n '/^measured:/,$p' "$1.fitted.yaml"; } >"$1.new"
  mv "$1.new" "$1.yaml"
  rm "$1.figures.yaml" "$1.fitted.yaml"
}
refit a100 "$vidur; A100 80GB PCIe, attention of 32 query and 4 KV heads"
refit h100 "$vidur"
refit a40 "$vidur"
refit a30 "github.com/AKafakA/vidur_opt_scheduler at 20bdc49 (MIT): Llama-2-7B's shapes in f16"
refit v100 "github.com/baidu-research/DeepBench at da81ba7 (Apache-2.0): GEMMs in f16, V100 SXM2"
