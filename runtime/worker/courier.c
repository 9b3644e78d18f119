/* The thread of a courier: see courier.h. */
#include "runtime/worker/courier.h"

#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "runtime/link/link.pb-c.h"
#include "runtime/link/security.h"

static const lp_patience patience = {
    .dial_ms = 5000, .pause_ms = 50, .longest_pause_ms = 2000, .beat_ms = 1000, .silence_ms = 5000, .repeat_ms = 2000};

struct worker_courier {
  worker_courier_options options;
  char *name; /* in messages */
  pthread_t thread;
  int bell; /* an eventfd that wakes the thread */
  pthread_mutex_t mutex;
  /* Under the mutex: */
  LP_VEC(worker_parcel) queue; /* their payloads are owned */
  bool closing;
  bool sends;       /* parcels that were taken from the queue */
  bool lost;        /* for worker_courier_take_loss */
  bool down;        /* not connected */
  bool told;        /* in this outage */
  double outage_ms; /* when the outage began: a connection that ends at once does not end it */
  lp_buf why;
  /* The thread's own: */
  lp_security security;
  lp_wire *wire; /* NULL: not connected */
  double pause_ms, dialled_ms;
  bool started;
};

/* A connection that lasts as long has ended the outage; an outage that lasts as long is told. */
static const double steady_ms = 5000;

/* ---- parcels ----------------------------------------------------------------------------------------------------- */

static void drop(worker_parcel *parcel, size_t count) {
  for (size_t i = 0; i < count; i++)
    free((void *)(uintptr_t)parcel[i].payload);
}

static void ring(worker_courier *courier) {
  (void)eventfd_write(courier->bell, 1); /* fails only when the counter is full, and then the thread wakes anyway */
}

void worker_courier_send(worker_courier *courier, const worker_parcel *parcel) {
  worker_parcel copy = *parcel;
  char *payload = lp_alloc(parcel->size + 1);
  if (parcel->size > 0) memcpy(payload, parcel->payload, parcel->size);
  copy.payload = payload;
  pthread_mutex_lock(&courier->mutex);
  lp_vec_push(&courier->queue, copy);
  pthread_mutex_unlock(&courier->mutex);
  ring(courier);
}

static bool send_rows(worker_courier *courier, const worker_parcel *parcel, const char **why) {
  Lp__Wire__Rows rows = LP__WIRE__ROWS__INIT;
  rows.context = parcel->rows.context;
  rows.epoch = parcel->rows.epoch;
  rows.floor = parcel->rows.floor;
  rows.first = parcel->rows.first;
  rows.count = parcel->rows.count;
  rows.busy_ms = parcel->busy_ms;
  Lp__Wire__Message message = LP_WIRE_MESSAGE(ROWS, .rows = &rows);
  return lp_wire_send(courier->wire, LP_ONLY_PEER, &message, parcel->payload, parcel->size, why);
}

static bool send_forward(worker_courier *courier, worker_parcel *parcel, const char **why) {
  Lp__Wire__Step step = LP__WIRE__STEP__INIT;
  step.program = parcel->program;
  step.step = parcel->step;
  step.n_symbols = parcel->symbol_count;
  step.symbols = parcel->sym;
  step.want_outputs = parcel->want_outputs;
  step.run = parcel->run;
  step.n_last = parcel->last_count;
  step.last = parcel->last;
  Lp__Wire__Forward forward = LP__WIRE__FORWARD__INIT;
  forward.route = parcel->route;
  forward.step = &step;
  forward.busy_ms = parcel->busy_ms;
  Lp__Wire__Message message = LP_WIRE_MESSAGE(FORWARD, .forward = &forward);
  return lp_wire_send(courier->wire, LP_ONLY_PEER, &message, parcel->payload, parcel->size, why);
}

static bool send_parcel(worker_courier *courier, worker_parcel *parcel, const char **why) {
  return parcel->is_rows ? send_rows(courier, parcel, why) : send_forward(courier, parcel, why);
}

bool worker_courier_is_busy(worker_courier *courier) {
  pthread_mutex_lock(&courier->mutex);
  bool busy = courier->sends || courier->queue.count > 0;
  pthread_mutex_unlock(&courier->mutex);
  return busy;
}

/* ---- losses ------------------------------------------------------------------------------------------------------ */

