/* Reads manifest.json: the model, its files, its sides, states, inputs, outputs and exits. manifest_program.c reads the
 * programs, manifest_plans.c the plans. */
#include "runtime/bundle/manifest.h"
#include "base/digest.h"
#include "base/poly.h"
#include "base/side.h"
#include "runtime/bundle/bundle_file.h"
#include "runtime/bundle/manifest_reader.h"

/* ---- header, files, sides ---------------------------------------------------------------------------------------- */

static lp_status read_symbols(manifest_reader *reader, const lp_json *root) {
  static const char *const fixed[LP_SYM_COUNT] = {"b", "s", "p", "r", "c", "t"};
  lp_json at = lp_json_member(root, "symbols");
  LP_TRY(lp_json_array(&at, reader->diag));
  size_t count = lp_json_count(&at);
  if (count < LP_SYM_COUNT || count > LP_MAX_SYMBOLS)
    return lp_json_error(&at, reader->diag, "%zu symbols; wanted %d to %d", count, LP_SYM_COUNT, LP_MAX_SYMBOLS);
  LP_FOR_ITEMS(item, &at) {
    const char *name = NULL;
    LP_TRY(lp_json_text(&item, &name, reader->diag));
    if (item.index < LP_SYM_COUNT && !lp_streq(name, fixed[item.index]))
      return lp_json_error(&item, reader->diag, "wanted '%s', found '%.40s'", fixed[item.index], name);
    if (name[0] == '\0' || lp_symbols_find(&reader->out->symbols, name) != 0)
      return lp_json_error(&item, reader->diag, "'%.40s' is empty or listed twice", name);
    lp_symbols_intern(&reader->out->symbols, name);
  }
  reader->out->symbol_count = (int32_t)count;
  return LP_OK;
}

static lp_status read_header(manifest_reader *reader, const lp_json *root) {
  lp_manifest *out = reader->out;
  const char *schema = NULL;
  lp_json at = lp_json_member(root, "schema");
  LP_TRY(lp_json_text(&at, &schema, reader->diag));
  if (!lp_streq(schema, "llmpart.bundle/1"))
    return lp_json_error(&at, reader->diag, "wanted 'llmpart.bundle/1', found '%.60s'", schema);
  int32_t abi = 0;
  at = lp_json_member(root, "abi");
  LP_TRY(lp_json_i32(&at, 0, INT32_MAX, &abi, reader->diag));
  if (abi != (int32_t)LP_ABI_VERSION)
    return lp_json_error(&at, reader->diag, "code of ABI %d; this runtime runs ABI %u", abi, LP_ABI_VERSION);
  LP_TRY(lp_manifest_text(reader, LP_MEMBER(root, "name"), &out->name));
  LP_TRY(lp_json_i64(LP_MEMBER(root, "context"), 0, INT64_C(1) << 32, &out->context_length, reader->diag));
  return lp_json_i32(LP_MEMBER(root, "vocab"), 0, INT32_MAX, &out->vocab, reader->diag);
}

/* Reads the tokens that end a generation, and the sampling. Both may be absent. */
static lp_status read_settings(manifest_reader *reader, const lp_json *root) {
  lp_manifest *out = reader->out;
  lp_json stops = lp_json_member(root, "stops"), sampling = lp_json_member(root, "sampling");
  lp_json top_p = lp_json_member(&sampling, "top_p");
  out->sampling.top_p = 1;
  if (lp_json_is_given(&stops)) LP_TRY(lp_json_array(&stops, reader->diag));
  out->stops = LP_NEW_ARRAY(reader->arena, int32_t, lp_json_count(&stops));
  LP_FOR_ITEMS(item, &stops)
    LP_TRY(lp_json_i32(&item, 0, INT32_MAX, &out->stops[out->stop_count++], reader->diag));
  if (!lp_json_is_given(&sampling)) return LP_OK;
  LP_TRY(lp_json_object(&sampling, reader->diag));
  LP_TRY(lp_json_number(LP_MEMBER(&sampling, "temperature"), 0, 1000, &out->sampling.temperature, reader->diag));
  LP_TRY(lp_json_i32(LP_MEMBER(&sampling, "top_k"), 0, INT32_MAX, &out->sampling.top_k, reader->diag));
  return lp_json_number(&top_p, 1e-9, 1, &out->sampling.top_p, reader->diag);
}

