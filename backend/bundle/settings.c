/* Reads the settings of generation from files in the model's folder: config.json, generation_config.json and
 * genai_config.json. Each may be absent. A file that cannot be used is left out with a note; the model is compiled in
 * any case. */
#include "backend/bundle/bundle_internal.h"
#include "base/json/reader.h"
#include "base/path.h"

enum { MOST_CONTEXT = 1 << 30, MOST_TOKEN = 1 << 24 };

static bool read_positive(const lp_json *at, int64_t most, int64_t *out) {
  if (!lp_json_is(at, LP_JSON_INTEGER) || at->value->integer < 0 || at->value->integer > most) return false;
  *out = at->value->integer;
  return true;
}

static bool read_real(const lp_json *at, double *out) {
  if (lp_json_is(at, LP_JSON_REAL))
    *out = at->value->real;
  else if (lp_json_is(at, LP_JSON_INTEGER))
    *out = (double)at->value->integer;
  else
    return false;
  return true;
}

static void add_stop(bundle_settings *out, const lp_json *at) {
  int64_t id;
  if (!read_positive(at, MOST_TOKEN, &id)) return;
  for (size_t i = 0; i < out->stops.count; i++)
    if (out->stops.data[i] == id) return;
  lp_vec_push(&out->stops, id);
}

/* "eos_token_id": 2, or [128001, 128009]. */
static void add_stops(bundle_settings *out, const lp_json *object) {
  lp_json at = lp_json_member(object, "eos_token_id");
  add_stop(out, &at);
  for (size_t i = 0; lp_json_is(&at, LP_JSON_ARRAY) && i < lp_json_count(&at); i++)
    add_stop(out, LP_ITEM(&at, i));
}

/* The smallest context that any file gives. */
static void bound_context(bundle_settings *out, const lp_json *object, const char *key) {
  int64_t length = 0;
  if (!read_positive(LP_MEMBER(object, key), MOST_CONTEXT, &length) || length == 0) return;
  if (out->context == 0 || length < out->context) out->context = length;
}

/* The first file that asks for sampling counts. Without a top_k transformers takes 50. */
static void read_sampling(bundle_settings *out, const lp_json *object) {
  lp_json samples = lp_json_member(object, "do_sample"), temperature = lp_json_member(object, "temperature");
  if (out->samples || !lp_json_is_true(&samples)) return;
  out->samples = true;
  out->temperature = out->top_p = 1;
  out->top_k = 50;
  if (!read_real(&temperature, &out->temperature) || !(out->temperature >= 0 && out->temperature <= 100))
    out->temperature = 1;
  if (!read_real(LP_MEMBER(object, "top_p"), &out->top_p) || !(out->top_p > 0 && out->top_p <= 1)) out->top_p = 1;
  (void)read_positive(LP_MEMBER(object, "top_k"), INT32_MAX, &out->top_k);
}

/* Notes settings that change the tokens and are not followed, unless they have the value that turns them off. */
static void note_unused(const char *path, const lp_json *object, lp_diag *diag) {
  static const struct {
    const char *key;
    double off;
  } keys[] = {{"repetition_penalty", 1}, {"no_repeat_ngram_size", 0}, {"min_p", 0}, {"typical_p", 1}};
  for (size_t i = 0; i < LP_COUNT(keys); i++) {
    double value;
    if (read_real(LP_MEMBER(object, keys[i].key), &value) && value != keys[i].off)
      lp_note(diag, LP_LOC_FILE(path), "'%s' is %g, which is not followed", keys[i].key, value);
  }
}

