/* llmpart compile: compiles a model for two machines into a bundle. */
#include "tools/compile/compile.h"
#include "tools/generator.h"

#include "base/dir.h"
#include "base/units.h"
#include "frontend/frontend.h"
#include "runtime/runtime.h"
#include "tools/gate/gate.h"

#ifdef __GLIBC__
#include <malloc.h>
#endif

/* Planning frees arenas of megabytes between its stages. glibc keeps such blocks once it has seen one freed. Blocks
 * that are mapped one by one return to the system at once, and pages that are never written cost nothing. */
static void return_freed_memory(void) {
#ifdef __GLIBC__
  (void)mallopt(M_MMAP_THRESHOLD, 64 << 10);
  (void)mallopt(M_TRIM_THRESHOLD, 128 << 10);
#endif
}

/* Sets the usual lengths and tolerance when the user gives none. */
static void take_defaults(lp_compile *compile) {
  lp_compile_request *request = &compile->request;
  compile->says_lengths = request->isl > 0 || request->osl > 0;
  if (request->isl == 0) request->isl = 512;
  if (request->osl == 0) request->osl = 128;
  compile->says_tolerance = request->tolerance >= 0;
  if (!compile->says_tolerance) request->tolerance = 0.01;
}

/* KV caches are as precise as the products beside them. */
static void choose_kv_dtype(lp_compile_request *request) {
  if (!request->kv_dtype && lp_rounds_activations(request)) request->kv_dtype = "f16";
}

/* Products with the blocks of a GGUF file round activations, as llama.cpp's do, unless an option says otherwise. */
static void round_beside_blocks(const lp_module *module, lp_compile_request *request) {
  if (request->activations || request->dtype_device || request->dtype_cloud) return;
  LP_FOR_FUNCS(func, module) {
    LP_FOR_OPS(op, func->region)
      if (op->kind == LP_OP_WEIGHT && lp_weight_blocks(op->out[0])) request->activations = "auto";
  }
  choose_kv_dtype(request);
}

/* --lora=FOLDER[,scale=S]; release with release_adapters(). */
static lp_status read_adapters(const lp_texts *texts, lp_adapter **out, lp_diag *diag) {
  static const char word[] = ",scale=";
  lp_adapter *adapters = lp_alloc((texts->count + 1) * sizeof *adapters);
  lp_status status = LP_OK;
  for (size_t i = 0; i < texts->count; i++) {
    char *folder = lp_strdup(texts->data[i]), *scale = strstr(folder, word);
    adapters[i] = (lp_adapter){.folder = folder, .scale = 1};
    if (!scale) continue;
    *scale = '\0';
    if (status == LP_OK && lp_parse_signed(scale + strlen(word), &adapters[i].scale, diag, LP_LOC_FILE("--lora")))
      status = LP_USAGE;
  }
  *out = adapters;
  return status;
}

static void release_adapters(lp_adapter *adapters, size_t count) {
  for (size_t i = 0; i < count; i++)
    free((void *)(uintptr_t)adapters[i].folder);
  free(adapters);
}

/* Writes the tokenizer and settings that a GGUF file holds as the files that accompany other models. */
static lp_status write_gguf_companions(lp_compile *compile, lp_diag *diag) {
  if (lp_model_form_of(compile->model) != LP_MODEL_GGUF) return LP_OK;
  LP_TRY(lp_dir_temporary("llmpart-gguf", &compile->gguf_companions, diag));
  return lp_gguf_write_companions(compile->model, compile->gguf_companions, diag);
}

static lp_status import_and_emit(lp_compile *compile, const lp_import_options *import, lp_diag *diag) {
  lp_module *module = NULL;
  compile->import = import;
  LP_TRY(lp_generator_import(compile->model, import, &module, diag));
  round_beside_blocks(module, &compile->request);
  LP_OWNED(lp_map_free_at) lp_map *squares = lp_map_create();
  lp_status status = write_gguf_companions(compile, diag);
  if (status == LP_OK) status = lp_compile_read_activations(compile, module->arena, squares, diag);
  module->input_squares = squares;
  if (status == LP_OK) status = lp_compile_emit(compile, module, diag);
  lp_module_free(module);
  return status;
}

