/* The program of one side, read from a module after the passes plan-memory and outline: the buffers and segments of
 * calls of each function. The CPU's code and the GPU's launch list are made from it. */
#pragma once

#include "backend/backend.h"

/* One operator to run. A backend's call is a struct that begins with this one. */
typedef struct {
  lp_op *op;
  bool joint; /* it runs once per batch, over the rows of all sequences (base/abi.h) */
} lp_side_call;

typedef struct {
  int64_t index; /* attribute `segment` */
  LP_VEC(lp_side_call *) calls;
  const char *symbol; /* set by lp_programs_name */
} lp_side_segment;

/* One function. A backend's program may be a struct that begins with this one. */
typedef struct {
  lp_op *func;
  const char *name;                   /* "prefill" */
  LP_VEC(lp_side_segment *) segments; /* in order of first use */
  int64_t buffer_count;               /* plan-memory's buffers; the scratch region is one more */
  const int64_t *slot;                /* [buffer_count] */
  int64_t slot_count;
  const char *layout; /* symbol, set by lp_programs_name */
} lp_side_program;

typedef struct {
  lp_module *module;
  lp_arena *arena; /* holds programs, segments and symbols */
  lp_place side;
  LP_VEC(lp_side_program *) list; /* in the module's order of functions */
} lp_side_programs;

/* Makes the call of one operator and adds it with lp_program_add. */
typedef lp_status lp_call_maker(void *user, lp_side_program *program, lp_op *op, lp_diag *diag);

/* Reads the functions of programs->module. `size` is the size of a backend's program. Call lp_programs_free even
 * when it fails. */
LP_MUST_USE lp_status lp_programs_read(lp_side_programs *programs, size_t size, lp_call_maker *make, void *user,
                                       lp_diag *diag);
void lp_programs_free(lp_side_programs *programs);
/* Appends the call to the segment that its operator names; keeps the pointer. */
void lp_program_add(const lp_side_programs *programs, lp_side_program *program, lp_side_call *call);

/* Each appends a key: two layouts, or two segments, with equal keys have the same code. */
typedef struct {
  void (*layout)(void *user, const lp_side_program *program, lp_buf *key);
  void (*segment)(void *user, const lp_side_program *program, const lp_side_segment *segment, lp_buf *key);
  void *user;
} lp_program_keys;
/* Names layouts and segments lp_layout_N and lp_segment_N: one number for each distinct key. */
void lp_programs_name(lp_side_programs *programs, const lp_program_keys *keys);
/* Fills out->program and out->program_count. `arena` may outlive that of the programs. */
void lp_programs_describe(const lp_side_programs *programs, lp_arena *arena, lp_code *out);

/* Distinct sizes; release with lp_vec_free. */
typedef LP_VEC(const lp_poly *) lp_sizes;
void lp_sizes_add(lp_sizes *sizes, const lp_poly *size);
/* The sizes of the buffers of each slot [slot_count], and after them one empty list. */
lp_sizes *lp_program_slot_sizes(const lp_side_programs *programs, const lp_side_program *program);
