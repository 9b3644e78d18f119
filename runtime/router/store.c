#include "runtime/router/store_internal.h"

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

static const char *const statements[STORE_STATEMENTS] = {
    [STORE_BEGIN] = "BEGIN IMMEDIATE",
    [STORE_COMMIT] = "COMMIT",
    [STORE_ROLLBACK] = "ROLLBACK",
    [STORE_DECISION] =
        "INSERT INTO decision (keywords, offered, rule, route, source, propensity, p_edge, p_cloud, p_split, reason)"
        " VALUES (?,?,?,?,?,?,?,?,?,?)",
    [STORE_OUTCOME] = "INSERT INTO outcome (decision, reward, good) SELECT id, ?, ? FROM decision WHERE id = ?",
    [STORE_GET] = COLUMNS "LEFT JOIN outcome o ON o.decision = d.id WHERE d.id = ?",
    [STORE_EACH] = COLUMNS
    "JOIN (SELECT * FROM outcome ORDER BY sequence DESC LIMIT ?) o ON o.decision = d.id ORDER BY o.sequence",
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

/* Makes the tables in a new file, in a transaction, since two processes may open it at once. */
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
  (void)pthread_mutex_init(&store->queue_lock, NULL);
  (void)pthread_cond_init(&store->written, NULL);
  int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_FULLMUTEX;
  lp_status status = sqlite3_open_v2(path, &store->db, flags, NULL) == SQLITE_OK ? LP_OK : fail(store, diag);
  if (status == LP_OK) status = sqlite3_busy_timeout(store->db, BUSY_MS) == SQLITE_OK ? LP_OK : fail(store, diag);
  /* With FULL a commit is on the disk before the call returns, so that even a crash of the machine loses nothing. */
  if (status == LP_OK) status = execute(store, "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL", diag);
  if (status == LP_OK) status = prepare_tables(store, diag);
  for (int i = 0; status == LP_OK && i < STORE_STATEMENTS; i++)
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
  if (!store) return;
  for (int i = 0; i < STORE_STATEMENTS; i++)
    (void)sqlite3_finalize(store->statement[i]);
  (void)sqlite3_close(store->db);
  (void)pthread_mutex_destroy(&store->lock);
  (void)pthread_mutex_destroy(&store->queue_lock);
  (void)pthread_cond_destroy(&store->written);
  free(store->path);
  free(store);
}

static const char *text_at(sqlite3_stmt *statement, int column) {
  const unsigned char *text = sqlite3_column_text(statement, column);
  return text ? (const char *)text : "";
}

/* The texts belong to SQLite and are valid until the next step. */
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
  for (lp_route route = 0; route < LP_ROUTE_COUNT; route++)
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
  sqlite3_stmt *statement = store->statement[STORE_GET];
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
  sqlite3_stmt *statement = store->statement[STORE_EACH];
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
