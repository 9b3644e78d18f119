# Invalid options: unknown names, impossible values, outputs that cannot be written.
. "$LP_SOURCE/tests/e2e/lib.sh"
model=$LP_SOURCE/tests/models/llama/model.onnx

refuse() { # refuse WHAT PATTERN [option ...]
  what=$1 pattern=$2
  shift 2
  refused "$what" "$pattern" "$LLMPART" compile "$model" "$@"
}

made=$work/made/out.llmpart
refuse 'an unknown machine' "error: .*jetson-nan.*" --device=jetson-nan -o "$made"
grep -q "did you mean 'jetson-nano'" "$work/err" || fail "an unknown machine: no suggestion: $(cat "$work/err")"
refuse 'an absent machine file' "absent.yaml" --device="$work/absent.yaml" -o "$made"
printf 'machine: odd\nkind: gpu\npeak_f32: { value: 10 parsecs, source: "none" }\n' >"$work/odd.yaml"
refuse 'a machine with a strange unit' "odd.yaml:3:[0-9]+: error: .*parsecs" --device="$work/odd.yaml" -o "$made"
refuse 'an unknown link' "error: .*wiffi" --device=jetson-nano --cloud=v100s --link=wiffi -o "$made"
refuse 'an absent tokenizer' "absent.json" --device=jetson-nano --tokenizer="$work/absent.json" -o "$made"
echo '{"model": {"type": "BPE"' >"$work/broken.json"
refuse 'a broken tokenizer' "broken.json:.*error: " --device=jetson-nano --tokenizer="$work/broken.json" -o "$made"
refuse 'a tokenizer of another model' "tokenizer.json.*error: .*(vocab|token|id)" --device=jetson-nano \
  --tokenizer="$LP_SOURCE/examples/default-model/tokenizer.json" -o "$made"
refuse 'an output in an absent folder' "error: " --device=jetson-nano -o "$work/absent/out.llmpart"
# Files of links: the file, the line and the key.
bad_link() { # bad_link WHAT PATTERN UP: a link whose line 3 is UP
  printf 'link: odd\nrtt: { value: 10 ms, source: "none" }\n%s\ndown: { value: 5 Mbit/s, source: "none" }\n' "$3" >"$work/link.yaml"
  refuse "$1" "link.yaml:3:[0-9]+: error: $2" --device=jetson-nano --cloud=v100s --link="$work/link.yaml" -o "$made"
}
bad_link 'a negative bandwidth' "'-5 Mbit/s' is not a rate" 'up: { value: -5 Mbit/s, source: "none" }'
grep -q "link.yaml:3:[0-9]*: note: it is given for 'up'" "$work/err" || fail "a negative bandwidth: the key is not named: $(cat "$work/err")"
bad_link 'a bandwidth in another unit' "'5 ms' is not a rate" 'up: { value: 5 ms, source: "none" }'
bad_link 'an unknown key' "unknown key 'upp'" 'upp: { value: 5 Mbit/s, source: "none" }'
bad_link 'a bandwidth that is no number' "'nan' is not a rate" 'up: { value: nan, source: "none" }'
: >"$work/file"
refuse 'an output below a file' "error: " --device=jetson-nano -o "$work/file/out.llmpart"
refuse 'an output that cannot be written' "error: " --device=jetson-nano -o /proc/out.llmpart
refuse 'a report that cannot be written' "error: " --device=jetson-nano --report=/proc/report.txt -o "$made"
refuse 'IR that cannot be written' "error: " --device=jetson-nano --emit=op-ir -o /proc/out.mlir
refuse 'a processor where PTX is wanted' "'x86-64-v3' is not a CUDA architecture" --device=jetson-nano --side=device --emit=ptx --march=x86-64-v3 -o "$made"
refuse 'an unknown CPU' "error: .*z80" --device=jetson-nano --march=z80 -o "$made"
refuse 'an exit after a layer that is not there' "error: .*99" --device=jetson-nano --exits=99 -o "$made"
refuse 'a pin of nothing' "--pin: error: 'layer.9.*=device' matches no operator" --device=jetson-nano --cloud=v100s '--pin=layer.9.*=device' -o "$made"
refuse 'more private layers than there are' "--private: error: 99 layers should stay private, but the model has only" --device=jetson-nano --cloud=v100s --private=99 -o "$made"

