/* Pools in PostgreSQL databases, by libpq. A connection that broke is opened again at the next use, after a pause that
 * doubles while the database cannot be reached; calls in between fail at once. */
#include "runtime/router/store_internal.h"

#ifdef LP_POSTGRES
#include <libpq-fe.h>
#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/library.h"

enum { VERSION = 2, NUMBER = 32 };
#define LOCK "SELECT pg_advisory_xact_lock(1819308660);" /* "lprt" */

/* A database that does not answer must not hold up requests for long. Reading a whole pool may take longer. */
static const double write_ms = 2000, read_ms = 60000;
static const double shortest_pause_ms = 250, longest_pause_ms = 15000;

/* Several processes may make the tables at once, so one does at a time. */
static const char schema[] =
    "BEGIN;" LOCK "CREATE SCHEMA IF NOT EXISTS llmpart;"
    "CREATE TABLE IF NOT EXISTS llmpart.version (number integer PRIMARY KEY);"
    "INSERT INTO llmpart.version SELECT 1 WHERE NOT EXISTS (SELECT FROM llmpart.version);"
    "CREATE TABLE IF NOT EXISTS llmpart.decision (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,"
    " keywords text NOT NULL, offered integer NOT NULL, rule text NOT NULL, route text NOT NULL,"
    " source integer NOT NULL, propensity double precision NOT NULL, p_edge double precision NOT NULL,"
    " p_cloud double precision NOT NULL, p_split double precision NOT NULL, reason text NOT NULL);"
    "ALTER TABLE llmpart.decision ADD COLUMN IF NOT EXISTS owner bigint NOT NULL DEFAULT 0;"
    "UPDATE llmpart.version SET number = 2 WHERE number < 2;"
    "CREATE TABLE IF NOT EXISTS llmpart.outcome (sequence bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,"
    " decision bigint NOT NULL UNIQUE REFERENCES llmpart.decision (id),"
    " reward double precision NOT NULL, good boolean NOT NULL); COMMIT";

/* Every query yields these columns, as read_row takes them. */
#define COLUMNS                                                                                                        \
  "SELECT d.id, d.keywords, d.offered, d.rule, d.route, d.source, d.propensity, d.p_edge, d.p_cloud, d.p_split,"       \
  " d.reason, o.reward, o.good::integer, o.sequence, d.owner FROM llmpart.decision d "

static const char insert_decision[] =
    "INSERT INTO llmpart.decision (keywords, offered, rule, route, source, propensity, p_edge, p_cloud, p_split,"
    " reason, owner) VALUES ($1,$2,$3,$4,$5,$6,$7,$8,$9,$10,$11) RETURNING id";
/* Yields the decision's number if it exists, and whether the outcome was added. */
static const char insert_outcome[] =
    "WITH added AS (INSERT INTO llmpart.outcome (decision, reward, good) SELECT id, $2, $3 FROM llmpart.decision"
    " WHERE id = $1 ON CONFLICT (decision) DO NOTHING RETURNING decision)"
    " SELECT id, (SELECT count(*) FROM added) FROM llmpart.decision WHERE id = $1";
/* Outcomes are committed in the order of their sequence numbers, which those who follow the pool rely on. */
static const char begin[] = "BEGIN;" LOCK;
static const char get_decision[] = COLUMNS "LEFT JOIN llmpart.outcome o ON o.decision = d.id WHERE d.id = $1";
static const char each_outcome[] = COLUMNS
    "JOIN (SELECT * FROM llmpart.outcome WHERE sequence > $1 ORDER BY sequence DESC LIMIT $2) o ON o.decision = d.id"
    " ORDER BY o.sequence";

typedef struct {
  PGconn *connection;
  bool hangs;                /* the last command got no answer in time */
  double pause_ms, retry_ms; /* when an attempt failed: the pause after it, and its end */
} database;

/* ---- the library ------------------------------------------------------------------------------------------------- */

/* Loaded by the first pool that is in a database: it and what it needs take as long to load as llmpart itself. */
#define FUNCTIONS(of)                                                                                                  \
  of(clear) of(connectdbParams) of(consumeInput) of(errorMessage) of(finish) of(getResult) of(getisnull) of(getvalue)  \
      of(isBusy) of(ntuples) of(reset) of(resultStatus) of(sendQuery) of(sendQueryParams) of(setNoticeReceiver)        \
          of(socket) of(status)
