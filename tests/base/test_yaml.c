#include "tests/base/expect.h"

#include "base/yaml/yaml.h"
#include "tests/suite.h"

typedef struct {
  double rate, wait_s, bps;
  int64_t count;
  bool on;
  const char *name;
  int32_t colour;
  const lp_yaml_node *rest;
} settings;

static const char *const colours[] = {"red", "green"};
static const lp_yaml_field fields[] = {
    LP_YAML_FIELD(LP_YAML_F64, "rate", settings, rate, .least = -2, .most = 5, .required = true),
    LP_YAML_FIELD(LP_YAML_TIME_S, "wait", settings, wait_s, .most = 10),
    LP_YAML_FIELD(LP_YAML_BPS, "link", settings, bps, .least = 1, .most = 1e9),
    LP_YAML_FIELD(LP_YAML_I64, "count", settings, count, .least = 1, .most = 10),
    LP_YAML_FIELD(LP_YAML_BOOL, "on", settings, on, .least = 0),
    LP_YAML_FIELD(LP_YAML_TEXT, "name", settings, name, .least = 0),
    LP_YAML_FIELD(LP_YAML_CHOICE, "colour", settings, colour, .names = colours, .name_count = 2),
    LP_YAML_FIELD(LP_YAML_NODE, "rest", settings, rest, .least = 0),
};

static lp_status read_settings(void *user, lp_yaml *yaml, const lp_yaml_node *root) {
  settings *s = user;
  LP_TRY(lp_yaml_fields(yaml, root, "the file", fields, LP_COUNT(fields), s));
  if (!s->rest) return LP_OK;
  double *numbers = NULL;
  int32_t count = 0;
  LP_TRY(lp_yaml_numbers(yaml, s->rest, "rest", &(lp_yaml_range){0, 9, true}, &numbers, &count));
  s->count = count;
  return LP_OK;
}

static lp_status parse(const char *text, settings *out, lp_arena *arena, lp_diag *diag) {
  *out = (settings){.count = 7};
  return lp_yaml_parse("f.yaml", text, strlen(text), arena, read_settings, out, diag);
}

LP_TEST(mappings_are_read_by_table) {
  lp_arena *arena = lp_arena_create();
  settings s;
  ck_assert_int_eq(
      parse("rate: -1.5\nwait: 400ms\nlink: 10Mbit/s\non: true\nname: \"a b\"\ncolour: green\n", &s, arena, NULL),
      LP_OK);
  ck_assert_double_eq(s.rate, -1.5);
  ck_assert_double_eq_tol(s.wait_s, 0.4, 1e-12);
  ck_assert_double_eq(s.bps, 1e7);
  ck_assert_int_eq(s.count, 7); /* as it was */
  ck_assert(s.on);
  ck_assert_str_eq(s.name, "a b");
  ck_assert_int_eq(s.colour, 1);
  ck_assert_int_eq(parse("rate: 1\nrest: [1, 2, 3]\n", &s, arena, NULL), LP_OK);
  ck_assert_int_eq(s.count, 3);
  lp_arena_free(arena);
}

/* "rate: 1", and `depth` lists inside one another under the top mapping. */
static lp_status parse_lists(size_t depth, lp_diag *diag) {
  lp_buf text = {0};
  lp_buf_puts(&text, "rate: 1\nrest: ");
  for (size_t i = 0; i < depth; i++)
    lp_buf_puts(&text, "[");
  for (size_t i = 0; i < depth; i++)
    lp_buf_puts(&text, "]");
  settings s;
  lp_arena *arena = lp_arena_create();
  lp_status status = parse(text.data, &s, arena, diag);
  lp_arena_free(arena);
  lp_buf_free(&text);
  return status;
}

/* Each value counts, at its place; nodes do not. */
LP_TEST(digests_tell_values) {
  static const settings all[] = {{.count = 0}, {.rate = 1},   {.wait_s = 1},  {.bps = 1},    {.count = 1},
                                 {.on = true}, {.name = "a"}, {.name = "ab"}, {.colour = 1}, {.name = "a", .on = true}};
  uint64_t of[LP_COUNT(all)];
  for (size_t i = 0; i < LP_COUNT(all); i++) {
    of[i] = lp_yaml_digest(fields, LP_COUNT(fields), &all[i], 0);
    for (size_t k = 0; k < i; k++)
      ck_assert_uint_ne(of[i], of[k]);
  }
  const settings other = {.rest = (const void *)all};
  ck_assert_uint_eq(of[0], lp_yaml_digest(fields, LP_COUNT(fields), &other, 0));
  ck_assert_uint_ne(of[6], lp_yaml_digest(fields, LP_COUNT(fields), &all[6], 1));
}

