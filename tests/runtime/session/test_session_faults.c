/* What a session makes of workers that answer wrongly, late or never, over a transport that plays what the test wrote
 * down. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/bundle/bundle.h"
#include "runtime/link/link.h"
#include "runtime/link/link.pb-c.h"
#include "runtime/session/session.h"
#include "runtime/session/walk.h"
#include "tests/runtime/session/player.h"
#include "tests/runtime/toy/toy_run.h"
#include "tests/suite.h"

enum { LENGTH = 5 };

/* ---- a session with such workers --------------------------------------------------------------------------------- */

static lp_diag *diag;
static lp_bundle *bundle;
static lp_session *session;
static player players[LP_PLACES_MAX];

static void setup(void) {
  diag = lp_diag_create();
}
static void teardown(void) {
  lp_session_close(session);
  lp_bundle_free(bundle);
  lp_diag_free(diag);
}

LP_CASE(.setup = setup, .teardown = teardown);

static void connect_player(lp_place place) {
  session->place[place].endpoint.address = "stage";
  session->wire[place] = player_connect(&players[place]);
}

static void open_session(const toy_placement *placement, double timeout_ms) {
  bundle = toy_bundle_make(placement, LP_LOAD_ALL);
  const lp_generate_options options = {.threads = 1, .sampling = {.top_p = 1}, .cloud_timeout_ms = timeout_ms};
  ck_assert_int_eq(lp_session_open(bundle, &options, &session, diag), LP_OK);
  session->remote = true;
  for (lp_place i = 1; i < bundle->manifest.place_count; i++)
    connect_player(i);
  ck_assert(lp_wires_open(&session->wires, session->wire, LP_PLACES_MAX));
}

static void will_play(lp_place place, size_t count, const reply *replies) {
  players[place].count = count;
  memcpy(players[place].reply, replies, count * sizeof *replies);
}

/* ---- walks ------------------------------------------------------------------------------------------------------- */

/* Prefill of the toy model over LENGTH tokens. */
static lp_status walk_prefill(lp_sample *sample, lp_place *on) {
  int64_t ids[LENGTH] = {3, 1, 4, 1, 5};
  lp_span input = {.data = ids, .size = sizeof ids};
  lp_walk walk = {.program = lp_manifest_program(&bundle->manifest, "prefill"),
                  .input = &input,
                  .sample = sample,
                  .sampled_on = -1};
  walk.sym[LP_SYM_B] = walk.sym[LP_SYM_R] = 1;
  walk.sym[LP_SYM_S] = walk.sym[LP_SYM_C] = LENGTH;
  lp_status status = lp_session_walk(session, &walk, diag);
  if (on) *on = walk.sampled_on;
  return status;
}

static int32_t find_step(lp_step_kind kind) {
  const lp_program *program = &bundle->manifest.programs[lp_manifest_program(&bundle->manifest, "prefill")];
  int32_t index = 0;
  while (program->step[index].kind != kind)
    index++;
  return index;
}

#define TOKENS(...) FRAME(TOKENS, .tokens = 1, .confidences = 1, __VA_ARGS__)

