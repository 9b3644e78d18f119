/* launches.json: its content, and the location of each error. */
#include <string.h>

#include "base/poly.h"
#include "runtime/gpu/gpu.h"
#include "tests/suite.h"

#define HEAD "{\"schema\": \"llmpart.launches/1\", \"language\": \"opencl\", \"symbols\": [\"b\", \"s\"], "
#define LAUNCH                                                                                                         \
  "{\"kernel\": \"k\", \"threads\": 64, \"x\": [\"b*s\", 64], \"y\": [\"1\", 1], \"when\": [\"s\", 0, 4], "            \
  "\"sm\": [75, 89], \"args\": [1, null, true, \"4*s\"]}"
#define LAUNCHERS "\"launchers\": [[" LAUNCH "]], "
#define LAYOUTS                                                                                                        \
  "\"layouts\": {\"l\": {\"slot\": [0, 0], \"sizes\": [[\"4*b\", \"8*s\"]], \"scratch\": [[\"16*s\", \"s\", 4]]}}, "
#define SEGMENTS "\"segments\": {\"g\": [[0, \"b1\", [64, 16]], [0, true, \"b0+s*256\", \"b1+r*4\"]]}}"

#define PRODUCT_OF(n, type, epilogue, args)                                                                            \
  "\"launchers\": [[{\"product\": {\"n\": " n ", \"k\": 64, \"type\": \"" type                                         \
  "\", \"scale\": 16, \"epilogue\": \"" epilogue                                                                       \
  "\"}, \"when\": [\"s\", 65, 9000], \"sm\": [75, 9999], \"args\": " args "}, {\"kernel\": \"k\", \"threads\": 64, "   \
  "\"x\": [\"b*s\", 64], \"y\": [\"1\", 1], \"library\": false, \"args\": []}]], "
#define PRODUCT PRODUCT_OF("96", "f16", "relu", "[true, 0, 1, null, 2, \"b*s\", \"0\"]")

typedef struct {
  lp_arena *arena;
  lp_diag *diag;
  lp_gpu_table table;
} parsed;

static lp_status parse(parsed *p, const char *text) {
  p->arena = lp_arena_create();
  p->diag = lp_diag_create();
  return lp_gpu_table_parse("launches.json", text, strlen(text), p->arena, &p->table, p->diag);
}

static void done(parsed *p) {
  lp_gpu_table_clear(&p->table);
  lp_diag_free(p->diag);
  lp_arena_free(p->arena);
}

LP_TEST(reads) {
  parsed p;
  ck_assert_int_eq(parse(&p, HEAD LAUNCHERS LAYOUTS SEGMENTS), LP_OK);
  const int64_t sym[] = {2, 3};
  const lp_gpu_launch *launch = &p.table.launcher[0].launch[0];
  ck_assert_int_eq(p.table.launcher[0].refs, 2);
  ck_assert_str_eq(launch->kernel, "k");
  ck_assert_int_eq(lp_poly_eval(launch->axis[0].size, sym, 2), 6);
  ck_assert_int_eq(launch->most, 4);
  ck_assert_int_eq(launch->least_sm, 75);
  ck_assert_int_eq(launch->most_sm, 89);
  ck_assert_int_eq(launch->arg[0].kind, LP_GPU_ARG_REF);
  ck_assert_int_eq(launch->arg[1].kind, LP_GPU_ARG_NULL);
  ck_assert_int_eq(launch->arg[2].kind, LP_GPU_ARG_SCRATCH);
  ck_assert_int_eq(lp_poly_eval(launch->arg[3].size, sym, 2), 12);
  ck_assert_int_eq(p.table.layout[0].buffers, 2);
  ck_assert_int_eq(lp_poly_eval(p.table.layout[0].sizes[0].size[1], sym, 2), 24);
  const lp_gpu_call *call = &p.table.segment[0].call[0];
  ck_assert_int_eq(call->ref_count, 2);
  ck_assert_int_eq(call->ref[0].place, LP_GPU_BUFFER);
  ck_assert_int_eq(call->ref[1].place, LP_GPU_WEIGHT);
  ck_assert_int_eq(call->ref[1].bytes, 16);
  ck_assert(!p.table.sequences && !call[0].joint && call[1].joint);
  ck_assert_int_eq(call[0].ref[0].holds, LP_GPU_OWN);
  ck_assert_int_eq(call[1].ref_count, 2);
  ck_assert_int_eq(call[1].ref[0].holds, LP_GPU_NEW_ROWS);
  ck_assert_int_eq(call[1].ref[0].bytes, 256);
  ck_assert_int_eq(call[1].ref[1].holds, LP_GPU_LAST_ROWS);
  ck_assert_int_eq(call[1].ref[1].index, 1);
  done(&p);
}

