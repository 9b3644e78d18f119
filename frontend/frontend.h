/* frontend: turns a model into a module of onnx.* operators with types. The model is an ONNX file, a Hugging Face
 * folder or a GGUF file; for the latter two it builds the graph that an exporter would write. It knows the file formats
 * and the places of weights; it knows nothing of layers, machines or code.
 */
#pragma once

#include "ir/ir.h"

/* Reads an ONNX model into a new module with one function @main: arguments are the graph's inputs (initializers are
 * llmpart.constant up to 4 KiB or for integer tensors up to 64 KiB, else llmpart.weight), results its outputs;
 * attributes `inputs` and `outputs` (strs) hold their names. Every operator's location is its ONNX node's name. Nodes
 * are put in topological order; model-local functions and an If with a constant condition are inlined; opset
 * differences are normalised to the newest form (axes as inputs, Softmax's flattening before opset 13).
 *
 * Weights are referenced, never read or copied: embedded raw data by offset in the model file, external data by its
 * location; with `weights_absent_ok` an absent external file is no error. The module maps files when asked
 * (lp_weight_data). Symbolic input dimensions become symbols: see lp_import_options. */
typedef struct lp_input_binding {
  const char *name;
  const char *value; /* "2,3,4" (numbers, true, false; "" is empty), or the path of a TensorProto that ends in .pb */
} lp_input_binding;

/* A LoRA adapter: a folder as PEFT saves it, with adapter_config.json and adapter_model.safetensors. */
typedef struct lp_adapter {
  const char *folder;
  double scale; /* of what it adds, besides the adapter's own; 1: as it was trained */
} lp_adapter;

typedef struct {
  bool weights_absent_ok;
  const lp_input_binding *bindings; /* inputs of the graph that become constants of these values */
  size_t binding_count;
  /* The import is for a generation. Constant lengths of tokens, masks and caches become symbols if the graph can
   * compute any length. An input num_logits_to_keep asks for all logits, or as an index for the last position's. A
   * decoder that takes `inputs_embeds` instead of `input_ids` is joined to its embedding (lp_onnx_find_embedding), and
   * then takes `input_ids`. */
  bool frees_lengths;
  const lp_adapter *adapters; /* merged into the weights of a Hugging Face folder, in this order */
  size_t adapter_count;
  /* For a merged decoder (use_cache_branch): import the branch without a past, and only the inputs that it reads.
   * Without this option the branch with a past is imported, and @main has the attribute "cache_switch". */
  bool without_past;
  const char *subgraph; /* imports the graph that a node of the main graph holds as the attribute of this name */
  /* The ONNX file of the encoder that computes the decoder's `encoder_hidden_states`, in the same folder; NULL: none.
   * The module computes both: @main takes the encoder's inputs as well (`encoder_input_ids` and
   * `encoder_attention_mask`, or `input_features`), and the decoder starts without a past of its own. */
  const char *encoder;
} lp_import_options;
LP_MUST_USE lp_status lp_onnx_import(const char *path, const lp_import_options *options, lp_module **out,
                                     lp_diag *diag);

/* Finds the file of the embedding of a decoder that takes `inputs_embeds`, by the names that exporters give it in the
 * decoder's folder: embed_tokens_q4.onnx of decoder_model_merged_q4.onnx, embed_tokens.onnx, embedding.onnx,
 * embeddings.onnx. The caller frees it; NULL: there is none. */
char *lp_onnx_find_embedding(const char *decoder);
/* The ending that "decoder_model_merged_q4.onnx" has in common with the other files of its precision: "_q4.onnx".
 * `base` begins with "decoder_model". */
const char *lp_onnx_decoder_ending(const char *base);

typedef enum {
  LP_MODEL_ONNX,
  LP_MODEL_HUGGINGFACE, /* a folder with a config.json */
  LP_MODEL_GGUF         /* a name that ends in .gguf */
} lp_model_form;
lp_model_form lp_model_form_of(const char *path);

/* Finds the ONNX files of a model by the names that exporters give them: model.onnx, or decoder_model.onnx and
 * encoder_model.onnx (optimum), or decoder.onnx and encoder.onnx (onnxruntime-genai). `path` is a folder without
 * safetensors, or the file of a decoder that may have an encoder. Sets `*decoder` and `*encoder` to paths that the
 * caller frees; the encoder may be NULL if `path` is a folder. False: there are no such files, and both are NULL. */
bool lp_model_find_files(const char *path, char **decoder, char **encoder);

/* Reads a model of any form. Only ONNX takes bindings and a subgraph, and only a Hugging Face folder takes adapters.
 * The module of another form has the same inputs and outputs as a decoder that optimum exports with a past, computes in
 * f32, and refers to the weights in their files; blocks of GGUF that the IR has no type for become f32 in memory. */
LP_MUST_USE lp_status lp_model_import(const char *path, const lp_import_options *options, lp_module **out,
                                      lp_diag *diag);
/* Writes the tokenizer and settings of a GGUF file as the files that accompany other models: tokenizer.json,
 * tokenizer_config.json and config.json. A tokenizer of an unsupported kind is left out with a note. */
LP_MUST_USE lp_status lp_gguf_write_companions(const char *path, const char *folder, lp_diag *diag);

/* Appends a line for each key of the file that is not read, if the file can be read. */
void lp_gguf_list_unread(const char *path, lp_buf *out);

/* One kind of operator in a file, with the number of its nodes, those of branches, loops and functions included (those
 * of functions once). */
typedef struct {
  const char *domain, *name; /* "ai.onnx", "MatMul" */
  int64_t opset, count;      /* opset 0: the file declares none for the domain */
  bool is_function;          /* a function of the model, which the importer inlines */
  bool is_built;             /* the IR has no such operator, and the importer builds others for it */
  bool is_known;             /* `kind` is the operator of the IR */
  lp_kind kind;
} lp_operator_count;
/* Lists the operators in order of first appearance, in `arena`. */
LP_MUST_USE lp_status lp_onnx_census(const char *path, const lp_import_options *options, lp_arena *arena,
                                     lp_operator_count **out, size_t *count, lp_diag *diag);

/* Lists the names of the graph's inputs that are not initializers, in order, in `arena`. */
LP_MUST_USE lp_status lp_onnx_input_names(const char *path, lp_arena *arena, const char *const **names, size_t *count,
                                          lp_diag *diag);

/* Reads an ONNX TensorProto file (test data `input_0.pb`). The array's data lives in `arena`; `name` may become
 * NULL. */
LP_MUST_USE lp_status lp_onnx_read_tensor(const char *path, lp_arena *arena, lp_array *out, const char **name,
                                          lp_diag *diag);
