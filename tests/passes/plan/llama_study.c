/* Makes the planning problem of a Llama on two machines. */
#include "tests/passes/plan/llama_study.h"
#include "tests/suite.h"

static llama_study open_module(lp_module *module, const lp_compile_request *request, const char *device,
                               const char *cloud, const char *link) {
  llama_study s = {.module = module, .arena = lp_arena_create(), .request = *request};
  ck_assert_int_eq(lp_hw_load(device, &s.device, NULL), LP_OK);
  ck_assert_int_eq(lp_hw_load(cloud, &s.cloud, NULL), LP_OK);
  ck_assert_int_eq(lp_link_load(link, &s.link, NULL), LP_OK);
  s.request.device = s.device;
  s.request.cloud = s.cloud;
  s.request.link = s.link;
  ck_assert_int_eq(lp_plan_build(s.module, &s.request, s.arena, s.problem, NULL), LP_OK);
  return s;
}

llama_study llama_study_open(const llama_shape *shape, const lp_compile_request *request, const char *device,
                             const char *cloud, const char *link) {
  return open_module(llama_create(shape), request, device, cloud, link);
}

llama_study llama_study_open_imported(const llama_shape *shape, lp_dtype kv_dtype, const lp_compile_request *request,
                                      const char *device, const char *cloud, const char *link) {
  return open_module(lp_decoder_create(shape, &kv_dtype), request, device, cloud, link);
}

llama_study llama_study_open_7b(int64_t layers, const char *device, const char *cloud, const char *link) {
  llama_shape shape = llama2_7b;
  shape.layers = layers;
  const lp_compile_request request = {
      .isl = 512, .osl = 2, .batch = 1, .objective = "cost", .device_memory = (int64_t)64 << 30, .generation = true};
  return llama_study_open(&shape, &request, device, cloud, link);
}

void llama_study_close(llama_study *s) {
  lp_arena_free(s->arena);
  lp_module_free(s->module);
  lp_hw_free(s->device);
  lp_hw_free(s->cloud);
  lp_link_free(s->link);
}
