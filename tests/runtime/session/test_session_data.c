/* Runs on arrays: outputs equal in one process and in two, and inputs that do not fit are refused. */
#include <stdlib.h>
#include <string.h>

#include "runtime/bundle/bundle.h"
#include "runtime/bundle/manifest.h"
#include "runtime/link/link.h"
#include "runtime/link/link.pb-c.h"
#include "runtime/runtime.h"
#include "runtime/session/session.h"
#include "tests/runtime/toy/toy_run.h"
#include "tests/suite.h"

static char *dir;
static void setup(void) {
  dir = toy_dir_create();
}
static void teardown(void) {
  toy_dir_remove(dir);
}

LP_CASE(.setup = setup, .teardown = teardown);

enum { LENGTH = 5 };
static int64_t ids[2 * LENGTH] = {3, 1, 4, 1, 5, 9, 2, 6, 5, 35};

static lp_data tokens_input(void) {
  return (lp_data){
      .name = "input_ids", .dtype = "i64", .rank = 2, .shape = {2, LENGTH}, .data = ids, .size = sizeof ids};
}

static lp_status run(const lp_bundle *bundle, const char *cloud, const char *program, const lp_data *inputs,
                     size_t count, lp_data *output, lp_diag *diag) {
  lp_generate_options options = {.cloud = cloud, .threads = 2};
  lp_session *session = NULL;
  ck_assert_int_eq(lp_session_open(bundle, &options, &session, diag), LP_OK);
  lp_status status = lp_session_run(session, program, inputs, count, output, diag);
  lp_session_close(session);
  return status;
}

LP_TEST(outputs_are_the_same) {
  static const char *const where[] = {"dddddd", "ddccdd", "dddccc", "cccccc"};
  lp_data want = {0}, got = {0}, input = tokens_input();
  for (size_t i = 0; i < LP_COUNT(where); i++) {
    char *path = toy_bundle_write(dir, where[i], &(toy_placement){.prefill = where[i]});
    toy_worker worker = toy_worker_start(path, NULL, NULL);
    lp_bundle *bundle = toy_bundle_load(path, LP_LOAD_DEVICE);
    ck_assert_uint_eq(lp_bundle_output_count(bundle), 1);
    ck_assert_int_eq(run(bundle, worker.address, NULL, &input, 1, i == 0 ? &want : &got, NULL), LP_OK);
    if (i > 0) {
      ck_assert_str_eq(got.name, "logits");
      ck_assert_str_eq(got.dtype, "f32");
      ck_assert_int_eq(got.shape[0], 2);
      ck_assert_int_eq(got.shape[1], LENGTH); /* r is s when no input names it */
      ck_assert_int_eq(got.shape[2], TOY_VOCAB);
      ck_assert_uint_eq(got.size, sizeof(float) * 2 * LENGTH * TOY_VOCAB);
      ck_assert_mem_eq(got.data, want.data, want.size);
      free(got.data);
    }
    toy_worker_stop(&worker);
    lp_bundle_free(bundle);
    free(path);
  }
  free(want.data);
}

LP_TEST(inputs_that_do_not_fit) {
  lp_data cases[5], output = {0};
  for (size_t i = 0; i < LP_COUNT(cases); i++)
    cases[i] = tokens_input();
  cases[0].name = "attention_mask";
  cases[1].dtype = "i32";
  cases[2].rank = 3;
  cases[3].size -= 8;
  cases[4].shape[1] = -5;
  static const char *const errors[] = {"input 'input_ids' is not given", "wanted i64 of rank 2", "wanted i64 of rank 2",
                                       "holds 72 bytes, its shape takes 80", "holds 80 bytes"};
  char *path = toy_bundle_write(dir, "whole", &(toy_placement){.prefill = "dddddd"});
  lp_bundle *bundle = toy_bundle_load(path, LP_LOAD_DEVICE);
  for (size_t i = 0; i < LP_COUNT(cases); i++) {
    lp_diag *diag = lp_diag_create();
    ck_assert_int_eq(run(bundle, NULL, NULL, &cases[i], 1, &output, diag), LP_FAILED);
    ck_assert_msg(strstr(toy_error(diag), errors[i]), "wanted '%s' in '%s'", errors[i], toy_error(diag));
    ck_assert_ptr_null(output.data);
    lp_diag_free(diag);
  }
  lp_diag *diag = lp_diag_create();
  lp_data input = tokens_input();
  ck_assert_int_eq(run(bundle, NULL, "encode", &input, 1, &output, diag), LP_FAILED);
  ck_assert_ptr_nonnull(strstr(toy_error(diag), "no program 'encode'"));
  lp_diag_free(diag);
  lp_bundle_free(bundle);
  free(path);
}

