/* A lower bound of the machines of a pool, by prices of tokens and of prompt rows in machine time.
 *
 * A pass has d tokens and r rows of prompts and lasts T(d, r). By the rules of runtime/pass_rules.h, it has at most R
 * of both, which is 256, or up to 1024 on a fast machine; of at most S sessions each gives one token or rows of its
 * prompt, and there are at most 240 tokens beside a prompt. Prices a, b, c, m >= 0 with
 *
 *   a d + c r <= (1 + m d) T(d, r)   and   b d + c r <= T(d, r)   for all such passes
 *
 * prove a bound: the share g of a class's tokens is, at least, in requests that keep the limit L of TPOT, since the
 * others are a share 1 - q of the requests, at worst those with the longest answers. Of these g n tokens, passes of T
 * each add up to at most L g n. The sum over all passes of the first line (of passes with both kinds of tokens, of a
 * mean of the lines) then says that machines run passes for at least
 *
 *   c (rows) + g n (a - m L) + (1 - g) n b .
 *
 * Each machine has at most S sessions. A token of a split holds one for the time h at its device and the link, and for
 * that of its pass. The first line, summed, then says of n machines, also where no limit of TPOT is kept, that
 *
 *   n (1 + m S) >= c (rows) + n a + m n h     (per s, n on the right: tokens) .
 *
 * No order of requests, no stretch and no division of them among the machines changes this. Waits are not in it, nor
 * limits of TTFT: a prompt that alone takes less than its limit can run in passes of its own at the price that its
 * rows have, and tokens without a limit can wait meanwhile. What that leaves out is the wait of the simulated policies,
 * which do not know lengths. */
#pragma once

#include "fleet/candidates.h"

/* The part of a class in a pool that these prices know. Times in s; `user_s`, `asks`: lp_load_user.token_s, asks. With
 * early exits only the cloud's tokens count, and their passes keep the limit L / asks; other tokens cost nothing. */
typedef struct {
  double user_s, asks, held_s; /* held: of user_s, while a machine has the session; 0 where all layers are there */
  const double *limit_s;       /* [LP_FLEET_QUANTILES] of TPOT; 0: none */
} lp_fleet_pace;

lp_fleet_pace lp_fleet_pace_of(const lp_fleet_spec *spec, const lp_fleet_candidates *all, const lp_fleet_option *option,
                               size_t class);
/* A lower bound of the machine time of a mean request of a pool, in s. pace[classes], share[classes]: of the classes
 * that it serves; the shares add up to 1. */
double lp_fleet_work_s(const lp_fleet_means *means, const lp_fleet_option *option, int64_t sessions,
                       const lp_fleet_pace *pace, const double *share, int32_t classes);
/* Sets option->price for the classes that it serves. `sessions`: lp_fleet_sessions of each alone. */
void lp_fleet_prices_find(const lp_fleet_spec *spec, const lp_fleet_candidates *all, lp_fleet_option *option);
