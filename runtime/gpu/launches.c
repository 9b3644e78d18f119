/* Reads launches.json. */
#include "base/json/reader.h"
#include "base/poly.h"
#include "runtime/gpu/api.h"
#include "runtime/gpu/gpu.h"

enum { MOST_THREADS = 1024, MOST_REFS = 1024, MOST_BUFFERS = 1 << 20 };

const lp_gpu_api *lp_gpu_api_find(const char *language) {
  static const lp_gpu_api *const all[] = {&lp_gpu_cuda, &lp_gpu_opencl};
  for (size_t i = 0; i < LP_COUNT(all); i++)
    if (lp_streq(all[i]->language, language)) return all[i];
  return NULL;
}

typedef struct {
  lp_arena *arena;
  lp_gpu_table *out;
  lp_diag *diag;
} reader;

static lp_status read_size(reader *r, const lp_json *array, size_t index, const lp_poly **out) {
  return lp_json_poly(LP_ITEM(array, index), r->arena, &r->out->symbols, out, r->diag);
}

static lp_status read_number(reader *r, const lp_json *array, size_t index, int64_t least, int64_t *out) {
  return lp_json_i64(LP_ITEM(array, index), least, INT64_MAX, out, r->diag);
}

static bool member_is_true(const lp_json *object, const char *key) {
  return lp_json_is_true(LP_MEMBER(object, key));
}

static bool item_is_true(const lp_json *array, size_t index) {
  return lp_json_is_true(LP_ITEM(array, index));
}

/* ---- launchers --------------------------------------------------------------------------------------------------- */

static lp_status read_arg(reader *r, const lp_json *at, lp_gpu_launcher *launcher, lp_gpu_arg *out) {
  out->moving = -1;
  if (lp_json_is(at, LP_JSON_NULL)) {
    out->kind = LP_GPU_ARG_NULL;
  } else if (lp_json_is_true(at)) {
    out->kind = LP_GPU_ARG_SCRATCH;
  } else if (lp_json_is(at, LP_JSON_INTEGER)) {
    out->kind = LP_GPU_ARG_REF;
    LP_TRY(lp_json_i32(at, 0, MOST_REFS, &out->ref, r->diag));
    if (out->ref >= launcher->refs) launcher->refs = out->ref + 1;
  } else {
    out->kind = LP_GPU_ARG_SIZE;
    return lp_json_poly(at, r->arena, &r->out->symbols, &out->size, r->diag);
  }
  return LP_OK;
}

static lp_status read_axis(reader *r, const lp_json *launch, const char *key, lp_gpu_axis *out) {
  lp_json at = lp_json_member(launch, key);
  LP_TRY(read_size(r, &at, 0, &out->size));
  return read_number(r, &at, 1, 1, &out->per);
}

/* The number of a word. */
static lp_status read_word(reader *r, const lp_json *object, const char *key, const char *const *words, int32_t count,
                           int32_t *out) {
  lp_json at = lp_json_member(object, key);
  const char *text = NULL;
  LP_TRY(lp_json_text(&at, &text, r->diag));
  for (int32_t i = 0; i < count; i++)
    if (lp_streq(words[i], text)) return *out = i, LP_OK;
  return lp_json_error(&at, r->diag, "'%.40s' is no %s that is known", text, key);
}

static lp_status read_product(reader *r, const lp_json *at, lp_gpu_launch *out) {
  static const char *const types[] = {[LP_GPU_F32] = "f32", [LP_GPU_F16] = "f16", [LP_GPU_BF16] = "bf16"};
  static const char *const epilogues[] = {
      [LP_GPU_PLAIN] = "none", [LP_GPU_RELU] = "relu", [LP_GPU_GELU_TANH] = "gelu_tanh"};
  lp_gpu_product_kind *kind = LP_NEW(r->arena, lp_gpu_product_kind);
  int32_t type = 0, epilogue = 0, times = 0;
  LP_TRY(lp_json_i64(LP_MEMBER(at, "n"), 1, INT32_MAX, &kind->n, r->diag));
  LP_TRY(lp_json_i64(LP_MEMBER(at, "k"), 1, INT32_MAX, &kind->k, r->diag));
  LP_TRY(lp_json_i32(LP_MEMBER(at, "scale"), 1, 1 << 20, &times, r->diag));
  LP_TRY(read_word(r, at, "type", types, LP_COUNT(types), &type));
  LP_TRY(read_word(r, at, "epilogue", epilogues, LP_COUNT(epilogues), &epilogue));
  kind->scale = (float)times;
  kind->type = (lp_gpu_type)type;
  kind->epilogue = (lp_gpu_epilogue)epilogue;
  out->product = kind;
  out->by = LP_GPU_BY_LIBRARY;
  return LP_OK;
}

