# targets.sh MODEL.onnx TOKENS.json: code for another CPU of this kind and less optimised code generate the same tokens.
. "$LP_SOURCE/tests/e2e/lib.sh"
model=$1
ids=$(row "$2" prompts 2)
want=$(row "$2" tokens 2)
case $(uname -m) in x86_64) other=x86-64-v3 ;; *) other=armv8-a ;; esac
part quick && options="--march=$other -O0" || options=
part soak && options="$options -O1"
for options in $options; do
  compile "$model" "$work/one.llmpart" "$options" &&
    same "$options" "$want" "$(tokens "$work/one.llmpart" "$ids" "$(length "$want")")"
done
for options in --march=$other -O1; do
  case $options in -O1) part soak ;; *) part long ;; esac || continue
  # shellcheck disable=SC2086 # a list of options
  compile "$model" "$work/cut.llmpart" $pair --scheduler=cut --cut=1 "$options" &&
    same "cut 1, $options" "$want" "$(tokens "$work/cut.llmpart" "$ids" "$(length "$want")" --in-process)"
done
finish
