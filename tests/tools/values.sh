# Bad values of every option of every subcommand, by the tables of the command itself: a value of a wrong form ends with
# status 2, a name of something absent with 1, each with one error on stderr and nothing on stdout. Options of kind text
# are listed in values.txt, and an option that is not there fails this test.
. "$LP_SOURCE/tests/e2e/lib.sh"
list=$LP_SOURCE/tests/tools/values.txt
model=$LP_SOURCE/tests/models/llama/model.onnx
cd "$work" || exit 1
mkdir test_data
compile "$model" "$work/bundle" --device=jetson-nano-p1 --cloud=v100s-p1 --link=lan --cut=1 --march=native || finish
"$LLMPART" import "$model" --emit=layer-ir -o model.mlir
printf 'model: %s\nmachines: [{device: jetson-nano, cloud: v100s}]\nlinks: [lan]\nworkloads: {isl: 8, osl: 8, batch: 1}\n' "$model" >sweep.yaml
printf 'model: %s\nload: {rate: 1}\nlengths: [{isl: 8, osl: 8}]\nclasses: [{name: a, device: jetson-nano, link: lan, limits: {ttft: {p50: 9s}}}]\nmachines: [l4]\n' "$model" >fleet.yaml
echo '{}' >empty.json
head -n 3 "$LP_SOURCE"/tests/hwmodels/*.csv 2>/dev/null >table.csv || : >table.csv
: >data.txt
export XDG_CACHE_HOME="$work/cache"

# The rest of a command that is complete but for the option.
rest() { # rest SUBCOMMAND
  case $1 in
  compile) echo "$model --device=jetson-nano-p1 --cloud=v100s-p1 -o $work/out.llmpart" ;;
  support | import | verify) echo "$model" ;;
  opt) echo "$work/model.mlir" ;;
  sweep) echo "$work/sweep.yaml" ;;
  fleet) echo "$work/fleet.yaml" ;;
  run) echo "$work/bundle --tokens=1 -n 1" ;;
  chat) echo "$work/bundle" ;;
  worker | bench) echo "$work/bundle" ;;
  calibrate) echo "$work/bundle --data=$work/data.txt" ;;
  explain) echo "$work/empty.json x" ;;
  check-plan) echo "$work/empty.json" ;;
  diff) echo "$work/empty.json $work/empty.json" ;;
  link) echo list ;;
  hw) ;;
  serve) echo "$LP_SOURCE/tests/tools/nosuch.yaml" ;;
  route) echo "--keywords=code" ;;
  simulate) echo "$LP_SOURCE/examples/edge-cloud-6g/scenario.yaml" ;;
  radio) echo "pathloss --d2d=100 --hbs=25 --hut=1.5 --fc=3.5 --scenario=UMa --los" ;;
  service) echo "list" ;;
  *) fail "$1 is a new subcommand: give its arguments here" ;;
  esac
}

bad() { # bad STATUS SUBCOMMAND ARGUMENT..
  wanted=$1
  shift
  status=0
  timeout 60 "$LLMPART" "$@" >out 2>err </dev/null || status=$?
  [ "$status" = "$wanted" ] || fail "llmpart $*: exit status $status, wanted $wanted: $(head -n 2 err)"
  [ "$(grep -c 'error: ' err)" = 1 ] || fail "llmpart $*: wanted one error, found: $(head -n 3 err)"
  [ -n "$prints" ] || [ ! -s out ] || fail "llmpart $*: it printed on stdout: $(head -n 2 out)"
}

values_of() { # values_of KIND: texts of a wrong form
  case $1 in
  count) echo 'many -1 99999999999 1.5' ;;
  integer) echo 'many 1.5 99999999999999999999' ;;
  number) echo 'many -1 nan 1x' ;;
  share) echo 'many -1% nan' ;;
  signed) echo 'many nan' ;;
  time) echo 'soon -1ms 1parsec' ;;
  limit) echo 'soon 0 -1ms' ;;
  size) echo 'big 4furlong -1' ;;
  numbers) echo '1,x many' ;;
  choice | address) echo 'nosuch' ;;
  *) fail "$1 is a new kind of option: give values here" ;;
  esac
}

checked=0 prints=''
for subcommand in $("$LLMPART" help --words); do
  "$LLMPART" "$subcommand" --help=table >table
  while IFS='	' read -r option kind value <&3; do
    case $option in --*) equals='=' ;; *) equals='' ;; esac
    checked=$((checked + 1))
    case $kind in
    flag) [ "$equals" = '' ] || bad 2 "$subcommand" "$option=yes" ;;
    text | texts)
      grep -q "^$subcommand $option " "$list" || fail "values.txt has no line for $subcommand $option=$value"
      ;;
    *)
      bad 2 "$subcommand" "$option"
      for wrong in $(values_of "$kind"); do
        bad 2 "$subcommand" "$option$equals$wrong"
        grep -q -e "^$option: error: " err || fail "$subcommand $option$equals$wrong: the option is not named: $(head -n 1 err)"
      done
      ;;
    esac
  done 3<table
done
[ "$checked" -gt 150 ] || fail "only $checked options"

while read -r subcommand option value wanted arguments <&3; do
  case $subcommand in '#'* | '') continue ;; esac
  [ "$value" != - ] || continue
  case $option in -MD | -? ) equals=' ' ;; *) equals='=' ;; esac
  others=$(rest "$subcommand")
  case $arguments in --) others='' arguments='' ;; '>') prints=yes arguments='' ;; esac
  eval "bad $wanted $subcommand $others $option$equals$value $arguments"
  prints=''
done 3<"$list"
finish