#define MEMBER(name) __typeof__(PQ##name) *(name);
#define FOUND_AS(name) {"PQ" #name, &pq.name},
static struct {
  FUNCTIONS(MEMBER)
} pq;
static bool is_loaded;

static void load(void) {
  const lp_library_function functions[] = {FUNCTIONS(FOUND_AS)};
  is_loaded = lp_library_load("libpq.so.5", functions, LP_COUNT(functions));
}

static bool find_library(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  (void)pthread_once(&once, load);
  return is_loaded;
}

/* ---- the connection ---------------------------------------------------------------------------------------------- */

/* libpq's messages end with a newline. */
static void say(const char *message, char out[160]) {
  (void)snprintf(out, 160, "%.*s", (int)strcspn(message, "\n"), message);
}

static const char *last_error(const lp_store *store) {
  const database *self = store->own;
  return self->hangs ? "the database does not answer" : pq.errorMessage(self->connection);
}

static lp_status fail(const lp_store *store, lp_diag *diag) {
  char text[160];
  say(last_error(store), text);
  return lp_error(diag, (lp_loc){.file = store->name}, "%s", text[0] ? text : "the database gave no reason");
}

static bool is_connected(const database *self) {
  return pq.status(self->connection) == CONNECTION_OK && !self->hangs;
}

static void pause_attempts(database *self) {
  self->pause_ms = fmin(longest_pause_ms, fmax(shortest_pause_ms, self->pause_ms * 2));
  self->retry_ms = lp_now_ms() + self->pause_ms;
}

/* Connects again if the connection is broken; false: there is none now. */
static bool connect_again(database *self) {
  if (is_connected(self)) return true;
  if (lp_now_ms() < self->retry_ms) return false;
  pq.reset(self->connection);
  if (pq.status(self->connection) != CONNECTION_OK) return pause_attempts(self), false;
  self->hangs = false;
  self->pause_ms = 0;
  return true;
}

/* Waits for the next result of a command that was sent; false: time is up, or the connection is broken. */
static bool await(database *self, double until_ms) {
  while (pq.isBusy(self->connection)) {
    struct pollfd socket = {.fd = pq.socket(self->connection), .events = POLLIN};
    double left_ms = fmax(0, until_ms - lp_now_ms());
    int ready = poll(&socket, 1, (int)left_ms + 1);
    if (ready == 0 && left_ms <= 0) self->hangs = true;
    if (self->hangs || (ready > 0 && !pq.consumeInput(self->connection))) return false;
  }
  return true;
}

static bool succeeded(const PGresult *result) {
  ExecStatusType status = pq.resultStatus(result);
  return status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK;
}

/* The result of a command that was sent: the last one, or the first that failed; NULL: none came. */
static PGresult *receive(database *self, double patience_ms) {
  double until_ms = lp_now_ms() + patience_ms;
  PGresult *last = NULL;
  while (await(self, until_ms)) {
    PGresult *result = pq.getResult(self->connection);
    if (!result) return last;
    bool keeps = last && !succeeded(last);
    pq.clear(keeps ? result : last);
    if (!keeps) last = result;
  }
  if (self->hangs) pause_attempts(self);
  pq.clear(last);
  return NULL;
}

/* Runs a command; `out` gets the result, to be cleared by pq.clear, also if it failed. */
static bool query(lp_store *store, const char *sql, int count, const char *const *values, double patience_ms,
                  PGresult **out) {
  database *self = store->own;
  bool sent = pq.sendQueryParams(self->connection, sql, count, NULL, values, NULL, NULL, 0);
  *out = sent ? receive(self, patience_ms) : NULL;
  return succeeded(*out);
}

/* Runs commands without parameters. */
static bool execute(lp_store *store, const char *sql) {
  database *self = store->own;
  PGresult *result = pq.sendQuery(self->connection, sql) ? receive(self, write_ms) : NULL;
  bool done = succeeded(result);
  pq.clear(result);
  return done;
}

static int64_t number_at(const PGresult *result, int row, int column) {
  return strtoll(pq.getvalue(result, row, column), NULL, 10);
}

