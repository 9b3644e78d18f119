/* Runs a sweep on all cores. Threads take rows in the order of the settings on which prices depend, so that a thread
 * prices the model once for all links, SLAs and schedulers of a combination. */
#include "passes/plan/sweep/sweep.h"
#include "base/clock.h"
#include "base/side.h"
#include "passes/plan/forms.h"
#include "passes/plan/objective.h"
#include "passes/plan/sweep/front.h"
#include "passes/plan/sweep/journal.h"
#include "passes/plan/sweep/shard.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

/* ---- peers ------------------------------------------------------------------------------------------------------- */

/* A sweep over several processes. A message to process 0 is a text: "key VERSION KEY", "rows EVALUATIONS" and the lines
 * of the journal, or "leave 0|1" with 1 for a failure. Only "rows" is answered, with peer_turns. */

/* Rows to compute: `count` positions of the order of work. */
typedef struct {
  uint64_t from;  /* UINT64_MAX: none is left */
  uint64_t count; /* 1 to 64 */
  uint64_t done;  /* bit i: position from + i is done already */
} peer_turns;

/* What process 0 does with messages. */
typedef struct {
  void *user;
  peer_turns (*next)(void *user);
  bool (*take)(void *user, const char *line); /* a journal's line; false when it is none */
  void (*evaluated)(void *user, uint64_t evaluations);
} peers_leader;

static void greeting(const char *key, lp_buf *out) {
  lp_buf_printf(out, "key %s %s", LP_VERSION, key);
}

/* The others: greet first, then send finished lines (which are cleared) and get rows, and leave at last. */
static void greet_peers(const lp_peers *peers, const char *key) {
  LP_OWNED(lp_buf_free) lp_buf text = {0};
  greeting(key, &text);
  peers->send(0, lp_buf_text(&text), text.size);
}

static peer_turns ask_peers(const lp_peers *peers, lp_buf *lines, uint64_t evaluations) {
  peer_turns turns = {.from = UINT64_MAX};
  lp_buf text = {0};
  size_t size;
  lp_buf_printf(&text, "rows %" PRIu64 "\n", evaluations);
  lp_buf_append(&text, lp_buf_text(lines), lines->size);
  lp_buf_clear(lines);
  peers->send(0, lp_buf_text(&text), text.size);
  lp_buf_free(&text);
  int32_t from = peers->wait(&size);
  if (size == sizeof turns) peers->receive(from, &turns, size);
  return turns;
}

static void leave_peers(const lp_peers *peers, bool failed) {
  peers->send(0, failed ? "leave 1" : "leave 0", 7);
}

static bool take_rows(const char *text, const peers_leader *leader) {
  char *end;
  leader->evaluated(leader->user, strtoull(text, &end, 10));
  bool good = *end == '\n';
  for (const char *line = end + 1; good && *line; line = strchr(line, '\n') + 1)
    good = strchr(line, '\n') && leader->take(leader->user, line);
  return good;
}

/* Process 0: answers the others until all have left. `key` as in the journal; false when another process has another
 * sweep, failed, or sent what is no row: no more rows are handed out then. */
static bool lead_peers(const lp_peers *peers, const char *key, const peers_leader *leader) {
  bool good = true;
  LP_OWNED(lp_buf_free) lp_buf ours = {0};
  greeting(key, &ours);
  for (int32_t left = 1; left < peers->count;) {
    size_t size;
    int32_t from = peers->wait(&size);
    LP_OWNED(lp_free_at) char *text = lp_alloc(size + 1);
    peers->receive(from, text, size);
    if (lp_has_prefix(text, "rows ")) {
      good = take_rows(text + 5, leader) && good;
      peer_turns turns = good ? leader->next(leader->user) : (peer_turns){.from = UINT64_MAX};
      peers->send(from, &turns, sizeof turns);
    } else if (lp_has_prefix(text, "leave ")) {
      good = text[6] == '0' && good;
      left++;
    } else {
      good = lp_streq(text, lp_buf_text(&ours)) && good;
    }
  }
  return good;
}

enum { MOST_ROWS = 64, MOST_THREADS = 512 }; /* rows handed out at once: the bits of peer_turns.done */