/* Tells whether `path` is relative and has no "..", so that it stays inside of the bundle. */
static bool path_stays_inside(const char *path) {
  if (path[0] == '\0' || path[0] == '/') return false;
  for (const char *part = path; part; part = strchr(part, '/')) {
    if (*part == '/') part++;
    if (strncmp(part, "..", 2) == 0 && (part[2] == '/' || part[2] == '\0')) return false;
  }
  return true;
}

static bool is_hex(const char *text, size_t digits) {
  return strlen(text) == digits && strspn(text, "0123456789abcdef") == digits;
}

static lp_status read_file(manifest_reader *reader, const lp_json *at, lp_file_desc *out) {
  if (!path_stays_inside(at->key)) return lp_json_error(at, reader->diag, "wanted a path inside of the bundle");
  out->path = lp_arena_strdup(reader->arena, at->key);
  LP_TRY(lp_json_object(at, reader->diag));
  lp_json field = lp_json_member(at, "sha256");
  const char *hex = NULL;
  LP_TRY(lp_json_text(&field, &hex, reader->diag));
  if (!is_hex(hex, LP_SHA256_HEX)) return lp_json_error(&field, reader->diag, "wanted 64 lower-case hex digits");
  memcpy(out->sha256, hex, LP_SHA256_HEX + 1);
  field = lp_json_member(at, "crc32c");
  if (field.value) {
    LP_TRY(lp_json_text(&field, &hex, reader->diag));
    if (!is_hex(hex, 8)) return lp_json_error(&field, reader->diag, "wanted 8 lower-case hex digits");
    out->has_crc = true;
    out->crc32c = (uint32_t)strtoul(hex, NULL, 16);
  }
  return lp_json_i64(LP_MEMBER(at, "bytes"), 0, INT64_MAX, &out->bytes, reader->diag);
}

static lp_status read_files(manifest_reader *reader, const lp_json *root) {
  lp_json at = lp_json_member(root, "files");
  LP_TRY(lp_json_object(&at, reader->diag));
  lp_manifest *out = reader->out;
  out->files = LP_NEW_ARRAY(reader->arena, lp_file_desc, lp_json_count(&at) + 1);
  for (size_t i = 0; i < lp_json_count(&at); i++) {
    lp_json file = lp_json_entry(&at, i);
    LP_TRY(read_file(reader, &file, &out->files[out->file_count++]));
  }
  return LP_OK;
}

static lp_status find_file(manifest_reader *reader, const lp_json *at, const lp_file_desc **out) {
  const char *path = NULL;
  LP_TRY(lp_json_text(at, &path, reader->diag));
  for (int32_t i = 0; i < reader->out->file_count; i++) {
    if (!lp_streq(path, reader->out->files[i].path)) continue;
    *out = &reader->out->files[i];
    return LP_OK;
  }
  return lp_json_error(at, reader->diag, "`files` does not list '%.120s'", path);
}

/* A sharded half has one file of weights for each rank. */
static lp_status read_ranks(manifest_reader *reader, const lp_json *at, lp_side_desc *out) {
  lp_json ranks = lp_json_member(at, "ranks"), shards = lp_json_member(at, "shards");
  out->ranks = 1;
  if (!lp_json_is_given(&ranks)) return LP_OK;
  LP_TRY(lp_json_i32(&ranks, 1, LP_MAX_RANKS, &out->ranks, reader->diag));
  reader->out->rank_symbol = (int32_t)lp_symbols_find(&reader->out->symbols, "rank") - 1;
  if (out->ranks > 1 && reader->out->rank_symbol < LP_SYM_COUNT)
    return lp_json_error(&ranks, reader->diag, "wanted the symbol 'rank'");
  if (!lp_json_is_given(&shards)) return LP_OK;
  LP_TRY(lp_json_array(&shards, reader->diag));
  if (lp_json_count(&shards) != (size_t)out->ranks || out->weights)
    return lp_json_error(&shards, reader->diag, "wanted weights for each of %d ranks, and no others", out->ranks);
  out->shards = LP_NEW_ARRAY(reader->arena, const lp_file_desc *, out->ranks);
  for (int32_t i = 0; i < out->ranks; i++)
    LP_TRY(find_file(reader, LP_ITEM(&shards, (size_t)i), &out->shards[i]));
  out->weights = out->shards[0];
  return LP_OK;
}

