#include "tools/run_print.h"
#include "base/side.h"
#include "base/units.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>

static const lp_generated *token_at(const lp_generation *made, int64_t sequence, int64_t step) {
  return &made->tokens.data[sequence * made->generated + step];
}

void lp_run_print_text(const lp_bundle *bundle, const lp_generation *made, int64_t sequence, lp_buf *out) {
  const lp_tokenizer *tokenizer = lp_bundle_tokenizer(bundle);
  lp_tokens ids = {0};
  for (int64_t i = 0; i < made->generated; i++) {
    int32_t token = token_at(made, sequence, i)->token;
    if (token < 0) break;
    lp_vec_push(&ids, token);
    if (tokenizer == NULL) lp_buf_printf(out, "%s%d", i > 0 ? " " : "", token);
  }
  if (tokenizer != NULL) lp_tokenizer_decode(tokenizer, ids.data, ids.count, true, out);
  lp_vec_free(&ids);
}

/* `tokens`, `text` and `steps` of a sequence, into `object`. Text that is not UTF-8 becomes null. */
static void add_sequence(const lp_bundle *bundle, const lp_generation *made, int64_t sequence, json_t *object) {
  json_t *ids = json_array(), *steps = json_array();
  for (int64_t i = 0; i < made->generated; i++) {
    const lp_generated *token = token_at(made, sequence, i);
    if (token->token < 0) break;
    json_array_append_new(ids, json_integer(token->token));
    json_t *exit = token->exit_layer >= 0 ? json_integer(token->exit_layer) : json_null();
    json_array_append_new(steps, json_pack("{s:i, s:s, s:o, s:f, s:f}", "token", (int)token->token, "side",
                                           lp_side_name(token->side), "exit_layer", exit, "confidence",
                                           token->confidence, "ms", token->ms));
  }
  lp_buf text = {0};
  lp_run_print_text(bundle, made, sequence, &text);
  json_t *value = lp_bundle_tokenizer(bundle) != NULL ? json_stringn(lp_buf_text(&text), text.size) : json_null();
  json_object_set_new(object, "tokens", ids);
  json_object_set_new(object, "text", value != NULL ? value : json_null());
  json_object_set_new(object, "steps", steps);
  lp_buf_free(&text);
}

static json_t *figure_json(double figure) {
  return isnan(figure) ? json_null() : json_real(figure);
}

/* Which plan was taken, and what of the link it was chosen by. */
static json_t *plan_json(const lp_generation *made) {
  return json_pack("{s:i, s:i, s:o, s:o}", "plan", (int)made->plan, "plans", (int)made->plan_count, "rtt_ms",
                   figure_json(made->rtt_ms), "up_bps", figure_json(made->up_bps));
}

void lp_run_print_json(const lp_bundle *bundle, const lp_generation *made, int64_t prompt_tokens, lp_buf *out) {
  json_t *root = json_pack("{s:s, s:I, s:I}", "schema", "llmpart.run/1", "batch", (json_int_t)made->batch,
                           "prompt_tokens", (json_int_t)prompt_tokens);
  add_sequence(bundle, made, 0, root);
  json_t *sequences = json_array();
  for (int64_t i = 0; i < made->batch; i++) {
    json_t *sequence = json_object();
    add_sequence(bundle, made, i, sequence);
    json_array_append_new(sequences, sequence);
  }
  json_object_set_new(root, "sequences", sequences);
  double rate =
      made->generated > made->resumed ? (double)made->cloud_requests / (double)(made->generated - made->resumed) : 0;
  json_t *totals = json_pack("{s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}",
                             "ttft_ms", made->ttft_ms, "tpot_ms", made->tpot_ms, "total_ms", made->total_ms,
                             "device_ms", made->device_ms, "cloud_ms", made->cloud_ms, "comm_ms", made->comm_ms,
                             "connect_ms", made->connect_ms, "cloud_request_rate", rate, "bytes_up",
                             (json_int_t)made->bytes_up, "bytes_down", (json_int_t)made->bytes_down, "cloud_requests",
                             (json_int_t)made->cloud_requests, "hidden_bytes_up", (json_int_t)made->hidden_bytes_up,
                             "drafted", (json_int_t)made->drafted, "accepted", (json_int_t)made->accepted, "fallbacks",
                             (json_int_t)made->fallbacks, "resumed", (json_int_t)made->resumed);
  json_object_update(root, totals);
  json_decref(totals);
  json_object_set_new(root, "plan", plan_json(made));
  char *text = json_dumps(root, JSON_INDENT(2) | JSON_REAL_PRECISION(9));
  lp_buf_printf(out, "%s\n", text != NULL ? text : "{}");
  free(text);
  json_decref(root);
}

static void put_plan(const lp_generation *made, lp_buf *out) {
  lp_buf_printf(out, "plan %" PRId32 " of plans 0 to %" PRId32, made->plan, made->plan_count - 1);
  if (!isnan(made->rtt_ms)) lp_buf_printf(out, "; round trip %.3g ms", made->rtt_ms);
  if (!isnan(made->up_bps) && made->up_bps < 1e18) lp_buf_printf(out, "; up %.3g Mbit/s", made->up_bps / 1e6);
  lp_buf_puts(out, "\n");
}

void lp_run_print_stats(const lp_generation *made, int64_t prompt_tokens, lp_buf *out) {
  int64_t on_cloud = 0;
  for (int64_t i = 0; i < made->generated; i++)
    on_cloud += token_at(made, 0, i)->side == LP_SIDE_CLOUD;
  char up[32], down[32];
  lp_format_bytes((double)made->bytes_up, up);
  lp_format_bytes((double)made->bytes_down, down);
  lp_buf_printf(out,
                "prompt %" PRId64 " tokens, batch %" PRId64 "; %" PRId64 " steps, %" PRId64 " sampled in the cloud\n"
                "TTFT %.2f ms, TPOT %.2f ms, total %.2f ms: device %.2f, cloud %.2f, link %.2f\n"
                "up %s, down %s, %" PRIu64 " waits for the cloud\n",
                prompt_tokens, made->batch, made->generated, on_cloud, made->ttft_ms, made->tpot_ms, made->total_ms,
                made->device_ms, made->cloud_ms, made->comm_ms, up, down, made->cloud_requests);
  if (made->plan_count > 1) put_plan(made, out);
  if (made->drafted > 0)
    lp_buf_printf(out, "%" PRId64 " of %" PRId64 " drafts were confirmed\n", made->accepted, made->drafted);
  if (made->resumed > 0) lp_buf_printf(out, "%" PRId64 " tokens were there from the session\n", made->resumed);
  if (made->fallbacks > 0) lp_buf_printf(out, "%" PRId64 " tokens without the cloud's answer\n", made->fallbacks);
}