static lp_status compile_model(const lp_command *command, const lp_texts *args, lp_diag *diag) {
  lp_compile *compile = command->user;
  compile->voice = command->voice;
  LP_TRY(lp_compile_find_model(compile, args->data[0], diag));
  take_defaults(compile);
  if (compile->plan_only) compile->emit = "report";
  if (lp_streq(compile->emit, "report")) return_freed_memory();
  LP_TRY(lp_tool_check_pass(&compile->flags, diag));
  if (compile->check && !lp_streq(compile->emit, "bundle"))
    return lp_error_as(LP_USAGE, diag, LP_LOC_FILE("--check"), "only a bundle can be compared with its model");
  if (compile->sign && !lp_streq(compile->emit, "bundle"))
    return lp_error_as(LP_USAGE, diag, LP_LOC_FILE("--sign"), "only a bundle can be signed");
  if (compile->weighs_by && !lp_streq(compile->request.quantise, "search"))
    return lp_error_as(LP_USAGE, diag, LP_LOC_FILE("--quantise-activations"), "it needs --quantise=search");
  compile->request.weighs_rounding = compile->weighs_by != NULL;
  LP_TRY(lp_compile_read_measured(compile, diag));
  if (compile->sign) LP_TRY(lp_bundle_check_key(compile->sign, diag));
  for (size_t i = 0; i < compile->fail_if.count; i++)
    LP_TRY(lp_limit_check_syntax("--fail-if", compile->fail_if.data[i], diag));
  LP_TRY(lp_compile_read_places(compile, diag));
  choose_kv_dtype(&compile->request);
  LP_TRY(lp_compile_prepare(compile, diag));
  LP_TRY(lp_compile_load_places(compile, diag));
  LP_TRY(lp_compile_read_exits(compile, diag));
  lp_input_binding *bindings = NULL;
  LP_TRY(lp_bindings_read(&compile->bind, &bindings, diag));
  lp_adapter *adapters = NULL;
  lp_status status = read_adapters(&compile->adapters, &adapters, diag);
  const lp_import_options import = {.weights_absent_ok = !lp_compile_reads_weights(compile),
                                    .bindings = bindings,
                                    .binding_count = compile->bind.count,
                                    .adapters = adapters,
                                    .adapter_count = compile->adapters.count,
                                    .subgraph = compile->subgraph,
                                    .encoder = compile->encoder,
                                    .frees_lengths = true};
  if (status == LP_OK && compile->exits_auto) status = lp_compile_choose_exits(compile, &import, diag);
  if (status == LP_OK && compile->hot_experts_auto) status = lp_compile_choose_hot_experts(compile, &import, diag);
  if (status == LP_OK) status = import_and_emit(compile, &import, diag);
  release_adapters(adapters, compile->adapters.count);
  lp_bindings_free(bindings, compile->bind.count);
  return status;
}

