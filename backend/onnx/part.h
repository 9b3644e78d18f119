/* Parts of a program: the turns of its sides, and the tensors that enter and leave each. */
#pragma once

#include "backend/backend.h"

typedef enum { ONNX_PORT_DATA, ONNX_PORT_CUT, ONNX_PORT_PAST, ONNX_PORT_PRESENT, ONNX_PORT_SIZE } onnx_role;

/* An input or an output of a model. */
typedef struct {
  onnx_role role;
  const char *name;
  lp_type type;
  const lp_value *value; /* NULL: a past, a size */
  int64_t state;         /* of a past and a present */
} onnx_port;

typedef LP_VEC(onnx_port) onnx_ports;

/* A run of one side's operators between communications. */
typedef struct {
  lp_place side;
  int32_t turn; /* of the side, from 0 */
  LP_VEC(const lp_op *) ops;
  onnx_ports in, out;
  lp_buf bytes;     /* the model */
  const char *file; /* its name */
} onnx_part;

typedef struct {
  const lp_op *func;
  const char *name; /* "prefill" */
  LP_VEC(onnx_part *) parts;
} onnx_program;

/* Splits a function of a communicating module. Ports have the module's names, unique in the program. */
LP_MUST_USE lp_status onnx_program_create(lp_module *module, const lp_op *func, lp_arena *arena, onnx_program *out,
                                          lp_diag *diag);
void onnx_program_free(onnx_program *program);
