/* Writes manifest.json, as docs/bundle.md describes it: files and sides; ports.c and steps.c write the rest. */
#include "backend/bundle/manifest.h"

#include "base/abi.h"
#include "base/digest.h"
#include "base/path.h"
#include "base/seal.h"
#include "base/side.h"

/* ---- files and sides --------------------------------------------------------------------------------------------- */

static void put_files(lp_json_writer *w, const bundle *b) {
  lp_json_put_object(w, "files");
  LP_FOR_EACH(const bundle_file, file, b->file, b->file_count) {
    lp_json_put_object(w, file->path);
    lp_json_put_text(w, "sha256", file->sha256);
    lp_json_put_text(w, "crc32c", lp_arena_format(b->arena, "%08" PRIx32, file->crc32c));
    lp_json_put_integer(w, "bytes", (int64_t)file->bytes);
    lp_json_put_end(w);
  }
  lp_json_put_end(w);
}

static void put_half(lp_json_writer *w, const bundle_side *side) {
  if (side->code_path) lp_json_put_text(w, "code", side->code_path);
  if (side->kernels_path) lp_json_put_text(w, "kernels", side->kernels_path);
  if (side->weights_path) lp_json_put_text(w, "weights", side->weights_path);
  if (side->ranks > 1) lp_json_put_integer(w, "ranks", side->ranks);
  if (side->shard_path) lp_json_put_array(w, "shards");
  for (int64_t i = 0; side->shard_path && i < side->ranks; i++)
    lp_json_put_text(w, NULL, side->shard_path[i]);
  if (side->shard_path) lp_json_put_end(w);
  if (side->weights_path || side->shard_path) lp_json_put_integer(w, "weight_bytes", side->code.weight_bytes);
  lp_json_put_text(w, "triple", side->code.triple);
  lp_json_put_text(w, "march", side->code.march);
  if (side->code.level) lp_json_put_text(w, "level", side->code.level);
  if (side->code.activations) lp_json_put_text(w, "activations", side->code.activations);
  if (side->code.feature) lp_json_put_text(w, "feature", side->code.feature);
}

/* The device is the first member, by which it is known where it has another name. */
static bool is_device_of_places(const bundle *b, lp_place place) {
  return place == LP_SIDE_DEVICE && b->places != lp_side_names;
}

static void put_sides(lp_json_writer *w, const bundle *b) {
  lp_json_put_object(w, "sides");
  for (lp_place i = 0; i < b->place_count; i++) {
    const bundle_side *side = &b->side[i];
    if (!side->present && !is_device_of_places(b, i)) continue;
    lp_json_put_object(w, b->places[i]);
    if (side->present) put_half(w, side);
    if (b->request->machine[i]) lp_json_put_text(w, "machine", b->request->machine[i]);
    if (side->fallback) {
      lp_json_put_object(w, "fallback");
      put_half(w, side->fallback);
      lp_json_put_end(w);
    }
    lp_json_put_end(w);
  }
  lp_json_put_end(w);
}

/* ---- the document ------------------------------------------------------------------------------------------------ */

/* The file's name without its ending: "smollm2" of "dir/smollm2.onnx". */
static const char *model_name(const bundle *b) {
  const char *base = lp_path_base(b->module->name ? b->module->name : "model");
  size_t length = strlen(base);
  if (lp_has_suffix(base, ".onnx")) length -= strlen(".onnx");
  return lp_arena_format(b->arena, "%.*s", (int)length, base);
}

static void put_symbols(lp_json_writer *w, const bundle *b) {
  lp_json_put_array(w, "symbols");
  for (size_t i = 0; i < b->module->symbols.names.count; i++)
    lp_json_put_text(w, NULL, b->module->symbols.names.data[i]);
  lp_json_put_end(w);
}

/* The context's bound by the graph holds in any case. A model without one, as with rotary positions, has the bound that
 * its files give. */
static int64_t context_of(const bundle *b) {
  int64_t graph = b->request->context, files = b->settings.context;
  return graph == 0 || (files > 0 && files < graph) ? files : graph;
}

