/* Prints the result of `llmpart run` as text or JSON, and its statistics. */
#include "tools/run/print.h"
#include "base/side.h"
#include "base/units.h"

#include <math.h>

#include "base/utf8.h"
#include "tools/tools.h"

static const lp_generated *token_at(const lp_generation *made, int64_t sequence, int64_t step) {
  return &made->tokens.data[sequence * made->generated + step];
}

void lp_run_print_text(const lp_bundle *bundle, const lp_generation *made, int64_t sequence, lp_buf *out) {
  const lp_tokenizer *tokenizer = lp_bundle_tokenizer(bundle);
  LP_OWNED(lp_free_at) lp_tokens ids = {0};
  for (int64_t i = 0; i < made->generated; i++) {
    int32_t token = token_at(made, sequence, i)->token;
    if (token < 0) break;
    lp_vec_push(&ids, token);
    if (!tokenizer) lp_buf_printf(out, "%s%d", i > 0 ? " " : "", token);
  }
  if (tokenizer) lp_tokenizer_decode(tokenizer, ids.data, ids.count, true, out);
}

static void put_step(lp_json_writer *json, const lp_bundle *bundle, const lp_generated *token) {
  lp_json_put_object(json, NULL);
  lp_json_put_integer(json, "token", token->token);
  lp_json_put_text(json, "side", lp_bundle_place_name(bundle, token->side));
  if (token->exit_layer >= 0)
    lp_json_put_integer(json, "exit_layer", token->exit_layer);
  else
    lp_json_put_null(json, "exit_layer");
  lp_json_put_number(json, "confidence", token->confidence);
  lp_json_put_number(json, "ms", token->ms);
  lp_json_put_end(json);
}

static int64_t count_tokens(const lp_generation *made, int64_t sequence) {
  int64_t count = 0;
  while (count < made->generated && token_at(made, sequence, count)->token >= 0)
    count++;
  return count;
}

/* Text that is not UTF-8 becomes null. */
static void put_text(lp_json_writer *json, const lp_bundle *bundle, const lp_generation *made, int64_t sequence) {
  LP_OWNED(lp_buf_free) lp_buf text = {0};
  lp_run_print_text(bundle, made, sequence, &text);
  if (lp_bundle_tokenizer(bundle) && lp_utf8_valid(lp_buf_text(&text), text.size))
    lp_json_put_bytes(json, "text", lp_buf_text(&text), text.size);
  else
    lp_json_put_null(json, "text");
}

/* `tokens`, `text` and `steps` of a sequence, into the object that is open. */
static void put_sequence(lp_json_writer *json, const lp_bundle *bundle, const lp_generation *made, int64_t sequence) {
  int64_t count = count_tokens(made, sequence);
  lp_json_put_array(json, "tokens");
  for (int64_t i = 0; i < count; i++)
    lp_json_put_integer(json, NULL, token_at(made, sequence, i)->token);
  lp_json_put_end(json);
  put_text(json, bundle, made, sequence);
  lp_json_put_array(json, "steps");
  for (int64_t i = 0; i < count; i++)
    put_step(json, bundle, token_at(made, sequence, i));
  lp_json_put_end(json);
}

static void put_totals(lp_json_writer *json, const lp_generation *made) {
  int64_t fresh = made->generated - made->resumed;
  lp_json_put_number(json, "ttft_ms", made->ttft_ms);
  lp_json_put_number(json, "tpot_ms", made->tpot_ms);
  lp_json_put_number(json, "total_ms", made->total_ms);
  lp_json_put_number(json, "device_ms", made->device_ms);
  lp_json_put_number(json, "cloud_ms", made->cloud_ms);
  lp_json_put_number(json, "comm_ms", made->comm_ms);
  lp_json_put_number(json, "connect_ms", made->connect_ms);
  lp_json_put_number(json, "cloud_request_rate", fresh > 0 ? (double)made->cloud_requests / (double)fresh : 0);
  lp_json_put_integer(json, "bytes_up", (int64_t)made->bytes_up);
  lp_json_put_integer(json, "bytes_down", (int64_t)made->bytes_down);
  lp_json_put_integer(json, "cloud_requests", (int64_t)made->cloud_requests);
  lp_json_put_integer(json, "hidden_bytes_up", (int64_t)made->hidden_bytes_up);
  lp_json_put_integer(json, "drafted", made->drafted);
  lp_json_put_integer(json, "accepted", made->accepted);
  lp_json_put_integer(json, "fallbacks", made->fallbacks);
  lp_json_put_integer(json, "resumed", made->resumed);
}

