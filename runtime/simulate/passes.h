/* Batched passes of one server, after the rules of runtime/engine/choose.c: the rows of each pass, and its time. Times
 * in s. */
#pragma once

#include "runtime/pass_rules.h"
#include "runtime/simulate/simulate.h"

/* A request in a server. */
typedef struct {
  uint32_t job;
  uint64_t seed;  /* of the draws that say which tokens an exit gives */
  int64_t left;   /* rows of the prompt that have not run; 1 while tokens are generated */
  int64_t tokens; /* that are still to come */
  int64_t served; /* rows so far: requests with the fewest come first */
  int64_t turn;   /* rows that are left of a prompt's turn which a pass has cut short: it comes before all; 0: none */
  int64_t rows;   /* in the current pass */
  int64_t open;   /* rows whose deeper layers wait */
  double beside;  /* of tokens that exits of its device gave: rows in each pass of it that generates */
  bool generates, asks;
  bool away; /* the other half of its request is with its device: it takes no rows */
} lp_sim_member;

typedef struct {
  LP_VEC(lp_sim_member) members;
  bool runs; /* a pass is under way */
} lp_sim_passes;

/* Adds a request of a prompt and an answer in tokens. Release with lp_vec_free(&passes->members). */
void lp_sim_passes_add(lp_sim_passes *passes, uint32_t job, double prompt, double tokens, uint64_t seed);
/* Chooses the members of the next pass (rows > 0) and returns its time; INFINITY: there is no member. */
double lp_sim_passes_begin(lp_sim_passes *passes, const lp_sim_station *station);
/* Ends the pass. Requests that are complete have no tokens left. */
void lp_sim_passes_end(lp_sim_passes *passes);

/* Sets station->paced to `table`, which it fills: beside each number of requests that generate, the rows of prompts
 * that make a pass as long as they may. Sets station->most_rows. */
void lp_sim_pace(lp_sim_station *station, int16_t table[LP_PASS_MOST_SEQUENCES]);
/* The most rows of a pass (pass_rules.h). */
int64_t lp_sim_most_rows(const lp_sim_times *times);
/* The time of a pass over so many rows of requests that generate, and of prompts. */
double lp_sim_pass_s(const lp_sim_times *times, double rows, double prompt_rows);
/* The time of a request on an otherwise idle server, with the mean of what exits give. */
double lp_sim_passes_alone_s(const lp_sim_station *station, double prompt, double tokens);