/* Shared by all threads; one thread writes each row. */
typedef struct {
  const lp_sweep_spec *spec;
  const lp_plan_forms *forms;
  lp_plan_form *cut; /* [cuts]: cut i - 1, from all in the cloud to all on the device */
  int64_t cuts;
  lp_sweep_row *rows;
  const lp_sweep_options *options;
  size_t takers; /* threads of all processes that compute rows */
  size_t wanted; /* number of rows of the shard */
  atomic_size_t next, done;
  atomic_uint_fast64_t evaluations;
  atomic_bool failed;
  pthread_mutex_t lock; /* of the journal and of progress */
  lp_sweep_journal journal;
  pthread_mutex_t asking; /* of messages to process 0 */
  double begun_ms, shown_ms;
} sweep;

/* A thread, with the prices of its current combination. */
typedef struct {
  sweep *s;
  lp_arena *arena; /* of the combination */
  size_t priced;   /* the combination that is priced; SIZE_MAX: none */
  lp_plan_prices prices;
  lp_plan_problem problem[LP_STAGE_COUNT]; /* made when a scheduler first needs it */
  bool has_problem;
  uint64_t evaluations;
  lp_buf line;  /* of the journal */
  lp_buf lines; /* that process 0 does not have yet */
} worker;

/* ---- order ------------------------------------------------------------------------------------------------------- */

/* The axes that prices depend on: not link, SLA and scheduler. */
static const lp_sweep_axis priced_axes[] = {LP_SWEEP_MACHINES, LP_SWEEP_WORKLOADS, LP_SWEEP_DTYPES, LP_SWEEP_SESSIONS};
static const lp_sweep_axis other_axes[] = {LP_SWEEP_LINKS, LP_SWEEP_SLAS, LP_SWEEP_SCHEDULERS};

/* The row at position `turn` of the order of work, and its combination. */
static size_t row_of_turn(const lp_sweep_spec *spec, size_t turn, size_t *combination) {
  size_t at[LP_SWEEP_AXES], row = 0;
  for (size_t i = LP_COUNT(other_axes); i-- > 0; turn /= spec->count[other_axes[i]])
    at[other_axes[i]] = turn % spec->count[other_axes[i]];
  *combination = turn;
  for (size_t i = LP_COUNT(priced_axes); i-- > 0; turn /= spec->count[priced_axes[i]])
    at[priced_axes[i]] = turn % spec->count[priced_axes[i]];
  for (int i = 0; i < LP_SWEEP_AXES; i++)
    row = row * spec->count[i] + at[i];
  return row;
}

/* ---- a row ------------------------------------------------------------------------------------------------------- */

static void price(worker *w, const lp_compile_request *request, size_t combination) {
  if (w->priced == combination) return;
  lp_arena_free(w->arena);
  w->arena = lp_arena_create();
  lp_plan_forms_price(w->s->forms, request, w->arena, &w->prices);
  w->priced = combination;
  w->has_problem = false;
}

static lp_plan_result evaluate(worker *w, const lp_compile_request *request, int64_t cut) {
  lp_plan_result result;
  lp_plan_form_evaluate(&w->s->cut[cut + 1], &w->prices, request, &result);
  w->evaluations++;
  return result;
}

/* Acts as the scheduler "layer": tries every cut, and of equal ones takes the one that leaves most on the device. */
static lp_plan_result best_cut(worker *w, const lp_compile_request *request) {
  int64_t last = w->s->cuts - 2;
  lp_plan_result best = evaluate(w, request, last);
  for (int64_t cut = last - 1; cut >= -1; cut--) {
    lp_plan_result result = evaluate(w, request, cut);
    if (lp_plan_compare(&result, &best, request) < 0) best = result;
  }
  return best;
}

