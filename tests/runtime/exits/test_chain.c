/* Early exits over a chain of places: rows pass from place to place, the last one answers the device, and the tokens
 * are the full model's, also when places and connections between them are lost. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "runtime/bundle/bundle.h"
#include "runtime/exits/cloud_end.h"
#include "runtime/exits/halves.h"
#include "runtime/link/link.h"
#include "runtime/link/link.pb-c.h"
#include "runtime/link/link_emulator.h"
#include "runtime/runtime.h"
#include "tests/runtime/toy/toy_run.h"
#include "tests/suite.h"

static const lp_sampling greedy = {.top_p = 1}, drawn = {.temperature = 0.9, .top_k = 20, .top_p = 0.95, .seed = 7};

static char *dir;
static void setup(void) {
  dir = toy_dir_create();
}
static void teardown(void) {
  toy_dir_remove(dir);
}

LP_CASE(.setup = setup, .teardown = teardown, .timeout = 120);

enum { MOST = 60 };

/* Chains of two and three places after the device, in the order of their numbers and not. */
static const toy_placement chains[] = {
    {.prefill = "001122", .places = 3, .exits = {1}},
    {.prefill = "000123", .places = 4, .exits = {1, 2}},
    {.prefill = "003312", .places = 4, .exits = {1}},
    {.prefill = "000221", .places = 3, .exits = {1, 2}},
};

typedef struct {
  char *path;
  lp_bundle *bundle;
  toy_places places;
} scene;

static void open_scene(scene *s, const toy_placement *placement) {
  memset(s, 0, sizeof *s);
  s->path = toy_bundle_write(dir, "chain", placement);
  s->bundle = toy_bundle_load(s->path, LP_LOAD_ALL);
  toy_places_open(s->path, s->bundle, &s->places);
}

static void close_scene(scene *s) {
  toy_places_close(&s->places);
  lp_bundle_free(s->bundle);
  free(s->path);
}

typedef struct {
  lp_generate_options options;
  int64_t prompt;
  lp_token_sink *sink;
  void *user;
} request;

static request request_of(const scene *s, lp_mode mode, bool here, lp_sampling sampling) {
  request asked = {.options = {.mode = mode,
                               .sampling = sampling,
                               .max_tokens = MOST,
                               .ignore_eos = true,
                               .cloud_timeout_ms = 20000,
                               .threads = 1}};
  if (here) return asked;
  asked.options.clouds = s->places.address;
  asked.options.cloud_count = (size_t)s->places.count - 1;
  return asked;
}

static lp_status try_generate(const scene *s, const request *asked, lp_generation *made, lp_diag *diag) {
  int32_t prompts[TOY_BATCH * TOY_PROMPT];
  toy_prompts(prompts);
  lp_session *session = NULL;
  lp_status status = lp_session_open(s->bundle, &asked->options, &session, diag);
  if (status == LP_OK)
    status = lp_session_generate(session, prompts + asked->prompt * TOY_PROMPT, 1, TOY_PROMPT, asked->sink, asked->user,
                                 made, diag);
  lp_session_close(session);
  return status;
}

static lp_generation generate(const scene *s, const request *asked) {
  lp_generation made = {0};
  lp_diag *diag = lp_diag_create();
  lp_status status = try_generate(s, asked, &made, diag);
  ck_assert_msg(status == LP_OK, "%s", toy_error(diag));
  lp_diag_free(diag);
  return made;
}

/* The oracle is the walk of the whole program in one process, which knows no halves and no contexts. */
static void expect_full(const scene *s, const request *asked) {
  request full = request_of(s, LP_MODE_FULL, true, asked->options.sampling);
  full.prompt = asked->prompt;
  lp_generation want = generate(s, &full), got = generate(s, asked);
  ck_assert_int_eq(got.generated, MOST);
  for (int64_t i = 0; i < MOST; i++)
    ck_assert_msg(want.tokens.data[i].token == got.tokens.data[i].token, "token %d differs", (int)i);
  lp_generation_free(&want);
  lp_generation_free(&got);
}

LP_LOOP_TEST(exact_in_one_process, 0, LP_COUNT(chains)) {
  scene s;
  open_scene(&s, &chains[_i]);
  for (int64_t prompt = 0; prompt < TOY_BATCH; prompt++) {
    request asked = request_of(&s, LP_MODE_EXACT, true, prompt % 2 == 0 ? greedy : drawn);
    asked.prompt = prompt;
    expect_full(&s, &asked);
  }
  close_scene(&s);
}

