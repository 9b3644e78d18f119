# What the report of a refused plan suggests is feasible: each figure, as the report prints it, given to `compile`. A
# smaller change is refused.
. "$LP_SOURCE/tests/e2e/lib.sh"
model=$1

option() { # option CHANGE VALUE: the option of `compile` for a line of the report
  case $1 in
  ttft) echo "--ttft=$2" ;;
  tpot) echo "--tpot=$2" ;;
  device_memory) echo "--device-memory=$2" ;;
  rtt) echo "--link=$link,rtt=$2" ;;
  up) echo "--link=$link,up=$2" ;;
  down) echo "--link=$link,down=$2" ;;
  dtype_device) echo "--dtype-device=$2" ;;
  dtype_cloud) echo "--dtype-cloud=$2" ;;
  *) echo "--unknown=$1" ;;
  esac
}

scaled() { # scaled VALUE FACTOR: a value with its unit
  awk -v text="$1" -v factor="$2" 'BEGIN { unit = text; gsub(/^[0-9.e+-]*/, "", unit); printf "%.12g%s", factor * text, unit }'
}

less() { # less CHANGE VALUE: a figure on the other side of the limit, or nothing
  case $1 in
  dtype_*) ;;
  rtt) scaled "$2" 1.00002 ;;
  *) scaled "$2" 0.99998 ;;
  esac
}

# suggested WANTED LINK [option ...]: compiles what is infeasible and applies each suggestion; WANTED names them.
suggested() {
  wanted=$1 link=$2
  shift 2
  "$LLMPART" compile "$model" ${link:+--link="$link"} --plan-only --report="$work/report.json" "$@" 2>"$work/err"
  "$LLMPART" compile "$model" ${link:+--link="$link"} --plan-only "$@" >"$work/text" 2>"$work/err"
  status=$?
  [ $status = 3 ] || fail "$*: exit status $status, wanted 3: $(head -n 1 "$work/err")"
  sed -n 's/^  \([a-z_]*\) *from .* to \([^ ]*\)$/\1 \2/p' "$work/text" >"$work/fixes"
  same "$link $*: the suggestions" "$wanted" "$(cut -d ' ' -f 1 "$work/fixes" | tr '\n' ' ' | sed 's/ $//')"
  sed -n '/^  "fixes"/,/^  \]/s/^ *"to": "*\([^"]*\)"*$/\1/p' "$work/report.json" | awk '{ print /^[0-9]/ ? sprintf("%.6g", $1) : $1 }' >"$work/to"
  same "$link $*: the figures of the report and of its text" "$(cut -d ' ' -f 2 "$work/fixes" | awk 'BEGIN { f["s"] = f["kB"] = 1e3; f["us"] = 1e-3; f["MB"] = 1e6; f["GB"] = 1e9 }
    { unit = $1; gsub(/^[0-9.]*/, "", unit); print /^[0-9]/ ? sprintf("%.6g", $1 * (unit in f ? f[unit] : 1)) : $1 }')" "$(cat "$work/to")"
  while read -r change value; do
    "$LLMPART" compile "$model" ${link:+--link="$link"} --plan-only "$@" "$(option "$change" "$value")" >"$work/out" 2>"$work/err" ||
      fail "$link $*: $change $value is not feasible: $(head -n 1 "$work/err")"
    beyond=$(less "$change" "$value")
    [ "$beyond" ] || continue
    "$LLMPART" compile "$model" ${link:+--link="$link"} --plan-only "$@" "$(option "$change" "$beyond")" >"$work/out" 2>"$work/err"
    status=$?
    [ $status = 3 ] || fail "$link $*: $change $beyond: exit status $status, wanted 3: $(head -n 1 "$work/err")"
  done <"$work/fixes"
}

nano='--device=jetson-nano-p1 --cloud=v100s-p1'
# shellcheck disable=SC2086 # lists of options
{
  suggested 'tpot rtt' lan $nano --ttft=6ms --tpot=0.1ms --scheduler=cut --cut=2
  suggested 'ttft rtt' lan $nano --ttft=0.4ms --tpot=0.1ms
  suggested 'ttft rtt' 5g $nano --ttft=9ms --tpot=1ms --isl=2048 --device-memory=8MiB
  suggested 'tpot dtype_cloud' lan $nano --tpot=5us
  suggested 'ttft' '' --device=jetson-nano-p1 --ttft=5ms
  suggested 'device_memory dtype_device' '' --device=jetson-nano-p1 --device-memory=7MiB
}
finish