static lp_plan_result schedule(worker *w, const lp_compile_request *request, double *gap) {
  lp_plan_result result = {0};
  if (!w->has_problem) lp_plan_forms_problem(w->s->forms, &w->prices, w->arena, w->problem);
  w->has_problem = true;
  LP_OWNED(lp_arena_free_at) lp_arena *scratch = lp_arena_create();
  lp_side *side[LP_STAGE_COUNT];
  lp_plan_proof proof;
  lp_plan_problem problem[LP_STAGE_COUNT];
  memcpy(problem, w->problem, sizeof problem);
  lp_status status = lp_plan_choose_to_run(problem, request->scheduler, request, side, &proof, scratch, NULL);
  if (status == LP_OK || status == LP_INFEASIBLE) {
    lp_plan_evaluate(problem, request, side, &result);
    w->evaluations++;
    double objective = lp_plan_objective_value(&result, request);
    if (proof.known) *gap = objective > 0 ? fmax(0, 1 - proof.lower_bound / objective) : 0;
  } else {
    atomic_store(&w->s->failed, true);
  }
  return result;
}

static void fill_row(const lp_compile_request *request, const lp_plan_result *r, const lp_plan_result *cloud,
                     double gap, lp_sweep_row *row) {
  const double tokens = (double)request->batch * (double)(request->osl > 0 ? request->osl : 1);
  const double numbers[LP_SWEEP_NUMBERS] = {
      [LP_SWEEP_TTFT] = r->ttft_ms,
      [LP_SWEEP_TPOT] = r->tpot_ms,
      [LP_SWEEP_E2E] = r->e2e_ms,
      [LP_SWEEP_COST] = r->cost_usd,
      [LP_SWEEP_COST_PER_MTOK] = r->cost_per_mtok_usd,
      [LP_SWEEP_DECREMENT] = cloud->cost_usd > 0 ? 1 - r->cost_usd / cloud->cost_usd : NAN,
      [LP_SWEEP_GAP] = gap,
      [LP_SWEEP_ENERGY] = r->energy_j,
      [LP_SWEEP_CLOUD_BUSY] = r->cloud_busy_ms,
      [LP_SWEEP_DEVICE_BUSY] = r->device_busy_ms,
      [LP_SWEEP_BYTES_UP] = r->bytes_up,
      [LP_SWEEP_BYTES_DOWN] = r->bytes_down,
      [LP_SWEEP_MESSAGES_DECODE] = (double)r->messages_decode,
      [LP_SWEEP_DEVICE_WEIGHTS] = r->device_weight_bytes,
      [LP_SWEEP_CLOUD_WEIGHTS] = r->cloud_weight_bytes,
      [LP_SWEEP_DEVICE_MEMORY] = r->device_memory_bytes,
      [LP_SWEEP_CLOUD_MEMORY] = r->cloud_memory_bytes,
      [LP_SWEEP_DEVICE_ENERGY] = r->device.energy_j,
      [LP_SWEEP_CLOUD_ENERGY] = r->device.cloud_j,
      [LP_SWEEP_DEVICE_COST] = r->device.cost_usd,
      [LP_SWEEP_TOTAL_COST] = r->device.total_usd,
      [LP_SWEEP_TOTAL_PER_MTOK] = 1e6 * r->device.total_usd / tokens,
  };
  *row = (lp_sweep_row){.done = true, .feasible = r->feasible, .binding = r->binding};
  memcpy(row->number, numbers, sizeof numbers);
}

/* Is this a process that gets its rows from process 0? */
static bool follows(const sweep *s) {
  return s->options->peers && s->options->peers->rank != 0;
}

static void keep_row(sweep *s, size_t index, const lp_sweep_row *row, const lp_buf *line) {
  pthread_mutex_lock(&s->lock);
  s->rows[index] = *row;
  if (!lp_sweep_journal_put(&s->journal, line)) atomic_store(&s->failed, true);
  pthread_mutex_unlock(&s->lock);
  atomic_fetch_add(&s->done, 1);
}

