/* Loading: intact bundles load, and each kind of damage is refused with its location. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/abi.h"
#include "base/amx.h"
#include "base/digest.h"
#include "base/file.h"
#include "base/path.h"
#include "runtime/bundle/bundle.h"
#include "runtime/bundle/bundle_file.h"
#include "runtime/bundle/manifest.h"
#include "runtime/runtime.h"
#include "tests/runtime/toy/toy_run.h"
#include "tests/suite.h"

static char *dir;
static void setup(void) {
  dir = toy_dir_create();
}
static void teardown(void) {
  toy_dir_remove(dir);
}

LP_CASE(.setup = setup, .teardown = teardown);

static void expect_refused(const char *bundle, bool check, const char *file, const char *text) {
  lp_bundle_options options = {.load = LP_LOAD_DEVICE | LP_LOAD_CLOUD, .check_hashes = check};
  lp_bundle *loaded = NULL;
  lp_diag *diag = lp_diag_create();
  lp_status status = lp_bundle_load(bundle, &options, &loaded, diag);
  if (status == LP_OK) status = lp_bundle_await_check(loaded, diag);
  lp_bundle_free(loaded);
  ck_assert_int_eq(status, LP_FAILED);
  ck_assert_uint_eq(lp_diag_error_count(diag), 1);
  const lp_diag_entry *entry = lp_diag_get(diag, 0);
  ck_assert_msg(strstr(entry->text, text), "wanted '%s' in '%s'", text, entry->text);
  ck_assert_msg(entry->loc.file && lp_has_suffix(entry->loc.file, file), "file '%s'", entry->loc.file);
  lp_diag_free(diag);
}

/* ---- manifests with one thing changed ---------------------------------------------------------------------------- */

#define PLAN_OF(regions)                                                                                               \
  "\"plans\": [{\"prefill\": \"prefill\", \"decode\": \"decode\", \"regions\": " regions "}], \"programs\": {"

#define FALLBACK "\"code\": \"device/model.so\", \"fallback\": {\"code\": \"cloud/model.so\"}, "