wanted_status=2
refuse 'a negative round trip' "error: '-1ms' is not a time" --device=jetson-nano --cloud=v100s --link=rtt=-1ms,up=1Mbit/s,down=1Mbit/s -o "$made"
refuse 'a figure that links do not have' "error: a link has no figure 'upp'" --device=jetson-nano --cloud=v100s --link=upp=1Mbit/s -o "$made"
refuse 'a link without bandwidth' "error: 'up' is '0'" --device=jetson-nano --cloud=v100s --link=rtt=1ms,up=0,down=1Mbit/s -o "$made"
refuse 'a loss above all' "error: 'loss' is '100%'" --device=jetson-nano --cloud=v100s --link=rtt=1ms,up=1Mbit/s,down=1Mbit/s,loss=100% -o "$made"
refuse 'an unknown option' "error: .*--devise" --devise=jetson-nano -o "$made"
refuse 'no device' "error: .*device" -o "$made"
refuse 'an unknown scheduler' "error: .*greddy" --device=jetson-nano --cloud=v100s --scheduler=greddy -o "$made"
refuse 'a scheduler without a cloud' "error: .*cloud" --device=jetson-nano --scheduler=greedy -o "$made"
refuse 'a time that is none' "error: .*soon" --device=jetson-nano --ttft=soon -o "$made"
refuse 'a list of exits with a gap' "--exits: error: '' is not a whole number" --device=jetson-nano --exits=1,,2 -o "$made"
refuse 'a negative time' "--tpot: error: '-4ms'" --device=jetson-nano --tpot=-4ms -o "$made"
refuse 'a size in a strange unit' "--device-memory: error: '4furlong'" --device=jetson-nano --device-memory=4furlong -o "$made"
refuse 'no session at all' "--sessions: error: '0'" --device=jetson-nano --sessions=0 -o "$made"
refuse 'an unknown objective' "--objective: error: 'cheap'" --device=jetson-nano --objective=cheap -o "$made"
refuse 'no time at all' "--ttft: error: a limit of '0'" --device=jetson-nano --ttft=0 -o "$made"
refuse 'no memory at all' "--device-memory: error: '0'" --device=jetson-nano --device-memory=0 -o "$made"
refuse 'a level that is not there' "-O: error: found '4'" --device=jetson-nano -O4 -o "$made"
refuse 'a count beyond all' "--isl: error: .* range 1 to 2147483647" --device=jetson-nano --isl=9223372036854775807 -o "$made"
refuse 'a cut for another scheduler' "--cut: error: .*exact" --device=jetson-nano --cloud=v100s --scheduler=exact --cut=1 -o "$made"
refuse 'a cut without a cloud' "--cut: error: .*--cloud" --device=jetson-nano --cut=1 -o "$made"
refuse 'a cut that is not said' "--cut: error: .*--cut=N" --device=jetson-nano --cloud=v100s --scheduler=cut -o "$made"
refuse 'a folder on stdout' "-o: error: .*folder" --device=jetson-nano -o -
refuse 'halves on stdout' "-o: error: .*folder" --device=jetson-nano --cloud=v100s --emit=onnx -o -
refuse 'a count of 0' "--isl: error: " --device=jetson-nano --isl=0 -o "$made"
refused 'an unknown subcommand' "error: .*compyle" "$LLMPART" compyle "$model"

wanted_status=3
refuse 'an SLA that cannot be met' "error: .*TTFT" --device=jetson-nano --ttft=1us -o "$made"
refuse 'too little memory' "error: .*memory" --device=jetson-nano --device-memory=1000 -o "$made"
finish
