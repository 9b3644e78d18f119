/* Writes a bundle folder: every place's code and weights, plan, report, tokenizer, and the manifest that lists them. */
#include "backend/bundle/bundle_internal.h"

#include "backend/folder.h"
#include "backend/values.h"
#include "base/companions.h"
#include "base/dir.h"
#include "base/file.h"
#include "base/path.h"
#include "base/side.h"

static lp_status write_text(bundle *b, const char *name, const char *text, size_t size, lp_diag *diag) {
  LP_TRY(lp_folder_put(b->folder, name, text, size, diag));
  lp_bundle_add_file(b, name, text, size);
  return LP_OK;
}

static lp_status copy_file(bundle *b, const char *from, const char *name, lp_diag *diag) {
  lp_mapping mapping;
  LP_TRY(lp_file_map(from, &mapping, diag));
  lp_status status = write_text(b, name, (const char *)mapping.data, mapping.size, diag);
  lp_file_unmap(&mapping);
  return status;
}

/* ---- sides ------------------------------------------------------------------------------------------------------- */

/* Tells whether the place runs operators, or holds buffers or caches. */
static bool side_is_used(const lp_module *module, lp_place side) {
  LP_FOR_FUNCS(func, module) {
    const lp_attr *slots = lp_func_place_attr(func, "slot", side);
    if (slots && slots->count > 0) return true;
    LP_FOR_OPS(op, func->region) {
      if (lp_op_is_run(op) && lp_op_at(op) == side) return true;
      if (op->kind == LP_OP_COMM_KV_MOVE && lp_op_place(op, "to") == side) return true;
    }
  }
  return false;
}

static const char *name_file(const bundle *b, const bundle_side *side, const char *file) {
  return lp_arena_format(b->arena, "%s/%s", b->places[side->side], file);
}

/* Describes the other form of a half with kernels: code for a processor. */
static lp_status describe_fallback(bundle *b, bundle_side *side, lp_diag *diag) {
  const lp_emit_options *options = &b->request->fallback[side->side];
  if (!side->kernels_path || !options->march) return LP_OK;
  bundle_side *other = LP_NEW_ARRAY(b->arena, bundle_side, 1);
  *other = (bundle_side){.side = side->side, .backend = lp_backend_find("cpu"), .options = *options, .present = true};
  LP_TRY(other->backend->describe(b->module, &other->options, b->arena, &other->code, diag));
  other->code_path = name_file(b, side, "fallback.so");
  if (other->code.weight_bytes > 0) other->weights_path = name_file(b, side, "fallback.safetensors");
  side->fallback = other;
  return LP_OK;
}

static void name_shards(bundle *b, bundle_side *side) {
  side->shard_path = LP_NEW_ARRAY(b->arena, const char *, side->ranks);
  for (int64_t i = 0; i < side->ranks; i++)
    side->shard_path[i] = name_file(b, side, lp_arena_format(b->arena, "weights.%" PRId64 ".safetensors", i));
}

/* Describes the code and names the files, before any of them is written. */
static lp_status describe_side(bundle *b, bundle_side *side, lp_diag *diag) {
  if (!side->present) return LP_OK;
  const lp_backend *backend = side->backend;
  if (side->ranks > 1 && !backend->sharded)
    return lp_error(diag, LP_LOC_FILE(backend->name),
                    "a half for %" PRId64 " ranks is code for processors or for CUDA: 'cpu' or 'cuda'", side->ranks);
  LP_TRY(backend->describe(b->module, &side->options, b->arena, &side->code, diag));
  if (!backend->emits_code) return LP_OK;
  side->code_path = name_file(b, side, backend->kernels ? "launches.json" : "model.so");
  if (backend->kernels) side->kernels_path = name_file(b, side, backend->kernels);
  if (side->ranks > 1 && side->code.weight_bytes > 0) {
    name_shards(b, side);
    return LP_OK;
  }
  if (side->code.weight_bytes > 0) side->weights_path = name_file(b, side, "weights.safetensors");
  return describe_fallback(b, side, diag);
}

static lp_status write_form(bundle *b, const bundle_side *side, lp_emit_form form, const char *name, lp_diag *diag) {
  LP_OWNED(lp_buf_free) lp_buf code = {0};
  LP_TRY(side->backend->emit(b->module, &side->options, form, &code, diag));
  return write_text(b, name, lp_buf_text(&code), code.size, diag);
}

static lp_status write_code(bundle *b, const bundle_side *side, lp_diag *diag) {
  if (!side->kernels_path) return write_form(b, side, LP_EMIT_SHARED, side->code_path, diag);
  LP_TRY(write_form(b, side, LP_EMIT_KERNELS, side->kernels_path, diag));
  return write_form(b, side, LP_EMIT_LAUNCHES, side->code_path, diag);
}

static lp_status write_weights(bundle *b, const bundle_side *side, lp_diag *diag) {
  lp_status status = LP_OK;
  if (side->weights_path) return lp_bundle_write_weights(b, side, side->weights_path, diag);
  for (int64_t i = 0; side->shard_path && i < side->ranks && status == LP_OK; i++) {
    b->module->rank = i;
    status = lp_bundle_write_weights(b, side, side->shard_path[i], diag);
  }
  b->module->rank = 0;
  return status;
}