LP_LOOP_TEST(answers_to_a_walk, 0, 18) {
  static const struct {
    size_t count;
    reply reply[3]; /* the number counts from the output's step */
    bool deaf, route, lost;
    const char *refusal;
  } rows[] = {
      {1, {TOKENS(.token = 60)}, false, false, false, NULL},
      {1, {TOKENS(.token = 0)}, false, false, false, NULL},
      {3, {NOTHING, NOTHING, TOKENS(.token = 7)}, false, true, false, NULL},
      {1, {TOKENS(.token = 61)}, false, false, true, "lost: its tokens are not in the model's vocabulary"},
      {1, {TOKENS(.token = -1)}, false, false, true, "lost: its tokens are not in the model's vocabulary"},
      {1,
       {FRAME(TOKENS, .tokens = 2, .confidences = 1)},
       false,
       false,
       true,
       "lost: its tokens are not in the model's vocabulary"},
      {1,
       {FRAME(TOKENS, .tokens = 1, .confidences = 2)},
       false,
       false,
       true,
       "lost: its tokens are not in the model's vocabulary"},
      {1, {FRAME(TOKENS, .tokens = 0)}, false, false, true, "lost: its tokens are not in the model's vocabulary"},
      {1, {TOKENS(.number = 1)}, false, false, true, "lost: it sent an unexpected answer"},
      {1, {FRAME(RESULT, .payload = 244)}, false, false, true, "lost: it sent an unexpected answer"},
      {1, {FRAME(PROBE, .number = 0)}, false, true, true, "lost: it sent an unexpected answer"},
      {1, {FRAME(FAILURE, .lost = false)}, false, false, false, "failed: no room"},
      {1, {FRAME(FAILURE, .lost = true)}, false, true, true, "failed: no room"},
      {1, {{.outcome = LP_RECV_GONE}}, false, false, true, "lost: it fell silent"},
      {1, {{.outcome = LP_RECV_GARBAGE}}, false, false, true, "lost: it fell silent"},
      {1, {{.outcome = LP_RECV_STRAINED}}, false, false, true, "lost: it fell silent"},
      {2, {NOTHING, NOTHING}, false, false, true, "lost: no answer in time"},
      {1, {TOKENS(.token = 1)}, true, true, true, "lost: it takes nothing"},
  };
  open_session(&(toy_placement){.prefill = "dddccc"}, rows[_i].refusal ? 1 : 60000);
  will_play(1, rows[_i].count, rows[_i].reply);
  for (size_t i = 0; i < rows[_i].count; i++)
    players[1].reply[i].number += find_step(LP_STEP_OUTPUT);
  players[1].deaf = rows[_i].deaf;
  session->route = rows[_i].route ? 9 : 0;
  lp_sample sample = {.token = -5};
  lp_place on = -1;
  ck_assert_int_eq(walk_prefill(&sample, &on), rows[_i].refusal ? LP_FAILED : LP_OK);
  ck_assert_int_eq(session->lost, rows[_i].lost);
  ck_assert_int_eq(lp_session_is_connected(session), !(rows[_i].refusal && rows[_i].route));
  ck_assert_uint_eq(session->waits, rows[_i].deaf ? 0 : 1);
  if (!rows[_i].refusal) {
    ck_assert_int_eq(sample.token, rows[_i].reply[rows[_i].count - 1].token);
    ck_assert_double_eq(sample.confidence, 0.25);
    ck_assert_int_eq(on, 1);
    ck_assert_uint_eq(players[1].sends, 1);
    ck_assert_uint_eq(players[1].sent[0], LENGTH * TOY_WIDTH * sizeof(float));
    return;
  }
  const char *why = strchr(rows[_i].refusal, ':');
  lp_buf wanted = {0};
  lp_buf_printf(&wanted, "the cloud at stage %s%.*s at position 5%s", *rows[_i].refusal == 'l' ? "was " : "",
                (int)(why - rows[_i].refusal), rows[_i].refusal, why);
  ck_assert_str_eq(toy_error(diag), wanted.data);
  lp_buf_free(&wanted);
}

