/* The configuration of a LoRA adapter, adapter_config.json. */
#pragma once

#include "base/json/reader.h"

/* Names of modules are those of the model's class, as "model.layers.0.mlp.up_proj". */
typedef struct {
  const char *path;
  lp_json_document *document;
  lp_json root;
} lp_lora_config;

/* Refuses other adapters than LoRA, and every key that may change the result and is not followed. `path` outlives the
 * configuration, which lp_lora_config_release releases in any case. */
LP_MUST_USE lp_status lp_lora_config_load(const char *path, lp_lora_config *out, lp_diag *diag);
void lp_lora_config_release(lp_lora_config *config);

/* Gives the factor of a product of `rank`: alpha / rank or, with use_rslora, alpha / sqrt(rank). */
LP_MUST_USE lp_status lp_lora_scale(const lp_lora_config *config, const char *module, int64_t rank, double *out,
                                    lp_diag *diag);
/* Tells whether PEFT would change the module: it is one of target_modules and not of exclude_modules, and
 * layers_to_transform has its layer (check_target_module_exists of PEFT). A pattern counts as a match in target_modules
 * and as none in exclude_modules, since PEFT saves only modules that it changes. */
bool lp_lora_targets(const lp_lora_config *config, const char *module);
/* Tells whether the module is `name`, or its path ends in it. */
bool lp_lora_names(const char *module, const char *name);