/* A product takes memory for x, w, y, optional memory for bias and `add`, and two or three sizes. */
static lp_status check_product(reader *r, const lp_json *args, const lp_gpu_launch *launch) {
  bool fits = launch->arg_count == LP_GPU_PRODUCT_ARGS || launch->arg_count == LP_GPU_W_BEGIN;
  for (int32_t i = 0; i < launch->arg_count && fits; i++) {
    lp_gpu_arg_kind kind = launch->arg[i].kind;
    bool optional = i == LP_GPU_BIAS || i == LP_GPU_ADD;
    fits = (kind == LP_GPU_ARG_SIZE) == (i >= LP_GPU_ROWS) && (kind != LP_GPU_ARG_NULL || optional);
  }
  fits = fits && (launch->product->epilogue == LP_GPU_PLAIN || launch->arg[LP_GPU_ADD].kind == LP_GPU_ARG_NULL);
  return fits ? LP_OK : lp_json_error(args, r->diag, "a product takes x, w, bias, add, y, rows, begin[, w_begin]");
}

static lp_status read_kernel(reader *r, const lp_json *at, lp_gpu_launch *out) {
  lp_json library = lp_json_member(at, "library");
  LP_TRY(lp_json_text(LP_MEMBER(at, "kernel"), &out->kernel, r->diag));
  out->kernel = lp_arena_strdup(r->arena, out->kernel);
  LP_TRY(lp_json_i32(LP_MEMBER(at, "threads"), 1, MOST_THREADS, &out->threads, r->diag));
  if (library.value) out->by = lp_json_is_true(&library) ? LP_GPU_BY_LIBRARY : LP_GPU_BY_KERNEL;
  LP_TRY(read_axis(r, at, "x", &out->axis[0]));
  return read_axis(r, at, "y", &out->axis[1]);
}

static lp_status read_launch(reader *r, const lp_json *at, lp_gpu_launcher *launcher, lp_gpu_launch *out) {
  lp_json when = lp_json_member(at, "when"), args = lp_json_member(at, "args"), sm = lp_json_member(at, "sm");
  lp_json product = lp_json_member(at, "product");
  LP_TRY(product.value ? read_product(r, &product, out) : read_kernel(r, at, out));
  if (when.value) {
    LP_TRY(read_size(r, &when, 0, &out->few));
    LP_TRY(read_number(r, &when, 1, 0, &out->least));
    LP_TRY(read_number(r, &when, 2, 0, &out->most));
  }
  if (sm.value) {
    LP_TRY(lp_json_i32(LP_ITEM(&sm, 0), 0, INT32_MAX, &out->least_sm, r->diag));
    LP_TRY(lp_json_i32(LP_ITEM(&sm, 1), 1, INT32_MAX, &out->most_sm, r->diag));
  }
  out->spare = member_is_true(at, "spare");
  out->spread = member_is_true(at, "spread");
  LP_TRY(lp_json_array(&args, r->diag));
  size_t count = lp_json_count(&args);
  if (count > LP_GPU_MOST_ARGS)
    return lp_json_error(&args, r->diag, "%zu arguments; at most %d", count, LP_GPU_MOST_ARGS);
  out->arg = LP_NEW_ARRAY(r->arena, lp_gpu_arg, count + 1);
  out->arg_count = (int32_t)count;
  LP_FOR_ITEMS(arg, &args)
    LP_TRY(read_arg(r, &arg, launcher, &out->arg[arg.index]));
  return out->product ? check_product(r, &args, out) : LP_OK;
}

static lp_status read_launcher(reader *r, const lp_json *at, lp_gpu_launcher *out) {
  LP_TRY(lp_json_array(at, r->diag));
  out->launch = LP_NEW_ARRAY(r->arena, lp_gpu_launch, lp_json_count(at) + 1);
  out->count = (int32_t)lp_json_count(at);
  for (int32_t i = 0; i < out->count; i++) {
    lp_json item = lp_json_item(at, (size_t)i);
    LP_TRY(lp_json_object(&item, r->diag));
    LP_TRY(read_launch(r, &item, out, &out->launch[i]));
  }
  return LP_OK;
}

static lp_status read_launchers(reader *r, const lp_json *root) {
  lp_json at = lp_json_member(root, "launchers");
  LP_TRY(lp_json_array(&at, r->diag));
  r->out->launcher = LP_NEW_ARRAY(r->arena, lp_gpu_launcher, lp_json_count(&at) + 1);
  r->out->launcher_count = (int32_t)lp_json_count(&at);
  for (int32_t i = 0; i < r->out->launcher_count; i++)
    LP_TRY(read_launcher(r, LP_ITEM(&at, (size_t)i), &r->out->launcher[i]));
  return LP_OK;
}

