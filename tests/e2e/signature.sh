# Signed bundles: OpenSSL's command judges the signature, and a bundle that its owner did not sign, or that was changed
# after it was signed, does not run where --trust is given.
. "$LP_SOURCE/tests/e2e/lib.sh"
command -v openssl >/dev/null || skip 'openssl is not there'
model=$LP_SOURCE/examples/default-model/model.onnx
for owner in ours other; do
  openssl genpkey -algorithm ed25519 -out "$work/$owner.key" 2>"$work/err" || fail "openssl: $(cat "$work/err")"
  openssl pkey -in "$work/$owner.key" -pubout -out "$work/$owner.pub"
done
openssl genpkey -algorithm x25519 -out "$work/exchange.key" 2>"$work/err"
openssl pkey -in "$work/ours.key" -aes-256-cbc -passout pass:word -out "$work/locked.key"
compile "$model" "$work/signed.llmpart" $pair --scheduler=cut --cut=1 --sign="$work/ours.key" || finish
openssl pkeyutl -verify -pubin -inkey "$work/ours.pub" -rawin -in "$work/signed.llmpart/manifest.json" \
  -sigfile "$work/signed.llmpart/manifest.sig" >"$work/out" 2>&1 || fail "openssl says: $(cat "$work/out")"

trusted() { # trusted BUNDLE KEY: the tokens of a run that trusts the key
  tokens "$work/$1.llmpart" 1,2,3 4 --trust="$work/$2"
}
wanted=$(tokens "$work/signed.llmpart" 1,2,3 4)
same 'signed' "$wanted" "$(trusted signed ours.pub)"
same 'signed, in one process' "$wanted" "$(tokens "$work/signed.llmpart" 1,2,3 4 --in-process --trust="$work/ours.pub")"
untrusted() { # untrusted WHAT PATTERN BUNDLE KEY
  refused "$1" "$2" "$LLMPART" run "$work/$3.llmpart" --tokens=1,2,3 -n 1 --trust="$work/$4"
}
untrusted 'another owner' "manifest.sig: error: is not a signature of this bundle by the owner of '.*other.pub'" signed other.pub
untrusted 'a private key' 'ours.key: error: holds no Ed25519 public key' signed ours.key
untrusted 'no key' "cannot open|No such file" signed absent.pub
cp -r "$work/signed.llmpart" "$work/unsigned.llmpart"
rm "$work/unsigned.llmpart/manifest.sig"
untrusted 'no signature' 'unsigned.llmpart: error: the bundle is not signed: it has no manifest.sig' unsigned ours.pub
same 'unsigned, without --trust' "$wanted" "$(tokens "$work/unsigned.llmpart" 1,2,3 4)"
refused 'a worker' 'the bundle is not signed' "$LLMPART" worker "$work/unsigned.llmpart" --listen=127.0.0.1:0 --trust="$work/ours.pub"

# Every byte counts: of the manifest, of the code and of the weights, also where the checksums that detect damage fit.
for file in manifest.json device/model.so device/weights.safetensors cloud/weights.safetensors; do
  rm -rf "$work/changed.llmpart"
  cp -r "$work/signed.llmpart" "$work/changed.llmpart"
  size=$(wc -c <"$work/changed.llmpart/$file")
  printf '\377' | dd of="$work/changed.llmpart/$file" bs=1 seek=$((size / 2)) conv=notrunc 2>/dev/null
  "$LLMPART" run "$work/changed.llmpart" --tokens=1,2,3 -n 1 --in-process --trust="$work/ours.pub" >"$work/out" 2>"$work/err" &&
    fail "$file was changed, and the bundle runs"
  grep -q 'is not a signature\|is damaged' "$work/err" || fail "$file was changed: $(cat "$work/err")"
done
# A manifest with a new seal, and a signature cut short.
cp -r "$work/signed.llmpart" "$work/sealed.llmpart"
sed -i 's/"vocab": [0-9]*/&0/' "$work/sealed.llmpart/manifest.json"
seal "$work/sealed.llmpart"
untrusted 'a new seal' 'is not a signature of this bundle' sealed ours.pub
cp -r "$work/signed.llmpart" "$work/short.llmpart"
head -c 63 "$work/signed.llmpart/manifest.sig" >"$work/short.llmpart/manifest.sig"
untrusted 'a short signature' 'is not a signature of this bundle' short ours.pub

# Keys that cannot sign are refused before the model is compiled; a signed bundle is replaced like any other.
for key in exchange.key locked.key ours.pub; do
  refused "to sign with $key" "$key: error: holds no Ed25519 private key in PEM form without a password" \
    "$LLMPART" compile "$model" --device=jetson-nano --march=native --sign="$work/$key" -o "$work/made/x.llmpart"
done
wanted_status=2 refused 'a signed report' 'only a bundle can be signed' \
  "$LLMPART" compile "$model" --device=jetson-nano --emit=report --sign="$work/ours.key" -o "$work/made/x.txt"
compile "$model" "$work/signed.llmpart" --sign="$work/other.key"
same 'signed again' "$(tokens "$work/signed.llmpart" 1,2,3 4)" "$(trusted signed other.pub)"
finish
