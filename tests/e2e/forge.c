/* forge REPORT.json STRIDE [sign]: changes every number of a report, one at a time, and expects the certificate's
 * checker to refuse each. Leaves out those that nothing else in the report determines. Adds 1 to each number, and a
 * thousandth to those that are no integers; puts null in place of each number but 0, and 5 in place of each null. Of
 * the numbers with one path, such as the times of all operators, it changes the first STRIDE and every STRIDE-th
 * after them. Prints what it accepts. With `sign`, forged reports of fleets have the digest of their own numbers. */
#include "base/file.h"
#include "proof/proof.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_DEPTH = 32, MOST_KEYS = MOST_DEPTH * 64, PATH_SIZE = 512, MOST_PATHS = 1024 };

/* The place of a scan in the text: the keys of the containers around it. */
typedef struct {
  char key[MOST_DEPTH][64]; /* of the container at each depth, as it is called in its parent */
  int depth;
  char name[64]; /* the last key or text */
} place;

static void path_of(const place *p, char out[MOST_KEYS]) {
  size_t at = 0;
  for (int i = 2; i <= p->depth && at < MOST_KEYS; i++) /* the document itself has no key */
    at += (size_t)snprintf(out + at, MOST_KEYS - at, "%s.", p->key[i]);
  if (at < MOST_KEYS) snprintf(out + at, MOST_KEYS - at, "%s", p->name);
}

/* Tells whether the number at the path is one that nothing else in the report determines: docs/guide/capacity.md lists
 * them. */
static bool is_unproved(const char *path) {
  static const char *const names[] = {
      "model.", /* the model, and the operators' sizes and intervals */
      "workload.isl",
      "operators.operators.layer",
      "operators.operators.flops",
      "operators.operators.bytes",
      "operators.operators.device_low_ms",
      "operators.operators.device_high_ms",
      "operators.operators.cloud_low_ms",
      "operators.operators.cloud_high_ms",
      "operators.operators.draw_ms",
      "certificate.prefill.values.",
      "certificate.decode.values.",
      "certificate.prefill.units.units.activation.",
      "certificate.decode.units.units.activation.",
      "certificate.prefill.units.units.in.", /* the data flow */
      "certificate.decode.units.units.in.",
      "certificate.prefill.units.units.hold.",
      "certificate.decode.units.units.hold.",
      "certificate.prefill.units.units.split.", /* several splits may prove one bound */
      "certificate.decode.units.units.split.",
      "certificate.holdings.holdings.", /* a holding on a side that no plan of the report uses */
      "certificate.aim",                /* the search may prove the bound with another one too */
      "exits.layers.",
      "exits.theta",
      "predictions.",   /* times and bytes of runs at other lengths */
      "fixes.fixes.to", /* how far a fix goes; only planning again tells whether it suffices */
      "link.quantile",  /* one that as many states meet */
      "link.states_",   /* one state may change without another probability */
      "device.times.measured_share",
      "cloud.times.measured_share",
      "tolerance", /* what the user asked for, and what the machines are */
      "device.peak_",
      "device.bandwidth_",
      "device.launch_ms",
      "device.compute_utilisation",
      "device.memory_utilisation",
      "device.memory_bytes",
      "device.memory_limit_bytes", /* one that the model does not reach; figures.sh forges another */
      "cloud.peak_",
      "cloud.bandwidth_",
      "cloud.launch_ms",
      "cloud.compute_utilisation",
      "cloud.memory_utilisation",
  };
  for (size_t i = 0; i < LP_COUNT(names); i++)
    if (strncmp(path, names[i], strlen(names[i])) == 0) return true;
  return false;
}

/* The same of the report of a fleet, except for its digest. */
static bool is_free_in_fleets(const char *path) {
  static const char *const names[] = {"mean_rate_per_s",
                                      "classes.classes.times.",
                                      "classes.classes.limits.",
                                      "classes.classes.device_layers", /* of one without the cloud */
                                      "classes.classes.private_layers",
                                      "fleet.kwh_lower_bound", /* a lower one holds too */
                                      "certificate.alone_j.",
                                      "fleet.limits_scale",
                                      "pools.pools.busy",
                                      "pools.pools.prompt_stretch",
                                      "pools.pools.prompt_turn",
                                      "pools.pools.weight_bytes",
                                      "pools.pools.session_bytes",
                                      "pools.pools.power_w",
                                      "pools.pools.idle_power_w",
                                      "classes.classes.user.", /* for simulations, as the lengths are */
                                      "lengths.",
                                      "neighbours.", /* other fleets */
                                      "search.",
                                      "certificate.kept.",
                                      "certificate.options."};
  if (strstr(path, ".prices.kept_s") || strstr(path, ".prices.free_s")) return false;
  for (size_t i = 0; i < LP_COUNT(names); i++)
    if (strncmp(path, names[i], strlen(names[i])) == 0) return true;
  return false;
}

/* Writes the digest that the report has into it. */
static void sign(char *text) {
  lp_json_document *document = NULL;
  char digest[20], *at = strstr(text, "\"digest\": \"");
  if (!at || lp_json_parse("forged", text, strlen(text), 0, &document, NULL) != LP_OK) return;
  const lp_json root = lp_json_root("forged", document);
  (void)snprintf(digest, sizeof digest, "%016" PRIx64, lp_json_digest(&root, "digest"));
  at += strlen("\"digest\": \"");
  for (int i = 0; digest[i]; i++)
    at[i] = digest[i];
  lp_json_free(document);
}

