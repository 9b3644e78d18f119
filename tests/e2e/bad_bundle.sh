# A bundle that is damaged is refused by both sides, with one message that names the file.
. "$LP_SOURCE/tests/e2e/lib.sh"
# shellcheck disable=SC2086 # a list of options
compile "$LP_SOURCE/tests/models/llama/model.onnx" "$work/good.llmpart" $pair --scheduler=cut --cut=1 || finish
bad=$work/bad.llmpart

spoil() { # a fresh copy to damage
  rm -rf "$bad"
  cp -r "$work/good.llmpart" "$bad"
}

flip() { # flip FILE OFFSET: changes one byte
  byte=$(od -An -tu1 -j "$2" -N 1 "$1" | tr -d ' ')
  # shellcheck disable=SC2059 # the format is the byte
  printf "\\$(printf %03o $((byte ^ 1)))" | dd of="$1" bs=1 seek="$2" conv=notrunc 2>/dev/null
}

edit() { # edit SED-SCRIPT: of the manifest
  spoil
  sed "$1" "$bad/manifest.json" >"$work/manifest.json"
  cmp -s "$work/manifest.json" "$bad/manifest.json" && fail "'$1' changes nothing in the manifest"
  cp "$work/manifest.json" "$bad/manifest.json"
}

refuse() { # refuse WHAT PATTERN
  refused "$1" "$2" "$LLMPART" run "$bad" --tokens=1,2,3 -n 2 --in-process
}

refused 'no such bundle' 'absent.llmpart' "$LLMPART" run "$work/absent.llmpart" --tokens=1 -n 1
mkdir "$work/folder.llmpart"
refused 'an empty folder' 'manifest.json: error: ' "$LLMPART" run "$work/folder.llmpart" --tokens=1 -n 1

size=$(wc -c <"$work/good.llmpart/manifest.json")
for part in 0 1 $((size / 2)) $((size - 3)); do
  spoil
  head -c "$part" "$work/good.llmpart/manifest.json" >"$bad/manifest.json"
  refuse "a manifest of $part bytes" 'manifest.json:.*error: '
done
edit 's/llmpart.bundle\/1/llmpart.bundle\/9/'
refuse 'a schema of the future' 'manifest.json:.*error: .*llmpart.bundle/9'
edit 's/"abi": *[0-9]*/"abi": 7/'
refuse 'another ABI' 'error: .*(ABI|abi)'
edit 's/lp_segment_0/lp_segment_9999/'
refuse 'a segment that is not there' 'error: .*lp_segment_9999'
edit 's/"op": *"run"/"op": "walk"/'
refuse 'an unknown step' 'manifest.json:.*error: .*walk'
edit 's/"states": */"estates": /'
refuse 'a missing member' 'manifest.json:.*error: .*states'
edit 's/"buffer": *[0-9]*/"buffer": 4000000/'
refuse 'a buffer that is not there' 'manifest.json:.*error: .*buffer'

for side in device cloud; do
  for file in weights.safetensors model.so; do
    size=$(wc -c <"$work/good.llmpart/$side/$file")
    spoil
    flip "$bad/$side/$file" $((size - 100))
    refuse "a changed byte in $side/$file" "$side/$file: error: "
    spoil
    head -c $((size / 2)) "$work/good.llmpart/$side/$file" >"$bad/$side/$file"
    refuse "half of $side/$file" "$side/$file: error: "
    spoil
    rm "$bad/$side/$file"
    refuse "no $side/$file" "$side/$file: error: "
  done
done

spoil
flip "$bad/cloud/weights.safetensors" $(($(wc -c <"$bad/cloud/weights.safetensors") - 100))
refused 'a worker with a damaged weight' 'cloud/weights.safetensors: error: ' "$LLMPART" worker "$bad" --check --listen=127.0.0.1:0
refused 'a worker without a bundle' 'absent.llmpart' "$LLMPART" worker "$work/absent.llmpart" --listen=127.0.0.1:0

# The device of such a pair has its own message: the worker ends, whatever it says comes first.
"$LLMPART" run "$bad" --tokens=1,2,3 -n 2 >"$work/out" 2>"$work/err"
status=$?
[ "$status" = 1 ] || fail "a run whose worker's weight is damaged: exit status $status, wanted 1"
grep -q 'error: ' "$work/err" || fail 'a run whose worker has a damaged weight says nothing'

# None of this may come from the test: the undamaged bundle works.
spoil
found=$("$LLMPART" run "$bad" --tokens=1,2,3 -n 2 --in-process 2>&1) || fail "the good bundle: $found"
finish