static lp_status read_half(manifest_reader *reader, const lp_json *at, lp_side_desc *out) {
  LP_TRY(lp_json_object(at, reader->diag));
  out->present = true;
  lp_json code = lp_json_member(at, "code"), weights = lp_json_member(at, "weights");
  lp_json kernels = lp_json_member(at, "kernels");
  if (lp_json_is_given(&code)) LP_TRY(find_file(reader, &code, &out->code));
  if (lp_json_is_given(&weights)) LP_TRY(find_file(reader, &weights, &out->weights));
  if (lp_json_is_given(&kernels)) LP_TRY(find_file(reader, &kernels, &out->kernels));
  LP_TRY(read_ranks(reader, at, out));
  lp_json least = lp_json_member(at, "weight_bytes");
  if (lp_json_is_given(&least)) LP_TRY(lp_json_i64(&least, 0, INT64_MAX, &out->weight_bytes, reader->diag));
  if (out->weight_bytes > 0 && !out->weights) return lp_json_error(&least, reader->diag, "wanted `weights` for them");
  if (out->kernels && !out->code) return lp_json_error(&kernels, reader->diag, "kernels without `code`");
  const struct {
    const char *key, **to;
  } texts[] = {{"triple", &out->triple},
               {"march", &out->march},
               {"level", &out->level},
               {"feature", &out->feature},
               {"machine", &out->machine}};
  for (size_t i = 0; i < LP_COUNT(texts); i++) {
    lp_json text = lp_json_member(at, texts[i].key);
    *texts[i].to = "";
    if (lp_json_is_given(&text)) LP_TRY(lp_manifest_text(reader, &text, texts[i].to));
  }
  return LP_OK;
}

/* A half for a GPU may have a `fallback`: the same half as code for the machine's processor. */
static lp_status read_side(manifest_reader *reader, const lp_json *at, lp_side_desc *out) {
  LP_TRY(read_half(reader, at, out));
  lp_json fallback = lp_json_member(at, "fallback");
  if (!lp_json_is_given(&fallback)) return LP_OK;
  lp_side_desc *other = LP_NEW_ARRAY(reader->arena, lp_side_desc, 1);
  LP_TRY(read_half(reader, &fallback, other));
  if (!out->kernels || !other->code || other->kernels)
    return lp_json_error(&fallback, reader->diag, "wanted code for a processor, beside kernels");
  other->machine = out->machine;
  out->fallback = other;
  return LP_OK;
}

/* Tells whether all members are sides of base/side.h: a bundle of two, or of one of them. */
static bool names_sides(const lp_json *sides) {
  size_t known = 0;
  for (int i = 0; i < LP_SIDE_COUNT; i++)
    known += lp_json_member(sides, lp_side_names[i]).value != NULL;
  return known > 0 && known == lp_json_count(sides);
}

static lp_status read_two(manifest_reader *reader, const lp_json *sides) {
  reader->out->place_count = LP_SIDE_COUNT;
  for (int i = 0; i < LP_SIDE_COUNT; i++) {
    lp_json side = lp_json_member(sides, lp_side_names[i]);
    reader->out->place_name[i] = lp_side_names[i];
    if (side.value) LP_TRY(read_side(reader, &side, &reader->out->side[i]));
  }
  return LP_OK;
}

