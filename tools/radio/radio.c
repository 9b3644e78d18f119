/* llmpart radio: values of the radio model. Its options, and the action that each belongs to. */
#include "tools/radio/radio.h"

#include <math.h>

static const lp_tool_action actions[] = {
    {"pathloss", radio_pathloss, 0}, {"los", radio_los, 0},  {"o2i", radio_o2i, 0},
    {"capacity", radio_capacity, 0}, {"pf", radio_pf, 0},    {"drop", radio_drop, 1},
    {"list", radio_list, 0},         {"show", radio_show, 1}};

static lp_status act(const lp_command *command, const lp_texts *args, lp_diag *diag) {
  return lp_tool_choose(actions, LP_COUNT(actions), command, args, diag);
}

static const radio_flags defaults = {.scenario = "UMa",
                                     .d2d = NAN,
                                     .h_bs = NAN,
                                     .h_ut = NAN,
                                     .fc = 3.5,
                                     .h_e = 1,
                                     .h_building = 5,
                                     .w_street = 20,
                                     .sinr_db = NAN,
                                     .block_hz = 180e3,
                                     .blocks = 100,
                                     .seed = 1,
                                     .scheduler = "pf",
                                     .beta = 0.01};

static const char usage[] =
    "llmpart radio pathloss | los | o2i | capacity | pf | drop PROFILE | list | show PROFILE [options]";
static const char summary[] = "Values of the radio model, by 3GPP TR 38.901: path loss (dB), probability of line of "
                              "sight, loss into buildings (dB), Shannon\ncapacity (bit/s), the rates of a cell's "
                              "users, and users placed in a network. PROFILE is a name of the list\nor a YAML file.";

int lp_tool_radio(int argc, char **argv) {
  radio_flags flags = defaults;
  const lp_option options[] = {
      {"--scenario", LP_OPTION_TEXT, &flags.scenario, "UMa|UMi|RMa|InH-office|InH-open",
       "choose the scenario of TR 38.901 (UMa)"},
      {"--los", LP_OPTION_FLAG, &flags.los, NULL, "pathloss: assume a line of sight"},
      {"--nlos", LP_OPTION_FLAG, &flags.nlos, NULL, "pathloss: assume no line of sight"},
      {"--d2d", LP_OPTION_F64, &flags.d2d, "M", "set the distance along the ground, m"},
      {"--hbs", LP_OPTION_F64, &flags.h_bs, "M",
       "set the height of the base station, m (UMa 25, UMi 10, RMa 35, InH 3)"},
      {"--hut", LP_OPTION_F64, &flags.h_ut, "M", "set the height of the user, m (1.5; InH 1)"},
      {"--fc", LP_OPTION_F64, &flags.fc, "GHZ", "set the carrier frequency, GHz (3.5)"},
      {"--he", LP_OPTION_F64, &flags.h_e, "M", "UMa: set the effective environment height, m (1)"},
      {"--hbuilding", LP_OPTION_F64, &flags.h_building, "M", "RMa: set the height of buildings, m (5)"},
      {"--wstreet", LP_OPTION_F64, &flags.w_street, "M", "RMa: set the width of streets, m (20)"},
      {"--high-loss", LP_OPTION_FLAG, &flags.high_loss, NULL, "o2i: assume coated glass"},
      {"--din", LP_OPTION_F64, &flags.d_in, "M", "o2i: set the part of the way that is inside, m (0)"},
      {"--sinr", LP_OPTION_SIGNED, &flags.sinr_db, "DB", "capacity, pf: set the signal to interference and noise, dB"},
      {"--blocks", LP_OPTION_POSITIVE, &flags.blocks, "N", "capacity, pf: use N resource blocks (100)"},
      {"--block-hz", LP_OPTION_F64, &flags.block_hz, "HZ", "set the width of a block, Hz (180e3)"},
      {"--gap", LP_OPTION_F64, &flags.gap_db, "DB", "capacity, pf: set the loss against Shannon's capacity, dB (0)"},
      {"--cap", LP_OPTION_F64, &flags.cap, "BITS", "capacity, pf: limit the bit/s/Hz (no limit)"},
      {"--users", LP_OPTION_POSITIVE, &flags.users, "N",
       "pf: N users of one SINR; drop: N users over all cells (10 a sector)"},
      {"--scheduler", LP_OPTION_CHOICE, &flags.scheduler, "pf|rr|max",
       "pf: schedule proportionally fair, round robin or by maximum rate (pf)"},
      {"--beta", LP_OPTION_F64, &flags.beta, "B", "pf: forget this share of the mean rates each interval (0.01)"},
      {"--rayleigh", LP_OPTION_FLAG, &flags.rayleigh, NULL, "pf: let blocks fade (Rayleigh)"},
      {"--intervals", LP_OPTION_POSITIVE, &flags.intervals, "N",
       "pf, drop: schedule N intervals, after a warm-up of a quarter as many (4000; drop 400)"},
      {"--seed", LP_OPTION_I64, &flags.seed, "N", "pf, drop: set the seed of the random numbers (1)"},
      {"--csv", LP_OPTION_TEXT, &flags.csv, "FILE",
       "read a table, a column for each option and a row for each run, and add the results to it"},
      {"-o", LP_OPTION_TEXT, &flags.out, "FILE|text|csv|json", "write to FILE, or to stdout in this form (text)"},
  };
  const lp_command command = {usage, summary, options, LP_COUNT(options), {1, 2}, act, &flags, NULL, false};
  return lp_tool_main(&command, argc, argv);
}