static void compute(worker *w, size_t turn) {
  size_t at[LP_SWEEP_AXES], combination, index = row_of_turn(w->s->spec, turn, &combination);
  const lp_sweep_shard *shard = &w->s->options->shard;
  if (w->s->rows[index].done) return;
  if (shard->count && lp_sweep_shard_of(w->s->spec, index, shard->count) != shard->index) return;
  lp_compile_request request = lp_sweep_request(w->s->spec, index, at);
  price(w, &request, combination);
  lp_plan_result cloud = evaluate(w, &request, -1), result;
  double gap = NAN;
  if (lp_streq(request.scheduler, "cloud-only"))
    result = cloud;
  else if (lp_streq(request.scheduler, "device-only"))
    result = evaluate(w, &request, w->s->cuts - 2);
  else if (lp_streq(request.scheduler, "layer"))
    result = best_cut(w, &request);
  else
    result = schedule(w, &request, &gap);
  lp_sweep_row row;
  fill_row(&request, &result, &cloud, gap, &row);
  lp_sweep_journal_line(index, &row, &w->line);
  if (follows(w->s))
    lp_buf_append(&w->lines, lp_buf_text(&w->line), w->line.size);
  else
    keep_row(w->s, index, &row, &w->line);
}

/* ---- threads ----------------------------------------------------------------------------------------------------- */

static void show(sweep *s, bool last) {
  double now = lp_now_ms();
  if (!s->options->progress) return;
  pthread_mutex_lock(&s->lock);
  if (last || now - s->shown_ms >= 100) {
    s->shown_ms = now;
    s->options->progress(s->options->user, atomic_load(&s->done), s->wanted, atomic_load(&s->evaluations),
                         now - s->begun_ms);
  }
  pthread_mutex_unlock(&s->lock);
}

/* A quarter of an even share of the rows that are left (guided self-scheduling, Polychronopoulos and Kuck, 1987): many
 * at once to begin with, so that messages are few, and single ones at the end, so that all takers finish together. */
static size_t rows_at_once(const sweep *s, size_t left) {
  size_t rows = left / (4 * s->takers);
  return rows < 1 ? 1 : rows > MOST_ROWS ? MOST_ROWS : rows;
}

/* Hands out the next rows of which one is not done. */
static peer_turns next_turns(void *user) {
  sweep *s = user;
  for (;;) {
    size_t combination, rows = s->spec->rows, begun = atomic_load(&s->next);
    peer_turns turns = {.count = rows_at_once(s, begun < rows ? rows - begun : 0)};
    turns.from = atomic_fetch_add(&s->next, turns.count);
    if (turns.from >= rows || atomic_load(&s->failed)) return (peer_turns){.from = UINT64_MAX};
    if (turns.count > rows - turns.from) turns.count = rows - turns.from;
    uint64_t finished = 0;
    for (size_t i = 0; i < turns.count; i++) {
      uint64_t done = s->rows[row_of_turn(s->spec, turns.from + i, &combination)].done;
      turns.done |= done << i;
      finished += done;
    }
    if (finished < turns.count) return turns;
  }
}

static peer_turns ask(worker *w) {
  pthread_mutex_lock(&w->s->asking);
  peer_turns turns = ask_peers(w->s->options->peers, &w->lines, w->evaluations);
  pthread_mutex_unlock(&w->s->asking);
  w->evaluations = 0;
  if (atomic_load(&w->s->failed)) turns.from = UINT64_MAX;
  return turns;
}

static bool take_line(void *user, const char *line) {
  sweep *s = user;
  size_t index;
  lp_sweep_row row;
  if (!lp_sweep_journal_parse(line, s->spec->rows, &index, &row) || s->rows[index].done) return false;
  lp_buf text = {0};
  lp_buf_append(&text, line, (size_t)(strchr(line, '\n') + 1 - line));
  keep_row(s, index, &row, &text);
  lp_buf_free(&text);
  show(s, false);
  return true;
}

static void count_evaluations(void *user, uint64_t evaluations) {
  sweep *s = user;
  atomic_fetch_add(&s->evaluations, evaluations);
}

static void *work(void *user) {
  worker w = {.s = user, .arena = lp_arena_create(), .priced = SIZE_MAX};
  sweep *s = user;
  for (;;) {
    peer_turns turns = follows(s) ? ask(&w) : next_turns(s);
    if (turns.from == UINT64_MAX) break;
    for (size_t i = 0; i < turns.count; i++)
      if (!(turns.done >> i & 1)) compute(&w, turns.from + i);
    if (follows(s)) continue;
    atomic_fetch_add(&s->evaluations, w.evaluations);
    w.evaluations = 0;
    show(s, false);
  }
  lp_buf_free(&w.line);
  lp_buf_free(&w.lines);
  lp_arena_free(w.arena);
  return NULL;
}

