/* Bundles of several plans: the runtime takes the plan with a region that contains the request, and measures the link
 * if a region depends on it. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/runtime.h"
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

#define PROGRAMS "\"prefill\": \"prefill\", \"decode\": \"decode\", "
#define ANY "[0, null]"
#define REGION(prompt, generated, rtt, up)                                                                             \
  "{\"prompt_tokens\": " prompt ", \"generated_tokens\": " generated ", \"rtt_ms\": " rtt ", \"up_bps\": " up "}"

/* A toy bundle with these plans before its programs. */
static lp_bundle *load(const char *plans, char **path) {
  *path = toy_bundle_write(dir, "toy", &(toy_placement){.prefill = "ddccdd"});
  char *text = toy_manifest_read(*path);
  char *at = strstr(text, "\"programs\": {");
  ck_assert_ptr_nonnull(at);
  lp_buf changed = {0};
  lp_buf_append(&changed, text, (size_t)(at - text));
  lp_buf_printf(&changed, "\"plans\": %s, %s", plans, at);
  toy_manifest_write(*path, lp_buf_text(&changed));
  lp_buf_free(&changed);
  free(text);
  return toy_bundle_load(*path, LP_LOAD_DEVICE | LP_LOAD_CLOUD);
}

static lp_generation made_by(const lp_bundle *bundle, const char *cloud, int64_t length, int64_t most) {
  int32_t prompts[TOY_BATCH * TOY_PROMPT];
  toy_prompts(prompts);
  lp_generate_options options = {
      .cloud = cloud, .sampling = {.top_p = 1}, .max_tokens = most, .ignore_eos = true, .threads = 1};
  lp_session *session = NULL;
  lp_generation made = {0};
  ck_assert_int_eq(lp_session_open(bundle, &options, &session, NULL), LP_OK);
  ck_assert_int_eq(lp_session_generate(session, prompts, 1, length, NULL, NULL, &made, NULL), LP_OK);
  ck_assert_int_eq(made.generated, most);
  lp_session_close(session);
  lp_generation_free(&made);
  return made;
}

LP_TEST(lengths_choose) {
  char *path;
  lp_bundle *bundle =
      load("[{" PROGRAMS "\"regions\": [" REGION(
               "[0, 4]", ANY, ANY, ANY) "]},"
                                        " {" PROGRAMS "\"regions\": [" REGION(
                                            "[4, null]", "[0, 3]", ANY, ANY) "]},"
                                                                             " {" PROGRAMS "\"regions\": [" REGION(
                                                                                 "[4, null]", "[3, 5]", ANY, ANY) "]}]",
           &path);
  static const struct {
    int length, most, plan;
  } cases[] = {{1, 1, 0}, {3, 9, 0}, {4, 1, 1}, {7, 2, 1}, {4, 3, 2}, {7, 4, 2}, {7, 5, 0}}; /* the last lies in none */
  for (size_t i = 0; i < LP_COUNT(cases); i++) {
    lp_generation made = made_by(bundle, NULL, cases[i].length, cases[i].most);
    ck_assert_int_eq(made.plan, cases[i].plan);
    ck_assert_int_eq(made.plan_count, 3);
    ck_assert_double_nan(made.rtt_ms); /* no region asks */
    ck_assert_double_nan(made.up_bps);
  }
  lp_bundle_free(bundle);
  free(path);
}

/* A worker on loopback answers within a second and takes more than 1 kbit/s; no link at all is faster still. */
LP_TEST(links_choose) {
  char *path;
  lp_bundle *bundle =
      load("[{" PROGRAMS "\"regions\": [" REGION(
               ANY, ANY, "[1000, null]", ANY) ","
                                              " " REGION(ANY, ANY, "[0, 1000]",
                                                         "[0, 1000]") "]},"
                                                                      " {" PROGRAMS "\"regions\": [" REGION(
                                                                          ANY, ANY, "[0, 1000]", "[1000, null]") "]}]",
           &path);
  toy_worker worker = toy_worker_start(path, NULL, NULL);
  lp_generation made = made_by(bundle, worker.address, TOY_PROMPT, 3);
  ck_assert_int_eq(made.plan, 1);
  ck_assert(made.rtt_ms > 0 && made.rtt_ms < 1000);
  ck_assert(made.up_bps > 1000);
  toy_worker_stop(&worker);
  made = made_by(bundle, NULL, TOY_PROMPT, 3);
  ck_assert_int_eq(made.plan, 1);
  ck_assert_double_eq(made.rtt_ms, 0);
  lp_bundle_free(bundle);
  free(path);
}

LP_TEST(one_can_be_asked_for) {
  char *path;
  lp_bundle *bundle = load("[{" PROGRAMS "\"regions\": []}, {" PROGRAMS "\"regions\": []}]", &path);
  for (int32_t plan = -1; plan <= 2; plan++) {
    int32_t prompt = 1;
    lp_generate_options options = {
        .sampling = {.top_p = 1}, .max_tokens = 1, .threads = 1, .fixes_plan = true, .plan = plan};
    lp_session *session = NULL;
    lp_generation made = {0};
    lp_diag *diag = lp_diag_create();
    ck_assert_int_eq(lp_session_open(bundle, &options, &session, NULL), LP_OK);
    bool there = plan == 0 || plan == 1;
    ck_assert_int_eq(lp_session_generate(session, &prompt, 1, 1, NULL, NULL, &made, diag), there ? LP_OK : LP_FAILED);
    if (there)
      ck_assert_int_eq(made.plan, plan);
    else
      ck_assert_ptr_nonnull(strstr(toy_error(diag), "the last one is plan 1"));
    lp_generation_free(&made);
    lp_session_close(session);
    lp_diag_free(diag);
  }
  lp_bundle_free(bundle);
  free(path);
}
