/* Chooses the reader of a model: a folder, or the ending of a file's name, decides. */
#include "base/path.h"
#include "frontend/frontend.h"
#include "frontend/gguf/gguf.h"
#include "frontend/huggingface/huggingface.h"

#include <stdlib.h>
#include <string.h>

static bool has_config(const char *path) {
  char *config = lp_path_join(path, "config.json");
  bool found = lp_path_exists(config);
  free(config);
  return found;
}

static char *existing(const char *folder, const char *name) {
  char *path = lp_path_join(folder, name);
  if (lp_path_exists(path)) return path;
  free(path);
  return NULL;
}

/* optimum's names, then those of onnxruntime-genai. Quantised files lie in the same folder as the full ones, under
 * other names. */
static char *find_decoder(const char *folder) {
  static const char *const names[] = {"decoder_model_merged.onnx", "decoder_model.onnx", "decoder.onnx"};
  char *found = NULL;
  for (size_t i = 0; i < LP_COUNT(names) && !found; i++)
    found = existing(folder, names[i]);
  return found;
}

bool lp_model_find_encoder(const char *path, char **decoder, char **encoder) {
  bool is_file = lp_has_suffix(path, ".onnx");
  char *folder = is_file ? lp_path_dir(path) : lp_strdup(path);
  const char *base = lp_path_base(path);
  *decoder = *encoder = NULL;
  if (!is_file) {
    *decoder = find_decoder(folder);
    *encoder = existing(folder, "encoder_model.onnx");
    if (!*encoder) *encoder = existing(folder, "encoder.onnx");
  } else if (lp_streq(base, "decoder.onnx")) {
    *decoder = lp_strdup(path);
    *encoder = existing(folder, "encoder.onnx");
  } else if (lp_has_prefix(base, "decoder_model")) { /* decoder_model_merged_quantized.onnx: the same ending */
    lp_buf name = {0};
    lp_buf_printf(&name, "encoder_model%s", lp_onnx_decoder_ending(base));
    *decoder = lp_strdup(path);
    *encoder = existing(folder, lp_buf_text(&name));
    lp_buf_free(&name);
  }
  free(folder);
  if (*decoder && *encoder) return true;
  free(*decoder);
  free(*encoder);
  *decoder = *encoder = NULL;
  return false;
}

lp_model_form lp_model_form_of(const char *path) {
  if (lp_has_suffix(path, ".gguf")) return LP_MODEL_GGUF;
  return has_config(path) ? LP_MODEL_HUGGINGFACE : LP_MODEL_ONNX;
}

static lp_status check_adapters(const char *path, lp_model_form form, const lp_import_options *options, lp_diag *diag) {
  if (!options || options->adapter_count == 0 || form == LP_MODEL_HUGGINGFACE) return LP_OK;
  return lp_error_as(LP_USAGE, diag, LP_LOC_FILE("--lora"),
                     "an adapter names the weights of a Hugging Face folder, and '%s' is %s", path,
                     form == LP_MODEL_GGUF ? "a GGUF file" : "an ONNX model");
}

lp_status lp_model_import(const char *path, const lp_import_options *options, lp_module **out, lp_diag *diag) {
  lp_model_form form = lp_model_form_of(path);
  LP_TRY(check_adapters(path, form, options, diag));
  if (form == LP_MODEL_ONNX) return lp_onnx_import(path, options, out, diag);
  if (options && options->binding_count > 0)
    return lp_error_as(LP_USAGE, diag, LP_LOC_FILE("--bind"), "only an ONNX model has inputs to bind");
  if (options && options->subgraph)
    return lp_error_as(LP_USAGE, diag, LP_LOC_FILE("--subgraph"), "only an ONNX model has subgraphs");
  if (form == LP_MODEL_GGUF) return lp_gguf_import(path, options && options->weights_absent_ok, out, diag);
  return lp_huggingface_import(path, options ? options : &(lp_import_options){0}, out, diag);
}
