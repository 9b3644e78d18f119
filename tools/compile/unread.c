/* The keys of a model's files that nothing reads: see unread.h. A file's keys are those of its text, and read is what
 * the readers of the compiler and of the runtime ask for while they read the same files. */
#include "tools/compile/unread.h"

#include "base/json/reader.h"
#include "base/map.h"
#include "base/path.h"
#include "frontend/frontend.h"
#include "runtime/runtime.h"

/* "config.json rope_parameters.factor": with the name of the file, since a bundle has copies. */
static void put_key(const lp_json *at, lp_buf *out) {
  if (at->parent) {
    put_key(at->parent, out);
    lp_buf_printf(out, "%s%s", at->parent->parent ? "." : " ", at->key ? at->key : "[]");
  } else {
    const char *name = strrchr(at->file, '/');
    lp_buf_puts(out, name ? name + 1 : at->file);
  }
}

static void note(void *user, const lp_json *asked) {
  LP_OWNED(lp_buf_free) lp_buf key = {0};
  put_key(asked, &key);
  if (!lp_map_get(user, lp_buf_text(&key))) (void)lp_map_put(user, lp_buf_text(&key), user);
}

void lp_unread_begin(lp_unread *self) {
  self->read = lp_map_create();
  lp_json_watch(note, self->read);
}

static void list(const lp_unread *self, const lp_json *object, lp_buf *out) {
  for (size_t i = 0; i < lp_json_count(object); i++) {
    const lp_json at = lp_json_entry(object, i);
    LP_OWNED(lp_buf_free) lp_buf key = {0};
    put_key(&at, &key);
    if (!lp_map_get(self->read, lp_buf_text(&key)))
      lp_buf_printf(out, "not read: %s\n", lp_buf_text(&key));
    else if (lp_json_is(&at, LP_JSON_OBJECT))
      list(self, &at, out);
  }
}

static void list_file(const lp_unread *self, const char *folder, const char *name, lp_buf *out) {
  LP_OWNED(lp_free_at) char *path = lp_path_join(folder, name);
  LP_OWNED(lp_json_free_at) lp_json_document *document = NULL;
  lp_diag *quiet = lp_diag_create(); /* a file that cannot be read is told of by its reader */
  if (lp_path_exists(path) && lp_json_load(path, LP_JSON_ALLOW_DUPLICATES, &document, quiet) == LP_OK) {
    const lp_json root = lp_json_root(path, document);
    list(self, &root, out);
  }
  lp_diag_free(quiet);
}

static void read_tokenizer(const char *folder) {
  LP_OWNED(lp_free_at) char *path = lp_path_join(folder, "tokenizer.json");
  lp_tokenizer *tokenizer = NULL;
  LP_OWNED(lp_diag_free_at) lp_diag *quiet = lp_diag_create();
  if (lp_path_exists(path) && lp_tokenizer_load(path, &tokenizer, quiet) == LP_OK) lp_tokenizer_free(tokenizer);
}

void lp_unread_end(lp_unread *self, const char *model, lp_buf *out) {
  static const char *const files[] = {"config.json", "generation_config.json", "genai_config.json",
                                      "tokenizer_config.json"};
  LP_OWNED(lp_free_at)
  char *folder = lp_model_form_of(model) == LP_MODEL_HUGGINGFACE ? lp_strdup(model) : lp_path_dir(model);
  if (out) read_tokenizer(folder);
  lp_json_watch(NULL, NULL);
  if (out && lp_model_form_of(model) == LP_MODEL_GGUF) lp_gguf_list_unread(model, out);
  for (size_t i = 0; out && i < LP_COUNT(files); i++)
    list_file(self, folder, files[i], out);
  lp_map_free(self->read);
}
