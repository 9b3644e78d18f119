/* frontend/gguf: reads a GGUF file into a module, and its tokenizer into the files of a Hugging Face folder. It knows
 * the format and the names of llama.cpp; frontend/decoder builds the graph. */
#pragma once

#include "frontend/decoder/rotary.h"
#include "frontend/gguf/file.h"

/* Reads the metadata into a description of the model, in `arena`. An unknown key of the architecture is an error. */
LP_MUST_USE lp_status lp_gguf_config(const lp_gguf *file, lp_arena *arena, lp_weights *weights, lp_decoder *out,
                                     lp_diag *diag);
/* Creates a module of the model in the file `path`; with `absent_ok` blocks are not decoded. */
LP_MUST_USE lp_status lp_gguf_import(const char *path, bool absent_ok, lp_module **out, lp_diag *diag);
/* Writes the text of tokenizer.json. Reports LP_FAILED when the file has no tokenizer of a supported kind; `out` then
 * holds part of a text. */
LP_MUST_USE lp_status lp_gguf_tokenizer(const lp_gguf *file, lp_buf *out, lp_diag *diag);
