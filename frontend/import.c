/* Chooses the reader of a model: a folder, or the ending of a file's name, decides. */
#include "base/path.h"
#include "frontend/frontend.h"
#include "frontend/gguf/gguf.h"
#include "frontend/huggingface/huggingface.h"

/* The first file of these names that the folder has, owned; NULL: none. */
static char *existing(const char *folder, const char *const *names, size_t count) {
  for (size_t i = 0; i < count; i++) {
    char *path = lp_path_join(folder, names[i]);
    if (lp_path_exists(path)) return path;
    free(path);
  }
  return NULL;
}

static bool has(const char *folder, const char *name) {
  char *found = existing(folder, &name, 1);
  free(found);
  return found != NULL;
}

/* The names of optimum, of onnxruntime-genai, and of both. Quantised files lie in the same folder as the full
 * ones, under other names. */
static const char *const decoders[] = {"decoder_model_merged.onnx", "decoder_model.onnx", "decoder.onnx", "model.onnx"};
static const char *const encoders[] = {"encoder_model.onnx", "encoder.onnx"};

bool lp_model_find_files(const char *path, char **decoder, char **encoder) {
  bool is_file = lp_has_suffix(path, ".onnx");
  char *folder = is_file ? lp_path_dir(path) : lp_strdup(path);
  const char *base = lp_path_base(path);
  *decoder = *encoder = NULL;
  if (!is_file) {
    bool has_weights = has(folder, "model.safetensors") || has(folder, "model.safetensors.index.json");
    if (!has_weights) *decoder = existing(folder, decoders, LP_COUNT(decoders));
    if (*decoder) *encoder = existing(folder, encoders, LP_COUNT(encoders));
  } else if (lp_streq(base, "decoder.onnx")) {
    *decoder = lp_strdup(path);
    *encoder = existing(folder, &encoders[1], 1);
  } else if (lp_has_prefix(base, "decoder_model")) { /* decoder_model_merged_quantized.onnx: the same ending */
    lp_buf name = {0};
    lp_buf_printf(&name, "encoder_model%s", lp_onnx_decoder_ending(base));
    *decoder = lp_strdup(path);
    *encoder = existing(folder, &(const char *){lp_buf_text(&name)}, 1);
    lp_buf_free(&name);
  }
  free(folder);
  if (*decoder && (*encoder || !is_file)) return true;
  free(*decoder);
  free(*encoder);
  *decoder = *encoder = NULL;
  return false;
}

static bool is_config(const char *path) {
  return lp_streq(lp_path_base(path), "config.json") && !lp_path_is_folder(path);
}

lp_model_form lp_model_form_of(const char *path) {
  if (lp_has_suffix(path, ".gguf")) return LP_MODEL_GGUF;
  return is_config(path) || has(path, "config.json") ? LP_MODEL_HUGGINGFACE : LP_MODEL_ONNX;
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
  if (lp_path_is_folder(path) && form == LP_MODEL_ONNX)
    return lp_error(diag, LP_LOC_FILE(path), "this folder has neither a config.json nor a model.onnx");
  if (form == LP_MODEL_ONNX) return lp_onnx_import(path, options, out, diag);
  if (options && options->binding_count > 0)
    return lp_error_as(LP_USAGE, diag, LP_LOC_FILE("--bind"), "only an ONNX model has inputs to bind");
  if (options && options->subgraph)
    return lp_error_as(LP_USAGE, diag, LP_LOC_FILE("--subgraph"), "only an ONNX model has subgraphs");
  if (form == LP_MODEL_GGUF) return lp_gguf_import(path, options && options->weights_absent_ok, out, diag);
  LP_OWNED(lp_free_at) char *folder = is_config(path) ? lp_path_dir(path) : lp_strdup(path);
  return lp_huggingface_import(folder, options ? options : &(lp_import_options){0}, out, diag);
}
