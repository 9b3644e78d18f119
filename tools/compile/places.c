/* --place and --link=A-B=LINK: plans over more than two machines. Two places are a device and a cloud, as --device and
 * --cloud name them. */
#include "passes/plan/places/places.h"
#include "base/side.h"
#include "base/units.h"
#include "tools/compile/compile.h"
#include "tools/compile/link.h"

/* One --place: machines of a kind. */
typedef struct {
  char *name, *hardware, *dtype, *march, *backend; /* owned; the last three: NULL where the text has none */
  int64_t count;
  lp_machine *machine; /* owned; NULL: not loaded */
  char code[96];       /* as lp_compile.code */
  bool lacks_bf16;
} place_kind;

struct lp_compile_places {
  place_kind kind[LP_PLACES_MAX];
  int32_t kind_count;
  char *names[LP_PLACES_MAX]; /* owned: of the members of kinds with several */
  LP_VEC(char *) pins;        /* owned: of two places, with the names of sides */
  LP_VEC(lp_link *) links;    /* owned */
  lp_places set;
  lp_places_solution solution; /* of these places */
};

static const lp_loc place_option = {.file = "--place"}, link_option = {.file = "--link"};

/* ---- --place ----------------------------------------------------------------------------------------------------- */

static bool is_name(const char *text, size_t length) {
  static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
  return length > 0 && length <= 32 && strspn(text, allowed) >= length;
}

/* The kind of this name; -1: there is none. */
static int32_t find_kind(const struct lp_compile_places *p, const char *name, size_t length) {
  for (int32_t i = 0; i < p->kind_count; i++)
    if (strlen(p->kind[i].name) == length && strncmp(p->kind[i].name, name, length) == 0) return i;
  return -1;
}

/* Takes ",WORD=VALUE" out of the text of a machine and returns the value, which the caller owns; NULL: there is
 * none. */
static char *take_value(char *hardware, const char *word) {
  LP_OWNED(lp_buf_free) lp_buf key = {0};
  lp_buf_printf(&key, ",%s=", word);
  char *at = strstr(hardware, lp_buf_text(&key)), *value = NULL;
  if (at) {
    const size_t length = strcspn(at + key.size, ",");
    value = lp_strdup(at + key.size);
    value[length] = 0;
    memmove(at, at + key.size + length, strlen(at + key.size + length) + 1);
  }
  return value;
}

static lp_status take_count(char *hardware, int64_t *count, lp_diag *diag) {
  LP_OWNED(lp_free_at) char *value = take_value(hardware, "count");
  *count = 1;
  const lp_status status = value ? lp_parse_i64(value, 1, LP_PLACES_MAX, count, diag, place_option) : LP_OK;
  return status == LP_OK ? LP_OK : LP_USAGE;
}

/* Takes the type of weights and the target of code out of the text of a machine. */
static lp_status take_settings(place_kind *kind, lp_diag *diag) {
  static const char *const backends[] = {"cpu", "cuda", "opencl"};
  bool known = false;
  kind->dtype = take_value(kind->hardware, "dtype");
  kind->march = take_value(kind->hardware, "march");
  kind->backend = take_value(kind->hardware, "backend");
  for (size_t i = 0; i < LP_COUNT(backends); i++)
    known = known || lp_streq(kind->backend, backends[i]);
  if (kind->backend && !known)
    return lp_error_as(LP_USAGE, diag, place_option, "'%s' is no backend: cpu, cuda or opencl", kind->backend);
  return lp_compile_check_dtype_name("--place", kind->dtype, diag);
}

static lp_status read_place(struct lp_compile_places *p, const char *text, lp_diag *diag) {
  const char *equals = strchr(text, '=');
  const size_t length = equals ? (size_t)(equals - text) : 0;
  if (!equals || !equals[1] || !is_name(text, length)) {
    lp_status status = lp_error_as(LP_USAGE, diag, place_option, "'%s' is not a name and a machine", text);
    lp_note(diag, place_option, "such as 'edge=l4,count=2'; a name has letters, digits and '_'");
    return status;
  }
  if (find_kind(p, text, length) >= 0)
    return lp_error_as(LP_USAGE, diag, place_option, "there are two places '%.*s'", (int)length, text);
  if (p->kind_count == LP_PLACES_MAX)
    return lp_error_as(LP_USAGE, diag, place_option, "more than %d places", LP_PLACES_MAX);
  place_kind *kind = &p->kind[p->kind_count++];
  kind->name = lp_strdup(text);
  kind->name[length] = 0;
  kind->hardware = lp_strdup(equals + 1);
  LP_TRY(take_settings(kind, diag));
  return take_count(kind->hardware, &kind->count, diag);
}