/* What a place draws further. A place that knows no streams draws once, and is not asked again. */
LP_LOOP_TEST(draws_of_a_place, 0, 8) {
  enum { MOST = 4 };
  static const struct {
    int64_t draw[MOST];
    size_t good;
    bool singly;
    const char *refusal;
  } rows[] = {
      {{1, 2, 3, 4}, 4, false, NULL},
      {{0, 0, 0, 0}, 4, true, NULL},
      {{1, 1}, 1, false, "came twice"},
      {{1, 3}, 1, false, "a token is missing"},
      {{1, 2, 0}, 2, false, "a token is missing"},
      {{2}, 0, false, "a token is missing"},
      {{-1}, 0, false, "a token is missing"},
      {{0, 1}, 1, true, "came twice"},
  };
  open_session(&(toy_placement){.prefill = "cccccc", .input_there = true}, 60000);
  reply replies[MOST];
  for (int i = 0; i < MOST; i++)
    replies[i] = (reply)TOKENS(.number = find_step(LP_STEP_OUTPUT), .token = 7, .draw = rows[_i].draw[i]);
  will_play(1, MOST, replies);
  int32_t decode = lp_manifest_program(&bundle->manifest, "decode");
  lp_walk_stream stream = {.program = decode, .most = MOST};
  lp_sample sample;
  for (size_t i = 0; i < MOST && (i == 0 || i <= rows[_i].good); i++) {
    int64_t ids[LENGTH] = {3, 1, 4, 1, 5};
    lp_span input = {.data = ids, .size = (i == 0 ? LENGTH : 1) * sizeof *ids};
    lp_walk walk = {.program = i == 0 ? lp_manifest_program(&bundle->manifest, "prefill") : decode,
                    .input = &input,
                    .sample = &sample,
                    .stream = &stream};
    walk.sym[LP_SYM_B] = walk.sym[LP_SYM_R] = 1;
    walk.sym[LP_SYM_S] = i == 0 ? LENGTH : 1;
    walk.sym[LP_SYM_P] = i == 0 ? 0 : LENGTH + (int64_t)i - 1;
    walk.sym[LP_SYM_C] = LENGTH + MOST;
    lp_status status = lp_session_walk(session, &walk, diag);
    ck_assert_int_eq(status, i < rows[_i].good ? LP_OK : LP_FAILED);
    if (status == LP_OK) ck_assert_int_eq(session->stream.place != 0, !rows[_i].singly && i + 1 < MOST);
  }
  ck_assert_int_eq(session->lost, rows[_i].refusal != NULL);
  ck_assert_int_eq(session->draws_singly, rows[_i].singly);
  /* The device tells each draw, since a quarter of four is one. */
  ck_assert_uint_eq(session->waits, rows[_i].singly ? rows[_i].good + (rows[_i].refusal != NULL) : 1);
  if (rows[_i].refusal) ck_assert_ptr_nonnull(strstr(toy_error(diag), rows[_i].refusal));
}

/* The session tells a place whose first step needs no value of another place that a walk begins. The other places wait
 * for their first value. */
LP_TEST(walks_that_begin_in_several_places) {
  open_session(&(toy_placement){.prefill = "011233", .places = 4}, 60000);
  lp_step steps[] = {{.kind = LP_STEP_RUN, .side = 1, .to = 1},
                     {.kind = LP_STEP_RUN, .side = 2, .to = 2},
                     {.kind = LP_STEP_SEND, .side = 1, .to = 3},
                     {.kind = LP_STEP_OUTPUT, .side = 3, .to = 3}};
  lp_program *program = &bundle->manifest.programs[lp_manifest_program(&bundle->manifest, "prefill")];
  program->step = steps;
  program->step_count = LP_COUNT(steps);
  program->takes_part[0] = false;
  reply token[] = {TOKENS(.number = 3, .token = 7)};
  will_play(3, 1, token);
  lp_sample sample;
  lp_place on = -1;
  ck_assert_int_eq(walk_prefill(&sample, &on), LP_OK);
  ck_assert_int_eq(sample.token, 7);
  ck_assert_int_eq(on, 3);
  for (int i = 1; i <= 3; i++)
    ck_assert_uint_eq(players[i].sends, i < 3 ? 1 : 0);
  ck_assert_uint_eq(players[1].sent[0] + players[2].sent[0], 0);
  steps[0] = (lp_step){.kind = LP_STEP_INPUT, .side = 1, .to = 1}; /* its payload is the beginning */
  token[0].number = 3;
  will_play(3, 1, token);
  players[3].next = 0;
  ck_assert_int_eq(walk_prefill(&sample, &on), LP_OK);
  ck_assert_uint_eq(players[1].sends, 2);
  ck_assert_uint_eq(players[1].sent[1], LENGTH * sizeof(int64_t));
}