/* Gives up the parcels that wait, and those that were sent. */
static void lose(worker_courier *courier, const char *why) {
  bool was_connected = courier->wire != NULL;
  double now = lp_now_ms();
  lp_wire_close(courier->wire);
  courier->wire = NULL;
  pthread_mutex_lock(&courier->mutex);
  if (was_connected && now - courier->dialled_ms >= steady_ms) {
    courier->pause_ms = patience.pause_ms;
    courier->outage_ms = now;
    courier->told = false;
  }
  bool lost = was_connected || courier->queue.count > 0;
  bool tells = !courier->told && now - courier->outage_ms >= steady_ms;
  drop(courier->queue.data, courier->queue.count);
  courier->queue.count = 0;
  courier->lost |= lost;
  courier->down = true;
  lp_buf_clear(&courier->why);
  lp_buf_puts(&courier->why, why);
  pthread_mutex_unlock(&courier->mutex);
  if (lost || tells) courier->options.wake(courier->options.user);
}

static void lose_connection(worker_courier *courier, const char *why) {
  LP_OWNED(lp_buf_free) lp_buf text = {0};
  lp_buf_printf(&text, "%s at %s was lost: %s", courier->name, courier->options.address, why);
  lose(courier, lp_buf_text(&text));
}

bool worker_courier_take_loss(worker_courier *courier, lp_buf *why) {
  pthread_mutex_lock(&courier->mutex);
  bool lost = courier->lost;
  lp_buf_clear(why);
  lp_buf_puts(why, lp_buf_text(&courier->why));
  courier->lost = false;
  pthread_mutex_unlock(&courier->mutex);
  return lost;
}

bool worker_courier_tells(worker_courier *courier, bool concerns) {
  pthread_mutex_lock(&courier->mutex);
  bool lasts = courier->down && lp_now_ms() - courier->outage_ms >= steady_ms;
  bool tells = !courier->told && (concerns || lasts);
  courier->told |= tells;
  pthread_mutex_unlock(&courier->mutex);
  return tells;
}

/* ---- the connection ---------------------------------------------------------------------------------------------- */

static bool introduce(worker_courier *courier, const char **why) {
  Lp__Wire__Peer peer = LP__WIRE__PEER__INIT;
  peer.from = (char *)(uintptr_t)courier->options.from; /* protobuf-c only reads them */
  peer.to = (char *)(uintptr_t)courier->options.to;
  Lp__Wire__Message message = LP_WIRE_MESSAGE(PEER, .peer = &peer);
  return lp_wire_send(courier->wire, LP_ONLY_PEER, &message, NULL, 0, why);
}

static void note_connected(worker_courier *courier) {
  pthread_mutex_lock(&courier->mutex);
  courier->down = false;
  pthread_mutex_unlock(&courier->mutex);
}

static void dial(worker_courier *courier) {
  const worker_courier_options *options = &courier->options;
  const lp_endpoint endpoint = {.name = courier->name,
                                .place = options->to,
                                .address = options->address,
                                .bundle_hash = options->bundle_hash,
                                .patience = patience,
                                .security = &courier->security};
  const char *why = "";
  LP_OWNED(lp_diag_free_at) lp_diag *diag = lp_diag_create();
  lp_security_close(&courier->security);
  lp_status status = lp_security_for(options->address, &options->security, &courier->security, diag);
  if (status == LP_OK) status = lp_wire_dial(&lp_transport_socket, &endpoint, patience.dial_ms, &courier->wire, diag);
  courier->dialled_ms = lp_now_ms();
  courier->pause_ms = fmin(2 * courier->pause_ms, patience.longest_pause_ms); /* lose() resets it */
  if (status != LP_OK)
    lose(courier, lp_diag_count(diag) > 0 ? lp_diag_get(diag, 0)->text : "the place cannot be reached");
  else if (!introduce(courier, &why))
    lose_connection(courier, why);
  else
    note_connected(courier);
}

/* Takes what comes from the place: signs of life, or why it refuses. Sets *due to the time at which it must be called
 * again. */
