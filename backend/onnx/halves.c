/* Writes a module as ONNX halves: the models of both programs, the places' weights, the manifest. */
#include "backend/onnx/halves.h"

#include "backend/folder.h"
#include "base/file.h"
#include "base/map.h"
#include "base/path.h"
#include "base/poly.h"

enum { PROGRAMS = 2 };

typedef struct {
  lp_module *module;
  const lp_onnx_options *options;
  lp_arena *arena;
  const char *folder;
  onnx_program program[PROGRAMS];
  onnx_store store[LP_PLACES_MAX];
  const char *const *places; /* [place_count] */
  int32_t place_count;
  lp_map *files; /* the names of the written files, for the manifest */
  lp_diag *diag;
} halves;

static lp_status write_file(const halves *h, const char *name, const lp_buf *bytes) {
  lp_map_put(h->files, name, h->files);
  return lp_folder_put(h->folder, name, bytes->data, bytes->size, h->diag);
}

/* ---- models ------------------------------------------------------------------------------------------------------ */

static lp_status write_program(halves *h, onnx_program *program) {
  LP_FOR_VEC_REFS(onnx_part, part, &program->parts)
    LP_TRY(onnx_part_write(h->module, part, &h->store[part->side], h->options->opset, h->diag));
  return LP_OK;
}

/* Prefill and decode often have the same models, which are then written once. */
static bool same_models(const onnx_program *a, const onnx_program *b) {
  if (a->parts.count != b->parts.count) return false;
  for (size_t i = 0; i < a->parts.count; i++) {
    const onnx_part *x = a->parts.data[i], *y = b->parts.data[i];
    if (x->side != y->side || x->bytes.size != y->bytes.size ||
        memcmp(x->bytes.data, y->bytes.data, x->bytes.size) != 0)
      return false;
  }
  return true;
}

/* device.onnx, cloud.onnx; a side's further turns are device.2.onnx and so on. */
static void name_models(const halves *h, onnx_program *program, bool shared) {
  LP_FOR_VEC_REFS(onnx_part, part, &program->parts) {
    const char *side = h->places[part->side];
    const char *base = shared ? side : lp_arena_format(h->arena, "%s.%s", program->name, side);
    part->file = part->turn ? lp_arena_format(h->arena, "%s.%" PRId32 ".onnx", base, part->turn + 1)
                            : lp_arena_format(h->arena, "%s.onnx", base);
  }
}

static lp_status write_models(halves *h) {
  LP_TRY(write_program(h, &h->program[0]));
  LP_TRY(write_program(h, &h->program[1]));
  bool shared = same_models(&h->program[0], &h->program[1]);
  for (int i = 0; i < PROGRAMS; i++) {
    name_models(h, &h->program[i], shared);
    for (size_t k = 0; k < h->program[i].parts.count && !(shared && i); k++)
      LP_TRY(write_file(h, h->program[i].parts.data[k]->file, &h->program[i].parts.data[k]->bytes));
  }
  return LP_OK;
}

/* ---- weights ----------------------------------------------------------------------------------------------------- */

static lp_status open_stores(halves *h) {
  for (lp_place i = 0; i < h->place_count; i++) {
    h->store[i].file = lp_arena_format(h->arena, "%s.weights", h->places[i]);
    char *path = lp_path_join(h->folder, h->store[i].file);
    lp_status status = lp_writer_open(path, &h->store[i].writer, h->diag);
    free(path);
    LP_TRY(status);
  }
  return LP_OK;
}

/* A side without weights has no data file. */
static lp_status commit_stores(halves *h) {
  for (lp_place i = 0; i < h->place_count; i++) {
    lp_writer *writer = h->store[i].writer;
    h->store[i].writer = NULL;
    if (lp_writer_offset(writer) == 0) {
      lp_writer_abandon(writer);
      continue;
    }
    LP_TRY(lp_writer_commit(writer, h->diag));
    lp_map_put(h->files, h->store[i].file, h->files);
  }
  return LP_OK;
}

static void close_stores(halves *h) {
  for (lp_place i = 0; i < h->place_count; i++) {
    lp_writer_abandon(h->store[i].writer);
    for (size_t k = 0; k < lp_map_count(h->store[i].stored); k++)
      free(lp_map_value_at(h->store[i].stored, k));
    lp_map_free(h->store[i].stored);
  }
}

/* ---- the folder -------------------------------------------------------------------------------------------------- */

static lp_status write_manifest(const halves *h) {
  const onnx_program *const programs[] = {&h->program[0], &h->program[1]};
  LP_OWNED(lp_buf_free) lp_buf text = {0};
  onnx_manifest(h->module, programs, PROGRAMS, h->options->opset, h->files, &text);
  return write_file(h, "manifest.json", &text);
}

/* The halves compute all rows of logits, as the whole model does: r becomes s. */
static lp_status all_rows(lp_module *module, lp_diag *diag) {
  lp_symbol rows = lp_symbols_find(&module->symbols, "r");
  if (!rows || lp_module_substitute(module, rows, lp_dim_symbol(module, "s"))) return LP_OK;
  return lp_error(diag, LP_LOC_FILE(module->name), "a size overflows");
}

static lp_status create_programs(halves *h) {
  static const char *const names[PROGRAMS] = {"prefill", "decode"};
  LP_TRY(all_rows(h->module, h->diag));
  for (int i = 0; i < PROGRAMS; i++) {
    const lp_op *func = lp_module_find_func(h->module, names[i]);
    if (!func) return lp_error(h->diag, LP_LOC_FILE(h->module->name), "there is no '@%s'", names[i]);
    LP_TRY(onnx_program_create(h->module, func, h->arena, &h->program[i], h->diag));
  }
  return LP_OK;
}

static lp_status fill_folder(void *user, const char *folder, lp_diag *diag) {
  halves *h = user;
  (void)diag;
  h->folder = folder;
  LP_TRY(create_programs(h));
  LP_TRY(open_stores(h));
  LP_TRY(write_models(h));
  LP_TRY(commit_stores(h));
  return write_manifest(h);
}

lp_status lp_onnx_write(lp_module *module, const lp_onnx_options *options, const char *path, lp_diag *diag) {
  halves h = {.module = module, .options = options, .arena = lp_arena_create(), .files = lp_map_create(), .diag = diag};
  h.place_count = lp_module_places(module, &h.places);
  for (lp_place i = 0; i < h.place_count; i++)
    h.store[i].stored = lp_map_create();
  lp_status status = lp_folder_write(path, fill_folder, &h, diag);
  close_stores(&h);
  for (int i = 0; i < PROGRAMS; i++)
    onnx_program_free(&h.program[i]);
  lp_map_free(h.files);
  lp_arena_free(h.arena);
  return status;
}
