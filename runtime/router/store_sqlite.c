/* Pools in SQLite files. */
#include <fcntl.h>
#include <sqlite3.h>
#include <unistd.h>

#include "runtime/router/store_internal.h"

enum { VERSION = 2, APPLICATION = 0x6C707274 /* "lprt" */, BUSY_MS = 5000 };

static const char schema[] =
    "CREATE TABLE decision (id INTEGER PRIMARY KEY, keywords TEXT NOT NULL, offered INTEGER NOT NULL, rule TEXT NOT "
    "NULL,"
    " route TEXT NOT NULL, source INTEGER NOT NULL, propensity REAL NOT NULL, p_edge REAL NOT NULL,"
    " p_cloud REAL NOT NULL, p_split REAL NOT NULL, reason TEXT NOT NULL, owner INTEGER NOT NULL DEFAULT 0) STRICT;"
    "CREATE TABLE outcome (sequence INTEGER PRIMARY KEY, decision INTEGER NOT NULL UNIQUE REFERENCES decision (id),"
    " reward REAL NOT NULL, good INTEGER NOT NULL) STRICT;";

/* From version 1. */
static const char owners[] = "ALTER TABLE decision ADD COLUMN owner INTEGER NOT NULL DEFAULT 0; PRAGMA user_version=2";

/* Every query yields these columns, as read_row takes them. */
#define COLUMNS                                                                                                        \
  "SELECT d.id, d.keywords, d.offered, d.rule, d.route, d.source, d.propensity, d.p_edge, d.p_cloud, d.p_split,"       \
  " d.reason, o.reward, o.good, o.sequence, d.owner FROM decision d "

typedef enum { BEGIN, COMMIT, ROLLBACK, DECISION, OUTCOME, GET, EACH, STATEMENTS } statement_id;

static const char *const statements[STATEMENTS] = {
    [BEGIN] = "BEGIN IMMEDIATE",
    [COMMIT] = "COMMIT",
    [ROLLBACK] = "ROLLBACK",
    [DECISION] =
        "INSERT INTO decision (keywords, offered, rule, route, source, propensity, p_edge, p_cloud, p_split, reason,"
        " owner) VALUES (?,?,?,?,?,?,?,?,?,?,?)",
    [OUTCOME] = "INSERT INTO outcome (decision, reward, good) SELECT id, ?, ? FROM decision WHERE id = ?",
    [GET] = COLUMNS "LEFT JOIN outcome o ON o.decision = d.id WHERE d.id = ?",
    [EACH] = COLUMNS "JOIN (SELECT * FROM outcome WHERE sequence > ? ORDER BY sequence DESC LIMIT ?) o"
                     " ON o.decision = d.id ORDER BY o.sequence",
};

typedef struct {
  sqlite3 *db;
  sqlite3_stmt *statement[STATEMENTS];
} connection;

static lp_status fail(const lp_store *store, lp_diag *diag) {
  const connection *self = store->own;
  return lp_error(diag, (lp_loc){.file = store->name}, "%s", sqlite3_errmsg(self->db));
}

/* ---- opening ----------------------------------------------------------------------------------------------------- */

static lp_status execute(lp_store *store, const char *sql, lp_diag *diag) {
  const connection *self = store->own;
  return sqlite3_exec(self->db, sql, NULL, NULL, NULL) == SQLITE_OK ? LP_OK : fail(store, diag);
}

static lp_status read_number(lp_store *store, const char *query, int64_t *out, lp_diag *diag) {
  const connection *self = store->own;
  sqlite3_stmt *statement = NULL;
  if (sqlite3_prepare_v2(self->db, query, -1, &statement, NULL) != SQLITE_OK) return fail(store, diag);
  bool found = sqlite3_step(statement) == SQLITE_ROW;
  *out = found ? sqlite3_column_int64(statement, 0) : 0;
  (void)sqlite3_finalize(statement);
  return found ? LP_OK : fail(store, diag);
}

