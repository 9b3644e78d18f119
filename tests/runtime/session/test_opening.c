/* How a session opens at a place of a bundle over several: what the worker there may answer, over a socket. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "runtime/bundle/bundle.h"
#include "runtime/link/link.h"
#include "runtime/link/link.pb-c.h"
#include "tests/runtime/toy/toy_run.h"
#include "tests/suite.h"

/* Shakes hands with all who come, and answers an "open" as the test says. */
typedef struct {
  lp_endpoint endpoint;
  lp_wire *wire;
  pthread_t thread;
  atomic_bool ends;
  Lp__Wire__Message__KindCase answer; /* _NOT_SET: none */
  bool drops;
  uint64_t route; /* of the last "open" */
  char place[16];
} listener;

static void answer(listener *of, uint32_t peer) {
  const char *why = "";
  char text[] = "no room";
  Lp__Wire__Message message = LP__WIRE__MESSAGE__INIT;
  Lp__Wire__Opened opened = LP__WIRE__OPENED__INIT;
  Lp__Wire__Failure failure = LP__WIRE__FAILURE__INIT;
  Lp__Wire__Probe probe = LP__WIRE__PROBE__INIT;
  message.kind_case = of->answer;
  failure.text = text;
  if (of->answer == LP__WIRE__MESSAGE__KIND_OPENED) message.opened = &opened;
  if (of->answer == LP__WIRE__MESSAGE__KIND_FAILURE) message.failure = &failure;
  if (of->answer == LP__WIRE__MESSAGE__KIND_PROBE) message.probe = &probe;
  if (of->answer != LP__WIRE__MESSAGE__KIND__NOT_SET)
    (void)lp_wire_send(of->wire, peer, &message, NULL, 0, &why); /* the session may have given up */
  if (of->drops) of->wire->transport->drop(of->wire->channel, peer);
}

static void *listen_on(void *user) {
  listener *of = user;
  while (!atomic_load(&of->ends)) {
    lp_inbound in = {0};
    const char *why = "";
    if (lp_wire_receive(of->wire, 20, &in, &why) != LP_RECV_FRAME) continue;
    uint32_t peer = in.packet.peer;
    if (in.message->kind_case == LP__WIRE__MESSAGE__KIND_HELLO)
      (void)lp_wire_hello(of->wire, peer, LP_SIDE_CLOUD, &of->endpoint, &why);
    if (in.message->kind_case == LP__WIRE__MESSAGE__KIND_OPEN) {
      of->route = in.message->open->route;
      snprintf(of->place, sizeof of->place, "%s", in.message->open->place);
      answer(of, peer);
    }
    lp_inbound_release(&in);
  }
  return NULL;
}

static const struct {
  Lp__Wire__Message__KindCase answer;
  bool drops;
  double dial_ms;
  const char *refusal; /* after the address; NULL: the session opens */
} rows[] = {
    {LP__WIRE__MESSAGE__KIND_OPENED, false, 60000, NULL},
    {LP__WIRE__MESSAGE__KIND_FAILURE, false, 60000, " refuses: no room"},
    {LP__WIRE__MESSAGE__KIND_PROBE, false, 60000, " sent an unexpected answer"},
    {LP__WIRE__MESSAGE__KIND__NOT_SET, true, 60000, ": it closed the connection"},
    {LP__WIRE__MESSAGE__KIND__NOT_SET, false, 200, ": no answer in time"},
};

static void expect_opening(lp_bundle *bundle, listener *worker, const char *address, int row) {
  const lp_place_address cloud = {"edge.1", address};
  const lp_generate_options options = {
      .threads = 1,
      .clouds = &cloud,
      .cloud_count = 1,
      .gives_up = true,
      .patience = {.dial_ms = rows[row].dial_ms, .beat_ms = 60000, .silence_ms = 60000, .repeat_ms = 60000}};
  lp_session *session = NULL;
  lp_diag *diag = lp_diag_create();
  lp_status status = lp_session_open(bundle, &options, &session, diag);
  atomic_store(&worker->ends, true);
  ck_assert_int_eq(pthread_join(worker->thread, NULL), 0);
  ck_assert_msg((status == LP_OK) == !rows[row].refusal, "%s", toy_error(diag));
  lp_buf wanted = {0};
  if (rows[row].refusal)
    lp_buf_printf(&wanted, "%sthe place 'edge.1' at %s%s", rows[row].refusal[0] == ':' ? "cannot reach " : "", address,
                  rows[row].refusal);
  ck_assert_str_eq(toy_error(diag), lp_buf_text(&wanted));
  /* On a busy machine the time of the last row may be over before. */
  if (rows[row].dial_ms >= 60000) ck_assert(worker->route != 0);
  if (rows[row].dial_ms >= 60000) ck_assert_str_eq(worker->place, "edge.1");
  lp_session_close(session);
  lp_diag_free(diag);
  lp_buf_free(&wanted);
}

LP_LOOP_TEST(answers_to_an_opening, 0, LP_COUNT(rows)) {
  char *dir = toy_dir_create(), *path = lp_path_join(dir, "w");
  lp_bundle *bundle = toy_bundle_make(&(toy_placement){.prefill = "001111", .places = 3}, LP_LOAD_DEVICE);
  lp_security none = {0};
  listener worker = {
      .endpoint = {.bundle_hash = bundle->manifest.hash, .place = "edge.1", .security = &none},
      .answer = rows[_i].answer,
      .drops = rows[_i].drops,
  };
  lp_buf address = {0};
  int port = 0;
  lp_buf_printf(&address, "unix:%s", path);
  ck_assert_int_eq(lp_wire_listen(&lp_transport_socket, address.data, &none, &worker.wire, &port, NULL), LP_OK);
  ck_assert_int_eq(pthread_create(&worker.thread, NULL, listen_on, &worker), 0);
  expect_opening(bundle, &worker, address.data, _i);
  lp_wire_close(worker.wire);
  lp_bundle_free(bundle);
  lp_buf_free(&address);
  free(path);
  toy_dir_remove(dir);
}
