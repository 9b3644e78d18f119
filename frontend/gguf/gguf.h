/* frontend/gguf: reads a GGUF file into a module, and its tokenizer into the files that Hugging Face has. It knows the
 * format and the names of llama.cpp; the graph is frontend/decoder's. */
#ifndef LP_GGUF_H
#define LP_GGUF_H

#include "frontend/decoder/rotary.h"
#include "frontend/gguf/file.h"

/* The metadata as a description of the model, in `arena`. A key of the architecture that is not known is an error. */
LP_MUST_USE lp_status lp_gguf_config(const lp_gguf *file, lp_arena *arena, lp_weights *weights, lp_decoder *out,
                                     lp_diag *diag);
/* A new module of the model in the file `path`; with `absent_ok` blocks are not decoded. */
LP_MUST_USE lp_status lp_gguf_import(const char *path, bool absent_ok, lp_module **out, lp_diag *diag);
/* tokenizer.json's text; LP_FAILED where the file has no tokenizer of a kind that is supported, which is reported. */
LP_MUST_USE lp_status lp_gguf_tokenizer(const lp_gguf *file, lp_buf *out, lp_diag *diag);

#endif