/* ---- layouts ----------------------------------------------------------------------------------------------------- */

static lp_status read_slots(reader *r, const lp_json *at, lp_gpu_layout *out) {
  lp_json sizes = lp_json_member(at, "sizes"), slot = lp_json_member(at, "slot");
  LP_TRY(lp_json_array(&sizes, r->diag));
  LP_TRY(lp_json_array(&slot, r->diag));
  if (lp_json_count(&slot) > MOST_BUFFERS || lp_json_count(&sizes) > lp_json_count(&slot))
    return lp_json_error(&slot, r->diag, "%zu buffers in %zu slots", lp_json_count(&slot), lp_json_count(&sizes));
  out->slots = (int32_t)lp_json_count(&sizes);
  out->buffers = (int32_t)lp_json_count(&slot);
  out->sizes = LP_NEW_ARRAY(r->arena, lp_gpu_slot, (size_t)out->slots + 1);
  out->slot = LP_NEW_ARRAY(r->arena, int32_t, (size_t)out->buffers + 1);
  for (int32_t i = 0; i < out->slots; i++) {
    lp_json list = lp_json_item(&sizes, (size_t)i);
    LP_TRY(lp_json_array(&list, r->diag));
    out->sizes[i].count = (int32_t)lp_json_count(&list);
    out->sizes[i].size = LP_NEW_ARRAY(r->arena, const lp_poly *, lp_json_count(&list) + 1);
    for (int32_t k = 0; k < out->sizes[i].count; k++)
      LP_TRY(read_size(r, &list, (size_t)k, &out->sizes[i].size[k]));
  }
  for (int32_t i = 0; i < out->buffers; i++)
    LP_TRY(lp_json_i32(LP_ITEM(&slot, (size_t)i), 0, out->slots - 1, &out->slot[i], r->diag));
  return LP_OK;
}

static lp_status read_layout(reader *r, const lp_json *at, lp_gpu_layout *out) {
  lp_json scratch = lp_json_member(at, "scratch");
  LP_TRY(lp_json_object(at, r->diag));
  LP_TRY(read_slots(r, at, out));
  LP_TRY(lp_json_array(&scratch, r->diag));
  out->scratch_count = (int32_t)lp_json_count(&scratch);
  out->scratch = LP_NEW_ARRAY(r->arena, lp_gpu_scratch, lp_json_count(&scratch) + 1);
  for (int32_t i = 0; i < out->scratch_count; i++) {
    lp_json item = lp_json_item(&scratch, (size_t)i);
    LP_TRY(read_size(r, &item, 0, &out->scratch[i].bytes));
    LP_TRY(read_size(r, &item, 1, &out->scratch[i].few));
    LP_TRY(read_number(r, &item, 2, 0, &out->scratch[i].most));
    out->scratch[i].library = item_is_true(&item, 3);
  }
  return LP_OK;
}

static lp_status read_layouts(reader *r, const lp_json *root) {
  lp_json at = lp_json_member(root, "layouts");
  LP_TRY(lp_json_object(&at, r->diag));
  r->out->layout = LP_NEW_ARRAY(r->arena, lp_gpu_layout, lp_json_count(&at) + 1);
  for (size_t i = 0; i < lp_json_count(&at); i++) {
    lp_gpu_layout *layout = &r->out->layout[r->out->layout_count++];
    lp_json item = lp_json_entry(&at, i);
    layout->name = lp_arena_strdup(r->arena, item.key);
    LP_TRY(read_layout(r, &item, layout));
  }
  return LP_OK;
}

/* ---- segments ---------------------------------------------------------------------------------------------------- */

/* Reads the "+s*256" of "b3+s*256". */
static bool read_rows(const char *text, lp_gpu_ref *out) {
  char *end = NULL;
  if (out->place != LP_GPU_BUFFER || text[0] != '+' || (text[1] != 's' && text[1] != 'r') || text[2] != '*')
    return false;
  out->holds = text[1] == 's' ? LP_GPU_NEW_ROWS : LP_GPU_LAST_ROWS;
  out->bytes = strtol(text + 3, &end, 10);
  return end != text + 3 && *end == '\0' && out->bytes > 0;
}

/* Reads "b3", "b3+s*256", "s0", or [offset, bytes] of a weight. */
static lp_status read_ref(reader *r, const lp_json *at, lp_gpu_ref *out) {
  if (lp_json_is(at, LP_JSON_ARRAY)) {
    out->place = LP_GPU_WEIGHT;
    LP_TRY(read_number(r, at, 0, 0, &out->index));
    return read_number(r, at, 1, 0, &out->bytes);
  }
  const char *text = NULL;
  char *end = NULL;
  LP_TRY(lp_json_text(at, &text, r->diag));
  out->place = text[0] == 's' ? LP_GPU_STATE : LP_GPU_BUFFER;
  if (text[0] != '\0') out->index = strtol(text + 1, &end, 10);
  if ((text[0] == 'b' || text[0] == 's') && end != text + 1 && out->index >= 0 && (*end == '\0' || read_rows(end, out)))
    return LP_OK;
  return lp_json_error(at, r->diag, "'%.40s' is no buffer and no state", text);
}

