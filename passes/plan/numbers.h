/* The numbers of a plan problem: sizes, times and bytes at a request. */
#pragma once

#include "passes/plan/plan.h"
#include "passes/shard/view.h"

/* The values of a module's symbols in a stage as each side sees them: the cloud decodes for all sessions at once. */
typedef struct {
  const lp_compile_request *request;
  double *value[LP_SIDE_COUNT]; /* [count], in an arena */
  double *part[LP_SIDE_COUNT];  /* in the pass over the last part of a prompt; equals `value` where it runs whole */
  size_t count;
  /* Bytes of weights and caches that the stage reads if all of it runs on that side; 0 where the machine model does not
   * use them (lp_op_facts). */
  double pass_bytes[LP_SIDE_COUNT];
} lp_plan_sizes;
/* `part`: what each rank of the cloud computes in the stage; NULL: there is one. */
void lp_plan_sizes_set(lp_plan_sizes *sizes, const lp_module *module, const lp_compile_request *request, lp_stage stage,
                       const lp_shard_stage *part, lp_arena *arena);
/* Fills the numbers of item->op from its closed forms `cost`. */
void lp_plan_op_price(const lp_plan_sizes *sizes, const lp_cost *cost, lp_plan_op *item);
/* Replaces those of the cloud by the numbers of what one rank computes, `part`. */
void lp_plan_op_price_part(const lp_plan_sizes *sizes, const lp_op *part, const lp_cost *cost, lp_plan_op *item);
/* Adds a gather of a value of this type, which the ranks of the cloud have in parts. */
void lp_plan_op_gather(const lp_plan_sizes *sizes, lp_type type, lp_plan_op *item);
/* Bytes of a value for one request. */
double lp_plan_value_bytes(const lp_plan_sizes *sizes, lp_type type);
/* Bytes of a KV cache (llmpart.state) that holds this number of tokens. */
double lp_plan_state_bytes(const lp_module *module, const lp_compile_request *request, const lp_op *state,
                           double tokens, lp_arena *arena);
/* How a constant operand is stored: as it is; as the matrix of a product, in the side's dtype; as the table of an
 * embedding; or as a table that is also the matrix of a product. Code for processors stores tables in the side's dtype
 * too, and a tied one once. Code for GPUs keeps the type of a table: where the side's dtype is another one, it stores
 * rows and matrix of a tied table apart, as the last two forms. */
typedef enum {
  LP_WEIGHT_RAW,
  LP_WEIGHT_MATRIX,
  LP_WEIGHT_TABLE,
  LP_WEIGHT_TIED,
  LP_WEIGHT_TIED_ROWS,
  LP_WEIGHT_TIED_MATRIX
} lp_weight_form;
enum { LP_WEIGHT_FORMS = 2 };
/* The forms in which a side may store a constant operand, of which it stores one; returns their number. */
int32_t lp_plan_weight_forms(const lp_op *op, int32_t operand, lp_weight_form forms[LP_WEIGHT_FORMS]);
/* Bytes of a constant operand in one of its forms; 0 if the side stores it in another form. */
double lp_plan_weight_bytes(const lp_compile_request *request, lp_side side, const lp_op *op, int32_t operand,
                            lp_weight_form form);
/* The share of these bytes that the side's memory holds: 1, but for experts that come from storage. */
double lp_plan_resident_share(const lp_compile_request *request, lp_side side, const lp_op *op);