/* No more of the wait is the cloud's than the device waited. */
LP_TEST(time_that_the_cloud_computed) {
  open_session(&(toy_placement){.prefill = "dddccc"}, 60000);
  reply replies[] = {TOKENS(.busy_ms = 1e12), TOKENS(.busy_ms = 0)};
  will_play(1, 2, replies);
  players[1].reply[0].number = players[1].reply[1].number = find_step(LP_STEP_OUTPUT);
  lp_sample sample;
  ck_assert_int_eq(walk_prefill(&sample, NULL), LP_OK);
  ck_assert(session->wait_ms >= 0);
  ck_assert_double_eq(session->cloud_ms, session->wait_ms);
  double before = session->cloud_ms;
  ck_assert_int_eq(walk_prefill(&sample, NULL), LP_OK);
  ck_assert_double_eq(session->cloud_ms, before);
  ck_assert_uint_eq(session->waits, 2);
}

/* Prefill's last two layers move from the cloud to the device after the token: a KV row of 64 bytes for each token. */
LP_LOOP_TEST(caches_that_come, 0, 3) {
  static const size_t size[] = {320, 319, 321};
  open_session(&(toy_placement){.prefill = "dddccc", .decode = "dddddd"}, 60000);
  int32_t output = find_step(LP_STEP_OUTPUT), move = find_step(LP_STEP_MOVE);
  reply replies[] = {TOKENS(.number = output), FRAME(RESULT, .number = move, .payload = 320),
                     FRAME(RESULT, .number = move + 1, .payload = size[_i])};
  will_play(1, 3, replies);
  lp_sample sample;
  ck_assert_int_eq(walk_prefill(&sample, NULL), _i == 0 ? LP_OK : LP_FAILED);
  static const char *const wanted[] = {"", "KV rows of 319 bytes came; wanted 320",
                                       "KV rows of 321 bytes came; wanted 320"};
  ck_assert_str_eq(toy_error(diag), wanted[_i]);
}

LP_TEST(caches_that_go) {
  open_session(&(toy_placement){.prefill = "dddddd", .decode = "dddccc"}, 60000);
  lp_sample sample;
  ck_assert_int_eq(walk_prefill(&sample, NULL), LP_OK);
  ck_assert_uint_eq(players[1].sends, 2);
  ck_assert_uint_eq(players[1].sent[0], 320);
  ck_assert_uint_eq(players[1].sent[1], 320);
}

/* ---- measuring the link ------------------------------------------------------------------------------------------ */

static lp_plan_region regions[2];
static lp_plan_desc plans[2] = {{.region_count = 1, .region = &regions[0]}, {.region_count = 1, .region = &regions[1]}};

/* Plan 0 below the bound of the axis, plan 1 from there on. */
static void split_plans(int axis, double bound) {
  for (int i = 0; i < LP_PLAN_AXES; i++)
    regions[0].high[i] = regions[1].high[i] = INFINITY;
  regions[0].high[axis] = regions[1].low[axis] = bound;
  for (int i = 0; i < 2; i++) {
    plans[i].prefill = lp_manifest_program(&bundle->manifest, "prefill");
    plans[i].decode = lp_manifest_program(&bundle->manifest, "decode");
  }
  bundle->manifest.plans = plans;
  bundle->manifest.plan_count = 2;
}

#define PROBE(n) FRAME(PROBE, .number = n)

