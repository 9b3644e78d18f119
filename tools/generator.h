/* Imports a model that generates. */
#pragma once

#include "frontend/frontend.h"

/* lp_model_import with the branch of a merged decoder that reads prompts rightly; a note says so where it is the one
 * without a past. */
LP_MUST_USE lp_status lp_generator_import(const char *model, const lp_import_options *options, lp_module **out,
                                          lp_diag *diag);
