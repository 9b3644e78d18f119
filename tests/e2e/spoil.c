/* spoil REPORT.json MOST: puts a value of another kind in place of each value of a report of places, one at a time: a
 * text for a number, null or a flag, a number for a text, an object or a list, null for a number. The checker refuses
 * the report, or gives the finding of the unchanged one. Of the values with one path it changes the first MOST. */
#include "base/file.h"
#include "base/json/reader.h"
#include "proof/proof.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_DEPTH = 32, MOST_PATHS = 2048, NAME = 64 };

typedef struct {
  char name[MOST_DEPTH][NAME]; /* of the containers around */
  int depth;
  char last[NAME]; /* the last text */
} place;

typedef struct {
  const char *text;
  lp_certificate_places_finding wanted;
  int most, tried, refused, kept, wrong;
  char *path[MOST_PATHS]; /* those met so far */
  int count[MOST_PATHS];  /* values with this path */
  int paths;
} spoiling;

/* Returns whether it is refused; `errors`: the number of its errors. */
static bool is_refused(const char *text, size_t size, lp_certificate_places_finding *found, size_t *errors) {
  lp_diag *diag = lp_diag_create();
  lp_json_document *document = NULL;
  lp_status status = lp_json_parse("report", text, size, 0, &document, diag);
  if (status == LP_OK) {
    const lp_json root = lp_json_root("report", document);
    status = lp_certificate_places_check(&root, "report", found, diag);
  }
  *errors = lp_diag_error_count(diag);
  lp_json_free(document);
  lp_diag_free(diag);
  return status != LP_OK;
}

static bool is_same(const lp_certificate_places_finding *a, const lp_certificate_places_finding *b) {
  return a->objective == b->objective && a->proved == b->proved && a->ms[0] == b->ms[0] && a->ms[1] == b->ms[1] &&
         a->cost == b->cost && a->feasible == b->feasible;
}

static void spoil(spoiling *s, const char *at, const char *end, const char *other, const char *path) {
  lp_buf text = {0};
  lp_certificate_places_finding found = {0};
  size_t errors;
  lp_buf_printf(&text, "%.*s%s%s", (int)(at - s->text), s->text, other, end);
  bool refused = is_refused(text.data, text.size, &found, &errors);
  bool wrong = refused ? errors == 0 : errors > 0 || !is_same(&found, &s->wanted);
  s->tried++;
  s->refused += refused;
  s->kept += !refused;
  s->wrong += wrong;
  if (wrong) printf("%s: %s is %s with %zu errors\n", path, other, refused ? "refused" : "accepted", errors);
  lp_buf_free(&text);
}

/* The end of the container that begins at `at`. */
static const char *end_of(const char *at) {
  int depth = 0;
  for (bool in_text = false; *at; at++) {
    if (in_text && *at == '\\')
      at++;
    else if (*at == '"')
      in_text = !in_text;
    else if (!in_text && strchr("{[", *at))
      depth++;
    else if (!in_text && strchr("}]", *at) && --depth == 0)
      return at + 1;
  }
  return at;
}

/* Counts a value at the place; tells whether it is among the first with its path. */
static bool is_sampled(spoiling *s, const place *p, char path[MOST_DEPTH * NAME]) {
  size_t length = 0;
  for (int i = 1; i <= p->depth; i++)
    length += (size_t)snprintf(path + length, MOST_DEPTH * NAME - length, "%s.", p->name[i]);
  snprintf(path + length, MOST_DEPTH * NAME - length, "%s", p->last);
  int i = 0;
  while (i < s->paths && !lp_streq(s->path[i], path))
    i++;
  if (i == MOST_PATHS) return false;
  if (i == s->paths) s->path[s->paths++] = lp_strdup(path);
  return s->count[i]++ < s->most;
}

/* Moves over a text, and tells whether it is a key. */
static const char *skip_text(const char *at, place *p, bool *key) {
  char text[NAME];
  size_t length = 0;
  for (at++; *at != '"'; at++) {
    if (*at == '\\') at++;
    if (length + 1 < sizeof text) text[length++] = *at;
  }
  text[length] = '\0';
  *key = at[1] == ':';
  if (*key) memcpy(p->last, text, length + 1);
  return at + 1;
}

static void spoil_all(spoiling *s) {
  place p = {.depth = 0};
  char path[MOST_DEPTH * NAME];
  for (const char *at = s->text; *at;) {
    const char *end = at + 1, *other = NULL;
    bool key = false;
    if (*at == '"') {
      end = skip_text(at, &p, &key);
      if (!key) other = "7";
    } else if (strchr("-0123456789", *at)) {
      end = at + strspn(at, "-+.eE0123456789");
      other = "\"x\"";
    } else if (strchr("ntf", *at)) {
      end = at + strspn(at, "nultrefas");
      other = "\"x\"";
    } else if (strchr("{[", *at)) {
      other = "7";
    }
    if (other && is_sampled(s, &p, path)) {
      spoil(s, at, strchr("{[", *at) ? end_of(at) : end, other, path);
      if (strchr("-0123456789", *at)) spoil(s, at, end, "null", path);
    }
    if (strchr("{[", *at) && p.depth + 1 < MOST_DEPTH) memcpy(p.name[++p.depth], p.last, NAME);
    if (strchr("}]", *at) && p.depth > 0) memcpy(p.last, p.name[p.depth--], NAME);
    at = end;
  }
}

int main(int argc, char **argv) {
  char *text = NULL;
  size_t size = 0, errors;
  if (argc != 3 || atoi(argv[2]) < 1 || lp_file_read(argv[1], &text, &size, NULL) != LP_OK) return 2;
  spoiling s = {.text = text, .most = atoi(argv[2])};
  if (is_refused(text, size, &s.wanted, &errors)) {
    printf("the report itself is refused\n");
    return 1;
  }
  spoil_all(&s);
  printf("%d of %d changes are refused, %d change nothing, %d are wrong\n", s.refused, s.tried, s.kept, s.wrong);
  for (int i = 0; i < s.paths; i++)
    free(s.path[i]);
  free(text);
  return s.wrong || s.refused < 100;
}
