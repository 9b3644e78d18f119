/* The encoder of an encoder-decoder model, which exporters write into a file of its own. */
#ifndef LP_ONNX_ENCODER_H
#define LP_ONNX_ENCODER_H

#include "frontend/onnx/importer.h"

/* The function that the encoder is imported as, before lp_encoder_join. */
#define LP_ENCODER_FUNC "encoder"

/* Prepares the import of a decoder with the encoder of that path: a merged decoder takes its branch without a past.
 * Fails when the files do not lie in one folder, or the decoder takes no encoder states. */
LP_MUST_USE lp_status lp_encoder_check(lp_importer *decoder, const char *path);
/* Moves the operators of @encoder before those of @main, which then takes the encoder's inputs instead of its states.
 * Past inputs that nothing reads are removed. */
LP_MUST_USE lp_status lp_encoder_join(lp_module *module, lp_diag *diag);

#endif
