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
  seal "$bad"
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
refuse 'a manifest that the code was not compiled for' 'device/model.so: error: the code was compiled for another manifest'
edit 's/"march": "/&x/'
cp "$work/manifest.json" "$bad/manifest.json"
refuse 'a manifest that was changed' 'manifest.json: error: the seal is not that of this text'
edit 's/"op": *"run"/"op": "walk"/'
refuse 'an unknown step' 'manifest.json:.*error: .*walk'
edit 's/"states": */"estates": /'
refuse 'a missing member' 'manifest.json:.*error: .*states'
edit 's/"buffer": *[0-9]*/"buffer": 4000000/'
refuse 'a buffer that is not there' 'manifest.json:.*error: .*buffer'


# Everything in the folder is a regular file that stays in it.
for file in manifest.json device/model.so device/weights.safetensors cloud/model.so; do
  spoil
  rm "$bad/$file"
  mkfifo "$bad/$file"
  refuse "a pipe as $file" "$file: error: the path is not a regular file"
  rm "$bad/$file"
  ln -s /dev/zero "$bad/$file"
  refuse "a device as $file" "$file: error: the path leads out of the folder through a symbolic link"
  rm "$bad/$file"
  ln -s "$work/good.llmpart/$file" "$bad/$file"
  refuse "a link out as $file" "$file: error: the path leads out of the folder through a symbolic link"
done
spoil
mv "$bad/device/model.so" "$bad/device/code.so"
ln -s code.so "$bad/device/model.so"
same 'a link within the folder' "$(tokens "$work/good.llmpart" 1,2,3 2 --in-process)" "$(tokens "$bad" 1,2,3 2 --in-process)"

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
wanted_status=2
refused 'passes that prompts shorten' '--prompt-stretch: error: wanted a number from 1 on, not 0.5' "$LLMPART" worker "$bad" --prompt-stretch=0.5
wanted_status=1
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
