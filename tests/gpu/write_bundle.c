/* write_bundle MODEL.onnx OUT.llmpart CUT [DTYPE]: a bundle with layers [0, CUT) on the device by the cpu backend and
 * the rest in the cloud by the cuda backend on the CPU; both run by `llmpart run`. */
#include "host_backend.h"

#include "frontend/frontend.h"
#include "passes/passes.h"

#include <stdlib.h>

static void show(void *user, const lp_diag_entry *entry) {
  lp_buf text = {0};
  (void)user;
  lp_diag_format(entry, &text);
  fprintf(stderr, "%s\n", lp_buf_text(&text));
  lp_buf_free(&text);
}

static int64_t vocab_of(const lp_module *module) {
  const lp_op *func = lp_module_find_func(module, "prefill");
  int64_t vocab = 0;
  lp_type_static_dim(lp_op_in(lp_block_terminator(func->region), 0)->type, -1, &vocab);
  return vocab;
}

static lp_status write(char **argv, const lp_compile_request *request, lp_diag *diag) {
  lp_module *module;
  const lp_run_options quiet = {0};
  const lp_backend cuda = gpu_host_backend();
  LP_TRY(lp_onnx_import(argv[1], NULL, &module, diag));
  lp_status status = lp_passes_run(module, lp_pipeline_full, request, &quiet, diag);
  if (status == LP_OK) {
    const lp_bundle_request bundle = {.backend = {lp_backend_find("cpu"), &cuda},
                                      .options = {{.side = LP_SIDE_DEVICE, .march = "native", .opt_level = 2},
                                                  {.side = LP_SIDE_CLOUD, .march = "sm_80", .opt_level = 2}},
                                      .vocab = vocab_of(module)};
    status = lp_bundle_write(module, &bundle, argv[2], diag);
  }
  lp_module_free(module);
  return status;
}

int main(int argc, char **argv) {
  lp_machine *device = NULL, *cloud = NULL;
  lp_link *link = NULL;
  lp_diag *diag = lp_diag_create();
  lp_diag_set_sink(diag, show, NULL);
  lp_status status = argc < 4 ? LP_USAGE : lp_hw_load("jetson-nano", &device, diag);
  if (status == LP_OK) status = lp_hw_load("v100s", &cloud, diag);
  if (status == LP_OK) status = lp_link_load("lan", &link, diag);
  if (status == LP_OK) {
    const lp_compile_request request = {.device = device,
                                        .cloud = cloud,
                                        .link = link,
                                        .isl = 32,
                                        .osl = 8,
                                        .batch = 1,
                                        .scheduler = "cut",
                                        .cut = atoll(argv[3]),
                                        .dtype_cloud = argc > 4 ? argv[4] : NULL,
                                        .dtype_device = argc > 4 ? argv[4] : NULL,
                                        .kv_dtype = argc > 5 ? argv[5] : NULL,
                                        .generation = true};
    status = write(argv, &request, diag);
  }
  lp_link_free(link);
  lp_hw_free(cloud);
  lp_hw_free(device);
  lp_diag_free(diag);
  return (int)status;
}
