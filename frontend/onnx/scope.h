/* Names of values. */
#pragma once

#include "frontend/onnx/importer.h"

/* The names visible in one place: those of a graph, a function or a branch, then those of its parents. */
typedef struct lp_list lp_list; /* sequence.c */
struct lp_scope {
  const struct lp_scope *parent;
  lp_map *values;       /* name -> lp_value* */
  lp_map *initializers; /* name -> Onnx__TensorProto*, made into an operator when first used */
  lp_map *lists;        /* name -> lp_list*, a sequence of tensors */
};

/* Opens a scope; its maps are freed with the importer. */
lp_scope lp_scope_open(lp_importer *im, const lp_scope *parent);
/* Finds the value of a name, and makes an operator of its initializer; NULL when nothing has that name. */
LP_MUST_USE lp_status lp_scope_find(lp_importer *im, const lp_scope *scope, const char *name, lp_value **out);
/* Returns the sequence of tensors of a name, or NULL. */
const lp_list *lp_scope_find_list(const lp_scope *scope, const char *name);
/* Names a value; an error when the name is taken in this scope. */
LP_MUST_USE lp_status lp_scope_define(lp_importer *im, lp_scope *scope, const char *name, lp_value *value, lp_loc loc);
/* Adds the initializers of a graph after checking them; none becomes an operator yet. */
LP_MUST_USE lp_status lp_scope_add_initializers(lp_importer *im, lp_scope *scope, const Onnx__GraphProto *graph);
/* Finds the value of a result's name; reports a name that no node produces. */
LP_MUST_USE lp_status lp_scope_result(lp_importer *im, const lp_scope *body, const char *name, lp_loc loc,
                                      lp_value **out);
/* Enters one more level of functions and bodies, at most LP_IMPORT_DEPTH; the caller leaves it by im->depth--. */
LP_MUST_USE lp_status lp_import_enter(lp_importer *im, lp_loc loc);
/* Imports the graph that a node holds into `body`, a scope that may already hold the graph's inputs. */
LP_MUST_USE lp_status lp_import_body(lp_importer *im, lp_scope *body, const Onnx__GraphProto *graph,
                                     const lp_call *call, lp_loc loc);
