/* Constant lengths that a file states for its inputs: they are ignored where the graph can compute any length. */
#include <stdlib.h>
#include <string.h>

#include "base/poly.h"
#include "frontend/frontend.h"
#include "tests/frontend/onnx_writer.h"
#include "tests/suite.h"

ONNX_CASE;

static void integers(lp_buf *graph, const char *name, const char *dims, int count, const int64_t *values) {
  onnx_initializer(graph, onnx_tensor(name, ONNX_I64, dims, values, (size_t)count * sizeof *values));
}

typedef struct {
  const char *inputs; /* "NAME TYPE DIMS;...", with TYPE i for i64, j for i32, f for f32 */
  const char *nodes;  /* of "rows" [1, length, 2], the rows of ids, to y */
  bool freed;
} lengths;

static void put_inputs(lp_buf *graph, const char *inputs) {
  char *copy = lp_strdup(inputs), *state = NULL;
  for (char *input = strtok_r(copy, ";", &state); input; input = strtok_r(NULL, ";", &state)) {
    char *type = strchr(input, ' ') + 1;
    type[-1] = '\0';
    onnx_input(graph, input, *type == 'i' ? ONNX_I64 : *type == 'j' ? ONNX_I32 : ONNX_F32, type + 2);
  }
  free(copy);
}

static void check(const lengths *l) {
  static const float table[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  lp_buf graph = {0};
  put_inputs(&graph, l->inputs);
  onnx_initializer(&graph, onnx_tensor("table", ONNX_F32, "4 2", table, sizeof table));
  for (int64_t i = -1; i < 4; i++) {
    char scalar[] = {i < 0 ? 'n' : 's', (char)('0' + (i < 0 ? -i : i)), 0},
         vector[] = {i < 0 ? 'm' : 'v', scalar[1], 0};
    integers(&graph, scalar, "", 1, &i);
    integers(&graph, vector, "1", 1, &i);
  }
  integers(&graph, "corner", "1 1", 1, (const int64_t[]){1});
  integers(&graph, "m2", "1", 1, (const int64_t[]){-2});
  integers(&graph, "end", "1", 1, (const int64_t[]){INT64_MAX});
  integers(&graph, "zeros", "2", 2, (const int64_t[]){0, 0});
  integers(&graph, "first_three", "2", 2, (const int64_t[]){1, 3});
  integers(&graph, "place", "1 2", 2, (const int64_t[]){0, 1});
  integers(&graph, "places", "1 1 2", 2, (const int64_t[]){0, 1});
  onnx_nodes(&graph, "Gather table ids > rows");
  onnx_nodes(&graph, l->nodes);
  onnx_output(&graph, "y", 0, NULL);
  lp_buf model = onnx_model(&graph, 17);
  onnx_write("model.onnx", model.data, model.size);
  lp_buf_free(&model);
  const lp_import_options options = {.frees_lengths = true};
  lp_module *module = NULL;
  lp_status status = lp_onnx_import(onnx_path("model.onnx"), &options, &module, diag);
  ck_assert_msg(status == LP_OK, "%s: %s", l->nodes, onnx_message(diag, 0));
  bool freed = false;
  for (size_t i = 0; i < lp_diag_count(diag); i++)
    freed |= strstr(onnx_message(diag, i), "the constant lengths of its inputs are ignored") != NULL;
  ck_assert_msg(freed == l->freed, "%s; %s: the lengths are %s", l->inputs, l->nodes, freed ? "ignored" : "kept");
  const lp_value *ids = lp_module_find_func(module, "main")->region->arg[0];
  ck_assert(lp_poly_is_const(ids->type.dim[ids->type.rank - 1], NULL) == !freed);
  lp_module_free(module);
}

static const lengths inputs[] = {
    {"ids i 1 8", "Neg rows > y", true},
    {"ids j 1 8", "Neg rows > y", true},
    {"ids i 8", "Neg rows > y", false},
    {"ids i 1 1 8", "Neg rows > y", false},
    {"ids i 1 8;mask i 1 8", "Gather table mask > more; Add rows more > y", true},
    {"ids i 1 8;position_ids i 8", "Gather table position_ids > more; Add rows more > y", true},
    {"ids i 8;numbers i 8", "Gather table numbers > more; Add rows more > y", false},
    {"ids i 1 8;scale f 1 8", "Unsqueeze scale v2 > more; Mul rows more > y", false},
    {"ids i 1 8;attention_mask f 1 1 8 8",
     "ReduceMax attention_mask > m axes=3, keepdims=1; Squeeze m v1 > r; Add rows r > y", true},
    {"ids i 1 8;attention_mask f 1 1 1 1", "Squeeze attention_mask v1 > r; Add rows r > y", true},
};

LP_LOOP_TEST(inputs_have_lengths, 0, LP_COUNT(inputs)) {
  check(&inputs[_i]);
}

static const char *const free_graphs[] = {
    "Slice rows v0 end v1 > y", /* all rows */
    "Slice rows m1 end v1 > y", /* the last one */
    "Slice rows v0 m1 v1 > y",  /* all but the last one */
    "Slice rows v1 end v2 > y", /* of another axis */
    "Slice rows v0 v1 v0 > y",  /* of another axis */
    "Gather rows v0 > y axis=1",
    "Gather rows s0 > y axis=1",             /* the first row, which always exists */
    "Gather rows n1 > y axis=1",             /* the last one */
    "Gather rows s1 > y axis=2",             /* of another axis */
    "Gather rows s1 > y axis=-1",            /* of another axis */
    "GatherElements rows places > y axis=2", /* of another axis */
    "Gather table v3 > three; Add rows three > y",
    "Shape rows > size; Gather size s1 > n; Cast n > m to=1; Mul rows m > y",
};

static const char *const bound_graphs[] = {
    "Slice rows v0 v3 v1 > y",
    "Slice rows v1 end v1 > y",
    "Slice rows v1 v3 v1 > y",
    "Slice rows zeros first_three > y", /* of the first axes */
    "Gather rows s3 > y axis=1",
    "Gather rows v3 > y axis=1",
    "Gather rows s3 > y axis=-2",
    "GatherND rows place > y",
    "Gather rows place > y axis=1",
    "GatherElements rows places > y axis=1",
    "Squeeze rows v0 > flat; Gather table v1 > value; ScatterND flat corner value > y",
    "Gather rows m2 > y axis=1",
    "Squeeze rows v0 > flat; Gather table v1 > value; ScatterElements flat place value > y axis=0",
};

LP_LOOP_TEST(lengths_are_free, 0, LP_COUNT(free_graphs)) {
  check(&(lengths){"ids i 1 8", free_graphs[_i], true});
}

LP_LOOP_TEST(certain_rows_bind_lengths, 0, LP_COUNT(bound_graphs)) {
  check(&(lengths){"ids i 1 8", bound_graphs[_i], false});
}