typedef struct {
  const char *first, *second;
} two_texts;

LP_TEST(digests_tell_places) {
  static const lp_yaml_field texts[] = {LP_YAML_FIELD(LP_YAML_TEXT, "first", two_texts, first, .least = 0),
                                        LP_YAML_FIELD(LP_YAML_TEXT, "second", two_texts, second, .least = 0)};
  static const two_texts all[] = {{NULL, "a"}, {"a", NULL}, {"a", "a"}, {"", "a"}};
  for (size_t i = 0; i < LP_COUNT(all); i++)
    for (size_t k = 0; k < i; k++)
      ck_assert_uint_ne(lp_yaml_digest(texts, 2, &all[i], 0), lp_yaml_digest(texts, 2, &all[k], 0));
}

LP_TEST(depth_is_limited) {
  static const size_t depths[] = {64, 40000};
  for (size_t i = 0; i < LP_COUNT(depths); i++) {
    lp_diag *diag = lp_diag_create();
    ck_assert_int_eq(parse_lists(depths[i], diag), LP_FAILED);
    char *found = formatted(diag, 0);
    ck_assert_str_eq(found, "f.yaml:2:70: error: more than 64 lists and mappings are inside one another");
    free(found);
    lp_diag_free(diag);
  }
  lp_diag *diag = lp_diag_create();
  ck_assert_int_eq(parse_lists(63, diag), LP_FAILED); /* read, and no list of numbers */
  ck_assert_ptr_nonnull(strstr(lp_diag_get(diag, 0)->text, "'rest'"));
  lp_diag_free(diag);
}

LP_TEST(faults_have_their_place) {
  static const struct {
    const char *text, *wanted, *note;
  } rows[] = {
      {"", "f.yaml: error: holds no YAML document", NULL},
      {"[1]", "f.yaml:1:1: error: the file is not a mapping of keys to values", NULL},
      {"wait: 1\n", "f.yaml:1:1: error: the file lacks 'rate'", NULL},
      {"rate: 6\n", "f.yaml:1:7: error: 'rate' is '6', not a number from -2 to 5", NULL},
      {"rate: 1\nraet: 2\n", "f.yaml:2:1: error: unknown key 'raet'", "f.yaml:2:1: note: did you mean 'rate'?"},
      {"rate: 1\nrate: 2\n", "f.yaml:2:1: error: 'rate' is given twice", NULL},
      {"rate: 1\nwait: 4parsecs\n", "f.yaml:2:7: error: 'wait': '4parsecs' is not a time such as 400ms, 0.1s or 20us",
       NULL},
      {"rate: 1\nwait: 11s\n", "f.yaml:2:7: error: 'wait' is '11s', but it is from 0 to 10 s", NULL},
      {"rate: 1\ncount: 1.5\n", "f.yaml:2:8: error: 'count' is '1.5', not a whole number from 1 to 10", NULL},
      {"rate: 1\ncount: 11\n", "f.yaml:2:8: error: 'count' is '11', not a number from 1 to 10", NULL},
      {"rate: 1\non: yes\n", "f.yaml:2:5: error: 'on' is 'yes', neither 'true' nor 'false'", NULL},
      {"rate: 1\ncolour: gren\n", "f.yaml:2:9: error: 'colour' is 'gren', not one of red, green",
       "f.yaml:2:9: note: did you mean 'green'?"},
      {"rate: 1\nname: [a]\n", "f.yaml:2:7: error: 'name' is not a single value", NULL},
      {"rate: 1\nrest: []\n", "f.yaml:2:7: error: 'rest' is not a list of at least one", NULL},
      {"rate: 1\nrest: [1, 1]\n", "f.yaml:2:11: error: 'rest' does not ascend", NULL},
      {"rate: 1\nrest: {\n", "f.yaml:3:1: error: is not YAML: did not find expected node content", NULL},
  };
  for (size_t i = 0; i < LP_COUNT(rows); i++) {
    lp_arena *arena = lp_arena_create();
    lp_diag *diag = lp_diag_create();
    settings s;
    ck_assert_int_eq(parse(rows[i].text, &s, arena, diag), LP_FAILED);
    char *found = formatted(diag, 0);
    ck_assert_str_eq(found, rows[i].wanted);
    free(found);
    ck_assert_uint_eq(lp_diag_error_count(diag), 1);
    if (rows[i].note) {
      found = formatted(diag, 1);
      ck_assert_str_eq(found, rows[i].note);
      free(found);
    }
    lp_diag_free(diag);
    lp_arena_free(arena);
  }
}
