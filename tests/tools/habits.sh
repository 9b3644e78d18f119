# What users of other programs type: names of options, a model file where a bundle is wanted, a server without a file,
# and a chat.
. "$LP_SOURCE/tests/e2e/lib.sh"
export XDG_CACHE_HOME="$work/cache"
default=$LP_SOURCE/examples/default-model
mkdir "$work/model"
cp "$default/model.onnx" "$default/tokenizer.json" "$work/model"
cd "$work" || exit 1
say() { status=0; "$LLMPART" "$@" >out 2>err </dev/null || status=$?; } # say ARGUMENT..: in out, err and status

# A model is compiled once; one that has changed, again.
say run model/model.onnx 'Once upon a time' -n 8
wanted=$(cat out)
[ "$status" = 0 ] && [ -n "$wanted" ] || fail "a model file: $status, $(cat err)"
grep -q "^model/model.onnx: note: a model: it is compiled for this machine once, into $work/cache/llmpart/models/model.onnx-[0-9a-f]*.llmpart" err || fail "no note: $(cat err)"
bundle=$(echo "$work"/cache/llmpart/models/*.llmpart)
for form in "model/model.onnx" "$bundle" "model"; do
  say run "$form" 'Once upon a time' -n 8
  same "again: $form" "$wanted" "$(cat out)"
  [ "$form" = model ] || same "a note of $form" '' "$(cat err)"
done
touch -d '2020-01-01' model/tokenizer.json
say run model/model.onnx 'Once upon a time' -n 8 --quiet
same 'a model that has changed' "$wanted" "$(cat out)"
same 'quietly' '' "$(cat err)"
same 'bundles' 3 "$(ls cache/llmpart/models | wc -l)"
echo no >broken.gguf
say run broken.gguf hello
[ "$status" = 1 ] && grep -q 'llmpart support broken.gguf' err || fail "a model that does not compile: $status, $(cat err)"

# Options by other names.
for options in "-p|Once upon a time|-n|8" "--prompt=Once upon a time|--max-tokens=8" "Once upon a time|--n-predict|8|-t2|--temp|0|-c|64|-s|3" \
  "-n8|--ctx-size=64|--output=text|--temp=0|--|Once upon a time"; do
  IFS='|'
  # shellcheck disable=SC2086 # a list of options
  say run "$bundle" $options
  unset IFS
  same "$options" "$wanted" "$(cat out)"
done
say run -m "$bundle" -p 'Once upon a time' -n 8
same 'a model by -m' "$wanted" "$(cat out)"
say run 'Once upon a time' --model="$bundle" -n 8
same 'a model by --model=' "$wanted" "$(cat out)"
say run "$bundle" 'Once upon a time' --prompt=x
same 'two prompts' 2 "$status"
say run "$bundle" hello -ngl 99
[ "$status" = 2 ] && grep -q "unknown option '-ngl'" err && grep -q 'note: where layers run is decided' err || fail "-ngl: $(cat err)"
say bench -m "$bundle" -p 4 -n 4 -r 1
[ "$status" = 0 ] && grep -q 'tg4' out || fail "bench -m: $status, $(cat err)"
# What is no command or option here is answered by what stands for it: SUBCOMMAND [OPTION]|ANSWER.
while IFS='|' read -r typed answer; do
  # shellcheck disable=SC2086 # words
  say $typed
  [ "$status" = 2 ] && grep -qF -- "$answer" err || fail "$typed: $status, $(cat err)"
  [ "$(grep -c 'did you mean' err)" = 0 ] || fail "$typed: a guess beside the answer: $(cat err)"
done <<'END_OF_FILE'
pull llama3.2|huggingface-cli download ORG/NAME
generate model/model.onnx|`llmpart run BUNDLE|MODEL TEXT`
complete|`llmpart run BUNDLE|MODEL TEXT`
quantize a.gguf b.gguf Q4_K_M|--dtype-device=int4
convert model/model.onnx|`llmpart compile MODEL --device=HW -o OUT`
build model/model.onnx|`llmpart compile MODEL --device=HW -o OUT`
create x -f Modelfile|`llmpart compile MODEL --device=HW -o OUT`
show model/model.onnx|`llmpart support MODEL`
list|bundles are folders
server model/model.onnx|`llmpart serve BUNDLE|MODEL`
rpc-server -p 50052|`llmpart worker BUNDLE`
run model/model.onnx x -ctk q8_0|`llmpart compile MODEL --kv-dtype=f16`
run model/model.onnx x -ngl99|`llmpart compile MODEL --device=HW` for a GPU
run model/model.onnx x -fa on|attention runs in blocks of keys
run model/model.onnx -cnv|`llmpart chat BUNDLE|MODEL`
run model/model.onnx -hf ORG/NAME|huggingface-cli download ORG/NAME
run model/model.onnx x --json-schema {}|`response_format`
run model/model.onnx x --repeat-penalty=1.1|`llmpart serve` takes it in a request
serve model/model.onnx --max-model-len 4096|as long as the model's context
serve model/model.onnx --tensor-parallel-size=2|--ranks=N
serve model/model.onnx --gpu-memory-utilization=0.9|--device-memory=SIZE
serve model/model.onnx --api-key secret|--key-env=NAME
serve model/model.onnx -np 4|`parallel` in the file
serve model/model.onnx --max-num-seqs=8|`parallel` in the file
serve model/model.onnx --served-model-name x|`model` of a place
serve model/model.onnx --dtype bfloat16|--dtype-device=int8
serve model/model.onnx --quantization=awq|--dtype-device=int8
serve model/model.onnx --enable-prefix-caching|leave it out
serve model/model.onnx --trust-remote-code|leave it out
run model/model.onnx x -ub 512|leave it out
run model/model.onnx x --lora adapter|`llmpart compile MODEL --lora=FOLDER`
run model/model.onnx x --chat-template chatml|beside a model
optimize model/model.onnx|`llmpart compile MODEL --device=HW -o OUT`
profile model/model.onnx|`llmpart bench BUNDLE --profile`
embedding -m model/model.onnx|/v1/embeddings
compile model/model.onnx --iree-hal-target-backends=llvm-cpu|`llmpart compile --device=HW` names the machine
END_OF_FILE
for word in -V version --version; do
  say $word
  grep -q '^llmpart [0-9]' out || fail "$word: $(cat out err)"
done
for device in cpu gpu cuda auto; do
  say compile model/model.onnx --device=$device
  [ "$status" = 2 ] && grep -q "'$device' names no machine" err && grep -q 'note: .*--device=host' err || fail "--device=$device: $(cat err)"
done
say compile model/model.onnx --device=host --dtype=int8 --plan-only --quiet
same '--dtype' 0 "$status"
for command in 'run' 'chat' 'compile'; do
  say $command HuggingFaceTB/SmolLM2-135M-Instruct
  grep -q 'note: huggingface-cli download HuggingFaceTB/SmolLM2-135M-Instruct --local-dir SmolLM2-135M-Instruct' err || fail "$command ORG/NAME: $(cat err)"
done

# A conversation. Errors end a turn and not the chat.
cat >model/tokenizer_config.json <<'END_OF_FILE'
{"chat_template": "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}assistant: "}
END_OF_FILE
printf 'Tell a story.\n/system Be brief.\nTell a story.\nGo on.\n/clear\nTell a story.\n/what\n\n/exit\nnever\n' >lines
"$LLMPART" chat model/model.onnx -n 8 --temp 0 <lines >out 2>err || fail "chat: $? $(cat err)"
chat=$(ls -d cache/llmpart/models/*.llmpart -t | head -n 1)
same 'a first answer' "$("$LLMPART" run "$chat" 'Tell a story.' -n 8)" "$(sed -n 1p out)"
brief=$("$LLMPART" run "$chat" --chat='Tell a story.' --system='Be brief.' -n 8)
same 'with a system message' "$brief" "$(sed -n 2p out)"
printf 'system: Be brief.\nuser: Tell a story.\nassistant: %s\nuser: Go on.\nassistant: ' "$brief" >whole
same 'with the history' "$("$LLMPART" run "$chat" --prompt=@whole -n 8)" "$(sed -n 3p out)"
same 'begun again' "$brief" "$(sed -n 4p out)"
same 'an unknown command' 'there is no /what' "$(sed -n 5p out)"
grep -q '^/clear ' out || fail "no help: $(cat out)"
grep -q never out && fail 'it goes on after /exit'
say chat "$bundle"
[ "$status" = 1 ] && grep -q 'no chat template' err || fail "chat without a template: $(cat err)"

# A server without a file; Control-C ends an answer of the chat and not the chat.
if "$LLMPART" help --words | grep -qx serve && command -v curl >/dev/null; then
  "$LLMPART" serve "$bundle" --port=0 --host 127.0.0.1 2>log &
  started="$started $!"
  listens() { url=$(sed -n 's/^listening on /http:\/\//p' log); [ -n "$url" ]; }
  await listens || fail "serve BUNDLE: $(cat log)"
  curl -sS --json '{"prompt":"Once upon a time","max_tokens":8,"temperature":0}' "$url/v1/completions" >out
  grep -Fq "\"text\":\"$wanted" out || fail "serve BUNDLE: $(cat out)"
  say serve "$bundle" --port=0 --host=0.0.0.0
  [ "$status" = 1 ] && grep -q 'no loopback address\|not a loopback address' err || fail "serve beyond loopback: $(cat err)"
  say serve "$bundle" --port=0 --key-env=NO_SUCH_KEY
  [ "$status" = 2 ] && grep -q "'NO_SUCH_KEY' is not set" err || fail "--key-env: $(cat err)"
  SERVE_KEY=secret "$LLMPART" serve -m "$bundle" --listen=127.0.0.1:0 --key-env=SERVE_KEY 2>log &
  started="$started $!"
  await listens || fail "serve --key-env: $(cat log)"
  same 'without the key' 401 "$(curl -sS -o out -w '%{http_code}' "$url/v1/models")"
  same 'with the key' 200 "$(curl -sS -o out -w '%{http_code}' -H 'Authorization: Bearer secret' "$url/v1/models")"
fi
python3 - "$LLMPART" "$chat" <<'END_OF_FILE' || fail 'a chat in a terminal'
import os, pty, re, select, signal, sys, time
pid, fd = pty.fork()
if pid == 0:
    os.environ["TERM"] = "dumb"
    os.execv(sys.argv[1], ["llmpart", "chat", sys.argv[2], "-n", "100000", "--temp", "1"])
def until(pattern, limit=60):
    text, end = "", time.time() + limit
    while time.time() < end:
        if select.select([fd], [], [], 0.1)[0]:
            try:
                text += os.read(fd, 4096).decode(errors="replace")
            except OSError:
                return text
        if pattern and re.search(pattern, text):
            return text
    print("wanted", pattern, "found", repr(text[-500:]))
    sys.exit(1)
until("> ")
os.write(fd, b"\x03")  # at the prompt nothing happens
os.write(fd, b"Tell a story.\n")
until(r"story\.\s+\S+")
time.sleep(0.3)
os.kill(pid, signal.SIGINT)
until("> ")
os.write(fd, b"/exit\n")
_, status = os.waitpid(pid, 0)
sys.exit(os.waitstatus_to_exitcode(status))
END_OF_FILE
finish