static const struct {
  const char *from, *to, *error;
} changes[] = {
    {"{\"schema\"", "[\"schema\"", "not valid JSON"},
    {"llmpart.bundle/1", "llmpart.bundle/9", "schema: wanted 'llmpart.bundle/1', found 'llmpart.bundle/9'"},
    {"\"abi\": 3", "\"abi\": 2", "abi: code of ABI 2; this runtime runs ABI 3"},
    {"\"abi\": 3", "\"abi\": \"1\"", "abi: wanted an integer, found a string"},
    {"\"name\": \"toy\", ", "", "name: wanted a string, found nothing"},
    {"\"context\": 128", "\"context\": -1", "context: -1 lies outside of 0..4294967296"},
    {"\"vocab\": 61", "\"vocab\": 99999999999", "vocab: 99999999999 lies outside"},
    {"[\"b\", \"s\", \"p\"", "[\"b\", \"p\", \"s\"", "symbols[1]: wanted 's', found 'p'"},
    {"\"c\", \"t\"]", "\"c\", \"t\", \"b\"]", "symbols[6]: 'b' is empty or listed twice"},
    {"\"c\", \"t\"]", "\"c\"]", "symbols: 5 symbols; wanted 6 to 64"},
    {"\"tokenizer\": null", "\"tokenizer\": \"none.json\"", "tokenizer: `files` does not list 'none.json'"},
    {"\"device/model.so\": {\"bytes\"", "\"../model.so\": {\"bytes\"", "files.../model.so: wanted a path inside"},
    {"\"device/model.so\": {\"bytes\"", "\"/etc/model.so\": {\"bytes\"", "wanted a path inside of the bundle"},
    {"\"sha256\": \"", "\"sha256\": \"g", "sha256: wanted 64 lower-case hex digits"},
    {"\"crc32c\": \"", "\"crc32c\": \"0", "crc32c: wanted 8 lower-case hex digits"},
    {"\"code\": \"device/model.so\"", "\"code\": \"x\"", "sides.device.code: `files` does not list 'x'"},
    {"\"device\": {\"code\"", "\"edge\": {\"code\"", "programs.prefill.steps[0].side: unknown value 'device'"},
    {"\"device\": {\"code\"", "\"a/b\": {\"code\"", "sides.a/b: this is no name of a place"},
    {"\"sides\": {", "\"sides\": {}, \"others\": {", "sides: 0 places; wanted 1 to 8"},
    {"\"sides\": {", "\"sides\": {\"1\": {}, \"2\": {}, \"3\": {}, \"4\": {}, \"5\": {}, \"6\": {}, \"7\": {}, ",
     "sides: 9 places; wanted 1 to 8"},
    {"\"sides\": {", "\"sides\": {\"both\": {}, ", "sides.both: this is no name of a place"},
    {"\"append_axis\": 2", "\"append_axis\": 1", "states[0].append_axis: axis 1 is not the one of size 'c'"},
    {"\"append_axis\": 2", "\"append_axis\": 7", "states[0].append_axis: axis 7"},
    {"[\"b\", \"1\", \"c\", \"16\"]", "[\"b\", \"s\", \"c\", \"16\"]", "axis 1 of a state may depend on 'b' only"},
    {"[\"b\", \"1\", \"c\", \"16\"]", "[\"b\", \"1\", \"c\", \"q\"]", "shape[3]: 'q' uses 'q', which"},
    {"[\"b\", \"1\", \"c\", \"16\"]", "[\"b\", \"1 +\", \"c\", \"16\"]", "shape[1]: '1 +' is no polynomial"},
    {"\"role\": \"tokens\", \"dtype\": \"i64\"", "\"role\": \"tokens\", \"dtype\": \"f32\"",
     "inputs[0]: tokens are i64 or i32, not f32"},
    {"\"role\": \"logits\", \"dtype\": \"f32\"", "\"role\": \"logits\", \"dtype\": \"f16\"",
     "outputs[0]: logits are f32, not f16"},
    {"\"dtype\": \"i64\"", "\"dtype\": \"i65\"", "inputs[0].dtype: unknown value 'i65'"},
    {"\"op\": \"input\"", "\"op\": \"inputs\"", "programs.prefill.steps[0].op: unknown value 'inputs'"},
    {"\"input\": 0", "\"input\": 1", "programs.prefill.steps[0].input: 1 lies outside of 0..0"},
    {"\"input\": 0, \"buffer\": 0", "\"input\": 0, \"buffer\": 4", "steps[0].buffer: 4 lies outside of 0..3"},
    {"\"to\": \"cloud\"", "\"to\": \"device\"", "from 'device' to itself"},
    {"\"to_buffer\": 1", "\"to_buffer\": -1", "to_buffer: -1 lies outside of 0..3"},
    {"\"from_buffer\": 1", "\"from_buffer\": 1.5", "from_buffer: wanted an integer, found a real number"},
    {"\"lp_segment_embed\"", "\"lp_segment_nowhere\"", "the code has no symbol 'lp_segment_nowhere'"},
    {"\"lp_segment_embed\"", "7", "steps[1].segment: wanted a string, found an integer"},
    {"\"layout\": {\"device\": \"lp_layout_0\"", "\"layout\": {\"device\": \"lp_layout_7\"", "no symbol 'lp_layout_7'"},
    {"\"layout\": {\"device\": \"lp_layout_0\", ", "\"layout\": {", "programs.prefill.layout.device: wanted a string"},
    {"\"buffers\": {\"device\": 4", "\"buffers\": {\"device\": 9999999", "buffers.device: 9999999 lies outside"},
    {"\"programs\": {", "\"programs\": 5, \"x\": {", "programs: wanted an object, found an integer"},
    {"\"programs\": {", "\"plans\": {}, \"programs\": {", "plans: wanted an array, found an object"},
    {"\"programs\": {", "\"plans\": [], \"programs\": {", "plans: wanted at least one plan"},
    {"\"programs\": {", "\"plans\": [{\"prefill\": \"prefill\", \"decode\": \"d\"}], \"programs\": {",
     "plans[0].decode: there is no program 'd'"},
    {"\"programs\": {", PLAN_OF("{}"), "plans[0].regions: wanted an array, found an object"},
    {"\"programs\": {", PLAN_OF("[{\"prompt_tokens\": [1]}]"), "regions[0].prompt_tokens: wanted [least, below]"},
    {"\"programs\": {", PLAN_OF("[{\"prompt_tokens\": [1, \"x\"]}]"), "prompt_tokens[1]: wanted a number"},
    {"\"programs\": {", PLAN_OF("[{\"prompt_tokens\": [-1, null]}]"), "prompt_tokens[0]: -1 is outside of the range"},
    {"\"programs\": {", PLAN_OF("[{\"prompt_tokens\": [1, null]}]"),
     "generated_tokens: wanted an array, found nothing"},
    {"\"vocab\": 61", "\"vocab\": 60", "the last axis of the logits 'logits' is not the vocabulary of 60"},
    {"\"weights\": \"device/weights.safetensors\"", "\"weights\": \"device/model.so\"",
     "one file of the device is both code and data"},
    {"\"weights\": \"device/weights.safetensors\"", "\"weight_bytes\": 7",
     "sides.device.weight_bytes: wanted `weights` for them"},
    {"\"code\": \"device/model.so\"", "\"fallback\": {\"code\": \"device/model.so\"}, \"code\": \"device/model.so\"",
     "sides.device.fallback: wanted code for a processor, beside kernels"},
    {"\"code\": \"device/model.so\"", FALLBACK "\"kernels\": \"device/weights.safetensors\"",
     "programs.prefill.fallback: wanted an object, found nothing"},
    {"\"lp_segment_embed\"", "\"abort\"", "programs.prefill.steps[1]: its segment is no 'lp_segment_...'"},
    {"\"layout\": {\"device\": \"lp_layout_0\"", "\"layout\": {\"device\": \"abort\"",
     "programs.prefill.layout: 'abort' is no 'lp_layout_...'"},
    {"\"op\": \"input\", \"side\": \"device\", \"input\": 0, \"buffer\": 0, \"rows\": \"s\"}",
     "\"op\": \"output\", \"side\": \"device\", \"output\": 0, \"buffer\": 0}",
     "programs.prefill.steps[0]: no step before it fills its buffer"},
    {"{\"op\": \"input\"", "{\"op\": \"input\", \"side\": \"device\", \"input\": 0, \"buffer\": 1}, {\"op\": \"input\"",
     "programs.prefill.steps[1]: its side has read this input already"},
    {"{\"op\": \"output\"",
     "{\"op\": \"output\", \"side\": \"device\", \"output\": 0, \"buffer\": 1}, {\"op\": \"output\"",
     "this output is made already"},
    {"{\"op\": \"input\", \"side\": \"device\", \"input\": 0, \"buffer\": 0, \"rows\": \"s\"},", "",
     "program 'prefill' does not read the tokens"},
    {"\"name\": \"toy\"", "\"name\": \"toy\", \"name\": \"toy\"",
     "not valid JSON: an object with two members of one name"},
};

