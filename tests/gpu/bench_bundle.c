/* bench_bundle BUNDLE PROMPT GENERATE DEPTH BATCH REPETITIONS: measures what `llmpart bench` measures, on a machine
 * that has only the runtime. Prints a line per row: name, tokens/s, deviation, GB/s of weights, and the library that
 * computed products of many rows. bench_bundle --copy: the GB/s, read and written, of copies within the GPU's memory.
 * Exit status 77 when there is no GPU. bench_bundle --weights FILE HEAD BYTES: writes a weights.safetensors of that
 * size: the header in HEAD, then noise to measure a model's speed with. bench_bundle --tokens BUNDLE COUNT 1,2,3: the
 * greedy tokens that follow, as 4,5,6. */
#include "base/file.h"
#include "base/side.h"
#include "runtime/bundle/bundle.h"
#include "runtime/gpu/api.h"
#include "runtime/gpu/gpu.h"
#include "runtime/runtime.h"

#include <stdlib.h>
#include <time.h>

static double now_s(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void show(void *user, const lp_diag_entry *entry) {
  lp_buf text = {0};
  (void)user;
  lp_diag_format(entry, &text);
  fprintf(stderr, "%s\n", lp_buf_text(&text));
  lp_buf_free(&text);
}

/* Measures the best of a few rounds of copies. A copy has a quarter of the free memory, at most 4 GiB. */
static int measure_copy(lp_diag *diag) {
  enum { ROUNDS = 5, COPIES = 8 };
  const lp_gpu_api *api = &lp_gpu_cuda;
  const lp_gpu_text text = {.file = "kernels.cu", .source = ""};
  lp_gpu_device *device = NULL;
  size_t left = 0, all = 0;
  double best = 0;
  if (api->open(&text, &device, diag) != LP_OK) return 77;
  lp_gpu_queue *queue = api->queue_create(device);
  api->room(queue, &left, &all);
  size_t bytes = left / 4 < (size_t)4 << 30 ? left / 4 : (size_t)4 << 30;
  void *from = api->reserve(queue, bytes), *to = api->reserve(queue, bytes);
  bool well = from && to && api->finish(queue);
  for (int round = 0; round < ROUNDS && well; round++) {
    double begin = now_s();
    for (int i = 0; i < COPIES && well; i++)
      well = api->copy(queue, to, false, from, false, bytes);
    well = api->finish(queue) && well;
    double rate = 2.0 * (double)COPIES * (double)bytes / (now_s() - begin) / 1e9;
    if (rate > best) best = rate;
  }
  printf("%s|copy|%.1f\n", api->device_name(device), best);
  api->release(device, from);
  api->release(device, to);
  api->queue_free(queue);
  api->close(device);
  return well ? 0 : 1;
}

static const char *multiplier(const lp_bundle *bundle) {
  lp_gpu *gpu = bundle->side[LP_SIDE_CLOUD].gpu;
  const char *library = gpu ? lp_gpu_library_used(gpu) : NULL;
  return library ? library : "own kernels";
}

static lp_status measure(char **argv, lp_diag *diag) {
  lp_bundle *bundle = NULL;
  lp_session *session = NULL;
  lp_bench_result result;
  const lp_bundle_options load = {.load = LP_LOAD_DEVICE | LP_LOAD_CLOUD};
  const lp_generate_options options = {.sampling = {.top_p = 1}, .ignore_eos = true, .threads = 1};
  const lp_bench_options bench = {.prompt = atoll(argv[1]),
                                  .generate = atoll(argv[2]),
                                  .depth = atoll(argv[3]),
                                  .batch = atoll(argv[4]),
                                  .repetitions = atoll(argv[5])};
  lp_status status = lp_bundle_load(argv[0], &load, &bundle, diag);
  if (status == LP_OK) status = lp_session_open(bundle, &options, &session, diag);
  if (status == LP_OK) status = lp_session_bench(session, &bench, &result, diag);
  for (int32_t i = 0; status == LP_OK && i < result.rows; i++)
    printf("%s|%.2f|%.2f|%.1f|%s\n", result.row[i].name, result.row[i].tokens_per_s, result.row[i].deviation,
           result.row[i].gbytes_per_s, multiplier(bundle));
  lp_session_close(session);
  lp_bundle_free(bundle);
  return status;
}

/* In every 16 bits sign, low exponent bits and fraction are random: f16 of 2^-7, and floats of other types that are as
 * harmless. */
static lp_status write_weights(char **argv, lp_diag *diag) {
  enum { WORDS = 1 << 20 };
  lp_writer *writer;
  char *head;
  size_t size = 0, bytes = (size_t)atoll(argv[2]);
  uint64_t state = 1, *noise = lp_alloc(WORDS * sizeof *noise);
  for (size_t i = 0; i < WORDS; i++) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    noise[i] = (state & 0x83ff83ff83ff83ff) | 0x2000200020002000;
  }
  lp_status status = lp_file_read(argv[1], &head, &size, diag);
  if (status == LP_OK) status = lp_writer_open(argv[0], &writer, diag);
  if (status == LP_OK) {
    lp_writer_put(writer, head, size);
    for (size_t at = size, part; at < bytes; at += part) {
      part = bytes - at < WORDS * sizeof *noise ? bytes - at : WORDS * sizeof *noise;
      lp_writer_put(writer, noise, part);
    }
    status = lp_writer_commit(writer, diag);
    free(head);
  }
  free(noise);
  return status;
}

static lp_status print_tokens(char **argv, lp_diag *diag) {
  enum { MOST = 4096 };
  int32_t prompt[MOST];
  int64_t count = 0;
  lp_bundle *bundle = NULL;
  lp_session *session = NULL;
  lp_generation out = {0};
  const lp_bundle_options load = {.load = LP_LOAD_DEVICE | LP_LOAD_CLOUD};
  const lp_generate_options options = {
      .sampling = {.top_p = 1}, .max_tokens = atoll(argv[1]), .ignore_eos = true, .threads = 1};
  for (char *at = argv[2]; *at && count < MOST; at += *at == ',')
    prompt[count++] = (int32_t)strtol(at, &at, 10);
  lp_status status = lp_bundle_load(argv[0], &load, &bundle, diag);
  if (status == LP_OK) status = lp_session_open(bundle, &options, &session, diag);
  if (status == LP_OK) status = lp_session_generate(session, prompt, 1, count, NULL, NULL, &out, diag);
  for (int64_t i = 0; status == LP_OK && i < out.generated; i++)
    printf("%s%d", i ? "," : "", out.tokens.data[i].token);
  printf("\n");
  lp_generation_free(&out);
  lp_session_close(session);
  lp_bundle_free(bundle);
  return status;
}

int main(int argc, char **argv) {
  lp_diag *diag = lp_diag_create();
  int status = LP_USAGE;
  lp_diag_set_sink(diag, show, NULL);
  if (argc == 2 && lp_streq(argv[1], "--copy"))
    status = measure_copy(diag);
  else if (argc == 5 && lp_streq(argv[1], "--weights"))
    status = (int)write_weights(argv + 2, diag);
  else if (argc == 5 && lp_streq(argv[1], "--tokens"))
    status = (int)print_tokens(argv + 2, diag);
  else if (argc == 7)
    status = (int)measure(argv + 1, diag);
  lp_diag_free(diag);
  return status;
}
