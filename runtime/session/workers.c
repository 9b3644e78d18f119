/* The workers of the places besides the device: addresses, connections, and whose message is next. */

#include "base/clock.h"
#include "runtime/bundle/bundle.h"
#include "runtime/bundle/manifest.h"
#include "runtime/exits/cloud_end.h"
#include "runtime/exits/collaborate.h"
#include "runtime/link/address.h"
#include "runtime/link/link.h"
#include "runtime/link/link.pb-c.h"
#include "runtime/link/link_emulator.h"
#include "runtime/link/security.h"
#include "runtime/runtime.h"
#include "runtime/session/session.h"

/* The most messages of a place that wait for their turn: an honest one sends a result for each step at most. */
enum { MOST_EARLY = 1024 };

/* ---- addresses --------------------------------------------------------------------------------------------------- */

static bool takes_part(const lp_manifest *manifest, lp_place place) {
  for (int32_t i = 0; i < manifest->program_count; i++)
    if (manifest->programs[i].takes_part[place]) return true;
  return false;
}

static lp_status no_place(const lp_manifest *manifest, const char *name, lp_diag *diag) {
  LP_OWNED(lp_buf_free) lp_buf all = {0};
  for (lp_place i = LP_SIDE_DEVICE + 1; i < manifest->place_count; i++)
    lp_buf_printf(&all, "%s'%s'", i > 1 ? ", " : "", manifest->place_name[i]);
  return lp_error(diag, LP_LOC_FILE(manifest->file), "no worker can run the place '%.60s'; there are: %s", name,
                  lp_buf_text(&all));
}

static lp_status no_address(const lp_manifest *manifest, const char *name, const char *in, lp_diag *diag) {
  return lp_error(diag, LP_LOC_FILE(manifest->file), "no worker is given for the place '%s'%s%s", name,
                  *in ? " in " : "", in);
}

/* Sets the addresses that the options give. One without a name is the cloud's of two places. */
static lp_status read_addresses(lp_session *session, lp_diag *diag) {
  const lp_manifest *manifest = &session->bundle->manifest;
  const lp_generate_options *options = &session->options;
  if (options->cloud && manifest->place_count > LP_SIDE_COUNT)
    return lp_error(diag, LP_LOC_FILE(manifest->file),
                    "the bundle has %" PRId32 " places: wanted the name of the place before '%s', as in '%s=%s'",
                    manifest->place_count, options->cloud, manifest->place_name[1], options->cloud);
  if (options->cloud) session->place[LP_SIDE_CLOUD].endpoint.address = options->cloud;
  LP_FOR_EACH(const lp_place_address, given, options->clouds, options->cloud_count) {
    lp_place at = lp_place_find(manifest->place_name, manifest->place_count, given->place);
    if (at <= LP_SIDE_DEVICE) return no_place(manifest, given->place, diag);
    if (session->place[at].endpoint.address)
      return lp_error(diag, LP_LOC_FILE(manifest->file), "the place '%s' has two addresses", given->place);
    session->place[at].endpoint.address = given->address;
  }
  for (lp_place i = LP_SIDE_DEVICE + 1; i < manifest->place_count; i++)
    if (takes_part(manifest, i) && !session->place[i].endpoint.address)
      return no_address(manifest, manifest->place_name[i], "", diag);
  return LP_OK;
}

static bool is_address(const char *text) {
  LP_OWNED(lp_free_at) char *host = NULL;
  int port = 0;
  return lp_address_split(text, &host, &port, NULL) == LP_OK;
}

/* The length of the name before the address; 0: there is none. An address has a colon before any "=". */
static size_t name_of(const char *text) {
  size_t length = strcspn(text, "=:");
  return text[length] == '=' ? length : 0;
}