static char *replace_once(const char *text, const char *from, const char *to) {
  const char *at = strstr(text, from);
  ck_assert_msg(at, "the manifest has no '%s'", from);
  lp_buf out = {0};
  lp_buf_append(&out, text, (size_t)(at - text));
  lp_buf_puts(&out, to);
  lp_buf_puts(&out, at + strlen(from));
  return out.data;
}

LP_LOOP_TEST(changed_manifest_is_refused, 0, LP_COUNT(changes)) {
  char *path = toy_bundle_write(dir, "toy", &(toy_placement){.prefill = "ddccdd"});
  char *text = toy_manifest_read(path);
  char *changed = replace_once(text, changes[_i].from, changes[_i].to);
  toy_manifest_write(path, changed);
  bool in_code = strstr(changes[_i].error, "no symbol") != NULL;
  expect_refused(path, false, in_code ? "device/model.so" : "manifest.json", changes[_i].error);
  free(text);
  free(changed);
  free(path);
}

/* The same with three places. */
static const struct {
  const char *from, *to, *error;
} changes_of_places[] = {
    {"\"edge.1\": {\"code\"", "\"edge 1\": {\"code\"", "sides.edge 1: this is no name of a place"},
    {"\"edge.1\": {\"code\"", "\"..\": {\"code\"", "this is no name of a place"},
    {"\"edge.1\": {\"code\"", "\"edge.3\": {\"code\"", "programs.prefill.steps[3].to: unknown value 'edge.1'"},
    {"\"from\": \"edge.1\", \"to\": \"edge.2\"", "\"from\": \"edge.1\", \"to\": \"cloud\"",
     "to: unknown value 'cloud'"},
    {"\"from\": \"edge.1\", \"to\": \"edge.2\"", "\"from\": \"edge.1\", \"to\": \"edge.1\"",
     "programs.prefill.steps[6]: from 'edge.1' to itself"},
    {"\"edge.1\": \"lp_layout_0\", ", "", "programs.prefill.layout.edge.1: wanted a string"},
    {"\"edge.2\": {\"code\": \"edge.2/model.so\"", "\"edge.2\": {\"code\": null", "side 'edge.2' has no code"},
    {"\"weights\": \"edge.2/weights.safetensors\"", "\"weights\": \"edge.2/model.so\"",
     "one file of the edge.2 is both code and data"},
    {"\"append_axis\": 2}", "\"append_axis\": 2, \"sides\": [\"edge.1\", \"cloud\"]}",
     "states[0].sides[1]: unknown value 'cloud'"},
    {"\"to_buffer\": 1", "\"to_buffer\": 99", "to_buffer: 99 lies outside"},
};