void lp_run_print_json(const lp_bundle *bundle, const lp_generation *made, int64_t prompt_tokens,
                       const lp_run_planned *planned, const lp_run_link *link, lp_buf *out) {
  lp_json_writer json = lp_tool_json(out, 9, "llmpart.run/1");
  lp_json_put_integer(&json, "batch", made->batch);
  lp_json_put_integer(&json, "prompt_tokens", prompt_tokens);
  put_sequence(&json, bundle, made, 0);
  lp_json_put_array(&json, "sequences");
  for (int64_t i = 0; i < made->batch; i++) {
    lp_json_put_object(&json, NULL);
    put_sequence(&json, bundle, made, i);
    lp_json_put_end(&json);
  }
  lp_json_put_end(&json);
  put_totals(&json, made);
  lp_json_put_object(&json, "plan"); /* the chosen plan, and the link's figures that chose it */
  lp_json_put_integer(&json, "plan", made->plan);
  lp_json_put_integer(&json, "plans", made->plan_count);
  lp_json_put_number(&json, "rtt_ms", made->rtt_ms); /* null when not measured */
  lp_json_put_number(&json, "up_bps", made->up_bps);
  lp_json_put_end(&json);
  lp_run_planned_json(planned, &json);
  lp_run_link_json(link, &json);
  lp_json_document_end(&json);
}

static void put_plan(const lp_generation *made, lp_buf *out) {
  lp_buf_printf(out, "plan %" PRId32 " of plans 0 to %" PRId32, made->plan, made->plan_count - 1);
  if (!isnan(made->rtt_ms)) lp_buf_printf(out, "; round trip %.3g ms", made->rtt_ms);
  if (!isnan(made->up_bps) && made->up_bps < 1e18) lp_buf_printf(out, "; up %.3g Mbit/s", made->up_bps / 1e6);
  lp_buf_puts(out, "\n");
}

/* The places that sampled tokens: of two sides the cloud, of more each one. */
static void put_sampled(const lp_bundle *bundle, const lp_generation *made, lp_buf *out) {
  const int32_t count = lp_bundle_place_count(bundle);
  for (lp_place place = count > LP_SIDE_COUNT ? 0 : LP_SIDE_CLOUD; place < count; place++) {
    int64_t sampled = 0;
    for (int64_t i = 0; i < made->generated; i++)
      sampled += token_at(made, 0, i)->side == place;
    if (count <= LP_SIDE_COUNT)
      lp_buf_printf(out, ", %" PRId64 " sampled in the cloud", sampled);
    else if (sampled > 0)
      lp_buf_printf(out, ", %" PRId64 " sampled at %s", sampled, lp_bundle_place_name(bundle, place));
  }
}

void lp_run_print_stats(const lp_bundle *bundle, const lp_generation *made, int64_t prompt_tokens, lp_buf *out) {
  const bool more = lp_bundle_place_count(bundle) > LP_SIDE_COUNT;
  lp_buf_printf(out, "prompt %" PRId64 " tokens, batch %" PRId64 "; %" PRId64 " steps", prompt_tokens, made->batch,
                made->generated);
  put_sampled(bundle, made, out);
  const struct {
    const char *before, *name;
    double ms;
  } times[] = {{"\n", "TTFT", made->ttft_ms},
               {", ", "TPOT", made->tpot_ms},
               {", ", "total", made->total_ms},
               {": ", more ? lp_bundle_place_name(bundle, LP_SIDE_DEVICE) : "device", made->device_ms},
               {", ", more ? "other places" : "cloud", made->cloud_ms},
               {", ", more ? "links" : "link", made->comm_ms}};
  char text[32], down[32];
  for (size_t i = 0; i < LP_COUNT(times); i++)
    lp_buf_printf(out, "%s%s %s", times[i].before, times[i].name, lp_format_ms(times[i].ms, text));
  lp_buf_printf(out, "\nup %s, down %s, %" PRIu64 " waits for %s\n", lp_format_bytes((double)made->bytes_up, text),
                lp_format_bytes((double)made->bytes_down, down), made->cloud_requests,
                more ? "other places" : "the cloud");
  if (made->plan_count > 1) put_plan(made, out);
  if (made->drafted > 0)
    lp_buf_printf(out, "%" PRId64 " of %" PRId64 " drafts were confirmed\n", made->accepted, made->drafted);
  if (made->resumed > 0) lp_buf_printf(out, "%" PRId64 " tokens came from the session\n", made->resumed);
  if (made->fallbacks > 0) lp_buf_printf(out, "%" PRId64 " tokens without the cloud's answer\n", made->fallbacks);
}
