/* The loaders of the parts of a tokenizer (load.c, parts.c, post.c). */
#pragma once

#include "base/json/reader.h"
#include "runtime/tokenizer/internal.h"

/* The arguments of every loader. */
typedef struct {
  lp_tokenizer *tokenizer;
  const char *file; /* for messages */
  lp_diag *diag;
  bool has_added_tokens; /* of tokenizer_config.json */
} lp_loader;

/* Each loads one part into the tokenizer. If the part is optional, an absent or null value gives an empty list. */
LP_MUST_USE lp_status lp_load_normalizer(lp_loader *loader, const lp_json *at);
LP_MUST_USE lp_status lp_load_pre_tokenizer(lp_loader *loader, const lp_json *at);
LP_MUST_USE lp_status lp_load_decoder(lp_loader *loader, const lp_json *at);
LP_MUST_USE lp_status lp_load_post_processor(lp_loader *loader, const lp_json *at);
LP_MUST_USE lp_status lp_load_model(lp_loader *loader, const lp_json *at);
LP_MUST_USE lp_status lp_load_added(lp_loader *loader, const lp_json *at);
/* lp_tokenizer_companions in `dir`, where they exist */
LP_MUST_USE lp_status lp_load_config(lp_loader *loader, const char *dir);

/* Reads the member `key`, a string, and copies it to the tokenizer's arena. */
LP_MUST_USE lp_status lp_load_text(lp_loader *loader, const lp_json *object, const char *key, const char **out,
                                   size_t *size);
/* An absent or null member gives `fallback`. */
LP_MUST_USE lp_status lp_load_bool(lp_loader *loader, const lp_json *object, const char *key, bool fallback, bool *out);