LP_LOOP_TEST(changed_places_are_refused, 0, LP_COUNT(changes_of_places)) {
  char *path = toy_bundle_write(dir, "toy", &(toy_placement){.prefill = "001122", .places = 3});
  char *text = toy_manifest_read(path);
  char *changed = replace_once(text, changes_of_places[_i].from, changes_of_places[_i].to);
  toy_manifest_write(path, changed);
  expect_refused(path, false, "manifest.json", changes_of_places[_i].error);
  free(text);
  free(changed);
  free(path);
}

static char *replace_all(const char *text, const char *from, const char *to) {
  lp_buf out = {0};
  for (const char *at; (at = strstr(text, from)); text = at + strlen(from)) {
    lp_buf_append(&out, text, (size_t)(at - text));
    lp_buf_puts(&out, to);
  }
  lp_buf_puts(&out, text);
  return out.data;
}

/* The names of a half's other form are checked as those of its first: they are looked up in a shared object. */
static void expect_fallback_refused(const char *layout, const char *segment, const char *error) {
  char *path = toy_bundle_write(dir, layout, &(toy_placement){.prefill = "ddccdd"});
  char *text = toy_manifest_read(path);
  char *sides = replace_once(text, "\"code\": \"device/model.so\", \"weights\": \"device/weights.safetensors\"",
                             FALLBACK "\"kernels\": \"device/weights.safetensors\"");
  lp_buf to = {0};
  lp_buf_printf(&to, "\"fallback\": {\"device\": \"%s\"}, \"layout\": {", layout);
  char *programs = replace_all(sides, "\"layout\": {", lp_buf_text(&to));
  lp_buf_clear(&to);
  lp_buf_printf(&to, "\"op\": \"run\", \"fallback\": \"%s\"", segment);
  char *steps = replace_all(programs, "\"op\": \"run\"", lp_buf_text(&to));
  toy_manifest_write(path, steps);
  expect_refused(path, false, "manifest.json", error);
  lp_buf_free(&to);
  free(steps);
  free(programs);
  free(sides);
  free(text);
  free(path);
}

LP_TEST(fallbacks_that_are_none_are_refused) {
  expect_fallback_refused("abort", "lp_segment_0", "programs.prefill.layout: 'abort' is no 'lp_layout_...'");
  expect_fallback_refused("lp_layout_0", "abort", "programs.prefill.steps[1]: its segment is no 'lp_segment_...'");
}

/* One byte that changes no field that is checked otherwise. */
LP_TEST(unsealed_manifest_is_refused) {
  char *path = toy_bundle_write(dir, "toy", &(toy_placement){.prefill = "ddccdd"});
  char *text = toy_manifest_read(path), *changed = replace_once(text, "\"name\": \"toy\"", "\"name\": \"coy\"");
  char *file = lp_path_join(path, "manifest.json");
  ck_assert_int_eq(lp_file_write(file, changed, strlen(changed), NULL), LP_OK);
  expect_refused(path, false, "manifest.json", "the seal is not that of this text");
  ck_assert_int_eq(lp_file_write(file, text, strlen(text) - 1, NULL), LP_OK);
  expect_refused(path, false, "manifest.json", "the seal is not that of this text");
  ck_assert_int_eq(lp_file_write(file, text, strlen(text), NULL), LP_OK);
  lp_bundle_free(toy_bundle_load(path, LP_LOAD_DEVICE));
  free(file);
  free(changed);
  free(text);
  free(path);
}

