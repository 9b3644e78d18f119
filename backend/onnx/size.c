/* Sizes: polynomials over b, s, p become nodes that compute them from the dimensions of the part's inputs. */
#include "backend/onnx/graph.h"

#include "base/map.h"
#include "base/poly.h"

/* A symbol as a vector of one element: read from an input that has it as a dimension, else an input itself. */
static onnx_name symbol_size(onnx_graph *g, lp_symbol symbol) {
  const char *text = lp_symbols_name(&g->module->symbols, symbol);
  const lp_poly *wanted = lp_poly_symbol(g->module->arena, symbol);
  LP_FOR_VEC(const onnx_port, port, &g->part->in) {
    for (int32_t axis = 0; axis < port->type.rank; axis++) {
      if (!lp_poly_equal(port->type.dim[axis], wanted)) continue;
      onnx_name size = ONNX_NODE(g, "Shape", port->name);
      onnx_attr_i(g, "start", axis);
      onnx_attr_i(g, "end", axis + 1);
      return size;
    }
  }
  const int64_t one = 1;
  onnx_port port = {.role = ONNX_PORT_SIZE, .type = lp_type_static(g->module, LP_I64, 1, &one), .state = -1};
  port.name = onnx_unique(g, lp_arena_format(g->arena, "size.%s", text));
  lp_vec_push(&g->part->in, port);
  return port.name;
}

static onnx_name known_symbol(onnx_graph *g, lp_symbol symbol) {
  const char *key = lp_arena_format(g->arena, "symbol %d", symbol);
  onnx_name name = lp_map_get(g->made, key);
  if (name) return name;
  name = symbol_size(g, symbol);
  lp_map_put(g->made, key, (void *)(uintptr_t)name);
  return name;
}

static onnx_name term_size(onnx_graph *g, const lp_term *term) {
  onnx_name product = NULL;
  for (int i = 0; i < LP_POLY_DEGREE && term->symbol[i]; i++) {
    onnx_name symbol = known_symbol(g, term->symbol[i]);
    product = product ? ONNX_NODE(g, "Mul", product, symbol) : symbol;
  }
  if (!product) return onnx_i64s(g, &term->coef, 1);
  return term->coef == 1 ? product : ONNX_NODE(g, "Mul", product, onnx_i64s(g, &term->coef, 1));
}

onnx_name onnx_size(onnx_graph *g, const lp_poly *poly) {
  int64_t value;
  if (lp_poly_is_const(poly, &value)) return onnx_i64s(g, &value, 1);
  LP_OWNED(lp_buf_free) lp_buf key = {0};
  lp_buf_puts(&key, "size ");
  lp_poly_print(poly, &g->module->symbols, &key);
  onnx_name sum = lp_map_get(g->made, lp_buf_text(&key));
  if (!sum) {
    const lp_op *op = g->op;
    g->op = NULL; /* the nodes belong to no operator */
    for (int32_t i = 0; i < poly->count; i++) {
      onnx_name term = term_size(g, &poly->term[i]);
      sum = sum ? ONNX_NODE(g, "Add", sum, term) : term;
    }
    g->op = op;
    lp_map_put(g->made, lp_buf_text(&key), (void *)(uintptr_t)sum);
  }
  return sum;
}

onnx_name onnx_sizes(onnx_graph *g, const lp_poly *const *poly, int32_t count) {
  int64_t values[LP_MAX_RANK * 2];
  onnx_name parts[LP_MAX_RANK * 2];
  int32_t known = 0;
  while (known < count && lp_poly_is_const(poly[known], &values[known]))
    known++;
  if (known == count) return onnx_i64s(g, values, count);
  for (int32_t i = 0; i < count; i++)
    parts[i] = onnx_size(g, poly[i]);
  if (count == 1) return parts[0];
  onnx_name shape = onnx_node(g, "Concat", count, parts);
  onnx_attr_i(g, "axis", 0);
  return shape;
}

/* Uses the special sizes of Reshape where it can: 0 keeps a dimension, -1 takes the remaining elements. */
onnx_name onnx_reshape(onnx_graph *g, onnx_name x, lp_type from, lp_type to) {
  int64_t dim[LP_MAX_RANK], open = 0;
  bool empty = false;
  for (int32_t i = 0; i < to.rank; i++) {
    if (lp_poly_is_const(to.dim[i], &dim[i])) {
      empty |= dim[i] == 0;
    } else if (i < from.rank && lp_poly_equal(from.dim[i], to.dim[i])) {
      dim[i] = 0;
    } else {
      dim[i] = -1;
      open++;
    }
  }
  onnx_name shape = open <= 1 && !empty ? onnx_i64s(g, dim, to.rank) : onnx_sizes(g, to.dim, to.rank);
  onnx_name y = ONNX_NODE(g, "Reshape", x, shape);
  if (empty) onnx_attr_i(g, "allowzero", 1);
  return y;
}