/* The names "device" and "cloud" are the sides of a bundle over two places, which have fixed numbers. */
static lp_status check_names(const struct lp_compile_places *p, lp_diag *diag) {
  for (int32_t k = 0; k < p->kind_count; k++) {
    const bool misplaced = k ? lp_streq(p->kind[k].name, "device") : lp_streq(p->kind[k].name, "cloud");
    if (misplaced || lp_streq(p->kind[k].name, "both"))
      return lp_error_as(LP_USAGE, diag, place_option, "'%s' should have another name", p->kind[k].name);
  }
  return LP_OK;
}

static lp_status count_places(struct lp_compile_places *p, lp_diag *diag) {
  int64_t count = 0;
  for (int32_t k = 0; k < p->kind_count; k++)
    count += p->kind[k].count;
  if (p->kind[0].count > 1)
    return lp_error_as(LP_USAGE, diag, place_option, "'%s' comes first and is the device, of which there is one",
                       p->kind[0].name);
  if (count > LP_PLACES_MAX)
    return lp_error_as(LP_USAGE, diag, place_option, "%" PRId64 " places, at most %d can be planned", count,
                       LP_PLACES_MAX);
  p->set.count = (int32_t)count;
  return LP_OK;
}

/* ---- --link ------------------------------------------------------------------------------------------------------ */

/* "A-B=LINK": the kinds and the text of the link. False: the text names no places. */
static bool split_link(const char *text, size_t *first, size_t *second, const char **link) {
  const char *equals = strchr(text, '='), *dash = strchr(text, '-');
  if (!equals || !dash || dash > equals) return false;
  *first = (size_t)(dash - text);
  *second = (size_t)(equals - dash) - 1;
  *link = equals + 1;
  return is_name(text, *first) && is_name(dash + 1, *second);
}

/* Sets the link between all members of two kinds. */
static void connect(struct lp_compile_places *p, int32_t a, int32_t b, const lp_link *link) {
  for (int i = 0; i < p->set.count; i++)
    for (int k = 0; k < p->set.count; k++) {
      const bool forth = p->set.place[i].kind == a && p->set.place[k].kind == b;
      const bool back = p->set.place[i].kind == b && p->set.place[k].kind == a;
      if (i == k || (!forth && !back)) continue;
      p->set.link[i][k] = link;
      p->set.is_down[i][k] = !forth;
    }
}

static lp_status load_link(struct lp_compile_places *p, const char *text, const lp_link **out, lp_diag *diag) {
  lp_link *link = NULL;
  lp_status status = lp_tool_load_link(text, &link, diag);
  if (status == LP_FAILED && strchr(text, '=')) return LP_USAGE;
  LP_TRY(status);
  lp_vec_push(&p->links, link);
  *out = link;
  return LP_OK;
}

static lp_status read_link(struct lp_compile_places *p, const char *text, lp_diag *diag) {
  size_t first = 0, second = 0;
  const char *rest = NULL;
  const lp_link *link = NULL;
  if (!split_link(text, &first, &second, &rest)) return LP_OK;
  const int32_t a = find_kind(p, text, first), b = find_kind(p, text + first + 1, second);
  if (a < 0 || b < 0) {
    const char *name = a < 0 ? text : text + first + 1;
    return lp_error_as(LP_USAGE, diag, link_option, "'%.*s' is no place", (int)(a < 0 ? first : second), name);
  }
  if (a == b && p->kind[a].count == 1)
    return lp_error_as(LP_USAGE, diag, link_option, "there is one '%s', which needs no link", p->kind[a].name);
  LP_TRY(load_link(p, rest, &link, diag));
  connect(p, a, b, link);
  return LP_OK;
}