LP_LOOP_TEST(exact_over_processes, 0, LP_COUNT(chains)) {
  scene s;
  open_scene(&s, &chains[_i]);
  toy_places_start(&s.places);
  for (int64_t prompt = 0; prompt < TOY_BATCH; prompt++) {
    request asked = request_of(&s, LP_MODE_EXACT, false, prompt % 2 == 0 ? greedy : drawn);
    asked.prompt = prompt;
    expect_full(&s, &asked);
  }
  close_scene(&s);
}

/* The last place of the chain gives the tokens that no exit gave. */
LP_LOOP_TEST(who_gives_a_token, 0, LP_COUNT(chains)) {
  scene s;
  open_scene(&s, &chains[_i]);
  toy_places_start(&s.places);
  request asked = request_of(&s, LP_MODE_EXACT, false, greedy);
  lp_generation made = generate(&s, &asked);
  const char last = chains[_i].prefill[TOY_STAGES - 1];
  int64_t of_device = 0;
  for (int64_t i = 0; i < made.generated; i++) {
    of_device += made.tokens.data[i].side == LP_SIDE_DEVICE;
    if (made.tokens.data[i].side != LP_SIDE_DEVICE) ck_assert_int_eq(made.tokens.data[i].side, last - '0');
  }
  ck_assert_int_eq(of_device, made.accepted);
  ck_assert_int_eq(made.generated - of_device, (int64_t)made.cloud_requests);
  lp_generation_free(&made);
  close_scene(&s);
}

LP_LOOP_TEST(threshold_invariants, 0, LP_COUNT(chains)) {
  static const double thetas[] = {0, 0.05, 0.2, 2};
  scene s;
  open_scene(&s, &chains[_i]);
  toy_places_start(&s.places);
  request all = request_of(&s, LP_MODE_THRESHOLD, false, greedy);
  all.options.theta = 2;
  all.options.codec = LP_CODEC_F32;
  expect_full(&s, &all); /* every token is the last place's, and no row was rounded */
  uint64_t before = 0;
  for (size_t i = 0; i < LP_COUNT(thetas); i++) {
    request asked = request_of(&s, LP_MODE_THRESHOLD, false, greedy);
    asked.options.theta = thetas[i];
    lp_generation made = generate(&s, &asked);
    ck_assert_uint_ge(made.cloud_requests, before);
    ck_assert_uint_eq(made.hidden_bytes_up, 2 * TOY_WIDTH * (TOY_PROMPT + MOST - 1));
    ck_assert_int_eq(made.fallbacks, 0);
    if (thetas[i] <= 0) ck_assert_uint_eq(made.cloud_requests, 0);
    before = made.cloud_requests;
    lp_generation_free(&made);
  }
  ck_assert_uint_eq(before, MOST);
  close_scene(&s);
}

LP_TEST(standalone_needs_no_place) {
  scene s;
  open_scene(&s, &chains[0]);
  request asked = request_of(&s, LP_MODE_STANDALONE, false, greedy);
  lp_generation made = generate(&s, &asked);
  ck_assert_int_eq(made.generated, MOST);
  ck_assert_uint_eq(made.bytes_up + made.bytes_down + made.cloud_requests, 0);
  lp_generation_free(&made);
  close_scene(&s);
}

/* ---- what is lost ------------------------------------------------------------------------------------------------ */

typedef struct {
  scene *s;
  lp_place victim;
  int left;
  bool again; /* the place is started again */
} killer;

static void kill_after(void *user, int64_t index, const lp_generated *token) {
  (void)index, (void)token;
  killer *state = user;
  if (--state->left != 0) return;
  toy_worker_stop(&state->s->places.worker[state->victim]);
  state->s->places.worker[state->victim].pid = 0;
  if (state->again) toy_places_start_one(&state->s->places, state->victim);
}

LP_LOOP_TEST(a_place_dies_and_comes_back, 0, 15) {
  scene s;
  open_scene(&s, &chains[1 + _i % 2]);
  toy_places_start(&s.places);
  request asked = request_of(&s, LP_MODE_EXACT, false, _i % 2 == 0 ? greedy : drawn);
  killer state = {.s = &s, .victim = 1 + _i % 3, .left = 1 + 11 * (_i / 3), .again = true};
  asked.sink = kill_after;
  asked.user = &state;
  expect_full(&s, &asked);
  ck_assert_int_lt(state.left, 1);
  close_scene(&s);
}

