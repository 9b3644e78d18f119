/* forge REPORT.json: changes every number of a report's figures, one at a time, and expects the certificate's checker
 * to refuse each. Prints what it accepts.
 *
 * Figures are all numbers of `plan`, `baselines`, `faster`, `decrement` and `sla`, those of the machines, the link and
 * the workload from which they are computed (the prompt is in the operators' times), the operators' times, and the
 * numbers of the certificate. */
#include "base/file.h"
#include "tools/certificate/certificate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_DEPTH = 32, PATH_SIZE = 512 };

/* The place of a scan in the text: the keys of the containers around it. */
typedef struct {
  char key[MOST_DEPTH][64]; /* of the container at each depth, as it is called in its parent */
  int depth;
  char name[64]; /* the last key or text */
} place;

static void path_of(const place *p, char *out) {
  out[0] = 0;
  for (int i = 2; i <= p->depth; i++) { /* the document itself has no key */
    strcat(out, p->key[i]);
    strcat(out, ".");
  }
  strcat(out, p->name);
}

/* Tells whether the path is that of a figure that must be checked. */
static bool is_figure(const char *path) {
  static const char *const checked[] = {"exits.rate",
                                        "exits.row_share",
                                        "exits.drafts",
                                        "exits.questions",
                                        "plan.",
                                        "baselines.",
                                        "faster.",
                                        "cheapest.",
                                        "decrement",
                                        "sla.",
                                        "link.",
                                        "workload.osl",
                                        "workload.batch",
                                        "workload.sessions",
                                        "certificate.value",
                                        "certificate.bound",
                                        "certificate.objective.",
                                        "certificate.limits.",
                                        "certificate.link.",
                                        "device.price_usd_per_s",
                                        "cloud.price_usd_per_s"};
  static const char *const inside[] = {"operators.device_ms", "operators.cloud_ms", ".units.ms"};
  for (size_t i = 0; i < LP_COUNT(checked); i++)
    if (strncmp(path, checked[i], strlen(checked[i])) == 0) return true;
  for (size_t i = 0; i < LP_COUNT(inside); i++)
    if (strstr(path, inside[i])) return true;
  return false;
}

static bool is_refused(const char *text, const char *file) {
  FILE *out = fopen(file, "w");
  if (!out) return false;
  fputs(text, out);
  fclose(out);
  lp_diag *diag = lp_diag_create();
  certificate c;
  certificate_finding found;
  lp_status status = certificate_load(file, &c, diag);
  if (status == LP_OK) status = certificate_check(&c, file, &found, diag);
  certificate_free(&c);
  lp_diag_free(diag);
  return status != LP_OK;
}

/* The report with one more than the number at `at`. */
static char *forge(const char *text, const char *at, const char *end) {
  lp_buf out = {0};
  lp_buf_printf(&out, "%.*s%.17g%s", (int)(at - text), text, strtod(at, NULL) + 1, end);
  return out.data;
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
  char *text = NULL, file[PATH_SIZE], path[MOST_DEPTH * 64];
  size_t size = 0;
  int tried = 0, accepted = 0;
  place p = {.depth = 0};
  if (argc != 2 || lp_file_read(argv[1], &text, &size, NULL) != LP_OK) return 2;
  (void)snprintf(file, sizeof file, "%s.forged", argv[1]);
  if (is_refused(text, file)) {
    printf("the report itself is refused\n");
    return 1;
  }
  for (const char *at = text; *at;) {
    const char *end = at + strspn(at, "-+.eE0123456789");
    if (*at == '"') {
      at = skip_text(at, &p);
    } else if ((*at >= '0' && *at <= '9') || *at == '-') {
      path_of(&p, path);
      if (is_figure(path)) {
        char *forged = forge(text, at, end);
        tried++;
        if (!is_refused(forged, file))
          accepted++, printf("accepted: one more than %.*s in %s\n", (int)(end - at), at, path);
        free(forged);
      }
      at = end;
    } else {
      if (*at == '{' || *at == '[') open_container(&p);
      if (*at == '}' || *at == ']') memcpy(p.name, p.key[p.depth--], sizeof p.name);
      at++;
    }
  }
  free(text);
  printf("%d of %d forgeries are accepted\n", accepted, tried);
  return accepted || tried < 100;
}