static lp_status add_address(const char *text, lp_loc loc, lp_arena *arena, lp_place_addresses *out, lp_diag *diag) {
  size_t length = name_of(text);
  const char *address = length > 0 ? text + length + 1 : text;
  if (text[0] == '=' || !is_address(address))
    return lp_error(diag, loc, "'%s' is no address: wanted HOST:PORT or unix:PATH", address);
  if (out->only || (length == 0 && out->count > 0))
    return lp_error(diag, loc, "two addresses: wanted the name of a place before each, such as edge=%s", address);
  if (length == 0) {
    out->only = lp_arena_strdup(arena, address);
    return LP_OK;
  }
  const char *name = lp_arena_strndup(arena, text, length);
  for (size_t i = 0; i < out->count; i++)
    if (lp_streq(out->place[i].place, name)) return lp_error(diag, loc, "the place '%s' has two addresses", name);
  if (out->count == LP_PLACES_MAX) return lp_error(diag, loc, "more than %d addresses", LP_PLACES_MAX);
  out->place[out->count++] = (lp_place_address){name, lp_arena_strdup(arena, address)};
  return LP_OK;
}

lp_status lp_place_addresses_of(const char *const *texts, size_t count, const char *from, lp_arena *arena,
                                lp_place_addresses *out, lp_diag *diag) {
  *out = (lp_place_addresses){0};
  for (size_t i = 0; i < count; i++)
    LP_TRY(add_address(texts[i], LP_LOC_FILE(from), arena, out, diag));
  return LP_OK;
}

/* Refuses addresses without names, names that no worker can have, and with `all` places without an address. */
static lp_status check_names(const lp_place_addresses *given, const char *text, const lp_manifest *manifest, bool all,
                             lp_diag *diag) {
  if (given->only)
    return lp_error(diag, LP_LOC_FILE(manifest->file),
                    "the bundle has %" PRId32 " places: wanted the name of the place before '%s', as in '%s=%s'",
                    manifest->place_count, given->only, manifest->place_name[1], given->only);
  for (size_t i = 0; i < given->count; i++)
    if (lp_place_find(manifest->place_name, manifest->place_count, given->place[i].place) <= LP_SIDE_DEVICE)
      return no_place(manifest, given->place[i].place, diag);
  for (lp_place i = LP_SIDE_DEVICE + 1; all && i < manifest->place_count; i++) {
    bool found = !takes_part(manifest, i);
    for (size_t k = 0; k < given->count; k++)
      found = found || lp_streq(given->place[k].place, manifest->place_name[i]);
    if (!found) return no_address(manifest, manifest->place_name[i], text, diag);
  }
  return LP_OK;
}

lp_status lp_place_addresses_read(const char *text, const lp_bundle *bundle, lp_arena *arena, bool all,
                                  lp_place_addresses *out, lp_diag *diag) {
  const lp_manifest *manifest = &bundle->manifest;
  *out = (lp_place_addresses){0};
  if (manifest->place_count <= LP_SIDE_COUNT) {
    out->only = lp_arena_strdup(arena, text);
    return LP_OK;
  }
  char *copy = lp_arena_strdup(arena, text);
  for (char *next = copy; next;) {
    char *one = next;
    next = strchr(one, ',');
    if (next) *next++ = 0;
    LP_TRY(add_address(one, LP_LOC_FILE(manifest->file), arena, out, diag));
  }
  return check_names(out, text, manifest, all, diag);
}

static lp_status find_worker(lp_session *session, lp_place at, lp_diag *diag) {
  const lp_manifest *manifest = &session->bundle->manifest;
  const lp_generate_options *options = &session->options;
  lp_remote_place *place = &session->place[at];
  if (manifest->place_count > LP_SIDE_COUNT) {
    lp_buf name = {0};
    lp_buf_printf(&name, "the place '%s'", manifest->place_name[at]);
    place->name = name.data;
    place->endpoint.place = manifest->place_name[at];
  }
  place->endpoint.name = place->name;
  place->endpoint.bundle_hash = manifest->hash;
  place->endpoint.patience = session->patience;
  place->endpoint.security = place->security = lp_alloc(sizeof *place->security);
  LP_TRY(lp_security_for(place->endpoint.address, &options->security, place->security, diag));
  if (!options->link) return LP_OK;
  LP_TRY(lp_link_emulator_start(place->endpoint.address, options->link, &place->emulator, diag));
  place->endpoint.via = lp_link_emulator_address(place->emulator);
  return LP_OK;
}

lp_status lp_session_find_workers(lp_session *session, lp_diag *diag) {
  if (!session->remote) return LP_OK;
  LP_TRY(read_addresses(session, diag));
  for (lp_place i = 0; i < session->bundle->manifest.place_count; i++)
    if (session->place[i].endpoint.address) LP_TRY(find_worker(session, i, diag));
  return LP_OK;
}