/* Whisper's [[1, 50259], [2, 50359], ..]: tokens by position, up to one that is left to the model. */
static void add_forced(bundle_settings *out, const lp_json *object) {
  lp_json list = lp_json_member(object, "forced_decoder_ids");
  for (size_t i = 0; lp_json_is(&list, LP_JSON_ARRAY) && i < lp_json_count(&list); i++) {
    lp_json pair = lp_json_item(&list, i);
    lp_json place = lp_json_item(&pair, 0), token = lp_json_item(&pair, 1);
    int64_t position = 0, id = 0;
    if (!read_positive(&place, MOST_TOKEN, &position) || !read_positive(&token, MOST_TOKEN, &id)) return;
    if (position != (int64_t)out->start.count) return;
    lp_vec_push(&out->start, id);
  }
}

/* Reads the tokens with which a decoder begins. The first file that names them counts. */
static void read_start(bundle_settings *out, const lp_json *object) {
  lp_json first = lp_json_member(object, "decoder_start_token_id");
  lp_json forced = lp_json_member(object, "forced_bos_token_id"), pad = lp_json_member(object, "pad_token_id");
  int64_t id = 0;
  if (out->pad == 0) (void)read_positive(&pad, MOST_TOKEN, &out->pad);
  if (out->start.count > 0 || !read_positive(&first, MOST_TOKEN, &id)) return;
  lp_vec_push(&out->start, id);
  if (read_positive(&forced, MOST_TOKEN, &id)) lp_vec_push(&out->start, id);
  add_forced(out, object);
}

/* config.json; models of text and images keep the text's values in text_config. */
static void read_config(bundle_settings *out, const lp_json *root) {
  static const char *const keys[] = {"max_position_embeddings", "n_positions", "n_ctx", "max_seq_len", "seq_length",
                                     "max_sequence_length"};
  lp_json text = lp_json_member(root, "text_config"), type = lp_json_member(root, "model_type");
  const lp_json *places[] = {root, &text};
  for (size_t i = 0; i < LP_COUNT(places); i++) {
    add_stops(out, places[i]);
    read_start(out, places[i]);
    /* T5 counts no positions; its n_positions is the length in training */
    for (size_t key = 0; key < LP_COUNT(keys) && !lp_json_equals(&type, "t5"); key++)
      bound_context(out, places[i], keys[key]);
  }
}

static void read_generation(bundle_settings *out, const lp_json *root) {
  add_stops(out, root);
  read_start(out, root);
  read_sampling(out, root);
}

static void read_genai(bundle_settings *out, const lp_json *root) {
  lp_json model = lp_json_member(root, "model"), search = lp_json_member(root, "search");
  add_stops(out, &model);
  bound_context(out, &model, "context_length");
  read_sampling(out, &search);
}

static void read_file(const char *path, bundle_settings *out, void (*read)(bundle_settings *out, const lp_json *root),
                      lp_diag *diag) {
  LP_OWNED(lp_diag_free_at) lp_diag *own = lp_diag_create();
  LP_OWNED(lp_json_free_at) lp_json_document *document = NULL;
  if (lp_json_load(path, LP_JSON_ALLOW_DUPLICATES, &document, own) == LP_OK) {
    lp_json root = lp_json_root(path, document);
    read(out, &root);
    note_unused(path, &root, diag);
    note_unused(path, LP_MEMBER(&root, "search"), diag);
  } else {
    lp_note(diag, LP_LOC_FILE(path), "not used: %s", lp_diag_count(own) > 0 ? lp_diag_get(own, 0)->text : "");
  }
}

void lp_bundle_read_settings(const char *folder, bundle_settings *out, lp_diag *diag) {
  static const struct {
    const char *name;
    void (*read)(bundle_settings *out, const lp_json *root);
  } files[] = {
      {"generation_config.json", read_generation}, {"genai_config.json", read_genai}, {"config.json", read_config}};
  for (size_t i = 0; folder && i < LP_COUNT(files); i++) {
    LP_OWNED(lp_free_at) char *path = lp_path_join(folder, files[i].name);
    if (lp_path_exists(path)) read_file(path, out, files[i].read, diag);
  }
  lp_bundle_read_pooling(folder, out, diag);
}
