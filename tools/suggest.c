/* The options of every command, and suggestions of an option by its meaning: names that other programs use for what a
 * command here calls otherwise. */
#include "tools/tools.h"

#include "base/path.h"

const lp_option lp_tool_common[LP_TOOL_COMMON] = {
    {"--quiet", LP_OPTION_FLAG, NULL, NULL, "print no warnings, notes and progress on stderr, only errors"},
    {"-v", LP_OPTION_FLAG, NULL, NULL, "print also what was chosen, and the time and memory that it took, on stderr"},
    {"--help", LP_OPTION_FLAG, NULL, NULL, "print this help"}};

/* Names of other programs that are taken, where the command has the option and none of this name. */
static const struct {
  const char *names, *option;
} aliases[] = {
    {" -p ", "--prompt"},
    {" -sys --system-prompt ", "--system"},
    {" -n --n-predict --num-predict --max-tokens --max-new-tokens ", "-n"},
    {" -c --ctx-size --n-ctx --context-size ", "--context"},
    {" -t --n-threads --num-threads ", "--threads"},
    {" -s ", "--seed"},
    {" --temp ", "--temperature"},
    {" --output ", "-o"},
    {" --dtype ", "--dtype-device"},
};

/* Names with their dashes, each between spaces, and the options that mean nearly the same, the likeliest first. A
 * command that has none of them gets no suggestion. */
static const struct {
  const char *names;
  const char *options[4];
} meanings[] = {
    {" -q --silent --no-warnings ", {"--quiet"}},
    {" --verbose -V --debug ", {"-v"}},
    {" -h --usage ", {"--help"}},
    {" --text --input --input-text --ask ", {"--prompt", "--keywords"}},
    {" --message --user --question ", {"--chat"}},
    {" -sys --system-prompt ", {"--system"}},
    {" --ids --token-ids --input-ids ", {"--tokens"}},
    {" --n-predict --max-tokens --max-new-tokens --num-tokens --length --count ", {"-n", "--osl", "--tokens"}},
    {" -c --ctx-size --context-size --context-length --max-context --max-model-len --n-ctx ", {"--context"}},
    {" --temp ", {"--temperature"}},
    {" -s --random-seed ", {"--seed"}},
    {" -t -j --num-threads --n-threads --cores ", {"--threads", "-t", "--jobs"}},
    {" --jobs --workers --parallel ", {"--jobs", "--threads", "-t"}},
    {" --repeat --repetitions --runs --iterations ", {"--runs", "-r"}},
    {" --server --worker --remote --host --address --connect --url ", {"--cloud", "--listen", "--over"}},
    {" --port --bind --http ", {"--listen"}},
    {" --key --psk --secret --password ", {"--key-file"}},
    {" --cacert --ca-file ", {"--ca", "--client-ca"}},
    {" --edge --local --target --hardware --hw --machine --gpu --cpu ", {"--device", "--machine"}},
    {" --remote-device --server-hw --gpu-server ", {"--cloud"}},
    {" --network --bandwidth --rtt --delay --net ", {"--link"}},
    {" --latency --max-latency --deadline ", {"--ttft"}},
    {" --itl --tbt --inter-token-latency ", {"--tpot"}},
    {" --prompt-length --prompt-tokens --input-len --input-length --n-prompt ", {"--isl", "-p"}},
    {" --output-len --output-length --generate --n-gen ", {"--osl", "-n"}},
    {" --batch-size --batch ", {"--batch", "-b"}},
    {" --concurrency --users --clients ", {"--sessions", "--batch"}},
    {" --memory --ram --vram --mem ", {"--device-memory", "--memory"}},
    {" --dtype --quantize --quantise --quantization --precision --type --qtype ", {"--dtype-device", "--dtype"}},
    {" --cache-type --kv-type --kv-cache-dtype --cache-type-k ", {"--kv-dtype"}},
    {" --mcpu --arch --sm --gencode --compute-capability --isa ", {"--march"}},
    {" --strategy --algorithm --method --partitioner ", {"--scheduler"}},
    {" --split --split-layer --layers --n-gpu-layers -ngl ", {"--split", "--cut"}},
    {" --goal --minimize --minimise ", {"--objective"}},
    {" --early-exit --early-exits ", {"--exits"}},
    {" --confidence --threshold ", {"--theta", "--max-regression"}},
    {" --adapter --adapters --peft ", {"--lora"}},
    {" --vocab --tokeniser ", {"--tokenizer"}},
    {" --out --output --output-file --save --format --outfile --json --csv --html --out-dir ", {"-o"}},
    {" --dry-run --no-emit ", {"--plan-only"}},
    {" --statistics --perf --timings ", {"--stats", "--timing"}},
    {" --time --timings ", {"--timing", "--stats"}},
    {" --depfile --deps -MF -MMD ", {"-MD"}},
    {" --passes --pass-pipeline --pipeline ", {"-p"}},
    {" --tolerance --threshold --max-worse ", {"--max-regression", "--tolerance"}},
    {" --data --dataset --inputs --test ", {"--test-data", "--data"}},
    {" --gguf --model --onnx ", {"--model"}},
};

