#include "tests/runtime/toy/toy_bundle.h"
#include "base/digest.h"
#include "base/dir.h"
#include "base/file.h"
#include "base/path.h"
#include "base/seal.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const two_names[] = {"device", "cloud"};
static const char *const more_names[TOY_PLACES] = {"phone", "edge.1", "edge.2", "server"};

char *toy_dir_create(void) {
  const char *base = getenv("TMPDIR");
  char path[512];
  snprintf(path, sizeof path, "%s/toy-XXXXXX", base ? base : "/tmp");
  if (!mkdtemp(path)) abort();
  return lp_strdup(path);
}

void toy_dir_remove(char *dir) {
  lp_dir_abandon(dir);
  free(dir);
}

static void must(lp_status status) {
  if (status != LP_OK) abort();
}

/* ---- weights ----------------------------------------------------------------------------------------------------- */

static float next_weight(uint32_t *state) {
  *state = *state * 1664525u + 1013904223u;
  return ((float)(*state >> 8) / (float)(1 << 24) - 0.5f) * 1.2f;
}

static void write_weights(const char *path, uint32_t seed) {
  enum { COUNT = TOY_VOCAB * TOY_WIDTH + TOY_LAYERS * TOY_WIDTH * TOY_WIDTH };
  lp_buf out = {0}, header = {0};
  lp_buf_printf(&header, "{\"all\":{\"dtype\":\"F32\",\"shape\":[%d],\"data_offsets\":[0,%zu]}}", COUNT,
                COUNT * sizeof(float));
  while ((header.size + 8) % 64 != 0)
    lp_buf_puts(&header, " ");
  for (int i = 0; i < 8; i++) {
    uint8_t byte = (uint8_t)(header.size >> (8 * i));
    lp_buf_append(&out, &byte, 1);
  }
  lp_buf_append(&out, header.data, header.size);
  for (int i = 0; i < COUNT; i++) {
    float weight = next_weight(&seed);
    lp_buf_append(&out, &weight, sizeof weight);
  }
  must(lp_file_write(path, out.data, out.size, NULL));
  lp_buf_free(&out);
  lp_buf_free(&header);
}

/* ---- manifest ---------------------------------------------------------------------------------------------------- */

static void add_file(lp_buf *out, const char *bundle, const char *path, bool no_crc, bool *first) {
  char *full = lp_path_join(bundle, path), *data = NULL;
  size_t size = 0;
  must(lp_file_read(full, &data, &size, NULL));
  lp_sha256 sha;
  char hex[65];
  lp_sha256_init(&sha);
  lp_sha256_update(&sha, data, size);
  lp_sha256_hex(&sha, hex);
  lp_buf_printf(out, "%s\n  \"%s\": {\"bytes\": %zu, \"sha256\": \"%s\"", *first ? "" : ",", path, size, hex);
  if (!no_crc) lp_buf_printf(out, ", \"crc32c\": \"%08" PRIx32 "\"", lp_crc32c(0, data, size));
  lp_buf_puts(out, "}");
  *first = false;
  free(full);
  free(data);
}

/* The sides of the bundle, and their number. */
static int sides_of(const toy_placement *placement, const char *const **names) {
  *names = placement->places ? more_names : two_names;
  return placement->places ? placement->places : 2;
}

static int side_of(char letter) {
  return letter == 'c' || letter == 'e' ? 1 : letter == 'd' ? 0 : letter - '0';
}

static void add_send(lp_buf *out, const char *const *side_name, int from, int to, int buffer, const char *name,
                     const char *dtype, const char *shape) {
  lp_buf_printf(out,
                ",\n {\"op\": \"send\", \"from\": \"%s\", \"to\": \"%s\", \"from_buffer\": %d, \"to_buffer\": %d, "
                "\"name\": \"%s\", \"dtype\": \"%s\", \"shape\": %s, \"rows\": \"s\"}",
                side_name[from], side_name[to], buffer, buffer, name, dtype, shape);
}

