/* Batched passes: see passes.h. */
#include "runtime/simulate/passes.h"

#include <math.h>

#include "base/random.h"

/* ---- times ------------------------------------------------------------------------------------------------------- */

static double at(const lp_sim_times *times, const double *seconds, double rows) {
  int32_t i = 1;
  if (times->count < 2) return seconds[0];
  while (i < times->count - 1 && rows > times->rows[i])
    i++;
  double share = (rows - times->rows[i - 1]) / (times->rows[i] - times->rows[i - 1]);
  return fmax(0, seconds[i - 1] + share * (seconds[i] - seconds[i - 1]));
}

double lp_sim_pass_s(const lp_sim_times *times, double rows, double prompt_rows) {
  if (!times->prompt_seconds) return at(times, times->seconds, rows + prompt_rows);
  double one = fmin(times->seconds[0], times->prompt_seconds[0]);
  if (rows <= 0) return at(times, times->prompt_seconds, prompt_rows);
  return at(times, times->seconds, rows) +
         (prompt_rows > 0 ? fmax(0, at(times, times->prompt_seconds, prompt_rows) - one) : 0);
}

/* The rows of prompts from `least` on with which a pass beside `decoders` takes at most `limit_s`: up to the first that
 * exceed it, which are beyond a knot of the times, and found by halving the interval, since times are linear in it. */
static int64_t rows_within(const lp_sim_times *times, int64_t decoders, int64_t least, double limit_s) {
  const double shift = times->prompt_seconds ? 0 : (double)decoders;
  int64_t low = least, high = LP_PASS_MOST_ROWS + 1;
  for (int32_t i = 0; i < times->count && high > LP_PASS_MOST_ROWS; i++) {
    const double knot = floor(times->rows[i] - shift);
    if (knot <= (double)low || knot > (double)LP_PASS_MOST_ROWS) continue;
    *(lp_sim_pass_s(times, (double)decoders, knot) <= limit_s ? &low : &high) = (int64_t)knot;
  }
  while (high - low > 1) {
    const int64_t middle = low + (high - low) / 2;
    *(lp_sim_pass_s(times, (double)decoders, (double)middle) <= limit_s ? &low : &high) = middle;
  }
  return low;
}

int64_t lp_sim_most_rows(const lp_sim_times *times) {
  const double limit_s = 1e-3 * LP_PASS_SHORT_MS * (1 + 1e-12);
  return lp_sim_pass_s(times, 0, (double)LP_PASS_ROWS) > limit_s ? LP_PASS_ROWS
                                                                 : rows_within(times, 0, LP_PASS_ROWS, limit_s);
}

static int64_t paced_rows(const lp_sim_station *station, int64_t decoders) {
  const double stretch = station->prompt_stretch > 0 ? station->prompt_stretch : LP_PROMPT_STRETCH;
  const double most = stretch * lp_sim_pass_s(&station->pass, (double)decoders, 0) * (1 + 1e-12);
  return rows_within(&station->pass, decoders, 0, most);
}

void lp_sim_pace(lp_sim_station *station, int16_t table[LP_PASS_MOST_SEQUENCES]) {
  for (int64_t i = 0; i < LP_PASS_MOST_SEQUENCES; i++)
    table[i] = (int16_t)paced_rows(station, i + 1);
  station->paced = table;
  station->most_rows = lp_sim_most_rows(&station->pass);
}

static int64_t most_rows_of(const lp_sim_station *station) {
  return station->most_rows > 0 ? station->most_rows : lp_sim_most_rows(&station->pass);
}

static double sending_s(double bytes, double bps) {
  return bps > 0 ? 8 * bytes / bps : 0;
}

/* ---- the other half of a split ----------------------------------------------------------------------------------- */

/* The time from the end of the device's pass until it has all answers. Rows of a request leave one after the other; the
 * worker begins a pass whenever it is idle and rows have come, over all of these. */
