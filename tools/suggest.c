/* The options of every command, and suggestions of an option by its meaning: names that other programs use for what a
 * command here calls otherwise. */
#include "tools/tools.h"

#include <string.h>

const lp_option lp_tool_common[LP_TOOL_COMMON] = {
    {"--quiet", LP_OPTION_FLAG, NULL, NULL, "print no warnings, notes and progress on stderr, only errors", 0},
    {"-v", LP_OPTION_FLAG, NULL, NULL, "print also what was chosen, and the time and memory that it took, on stderr",
     0},
    {"--help", LP_OPTION_FLAG, NULL, NULL, "print this help", 0}};

/* Names with their dashes, each between spaces, and the options that mean the same, the likeliest first. A command
 * that has none of them gets no suggestion. */
static const struct {
  const char *names;
  const char *options[4];
} meanings[] = {
    {" -q --silent --no-warnings ", {"--quiet"}},
    {" --verbose -V --debug ", {"-v"}},
    {" -h --usage ", {"--help"}},
    {" -p --text --input --input-text --ask ", {"--prompt", "--keywords"}},
    {" -m --message --user --question ", {"--chat"}},
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
