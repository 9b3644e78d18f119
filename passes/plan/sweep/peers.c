/* A sweep over several processes. A message to process 0 is a text: "key VERSION KEY", "rows EVALUATIONS" and the lines
 * of the journal, or "leave 0|1" with 1 for a failure. Only "rows" is answered, with an lp_sweep_turns. */
#include "passes/plan/sweep/peers.h"

#include <stdlib.h>
#include <string.h>

static void greeting(const char *key, lp_buf *out) {
  lp_buf_printf(out, "key %s %s", LP_VERSION, key);
}

void lp_sweep_peers_greet(const lp_peers *peers, const char *key) {
  lp_buf text = {0};
  greeting(key, &text);
  peers->send(0, lp_buf_text(&text), text.size);
  lp_buf_free(&text);
}

lp_sweep_turns lp_sweep_peers_ask(const lp_peers *peers, lp_buf *lines, uint64_t evaluations) {
  lp_sweep_turns turns = {.from = UINT64_MAX};
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

void lp_sweep_peers_leave(const lp_peers *peers, bool failed) {
  peers->send(0, failed ? "leave 1" : "leave 0", 7);
}

static bool take_rows(const char *text, const lp_sweep_leader *leader) {
  char *end;
  leader->evaluated(leader->user, strtoull(text, &end, 10));
  bool good = *end == '\n';
  for (const char *line = end + 1; good && *line; line = strchr(line, '\n') + 1)
    good = strchr(line, '\n') && leader->take(leader->user, line);
  return good;
}

bool lp_sweep_peers_lead(const lp_peers *peers, const char *key, const lp_sweep_leader *leader) {
  bool good = true;
  lp_buf ours = {0};
  greeting(key, &ours);
  for (int32_t left = 1; left < peers->count;) {
    size_t size;
    int32_t from = peers->wait(&size);
    char *text = lp_alloc(size + 1);
    peers->receive(from, text, size);
    if (lp_has_prefix(text, "rows ")) {
      good = take_rows(text + 5, leader) && good;
      lp_sweep_turns turns = good ? leader->next(leader->user) : (lp_sweep_turns){.from = UINT64_MAX};
      peers->send(from, &turns, sizeof turns);
    } else if (lp_has_prefix(text, "leave ")) {
      good = text[6] == '0' && good;
      left++;
    } else {
      good = lp_streq(text, lp_buf_text(&ours)) && good;
    }
    free(text);
  }
  lp_buf_free(&ours);
  return good;
}