/* Other places have numbers in the order of the members. */
static lp_status read_places(manifest_reader *reader, const lp_json *sides) {
  lp_manifest *out = reader->out;
  const size_t count = lp_json_count(sides);
  if (count < 1 || count > LP_PLACES_MAX)
    return lp_json_error(sides, reader->diag, "%zu places; wanted 1 to %d", count, LP_PLACES_MAX);
  for (size_t i = 0; i < count; i++) {
    lp_json side = lp_json_entry(sides, i);
    if (!lp_place_is_name(side.key)) return lp_json_error(&side, reader->diag, "this is no name of a place");
    out->place_name[out->place_count] = lp_arena_strdup(reader->arena, side.key);
    LP_TRY(read_side(reader, &side, &out->side[out->place_count++]));
  }
  return LP_OK;
}

static lp_status read_sides(manifest_reader *reader, const lp_json *root) {
  lp_json at = lp_json_member(root, "sides");
  LP_TRY(lp_json_object(&at, reader->diag));
  LP_TRY(names_sides(&at) ? read_two(reader, &at) : read_places(reader, &at));
  lp_json tokenizer = lp_json_member(root, "tokenizer");
  return lp_json_is_given(&tokenizer) ? find_file(reader, &tokenizer, &reader->out->tokenizer) : LP_OK;
}

/* ---- states, inputs, outputs ------------------------------------------------------------------------------------- */

static lp_status read_state(manifest_reader *reader, const lp_json *at, lp_state_desc *out) {
  LP_TRY(lp_json_object(at, reader->diag));
  LP_TRY(lp_manifest_tensor(reader, at, &out->tensor));
  lp_json axis = lp_json_member(at, "append_axis");
  LP_TRY(lp_json_i32(&axis, -1, LP_MAX_RANK, &out->append_axis, reader->diag));
  const lp_poly *capacity = lp_poly_symbol(reader->arena, LP_SYM_C + 1);
  bool stays = out->append_axis < 0;
  if (!stays && (out->append_axis >= out->tensor.rank || !lp_poly_equal(out->tensor.shape[out->append_axis], capacity)))
    return lp_json_error(&axis, reader->diag, "axis %d is not the one of size 'c'", out->append_axis);
  for (int32_t i = 0; i < out->tensor.rank; i++) {
    for (int symbol = 0; symbol < reader->out->symbol_count; symbol++) {
      bool allowed =
          symbol == LP_SYM_B || (symbol == LP_SYM_C && i == out->append_axis) || (stays && symbol >= LP_SYM_COUNT);
      if (!allowed && lp_poly_has(out->tensor.shape[i], (lp_symbol)(symbol + 1)))
        return lp_json_error(at, reader->diag, "axis %d of a state may depend on 'b'%s only", i,
                             stays ? " and the model's own sizes" : "");
    }
  }
  lp_json sides = lp_json_member(at, "sides");
  for (lp_place i = 0; i < reader->out->place_count; i++)
    out->on[i] = !sides.value;
  LP_FOR_ITEMS(item, &sides) {
    lp_place side = 0;
    LP_TRY(lp_manifest_side(reader, &item, &side));
    out->on[side] = true;
  }
  return LP_OK;
}

static lp_status read_states(manifest_reader *reader, const lp_json *root) {
  lp_json at = lp_json_member(root, "states");
  LP_TRY(lp_json_array(&at, reader->diag));
  size_t count = lp_json_count(&at);
  reader->out->states = LP_NEW_ARRAY(reader->arena, lp_state_desc, count + 1);
  reader->out->state_count = (int32_t)count;
  LP_FOR_ITEMS(item, &at)
    LP_TRY(read_state(reader, &item, &reader->out->states[item.index]));
  return LP_OK;
}

static const char *const role_names[LP_ROLE_COUNT] = {[LP_ROLE_DATA] = "data",
                                                      [LP_ROLE_TOKENS] = "tokens",
                                                      [LP_ROLE_LOGITS] = "logits",
                                                      [LP_ROLE_HIDDEN] = "hidden",
                                                      [LP_ROLE_EMBEDDING] = "embedding",
                                                      [LP_ROLE_SOURCE_TOKENS] = "source_tokens",
                                                      [LP_ROLE_SOURCE_MASK] = "source_mask",
                                                      [LP_ROLE_SOURCE_FEATURES] = "source_features"};