LP_TEST(reads_products) {
  parsed p;
  ck_assert_int_eq(parse(&p, HEAD PRODUCT
                         "\"layouts\": {\"l\": {\"slot\": [], \"sizes\": [], \"scratch\": [[\"s\", \"s\", 4, true]]}}, "
                         "\"segments\": {}}"),
                   LP_OK);
  const lp_gpu_launch *launch = p.table.launcher[0].launch;
  ck_assert_int_eq(p.table.launcher[0].refs, 3);
  ck_assert_int_eq(launch[0].product->n, 96);
  ck_assert_int_eq(launch[0].product->k, 64);
  ck_assert_int_eq(launch[0].product->type, LP_GPU_F16);
  ck_assert_int_eq(launch[0].product->epilogue, LP_GPU_RELU);
  ck_assert(launch[0].product->scale == 16);
  ck_assert_int_eq(launch[0].by, LP_GPU_BY_LIBRARY);
  ck_assert_int_eq(launch[0].arg[LP_GPU_ADD].kind, LP_GPU_ARG_NULL);
  ck_assert_int_eq(launch[0].least, 65);
  ck_assert_ptr_null(launch[1].product);
  ck_assert_int_eq(launch[1].by, LP_GPU_BY_KERNEL);
  ck_assert(p.table.layout[0].scratch[0].library);
  done(&p);
}

static const struct {
  const char *text, *says;
} wrong[] = {
    {"{", "not valid JSON"},
    {"{\"schema\": \"llmpart.launches/9\"}", "wanted 'llmpart.launches/1', found 'llmpart.launches/9'"},
    {"{\"schema\": \"llmpart.launches/1\", \"language\": \"metal\"}", "wanted 'cuda' or 'opencl', found 'metal'"},
    {HEAD "\"launchers\": [[7]]}", "launchers[0][0]: wanted an object, found an integer"},
    {HEAD "\"launchers\": [[{\"kernel\": \"k\", \"threads\": 4096}]]}", "launchers[0][0].threads: 4096 lies outside"},
    {HEAD "\"launchers\": [[{\"kernel\": \"k\", \"threads\": 32, \"x\": [\"q\", 1]}]]}",
     "'q' uses 'q', which `symbols`"},
    {HEAD PRODUCT_OF("0", "f16", "relu", "[]") "\"layouts\": {}}", "launchers[0][0].product.n: 0 lies outside"},
    {HEAD PRODUCT_OF("8", "int8", "relu", "[]") "\"layouts\": {}}",
     "launchers[0][0].product.type: 'int8' is no type that is known"},
    {HEAD PRODUCT_OF("8", "f16", "silu", "[]") "\"layouts\": {}}",
     "product.epilogue: 'silu' is no epilogue that is known"},
    {HEAD PRODUCT_OF("8", "f16", "none", "[true, 0, 1]") "\"layouts\": {}}",
     "a product takes x, w, bias, add, y, rows, begin"},
    {HEAD PRODUCT_OF("8", "f16", "none", "[true, null, 1, 3, 2, \"s\", \"0\"]") "\"layouts\": {}}",
     "launchers[0][0].args: a product takes"},
    {HEAD PRODUCT_OF("8", "f16", "relu", "[true, 0, 1, 3, 2, \"s\", \"0\"]") "\"layouts\": {}}",
     "launchers[0][0].args: a product takes"},
    {HEAD LAUNCHERS "\"layouts\": {\"l\": {\"slot\": [3], \"sizes\": [[]], \"scratch\": []}}}",
     "layouts.l.slot[0]: 3 lies outside of 0..0"},
    {HEAD LAUNCHERS LAYOUTS "\"segments\": {\"g\": [[1]]}}", "segments.g[0][0]: 1 lies outside of 0..0"},
    {HEAD LAUNCHERS LAYOUTS "\"segments\": {\"g\": [[0, \"b0\"]]}}", "segments.g[0]: 1 operands; its launches take 2"},
    {HEAD LAUNCHERS LAYOUTS "\"segments\": {\"g\": [[0, true, \"b0\"]]}}",
     "segments.g[0]: 1 operands; its launches take 2"},
    {HEAD LAUNCHERS LAYOUTS "\"segments\": {\"g\": [[0, \"b0\", \"x1\"]]}}", "'x1' is no buffer and no state"},
    {HEAD LAUNCHERS LAYOUTS "\"segments\": {\"g\": [[0, \"b0\", \"b1+p*4\"]]}}", "'b1+p*4' is no buffer and no state"},
    {HEAD LAUNCHERS LAYOUTS "\"segments\": {\"g\": [[0, \"b0\", \"s1+s*4\"]]}}", "'s1+s*4' is no buffer and no state"},
    {HEAD LAUNCHERS LAYOUTS "\"segments\": {\"g\": [[0, \"b0\", \"b1+s*0\"]]}}", "'b1+s*0' is no buffer and no state"},
};

LP_LOOP_TEST(refuses, 0, (sizeof wrong / sizeof wrong[0])) {
  parsed p;
  ck_assert_int_eq(parse(&p, wrong[_i].text), LP_FAILED);
  const char *said = lp_diag_get(p.diag, 0)->text;
  ck_assert_msg(strstr(said, wrong[_i].says) != NULL, "%s: %s", wrong[_i].says, said);
  done(&p);
}