// NOLINTNEXTLINE(readability-function-size): a table
static int read_and_compile(lp_compile *c, int argc, char **argv) {
  lp_compile_request *r = &c->request;
  const lp_option table[] = {
      {"--device", LP_OPTION_TEXT, &c->device, "HW",
       "set the device: a name that `llmpart hw list` prints, host, or a YAML file"},
      {"--cloud", LP_OPTION_TEXT, &c->cloud, "HW", "set the cloud machine; without it everything runs on the device"},
      {"--link", LP_OPTION_TEXTS, &c->links, "[A-B=]LINK",
       "set the link between them: a name, a file, a trace (.csv), a radio profile or rtt=..,up=..,down=.. (lan); with "
       "--place the link between places A and B, or between all; repeatable"},
      {"--place", LP_OPTION_TEXTS, &c->places, "NAME=HW[,count=N]",
       "name a machine instead of --device and --cloud, the device first; repeatable, up to eight in all"},
      {"--ttft", LP_OPTION_LIMIT, &r->ttft_ms, "TIME", "require the first token within this time"},
      {"--tpot", LP_OPTION_LIMIT, &r->tpot_ms, "TIME", "require each further token within this time"},
      {"--sla-quantile", LP_OPTION_F64, &c->sla_quantile, "Q",
       "with a trace or a radio profile: meet the SLA with this probability (0.95)"},
      {"--isl", LP_OPTION_POSITIVE, &r->isl, "N", "plan for N prompt tokens (512)"},
      {"--osl", LP_OPTION_POSITIVE, &r->osl, "N", "plan for N generated tokens (128)"},
      {"--batch", LP_OPTION_POSITIVE, &r->batch, "N", "plan for N sequences at once (1)"},
      {"--sessions", LP_OPTION_POSITIVE, &r->sessions, "N", "plan for a cloud that decodes N requests together (1)"},
      {"--scheduler", LP_OPTION_TEXT, &r->scheduler, "NAME",
       "choose the scheduler: "
#define LP_DEFAULT(symbol, name, ignores_link, summary) name " (if none is named)"
#define LP_SCHEDULER(symbol, name, ignores_link, summary) ", " name
#include "passes/plan/schedulers.def"
       ""},
      {"--ranks", LP_OPTION_TEXT, &c->ranks, "N|auto",
       "cut the cloud's half for N ranks, each with its columns of the products and its heads of the attentions (1); "
       "auto takes the best of 1, 2, 4 and 8"},
      {"--interconnect", LP_OPTION_TEXT, &c->interconnect, "INTERCONNECT",
       "set what the ranks gather over: nvlink or pcie, as the cloud machine has it; a name such as nvlink4 or "
       "ethernet, a file or alpha=..,beta=.. (the first that the machine names)"},
      {"--plans", LP_OPTION_POSITIVE, &r->plans, "N",
       "make up to N plans over lengths and links; the runtime takes one for each request (1)"},
      {"--cut", LP_OPTION_COUNT, &r->cut, "N", "put layers 0 to N-1 on the device; implies --scheduler=cut"},
      {"--objective", LP_OPTION_TEXT, &r->objective, "cost|latency|energy|total-cost",
       "choose the objective of the plan (cost, and without --ttft and --tpot the knee of cost against time); a sum is "
       "allowed: cost+1e-6*latency (USD, ms, J); total-cost adds what the device costs while it waits"},
      {"--tolerance", LP_OPTION_SHARE, &r->tolerance, "SHARE",
       "take the fastest plan among those that cost at most this much more than the cheapest (1%)"},
      {"--pin", LP_OPTION_TEXTS, &c->pins, "GLOB=SIDE",
       "keep operators on a side or in a place: 'layer.0.*=device'; repeatable"},
      {"--private", LP_OPTION_COUNT, &c->private_layers, "N", "keep embeddings and the first N layers on the device"},
      {"--device-memory", LP_OPTION_CAPACITY, &r->device_memory, "SIZE",
       "limit the memory that the device may use (all it has)"},
      {"--device-experts", LP_OPTION_POSITIVE, &r->device_experts, "N",
       "keep N experts of each mixture in the device's memory, those that tokens choose most often; the others come "
       "from its storage when a token chooses them (all)"},
      {"--hot-experts", LP_OPTION_TEXT, &c->hot_experts_text, "N|auto",
       "place the N experts of each mixture that tokens choose most often, '*.hot', apart from the others, '*.rest'; "
       "auto takes the N that plans best (together)"},
      {"--experts", LP_OPTION_TEXT, &c->experts, "FILE",
       "plan with how often tokens choose each expert, as `llmpart calibrate --experts` writes it (all equally often)"},
      {"--dtype-device", LP_OPTION_TEXT, &r->dtype_device, "DTYPE",
       "store the device's weights as f32, f16, bf16, int8 or int4; auto takes the most precise type that meets the "
       "SLA"},
      {"--dtype-cloud", LP_OPTION_TEXT, &r->dtype_cloud, "DTYPE", "store the cloud's weights in one of the same types"},
      {"--activations", LP_OPTION_CHOICE, &r->activations, "f32|auto",
       "auto rounds the activations of products with int8 and int4 weights to int8 on CPUs and GPUs, and with bf16 "
       "weights to bf16 on CPUs, where the processor multiplies that faster, and stores KV caches in f16 (auto with a "
       "--dtype-* of bf16, int8 or int4, else f32)"},
      {"--quantise", LP_OPTION_CHOICE, &r->quantise, "plain|search",
       "search stores the products in int8 that rounding to int4 hurts most (plain)"},
      {"--quantise-budget", LP_OPTION_SHARE, &r->quantise_budget, "SHARE",
       "with --quantise=search, let the weights grow by at most this share (10%)"},
      {"--quantise-activations", LP_OPTION_TEXT, &c->weighs_by, "FILE",
       "with --quantise=search, round weights where the activations in FILE make it matter least, as `llmpart "
       "calibrate "
       "--activations` writes it"},
      {"--kv-dtype", LP_OPTION_CHOICE, &r->kv_dtype, "f32|f16|bf16|int8|int4",
       "store KV caches in this type, int8 and int4 on processors (f32; f16 with --activations=auto)"},
      {"--exits", LP_OPTION_TEXT, &c->exits_text, "LAYER,..|auto",
       "add early exits after these layers, or after those of a calibration that plan best; the device's half ends at "
       "the last one unless --scheduler says otherwise"},
      {"--exit-mode", LP_OPTION_CHOICE, &c->exit_mode, "full|exact|threshold|standalone",
       "plan for this mode of `llmpart run` (exact where the exits' rates are known, else full)"},
      {"--exit-rates", LP_OPTION_TEXT, &c->exit_rates, "FILE",
       "take how often exits are right and sure from FILE, as `llmpart calibrate -o json` prints it (calibration.json "
       "beside the model)"},
      {"--theta", LP_OPTION_F64, &c->theta, "T", "with --exit-mode=threshold: take tokens of this confidence (0.8)"},
      {"--march", LP_OPTION_TEXT, &c->march, "CPU",
       "emit code of both halves for this processor: x86-64-v3, x86-64-v4, armv8-a, native (the one that llmpart runs "
       "on), .., or of CUDA halves for this GPU: sm_80, .. (what the machines name)"},
      {"--march-device", LP_OPTION_TEXT, &c->march_side[LP_SIDE_DEVICE], "CPU", "emit the device's half for it"},
      {"--march-cloud", LP_OPTION_TEXT, &c->march_side[LP_SIDE_CLOUD], "CPU", "emit the cloud's half for it"},
      LP_BIND_OPTION(c->bind),
      {"--subgraph", LP_OPTION_TEXT, &c->subgraph, "NAME",
       "take the graph that a node holds as attribute NAME instead"},
      {"--lora", LP_OPTION_TEXTS, &c->adapters, "FOLDER[,scale=S]",
       "merge this LoRA adapter, a folder as PEFT saves it, into a Hugging Face model; repeatable"},
      {"--encoder", LP_OPTION_TEXT, &c->encoder, "FILE|none",
       "compile this encoder with the decoder (encoder_model.onnx beside decoder_model.onnx)"},
      {"--tokenizer", LP_OPTION_TEXT, &c->tokenizer, "FILE",
       "put this tokenizer.json into the bundle (the one beside the model)"},
      {"-O", LP_OPTION_CHOICE, &c->opt_level, "0|1|2|3", "set how much code is optimised (3)"},
      {"--emit", LP_OPTION_CHOICE, &c->emit,
       "bundle|layer-ir|op-ir|placed-ir|llvm-ir|asm|obj|cuda|ptx|opencl|onnx|report", "choose the output (bundle)"},
      {"--opset", LP_OPTION_I64, &c->opset, "17|21", "set the opset of the models that --emit=onnx writes (21)"},
      {"--side", LP_OPTION_CHOICE, &c->side, "device|cloud",
       "write this half of the bundle only, or choose the side of llvm-ir, asm and obj (device), or of cuda and opencl "
       "(cloud)"},
      {"--backend-device", LP_OPTION_CHOICE, &c->backend[LP_SIDE_DEVICE], "cpu|cuda|opencl",
       "choose the backend of the device's half (what the machine names; cpu with a CPU's --march)"},
      {"--backend-cloud", LP_OPTION_CHOICE, &c->backend[LP_SIDE_CLOUD], "cpu|cuda|opencl",
       "choose the backend of the cloud's half"},
      {"--fallback", LP_OPTION_CHOICE, &c->fallback, "cpu",
       "add code for its machine's processor to each half for a GPU, which `llmpart run` and `worker` take where the "
       "GPU cannot run the half"},
      {"--report", LP_OPTION_TEXTS, &c->reports, "FILE", "also write a report: .txt, .json, .csv, .html; repeatable"},
      {"--measured", LP_OPTION_TEXT, &c->measured, "FILE.json",
       "compare the prediction with this run of the plan in reports, as `llmpart run --stats -o json` prints it"},
      {"--fail-if", LP_OPTION_TEXTS, &c->fail_if, "EXPRESSION",
       "fail with status 4 if the plan's figures satisfy it: 'tpot_ms > 40 or cost_per_mtok_usd > 0.5'; repeatable"},
      {"--table1", LP_OPTION_FLAG, &c->table1, NULL, "add P1's Table I counting to reports"},
      {"--plan-only", LP_OPTION_FLAG, &c->plan_only, NULL,
       "plan and report only, as --emit=report does; no weights are read"},
      {"--check", LP_OPTION_FLAG, &c->check, NULL,
       "compare steps of the bundle with an interpreter of the model, and write nothing when they differ (status 4)"},
      {"--sign", LP_OPTION_TEXT, &c->sign, "FILE",
       "sign the bundle with this private key (Ed25519, PEM), for --trust of run, worker and serve"},
      {"--profile", LP_OPTION_FLAG, &c->profile, NULL,
       "emit code that notes when each operator begins, for `llmpart bench --profile`"},
      {"--locations", LP_OPTION_FLAG, &c->locations, NULL, "print the ONNX node of each operator in IR"},
      {"-MD", LP_OPTION_TEXT, &c->depfile, "FILE", "write the output's dependencies as a make rule"},
      {"-o", LP_OPTION_TEXT, &c->output, "OUT", "write to OUT; '-' is stdout (MODEL.llmpart)"},
      LP_PASS_FLAG_OPTIONS(c->flags)};
  const lp_command command = {
      .usage = "llmpart compile MODEL --device=HW [--cloud=HW] [--link=LINK] [options] -o OUT",
      .summary = "Places every operator of a language model on the device or in the cloud at the least cost under the\n"
                 "SLA, and writes a bundle with code and weights for both sides. MODEL is an ONNX file, a Hugging "
                 "Face folder\n"
                 "(config.json and *.safetensors), a GGUF file, or a folder of decoder_model.onnx and "
                 "encoder_model.onnx. Exit "
                 "status 3: the\n"
                 "SLA cannot be met.",
      LP_OPTIONS(table),
      .args = {1, 1},
      .act = compile_model,
      .user = c};
  return lp_tool_main(&command, argc, argv);
}

int lp_tool_compile(int argc, char **argv) {
  lp_compile compile = {
      .emit = "bundle", .opt_level = "3", .opset = 21, .private_layers = -1, .sla_quantile = -1, .theta = -1};
  compile.request =
      (lp_compile_request){.batch = 1, .cut = -1, .tolerance = -1, .quantise_budget = 0.1, .generation = true};
  lp_tool_tidy_when_interrupted();
  int status = read_and_compile(&compile, argc, argv);
  lp_compile_release(&compile);
  return status;
}