/* The link that no other --link replaces: its rate up is that from the place that is named first. */
static lp_status connect_all(struct lp_compile_places *p, const char *text, lp_diag *diag) {
  const lp_link *link = NULL;
  LP_TRY(load_link(p, text, &link, diag));
  for (int i = 0; i < p->set.count; i++)
    for (int k = 0; k < p->set.count; k++) {
      p->set.link[i][k] = i == k ? NULL : link;
      p->set.is_down[i][k] = p->set.place[i].kind > p->set.place[k].kind;
    }
  return LP_OK;
}

/* The link between all places that no other --link names. */
static const char *link_for_all(const lp_compile *compile) {
  const char *found = "lan", *rest;
  size_t first, second;
  for (size_t i = 0; i < compile->links.count; i++)
    if (!split_link(compile->links.data[i], &first, &second, &rest)) found = compile->links.data[i];
  return found;
}

/* Interchangeable machines have the same links. */
static lp_status check_members(const struct lp_compile_places *p, lp_diag *diag) {
  for (int i = 1; i < p->set.count; i++) {
    const lp_link *link = p->set.link[i - 1][i];
    const char *name = p->kind[p->set.place[i].kind].name;
    if (p->set.place[i].member > 0 && link->figure[LP_LINK_UP] != link->figure[LP_LINK_DOWN])
      return lp_error_as(LP_USAGE, diag, link_option, "among '%s' it should be as fast both ways: --link=%s-%s=LINK",
                         name, name, name);
  }
  return LP_OK;
}

static lp_status read_links(lp_compile *compile, lp_diag *diag) {
  LP_TRY(connect_all(compile->more_places, link_for_all(compile), diag));
  for (size_t i = 0; i < compile->links.count; i++)
    LP_TRY(read_link(compile->more_places, compile->links.data[i], diag));
  return check_members(compile->more_places, diag);
}

/* ---- two places, and more ---------------------------------------------------------------------------------------- */

/* What --place says of a side replaces the options for it. */
static void take_side(lp_compile *compile, const place_kind *kind, lp_side side) {
  if (kind->march) compile->march_side[side] = kind->march;
  if (kind->backend) compile->backend[side] = kind->backend;
  if (kind->dtype)
    *(side == LP_SIDE_DEVICE ? &compile->request.dtype_device : &compile->request.dtype_cloud) = kind->dtype;
}

/* Pins to two places by their names become pins to the sides that these are. */
static void take_pins(lp_compile *compile, struct lp_compile_places *p) {
  for (size_t i = 0; i < compile->pins.count; i++) {
    const char *text = compile->pins.data[i], *equals = strrchr(text, '=');
    const int32_t side = equals ? find_kind(p, equals + 1, strlen(equals + 1)) : -1;
    if (side < 0) continue;
    lp_buf own = {0};
    lp_buf_printf(&own, "%.*s=%s", (int)(equals - text), text, lp_side_name((lp_side)side));
    lp_vec_push(&p->pins, own.data);
    compile->pins.data[i] = own.data;
  }
}

/* A device, or a device and a cloud: everything is as with --device and --cloud. */
static lp_status take_pair(lp_compile *compile, struct lp_compile_places *p, lp_diag *diag) {
  size_t first = 0, second = 0;
  take_pins(compile, p);
  for (lp_side side = LP_SIDE_DEVICE; side < LP_SIDE_COUNT && (int32_t)side < p->kind_count; side++)
    take_side(compile, &p->kind[side], side);
  compile->device = p->kind[0].hardware;
  compile->cloud = p->kind_count > 1 ? p->kind[1].hardware : NULL;
  LP_FOR_VEC_REFS(const char, text, &compile->links) {
    if (!split_link(text, &first, &second, &compile->link)) {
      compile->link = text;
      continue;
    }
    if (find_kind(p, text, first) != 0 || find_kind(p, text + first + 1, second) != 1)
      return lp_error_as(LP_USAGE, diag, link_option, "'%.*s' is not the device and then the other place: '%s-%s'",
                         (int)(first + second + 1), text, p->kind[0].name, p->kind_count > 1 ? p->kind[1].name : "?");
  }
  return LP_OK;
}

static void name_places(struct lp_compile_places *p) {
  int32_t at = 0;
  for (int32_t k = 0; k < p->kind_count; k++)
    for (int32_t member = 0; member < p->kind[k].count; member++, at++) {
      p->set.place[at] = (lp_places_member){.name = p->kind[k].name, .kind = k, .member = member};
      if (p->kind[k].count == 1) continue;
      lp_buf name = {0};
      lp_buf_printf(&name, "%s.%" PRId32, p->kind[k].name, member + 1);
      p->set.place[at].name = p->names[at] = name.data;
    }
}