static lp_status prepare_tables(lp_store *store, lp_diag *diag) {
  if (!execute(store, schema)) return fail(store, diag);
  PGresult *result;
  bool found = query(store, "SELECT max(number) FROM llmpart.version", 0, NULL, read_ms, &result);
  int64_t version = found ? number_at(result, 0, 0) : 0;
  pq.clear(result);
  if (!found) return fail(store, diag);
  if (version <= VERSION) return LP_OK;
  return lp_error(diag, (lp_loc){.file = store->name}, "written by a newer version (%d, known is %d)", (int)version,
                  VERSION);
}

static void ignore_notice(void *user, const PGresult *result) {
  (void)user;
  (void)result;
}

static lp_status open_pool(lp_store *store, lp_diag *diag) {
  /* What the URL says takes precedence. */
  const char *const names[] = {"connect_timeout", "fallback_application_name", "client_encoding", "dbname", NULL};
  const char *const values[] = {"3", "llmpart", "UTF8", store->pool, NULL};
  if (!find_library()) return lp_error(diag, (lp_loc){.file = store->name}, "libpq.so.5 is not there");
  database *self = lp_alloc(sizeof *self);
  *self = (database){.connection = pq.connectdbParams(names, values, 1)};
  store->own = self;
  if (pq.status(self->connection) != CONNECTION_OK) return fail(store, diag);
  (void)pq.setNoticeReceiver(self->connection, ignore_notice, NULL);
  return prepare_tables(store, diag);
}