static void put_settings(lp_json_writer *w, const bundle_settings *settings) {
  if (settings->stops.count > 0) {
    lp_json_put_array(w, "stops");
    for (size_t i = 0; i < settings->stops.count; i++)
      lp_json_put_integer(w, NULL, settings->stops.data[i]);
    lp_json_put_end(w);
  }
  if (settings->samples) {
    lp_json_put_object(w, "sampling");
    lp_json_put_number(w, "temperature", settings->temperature);
    lp_json_put_integer(w, "top_k", settings->top_k);
    lp_json_put_number(w, "top_p", settings->top_p);
    lp_json_put_end(w);
  }
}

/* Only a model with an encoder has a decoder that begins by itself. */
static void put_decoder(lp_json_writer *w, const bundle *b, const lp_op *func) {
  bool has_source = false;
  for (int32_t i = 0; i < func->region->arg_count; i++)
    has_source |= lp_has_prefix(lp_bundle_text_at(func, "input_roles", i, "data"), "source");
  if (!has_source) return;
  lp_json_put_object(w, "decoder");
  lp_json_put_array(w, "start");
  for (size_t i = 0; i < b->settings.start.count; i++)
    lp_json_put_integer(w, NULL, b->settings.start.data[i]);
  lp_json_put_end(w);
  lp_json_put_integer(w, "pad", b->settings.pad);
  lp_json_put_integer(w, "source_context", lp_op_i64(func, "source_context", 0));
  lp_json_put_end(w);
}

/* Only a model that gives hidden states has embeddings. */
static void put_embedding(lp_json_writer *w, const bundle *b, const lp_op *func) {
  const bundle_settings *settings = &b->settings;
  const lp_op *end = lp_block_terminator(func->region);
  bool embeds = false;
  for (int32_t i = 0; i < end->in_count; i++) {
    const char *role = lp_bundle_text_at(func, "output_roles", i, "data");
    embeds = embeds || lp_streq(role, "hidden") || lp_streq(role, "embedding");
  }
  if (!embeds) return;
  lp_json_put_object(w, "embedding");
  lp_json_put_text(w, "pooling", settings->pooling);
  lp_json_put_bool(w, "normalise", settings->normalises);
  if (settings->lacks) lp_json_put_text(w, "lacks", settings->lacks);
  lp_json_put_end(w);
}

static const lp_json_style style = {.indent = 1, .marks_reals = true};

/* `files` and the seal must be the last members: the runtime computes the contract from the text before `files`. */
lp_status lp_bundle_manifest_begin(bundle *b, lp_diag *diag) {
  const lp_op *func = lp_bundle_model_func(b);
  if (!func) return lp_error(diag, LP_LOC_NONE, "the module has no function");
  lp_json_writer w = lp_json_document_begin(&b->manifest, style, "llmpart.bundle/1");
  lp_json_put_text(&w, "name", model_name(b));
  lp_json_put_integer(&w, "abi", LP_ABI_VERSION);
  put_symbols(&w, b);
  lp_json_put_integer(&w, "context", context_of(b));
  lp_json_put_integer(&w, "vocab", b->request->vocab);
  lp_json_put_text(&w, "tokenizer", b->request->tokenizer ? "tokenizer.json" : NULL);
  put_settings(&w, &b->settings);
  put_decoder(&w, b, func);
  put_embedding(&w, b, func);
  put_sides(&w, b);
  LP_TRY(lp_bundle_put_ports(&w, b, diag));
  LP_TRY(lp_bundle_put_programs(&w, b, diag));
  lp_sha256 sha;
  lp_sha256_init(&sha);
  lp_sha256_update(&sha, b->manifest.data, b->manifest.size);
  lp_sha256_hex(&sha, b->contract);
  return LP_OK;
}

void lp_bundle_manifest_end(bundle *b) {
  lp_buf files = {0}, *out = &b->manifest;
  lp_json_writer w = lp_json_writer_begin(&files, style);
  lp_json_put_object(&w, NULL);
  put_files(&w, b);
  lp_buf_puts(out, ",");
  lp_buf_append(out, files.data + 1, files.size - 1); /* without its opening brace */
  lp_buf_free(&files);
  lp_seal_put(out);
}
