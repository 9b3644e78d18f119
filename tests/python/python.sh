# The Python package: it is built and installed into a folder, passes mypy and ruff, generates what `llmpart run` does,
# and reports errors (check.py). The Python blocks of docs/guide/python.md run as well.
. "$LP_SOURCE/tests/e2e/lib.sh"
python=${LP_PYTHON:-python3}
"$python" -c 'import scikit_build_core, cffi, numpy, pandas, pip' 2>/dev/null ||
  skip "$python lacks cffi, numpy, pandas, pip or scikit-build-core (tests/python/requirements.txt)"
export PYTHONDONTWRITEBYTECODE=1 LLMPART
# Without its programs, which are those of the build; tests/package/package.sh installs the whole wheel.
"$python" -m pip install -q --disable-pip-version-check --no-index --no-deps --no-build-isolation -C wheel.cmake=false -C build-dir="$work/build" \
  --target "$work/site" "$LP_SOURCE" >"$work/out" 2>&1 || { fail "pip install: $(tail -n 5 "$work/out")"; finish; }
[ -f "$work/site/llmpart/py.typed" ] || fail 'the package has no py.typed'

if "$python" -c 'import mypy, ruff' 2>/dev/null; then
  (cd "$work/site" && "$python" -m mypy --strict --cache-dir="$work/mypy" -p llmpart) >"$work/out" 2>&1 || fail "mypy: $(cat "$work/out")"
  "$python" -m ruff check -q --no-cache --config "$LP_SOURCE/pyproject.toml" "$work/site/llmpart" >"$work/out" 2>&1 || fail "ruff: $(cat "$work/out")"
else
  echo "$name: skipped: mypy and ruff, which $python lacks (tests/python/requirements.txt)"
fi

# The judge is the command.
compile "$LP_SOURCE/examples/default-model/model.onnx" "$work/wanted.llmpart" --device=host --cloud=host --link=wifi --cut=4 || finish
"$LLMPART" run "$work/wanted.llmpart" --prompt='Once upon a time' -n 24 >"$work/wanted.txt" || fail 'llmpart run'
ids=$(tokens "$work/wanted.llmpart" 1,2,3 24)
mkdir "$work/here"
cp "$LP_SOURCE/examples/default-model/model.onnx" "$LP_SOURCE/examples/default-model/tokenizer.json" "$work/here"
cd "$work/here" || exit 1
PYTHONPATH=$work/site "$python" "$LP_SOURCE/tests/python/check.py" "$work/wanted.txt" "$ids" >"$work/out" 2>&1 || fail "check.py: $(cat "$work/out")"

# The page's blocks are one program.
awk '/^```/ { inside = $0 == "```python"; next } inside' "$LP_SOURCE/docs/guide/python.md" >page.py
[ -s page.py ] || fail 'docs/guide/python.md has no Python'
PATH=$(dirname "$LLMPART"):$PATH PYTHONPATH=$work/site "$python" page.py >"$work/out" 2>&1 || fail "docs/guide/python.md: $(cat "$work/out")"
cd / || exit 1
finish
