/* Emulated links to other programs: `relay SHAPE HOST:PORT ...` prints for each address the one to connect to instead,
 * and relays until its input ends. SHAPE is that of `llmpart run --link`: rtt=10ms,up=10Mbit/s,down=50Mbit/s. */
#include <stdio.h>
#include <stdlib.h>

#include "runtime/link/link_emulator.h"

enum { MOST_LINKS = 8 };

static int fail(const lp_diag *diag) {
  lp_buf text = {0};
  lp_diag_format(lp_diag_get(diag, 0), &text);
  (void)fprintf(stderr, "relay: %s\n", lp_buf_text(&text));
  lp_buf_free(&text);
  return 1;
}

int main(int argc, char **argv) {
  lp_diag *diag = lp_diag_create();
  lp_link_emulator *link[MOST_LINKS] = {0};
  lp_link_shape shape;
  if (argc < 3 || argc - 2 > MOST_LINKS) {
    (void)fprintf(stderr, "usage: relay SHAPE HOST:PORT ...\n");
    return 2;
  }
  int status = lp_link_shape_parse(argv[1], &shape, diag, LP_LOC_NONE) == LP_OK ? 0 : fail(diag);
  for (int i = 0; i < argc - 2 && status == 0; i++) {
    status = lp_link_emulator_start(argv[2 + i], &shape, &link[i], diag) == LP_OK ? 0 : fail(diag);
    if (status == 0) (void)printf("%s\n", lp_link_emulator_address(link[i]));
  }
  (void)fflush(stdout);
  while (status == 0 && getchar() != EOF) {
  }
  for (int i = 0; i < argc - 2; i++)
    lp_link_emulator_stop(link[i]);
  lp_diag_free(diag);
  return status;
}