static double crossing_s(const lp_sim_passes *passes, const lp_sim_crossing *way) {
  double sent = 0, idle_s = 0, back = 0;
  size_t next = 0, count = passes->members.count;
  const lp_sim_member *member = passes->members.data;
  bool any = false;
  while (next < count) {
    double rows = 0, prompt_rows = 0, answers = 0, begin = 0;
    for (; next < count; next++) {
      if (member[next].rows == 0 || !member[next].asks) continue;
      double mine = (double)(member[next].rows + member[next].open);
      double come = sent + sending_s(mine * way->row_bytes + way->message_bytes, way->up_bps);
      if (answers > 0 && come > begin) break; /* the worker has begun without these */
      sent = come;
      if (answers == 0) begin = fmax(idle_s, come);
      *(member[next].left > 1 ? &prompt_rows : &rows) += mine;
      answers++;
    }
    if (answers == 0) break;
    any = true;
    idle_s = begin + lp_sim_pass_s(&way->worker, rows, prompt_rows);
    back = fmax(back, idle_s) + answers * sending_s(way->message_bytes, way->down_bps);
  }
  return any ? way->rtt_s + back : 0;
}

/* The device's time: all rows as far as the exit, and the deeper layers for the rows of requests that ask the cloud or
 * have enough open ones. */
static double device_s(const lp_sim_passes *passes, const lp_sim_station *station) {
  double rows = 0, prompt_rows = 0, deep = 0, deep_prompt_rows = 0;
  const double depth = station->exits.share > 0 ? station->exits.depth : 0;
  LP_FOR_VEC(const lp_sim_member, member, &passes->members) {
    if (member->rows == 0) continue;
    const bool is_deep = member->asks || member->open + member->rows >= LP_SIM_OPEN_ROWS;
    const double own = (double)member->rows, all = is_deep ? (double)(member->rows + member->open) : 0;
    if (member->left > 1) {
      prompt_rows += own;
      deep_prompt_rows += all;
    } else {
      rows += own;
      deep += all + (is_deep ? member->beside : 0);
    }
  }
  const double first = depth > 0 ? depth * lp_sim_pass_s(&station->pass, rows, prompt_rows) : 0;
  if (deep + deep_prompt_rows <= 0) return first;
  return first + (1 - depth) * lp_sim_pass_s(&station->pass, deep, deep_prompt_rows);
}

/* ---- a pass ------------------------------------------------------------------------------------------------------ */

void lp_sim_passes_add(lp_sim_passes *passes, uint32_t job, double prompt, double tokens, uint64_t seed) {
  int64_t served = INT64_MAX;
  for (size_t i = 0; i < passes->members.count; i++)
    if (passes->members.data[i].served < served) served = passes->members.data[i].served;
  lp_sim_member member = {.job = job,
                          .seed = seed,
                          .left = (int64_t)fmax(prompt, 1),
                          .tokens = (int64_t)fmax(tokens, 1),
                          .served = passes->members.count > 0 ? served : 0};
  lp_vec_push(&passes->members, member);
}

static bool comes_before(const lp_sim_member *a, const lp_sim_member *b) {
  if ((a->turn > 0) != (b->turn > 0)) return a->turn > 0;
  return a->served < b->served;
}

/* Sorts by turns; equal ones keep their order. The order changes little from pass to pass. */
static void sort(lp_sim_passes *passes) {
  lp_sim_member *member = passes->members.data;
  for (size_t i = 1; i < passes->members.count; i++) {
    if (!comes_before(&member[i], &member[i - 1])) continue;
    const lp_sim_member moved = member[i];
    size_t to = i;
    for (; to > 0 && comes_before(&moved, &member[to - 1]); to--)
      member[to] = member[to - 1];
    member[to] = moved;
  }
}

