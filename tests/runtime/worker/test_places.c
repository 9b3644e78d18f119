/* Bundles of more than two places over several processes: tokens equal those of one process, also when places are
 * killed, and nobody but the device opens sessions. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "runtime/bundle/bundle.h"
#include "runtime/link/link.h"
#include "runtime/link/link.pb-c.h"
#include "runtime/link/link_emulator.h"
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

static const lp_sampling greedy = {.top_p = 1}, drawn = {.temperature = 0.9, .top_k = 20, .top_p = 0.9, .seed = 7};

/* Layers in any order, places that send to each other and back, and caches that move between two places. */
static const toy_placement over[] = {
    {.prefill = "001122", .places = 3},
    {.prefill = "021020", .places = 3},
    {.prefill = "012321", .places = 4},
    {.prefill = "011233", .decode = "032101", .places = 4},
    {.prefill = "111222", .decode = "222111", .places = 3},
    {.prefill = "333333", .decode = "112211", .places = 4, .input_there = true},
};

typedef struct {
  char *path;
  lp_bundle *bundle;
  toy_places places;
  int32_t want[TOY_BATCH * TOY_MADE];
} scene;

static void open_scene(scene *s, const toy_placement *placement, int64_t batch, lp_sampling sampling) {
  s->path = toy_bundle_write(dir, "places", placement);
  s->bundle = toy_bundle_load(s->path, LP_LOAD_ALL);
  toy_generate(s->bundle, NULL, batch, sampling, s->want, NULL);
  toy_places_open(s->path, s->bundle, &s->places);
}

static void close_scene(scene *s) {
  toy_places_close(&s->places);
  lp_bundle_free(s->bundle);
  free(s->path);
}

static lp_generate_options options_of(const scene *s, lp_sampling sampling) {
  return (lp_generate_options){.clouds = s->places.address,
                               .cloud_count = (size_t)s->places.count - 1,
                               .sampling = sampling,
                               .max_tokens = TOY_MADE,
                               .ignore_eos = true,
                               .threads = 1};
}

static lp_status generate(const scene *s, const lp_generate_options *options, int64_t batch, lp_token_sink *sink,
                          void *user, lp_generation *out, lp_diag *diag) {
  int32_t prompts[TOY_BATCH * TOY_PROMPT];
  toy_prompts(prompts);
  lp_session *session = NULL;
  lp_status status = lp_session_open(s->bundle, options, &session, diag);
  if (status == LP_OK) status = lp_session_generate(session, prompts, batch, TOY_PROMPT, sink, user, out, diag);
  lp_session_close(session);
  return status;
}

static void expect_wanted(const scene *s, const lp_generate_options *options, int64_t batch, lp_token_sink *sink,
                          void *user) {
  lp_generation made = {0};
  lp_diag *diag = lp_diag_create();
  lp_status status = generate(s, options, batch, sink, user, &made, diag);
  ck_assert_msg(status == LP_OK, "%s", toy_error(diag));
  ck_assert_uint_eq(made.tokens.count, (size_t)(batch * TOY_MADE));
  for (size_t i = 0; i < made.tokens.count; i++)
    ck_assert_msg(made.tokens.data[i].token == s->want[i], "token %zu", i);
  lp_generation_free(&made);
  lp_diag_free(diag);
}

LP_LOOP_TEST(tokens_of_one_process, 0, LP_COUNT(over)) {
  scene s;
  open_scene(&s, &over[_i], TOY_BATCH, drawn);
  toy_places_start(&s.places);
  lp_generate_options options = options_of(&s, drawn);
  expect_wanted(&s, &options, TOY_BATCH, NULL, NULL);
  expect_wanted(&s, &options, TOY_BATCH, NULL, NULL);
  close_scene(&s);
}

/* Prompts in parts: the same programs run several times before the first token. */
LP_TEST(parts_of_a_prompt) {
  scene s;
  open_scene(&s, &over[2], 1, greedy);
  toy_places_start(&s.places);
  lp_generate_options options = options_of(&s, greedy);
  options.prompt_part = 2;
  expect_wanted(&s, &options, 1, NULL, NULL);
  close_scene(&s);
}

/* ---- several devices --------------------------------------------------------------------------------------------- */

enum { DEVICES = 6 };

static void *be_device(void *user) {
  const scene *s = user;
  lp_generate_options options = options_of(s, greedy);
  for (int i = 0; i < 3; i++)
    expect_wanted(s, &options, 1, NULL, NULL);
  return NULL;
}

