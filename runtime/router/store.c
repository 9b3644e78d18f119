#include "runtime/router/store.h"

#include <pthread.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { VERSION = 1, APPLICATION = 0x6C707274 /* "lprt" */, BUSY_MS = 5000 };

static const char schema[] =
    "CREATE TABLE decision (id INTEGER PRIMARY KEY, keywords TEXT NOT NULL, offered INTEGER NOT NULL, rule TEXT NOT "
    "NULL,"
    " route TEXT NOT NULL, source INTEGER NOT NULL, propensity REAL NOT NULL, p_edge REAL NOT NULL,"
    " p_cloud REAL NOT NULL, p_split REAL NOT NULL, reason TEXT NOT NULL) STRICT;"
    "CREATE TABLE outcome (sequence INTEGER PRIMARY KEY, decision INTEGER NOT NULL UNIQUE REFERENCES decision (id),"
    " reward REAL NOT NULL, good INTEGER NOT NULL) STRICT;";

/* Every query yields these columns, as read_row takes them. */
#define COLUMNS                                                                                                        \
  "SELECT d.id, d.keywords, d.offered, d.rule, d.route, d.source, d.propensity, d.p_edge, d.p_cloud, d.p_split,"       \
  " d.reason, o.reward, o.good FROM decision d "

typedef enum { ADD_DECISION, ADD_OUTCOME, GET, EACH, STATEMENTS } statement_id;
static const char *const statements[STATEMENTS] = {
    "INSERT INTO decision (keywords, offered, rule, route, source, propensity, p_edge, p_cloud, p_split, reason)"
    " VALUES (?,?,?,?,?,?,?,?,?,?)",
    "INSERT INTO outcome (decision, reward, good) VALUES (?,?,?)",
    COLUMNS "LEFT JOIN outcome o ON o.decision = d.id WHERE d.id = ?",
    COLUMNS "JOIN (SELECT * FROM outcome ORDER BY sequence DESC LIMIT ?) o ON o.decision = d.id ORDER BY o.sequence",
};

struct lp_store {
  sqlite3 *db;
  sqlite3_stmt *statement[STATEMENTS];
  pthread_mutex_t lock;
  char *path;
};

static lp_status fail(const lp_store *store, lp_diag *diag) {
  return lp_error(diag, (lp_loc){.file = store->path}, "%s", sqlite3_errmsg(store->db));
}

static lp_status execute(lp_store *store, const char *sql, lp_diag *diag) {
  return sqlite3_exec(store->db, sql, NULL, NULL, NULL) == SQLITE_OK ? LP_OK : fail(store, diag);
}

static lp_status read_number(lp_store *store, const char *query, int64_t *out, lp_diag *diag) {
  sqlite3_stmt *statement = NULL;
  if (sqlite3_prepare_v2(store->db, query, -1, &statement, NULL) != SQLITE_OK) return fail(store, diag);
  bool found = sqlite3_step(statement) == SQLITE_ROW;
  *out = found ? sqlite3_column_int64(statement, 0) : 0;
  (void)sqlite3_finalize(statement);
  return found ? LP_OK : fail(store, diag);
}

/* Makes the tables in a new file; two processes that open it at once agree through the transaction. */
static lp_status prepare_tables(lp_store *store, lp_diag *diag) {
  int64_t application = 0, version = 0, tables = 0;
  lp_status status = execute(store, "BEGIN IMMEDIATE", diag);
  if (status != LP_OK) return status;
  status = read_number(store, "PRAGMA application_id", &application, diag);
  if (status == LP_OK) status = read_number(store, "PRAGMA user_version", &version, diag);
  if (status == LP_OK) status = read_number(store, "SELECT count(*) FROM sqlite_schema", &tables, diag);
  if (status == LP_OK && tables > 0 && application != APPLICATION)
    status = lp_error(diag, (lp_loc){.file = store->path}, "a database of another program");
  if (status == LP_OK && version > VERSION)
    status = lp_error(diag, (lp_loc){.file = store->path}, "written by a newer version (%d, known is %d)", (int)version,
                      VERSION);
  if (status == LP_OK && tables == 0) {
    char marks[96];
    (void)snprintf(marks, sizeof marks, "PRAGMA application_id=%d; PRAGMA user_version=%d", APPLICATION, VERSION);
    status = execute(store, schema, diag);
    if (status == LP_OK) status = execute(store, marks, diag);
  }
  return status == LP_OK ? execute(store, "COMMIT", diag) : status;
}

