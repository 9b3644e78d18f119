# `host`: a file's figures, the profile at the first use, and what is done where nothing can be kept.
. "$LP_SOURCE/tests/e2e/lib.sh"
model=$LP_SOURCE/tests/models/llama/model.onnx
plan() { # plan [option ...]: the report goes to $work/plan.json, what is said to $work/err
  "$LLMPART" compile "$model" --device=host --plan-only --report="$work/plan.json" "$@" 2>"$work/err" || fail "no plan: $(head -n 3 "$work/err")"
}
device_times() { sed -n '/"operators": \[/,$p' "$work/plan.json" | grep -o '"device_ms": [^,]*'; }

# A file takes the place of measurements: twice the same plan, and nothing is kept or said.
export XDG_CACHE_HOME="$work/cache"
mkdir "$XDG_CACHE_HOME"
plan
device_times >"$work/first"
[ -s "$work/first" ] || fail 'the report has no times'
grep -q '"title": "A processor of 2 cores' "$work/plan.json" || fail 'LLMPART_HOST is not read'
plan
device_times | cmp -s "$work/first" - || fail 'other times from the same file'
[ ! -s "$work/err" ] || fail "it says $(head -n 2 "$work/err")"
[ -z "$(ls -A "$XDG_CACHE_HOME")" ] || fail 'something is kept'

# With a rate of loading weights, the report has the TTFT of a first request: a processor computes while weights come, a
# GPU after that; without a rate nothing is known.
number() { sed -n '/^  "plan": {/,$p' "$work/plan.json" | sed -n "s/^ *\"$1\": \([^,]*\),*\$/\1/p" | head -n 1; } # of the plan
grep -q cold "$work/plan.json" && fail 'a cold TTFT without a rate of loading'
for kind in cpu gpu; do
  sed "s/^kind: .*/kind: $kind/; \$a load_bandwidth: { value: 10 MB/s }" "$LP_SOURCE/tests/models/host.yaml" >"$work/slow.yaml"
  LLMPART_HOST=$work/slow.yaml
  plan
  awk -v kind=$kind -v cold="$(number cold_ttft_ms)" -v ttft="$(number ttft_ms)" -v bytes="$(number device_weight_bytes)" 'BEGIN {
    load = 1e3 * bytes / 10e6; want = kind == "cpu" ? (load > ttft ? load : ttft) : load + ttft
    exit !(bytes > 0 && ttft < load && cold > want * (1 - 1e-9) && cold < want * (1 + 1e-9)) }' || fail "$kind: the cold TTFT is $(number cold_ttft_ms) ms"
  "$LLMPART" check-plan "$work/plan.json" >"$work/out" || fail "$kind: an honest cold TTFT is refused"
  sed 's/"cold_ttft_ms": /&1/' "$work/plan.json" >"$work/forged.json"
  wanted_status=4 refused "$kind: another cold TTFT" 'plan.cold_ttft_ms is .*, the certificate gives' "$LLMPART" check-plan "$work/forged.json"
done
wanted_status=1
"$LLMPART" compile "$model" --device=host --plan-only --emit=report -o "$work/report.txt"
grep -Eq '^  cold +[0-9.]+ [mun]?s +of a first request' "$work/report.txt" || fail 'the text has no cold TTFT'

