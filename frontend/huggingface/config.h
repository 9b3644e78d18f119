/* What the files that read config.json share: the values of its keys, and the parts of the description. */
#pragma once

#include "base/json/reader.h"
#include "frontend/huggingface/families.h"
#include "frontend/huggingface/huggingface.h"

enum { LP_CONFIG_MOST_LAYERS = 1 << 12, LP_CONFIG_MOST_SIZE = 1 << 28, LP_CONFIG_MOST_TAPS = 64 };

typedef struct {
  const lp_json *root;  /* the text model's keys */
  const lp_json *whole; /* the file's; the same unless the text model is part of a model of images and text */
  const char *path;
  lp_arena *arena;
  lp_diag *diag;
  const lp_family *family;
  lp_decoder *out;
  lp_packing *packing;
  int64_t context;
} lp_config;

/* The functions below return `otherwise` when the key is absent or null. A size without a default (-1) must be
 * present. */
LP_MUST_USE lp_status lp_config_size(const lp_config *r, const char *key, int64_t otherwise, int64_t *out);
LP_MUST_USE lp_status lp_config_number(const lp_json *object, const char *key, double otherwise, double *out,
                                       lp_diag *diag);
/* Reads a number that must be positive, because it is a divisor or its logarithm is taken. */
LP_MUST_USE lp_status lp_config_positive(const lp_json *object, const char *key, double otherwise, double *out,
                                         lp_diag *diag);
bool lp_config_is_true(const lp_config *r, const char *key, bool otherwise);
/* Tells whether the value is the one that turns the key's feature off. */
bool lp_config_is_off(const lp_json *at);

/* Refuses keys that are not read and may change the result, and values that the graph does not implement. */
LP_MUST_USE lp_status lp_config_check_keys(const lp_config *r);
LP_MUST_USE lp_status lp_config_check_values(const lp_config *r);

/* Tells whether the list of layers at `list` has this one; an absent list has none. */
LP_MUST_USE lp_status lp_config_lists(const lp_config *r, const lp_json *list, int64_t layer, bool *out);
/* Reads whether the layer has a convolution, and of which kind; and the sizes of those with a state (recurrent.c). */
LP_MUST_USE lp_status lp_config_read_taps(const lp_config *r, int64_t layer, lp_decoder_layer *out);
LP_MUST_USE lp_status lp_config_read_scan(const lp_config *r);
/* Of hybrid families (recurrent.c): counts the layers where each has one part; reads the factors where each has
 * attention and a state space. */
LP_MUST_USE lp_status lp_config_count_layers(const lp_config *r, int64_t *out);
LP_MUST_USE lp_status lp_config_read_factors(const lp_config *r);
/* Fills one rotary for all layers or for those without a window, and a second for those with one. */
LP_MUST_USE lp_status lp_config_read_rotary(const lp_config *r);