static lp_status check_role(manifest_reader *reader, const lp_json *at, const lp_port *port) {
  lp_element dtype = port->tensor.dtype;
  bool integers = port->role == LP_ROLE_TOKENS || port->role == LP_ROLE_SOURCE_TOKENS;
  if (integers && dtype != LP_DT_I64 && dtype != LP_DT_I32)
    return lp_json_error(at, reader->diag, "tokens are i64 or i32, not %s", lp_element_name(dtype));
  bool floats = port->role == LP_ROLE_LOGITS || port->role == LP_ROLE_HIDDEN || port->role == LP_ROLE_EMBEDDING;
  if (floats && dtype != LP_DT_F32)
    return lp_json_error(at, reader->diag, "%s are f32, not %s", role_names[port->role], lp_element_name(dtype));
  return LP_OK;
}

static lp_status read_ports(manifest_reader *reader, const lp_json *root, const char *key, lp_port **out,
                            int32_t *out_count) {
  lp_json at = lp_json_member(root, key);
  LP_TRY(lp_json_array(&at, reader->diag));
  size_t count = lp_json_count(&at);
  *out = LP_NEW_ARRAY(reader->arena, lp_port, count + 1);
  *out_count = (int32_t)count;
  LP_FOR_ITEMS(item, &at) {
    lp_port *port = &(*out)[item.index];
    LP_TRY(lp_json_object(&item, reader->diag));
    LP_TRY(lp_manifest_tensor(reader, &item, &port->tensor));
    const char *text = NULL;
    LP_TRY(lp_json_text(LP_MEMBER(&item, "role"), &text, reader->diag));
    for (int role_id = 0; role_id < LP_ROLE_COUNT; role_id++)
      if (lp_streq(text, role_names[role_id])) port->role = (lp_role)role_id;
    LP_TRY(check_role(reader, &item, port));
  }
  return LP_OK;
}

/* Reads `decoder`, which only a model with an encoder has. */
static lp_status read_decoder(manifest_reader *reader, const lp_json *root) {
  lp_manifest *out = reader->out;
  lp_json decoder = lp_json_member(root, "decoder");
  if (!decoder.value) return LP_OK;
  LP_TRY(lp_json_object(&decoder, reader->diag));
  lp_json start = lp_json_member(&decoder, "start"), pad = lp_json_member(&decoder, "pad");
  LP_TRY(lp_json_array(&start, reader->diag));
  LP_TRY(lp_json_i32(&pad, 0, INT32_MAX, &out->pad, reader->diag));
  LP_TRY(lp_json_i64(LP_MEMBER(&decoder, "source_context"), 0, INT64_C(1) << 32, &out->source_context, reader->diag));
  size_t count = lp_json_count(&start);
  out->start = LP_NEW_ARRAY(reader->arena, int32_t, count + 1);
  for (; out->start_count < (int32_t)count; out->start_count++) {
    lp_json item = lp_json_item(&start, (size_t)out->start_count);
    LP_TRY(lp_json_i32(&item, 0, INT32_MAX, &out->start[out->start_count], reader->diag));
  }
  return LP_OK;
}

/* Reads `embedding`, which only a model that gives hidden states has. */
static lp_status read_embedding(manifest_reader *reader, const lp_json *root) {
  static const char *const names[LP_POOLING_COUNT] = {
      [LP_POOLING_MEAN] = "mean", [LP_POOLING_FIRST] = "first",         [LP_POOLING_LAST] = "last",
      [LP_POOLING_MAX] = "max",   [LP_POOLING_MEAN_SQRT] = "mean_sqrt", [LP_POOLING_WEIGHTED_MEAN] = "weighted_mean"};
  lp_manifest *out = reader->out;
  lp_json embedding = lp_json_member(root, "embedding");
  if (!embedding.value) return LP_OK;
  LP_TRY(lp_json_object(&embedding, reader->diag));
  lp_json pooling = lp_json_member(&embedding, "pooling"), normalise = lp_json_member(&embedding, "normalise");
  lp_json lacks = lp_json_member(&embedding, "lacks");
  out->normalises = lp_json_is_true(&normalise);
  if (lp_json_is_given(&lacks)) LP_TRY(lp_manifest_text(reader, &lacks, &out->lacks));
  for (int i = 0; i < LP_POOLING_COUNT; i++) {
    if (!lp_json_equals(&pooling, names[i])) continue;
    out->pooling = (lp_pooling)i;
    return LP_OK;
  }
  return lp_json_error(&pooling, reader->diag, "this pooling is not known");
}