void lp_session_forget_workers(lp_session *session) {
  LP_FOR_EACH(lp_remote_place, place, session->place, LP_PLACES_MAX) {
    lp_link_emulator_stop(place->emulator);
    if (place->security) lp_security_close(place->security);
    free(place->security);
    free(place->name);
    lp_vec_free(&place->early);
  }
}

/* ---- connections ------------------------------------------------------------------------------------------------- */

static lp_status unreachable(const lp_session *session, lp_place at, const char *why, lp_diag *diag) {
  const lp_endpoint *endpoint = &session->place[at].endpoint;
  return lp_error(diag, LP_LOC_NONE, "cannot reach %s at %s: %s", lp_endpoint_name(endpoint), endpoint->address, why);
}

static lp_status open_at(lp_session *session, lp_place at, lp_diag *diag) {
  const lp_generate_options *options = &session->options;
  Lp__Wire__Open open = LP__WIRE__OPEN__INIT;
  open.session = session->id;
  open.temperature = options->sampling.temperature;
  open.top_k = options->sampling.top_k;
  open.top_p = options->sampling.top_p;
  open.seed = options->sampling.seed;
  open.times = options->trace != NULL;
  if (options->traceparent) open.traceparent = (char *)(uintptr_t)options->traceparent;
  open.route = session->route;
  /* protobuf-c only reads it */
  if (session->route != 0) open.place = (char *)(uintptr_t)session->bundle->manifest.place_name[at];
  Lp__Wire__Message message = LP_WIRE_MESSAGE(OPEN, .open = &open);
  const char *why = "";
  session->place[at].run = 0;
  if (lp_wire_send(session->wire[at], LP_ONLY_PEER, &message, NULL, 0, &why)) return LP_OK;
  return unreachable(session, at, why, diag);
}

/* Waits until the place knows the session's route: before that, others may not send to it. */
static lp_status await_opened(lp_session *session, lp_place at, bool *refused, lp_diag *diag) {
  lp_place from = at;
  lp_inbound in;
  const char *why = "no answer in time";
  double until = lp_now_ms() + session->patience.dial_ms;
  lp_recv_outcome outcome;
  do
    outcome = lp_session_receive(session, at, until - lp_now_ms(), &from, &in, &why);
  while (outcome == LP_RECV_TIMEOUT && lp_now_ms() < until);
  if (outcome == LP_RECV_TIMEOUT) why = "no answer in time";
  if (outcome != LP_RECV_FRAME) return unreachable(session, from, why, diag);
  const lp_endpoint *endpoint = &session->place[from].endpoint;
  const Lp__Wire__Message *message = in.message;
  lp_status status = LP_OK;
  *refused = message->kind_case != LP__WIRE__MESSAGE__KIND_OPENED;
  if (message->kind_case == LP__WIRE__MESSAGE__KIND_FAILURE)
    status = lp_error(diag, LP_LOC_NONE, "%s at %s refuses: %s", lp_endpoint_name(endpoint), endpoint->address,
                      message->failure->text);
  else if (*refused)
    status = lp_error(diag, LP_LOC_NONE, "%s at %s sent an unexpected answer", lp_endpoint_name(endpoint),
                      endpoint->address);
  lp_inbound_release(&in);
  return status;
}

static lp_status connect_all(lp_session *session, bool *refused, lp_diag *diag) {
  lp_place count = session->bundle->manifest.place_count;
  session->route = count > LP_SIDE_COUNT ? lp_context_draw() : 0;
  session->run = 0;
  for (lp_place i = 0; i < count; i++)
    if (session->place[i].endpoint.address)
      LP_TRY(lp_wire_try_dial(&lp_transport_socket, &session->place[i].endpoint, session->patience.dial_ms,
                              &session->wire[i], refused, diag));
  if (!lp_wires_open(&session->wires, session->wire, (size_t)count))
    return lp_error(diag, LP_LOC_NONE, "no descriptors are left for the connections to the places");
  for (lp_place i = 0; i < count; i++)
    if (session->wire[i]) LP_TRY(open_at(session, i, diag));
  for (lp_place i = 0; i < count && session->route != 0; i++)
    if (session->wire[i]) LP_TRY(await_opened(session, i, refused, diag));
  return LP_OK;
}