/* Without a place the exits give all tokens in threshold mode, and in exact mode the error names it. */
LP_LOOP_TEST(a_place_that_stays_away, 0, 2) {
  scene s;
  open_scene(&s, &chains[0]);
  toy_places_start(&s.places);
  killer state = {.s = &s, .victim = 1 + _i, .left = 4};
  request asked = request_of(&s, LP_MODE_THRESHOLD, false, greedy);
  asked.options.theta = 2;
  asked.options.cloud_timeout_ms = 2000;
  asked.sink = kill_after;
  asked.user = &state;
  lp_generation made = generate(&s, &asked);
  ck_assert_int_eq(made.generated, MOST);
  ck_assert_int_ge(made.fallbacks, MOST - 5);
  lp_generation_free(&made);
  toy_places_start_one(&s.places, state.victim);
  asked.options.mode = LP_MODE_EXACT;
  asked.options.cloud_timeout_ms = 500;
  state.left = 4;
  lp_diag *diag = lp_diag_create();
  ck_assert_int_eq(try_generate(&s, &asked, &made, diag), LP_FAILED);
  ck_assert_msg(strstr(toy_error(diag), _i == 0 ? "the place 'edge.1' at" : "the place 'edge.2' at"), "%s",
                toy_error(diag));
  lp_generation_free(&made);
  lp_diag_free(diag);
  close_scene(&s);
}

/* ---- what is not there yet --------------------------------------------------------------------------------------- */

static void *start_late(void *user) {
  const killer *state = user;
  usleep(300000);
  toy_places_start_one(&state->s->places, state->victim);
  return NULL;
}

LP_LOOP_TEST(a_place_comes_late, 1, 4) {
  scene s;
  pthread_t thread;
  open_scene(&s, &chains[1]);
  toy_places_start(&s.places);
  killer state = {.s = &s, .victim = (lp_place)_i};
  toy_worker_stop(&s.places.worker[_i]);
  request asked = request_of(&s, LP_MODE_EXACT, false, greedy);
  ck_assert_int_eq(pthread_create(&thread, NULL, start_late, &state), 0);
  expect_full(&s, &asked);
  pthread_join(thread, NULL);
  close_scene(&s);
}

static void start_after(void *user, int64_t index, const lp_generated *token) {
  (void)index, (void)token;
  killer *state = user;
  usleep(20000);
  if (--state->left == 0) toy_places_start_one(&state->s->places, state->victim);
}

/* In threshold mode the exits give the tokens until the place is there. */
LP_LOOP_TEST(exits_until_a_place_comes, 1, 3) {
  scene s;
  open_scene(&s, &chains[0]);
  toy_places_start(&s.places);
  killer state = {.s = &s, .victim = (lp_place)_i, .left = 4};
  toy_worker_stop(&s.places.worker[_i]);
  request asked = request_of(&s, LP_MODE_THRESHOLD, false, greedy);
  asked.options.theta = 2;
  asked.options.patience.longest_pause_ms = 50;
  asked.sink = start_after;
  asked.user = &state;
  lp_generation made = generate(&s, &asked);
  ck_assert_int_eq(made.generated, MOST);
  ck_assert_int_ge(made.fallbacks, 4);
  for (int i = 0; i < 4; i++)
    ck_assert_int_eq(made.tokens.data[i].side, LP_SIDE_DEVICE);
  ck_assert_int_eq(made.tokens.data[MOST - 1].side, 2);
  lp_generation_free(&made);
  close_scene(&s);
}

