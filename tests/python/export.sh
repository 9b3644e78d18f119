# llmpart.export: a Hugging Face folder as ONNX, by each exporter that is installed, generates the tokens that the
# compiler's own reader of that folder gives; without an exporter the error says what to install.
. "$LP_SOURCE/tests/e2e/lib.sh"
python=${LP_PYTHON:-python3}
export PYTHONPATH="$LP_SOURCE/python${PYTHONPATH:+:$PYTHONPATH}" PYTHONDONTWRITEBYTECODE=1 LLMPART
"$python" -c 'import cffi' 2>/dev/null || skip "$python lacks cffi (tests/python/requirements.txt)"
folder=$LP_SOURCE/tests/models/huggingface/qwen3
export_by() { # export_by MODULES-TO-HIDE OUT
  "$python" - "$1" "$folder" "$2" <<'END' 2>&1
import importlib.util, sys
import llmpart
hidden, find = sys.argv[1].split(), importlib.util.find_spec
importlib.util.find_spec = lambda name, package=None: None if name.split(".")[0] in hidden else find(name, package)
print(llmpart.export(sys.argv[2], sys.argv[3]))
END
}
export_by 'optimum torch' "$work/none" >"$work/out" && fail 'an export without an exporter'
grep -q 'llmpart.Error\|llmpart._command.Error: an export needs optimum' "$work/out" || fail "no exporter: $(tail -n 1 "$work/out")"
compile "$folder" "$work/folder.llmpart" || finish
want=$(tokens "$work/folder.llmpart" 1,2,3 12)
tried=0
has() { "$python" -c "import $1" 2>/dev/null; }
check() { # check NAME MODULES-TO-HIDE
  tried=$((tried + 1))
  export_by "$2" "$work/$1" >"$work/out" || { fail "$1: $(tail -n 2 "$work/out")"; return; }
  compile "$work/$1/model.onnx" "$work/$1.llmpart" && same "$1" "$want" "$(tokens "$work/$1.llmpart" 1,2,3 12)"
}
! has optimum.exporters.onnx || check optimum ''
! has 'torch, transformers, onnxscript' || check torch optimum
[ "$tried" != 0 ] || skip "$python has no exporter: optimum, or torch, transformers and onnxscript"
finish