LP_TEST(weights_that_are_too_short_are_refused) {
  char *path = toy_bundle_write(dir, "toy", &(toy_placement){.prefill = "ddccdd"});
  char *text = toy_manifest_read(path), *file = lp_path_join(path, "device/weights.safetensors");
  lp_mapping weights = {0};
  size_t offset = 0;
  ck_assert_int_eq(lp_file_map(file, &weights, NULL), LP_OK);
  ck_assert_int_eq(lp_safetensors_check(file, &weights, &offset, NULL), LP_OK);
  for (int more = 0; more < 2; more++) {
    lp_buf to = {0}, error = {0};
    size_t bytes = weights.size - offset + (size_t)more;
    lp_buf_printf(&to, "\"weight_bytes\": %zu, \"code\": \"device", bytes);
    lp_buf_printf(&error, "%zu bytes of weights; the code reads %zu", bytes - (size_t)more, bytes);
    char *changed = replace_once(text, "\"code\": \"device", lp_buf_text(&to));
    toy_manifest_write(path, changed);
    if (more)
      expect_refused(path, false, "device/weights.safetensors", lp_buf_text(&error));
    else
      lp_bundle_free(toy_bundle_load(path, LP_LOAD_DEVICE));
    free(changed);
    lp_buf_free(&to);
    lp_buf_free(&error);
  }
  lp_file_unmap(&weights);
  free(file);
  free(text);
  free(path);
}

/* Who gives a model where a bundle is wanted learns the command that makes the bundle. */
LP_TEST(models_are_no_bundles) {
  static const struct {
    const char *file, *bundle; /* the bundle that the note suggests; NULL: it is no model */
  } cases[] = {{"small.onnx", "-o small.llmpart"}, {"q4.gguf", "-o q4.llmpart"}, {"notes.txt", NULL}};
  for (size_t i = 0; i < LP_COUNT(cases); i++) {
    char *path = lp_path_join(dir, cases[i].file);
    lp_diag *diag = lp_diag_create();
    if (cases[i].bundle) ck_assert_int_eq(lp_bundle_check_kind(path, diag), LP_OK); /* it is not there */
    ck_assert_int_eq(lp_file_write(path, "x", 1, NULL), LP_OK);
    ck_assert_int_eq(lp_bundle_check_kind(path, diag), LP_FAILED);
    ck_assert_uint_eq(lp_diag_error_count(diag), 1);
    if (cases[i].bundle) {
      const char *note = lp_diag_get(diag, 1)->text;
      ck_assert_msg(lp_has_suffix(note, cases[i].bundle), "%s", note);
    }
    lp_diag_free(diag);
    free(path);
  }
}

/* Code that carries a contract runs only beside its manifest. */
LP_TEST(contracts) {
  char ours[LP_SHA256_HEX + 1], others[LP_SHA256_HEX + 1];
  lp_manifest manifest = {0};
  memset(ours, 'a', LP_SHA256_HEX);
  memset(others, 'a', LP_SHA256_HEX);
  ours[LP_SHA256_HEX] = others[LP_SHA256_HEX] = 0;
  others[LP_SHA256_HEX - 1] = 'b';
  memcpy(manifest.contract, ours, sizeof ours);
  const struct {
    const char *contract; /* NULL: the code carries none */
    size_t cut;           /* bytes at its end that are not there */
    bool holds;
  } cases[] = {{NULL, 0, true}, {ours, 0, true}, {others, 0, false}, {ours, 1, false}};
  for (size_t i = 0; i < LP_COUNT(cases); i++) {
    lp_diag *diag = lp_diag_create();
    lp_buf code = {0};
    lp_buf_puts(&code, "code ");
    if (cases[i].contract) lp_buf_printf(&code, "%s%s", LP_CONTRACT_MARK, cases[i].contract);
    const lp_mapping mapping = {.data = (const uint8_t *)code.data, .size = code.size - cases[i].cut};
    ck_assert_int_eq(lp_contract_check(&manifest, "c.so", &mapping, diag), cases[i].holds ? LP_OK : LP_FAILED);
    ck_assert_uint_eq(lp_diag_error_count(diag), !cases[i].holds);
    if (cases[i].contract == ours && cases[i].holds) { /* a manifest without one fits no such code */
      manifest.contract[0] = 0;
      ck_assert_int_eq(lp_contract_check(&manifest, "c.so", &mapping, diag), LP_FAILED);
      manifest.contract[0] = 'a';
    }
    lp_buf_free(&code);
    lp_diag_free(diag);
  }
}