LP_TEST(devices_at_once) {
  scene s;
  pthread_t thread[DEVICES];
  open_scene(&s, &over[2], 1, greedy);
  toy_places_start(&s.places);
  for (int i = 0; i < DEVICES; i++)
    ck_assert_int_eq(pthread_create(&thread[i], NULL, be_device, &s), 0);
  for (int i = 0; i < DEVICES; i++)
    pthread_join(thread[i], NULL);
  close_scene(&s);
}

/* ---- faults ------------------------------------------------------------------------------------------------------ */

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

/* Each place of three or four dies at several tokens, and comes back. */
LP_LOOP_TEST(a_place_dies_and_comes_back, 0, 12) {
  scene s;
  const toy_placement *placement = &over[_i % 2 == 0 ? 2 : 3];
  open_scene(&s, placement, 1, drawn);
  toy_places_start(&s.places);
  lp_generate_options options = options_of(&s, drawn);
  killer state = {.s = &s, .victim = 1 + _i % 3, .left = 1 + 5 * (_i / 4), .again = true};
  expect_wanted(&s, &options, 1, kill_after, &state);
  ck_assert_int_lt(state.left, 1);
  close_scene(&s);
}

static void expect_failure(scene *s, const lp_generate_options *options, lp_token_sink *sink, void *user,
                           const char *text) {
  lp_generation made = {0};
  lp_diag *diag = lp_diag_create();
  ck_assert_int_eq(generate(s, options, 1, sink, user, &made, diag), LP_FAILED);
  ck_assert_uint_eq(lp_diag_error_count(diag), 1);
  ck_assert_msg(strstr(toy_error(diag), text), "wanted '%s' in '%s'", text, toy_error(diag));
  lp_generation_free(&made);
  lp_diag_free(diag);
}

LP_TEST(a_place_that_stays_away_is_named) {
  scene s;
  open_scene(&s, &over[2], 1, greedy);
  toy_places_start(&s.places);
  lp_generate_options options = options_of(&s, greedy);
  options.cloud_timeout_ms = 500;
  killer state = {.s = &s, .victim = 2, .left = 4};
  expect_failure(&s, &options, kill_after, &state, "edge.2' at 127.0.0.1:");
  close_scene(&s);
}

/* ---- places that are not there yet ------------------------------------------------------------------------------- */

static void *start_late(void *user) {
  const killer *state = user;
  usleep(300000);
  toy_places_start_one(&state->s->places, state->victim);
  return NULL;
}

/* The device dials a place that died before, or is not there yet, as it dials one that dies later. */
LP_LOOP_TEST(a_place_comes_late, 1, 4) {
  scene s;
  pthread_t thread;
  open_scene(&s, &over[2], 1, greedy);
  toy_places_start(&s.places);
  killer state = {.s = &s, .victim = (lp_place)_i};
  toy_worker_stop(&s.places.worker[_i]);
  ck_assert_int_eq(pthread_create(&thread, NULL, start_late, &state), 0);
  lp_generate_options options = options_of(&s, greedy);
  expect_wanted(&s, &options, 1, NULL, NULL);
  pthread_join(thread, NULL);
  close_scene(&s);
}

/* Nobody waits a minute, longer than the test may last: for a place that refuses, or where the caller gives up. */
LP_TEST(who_does_not_wait_for_a_place) {
  scene s;
  open_scene(&s, &over[0], 1, greedy);
  toy_places_start(&s.places);
  lp_generate_options options = options_of(&s, greedy);
  options.cloud_timeout_ms = 60000;
  lp_place_address other[2] = {s.places.address[0], s.places.address[1]};
  other[0].address = s.places.address[1].address;
  other[1].address = s.places.address[0].address;
  options.clouds = other;
  expect_failure(&s, &options, NULL, NULL, "serves the place 'edge.2', not 'edge.1'");
  options.clouds = s.places.address;
  toy_worker_stop(&s.places.worker[2]);
  s.places.worker[2].pid = 0;
  options.gives_up = true;
  expect_failure(&s, &options, NULL, NULL, "cannot reach the place 'edge.2'");
  options.gives_up = false;
  const int stopped = 1;
  options.stop = &stopped;
  expect_failure(&s, &options, NULL, NULL, "cannot reach the place 'edge.2'");
  close_scene(&s);
}

/* ---- links between places ---------------------------------------------------------------------------------------- */

static void cut_after(void *user, int64_t index, const lp_generated *token) {
  (void)index, (void)token;
  struct {
    lp_link_emulator *link;
    int left;
  } *state = user;
  if (--state->left != 0) return;
  lp_link_emulator_stop(state->link);
  state->link = NULL;
}

