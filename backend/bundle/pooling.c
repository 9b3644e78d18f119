/* Reads the way from hidden states to the embedding of a text from the files of sentence-transformers beside the model:
 * modules.json names the modules after the transformer, and the folder of the pooling has its config.json. */
#include "backend/bundle/bundle_internal.h"
#include "base/json/reader.h"
#include "base/path.h"

/* The document of a file; NULL: there is none, or it is no JSON, which a note says. */
static lp_json_document *open_file(const char *path, lp_diag *diag) {
  lp_json_document *document = NULL;
  LP_OWNED(lp_diag_free_at) lp_diag *own = lp_diag_create();
  if (lp_path_exists(path) && lp_json_load(path, LP_JSON_ALLOW_DUPLICATES, &document, own) != LP_OK)
    lp_note(diag, LP_LOC_FILE(path), "not used: %s", lp_diag_count(own) > 0 ? lp_diag_get(own, 0)->text : "");
  return document;
}

/* ---- pooling ----------------------------------------------------------------------------------------------------- */

/* The names of sentence-transformers: as a flag each, or as the value of `pooling_mode`. */
static const struct {
  const char *flag, *mode, *name;
} modes[] = {{"pooling_mode_cls_token", "cls", "first"},
             {"pooling_mode_lasttoken", "lasttoken", "last"},
             {"pooling_mode_max_tokens", "max", "max"},
             {"pooling_mode_mean_tokens", "mean", "mean"},
             {"pooling_mode_mean_sqrt_len_tokens", "mean_sqrt_len_tokens", "mean_sqrt"},
             {"pooling_mode_weightedmean_tokens", "weightedmean", "weighted_mean"}};

static void read_pooling(const char *path, bundle_settings *out, lp_diag *diag) {
  lp_json_document *document = open_file(path, diag);
  if (!document) return;
  lp_json root = lp_json_root(path, document), named = lp_json_member(&root, "pooling_mode");
  int found = 0;
  for (size_t i = 0; i < LP_COUNT(modes); i++) {
    if (!lp_json_is_true(LP_MEMBER(&root, modes[i].flag)) && !lp_json_equals(&named, modes[i].mode)) continue;
    out->pooling = modes[i].name;
    found++;
  }
  if (found != 1) out->lacks = found == 0 ? "a kind of pooling that is not known" : "several kinds of pooling";
  lp_json_free(document);
}

/* ---- modules ----------------------------------------------------------------------------------------------------- */

/* "Pooling" of "sentence_transformers.models.Pooling". */
static const char *class_of(const lp_json *module) {
  const char *text = lp_json_text_or(LP_MEMBER(module, "type"), ""), *dot = strrchr(text, '.');
  return dot ? dot + 1 : text;
}

static void read_module(const char *folder, const lp_json *module, bundle_settings *out, lp_diag *diag) {
  const char *class = class_of(module);
  lp_json at = lp_json_member(module, "path");
  if (lp_streq(class, "Transformer")) return;
  if (lp_streq(class, "Normalize")) {
    out->normalises = true;
  } else if (lp_streq(class, "Pooling")) {
    char *dir = lp_path_join(folder, lp_json_text_or(&at, "1_Pooling")), *path = lp_path_join(dir, "config.json");
    read_pooling(path, out, diag);
    free(path);
    free(dir);
  } else if (lp_streq(class, "Dense")) {
    out->lacks = "a dense layer after the pooling";
  } else {
    out->lacks = "a module of modules.json that is not known";
  }
}

/* Texts are lower-cased before the tokenizer sees them. */
static void read_case(const char *folder, bundle_settings *out, lp_diag *diag) {
  LP_OWNED(lp_free_at) char *path = lp_path_join(folder, "sentence_bert_config.json");
  LP_OWNED(lp_json_free_at) lp_json_document *document = open_file(path, diag);
  if (document) {
    lp_json root = lp_json_root(path, document), lower = lp_json_member(&root, "do_lower_case");
    if (lp_json_is_true(&lower)) out->lacks = "the lower case of texts (do_lower_case)";
  }
}

static void read_modules(const char *folder, bundle_settings *out, lp_diag *diag) {
  LP_OWNED(lp_free_at) char *path = lp_path_join(folder, "modules.json");
  LP_OWNED(lp_json_free_at) lp_json_document *document = open_file(path, diag);
  if (document) {
    lp_json root = lp_json_root(path, document);
    for (size_t i = 0; lp_json_is(&root, LP_JSON_ARRAY) && i < lp_json_count(&root); i++)
      read_module(folder, LP_ITEM(&root, i), out, diag);
    read_case(folder, out, diag);
  }
}

/* sentence-transformers keeps its ONNX files in a folder of their own below that of modules.json. */
void lp_bundle_read_pooling(const char *folder, bundle_settings *out, lp_diag *diag) {
  out->pooling = "mean";
  if (!folder) return;
  LP_OWNED(lp_free_at) char *modules = lp_path_join(folder, "modules.json"), *up = lp_path_dir(folder);
  bool above = !lp_path_exists(modules) && lp_streq(lp_path_base(folder), "onnx");
  read_modules(above ? up : folder, out, diag);
}
