/* Tensors with data in other files. A model names the file; it may only name files of its own folder. */
#include "base/file.h"
#include "base/map.h"
#include "base/path.h"
#include "frontend/onnx/importer.h"
#include "frontend/onnx/tensor.h"

#include <errno.h>

typedef struct {
  lp_importer *im;
  const Onnx__TensorProto *tensor;
  lp_loc loc;
  const char *name;
} place;

/* Returns the value of a key that may occur only once, because readers differ in which of two they take. */
static lp_status find_entry(const place *p, const char *key, const char **out) {
  *out = NULL;
  for (size_t i = 0; i < p->tensor->n_external_data; i++) {
    if (!lp_streq(lp_text(p->tensor->external_data[i]->key), key)) continue;
    if (*out) return lp_error(p->im->diag, p->loc, "tensor '%s' has two external %ss", p->name, key);
    *out = lp_text(p->tensor->external_data[i]->value);
  }
  return LP_OK;
}

static lp_status find_number(const place *p, const char *key, int64_t otherwise, int64_t *out) {
  const char *text;
  *out = otherwise;
  LP_TRY(find_entry(p, key, &text));
  if (!text) return LP_OK;
  char *end;
  errno = 0;
  *out = strtoll(text, &end, 10);
  if (errno || text[0] < '0' || text[0] > '9' || *end)
    return lp_error(p->im->diag, p->loc, "tensor '%s': the external %s '%s' is not a size", p->name, key, text);
  return LP_OK;
}

static lp_external *open_external(lp_importer *im, const char *location) {
  lp_external *file = lp_map_get(im->external, location);
  if (file) return file;
  file = LP_NEW(im->scratch, lp_external);
  char *dir = lp_path_dir(im->path);
  file->found = lp_file_map_beneath(dir, location, &file->mapping, &file->why);
  free(dir);
  lp_map_put(im->external, location, file);
  return file;
}

lp_status lp_external_check(lp_importer *im, const Onnx__TensorProto *tensor, lp_loc loc, const char *name,
                            lp_tensor_data *out) {
  place p = {im, tensor, loc, name};
  const char *location;
  int64_t length;
  LP_TRY(find_entry(&p, "location", &location));
  if (!location) return lp_error(im->diag, loc, "tensor '%s' has external data without a location", name);
  LP_TRY(find_number(&p, "offset", 0, &out->offset));
  LP_TRY(find_number(&p, "length", out->bytes, &length));
  if (length != out->bytes) return lp_tensor_wrong_size(im, loc, name, out, (uint64_t)length);
  const lp_external *file = open_external(im, location);
  if (file->found == LP_FILE_REFUSED) {
    lp_status status = lp_error(im->diag, loc, "tensor '%s': its location '%s' %s", name, location, file->why);
    lp_note(im->diag, loc, "external data must lie in the folder of the model, reached without leaving it");
    return status;
  }
  if (file->found == LP_FILE_ABSENT && !im->options->weights_absent_ok)
    return lp_error(im->diag, loc, "tensor '%s': its file '%s' does not exist", name, location);
  bool present = file->found == LP_FILE_FOUND;
  uint64_t size = file->mapping.size, end = (uint64_t)out->offset + (uint64_t)length;
  if (present && end > size)
    return lp_error(im->diag, loc, "tensor '%s' ends at byte %" PRIu64 " of '%s', which has %" PRIu64, name, end,
                    location, size);
  out->file = lp_arena_strdup(im->scratch, location);
  if (present && length > 0 && lp_tensor_is_small(out)) out->data = file->mapping.data + out->offset;
  return LP_OK;
}

/* ---- overlaps ---- */

static int compare_regions(const void *a, const void *b) {
  const lp_region *x = a, *y = b;
  int by_file = strcmp(x->file, y->file);
  if (by_file) return by_file;
  if (x->offset != y->offset) return x->offset < y->offset ? -1 : 1;
  return x->length < y->length ? -1 : x->length > y->length;
}

/* Two tensors with the same bytes are one tensor under two names, which is common. */
static bool overlaps(const lp_region *before, const lp_region *after) {
  bool same = before->offset == after->offset && before->length == after->length;
  return lp_streq(before->file, after->file) && after->offset - before->offset < before->length && !same;
}

void lp_external_report_overlaps(lp_importer *im) {
  size_t count = 0;
  const lp_region *reach = NULL, *first[2] = {NULL, NULL};
  if (im->regions.count > 1) qsort(im->regions.data, im->regions.count, sizeof(lp_region), compare_regions);
  LP_FOR_VEC(const lp_region, r, &im->regions) {
    if (reach && overlaps(reach, r)) {
      if (count++ == 0) first[0] = reach, first[1] = r;
    }
    bool further = !reach || !lp_streq(reach->file, r->file) || r->offset - reach->offset >= reach->length - r->length;
    if (further) reach = r;
  }
  if (count == 0) return;
  lp_warning(im->diag, LP_LOC_FILE(im->path),
             "tensors '%s' and '%s' overlap in '%s' from byte %" PRId64 " on; overlaps in all: %zu", first[0]->tensor,
             first[1]->tensor, first[0]->file, first[1]->offset, count);
}