static const lp_option *find(const lp_command *command, const char *name) {
  for (size_t i = 0; i < command->count; i++)
    if (lp_streq(command->options[i].name, name)) return &command->options[i];
  return LP_FIND(lp_tool_common, LP_TOOL_COMMON, name);
}

const lp_option *lp_tool_option_alias(const lp_command *command, const char *name) {
  char word[40];
  const int length = snprintf(word, sizeof word, " %s ", name);
  for (size_t i = 0; length > 0 && (size_t)length < sizeof word && i < LP_COUNT(aliases); i++)
    if (strstr(aliases[i].names, word)) return find(command, aliases[i].option);
  return NULL;
}

typedef struct {
  const char *names, *says;
} explanation;

/* What stands for a name between spaces; NULL: nothing. */
static const char *explained(const explanation *of, size_t count, const char *name, size_t length) {
  char word[40];
  const int size = snprintf(word, sizeof word, " %.*s ", (int)length, name);
  for (size_t i = 0; length > 0 && (size_t)size < sizeof word && i < count; i++)
    if (strstr(of[i].names, word)) return of[i].says;
  return NULL;
}

const char *lp_tool_option_explained(const lp_command *command, const char *text) {
  static const explanation options[] = {
      {" -ngl --ngl --n-gpu-layers --gpu-layers ",
       "where layers run is decided when a model is compiled: `llmpart compile MODEL --device=HW` for a GPU of "
       "`llmpart hw list`, and with --cloud=HW and --cut=N the first N layers on the device"},
      {" -tp --tp --tensor-parallel-size -sm --split-mode -ts --tensor-split ",
       "how many machines share a model is decided when it is compiled: `llmpart compile MODEL --cloud=HW --ranks=N`, "
       "or --place=NAME=HW for each"},
      {" -ctk -ctv --cache-type-k --cache-type-v --kv-cache-dtype ",
       "the type of KV caches is part of a bundle: `llmpart compile MODEL --kv-dtype=f16`, or int8 or int4"},
      {" --max-model-len ", "a request may be as long as the model's context; KV caches grow with its tokens"},
      {" -cnv --conversation -i --interactive ", "`llmpart chat BUNDLE|MODEL` talks in the terminal"},
      {" --json-schema --grammar --grammar-file ",
       "`llmpart serve` takes a JSON Schema in a request's `response_format`"},
      {" --repeat-penalty --repetition-penalty --presence-penalty --frequency-penalty --min-p --logit-bias ",
       "`llmpart serve` takes it in a request"},
      {" -fa --flash-attn --mmap --no-mmap --mlock ",
       "there is nothing to set: attention runs in blocks of keys, and weights are mapped from the bundle"},
      {" -hf --hf-repo --hf-file ", "download it first: huggingface-cli download ORG/NAME --local-dir NAME"},
      {" --gpu-memory-utilization ", "`llmpart compile --device-memory=SIZE` limits what a plan takes of the device"},
      {" --api-key --api-keys ",
       "keys come from the environment: `llmpart serve --key-env=NAME`, or `keys` in its file"},
      {" -np --parallel --max-num-seqs ",
       "`parallel` in the file of `llmpart serve` bounds requests at a time; --jobs or --threads of others is work"},
      {" --served-model-name -a --alias ", "`model` of a place in the file of `llmpart serve` is its name"},
      {" --chat-template --chat-template-file ", "the template beside a model goes with its bundle: change it there"},
      {" --dtype --quantization --load-format --precision ",
       "the type of weights is part of a bundle: `llmpart compile MODEL --dtype-device=int8`, or another"},
      {" --lora --lora-scaled --enable-lora ", "a bundle has its adapter: `llmpart compile MODEL --lora=FOLDER`"},
      {" --rope-scaling --rope-freq-base --rope-freq-scale ", "positions are as the model's own files say"},
      {" -ub --ubatch-size --jinja --no-display-prompt -cb --cont-batching --enable-prefix-caching "
       "--enable-chunked-prefill --max-num-batched-tokens --trust-remote-code ",
       "there is nothing to set: leave it out"},
      {" --iree-hal-target-backends --iree-hal-target-device --target-backend --backend ",
       "`llmpart compile --device=HW` names the machine, one of `llmpart hw list`"},
  };
  const char *says = explained(options, LP_COUNT(options), text, strcspn(text, "=0123456789"));
  for (size_t i = 0; says && i < command->count; i++)
    if (strncmp(command->options[i].name, text, strcspn(text, "=")) == 0) return NULL;
  return says;
}