lp_status lp_store_open(const char *path, lp_store **out, lp_diag *diag) {
  lp_store *store = lp_alloc(sizeof *store);
  *store = (lp_store){.path = lp_strdup(path)};
  (void)pthread_mutex_init(&store->lock, NULL);
  int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_FULLMUTEX;
  lp_status status = sqlite3_open_v2(path, &store->db, flags, NULL) == SQLITE_OK ? LP_OK : fail(store, diag);
  if (status == LP_OK) status = sqlite3_busy_timeout(store->db, BUSY_MS) == SQLITE_OK ? LP_OK : fail(store, diag);
  /* With FULL a commit is on the disk before the call returns, and a crash of the machine loses nothing either. */
  if (status == LP_OK) status = execute(store, "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL", diag);
  if (status == LP_OK) status = prepare_tables(store, diag);
  for (int i = 0; status == LP_OK && i < STATEMENTS; ++i)
    if (sqlite3_prepare_v3(store->db, statements[i], -1, SQLITE_PREPARE_PERSISTENT, &store->statement[i], NULL) !=
        SQLITE_OK)
      status = fail(store, diag);
  if (status == LP_OK)
    *out = store;
  else
    lp_store_close(store);
  return status;
}

void lp_store_close(lp_store *store) {
  if (store == NULL) return;
  for (int i = 0; i < STATEMENTS; ++i)
    (void)sqlite3_finalize(store->statement[i]);
  (void)sqlite3_close(store->db);
  (void)pthread_mutex_destroy(&store->lock);
  free(store->path);
  free(store);
}

/* Runs a statement that yields no rows, and makes it ready for the next use. */
static lp_status finish(lp_store *store, statement_id id, lp_diag *diag) {
  int code = sqlite3_step(store->statement[id]);
  lp_status status = code == SQLITE_DONE ? LP_OK : fail(store, diag);
  (void)sqlite3_reset(store->statement[id]);
  (void)sqlite3_clear_bindings(store->statement[id]);
  return status;
}

static void bind_text(sqlite3_stmt *statement, int at, const char *text) {
  (void)sqlite3_bind_text(statement, at, text, -1, SQLITE_STATIC);
}

lp_status lp_store_decision(lp_store *store, const lp_request *request, const lp_decision *decision, int64_t *id,
                            lp_diag *diag) {
  (void)pthread_mutex_lock(&store->lock);
  sqlite3_stmt *statement = store->statement[ADD_DECISION];
  bind_text(statement, 1, request->keywords);
  (void)sqlite3_bind_int(statement, 2, (int)request->offered);
  bind_text(statement, 3, lp_route_name(request->rule));
  bind_text(statement, 4, lp_route_name(decision->route));
  (void)sqlite3_bind_int(statement, 5, (int)decision->source);
  (void)sqlite3_bind_double(statement, 6, decision->propensity);
  for (lp_route route = 0; route < LP_ROUTE_COUNT; ++route)
    (void)sqlite3_bind_double(statement, 7 + (int)route, decision->probability[route]);
  bind_text(statement, 10, decision->reason);
  lp_status status = finish(store, ADD_DECISION, diag);
  *id = sqlite3_last_insert_rowid(store->db);
  (void)pthread_mutex_unlock(&store->lock);
  return status;
}

lp_status lp_store_outcome(lp_store *store, int64_t id, double reward, bool good, lp_diag *diag) {
  lp_stored known;
  lp_arena *arena = lp_arena_create();
  lp_status status = lp_store_get(store, id, arena, &known, diag);
  lp_arena_free(arena);
  if (status != LP_OK) return status;
  (void)pthread_mutex_lock(&store->lock);
  sqlite3_stmt *statement = store->statement[ADD_OUTCOME];
  (void)sqlite3_bind_int64(statement, 1, id);
  (void)sqlite3_bind_double(statement, 2, reward);
  (void)sqlite3_bind_int(statement, 3, good);
  int code = sqlite3_step(statement);
  if (code == SQLITE_CONSTRAINT)
    status = lp_error(diag, (lp_loc){.file = store->path}, "decision %lld has an outcome already", (long long)id);
  else if (code != SQLITE_DONE)
    status = fail(store, diag);
  (void)sqlite3_reset(statement);
  (void)pthread_mutex_unlock(&store->lock);
  return status;
}

