/* Parcels to other places, and what follows when one is lost: see forward.h. */
#include "runtime/worker/forward.h"

#include "runtime/bundle/bundle.h"
#include "runtime/exits/codec.h"
#include "runtime/exits/context.h"
#include "runtime/exits/halves.h"
#include "runtime/worker/courier.h"
#include "runtime/worker/held.h"
#include "runtime/worker/queue.h"
#include "runtime/worker/reply.h"

void worker_forward_begin(worker_session *session, uint64_t route) {
  session->route = route;
  session->run = 0;
  memset(session->last, 0, sizeof session->last);
  memset(session->sent, 0, sizeof session->sent);
  session->broken = false;
  session->carried_ms = 0;
  worker_session_drop_mail(session);
}

void worker_forward(lp_worker *worker, worker_session *session, int32_t step, const void *payload, size_t size,
                    double busy_ms) {
  const lp_manifest *manifest = &worker->bundle->manifest;
  lp_place to = manifest->programs[session->program].step[step].to;
  worker_parcel parcel = {.route = session->route,
                          .run = session->run,
                          .last_count = (size_t)manifest->place_count,
                          .program = (uint32_t)session->program,
                          .step = step,
                          .symbol_count = (size_t)manifest->symbol_count,
                          .want_outputs = session->want_outputs,
                          .busy_ms = busy_ms,
                          .payload = payload,
                          .size = size};
  memcpy(parcel.last, session->last, sizeof parcel.last);
  memcpy(parcel.sym, session->sym, sizeof parcel.sym);
  session->sent[to] = true;
  worker_courier_send(worker->courier[to], &parcel); /* check_peers has seen to it that there is one */
}

/* The most rows in one message. */
enum { MOST_ROWS = 256 };

static worker_courier *to_next(const lp_worker *worker) {
  return worker->courier[worker->halves.chain[worker->link + 1]];
}

void worker_forward_rows(lp_worker *worker, const worker_context *context, int64_t from, double busy_ms) {
  const lp_context *of = context->context;
  const size_t row = lp_codec_row_bytes(of->options.codec, lp_halves_made_width(&worker->halves, worker->link));
  int64_t left = 0;
  const uint8_t *rows = lp_context_kept(of, from, &left);
  for (; left > 0; left -= MOST_ROWS, from += MOST_ROWS, rows += MOST_ROWS * row) {
    const int64_t count = left < MOST_ROWS ? left : MOST_ROWS;
    const worker_parcel parcel = {
        .is_rows = true,
        .rows = {context->id, of->time.epoch, of->time.floor, from, count},
        .busy_ms = left > MOST_ROWS ? 0 : busy_ms,
        .payload = rows,
        .size = (size_t)count * row,
    };
    worker_courier_send(to_next(worker), &parcel);
  }
}

bool worker_forward_is_busy(const lp_worker *worker) {
  return worker_courier_is_busy(to_next(worker));
}

/* ---- couriers ---------------------------------------------------------------------------------------------------- */

static bool sends(const lp_manifest *manifest, lp_place from, lp_place to) {
  for (int32_t i = 0; i < manifest->program_count; i++)
    for (int32_t k = 0; k < manifest->programs[i].step_count; k++) {
      const lp_step *step = &manifest->programs[i].step[k];
      if ((step->kind == LP_STEP_SEND || step->kind == LP_STEP_MOVE) && step->side == from && step->to == to)
        return true;
    }
  return false;
}

static const char *address_of(const lp_worker *worker, lp_place place) {
  const char *name = worker->bundle->manifest.place_name[place];
  for (size_t i = 0; i < worker->options->peer_count; i++)
    if (lp_streq(worker->options->peers[i].place, name)) return worker->options->peers[i].address;
  return NULL;
}

static lp_status check_peers(const lp_worker *worker, lp_diag *diag) {
  const lp_manifest *manifest = &worker->bundle->manifest;
  for (size_t i = 0; i < worker->options->peer_count; i++) {
    lp_place place = lp_place_find(manifest->place_name, manifest->place_count, worker->options->peers[i].place);
    if (place <= LP_SIDE_DEVICE)
      return lp_error(diag, LP_LOC_FILE("--peer"), "'%.60s' is no place besides the device in this bundle",
                      worker->options->peers[i].place);
    for (size_t k = 0; k < i; k++)
      if (lp_streq(worker->options->peers[i].place, worker->options->peers[k].place))
        return lp_error(diag, LP_LOC_FILE("--peer"), "two addresses of '%.60s'", worker->options->peers[i].place);
  }
  return LP_OK;
}

static void wake(void *user) {
  lp_worker *worker = user;
  worker->wire->transport->wake(worker->wire->channel);
}

static lp_status start(lp_worker *worker, lp_place place, lp_diag *diag) {
  const lp_manifest *manifest = &worker->bundle->manifest;
  const char *address = address_of(worker, place), *name = manifest->place_name[place];
  if (!address)
    return lp_error(diag, LP_LOC_FILE(manifest->file), "'%s' sends to '%s': wanted --peer=%s=HOST:PORT",
                    manifest->place_name[worker->place], name, name);
  const worker_courier_options options = {.from = manifest->place_name[worker->place],
                                          .to = name,
                                          .address = address,
                                          .bundle_hash = manifest->hash,
                                          .security = worker->options->peer_security,
                                          .wake = wake,
                                          .user = worker};
  return worker_courier_start(&options, &worker->courier[place], diag);
}

lp_status worker_forward_start(lp_worker *worker, lp_diag *diag) {
  const lp_manifest *manifest = &worker->bundle->manifest;
  LP_TRY(check_peers(worker, diag));
  for (lp_place i = LP_SIDE_DEVICE + 1; i < manifest->place_count; i++)
    if (i != worker->place && sends(manifest, worker->place, i)) LP_TRY(start(worker, i, diag));
  return LP_OK;
}

void worker_forward_stop(lp_worker *worker) {
  for (lp_place i = 0; i < LP_PLACES_MAX; i++)
    worker_courier_stop(worker->courier[i]);
}

/* Tells whether any session is concerned. */
static bool lose(lp_worker *worker, lp_place place, const char *why) {
  bool any = false;
  LP_FOR_VEC_REFS(worker_session, session, &worker->sessions) {
    if (!session->sent[place] || session->broken) continue;
    any = true;
    worker_tell_lost(worker, session->peer, session->id, why);
    session->broken = true;
    session->next = -1;
    worker_queue_drop(session);
    worker_session_drop_mail(session);
  }
  return any;
}

void worker_forward_tend(lp_worker *worker) {
  LP_OWNED(lp_buf_free) lp_buf why = {0};
  for (lp_place i = 0; i < LP_PLACES_MAX; i++) {
    worker_courier *courier = worker->courier[i];
    if (!courier) continue;
    bool concerns = worker_courier_take_loss(courier, &why) && lose(worker, i, lp_buf_text(&why));
    if (worker_courier_tells(courier, concerns))
      lp_warning(worker->diag, LP_LOC_NONE, "%s; it is dialled again", lp_buf_text(&why));
  }
}