/* Clears the rows of the last pass, and says which tokens ask the deeper layers. Returns the number of prompts. */
static size_t prepare(lp_sim_passes *passes, const lp_sim_station *station) {
  const double share = station->exits.share;
  size_t prompts = 0;
  LP_FOR_VEC(lp_sim_member, member, &passes->members) {
    member->rows = 0;
    member->asks =
        share <= 0 || !member->generates || lp_random_uniform(member->seed, (uint64_t)member->tokens, 0) >= share;
    prompts += member->left > 1 && !member->away;
  }
  return prompts;
}

static size_t take_generating(lp_sim_passes *passes, size_t prompts) {
  size_t taken = 0;
  size_t most = prompts > 0 ? LP_PASS_MOST_SEQUENCES - LP_PASS_PROMPT_SEQUENCES : LP_PASS_MOST_SEQUENCES;
  for (size_t i = 0; i < passes->members.count && taken < most; i++) {
    if (passes->members.data[i].left > 1 || passes->members.data[i].away) continue;
    passes->members.data[i].rows = 1;
    taken++;
  }
  return taken;
}

static void take_prompts(lp_sim_passes *passes, const lp_sim_station *station, size_t taken, size_t prompts) {
  int64_t paced = 0;
  if (taken > 0) paced = station->paced ? station->paced[taken - 1] : paced_rows(station, (int64_t)taken);
  const int64_t most = most_rows_of(station);
  int64_t left = lp_pass_prompt_rows(most, (int64_t)taken, (int64_t)prompts, paced);
  const int64_t turn = lp_pass_turn(most, station->prompt_turn, left, (int64_t)prompts);
  for (size_t i = 0; i < passes->members.count && left > 0 && taken < LP_PASS_MOST_SEQUENCES; i++) {
    lp_sim_member *member = &passes->members.data[i];
    if (member->left <= 1 || member->away) continue;
    member->rows = lp_pass_turn_rows(member->left, turn, left, &member->turn);
    left -= member->rows;
    taken++;
  }
}

double lp_sim_passes_begin(lp_sim_passes *passes, const lp_sim_station *station) {
  passes->runs = passes->members.count > 0;
  if (!passes->runs) return INFINITY;
  sort(passes);
  const size_t prompts = prepare(passes, station), generating = take_generating(passes, prompts);
  if (prompts > 0) take_prompts(passes, station, generating, prompts);
  double seconds = device_s(passes, station);
  return seconds + (station->crossing.worker.count > 0 ? crossing_s(passes, &station->crossing) : 0);
}

void lp_sim_passes_end(lp_sim_passes *passes) {
  LP_FOR_VEC(lp_sim_member, member, &passes->members) {
    if (member->rows == 0) continue;
    member->served += member->rows;
    member->left -= member->rows;
    member->open = member->asks || member->open + member->rows >= LP_SIM_OPEN_ROWS ? 0 : member->open + member->rows;
    if (member->left > 0) continue;
    member->tokens--;
    member->left = 1;
    member->generates = true;
  }
  passes->runs = false;
}

/* ---- alone ------------------------------------------------------------------------------------------------------- */

static double lone_pass_s(const lp_sim_station *station, int64_t rows, bool asks) {
  lp_sim_member member = {.left = rows, .rows = rows, .asks = asks};
  const lp_sim_passes one = {.members = {.data = &member, .count = 1}};
  return device_s(&one, station) + (station->crossing.worker.count > 0 ? crossing_s(&one, &station->crossing) : 0);
}

double lp_sim_passes_alone_s(const lp_sim_station *station, double prompt, double tokens) {
  double seconds = 0, share = station->exits.share;
  int64_t left = (int64_t)fmax(prompt, 1), part = most_rows_of(station);
  for (; left > part; left -= part)
    seconds += lone_pass_s(station, part, true);
  seconds += lone_pass_s(station, left, true);
  double token = lone_pass_s(station, 1, true);
  if (share > 0) token = (1 - share) * token + share * lone_pass_s(station, 1, false);
  return seconds + fmax(tokens - 1, 0) * token;
}
