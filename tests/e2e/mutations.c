/* mutations BUNDLE SEED COUNT TOKENS: runs the bundle with COUNT changed manifests. Each has one to three structural
 * changes, a seal that fits its text, and a process of its own. A run must either refuse the manifest, or generate
 * what the unchanged bundle generates. Prints the counts, and SEED:NUMBER of each run that did neither; `ONLY=NUMBER`
 * in the environment runs that one and prints its manifest. BUNDLE is changed: give a copy. */
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/path.h"
#include "base/random.h"
#include "base/seal.h"
#include "runtime/runtime.h"

enum { MAX_TOKENS = 64, PROMPT = 5, CPU_SECONDS = 20, WALL_SECONDS = 120 };

/* The ways in which a run ends. */
typedef enum { REFUSED, SAME, WRONG, SILENT, CRASHED, HUNG, ENDS } ending;
static const char *const ending_name[ENDS] = {"refused", "same text", "wrong text", "no message", "crashed", "hung"};

typedef struct {
  uint64_t seed, number, drawn;
} dice;

static size_t roll(dice *d, size_t sides) {
  return sides == 0 ? 0 : (size_t)(lp_random_bits(d->seed, d->number, d->drawn++) % sides);
}

/* ---- nodes ------------------------------------------------------------------------------------------------------- */

/* A member or item, and its container. */
typedef struct {
  json_t *parent;
  const char *key; /* in an object */
  size_t index;    /* in an array */
  json_t *value;
} node;

typedef LP_VEC(node) node_list;

static void collect(json_t *at, node_list *out) {
  const char *key;
  json_t *value;
  size_t index;
  json_object_foreach(at, key, value) {
    lp_vec_push(out, ((node){.parent = at, .key = key, .value = value}));
    collect(value, out);
  }
  json_array_foreach(at, index, value) {
    lp_vec_push(out, ((node){.parent = at, .index = index, .value = value}));
    collect(value, out);
  }
}

static void put(const node *at, json_t *value) { /* takes the reference */
  if (at->key)
    json_object_set_new(at->parent, at->key, value);
  else
    json_array_set_new(at->parent, at->index, value);
}

static void take_out(const node *at) {
  if (at->key)
    json_object_del(at->parent, at->key);
  else
    json_array_remove(at->parent, at->index);
}

/* ---- changes ----------------------------------------------------------------------------------------------------- */

static json_t *other_number(dice *d, json_int_t old) {
  const json_int_t numbers[] = {0,  1,       -1, 2,         old + 1,    old - 1,   old * 2,    old / 2,    7,
                                63, 1 << 20, -5, INT32_MAX, 2147483648, INT64_MAX, old + 1000, old * 1000, 3};
  return json_integer(numbers[roll(d, LP_COUNT(numbers))]);
}

static json_t *other_text(dice *d, const node_list *all, const char *old) {
  static const char *const texts[] = {
      "",      "0",      "1",   "b",   "s",  "p",     "p + s", "b*s", "c",      "4096",   "-1",          "device",
      "cloud", "f16",    "f32", "i64", "i8", "abort", "exit",  "run", "lp_abi", "output", "lp_layout_0", "lp_segment_0",
      "free",  "s*s*s*s"};
  if (roll(d, 2) == 0) return json_string(texts[roll(d, LP_COUNT(texts))]);
  for (int i = 0; i < 50; i++) {
    const json_t *found = all->data[roll(d, all->count)].value;
    if (json_is_string(found) && strcmp(json_string_value(found), old) != 0)
      return json_string(json_string_value(found));
  }
  return json_string("x");
}

static json_t *other_value(dice *d, const node_list *all, const json_t *old) {
  if (roll(d, 12) == 0) return json_null();
  if (roll(d, 12) == 0) return json_deep_copy(all->data[roll(d, all->count)].value);
  switch (json_typeof(old)) {
  case JSON_INTEGER:
    return other_number(d, json_integer_value(old));
  case JSON_STRING:
    return other_text(d, all, json_string_value(old));
  case JSON_REAL:
    return json_real(json_real_value(old) * (double)roll(d, 5) - 1);
  case JSON_OBJECT:
    return json_object();
  case JSON_ARRAY:
    return json_array();
  default:
    return json_integer(1);
  }
}

/* Puts a copy of another node with the same key, or of a neighbour, in the place of this one. */
static void put_alike(dice *d, const node_list *all, const node *at) {
  for (int i = 0; i < 50; i++) {
    const node *found = &all->data[roll(d, all->count)];
    bool alike = at->key ? found->key && strcmp(found->key, at->key) == 0 : found->parent == at->parent;
    if (!alike || json_equal(found->value, at->value)) continue;
    put(at, json_deep_copy(found->value));
    return;
  }
}

static void swap_neighbours(dice *d, const node *at) {
  if (at->key) return;
  size_t other = roll(d, json_array_size(at->parent));
  json_t *mine = json_incref(at->value), *its = json_incref(json_array_get(at->parent, other));
  json_array_set_new(at->parent, at->index, its);
  json_array_set_new(at->parent, other, mine);
}

static void change_once(dice *d, json_t *root) {
  node_list all = {0};
  collect(root, &all);
  const node at = all.data[roll(d, all.count)];
  switch (roll(d, 8)) {
  case 0:
    take_out(&at);
    break;
  case 1:
    put_alike(d, &all, &at);
    break;
  case 2:
    swap_neighbours(d, &at);
    break;
  case 3:
    if (at.key)
      json_object_set_new(at.parent, "added", json_deep_copy(at.value));
    else
      json_array_insert_new(at.parent, roll(d, json_array_size(at.parent) + 1), json_deep_copy(at.value));
    break;
  default:
    put(&at, other_value(d, &all, at.value));
  }
  lp_vec_free(&all);
}