bool lp_session_is_connected(const lp_session *session) {
  for (lp_place i = 0; i < LP_PLACES_MAX; i++)
    if (session->wire[i]) return true;
  return false;
}

static lp_status connect_once(void *user, bool *refused, lp_diag *diag) {
  lp_session *session = user;
  if (!session->remote || lp_session_is_connected(session)) return LP_OK;
  lp_status status = connect_all(session, refused, diag);
  if (status != LP_OK) lp_session_disconnect(session);
  *refused = *refused || lp_generation_is_stopped(&session->options);
  return status;
}

lp_status lp_session_connect(lp_session *session, lp_diag *diag) {
  bool refused = false;
  return connect_once(session, &refused, diag);
}

double lp_session_reach_ms(const lp_session *session) {
  const lp_generate_options *options = &session->options;
  if (options->gives_up) return 0;
  return options->cloud_timeout_ms > 0 ? options->cloud_timeout_ms : session->patience.dial_ms;
}

lp_status lp_session_reach(lp_session *session, lp_diag *diag) {
  return lp_reach(&session->patience, lp_session_reach_ms(session), connect_once, session, diag);
}

static void disconnect(lp_session *session, lp_place at) {
  lp_remote_place *place = &session->place[at];
  for (size_t i = 0; i < place->early.count; i++)
    lp_inbound_release(&place->early.data[i]);
  place->early.count = 0;
  if (!session->wire[at]) return;
  Lp__Wire__Close close = LP__WIRE__CLOSE__INIT;
  close.session = session->id;
  Lp__Wire__Message message = LP_WIRE_MESSAGE(CLOSE, .close = &close);
  const char *why = "";
  /* If sending fails, the end of the connection closes the worker's session too. */
  (void)lp_wire_send(session->wire[at], LP_ONLY_PEER, &message, NULL, 0, &why);
  session->bytes_up += session->wire[at]->bytes_sent;
  session->bytes_down += session->wire[at]->bytes_received;
  lp_wire_close(session->wire[at]);
  session->wire[at] = NULL;
}

void lp_session_disconnect(lp_session *session) {
  lp_wires_close(&session->wires);
  session->stream = (lp_session_stream){0};
  for (lp_place i = 0; i < LP_PLACES_MAX; i++)
    disconnect(session, i);
}

void lp_session_count_bytes(const lp_session *session, uint64_t *up, uint64_t *down) {
  *up = session->bytes_up;
  *down = session->bytes_down;
  for (lp_place i = 0; i < LP_PLACES_MAX; i++) {
    if (!session->wire[i]) continue;
    *up += session->wire[i]->bytes_sent;
    *down += session->wire[i]->bytes_received;
  }
}

/* ---- messages ---------------------------------------------------------------------------------------------------- */

static bool take_early(lp_remote_place *place, lp_inbound *in) {
  if (place->early.count == 0) return false;
  *in = place->early.data[0];
  place->early.count--;
  for (size_t i = 0; i < place->early.count; i++)
    place->early.data[i] = place->early.data[i + 1];
  return true;
}

lp_recv_outcome lp_session_receive(lp_session *session, lp_place place, double timeout_ms, lp_place *from,
                                   lp_inbound *in, const char **why) {
  double until = lp_now_ms() + timeout_ms;
  size_t at = 0;
  *from = place;
  if (take_early(&session->place[place], in)) return LP_RECV_FRAME;
  for (;;) {
    lp_recv_outcome outcome = lp_wires_receive(&session->wires, until - lp_now_ms(), &at, in, why);
    if (outcome == LP_RECV_TIMEOUT) return outcome;
    *from = (lp_place)at;
    if (outcome != LP_RECV_FRAME || *from == place) return outcome;
    if (in->message->kind_case == LP__WIRE__MESSAGE__KIND_FAILURE) return outcome;
    if (session->place[at].early.count >= MOST_EARLY) {
      lp_inbound_release(in);
      *why = "it sends more than was asked for";
      return LP_RECV_GARBAGE;
    }
    lp_vec_push(&session->place[at].early, *in);
  }
}
