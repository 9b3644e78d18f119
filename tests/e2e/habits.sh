# examples/habits: the job as a script, as a rule of CMake, which compiles again only when an input changed, and as a
# notebook, whose cells are executed by nbclient.
. "$LP_SOURCE/tests/e2e/lib.sh"
PATH=$(dirname "$LLMPART"):$PATH
export LLMPART
habits=$LP_SOURCE/examples/habits
mkdir "$work/here" && cd "$work/here" || exit 1
cp "$LP_SOURCE/examples/default-model/model.onnx" "$LP_SOURCE/examples/default-model/tokenizer.json" .
text=$(sh "$habits/job.sh" model.onnx one.llmpart 2>"$work/err" | tail -n 1)
[ -n "$text" ] || fail "job.sh: $(cat "$work/err")"

build() { cmake --build "$work/build" --target "$1" >"$work/out" 2>&1 || fail "cmake --build: $(tail -n 5 "$work/out")"; }
cmake -S "$habits" -B "$work/build" -DMODEL="$PWD/model.onnx" >"$work/out" 2>&1 || fail "cmake: $(tail -n 5 "$work/out")"
build story
grep -Fq "$text" "$work/out" || fail "CMake's rule generates another text: $(cat "$work/out")"
bundle=$work/build/model.llmpart
first=$(stat -c %y "$bundle")
build bundle
same 'a build without a change' "$first" "$(stat -c %y "$bundle")"
sleep 1
touch tokenizer.json # only the depfile names it
build bundle
[ "$first" != "$(stat -c %y "$bundle")" ] || fail 'a new tokenizer changes nothing'

python=${LP_PYTHON:-python3}
"$python" -c 'import cffi, ipykernel, matplotlib, nbclient, numpy, pandas' 2>/dev/null ||
  skip "$python lacks nbclient, ipykernel, matplotlib, cffi, numpy or pandas (tests/python/requirements.txt)"
cat >"$work/execute.py" <<'END'
import sys, nbclient, nbformat
notebook = nbformat.read(sys.argv[1], as_version=4)
nbclient.NotebookClient(notebook, timeout=300).execute()
outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
assert sum("image/png" in output.get("data", {}) for output in outputs) == 2
print("".join(output.get("text", "") for output in outputs if output.output_type == "stream"))
END
PYTHONPATH=$LP_SOURCE/python "$python" "$work/execute.py" "$habits/job.ipynb" >"$work/out" 2>"$work/err" || fail "the notebook: $(tail -n 5 "$work/err")"
grep -Fq "$text" "$work/out" || fail "the notebook generates another text: $(cat "$work/out")"
finish