LP_LOOP_TEST(answers_to_a_probe, 0, 8) {
  static const struct {
    size_t count;
    reply reply[4];
    bool deaf;
    const char *refusal;
  } rows[] = {
      {4, {NOTHING, PROBE(0), PROBE(1), PROBE(2)}, false, NULL},
      {2, {PROBE(0), FRAME(FAILURE, .lost = false)}, false, "refuses: no room"},
      {1, {PROBE(1)}, false, "was lost while the link was measured: it sent an unexpected answer"},
      {1, {FRAME(RESULT, .number = 0)}, false, "was lost while the link was measured: it sent an unexpected answer"},
      {3,
       {PROBE(0), PROBE(1), {.outcome = LP_RECV_GONE}},
       false,
       "was lost while the link was measured: the connection closed"},
      {1, {{.outcome = LP_RECV_GARBAGE}}, false, "was lost while the link was measured: it fell silent"},
      {1, {NOTHING}, false, "was lost while the link was measured: no answer in time"},
      {1, {PROBE(0)}, true, "was lost while the link was measured: it takes nothing"},
  };
  open_session(&(toy_placement){.prefill = "dddccc"}, _i == 0 ? 60000 : _i == 6 ? 1 : 20000);
  split_plans(LP_PLAN_RTT_MS, 1e9);
  will_play(1, rows[_i].count, rows[_i].reply);
  players[1].deaf = rows[_i].deaf;
  lp_generation made = {0};
  ck_assert_int_eq(lp_session_choose_plan(session, 7, 3, &made, diag), rows[_i].refusal ? LP_FAILED : LP_OK);
  if (rows[_i].refusal) {
    ck_assert_ptr_eq(strstr(toy_error(diag), "the cloud at stage "), toy_error(diag));
    ck_assert_str_eq(toy_error(diag) + strlen("the cloud at stage "), rows[_i].refusal);
    return;
  }
  ck_assert_int_eq(made.plan, 0);
  ck_assert(made.rtt_ms >= 0 && made.rtt_ms < 60000);
  ck_assert_double_nan(made.up_bps); /* no plan depends on it */
  ck_assert_uint_eq(players[1].sends, 3);
  for (int i = 0; i < 3; i++)
    ck_assert_uint_eq(players[1].sent[i], 0);
}

/* At twice the bound 4 KiB would take 16 s, so that no longer message is needed. */
LP_TEST(bandwidth_is_measured_up_to_the_bound) {
  open_session(&(toy_placement){.prefill = "dddccc"}, 60000);
  split_plans(LP_PLAN_UP_BPS, 1000);
  reply replies[] = {PROBE(0), PROBE(1), PROBE(2), PROBE(3), PROBE(4)};
  will_play(1, LP_COUNT(replies), replies);
  lp_generation made = {0};
  ck_assert_int_eq(lp_session_choose_plan(session, 7, 3, &made, diag), LP_OK);
  ck_assert_uint_eq(players[1].sends, 4);
  ck_assert_uint_eq(players[1].sent[3], 4096);
  ck_assert(made.up_bps > 0);
  ck_assert_int_eq(made.plan, made.up_bps >= 1000);
}

/* ---- the order of messages --------------------------------------------------------------------------------------- */

static const toy_placement three = {.prefill = "001122", .places = 3};

static lp_recv_outcome receive_of(lp_place place, lp_place *from, int32_t *step) {
  lp_inbound in = {0};
  const char *why = "";
  lp_recv_outcome outcome = lp_session_receive(session, place, 60000, from, &in, &why);
  *step = outcome == LP_RECV_FRAME && in.message->kind_case == LP__WIRE__MESSAGE__KIND_RESULT ? in.message->result->step
                                                                                              : -1;
  if (outcome == LP_RECV_FRAME) lp_inbound_release(&in);
  if (outcome == LP_RECV_GARBAGE) ck_assert_str_eq(why, "it sends more than was asked for");
  return outcome;
}

LP_TEST(early_messages_keep_their_order) {
  open_session(&three, 60000);
  reply first[] = {NOTHING, NOTHING, NOTHING, FRAME(RESULT, .number = 5), NOTHING},
        second[] = {FRAME(RESULT, .number = 7), FRAME(RESULT, .number = 8), FRAME(RESULT, .number = 9),
                    FRAME(RESULT, .number = 10)};
  will_play(1, LP_COUNT(first), first);
  will_play(2, LP_COUNT(second), second);
  static const struct {
    lp_place place;
    int32_t step;
  } wanted[] = {{1, 5}, {2, 7}, {2, 8}, {2, 9}, {2, 10}};
  for (size_t i = 0; i < LP_COUNT(wanted); i++) {
    lp_place from = -1;
    int32_t step = -1;
    ck_assert_int_eq(receive_of(wanted[i].place, &from, &step), LP_RECV_FRAME);
    ck_assert_int_eq(from, wanted[i].place);
    ck_assert_int_eq(step, wanted[i].step);
    ck_assert_uint_eq(session->place[2].early.count, i == 0 ? 3 : i < 4 ? 3 - i : 0);
  }
}