static lp_status read_call(reader *r, const lp_json *at, lp_gpu_call *out) {
  int32_t launcher = 0;
  LP_TRY(lp_json_array(at, r->diag));
  LP_TRY(lp_json_i32(LP_ITEM(at, 0), 0, r->out->launcher_count - 1, &launcher, r->diag));
  out->launcher = &r->out->launcher[launcher];
  out->joint = item_is_true(at, 1);
  size_t first = out->joint ? 2 : 1;
  out->ref_count = (int32_t)(lp_json_count(at) - first);
  if (out->ref_count < out->launcher->refs || out->ref_count > MOST_REFS)
    return lp_json_error(at, r->diag, "%d operands; its launches take %d", out->ref_count, out->launcher->refs);
  out->ref = LP_NEW_ARRAY(r->arena, lp_gpu_ref, (size_t)out->ref_count + 1);
  for (int32_t i = 0; i < out->ref_count; i++)
    LP_TRY(read_ref(r, LP_ITEM(at, (size_t)i + first), &out->ref[i]));
  return LP_OK;
}

static lp_status read_segments(reader *r, const lp_json *root) {
  lp_json at = lp_json_member(root, "segments");
  LP_TRY(lp_json_object(&at, r->diag));
  r->out->segment = LP_NEW_ARRAY(r->arena, lp_gpu_segment, lp_json_count(&at) + 1);
  for (size_t k = 0; k < lp_json_count(&at); k++) {
    lp_gpu_segment *segment = &r->out->segment[r->out->segment_count++];
    lp_json calls = lp_json_entry(&at, k);
    segment->name = lp_arena_strdup(r->arena, calls.key);
    LP_TRY(lp_json_array(&calls, r->diag));
    segment->count = (int32_t)lp_json_count(&calls);
    segment->call = LP_NEW_ARRAY(r->arena, lp_gpu_call, lp_json_count(&calls) + 1);
    for (int32_t i = 0; i < segment->count; i++)
      LP_TRY(read_call(r, LP_ITEM(&calls, (size_t)i), &segment->call[i]));
  }
  return LP_OK;
}

/* ---- whole ------------------------------------------------------------------------------------------------------- */

static lp_status read_root(reader *r, const lp_json *root) {
  lp_json schema = lp_json_member(root, "schema"), language = lp_json_member(root, "language");
  lp_json symbols = lp_json_member(root, "symbols");
  const char *text = NULL;
  LP_TRY(lp_json_text(&schema, &text, r->diag));
  if (!lp_streq(text, "llmpart.launches/1"))
    return lp_json_error(&schema, r->diag, "wanted 'llmpart.launches/1', found '%.60s'", text);
  LP_TRY(lp_json_text(&language, &text, r->diag));
  if (!lp_gpu_api_find(text))
    return lp_json_error(&language, r->diag, "wanted 'cuda' or 'opencl', found '%.60s'", text);
  r->out->language = lp_arena_strdup(r->arena, text);
  LP_TRY(lp_json_array(&symbols, r->diag));
  LP_FOR_ITEMS(item, &symbols) {
    LP_TRY(lp_json_text(&item, &text, r->diag));
    if (lp_symbols_intern(&r->out->symbols, text) != item.index + 1)
      return lp_json_error(&item, r->diag, "'%.40s' is listed twice, or one too many", text);
  }
  r->out->sequences = member_is_true(root, "sequences");
  r->out->overlapping = member_is_true(root, "overlapping");
  r->out->profiled = member_is_true(root, "profiled");
  LP_TRY(read_launchers(r, root));
  LP_TRY(read_layouts(r, root));
  return read_segments(r, root);
}

lp_status lp_gpu_table_parse(const char *file, const char *text, size_t size, lp_arena *arena, lp_gpu_table *out,
                             lp_diag *diag) {
  LP_OWNED(lp_json_free_at) lp_json_document *document = NULL;
  *out = (lp_gpu_table){0};
  lp_symbols_init(&out->symbols, arena);
  LP_TRY(lp_json_parse(file, text, size, 0, &document, diag));
  reader r = {arena, out, diag};
  lp_json root = lp_json_root(file, document);
  return read_root(&r, &root);
}

void lp_gpu_table_clear(lp_gpu_table *table) {
  lp_symbols_free(&table->symbols);
}