/* Makes the tables in a new file, in a transaction, since two processes may open it at once. */
static lp_status prepare_tables(lp_store *store, lp_diag *diag) {
  int64_t application = 0, version = 0, tables = 0;
  LP_TRY(execute(store, "BEGIN IMMEDIATE", diag));
  LP_TRY(read_number(store, "PRAGMA application_id", &application, diag));
  LP_TRY(read_number(store, "PRAGMA user_version", &version, diag));
  LP_TRY(read_number(store, "SELECT count(*) FROM sqlite_schema", &tables, diag));
  if (tables > 0 && application != APPLICATION)
    return lp_error(diag, (lp_loc){.file = store->name}, "a database of another program");
  if (version > VERSION)
    return lp_error(diag, (lp_loc){.file = store->name}, "written by a newer version (%d, known is %d)", (int)version,
                    VERSION);
  if (tables == 0) {
    char marks[96];
    (void)snprintf(marks, sizeof marks, "PRAGMA application_id=%d; PRAGMA user_version=%d", APPLICATION, VERSION);
    LP_TRY(execute(store, schema, diag));
    LP_TRY(execute(store, marks, diag));
  } else if (version < VERSION) {
    LP_TRY(execute(store, owners, diag));
  }
  return execute(store, "COMMIT", diag);
}

static lp_status open_pool(lp_store *store, lp_diag *diag) {
  connection *self = lp_alloc(sizeof *self);
  *self = (connection){0};
  store->own = self;
  int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_FULLMUTEX;
  int made = open(store->pool, O_WRONLY | O_CREAT | O_CLOEXEC, 0600); /* its owner's alone, as the files beside it */
  if (made >= 0) (void)close(made);
  if (sqlite3_open_v2(store->pool, &self->db, flags, NULL) != SQLITE_OK) return fail(store, diag);
  if (sqlite3_busy_timeout(self->db, BUSY_MS) != SQLITE_OK) return fail(store, diag);
  /* With FULL a commit is on the disk before the call returns, so that even a crash of the machine loses nothing. */
  LP_TRY(execute(store, "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL", diag));
  LP_TRY(prepare_tables(store, diag));
  for (int i = 0; i < STATEMENTS; i++)
    if (sqlite3_prepare_v3(self->db, statements[i], -1, SQLITE_PREPARE_PERSISTENT, &self->statement[i], NULL) !=
        SQLITE_OK)
      return fail(store, diag);
  return LP_OK;
}

