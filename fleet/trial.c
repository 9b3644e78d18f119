/* Trials of pools: see trial.h. */
#include "fleet/trial.h"

lp_sim_station lp_trial_station(const lp_load_law *law) {
  return (lp_sim_station){.pass = {.count = LP_LOAD_KNOTS,
                                   .rows = (double *)law->rows,
                                   .seconds = (double *)law->token_s,
                                   .prompt_seconds = (double *)law->prompt_s}};
}

lp_sim_pool_user lp_trial_user(const lp_load_user *user) {
  return (lp_sim_pool_user){LP_LOAD_KNOTS, user->prompt, user->first_s,      user->token_s,
                            user->streams, user->asks,   user->question_rows};
}

double lp_trial_pass_s(const lp_load_law *law, double tokens, double prompt_rows) {
  const lp_sim_station station = lp_trial_station(law);
  return lp_sim_pass_s(&station.pass, tokens, prompt_rows);
}

int64_t lp_trial_most_rows(const lp_load_law *law) {
  const lp_sim_station station = lp_trial_station(law);
  return lp_sim_most_rows(&station.pass);
}

lp_fleet_strain lp_fleet_strain_of(const lp_fleet_class *class, const lp_fleet_times *times) {
  return lp_sim_pool_strain_of(class->limit_s, times);
}

void lp_trial_alone(const lp_fleet_length *length, size_t lengths, size_t stride, const lp_load_user *user,
                    const lp_load_law *law, lp_fleet_times *out) {
  const lp_sim_pool_user one = lp_trial_user(user);
  const lp_sim_station station = law ? lp_trial_station(law) : (lp_sim_station){0};
  lp_sim_pool_alone(length, lengths, stride, &one, law ? &station : NULL, out);
}

double lp_trial_device_s(const lp_fleet_length *length, size_t lengths, const lp_load_user *user) {
  const lp_sim_pool_user passes = {LP_LOAD_KNOTS, user->prompt, user->device_first_s, 0, false, 1, 1};
  double sum = 0;
  for (size_t i = 0; i < lengths; i++)
    sum += length[i].weight *
           (lp_sim_pool_first_s(&passes, length[i].prompt) + (length[i].answer - 1) * user->device_token_s);
  return sum;
}

bool lp_trial_run(const lp_trial *trial, lp_fleet_times *out, double *busy) {
  lp_sim_pool_result result;
  lp_sim_pool pool = {.length = trial->length,
                      .lengths = trial->lengths,
                      .classes = trial->classes,
                      .station = lp_trial_station(trial->law),
                      .machines = trial->machines,
                      .sessions = trial->sessions,
                      .rate = trial->rate,
                      .requests = trial->requests,
                      .seed = trial->seed};
  pool.station.prompt_stretch = trial->policy.stretch;
  pool.station.prompt_turn = trial->policy.turn;
  for (int32_t i = 0; i < trial->classes; i++)
    pool.class[i] = (lp_sim_pool_class){trial->class[i].share, lp_trial_user(trial->class[i].user),
                                        trial->class[i].limits ? trial->class[i].limits->limit_s : NULL};
  const bool holds = lp_sim_pool_run(&pool, &result);
  for (int32_t i = 0; i < trial->classes; i++)
    out[i] = result.times[i];
  *busy = result.busy_s / result.paid_s;
  return holds;
}
