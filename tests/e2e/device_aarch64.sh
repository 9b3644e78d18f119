# device_aarch64.sh MODEL.onnx TOKENS.json: the preset device-aarch64 gives one static program. With it as the device,
# under an emulator, and a worker of this machine, tokens are those of ONNX Runtime: for the default pair of a Raspberry
# Pi 5 and this machine, also by a key over TLS. It refuses a half for a GPU, and runs its other form. As a worker it is
# measured.
. "$LP_SOURCE/tests/e2e/lib.sh"
model=$1 lists=$2
for tool in qemu-aarch64 aarch64-linux-gnu-gcc apt-get; do
  command -v $tool >/dev/null || skip "there is no $tool"
done
sysroot=$LP_BUILD/sysroot-aarch64 build=$LP_BUILD/device-aarch64
sh "$LP_SOURCE/tools/sysroot-aarch64.sh" "$sysroot" >"$work/said" 2>&1 || skip "no arm64 libraries from Debian: $(tail -n 1 "$work/said")"
cmake --preset device-aarch64 -B "$build" -DLP_SYSROOT="$sysroot" >"$work/said" 2>&1 && cmake --build "$build" >>"$work/said" 2>&1 || {
  fail "the build: $(grep -E 'error' "$work/said" | head -n 3)"
  finish
}
device=$build/tools/llmpart

# No loader and no library is needed: the emulator gets no -L.
qemu-aarch64 "$device" --version >"$work/said" 2>&1 || fail "--version: $(cat "$work/said")"
most=5750000 # with libraries of Debian 12; docs/targets.md says what takes them
[ -e "$build/linker/ld.lld" ] || most=6300000 # GNU ld does not pack relocations
[ "$(wc -c <"$device")" -le $most ] || fail "the program has $(wc -c <"$device") bytes, more than $most"

# It may lie at any address, and nothing in it is both writable and code.
if command -v readelf >/dev/null; then
  segments=$(readelf -lW "$device")
  case $(readelf -hW "$device") in *'Type:'*DYN*) ;; *) fail 'the program lies at a fixed address' ;; esac
  case $segments in *INTERP*) fail 'the program needs a loader' ;; *GNU_RELRO*) ;; *) fail 'pointers to functions stay writable' ;; esac
  echo "$segments" | grep -E ' RWE +0x' >"$work/said" && fail "writable code: $(cat "$work/said")"
fi

printf '#!/bin/sh\nexec qemu-aarch64 %s "$@"\n' "$device" >"$work/device"
chmod +x "$work/device"
on_device() { # on_device BUNDLE IDS COUNT [option ...]
  LLMPART=$work/device tokens "$@"
}

ids=$(row "$lists" prompts 1)
want=$(row "$lists" tokens 1 | cut -d , -f -4)
compile "$model" "$work/pi.llmpart" --device=raspberry-pi-5 --cloud=host --link=wifi --cut=1 -O1
if serve "$work/pi.llmpart"; then
  same 'a Raspberry Pi 5 and this machine' "$want" "$(on_device "$work/pi.llmpart" "$ids" 4 --cloud="$address")"
fi
openssl rand -hex 32 >"$work/key" && chmod 600 "$work/key"
if serve "$work/pi.llmpart" --key-file="$work/key"; then
  same 'with a key' "$want" "$(on_device "$work/pi.llmpart" "$ids" 4 --cloud="$address" --key-file="$work/key")"
fi

# The program has no way to a GPU.
compile "$model" "$work/nano.llmpart" --device=jetson-nano --cloud=host --link=wifi --cut=1 -O1 --fallback=cpu
if serve "$work/nano.llmpart"; then
  same 'a Jetson Nano without its GPU' "$want" "$(on_device "$work/nano.llmpart" "$ids" 4 --cloud="$address")"
  grep -q "warning: code for CUDA, and there is no NVIDIA driver.*the device's half runs on the processor instead" "$work/err" ||
    fail "nothing is said of the GPU: $(cat "$work/err")"
fi
# A Raspberry Pi 5 is measured through a worker there, and plans take its operators' times.
subject='--machine=raspberry-pi-5 --backend=cpu --march=cortex-a76 --widths=1 --budget=0ms'
host=$LLMPART
# shellcheck disable=SC2086 # a list of options
"$LLMPART" hw profile $subject --bundles="$work/bundles" 2>"$work/err" || fail "--bundles: $(head -n 3 "$work/err")"
LLMPART=$work/device
serve "$work/bundles/width-128.llmpart" --profile
LLMPART=$host
# shellcheck disable=SC2086 # a list of options
"$LLMPART" hw profile $subject --over="$address" -o "$work/pi.yaml" 2>"$work/err" || fail "--over: $(head -n 3 "$work/err")"
"$LLMPART" compile "$model" --device="$work/pi.yaml" --cloud=host --link=wifi --cut=1 --plan-only >"$work/out" 2>"$work/err" || fail "$(cat "$work/err")"
grep -q "times: [1-9][0-9.]* % from measured operators of llmpart's kernels.*; code: cpu cortex-a76" "$work/out" ||
  fail "the report does not say that operators were measured: $(grep times: "$work/out")"

# It does not run another processor's code.
compile "$model" "$work/host.llmpart" --device=host -O1
[ "$(uname -m)" = aarch64 ] ||
  refused 'code of another processor' 'code for x86_64.*this machine is aarch64' "$work/device" run "$work/host.llmpart" --tokens=1 -n 1
finish
