/* Rotary positions of a config.json: the frequencies of each scaling against numbers by hand, by the formulas of the
 * Python package transformers, and the numbers that are refused, also those of state spaces. */
#include "base/dir.h"
#include "base/file.h"
#include "base/path.h"
#include "frontend/huggingface/huggingface.h"
#include "tests/suite.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static char *folder;
static lp_arena *arena;
static lp_diag *diag;

static void setup(void) {
  ck_assert_int_eq(lp_dir_temporary("llmpart-positions", &folder, NULL), LP_OK);
  arena = lp_arena_create();
  diag = lp_diag_create();
}

static void teardown(void) {
  lp_dir_abandon(folder);
  free(folder);
  lp_arena_free(arena);
  lp_diag_free(diag);
}

LP_CASE(.setup = setup, .teardown = teardown);

/* A head of 8 elements and a context of 16. Without scaling the frequencies are 1, 0.1, 0.01 and 0.001. */
static lp_status read_config_of(const char *type, const char *rest, lp_decoder *out) {
  lp_buf text = {0};
  bool is_part = false;
  lp_buf_printf(&text,
                "{\"model_type\":\"%s\",\"hidden_size\":8,\"intermediate_size\":6,\"num_hidden_layers\":1,"
                "\"num_attention_heads\":1,\"vocab_size\":5,\"max_position_embeddings\":16,\"rope_theta\":10000%s}",
                type, rest);
  char *path = lp_path_join(folder, "config.json");
  ck_assert_int_eq(lp_file_write(path, text.data, text.size, NULL), LP_OK);
  lp_status status = lp_huggingface_config(path, arena, out, &is_part, &(lp_packing){0}, diag);
  lp_buf_free(&text);
  free(path);
  return status;
}

static lp_status read_config(const char *rest, lp_decoder *out) {
  return read_config_of("llama", rest, out);
}

static bool is_near(double found, double wanted) {
  return fabs(found - wanted) <= 2e-6 * fabs(wanted);
}

#define SCALING(text) ",\"rope_scaling\":{" text "}"
#define LLAMA3 "\"rope_type\":\"llama3\",\"factor\":8,\"low_freq_factor\":1,\"high_freq_factor\":4"
#define YARN "\"rope_type\":\"yarn\",\"factor\":4,\"original_max_position_embeddings\":64"
#define LONG(type) "\"type\":\"" type "\",\"short_factor\":[1,2,4,8],\"long_factor\":[2,2,2,2]"

