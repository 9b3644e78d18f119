# Golden reports, each read by a person when it was written: golden.sh compares, golden.sh --write rewrites.
# By hand: LP_SOURCE=. LLMPART=build/dev/tools/llmpart sh tests/golden/golden.sh --write
set -eu
here=$LP_SOURCE/tests/golden
write=${1:-}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0

# golden NAME STATUS MODEL [option ...]: the report NAME (its ending is its format) and the exit status.
# A page is compared without its style and script, which are those of the source tree.
golden() {
  name=$1 wanted=$2 model=$LP_SOURCE/tests/models/$3/model.onnx
  shift 3
  status=0
  "$LLMPART" compile "$model" --plan-only --report="$work/$name" "$@" 2>"$work/err" || status=$?
  case $name in *.html) sed -i '/^<style>$/,/^<\/style>$/d; /^<script>$/,/^<\/script>$/d' "$work/$name" ;; esac
  if [ "$status" -ne "$wanted" ]; then
    echo "golden: $name: exit status $status, wanted $wanted: $(cat "$work/err")"
    failures=$((failures + 1))
  elif [ "$write" = --write ]; then
    cp "$work/$name" "$here/$name"
  elif ! diff -u "$here/$name" "$work/$name"; then
    echo "golden: $name differs; read the difference, then rewrite it with golden.sh --write"
    failures=$((failures + 1))
  fi
}

nano="--device=jetson-nano-p1 --cloud=v100s-p1 --link=wifi --isl=64 --osl=16 --objective=cost"
golden device.txt 0 llama $nano
golden device.json 0 llama $nano
golden device.csv 0 llama $nano
golden device.html 0 llama $nano
golden table1.txt 0 llama $nano --table1
golden table1-gpt2.txt 0 gpt2 $nano --table1 --scheduler=cloud-only
golden cut.txt 0 llama $nano --scheduler=cut --cut=2
golden cut.json 0 gpt2-nopast $nano --scheduler=cut --cut=1 --batch=4
golden greedy.txt 3 llama $nano --scheduler=greedy --ttft=0.01ms --tpot=0.005ms
golden memory.txt 0 llama $nano --device-memory=100kB
golden infeasible.txt 3 llama $nano --device-memory=100kB --ttft=2ms
golden infeasible.json 3 llama $nano --scheduler=cloud-only --ttft=2ms
golden types.txt 3 llama --device=jetson-nano-p1 --cloud=v100s-p1,memory=400kB --link=wifi --isl=64 --osl=16 --scheduler=cloud-only
golden alone.txt 0 llama --device=snapdragon-8s-gen3-p1 --dtype-device=f16
[ "$failures" -eq 0 ]