/* The device reaches all places, and one of them no longer reaches another. */
LP_TEST(a_lost_link_between_places_is_told) {
  scene s;
  struct {
    lp_link_emulator *link;
    int left;
  } state = {.left = 4};
  open_scene(&s, &over[2], 1, greedy);
  const lp_link_shape shape = {.rtt_ms = 1};
  ck_assert_int_eq(lp_link_emulator_start(s.places.port[2], &shape, &state.link, NULL), LP_OK);
  s.places.peer[1].address = lp_link_emulator_address(state.link);
  char address[64];
  snprintf(address, sizeof address, "%s", s.places.peer[1].address);
  s.places.peer[1].address = address; /* the emulator's ends with it */
  toy_places_start(&s.places);
  lp_generate_options options = options_of(&s, greedy);
  expect_wanted(&s, &options, 1, NULL, NULL);
  options.cloud_timeout_ms = 1500;
  expect_failure(&s, &options, cut_after, &state, "the place 'edge.2' at");
  close_scene(&s);
}

/* A link between places that is down for a moment, now and then. */
LP_TEST(a_link_between_places_that_comes_back) {
  scene s;
  lp_link_emulator *link = NULL;
  open_scene(&s, &over[2], 1, greedy);
  const lp_link_shape shape = {.rtt_ms = 10, .cut_ms = 200, .cut_every_ms = 600};
  ck_assert_int_eq(lp_link_emulator_start(s.places.port[2], &shape, &link, NULL), LP_OK);
  s.places.peer[1].address = lp_link_emulator_address(link);
  toy_places_start(&s.places);
  lp_generate_options options = options_of(&s, greedy);
  for (int i = 0; i < 4; i++)
    expect_wanted(&s, &options, 1, NULL, NULL);
  close_scene(&s);
  lp_link_emulator_stop(link);
}

/* ---- addresses and names ----------------------------------------------------------------------------------------- */

LP_TEST(wrong_addresses) {
  scene s;
  open_scene(&s, &over[0], 1, greedy);
  toy_places_start(&s.places);
  lp_generate_options options = options_of(&s, greedy);
  lp_place_address other[3] = {s.places.address[0], s.places.address[1]};
  options.clouds = other;
  other[0].address = s.places.address[1].address;
  other[1].address = s.places.address[0].address;
  expect_failure(&s, &options, NULL, NULL, "serves the place 'edge.2', not 'edge.1'");
  options.cloud_count = 1;
  expect_failure(&s, &options, NULL, NULL, "no worker is given for the place 'edge.2'");
  other[1].place = "nowhere";
  options.cloud_count = 2;
  expect_failure(&s, &options, NULL, NULL, "no worker can run the place 'nowhere'; there are: 'edge.1', 'edge.2'");
  other[1].place = other[0].place;
  expect_failure(&s, &options, NULL, NULL, "the place 'edge.1' has two addresses");
  options.cloud_count = 0;
  options.cloud = s.places.address[0].address;
  expect_failure(&s, &options, NULL, NULL, "wanted the name of the place before");
  close_scene(&s);
}

/* Whoever watches a worker learns that it serves another place, before any request does. */
LP_TEST(a_greeting_names_the_place) {
  scene s;
  open_scene(&s, &over[0], 1, greedy);
  toy_places_start(&s.places);
  const lp_link_security none = {0};
  lp_diag *diag = lp_diag_create();
  for (size_t i = 0; i < 2; i++) {
    lp_place_address worker = s.places.address[i];
    ck_assert_msg(lp_worker_greet(s.bundle, &worker, &none, 5000, diag) == LP_OK, "%s", toy_error(diag));
    worker.place = s.places.address[1 - i].place;
    ck_assert_int_eq(lp_worker_greet(s.bundle, &worker, &none, 5000, diag), LP_FAILED);
    ck_assert_ptr_nonnull(strstr(toy_error(diag), i == 0 ? "serves the place 'edge.1', not 'edge.2'"
                                                         : "serves the place 'edge.2', not 'edge.1'"));
    lp_diag_clear(diag);
  }
  lp_diag_free(diag);
  close_scene(&s);
}

/* ---- strangers --------------------------------------------------------------------------------------------------- */

static const lp_security open_security;