static void close_pool(lp_store *store) {
  database *self = store->own;
  if (!self) return;
  pq.finish(self->connection);
  free(self);
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

static bool write_decision(lp_store *store, lp_store_line *line) {
  const lp_decision *decision = line->decision;
  char number[10][NUMBER], owner[NUMBER];
  (void)snprintf(number[1], NUMBER, "%u", line->request->offered);
  (void)snprintf(number[4], NUMBER, "%d", (int)decision->source);
  (void)snprintf(number[5], NUMBER, "%.17g", decision->propensity);
  for (lp_route route = 0; route < LP_ROUTE_COUNT; route++)
    (void)snprintf(number[6 + route], NUMBER, "%.17g", decision->probability[route]);
  (void)snprintf(owner, sizeof owner, "%lld", (long long)line->request->owner);
  const char *const values[] = {line->request->keywords,
                                number[1],
                                lp_route_name(line->request->rule),
                                lp_route_name(decision->route),
                                number[4],
                                number[5],
                                number[6],
                                number[7],
                                number[8],
                                decision->reason,
                                owner};
  PGresult *result;
  bool written = query(store, insert_decision, LP_COUNT(values), values, write_ms, &result);
  if (written) line->id = number_at(result, 0, 0);
  pq.clear(result);
  return written;
}

/* A decision that does not exist, or has an outcome, is an error of the line only. */
static bool write_outcome(lp_store *store, lp_store_line *line) {
  char id[NUMBER], reward[NUMBER];
  (void)snprintf(id, sizeof id, "%lld", (long long)line->id);
  (void)snprintf(reward, sizeof reward, "%.17g", line->reward);
  const char *const values[] = {id, reward, line->good ? "true" : "false"};
  PGresult *result;
  bool run = query(store, insert_outcome, LP_COUNT(values), values, write_ms, &result);
  if (run && pq.ntuples(result) == 0)
    lp_store_line_lacks_decision(line);
  else if (run && number_at(result, 0, 1) == 0)
    lp_store_line_has_outcome(line);
  pq.clear(result);
  return run;
}

/* One transaction over the rows without an error. If a row ends it (a text that is not UTF-8), sets its error; `again`
 * tells that the others are to be written without it. */
static bool write_once(lp_store *store, lp_store_line *first, bool *again) {
  const database *self = store->own;
  *again = false;
  bool written = execute(store, begin);
  for (lp_store_line *line = first; written && line; line = line->next) {
    if (line->error[0]) continue;
    written = line->request ? write_decision(store, line) : write_outcome(store, line);
    if (written) continue;
    say(last_error(store), line->error);
    *again = is_connected(self);
  }
  return written && execute(store, "COMMIT");
}

static void write_lines(lp_store *store, lp_store_line *first) {
  bool again = connect_again(store->own), written = false;
  while (again && !(written = write_once(store, first, &again))) {
    char why[160];
    say(last_error(store), why);
    (void)execute(store, "ROLLBACK");
    for (lp_store_line *line = first; !again && line; line = line->next)
      lp_store_line_fail(line, why);
  }
  for (lp_store_line *line = first; !written && line; line = line->next)
    if (!line->error[0]) say(last_error(store), line->error);
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

/* The texts belong to the result. */
static lp_status read_row(const lp_store *store, const PGresult *result, int row, lp_stored *out, lp_diag *diag) {
  *out = (lp_stored){.id = number_at(result, row, 0)};
  out->request.keywords = pq.getvalue(result, row, 1);
  out->request.offered = (unsigned)number_at(result, row, 2);
  LP_TRY(lp_store_read_row(store, pq.getvalue(result, row, 3), pq.getvalue(result, row, 4), number_at(result, row, 5),
                           out, diag));
  out->decision.propensity = strtod(pq.getvalue(result, row, 6), NULL);
  for (lp_route route = 0; route < LP_ROUTE_COUNT; route++)
    out->decision.probability[route] = strtod(pq.getvalue(result, row, 7 + (int)route), NULL);
  (void)snprintf(out->decision.reason, sizeof out->decision.reason, "%s", pq.getvalue(result, row, 10));
  out->has_outcome = !pq.getisnull(result, row, 11);
  out->reward = strtod(pq.getvalue(result, row, 11), NULL);
  out->good = number_at(result, row, 12) != 0;
  out->sequence = number_at(result, row, 13);
  out->request.owner = (uint64_t)number_at(result, row, 14);
  return LP_OK;
}

static lp_status visit_rows(lp_store *store, const PGresult *result, lp_store_visit *visit, void *user, lp_diag *diag) {
  for (int row = 0; row < pq.ntuples(result); row++) {
    lp_stored stored;
    LP_TRY(read_row(store, result, row, &stored, diag));
    visit(user, &stored);
  }
  return LP_OK;
}

static lp_status read_rows(lp_store *store, const char *sql, int count, const char *const *values,
                           lp_store_visit *visit, void *user, lp_diag *diag) {
  if (!connect_again(store->own)) return fail(store, diag);
  PGresult *result;
  bool found = query(store, sql, count, values, read_ms, &result);
  lp_status status = found ? visit_rows(store, result, visit, user, diag) : fail(store, diag);
  pq.clear(result);
  return status;
}

static lp_status count_decisions(lp_store *store, int64_t *out, lp_diag *diag) {
  if (!connect_again(store->own)) return fail(store, diag);
  PGresult *result;
  bool found = query(store, "SELECT count(*) FROM llmpart.decision", 0, NULL, read_ms, &result);
  *out = found ? number_at(result, 0, 0) : 0;
  lp_status status = found ? LP_OK : fail(store, diag);
  pq.clear(result);
  return status;
}

static lp_status get(lp_store *store, int64_t id, lp_store_visit *visit, void *user, lp_diag *diag) {
  char number[NUMBER];
  (void)snprintf(number, sizeof number, "%lld", (long long)id);
  const char *const values[] = {number};
  return read_rows(store, get_decision, LP_COUNT(values), values, visit, user, diag);
}

static lp_status each(lp_store *store, lp_store_range range, lp_store_visit *visit, void *user, lp_diag *diag) {
  char after[NUMBER], most[NUMBER];
  (void)snprintf(after, sizeof after, "%lld", (long long)range.after);
  (void)snprintf(most, sizeof most, "%lld", (long long)range.most);
  const char *const values[] = {after, range.most > 0 ? most : NULL};
  return read_rows(store, each_outcome, LP_COUNT(values), values, visit, user, diag);
}

const lp_store_kind lp_store_postgres = {open_pool, close_pool, write_lines, count_decisions, get, each};

#else
static lp_status open_pool(lp_store *store, lp_diag *diag) {
  return lp_error(diag, (lp_loc){.file = store->name}, "this llmpart was built without libpq");
}

static void close_pool(lp_store *store) {
  (void)store;
}

const lp_store_kind lp_store_postgres = {.open = open_pool, .close = close_pool};
#endif
