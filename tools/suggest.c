/* The options of every command, and suggestions of an option by its meaning: names that other programs use for what a
 * command here calls otherwise. */
#include "tools/tools.h"

#include <stdlib.h>
#include <string.h>

#include "base/path.h"

const lp_option lp_tool_common[LP_TOOL_COMMON] = {
    {"--quiet", LP_OPTION_FLAG, NULL, NULL, "print no warnings, notes and progress on stderr, only errors", 0},
    {"-v", LP_OPTION_FLAG, NULL, NULL, "print also what was chosen, and the time and memory that it took, on stderr",
     0},
    {"--help", LP_OPTION_FLAG, NULL, NULL, "print this help", 0}};

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
  for (size_t i = 0; i < LP_TOOL_COMMON; i++)
    if (lp_streq(lp_tool_common[i].name, name)) return &lp_tool_common[i];
  return NULL;
}

const lp_option *lp_tool_option_alias(const lp_command *command, const char *name) {
  char word[40];
  const int length = snprintf(word, sizeof word, " %s ", name);
  for (size_t i = 0; length > 0 && (size_t)length < sizeof word && i < LP_COUNT(aliases); i++)
    if (strstr(aliases[i].names, word)) return find(command, aliases[i].option);
  return NULL;
}

const char *lp_tool_option_explained(const char *name) {
  static const char *const layers[] = {"-ngl", "--ngl", "--n-gpu-layers", "--gpu-layers"};
  for (size_t i = 0; i < LP_COUNT(layers); i++)
    if (lp_has_prefix(name, layers[i]))
      return "where layers run is decided when a model is compiled: `llmpart compile MODEL --device=HW` for a GPU of "
             "`llmpart hw list`, and with --cloud=HW and --cut=N the first N layers on the device";
  return NULL;
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