static lp_wire *dial(const scene *s, lp_place place) {
  const lp_endpoint endpoint = {.address = s->places.port[place],
                                .bundle_hash = s->bundle->manifest.hash,
                                .patience = {5000, 50, 2000, 1000, 5000, 2000},
                                .security = &open_security};
  lp_wire *wire = NULL;
  ck_assert_int_eq(lp_wire_dial(&lp_transport_socket, &endpoint, 5000, &wire, NULL), LP_OK);
  return wire;
}

static void send_message(lp_wire *wire, Lp__Wire__Message__KindCase kind, void *body) {
  Lp__Wire__Message message = LP__WIRE__MESSAGE__INIT;
  const char *why = "";
  message.kind_case = kind;
  message.peer = body; /* all members of the union are pointers */
  ck_assert(lp_wire_send(wire, LP_ONLY_PEER, &message, NULL, 0, &why));
}

static void expect_refusal(lp_wire *wire, const char *text) {
  lp_inbound in;
  const char *why = "";
  ck_assert_int_eq(lp_wire_receive(wire, 5000, &in, &why), LP_RECV_FRAME);
  ck_assert_int_eq(in.message->kind_case, LP__WIRE__MESSAGE__KIND_FAILURE);
  ck_assert_msg(strstr(in.message->failure->text, text), "wanted '%s' in '%s'", text, in.message->failure->text);
  lp_inbound_release(&in);
  lp_wire_close(wire);
}

LP_TEST(only_devices_open_sessions) {
  scene s;
  open_scene(&s, &over[0], 1, greedy);
  toy_places_start(&s.places);
  Lp__Wire__Open open = LP__WIRE__OPEN__INIT;
  open.session = 1;
  Lp__Wire__Peer peer = LP__WIRE__PEER__INIT;
  peer.from = (char *)(uintptr_t)"edge.1";
  peer.to = (char *)(uintptr_t)"edge.2";
  Lp__Wire__Step step = LP__WIRE__STEP__INIT;
  Lp__Wire__Forward forward = LP__WIRE__FORWARD__INIT;
  forward.route = 42;
  forward.step = &step;
  /* A session without a route, or at another place. */
  lp_wire *wire = dial(&s, 2);
  send_message(wire, LP__WIRE__MESSAGE__KIND_OPEN, &open);
  expect_refusal(wire, "a session at 3 places needs a route");
  /* A connection that has not said for which place. */
  wire = dial(&s, 2);
  send_message(wire, LP__WIRE__MESSAGE__KIND_FORWARD, &forward);
  expect_refusal(wire, "has not said for which place");
  /* A place that there is not, or that this worker is not. */
  wire = dial(&s, 1);
  send_message(wire, LP__WIRE__MESSAGE__KIND_PEER, &peer);
  expect_refusal(wire, "a place that it cannot be");
  peer.to = (char *)(uintptr_t)"phone";
  wire = dial(&s, 2);
  send_message(wire, LP__WIRE__MESSAGE__KIND_PEER, &peer);
  expect_refusal(wire, "another place than this worker serves");
  /* A place forwards; an unknown route is ignored; and it opens nothing. */
  peer.to = (char *)(uintptr_t)"edge.2";
  wire = dial(&s, 2);
  send_message(wire, LP__WIRE__MESSAGE__KIND_PEER, &peer);
  send_message(wire, LP__WIRE__MESSAGE__KIND_FORWARD, &forward);
  open.route = 42;
  open.place = (char *)(uintptr_t)"edge.2";
  send_message(wire, LP__WIRE__MESSAGE__KIND_OPEN, &open);
  expect_refusal(wire, "a place only forwards");
  lp_generate_options options = options_of(&s, greedy);
  expect_wanted(&s, &options, 1, NULL, NULL);
  close_scene(&s);
}

/* ---- keys and certificates --------------------------------------------------------------------------------------- */

LP_TEST(a_key_for_all_places) {
  scene s;
  char key[512];
  snprintf(key, sizeof key, "%s/key", dir);
  FILE *file = fopen(key, "w");
  ck_assert_ptr_nonnull(file);
  fprintf(file, "a key that all places hold");
  fclose(file);
  ck_assert_int_eq(chmod(key, 0600), 0);
  setenv("LP_TOY_KEY", key, 1);
  open_scene(&s, &over[2], 1, greedy);
  toy_places_start(&s.places);
  unsetenv("LP_TOY_KEY");
  lp_generate_options options = options_of(&s, greedy);
  options.security.key_file = key;
  expect_wanted(&s, &options, 1, NULL, NULL);
  options.security.key_file = NULL;
  options.patience.dial_ms = 500;
  expect_failure(&s, &options, NULL, NULL, "cannot reach the place 'edge.1'");
  close_scene(&s);
}