LP_LOOP_TEST(frequencies, 0, 20) {
  static const struct {
    const char *rest;
    int64_t dim;
    double inverse[4], scale, beyond[4]; /* none: 0 */
    int64_t limit;
  } rows[] = {
      {"", 8, {1, 0.1, 0.01, 0.001}, 1, {0}, 0},
      {SCALING("\"rope_type\":\"default\",\"rope_theta\":100"), 8, {1, 0.31622777, 0.1, 0.031622777}, 1, {0}, 0},
      {",\"rope_parameters\":{\"rope_theta\":100}", 8, {1, 0.31622777, 0.1, 0.031622777}, 1, {0}, 0},
      {",\"partial_rotary_factor\":0.5", 8, {1, 0.1, 0.01, 0.001}, 1, {0}, 0}, /* which Llamas do not read */
      /* rope_scaling replaces rope_parameters, the base included, unless it is empty */
      {",\"rope_parameters\":{\"rope_theta\":100}" SCALING("\"type\":\"linear\",\"factor\":2"),
       8,
       {0.5, 0.05, 0.005, 0.0005},
       1,
       {0},
       0},
      {",\"rope_parameters\":{\"rope_theta\":100}" SCALING(""), 8, {1, 0.31622777, 0.1, 0.031622777}, 1, {0}, 0},
      {SCALING("\"type\":\"linear\",\"factor\":2,\"more\":null"), 8, {0.5, 0.05, 0.005, 0.0005}, 1, {0}, 0},
      /* wavelengths up to 16 stay, those from 64 on are 8 times as long, and 62.83 lies between */
      {SCALING(LLAMA3 ",\"original_max_position_embeddings\":64"), 8, {1, 0.013042256, 0.00125, 0.000125}, 1, {0}, 0},
      /* the ramp goes from 0 to 2, or to 1.0080001 */
      {SCALING(YARN), 8, {1, 0.0625, 0.0025, 0.00025}, 1.1386294, {0}, 0},
      {SCALING(YARN ",\"truncate\":true"), 8, {1, 0.0625, 0.0025, 0.00025}, 1.1386294, {0}, 0},
      {SCALING(YARN ",\"truncate\":false"), 8, {1, 0.025595246, 0.0025, 0.00025}, 1.1386294, {0}, 0},
      {SCALING(YARN ",\"mscale\":2,\"mscale_all_dim\":1"), 8, {1, 0.0625, 0.0025, 0.00025}, 1.1217512, {0}, 0},
      {SCALING(YARN ",\"mscale\":2,\"mscale_all_dim\":0"), 8, {1, 0.0625, 0.0025, 0.00025}, 1.1386294, {0}, 0},
      {SCALING(YARN ",\"mscale\":0,\"mscale_all_dim\":2"), 8, {1, 0.0625, 0.0025, 0.00025}, 1.1386294, {0}, 0},
      {SCALING(YARN ",\"attention_factor\":1.5"), 8, {1, 0.0625, 0.0025, 0.00025}, 1.5, {0}, 0},
      {SCALING(LONG("longrope") ",\"original_max_position_embeddings\":8"),
       8,
       {1, 0.05, 0.0025, 0.000125},
       1.1547005,
       {0.5, 0.05, 0.005, 0.0005},
       8},
      {",\"original_max_position_embeddings\":4" SCALING(LONG("su") ",\"original_max_position_embeddings\":8"),
       8,
       {1, 0.05, 0.0025, 0.000125},
       1.4142136,
       {0.5, 0.05, 0.005, 0.0005},
       4},
      {SCALING(LONG("longrope")), 8, {1, 0.05, 0.0025, 0.000125}, 1, {0.5, 0.05, 0.005, 0.0005}, 16},
      {SCALING(LONG("longrope") ",\"factor\":16"),
       8,
       {1, 0.05, 0.0025, 0.000125},
       1.4142136,
       {0.5, 0.05, 0.005, 0.0005},
       16},
      {SCALING(LONG("longrope") ",\"attention_factor\":3"),
       8,
       {1, 0.05, 0.0025, 0.000125},
       3,
       {0.5, 0.05, 0.005, 0.0005},
       16},
  };
  lp_decoder decoder;
  lp_status status = read_config(rows[_i].rest, &decoder);
  ck_assert_msg(status == LP_OK, "%s", lp_diag_count(diag) ? lp_diag_get(diag, 0)->text : "");
  const lp_rotary *found = &decoder.rotary[0];
  ck_assert_int_eq(found->dim, rows[_i].dim);
  for (int64_t i = 0; i < found->dim / 2; i++) {
    ck_assert_msg(is_near((double)found->inverse[i], rows[_i].inverse[i]), "%d: %.9g", (int)i,
                  (double)found->inverse[i]);
    if (found->beyond) ck_assert(is_near((double)found->beyond[i], rows[_i].beyond[i]));
  }
  ck_assert_msg(is_near(found->scale, rows[_i].scale), "%.9g", found->scale);
  ck_assert_int_eq(found->beyond != NULL, rows[_i].limit > 0);
  ck_assert_int_eq(found->limit, rows[_i].limit);
}

/* Of families that read partial_rotary_factor. */
LP_LOOP_TEST(parts_of_heads, 0, 9) {
  static const struct {
    const char *type, *rest;
    int64_t dim; /* 0: refused */
    const char *refusal;
  } rows[] = {
      {"phi3", "", 8, NULL},
      {"phi", "", 4, NULL},
      {"stablelm", "", 2, NULL},
      {"phi3", ",\"partial_rotary_factor\":0.5", 4, NULL},
      {"phi3", ",\"partial_rotary_factor\":0.5" SCALING("\"type\":\"linear\",\"factor\":2"), 4, NULL},
      {"phi3", ",\"partial_rotary_factor\":0.1", 0, "0 of the 8 elements of a head rotate"},
      {"phi3", ",\"partial_rotary_factor\":0.4", 0, "3 of the 8 elements of a head rotate"},
      {"phi3", ",\"partial_rotary_factor\":1.25", 0, "10 of the 8 elements of a head rotate"},
      /* the name that Phi-3's first files have for longrope */
      {"phi3", SCALING(YARN), 0, "wanted an array"},
  };
  lp_decoder decoder;
  lp_status status = read_config_of(rows[_i].type, rows[_i].rest, &decoder);
  ck_assert_int_eq(status, rows[_i].dim > 0 ? LP_OK : LP_FAILED);
  if (status == LP_OK) {
    ck_assert_int_eq(decoder.rotary[0].dim, rows[_i].dim);
    return;
  }
  const char *found = lp_diag_get(diag, 0)->text;
  ck_assert_msg(strstr(found, rows[_i].refusal), "found '%s', wanted '%s'", found, rows[_i].refusal);
}