static lp_status write_fallback(bundle *b, bundle_side *other, lp_diag *diag) {
  if (!other) return LP_OK;
  other->options.contract = b->contract;
  LP_TRY(write_code(b, other, diag));
  return write_weights(b, other, diag);
}

static lp_status write_side(bundle *b, bundle_side *side, lp_diag *diag) {
  if (!side->code_path) return LP_OK;
  side->options.contract = b->contract;
  LP_TRY(lp_bundle_make_folder(b, b->places[side->side], diag));
  lp_bundle_report_progress(b, b->places[side->side], "code");
  LP_TRY(write_code(b, side, diag));
  LP_TRY(write_weights(b, side, diag));
  return write_fallback(b, side->fallback, diag);
}

/* ---- report, plan, tokenizer ------------------------------------------------------------------------------------ */

static lp_status write_plan(bundle *b, lp_diag *diag) {
  LP_OWNED(lp_buf_free) lp_buf text = {0};
  lp_module_print(b->module, false, &text);
  return write_text(b, "plan.mlir", lp_buf_text(&text), text.size, diag);
}

/* Copies the file of this name, if the folder has it. */
static lp_status write_companion(bundle *b, const char *folder, const char *name, lp_diag *diag) {
  LP_OWNED(lp_free_at) char *from = lp_path_join(folder, name), *inner = lp_path_dir(name);
  lp_status status = LP_OK;
  if (lp_path_exists(from)) {
    if (strchr(name, '/')) status = lp_bundle_make_folder(b, inner, diag);
    if (status == LP_OK) status = copy_file(b, from, name, diag);
  }
  return status;
}

static lp_status write_tokenizer(bundle *b, lp_diag *diag) {
  const char *from = b->request->tokenizer;
  if (!from) return LP_OK;
  LP_TRY(copy_file(b, from, "tokenizer.json", diag));
  LP_OWNED(lp_free_at) char *folder = lp_path_dir(from);
  lp_status status = LP_OK;
  for (size_t i = 0; i < LP_TOKENIZER_COMPANIONS && status == LP_OK; i++)
    status = write_companion(b, folder, lp_tokenizer_companions[i], diag);
  return status;
}

static lp_status write_all(bundle *b, lp_diag *diag) {
  lp_bundle_read_settings(b->request->folder, &b->settings, diag);
  for (lp_place i = 0; i < b->place_count; i++)
    LP_TRY(describe_side(b, &b->side[i], diag));
  LP_TRY(lp_bundle_manifest_begin(b, diag));
  lp_bundle_begin_weights(b, diag);
  const uint64_t all = lp_bundle_weight_bytes(b, true);
  LP_TRY(lp_dir_check_space(b->folder, all > b->weights_done ? all - b->weights_done : 0, diag));
  for (lp_place i = 0; i < b->place_count; i++)
    LP_TRY(write_side(b, &b->side[i], diag));
  lp_bundle_end_weights(b);
  LP_TRY(write_plan(b, diag));
  if (b->request->report_json)
    LP_TRY(write_text(b, "report.json", b->request->report_json, strlen(b->request->report_json), diag));
  LP_TRY(write_tokenizer(b, diag));
  lp_bundle_manifest_end(b);
  return lp_folder_put(b->folder, "manifest.json", b->manifest.data, b->manifest.size, diag);
}

/* ---- the bundle -------------------------------------------------------------------------------------------------- */

static lp_status fill_folder(void *user, const char *folder, lp_diag *diag) {
  bundle *b = user;
  b->folder = folder;
  LP_TRY(write_all(b, diag));
  return b->request->check ? b->request->check(b->request->checked, folder, diag) : LP_OK;
}

lp_status lp_bundle_write(lp_module *module, const lp_bundle_request *request, const char *path, lp_diag *diag) {
  bundle b = {.module = module, .request = request, .arena = lp_arena_create(), .kept = lp_map_create()};
  b.place_count = lp_module_places(module, &b.places);
  for (lp_place i = 0; i < b.place_count; i++) {
    b.side[i] = (bundle_side){.side = i, .backend = request->backend[i], .options = request->options[i]};
    b.side[i].ranks = i == LP_SIDE_CLOUD ? lp_op_i64(module->op, "llmpart.ranks", 1) : 1;
    b.side[i].present = b.side[i].backend && side_is_used(module, b.side[i].side);
  }
  b.left = lp_dir_claim_left(path);
  lp_status status = lp_folder_write(path, fill_folder, &b, diag);
  if (b.journal) (void)fclose(b.journal);
  lp_dir_abandon(b.left);
  free(b.left);
  lp_map_free(b.kept);
  lp_vec_free(&b.settings.stops);
  lp_vec_free(&b.settings.start);
  lp_buf_free(&b.manifest);
  lp_arena_free(b.arena);
  return status;
}