/* Pins name places, or kinds of several. */
static lp_status check_pins(const lp_compile *compile, const struct lp_compile_places *p, lp_diag *diag) {
  for (size_t i = 0; i < compile->pins.count; i++)
    if (lp_places_pin_check(&p->set, compile->pins.data[i], diag, LP_LOC_FILE("--pin")) != LP_OK) return LP_USAGE;
  return LP_OK;
}

static lp_status refuse(lp_diag *diag, const char *option, bool given) {
  return given ? lp_error_as(LP_USAGE, diag, LP_LOC_FILE(option), "does not apply to more than two places") : LP_OK;
}

/* Takes the settings of each place. Where any of them rounds weights, activations are rounded as if an option for all
 * places said so. */
static lp_status take_types(lp_compile *compile, const struct lp_compile_places *p, lp_diag *diag) {
  take_side(compile, &p->kind[0], LP_SIDE_DEVICE);
  bool rounds = false;
  for (int i = 0; i < p->set.count; i++) {
    const place_kind *kind = &p->kind[p->set.place[i].kind];
    if (lp_streq(kind->dtype, LP_DTYPE_AUTO))
      return lp_error_as(LP_USAGE, diag, place_option, "'auto' chooses types for two places, there are %" PRId32,
                         p->set.count);
    rounds = rounds || lp_rounds_activations(&(lp_compile_request){.dtype_cloud = kind->dtype});
    if (i == 0) continue;
    compile->place_march[i] = kind->march;
    compile->place_backend[i] = kind->backend;
    compile->place_dtype[i] = kind->dtype;
  }
  if (rounds && !compile->request.activations) compile->request.activations = "auto";
  return LP_OK;
}

/* Refuses what only two sides have. */
static lp_status refuse_options(const lp_compile *compile, lp_diag *diag) {
  const lp_compile_request *r = &compile->request;
  const char *scheduler = r->scheduler;
  if (lp_streq(compile->exits_text, "auto"))
    return lp_error_as(LP_USAGE, diag, LP_LOC_FILE("--exits"),
                       "'auto' chooses exits for two places, there are %" PRId32 ": name the layers, as in --exits=3,6",
                       compile->more_places->set.count);
  LP_TRY(refuse(diag, "--plans", r->plans > 1));
  LP_TRY(refuse(diag, "--cut", r->cut >= 0));
  LP_TRY(refuse(diag, "--measured", compile->measured != NULL));
  LP_TRY(refuse(diag, "--table1", compile->table1));
  LP_TRY(refuse(diag, "--sla-quantile", compile->sla_quantile >= 0));
  if (scheduler && !lp_streq(scheduler, lp_scheduler_default))
    return lp_error_as(LP_USAGE, diag, LP_LOC_FILE("--scheduler"), "'%s' plans two places, there are %" PRId32,
                       scheduler, compile->more_places->set.count);
  if (lp_streq(r->dtype_device, LP_DTYPE_AUTO) || lp_streq(r->dtype_cloud, LP_DTYPE_AUTO))
    return lp_error_as(LP_USAGE, diag,
                       LP_LOC_FILE(lp_streq(r->dtype_device, LP_DTYPE_AUTO) ? "--dtype-device" : "--dtype-cloud"),
                       "'auto' chooses types for two places, there are %" PRId32, compile->more_places->set.count);
  return LP_OK;
}

lp_status lp_compile_read_places(lp_compile *compile, lp_diag *diag) {
  if (compile->places.count == 0) {
    if (compile->links.count) compile->link = compile->links.data[compile->links.count - 1];
    return LP_OK;
  }
  if (compile->device || compile->cloud)
    return lp_error_as(LP_USAGE, diag, place_option, "the places include the device: leave out --device and --cloud");
  struct lp_compile_places *p = compile->more_places = lp_alloc(sizeof *p);
  for (size_t i = 0; i < compile->places.count; i++)
    LP_TRY(read_place(p, compile->places.data[i], diag));
  LP_TRY(count_places(p, diag));
  if (p->set.count <= 2 && p->kind_count == p->set.count) return take_pair(compile, p, diag);
  LP_TRY(check_names(p, diag));
  name_places(p);
  LP_TRY(check_pins(compile, p, diag));
  LP_TRY(refuse_options(compile, diag));
  LP_TRY(take_types(compile, p, diag));
  compile->has_more_places = true;
  compile->device = p->kind[0].hardware;
  compile->cloud = p->kind[1].hardware;
  return LP_OK;
}