/* ---- a worker that sends less than the output's shape takes ------------------------------------------------------ */

static bool take_all(lp_channel *channel, uint32_t peer, const void *head, size_t head_size, const void *body,
                     size_t body_size, const char **why) {
  (void)channel, (void)peer, (void)head, (void)head_size, (void)body, (void)body_size, (void)why;
  return true;
}

/* The result of the step that the channel points to, with eight bytes for a payload. */
static lp_recv_outcome send_little(lp_channel *channel, double timeout_ms, lp_packet *out, const char **why) {
  (void)timeout_ms, (void)why;
  Lp__Wire__Result result = LP__WIRE__RESULT__INIT;
  result.step = *(const int32_t *)(const void *)channel;
  Lp__Wire__Message message = LP__WIRE__MESSAGE__INIT;
  message.kind_case = LP__WIRE__MESSAGE__KIND_RESULT;
  message.result = &result;
  size_t size = lp__wire__message__get_packed_size(&message);
  uint8_t *frame = lp_alloc(4 + size + 8);
  frame[0] = (uint8_t)size;
  lp__wire__message__pack(&message, frame + 4);
  *out = (lp_packet){.peer = LP_ONLY_PEER, .data = frame, .size = 4 + size + 8, .handle = frame};
  return LP_RECV_FRAME;
}

static void release(lp_packet *packet) {
  free(packet->handle);
  *packet = (lp_packet){0};
}

static void hang_up(lp_channel *channel) {
  (void)channel;
}

LP_TEST(too_little_comes_back) {
  static const lp_transport miser = {
      .name = "miser", .send = take_all, .receive = send_little, .release = release, .close = hang_up};
  char *path = toy_bundle_write(dir, "split", &(toy_placement){.prefill = "dccccc"});
  lp_bundle *bundle = toy_bundle_load(path, LP_LOAD_DEVICE | LP_LOAD_CLOUD);
  lp_session *session = NULL;
  ck_assert_int_eq(lp_session_open(bundle, &(lp_generate_options){.threads = 1}, &session, NULL), LP_OK);
  int32_t last = bundle->manifest.programs[lp_manifest_program(&bundle->manifest, "prefill")].step_count - 1;
  session->remote = true;
  session->wire[LP_SIDE_CLOUD] = lp_alloc(sizeof *session->wire[LP_SIDE_CLOUD]);
  *session->wire[LP_SIDE_CLOUD] =
      (lp_wire){.transport = &miser, .channel = (lp_channel *)(void *)&last, .address = lp_strdup("miser")};
  lp_data input = tokens_input(), output = {0};
  lp_diag *diag = lp_diag_create();
  ck_assert_int_eq(lp_session_run(session, NULL, &input, 1, &output, diag), LP_FAILED);
  ck_assert_msg(strstr(toy_error(diag), "output 'logits' of 8 bytes came; wanted 2440"), "%s", toy_error(diag));
  ck_assert_ptr_null(output.data);
  lp_diag_free(diag);
  lp_session_close(session);
  lp_bundle_free(bundle);
  free(path);
}

/* ---- timing ------------------------------------------------------------------------------------------------------ */

LP_TEST(measuring) {
  char *path = toy_bundle_write(dir, "whole", &(toy_placement){.prefill = "dddddd"});
  lp_bundle *bundle = toy_bundle_load(path, LP_LOAD_DEVICE);
  lp_generate_options options = {.threads = 1};
  lp_session *session = NULL;
  ck_assert_int_eq(lp_session_open(bundle, &options, &session, NULL), LP_OK);
  lp_bench_options bench = {.prompt = 16, .generate = 8, .depth = 4, .repetitions = 3};
  lp_bench_result result;
  ck_assert_int_eq(lp_session_bench(session, &bench, &result, NULL), LP_OK);
  ck_assert_int_eq(result.rows, 2);
  ck_assert_str_eq(result.row[0].name, "pp16 @ d4");
  ck_assert_str_eq(result.row[1].name, "tg8 @ d4");
  ck_assert(result.row[0].tokens_per_s > 0 && result.row[1].gbytes_per_s > 0);
  ck_assert_int_gt(result.peak_bytes, result.weight_bytes);
  bench.prompt = TOY_CONTEXT;
  ck_assert_int_eq(lp_session_bench(session, &bench, &result, NULL), LP_FAILED);
  lp_session_close(session);
  lp_bundle_free(bundle);
  free(path);
}
