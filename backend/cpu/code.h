/* The code of a side for the CPU: programs, segments and calls. Each call has its rule and its constants. */
#pragma once

#include "backend/cpu/constants/constants.h"
#include "backend/program.h"

typedef struct cpu_rule cpu_rule;

enum { CPU_FEW_ROWS = 4 }; /* lpk_linear needs no scratch for up to this number of rows */

/* One operator to run. */
typedef struct {
  lp_side_call base; /* first: see lp_side_program */
  const cpu_rule *rule;
  const cpu_constant **constant; /* [in_count]; NULL where the operand is not a constant */
  bool last_rows;                /* it is row-wise, runs on the last r rows, and its sizes depend on b and r only */
  const lp_poly *scratch;        /* NULL: none */
  const lp_poly *scratch_rows;   /* the call uses scratch only when this exceeds CPU_FEW_ROWS; NULL: always */
} cpu_call;

typedef struct {
  lp_module *module;
  lp_arena *arena;
  lp_side_programs programs;
  lp_constants constants;
  const char *contract; /* that the code keeps; NULL: none */
} cpu_code;

LP_MUST_USE lp_status cpu_code_create(lp_module *module, lp_place side, lp_arena *arena, cpu_code **out, lp_diag *diag);
void cpu_code_free(cpu_code *code); /* NULL is allowed */

static inline cpu_call *cpu_call_at(const lp_side_segment *segment, size_t index) {
  return (cpu_call *)segment->calls.data[index];
}
/* Tells whether the address of the operand is a parameter of the function that the call invokes. */
bool cpu_operand_passed(const cpu_call *call, int32_t index);
