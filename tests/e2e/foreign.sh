# foreign.sh MODEL.onnx TOKENS.json: code for aarch64 generates the same tokens under an emulator, only through
# base/abi.h; the same driver with code for this machine is the control.
. "$LP_SOURCE/tests/e2e/lib.sh"
model=$1 lists=$2

generate() { # generate WHAT COMPILER MARCH [emulator ...]
  what=$1 compiler=$2 march=$3
  shift 3
  "$compiler" -std=c17 -O1 -D_GNU_SOURCE -I "$LP_SOURCE" "$LP_SOURCE/tests/e2e/foreign_run.c" -o "$work/run" -ldl 2>"$work/err" ||
    { fail "$what: $(head -n 3 "$work/err")"; return; }
  compile "$model" "$work/one.llmpart" --march="$march" || return
  awk -f "$LP_SOURCE/tests/e2e/flatten.awk" "$work/one.llmpart/manifest.json" >"$work/steps"
  for i in $(seq "$(rows "$lists" prompts | wc -l)"); do
    want=$(row "$lists" tokens "$i")
    # shellcheck disable=SC2046 # a list of numbers
    found=$("$@" "$work/run" "$work/steps" "$work/one.llmpart/device/model.so" "$work/one.llmpart/device/weights.safetensors" \
      "$(length "$want")" $(row "$lists" prompts "$i" | tr , ' ') 2>"$work/err") || found="exit status $?: $(cat "$work/err")"
    same "$what, prompt $i" "$want" "$found"
  done
}

part long && generate 'this machine' cc native env
part quick || finish
command -v qemu-aarch64 >/dev/null && command -v aarch64-linux-gnu-gcc >/dev/null || skip 'there is no qemu-aarch64 or no cross compiler'
generate 'aarch64' aarch64-linux-gnu-gcc armv8-a qemu-aarch64 -L /usr/aarch64-linux-gnu
finish