static lp_status read_exit(manifest_reader *reader, const lp_json *at, const lp_exit *before, lp_exit *out) {
  LP_TRY(lp_json_object(at, reader->diag));
  lp_json layer = lp_json_member(at, "layer"), output = lp_json_member(at, "output");
  LP_TRY(lp_json_i32(&layer, before ? before->layer + 1 : 1, INT32_MAX - 1, &out->layer, reader->diag));
  LP_TRY(lp_json_i32(&output, 0, reader->out->output_count - 1, &out->output, reader->diag));
  if (reader->out->outputs[out->output].tensor.dtype == LP_DT_F32) return LP_OK;
  return lp_json_error(&output, reader->diag, "logits are f32, not %s",
                       lp_element_name(reader->out->outputs[out->output].tensor.dtype));
}

static lp_status read_exits(manifest_reader *reader, const lp_json *root) {
  lp_json at = lp_json_member(root, "exits");
  if (!at.value) return LP_OK;
  LP_TRY(lp_json_array(&at, reader->diag));
  size_t count = lp_json_count(&at);
  reader->out->exits = LP_NEW_ARRAY(reader->arena, lp_exit, count + 1);
  reader->out->exit_count = (int32_t)count;
  LP_FOR_ITEMS(item, &at)
    LP_TRY(read_exit(reader, &item, item.index > 0 ? &reader->out->exits[item.index - 1] : NULL,
                     &reader->out->exits[item.index]));
  return LP_OK;
}

static lp_status read_root(manifest_reader *reader, const lp_json *root) {
  LP_TRY(lp_json_object(root, reader->diag));
  LP_TRY(read_header(reader, root));
  LP_TRY(read_settings(reader, root));
  LP_TRY(read_symbols(reader, root));
  LP_TRY(read_files(reader, root));
  LP_TRY(read_sides(reader, root));
  LP_TRY(read_states(reader, root));
  LP_TRY(read_ports(reader, root, "inputs", &reader->out->inputs, &reader->out->input_count));
  LP_TRY(read_ports(reader, root, "outputs", &reader->out->outputs, &reader->out->output_count));
  LP_TRY(read_decoder(reader, root));
  LP_TRY(read_embedding(reader, root));
  LP_TRY(read_exits(reader, root));
  LP_TRY(lp_manifest_programs(reader, root));
  LP_TRY(lp_manifest_plans(reader, root));
  return lp_manifest_check(reader);
}

lp_status lp_manifest_parse(const char *file, const char *text, size_t size, lp_arena *arena, lp_manifest *out,
                            lp_diag *diag) {
  memset(out, 0, sizeof *out);
  out->rank_symbol = -1;
  for (int i = 0; i < LP_SIDE_COUNT; i++)
    out->side[i].ranks = 1;
  out->file = lp_arena_strdup(arena, file);
  lp_symbols_init(&out->symbols, arena);
  lp_sha256 sha;
  lp_sha256_init(&sha);
  lp_sha256_update(&sha, text, size);
  lp_sha256_hex(&sha, out->hash);
  lp_contract_compute(text, size, out->contract);
  LP_OWNED(lp_json_free_at) lp_json_document *document = NULL;
  LP_TRY(lp_json_parse(out->file, text, size, 0, &document, diag));
  manifest_reader reader = {.arena = arena, .diag = diag, .out = out};
  lp_json root = lp_json_root(out->file, document);
  return read_root(&reader, &root);
}

void lp_manifest_clear(lp_manifest *manifest) {
  lp_symbols_free(&manifest->symbols);
}