# The loopback of this machine has the figures that the profile measured; other links have their own.
sed '$a message: { value: 20 us }\nmessage_bandwidth: { value: 500 MB/s }' "$LP_SOURCE/tests/models/host.yaml" >"$work/messages.yaml"
LLMPART_HOST=$work/messages.yaml
link_of() { # link_of DEVICE CLOUD LINK: its round trip time and rates
  "$LLMPART" compile "$model" --device="$1" --cloud="$2" --link="$3" --plan-only --report="$work/plan.json" 2>"$work/err" || fail "no plan: $(head -n 3 "$work/err")"
  sed -n '/^  "link": {/,/^  }/p' "$work/plan.json" | sed -n 's/^ *"\(rtt_ms\|up_bps\|down_bps\)": *\([^,]*\),*$/\2/p' | tr '\n' ' '
}
same 'the loopback of a profile' '0.04 4000000000 4000000000 ' "$(link_of host host,price_usd_per_s=1e-4 loopback)"
known=$(link_of jetson-nano a100 loopback)
same 'loopback elsewhere' "$known" "$(link_of jetson-nano host loopback)"
same 'loopback with changes' "1 ${known#* }" "$(link_of host host loopback,rtt=1ms)"
same 'lan' "$(link_of jetson-nano a100 lan)" "$(link_of host host lan)"
LLMPART_HOST=$work/nosuch.yaml
refused 'no file' 'nosuch.yaml: error: cannot open' "$LLMPART" compile "$model" --device=host --plan-only -o "$work/made/x.json"
LLMPART_HOST=$model
refused 'no machine' 'model.onnx' "$LLMPART" compile "$model" --device=host --plan-only -o "$work/made/x.json"

# A cache folder that cannot be written is no error, and the machine is not profiled at each use.
unset LLMPART_HOST
XDG_CACHE_HOME=/dev/null/nowhere
plan
grep -Eq '"measured_share": 0([^.0-9]|$)' "$work/plan.json" || fail 'times of a profile that cannot be kept'
grep -q 'note: .*cannot be kept' "$work/err" || fail "it does not say that figures are not kept: $(cat "$work/err")"

# Nor is a profile that fails: here there is no folder for its bundles.
XDG_CACHE_HOME=$work/cache
temporary=${TMPDIR-/tmp}
export TMPDIR=/dev/null/nowhere
plan
TMPDIR=$temporary
grep -q 'note: .*could not be measured (.*cannot make a temporary folder' "$work/err" || fail "it does not say why the profile failed: $(cat "$work/err")"
grep -Eq '"measured_share": 0([^.0-9]|$)' "$work/plan.json" || fail 'times of a profile that failed'
part long || finish

# The first use profiles the machine and says so. Later uses take what was kept, until it is renewed.
plan
grep -q "host: note: this machine was measured for its first use .* kept in '$XDG_CACHE_HOME/llmpart/host-" "$work/err" || fail "the first use: $(cat "$work/err")"
grep -q '"kernels": "cpu"' "$work/plan.json" || fail 'no measured times'
grep -q '"cold_ttft_ms"' "$work/plan.json" || fail 'no measured rate of loading'
grep -q '^message: .*measured here' "$XDG_CACHE_HOME"/llmpart/host-*.yaml || fail 'no measured time of a message'
grep -q '^message_bandwidth: .*measured here' "$XDG_CACHE_HOME"/llmpart/host-*.yaml || fail 'no measured rate of messages'
[ -z "$(find "$XDG_CACHE_HOME" -name '*.load')" ] || fail 'a file of the measurement is left'
device_times >"$work/first"
cp "$XDG_CACHE_HOME"/llmpart/host-*.yaml "$work/kept.yaml"
plan
device_times | cmp -s "$work/first" - || fail 'the second use has other times'
[ ! -s "$work/err" ] || fail "the second use says $(head -n 2 "$work/err")"
export LLMPART_HOST="$work/kept.yaml"
plan
device_times | cmp -s "$work/first" - || fail 'a kept profile in LLMPART_HOST gives other times'
unset LLMPART_HOST
"$LLMPART" hw profile --quick --budget=1ms -o "$work/new.yaml" 2>"$work/err" || fail "it is not renewed: $(head -n 3 "$work/err")"
cmp -s "$work/new.yaml" "$XDG_CACHE_HOME"/llmpart/host-*.yaml || fail 'the renewed profile is not kept'

# Two at once: one measures, the other waits for it.
rm -r "$XDG_CACHE_HOME"/llmpart
"$LLMPART" compile "$model" --device=host --plan-only --report="$work/other.json" 2>"$work/other" &
plan
wait $! || fail "no plan beside another: $(cat "$work/other")"
same 'notes of two processes' 1 "$(cat "$work/err" "$work/other" | grep -c 'note: this machine was measured')"
finish
