# Schemas as Pydantic, Zod and servers of MCP write them: PyPI's jsonschema accepts each text of their grammars.
. "$LP_SOURCE/tests/e2e/lib.sh"
python=${LP_PYTHON:-python3}
"$python" -c 'import jsonschema, pydantic' 2>/dev/null || skip "$python lacks jsonschema or pydantic (tests/runtime/serve/requirements.txt)"
"$python" "$LP_SOURCE/tests/runtime/grammar/published.py" "$1" >"$work/found" 2>&1 || fail "$(tail -n 12 "$work/found")"
finish