/* Adds an exit after the layers that have run: the head over their result. */
static void add_exit(lp_buf *out, const toy_placement *placement, const char *device, int layers) {
  char open[120];
  snprintf(
      open, sizeof open,
      ", \"open\": [{\"buffer\": %d, \"name\": \"hidden\", \"dtype\": \"f32\", \"shape\": [\"b\", \"s\", \"16\"]}]",
      TOY_HIDDEN);
  for (int i = 0; i < TOY_EXITS; i++)
    if (placement->exits[i] > 0 && placement->exits[i] == layers)
      lp_buf_printf(out,
                    ",\n {\"op\": \"run\", \"side\": \"%s\", \"segment\": \"lp_segment_head\", \"exit\": %d}"
                    ",\n {\"op\": \"output\", \"side\": \"%s\", \"output\": %d, \"buffer\": %d, \"rows\": \"r\"%s}",
                    device, i, device, i + 1, TOY_LOGITS, placement->closed ? "" : open);
}

static void add_exits(lp_buf *out, const toy_placement *placement) {
  lp_buf_puts(out, " \"exits\": [");
  for (int i = 0; i < TOY_EXITS && placement->exits[i] > 0; i++)
    lp_buf_printf(out, "%s{\"layer\": %d, \"output\": %d}", i == 0 ? "" : ", ", placement->exits[i], i + 1);
  lp_buf_puts(out, "],\n");
}

static void add_program(lp_buf *out, const toy_placement *placement, bool is_prefill) {
  const char *where = is_prefill || !placement->decode ? placement->prefill : placement->decode;
  int side = placement->input_there ? side_of(where[0]) : 0;
  const char *const *side_name;
  const int sides = sides_of(placement, &side_name);
  lp_buf_puts(out, "{\"layout\": {");
  for (int i = 0; i < sides; i++)
    lp_buf_printf(out, "%s\"%s\": \"lp_layout_0\"", i ? ", " : "", side_name[i]);
  lp_buf_puts(out, "},\n \"buffers\": {");
  for (int i = 0; i < sides; i++)
    lp_buf_printf(out, "%s\"%s\": %d", i ? ", " : "", side_name[i], TOY_BUFFERS);
  lp_buf_printf(out,
                "}, \"steps\": [\n"
                " {\"op\": \"input\", \"side\": \"%s\", \"input\": 0, \"buffer\": %d, \"rows\": \"s\"}",
                side_name[side], TOY_TOKENS);
  if (side != side_of(where[0]))
    add_send(out, side_name, side, side_of(where[0]), TOY_TOKENS, "tokens", "i64", "[\"b\", \"s\"]");
  side = side_of(where[0]);
  for (int stage = 0; stage < TOY_STAGES; stage++) {
    if (side_of(where[stage]) != side)
      add_send(out, side_name, side, side_of(where[stage]), TOY_HIDDEN, "hidden", "f32", "[\"b\", \"s\", \"16\"]");
    side = side_of(where[stage]);
    char layer[24] = "nothing";
    if (where[stage] == 'e') continue;
    if (!placement->nothing) snprintf(layer, sizeof layer, "%d", stage - 1);
    lp_buf_printf(out, ",\n {\"op\": \"run\", \"side\": \"%s\", \"segment\": \"lp_segment_%s\"}", side_name[side],
                  stage == 0                ? "embed"
                  : stage == TOY_STAGES - 1 ? "head"
                                            : layer);
    add_exit(out, placement, side_name[0], stage);
  }
  lp_buf_printf(out, ",\n {\"op\": \"output\", \"side\": \"%s\", \"output\": 0, \"buffer\": %d, \"rows\": \"r\"}",
                side_name[side], TOY_LOGITS);
  for (int layer = 0; is_prefill && placement->decode && layer < TOY_LAYERS; layer++) {
    int from = side_of(where[layer + 1]), to = side_of(placement->decode[layer + 1]);
    if (from != to)
      lp_buf_printf(out, ",\n {\"op\": \"move\", \"from\": \"%s\", \"to\": \"%s\", \"state\": %d}", side_name[from],
                    side_name[to], layer);
  }
  lp_buf_puts(out, "]}");
}