/* A place that refuses is not waited for: a minute is longer than the test may last. */
LP_LOOP_TEST(a_place_refuses, 0, 2) {
  scene s;
  open_scene(&s, &chains[0]);
  toy_places_start(&s.places);
  request asked = request_of(&s, _i == 0 ? LP_MODE_EXACT : LP_MODE_THRESHOLD, false, greedy);
  asked.options.cloud_timeout_ms = 60000;
  const lp_place_address other[2] = {{s.places.address[0].place, s.places.address[1].address},
                                     {s.places.address[1].place, s.places.address[0].address}};
  asked.options.clouds = other;
  lp_generation made = {0};
  lp_diag *diag = lp_diag_create();
  ck_assert_int_eq(try_generate(&s, &asked, &made, diag), LP_FAILED);
  ck_assert_uint_eq(lp_diag_error_count(diag), 1);
  ck_assert_msg(strstr(toy_error(diag), "serves the place 'edge.1', not 'edge.2'"), "%s", toy_error(diag));
  lp_generation_free(&made);
  lp_diag_free(diag);
  close_scene(&s);
}

/* A link between two places that is down for a moment, now and then: rows that were under way are sent again. */
LP_TEST(a_link_between_places_that_comes_back) {
  scene s;
  lp_link_emulator *link = NULL;
  open_scene(&s, &chains[0]);
  const lp_link_shape shape = {.rtt_ms = 10, .cut_ms = 200, .cut_every_ms = 600};
  ck_assert_int_eq(lp_link_emulator_start(s.places.port[2], &shape, &link, NULL), LP_OK);
  s.places.peer[1].address = lp_link_emulator_address(link);
  toy_places_start(&s.places);
  request asked = request_of(&s, LP_MODE_EXACT, false, greedy);
  expect_full(&s, &asked);
  lp_link_emulator_stop(link);
  close_scene(&s);
}

static const lp_security open_security;

static lp_endpoint endpoint_of(const scene *s, lp_place place) {
  return (lp_endpoint){.address = s->places.port[place],
                       .bundle_hash = s->bundle->manifest.hash,
                       .patience = {5000, 50, 2000, 1000, 5000, 2000},
                       .security = &open_security};
}

/* Where the budget holds one context only, those of two generations drop each other at each place. */
LP_TEST(contexts_that_are_dropped) {
  scene s;
  open_scene(&s, &chains[0]);
  s.places.budget = "40000";
  toy_places_start(&s.places);
  lp_halves halves;
  const char *why = "";
  ck_assert_msg(lp_halves_find(s.bundle, &halves, &why), "%s", why);
  ck_assert_int_eq(halves.links, 2);
  lp_endpoint endpoint[2];
  const lp_endpoint *endpoints[2] = {&endpoint[0], &endpoint[1]};
  for (int i = 0; i < 2; i++)
    endpoint[i] = endpoint_of(&s, halves.chain[i]);
  const lp_cloud_end_options open = {
      .halves = &halves,
      .endpoints = endpoints,
      .context = {.sampling = greedy, .codec = LP_CODEC_F32, .capacity = TOY_PROMPT + MOST},
      .claim = {.context = lp_context_draw()},
      .drafts = true};
  lp_cloud_end *idle = NULL;
  ck_assert_int_eq(lp_cloud_end_open(&open, &idle, NULL), LP_OK);
  float *rows = lp_alloc((size_t)TOY_PROMPT * TOY_WIDTH * sizeof *rows);
  ck_assert_int_eq(lp_cloud_end_upload(idle, 0, TOY_PROMPT, rows, NULL), LP_OK);
  const lp_question question = {.end = TOY_PROMPT};
  lp_answer first, again;
  ck_assert_int_eq(lp_cloud_end_ask(idle, &question, 10000, true, &first, NULL), LP_OK);
  for (int i = 0; i < 3; i++) {
    request asked = request_of(&s, LP_MODE_EXACT, false, greedy);
    asked.prompt = i;
    expect_full(&s, &asked);
    ck_assert_int_eq(lp_cloud_end_ask(idle, &question, 10000, true, &again, NULL), LP_OK);
    ck_assert_int_eq(first.sample.token, again.sample.token);
  }
  lp_cloud_end_close(idle, NULL);
  free(rows);
  close_scene(&s);
}

/* ---- what is no chain -------------------------------------------------------------------------------------------- */

static const struct {
  toy_placement placement;
  const char *why;
} others[] = {
    {{.prefill = "001021", .places = 3, .exits = {1}}, "the cloud sends more than tokens back"},
    {{.prefill = "001212", .places = 3, .exits = {1}}, "the places do not form a chain"},
    {{.prefill = "001122", .decode = "002211", .places = 3, .exits = {1}}, "a KV cache moves between the sides"},
    {{.prefill = "000000", .places = 3, .exits = {1}}, "the device computes the whole model"},
};

