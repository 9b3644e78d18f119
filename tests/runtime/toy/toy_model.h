/* The shape of the toy model, which its code and the bundle around it share. */
#ifndef LP_TOY_MODEL_H
#define LP_TOY_MODEL_H

enum { TOY_VOCAB = 61, TOY_WIDTH = 16, TOY_LAYERS = 4, TOY_CONTEXT = 128 };
enum { TOY_TOKENS, TOY_HIDDEN, TOY_LOGITS, TOY_SCRATCH, TOY_BUFFERS };

#endif
