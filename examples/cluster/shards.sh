#!/bin/sh
# Computes a sweep in N parts, one after another, and merges them: sh shards.sh SPEC.yaml N TABLE
# This shows what the jobs of a cluster do. LLMPART names the command.
set -eu
[ $# = 3 ] || { echo "usage: shards.sh SPEC.yaml N TABLE.csv|json|html" >&2; exit 2; }
spec=$1 count=$2 table=$3
llmpart=${LLMPART:-llmpart}

for i in $(seq "$count"); do
  "$llmpart" sweep "$spec" --shard="$i/$count"
done
"$llmpart" sweep "$spec" --merge "$spec".shard-*-of-"$count" -o "$table"