static void listen_to(worker_courier *courier, double *due) {
  lp_inbound in;
  const char *why = "";
  *due = INFINITY;
  switch (lp_wire_receive(courier->wire, 0, &in, &why)) {
  case LP_RECV_FRAME: {
    bool refused = in.message->kind_case == LP__WIRE__MESSAGE__KIND_FAILURE;
    lose_connection(courier, refused ? in.message->failure->text : "it sent an unexpected message");
    lp_inbound_release(&in);
    break;
  }
  case LP_RECV_TIMEOUT:
    (void)courier->wire->transport->watch(courier->wire->channel, due);
    break;
  case LP_RECV_GONE:
  case LP_RECV_GARBAGE:
  case LP_RECV_STRAINED:
    lose_connection(courier, why);
    break;
  }
}

static void send_all(worker_courier *courier) {
  const char *why = "";
  pthread_mutex_lock(&courier->mutex);
  worker_parcel *parcels = courier->queue.data;
  size_t count = courier->queue.count;
  memset(&courier->queue, 0, sizeof courier->queue);
  courier->sends = true;
  pthread_mutex_unlock(&courier->mutex);
  for (size_t i = 0; i < count && courier->wire; i++)
    if (!send_parcel(courier, &parcels[i], &why)) lose_connection(courier, why);
  if (courier->wire)
    courier->wire->transport->rest(courier->wire->channel); /* no sign of life was asked for meanwhile */
  drop(parcels, count);
  free(parcels);
  pthread_mutex_lock(&courier->mutex);
  courier->sends = false;
  pthread_mutex_unlock(&courier->mutex);
}

static bool is_closing(worker_courier *courier, bool *waits) {
  pthread_mutex_lock(&courier->mutex);
  bool closing = courier->closing;
  *waits = courier->queue.count > 0;
  pthread_mutex_unlock(&courier->mutex);
  return closing;
}

static void sleep_until(const worker_courier *courier, double due) {
  double due_ms, left = fmax(0, due - lp_now_ms());
  eventfd_t rung;
  struct pollfd wait[] = {{.fd = courier->bell, .events = POLLIN}, {.fd = -1, .events = POLLIN}};
  if (courier->wire) wait[1].fd = courier->wire->transport->watch(courier->wire->channel, &due_ms);
  if (poll(wait, 2, (int)ceil(fmin(left, 60000))) > 0 && wait[0].revents != 0) (void)eventfd_read(courier->bell, &rung);
}

static void *work(void *user) {
  worker_courier *courier = user;
  bool waits = false;
  while (!is_closing(courier, &waits)) {
    /* A parcel ends a long pause. */
    double due = courier->dialled_ms + (waits ? patience.pause_ms : courier->pause_ms);
    if (!courier->wire && lp_now_ms() >= due) dial(courier);
    if (courier->wire) listen_to(courier, &due);
    if (courier->wire && waits)
      send_all(courier);
    else
      sleep_until(courier, due);
  }
  return NULL;
}

/* ---- opening and closing ----------------------------------------------------------------------------------------- */

lp_status worker_courier_start(const worker_courier_options *options, worker_courier **out, lp_diag *diag) {
  worker_courier *courier = lp_alloc(sizeof *courier);
  courier->options = *options;
  courier->pause_ms = patience.pause_ms;
  courier->dialled_ms = -INFINITY;
  courier->outage_ms = lp_now_ms();
  lp_buf name = {0};
  lp_buf_printf(&name, "the place '%s'", options->to);
  courier->name = name.data;
  pthread_mutex_init(&courier->mutex, NULL);
  courier->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  lp_status status = lp_security_for(options->address, &options->security, &courier->security, diag);
  courier->started =
      status == LP_OK && courier->bell >= 0 && pthread_create(&courier->thread, NULL, work, courier) == 0;
  if (status == LP_OK && !courier->started)
    status = lp_error(diag, LP_LOC_NONE, "no thread is left that sends to %s", courier->name);
  *out = courier;
  return status;
}

void worker_courier_stop(worker_courier *courier) {
  if (!courier) return;
  pthread_mutex_lock(&courier->mutex);
  courier->closing = true;
  pthread_mutex_unlock(&courier->mutex);
  ring(courier);
  if (courier->started) pthread_join(courier->thread, NULL);
  lp_wire_close(courier->wire);
  lp_security_close(&courier->security);
  drop(courier->queue.data, courier->queue.count);
  lp_vec_free(&courier->queue);
  lp_buf_free(&courier->why);
  if (courier->bell >= 0) close(courier->bell);
  pthread_mutex_destroy(&courier->mutex);
  free(courier->name);
  free(courier);
}