/* The text of the document with a seal of its own. */
static void seal(const json_t *root, lp_buf *out) {
  char *text = json_dumps(root, JSON_INDENT(1));
  lp_buf_append(out, text, strlen(text) - strlen("\n}"));
  lp_seal_put(out);
  free(text);
}

/* ---- runs -------------------------------------------------------------------------------------------------------- */

/* Generates and prints the tokens to `out`; the process ends with 0, 1 (refused) or 3 (failed without an error). */
static _Noreturn void run_bundle(const char *path, int64_t count, int out) {
  const struct rlimit cpu = {CPU_SECONDS, CPU_SECONDS}, memory = {(rlim_t)4 << 30, (rlim_t)4 << 30}, core = {0, 0};
  setrlimit(RLIMIT_CPU, &cpu);
  setrlimit(RLIMIT_AS, &memory);
  setrlimit(RLIMIT_CORE, &core);
  lp_bundle *bundle = NULL;
  lp_rank_team *team = NULL;
  lp_session *session = NULL;
  lp_generation made = {0};
  lp_diag *diag = lp_diag_create();
  const lp_bundle_options load = {.load = LP_LOAD_ALL};
  const int32_t prompt[PROMPT] = {1, 2, 3, 4, 5};
  lp_status status = lp_bundle_load(path, &load, &bundle, diag);
  if (status == LP_OK) status = lp_ranks_start(bundle, &load, 1, &team, diag);
  if (status == LP_OK) {
    lp_generate_options options = {.max_tokens = count, .threads = 1, .sampling = lp_bundle_sampling(bundle)};
    status = lp_session_open(bundle, &options, &session, diag);
  }
  if (status == LP_OK) status = lp_session_generate(session, prompt, 1, PROMPT, NULL, NULL, &made, diag);
  if (status != LP_OK) _exit(lp_diag_error_count(diag) > 0 ? 1 : 3);
  for (size_t i = 0; i < made.tokens.count; i++)
    if (write(out, &made.tokens.data[i].token, sizeof(int32_t)) != sizeof(int32_t)) _exit(3);
  _exit(0);
}

typedef struct {
  int32_t token[MAX_TOKENS];
  size_t bytes;
} tokens;

static ending run(const char *path, int64_t count, const tokens *wanted, tokens *out) {
  int ends[2], status = 0;
  if (pipe(ends) != 0) abort();
  fflush(stdout);
  pid_t child = fork();
  if (child < 0) abort();
  if (child == 0) {
    alarm(WALL_SECONDS);
    run_bundle(path, count, ends[1]);
  }
  close(ends[1]);
  out->bytes = 0;
  for (ssize_t got; out->bytes < sizeof out->token; out->bytes += (size_t)got) {
    got = read(ends[0], (char *)out->token + out->bytes, sizeof out->token - out->bytes);
    if (got <= 0) break;
  }
  close(ends[0]);
  if (waitpid(child, &status, 0) != child) abort();
  if (WIFSIGNALED(status)) {
    int by = WTERMSIG(status);
    return by == SIGALRM || by == SIGXCPU || by == SIGKILL ? HUNG : CRASHED;
  }
  if (WEXITSTATUS(status) != 0) return WEXITSTATUS(status) == 1 ? REFUSED : SILENT;
  if (!wanted) return SAME;
  return out->bytes == wanted->bytes && memcmp(out->token, wanted->token, out->bytes) == 0 ? SAME : WRONG;
}

static void write_manifest(const char *path, const json_t *root, bool shows) {
  lp_buf text = {0};
  seal(root, &text);
  if (shows) fwrite(text.data, 1, text.size, stdout);
  if (lp_file_write(path, text.data, text.size, NULL) != LP_OK) abort();
  lp_buf_free(&text);
}

int main(int argc, char **argv) {
  if (argc != 5) return 2;
  const char *only = getenv("ONLY");
  uint64_t seed = strtoull(argv[2], NULL, 10), count = strtoull(argv[3], NULL, 10);
  int64_t made = atoll(argv[4]);
  char *path = lp_path_join(argv[1], "manifest.json");
  json_t *whole = json_load_file(path, 0, NULL);
  if (!whole || made < 1 || made > MAX_TOKENS) return 2;
  json_object_del(whole, "seal");
  tokens wanted, found;
  write_manifest(path, whole, false);
  if (run(argv[1], made, NULL, &wanted) != SAME || wanted.bytes != (size_t)made * sizeof(int32_t)) {
    printf("the unchanged bundle does not run\n");
    return 1;
  }
  uint64_t ended[ENDS] = {0};
  for (uint64_t i = only ? strtoull(only, NULL, 10) : 0; i < count; i++) {
    dice d = {.seed = seed, .number = i};
    json_t *changed = json_deep_copy(whole);
    for (size_t changes = 1 + roll(&d, 3); changes > 0; changes--)
      change_once(&d, changed);
    write_manifest(path, changed, only != NULL);
    json_decref(changed);
    ending end = run(argv[1], made, &wanted, &found);
    ended[end]++;
    if (end > SAME) printf("%" PRIu64 ":%" PRIu64 " %s\n", seed, i, ending_name[end]);
    if (only) break;
  }
  for (int i = 0; i < ENDS; i++)
    printf("%s%" PRIu64 " %s", i > 0 ? ", " : "", ended[i], ending_name[i]);
  printf("\n");
  json_decref(whole);
  free(path);
  return ended[WRONG] + ended[SILENT] + ended[CRASHED] + ended[HUNG] > 0;
}