static const char *text_at(sqlite3_stmt *statement, int column) {
  const unsigned char *text = sqlite3_column_text(statement, column);
  return text == NULL ? "" : (const char *)text;
}

/* The texts are SQLite's, until the next step. */
static lp_status read_row(const lp_store *store, sqlite3_stmt *statement, lp_stored *out, lp_diag *diag) {
  *out = (lp_stored){.id = sqlite3_column_int64(statement, 0)};
  out->request.keywords = text_at(statement, 1);
  out->request.offered = (unsigned)sqlite3_column_int(statement, 2);
  int source = sqlite3_column_int(statement, 5);
  if (!lp_route_parse(text_at(statement, 3), &out->request.rule) ||
      !lp_route_parse(text_at(statement, 4), &out->decision.route) || source < 0 || source > LP_DECIDED_FALLBACK)
    return lp_error(diag, (lp_loc){.file = store->path}, "decision %lld is damaged", (long long)out->id);
  out->decision.source = (lp_decision_source)source;
  out->decision.propensity = sqlite3_column_double(statement, 6);
  for (lp_route route = 0; route < LP_ROUTE_COUNT; ++route)
    out->decision.probability[route] = sqlite3_column_double(statement, 7 + (int)route);
  (void)snprintf(out->decision.reason, sizeof out->decision.reason, "%s", text_at(statement, 10));
  out->has_outcome = sqlite3_column_type(statement, 11) != SQLITE_NULL;
  out->reward = sqlite3_column_double(statement, 11);
  out->good = sqlite3_column_int(statement, 12) != 0;
  return LP_OK;
}

lp_status lp_store_count(lp_store *store, int64_t *out, lp_diag *diag) {
  (void)pthread_mutex_lock(&store->lock);
  lp_status status = read_number(store, "SELECT count(*) FROM decision", out, diag);
  (void)pthread_mutex_unlock(&store->lock);
  return status;
}

lp_status lp_store_get(lp_store *store, int64_t id, lp_arena *arena, lp_stored *out, lp_diag *diag) {
  (void)pthread_mutex_lock(&store->lock);
  sqlite3_stmt *statement = store->statement[GET];
  (void)sqlite3_bind_int64(statement, 1, id);
  int code = sqlite3_step(statement);
  lp_status status = LP_OK;
  if (code == SQLITE_ROW)
    status = read_row(store, statement, out, diag);
  else if (code == SQLITE_DONE)
    status = lp_error(diag, (lp_loc){.file = store->path}, "no decision %lld", (long long)id);
  else
    status = fail(store, diag);
  if (status == LP_OK)
    out->request.keywords = lp_arena_copy(arena, out->request.keywords, strlen(out->request.keywords) + 1);
  (void)sqlite3_reset(statement);
  (void)pthread_mutex_unlock(&store->lock);
  return status;
}

lp_status lp_store_each(lp_store *store, int64_t most, void (*visit)(void *user, const lp_stored *stored), void *user,
                        lp_diag *diag) {
  (void)pthread_mutex_lock(&store->lock);
  sqlite3_stmt *statement = store->statement[EACH];
  (void)sqlite3_bind_int64(statement, 1, most > 0 ? most : -1);
  lp_status status = LP_OK;
  int code = SQLITE_ROW;
  while (status == LP_OK && (code = sqlite3_step(statement)) == SQLITE_ROW) {
    lp_stored stored;
    status = read_row(store, statement, &stored, diag);
    if (status == LP_OK) visit(user, &stored);
  }
  if (status == LP_OK && code != SQLITE_DONE) status = fail(store, diag);
  (void)sqlite3_reset(statement);
  (void)pthread_mutex_unlock(&store->lock);
  return status;
}