static void write_manifest(const char *bundle, const toy_placement *placement) {
  lp_buf out = {0};
  lp_buf_printf(&out,
                "{\"schema\": \"llmpart.bundle/1\", \"name\": \"toy\", \"abi\": 3, \"context\": %d, "
                "\"vocab\": %d,\n \"symbols\": [\"b\", \"s\", \"p\", \"r\", \"c\", \"t\"], \"tokenizer\": null,\n"
                " \"files\": {",
                TOY_CONTEXT, TOY_VOCAB);
  bool first = true;
  const char *const *side_name;
  const int sides = sides_of(placement, &side_name);
  for (int side = 0; side < sides; side++) {
    char path[64];
    snprintf(path, sizeof path, "%s/model.so", side_name[side]);
    add_file(&out, bundle, path, placement->no_crc, &first);
    snprintf(path, sizeof path, "%s/weights.safetensors", side_name[side]);
    add_file(&out, bundle, path, placement->no_crc, &first);
  }
  lp_buf_puts(&out, "},\n \"sides\": {");
  for (int side = 0; side < sides; side++)
    lp_buf_printf(&out, "%s\"%s\": {\"code\": \"%s/model.so\", \"weights\": \"%s/weights.safetensors\"}",
                  side == 0 ? "" : ",\n  ", side_name[side], side_name[side], side_name[side]);
  lp_buf_puts(&out, "},\n \"states\": [");
  for (int layer = 0; layer < TOY_LAYERS; layer++)
    lp_buf_printf(&out,
                  "%s{\"name\": \"layer.%d.k\", \"dtype\": \"f32\", \"shape\": [\"b\", \"1\", \"c\", \"16\"], "
                  "\"append_axis\": 2}",
                  layer == 0 ? "" : ",\n  ", layer);
  lp_buf_puts(&out, "],\n \"inputs\": [{\"name\": \"input_ids\", \"role\": \"tokens\", \"dtype\": \"i64\", "
                    "\"shape\": [\"b\", \"s\"]}],\n \"outputs\": [{\"name\": \"logits\", \"role\": \"logits\", "
                    "\"dtype\": \"f32\", \"shape\": [\"b\", \"r\", \"61\"]}");
  for (int i = 0; i < TOY_EXITS && placement->exits[i] > 0; i++)
    lp_buf_printf(&out,
                  ",\n  {\"name\": \"exit_%d\", \"role\": \"exit_logits\", \"dtype\": \"f32\", "
                  "\"shape\": [\"b\", \"r\", \"61\"]}",
                  placement->exits[i]);
  lp_buf_puts(&out, "],\n");
  add_exits(&out, placement);
  lp_buf_puts(&out, " \"programs\": {\"prefill\": ");
  add_program(&out, placement, true);
  lp_buf_puts(&out, ",\n \"decode\": ");
  add_program(&out, placement, false);
  lp_buf_puts(&out, "}}\n");
  toy_manifest_write(bundle, out.data);
  lp_buf_free(&out);
}

static void copy_file(const char *from, const char *to) {
  char *data = NULL;
  size_t size = 0;
  must(lp_file_read(from, &data, &size, NULL));
  must(lp_file_write(to, data, size, NULL));
  free(data);
}

char *toy_bundle_write(const char *dir, const char *name, const toy_placement *placement) {
  char *bundle = lp_path_join(dir, name);
  if (mkdir(bundle, 0755) != 0) abort();
  const char *const *side_name;
  const int sides = sides_of(placement, &side_name);
  for (int side = 0; side < sides; side++) {
    char *folder = lp_path_join(bundle, side_name[side]);
    if (mkdir(folder, 0755) != 0) abort();
    char *code = lp_path_join(folder, "model.so"), *weights = lp_path_join(folder, "weights.safetensors");
    copy_file(LP_TOY_MODEL, code);
    write_weights(weights, placement->seed != 0 ? placement->seed : 1);
    free(folder);
    free(code);
    free(weights);
  }
  write_manifest(bundle, placement);
  return bundle;
}

char *toy_manifest_read(const char *bundle) {
  char *path = lp_path_join(bundle, "manifest.json"), *text = NULL;
  size_t size = 0;
  must(lp_file_read(path, &text, &size, NULL));
  free(path);
  return text;
}

/* Finds the end of the last member: before the seal, or before the closing brace. */
static size_t unsealed_size(const char *text) {
  const char *seal = NULL;
  for (const char *at = text; (at = strstr(at, ",\n \"seal\": \"")); at++)
    seal = at;
  size_t size = seal ? (size_t)(seal - text) : strlen(text);
  if (!seal && lp_has_suffix(text, "}\n")) size -= strlen("}\n");
  return size;
}

void toy_manifest_write(const char *bundle, const char *text) {
  char *path = lp_path_join(bundle, "manifest.json");
  lp_buf sealed = {0};
  lp_buf_append(&sealed, text, unsealed_size(text));
  lp_seal_put(&sealed);
  must(lp_file_write(path, sealed.data, sealed.size, NULL));
  lp_buf_free(&sealed);
  free(path);
}