/* ---- machines ---------------------------------------------------------------------------------------------------- */

/* Loads a kind's machine and looks at it as at the cloud's. */
static lp_status load_kind(const lp_compile *compile, place_kind *kind, lp_diag *diag) {
  lp_half_target half;
  lp_compile with = *compile;
  lp_status status = lp_hw_load(kind->hardware, &kind->machine, diag);
  if (status == LP_FAILED && strchr(kind->hardware, '=')) return LP_USAGE;
  LP_TRY(status);
  with.cloud = kind->hardware;
  with.cloud_machine = kind->machine;
  take_side(&with, kind, LP_SIDE_CLOUD);
  for (int i = 0; i < LP_PLACES_MAX; i++) /* they are of other places than the side */
    with.place_march[i] = with.place_backend[i] = with.place_dtype[i] = NULL;
  LP_TRY(lp_compile_target(&with, LP_SIDE_CLOUD, &half, diag));
  lp_compile_describe_target(&with, LP_SIDE_CLOUD, &half);
  memcpy(kind->code, with.code[LP_SIDE_CLOUD], sizeof kind->code);
  kind->lacks_bf16 = !lp_compile_has_bf16(&with, LP_SIDE_CLOUD, &half);
  return lp_compile_check_dtype(&with, LP_SIDE_CLOUD, &half, diag);
}

lp_status lp_compile_load_places(lp_compile *compile, lp_diag *diag) {
  struct lp_compile_places *p = compile->more_places;
  if (!compile->has_more_places) return LP_OK;
  for (int32_t k = 1; k < p->kind_count; k++)
    LP_TRY(load_kind(compile, &p->kind[k], diag));
  for (int i = 0; i < p->set.count; i++) {
    const place_kind *kind = &p->kind[p->set.place[i].kind];
    p->set.place[i].machine = i ? kind->machine : compile->device_machine;
    p->set.place[i].lacks_bf16 = kind->lacks_bf16;
    p->set.place[i].code = i ? kind->code : NULL;
    p->set.place[i].dtype = i ? kind->dtype : NULL;
    compile->place_machine[i] = p->set.place[i].machine;
    compile->place_name[i] = p->set.place[i].name;
  }
  p->solution = (lp_places_solution){.problem.places = &p->set, .arena = lp_arena_create()};
  compile->request.places = &p->solution;
  return read_links(compile, diag);
}

void lp_compile_release_places(lp_compile *compile) {
  struct lp_compile_places *p = compile->more_places;
  if (!p) return;
  for (int32_t k = 0; k < p->kind_count; k++) {
    free(p->kind[k].name);
    free(p->kind[k].hardware);
    free(p->kind[k].dtype);
    free(p->kind[k].march);
    free(p->kind[k].backend);
    lp_hw_free(p->kind[k].machine);
  }
  for (int i = 0; i < LP_PLACES_MAX; i++)
    free(p->names[i]);
  for (size_t i = 0; i < p->links.count; i++)
    lp_link_free(p->links.data[i]);
  for (size_t i = 0; i < p->pins.count; i++)
    free(p->pins.data[i]);
  lp_vec_free(&p->pins);
  lp_vec_free(&p->links);
  if (p->solution.arena) lp_arena_free(p->solution.arena);
  free(p);
}

lp_status lp_compile_check_places_output(const lp_compile *compile, lp_diag *diag) {
  static const char *const emitted[] = {"bundle", "onnx", "placed-ir", "report"};
  for (size_t i = 0; i < LP_COUNT(emitted); i++)
    if (lp_streq(compile->emit, emitted[i])) return LP_OK;
  return lp_error_as(LP_USAGE, diag, LP_LOC_FILE("--emit"),
                     "'%s' is for one of two sides, there are %" PRId32 " places", compile->emit,
                     compile->more_places->set.count);
}