static lp_status check(lp_certificate *c, const char *file, lp_diag *diag) {
  const lp_json root = lp_json_root(file, c->report);
  lp_certificate_finding found;
  lp_certificate_fleet_finding fleet;
  return lp_certificate_is_of_fleet(c) ? lp_certificate_fleet_check(&root, file, &fleet, diag)
                                       : lp_certificate_check(c, file, &found, diag);
}

static bool is_refused(const char *text, const char *file) {
  FILE *out = fopen(file, "w");
  if (!out) return false;
  fputs(text, out);
  fclose(out);
  lp_diag *diag = lp_diag_create();
  lp_certificate c;
  lp_status status = lp_certificate_load(file, &c, diag);
  if (status == LP_OK) status = check(&c, file, diag);
  lp_certificate_free(&c);
  lp_diag_free(diag);
  return status != LP_OK;
}

/* The report with something else at `at`. */
static char *forge(const char *text, const char *at, const char *end, const char *other) {
  lp_buf out = {0};
  lp_buf_printf(&out, "%.*s%s%s", (int)(at - text), text, other, end);
  return out.data;
}

typedef struct {
  const char *text, *file; /* the report, and where forged ones are written */
  int stride, tried, accepted, unproved;
  char *path[MOST_PATHS]; /* those met so far */
  int count[MOST_PATHS];  /* numbers with this path */
  int paths;
  bool fleet, signs;
} forgery;

/* Counts a number at the path; tells whether it belongs to the sample. */
static bool is_sampled(forgery *f, const char *path) {
  int i = 0;
  while (i < f->paths && !lp_streq(f->path[i], path))
    i++;
  if (i == MOST_PATHS) return true;
  if (i == f->paths) f->path[f->paths++] = lp_strdup(path);
  const int before = f->count[i]++;
  return before < f->stride || before % f->stride == 0;
}

static void try_text(forgery *f, const char *at, const char *end, const char *path, const char *other) {
  if (f->fleet ? f->signs && is_free_in_fleets(path)
               : is_unproved(path)) { /* whether it is refused tells nothing, and the proof of its bound takes long */
    f->unproved++;
    return;
  }
  char *forged = forge(f->text, at, end, other);
  if (f->signs) sign(forged);
  f->tried++;
  if (!is_refused(forged, f->file)) {
    f->accepted++;
    printf("accepted: %s instead of %.*s in %s\n", other, (int)(end - at), at, path);
  }
  free(forged);
}

static void try_number(forgery *f, const char *at, const char *end, const char *path, double number) {
  char text[32];
  (void)snprintf(text, sizeof text, "%.17g", number);
  try_text(f, at, end, path, text);
}

static void try_changes(forgery *f, const char *at, const char *end, const char *path) {
  const double number = strtod(at, NULL);
  try_number(f, at, end, path, number + 1);
  if (number != 0) try_text(f, at, end, path, "null");
  if (strstr(path, ".split.")) return; /* the bound tells, except for its rounding */
  if (number != 0 && strcspn(at, ".e") < (size_t)(end - at)) try_number(f, at, end, path, number * 1.001);
}

/* Moves over a text, which becomes the place's name. */
static const char *skip_text(const char *at, place *p) {
  size_t length = 0;
  for (at++; *at != '"'; at++) {
    if (*at == '\\') at++;
    if (length + 1 < sizeof p->name) p->name[length++] = *at;
  }
  p->name[length] = 0;
  return at + 1;
}

static void open_container(place *p) {
  p->depth++;
  memcpy(p->key[p->depth], p->name, sizeof p->name);
}

int main(int argc, char **argv) {
  char *text = NULL, file[PATH_SIZE], path[MOST_KEYS];
  size_t size = 0;
  place p = {.depth = 0};
  if (argc < 3 || atoi(argv[2]) < 1 || lp_file_read(argv[1], &text, &size, NULL) != LP_OK) return 2;
  (void)snprintf(file, sizeof file, "%s.forged", argv[1]);
  if (is_refused(text, file)) {
    printf("the report itself is refused\n");
    return 1;
  }
  forgery f = {.text = text,
               .file = file,
               .stride = atoi(argv[2]),
               .fleet = strstr(text, "\"llmpart.fleet/1\""),
               .signs = argc > 3};
  for (const char *at = text; *at;) {
    const char *end = at + strspn(at, "-+.eE0123456789");
    if (*at == '"') {
      at = skip_text(at, &p);
    } else if ((*at >= '0' && *at <= '9') || *at == '-') {
      path_of(&p, path);
      if (is_sampled(&f, path)) try_changes(&f, at, end, path);
      at = end;
    } else if (strncmp(at, "null", 4) == 0) {
      path_of(&p, path);
      if (is_sampled(&f, path)) try_text(&f, at, at + 4, path, "5");
      at += 4;
    } else {
      if (*at == '{' || *at == '[') open_container(&p);
      if (*at == '}' || *at == ']') memcpy(p.name, p.key[p.depth--], sizeof p.name);
      at++;
    }
  }
  for (int i = 0; i < f.paths; i++)
    free(f.path[i]);
  free(text);
  printf("%d of %d forgeries are accepted, %d others are of numbers that nothing determines\n", f.accepted, f.tried,
         f.unproved);
  return f.accepted || f.tried + f.unproved < 300;
}
