# Machine models through the command: a table is fitted, evaluated, queried and drawn; bad tables and files are refused
# at the place of the error.
. "$LP_SOURCE/tests/e2e/lib.sh"
cd "$work" || exit 1

says() { # says WHAT WANTED FILE
  grep -qF -- "$2" "$3" || fail "$1: wanted
  $2
found
  $(cat "$3")"
}

printf '%s\n' 'op,m,n,k,dtype,time_us' linear,1,4096,4096,f16,30 linear,64,4096,4096,f16,31 linear,4096,4096,4096,f16,700 \
  linear,4096,4096,4096,f16,10 norm,1,4096,,f16,3 >table.csv
"$LLMPART" hw fit table.csv --machine=a100 -o fit.yaml 2>err || fail "no fit: $(cat err)"
says 'what was dropped' "4 measurements fitted by 2 curves of 3 knots; 1 dropped, faster than 'a100' can be" err
"$LLMPART" hw eval ./fit.yaml table.csv >out || fail 'no judgement'
says 'what was not judged' 'left out: 1 measurements faster than the machine can be' out
"$LLMPART" hw eval ./fit.yaml table.csv -o json >out || fail 'no judgement in JSON'
says 'the errors' '"coverage90"' out
"$LLMPART" hw predict ./fit.yaml --op=linear --m=1 --n=4096 --k=4096 >out || fail 'no prediction'
says 'a measured operator' '0.00 octaves from the nearest measurement' out
says 'its interval' '90 % interval' out
"$LLMPART" hw show ./fit.yaml >out || fail 'nothing to show'
says 'the roofline' 'roofs: f32 19.5 TFLOP/s, f16 312 TFLOP/s' out
"$LLMPART" hw show ./fit.yaml -o roofline.svg || fail 'no roofline'
says 'the roofline as SVG' '<svg xmlns="http://www.w3.org/2000/svg"' roofline.svg
"$LLMPART" hw list >out || fail 'no list'
says 'the list' h100 out

refuses() { # refuses STATUS WANTED COMMAND...
  wanted_status=$1 wanted=$2
  shift 2
  "$LLMPART" hw "$@" >out 2>err
  same "the status of 'hw $*'" "$wanted_status" $?
  says "'hw $*'" "$wanted" err
}

edited() { # edited NAME SCRIPT: the fit's file, wrong in one line
  sed "$2" fit.yaml >"$1.yaml"
}

printf 'op,m,n,k,dtype\nlinear,1,2,3,f16\n' >columns.csv
printf 'op,m,n,k,dtype,time_us\nlinear,1,2,3,f16,nan\n' >nan.csv
edited negative 's|^memory_bandwidth:.*|memory_bandwidth: -5 GB/s|'
edited unit 's|^memory_bandwidth:.*|memory_bandwidth: 5 GB|'
edited key 's|^kind:|knd:|'
edited inner 's|launch_us:|lanch_us:|'
at() { # at FILE KEY: the line that holds it
  grep -n "$2" "$1" | head -n 1 | cut -d: -f1
}
refuses 1 "columns.csv:1: error: the table lacks the column 'time_us'" fit columns.csv -o never.yaml
refuses 1 "nan.csv:2:18: error: 'time_us' is 'nan'" fit nan.csv -o never.yaml
refuses 1 "nan.csv:2:18: error: 'time_us' is 'nan'" eval a100 nan.csv
[ ! -e never.yaml ] || fail 'a bad table leaves a file behind'
line=$(at fit.yaml ^memory_bandwidth:)
refuses 1 "./negative.yaml:$line:19: error: '-5 GB/s' is not a rate such as 2039 GB/s" show ./negative.yaml
says 'the key' "./negative.yaml:$line:19: note: it is given for 'memory_bandwidth'" err
refuses 1 "./unit.yaml:$line:19: error: '5 GB' is not a rate such as 2039 GB/s" \
  predict ./unit.yaml --op=linear --m=1 --n=2 --k=2
refuses 1 "./key.yaml:$(at fit.yaml ^kind:):1: error: unknown key 'knd'" eval ./key.yaml table.csv
refuses 1 "./inner.yaml:$(at inner.yaml lanch_us:):7: error: unknown key 'lanch_us'" show ./inner.yaml
refuses 1 "error: '-5' is not a rate" predict a100,memory_bandwidth=-5 --op=linear --m=1 --n=2 --k=2
refuses 2 "--m: error: '-1' is not in the range" predict a100 --op=linear --m=-1 --n=2 --k=2
refuses 2 "error: 'linear' needs '--k'" predict a100 --op=linear --m=1 --n=2
refuses 1 "error: unknown machine 'a10'" show a10
refuses 1 'nosuch.csv: error: cannot open' fit nosuch.csv -o never.yaml
finish
