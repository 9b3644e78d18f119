/* A Llama on two machines with a link. */
#ifndef LP_TESTS_LLAMA_STUDY_H
#define LP_TESTS_LLAMA_STUDY_H

#include "passes/plan/plan.h"
#include "tests/passes/plan/llama.h"

typedef struct {
  lp_module *module;
  lp_machine *device, *cloud;
  lp_link *link;
  lp_arena *arena;
  lp_compile_request request;
  lp_plan_problem problem[LP_STAGE_COUNT];
} llama_study;

/* `request`: all but the machines and the link. After a change of it, build its problem again. Release with
 * llama_study_close. */
llama_study llama_study_open(const llama_shape *shape, const lp_compile_request *request, const char *device,
                             const char *cloud, const char *link);
/* The graph of an imported model of that shape: activations in f32, caches in `kv_dtype`. */
llama_study llama_study_open_imported(const llama_shape *shape, lp_dtype kv_dtype, const lp_compile_request *request,
                                      const char *device, const char *cloud, const char *link);
/* Llama 2 7B with a number of layers, for prompts of 512 tokens at the least cost. */
llama_study llama_study_open_7b(int64_t layers, const char *device, const char *cloud, const char *link);
void llama_study_close(llama_study *s);

#endif
