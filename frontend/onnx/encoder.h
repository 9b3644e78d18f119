/* Joins the encoder of an encoder-decoder model to its decoder. Exporters write them into separate files. */
#ifndef LP_ONNX_ENCODER_H
#define LP_ONNX_ENCODER_H

#include "frontend/onnx/importer.h"

/* The name of the encoder's function before lp_encoder_join. */
#define LP_ENCODER_FUNC "encoder"

/* Checks a decoder that is imported with the encoder at `path`. Fails when the files do not lie in one folder, or the
 * decoder has no input for the encoder's states. */
LP_MUST_USE lp_status lp_encoder_check(lp_importer *decoder, const char *path);
/* Moves the operators of @encoder before those of @main, which then takes the encoder's inputs instead of its states.
 * Past inputs that nothing reads are removed. */
LP_MUST_USE lp_status lp_encoder_join(lp_module *module, lp_diag *diag);

#endif