/* A manifest that is cut off anywhere gives an error. */
LP_TEST(truncated_manifest_is_refused) {
  char *path = toy_bundle_write(dir, "toy", &(toy_placement){.prefill = "dcdcdc"});
  char *text = toy_manifest_read(path);
  for (size_t size = 0; size + 3 < strlen(text); size += 1 + size / 40) {
    lp_arena *arena = lp_arena_create();
    lp_manifest manifest;
    lp_diag *diag = lp_diag_create();
    ck_assert_int_eq(lp_manifest_parse("m.json", text, size, arena, &manifest, diag), LP_FAILED);
    ck_assert_uint_eq(lp_diag_error_count(diag), 1);
    lp_manifest_clear(&manifest);
    lp_diag_free(diag);
    lp_arena_free(arena);
  }
  free(text);
  free(path);
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

static char *inside(const char *bundle, const char *file) {
  return lp_path_join(bundle, file);
}

static void flip_byte(const char *path, long from_end) {
  FILE *file = fopen(path, "r+b");
  ck_assert_ptr_nonnull(file);
  ck_assert_int_eq(fseek(file, -from_end, SEEK_END), 0);
  int byte = fgetc(file);
  ck_assert_int_eq(fseek(file, -from_end, SEEK_END), 0);
  fputc(byte ^ 1, file);
  fclose(file);
}

LP_LOOP_TEST(whole_bundle_loads, 0, 2) {
  char *path = toy_bundle_write(dir, "toy", &(toy_placement){.prefill = "ddccdd", .no_crc = _i == 1});
  lp_bundle_options options = {.load = LP_LOAD_DEVICE | LP_LOAD_CLOUD, .check_hashes = true};
  lp_bundle *bundle = NULL;
  ck_assert_int_eq(lp_bundle_load(path, &options, &bundle, NULL), LP_OK);
  ck_assert_int_eq(lp_bundle_await_check(bundle, NULL), LP_OK);
  ck_assert(lp_bundle_is_split(bundle));
  ck_assert_int_eq(lp_bundle_vocab(bundle), TOY_VOCAB);
  ck_assert_int_eq(lp_bundle_context_length(bundle), TOY_CONTEXT);
  lp_bundle_free(bundle);
  free(path);
}

/* Damages a byte in the middle of the weights. Loads with and without CRC, and with and without check_hashes. */
LP_LOOP_TEST(damaged_weight_is_refused, 0, 4) {
  char *path = toy_bundle_write(dir, "toy", &(toy_placement){.prefill = "ddccdd", .no_crc = (_i & 1) != 0});
  char *weights = inside(path, "cloud/weights.safetensors");
  flip_byte(weights, 333);
  expect_refused(path, (_i & 2) != 0, "cloud/weights.safetensors", "the file is damaged");
  free(weights);
  free(path);
}

/* The runtime awaits the check that runs during the first step before it emits a token. */
LP_TEST(damaged_weight_gives_no_token) {
  char *path = toy_bundle_write(dir, "toy", &(toy_placement){.prefill = "dddddd"});
  char *weights = inside(path, "device/weights.safetensors");
  flip_byte(weights, 1);
  lp_bundle *bundle = toy_bundle_load(path, LP_LOAD_DEVICE);
  lp_generate_options options = {.max_tokens = 3, .threads = 1, .sampling = {.top_p = 1}};
  lp_session *session = NULL;
  lp_diag *diag = lp_diag_create();
  ck_assert_int_eq(lp_session_open(bundle, &options, &session, diag), LP_OK);
  lp_generation made = {0};
  ck_assert_int_eq(lp_session_generate(session, (const int32_t[]){1, 2}, 1, 2, NULL, NULL, &made, diag), LP_FAILED);
  ck_assert_uint_eq(made.tokens.count, 0);
  ck_assert_ptr_nonnull(strstr(toy_error(diag), "the file is damaged"));
  lp_generation_free(&made);
  lp_session_close(session);
  lp_diag_free(diag);
  lp_bundle_free(bundle);
  free(weights);
  free(path);
}

LP_TEST(damaged_code_is_refused) {
  char *path = toy_bundle_write(dir, "toy", &(toy_placement){.prefill = "dddddd"});
  char *code = inside(path, "device/model.so");
  flip_byte(code, 5000);
  expect_refused(path, false, "device/model.so", "the file is damaged");
  ck_assert_int_eq(truncate(code, 1000), 0);
  expect_refused(path, false, "device/model.so", "1000 bytes; the manifest says");
  ck_assert_int_eq(unlink(code), 0);
  expect_refused(path, false, "device/model.so", "");
  free(code);
  free(path);
}

/* The note that follows the refusal of a bundle. */
static void expect_advice(const char *bundle, const char *advice) {
  const lp_bundle_options options = {.load = LP_LOAD_DEVICE | LP_LOAD_CLOUD};
  lp_bundle *loaded = NULL;
  lp_diag *diag = lp_diag_create();
  ck_assert_int_eq(lp_bundle_load(bundle, &options, &loaded, diag), LP_FAILED);
  ck_assert_uint_eq(lp_diag_count(diag), 2);
  ck_assert_str_eq(lp_diag_get(diag, 1)->text, advice);
  lp_diag_free(diag);
}

LP_LOOP_TEST(other_machines_code_is_refused, 0, 2) {
  static const char *const advice[] = {"compile the device's half for this machine: --march-device=native",
                                       "compile the phone's half for this machine: --march=native"};
  const toy_placement placement = {.prefill = _i ? "000000" : "dddddd", .places = _i ? 3 : 0};
  char *path = toy_bundle_write(dir, "toy", &placement);
  char *text = toy_manifest_read(path);
  char *changed = replace_once(text, "\"code\"", "\"triple\": \"riscv64-unknown-linux-gnu\", \"code\"");
  toy_manifest_write(path, changed);
  expect_refused(path, false, "model.so", "code for riscv64-unknown-linux-gnu; this machine is");
  expect_advice(path, advice[_i]);
  free(changed);
  free(text);
  free(path);
}

LP_TEST(code_of_absent_instructions_is_refused) {
  char *path = toy_bundle_write(dir, "toy", &(toy_placement){.prefill = "dddddd"});
  char *text = toy_manifest_read(path);
  char *changed = replace_once(text, "\"code\"", "\"feature\": \"no-such-instructions\", \"code\"");
  toy_manifest_write(path, changed);
  expect_refused(path, false, "device/model.so", "without the instructions that the code needs");
  free(changed);
  free(text);
  free(path);
}

/* Code for the tiles of AMX loads where the processor has them and the operating system gives them. */
LP_LOOP_TEST(code_for_tiles_needs_tiles, 0, 2) {
  static const char *const features[] = {"\"feature\": \"amx-int8\", \"code\"", "\"feature\": \"amx-bf16\", \"code\""};
  char *path = toy_bundle_write(dir, "toy", &(toy_placement){.prefill = "dddddd"});
  char *text = toy_manifest_read(path), *changed = replace_once(text, "\"code\"", features[_i]);
  toy_manifest_write(path, changed);
  if (lp_amx_request()) {
    lp_bundle_options options = {.load = LP_LOAD_DEVICE | LP_LOAD_CLOUD};
    lp_bundle *loaded = NULL;
    lp_diag *diag = lp_diag_create();
    ck_assert_int_eq(lp_bundle_load(path, &options, &loaded, diag), LP_OK);
    lp_bundle_free(loaded);
    lp_diag_free(diag);
  } else {
    expect_refused(path, false, "device/model.so", "this machine is");
  }
  free(changed);
  free(text);
  free(path);
}

LP_LOOP_TEST(ranks_are_those_of_the_half, -1, 2) {
  lp_bundle_options options = {.load = LP_LOAD_CLOUD, .rank = _i};
  lp_bundle *loaded = NULL;
  lp_diag *diag = lp_diag_create();
  char *path = toy_bundle_write(dir, "toy", &(toy_placement){.prefill = "ddccdd"});
  ck_assert_int_eq(lp_bundle_load(path, &options, &loaded, diag), _i == 0 ? LP_OK : LP_FAILED);
  if (_i != 0) ck_assert_msg(strstr(toy_error(diag), " of a half for 1"), "%s", toy_error(diag));
  lp_bundle_free(loaded);
  lp_diag_free(diag);
  free(path);
}

LP_TEST(missing_bundle_is_refused) {
  char *path = lp_path_join(dir, "nothing.llmpart");
  expect_refused(path, false, "nothing.llmpart/manifest.json", "cannot open");
  free(path);
}

LP_TEST(checksums) {
  ck_assert_uint_eq(lp_crc32c(0, "123456789", 9), 0xe3069283u);
  ck_assert_uint_eq(lp_crc32c(lp_crc32c(0, "1234", 4), "56789", 5), 0xe3069283u);
  ck_assert_uint_eq(lp_crc32c(0, "", 0), 0);
}

/* ---- safetensors ------------------------------------------------------------------------------------------------- */

static const struct {
  const char *header;
  const char *error;
} headers[] = {
    {"{}", NULL},
    {"{\"__metadata__\":{\"a\":\"b\"},\"t\":{\"dtype\":\"F32\",\"shape\":[2,2],\"data_offsets\":[0,16]}}", NULL},
    {"{\"t\":{\"dtype\":\"F32\",\"shape\":[2,2],\"data_offsets\":[0,12]}}", "t.data_offsets: 12 bytes"},
    {"{\"t\":{\"dtype\":\"F32\",\"shape\":[2,2],\"data_offsets\":[64,80]}}", "data_offsets[0]: 64 lies outside"},
    {"{\"t\":{\"dtype\":\"F32\",\"shape\":[2,2],\"data_offsets\":[16,0]}}", "data_offsets[1]: 0 lies outside"},
    {"{\"t\":{\"dtype\":\"F32\",\"shape\":[-2],\"data_offsets\":[0,16]}}", "t.shape[0]: -2 lies outside"},
    {"{\"t\":{\"dtype\":\"F32\",\"shape\":[4611686018427387904,4],\"data_offsets\":[0,0]}}", "the size overflows"},
    {"{\"t\":{\"dtype\":\"F33\",\"shape\":[4],\"data_offsets\":[0,16]}}", "t.dtype: unknown type 'F33'"},
    {"{\"t\":{\"dtype\":\"F32\",\"shape\":[4]}}", "t.data_offsets: wanted an array"},
    {"{\"t\":[]}", "t: wanted an object"},
    {"[]", "wanted an object"},
    {"{", "not valid JSON"},
};

LP_LOOP_TEST(safetensors_headers, 0, LP_COUNT(headers)) {
  uint8_t file[192 + 32] = {192 - 8};
  memset(file + 8, ' ', 192 - 8);
  memcpy(file + 8, headers[_i].header, strlen(headers[_i].header));
  lp_mapping mapping = {.data = file, .size = sizeof file};
  size_t offset = 0;
  lp_diag *diag = lp_diag_create();
  lp_status status = lp_safetensors_check("w.safetensors", &mapping, &offset, diag);
  if (!headers[_i].error) {
    ck_assert_int_eq(status, LP_OK);
    ck_assert_uint_eq(offset, 192);
  } else {
    ck_assert_int_eq(status, LP_FAILED);
    ck_assert_msg(strstr(toy_error(diag), headers[_i].error), "'%s'", toy_error(diag));
  }
  lp_diag_free(diag);
}

LP_TEST(safetensors_frames) {
  uint8_t file[72] = {0};
  size_t offset;
  static const struct {
    uint8_t length[2];
    size_t size;
    const char *error;
  } cases[] = {{{0}, 5, "not a safetensors file: 5 bytes"},
               {{100}, 72, "header of 100 bytes does not fit"},
               {{50}, 72, "begins at 58, no multiple of 64"}};
  for (size_t i = 0; i < LP_COUNT(cases); i++) {
    file[0] = cases[i].length[0];
    lp_diag *diag = lp_diag_create();
    lp_mapping mapping = {.data = file, .size = cases[i].size};
    ck_assert_int_eq(lp_safetensors_check("w", &mapping, &offset, diag), LP_FAILED);
    ck_assert_ptr_nonnull(strstr(toy_error(diag), cases[i].error));
    lp_diag_free(diag);
  }
}