const char *lp_tool_subcommand_explained(const char *name) {
  static const explanation subcommands[] = {
      {" pull download ", "a model is a file or a folder: huggingface-cli download ORG/NAME --local-dir NAME; then "
                          "`llmpart run NAME TEXT`"},
      {" generate infer inference complete completion ", "`llmpart run BUNDLE|MODEL TEXT` generates text"},
      {" quantize quantise ",
       "`llmpart compile MODEL --device=HW --dtype-device=int4 -o OUT` stores weights in few bits"},
      {" convert build export create package optimize optimise ",
       "`llmpart compile MODEL --device=HW -o OUT` makes a bundle"},
      {" show info inspect describe ",
       "`llmpart support MODEL` lists what a model has, `llmpart import MODEL` its graph"},
      {" list ls ps rm cp ", "bundles are folders, wherever -o put them: the system's own ls, cp and rm apply"},
      {" profile ", "`llmpart bench BUNDLE --profile` times each part of a pass"},
      {" embed embedding embeddings ", "`llmpart serve` answers /v1/embeddings: `embeddings` in its file"},
      {" server api start up ", "`llmpart serve BUNDLE|MODEL` serves an HTTP API"},
      {" rpc-server node ", "`llmpart worker BUNDLE` serves the cloud's half"},
  };
  return explained(subcommands, LP_COUNT(subcommands), name, strlen(name));
}

lp_status lp_tool_refuse_id(const char *path, lp_diag *diag) {
  static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
  const size_t owner = strspn(path, letters), name = path[owner] == '/' ? strspn(path + owner + 1, letters) : 0;
  const bool is_id = owner > 0 && path[0] != '.' && name > 0 && path[owner + 1 + name] == '\0' &&
                     !lp_has_suffix(path, ".onnx") && !lp_has_suffix(path, ".gguf") && !lp_has_suffix(path, ".llmpart");
  char *folder = lp_path_dir(path);
  const bool is_near = !is_id || lp_path_exists(path) || lp_path_is_folder(folder);
  free(folder);
  if (is_near) return LP_OK;
  lp_status status = lp_error(diag, LP_LOC_FILE(path),
                              "there is no such file; as a name at Hugging Face it has to be downloaded first");
  lp_note(diag, LP_LOC_NONE, "huggingface-cli download %s --local-dir %s; then give the folder %s", path,
          path + owner + 1, path + owner + 1);
  return status;
}

const lp_option *lp_tool_option_meant(const lp_command *command, const char *name) {
  char word[40];
  const lp_option *meant = NULL;
  int length = snprintf(word, sizeof word, " %s ", name);
  if (length < 0 || (size_t)length >= sizeof word) return NULL;
  for (size_t i = 0; i < LP_COUNT(meanings) && !meant; i++) {
    if (!strstr(meanings[i].names, word)) continue;
    for (size_t j = 0; j < LP_COUNT(meanings[i].options) && !meant; j++)
      if (meanings[i].options[j]) meant = find(command, meanings[i].options[j]);
  }
  return meant;
}
