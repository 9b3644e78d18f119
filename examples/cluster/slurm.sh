#!/bin/sh
# One part of a sweep, as a task of a Slurm job array that begins at 1: sbatch --array=1-N slurm.sh SPEC.yaml
# SHARDS is N where the array is not 1-N; LLMPART names the command.
#SBATCH --job-name=sweep
#SBATCH --nodes=1
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=8
#SBATCH --requeue
set -eu
[ $# = 1 ] || { echo "usage: sbatch --array=1-N slurm.sh SPEC.yaml" >&2; exit 2; }
: "${SLURM_ARRAY_TASK_ID:?is set in a job array: sbatch --array=1-N slurm.sh SPEC.yaml}"

exec "${LLMPART:-llmpart}" sweep "$1" --shard="$SLURM_ARRAY_TASK_ID/${SHARDS:-$SLURM_ARRAY_TASK_MAX}" \
  --threads="${SLURM_CPUS_PER_TASK:-1}"