LP_LOOP_TEST(what_is_no_chain, 0, LP_COUNT(others)) {
  scene s;
  open_scene(&s, &others[_i].placement);
  lp_halves halves;
  const char *why = "";
  ck_assert(!lp_halves_find(s.bundle, &halves, &why));
  ck_assert_str_eq(why, others[_i].why);
  close_scene(&s);
}

/* ---- strangers --------------------------------------------------------------------------------------------------- */

static lp_wire *dial(const scene *s, lp_place place) {
  const lp_endpoint endpoint = endpoint_of(s, place);
  lp_wire *wire = NULL;
  ck_assert_int_eq(lp_wire_dial(&lp_transport_socket, &endpoint, 5000, &wire, NULL), LP_OK);
  return wire;
}

static void send_message(lp_wire *wire, Lp__Wire__Message__KindCase kind, void *body, size_t size) {
  static const char zeros[4096];
  Lp__Wire__Message message = LP__WIRE__MESSAGE__INIT;
  const char *why = "";
  message.kind_case = kind;
  message.peer = body; /* all members of the union are pointers */
  ck_assert(lp_wire_send(wire, LP_ONLY_PEER, &message, zeros, size, &why));
}

static void expect_refusal(lp_wire *wire, const char *text) {
  lp_inbound in;
  const char *why = "";
  ck_assert_int_eq(lp_wire_receive(wire, 5000, &in, &why), LP_RECV_FRAME);
  while (in.message->kind_case != LP__WIRE__MESSAGE__KIND_FAILURE) {
    lp_inbound_release(&in);
    ck_assert_int_eq(lp_wire_receive(wire, 5000, &in, &why), LP_RECV_FRAME);
  }
  ck_assert_msg(strstr(in.message->failure->text, text), "wanted '%s' in '%s'", text, in.message->failure->text);
  lp_inbound_release(&in);
}

static void join(lp_wire *wire, uint64_t context, int64_t capacity) {
  Lp__Wire__Join join = LP__WIRE__JOIN__INIT;
  join.context = context;
  join.codec = LP_CODEC_F32;
  join.capacity = capacity;
  send_message(wire, LP__WIRE__MESSAGE__KIND_JOIN, &join, 0);
}

/* Each place takes rows from the one before it only, and only one that makes rows sends them again. What a device asks
 * of two places that does not go together is refused, and costs others nothing. */
LP_TEST(rows_come_from_the_place_before) {
  scene s;
  open_scene(&s, &chains[0]);
  toy_places_start(&s.places);
  Lp__Wire__Rows rows = LP__WIRE__ROWS__INIT;
  rows.context = 42;
  rows.count = 1;
  lp_wire *edge = dial(&s, 1), *server = dial(&s, 2);
  join(server, 42, 8);
  send_message(server, LP__WIRE__MESSAGE__KIND_ROWS, &rows, TOY_WIDTH * sizeof(float));
  expect_refusal(server, "this place takes rows from 'edge.1', not from 'phone'");
  Lp__Wire__Lack lack = LP__WIRE__LACK__INIT;
  lack.context = 42;
  send_message(server, LP__WIRE__MESSAGE__KIND_LACK, &lack, 0);
  expect_refusal(server, "no place takes rows from this one");
  /* The edge's context has room for more positions than the server's. */
  join(edge, 42, 64);
  rows.count = 16;
  send_message(edge, LP__WIRE__MESSAGE__KIND_ROWS, &rows, 16 * TOY_WIDTH * sizeof(float));
  Lp__Wire__Ask ask = LP__WIRE__ASK__INIT;
  ask.context = 42;
  ask.number = 1;
  ask.end = 16;
  send_message(edge, LP__WIRE__MESSAGE__KIND_ASK, &ask, 0);
  expect_refusal(server, "16 rows from position 0 on");
  /* Positions before and after what is there. */
  lack.from = -5;
  send_message(edge, LP__WIRE__MESSAGE__KIND_LACK, &lack, 0);
  lack.from = INT64_MAX;
  send_message(edge, LP__WIRE__MESSAGE__KIND_LACK, &lack, 0);
  request asked = request_of(&s, LP_MODE_EXACT, false, greedy);
  expect_full(&s, &asked);
  lp_wire_close(edge);
  lp_wire_close(server);
  close_scene(&s);
}