static int32_t thread_count(const sweep *s) {
  int64_t threads = s->options->threads > 0 ? s->options->threads
                    : s->options->peers     ? 1
                                            : sysconf(_SC_NPROCESSORS_ONLN);
  if (threads > MOST_THREADS) threads = MOST_THREADS;
  return threads < 1 ? 1 : (int32_t)threads;
}

static void run_threads(sweep *s, const char *key) {
  const lp_peers *peers = s->options->peers, *followed = follows(s) ? peers : NULL;
  const peers_leader leader = {s, next_turns, take_line, count_evaluations};
  bool leads = peers && peers->rank == 0 && peers->count > 1;
  int32_t threads = thread_count(s), started = 0;
  s->takers = (size_t)threads * (size_t)(peers ? peers->count : 1);
  threads += leads;
  LP_OWNED(lp_free_at) pthread_t *thread = lp_alloc((size_t)threads * sizeof *thread);
  if (followed) greet_peers(followed, key);
  while (started + 1 < threads && pthread_create(&thread[started], NULL, work, s) == 0)
    started++;
  if (leads && !lead_peers(peers, key, &leader)) atomic_store(&s->failed, true);
  work(s); /* this thread works too, so the sweep runs even when no thread can be started */
  for (int32_t i = 0; i < started; i++)
    pthread_join(thread[i], NULL);
  if (followed) leave_peers(followed, atomic_load(&s->failed));
}

/* ---- the sweep --------------------------------------------------------------------------------------------------- */

static lp_status run(sweep *s, const char *key, lp_sweep_result *out, lp_diag *diag) {
  if (!follows(s))
    LP_TRY(lp_sweep_journal_open(s->options, key, s->rows, s->spec->rows, &out->resumed, &s->journal, diag));
  out->rows = s->wanted;
  atomic_store(&s->done, out->resumed);
  s->begun_ms = lp_now_ms();
  run_threads(s, key);
  show(s, true);
  lp_sweep_journal_close(&s->journal);
  out->ms = lp_now_ms() - s->begun_ms;
  out->evaluations = atomic_load(&s->evaluations);
  if (!atomic_load(&s->failed)) return LP_OK;
  const char *file = s->options->journal ? s->options->journal : s->spec->path;
  return lp_error(diag, LP_LOC_FILE(file), "a row could not be computed or kept%s",
                  s->options->peers ? ", or a process has another version, specification or model" : "");
}

lp_status lp_sweep_run(const lp_sweep_spec *spec, lp_module *module, const lp_sweep_options *options,
                       lp_sweep_result *out, lp_diag *diag) {
  LP_OWNED(lp_arena_free_at) lp_arena *arena = lp_arena_create();
  size_t at[LP_SWEEP_AXES];
  lp_compile_request first = lp_sweep_request(spec, 0, at);
  lp_plan_forms *forms = NULL;
  *out = (lp_sweep_result){.row = lp_alloc((spec->rows + 1) * sizeof *out->row)};
  sweep s = {.spec = spec, .rows = out->row, .options = options, .wanted = spec->rows, .journal = {.fd = -1}};
  if (options->shard.count) s.wanted = lp_sweep_shard_rows(spec, options->shard);
  char key[65];
  lp_sweep_key(spec, module, key);
  lp_status status = lp_plan_forms_create(module, &first, arena, &forms, diag);
  if (status == LP_OK) {
    s.forms = forms;
    s.cut = lp_plan_form_cuts(forms, arena, &s.cuts);
    pthread_mutex_init(&s.lock, NULL);
    pthread_mutex_init(&s.asking, NULL);
    status = run(&s, key, out, diag);
    pthread_mutex_destroy(&s.asking);
    pthread_mutex_destroy(&s.lock);
  }
  if (status == LP_OK && s.wanted == spec->rows && !follows(&s)) lp_sweep_mark_fronts(spec, out);
  return status;
}

void lp_sweep_result_free(lp_sweep_result *result) {
  free(result->row);
  result->row = NULL;
}