LP_LOOP_TEST(numbers_that_are_refused, 0, 13) {
  static const struct {
    const char *rest, *refusal;
  } rows[] = {
      {",\"partial_rotary_factor\":0.5" SCALING("\"type\":\"linear\",\"factor\":2"),
       "'partial_rotary_factor' 0.5 with scaled positions is not supported for 'llama'"},
      {SCALING("\"type\":7"), "positions of type '' are not supported"},
      {SCALING("\"truncated\":true"), "this key is unknown"},
      {SCALING(LLAMA3), "the key 'original_max_position_embeddings' is missing"},
      {SCALING("\"type\":\"llama3\",\"factor\":8,\"low_freq_factor\":1"), "the key 'high_freq_factor' is missing"},
      {SCALING("\"type\":\"llama3\",\"factor\":8,\"high_freq_factor\":1"), "the key 'low_freq_factor' is missing"},
      {SCALING(YARN ",\"beta_fast\":0"), "0 is not positive"},
      {SCALING(YARN ",\"beta_slow\":-1"), "-1 is not positive"},
      {SCALING(YARN ",\"mscale\":\"a\""), "wanted a number, found a string"},
      {SCALING(YARN ",\"mscale_all_dim\":\"a\""), "wanted a number, found a string"},
      {SCALING(LONG("longrope") ",\"original_max_position_embeddings\":1"),
       "an original context of 1 positions is not supported"},
      {SCALING("\"type\":\"longrope\",\"short_factor\":[1,2,4,8],\"long_factor\":[2,2,2]"), "3 numbers instead of 4"},
      {SCALING("\"type\":\"longrope\",\"short_factor\":[1,2,4,\"a\"]"), "wanted a number, found a string"},
  };
  lp_decoder decoder;
  ck_assert_int_eq(read_config(rows[_i].rest, &decoder), LP_FAILED);
  ck_assert_uint_eq(lp_diag_count(diag), 1);
  const char *found = lp_diag_get(diag, 0)->text;
  ck_assert_msg(strstr(found, rows[_i].refusal), "found '%s', wanted '%s'", found, rows[_i].refusal);
}

/* ---- state spaces ------------------------------------------------------------------------------------------------ */

#define NEMOTRON "nemotron_h", ",\"num_key_value_heads\":1,\"mamba_num_heads\":2,\"mamba_head_dim\":2"
#define FALCON "falcon_h1", ",\"num_key_value_heads\":1,\"mamba_n_heads\":2"

static const struct {
  const char *type, *sizes, *keys, *error;
} states[] = {
    {NEMOTRON, ",\"time_step_min\":0.01", "a least time step above 0.001 is not supported"},
    {NEMOTRON, ",\"n_groups\":1,\"hybrid_override_pattern\":\"M+\"", "only letters of '*M-E' are supported"},
    {NEMOTRON, ",\"hybrid_override_pattern\":\"\"", "there are no layers"},
    {NEMOTRON, ",\"n_groups\":1,\"layers_block_type\":[\"mlp\",\"conv\"]", "unknown value 'conv'"},
    {NEMOTRON, ",\"mlp_hidden_act\":\"tanh\"", "activation 'tanh' is not supported"},
    {NEMOTRON, ",\"n_groups\":3", "2 heads of 2 elements in 3 groups do not go together"},
    {FALCON, ",\"mamba_d_ssm\":5", "2 heads of 2 elements in 1 groups do not go together with 5 elements"},
    {FALCON, ",\"ssm_multipliers\":[1,2,3,4]", "wanted a number"},
    {FALCON, ",\"mlp_multipliers\":[1,2,3]", "2 numbers are wanted"},
    {FALCON, ",\"key_multiplier\":0", "0 is not positive"},
};

LP_LOOP_TEST(states_that_are_none_are_refused, 0, LP_COUNT(states)) {
  lp_decoder found;
  char rest[256];
  (void)snprintf(rest, sizeof rest, "%s%s", states[_i].sizes, states[_i].keys);
  ck_assert_int_eq(read_config_of(states[_i].type, rest, &found), LP_FAILED);
  const char *text = lp_diag_get(diag, 0)->text;
  ck_assert_msg(strstr(text, states[_i].error), "found '%s', wanted '%s'", text, states[_i].error);
}

LP_TEST(a_pattern_gives_the_kinds_of_layers) {
  lp_decoder found;
  ck_assert_int_eq(read_config_of(NEMOTRON ",\"n_groups\":1,\"hybrid_override_pattern\":\"M*-E\"", &found), LP_OK);
  ck_assert_int_eq(found.layers, 4);
  for (int64_t i = 0; i < 4; i++) {
    ck_assert(found.layer[i].scans == (i == 0) && found.layer[i].sparse == (i == 3));
    ck_assert(found.layer[i].only_mixes == (i < 2) && found.layer[i].only_feeds == (i >= 2));
  }
}