LP_LOOP_TEST(another_place_is_heard, 0, 3) {
  open_session(&three, 60000);
  reply nothing[] = {NOTHING},
        others[][1] = {{FRAME(FAILURE, .lost = true)}, {{.outcome = LP_RECV_GONE}}, {FRAME(RESULT, .number = 1)}};
  will_play(1, 1, nothing);
  will_play(2, 1, others[_i]);
  players[2].repeats = _i == 2;
  lp_place from = -1;
  int32_t step = -1;
  static const lp_recv_outcome wanted[] = {LP_RECV_FRAME, LP_RECV_GONE, LP_RECV_GARBAGE};
  ck_assert_int_eq(receive_of(1, &from, &step), wanted[_i]);
  ck_assert_int_eq(from, 2);
  ck_assert_uint_eq(session->place[2].early.count, _i == 2 ? 1024 : 0); /* released with the session */
}

/* Of connections that are open, and of those that are closed, the message that closes them included. */
LP_TEST(bytes_outlive_connections) {
  open_session(&three, 60000);
  uint64_t up = 0, down = 0;
  session->wire[1]->bytes_sent = 10;
  session->wire[2]->bytes_received = 200;
  session->bytes_up = 1000;
  session->bytes_down = 2000;
  lp_session_count_bytes(session, &up, &down);
  ck_assert_uint_eq(up, 1010);
  ck_assert_uint_eq(down, 2200);
  lp_session_disconnect(session);
  ck_assert(!lp_session_is_connected(session));
  ck_assert_uint_eq(players[1].sends, 1);
  ck_assert_uint_eq(players[2].sends, 1);
  lp_session_count_bytes(session, &up, &down);
  ck_assert_uint_gt(up, 1010 + 2 * 3);
  ck_assert_uint_eq(down, 2200);
}

/* ---- addresses of places ----------------------------------------------------------------------------------------- */

LP_LOOP_TEST(addresses_that_are_refused, 0, 5) {
  static const struct {
    const char *cloud;
    lp_place_address clouds[2];
    const char *refusal;
  } rows[] = {
      {"h:1", {{NULL, NULL}}, "the bundle has 3 places: wanted the name of the place before 'h:1', as in 'edge.1=h:1'"},
      {NULL, {{"phone", "h:1"}}, "no worker can run the place 'phone'; there are: 'edge.1', 'edge.2'"},
      {NULL, {{"moon", "h:1"}}, "no worker can run the place 'moon'; there are: 'edge.1', 'edge.2'"},
      {NULL, {{"edge.1", "h:1"}, {"edge.1", "h:2"}}, "the place 'edge.1' has two addresses"},
      {NULL, {{"edge.1", "h:1"}}, "no worker is given for the place 'edge.2'"},
  };
  bundle = toy_bundle_make(&three, LP_LOAD_DEVICE);
  lp_generate_options options = {.threads = 1, .cloud = rows[_i].cloud, .clouds = rows[_i].clouds};
  while (options.cloud_count < 2 && rows[_i].clouds[options.cloud_count].place)
    options.cloud_count++;
  ck_assert_int_eq(lp_session_open(bundle, &options, &session, diag), LP_FAILED);
  ck_assert_str_eq(toy_error(diag), rows[_i].refusal);
  ck_assert_ptr_null(session);
}

/* The place is named; with `gives_up` it is dialled once. */
LP_TEST(a_place_that_is_not_there) {
  static const lp_place_address clouds[] = {{"edge.2", "unix:/nowhere/2"}, {"edge.1", "unix:/nowhere/1"}};
  bundle = toy_bundle_make(&three, LP_LOAD_DEVICE);
  const lp_generate_options options = {.threads = 1, .clouds = clouds, .cloud_count = 2, .gives_up = true};
  ck_assert_int_eq(lp_session_open(bundle, &options, &session, diag), LP_FAILED);
  ck_assert_str_eq(toy_error(diag), "cannot reach the place 'edge.1' at unix:/nowhere/1: No such file or directory");
}