static void close_pool(lp_store *store) {
  LP_OWNED(lp_free_at) connection *self = store->own;
  for (int i = 0; i < STATEMENTS; i++)
    (void)sqlite3_finalize(self->statement[i]);
  (void)sqlite3_close(self->db);
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

static void bind_text(sqlite3_stmt *statement, int at, const char *text) {
  (void)sqlite3_bind_text(statement, at, text, -1, SQLITE_STATIC);
}

static void bind_decision(sqlite3_stmt *statement, const lp_store_line *line) {
  const lp_decision *decision = line->decision;
  bind_text(statement, 1, line->request->keywords);
  (void)sqlite3_bind_int(statement, 2, (int)line->request->offered);
  bind_text(statement, 3, lp_route_name(line->request->rule));
  bind_text(statement, 4, lp_route_name(decision->route));
  (void)sqlite3_bind_int(statement, 5, (int)decision->source);
  (void)sqlite3_bind_double(statement, 6, decision->propensity);
  for (lp_route route = 0; route < LP_ROUTE_COUNT; route++)
    (void)sqlite3_bind_double(statement, 7 + (int)route, decision->probability[route]);
  bind_text(statement, 10, decision->reason);
  (void)sqlite3_bind_int64(statement, 11, (int64_t)line->request->owner);
}

static void bind_outcome(sqlite3_stmt *statement, const lp_store_line *line) {
  (void)sqlite3_bind_double(statement, 1, line->reward);
  (void)sqlite3_bind_int(statement, 2, line->good);
  (void)sqlite3_bind_int64(statement, 3, line->id);
}

/* Runs a statement that yields no rows and makes it ready for the next use; false: it failed, and the connection has
 * the reason. */
static bool run(connection *self, statement_id id) {
  bool done = sqlite3_step(self->statement[id]) == SQLITE_DONE;
  (void)sqlite3_reset(self->statement[id]);
  return done;
}

static void note_error(const connection *self, lp_store_line *line) {
  lp_store_line_fail(line, sqlite3_errmsg(self->db));
}

static void write_line(connection *self, lp_store_line *line) {
  if (line->request) {
    bind_decision(self->statement[DECISION], line);
    if (!run(self, DECISION)) note_error(self, line);
    line->id = sqlite3_last_insert_rowid(self->db);
    return;
  }
  bind_outcome(self->statement[OUTCOME], line);
  if (run(self, OUTCOME)) {
    if (sqlite3_changes(self->db) == 0) lp_store_line_lacks_decision(line);
  } else if (sqlite3_errcode(self->db) == SQLITE_CONSTRAINT) {
    lp_store_line_has_outcome(line);
  } else {
    note_error(self, line);
  }
}

static void write_lines(lp_store *store, lp_store_line *first) {
  connection *self = store->own;
  bool begun = run(self, BEGIN), written = begun;
  for (lp_store_line *line = first; begun && line; line = line->next)
    write_line(self, line);
  if (begun) written = run(self, COMMIT);
  for (lp_store_line *line = first; !written && line; line = line->next)
    note_error(self, line);
  if (begun && !written) (void)run(self, ROLLBACK);
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

static const char *text_at(sqlite3_stmt *statement, int column) {
  const unsigned char *text = sqlite3_column_text(statement, column);
  return text ? (const char *)text : "";
}

/* The texts belong to SQLite and are valid until the next step. */
static lp_status read_row(const lp_store *store, sqlite3_stmt *statement, lp_stored *out, lp_diag *diag) {
  *out = (lp_stored){.id = sqlite3_column_int64(statement, 0)};
  out->request.keywords = text_at(statement, 1);
  out->request.offered = (unsigned)sqlite3_column_int(statement, 2);
  LP_TRY(lp_store_read_row(store, text_at(statement, 3), text_at(statement, 4), sqlite3_column_int64(statement, 5), out,
                           diag));
  out->decision.propensity = sqlite3_column_double(statement, 6);
  for (lp_route route = 0; route < LP_ROUTE_COUNT; route++)
    out->decision.probability[route] = sqlite3_column_double(statement, 7 + (int)route);
  (void)snprintf(out->decision.reason, sizeof out->decision.reason, "%s", text_at(statement, 10));
  out->has_outcome = sqlite3_column_type(statement, 11) != SQLITE_NULL;
  out->reward = sqlite3_column_double(statement, 11);
  out->good = sqlite3_column_int(statement, 12) != 0;
  out->sequence = sqlite3_column_int64(statement, 13);
  out->request.owner = (uint64_t)sqlite3_column_int64(statement, 14);
  return LP_OK;
}

static lp_status count_decisions(lp_store *store, int64_t *out, lp_diag *diag) {
  return read_number(store, "SELECT count(*) FROM decision", out, diag);
}

/* Visits the rows of a statement whose parameters are bound. */
static lp_status visit_rows(lp_store *store, sqlite3_stmt *statement, lp_store_visit *visit, void *user,
                            lp_diag *diag) {
  lp_status status = LP_OK;
  int code = SQLITE_ROW;
  while (status == LP_OK && (code = sqlite3_step(statement)) == SQLITE_ROW) {
    lp_stored stored;
    status = read_row(store, statement, &stored, diag);
    if (status == LP_OK) visit(user, &stored);
  }
  if (status == LP_OK && code != SQLITE_DONE) status = fail(store, diag);
  (void)sqlite3_reset(statement);
  return status;
}

static lp_status get(lp_store *store, int64_t id, lp_store_visit *visit, void *user, lp_diag *diag) {
  const connection *self = store->own;
  (void)sqlite3_bind_int64(self->statement[GET], 1, id);
  return visit_rows(store, self->statement[GET], visit, user, diag);
}

static lp_status each(lp_store *store, lp_store_range range, lp_store_visit *visit, void *user, lp_diag *diag) {
  const connection *self = store->own;
  (void)sqlite3_bind_int64(self->statement[EACH], 1, range.after);
  (void)sqlite3_bind_int64(self->statement[EACH], 2, range.most > 0 ? range.most : -1);
  return visit_rows(store, self->statement[EACH], visit, user, diag);
}

const lp_store_kind lp_store_sqlite = {open_pool, close_pool, write_lines, count_decisions, get, each};
